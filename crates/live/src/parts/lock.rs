//! The lock that an engine is behind where program threads use it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::meters::{self, Metered};
use crate::sys::futex;

/// A lock in static memory that is never managed. Not fair, and not to be taken twice.
pub struct Lock(AtomicU32);

const FREE: u32 = 0;
const TAKEN: u32 = 1;
const WANTED: u32 = 2;

impl Lock {
    /// A free lock.
    pub const fn new() -> Lock {
        Lock(AtomicU32::new(FREE))
    }

    /// Takes the lock, sleeping while another thread has it.
    pub fn take(&self) {
        let asked_ns = meters::asked();
        let is_free = self
            .0
            .compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed)
            .is_ok();
        if !is_free {
            while self.0.swap(WANTED, Ordering::Acquire) != FREE {
                futex::wait(&self.0, WANTED, Duration::from_millis(100));
            }
        }
        Metered::Engine.note_taken(asked_ns, !is_free);
    }

    /// Gives the lock back.
    pub fn release(&self) {
        Metered::Engine.note_released();
        if self.0.swap(FREE, Ordering::Release) == WANTED {
            futex::wake(&self.0, 1);
        }
    }

    /// Frees the lock, whichever thread had it: for a forked child, where none does.
    pub fn reset(&self) {
        self.0.store(FREE, Ordering::Release);
    }
}

impl Default for Lock {
    fn default() -> Self {
        Lock::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_lets_one_thread_in_at_a_time() {
        static LOCK: Lock = Lock::new();
        static INSIDE: AtomicU32 = AtomicU32::new(0);
        let threads: Vec<_> = (0..4)
            .map(|_| {
                std::thread::spawn(|| {
                    for _ in 0..2000 {
                        LOCK.take();
                        assert_eq!(INSIDE.fetch_add(1, Ordering::Relaxed), 0);
                        INSIDE.fetch_sub(1, Ordering::Relaxed);
                        LOCK.release();
                    }
                })
            })
            .collect();
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    }
}
