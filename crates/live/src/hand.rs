//! The hand: a second thread that may fault where the engine must not.
//!
//! After a fork, pages are shared with the other process and can't be moved until they are written
//! to. Asking the kernel to write-populate them breaks the sharing and changes nothing they hold.
//! A page that another thread takes away at that moment makes the call a fault, which only the
//! engine can serve: so the engine has the hand make the call, and waits for it. If a fault waits
//! meanwhile, which may be the hand's, that is for a short while only. Else the hand has not had a
//! processor: were it not waited for, the pages would pass for pinned. While a request that was
//! given up is not over, nothing more is asked of it.
//!
//! Meanwhile it watches the program's first thread: once that has ended, it wakes the engine, which
//! then watches the others.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::sys::lifeline::Lifeline;
use crate::sys::{futex, memory, program, thread};

/// The time for which the engine waits for its hand while a fault waits for the engine. Only a
/// fault of its own takes longer than the copying.
const WAIT_LIMIT: Duration = Duration::from_millis(50);
/// The time for which it waits if none does.
const WAIT_LIMIT_MOST: Duration = Duration::from_secs(2);
/// The interval at which it looks whether one does.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// The time for which it waits at a time for the program to end whose first thread has.
const LEAVING_NS: u64 = 20_000_000;
/// The time that the engine has to leave when it has.
const LEAVING_LIMIT: Duration = Duration::from_millis(200);

/// A request to the hand, and its progress.
pub struct Hand {
    start: AtomicUsize,
    bytes: AtomicUsize,
    /// The number of requests.
    asked: AtomicU32,
    /// The number of requests that are done.
    done: AtomicU32,
    /// The thread behind it; zero: there is none.
    works: AtomicU32,
    /// True if that thread is to end.
    is_ending: AtomicBool,
    /// Starts it.
    starter: Option<fn()>,
}

impl Hand {
    /// A hand with no work, and no thread.
    pub const fn new() -> Hand {
        Hand {
            start: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            asked: AtomicU32::new(0),
            done: AtomicU32::new(0),
            works: AtomicU32::new(0),
            is_ending: AtomicBool::new(false),
            starter: None,
        }
    }

    /// The same, with `starter` to be called when there is work and no thread.
    pub const fn started_by(starter: fn()) -> Hand {
        let mut hand = Hand::new();
        hand.starter = Some(starter);
        hand
    }

    /// Makes the pages of a range this process's own, without changing what they hold. False if
    /// that was not over in time, or there is no thread for it. Engine only, which says whether a
    /// fault `is_waiting` for it.
    pub fn make_own(&self, start: usize, bytes: usize, is_waiting: impl Fn() -> bool) -> bool {
        if self.is_absent()
            && let Some(start) = self.starter
        {
            start();
        }
        let is_ending = self.is_ending.load(Ordering::Acquire);
        if is_ending || self.works.load(Ordering::Acquire) == 0 {
            return false;
        }
        // What took too long before is not over: its fault waits until the engine goes on, which
        // may have thousands of pages to ask for first.
        if self.done.load(Ordering::Acquire) != self.asked.load(Ordering::Acquire) {
            return false;
        }
        let begin = Instant::now();
        let is_too_long = || {
            let passed = begin.elapsed();
            passed >= WAIT_LIMIT_MOST || (passed >= WAIT_LIMIT && is_waiting())
        };
        let asked = self.ask(start, bytes);
        self.await_done(asked, &is_too_long)
    }

