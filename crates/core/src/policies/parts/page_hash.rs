//! Chains: pages found by number, in a table whose entries the caller gives out.
//!
//! A hash says in which bucket a page is, and the entries of a bucket are chained. What stands with
//! a page is kept with its name and its chain: a search that needs the one needs the others.
//!
//! There are buckets for the pages that were there at most at one time, and not for all that may
//! come: they are few at first, and when pages are more than there are buckets enough for, each
//! page that is added has some more split in two, one after the other (Litwin, "Linear hashing",
//! VLDB 1980), so that no call takes long. Once that has begun it goes on until all are split: a
//! bucket that is not has twice the pages.
//!
//! # Invariants
//! 1. Every entry that holds a page is in the chain of its page's bucket, and no other entry is in
//!    a chain.
//! 2. A mask of as many bits as number all buckets is `mask`. Those of half of it that are below
//!    what is beyond that half were split; if all were, none is half way.
//!
//! [`directory`](crate::policies::parts::directory) gives out entries in no order,
//! [`ghosts`](crate::policies::parts::ghost_list) in the order in which pages leave.

use alloc::vec::Vec;

use crate::collections::column::Column;
use crate::id::{ObjectId, PageId};
use crate::random::mix;

pub(crate) const NONE: u32 = u32::MAX;
/// In place of the object of a page where there is none.
const NOBODY: ObjectId = ObjectId(NONE);
/// The buckets there are at first, if not fewer are enough.
const BUCKETS_LEAST: usize = 64;
/// Most pages that are looked for are not here. With at least this many buckets for each present
/// page, most of those are known by an empty bucket, without a look at an entry.
const BUCKETS_A_PAGE: usize = 2;
/// The number of buckets split with each page that is added: all are before there are too few.
const SPLITS: usize = 2;
/// A table of fewer bytes than this is in the nearest caches.
const FAR_BYTES_MIN: usize = 1 << 18;

/// A page, what is remembered of it, and which entry comes after its own in its chain. The two
/// parts of a page's name stand apart, which takes eight bytes less.
#[derive(Clone, Copy)]
struct Entry<Data> {
    index: u64,
    object: ObjectId,
    /// The next entry with the same bucket. Of an entry without a page, whatever the caller keeps.
    next: u32,
    data: Data,
}

impl<Data> Entry<Data> {
    fn page(&self) -> PageId {
        PageId {
            object: self.object,
            index: self.index,
        }
    }
}

/// Pages by number, each with data.
pub(crate) struct Chains<Data = ()> {
    entries: Column<Entry<Data>>,
    buckets: Vec<u32>,
    buckets_max: usize,
    /// One less than the number of buckets when all will have been split.
    mask: usize,
    /// For how many pages there are buckets enough; none while some are being split.
    enough: usize,
    /// The number of entries that hold a page.
    used: usize,
}

impl<Data: Copy + Default> Chains<Data> {
    /// Makes `entries` entries without pages, of which up to `pages_max` will hold one at a time.
    pub fn new(entries: u32, pages_max: u32) -> Chains<Data> {
        assert!(entries < NONE);
        let entry = Entry {
            index: 0,
            object: NOBODY,
            next: NONE,
            data: Data::default(),
        };
        let buckets_max = BUCKETS_A_PAGE * pages_max.next_power_of_two() as usize;
        let buckets_first = buckets_max.min(BUCKETS_LEAST);
        let mut buckets = Vec::with_capacity(buckets_max);
        buckets.resize(buckets_first, NONE);
        let mut chains = Chains {
            entries: Column::new(entry, entries as usize),
            buckets,
            buckets_max,
            mask: buckets_first - 1,
            enough: 0,
            used: 0,
        };
        chains.note_enough();
        chains
    }

    /// Puts `page`, which has no entry, to `entry`, which holds none.
    pub fn link(&mut self, entry: u32, page: PageId, data: Data) {
        debug_assert_eq!(self.find(page), None, "{page:?} is remembered already");
        self.used += 1;
        if self.used > self.enough {
            self.split_buckets();
        }
        let bucket = self.bucket(page);
        let next = core::mem::replace(&mut self.buckets[bucket], entry);
        self.entries[entry as usize] = Entry {
            index: page.index,
            object: page.object,
            next,
            data,
        };
    }

    /// Splits the next buckets.
    #[cold]
    #[inline(never)]
    fn split_buckets(&mut self) {
        self.mask = (self.buckets.len() + 1).next_power_of_two() - 1;
        (0..SPLITS).for_each(|_| self.split_bucket());
        self.note_enough();
    }

    /// Finds for how many pages there are buckets enough.
    fn note_enough(&mut self) {
        self.enough = match self.buckets.len() {
            all if all == self.buckets_max => usize::MAX,
            all if all == self.mask + 1 => all / BUCKETS_A_PAGE,
            _ => 0,
        };
    }

