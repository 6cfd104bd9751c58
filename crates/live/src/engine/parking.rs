//! Parking: taking the program out of memory and bringing back what it had, by
//! [`TaskMemory`](tidemark_tasks::TaskMemory), and holding its [threads](crate::park).

use super::Engine;
use crate::parts::intake::Arrival;
use crate::parts::trouble::{pid, say};
use crate::parts::units::{now, page_of, size};
use crate::sys::{program, thread};

impl Engine {
    /// Parks the program, or lets it go on, as the supervisor wants it by now.
    pub(super) fn follow_parking(&mut self) {
        let is_wanted = self.line.has_supervisor() && self.line.process().is_suspended();
        let (now, space) = (self.now, self.space);
        match (self.task.is_parked(), is_wanted) {
            (false, true) => self.park(),
            (true, false) => self.unpark(),
            // What was on its way, or was brought for a restless thread.
            (true, true) if now >= self.turns.next_tick() => {
                let (vm, machine) = (&mut self.vm, &mut self.machine);
                self.task.handle_arrivals(now, vm, machine, &[space]);
            }
            (true, true) | (false, false) => {}
        }
    }

    /// Serves the faults that have arrived, or holds them.
    pub(super) fn serve_unless_parked(&mut self) {
        if !self.task.is_parked() {
            return self.serve_arrived(Engine::serve_near);
        }
        for _ in 0..self.intake.faults_mut().look_at_all() {
            match self.intake.faults_mut().next_arrived() {
                Some(arrival) if self.is_restless(&arrival) || self.is_beside(&arrival) => {
                    self.serve(arrival);
                }
                Some(arrival) => self.intake.faults_mut().put_back(arrival),
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
        self.intake.is_restless(arrival, at)
    }

    fn park(&mut self) {
        self.place.let_go(self.now);
        self.intake.begin_holding();
        let needed = self.line.process().needed();
        let (vm, machine, spaces) = (&mut self.vm, &mut self.machine, &[self.space]);
        self.task
            .handle_suspend((self.now, needed), vm, machine, spaces);
    }

    fn unpark(&mut self) {
        self.task
            .handle_resume(self.now, &mut self.vm, &mut self.machine);
        self.go_on_alone();
        self.intake.end_holding(now());
    }

    /// Without a supervisor this program would keep the least that it was left with: it takes what
    /// it had before, as far as no process has that.
    fn go_on_alone(&mut self) {
        let Some(frames) = self.line.go_on_alone() else {
            return;
        };
        say(&format!(
            "{} ({}): `tidemark run` is gone; this process was suspended, and goes on in {}",
            self.setup.name,
            pid(),
            size(frames.into()),
        ));
    }
}
