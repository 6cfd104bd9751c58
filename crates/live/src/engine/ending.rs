//! The end of a program whose threads leave one by one.
//!
//! A process ends with the last of its threads, and as long as the engine's are there none of the
//! program's is the last. So the engine has to notice that they have gone. As long as the first
//! thread is there, nothing is to be done. From its end on the others are counted, and when none is
//! left the engine ends the process, with the status that the last one has left, as the kernel
//! would have. (It keeps that of the first thread. Of another it tells whoever held its descriptor
//! when it ended, from Linux 6.15 on; else it is taken to be zero, which the C library's threads
//! end with.)
//!
//! A process that ends in the common way, by `exit` or a signal, takes the engine with it. It comes
//! by here in passing at most: what the engine says then is not heard.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use tidemark_core::time::Time;

use super::Engine;
use crate::control;
use crate::sys::lifeline::Lifeline;
use crate::sys::pidfd::{self, End};
use crate::sys::program;
use crate::sys::tasks::{self, Standing};

/// The interval at which the first thread is looked at that is on its way out, ...
const LEAVING_NS: u64 = 1_000_000;
/// ... the others when it has gone, ...
const GONE_NS: u64 = 4_000_000;
/// ... and a first thread that gives no sign: a program may have taken its lifeline away.
const QUIET_NS: u64 = 1_000_000_000;

/// The number of times that the kernel is asked for the status the last thread has left, as long as
/// that thread is on its way out, ...
const TELLING_TRIES: u32 = 5_000;
/// ... and the pause between.
const TELLING_PAUSE: Duration = Duration::from_micros(200);

/// The state of the program's end.
pub(super) struct Ending {
    /// Cut when the first thread ends.
    leader: &'static Lifeline,
    /// The list of this process's threads, opened while it can be reached by its name.
    tasks: Option<OwnedFd>,
    next_look: Time,
    /// The status that the first thread has left.
    status: Option<i32>,
    /// The number of threads in the list, ours and the first included, when it was last read.
    listed: u32,
    /// The program's last thread, once it was seen alone.
    last: Option<OwnedFd>,
    is_last_other: bool,
    /// The first thread was on its way out when it was last looked at.
    was_cut: bool,
}

impl Ending {
    pub(super) fn new(leader: &'static Lifeline) -> Ending {
        Ending {
            leader,
            tasks: tasks::open().ok(),
            next_look: Time(0),
            status: None,
            listed: 0,
            last: None,
            is_last_other: false,
            was_cut: false,
        }
    }

    /// The same in a forked child, where the descriptor means nothing.
    pub(super) fn reopen(&mut self) {
        let leader = self.leader;
        std::mem::forget(std::mem::replace(self, Ending::new(leader)));
    }
}

impl Engine {
    /// Ends the process if all threads of its program have gone. Answers after how long to ask
    /// again at the latest. While the first thread is there that costs next to nothing.
    pub(super) fn see_off(&mut self) -> u64 {
        if program::is_engine() {
            return self.follow_program();
        }
        let is_cut = self.ending.leader.is_cut();
        let now = super::now();
        let is_leaving = is_cut && self.ending.status.is_none();
        if now < self.ending.next_look && !is_leaving {
            return self.ending.next_look.since_ns(now);
        }
        self.ending.next_look = now.after_ns(QUIET_NS);
        let Some(status) = self.leaders_status() else {
            return if is_cut { LEAVING_NS } else { QUIET_NS };
        };
        // Twice: a list that is read while threads come and go may miss one.
        if self.has_others() || self.has_others() {
            self.ending.next_look = now.after_ns(GONE_NS);
            return GONE_NS;
        }
        let status = if self.ending.is_last_other {
            self.last_status().unwrap_or(0)
        } else {
            status
        };
        self.finish();
        tasks::end_process(status)
    }

