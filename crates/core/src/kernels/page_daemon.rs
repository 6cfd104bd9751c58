//! The page daemon: making room in passes, with time between them.
//!
//! Kernels do not make room inside a fault: a daemon wakes when few frames are free, gives up some
//! in a pass, waits for its writes, and goes on until enough are free. Meanwhile programs run on
//! what is left, and use pages that the next pass then finds in use. [`Pacing`] says how; without
//! it, [`reclaim`](crate::paging::reclaim) does all at once.
//!
//! [`Passes`] are for daemons that work until enough is free, as Mach's and its descendants' do;
//! FreeBSD's asks a [`controller`](crate::kernels::pid_controller) how much to give up, ten times a second.
//!
//! # Invariants
//! 1. A daemon that sleeps has no deadline; nor has one that a full store keeps from its work while
//!    nobody waits for it.
//! 2. Frames chosen in one call are at most [`ROUND_MAX`] and one pass.

use crate::kernels::pid_controller::{Controller, Gains};
use crate::memory::frame::State;
use crate::paging::reclaim::{Need, ROUND_MAX};
use crate::seams::machine::Machine;
use crate::time::Time;
use crate::vm::{Config, Vm};

/// How the page daemon works and waits.
///
/// - Needs: `free_low` at least, and `free_high` more than the reserve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pacing {
    /// Pass after pass, until [`free_high`](crate::vm::Config::free_high) frames are free.
    Passes(Passes),
    /// What a controller asks for, once in each interval while less than
    /// [`free_high`](crate::vm::Config::free_high) frames are free; and at once when no more than
    /// [`free_low`](crate::vm::Config::free_low) are, unless the last time was in vain.
    Controlled(Gains),
}

/// How passes go. Counts are in pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passes {
    /// The most pages one pass gives up.
    pub pass_pages: u32,
    /// The daemon waits after a pass when so many pages are on their way to their pagers, not
    /// counting neighbours that are [written along](crate::kernels::placement::Placement::InPlace), ...
    pub wait_laundry: u32,
    /// ... until no more than so many are, ...
    pub resume_laundry: u32,
    /// ... or until this time has passed, ...
    pub wait_ns: u64,
    /// ... and as much again for each page on its way.
    pub wait_page_ns: u64,
    /// Whether faults that find no more than the reserve free make all others wait too, until
    /// [`free_high`](crate::vm::Config::free_high) are free.
    pub is_pausing: bool,
    /// Whether modified pages of external objects go to the swap store while they wait: see
    /// [`double_paging`](crate::kernels::double_paging).
    pub is_double_paging: bool,
}

/// The state of the daemon.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Daemon {
    /// Fewer frames than enough are free, and the daemon is at it.
    is_awake: bool,
    /// When the next pass is due.
    due: Time,
    /// The last pass found nothing that may leave.
    was_fruitless: bool,
    /// Nobody gets a frame.
    is_paused: bool,
    controller: Controller,
    /// What the controller asked for and is still to be given up.
    owed: u32,
}

impl Vm {
    /// When [`handle_deadline`](Self::handle_deadline) wants to be called next, if ever. It may be
    /// called late.
    pub fn poll_deadline(&self) -> Option<Time> {
        let due = match self.daemon.owed {
            0 => self.daemon.due,
            _ => self.now,
        };
        let is_kept = self.is_store_full && self.stalled.is_empty();
        let due = (self.daemon.is_awake && !is_kept).then_some(due);
        due.into_iter().chain(self.pins.due()).min()
    }

    /// Learns that a deadline has come.
    ///
    /// Work: at most one round of reclaim and a pass, one round of pinned pages, and the faults it
    /// finds frames for.
    pub fn handle_deadline(&mut self, now: Time, machine: &mut dyn Machine) {
        self.now = now;
        self.try_due_pins(machine);
        let need = match self.stalled.is_empty() {
            true => Need::Reserve,
            false => Need::Awaited,
        };
        self.make_room(machine, 0, need);
        self.serve_stalled(machine);
        machine.settle();
        self.absorb_setbacks(machine);
    }

    /// Wakes the daemon if few frames are free, and has it make the passes that are due.
    pub(crate) fn pace(&mut self, machine: &mut dyn Machine, pacing: Pacing) {
        match pacing {
            Pacing::Passes(passes) => self.pace_passes(machine, passes),
            Pacing::Controlled(gains) => self.pace_controlled(machine, &gains),
        }
    }

    fn pace_passes(&mut self, machine: &mut dyn Machine, passes: Passes) {
        let free = self.frames.count(State::Free);
        if !self.daemon.is_awake {
            if free > self.free_marks().0 {
                return;
            }
            self.wake_daemon(self.now);
        }
        let is_early = self.now < self.daemon.due;
        let is_washing = self.laundry_awaited() > passes.resume_laundry;
        if is_early && (self.daemon.was_fruitless || is_washing) {
            return;
        }
        let mut left = ROUND_MAX;
        while self.daemon.is_awake && left > 0 {
            left = left.saturating_sub(passes.pass_pages.max(1));
            if !self.make_pass(machine, passes) {
                return;
            }
        }
        // More is to be done at once, but not in this call.
        self.daemon.due = self.now;
    }

