//! The core's side of load control: it shows the state of memory, and carries verdicts out.

use alloc::vec::Vec;

use crate::event::Event;
use crate::id::{FrameId, SpaceId};
use crate::memory::frame::State;
use crate::seams::load_control::{LoadControl, LoadView, SpaceLoad, Turn, Verdict};
use crate::seams::machine::Machine;
use crate::time::Time;
use crate::vm::Vm;
use crate::vm::served::Served;

impl Vm {
    /// Learns how far the programs of `space` have come in their own time: see
    /// [`SpacePolicy::clock_moved`](crate::seams::policy::SpacePolicy::clock_moved). To be called
    /// before the event that happened then. A space of which this is never told has a clock that
    /// always runs.
    pub fn handle_clock(&mut self, space: SpaceId, ticks: u64) {
        if let Some(found) = self.memory.space_mut(space) {
            found.ticks = Some(ticks);
            self.policy.clock_moved(space, ticks);
        }
    }

    /// Learns what the scheduler has to say of a space, for load control.
    pub fn handle_turn(&mut self, space: SpaceId, turn: Turn) {
        if let Some(found) = self.memory.space_mut(space) {
            found.turn = turn;
        }
    }

    /// The space that load control protects.
    pub fn protected_space(&self) -> Option<SpaceId> {
        self.protected
    }

    /// Returns true if load control wants `space` not to run.
    pub fn is_suspended(&self, space: SpaceId) -> bool {
        self.memory
            .spaces()
            .get(space)
            .is_some_and(|s| s.is_suspended)
    }

    /// Takes `space` out of memory as a whole, for a driver that holds its programs up: what is
    /// mapped is unmapped now, and its pages leave as fast as they can be written. To be called
    /// again for what has come since.
    ///
    /// Work: one step a frame.
    pub fn handle_suspend(&mut self, now: Time, machine: &mut dyn Machine, space: SpaceId) {
        self.handle(now, Served::Released, machine, |vm, machine| {
            vm.carry_out(machine, &[Verdict::SwapOut(space), Verdict::Age(space)]);
        });
    }

    /// Lets the pages of `space` stay again.
    pub fn handle_resume(&mut self, now: Time, machine: &mut dyn Machine, space: SpaceId) {
        self.handle(now, Served::Kept, machine, |vm, machine| {
            vm.carry_out(machine, &[Verdict::Resume(space)]);
        });
    }

    /// The faults that the programs of `space` have taken, and of those the ones for which a page
    /// was fetched; `None` if there is no such space.
    pub fn count_faults(&self, space: SpaceId) -> Option<(u64, u64)> {
        let found = self.memory.spaces().get(space)?;
        Some((found.faults, found.page_ins))
    }

    /// The load control in force.
    pub fn load_control(&self) -> &dyn LoadControl {
        &*self.load
    }

    /// Tells the policy of a space's time where no driver keeps it: microseconds since the start.
    pub(crate) fn pass_clock(&mut self, space: SpaceId) {
        const TICK_NS: u64 = 1000;
        if self
            .memory
            .spaces()
            .get(space)
            .is_some_and(|s| s.ticks.is_none())
        {
            self.policy.clock_moved(space, self.now.0 / TICK_NS);
        }
    }

    pub(crate) fn pass_clocks(&mut self) {
        for space in self.memory.spaces().ids() {
            self.pass_clock(space);
        }
    }

    pub(crate) fn tick_load(&mut self, machine: &mut dyn Machine) {
        self.note_waits();
        let spaces: Vec<SpaceLoad> = self
            .memory
            .spaces()
            .iter()
            .map(|(space, s)| SpaceLoad {
                space,
                faults: s.faults,
                page_ins: s.page_ins,
                waited_ns: s.waited_ns,
                paged_ns: 0,
                resident: self.memory.frames().resident_of(space),
                demand: self.policy.demand(space),
                turn: s.turn,
                is_suspended: s.is_suspended,
            })
            .collect();
        let counters = &self.counters;
        let view = LoadView {
            now: self.now,
            // Their number is not known here, nor the part that paging takes of them.
            processors: 1,
            frames: self.memory.frames().limit(),
            frames_free: self.memory.frames().count(State::Free),
            frames_spare: self.policy.frames_spare(),
            frames_low: self.config.free_low,
            frames_target: self.config.free_high,
            page_outs: counters.page_outs,
            page_out_requests: counters.page_out_requests,
            spaces: &spaces,
        };
        let mut verdicts = Vec::new();
        self.load.tick(&view, &mut verdicts);
        self.carry_out(machine, &verdicts);
    }

