//! Memory that reads as zeros in forked children: `MADV_WIPEONFORK`.
//!
//! The kernel does not copy such memory to a child. What of it is out is in tables and on the
//! store, which a child has copies of: there it is forgotten before the child goes on.
//!
//! # Invariants
//! 1. `wiped` is a part of what is managed: so the kernel tells when the program has something else
//!    there. What can't be managed when the program asks for this is not managed from then on.

use super::Engine;
use crate::parts::units::{page_of, pages_in};

impl Engine {
    /// Notes that a range is wiped in children from now on.
    pub(super) fn note_wiped(&mut self, start: usize, end: usize) {
        // What was there before may still be told of.
        if !self.await_changes() {
            return;
        }
        if self.setup.mode.looks_for_memory() {
            self.take_over_gaps(start, end);
            self.addresses.exclude_unmanaged(start, end);
        }
        self.addresses.wipe(start, end);
    }

    /// Forgets, in a forked child, what the kernel has not copied.
    pub(super) fn wipe_in_child(&mut self) {
        for (start, end) in self.addresses.collect_wiped() {
            let (at, pages) = (page_of(start), pages_in(start, end));
            self.vm.discard(&mut self.machine, self.space, at, pages);
            self.addresses.outside_mut().remove(start, end);
            self.forget_neighbours(start, end);
        }
    }
}
