//! Waiting on a number in shared memory. Private and process-shared words alike.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

use rustix::thread::futex::{self, ClockId, Flags, Timespec, Wait, WaitFlags, WaitPtr, WaitvFlags};

use super::calls::PREPARED;
use super::{Errno, last_error};

/// The way a wait ended.
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
    // Without the private flag the word works between processes too, at little cost. The mark,
    // which the kernel ignores, tells the filter of system calls that the wait is not the
    // program's.
    // SAFETY: word and time are live.
    let answer = unsafe {
        let (word, limit) = (word.as_ptr(), &raw const limit);
        let none = std::ptr::null_mut::<u32>();
        libc::syscall(
            libc::SYS_futex,
            word,
            libc::FUTEX_WAIT,
            value,
            limit,
            none,
            PREPARED,
        )
    };
    if answer == 0 {
        return Waited::Woken;
    }
    match last_error() {
        Errno::AGAIN => Waited::Changed,
        Errno::TIMEDOUT => Waited::TimedOut,
        _ => Waited::Woken,
    }
}

/// Sleeps while both words hold their values, at most for `limit`. May wake for no reason. Where
/// the kernel refuses to watch two at a time it is the first alone that wakes.
pub fn wait_for_any<const WORDS: usize>(words: [(&AtomicU32, u32); WORDS], limit: Duration) {
    let waits = words.map(|(word, value)| {
        let mut wait = Wait::new();
        wait.val = value.into();
        wait.uaddr = WaitPtr::new(word.as_ptr().cast());
        wait.flags = WaitFlags::SIZE_U32;
        wait
    });
    let mut end = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    end.tv_sec += i64::try_from(limit.as_secs()).unwrap_or(0);
    match futex::waitv(&waits, WaitvFlags::empty(), Some(&end), ClockId::Monotonic) {
        Ok(_) | Err(Errno::AGAIN | Errno::TIMEDOUT | Errno::INTR) => {}
        Err(_) => {
            wait(words[0].0, words[0].1, limit);
        }
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

    #[test]
    fn a_wait_for_two_words_ends_by_any() {
        let words = Arc::new([AtomicU32::new(1), AtomicU32::new(1)]);
        for changed in [0, 1] {
            let others = Arc::clone(&words);
            let waker = std::thread::spawn(move || {
                others[changed].store(5, Ordering::Release);
                wake(&others[changed], u32::MAX);
            });
            while words[changed].load(Ordering::Acquire) == 1 {
                let values = words[1 - changed].load(Ordering::Acquire);
                let mut pairs = [(&words[0], 1), (&words[1], 1)];
                pairs[1 - changed].1 = values;
                wait_for_any(pairs, Duration::from_secs(60));
            }
            waker.join().unwrap();
        }
    }
}
