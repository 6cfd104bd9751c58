//! Parking: a program that the supervisor has suspended waits, and its memory goes to others.
//!
//! No signal is sent. The engine takes every page from the program and sends it to the store, and
//! leaves the program's faults unanswered: each thread waits at the next page it touches, as if the
//! store were slow. What needs no managed memory goes on. When the supervisor lets it, or is no
//! more, the engine answers the faults, and brings back what was in memory before: in the order in
//! which it lies on the store, in large requests.
//!
//! A thread that waits inside a system call can't sleep once a signal is pending for it: the kernel
//! has it touch its page over and over. One that touches the same page again is served, or it would
//! use a processor for as long as its program waits. So is another process that reads the program's
//! memory: a tracer may hold the supervisor until it has.
//!
//! # Invariants
//! 1. A parked program is one whose supervisor is there.
//! 2. A forked child is not parked, whatever its parent is.

use std::collections::BTreeMap;

use tidemark_core::id::VirtPage;
use tidemark_core::time::Time;

/// The threads of a program that waits: the place where each is held, and since when, by the
/// thread's number.
#[derive(Default)]
pub struct HeldThreads(BTreeMap<u32, (VirtPage, Time)>);

impl HeldThreads {
    /// Takes note of the page at which a thread waits, and since when. True if it waits there
    /// already, and has touched the page again all the same.
    pub fn is_restless(&mut self, thread: u32, at: VirtPage, since: Time) -> bool {
        // Threads that the kernel has no number for share 0.
        let before = self.0.insert(thread, (at, since));
        thread != 0 && before.is_some_and(|(known, earlier)| known == at && earlier < since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_touches_its_page_again_is_restless_and_no_other() {
        let mut held = HeldThreads::default();
        let mut touch = |thread, page, since| held.is_restless(thread, VirtPage(page), Time(since));
        assert!(!touch(7, 1, 1));
        // The same message, looked at again.
        assert!(!touch(7, 1, 1));
        assert!(!touch(8, 1, 2));
        assert!(touch(7, 1, 3));
        assert!(!touch(7, 2, 4));
        // Threads without a number can't be told apart.
        assert!(!touch(0, 1, 5));
        assert!(!touch(0, 1, 6));
    }
}
