//! Contention: processors that want the same locks at the same time.
//!
//! A memory system's queues are shared by all processors, and each queue has a lock. Here
//! processors do what recorded programs ask of memory ([`Work`]), take the locks that a system of
//! that [`Setup`] takes for it, and wait for each other. The time of each step is given
//! ([`Charges`]); the waits are the result ([`Outcome`]).
//!
//! # What is modelled
//! - The locks of NetBSD's UVM as M. Guzik measured it (2018): one for the free pages, one for the
//!   page queues, one for the windows through which files are read, one for each file's pages. A
//!   lock is waited for awake, and goes to the processor that has waited longest.
//! - Cache lines: a lock and a counter lie in one. A processor that uses a line that another used
//!   last waits until it has moved, and a line makes one move at a time. Where locks and counters
//!   share a line, using one takes it from the user of the other.
//! - Windows: a fixed number of pieces of files is mapped at a time, the least recently used makes
//!   room, and every other processor learns that its mapping is gone while the lock is held.
//! - Idle zeroing: a processor without a job takes free pages that it has put back itself, one at a
//!   time, fills them with zeros and puts them back again, until it is given a job.
//! - Jobs go to the processor that has been idle longest.
//!
//! Not modelled: sleeping locks, locks of the file system and of processes, caches other than the
//! lines of locks and counters, and any disk: all files are in memory.
//!
//! # Invariants
//! 1. A lock has waiters only while it is held.
//! 2. A processor has one event ahead of it, unless it waits for a lock or has nothing to do.

mod deeds;
mod lines;
mod processors;
mod windows;
mod work;

pub use processors::contend;
pub use work::{Reads, Work};

use crate::world::Costs;

/// The way a system shares what processors share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The number of processors.
    pub processors: u32,
    /// The number of them that have work at a time; the others are idle.
    pub workers: u32,
    /// The number of windows through which files are read.
    pub windows: u32,
    /// Into how many parts the windows are divided, each with a lock of its own.
    pub window_parts: u32,
    /// True if idle processors fill free pages with zeros.
    pub has_idle_zeroing: bool,
    /// True if each lock has a cache line of its own and each processor its own counters.
    pub is_aligned: bool,
    /// The number of pages a processor takes from the free ones, puts back, or moves between
    /// queues, under one taking of the lock.
    pub batch: u32,
    /// True if each program has free pages and queues of its own for its private memory, which one
    /// thread works on without a lock. Tidemark's have: files' pages stay with the kernel.
    pub has_own_queues: bool,
}

/// The costs of steps, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Charges {
    /// The costs of a memory system's steps.
    pub costs: Costs,
    /// Moving a cache line between two processors of a socket.
    pub line_ns: u64,
    /// Moving it to the other socket; the first half of the processors is in one, the second in
    /// the other.
    pub far_line_ns: u64,
    /// Taking a page from a list or putting it there.
    pub list_ns: u64,
    /// Looking up a page or a window.
    pub search_ns: u64,
    /// Telling one other processor that a mapping is gone, and its answer.
    pub shootdown_ns: u64,
    /// The time for which an idle processor that found a lock taken does other things.
    pub idle_ns: u64,
    /// A fault for private memory where programs have queues of their own, in place of the costs'.
    pub own_fault_ns: u64,
}

/// The waits for one lock, or for all of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// The number of times it was taken.
    pub takes: u64,
    /// The number of times that a processor had to wait.
    pub waits: u64,
    /// The sum of the waits, in nanoseconds. That of idle processors is left out.
    pub spin_ns: u64,
}

impl Waiting {
    fn add(&mut self, other: Waiting) {
        self.takes += other.takes;
        self.waits += other.waits;
        self.spin_ns += other.spin_ns;
    }
}

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// From the start until the last work was done, in nanoseconds.
    pub elapsed_ns: u64,
    /// The time that programs computed.
    pub user_ns: u64,
    /// The time that the system worked for them, waiting for locks and lines included.
    pub system_ns: u64,
    /// The lock of the free pages.
    pub free: Waiting,
    /// The lock of the page queues.
    pub queue: Waiting,
    /// The locks of the windows.
    pub windows: Waiting,
    /// The locks of files' pages.
    pub files: Waiting,
    /// The longest waiting for a single lock, in nanoseconds.
    pub spin_ns_most: u64,
    /// Moves of cache lines.
    pub lines_moved: u64,
    /// Of these, moves away from a processor that used another thing in the same line.
    pub lines_moved_false: u64,
    /// Windows that were there when they were looked for.
    pub window_hits: u64,
    /// Windows that had to be made.
    pub window_misses: u64,
    /// Pages that idle processors filled with zeros.
    pub idle_zeroed: u64,
}

#[cfg(test)]
mod tests;
