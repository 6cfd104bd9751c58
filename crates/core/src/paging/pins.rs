//! The table of pinned frames: how often each could not be unmapped, and when it is tried again.
//!
//! [`pinned`](crate::vm::pinned) uses it.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::id::FrameId;
use crate::time::Time;

/// The pause after the first time that a page could not be unmapped. Each further time in a row
/// doubles it.
const PAUSE_NS: u64 = 1_000_000;
/// The number of doublings at most.
const DOUBLINGS_MAX: u32 = 12;
/// A pin is lasting from this many times in a row on: for input or output that is under way, the
/// pauses between them are long enough to end.
pub(crate) const TRIES_LASTING: u32 = 4;

/// A page that could not be unmapped.
#[derive(Clone, Copy)]
struct Pin {
    /// The number of failures in a row.
    tries: u32,
    /// The time at which it is tried again.
    due: Time,
}

/// The pinned frames.
#[derive(Default)]
pub(crate) struct Pins {
    by_frame: BTreeMap<FrameId, Pin>,
    by_due: BTreeSet<(Time, FrameId)>,
    lasting: u32,
}

impl Pins {
    pub(crate) fn set(&mut self, frame: FrameId, tries: u32, due: Time) {
        self.remove(frame);
        self.by_frame.insert(frame, Pin { tries, due });
        self.by_due.insert((due, frame));
        self.lasting += u32::from(tries >= TRIES_LASTING);
    }

    /// Notes that the page in `frame` could not be unmapped once more, or for the first time.
    pub(crate) fn note_failure(&mut self, frame: FrameId, now: Time) {
        let tries = self.by_frame.get(&frame).map_or(0, |pin| pin.tries) + 1;
        let doublings = (tries - 1).min(DOUBLINGS_MAX);
        self.set(frame, tries, now.after_ns(PAUSE_NS << doublings));
    }

    /// Puts the next try of `frame` off, of which the last one said nothing.
    pub(crate) fn put_off(&mut self, frame: FrameId, now: Time) {
        if let Some(pin) = self.by_frame.get(&frame).copied() {
            self.set(frame, pin.tries, now.after_ns(PAUSE_NS));
        }
    }

    /// Forgets `frame`. Says whether it was pinned.
    pub(crate) fn remove(&mut self, frame: FrameId) -> bool {
        let Some(pin) = self.by_frame.remove(&frame) else {
            return false;
        };
        self.by_due.remove(&(pin.due, frame));
        self.lasting -= u32::from(pin.tries >= TRIES_LASTING);
        true
    }

    pub(crate) fn contains(&self, frame: FrameId) -> bool {
        self.by_frame.contains_key(&frame)
    }

    /// The time at which the next pinned page is tried again, if there is one.
    pub(crate) fn due(&self) -> Option<Time> {
        self.by_due.first().map(|&(due, _)| due)
    }

    pub(crate) fn is_due(&self, frame: FrameId, now: Time) -> bool {
        self.by_frame.get(&frame).is_some_and(|pin| pin.due <= now)
    }

    pub(crate) fn is_lasting(&self, frame: FrameId) -> bool {
        let pin = self.by_frame.get(&frame);
        pin.is_some_and(|pin| pin.tries >= TRIES_LASTING)
    }

    pub(crate) fn len(&self) -> u32 {
        self.by_frame.len() as u32
    }

    /// The number of pages that stay pinned.
    pub(crate) fn lasting(&self) -> u32 {
        self.lasting
    }

    /// The frames, in order, that are lasting.
    pub(crate) fn collect_lasting(&self) -> Vec<FrameId> {
        let frames = self.by_frame.keys().copied();
        frames.filter(|&frame| self.is_lasting(frame)).collect()
    }

    /// The frames whose pauses are over, `most` of them at most.
    pub(crate) fn collect_due(&self, now: Time, most: u32) -> Vec<FrameId> {
        let due = self.by_due.iter().take_while(|&&(due, _)| due <= now);
        let frames = due.take(most as usize).map(|&(_, frame)| frame);
        frames.collect()
    }

    /// The pinned frames, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = FrameId> + '_ {
        self.by_frame.keys().copied()
    }

    /// Panics if the tables contradict each other.
    pub(crate) fn check(&self) {
        let lasting = self.by_frame.values();
        let lasting = lasting.filter(|pin| pin.tries >= TRIES_LASTING).count();
        assert_eq!(lasting, self.lasting as usize);
        assert_eq!(self.by_frame.len(), self.by_due.len());
    }
}
