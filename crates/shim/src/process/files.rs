//! The place of the mappings of files that the engine manages.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The managed files of a process.
pub(crate) struct Files {
    /// True if there are files to manage.
    are_wanted: AtomicBool,
    /// The lowest address of all mappings that were ever managed.
    lowest: AtomicUsize,
    /// The first address behind them.
    end: AtomicUsize,
}

impl Files {
    /// There are none, and none are wanted.
    pub(crate) const fn new() -> Files {
        Files {
            are_wanted: AtomicBool::new(false),
            lowest: AtomicUsize::new(usize::MAX),
            end: AtomicUsize::new(0),
        }
    }

    /// Has them managed from now on.
    pub(crate) fn want(&self) {
        self.are_wanted.store(true, Ordering::Relaxed);
    }

    /// Returns true if there are files to manage.
    pub(crate) fn are_wanted(&self) -> bool {
        self.are_wanted.load(Ordering::Relaxed)
    }

    /// Takes in that a mapping may be managed.
    pub(crate) fn note(&self, start: usize, bytes: usize) {
        self.lowest.fetch_min(start, Ordering::Relaxed);
        self.end
            .fetch_max(start.saturating_add(bytes), Ordering::Relaxed);
    }

    /// Returns true if there may be a managed file in a range.
    pub(crate) fn may_hold(&self, start: usize, bytes: usize) -> bool {
        let end = start.saturating_add(bytes);
        start < self.end.load(Ordering::Relaxed) && self.lowest.load(Ordering::Relaxed) < end
    }
}
