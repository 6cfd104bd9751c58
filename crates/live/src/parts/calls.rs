//! System calls that are held up until their memory is there, and what is kept in place for those
//! that go on.
//!
//! There is no word of the end of a call. What it needs is kept until its thread makes another one,
//! touches a missing page by itself, is seen outside of the call, or ends.

use std::os::fd::{AsFd, OwnedFd};

use tidemark_core::time::Time;

use crate::ranges::Ranges;
use crate::sys::calls::{self, Call};
use crate::sys::{Errno, tasks};

/// The interval at which it is looked whether calls are over.
const LOOK_NS: u64 = 20_000_000;
/// The most calls that one look asks for.
const LOOKS_MAX: usize = 16;

/// The calls of a process.
#[derive(Default)]
pub struct Calls {
    /// The listener by which they are answered; `None`: none are held up.
    listener: Option<OwnedFd>,
    /// The calls that wait for their memory.
    waiting: Vec<Waiting>,
    /// The memory that is kept in place for calls that have been let go on.
    holds: Vec<Hold>,
    /// True if threads have the same numbers here as where they are listened to.
    is_near: bool,
    next_look: Time,
    /// The place in `holds` of the one to be checked next.
    next: usize,
    is_told: bool,
}

/// A call that waits for its memory.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// The call.
    pub call: Call,
    /// The time at which it was heard of.
    pub since: Time,
    /// True if what can be managed of its memory is.
    pub is_taken_over: bool,
    /// The number of looks at which a page had not come, and nothing was under way for it.
    pub tries: u32,
}

/// The memory that is kept in place for a call.
#[derive(Debug)]
struct Hold {
    call: Call,
    ranges: Ranges,
}

impl Calls {
    /// The calls that are answered by `listener`, if there is one. `is_near` says that threads have
    /// the same numbers in this process's namespace as in the program's.
    pub fn new(listener: Option<OwnedFd>, is_near: bool) -> Calls {
        Calls {
            listener,
            is_near,
            ..Calls::default()
        }
    }

    /// Begins anew in a forked child: its parent's calls are not its own, nor is the number of the
    /// listener, which is not closed.
    pub fn begin_in_child(&mut self) {
        std::mem::forget(self.listener.take());
        *self = Calls::default();
    }

    /// Takes the child's own listener.
    pub fn listen(&mut self, listener: Option<OwnedFd>, is_near: bool) {
        self.listener = listener;
        self.is_near = is_near;
    }

    /// Returns true if calls are held up here.
    pub fn is_listening(&self) -> bool {
        self.listener.is_some()
    }

    /// Takes in a call.
    pub fn arrive(&mut self, call: Call, since: Time) {
        // One that was interrupted before it was heard of makes its call anew.
        self.waiting.retain(|it| it.call.thread != call.thread);
        self.waiting.push(Waiting {
            call,
            since,
            is_taken_over: false,
            tries: 0,
        });
    }

    /// Returns true if calls wait for their memory.
    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes all that wait, to be looked at once.
    pub fn take_waiting(&mut self) -> Vec<Waiting> {
        std::mem::take(&mut self.waiting)
    }

    /// Puts back one that must wait on.
    pub fn put_back(&mut self, waiting: Waiting) {
        self.waiting.push(waiting);
    }

    /// Has a call go on.
    pub fn go_on(&self, call: &Call) {
        if let Some(listener) = &self.listener {
            calls::go_on(listener.as_fd(), call.id);
        }
    }

    /// Has a call fail.
    pub fn fail(&self, call: &Call, error: Errno) {
        if let Some(listener) = &self.listener {
            calls::fail(listener.as_fd(), call.id, error);
        }
    }

    /// Keeps the memory of a call in place, and no more that of its thread's last one.
    pub fn hold(&mut self, call: Call, ranges: Ranges) {
        match self
            .holds
            .iter_mut()
            .find(|it| it.call.thread == call.thread)
        {
            Some(hold) => *hold = Hold { call, ranges },
            None => self.holds.push(Hold { call, ranges }),
        }
    }

    /// Forgets what was kept for a thread, which touches memory by itself.
    /// Returns true if there was anything.
    pub fn note_running(&mut self, thread: u32) -> bool {
        self.is_near && self.let_go(thread)
    }

