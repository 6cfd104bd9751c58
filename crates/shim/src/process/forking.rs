//! The fork that is under way in a process, if one is.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use tidemark_live::meters::{self, Metered};
use tidemark_live::sys::thread;

/// The pause between two looks whether a fork of another thread is over.
pub(crate) const FORK_PAUSE: Duration = Duration::from_micros(200);

/// The fork of a process.
pub(crate) struct Forking {
    /// Set from the freeze to the end of the fork.
    is_frozen: AtomicBool,
    /// One fork at a time: the freeze holds for one.
    lock: AtomicBool,
    /// The thread that has it; zero: none.
    thread: AtomicU32,
    /// The answer of the parent's engine to the request to freeze: the child's record plus one.
    child: AtomicU64,
}

impl Forking {
    /// The state while no fork goes on.
    pub(crate) const fn new() -> Forking {
        Forking {
            is_frozen: AtomicBool::new(false),
            lock: AtomicBool::new(false),
            thread: AtomicU32::new(0),
            child: AtomicU64::new(0),
        }
    }

    /// Waits until no other thread forks.
    ///
    /// What is mapped while a fork is under way may lie where something else was that the engine
    /// does not know of yet: the child must not find it in use.
    pub(crate) fn await_end(&self) {
        let forking = || self.thread.load(Ordering::Acquire);
        if forking() == 0 || forking() == thread::current() {
            return;
        }
        while forking() != 0 {
            std::thread::sleep(FORK_PAUSE);
        }
    }

    /// Keeps other threads from forking, once none is at it. False if this thread is.
    pub(crate) fn lock(&self) -> bool {
        let thread = thread::current();
        if self.thread.load(Ordering::Acquire) == thread {
            return false;
        }
        let asked_ns = meters::asked();
        let mut is_contended = false;
        while self.lock.swap(true, Ordering::AcqRel) {
            is_contended = true;
            std::thread::sleep(FORK_PAUSE);
        }
        Metered::Forks.note_taken(asked_ns, is_contended);
        self.thread.store(thread, Ordering::Release);
        true
    }

    /// Lets other threads fork again.
    pub(crate) fn unlock(&self) {
        Metered::Forks.note_released();
        self.thread.store(0, Ordering::Release);
        self.lock.store(false, Ordering::Release);
    }

    /// Begins the fork of `child`, for which the engine is at rest.
    pub(crate) fn begin(&self, child: u64) {
        self.child.store(child, Ordering::Release);
        self.is_frozen.store(true, Ordering::Release);
    }

    /// Ends it. False if there was none.
    pub(crate) fn end(&self) -> bool {
        self.is_frozen.swap(false, Ordering::AcqRel)
    }

    /// The child of the fork: its record plus one.
    pub(crate) fn child(&self) -> u64 {
        self.child.load(Ordering::Acquire)
    }

    /// Takes the child of a fork that has made none. Zero if there is none.
    pub(crate) fn take_child(&self) -> u64 {
        self.child.swap(0, Ordering::AcqRel)
    }
}
