//! The division of memory: the memories that are not at hand, and the steward that says how many
//! frames each has. [`shares`](super::shares) carries it out.

use std::collections::BTreeMap;

use tidemark_core::load::tasks::TaskControl;
use tidemark_core::time::Time;
use tidemark_tasks::{Remains, Steward, TaskId};

use super::memory::{Memory, Sums};
use super::scenario::Scenario;

/// The memories that are not at hand, and how far their division is.
pub(super) struct Division {
    pub(super) parked: BTreeMap<u32, Memory>,
    /// The sums of those that are gone.
    pub(super) past: Sums,
    pub(super) last_number: u32,
    /// Threads whose processes have no memory yet, since when, and the numbers of their tasks once
    /// the steward has heard of them.
    pub(super) newcomers: Vec<(usize, u64, Option<TaskId>)>,
    /// Tasks of which the steward has not heard that they are gone.
    pub(super) gone: Vec<(TaskId, Remains)>,
    /// The time at which frames are divided, if a process has come, gone or asked.
    pub(super) asked_ns: Option<u64>,
    /// Decides who has how many frames, and who runs. `None` while it is at work.
    pub(super) steward: Option<Steward>,
}

impl Division {
    /// One memory, and a load control of those to come.
    pub(super) fn new(scenario: &Scenario, control: Option<TaskControl>) -> Division {
        let mut steward = Steward::new(scenario.divider, Time(0));
        steward.begin_control(control);
        Division {
            parked: BTreeMap::new(),
            past: Sums::default(),
            last_number: 0,
            newcomers: Vec::new(),
            gone: Vec::new(),
            asked_ns: None,
            steward: Some(steward),
        }
    }

    /// Puts a memory aside; one that no process uses is gone.
    pub(super) fn park(&mut self, memory: Memory) {
        if memory.processes > 0 {
            self.parked.insert(memory.number, memory);
            return;
        }
        memory.check();
        self.past.add(&memory);
    }
}
