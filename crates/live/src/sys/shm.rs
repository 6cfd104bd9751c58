//! Memory that several processes map: an anonymous file full of atomics.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize};

use rustix::fs::MemfdFlags;

use super::memory::Mapping;
use super::{Errno, PAGE};

/// Types that may live in memory shared between processes: any bytes are a value, and every
/// access is atomic.
///
/// # Safety
/// The type is `repr(C)`, made only of atomics of integers and arrays of them.
pub unsafe trait Shareable: Sync {}
// SAFETY: an atomic integer.
unsafe impl Shareable for AtomicU8 {}
// SAFETY: an atomic integer.
unsafe impl Shareable for AtomicU16 {}
// SAFETY: an atomic integer.
unsafe impl Shareable for AtomicU32 {}
// SAFETY: an atomic integer.
unsafe impl Shareable for AtomicU64 {}
// SAFETY: an atomic integer.
unsafe impl Shareable for AtomicI64 {}
// SAFETY: an atomic integer.
unsafe impl Shareable for AtomicUsize {}
// SAFETY: an array of such.
unsafe impl<T: Shareable, const N: usize> Shareable for [T; N] {}

/// A shared memory area and the descriptor it can be passed on by.
pub struct Shared {
    fd: Option<OwnedFd>,
    mapping: Mapping,
}

impl Shared {
    /// Makes an area of `bytes` zeros.
    pub fn create(name: &str, bytes: usize) -> Result<Shared, Errno> {
        let fd = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC)?;
        rustix::fs::ftruncate(&fd, bytes.next_multiple_of(PAGE) as u64)?;
        Shared::open(fd)
    }

    /// Maps the whole area behind `fd`. Nothing of it can be used before it is
    /// [reached for](Self::reach): what is locked in memory, with all else that the program has,
    /// is no more than what is used.
    pub fn open(fd: OwnedFd) -> Result<Shared, Errno> {
        let bytes = usize::try_from(rustix::fs::fstat(&fd)?.st_size).map_err(|_| Errno::INVAL)?;
        if bytes == 0 {
            return Err(Errno::INVAL);
        }
        let mapping = Mapping::shared(&fd, bytes)?;
        Ok(Shared {
            fd: Some(fd),
            mapping,
        })
    }

    /// Has the pages of `bytes` from `offset` on ready for use.
    pub fn reach(&self, offset: usize, bytes: usize) -> Result<(), Errno> {
        let first = offset & !(PAGE - 1);
        let end = (offset + bytes).next_multiple_of(PAGE);
        self.mapping.open(first, end - first)
    }

    /// Closes the descriptor and keeps the memory: the area can't be passed on any more.
    pub fn close_fd(&mut self) {
        self.fd = None;
    }

    /// The descriptor, unless it was closed.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.fd.as_ref().map(|fd| fd.as_fd())
    }

    /// The range at which it is mapped: its first address, and the one just past it.
    pub fn range(&self) -> (usize, usize) {
        let start = self.mapping.start();
        (start, start + self.mapping.bytes())
    }

    /// The size in bytes.
    pub fn bytes(&self) -> usize {
        self.mapping.bytes()
    }

    /// `len` values of `T` that start `offset` bytes in, which have been reached for. Lasts as long
    /// as the area.
    ///
    /// # Panics
    /// If they do not lie in the area, or `offset` does not suit the type's alignment.
    pub fn slice<T: Shareable>(&self, offset: usize, len: usize) -> &[T] {
        let bytes = len
            .checked_mul(size_of::<T>())
            .expect("a size that fits an address space");
        assert!(offset.is_multiple_of(align_of::<T>()));
        assert!(
            offset
                .checked_add(bytes)
                .is_some_and(|end| end <= self.bytes())
        );
        // SAFETY: in bounds and aligned; `Shareable` says that any bytes are a value and that
        // every access is atomic, so that other processes may write at the same time.
        unsafe { std::slice::from_raw_parts(self.mapping.as_ptr().add(offset).cast(), len) }
    }

    /// One value of `T`, `offset` bytes in.
    pub fn at<T: Shareable>(&self, offset: usize) -> &T {
        &self.slice::<T>(offset, 1)[0]
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn what_one_mapping_stores_the_other_loads() {
        let first = Shared::create("tidemark-test", 3 * PAGE + 1).unwrap();
        let fd = first.fd().unwrap().try_clone_to_owned().unwrap();
        let mut second = Shared::open(fd).unwrap();
        for area in [&first, &second] {
            area.reach(0, 8).unwrap();
            area.reach(PAGE + 2, 20).unwrap();
        }
        assert_eq!((first.bytes(), second.bytes()), (4 * PAGE, 4 * PAGE));
        first.at::<AtomicU64>(0).store(0xC0FFEE, Ordering::Release);
        first.slice::<AtomicU16>(PAGE, 10)[9].store(77, Ordering::Relaxed);
        second.close_fd();
        assert!(second.fd().is_none());
        let first = second.at::<AtomicU64>(0).load(Ordering::Acquire);
        assert_eq!(first, 0xC0FFEE);
        assert_eq!(
            second.at::<[AtomicU16; 10]>(PAGE)[9].load(Ordering::Relaxed),
            77
        );
    }

    #[test]
    #[should_panic(expected = "end <= self.bytes()")]
    fn nothing_beyond_the_end_is_given_out() {
        let area = Shared::create("tidemark-test", PAGE).unwrap();
        area.slice::<AtomicU32>(PAGE - 4, 2);
    }
}
