//! The prologue and the epilogue of every event: the time it comes with, what becomes of the pages
//! served last, and the changes that are made visible at its end.

use crate::seams::machine::Machine;
use crate::time::Time;
use crate::vm::Vm;

/// The state of the pages of faults that have just been served, when an event begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Served {
    /// The pages may leave again: their programs have run since.
    Released,
    /// The pages stay: the event does not show that their programs have run.
    Kept,
}

impl Vm {
    /// Does the `work` of one event, and has what it changed take effect.
    pub(crate) fn handle<Answer>(
        &mut self,
        now: Time,
        served: Served,
        machine: &mut dyn Machine,
        work: impl FnOnce(&mut Vm, &mut dyn Machine) -> Answer,
    ) -> Answer {
        self.now = now;
        if served == Served::Released {
            self.release_served();
        }
        let answer = work(self, machine);
        self.settle(machine);
        answer
    }

    /// Has changes take effect, and takes in those that could not.
    pub(crate) fn settle(&mut self, machine: &mut dyn Machine) {
        machine.settle();
        self.absorb_setbacks(machine);
    }
}
