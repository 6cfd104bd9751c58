//! Parking: a task that is suspended leaves memory, and gets back what it had there.

use alloc::vec::Vec;
use core::mem::take;

use tidemark_core::id::{SlotId, SpaceId, VirtPage};
use tidemark_core::machine::Machine;
use tidemark_core::time::Time;
use tidemark_core::vm::Vm;
use tidemark_core::vm::recall::RECALL_NS_MAX;

/// The state of a task that is suspended, or has been. Its driver keeps its threads from running.
#[derive(Debug, Default)]
pub struct Park {
    is_parked: bool,
    /// The frames that it needs when it goes on.
    needed: u64,
    /// The number of pages that had come when it was last taken out of memory.
    arrivals: u64,
    /// The pages of each space that were in memory, in order of address.
    remembered: Vec<(SpaceId, Vec<VirtPage>)>,
    /// Those that are still to be brought back, the last one first, and until when.
    due: Vec<(SpaceId, Vec<(SlotId, VirtPage)>)>,
    due_until: Time,
}

impl Park {
    /// Returns true if it is suspended.
    pub fn is_parked(&self) -> bool {
        self.is_parked
    }

    /// Returns true if something is left to do.
    pub fn is_busy(&self, vm: &Vm) -> bool {
        self.is_filling(vm) || !self.due.is_empty()
    }

    /// Takes the pages of the task's `spaces` out of memory, which needs `needed` frames when it
    /// goes on.
    pub fn handle_suspend(
        &mut self,
        (now, needed): (Time, u64),
        vm: &mut Vm,
        machine: &mut dyn Machine,
        spaces: &[SpaceId],
    ) {
        let due = take(&mut self.due);
        let remembered = spaces.iter().map(|&space| {
            let due = due.iter().filter(|(of, _)| *of == space);
            let mut pages = vm.resident_pages(space);
            pages.extend(due.flat_map(|(_, due)| due.iter().map(|&(_, at)| at)));
            pages.sort_unstable();
            (space, pages)
        });
        self.remembered = remembered.collect();
        (self.is_parked, self.needed) = (true, needed);
        self.hold_down(now, vm, machine, spaces);
    }

    /// Takes out of memory what has come to the `spaces` of a task since it was suspended: it was
    /// on its way. Answers whether there was anything.
    pub fn handle_arrivals(
        &mut self,
        now: Time,
        vm: &mut Vm,
        machine: &mut dyn Machine,
        spaces: &[SpaceId],
    ) -> bool {
        let is_filling = self.is_filling(vm);
        if is_filling {
            self.hold_down(now, vm, machine, spaces);
        }
        is_filling
    }

    /// Lets its pages stay again, and has them [brought back](Self::handle_room).
    pub fn handle_resume(&mut self, now: Time, vm: &mut Vm, machine: &mut dyn Machine) {
        self.is_parked = false;
        self.due_until = now.after_ns(RECALL_NS_MAX);
        for (space, pages) in take(&mut self.remembered) {
            vm.handle_resume(now, machine, space);
            self.due
                .push((space, vm.pages_due(space, &pages, self.needed)));
        }
    }

    /// Brings back more of what was in memory before, as far as there are frames.
    pub fn handle_room(&mut self, now: Time, vm: &mut Vm, machine: &mut dyn Machine) {
        for (space, due) in &mut self.due {
            vm.handle_recalls(now, machine, *space, due);
        }
        let until = self.due_until;
        self.due.retain(|(_, due)| !due.is_empty() && now < until);
    }

    fn is_filling(&self, vm: &Vm) -> bool {
        self.is_parked && vm.counters().arrivals() != self.arrivals
    }

    fn hold_down(&mut self, now: Time, vm: &mut Vm, machine: &mut dyn Machine, of: &[SpaceId]) {
        self.arrivals = vm.counters().arrivals();
        for &space in of {
            vm.handle_suspend(now, machine, space);
        }
    }
}
