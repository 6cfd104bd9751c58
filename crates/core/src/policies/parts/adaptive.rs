//! The part that ARC and CAR share: pages seen once and pages seen again, the names of those that
//! left each, and a target for the first kind that moves towards whichever names come back.
//!
//! The target is a real number in the papers. Here it is one in steps of 2^-32, rounded down.
//!
//! # Invariants
//! 1. Frames stand on the two lists of resident pages, entries of the directory on the two others.
//! 2. After an arrival, pages and names of the first kind are no more than the frames, and all are
//!    no more than twice the frames.

use crate::collections::queue::Queues;
use crate::id::{FrameId, PageId};
use crate::policies::parts::directory::Directory;
use crate::seams::policy::{Arrival, Cause, Departure};

/// Resident pages that were seen once lately.
pub(crate) const ONCE: u8 = 0;
/// Resident pages that were seen again.
pub(crate) const AGAIN: u8 = 1;
/// Names of pages that left `ONCE`.
pub(crate) const ONCE_GONE: u8 = 2;
/// Names of pages that left `AGAIN`.
pub(crate) const AGAIN_GONE: u8 = 3;

/// One, as the target counts.
const ONE: u64 = 1 << 32;

/// Four lists and a target.
pub(crate) struct Adaptive {
    /// The lists, oldest in front. Frames, and behind them the entries of the directory.
    pub queues: Queues,
    /// The number of frames meant for pages seen once.
    target: u64,
    ghosts: Directory,
    frames_max: u32,
    frames: u32,
}

impl Adaptive {
    /// Makes empty lists for `frames` frames of up to `frames_max`.
    pub fn new(frames_max: u32, frames: u32) -> Adaptive {
        // One more than is kept: a page leaves before the name of the one that comes is taken out.
        let ghosts_max = 2 * frames_max + 1;
        Adaptive {
            queues: Queues::in_two(4, frames_max, ghosts_max),
            target: 0,
            ghosts: Directory::new(ghosts_max),
            frames_max,
            frames,
        }
    }

    /// Puts a page that has come to where it belongs. Answers the list its name was on.
    pub fn enter(&mut self, frame: FrameId, arrival: &Arrival) -> Option<u8> {
        let entry = self.ghosts.find(arrival.page);
        let gone = entry.map(|entry| self.forget(entry));
        let list =
            match arrival.cause {
                Cause::Fetched | Cause::ZeroFill | Cause::Copied | Cause::Adopted => {
                    if gone.is_some() { AGAIN } else { ONCE }
                }
                // Not asked for again.
                Cause::Prefetched | Cause::ZeroAhead => ONCE,
                Cause::Kept | Cause::Cleaned => {
                    if gone == Some(AGAIN_GONE) {
                        AGAIN
                    } else {
                        ONCE
                    }
                }
            };
        self.queues.push_back(list, frame.0);
        if gone.is_none() {
            self.trim();
        }
        gone
    }

    /// Remembers the name of a page that leaves, unless its owner gave it up.
    pub fn leave(&mut self, frame: FrameId, page: PageId, departure: Departure) {
        let list = self.queues.remove(frame.0);
        let gone = match (list, departure) {
            (Some(ONCE), Departure::Evicted) => ONCE_GONE,
            (Some(AGAIN), Departure::Evicted) => AGAIN_GONE,
            (_, Departure::Evicted | Departure::Discarded) => return,
        };
        if self.ghosts.is_full() {
            let lists = [ONCE_GONE, AGAIN_GONE];
            let oldest = lists.into_iter().find_map(|list| self.queues.front(list));
            self.forget(oldest.expect("names are kept") - self.frames_max);
        }
        let entry = self.ghosts.insert(page);
        self.queues.push_back(gone, self.frames_max + entry);
    }

    /// The list the name of `page` is on.
    pub fn find_gone(&self, page: PageId) -> Option<u8> {
        let entry = self.ghosts.find(page)?;
        self.queues.list_of(self.frames_max + entry)
    }

    /// Moves the target because a page came back: up if its name was or is on `ONCE_GONE`, else
    /// down.
    pub fn adapt(&mut self, gone: u8, once_gone: u32, again_gone: u32) {
        let step = |other: u32, own: u32| (u64::from(other) * ONE / u64::from(own)).max(ONE);
        if gone == ONCE_GONE {
            let most = u64::from(self.frames) * ONE;
            self.target = most.min(self.target + step(again_gone, once_gone));
        } else {
            self.target = self.target.saturating_sub(step(once_gone, again_gone));
        }
    }

    /// Learns that memory now has `frames` frames.
    pub fn resize(&mut self, frames: u32) {
        self.frames = frames;
        self.target = self.target.min(u64::from(frames) * ONE);
    }

    /// Compares the number of resident pages seen once with the target.
    pub fn compare_once(&self) -> core::cmp::Ordering {
        (u64::from(self.queues.length(ONCE)) * ONE).cmp(&self.target)
    }

    /// The number of resident pages.
    pub fn resident(&self) -> u32 {
        self.queues.length(ONCE) + self.queues.length(AGAIN)
    }

    /// Panics if the records contradict each other.
    pub fn check(&self) {
        self.queues.check();
        self.ghosts.check();
        let names = self.queues.length(ONCE_GONE) + self.queues.length(AGAIN_GONE);
        assert_eq!(names, self.ghosts.len());
        assert!(self.target <= u64::from(self.frames) * ONE);
    }

    /// Forgets names until no more are kept than may be.
    fn trim(&mut self) {
        let queues = &self.queues;
        let once = queues.length(ONCE) + queues.length(ONCE_GONE);
        for _ in self.frames..once {
            self.forget_oldest(ONCE_GONE);
        }
        for _ in 2 * self.frames..self.resident() + self.ghosts.len() {
            self.forget_oldest(AGAIN_GONE);
        }
    }

    fn forget_oldest(&mut self, list: u8) {
        if let Some(oldest) = self.queues.front(list) {
            self.forget(oldest - self.frames_max);
        }
    }

    /// Forgets a name. Answers the list it was on.
    fn forget(&mut self, entry: u32) -> u8 {
        self.ghosts.remove(entry);
        let list = self.queues.remove(self.frames_max + entry);
        list.expect("a name is on a list")
    }
}
