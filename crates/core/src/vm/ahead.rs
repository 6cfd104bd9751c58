//! Counting what becomes of pages that came ahead of their use, by their
//! [fates](crate::readahead::fates). Nothing is decided here.

use crate::id::FrameId;
use crate::readahead::fates::Fate;
use crate::seams::machine::{Machine, Modification};
use crate::vm::Vm;

impl Vm {
    /// A page has come that no fault waits for.
    pub(crate) fn note_ahead(&mut self, frame: FrameId, is_marker: bool) {
        self.memory.frames_mut().set_ahead(frame, is_marker);
        self.counters.read_ahead += 1;
    }

    /// A fault has touched the page in `frame`.
    pub(crate) fn note_touch(&mut self, frame: FrameId) {
        if self.memory.frames_mut().take_fate(frame) != Fate::Settled {
            self.counters.read_ahead_used += 1;
        }
    }

    /// The page in `frame` is gone from memory.
    pub(crate) fn note_departure(&mut self, frame: FrameId) {
        match self.memory.frames_mut().take_fate(frame) {
            Fate::Settled | Fate::Hidden => {}
            Fate::Untouched => self.counters.read_ahead_wasted += 1,
            Fate::Passed => self.counters.read_ahead_passed += 1,
            Fate::Written => self.counters.read_ahead_used += 1,
        }
    }

    /// Reports whether the unmapped page in `frame` was modified, and notes that it was used if it
    /// was written to.
    pub(crate) fn take_modified(&mut self, machine: &mut dyn Machine, frame: FrameId) -> bool {
        let found = machine.take_modification(frame);
        if found == Modification::Written {
            self.memory.frames_mut().change_fate(frame, Fate::written);
        }
        found != Modification::None
    }

    /// Forgets which pages came ahead of their use and have not been seen used: they are counted by
    /// the memory that this one is a copy of, in the parent of a forked process.
    pub fn forget_read_ahead(&mut self) {
        self.memory.frames_mut().forget_fates();
    }
}