    /// Adds the time since the last tick to what spaces have waited, once for each fault that waits
    /// now: ticks are many, and find waits as often as they are long.
    fn note_waits(&mut self) {
        let passed_ns = self.now.since_ns(self.load_ticked);
        self.load_ticked = self.now;
        let faults = self.transfers.iter().flat_map(|it| it.waiters());
        let waiting: Vec<SpaceId> = faults
            .chain(self.waiting.stalled())
            .map(|fault| fault.space)
            .collect();
        for space in waiting {
            if let Some(found) = self.memory.space_mut(space) {
                found.waited_ns += passed_ns;
            }
        }
    }

    /// Tells load control of the fetches that faults of this event have begun.
    pub(crate) fn note_page_ins(&mut self, machine: &mut dyn Machine) {
        let mut verdicts = Vec::new();
        while let Some(space) = self.paging_in.pop() {
            let Some(found) = self.memory.space_mut(space) else {
                continue;
            };
            found.page_ins += 1;
            self.load.page_in(self.now, space, &mut verdicts);
        }
        self.carry_out(machine, &verdicts);
    }

    /// A space is no more: neither the policy nor load control need remember it.
    pub(crate) fn forget_space(&mut self, space: SpaceId) {
        self.protected = self.protected.filter(|&protected| protected != space);
        self.suspended.retain(|&suspended| suspended != space);
        self.load.space_ended(space);
        self.policy.space_ended(space);
    }

    /// Chooses up to `want` pages of suspended spaces, or of those alone that are swapped out
    /// whole, the oldest first.
    pub(crate) fn choose_suspended(&self, want: usize, is_whole: bool) -> Vec<FrameId> {
        let goes = |space: SpaceId| {
            let found = self.memory.spaces().get(space);
            found.is_some_and(|s| s.is_suspended && (s.is_swapped_out || !is_whole))
        };
        let is_any = |&space: &SpaceId| goes(space) && self.memory.frames().resident_of(space) > 0;
        if want == 0 || !self.suspended.iter().any(is_any) {
            return Vec::new();
        }
        let frames = self.memory.frames().iter_oldest().map(|(frame, _)| frame);
        frames
            .filter(|&frame| {
                goes(self.memory.frames().owner(frame)) && self.memory.frames().may_leave(frame)
            })
            .take(want)
            .collect()
    }

    fn carry_out(&mut self, machine: &mut dyn Machine, verdicts: &[Verdict]) {
        for &verdict in verdicts {
            match verdict {
                Verdict::Suspend(space) => self.suspend(space, false),
                Verdict::SwapOut(space) => self.suspend(space, true),
                Verdict::Resume(space) => {
                    let Some(found) = self.memory.space_mut(space) else {
                        continue;
                    };
                    (found.is_suspended, found.is_swapped_out) = (false, false);
                    self.suspended.retain(|&suspended| suspended != space);
                    self.outbox.tell(Event::Resume { space });
                }
                Verdict::Protect(space) => {
                    self.protected = self.memory.spaces().get(space).map(|_| space);
                }
                Verdict::Unprotect => self.protected = None,
                Verdict::Age(space) => {
                    for frame in self.collect_owned(space) {
                        self.memory.frames_mut().take_forced_reference(frame);
                        machine.take_referenced(frame);
                        self.counters.questions += 1;
                    }
                    self.settle(machine);
                }
                Verdict::Refresh(space) => {
                    for frame in self.collect_owned(space) {
                        self.memory.frames_mut().force_reference(frame);
                    }
                }
            }
        }
    }

    fn suspend(&mut self, space: SpaceId, is_swapped_out: bool) {
        if let Some(found) = self.memory.space_mut(space) {
            if !found.is_suspended {
                self.suspended.push(space);
            }
            found.is_suspended = true;
            found.is_swapped_out = is_swapped_out;
            self.outbox.tell(Event::Suspend { space });
        }
    }

    fn collect_owned(&self, space: SpaceId) -> Vec<FrameId> {
        let frames = self.memory.frames().iter_oldest().map(|(frame, _)| frame);
        frames
            .filter(|&frame| self.memory.frames().owner(frame) == space)
            .collect()
    }
}
