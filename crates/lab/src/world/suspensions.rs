//! Suspensions: whole tasks that wait out of memory, as under `tidemark run`.
//!
//! Where each program has a memory of its own ([`Scenario::is_divided`]), such a memory is a task
//! of the core's [`TaskControl`], which is asked as live: at each interval at which memory is
//! divided, and when a task has ended. A task that is suspended has no processor, its pages leave,
//! and what it may have falls with what it still has. One that goes on is given what it needed, and
//! what it had is brought back as there are frames. Processes that were forked and have executed
//! nothing are of their parent's task.
//!
//! Where all processes share one memory, load control is inside the core: see
//! [`kernel`](super::kernel).
//!
//! [`Scenario::is_divided`]: super::Scenario::is_divided
//! [`TaskControl`]: tidemark_core::load::tasks::TaskControl

use tidemark_core::id::SpaceId;
use tidemark_core::load::tasks::{Order, Standing};
use tidemark_core::time::Time;

use super::engine::World;
use super::memory::Memory;
use super::outcome::Suspension;
use super::process::Process;

impl World<'_> {
    /// Has load control decide which tasks run, and does what it says. True if it said anything.
    pub(super) fn control_load(&mut self, now: u64) -> bool {
        let Some(mut control) = self.shares.control.take() else {
            return false;
        };
        let tasks: Vec<Standing> = self
            .memories()
            .filter(|memory| memory.is_managed && memory.processes > 0)
            .map(|memory| self.standing_of(memory))
            .collect();
        let total = self.scenario.memory_pages - self.scenario.wired_pages;
        let resident = tasks.iter().map(|task| task.resident).sum();
        let orders = control.ask(Time(now), total, resident, &tasks);
        for &Order { task, is_suspended } in &orders {
            if self.turn_to(task.0) && self.memory.parked.is_suspended != is_suspended {
                self.set_suspended(is_suspended, control.demand(task), now);
            }
        }
        self.shares.control = Some(control);
        self.hold_all_down(now);
        !orders.is_empty()
    }

    /// Tells load control that nobody uses the memory at hand any more.
    pub(super) fn note_task_end(&mut self) {
        let Some(control) = &mut self.shares.control else {
            return;
        };
        let counters = self.memory.vm.counters();
        let (page_outs, requests) = (counters.page_outs, counters.page_out_requests);
        control.note_end(SpaceId(self.memory.number), page_outs, requests);
        self.shares.has_lost = true;
    }

    fn standing_of(&self, memory: &Memory) -> Standing {
        let counters = memory.vm.counters();
        let (mut faults, mut page_ins) = (0, 0);
        let (mut waited_ns, mut ran_ns, mut system_ns) = (0, 0, 0);
        for (space, owner) in memory.owners.iter().enumerate() {
            let Some(owner) = *owner else { continue };
            let counted = memory.vm.count_faults(SpaceId(space as u32));
            let (all, fetching) = counted.unwrap_or_default();
            (faults, page_ins) = (faults + all, page_ins + fetching);
            let outcome = &self.processes[owner].outcome;
            waited_ns += outcome.page_wait_ns;
            ran_ns += outcome.user_ns;
            system_ns += outcome.system_ns;
        }
        Standing {
            task: SpaceId(memory.number),
            faults,
            page_ins,
            waited_ns,
            page_outs: counters.page_outs,
            page_out_requests: counters.page_out_requests,
            resident: memory.in_use(),
            pages: memory.size(),
            ran_ns,
            paged_ns: system_ns,
            processor_ns: ran_ns + system_ns,
            is_suspended: memory.parked.is_suspended,
            is_spared: false,
        }
    }

    /// Suspends the task whose memory is at hand, or lets it go on.
    fn set_suspended(&mut self, is_suspended: bool, demand: u64, now: u64) {
        match is_suspended {
            true => self.memory.park(now, demand),
            false => self.memory.unpark(now),
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

    /// Has those that are suspended give up what was on its way to them.
    fn hold_all_down(&mut self, now: u64) {
        for number in self.memory_numbers() {
            self.turn_to(number);
            let parked = &self.memory.parked;
            if parked.is_suspended && parked.arrivals != self.memory.vm.counters().arrivals() {
                self.memory.hold_down(now);
                self.finish_work(now);
            }
        }
    }

    fn finish_work(&mut self, now: u64) {
        let cost_ns = self.conclude(now);
        self.charge_nobody(now, cost_ns);
    }
}
