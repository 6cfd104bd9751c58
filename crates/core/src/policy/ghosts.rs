//! Ghosts: what is remembered of pages that have left.
//!
//! A [`Directory`] with an order: oldest first. When it is full the oldest memory goes. The newest
//! ones are counted apart.
//!
//! # Invariants
//! 1. Every entry in use is on one of the two lists.
//! 2. Entries that are recent are newer than all others.

use super::directory::Directory;
use crate::id::PageId;
use crate::queue::Queues;

const RECENT: u8 = 0;
const OLD: u8 = 1;
const LISTS: u8 = 2;

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

/// What stands with a page's name.
#[derive(Clone, Copy, Default)]
struct Known {
    seen: u64,
    was_hot: bool,
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
    directory: Directory<Known>,
    queues: Queues,
    ghosts_max: u32,
    /// How many of the recent ones were hot.
    recent_hot: u32,
}

impl Ghosts {
    /// Makes room for `ghosts_max` memories.
    pub fn new(ghosts_max: u32) -> Ghosts {
        Ghosts {
            directory: Directory::new(ghosts_max),
            queues: Queues::new(LISTS, ghosts_max),
            ghosts_max,
            recent_hot: 0,
        }
    }

    /// Remembers a page as the newest of at most `recent_max`, one at least. Needs room: see
    /// [`drop_oldest`](Self::drop_oldest).
    pub fn push(&mut self, ghost: Ghost, recent_max: u32) {
        self.take(ghost.page);
        self.push_new(ghost, recent_max);
    }

    /// The same, of a page that is not remembered.
    fn push_new(&mut self, ghost: Ghost, recent_max: u32) {
        let Ghost {
            page,
            seen,
            was_hot,
        } = ghost;
        let entry = self.directory.insert_with(page, Known { seen, was_hot });
        self.queues.push_back(RECENT, entry);
        self.recent_hot += u32::from(was_hot);
        while self.queues.length(RECENT) > recent_max {
            let Some(aged) = self.queues.front(RECENT) else {
                break;
            };
            self.recent_hot -= u32::from(self.directory.data(aged).was_hot);
            self.queues.move_to_back(OLD, aged);
        }
    }

    /// Remembers a page as the newest of at most `most`; the oldest make room.
    pub fn remember(&mut self, ghost: Ghost, most: u32) {
        self.take(ghost.page);
        let most = most.clamp(1, self.ghosts_max);
        while self.len() >= most {
            self.drop_oldest();
        }
        self.push_new(ghost, most);
    }

    /// Remembers the name of a page and nothing else. The oldest name goes if there is no room.
    pub fn push_name(&mut self, page: PageId) {
        let (seen, was_hot) = (0, false);
        let ghost = Ghost {
            page,
            seen,
            was_hot,
        };
        self.remember(ghost, u32::MAX);
    }

    /// Forgets the oldest until no more than `most` are remembered.
    pub fn trim(&mut self, most: u64) {
        while u64::from(self.len()) > most {
            self.drop_oldest();
        }
    }

    /// Looks for what is remembered of `pages`, so that it is found sooner afterwards.
    pub fn bring_near(&self, pages: &[PageId]) {
        self.directory
            .bring_near(pages, |entry| self.queues.list_of(entry) == Some(OLD));
    }

    /// Forgets `page`, and says what was remembered of it.
    pub fn take(&mut self, page: PageId) -> Option<Found> {
        self.directory
            .find(page)
            .map(|entry| self.take_entry(entry))
    }

    fn take_entry(&mut self, entry: u32) -> Found {
        let page = self.directory.page(entry);
        let Known { seen, was_hot } = self.directory.data(entry);
        self.directory.remove(entry);
        let is_recent = self.queues.remove(entry) == Some(RECENT);
        self.recent_hot -= u32::from(is_recent && was_hot);
        let ghost = Ghost {
            page,
            seen,
            was_hot,
        };
        Found { ghost, is_recent }
    }

    /// Forgets the page that left longest ago.
    pub fn drop_oldest(&mut self) -> Option<Ghost> {
        let entry = self.queues.front(OLD).or(self.queues.front(RECENT))?;
        Some(self.take_entry(entry).ghost)
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

    /// Panics if the lists and the directory contradict each other.
    pub fn check(&self) {
        self.queues.check();
        self.directory.check();
        assert_eq!(self.directory.len(), self.len(), "an entry is on no list");
        let recent = self.queues.iter(RECENT);
        let recent_hot = recent
            .filter(|&entry| self.directory.data(entry).was_hot)
            .count();
        assert_eq!(
            recent_hot, self.recent_hot as usize,
            "hot ones are miscounted"
        );
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::id::ObjectId;

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
