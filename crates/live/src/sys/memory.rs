//! The engine's own memory: pieces of the [reserved](super::reserve) range, never managed.
//!
//! # Invariants
//! 1. Every mapping made here lies in a range that is in the table of own ranges.
//! 2. The table is fixed in size and needs no lock: an entry is claimed by exchanging its start.

use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{Mode, OFlags};
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags};
use rustix::process::Pid;

use super::maps::Area;
use super::{Errno, PAGE, reserve};

/// The number of ranges of own memory there can be: those that are reserved, and this library's
/// data.
const RANGES_MAX: usize = 64;

/// The bytes of a huge page.
pub const HUGE_PAGE: usize = 2 << 20;
const HUGE_PAGES_SETTING: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const HUGE_PAGES_NEVER: &[u8] = b"[never]";

struct Range {
    start: AtomicUsize,
    end: AtomicUsize,
}

static OWN: [Range; RANGES_MAX] = [const { Range::new() }; RANGES_MAX];

/// The ranges that the engine needs and that are the program's as well: the data of the C library
/// and of the dynamic linker. Other mappings may lie so close that the kernel makes one of both.
static NEEDED: [Range; NEEDED_MAX] = [const { Range::new() }; NEEDED_MAX];
const NEEDED_MAX: usize = 4;

impl Range {
    const fn new() -> Range {
        Range {
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
        }
    }
}

/// A mapping that belongs to the engine. Given back when dropped.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
    /// The process that has it, if children of that do not.
    process: Option<Pid>,
}

