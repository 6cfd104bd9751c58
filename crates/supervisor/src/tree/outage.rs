//! The ways in which a task is kept out of memory.

use std::time::Instant;

/// An eviction under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Eviction {
    pub(super) since: Instant,
}

/// The origin of a suspension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// A request.
    Request,
    /// Load control.
    Control,
}

/// The suspension of a task.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Suspension {
    is_requested: bool,
    is_controlled: bool,
    /// The frames it had before, or needed, if that is more.
    pub(super) frames: u64,
    /// The time until which it is given as many again, once it goes on.
    pub(super) returns_until: Option<Instant>,
}

impl Suspension {
    /// Returns true if `by` wants it.
    pub(super) fn is_by(&self, by: By) -> bool {
        match by {
            By::Request => self.is_requested,
            By::Control => self.is_controlled,
        }
    }

    /// Returns true if there is a reason for it.
    pub(super) fn is_any(&self) -> bool {
        self.is_requested || self.is_controlled
    }

    pub(super) fn set(&mut self, by: By, is_wanted: bool) {
        match by {
            By::Request => self.is_requested = is_wanted,
            By::Control => self.is_controlled = is_wanted,
        }
    }
}
