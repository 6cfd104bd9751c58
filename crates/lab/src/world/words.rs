//! Words: the memories of a divided world, as the steward reads and writes them. What is written is
//! done at once.

use tidemark_core::time::Time;
use tidemark_tasks::{Counts, Reading, Record, Records, Steward};

use super::engine::World;
use super::memory::Memory;

/// A world at a time.
struct Words<'w, 'a> {
    world: &'w mut World<'a>,
    now: u64,
}

impl Words<'_, '_> {
    fn memory(&self, record: Record) -> Option<&Memory> {
        self.world.memory_of(record.0)
    }

    /// Takes the memory of a record to hand. False if it is gone.
    fn turn_to(&mut self, record: Record) -> bool {
        self.world.turn_to(record.0)
    }
}

impl World<'_> {
    /// Has the steward hear that something is new, or that time has passed.
    pub(super) fn tell_steward(&mut self, steward: &mut Steward, now: u64) {
        let mut words = Words { world: self, now };
        match steward.is_interval_over(Time(now)) {
            true => steward.handle_tick(Time(now), &mut words),
            false => steward.handle_change(Time(now), &mut words),
        }
    }

    /// Adds what a process has come to that uses a memory.
    pub(super) fn add_counts(&self, memory: &Memory, process: usize, counts: &mut Counts) {
        let process = &self.processes[process];
        let counted = process
            .space
            .and_then(|space| memory.vm.count_faults(space));
        let (faults, page_in_faults) = counted.unwrap_or_default();
        counts.faults += faults;
        counts.page_in_faults += page_in_faults;
        counts.waited_ns += process.outcome.page_wait_ns;
        counts.ran_ns += process.outcome.user_ns;
        counts.paged_ns += process.outcome.system_ns;
    }
}

impl Records for Words<'_, '_> {
    fn frames_total(&self) -> u64 {
        (self.world.scenario.memory_pages - self.world.scenario.wired_pages).into()
    }

    fn frames_resident(&self) -> u64 {
        let managed = self.world.memories().filter(|memory| memory.is_managed);
        managed.map(|memory| u64::from(memory.in_use())).sum()
    }

    // No memory takes frames by itself: it asks for what none has.
    fn hold_unassigned(&mut self) {}

    fn release_unassigned(&mut self, _: u64) {}

    fn read(&self, record: Record) -> Reading {
        self.memory(record).map(Memory::reading).unwrap_or_default()
    }

    fn change_budget(&mut self, record: Record, _: u64, to: u64) -> bool {
        if self.turn_to(record) {
            self.world.set_limit(to as u32, self.now);
        }
        true
    }

    fn forget_asking(&mut self, record: Record) {
        if self.turn_to(record) {
            self.world.memory.forget_asking();
        }
    }

    fn suspend(&mut self, record: Record, needed: u64) {
        if self.turn_to(record) {
            self.world.set_suspended(Some(needed), self.now);
        }
    }

    fn resume(&mut self, record: Record) {
        if self.turn_to(record) {
            self.world.set_suspended(None, self.now);
        }
    }

    // One stays in its parent's memory until it executes something.
    fn find_children(&mut self) -> Vec<Record> {
        Vec::new()
    }

    fn counts(&self, record: Record, _: bool) -> Counts {
        let Some(memory) = self.memory(record) else {
            return Counts::default();
        };
        let counters = memory.vm.counters();
        let mut counts = Counts {
            soft_faults: counters.soft_faults,
            page_ins: counters.page_ins,
            page_outs: counters.page_outs,
            page_out_requests: counters.page_out_requests,
            ..memory.past
        };
        for owner in memory.owners.iter().flatten() {
            self.world.add_counts(memory, *owner, &mut counts);
        }
        // What paging takes is its engine's, live.
        counts.processor_ns = counts.ran_ns;
        counts
    }

    fn size(&self, record: Record) -> u64 {
        self.memory(record).map_or(0, |memory| memory.size().into())
    }
}
