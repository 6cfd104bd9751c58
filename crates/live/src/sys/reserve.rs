//! The range of addresses that all private memory of the engine lies in.
//!
//! It is reserved without access before the first piece of it is used, and pieces are opened as
//! they are needed. So a program that locks all of its memory locks nothing that is not in use; an
//! access of the program that goes astray meets nothing of ours; and what the engine of a forked
//! child maps never fills a hole that the program has just made. None of it is part of a core
//! dump, and none gets huge pages, which would break into pieces one move at a time, but for the
//! buffers of transfers that ask for one.
//!
//! Where the address space is limited (`ulimit -v`), smaller ranges are reserved as they are
//! needed.
//!
//! # Invariants
//! 1. A range is among the own ranges of [`memory`] from before the first piece of it is taken, and
//!    is never given back.
//! 2. Pieces do not overlap. A page without access lies below each and at the end of a range.
//! 3. There is no lock, which a fork might leave taken in the child: a fork in the midst of a
//!    change loses addresses at most.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use rustix::mm::{Advice, MapFlags, MprotectFlags, MsyncFlags, ProtFlags};

use super::{Errno, PAGE, memory};

/// The bytes reserved at once, where the host permits it: it costs nothing until it is opened.
const RANGE_BYTES: usize = 256 << 30;
/// The least bytes reserved where it does not, so that small pieces share a range.
const RANGE_BYTES_LEAST: usize = 64 << 20;
const RANGES_MAX: usize = 32;
/// The number of returned pieces that are remembered; the addresses of others are lost.
const SPARE_MAX: usize = 64;
/// A spare piece is two numbers in one word: its first page, and how many it has.
const COUNT_BITS: u32 = 28;

struct Range {
    start: AtomicUsize,
    /// The place of the next piece.
    next: AtomicUsize,
    /// Zero while the range is being made.
    end: AtomicUsize,
}

static RANGES: [Range; RANGES_MAX] = [const {
    Range {
        start: AtomicUsize::new(0),
        next: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
    }
}; RANGES_MAX];

/// Pieces that were given back, with the page below them; zero: none.
static SPARE: [AtomicU64; SPARE_MAX] = [const { AtomicU64::new(0) }; SPARE_MAX];

/// Takes `bytes` of unused addresses, a multiple of [`PAGE`], without access yet.
pub fn take(bytes: usize) -> Result<usize, Errno> {
    assert!(bytes > 0 && bytes.is_multiple_of(PAGE));
    let whole = bytes.checked_add(PAGE).ok_or(Errno::NOMEM)?;
    let found = take_spare(whole).or_else(|| RANGES.iter().find_map(|range| range.take(whole)));
    let start = match found {
        Some(start) => start,
        None => reserve(whole)?,
    };
    Ok(start + PAGE)
}

/// Opens a part of a taken piece for reading and writing.
pub fn open(start: usize, bytes: usize) -> Result<(), Errno> {
    assert!(is_reserved(start, start + bytes));
    let rights = MprotectFlags::READ | MprotectFlags::WRITE;
    // SAFETY: inside a reserved range, which holds nothing but pieces that were taken.
    unsafe { rustix::mm::mprotect(start as *mut _, bytes, rights) }
}

/// Gives a piece back, with all that lies there.
///
/// # Safety
/// It was taken as a whole, and is no longer used.
pub unsafe fn give_back(start: usize, bytes: usize) {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
    // SAFETY: replaces the caller's own piece, by its word.
    let closed =
        unsafe { rustix::mm::mmap_anonymous(start as *mut _, bytes, ProtFlags::empty(), flags) };
    if closed.is_ok() {
        dress(start, bytes);
        // A program may have all locked that is mapped from now on.
        unlock_range(start, bytes);
        add_spare(start - PAGE, bytes + PAGE);
    }
}

/// Returns true if any part of `start..end` is reserved.
pub fn is_reserved(start: usize, end: usize) -> bool {
    ranges().any(|(from, to)| start < to && from < end)
}

/// The reserved ranges, in no order. One that is being made, or that a fork in the midst of that
/// has left as it was, hides none of those behind it.
pub fn ranges() -> impl Iterator<Item = (usize, usize)> {
    RANGES.iter().filter_map(Range::bounds)
}

/// The number of bytes reserved, if no limit of the address space has kept the range small; else
/// zero.
pub fn unlimited_bytes() -> usize {
    let bytes = ranges().map(|(start, end)| end - start).sum();
    if bytes < RANGE_BYTES { 0 } else { bytes }
}

