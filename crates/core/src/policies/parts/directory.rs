//! Directory: the pages that are remembered, by number.
//!
//! A table of fixed size with a hash to find a page again. Each page that is remembered has an
//! entry, and the entry's number stands for it on the lists of a policy, where frames stand for
//! the pages that are resident. The directory itself keeps no order. Entries that were used before
//! are used again first.
//!
//! # Invariants
//! 1. Every entry either holds a page, or is spare, or was never used.
//! 2. A page has one entry at most.

use crate::id::PageId;
use crate::policies::parts::page_hash::{Chains, NONE};

/// Pages by number.
pub(crate) struct Directory {
    chains: Chains,
    spare: u32,
    /// The number of entries that were ever used: those below.
    opened: u32,
    used: u32,
}

impl Directory {
    /// Makes room for `entries` pages.
    pub fn new(entries: u32) -> Directory {
        Directory {
            chains: Chains::new(entries, entries),
            spare: NONE,
            opened: 0,
            used: 0,
        }
    }

    /// Gives `page`, which has none, an entry. There must be room.
    pub fn insert(&mut self, page: PageId) -> u32 {
        assert!(!self.is_full(), "the caller has made room");
        let entry = match self.spare {
            NONE => {
                self.opened += 1;
                self.opened - 1
            }
            spare => {
                self.spare = self.chains.next(spare);
                spare
            }
        };
        self.chains.link(entry, page, ());
        self.used += 1;
        entry
    }

    /// Forgets the page of `entry`, which is in use.
    pub fn remove(&mut self, entry: u32) {
        self.chains.unlink(entry);
        self.chains.set_next(entry, self.spare);
        self.spare = entry;
        self.used -= 1;
    }

    /// The entry of `page`.
    pub fn find(&self, page: PageId) -> Option<u32> {
        self.chains.find(page)
    }

    /// Looks where `pages` would be found, all at once, so that each is found sooner afterwards:
    /// see [`Chains::bring_near`]. `look` looks at what the caller keeps for an entry.
    pub fn bring_near(&self, pages: &[PageId], look: impl Fn(u32) -> bool) {
        self.chains.bring_near(pages.iter().copied(), look);
    }

    /// Looks where `entries`, which are in use, would be removed: as
    /// [`bring_near`](Self::bring_near).
    pub fn bring_entries_near(&self, entries: impl Iterator<Item = u32>) {
        let pages = entries.map(|entry| self.chains.page(entry));
        self.chains.bring_near(pages, |_| true);
    }

    /// The number of pages remembered.
    pub fn len(&self) -> u32 {
        self.used
    }

    /// Returns true if there is room for no other page.
    pub fn is_full(&self) -> bool {
        self.used == self.chains.len()
    }

    /// Panics if the table and the chains contradict each other.
    pub fn check(&self) {
        self.chains.check();
        let entries = 0..self.opened;
        let used = entries.filter(|&entry| self.chains.holds_page(entry));
        assert_eq!(used.count(), self.used as usize);
        let (mut spare, mut spares) = (self.spare, 0);
        while spare != NONE {
            assert!(!self.chains.holds_page(spare), "an entry in use is spare");
            spares += 1;
            assert!(spares <= self.chains.len(), "spares have no end");
            spare = self.chains.next(spare);
        }
        assert_eq!(self.used + spares, self.opened, "an entry is lost");
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::id::ObjectId;

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
            assert_eq!(directory.chains.page(entry), page(index as u64));
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
