//! The frame pool: one area of memory, a page a frame, into which pages are moved.
//!
//! A slot whose page is elsewhere is a hole. Reading a hole is harmless: the host puts a page of
//! zeros there (the pool is registered for moves only), which then costs memory until dropped.

use linux_raw_sys::general as raw;
use rustix::mm::Advice;
use xxhash_rust::xxh3::xxh3_128;

use tidemark_core::id::FrameId;

use super::memory::Mapping;
use super::{Errno, PAGE};

/// How many pages of zeros there are to copy from in one go.
pub const ZEROS_MAX: usize = 64;

/// The pool's memory.
#[derive(Debug)]
pub struct Pool {
    slots: Mapping,
    frames: u32,
    zeros: Mapping,
}

impl Pool {
    /// Reserves room for `frames` pages. No memory is used yet.
    pub fn new(frames: u32) -> Result<Pool, Errno> {
        let slots = Mapping::anonymous(frames as usize * PAGE)?;
        slots.refuse_huge_pages()?;
        let zeros = Mapping::anonymous(ZEROS_MAX * PAGE)?;
        zeros.refuse_huge_pages()?;
        Ok(Pool {
            slots,
            frames,
            zeros,
        })
    }

    /// How many frames the pool has.
    pub fn frames(&self) -> u32 {
        self.frames
    }

    /// The first address of the pool.
    pub fn start(&self) -> usize {
        self.slots.start()
    }

    /// The size of the pool in bytes.
    pub fn bytes(&self) -> usize {
        self.slots.bytes()
    }

    /// The address of [`ZEROS_MAX`] pages of zeros.
    pub fn zeros(&self) -> usize {
        self.zeros.start()
    }

    /// The address of a frame's slot.
    pub fn address(&self, frame: FrameId) -> usize {
        assert!(
            frame.0 < self.frames,
            "frame {} of {}",
            frame.0,
            self.frames
        );
        self.slots.start() + frame.index() * PAGE
    }

    /// The XXH3-128 sum of what a slot holds.
    pub fn sum(&self, frame: FrameId) -> u128 {
        // SAFETY: the slot lies in the pool. Nobody writes to it: programs reach pages only after
        // they were moved away, and transfers into it are over before it is asked for its sum.
        xxh3_128(unsafe { std::slice::from_raw_parts(self.address(frame) as *const u8, PAGE) })
    }

    /// Fills a slot with zeros.
    pub fn clear(&mut self, frame: FrameId) {
        // SAFETY: the slot lies in the pool, and nobody else reads or writes it (see `sum`).
        unsafe { std::ptr::write_bytes(self.address(frame) as *mut u8, 0, PAGE) };
    }

    /// Copies one slot to another.
    pub fn copy(&mut self, from: FrameId, to: FrameId) {
        assert_ne!(from, to);
        let (from, to) = (self.address(from) as *const u8, self.address(to) as *mut u8);
        // SAFETY: two different slots of the pool.
        unsafe { std::ptr::copy_nonoverlapping(from, to, PAGE) };
    }

    /// Copies out what a slot holds.
    pub fn read(&self, frame: FrameId, into: &mut [u8; PAGE]) {
        // SAFETY: the slot lies in the pool; see `sum`.
        unsafe {
            std::ptr::copy_nonoverlapping(self.address(frame) as *const u8, into.as_mut_ptr(), PAGE)
        };
    }

    /// Fills a slot with `bytes`.
    pub fn write(&mut self, frame: FrameId, bytes: &[u8; PAGE]) {
        // SAFETY: the slot lies in the pool; see `clear`.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.address(frame) as *mut u8, PAGE)
        };
    }

    /// Writes to a slot without changing it, so that a page shared since a fork becomes this
    /// process's own. Harmless while the page is being written to a file.
    pub fn unshare(&mut self, frame: FrameId) {
        let first = self.address(frame) as *mut u8;
        // SAFETY: the slot lies in the pool; volatile, so that the write is not optimised away.
        unsafe { first.write_volatile(first.read_volatile()) };
    }

    /// Puts pages under `count` slots from `first` on that have none.
    pub fn back(&mut self, first: FrameId, count: u32) -> Result<(), Errno> {
        self.advise(first, count, Advice::LinuxPopulateWrite)
    }

    fn advise(&mut self, first: FrameId, count: u32, advice: Advice) -> Result<(), Errno> {
        assert!(count > 0 && u64::from(first.0) + u64::from(count) <= u64::from(self.frames));
        let start = self.address(first) as *mut std::ffi::c_void;
        // SAFETY: the slots lie in the pool, whose contents the caller has let go of or keeps.
        unsafe { rustix::mm::madvise(start, count as usize * PAGE, advice) }
    }
}

/// The largest request a single transfer may be, in pages.
pub const TRANSFER_MAX: usize = 64;

const _: () = assert!(TRANSFER_MAX <= raw::UIO_MAXIOV as usize);
