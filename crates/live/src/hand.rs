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
//! It also does what the engine must not wait for, or would have to read a message of: it maps a
//! file where the engine manages memory, writes pages that can't be moved to a file, and waits
//! until a file is on its disk. See [`Job`].
//!
//! Meanwhile it watches the program's first thread: once that has ended, it wakes the engine, which
//! then watches the others.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::sys::file_maps::{self, Native};
use crate::sys::lifeline::Lifeline;
use crate::sys::{Errno, futex, memory, program, thread};

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
/// The interval at which it looks, where the engine has more time, whether there is work.
const KEPT_PAUSE: Duration = Duration::from_millis(2);

/// The kinds of work.
const POPULATE: u32 = 0;
const MAP: u32 = 1;
const WRITE: u32 = 2;
const SYNCHRONIZE: u32 = 3;

/// The rights and the kind of a mapping, as bits.
const WRITABLE: u32 = 1;
const SHARED: u32 = 2;

/// Work with a file, which the engine has by a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Job {
    /// Maps it, in the place of what is there.
    Map(Native, RawFd),
    /// Writes a range of memory to it, at an offset.
    Write {
        /// First address.
        start: usize,
        /// Size in bytes.
        bytes: usize,
        /// The file.
        file: RawFd,
        /// The offset in the file.
        offset: u64,
    },
    /// Waits until it is on its disk.
    Synchronize(RawFd),
}

/// A job that was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Begun(u32);

/// A request to the hand, and its progress.
pub struct Hand {
    start: AtomicUsize,
    bytes: AtomicUsize,
    /// The kind of work, and what only some kinds have.
    kind: AtomicU32,
    file: AtomicI32,
    offset: AtomicU64,
    rights: AtomicU32,
    /// The error number of the last job, or zero.
    error: AtomicI32,
    /// The number of requests.
    asked: AtomicU32,
    /// The number of requests that are done.
    done: AtomicU32,
    /// The thread behind it; zero: there is none.
    works: AtomicU32,
    /// True if that thread is to end.
    is_ending: AtomicBool,
    /// True if the engine has work to do when its program has ended.
    is_kept: AtomicBool,
    /// Starts it.
    starter: Option<fn()>,
}

impl Hand {
    /// A hand with no work, and no thread.
    pub const fn new() -> Hand {
        Hand {
            start: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            kind: AtomicU32::new(POPULATE),
            file: AtomicI32::new(-1),
            offset: AtomicU64::new(0),
            rights: AtomicU32::new(0),
            error: AtomicI32::new(0),
            asked: AtomicU32::new(0),
            done: AtomicU32::new(0),
            works: AtomicU32::new(0),
            is_ending: AtomicBool::new(false),
            is_kept: AtomicBool::new(false),
            starter: None,
        }
    }

    /// A hand with no work and no thread, with `starter` to be called when there is work and no
    /// thread.
    pub const fn started_by(starter: fn()) -> Hand {
        let mut hand = Hand::new();
        hand.starter = Some(starter);
        hand
    }

    /// Makes the pages of a range this process's own, without changing what they hold. False if
    /// that was not over in time, or there is no thread for it. Engine only, which says whether a
    /// fault `is_waiting` for it.
    pub fn make_own(&self, start: usize, bytes: usize, is_waiting: impl Fn() -> bool) -> bool {
        // What took too long before is not over: its fault waits until the engine goes on, which
        // may have thousands of pages to ask for first.
        if !self.is_there() || !self.is_idle() {
            return false;
        }
        let begin = Instant::now();
        let is_too_long = || {
            let passed = begin.elapsed();
            passed >= WAIT_LIMIT_MOST || (passed >= WAIT_LIMIT && is_waiting())
        };
        let asked = self.ask(POPULATE, start, bytes);
        self.await_done(asked, &is_too_long)
    }

    /// Asks for work with a file. `None` if there is no thread for it, or it is at something else.
    /// Engine only, which serves the hand's faults until the [outcome](Self::outcome) is there.
    pub fn begin(&self, job: Job) -> Option<Begun> {
        if !self.is_there() || !self.is_idle() {
            return None;
        }
        let about = |kind, file, (start, bytes, offset)| {
            self.file.store(file, Ordering::Relaxed);
            self.offset.store(offset, Ordering::Relaxed);
            Some(Begun(self.ask(kind, start, bytes)))
        };
        match job {
            Job::Map(native, file) => {
                let rights = u32::from(native.is_writable) * WRITABLE;
                let rights = rights | (u32::from(native.is_shared) * SHARED);
                self.rights.store(rights, Ordering::Relaxed);
                about(MAP, file, (native.start, native.bytes, native.offset))
            }
            Job::Write {
                start,
                bytes,
                file,
                offset,
            } => about(WRITE, file, (start, bytes, offset)),
            Job::Synchronize(file) => about(SYNCHRONIZE, file, (0, 0, 0)),
        }
    }

    /// The outcome of what was asked for, if it is over.
    pub fn outcome(&self, begun: Begun) -> Option<Result<(), Errno>> {
        if self.done.load(Ordering::Acquire) != begun.0 {
            return None;
        }
        Some(match self.error.load(Ordering::Acquire) {
            0 => Ok(()),
            error => Err(Errno::from_raw_os_error(error)),
        })
    }

    /// Leaves the engine time when its program has ended, if it is to have more than a moment.
    pub fn keep_engine(&self, is_wanted: bool) {
        self.is_kept.store(is_wanted, Ordering::Release);
    }

    /// Returns true if there is a thread behind it, which is started if need be.
    fn is_there(&self) -> bool {
        if self.is_absent()
            && let Some(start) = self.starter
        {
            start();
        }
        let is_ending = self.is_ending.load(Ordering::Acquire);
        !is_ending && self.works.load(Ordering::Acquire) != 0
    }

    /// Returns true if all that was asked of it is done.
    pub fn is_idle(&self) -> bool {
        self.done.load(Ordering::Acquire) == self.asked.load(Ordering::Acquire)
    }

    fn ask(&self, kind: u32, start: usize, bytes: usize) -> u32 {
        self.kind.store(kind, Ordering::Relaxed);
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
                let error = self.work().map_or_else(Errno::raw_os_error, |()| 0);
                self.error.store(error, Ordering::Release);
                self.done.store(asked, Ordering::Release);
                futex::wake(&self.done, 1);
            }
            if leader.is_cut() && !has_told {
                has_told = true;
                tell();
            }
            if has_told && self.is_kept.load(Ordering::Acquire) {
                // It leaves by itself when it has written what its program has left.
                std::thread::sleep(KEPT_PAUSE);
                continue;
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

    /// Does what was asked for.
    fn work(&self) -> Result<(), Errno> {
        let start = self.start.load(Ordering::Relaxed);
        let bytes = self.bytes.load(Ordering::Relaxed);
        let file = self.file.load(Ordering::Relaxed);
        let offset = self.offset.load(Ordering::Relaxed);
        match self.kind.load(Ordering::Relaxed) {
            MAP => {
                let rights = self.rights.load(Ordering::Relaxed);
                let native = Native {
                    start,
                    bytes,
                    offset,
                    is_writable: rights & WRITABLE != 0,
                    is_shared: rights & SHARED != 0,
                };
                file_maps::restore_numbered(native, file)
            }
            WRITE => file_maps::write_numbered((start, bytes), file, offset),
            SYNCHRONIZE => file_maps::synchronize_numbered(file),
            _ => {
                // Pages that are gone by now need nothing.
                let _ = memory::populate_for_writing(start, bytes);
                Ok(())
            }
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
