//! Recording which pages the program touches: the sequences around [`Sampling`].
//!
//! [`Sampling`]: crate::parts::sampling::Sampling

use tidemark_core::id::VirtPage;

use super::Engine;
use crate::parts::sampling::{LOAD, STORE};
use crate::parts::units::address_of;
use crate::sys::maps::Kind;

impl Engine {
    /// Moves out what was touched in the window at hand, if that is over.
    pub(super) fn sample(&mut self) {
        let Some(sampling) = self.telemetry.sampling_mut() else {
            return;
        };
        if sampling.is_over() {
            self.telemetry.end_recording();
            return;
        }
        let is_due = sampling.is_due();
        // What was written in a window has its record in it.
        let is_known = match is_due {
            true => self.find_written(),
            false => true,
        };
        self.look_at_neighbours();
        let (vm, space, machine) = (&mut self.vm, self.space, &mut self.machine);
        let Some(sampling) = self.telemetry.sampling_mut() else {
            return;
        };
        if is_due && is_known {
            sampling.end_due_window(|at| vm.frame_at(space, at), machine);
        }
        sampling.end_turn();
        // Otherwise it is not known what stands where.
        if self.intake.is_settled() {
            sampling.move_touched_out(self.now, vm, machine);
        }
    }

    /// Logs a touch of the page at `at`. Call it before the thread that touches may go on: that may
    /// end the process.
    pub(super) fn note_touch(&mut self, at: VirtPage, is_write: bool) {
        if let Some(sampling) = self.telemetry.sampling_mut()
            && self.addresses.contains(address_of(at))
        {
            sampling.log_touch(at, if is_write { STORE } else { LOAD });
        }
    }

    /// Remembers that the page at `at` stands there now, and is to leave when the window is over.
    pub(super) fn note_standing(&mut self, at: VirtPage) {
        if let Some(sampling) = self.telemetry.sampling_mut() {
            sampling.note_standing(at, self.vm.frame_at(self.space, at));
        }
    }

    /// Logs that the page at `at` was found there: how it was touched is not known.
    pub(super) fn note_found(&mut self, at: VirtPage) {
        self.log_touch(at, 0);
        self.note_standing(at);
    }

    /// Counts that a page was touched again which had been moved out.
    pub(super) fn count_retouch(&mut self) {
        if let Some(sampling) = self.telemetry.sampling_mut() {
            sampling.count_retouch();
        }
    }

    /// Logs a touch, of any of the kinds that traces have.
    pub(super) fn log_touch(&mut self, at: VirtPage, kinds: u8) {
        if let Some(sampling) = self.telemetry.sampling_mut() {
            sampling.log_touch(at, kinds);
        }
    }

    /// Logs that a range has come under management.
    pub(super) fn note_mapped(&mut self, start: usize, end: usize) {
        let Some(sampling) = self.telemetry.sampling_mut() else {
            return;
        };
        let area = self
            .addresses
            .scanner()
            .maps()
            .find_area(start)
            .ok()
            .flatten();
        let name = match area.map(|area| area.kind) {
            Some(Kind::Heap) => "[heap]",
            _ => "",
        };
        sampling.note_mapped(start, end, name);
    }

    /// Logs that a range is gone.
    pub(super) fn note_unmapped(&mut self, start: usize, end: usize) {
        if let Some(sampling) = self.telemetry.sampling_mut() {
            sampling.note_unmapped(start, end);
        }
    }

    /// Logs that a range has moved.
    pub(super) fn note_moved(&mut self, from: usize, to: usize, bytes: usize) {
        if let Some(sampling) = self.telemetry.sampling_mut() {
            sampling.note_moved(from, to, bytes);
        }
    }

    /// Logs which threads have come and gone, after a scan.
    pub(super) fn note_threads(&mut self) {
        if let Some(sampling) = self.telemetry.sampling_mut() {
            sampling.note_threads(
                self.addresses.scanner().threads_seen(),
                self.line.own_process(),
            );
        }
    }

    /// Logs that a thread has begun, if it is new and the program's.
    pub(super) fn note_thread(&mut self, id: u32) {
        if let Some(sampling) = self.telemetry.sampling_mut() {
            sampling.note_thread(id, self.line.own_process());
        }
    }
}
