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

use tidemark_live::requests::{Ask, Asked};

use crate::REQUESTS;
use crate::hooks::ASK_LIMIT;

/// The number of ranges that are noted at most.
const RANGES_MAX: usize = 8;
/// The bytes of noted ranges at most.
const BYTES_MAX: usize = 256 << 10;

/// The ranges; an empty one is none.
static RANGES: [[AtomicUsize; 2]; RANGES_MAX] =
    [const { [AtomicUsize::new(0), AtomicUsize::new(0)] }; RANGES_MAX];
static LOCK: AtomicBool = AtomicBool::new(false);
/// The number of the request that has not been waited for, and one; zero: there is none.
static PENDING: AtomicUsize = AtomicUsize::new(0);

/// Notes that `start..end` is new.
pub(crate) fn note(start: usize, end: usize) {
    if end - start >= BYTES_MAX || LOCK.swap(true, Ordering::Acquire) {
        return tell_and_wait((start, end));
    }
    let is_noted = join(start, end);
    let sizes = RANGES.iter().map(|range| {
        let (from, to) = read(range);
        to - from
    });
    let is_enough = !is_noted || sizes.sum::<usize>() >= BYTES_MAX;
    let ranges = is_enough.then(take_all);
    LOCK.store(false, Ordering::Release);
    ranges.into_iter().flatten().for_each(tell);
    if !is_noted {
        tell_and_wait((start, end));
    }
}

/// Forgets all of it, in a forked child, whose engine looks for itself.
pub(crate) fn forget() {
    take_all();
    PENDING.store(0, Ordering::Release);
    LOCK.store(false, Ordering::Release);
}

/// Adds a range to one that it touches, or in a free place. False if there is none.
fn join(start: usize, end: usize) -> bool {
    let touches = |range: &&[AtomicUsize; 2]| {
        let (from, to) = read(range);
        from < to && (to == start || end == from)
    };
    let is_free = |range: &&[AtomicUsize; 2]| {
        let (from, to) = read(range);
        from == to
    };
    if let Some(range) = RANGES.iter().find(touches) {
        let (from, to) = read(range);
        write(range, (from.min(start), to.max(end)));
        return true;
    }
    let free = RANGES.iter().find(is_free);
    free.map(|range| write(range, (start, end))).is_some()
}

fn take_all() -> [(usize, usize); RANGES_MAX] {
    let mut taken = [(0, 0); RANGES_MAX];
    for (taken, range) in taken.iter_mut().zip(&RANGES) {
        *taken = read(range);
        write(range, (0, 0));
    }
    taken
}

/// Announces a range, and waits until the one announced before is managed.
fn tell((start, end): (usize, usize)) {
    // A child that shares this memory, or was forked by the program's own system call, has no
    // engine that answers, and does not take part in its parent's waits.
    if start < end && REQUESTS.has_engine() {
        let bytes = end - start;
        let asked = REQUESTS.begin(Ask::Look { start, bytes });
        let next = asked.map_or(0, |Asked(number)| number + 1);
        await_answer(PENDING.swap(next, Ordering::AcqRel));
    }
}

/// Announces a range, and waits until it is managed.
fn tell_and_wait(range: (usize, usize)) {
    tell(range);
    if REQUESTS.has_engine() {
        await_answer(PENDING.swap(0, Ordering::AcqRel));
    }
}

fn await_answer(pending: usize) {
    if let Some(number) = pending.checked_sub(1) {
        REQUESTS.await_answer(Asked(number), ASK_LIMIT);
    }
}

fn read([start, end]: &[AtomicUsize; 2]) -> (usize, usize) {
    (start.load(Ordering::Relaxed), end.load(Ordering::Relaxed))
}

fn write(range: &[AtomicUsize; 2], (start, end): (usize, usize)) {
    range[0].store(start, Ordering::Relaxed);
    range[1].store(end, Ordering::Relaxed);
}
