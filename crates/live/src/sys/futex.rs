//! Waiting on a number in shared memory. Private and process-shared words alike.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

use rustix::thread::futex::{self, Flags, Timespec};

use super::Errno;

/// How a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waited {
    /// Woken, or interrupted: look at the word again.
    Woken,
    /// The word did not hold the value any more.
    Changed,
    /// The time limit passed.
    TimedOut,
}

/// Sleeps while `word` holds `value`, at most for `limit`. May wake for no reason.
pub fn wait(word: &AtomicU32, value: u32, limit: Duration) -> Waited {
    let limit = Timespec {
        tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(limit.subsec_nanos()) as _,
    };
    // Without the private flag the word works between processes too, at little cost.
    match futex::wait(word, Flags::empty(), value, Some(&limit)) {
        Ok(()) => Waited::Woken,
        Err(Errno::AGAIN) => Waited::Changed,
        Err(Errno::TIMEDOUT) => Waited::TimedOut,
        Err(_) => Waited::Woken,
    }
}

/// Wakes at most `count` of those who wait on `word`.
pub fn wake(word: &AtomicU32, count: u32) {
    let _ = futex::wake(word, Flags::empty(), count.min(i32::MAX as u32));
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn a_wait_ends_by_a_wake_a_change_or_its_limit() {
        let word = Arc::new(AtomicU32::new(1));
        assert_eq!(wait(&word, 2, Duration::from_secs(10)), Waited::Changed);
        assert_eq!(wait(&word, 1, Duration::from_millis(5)), Waited::TimedOut);
        let other = Arc::clone(&word);
        let waker = std::thread::spawn(move || {
            other.store(5, Ordering::Release);
            wake(&other, u32::MAX);
        });
        while word.load(Ordering::Acquire) == 1 {
            assert_ne!(wait(&word, 1, Duration::from_secs(10)), Waited::TimedOut);
        }
        waker.join().unwrap();
    }
}
