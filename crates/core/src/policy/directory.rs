//! Directory: the pages that are remembered, by number.
//!
//! A table of fixed size with a hash to find a page again. Each page that is remembered has an
//! entry, and the entry's number stands for it on the lists of a policy, where frames stand for
//! the pages that are resident. Data may stand with each. The directory itself keeps no order.
//!
//! # Invariants
//! 1. Every entry is either in use and in the chain of its page's bucket, or spare.
//! 2. A page has one entry at most.

use alloc::vec;
use alloc::vec::Vec;

use crate::id::{ObjectId, PageId};

const NONE: u32 = u32::MAX;
/// A table of fewer bytes than this is in the nearest caches.
const FAR_BYTES_MIN: usize = 1 << 18;

/// A page, what is remembered of it, and which entry comes after its own in its chain. Kept
/// together, because a search that needs the one needs the others. The two parts of a page's name
/// stand apart, which takes eight bytes less.
#[derive(Clone, Copy)]
struct Entry<Data> {
    index: u64,
    object: ObjectId,
    /// The next entry with the same bucket, or the next spare one.
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
pub(super) struct Directory<Data = ()> {
    entries: Vec<Entry<Data>>,
    buckets: Vec<u32>,
    spare: u32,
    used: u32,
}

impl Directory {
    /// Gives `page`, which has none, an entry. There must be room.
    pub fn insert(&mut self, page: PageId) -> u32 {
        self.insert_with(page, ())
    }
}

impl<Data: Copy + Default> Directory<Data> {
    /// Makes room for `entries` pages.
    pub fn new(entries: u32) -> Directory<Data> {
        assert!(entries < NONE);
        let entry = |number| {
            let next = if number + 1 < entries {
                number + 1
            } else {
                NONE
            };
            Entry {
                index: 0,
                object: ObjectId(NONE),
                next,
                data: Data::default(),
            }
        };
        // Most pages that are looked for are not here. With two buckets and more for each entry
        // most of those are known by an empty one, without a look at an entry.
        let buckets = 2 * entries.next_power_of_two() as usize;
        Directory {
            entries: (0..entries).map(entry).collect(),
            buckets: vec![NONE; buckets],
            spare: if entries > 0 { 0 } else { NONE },
            used: 0,
        }
    }

    /// Gives `page`, which has none, an entry with `data`. There must be room.
    pub fn insert_with(&mut self, page: PageId, data: Data) -> u32 {
        debug_assert_eq!(self.find(page), None, "{page:?} is remembered already");
        let entry = self.spare;
        assert_ne!(entry, NONE, "the caller has made room");
        let bucket = self.bucket(page);
        self.spare = self.entries[entry as usize].next;
        let next = core::mem::replace(&mut self.buckets[bucket], entry);
        self.entries[entry as usize] = Entry {
            index: page.index,
            object: page.object,
            next,
            data,
        };
        self.used += 1;
        entry
    }

    /// Forgets the page of `entry`, which is in use.
    pub fn remove(&mut self, entry: u32) {
        let bucket = self.bucket(self.page(entry));
        let after = self.entries[entry as usize].next;
        if self.buckets[bucket] == entry {
            self.buckets[bucket] = after;
        } else {
            let mut before = self.buckets[bucket];
            while self.entries[before as usize].next != entry {
                before = self.entries[before as usize].next;
            }
            self.entries[before as usize].next = after;
        }
        self.entries[entry as usize].next = core::mem::replace(&mut self.spare, entry);
        self.used -= 1;
    }

    /// The entry of `page`.
    pub fn find(&self, page: PageId) -> Option<u32> {
        let mut entry = *self.buckets.get(self.bucket(page))?;
        while entry != NONE {
            let found = &self.entries[entry as usize];
            if found.page() == page {
                return Some(entry);
            }
            entry = found.next;
        }
        None
    }

