//! Ghosts: what is remembered of pages that have left.
//!
//! A table of fixed size, oldest first, with a hash to find a page again. When it is full the
//! oldest memory goes.
//!
//! # Invariants
//! 1. Every entry is either in use and in the chain of its page's bucket, or spare.
//! 2. A page has one entry at most.

use alloc::vec;
use alloc::vec::Vec;

use crate::id::{ObjectId, PageId};
use crate::queue::Queues;

const NONE: u32 = u32::MAX;
const USED: u8 = 0;
const SPARE: u8 = 1;

/// What is remembered of one page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ghost {
    /// The page.
    pub page: PageId,
    /// When it was last known to be used.
    pub seen: u64,
    /// Whether it was thought to be in use when it left.
    pub was_hot: bool,
}

/// Memories of pages that have left, oldest first.
pub(super) struct Ghosts {
    table: Vec<Ghost>,
    /// The next entry with the same bucket.
    chained: Vec<u32>,
    buckets: Vec<u32>,
    queues: Queues,
}

impl Ghosts {
    /// Makes room for `ghosts_max` memories.
    pub fn new(ghosts_max: u32) -> Ghosts {
        let page = PageId {
            object: ObjectId(NONE),
            index: 0,
        };
        let mut queues = Queues::new(2, ghosts_max);
        (0..ghosts_max).for_each(|entry| queues.push_back(SPARE, entry));
        Ghosts {
            table: vec![
                Ghost {
                    page,
                    seen: 0,
                    was_hot: false
                };
                ghosts_max as usize
            ],
            chained: vec![NONE; ghosts_max as usize],
            buckets: vec![NONE; ghosts_max.next_power_of_two() as usize],
            queues,
        }
    }

    /// Remembers a page. Needs room: see [`take_oldest`](Self::take_oldest).
    pub fn push(&mut self, ghost: Ghost) {
        self.take(ghost.page);
        let entry = self.queues.front(SPARE).expect("the caller has made room");
        self.queues.move_to_back(USED, entry);
        let bucket = self.bucket(ghost.page);
        self.table[entry as usize] = ghost;
        self.chained[entry as usize] = core::mem::replace(&mut self.buckets[bucket], entry);
    }

    /// Forgets `page`, and says what was remembered of it.
    pub fn take(&mut self, page: PageId) -> Option<Ghost> {
        let bucket = self.bucket(page);
        let mut before = NONE;
        let mut entry = self.buckets[bucket];
        while entry != NONE && self.table[entry as usize].page != page {
            before = entry;
            entry = self.chained[entry as usize];
        }
        if entry == NONE {
            return None;
        }
        let after = self.chained[entry as usize];
        match before {
            NONE => self.buckets[bucket] = after,
            _ => self.chained[before as usize] = after,
        }
        self.queues.move_to_back(SPARE, entry);
        Some(self.table[entry as usize])
    }

    /// Forgets the page that left longest ago, and says what was remembered of it.
    pub fn take_oldest(&mut self) -> Option<Ghost> {
        let entry = self.queues.front(USED)?;
        self.take(self.table[entry as usize].page)
    }

    /// How many pages are remembered.
    pub fn len(&self) -> u32 {
        self.queues.length(USED)
    }

    /// Panics if the table and the buckets contradict each other.
    pub fn check(&self) {
        self.queues.check();
        let mut chained = 0;
        for (bucket, &first) in self.buckets.iter().enumerate() {
            let mut entry = first;
            while entry != NONE {
                assert_eq!(
                    self.queues.list_of(entry),
                    Some(USED),
                    "a spare entry is chained"
                );
                let page = self.table[entry as usize].page;
                assert_eq!(self.bucket(page), bucket, "an entry is in the wrong chain");
                chained += 1;
                assert!(chained <= self.len(), "a chain has no end");
                entry = self.chained[entry as usize];
            }
        }
        assert_eq!(chained, self.len(), "an entry in use is in no chain");
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

    fn ghost(index: u64, seen: u64) -> Ghost {
        Ghost {
            page: PageId {
                object: ObjectId(1),
                index,
            },
            seen,
            was_hot: false,
        }
    }

    #[test]
    fn the_page_that_left_first_is_forgotten_first() {
        let mut ghosts = Ghosts::new(8);
        (0..8).for_each(|index| ghosts.push(ghost(index, index)));
        ghosts.check();
        assert_eq!(ghosts.take(ghost(3, 0).page), Some(ghost(3, 3)));
        assert_eq!(ghosts.take(ghost(3, 0).page), None);
        let order: Vec<u64> = core::iter::from_fn(|| ghosts.take_oldest())
            .map(|it| it.seen)
            .collect();
        assert_eq!(order, [0, 1, 2, 4, 5, 6, 7]);
        ghosts.check();
    }

    #[test]
    fn a_page_that_leaves_again_is_remembered_once_and_anew() {
        let mut ghosts = Ghosts::new(3);
        for it in [ghost(5, 1), ghost(6, 2), ghost(5, 3)] {
            ghosts.push(it);
        }
        assert_eq!(ghosts.len(), 2);
        assert_eq!(ghosts.take_oldest(), Some(ghost(6, 2)));
        assert_eq!(ghosts.take_oldest(), Some(ghost(5, 3)));
        ghosts.check();
    }
}