// SAFETY: a mapping is plain memory that no thread owns; access goes through methods that state
// their own needs.
unsafe impl Send for Mapping {}
// SAFETY: as above; shared access through `&Mapping` only yields its address.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `bytes` of zeroed memory (rounded up to pages), committed only as it is touched.
    pub fn anonymous(bytes: usize) -> Result<Mapping, Errno> {
        let mapping = Mapping::closed(bytes)?;
        mapping.open(0, mapping.bytes)?;
        Ok(mapping)
    }

    /// Takes room for `bytes` (rounded up to pages), which can't be used before it is
    /// [opened](Self::open).
    pub fn closed(bytes: usize) -> Result<Mapping, Errno> {
        let bytes = bytes
            .max(1)
            .checked_next_multiple_of(PAGE)
            .ok_or(Errno::NOMEM)?;
        let start = NonNull::new(reserve::take(bytes)? as *mut u8).ok_or(Errno::NOMEM)?;
        Ok(Mapping {
            start,
            bytes,
            process: None,
        })
    }

    /// Takes room for the first `bytes` (rounded up to pages) of a file that others map as well,
    /// which can't be used before it is [opened](Self::open).
    pub fn shared(file: impl AsFd, bytes: usize) -> Result<Mapping, Errno> {
        let mapping = Mapping::closed(bytes)?;
        let rights = ProtFlags::empty();
        let flags = MapFlags::SHARED | MapFlags::FIXED;
        let start = mapping.as_ptr().cast();
        // SAFETY: replaces addresses that were taken just now, for this value alone.
        unsafe { rustix::mm::mmap(start, mapping.bytes, rights, flags, file, 0)? };
        // A failure makes core dumps longer, and harms nothing else.
        let _ = mapping.advise(Advice::LinuxDontDump);
        Ok(mapping)
    }

    /// Opens a part of a [closed](Self::closed) mapping: `bytes` from `offset` on, both multiples
    /// of a page.
    pub fn open(&self, offset: usize, bytes: usize) -> Result<(), Errno> {
        assert!(offset.is_multiple_of(PAGE) && bytes.is_multiple_of(PAGE));
        assert!(
            offset
                .checked_add(bytes)
                .is_some_and(|end| end <= self.bytes)
        );
        reserve::open(self.start() + offset, bytes)
    }

    /// Keeps the mapping until the process ends.
    pub fn leak(self) -> usize {
        let start = self.start();
        std::mem::forget(self);
        start
    }

    /// Gives all pages back to the host; the mapping reads as zeros then.
    pub fn drop_contents(&mut self) -> Result<(), Errno> {
        match self.advise(Advice::LinuxDontNeed) {
            // Locked by the program, with all else that it has.
            Err(Errno::INVAL) if reserve::unlock() => self.advise(Advice::LinuxDontNeed),
            other => other,
        }
    }

    /// Asks for huge pages for the `bytes` from `offset` on, or asks for small ones.
    pub fn advise_huge(&mut self, offset: usize, bytes: usize, wanted: bool) -> Result<(), Errno> {
        let part = self.part_mut(offset, bytes);
        let advice = match wanted {
            true => Advice::LinuxHugepage,
            false => Advice::LinuxNoHugepage,
        };
        // SAFETY: a part of this mapping, whose contents stay.
        unsafe { rustix::mm::madvise(part.as_mut_ptr().cast(), bytes, advice) }
    }

    /// The first address.
    pub fn start(&self) -> usize {
        self.start.as_ptr() as usize
    }

    /// The size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The first address as a pointer.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// The first `count` pages, to read and write. Only for mappings that no other code touches.
    pub fn first_pages(&mut self, count: usize) -> &mut [u8] {
        assert!(count * PAGE <= self.bytes);
        // SAFETY: inside the mapping; `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), count * PAGE) }
    }

    /// The `bytes` from `offset` on, to read. Only for bytes that are not written meanwhile.
    pub fn part(&self, offset: usize, bytes: usize) -> &[u8] {
        assert!(
            offset
                .checked_add(bytes)
                .is_some_and(|end| end <= self.bytes)
        );
        // SAFETY: inside the mapping; the caller knows that it is open and at rest.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(offset), bytes) }
    }

    /// The `bytes` from `offset` on, to write. Only for bytes that no other code touches meanwhile.
    pub fn part_mut(&mut self, offset: usize, bytes: usize) -> &mut [u8] {
        assert!(
            offset
                .checked_add(bytes)
                .is_some_and(|end| end <= self.bytes)
        );
        // SAFETY: inside the mapping; `&mut self` makes the access exclusive among threads, and the
        // caller knows that the kernel carries nothing to or from there.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(offset), bytes) }
    }

    /// Copies `bytes` from one place to another, which do not overlap. Only for bytes that no other
    /// code touches meanwhile.
    pub fn copy_part(&mut self, from: usize, to: usize, bytes: usize) {
        let is_inside = |at: usize| at.checked_add(bytes).is_some_and(|end| end <= self.bytes);
        assert!(is_inside(from) && is_inside(to) && from.abs_diff(to) >= bytes);
        // SAFETY: both are inside the mapping, and apart. `&mut self` makes the access exclusive
        // among threads, and the caller knows that the kernel carries nothing to or from there.
        unsafe {
            let start = self.start.as_ptr();
            start.add(from).copy_to_nonoverlapping(start.add(to), bytes);
        }
    }

    /// Gives the pages of `bytes` from `offset` on back to the host. Only for bytes that are not
    /// touched meanwhile.
    pub fn drop_part(&self, offset: usize, bytes: usize) -> Result<(), Errno> {
        assert!(
            offset
                .checked_add(bytes)
                .is_some_and(|end| end <= self.bytes)
        );
        let drop = || {
            // SAFETY: a part of this mapping, whose contents the caller lets go of, and to which it
            // knows no reference.
            unsafe {
                let start = self.start.as_ptr().add(offset).cast();
                rustix::mm::madvise(start, bytes, Advice::LinuxDontNeed)
            }
        };
        match drop() {
            // Locked by the program, with all else that it has.
            Err(Errno::INVAL) if reserve::unlock() => drop(),
            other => other,
        }
    }

    /// Reads one byte. Where the mapping is registered, this may wait for a page.
    pub fn get(&self, offset: usize) -> u8 {
        assert!(offset < self.bytes);
        // SAFETY: inside the mapping; volatile, since others may write at the same time.
        unsafe { self.start.as_ptr().add(offset).read_volatile() }
    }

    /// Writes one byte. Where the mapping is registered, this may wait for a page.
    pub fn set(&self, offset: usize, value: u8) {
        assert!(offset < self.bytes);
        // SAFETY: as for `get`; no Rust reference into a mapping outlives a call.
        unsafe { self.start.as_ptr().add(offset).write_volatile(value) };
    }

    /// Leaves the mapping out of forked children: its addresses are not mapped there. What a child
    /// maps may come to lie at them.
    pub fn hide_from_children(&mut self) -> Result<(), Errno> {
        self.process = Some(rustix::process::getpid());
        self.advise(Advice::LinuxDontFork)
    }

    fn advise(&self, advice: Advice) -> Result<(), Errno> {
        // SAFETY: the range is exactly this mapping; `&mut self` lets go of the contents where the
        // advice does.
        unsafe { rustix::mm::madvise(self.start.as_ptr().cast(), self.bytes, advice) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self
            .process
            .is_some_and(|own| own != rustix::process::getpid())
        {
            return;
        }
        // SAFETY: the piece was taken for `self`, which is the last to know it.
        unsafe { reserve::give_back(self.start(), self.bytes) };
    }
}

/// Returns true if the kernel gives huge pages to memory for which they are [asked
/// for](Mapping::advise_huge).
pub fn gives_huge_pages() -> bool {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let setting = rustix::fs::open(HUGE_PAGES_SETTING, flags, Mode::empty());
    let mut text = [0; 64];
    let count = setting.and_then(|file| rustix::io::read(file, &mut text));
    let text = &text[..count.unwrap_or(0)];
    !text.is_empty()
        && !text
            .windows(HUGE_PAGES_NEVER.len())
            .any(|part| part == HUGE_PAGES_NEVER)
}

/// Returns true if any part of `start..end` is memory of the engine.
pub fn overlaps_own(start: usize, end: usize) -> bool {
    own_ranges().any(|(own_start, own_end)| start < own_end && own_start < end)
}

