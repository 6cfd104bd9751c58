//! The part of a file on processors and locks.

use serde::Deserialize;

/// `[locks]`: what there is to be done, and what steps take.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Locks {
    /// The number of processors that have work at a time.
    pub workers: u32,
    /// The number of times that the recorded jobs are done.
    pub times: u32,
    /// Windows of files that every job reads.
    pub reads_shared: u32,
    /// Windows that a job alone reads.
    pub reads_own: u32,
    /// A cache line's way within a socket, in nanoseconds.
    pub line_ns: u64,
    /// Its way to the other socket.
    pub far_line_ns: u64,
    /// Taking a page from a list or putting it there.
    pub list_ns: u64,
    /// Looking up a page or a window.
    pub search_ns: u64,
    /// The time of telling one other processor that a mapping is gone.
    pub shootdown_ns: u64,
    /// The time that an idle processor spends between two looks at a lock.
    pub idle_ns: u64,
}

impl Default for Locks {
    fn default() -> Locks {
        Locks {
            workers: 1,
            times: 1,
            reads_shared: 0,
            reads_own: 0,
            line_ns: 45,
            far_line_ns: 130,
            list_ns: 55,
            search_ns: 15,
            shootdown_ns: 1500,
            idle_ns: 1000,
        }
    }
}

/// `locks` of a run: how a system shares what processors share.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunLocks {
    /// The number of windows through which files are read.
    pub windows: u32,
    /// Into how many parts they are divided.
    pub window_parts: u32,
    /// True if idle processors fill free pages with zeros.
    pub idle_zeroing: bool,
    /// True if locks have cache lines of their own.
    pub aligned: bool,
    /// The number of pages that go under one taking of a lock.
    pub batch: u32,
    /// True if programs have free pages and queues of their own, as under Tidemark.
    pub own_queues: bool,
    /// In place of the experiment's.
    pub shootdown_ns: Option<u64>,
}

impl Default for RunLocks {
    fn default() -> RunLocks {
        RunLocks {
            windows: 1024,
            window_parts: 1,
            idle_zeroing: false,
            aligned: true,
            batch: 1,
            own_queues: false,
            shootdown_ns: None,
        }
    }
}
