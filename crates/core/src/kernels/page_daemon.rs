//! The page daemon: making room in passes, with time between them.
//!
//! Kernels do not make room inside a fault: a daemon wakes when few frames are free, gives up some
//! in a pass, waits for its writes, and goes on until enough are free. Meanwhile programs run on
//! what is left, and use pages that the next pass then finds in use. [`Pacing`] says how; without
//! it, all is done at once.
//!
//! [`Passes`] are for daemons that work until enough is free, as Mach's and its descendants' do;
//! FreeBSD's asks a [controller](crate::kernels::pid_controller) how much to give up, ten times a
//! second. Here is what the daemon remembers, and when it works; `vm/kernels/pacing.rs` has the
//! steps.
//!
//! # Invariants
//! 1. A daemon that sleeps has no deadline; nor has one that a full store stops while no fault
//!    waits for it.
//! 2. Frames chosen in one call are at most a round of reclaim and one pass.
//!
//! [`Pacing`]: crate::kernels::Pacing

use crate::config::Config;
use crate::kernels::pid_controller::Controller;
use crate::kernels::{Gains, Passes};
use crate::time::Time;

/// The state of the daemon.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Daemon {
    /// Fewer frames than enough are free, and the daemon is at it.
    is_awake: bool,
    /// The time at which the next pass is due.
    due: Time,
    /// The last pass found nothing that may leave.
    was_fruitless: bool,
    /// No fault gets a frame.
    is_paused: bool,
    controller: Controller,
    /// The pages that the controller asked for and that are still to be given up.
    owed: u32,
}

/// The number of free frames below which the daemon wakes, and that at which its work ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Marks {
    pub(crate) low: u32,
    pub(crate) high: u32,
}

impl Marks {
    /// As configured, but never more than a memory with a lowered limit can have.
    pub(crate) fn new(config: &Config, limit: u32) -> Marks {
        let most = (limit / 2).max(config.reserve + 1);
        let high = config.free_high.min(most);
        let low = config.free_low.min(high - 1);
        Marks { low, high }
    }
}

/// The counts of one pass, in pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pass {
    /// Freed, or on their way to their pagers since.
    pub(crate) gained: u32,
    /// The pages on their way to their pagers.
    pub(crate) laundry: u32,
    /// The pages on their way that the daemon waits for.
    pub(crate) awaited: u32,
}

impl Daemon {
    /// Wakes if few frames are free. Answers whether a pass is due.
    pub(crate) fn is_pass_due(
        &mut self,
        passes: Passes,
        now: Time,
        (free, marks): (u32, Marks),
        awaited: u32,
    ) -> bool {
        if !self.is_awake {
            if free > marks.low {
                return false;
            }
            self.wake(now);
        }
        let is_washing = awaited > passes.resume_laundry;
        now >= self.due || !(self.was_fruitless || is_washing)
    }

    /// Notes what a pass came to. Answers whether the next may follow at once.
    pub(crate) fn end_pass(&mut self, passes: Passes, now: Time, pass: Pass) -> bool {
        self.was_fruitless = pass.gained == 0 && pass.laundry == 0;
        if pass.gained > 0 && pass.awaited < passes.wait_laundry {
            return true;
        }
        let wait_ns = passes.wait_ns + passes.wait_page_ns * u64::from(pass.awaited);
        self.due = now.after_ns(wait_ns.max(1));
        false
    }

    /// Enough frames are free: the daemon sleeps, and no fault waits for it.
    pub(crate) fn rest(&mut self) {
        (self.is_awake, self.is_paused) = (false, false);
    }

    /// More is to be done at once, but not in this call.
    pub(crate) fn go_on_at(&mut self, now: Time) {
        self.due = now;
    }

    /// The number of pages to give up now: what the controller asks for, if it is time to ask, or
    /// what is left of it. At most `most`.
    pub(crate) fn ask_controller(
        &mut self,
        gains: &Gains,
        now: Time,
        (free, marks): (u32, Marks),
        limit: u32,
        most: u32,
    ) -> Option<u32> {
        let target = marks.high;
        if !self.is_awake {
            if free >= target {
                return None;
            }
            self.controller = Controller::default();
            let interval_ns = gains.interval_ns.max(1);
            self.wake(Time(now.0.next_multiple_of(interval_ns)));
        }
        if self.owed == 0 {
            let is_new = now >= self.due;
            let is_urgent = free <= marks.low && !self.was_fruitless;
            if !is_new && !is_urgent {
                return None;
            }
            let asked = self.controller.ask(gains, target, free, is_new);
            self.owed = asked.min(inactive_most(target, limit));
            self.was_fruitless = false;
            if is_new {
                self.due = now.after_ns(gains.interval_ns.max(1));
            }
            if self.owed == 0 {
                self.is_awake = !self.controller.is_at_rest();
                return None;
            }
        }
        Some(self.owed.min(most))
    }

    /// Notes the outcome of giving up `pages`: how many were freed, and how many are gone or going.
    pub(crate) fn end_round(&mut self, pages: u32, freed: u32, gone: u32) {
        self.owed = match gone {
            0 => 0,
            _ => self.owed - pages,
        };
        // It waits for what is being written.
        self.was_fruitless |= freed < pages;
    }

    /// Makes faults wait if `is_pausing` says that they may have to: from when no more than the
    /// reserve is free until the daemon is done. Answers whether they do.
    pub(crate) fn pause(&mut self, is_pausing: bool, is_short: bool) -> bool {
        self.is_paused = is_pausing && (is_short || self.is_paused);
        self.is_paused
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.is_paused
    }

    pub(crate) fn is_awake(&self) -> bool {
        self.is_awake
    }

    /// The time at which it has work next, if ever.
    pub(crate) fn due(&self, now: Time) -> Option<Time> {
        let due = match self.owed {
            0 => self.due,
            _ => now,
        };
        self.is_awake.then_some(due)
    }

    fn wake(&mut self, due: Time) {
        self.is_awake = true;
        self.due = due;
        self.was_fruitless = false;
    }
}

/// The most pages that one answer of the controller may take: those that are inactive, for a pass
/// of FreeBSD's takes no others, and it keeps no more so (`vm_pageout_worker`,
/// `v_inactive_target`). In a memory of which the target is a large part, the controller would take
/// all there is.
fn inactive_most(target: u32, limit: u32) -> u32 {
    let share = limit / 3;
    (target.saturating_add(target / 2)).min(share).max(1)
}
