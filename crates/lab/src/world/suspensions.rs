//! Suspensions: whole tasks that wait out of memory, as under `tidemark run`.
//!
//! Where each program has a memory of its own ([`Scenario::is_divided`]), such a memory is a task
//! of the steward's. A task that is suspended has no processor, and its pages leave. What one that
//! goes on had is brought back as there are frames. Processes that were forked and have executed
//! nothing are of their parent's task.
//!
//! Where all processes share one memory, load control is inside the core: see
//! [`kernel`](super::kernel).
//!
//! [`Scenario::is_divided`]: super::Scenario::is_divided

use tidemark_core::time::Time;

use super::engine::World;
use super::outcome::Suspension;
use super::process::Process;

impl World<'_> {
    /// Suspends the task whose memory is at hand, which needs this number of frames when it goes
    /// on, or lets it go on.
    pub(super) fn set_suspended(&mut self, needed: Option<u64>, now: u64) {
        let is_suspended = needed.is_some();
        let spaces = self.memory.spaces();
        let (task_memory, vm, tables) = self.memory.parts();
        match needed {
            Some(needed) => task_memory.handle_suspend((Time(now), needed), vm, tables, &spaces),
            None => task_memory.handle_resume(Time(now), vm, tables),
        }
        let owners: Vec<usize> = self.memory.owners.iter().flatten().copied().collect();
        let first = owners.first().copied().unwrap_or_default();
        self.suspensions.push(Suspension {
            time_ns: now,
            process: self.rank_of(first),
            is_suspended,
        });
        for owner in owners {
            match is_suspended {
                true => self.suspend(owner, now),
                false => self.resume(owner, now),
            }
        }
        self.finish_work(now);
    }

    /// The place of a process among all in the order of their programs and process ids.
    fn rank_of(&self, process: usize) -> usize {
        let key = |process: &Process<'_>| (process.program, process.course.pid);
        let own = key(&self.processes[process]);
        let others = self.processes.iter();
        others.filter(|other| key(other) < own).count()
    }

    /// Takes from suspended processes the pages that were on their way to them.
    pub(super) fn hold_all_down(&mut self, now: u64) {
        for number in self.memory_numbers() {
            self.turn_to(number);
            let spaces = self.memory.spaces();
            let (task_memory, vm, tables) = self.memory.parts();
            if task_memory.handle_arrivals(Time(now), vm, tables, &spaces) {
                self.finish_work(now);
            }
        }
    }

    fn finish_work(&mut self, now: u64) {
        let cost_ns = self.conclude(now);
        self.charge_nobody(now, cost_ns);
    }
}
