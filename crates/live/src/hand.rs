//! The hand: a second thread that may fault where the engine must not.
//!
//! After a fork, pages are shared with the other process and can't be moved until they are written
//! to. Asking the kernel to write-populate them breaks the sharing and changes nothing they hold.
//! A page that another thread takes away at that moment makes the call a fault, which only the
//! engine can serve: so the engine has the hand make the call, and waits for it a short while.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use crate::sys::{futex, memory};

/// How long the engine waits for its hand. Only a fault takes longer than the copying.
const WAIT_LIMIT: Duration = Duration::from_millis(50);

/// What the hand is to do, and how far it has come.
pub struct Hand {
    start: AtomicUsize,
    bytes: AtomicUsize,
    /// How often something was asked for ...
    asked: AtomicU32,
    /// ... and done.
    done: AtomicU32,
    /// Whether there is a thread behind it.
    works: AtomicU32,
}

impl Hand {
    /// A hand with nothing to do, and nobody to do it.
    pub const fn new() -> Hand {
        Hand {
            start: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            asked: AtomicU32::new(0),
            done: AtomicU32::new(0),
            works: AtomicU32::new(0),
        }
    }

    /// Makes the pages of a range this process's own, without changing what they hold. False if
    /// that was not over in time, or there is nobody to do it. Engine only.
    pub fn make_own(&self, start: usize, bytes: usize) -> bool {
        let asked = self.asked.load(Ordering::Acquire);
        let is_free = self.done.load(Ordering::Acquire) == asked;
        if !is_free || self.works.load(Ordering::Acquire) == 0 {
            return false;
        }
        self.start.store(start, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
        let asked = asked.wrapping_add(1);
        self.asked.store(asked, Ordering::Release);
        futex::wake(&self.asked, 1);
        let end = std::time::Instant::now() + WAIT_LIMIT;
        loop {
            let done = self.done.load(Ordering::Acquire);
            if done == asked {
                return true;
            }
            let left = end.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                return false;
            }
            futex::wait(&self.done, done, left);
        }
    }

    /// Forgets the thread and what it was at: for a forked child.
    pub fn reset(&self) {
        self.works.store(0, Ordering::Release);
        self.done
            .store(self.asked.load(Ordering::Acquire), Ordering::Release);
    }

    /// Works for ever. Runs on a thread of its own.
    pub fn run(&self) -> ! {
        self.works.store(1, Ordering::Release);
        loop {
            let asked = self.asked.load(Ordering::Acquire);
            if self.done.load(Ordering::Acquire) != asked {
                let start = self.start.load(Ordering::Relaxed);
                let bytes = self.bytes.load(Ordering::Relaxed);
                // Pages that are gone by now need nothing.
                let _ = memory::populate_for_writing(start, bytes);
                self.done.store(asked, Ordering::Release);
                futex::wake(&self.done, 1);
            }
            futex::wait(&self.asked, asked, Duration::from_secs(60));
        }
    }
}

impl Default for Hand {
    fn default() -> Self {
        Hand::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::PAGE;
    use crate::sys::memory::Mapping;

    static HAND: Hand = Hand::new();

    #[test]
    fn a_hand_populates_and_says_when_it_is_done() {
        let memory = Mapping::anonymous(4 * PAGE).unwrap();
        memory.set(PAGE, 7);
        assert!(!HAND.make_own(memory.start(), PAGE));
        std::thread::spawn(|| HAND.run());
        while HAND.works.load(Ordering::Acquire) == 0 {
            std::thread::yield_now();
        }
        assert!(HAND.make_own(memory.start(), 4 * PAGE));
        assert_eq!((memory.get(PAGE), memory.get(0)), (7, 0));
    }
}
