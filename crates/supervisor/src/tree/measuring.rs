//! Measuring: the use that each task makes of its memory, by which memory is divided.
//!
//! Engines count page-ins and minor faults anyway. The processor time that distinguishes idle
//! tasks, and the size of a task, are looked up only while memory is scarce: before, no task must
//! give up used frames.

use std::sync::atomic::Ordering::Relaxed;

use tidemark_live::shared::{Counter, Shared};
use tidemark_partition::FLOOR_FRAMES;
use tidemark_partition::measures::Counts;

use super::size::pages_of;
use super::{Member, Tree, observation};
use crate::processor_time;
use crate::time::now_ns;

impl Tree {
    /// Measures every task.
    pub(super) fn measure(&mut self) {
        let shared = &self.shared;
        let is_scarce = shared.frames_resident() * 4 >= shared.frames_total() * 3;
        for member in &mut self.members {
            member.measure(shared, is_scarce);
        }
    }

    /// Forgets who wants more. Who still does says so again.
    pub(super) fn forget_asking(&self) {
        let records = self.members.iter().filter_map(|member| member.record);
        records.for_each(|index| self.shared.process(index).forget_asking());
    }
}

impl Member {
    fn measure(&mut self, shared: &Shared, is_scarce: bool) {
        let Some(index) = self.record else { return };
        let process = shared.process(index);
        let count = |counter| process.counter(counter).load(Relaxed);
        let resident = count(Counter::FramesResident);
        // What the least of tasks have is not taken from them, whatever they do.
        let is_looked_at = is_scarce && resident > FLOOR_FRAMES;
        self.measures = self.meter.note(Counts {
            pages_moved: count(Counter::PageIns) + count(Counter::PageOuts),
            page_ins: count(Counter::PageInFaults),
            minor_faults: count(Counter::SoftFaults),
            processor_ns: is_looked_at.then(|| {
                processor_time::ns_of_program(self.peer.pid, &process, self.connection.is_apart())
            }),
            resident,
            size: match is_scarce {
                true => pages_of(shared, index),
                false => resident,
            },
        });
        self.pace.note(now_ns(), observation::counts_of(&process));
    }
}