/// The ranges of the engine's own memory, in no order.
pub fn own_ranges() -> impl Iterator<Item = (usize, usize)> {
    ranges_of(&OWN)
}

fn ranges_of(table: &'static [Range]) -> impl Iterator<Item = (usize, usize)> {
    table.iter().filter_map(|range| {
        let start = range.start.load(Ordering::Acquire);
        let end = range.end.load(Ordering::Acquire);
        (start != 0 && end > start).then_some((start, end))
    })
}

/// The ranges that must never be managed, in no order: own ones, and [needed](add_needed) ones.
pub fn kept_ranges() -> impl Iterator<Item = (usize, usize)> {
    own_ranges().chain(ranges_of(&NEEDED))
}

/// Adds a range that must never be managed, and is not the engine's own.
pub fn add_needed(start: usize, bytes: usize) {
    add_to(&NEEDED, start, bytes);
}

/// Adds a range to the table of own ranges: memory that must never be managed. It stays there.
///
/// # Panics
/// If the table is full: more ranges than this crate ever makes.
pub fn add_own(start: usize, bytes: usize) {
    add_to(&OWN, start, bytes);
}

fn add_to(table: &[Range], start: usize, bytes: usize) {
    for range in table {
        if range
            .start
            .compare_exchange(0, start, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
        {
            range.end.store(start + bytes, Ordering::Release);
            return;
        }
    }
    panic!("ranges that are never managed: {} are in use", table.len());
}

/// A table of plain numbers in own memory: zeroed, and committed only where it is touched.
pub struct Table<T: Plain> {
    mapping: Mapping,
    len: usize,
    kind: std::marker::PhantomData<T>,
}

/// Types for which all-zero bytes are a value, and which need no drop.
///
/// # Safety
/// The type has no padding that is read, no invalid bit patterns and no destructor.
pub unsafe trait Plain: Copy {}
// SAFETY: integers.
unsafe impl Plain for u8 {}
// SAFETY: integers.
unsafe impl Plain for u32 {}
// SAFETY: integers.
unsafe impl Plain for u64 {}
// SAFETY: integers.
unsafe impl Plain for u128 {}

impl<T: Plain> Table<T> {
    /// Makes a table of `len` zeros.
    pub fn new(len: usize) -> Result<Table<T>, Errno> {
        let bytes = len.checked_mul(size_of::<T>()).ok_or(Errno::NOMEM)?;
        Ok(Table {
            mapping: Mapping::anonymous(bytes)?,
            len,
            kind: std::marker::PhantomData,
        })
    }
}

impl<T: Plain> std::ops::Deref for Table<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the mapping is page-aligned, holds `len` values, and any bytes are a value.
        unsafe { std::slice::from_raw_parts(self.mapping.as_ptr().cast(), self.len) }
    }
}

impl<T: Plain> std::ops::DerefMut for Table<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as for `deref`, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.mapping.as_ptr().cast(), self.len) }
    }
}

/// Breaks the sharing of pages left by a fork, over `start..start + bytes`, without changing
/// what they hold. It may fault, so the thread that serves the faults must not call it.
pub fn populate_for_writing(start: usize, bytes: usize) -> Result<(), Errno> {
    // SAFETY: populating changes no contents; the kernel checks the range.
    unsafe { rustix::mm::madvise(start as *mut _, bytes, Advice::LinuxPopulateWrite) }
}

/// Changes the rights to the program's pages in `start..end`, which lie in `area`: to those that
/// `area` has, or to reading and writing if they are `open`.
pub fn set_rights(start: usize, end: usize, area: Area, open: bool) -> Result<(), Errno> {
    assert!(!overlaps_own(start, end));
    let mut rights = MprotectFlags::empty();
    rights.set(MprotectFlags::READ, area.is_readable || open);
    rights.set(MprotectFlags::WRITE, area.is_writable || open);
    rights.set(MprotectFlags::EXEC, area.is_executable);
    // SAFETY: contents do not change, and nothing of the engine's lies there.
    unsafe { rustix::mm::mprotect(start as *mut _, end - start, rights) }
}

/// Copies `bytes` from `from`, memory of the engine, to `to` in the program, by way of the kernel:
/// an address that can't be written to is an error instead of a signal.
pub fn write_own_memory(to: usize, from: usize, bytes: usize) -> Result<(), Errno> {
    let local = libc::iovec {
        iov_base: from as *mut _,
        iov_len: bytes,
    };
    let remote = libc::iovec {
        iov_base: to as *mut _,
        iov_len: bytes,
    };
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    // SAFETY: both lists are live; the kernel checks the ranges. No reference names the program's
    // memory.
    let written = unsafe {
        let (local, remote) = (&raw const local, &raw const remote);
        libc::syscall(
            libc::SYS_process_vm_writev,
            pid,
            local,
            1usize,
            remote,
            1usize,
            0usize,
        )
    };
    match usize::try_from(written) {
        Ok(count) if count == bytes => Ok(()),
        _ => Err(Errno::FAULT),
    }
}
