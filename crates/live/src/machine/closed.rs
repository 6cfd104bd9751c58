//! Ranges of the program that it may only read, though pages must be moved in and out: the kernel
//! moves pages between writable mappings alone.
//!
//! The mapping is writable then, and the pages in it are protected one by one as they come. A write
//! is a fault, which [`Engine`](crate::engine::Engine) has the kernel refuse. Between the moment at
//! which a page comes and that of its protection another thread's write would pass.

use tidemark_core::id::VirtPage;

use super::{LiveMachine, address};
use crate::sys::uffd::Mode;
use crate::sys::{Errno, PAGE};

impl LiveMachine {
    /// Takes charge of the missing pages of a range, as [`register`](Self::register) does, and lets
    /// it be [closed](Self::close).
    pub fn register_closable(&mut self, at: VirtPage, pages: u64) -> Result<u64, Errno> {
        let bytes = pages as usize * PAGE;
        self.program
            .register(address(at), bytes, Mode::MissingAndWrites)?;
        Ok(self.count_registered(at, pages))
    }

    /// Has writes to a range be faults from now on. The kernel refuses that while the address space
    /// is changing.
    pub fn close(&mut self, start: usize, end: usize) -> Result<(), Errno> {
        self.closed.insert(start, end);
        self.program.protect(start, end - start, true)
    }

    /// Lets a range be written to again.
    pub fn open(&mut self, start: usize, end: usize) -> Result<(), Errno> {
        self.closed.remove(start, end);
        self.program.protect(start, end - start, false)
    }

    /// Forgets what was closed of a range that is something else now.
    pub fn forget_closed(&mut self, start: usize, end: usize) {
        self.closed.remove(start, end);
    }

    /// Notes that a range is closed to which pages have been moved, with their protection.
    pub fn note_closed(&mut self, start: usize, end: usize) {
        self.closed.insert(start, end);
    }

    /// Returns true if writes to an address are faults.
    pub fn is_closed(&self, address: usize) -> bool {
        self.closed.contains(address)
    }

    /// Closes, in a forked child, the ranges that its parent's engine had closed: writes to them
    /// are faults.
    pub fn close_again(&mut self) {
        for (start, end) in self.closed.iter() {
            // Nothing is changing here; and what is gone is found to be.
            let registered = self
                .program
                .register(start, end - start, Mode::MissingAndWrites);
            let _ = registered.and_then(|()| self.program.protect(start, end - start, true));
        }
    }

    /// Protects pages that have come to `bytes` from `start`, as far as they are to be.
    pub(super) fn protect_arrived(&self, start: usize, bytes: usize) {
        if self.closed.is_empty() {
            return;
        }
        for (from, to) in self.closed.collect_overlaps(start, start + bytes) {
            let (from, to) = (from.max(start), to.min(start + bytes));
            // While the address space is changing it is refused: such a page stays open.
            let _ = self.program.protect(from, to - from, true);
        }
    }

    /// Lets pages be written to that the hand is to make this process's own.
    pub(super) fn open_for_hand(&self, start: usize, bytes: usize) {
        for (from, to) in self.closed.collect_overlaps(start, start + bytes) {
            let (from, to) = (from.max(start), to.min(start + bytes));
            // The hand then meets a fault, and gives up.
            let _ = self.program.protect(from, to - from, false);
        }
    }
}
