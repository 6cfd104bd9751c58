//! Ghosts: what is remembered of pages that have left.
//!
//! A table of fixed size, oldest first, with a hash to find a page again. When it is full the
//! oldest memory goes. The newest ones are counted apart.
//!
//! # Invariants
//! 1. Every entry is either in use and in the chain of its page's bucket, or spare.
//! 2. A page has one entry at most.
//! 3. Entries that are recent are newer than all others.

use alloc::vec;
use alloc::vec::Vec;

use crate::id::{ObjectId, PageId};
use crate::queue::Queues;

const NONE: u32 = u32::MAX;
const RECENT: u8 = 0;
const OLD: u8 = 1;
const SPARE: u8 = 2;
const LISTS: u8 = 3;

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

/// A memory that was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Found {
    /// What was remembered.
    pub ghost: Ghost,
    /// Whether it was among the newest.
    pub is_recent: bool,
}

/// Memories of pages that have left, oldest first.
pub(super) struct Ghosts {
    table: Vec<Ghost>,
    /// The next entry with the same bucket.
    chained: Vec<u32>,
    buckets: Vec<u32>,
    queues: Queues,
    /// How many of the recent ones were hot.
    recent_hot: u32,
}

impl Ghosts {
    /// Makes room for `ghosts_max` memories.
    pub fn new(ghosts_max: u32) -> Ghosts {
        let page = PageId {
            object: ObjectId(NONE),
            index: 0,
        };
        let mut queues = Queues::new(LISTS, ghosts_max);
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
            recent_hot: 0,
        }
    }

    /// Remembers a page as the newest of at most `recent_max`, one at least. Needs room: see
    /// [`drop_oldest`](Self::drop_oldest).
    pub fn push(&mut self, ghost: Ghost, recent_max: u32) {
        self.take(ghost.page);
        let entry = self.queues.front(SPARE).expect("the caller has made room");
        let bucket = self.bucket(ghost.page);
        self.table[entry as usize] = ghost;
        self.chained[entry as usize] = core::mem::replace(&mut self.buckets[bucket], entry);
        self.queues.move_to_back(RECENT, entry);
        self.recent_hot += u32::from(ghost.was_hot);
        while self.queues.length(RECENT) > recent_max {
            let Some(aged) = self.queues.front(RECENT) else {
                break;
            };
            self.recent_hot -= u32::from(self.table[aged as usize].was_hot);
            self.queues.move_to_back(OLD, aged);
        }
    }

    /// Remembers a page as the newest of at most `most`; the oldest make room.
    pub fn remember(&mut self, ghost: Ghost, most: u32) {
        self.take(ghost.page);
        let most = most.clamp(1, self.table.len() as u32);
        while self.len() >= most {
            self.drop_oldest();
        }
        self.push(ghost, most);
    }

    /// Forgets `page`, and says what was remembered of it.
    pub fn take(&mut self, page: PageId) -> Option<Found> {
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
        let ghost = self.table[entry as usize];
        let is_recent = self.queues.list_of(entry) == Some(RECENT);
        self.recent_hot -= u32::from(is_recent && ghost.was_hot);
        self.queues.move_to_back(SPARE, entry);
        Some(Found { ghost, is_recent })
    }

    /// Forgets the page that left longest ago.
    pub fn drop_oldest(&mut self) -> Option<Ghost> {
        let entry = self.queues.front(OLD).or(self.queues.front(RECENT))?;
        let found = self.take(self.table[entry as usize].page);
        found.map(|found| found.ghost)
    }

    /// How many pages are remembered.
    pub fn len(&self) -> u32 {
        self.queues.length(RECENT) + self.queues.length(OLD)
    }

    /// How many recent ones were hot, or cold.
    pub fn recent(&self, were_hot: bool) -> u64 {
        u64::from(match were_hot {
            true => self.recent_hot,
            false => self.queues.length(RECENT) - self.recent_hot,
        })
    }

    /// Panics if the table and the buckets contradict each other.
    pub fn check(&self) {
        self.queues.check();
        let mut chained = 0;
        let mut recent_hot = 0;
        for (bucket, &first) in self.buckets.iter().enumerate() {
            let mut entry = first;
            while entry != NONE {
                let list = self.queues.list_of(entry);
                assert_ne!(list, Some(SPARE), "a spare entry is chained");
                let is_hot = self.table[entry as usize].was_hot;
                recent_hot += u32::from(is_hot && list == Some(RECENT));
                let page = self.table[entry as usize].page;
                assert_eq!(self.bucket(page), bucket, "an entry is in the wrong chain");
                chained += 1;
                assert!(chained <= self.len(), "a chain has no end");
                entry = self.chained[entry as usize];
            }
        }
        assert_eq!(chained, self.len(), "an entry in use is in no chain");
        assert_eq!(recent_hot, self.recent_hot, "hot ones are miscounted");
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
        (0..8).for_each(|index| ghosts.push(ghost(index, index), 3));
        ghosts.check();
        let found = ghosts.take(ghost(3, 0).page).unwrap();
        assert_eq!((found.ghost, found.is_recent), (ghost(3, 3), false));
        assert_eq!(ghosts.take(ghost(3, 0).page), None);
        let order: Vec<u64> = core::iter::from_fn(|| ghosts.drop_oldest())
            .map(|it| it.seen)
            .collect();
        assert_eq!(order, [0, 1, 2, 4, 5, 6, 7]);
        ghosts.check();
    }

    #[test]
    fn a_page_that_leaves_again_is_remembered_once_and_anew() {
        let mut ghosts = Ghosts::new(3);
        for it in [ghost(5, 1), ghost(6, 2), ghost(5, 3)] {
            ghosts.push(it, 2);
        }
        assert_eq!(ghosts.len(), 2);
        assert_eq!(ghosts.drop_oldest(), Some(ghost(6, 2)));
        assert_eq!(ghosts.drop_oldest(), Some(ghost(5, 3)));
        ghosts.check();
    }

    #[test]
    fn the_newest_are_counted_by_what_they_were() {
        let mut ghosts = Ghosts::new(8);
        for index in 0..5 {
            let was_hot = index % 2 == 0;
            ghosts.push(
                Ghost {
                    was_hot,
                    ..ghost(index, index)
                },
                3,
            );
            ghosts.check();
        }
        // The pages 2, 3 and 4.
        assert_eq!((ghosts.recent(true), ghosts.recent(false)), (2, 1));
        assert!(ghosts.take(ghost(4, 0).page).unwrap().is_recent);
        assert!(!ghosts.take(ghost(1, 0).page).unwrap().is_recent);
        assert_eq!((ghosts.recent(true), ghosts.recent(false)), (1, 1));
        ghosts.check();
    }
}