    /// Whether faults wait although frames are free. Notes that they must from now on, if `free`
    /// says so. With a full store they never do: the daemon, which would end it, does nothing then.
    pub(crate) fn is_paused(&mut self, free: u32) -> bool {
        let is_pausing = match self.config.pacing {
            Some(Pacing::Passes(passes)) => passes.is_pausing && !self.is_store_full,
            Some(Pacing::Controlled(_)) | None => false,
        };
        let is_over = free > self.config.reserve && !self.daemon.is_paused;
        self.daemon.is_paused = is_pausing && !is_over;
        self.daemon.is_paused
    }

    /// Whether nobody gets a frame until the daemon is done.
    pub(crate) fn is_daemon_pausing(&self) -> bool {
        self.daemon.is_paused && !self.is_store_full
    }

    /// Whether pagers outside can't be relied on to clean pages now.
    pub(crate) fn is_paging_doubly(&self) -> bool {
        let is_double = match self.config.pacing {
            Some(Pacing::Passes(passes)) => passes.is_double_paging,
            Some(Pacing::Controlled(_)) | None => false,
        };
        is_double && self.is_daemon_pausing()
    }

    /// How few free frames wake the daemon, and how many end its work: as configured, but not so
    /// many that a memory whose limit was lowered could never have them.
    fn free_marks(&self) -> (u32, u32) {
        let Config {
            free_low,
            free_high,
            reserve,
            ..
        } = self.config;
        let most = (self.frames.limit() / 2).max(reserve + 1);
        let high = free_high.min(most);
        (free_low.min(high - 1), high)
    }

    fn wake_daemon(&mut self, due: Time) {
        self.daemon = Daemon {
            is_awake: true,
            due,
            was_fruitless: false,
            ..self.daemon
        };
    }

    /// Gives up what the controller asks for, if it is time to ask, or what is left of it.
    fn pace_controlled(&mut self, machine: &mut dyn Machine, gains: &Gains) {
        let free = self.frames.count(State::Free);
        let (low, target) = self.free_marks();
        if !self.daemon.is_awake {
            if free >= target {
                return;
            }
            self.daemon.controller = Controller::default();
            let interval_ns = gains.interval_ns.max(1);
            self.wake_daemon(Time(self.now.0.next_multiple_of(interval_ns)));
        }
        if self.daemon.owed == 0 {
            let is_new = self.now >= self.daemon.due;
            let is_urgent = free <= low && !self.daemon.was_fruitless;
            if !is_new && !is_urgent {
                return;
            }
            let asked = self.daemon.controller.ask(gains, target, free, is_new);
            let owed = asked.min(self.inactive_most(target));
            self.daemon.owed = owed;
            self.daemon.was_fruitless = false;
            if is_new {
                self.daemon.due = self.now.after_ns(gains.interval_ns.max(1));
            }
            if owed == 0 {
                self.daemon.is_awake = !self.daemon.controller.is_at_rest();
                return;
            }
        }
        let (pages, laundry) = (self.daemon.owed.min(ROUND_MAX), self.laundry);
        self.reclaim(machine, pages);
        let freed = self.frames.count(State::Free).saturating_sub(free);
        let gone = freed + (self.laundry - laundry);
        self.daemon.owed = match gone {
            0 => 0,
            _ => self.daemon.owed - pages,
        };
        // It waits for what is being written.
        self.daemon.was_fruitless |= freed < pages;
    }

    /// How many pages one answer of the controller may take: those that are inactive, for a pass
    /// of FreeBSD's takes no others, and it keeps no more so (`vm_pageout_worker`,
    /// `v_inactive_target`). In a memory of which the target is a large part, the controller would
    /// take all there is.
    fn inactive_most(&self, target: u32) -> u32 {
        let share = self.frames.limit() / 3;
        (target.saturating_add(target / 2)).min(share).max(1)
    }

    /// One pass, unless enough frames are free. Says whether the next may follow at once.
    fn make_pass(&mut self, machine: &mut dyn Machine, passes: Passes) -> bool {
        let before = self.frames.count(State::Free);
        let (_, high) = self.free_marks();
        if before >= high {
            (self.daemon.is_awake, self.daemon.is_paused) = (false, false);
            return true;
        }
        let laundry = self.laundry;
        self.reclaim(machine, passes.pass_pages.min(high - before));
        let gained = self.frames.count(State::Free) - before + (self.laundry - laundry);
        self.daemon.was_fruitless = gained == 0 && self.laundry == 0;
        let awaited = self.laundry_awaited();
        if gained > 0 && awaited < passes.wait_laundry {
            return true;
        }
        let wait_ns = passes.wait_ns + passes.wait_page_ns * u64::from(awaited);
        self.daemon.due = self.now.after_ns(wait_ns.max(1));
        false
    }
}
