//! Memory that grows by small steps, announced many steps at a time.
//!
//! A request to the engine takes as long as filling some pages. So small ranges are noted here,
//! adjacent ones as one, until they are worth a request. The engine adopts them while the program
//! goes on; the next request waits for the answer to this one. So the unmanaged memory of a growing
//! process is at most that of three requests.
//!
//! # Invariants
//! 1. The lock is only tried: a thread that does not get it, in a signal handler perhaps, or in a
//!    child that was forked meanwhile, asks by itself.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tidemark_live::requests::{Ask, Asked, Requests};

use super::ASK_LIMIT;

/// The number of ranges that are noted at most.
const RANGES_MAX: usize = 8;
/// The bytes of noted ranges at most.
const BYTES_MAX: usize = 256 << 10;

/// The new memory of a process.
pub(crate) struct Growth {
    /// The ranges; an empty one is none.
    ranges: [[AtomicUsize; 2]; RANGES_MAX],
    lock: AtomicBool,
    /// The number of the request that has not been waited for, and one; zero: there is none.
    pending: AtomicUsize,
}

impl Growth {
    /// The state while nothing grows.
    pub(crate) const fn new() -> Growth {
        Growth {
            ranges: [const { [AtomicUsize::new(0), AtomicUsize::new(0)] }; RANGES_MAX],
            lock: AtomicBool::new(false),
            pending: AtomicUsize::new(0),
        }
    }

    /// Notes that `start..end` is new.
    pub(crate) fn note(&self, requests: &Requests, start: usize, end: usize) {
        if end - start >= BYTES_MAX || self.lock.swap(true, Ordering::Acquire) {
            return self.tell_and_wait(requests, (start, end));
        }
        let is_noted = self.join(start, end);
        let sizes = self.ranges.iter().map(|range| {
            let (from, to) = read(range);
            to - from
        });
        let is_enough = !is_noted || sizes.sum::<usize>() >= BYTES_MAX;
        let ranges = is_enough.then(|| self.take_all());
        self.lock.store(false, Ordering::Release);
        let ranges = ranges.into_iter().flatten();
        ranges.for_each(|range| self.tell(requests, range));
        if !is_noted {
            self.tell_and_wait(requests, (start, end));
        }
    }

    /// Forgets all of it, in a forked child, whose engine looks for itself.
    pub(crate) fn forget(&self) {
        self.take_all();
        self.pending.store(0, Ordering::Release);
        self.lock.store(false, Ordering::Release);
    }

    /// Adds a range to one that it touches, or in a free place. False if there is none.
    fn join(&self, start: usize, end: usize) -> bool {
        let touches = |range: &&[AtomicUsize; 2]| {
            let (from, to) = read(range);
            from < to && (to == start || end == from)
        };
        let is_free = |range: &&[AtomicUsize; 2]| {
            let (from, to) = read(range);
            from == to
        };
        if let Some(range) = self.ranges.iter().find(touches) {
            let (from, to) = read(range);
            write(range, (from.min(start), to.max(end)));
            return true;
        }
        let free = self.ranges.iter().find(is_free);
        free.map(|range| write(range, (start, end))).is_some()
    }

    fn take_all(&self) -> [(usize, usize); RANGES_MAX] {
        let mut taken = [(0, 0); RANGES_MAX];
        for (taken, range) in taken.iter_mut().zip(&self.ranges) {
            *taken = read(range);
            write(range, (0, 0));
        }
        taken
    }

    /// Announces a range, and waits until the one announced before is managed.
    fn tell(&self, requests: &Requests, (start, end): (usize, usize)) {
        // A child that shares this memory, or was forked by the program's own system call, has no
        // engine that answers, and does not take part in its parent's waits.
        if start < end && requests.has_engine() {
            let bytes = end - start;
            let asked = requests.begin(Ask::Look { start, bytes });
            let next = asked.map_or(0, |Asked(number)| number + 1);
            self.await_answer(requests, self.pending.swap(next, Ordering::AcqRel));
        }
    }

    /// Announces a range, and waits until it is managed.
    fn tell_and_wait(&self, requests: &Requests, range: (usize, usize)) {
        self.tell(requests, range);
        if requests.has_engine() {
            self.await_answer(requests, self.pending.swap(0, Ordering::AcqRel));
        }
    }

    fn await_answer(&self, requests: &Requests, pending: usize) {
        if let Some(number) = pending.checked_sub(1) {
            requests.await_answer(Asked(number), ASK_LIMIT);
        }
    }
}

fn read([start, end]: &[AtomicUsize; 2]) -> (usize, usize) {
    (start.load(Ordering::Relaxed), end.load(Ordering::Relaxed))
}

fn write(range: &[AtomicUsize; 2], (start, end): (usize, usize)) {
    range[0].store(start, Ordering::Relaxed);
    range[1].store(end, Ordering::Relaxed);
}