/// Returns true if the program has locked any part of a mapped range in memory.
///
/// The kernel is asked to throw away copies of what is mapped there, of which private anonymous
/// memory has none, and which it refuses for what is locked (`mm/msync.c`).
pub fn is_locked(start: usize, bytes: usize) -> bool {
    // SAFETY: the call changes no memory; the kernel checks the range.
    let answer = unsafe { rustix::mm::msync(start as *mut _, bytes, MsyncFlags::INVALIDATE) };
    answer == Err(Errno::BUSY)
}

/// Unlocks what is reserved: a program that locks its memory by a system call of its own locks ours
/// as well. Whether anything was locked.
pub fn unlock() -> bool {
    ranges().fold(false, |was_locked, (start, end)| {
        unlock_range(start, end - start) || was_locked
    })
}

fn unlock_range(start: usize, bytes: usize) -> bool {
    let was_locked = is_locked(start, bytes);
    if was_locked {
        // SAFETY: changes nothing that can be seen; the range is ours. What stays locked stays in
        // memory, and is met again.
        let _ = unsafe { rustix::mm::munlock(start as *mut _, bytes) };
    }
    was_locked
}

impl Range {
    fn bounds(&self) -> Option<(usize, usize)> {
        let end = self.end.load(Ordering::Acquire);
        (end != 0).then(|| (self.start.load(Ordering::Relaxed), end))
    }

    fn take(&self, bytes: usize) -> Option<usize> {
        let (_, end) = self.bounds()?;
        let fits = |next: usize| {
            let after = next.checked_add(bytes)?;
            (after <= end - PAGE).then_some(after)
        };
        self.next
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, fits)
            .ok()
    }
}

/// Reserves a range that has room for a piece of `bytes` and takes that.
fn reserve(bytes: usize) -> Result<usize, Errno> {
    let least = bytes.checked_add(PAGE).ok_or(Errno::NOMEM)?;
    let mut error = Errno::NOMEM;
    for size in [RANGE_BYTES, RANGE_BYTES_LEAST, least] {
        if size < least {
            continue;
        }
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice disturbs nothing.
        let mapped = unsafe {
            rustix::mm::mmap_anonymous(std::ptr::null_mut(), size, ProtFlags::empty(), flags)
        };
        match mapped {
            Ok(start) => return install(start as usize, size, bytes),
            Err(refusal) => error = refusal,
        }
    }
    Err(error)
}

