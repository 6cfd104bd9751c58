//! Operations of a program on its own memory, for tests.

use std::cell::Cell;
use std::os::fd::AsFd;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use rustix::mm::{Advice, MprotectFlags, MremapFlags};

use super::Errno;
use super::memory::Mapping;
use super::ring::Ring;

/// Tells whether to skip a test that needs `what`, which is not permitted here. With
/// `REQUIRE_ALL=1` a skip is a failure.
pub fn skip(what: &str) {
    tidemark_testing::skip(&format!("needs {what}"));
}

/// Held while a test runs: alone, if it forks, since a fork shares the pages of all tests.
pub struct Turn {
    _guard: Guard,
}

enum Guard {
    /// Others may run as well.
    Shared(#[expect(dead_code)] RwLockReadGuard<'static, ()>),
    /// No other thread runs.
    Alone(#[expect(dead_code)] RwLockWriteGuard<'static, ()>),
}

static TURN: RwLock<()> = RwLock::new(());

thread_local! {
    static HAS_TURN: Cell<bool> = const { Cell::new(false) };
}

impl Turn {
    /// For a test that does not fork.
    pub fn shared() -> Turn {
        Turn::new(|| Guard::Shared(TURN.read().unwrap_or_else(PoisonError::into_inner)))
    }

    /// For a test that forks.
    pub fn alone() -> Turn {
        Turn::new(|| Guard::Alone(TURN.write().unwrap_or_else(PoisonError::into_inner)))
    }

    /// A test that has its turn and waits for another one waits forever once one that is to be
    /// alone waits as well.
    fn new(wait: impl FnOnce() -> Guard) -> Turn {
        assert!(!HAS_TURN.replace(true), "a test has one turn at a time");
        Turn { _guard: wait() }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        HAS_TURN.set(false);
    }
}

/// `MADV_DONTNEED`.
pub fn remove(start: usize, bytes: usize) -> Result<(), Errno> {
    // SAFETY: tests pass ranges of their own mappings, which no reference names.
    unsafe { rustix::mm::madvise(start as *mut _, bytes, Advice::LinuxDontNeed) }
}

/// `MADV_DODUMP`, which tells one of our mappings from the next and does nothing else of note.
pub fn mark(start: usize, bytes: usize) -> Result<(), Errno> {
    // SAFETY: as for `remove`.
    unsafe { rustix::mm::madvise(start as *mut _, bytes, Advice::LinuxDoDump) }
}

/// `mprotect`, for reading only.
pub fn make_read_only(start: usize, bytes: usize) -> Result<(), Errno> {
    // SAFETY: as for `remove`.
    unsafe { rustix::mm::mprotect(start as *mut _, bytes, MprotectFlags::READ) }
}

/// `mprotect`, for reading and writing.
pub fn make_writable(start: usize, bytes: usize) -> Result<(), Errno> {
    let flags = MprotectFlags::READ | MprotectFlags::WRITE;
    // SAFETY: as for `remove`.
    unsafe { rustix::mm::mprotect(start as *mut _, bytes, flags) }
}

/// Pins a range, as a program does that registers it with an io_uring, until the ring is dropped.
pub fn pin(start: usize, bytes: usize) -> Result<Ring, Errno> {
    use rustix::io_uring::{IoringRegisterOp, io_uring_register};
    let ring = Ring::new(2)?;
    let buffer = linux_raw_sys::general::iovec {
        iov_base: start as *mut _,
        iov_len: bytes as _,
    };
    let list = (&raw const buffer).cast();
    // SAFETY: a list of one buffer, which is the test's own; nothing is transferred.
    unsafe { io_uring_register(ring.as_fd(), IoringRegisterOp::RegisterBuffers, list, 1) }?;
    Ok(ring)
}

/// `munmap`.
pub fn unmap(start: usize, bytes: usize) -> Result<(), Errno> {
    // SAFETY: as for `remove`; the test leaks the mapping.
    unsafe { rustix::mm::munmap(start as *mut _, bytes) }
}

/// `mremap` over another mapping of the test, which is replaced.
pub fn move_mapping(from: usize, to: usize, bytes: usize) -> Result<(), Errno> {
    // SAFETY: as for `remove`; both mappings are the test's.
    unsafe {
        let flags = MremapFlags::MAYMOVE;
        rustix::mm::mremap_fixed(from as *mut _, bytes, bytes, flags, to as *mut _)?;
    }
    Ok(())
}

/// A child of this process that does nothing.
pub struct Child(i32);

impl Child {
    /// Forks.
    pub fn fork() -> Child {
        // SAFETY: the child calls nothing but functions that are safe after a fork.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            loop {
                // SAFETY: no arguments; the parent ends the child.
                unsafe { libc::pause() };
            }
        }
        assert!(pid > 0);
        Child(pid)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // SAFETY: the pid is of a child that has not been waited for.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            libc::waitpid(self.0, std::ptr::null_mut(), 0);
        }
    }
}

/// Runs `body` in a forked child and answers whether it said yes, in time.
pub fn is_so_in_child(body: impl FnOnce() -> bool) -> bool {
    // SAFETY: the test runs alone and holds no lock; libc's allocator works after a fork.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // SAFETY: ends the child if it hangs.
        unsafe { libc::alarm(20) };
        let is_so = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).unwrap_or(false);
        // SAFETY: leaves without running the parent's destructors.
        unsafe { libc::_exit(i32::from(!is_so)) };
    }
    assert!(pid > 0);
    let mut status = 0;
    // SAFETY: a child of ours, and a live number for its status.
    let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!(waited, pid);
    status == 0
}

/// Fills page `page` of `mapping` with `value`; this may fault.
pub fn fill(mapping: &Mapping, page: usize, value: u8) {
    for offset in (0..super::PAGE).step_by(64) {
        mapping.set(page * super::PAGE + offset, value);
    }
}

/// Returns true if page `page` of `mapping` is as [`fill`] left it; this may fault.
pub fn is_filled(mapping: &Mapping, page: usize, value: u8) -> bool {
    (0..super::PAGE)
        .step_by(64)
        .all(|offset| mapping.get(page * super::PAGE + offset) == value)
}
