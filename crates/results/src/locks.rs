//! The locks of the engines in a run, measured.

use serde::{Deserialize, Serialize};

use crate::record::Nanoseconds;

/// The counts of each lock, in the order in which locks are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Locks {
    /// Forks: one at a time in a process.
    pub forks: LockCounts,
    /// The engine.
    pub engine: LockCounts,
    /// The queue of the threads that carry pages where io_uring is forbidden.
    pub workers: LockCounts,
    /// The engine's heap.
    pub heap: LockCounts,
}

/// The counts of a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LockCounts {
    /// The times that it was taken.
    pub taken: u64,
    /// The times that another thread held it when it was asked for.
    pub contended: u64,
    /// The time that threads waited for it, added up.
    #[serde(rename = "waited_s")]
    pub waited_ns: Nanoseconds,
    /// The time that it was held.
    #[serde(rename = "held_s")]
    pub held_ns: Nanoseconds,
}

impl Locks {
    /// Each lock with its name.
    pub fn named(&self) -> [(&'static str, LockCounts); 4] {
        [
            ("forks", self.forks),
            ("engine", self.engine),
            ("workers", self.workers),
            ("heap", self.heap),
        ]
    }

    /// The sum of all; `None` if there are none.
    pub fn sum(all: impl Iterator<Item = Locks>) -> Option<Locks> {
        all.reduce(|mut sum, locks| {
            sum.add(&locks);
            sum
        })
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Locks) {
        self.forks.add(&other.forks);
        self.engine.add(&other.engine);
        self.workers.add(&other.workers);
        self.heap.add(&other.heap);
    }
}

impl LockCounts {
    fn add(&mut self, other: &LockCounts) {
        self.taken += other.taken;
        self.contended += other.contended;
        self.waited_ns += other.waited_ns;
        self.held_ns += other.held_ns;
    }
}