    /// Forgets what was kept for a thread, which makes another call.
    /// Returns true if there was anything.
    pub fn let_go(&mut self, thread: u32) -> bool {
        let before = self.holds.len();
        self.holds.retain(|it| it.call.thread != thread);
        self.holds.len() < before
    }

    /// Returns true if something is kept in place in a range for another thread than `thread`.
    pub fn holds_any(&self, start: usize, end: usize, thread: u32) -> bool {
        let overlaps = |it: &Hold| {
            it.call.thread != thread && !it.ranges.collect_overlaps(start, end).is_empty()
        };
        self.holds.iter().any(overlaps)
    }

    /// All that is kept in place.
    pub fn held(&self) -> Ranges {
        let mut all = Ranges::new();
        for (start, end) in self.holds.iter().flat_map(|it| it.ranges.iter()) {
            all.insert(start, end);
        }
        all
    }

    /// Forgets calls that are over, some at a time. Returns true if there were any.
    pub fn look(&mut self, now: Time) -> bool {
        if !self.is_near || self.holds.is_empty() || now < self.next_look {
            return false;
        }
        self.next_look = now.after_ns(LOOK_NS);
        let before = self.holds.len();
        for _ in 0..before.min(LOOKS_MAX) {
            let place = self.next % self.holds.len().max(1);
            let is_over = self.holds.get(place).is_some_and(|it| is_over(&it.call));
            match is_over {
                true => drop(self.holds.swap_remove(place)),
                false => self.next = place + 1,
            }
            if self.holds.is_empty() {
                break;
            }
        }
        self.holds.len() < before
    }

    /// Returns true, once, if it is to be said that a call failed.
    pub fn take_word(&mut self) -> bool {
        !std::mem::replace(&mut self.is_told, true)
    }
}

/// Returns true if a thread is known to be outside of the call that it made.
fn is_over(call: &Call) -> bool {
    /// `restart_syscall`: the kernel goes on with a call that was interrupted.
    const RESTART: u64 = libc::SYS_restart_syscall as u64;
    match tasks::call_of(call.thread) {
        tasks::At::Unknown => false,
        tasks::At::Gone | tasks::At::Outside => true,
        tasks::At::Call(number, _) if number == RESTART => false,
        tasks::At::Call(number, first) => {
            (number, first) != (call.number.into(), call.arguments[0])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(thread: u32, id: u64) -> Call {
        Call {
            id,
            thread,
            number: 0,
            arguments: [0; 6],
        }
    }

    fn range(start: usize, end: usize) -> Ranges {
        let mut ranges = Ranges::new();
        ranges.insert(start, end);
        ranges
    }

    #[test]
    fn what_a_thread_keeps_is_let_go_by_its_next_call() {
        let mut calls = Calls::default();
        calls.hold(call(1, 1), range(4096, 8192));
        calls.hold(call(2, 2), range(8192, 12288));
        assert_eq!(calls.held(), range(4096, 12288));
        calls.hold(call(1, 3), range(20480, 24576));
        assert!(!calls.holds_any(4096, 8192, 0) && calls.holds_any(8192, 8193, 0));
        assert!(!calls.holds_any(8192, 8193, 2));
        assert!(calls.let_go(2) && !calls.let_go(2));
        assert_eq!(calls.held(), range(20480, 24576));
    }

    #[test]
    fn a_thread_waits_in_one_call() {
        let mut calls = Calls::default();
        calls.arrive(call(1, 1), Time(0));
        calls.arrive(call(1, 2), Time(0));
        calls.arrive(call(2, 3), Time(0));
        let ids = calls
            .take_waiting()
            .iter()
            .map(|it| it.call.id)
            .collect::<Vec<_>>();
        assert_eq!(ids, [2, 3]);
    }

    #[test]
    fn what_a_thread_that_is_gone_kept_is_let_go() {
        let mut calls = Calls::new(None, true);
        // No thread has such a number.
        calls.hold(call(u32::MAX >> 1, 1), range(4096, 8192));
        assert!(calls.look(Time(LOOK_NS)));
        assert!(calls.held().is_empty());
    }
}
