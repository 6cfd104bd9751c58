//! Load control: which tasks run when their memory does not fit together.
//!
//! The core's [`TaskControl`] is asked at each interval, and when a task has ended. A task's number
//! is the place of its record. Its verdict is carried out by suspending tasks and having them go
//! on.
//!
//! One task can be spared: the one that has the terminal. Load control sees neither it nor the
//! memory that it needs.

use alloc::vec::Vec;

use tidemark_core::id::SpaceId;
use tidemark_core::load::tasks::{Order, Standing, TaskControl};
use tidemark_core::time::Time;

use super::member::By;
use super::{Remains, Steward, TaskId};
use crate::records::{PAGES_MAX, Record, Records};

/// A load control of tasks.
#[derive(Debug)]
pub(super) struct Control {
    tasks: TaskControl,
    /// The task that is spared.
    spared: Option<TaskId>,
}

impl Control {
    pub(super) fn new(tasks: TaskControl) -> Control {
        Control {
            tasks,
            spared: None,
        }
    }

    /// Learns that the task of that record has ended.
    pub(super) fn note_end(&mut self, record: Record, remains: &Remains) {
        let (page_outs, requests) = (remains.page_outs, remains.page_out_requests);
        self.tasks.note_end(SpaceId(record.0), page_outs, requests);
    }

    /// The frames that the task of that record needs, as far as that is known.
    pub(super) fn demand(&self, record: Record) -> u64 {
        self.tasks.demand(SpaceId(record.0))
    }
}

impl Steward {
    /// Returns true if load control decides which tasks run.
    pub fn is_controlled(&self) -> bool {
        self.control.is_some()
    }

    /// Learns which task is to be spared from now on, and has it go on.
    pub fn handle_foreground(
        &mut self,
        now: Time,
        records: &mut dyn Records,
        task: Option<TaskId>,
    ) {
        let place = task.and_then(|task| self.find(task));
        let place = place.filter(|&place| self.members[place].record.is_some());
        let spared = place.map(|place| self.members[place].task);
        let Some(control) = &mut self.control else {
            return;
        };
        if control.spared == spared {
            return;
        }
        control.spared = spared;
        if let Some(place) = place {
            let record = self.members[place].record.expect("it has one");
            control.tasks.release(SpaceId(record.0));
            self.set_suspended(now, records, place, By::Control, false);
        }
    }

    /// Asks load control, and does what it says. True if it said anything.
    pub(super) fn control_load(&mut self, now: Time, records: &mut dyn Records) -> bool {
        self.has_lost = false;
        let Some(control) = &mut self.control else {
            return false;
        };
        let spared = control.spared;
        let members = self.members.iter_mut();
        let tasks: Vec<Standing> = members
            .filter_map(|member| {
                let is_spared = spared == Some(member.task);
                member.standing(records, is_spared)
            })
            .collect();
        let frames = |count: u64| count.min(PAGES_MAX) as u32;
        let (total, resident) = (records.frames_total(), records.frames_resident());
        let (total, resident) = (frames(total), frames(resident));
        let orders = control.tasks.ask(now, total, resident, &tasks);
        let is_any = !orders.is_empty();
        for Order { task, is_suspended } in orders {
            let record = Some(Record(task.0));
            let place = self.members.iter().position(|it| it.record == record);
            if let Some(place) = place {
                self.set_suspended(now, records, place, By::Control, is_suspended);
            }
        }
        is_any
    }
}