    fn ask(&self, start: usize, bytes: usize) -> u32 {
        self.start.store(start, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
        let asked = self.asked.load(Ordering::Acquire).wrapping_add(1);
        self.asked.store(asked, Ordering::Release);
        futex::wake(&self.asked, 1);
        asked
    }

    /// Waits until `asked` requests are done. False if that `is_too_long` a wait.
    fn await_done(&self, asked: u32, is_too_long: &impl Fn() -> bool) -> bool {
        loop {
            let done = self.done.load(Ordering::Acquire);
            if done == asked {
                return true;
            }
            if is_too_long() {
                return false;
            }
            futex::wait(&self.done, done, LOOK_INTERVAL);
        }
    }

    /// Returns true if there is no thread behind it, and one is to be.
    pub fn is_absent(&self) -> bool {
        self.works.load(Ordering::Acquire) == 0 && !self.is_ending.load(Ordering::Acquire)
    }

    /// Learns which thread is behind it, from the starter of that thread.
    pub fn set_thread(&self, number: u32) {
        self.works.store(number, Ordering::Release);
    }

    /// The thread behind it, if there is one.
    pub fn thread(&self) -> Option<u32> {
        let number = self.works.load(Ordering::Acquire);
        (number != 0).then_some(number)
    }

    /// Has its thread end as soon as it is done with what it is at.
    pub fn end(&self) {
        self.is_ending.store(true, Ordering::Release);
        self.asked.fetch_add(1, Ordering::AcqRel);
        futex::wake(&self.asked, 1);
    }

    /// Forgets the thread and what it was at: for a forked child.
    pub fn reset(&self) {
        self.works.store(0, Ordering::Release);
        self.is_ending.store(false, Ordering::Release);
        self.done
            .store(self.asked.load(Ordering::Acquire), Ordering::Release);
    }

    /// Works until it is to [end](Self::end), on a thread of its own. Calls `tell` once when
    /// `leader` is cut, and when `call` changes.
    pub fn run(&self, leader: &Lifeline, call: &AtomicU32, tell: impl Fn()) {
        self.set_thread(thread::current());
        let (mut has_told, mut heard) = (false, call.load(Ordering::Acquire));
        while !self.is_ending.load(Ordering::Acquire) {
            let (asked, held, called) = (
                self.asked.load(Ordering::Acquire),
                leader.word().load(Ordering::Acquire),
                call.load(Ordering::Acquire),
            );
            if called != heard {
                heard = called;
                tell();
            }
            if self.done.load(Ordering::Acquire) != asked {
                let start = self.start.load(Ordering::Relaxed);
                let bytes = self.bytes.load(Ordering::Relaxed);
                // Pages that are gone by now need nothing.
                let _ = memory::populate_for_writing(start, bytes);
                self.done.store(asked, Ordering::Release);
                futex::wake(&self.done, 1);
            }
            if leader.is_cut() && !has_told {
                has_told = true;
                tell();
            }
            if has_told && program::is_engine() && program::await_end(LEAVING_NS) {
                // The engine leaves by itself, if it can: the program may have ended in the midst
                // of what the engine waits for.
                std::thread::sleep(LEAVING_LIMIT);
                program::leave();
            }
            let words = [(&self.asked, asked), (leader.word(), held), (call, called)];
            if !has_told || !program::is_engine() {
                futex::wait_for_any(words, Duration::from_secs(60));
            }
        }
        self.works.store(0, Ordering::Release);
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
    static LEADER: Lifeline = Lifeline::new();
    static CALL: AtomicU32 = AtomicU32::new(0);

    #[test]
    fn a_hand_that_is_stuck_is_waited_for_once() {
        let hand = Hand::new();
        hand.set_thread(1);
        assert!(!hand.make_own(0, PAGE, || true));
        assert!(!hand.make_own(0, PAGE, || panic!("it is waited for again")));
        hand.done
            .store(hand.asked.load(Ordering::Acquire), Ordering::Release);
        assert!(!hand.make_own(0, PAGE, || true));
    }

    #[test]
    fn a_hand_populates_and_says_when_it_is_done() {
        let memory = Mapping::anonymous(4 * PAGE).unwrap();
        memory.set(PAGE, 7);
        assert!(!HAND.make_own(memory.start(), PAGE, || false));
        let (say, hear) = std::sync::mpsc::channel();
        let hand = std::thread::spawn(move || HAND.run(&LEADER, &CALL, || say.send(()).unwrap()));
        while HAND.thread().is_none() {
            std::thread::yield_now();
        }
        assert!(HAND.make_own(memory.start(), 4 * PAGE, || false));
        assert_eq!((memory.get(PAGE), memory.get(0)), (7, 0));
        let leader = std::thread::spawn(|| {
            assert!(LEADER.hold());
            futex::wake(LEADER.word(), 1);
        });
        hear.recv_timeout(Duration::from_secs(20)).unwrap();
        leader.join().unwrap();
        HAND.end();
        hand.join().unwrap();
        assert_eq!(HAND.thread(), None);
    }
}
