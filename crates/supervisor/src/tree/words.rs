//! Words: the records of the shared memory, as the steward reads and writes them.

use std::sync::atomic::Ordering::Relaxed;

use tidemark_live::shared::{Counter, Process, ProcessIndex, Shared, State};
use tidemark_tasks::{Counts, Reading, Record, Records};

use super::Member;
use super::size::pages_of;
use crate::connection::Connection;
use crate::processor_time;

/// The shared memory of a run, with who is there.
pub(super) struct Words<'a> {
    pub(super) shared: &'a Shared,
    pub(super) members: &'a [Member],
    /// The records of processes that are gone, whose engines still use them.
    pub(super) late: &'a [(Connection, ProcessIndex)],
}

impl Words<'_> {
    fn process(&self, record: Record) -> Process<'_> {
        self.shared.process(ProcessIndex(record.0))
    }

    fn processor_ns(&self, record: Record) -> u64 {
        let index = ProcessIndex(record.0);
        let member = self.members.iter().find(|it| it.record == Some(index));
        member.map_or(0, |member| {
            let (pid, is_apart) = (member.peer.pid, member.connection.is_apart());
            processor_time::ns_of_program(pid, &self.process(record), is_apart)
        })
    }
}

impl Records for Words<'_> {
    fn frames_total(&self) -> u64 {
        self.shared.frames_total()
    }

    fn frames_resident(&self) -> u64 {
        self.shared.frames_resident()
    }

    fn hold_unassigned(&mut self) {
        self.shared.hold_unassigned();
    }

    fn release_unassigned(&mut self, frames: u64) {
        self.shared.release_unassigned(frames);
    }

    fn read(&self, record: Record) -> Reading {
        let process = self.process(record);
        let count = |counter| process.counter(counter).load(Relaxed);
        // In this order: see `Records::read`.
        let budget = process.budget().into();
        let understood = process.understood();
        Reading {
            budget,
            understood,
            resident: count(Counter::FramesResident),
            beside: count(Counter::FramesBeside),
            asked: process.asked(),
        }
    }

    fn change_budget(&mut self, record: Record, from: u64, to: u64) -> bool {
        self.process(record).change_budget(from as u32, to as u32)
    }

    fn forget_asking(&mut self, record: Record) {
        self.process(record).forget_asking();
    }

    fn suspend(&mut self, record: Record, needed: u64) {
        let process = self.process(record);
        process.set_needed(needed);
        process.set_suspended(true);
    }

    fn resume(&mut self, record: Record) {
        self.process(record).set_suspended(false);
    }

    fn find_children(&mut self) -> Vec<Record> {
        let reserved = self.shared.processes();
        let reserved = reserved.filter(|(_, process)| process.state() == State::Reserved);
        let is_late = |index| self.late.iter().any(|&(_, late)| late == index);
        reserved
            .filter(|&(index, _)| !is_late(index))
            .map(|(index, _)| Record(index.0))
            .collect()
    }

    fn counts(&self, record: Record, with_processor: bool) -> Counts {
        let process = self.process(record);
        let count = |counter| process.counter(counter).load(Relaxed);
        Counts {
            faults: count(Counter::Faults),
            page_in_faults: count(Counter::PageInFaults),
            soft_faults: count(Counter::SoftFaults),
            page_ins: count(Counter::PageIns),
            page_outs: count(Counter::PageOuts),
            page_out_requests: count(Counter::PageOutRequests),
            waited_ns: count(Counter::FetchStallNs),
            ran_ns: count(Counter::ProgramNs),
            paged_ns: count(Counter::EngineProcessorNs),
            processor_ns: match with_processor {
                true => self.processor_ns(record),
                false => 0,
            },
        }
    }

    fn size(&self, record: Record) -> u64 {
        pages_of(self.shared, ProcessIndex(record.0))
    }
}

#[cfg(test)]
mod tests {
    use tidemark_core::time::Time;
    use tidemark_partition::Divider;
    use tidemark_tasks::Steward;

    use super::*;

    /// Between a fork and what the parent's engine publishes next.
    #[test]
    fn a_parent_that_forks_is_not_given_the_part_of_its_child_again() {
        const TOTAL: u64 = 4096;
        let shared = Shared::create(1, TOTAL).unwrap();
        let mut steward = Steward::new(Divider::default(), Time(0));
        let mut start = |budget: u32, resident| {
            let index = shared.claim().unwrap();
            let process = shared.process(index);
            process.start(index.0 + 1, 1, "sheep", 0);
            process.set_budget(budget);
            process.set_resident(resident);
            process.set_understood(budget);
            steward.handle_taken_over(Time(0), None, Some(Record(index.0)));
            process
        };
        // The other uses little of what it has, and has not understood yet that it is to have less.
        let (parent, _) = (start(2800, 700), start(1296, 200));
        let child = shared.process(shared.claim().unwrap());
        assert!(parent.endow(&child, 700, false).is_some());
        parent.ask(TOTAL);
        let mut words = Words {
            shared: &shared,
            members: &[],
            late: &[],
        };
        steward.handle_change(Time(1), &mut words);
        let held = |process: Process<'_>| u64::from(process.budget()).max(process.understood());
        let held: u64 = shared.processes().map(|(_, process)| held(process)).sum();
        assert!(held <= TOTAL, "{held} frames of {TOTAL}");
    }
}
