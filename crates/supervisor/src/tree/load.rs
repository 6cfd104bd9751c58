//! Load control: which tasks run when their memory does not fit together.
//!
//! The core's [`TaskControl`] is asked, the same code as in the lab, at each interval, and when a
//! task has ended. A task's number is its place in the table of processes. Its orders are carried
//! out by suspending and resuming tasks.
//!
//! The program that the run began with is spared while it has the terminal: load control sees
//! neither it nor the memory that it needs.

use std::sync::atomic::Ordering::Relaxed;

use tidemark_core::id::SpaceId;
use tidemark_core::load::registry::Entry;
use tidemark_core::load::tasks::{Order, Standing, TaskControl};
use tidemark_core::load::unlimited;
use tidemark_core::time::Time;
use tidemark_live::shared::{Counter, Process, ProcessIndex};

use super::outage::By;
use super::size::pages_of;
use super::{Member, Tree};
use crate::foreground;
use crate::host;
use crate::processor_time;
use crate::time::now_ns;

/// A load control of tasks.
pub(super) struct Control {
    tasks: TaskControl,
    /// The task that is spared.
    spared: Option<ProcessIndex>,
}

impl Control {
    /// Learns that the process of that record has ended.
    fn note_end(&mut self, index: ProcessIndex, process: &Process<'_>) {
        let page_outs = count(process, Counter::PageOuts);
        let requests = count(process, Counter::PageOutRequests);
        self.tasks.note_end(SpaceId(index.0), page_outs, requests);
    }

    /// The frames that the process of that record needs, as far as that is known.
    pub(super) fn demand(&self, index: ProcessIndex) -> u64 {
        self.tasks.demand(SpaceId(index.0))
    }
}

impl Tree {
    /// Has that load control decide which tasks run.
    pub fn control_load_by(&mut self, entry: &Entry) {
        // One that never says anything need not be asked.
        let is_none = entry.description.name == unlimited::DESCRIPTION.name;
        let built = (!is_none).then(|| entry.build(&[]));
        let built = built.map(|it| it.expect("knobs have their defaults"));
        self.control = built.map(|load| Control {
            tasks: TaskControl::new(load, host::processors() as u32),
            spared: None,
        });
    }

    /// Has load control know of a process that has ended, whose wait is over if it had one.
    pub(super) fn note_ended_task(&mut self, index: ProcessIndex, pid: u32) {
        self.note_turn(pid, false);
        if let Some(control) = &mut self.control {
            control.note_end(index, &self.shared.process(index));
        }
    }

    /// Asks load control, and does what it says.
    pub(super) fn control_load(&mut self) {
        let Some(mut control) = self.control.take() else {
            return;
        };
        self.spare_foreground(&mut control);
        let orders = self.ask(&mut control);
        self.control = Some(control);
        let is_any = !orders.is_empty();
        for Order { task, is_suspended } in orders {
            let index = Some(ProcessIndex(task.0));
            let place = self.members.iter().position(|it| it.record == index);
            if let Some(place) = place {
                self.set_suspended(place, By::Control, is_suspended);
            }
        }
        if is_any {
            self.divide(tidemark_partition::Occasion::Change);
        }
    }

    /// Finds out whether the program that the run began with has the terminal, and lets it go on if
    /// so.
    fn spare_foreground(&mut self, control: &mut Control) {
        let main = self.strangers.main();
        let place = self.members.iter().position(|it| Some(it.peer.pid) == main);
        let place = place.filter(|&place| foreground::holds(self.members[place].peer.pid));
        let spared = place.and_then(|place| self.members[place].record);
        if control.spared == spared {
            return;
        }
        control.spared = spared;
        if let Some((place, index)) = place.zip(spared) {
            control.tasks.release(SpaceId(index.0));
            self.set_suspended(place, By::Control, false);
        }
    }

    fn ask(&self, control: &mut Control) -> Vec<Order> {
        let tasks: Vec<Standing> = self
            .members
            .iter()
            .filter_map(|member| self.standing_of(member, control.spared))
            .collect();
        let total = frames(self.shared.frames_total());
        let resident = frames(self.shared.frames_resident());
        control.tasks.ask(Time(now_ns()), total, resident, &tasks)
    }

    fn standing_of(&self, member: &Member, spared: Option<ProcessIndex>) -> Option<Standing> {
        let index = member.record?;
        let process = self.shared.process(index);
        let count = |counter| count(&process, counter);
        Some(Standing {
            task: SpaceId(index.0),
            faults: count(Counter::Faults),
            page_ins: count(Counter::PageInFaults),
            waited_ns: count(Counter::FetchStallNs),
            page_outs: count(Counter::PageOuts),
            page_out_requests: count(Counter::PageOutRequests),
            resident: frames(count(Counter::FramesResident)),
            pages: frames(pages_of(&self.shared, index)),
            ran_ns: count(Counter::ProgramNs),
            paged_ns: count(Counter::EngineProcessorNs),
            processor_ns: processor_time::ns_of_program(
                member.peer.pid,
                &process,
                member.connection.is_apart(),
            ),
            is_suspended: member.suspension.is_any(),
            is_spared: spared == Some(index),
        })
    }
}

fn count(process: &Process<'_>, counter: Counter) -> u64 {
    process.counter(counter).load(Relaxed)
}

fn frames(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
