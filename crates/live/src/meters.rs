//! Meters of locks: how often each was taken, how long it was waited for, and how long held.
//!
//! They run if that is asked for ([`start`]); else each costs a branch that always goes the same
//! way. A meter is written by the holder of its lock alone, with plain stores, and lies in lines
//! of the cache of its own: none goes from processor to processor but with the lock.
//!
//! The locks are those of the [list](crate#locks) that several threads of a process contend for.
//! The list of policy modules is not among them: who takes it has the engine.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use rustix::time::{ClockId, clock_gettime};

/// A lock that has a meter, in the order in which locks are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Metered {
    /// Forks: one at a time.
    Forks,
    /// The engine.
    Engine,
    /// The queue of the workers.
    Workers,
    /// The engine's heap.
    Heap,
}

/// The counts of a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LockCounts {
    /// The times that it was taken.
    pub taken: u64,
    /// The times that another thread held it when it was asked for.
    pub contended: u64,
    /// The time that threads waited for it, added up.
    pub waited_ns: u64,
    /// The time that it was held.
    pub held_ns: u64,
}

/// The number of counts that a lock has.
pub const LOCK_COUNTS: usize = 4;

impl Metered {
    /// All locks that are metered, in their order.
    pub const ALL: [Metered; 4] = [
        Metered::Forks,
        Metered::Engine,
        Metered::Workers,
        Metered::Heap,
    ];

    /// Learns that the calling thread has taken the lock, for which it has [asked] then, and
    /// whether another had it.
    #[inline]
    pub fn note_taken(self, asked_ns: Option<u64>, is_contended: bool) {
        if let Some(asked_ns) = asked_ns {
            METERS[self as usize].note_taken(asked_ns, is_contended);
        }
    }

    /// Learns that the calling thread is about to give the lock back.
    #[inline]
    pub fn note_released(self) {
        if is_started() {
            METERS[self as usize].note_released();
        }
    }

    /// The counts so far.
    pub fn counts(self) -> LockCounts {
        let meter = &METERS[self as usize];
        LockCounts {
            taken: meter.taken.load(Relaxed),
            contended: meter.contended.load(Relaxed),
            waited_ns: meter.waited_ns.load(Relaxed),
            held_ns: meter.held_ns.load(Relaxed),
        }
    }
}

/// Has all meters of this process run, and of what it forks.
pub fn start() {
    IS_STARTED.store(true, Relaxed);
}

/// Returns true if the meters run.
#[inline]
pub fn is_started() -> bool {
    IS_STARTED.load(Relaxed)
}

/// The time, before a lock is asked for; `None` if it is not measured.
#[inline]
pub fn asked() -> Option<u64> {
    is_started().then(now_ns)
}

/// Sets all counts back: a forked child has its parent's. No lock is held but to fork.
pub fn reset() {
    METERS
        .iter()
        .for_each(|meter| meter.set(LockCounts::default()));
}

static IS_STARTED: AtomicBool = AtomicBool::new(false);
static METERS: [Meter; Metered::ALL.len()] = [const { Meter::new() }; Metered::ALL.len()];

/// Two lines, since processors fetch them in pairs.
#[repr(align(128))]
struct Meter {
    taken: AtomicU64,
    contended: AtomicU64,
    waited_ns: AtomicU64,
    held_ns: AtomicU64,
    /// The time since which the lock is held. Zero: it is free, or was taken before the meters ran.
    since_ns: AtomicU64,
}

impl Meter {
    const fn new() -> Meter {
        Meter {
            taken: AtomicU64::new(0),
            contended: AtomicU64::new(0),
            waited_ns: AtomicU64::new(0),
            held_ns: AtomicU64::new(0),
            since_ns: AtomicU64::new(0),
        }
    }

    #[cold]
    fn note_taken(&self, asked_ns: u64, is_contended: bool) {
        // What is free is taken at once.
        let now_ns = if is_contended { now_ns() } else { asked_ns };
        add(&self.taken, 1);
        add(&self.contended, u64::from(is_contended));
        add(&self.waited_ns, now_ns - asked_ns);
        self.since_ns.store(now_ns, Relaxed);
    }

    #[cold]
    fn note_released(&self) {
        let since_ns = self.since_ns.load(Relaxed);
        if since_ns != 0 {
            self.since_ns.store(0, Relaxed);
            add(&self.held_ns, now_ns() - since_ns);
        }
    }

    fn set(&self, counts: LockCounts) {
        self.taken.store(counts.taken, Relaxed);
        self.contended.store(counts.contended, Relaxed);
        self.waited_ns.store(counts.waited_ns, Relaxed);
        self.held_ns.store(counts.held_ns, Relaxed);
        self.since_ns.store(0, Relaxed);
    }
}

/// The monotonic clock.
fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Adds to a count that this thread alone writes.
fn add(count: &AtomicU64, more: u64) {
    count.store(count.load(Relaxed) + more, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meter_counts_what_was_waited_for_and_held() {
        let meter = Meter::new();
        let asked = now_ns();
        meter.note_taken(asked, false);
        meter.note_released();
        assert_eq!(meter.waited_ns.load(Relaxed), 0);
        let held = meter.held_ns.load(Relaxed);
        meter.note_released();
        assert_eq!(meter.held_ns.load(Relaxed), held, "it was not taken again");
        meter.note_taken(asked - 50, true);
        assert_eq!(
            (meter.taken.load(Relaxed), meter.contended.load(Relaxed)),
            (2, 1)
        );
        assert!(meter.waited_ns.load(Relaxed) >= 50);
        meter.set(LockCounts::default());
        meter.note_released();
        assert_eq!(meter.held_ns.load(Relaxed), 0);
    }

    #[test]
    fn each_meter_has_lines_of_its_own() {
        assert_eq!(size_of::<Meter>() % 128, 0);
        assert_eq!((&raw const METERS) as usize % 128, 0);
    }
}
