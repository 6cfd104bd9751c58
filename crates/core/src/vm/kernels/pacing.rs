//! Pacing: the work of the page daemon.
//!
//! [`page_daemon`](crate::kernels::page_daemon) says when there is work and how much.

use crate::kernels::page_daemon::{Marks, Pass};
use crate::kernels::{Gains, Pacing, Passes};
use crate::memory::frame::State;
use crate::seams::machine::Machine;
use crate::time::Time;
use crate::vm::Vm;
use crate::vm::reclaim::ROUND_MAX;

impl Vm {
    /// Wakes the daemon if few frames are free, and has it make the passes that are due. Answers
    /// false if there is none.
    pub(crate) fn pace(&mut self, machine: &mut dyn Machine) -> bool {
        match self.config.kernel.pacing {
            Some(Pacing::Passes(passes)) => self.pace_passes(machine, passes),
            Some(Pacing::Controlled(gains)) => self.pace_controlled(machine, &gains),
            None => return false,
        }
        true
    }

    /// The time at which the daemon has work next, if ever.
    pub(crate) fn daemon_due(&self) -> Option<Time> {
        let is_kept = self.is_store_full && !self.waiting.has_stalled();
        self.kernel.daemon.due(self.now).filter(|_| !is_kept)
    }

    fn pace_passes(&mut self, machine: &mut dyn Machine, passes: Passes) {
        let free = (self.memory.frames().count(State::Free), self.free_marks());
        let awaited = self.laundry_awaited();
        if !self
            .kernel
            .daemon
            .is_pass_due(passes, self.now, free, awaited)
        {
            return;
        }
        let mut left = ROUND_MAX;
        while self.kernel.daemon.is_awake() && left > 0 {
            left = left.saturating_sub(passes.pass_pages.max(1));
            if !self.make_pass(machine, passes) {
                return;
            }
        }
        self.kernel.daemon.go_on_at(self.now);
    }

    /// One pass, unless enough frames are free. Answers whether the next may follow at once.
    fn make_pass(&mut self, machine: &mut dyn Machine, passes: Passes) -> bool {
        let before = self.memory.frames().count(State::Free);
        let high = self.free_marks().high;
        if before >= high {
            self.kernel.daemon.rest();
            return true;
        }
        let laundry = self.transfers.laundry();
        self.reclaim(machine, passes.pass_pages.min(high - before));
        let pass = Pass {
            gained: self.memory.frames().count(State::Free) - before
                + (self.transfers.laundry() - laundry),
            laundry: self.transfers.laundry(),
            awaited: self.laundry_awaited(),
        };
        self.kernel.daemon.end_pass(passes, self.now, pass)
    }

    /// Gives up what the controller asks for.
    fn pace_controlled(&mut self, machine: &mut dyn Machine, gains: &Gains) {
        let free = self.memory.frames().count(State::Free);
        let (marks, limit) = (self.free_marks(), self.memory.frames().limit());
        let asked =
            self.kernel
                .daemon
                .ask_controller(gains, self.now, (free, marks), limit, ROUND_MAX);
        let Some(pages) = asked else { return };
        let laundry = self.transfers.laundry();
        self.reclaim(machine, pages);
        let freed = self.memory.frames().count(State::Free).saturating_sub(free);
        let gone = freed + (self.transfers.laundry() - laundry);
        self.kernel.daemon.end_round(pages, freed, gone);
    }

    /// Answers whether faults wait although frames are free. Notes that they must from now on, if
    /// `free` says so. With a full store they never do: the daemon, which would end it, does
    /// nothing then.
    pub(crate) fn is_paused(&mut self, free: u32) -> bool {
        let is_pausing = match self.config.kernel.pacing {
            Some(Pacing::Passes(passes)) => passes.is_pausing && !self.is_store_full,
            Some(Pacing::Controlled(_)) | None => false,
        };
        self.kernel
            .daemon
            .pause(is_pausing, free <= self.config.reserve)
    }

    /// Returns true if no fault gets a frame until the daemon is done.
    pub(super) fn is_daemon_pausing(&self) -> bool {
        self.kernel.daemon.is_paused() && !self.is_store_full
    }

    /// Answers whether pagers outside can't be relied on to clean pages now.
    pub(super) fn is_paging_doubly(&self) -> bool {
        let is_double = match self.config.kernel.pacing {
            Some(Pacing::Passes(passes)) => passes.is_double_paging,
            Some(Pacing::Controlled(_)) | None => false,
        };
        is_double && self.is_daemon_pausing()
    }

    fn free_marks(&self) -> Marks {
        Marks::new(&self.config, self.memory.frames().limit())
    }
}