    /// Looks where `pages` would be found, all at once, so that each is found sooner afterwards:
    /// no look waits for another. A directory that is near anyway is left alone.
    ///
    /// `look` looks at what the caller keeps for an entry. The answers only make sure that the
    /// looks take place.
    pub fn bring_near(&self, pages: &[PageId], look: impl Fn(u32) -> bool) {
        if size_of_val(&self.entries[..]) < FAR_BYTES_MIN {
            return;
        }
        let is_last = |page: &&PageId| {
            let entry = self.buckets[self.bucket(**page)];
            let first = self.entries.get(entry as usize);
            first.is_some_and(|first| look(entry) & (first.next == NONE))
        };
        core::hint::black_box(pages.iter().filter(is_last).count());
    }

    /// Looks where `entries`, which are in use, would be removed: as
    /// [`bring_near`](Self::bring_near).
    pub fn bring_entries_near(&self, entries: impl Iterator<Item = u32>) {
        if size_of_val(&self.entries[..]) < FAR_BYTES_MIN {
            return;
        }
        let is_first = |&entry: &u32| self.buckets[self.bucket(self.page(entry))] == entry;
        core::hint::black_box(entries.filter(is_first).count());
    }

    /// The page of `entry`, which is in use.
    pub fn page(&self, entry: u32) -> PageId {
        self.entries[entry as usize].page()
    }

    /// What stands with `entry`, which is in use.
    pub fn data(&self, entry: u32) -> Data {
        self.entries[entry as usize].data
    }

    /// How many pages are remembered.
    pub fn len(&self) -> u32 {
        self.used
    }

    /// Whether there is room for no other page.
    pub fn is_full(&self) -> bool {
        self.spare == NONE
    }

    /// Panics if the table and the buckets contradict each other.
    pub fn check(&self) {
        let mut chained = 0;
        for (bucket, &first) in self.buckets.iter().enumerate() {
            let mut entry = first;
            while entry != NONE {
                let page = self.page(entry);
                assert_eq!(self.bucket(page), bucket, "an entry is in the wrong chain");
                chained += 1;
                assert!(chained <= self.used, "a chain has no end");
                entry = self.entries[entry as usize].next;
            }
        }
        assert_eq!(chained, self.used, "an entry in use is in no chain");
        let mut spare = self.spare;
        while spare != NONE {
            chained += 1;
            assert!(chained as usize <= self.entries.len(), "spares have no end");
            spare = self.entries[spare as usize].next;
        }
        assert_eq!(chained as usize, self.entries.len(), "an entry is lost");
    }

    fn bucket(&self, page: PageId) -> usize {
        // The finisher of SplitMix64 spreads neighbouring pages over the buckets.
        let mut z = page.index ^ (u64::from(page.object.0) << 40);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) as usize & (self.buckets.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(index: u64) -> PageId {
        PageId {
            object: ObjectId(1),
            index,
        }
    }

    #[test]
    fn a_page_is_found_by_its_entry_until_it_is_removed() {
        let mut directory = Directory::new(5);
        let entries: Vec<u32> = (0..5).map(|index| directory.insert(page(index))).collect();
        assert!(directory.is_full() && directory.len() == 5);
        for (index, &entry) in entries.iter().enumerate() {
            assert_eq!(directory.find(page(index as u64)), Some(entry));
            assert_eq!(directory.page(entry), page(index as u64));
        }
        for index in [3, 0, 4] {
            directory.remove(entries[index]);
            assert_eq!(directory.find(page(index as u64)), None);
            directory.check();
        }
        directory.insert(page(9));
        assert!(directory.find(page(9)).is_some() && directory.find(page(1)).is_some());
        directory.check();
    }

    #[test]
    fn a_directory_of_nothing_finds_nothing() {
        let directory: Directory = Directory::new(0);
        assert!(directory.is_full() && directory.len() == 0);
        assert_eq!(directory.find(page(1)), None);
        directory.check();
    }
}
