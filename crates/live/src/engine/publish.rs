//! Showing counters: the record in shared memory is brought up to date at the end of each turn.

use std::sync::atomic::Ordering::Relaxed;

use super::Engine;
use crate::meters::{self, Metered};
use crate::parts::trouble::say;
use crate::parts::units::now;
use crate::shared::{Counter, State};
use crate::store::compressed::Compressed;
use crate::sys::{memory, program};

impl Engine {
    /// Writes all counters into this process's record.
    pub(super) fn publish(&mut self) {
        let in_use = self.in_use();
        let freeze = self.intake.freeze_mut();
        freeze.note_in_use(in_use, self.task.shared_pages());
        self.copy_counters();
        self.count_pinned();
        self.publish_sizes();
        let record = self.line.process();
        self.telemetry.show(&record);
        if meters::is_started() {
            for lock in Metered::ALL {
                record.set_lock(lock, lock.counts());
            }
        }
        let resident = u64::from(self.frames_charged());
        if record.counter(Counter::FramesResident).load(Relaxed) != resident {
            // A process that has ended has given its record back before its engine leaves.
            if record.pid() == self.line.own_process() && record.state() == State::Running {
                record.set_resident(resident);
            }
        }
        record.set_understood(self.task.budget());
        self.look_for_shortage();
    }

    /// Adds to the histogram of the sizes to which pages were compressed.
    fn publish_sizes(&mut self) {
        let compressed = self.store.compressed_mut();
        let Some(sizes) = compressed.map(Compressed::take_sizes) else {
            return;
        };
        let record = self.line.process();
        for (bucket, pages) in sizes.into_iter().enumerate() {
            if pages > 0 {
                record.record_sizes(bucket, pages);
            }
        }
    }

    fn copy_counters(&mut self) {
        for (counter, count) in [
            (Counter::FramesBudget, u64::from(self.task.budget())),
            (
                Counter::ManagedBytes,
                self.addresses.managed().bytes() as u64,
            ),
            (
                Counter::ManagedRegions,
                self.addresses.managed().len() as u64,
            ),
        ] {
            self.telemetry.set(counter, count);
        }
        let charged = self.frames_charged();
        let counting = (&self.vm, &self.store, &self.machine);
        self.telemetry.take_counts_over(counting, charged);
    }

    /// Counts the memory that is this engine's own, in bytes: all of it but the frames and the
    /// compressed pages.
    pub(super) fn measure_own(&mut self) -> u64 {
        let pool = self.machine.pool();
        let frames = (pool.start(), pool.start() + pool.bytes());
        let compressed = self.store.compressed().map_or(frames, Compressed::range);
        // One range may hold all that is the engine's own, these among it.
        let around = |(start, end): (usize, usize), hole: (usize, usize)| {
            [(start, end.min(hole.0)), (start.max(hole.1), end)]
        };
        let own = memory::own_ranges()
            .flat_map(|range| around(range, frames))
            .flat_map(|range| around(range, compressed))
            .filter(|&(start, end)| start < end);
        let pages = self.machine.pages();
        let anonymous = |(start, end)| pages.anonymous_bytes(start, end).ok();
        let bytes = own.filter_map(anonymous).sum::<usize>() as u64;
        let most = self.telemetry.get(Counter::EngineBytes).max(bytes);
        self.telemetry.set(Counter::EngineBytes, most);
        bytes
    }

    /// The pages that count against the budget, in frames and compressed. What could
    /// not be given up before a fork is shared with the other process, and charged to neither.
    pub(super) fn frames_charged(&self) -> u32 {
        self.claimed().saturating_sub(self.intake.freeze().shared())
    }

    /// The program ends in an orderly way: writes down what is still in memory.
    pub(super) fn finish(&mut self) {
        self.end_neighbours();
        self.measure_unmanaged();
        self.publish();
        self.telemetry.flush_decisions();
        if let Some(path) = self.setup.counters.clone() {
            let began_ns = self.line.process().start_ns();
            let elapsed_ns = now().0.saturating_sub(began_ns);
            self.telemetry.write_counters(&path, elapsed_ns);
        }
        self.tell_setbacks(true);
        self.tell_of_pins();
        self.tell_of_kept();
        self.report_if_verbose("ends");
        if !program::is_apart() {
            let socket = self.setup.control.as_deref();
            self.line.remove_folder_of_the_dead(socket);
        }
    }

    /// Says what went wrong with a policy from a file: nothing else would show it.
    pub(super) fn tell_setbacks(&self, is_end: bool) {
        let policy = &self.setup.policy;
        if let Some(setbacks) = tidemark_plugin::take_news(policy, is_end) {
            say(&format!("`{policy}`: {setbacks}"));
        }
    }
}
