//! The way of a userfaultfd from the engine that forks to the child's.

use std::os::fd::RawFd;

/// The word of an engine that forks on the userfaultfd of the child, in the child's record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offer {
    /// Nothing yet.
    Open,
    /// There is none, or it is taken.
    Nothing,
    /// It has this number in the table of the engine that forks.
    File(RawFd),
}

impl Offer {
    pub(super) fn of(word: u64) -> Offer {
        match word {
            0 => Offer::Open,
            1 => Offer::Nothing,
            file => Offer::File((file - 2) as RawFd),
        }
    }

    pub(super) fn word(self) -> u64 {
        match self {
            Offer::Open => 0,
            Offer::Nothing => 1,
            Offer::File(number) => number as u64 + 2,
        }
    }
}