    /// Leaves if the program has ended, or has executed another. Answers after how long to ask
    /// again at the latest.
    fn follow_program(&mut self) -> u64 {
        let is_cut = self.ending.leader.is_cut();
        let now = super::now();
        if now < self.ending.next_look && is_cut == self.ending.was_cut {
            return self.ending.next_look.since_ns(now);
        }
        self.ending.was_cut = is_cut;
        let pause_ns = if is_cut { LEAVING_NS } else { QUIET_NS };
        let has_executed = match &self.ending.tasks {
            Some(list) if is_cut => !tasks::is_leader_exiting(list),
            _ => program::has_other_memory() == Some(true),
        };
        if has_executed || program::await_end(0) {
            self.leave();
        }
        self.ending.next_look = now.after_ns(pause_ns);
        pause_ns
    }

    /// Ends this process, and leaves the program, which is not in the memory that it served.
    fn leave(&mut self) -> ! {
        self.publish_samples();
        self.publish();
        self.flush_decisions();
        if let Some(control) = &self.control {
            control::leave(control.as_fd());
        }
        program::leave()
    }

    fn leaders_status(&mut self) -> Option<i32> {
        if self.ending.status.is_none()
            && let Some(list) = &self.ending.tasks
            && let Standing::Gone { status } = tasks::leader(list)
        {
            self.ending.status = Some(status);
        }
        self.ending.status
    }

    /// Returns true if the program has threads besides the first. If it can't be told there are.
    fn has_others(&mut self) -> bool {
        let own = self.own_threads();
        let known = [Some(self.own_thread), self.machine.hands_thread()];
        let Some(list) = &self.ending.tasks else {
            return true;
        };
        let is_same = tasks::count(list) == Some(self.ending.listed);
        // One may be gone, or not have been known, and another have taken its place.
        let is_last_there = self
            .ending
            .last
            .as_ref()
            .is_some_and(|last| pidfd::end_of(last).is_none());
        if is_same && (is_last_there || self.ending.listed > own + 2) {
            return true;
        }
        let (mut running, mut other, mut is_seen) = (0, None, false);
        let listed = tasks::visit_running(list, |number| {
            running += 1;
            is_seen |= number == self.own_thread;
            if !known.contains(&Some(number)) {
                other = Some(number);
            }
        });
        let has_others = listed.is_none() || running > own;
        if has_others {
            self.ending.listed = listed.unwrap_or(0);
            self.ending.is_last_other = true;
            // In a list of another namespace they have other numbers.
            let is_last = running == own + 1 && is_seen;
            self.ending.last = other.filter(|_| is_last).and_then(pidfd::of_thread);
        }
        has_others
    }

    /// The status with which the program's last thread ended. The kernel knows it from when the
    /// thread leaves the list on, which is a moment after it has ended.
    fn last_status(&self) -> Option<i32> {
        let last = self.ending.last.as_ref()?;
        for _ in 0..TELLING_TRIES {
            let left = self.count_threads();
            match pidfd::end_of(last) {
                Some(End::Status(status)) => return Some(status as i32),
                Some(End::Signal(_)) => return None,
                None if left.is_none_or(|left| left <= self.own_threads() + 1) => return None,
                None => std::thread::sleep(TELLING_PAUSE),
            }
        }
        None
    }

    /// Returns true if the program has one thread, its first. If it can't be told it has more.
    pub(super) fn is_program_alone(&self) -> bool {
        let Some(list) = &self.ending.tasks else {
            return false;
        };
        let mut running = 0;
        let listed = tasks::visit_running(list, |_| running += 1);
        listed.is_some()
            && running == self.own_threads() + 1
            && tasks::leader(list) == Standing::Here
    }

    /// The list of this process's threads.
    pub(super) fn task_list(&self) -> Option<&OwnedFd> {
        self.ending.tasks.as_ref()
    }

    /// The number of threads of this process, with those among them that the kernel counts for its
    /// own. `None` if that can't be told.
    pub(super) fn count_threads(&self) -> Option<u32> {
        tasks::count(self.ending.tasks.as_ref()?)
    }

    /// The number of threads of this process that are not the program's.
    fn own_threads(&self) -> u32 {
        1 + u32::from(self.machine.hands_thread().is_some()) + self.store.threads()
    }
}
