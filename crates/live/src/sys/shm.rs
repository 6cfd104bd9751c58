//! Memory shared between processes: a sealed-size memfd seen as atomics and nothing else.
//!
//! # Invariants
//! 1. The mapping is as long as the file, and the file can't shrink (it is sealed), so no access
//!    inside the mapping can fail.
//! 2. Every reference handed out is to an atomic: other processes may write at any time.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, AtomicU64};

use rustix::fs::memfd_create;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// A memfd mapped for reading and writing, shared with whoever else maps it.
#[derive(Debug)]
pub struct SharedMemory {
    base: NonNull<u8>,
    bytes: usize,
    file: OwnedFd,
}

// SAFETY: the mapping is reached through atomics only, from any thread.
unsafe impl Send for SharedMemory {}
// SAFETY: as above.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// Makes a new memfd of `bytes` zero bytes, seals its size and maps it.
    pub fn create(name: &str, bytes: usize) -> io::Result<SharedMemory> {
        let file = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, bytes as u64)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW)?;
        SharedMemory::map(file, bytes)
    }

    /// Maps a memfd made by [`create`](Self::create) in this or another process.
    pub fn open(file: OwnedFd) -> io::Result<SharedMemory> {
        if !fcntl_get_seals(&file)?.contains(SealFlags::SHRINK) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the memfd may shrink"));
        }
        let bytes = fstat(&file)?.st_size as usize;
        SharedMemory::map(file, bytes)
    }

    /// The words from byte `offset` on, which is a multiple of 8 and lies in the memory.
    pub fn words(&self, offset: usize, count: usize) -> &[AtomicU64] {
        self.assert_inside(offset, count, 8);
        // SAFETY: in bounds and aligned by the line above; the mapping lives as long as `self`;
        // atomics may be written by others at any time.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(offset).cast(), count) }
    }

    /// The half-words of 16 bits from byte `offset` on, which is a multiple of 2.
    pub fn halves(&self, offset: usize, count: usize) -> &[AtomicU16] {
        self.assert_inside(offset, count, 2);
        // SAFETY: as in `words`.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(offset).cast(), count) }
    }

    /// The length of the memory in bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether the memory is empty.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The addresses the memory takes up, so that nothing else claims them.
    pub fn range(&self) -> std::ops::Range<usize> {
        let start = self.base.as_ptr() as usize;
        start..start + self.bytes
    }

    fn map(file: OwnedFd, bytes: usize) -> io::Result<SharedMemory> {
        // SAFETY: a new mapping at an address of the kernel's choice disturbs nothing.
        let base = unsafe {
            mmap(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::NORESERVE,
                &file,
                0,
            )?
        };
        let base = NonNull::new(base.cast()).expect("the kernel maps nothing at address zero");
        Ok(SharedMemory { base, bytes, file })
    }

    fn assert_inside(&self, offset: usize, count: usize, width: usize) {
        assert!(offset.is_multiple_of(width));
        let end = count.checked_mul(width).and_then(|length| length.checked_add(offset));
        assert!(end.is_some_and(|end| end <= self.bytes));
    }
}

impl AsFd for SharedMemory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and references into it can't outlive `self`.
        // A failure would leave it mapped, which harms nothing.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}
