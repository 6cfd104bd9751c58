//! A word that tells when a thread has ended, however that came about.
//!
//! The kernel walks the list of robust locks of each thread that ends, marks those it still holds,
//! and wakes a waiter. So the thread takes a lock of ours and never gives it back. (A descriptor of
//! the thread would not do: that of a process's first thread reports nothing before the others have
//! ended, too.)
//!
//! Where the C library has registered a list for the thread, one of its own locks goes on it. The
//! children of system calls of a program's own have none, and get one with this lock alone.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::thread;

/// The kernel's mark on the lock of a thread that has ended (`FUTEX_OWNER_DIED`).
const OWNER_DIED: u32 = 0x4000_0000;
/// The mark that asks the kernel to wake a waiter (`FUTEX_WAITERS`).
const WAITERS: u32 = 0x8000_0000;
/// The bits with the number of the thread that holds the lock.
const THREAD: u32 = 0x3fff_ffff;

const WORDS: usize = 8;
/// The word of the lock that the kernel's list goes through, in a list of our own.
const NEXT: usize = 4;

/// A lock that one thread holds for as long as it lives.
#[repr(C, align(64))]
pub struct Lifeline {
    /// Room for one of the C library's locks, whose first four bytes are what the kernel marks.
    lock: [AtomicU64; WORDS],
    /// The kernel's `struct robust_list_head`, for a thread that has none.
    head: [AtomicU64; 3],
}

const _: () = assert!(size_of::<libc::pthread_mutex_t>() <= WORDS * 8);

impl Lifeline {
    /// A free lock.
    pub const fn new() -> Lifeline {
        Lifeline {
            lock: [const { AtomicU64::new(0) }; WORDS],
            head: [const { AtomicU64::new(0) }; 3],
        }
    }

    /// Forgets who held it, who does not exist: this process is new.
    pub fn reset(&self) {
        for word in self.lock.iter().chain(&self.head) {
            word.store(0, Ordering::Relaxed);
        }
    }

    /// Has the calling thread alone hold it from now on. False if the C library does not
    /// know the calling thread.
    pub fn hold(&'static self) -> bool {
        self.reset();
        let own = thread::current();
        match thread::robust_list_head(own) {
            // SAFETY: no other code uses the lock, which is never taken away.
            Some(_) => unsafe { take(self.lock.as_ptr().cast_mut().cast()) },
            None => self.register(own),
        }
        let is_held = self.word().load(Ordering::Acquire) & THREAD == own;
        if is_held {
            self.word().fetch_or(WAITERS, Ordering::AcqRel);
        }
        is_held
    }

    /// Returns true if the thread that held it has ended, or is about to.
    pub fn is_cut(&self) -> bool {
        self.word().load(Ordering::Acquire) & OWNER_DIED != 0
    }

    /// The word that changes when it is cut. It can be waited on as memory that processes share.
    pub fn word(&self) -> &AtomicU32 {
        // SAFETY: the first four bytes of the lock, aligned for it; all access is atomic.
        unsafe { AtomicU32::from_ptr(self.lock.as_ptr().cast_mut().cast()) }
    }

    /// Gives the calling thread, `own`, a list with this lock alone.
    fn register(&'static self, own: u32) {
        self.word().store(own, Ordering::Relaxed);
        let next = &raw const self.lock[NEXT] as u64;
        self.lock[NEXT].store(self.head.as_ptr() as u64, Ordering::Relaxed);
        self.head[0].store(next, Ordering::Relaxed);
        // From where the list goes through a lock back to its word.
        self.head[1].store((NEXT as u64 * 8).wrapping_neg(), Ordering::Release);
        // SAFETY: the list is static memory in the kernel's form.
        unsafe {
            let head = self.head.as_ptr();
            libc::syscall(libc::SYS_set_robust_list, head, size_of_val(&self.head));
        }
    }
}

impl Default for Lifeline {
    fn default() -> Self {
        Lifeline::new()
    }
}

/// Makes a robust lock of the C library's, and takes it.
///
/// # Safety
/// `lock` is memory of static life for a lock that is not in use.
unsafe fn take(lock: *mut libc::pthread_mutex_t) {
    // SAFETY: attributes are initialised before use and destroyed after; the lock is the caller's.
    unsafe {
        let mut attributes: libc::pthread_mutexattr_t = std::mem::zeroed();
        libc::pthread_mutexattr_init(&raw mut attributes);
        libc::pthread_mutexattr_setrobust(&raw mut attributes, libc::PTHREAD_MUTEX_ROBUST);
        libc::pthread_mutex_init(lock, &raw const attributes);
        libc::pthread_mutexattr_destroy(&raw mut attributes);
        libc::pthread_mutex_lock(lock);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::futex;
    use super::*;

    static KNOWN: Lifeline = Lifeline::new();
    static UNKNOWN: Lifeline = Lifeline::new();

    fn await_cut(lifeline: &Lifeline) {
        let word = lifeline.word();
        while !lifeline.is_cut() {
            let value = word.load(Ordering::Acquire);
            let waited = futex::wait(word, value, Duration::from_secs(20));
            assert_ne!(waited, futex::Waited::TimedOut);
        }
    }

    #[test]
    fn the_end_of_a_thread_is_told() {
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let (say, hear) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            say.send(KNOWN.hold()).unwrap();
            let _ = wait.recv();
        });
        assert!(hear.recv().unwrap() && !KNOWN.is_cut());
        drop(go);
        await_cut(&KNOWN);
        thread.join().unwrap();
    }

    #[test]
    fn the_end_of_a_thread_without_a_list_of_locks_is_told() {
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let (say, hear) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            // SAFETY: this thread has no robust locks, which such a list would be of.
            unsafe { libc::syscall(libc::SYS_set_robust_list, 0usize, 24usize) };
            say.send(UNKNOWN.hold()).unwrap();
            let _ = wait.recv();
        });
        assert!(hear.recv().unwrap() && !UNKNOWN.is_cut());
        drop(go);
        await_cut(&UNKNOWN);
        thread.join().unwrap();
    }
}
