//! The end of the engine: when its program has ended, or has executed another.
//!
//! The engine is a process of its own, which outlives its program by a moment: what that needs in
//! its last one is still served. The kernel tells how: it cuts the [lifeline](Lifeline) of the
//! program's first thread when that ends or executes another program, and the engine's helper, who
//! waits for that, tells the engine. From then on it looks until it is sure which of them it is.

use std::os::fd::OwnedFd;

use tidemark_core::time::Time;

use super::Engine;
use crate::parts::units;
use crate::sys::lifeline::Lifeline;
use crate::sys::{program, tasks};

/// The interval at which a program is looked at whose first thread is on its way out.
const LEAVING_NS: u64 = 1_000_000;
/// The number of such looks at most.
const LEAVING_LOOKS: u32 = 100;
/// The interval of looks at a program whose first thread has ended and whose others go on.
const GONE_NS: u64 = 20_000_000;
/// The interval of looks at any program: it may have removed its lifeline.
const QUIET_NS: u64 = 200_000_000;

/// The state of the program's end.
pub(super) struct Ending {
    /// Cut when the first thread leaves the memory.
    leader: &'static Lifeline,
    /// The list of the program's threads, opened while it can be reached by its name.
    tasks: Option<OwnedFd>,
    next_look: Time,
    /// It was cut when it was last looked at.
    was_cut: bool,
    /// The number of looks since.
    looks: u32,
}

impl Ending {
    pub(super) fn new(leader: &'static Lifeline) -> Ending {
        Ending {
            leader,
            tasks: tasks::open().ok(),
            next_look: Time(0),
            was_cut: false,
            looks: 0,
        }
    }

    /// The same in a forked child, where the descriptor means nothing.
    pub(super) fn reopen(&mut self) {
        let leader = self.leader;
        std::mem::forget(std::mem::replace(self, Ending::new(leader)));
    }
}

impl Engine {
    /// Leaves if the program has ended, or has executed another. Answers after how long to ask
    /// again at the latest. While the first thread is there that costs next to nothing.
    pub(super) fn see_off(&mut self) -> u64 {
        let is_cut = self.ending.leader.is_cut();
        let now = units::now();
        if now < self.ending.next_look && is_cut == self.ending.was_cut {
            return self.ending.next_look.since_ns(now);
        }
        self.ending.was_cut = is_cut;
        let has_executed = match &self.ending.tasks {
            Some(list) if is_cut => {
                !tasks::is_leader_exiting(list) && program::has_other_memory() != Some(false)
            }
            _ => program::has_other_memory() == Some(true),
        };
        if has_executed || program::await_end(0) {
            self.leave();
        }
        if !is_cut {
            self.look_for_tracer();
        }
        self.ending.looks = if is_cut { self.ending.looks + 1 } else { 0 };
        let pause_ns = match is_cut {
            true if self.ending.looks < LEAVING_LOOKS => LEAVING_NS,
            true => GONE_NS,
            false => self.bring(QUIET_NS),
        };
        self.ending.next_look = now.after_ns(pause_ns);
        pause_ns
    }

    /// Ends this process, and leaves the program, which is not in the memory that it served.
    fn leave(&mut self) -> ! {
        self.telemetry.publish_samples();
        self.publish();
        self.telemetry.flush_decisions();
        self.line.leave();
        let socket = self.setup.control.as_deref();
        self.line.remove_folder_of_the_dead(socket);
        program::leave()
    }
}
