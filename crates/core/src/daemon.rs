//! The page daemon: making room in passes, with time between them.
//!
//! Kernels do not make room inside a fault: a daemon wakes when few frames are free, gives up some
//! in a pass, waits for its writes, and goes on until enough are free. Meanwhile programs run on
//! what is left, and use pages that the next pass then finds in use. [`Pacing`] says how; without
//! it, [`reclaim`](crate::reclaim) does all at once.
//!
//! # Invariants
//! 1. A daemon that sleeps has no deadline.
//! 2. Frames chosen in one call are at most [`ROUND_MAX`] and one pass.

use crate::frame::State;
use crate::machine::Machine;
use crate::reclaim::{Need, ROUND_MAX};
use crate::time::Time;
use crate::vm::{Config, Vm};

/// How the page daemon works and waits. Counts are in pages.
///
/// - Needs: `free_low` at least, and `free_high` more than the reserve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pacing {
    /// The most pages one pass gives up.
    pub pass_pages: u32,
    /// The daemon waits after a pass when so many pages are on their way to their pagers, not
    /// counting neighbours that are [written along](crate::placement::Placement::InPlace), ...
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
}

impl Vm {
    /// When [`handle_deadline`](Self::handle_deadline) wants to be called next, if ever. It may be
    /// called late.
    pub fn poll_deadline(&self) -> Option<Time> {
        self.daemon.is_awake.then_some(self.daemon.due)
    }

    /// Learns that a deadline has come.
    ///
    /// Work: at most one round of reclaim and a pass, and the faults it finds frames for.
    pub fn handle_deadline(&mut self, now: Time, machine: &mut dyn Machine) {
        self.now = now;
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
        let free = self.frames.count(State::Free);
        if !self.daemon.is_awake {
            if free > self.free_marks().0 {
                return;
            }
            self.daemon = Daemon {
                is_awake: true,
                due: self.now,
                was_fruitless: false,
                is_paused: self.daemon.is_paused,
            };
        }
        let is_early = self.now < self.daemon.due;
        let is_washing = self.laundry_awaited() > pacing.resume_laundry;
        if is_early && (self.daemon.was_fruitless || is_washing) {
            return;
        }
        let mut left = ROUND_MAX;
        while self.daemon.is_awake && left > 0 {
            left = left.saturating_sub(pacing.pass_pages.max(1));
            if !self.make_pass(machine, pacing) {
                return;
            }
        }
        // More is to be done at once, but not in this call.
        self.daemon.due = self.now;
    }

    /// Whether faults wait although frames are free. Notes that they must from now on, if `free`
    /// says so.
    pub(crate) fn is_paused(&mut self, free: u32) -> bool {
        let is_pausing = self.config.pacing.is_some_and(|pacing| pacing.is_pausing);
        self.daemon.is_paused |= is_pausing && free <= self.config.reserve;
        self.daemon.is_paused
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

    /// One pass, unless enough frames are free. Says whether the next may follow at once.
    fn make_pass(&mut self, machine: &mut dyn Machine, pacing: Pacing) -> bool {
        let before = self.frames.count(State::Free);
        let (_, high) = self.free_marks();
        if before >= high {
            (self.daemon.is_awake, self.daemon.is_paused) = (false, false);
            return true;
        }
        let laundry = self.laundry;
        self.reclaim(machine, pacing.pass_pages.min(high - before));
        let gained = self.frames.count(State::Free) - before + (self.laundry - laundry);
        self.daemon.was_fruitless = gained == 0 && self.laundry == 0;
        let awaited = self.laundry_awaited();
        if gained > 0 && awaited < pacing.wait_laundry {
            return true;
        }
        let wait_ns = pacing.wait_ns + pacing.wait_page_ns * u64::from(awaited);
        self.daemon.due = self.now.after_ns(wait_ns.max(1));
        false
    }
}
