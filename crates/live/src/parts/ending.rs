//! The end of the engine: when its program has ended, or has executed another.
//!
//! The engine is a process of its own, which outlives its program by a moment: what that needs in
//! its last one is still served. The kernel tells how: it cuts the [lifeline](Lifeline) of the
//! program's first thread when that ends or executes another program, and the engine's helper, who
//! waits for that, tells the engine. From then on it looks until it is sure which of them it is.

use std::os::fd::OwnedFd;

use tidemark_core::time::Time;

use crate::sys::lifeline::Lifeline;
use crate::sys::{program, tasks};

/// The interval at which a program is looked at whose first thread is on its way out.
const LEAVING_NS: u64 = 1_000_000;
/// The number of such looks at most.
const LEAVING_LOOKS: u32 = 100;
/// The interval of looks at a program whose first thread has ended and whose others go on.
const GONE_NS: u64 = 20_000_000;
/// The interval of looks at any program: it may have removed its lifeline.
pub const QUIET_NS: u64 = 200_000_000;

/// The state of a program, as its engine sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sight {
    /// The program goes on as before. The next look is due after these nanoseconds.
    Unchanged(u64),
    /// The program has ended, or has executed another.
    Over,
    /// The program's first thread has ended or is on its way out.
    Leaving,
    /// The program was found running.
    There,
}

/// The state of the program's end.
pub struct Ending {
    /// Cut when the first thread leaves the memory.
    leader: &'static Lifeline,
    /// The list of the program's threads, opened while it can be reached by its name.
    tasks: Option<OwnedFd>,
    next_look: Time,
    /// True if the lifeline was cut when it was last looked at.
    was_cut: bool,
    /// The number of looks since the lifeline was cut.
    looks: u32,
}

impl Ending {
    /// The state of a program whose first thread holds `leader`.
    pub fn new(leader: &'static Lifeline) -> Ending {
        Ending {
            leader,
            tasks: tasks::open().ok(),
            next_look: Time(0),
            was_cut: false,
            looks: 0,
        }
    }

    /// Opens the list of threads anew in a forked child, where the descriptor is not valid.
    pub fn reopen(&mut self) {
        let leader = self.leader;
        std::mem::forget(std::mem::replace(self, Ending::new(leader)));
    }

    /// Looks whether the program is there. While its first thread is that costs next to nothing.
    pub fn look(&mut self, now: Time) -> Sight {
        let is_cut = self.leader.is_cut();
        if now < self.next_look && is_cut == self.was_cut {
            return Sight::Unchanged(self.next_look.since_ns(now));
        }
        self.was_cut = is_cut;
        let has_executed = match &self.tasks {
            Some(list) if is_cut => {
                !tasks::is_leader_exiting(list) && program::has_other_memory() != Some(false)
            }
            _ => program::has_other_memory() == Some(true),
        };
        if has_executed || program::await_end(0) {
            return Sight::Over;
        }
        self.looks = if is_cut { self.looks + 1 } else { 0 };
        match is_cut {
            true => Sight::Leaving,
            false => Sight::There,
        }
    }

    /// The time after which to look again at a program that is leaving.
    pub fn pause_ns(&self) -> u64 {
        match self.looks < LEAVING_LOOKS {
            true => LEAVING_NS,
            false => GONE_NS,
        }
    }

    /// Plans the next look.
    pub fn plan_look(&mut self, at: Time) {
        self.next_look = at;
    }
}
