//! Parking: taking the program out of memory, holding it, and bringing back what it had. What is
//! known of it in between is [`Park`](crate::park::Park)'s.

use tidemark_core::id::{SlotId, VirtPage};
use tidemark_core::vm::recall::RECALL_NS_MAX;
use tidemark_partition::FLOOR_FRAMES;

use super::faults::Arrival;
use super::outside::size;
use super::trouble::{pid, say};
use super::{Engine, now, page_of};
use crate::sys::{program, thread};

impl Engine {
    /// Parks the program, or lets it go on, as the supervisor wants it by now.
    pub(super) fn follow_parking(&mut self) {
        let is_wanted = self.control.is_some() && self.shared.process(self.record()).is_suspended();
        match (self.park.is_parked, is_wanted) {
            (false, true) => self.park(),
            (true, false) => self.unpark(),
            // What was on its way, or was brought for a restless thread.
            (true, true) if self.now >= self.next_tick && self.is_filling() => self.hold_down(),
            (true, true) | (false, false) => {}
        }
    }

    /// Serves the faults that have arrived, or holds them.
    pub(super) fn serve_unless_parked(&mut self) {
        if !self.park.is_parked {
            return self.serve_arrived(Engine::serve_near);
        }
        for _ in 0..self.waiting.look_at_all() {
            match self.waiting.arrived.pop_front() {
                Some(arrival) if self.is_restless(&arrival) || self.is_beside(&arrival) => {
                    self.serve(arrival);
                }
                Some(arrival) => self.waiting.arrived.push_back(arrival),
                None => {}
            }
        }
    }

    /// Returns true if a fault is not the program's: of another process, which reads its memory, or
    /// of the engine's own helper, which takes pages out of their sharing.
    fn is_beside(&self, arrival: &Arrival) -> bool {
        let thread = arrival.thread;
        let is_of_others = thread::is_elsewhere(thread) && !program::shares_memory_with(thread);
        is_of_others || self.machine.is_hand(thread)
    }

    fn is_restless(&mut self, arrival: &Arrival) -> bool {
        let at = page_of(arrival.address);
        self.park.is_restless(arrival.thread, at, arrival.since)
    }

    /// Returns true if parking leaves something to do at the next tick.
    pub(super) fn is_parking(&self) -> bool {
        match self.park.is_parked {
            true => self.is_filling(),
            false => !self.park.due.is_empty(),
        }
    }

    fn is_filling(&self) -> bool {
        self.vm.counters().arrivals() != self.park.arrivals
    }

    /// Brings back more of what was in memory before the program was parked, as far as there are
    /// frames.
    pub(super) fn recall(&mut self) {
        if self.park.is_parked || self.park.due.is_empty() {
            return;
        }
        let mut due = std::mem::take(&mut self.park.due);
        let (now, space) = (self.now, self.space);
        self.vm
            .handle_recalls(now, &mut self.machine, space, &mut due);
        if self.now < self.park.due_until {
            self.park.due = due;
        }
    }

    fn park(&mut self) {
        self.place.let_go(self.now);
        let mut remembered = self.vm.resident_pages(self.space);
        remembered.extend(self.park.due.drain(..).map(|(_, at)| at));
        remembered.sort_unstable();
        self.park.remembered = remembered;
        self.park.is_parked = true;
        self.park.held.clear();
        self.set_emptying(true);
        self.hold_down();
    }

    fn hold_down(&mut self) {
        self.park.arrivals = self.vm.counters().arrivals();
        let (now, space) = (self.now, self.space);
        self.vm.handle_suspend(now, &mut self.machine, space);
    }

    fn unpark(&mut self) {
        self.park.is_parked = false;
        self.set_emptying(false);
        self.vm
            .handle_resume(self.now, &mut self.machine, self.space);
        self.go_on_alone();
        // The time for which they were held is no wait for the store.
        self.park.held.clear();
        self.waiting.renew(now());
        self.park.due = self.collect_due();
        self.park.due_until = self.now.after_ns(RECALL_NS_MAX);
    }

    /// The pages to be brought back: see [`pages_due`](tidemark_core::vm::Vm::pages_due).
    fn collect_due(&mut self) -> Vec<(SlotId, VirtPage)> {
        let remembered = std::mem::take(&mut self.park.remembered);
        let needed = self.shared.process(self.record()).needed();
        self.vm.pages_due(self.space, &remembered, needed)
    }

    /// Without a supervisor this program would keep the least that it was left with: it takes what
    /// it had before, as far as no process has that.
    fn go_on_alone(&mut self) {
        if self.control.is_some() {
            return;
        }
        self.shared.end_division();
        let record = self.shared.process(self.record());
        let left = record.budget().max(FLOOR_FRAMES as u32);
        record.set_budget(left);
        let needed = u32::try_from(record.needed()).unwrap_or(u32::MAX);
        record.take_unassigned(1, needed.saturating_sub(left));
        let frames = record.budget();
        say(&format!(
            "{} ({}): `tidemark run` is gone; this process was suspended, and goes on in {}",
            self.setup.name,
            pid(),
            size(frames.into()),
        ));
    }

    fn set_emptying(&mut self, is_emptying: bool) {
        if let Some(compressed) = self.store.compressed_mut() {
            compressed.set_emptying(is_emptying);
        }
    }
}