/// Puts a fresh range in the tables and takes its first piece. Two threads may come here at one
/// time: each has a range of its own then.
fn install(start: usize, size: usize, bytes: usize) -> Result<usize, Errno> {
    dress(start, size);
    let is_free = |range: &&Range| {
        range
            .start
            .compare_exchange(0, start, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    };
    let range = RANGES.iter().find(is_free).ok_or(Errno::NOMEM)?;
    memory::add_own(start, size);
    range.next.store(start + bytes, Ordering::Relaxed);
    range.end.store(start + size, Ordering::Release);
    Ok(start)
}

/// Keeps a range out of core dumps and free of huge pages. What refuses that lacks the feature.
fn dress(start: usize, bytes: usize) {
    for advice in [Advice::LinuxDontDump, Advice::LinuxNoHugepage] {
        // SAFETY: the advice keeps contents, and the range is ours.
        let _ = unsafe { rustix::mm::madvise(start as *mut _, bytes, advice) };
    }
}

fn take_spare(bytes: usize) -> Option<usize> {
    SPARE.iter().find_map(|spare| {
        let word = spare.load(Ordering::Acquire);
        let (start, size) = unpack(word);
        let is_mine = size >= bytes
            && spare
                .compare_exchange(word, 0, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok();
        if is_mine && size > bytes {
            add_spare(start + bytes, size - bytes);
        }
        is_mine.then_some(start)
    })
}

fn add_spare(start: usize, bytes: usize) {
    if let Some(word) = pack(start, bytes) {
        let is_free = |spare: &AtomicU64| {
            spare
                .compare_exchange(0, word, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        };
        // Without a place for it the addresses are lost.
        let _ = SPARE.iter().any(is_free);
    }
}

fn pack(start: usize, bytes: usize) -> Option<u64> {
    let (page, count) = ((start / PAGE) as u64, (bytes / PAGE) as u64);
    let fits = page >> (u64::BITS - COUNT_BITS) == 0 && count >> COUNT_BITS == 0;
    fits.then_some(page << COUNT_BITS | count)
}

fn unpack(word: u64) -> (usize, usize) {
    let count = word & ((1 << COUNT_BITS) - 1);
    ((word >> COUNT_BITS) as usize * PAGE, count as usize * PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::memory::Mapping;

    /// The flags of the mapping that holds `at`, as `/proc/self/smaps` lists them.
    fn flags_at(at: usize) -> Vec<String> {
        let text = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut is_inside = false;
        for line in text.lines() {
            let bounds = line
                .split_once(' ')
                .and_then(|(word, _)| word.split_once('-'));
            let parse = |word| usize::from_str_radix(word, 16).ok();
            if let Some((start, end)) = bounds.and_then(|(s, e)| parse(s).zip(parse(e))) {
                is_inside = (start..end).contains(&at);
            } else if let Some(flags) = line.strip_prefix("VmFlags:").filter(|_| is_inside) {
                return flags.split_whitespace().map(String::from).collect();
            }
        }
        panic!("nothing is mapped at {at:#x}");
    }

    #[test]
    fn pieces_lie_in_one_range_with_pages_without_access_around_them() {
        let pieces: Vec<Mapping> = (1..5)
            .map(|pages| Mapping::anonymous(pages * PAGE).unwrap())
            .collect();
        for piece in &pieces {
            let (start, end) = (piece.start(), piece.start() + piece.bytes());
            assert!(ranges().any(|(from, to)| from < start && end < to));
            let mut byte = [0];
            let read = |at| crate::sys::thread::read_own_memory(at, &mut [0]);
            assert_eq!(
                crate::sys::thread::read_own_memory(start, &mut byte),
                Some(())
            );
            assert_eq!((read(start - 1), byte), (None, [0]));
        }
    }

    #[test]
    fn a_piece_that_was_given_back_is_closed_and_taken_again() {
        // Of a size that no other test asks for.
        let bytes = 12_347 * PAGE;
        let first = Mapping::anonymous(bytes).unwrap();
        first.set(5, 1);
        let start = first.start();
        drop(first);
        assert_eq!(crate::sys::thread::read_own_memory(start, &mut [0]), None);
        let again = Mapping::anonymous(bytes).unwrap();
        assert_eq!(again.get(5), 0);
    }

    #[test]
    fn a_range_that_is_being_made_hides_no_other() {
        // As another thread has it for a moment, in the midst of its own reservation.
        let order = Ordering::SeqCst;
        let begin = |it: &Range| it.start.compare_exchange(0, PAGE, order, order).is_ok();
        assert!(RANGES.iter().any(begin));
        let start = reserve(2 * PAGE).unwrap() + PAGE;
        assert!(is_reserved(start, start + PAGE));
        assert_eq!(open(start, PAGE), Ok(()));
    }

    #[test]
    fn found_f6_own_memory_is_not_dumped() {
        let own = Mapping::anonymous(4 * PAGE).unwrap();
        own.set(0, 1);
        assert!(flags_at(own.start()).contains(&"dd".into()));
        let area = crate::sys::shm::Shared::create("tidemark-test", PAGE).unwrap();
        area.reach(0, PAGE).unwrap();
        let shared = std::ptr::from_ref(area.at::<AtomicU64>(0)) as usize;
        assert!(is_reserved(shared, shared + 1));
        assert!(flags_at(shared).contains(&"dd".into()));
    }

    #[test]
    fn locks_are_seen_and_undone() {
        let own = Mapping::anonymous(4 * PAGE).unwrap();
        assert!(!is_locked(own.start(), own.bytes()));
        // SAFETY: locks a page of this test's own.
        unsafe { rustix::mm::mlock(own.as_ptr().cast(), PAGE) }.unwrap();
        assert!(is_locked(own.start(), own.bytes()));
        assert!(!is_locked(own.start() + PAGE, own.bytes() - PAGE));
        // Not the whole range, in which other tests leave holes.
        assert!(unlock_range(own.start(), own.bytes()));
        assert!(!unlock_range(own.start(), own.bytes()));
    }

    #[test]
    fn words_hold_what_is_packed_in_them() {
        let most = (1 << 36) - 1;
        for (page, count) in [(1, 1), (0x7_ffff_ffff, 64 << 18), (most, (1 << 28) - 1)] {
            let word = pack(page * PAGE, count * PAGE).unwrap();
            assert_eq!(unpack(word), (page * PAGE, count * PAGE));
        }
        assert_eq!(pack(PAGE, PAGE << 28), None);
    }
}
