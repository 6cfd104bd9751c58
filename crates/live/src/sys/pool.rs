//! The frame pool: one area of memory, a page a frame, into which pages are moved.
//!
//! A slot whose page is elsewhere is a hole. Reading a hole is harmless: the host puts a page of
//! zeros there (the pool is registered for moves only), which then costs memory until dropped.
//!
//! Slots can't be reached before they are used for the first time: a program that locks all memory
//! there is would fill them.

use std::sync::atomic::{AtomicU32, Ordering};

use linux_raw_sys::general as raw;
use rustix::mm::Advice;
use xxhash_rust::xxh3::xxh3_128;

use tidemark_core::id::FrameId;

use super::memory::Mapping;
use super::{Errno, PAGE};

/// The number of slots opened at one time, at least.
const OPENED_LEAST: u32 = 1024;
/// The number of pages of zeros to copy from in one go.
pub const ZEROS_MAX: usize = 64;

/// The pool's memory.
#[derive(Debug)]
pub struct Pool {
    slots: Mapping,
    frames: u32,
    /// The number of slots that may be used so far.
    opened: AtomicU32,
    zeros: Mapping,
}

impl Pool {
    /// Reserves room for `frames` pages. No memory is used yet.
    pub fn new(frames: u32) -> Result<Pool, Errno> {
        Ok(Pool {
            slots: Mapping::closed(frames as usize * PAGE)?,
            frames,
            opened: AtomicU32::new(0),
            zeros: Mapping::anonymous(ZEROS_MAX * PAGE)?,
        })
    }

    /// Leaves the pool out of forked children.
    pub fn hide_from_children(&mut self) -> Result<(), Errno> {
        self.slots.hide_from_children()
    }

    /// The number of frames of the pool.
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
        self.run_address(frame, 1)
    }

    /// The address of `count` slots from `first` on.
    pub fn run_address(&self, first: FrameId, count: usize) -> usize {
        let end = u64::from(first.0) + count as u64;
        assert!(
            count > 0 && end <= u64::from(self.frames),
            "{count} frames from {} on, of {}",
            first.0,
            self.frames
        );
        if end as u32 > self.opened.load(Ordering::Relaxed) {
            self.open(end as u32);
        }
        self.slots.start() + first.index() * PAGE
    }

    /// The number of slots that have been used so far, at most: the others are holes.
    pub fn opened(&self) -> u32 {
        self.opened.load(Ordering::Relaxed)
    }

    /// The XXH3-128 sum of what a slot holds.
    pub fn sum(&self, frame: FrameId) -> u128 {
        xxh3_128(self.bytes_of(frame))
    }

    /// Returns true if a slot holds nothing but zeros.
    pub fn is_zero(&self, frame: FrameId) -> bool {
        // SAFETY: any bytes are a number; the slot is aligned to a page.
        let (_, words, _) = unsafe { self.bytes_of(frame).align_to::<u64>() };
        words.iter().all(|word| *word == 0)
    }

    /// Fills a slot with zeros.
    pub fn clear(&mut self, frame: FrameId) {
        // SAFETY: the slot lies in the pool, and no other code reads or writes it (see `bytes_of`).
        unsafe { std::ptr::write_bytes(self.address(frame) as *mut u8, 0, PAGE) };
    }

    /// Copies one slot to another.
    pub fn copy(&mut self, from: FrameId, to: FrameId) {
        assert_ne!(from, to);
        let (from, to) = (self.address(from) as *const u8, self.address(to) as *mut u8);
        // SAFETY: two different slots of the pool.
        unsafe { std::ptr::copy_nonoverlapping(from, to, PAGE) };
    }

    /// The bytes that a slot holds.
    pub fn bytes_of(&self, frame: FrameId) -> &[u8] {
        // SAFETY: the slot lies in the pool. It is not written to: programs reach pages only after
        // they were moved away, and transfers into it are over before its bytes are looked at.
        unsafe { std::slice::from_raw_parts(self.address(frame) as *const u8, PAGE) }
    }

    /// The bytes that a slot holds, to write.
    pub fn bytes_of_mut(&mut self, frame: FrameId) -> &mut [u8] {
        // SAFETY: the slot lies in the pool, and no other code reads or writes it (see `bytes_of`).
        unsafe { std::slice::from_raw_parts_mut(self.address(frame) as *mut u8, PAGE) }
    }

    /// Copies out what a slot holds.
    pub fn read(&self, frame: FrameId, into: &mut [u8; PAGE]) {
        // SAFETY: the slot lies in the pool; see `bytes_of`.
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

    /// Opens the slots before `end`, and some beyond, so that large pools take few calls.
    fn open(&self, end: u32) {
        let before = self.opened.load(Ordering::Relaxed);
        let wanted = (before + before / 4)
            .max(end)
            .checked_next_multiple_of(OPENED_LEAST)
            .map_or(self.frames, |wanted| wanted.min(self.frames));
        let (from, bytes) = (before as usize * PAGE, (wanted - before) as usize * PAGE);
        let opened = self.slots.open(from, bytes);
        // Only a host that counts on all memory being used refuses, and one with too many mappings.
        opened.expect("the host lets the frame pool be used");
        self.opened.store(wanted, Ordering::Relaxed);
    }

    fn advise(&mut self, first: FrameId, count: u32, advice: Advice) -> Result<(), Errno> {
        let start = self.run_address(first, count as usize) as *mut std::ffi::c_void;
        // SAFETY: the slots lie in the pool, whose contents the caller has let go of or keeps.
        unsafe { rustix::mm::madvise(start, count as usize * PAGE, advice) }
    }
}

/// The largest request a single transfer may be, in pages.
pub const TRANSFER_MAX: usize = 64;

const _: () = assert!(TRANSFER_MAX <= raw::UIO_MAXIOV as usize);