    /// Moves those of one bucket that the next bit of their hash says to a new one.
    fn split_bucket(&mut self) {
        let half = self.mask / 2 + 1;
        let new = self.buckets.len();
        self.buckets.push(NONE);
        let (mut entry, mut stays) = (self.buckets[new - half], NONE);
        let mut moves = NONE;
        while entry != NONE {
            let next = self.entries[entry as usize].next;
            let is_moved = hash(self.page(entry)) & half != 0;
            let chain = if is_moved { &mut moves } else { &mut stays };
            self.entries[entry as usize].next = core::mem::replace(chain, entry);
            entry = next;
        }
        self.buckets[new - half] = stays;
        self.buckets[new] = moves;
    }

    /// Takes the page of `entry` out of it.
    pub fn unlink(&mut self, entry: u32) {
        self.used -= 1;
        let after = self.entry(entry).next;
        self.lead(entry, after);
        self.entries.written_mut()[entry as usize].object = NOBODY;
    }

    /// Makes the link to `entry`, which holds a page, lead to `to`. The link is in its bucket, or
    /// in the entry before it in the chain.
    fn lead(&mut self, entry: u32, to: u32) {
        let bucket = self.bucket(self.page(entry));
        let entries = self.entries.written_mut();
        let mut link = &mut self.buckets[bucket];
        if *link != entry {
            let mut before = *link;
            while entries[before as usize].next != entry {
                before = entries[before as usize].next;
            }
            link = &mut entries[before as usize].next;
        }
        *link = to;
    }

    /// Moves the page of `from`, and what stands with it, to `to`, which holds none.
    pub fn relocate(&mut self, from: u32, to: u32) {
        let moved = *self.entry(from);
        self.lead(from, to);
        self.entries[to as usize] = moved;
        self.entries[from as usize].object = NOBODY;
    }

    /// Keeps a number with `entry`, which has held a page and holds none.
    pub fn set_next(&mut self, entry: u32, next: u32) {
        self.entries.written_mut()[entry as usize].next = next;
    }

    /// The number that is kept with `entry`, which has held a page and holds none.
    pub fn next(&self, entry: u32) -> u32 {
        self.entry(entry).next
    }

    /// The entry of `page`.
    pub fn find(&self, page: PageId) -> Option<u32> {
        let entries = self.entries.written();
        let mut entry = self.buckets[self.bucket(page)];
        while entry != NONE {
            let found = &entries[entry as usize];
            if found.page() == page {
                return Some(entry);
            }
            entry = found.next;
        }
        None
    }

    /// The record of `entry`, which holds a page or has held one.
    #[inline]
    fn entry(&self, entry: u32) -> &Entry<Data> {
        &self.entries.written()[entry as usize]
    }

    /// Looks where `pages` would be found, all at once, so that each is found sooner afterwards:
    /// no look waits for another. A table that is near anyway is left alone.
    ///
    /// `look` looks at what the caller keeps for an entry. The answers only make sure that the
    /// looks take place.
    pub fn bring_near(&self, pages: impl Iterator<Item = PageId>, look: impl Fn(u32) -> bool) {
        if self.entries.bytes() < FAR_BYTES_MIN {
            return;
        }
        let is_last = |page: &PageId| {
            let entry = self.buckets[self.bucket(*page)];
            entry != NONE && look(entry) & (self.next(entry) == NONE)
        };
        core::hint::black_box(pages.filter(is_last).count());
    }

    /// Returns true if `entry` holds a page.
    pub fn holds_page(&self, entry: u32) -> bool {
        let found = self.entries.written().get(entry as usize);
        found.is_some_and(|found| found.object != NOBODY)
    }

    /// The page that `entry` holds.
    pub fn page(&self, entry: u32) -> PageId {
        self.entry(entry).page()
    }

    /// The value stored with the page that `entry` holds.
    pub fn data(&self, entry: u32) -> Data {
        self.entry(entry).data
    }

    /// The number of entries.
    pub fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    /// Panics if the entries and the buckets contradict each other.
    pub fn check(&self) {
        let held = self.entries.iter().filter(|entry| entry.object != NOBODY);
        let held = held.count();
        let mut chained = 0;
        for (bucket, &first) in self.buckets.iter().enumerate() {
            let mut entry = first;
            while entry != NONE {
                assert!(self.holds_page(entry), "an entry without a page is chained");
                let page = self.page(entry);
                assert_eq!(self.bucket(page), bucket, "an entry is in the wrong chain");
                chained += 1;
                assert!(chained <= held, "a chain has no end");
                entry = self.next(entry);
            }
        }
        assert_eq!(chained, held, "an entry with a page is in no chain");
        assert_eq!(held, self.used, "pages are miscounted");
    }

    #[inline]
    fn bucket(&self, page: PageId) -> usize {
        let hash = hash(page);
        let bucket = hash & self.mask;
        if bucket < self.buckets.len() {
            bucket
        } else {
            hash & (self.mask / 2)
        }
    }
}

/// Spreads neighbouring pages over the buckets.
fn hash(page: PageId) -> usize {
    mix(page.index ^ (u64::from(page.object.0) << 40)) as usize
}
