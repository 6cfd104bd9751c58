//! Showing counters: the record in shared memory is brought up to date at the end of each turn.

use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;

use tidemark_core::counters::{Counters, Kind, Scope};
use tidemark_core::id::PAGE_BYTES;

use super::Engine;
use crate::control;
use crate::meters::{self, Metered};
use crate::parts::trouble::say;
use crate::parts::units::now;
use crate::shared::{Counter, State};
use crate::store::Tally;
use crate::store::compressed::Compressed;
use crate::sys::{memory, program};

/// Counts that are the engine's own. Those of the core and the store are copied when published.
pub(super) struct Gauges {
    counts: [u64; Counter::ALL.len()],
    /// True if the processor time is counted of all that was done.
    pub(super) is_time_counted: bool,
}

impl Gauges {
    pub(super) fn new() -> Gauges {
        Gauges {
            counts: [0; Counter::ALL.len()],
            is_time_counted: false,
        }
    }

    pub(super) fn add(&mut self, counter: Counter, count: u64) {
        self.counts[counter as usize] += count;
    }

    pub(super) fn set(&mut self, counter: Counter, count: u64) {
        self.counts[counter as usize] = count;
    }

    pub(super) fn get(&self, counter: Counter) -> u64 {
        self.counts[counter as usize]
    }
}

/// The counts at the moment of the fork that made this process.
#[derive(Default)]
pub(super) struct Before {
    core: Counters,
    store: Tally,
    setbacks: u64,
    is_forked: bool,
}

impl Before {
    /// The counts of `engine` as they are.
    pub(super) fn of(engine: &Engine) -> Before {
        Before {
            core: engine.vm.counters().clone(),
            store: engine.store.tally(),
            setbacks: engine.setbacks(),
            is_forked: true,
        }
    }
}

impl Engine {
    /// Writes all counters into this process's record.
    pub(super) fn publish(&mut self) {
        self.freeze
            .note_in_use(self.in_use(), self.task.shared_pages());
        self.copy_counters();
        self.count_pinned();
        self.publish_sizes();
        let record = self.shared.process(self.record());
        for counter in Counter::ALL {
            if !matches!(counter, Counter::FramesResident | Counter::FramesBudget) {
                record
                    .counter(counter)
                    .store(self.gauges.get(counter), Relaxed);
            }
        }
        if meters::is_started() {
            for lock in Metered::ALL {
                record.set_lock(lock, lock.counts());
            }
        }
        let resident = u64::from(self.frames_charged());
        if record.counter(Counter::FramesResident).load(Relaxed) != resident {
            // A process that has ended has given its record back before its engine leaves.
            if record.pid() == self.own_process && record.state() == State::Running {
                record.set_resident(resident);
            }
        }
        record.set_understood(self.task.budget());
        self.look_for_shortage();
    }

    /// The writes to the store under way: pages, and segments of compressed ones.
    pub(super) fn stores_under_way(&self) -> u64 {
        u64::from(self.vm.laundry()) + u64::from(self.store.segments_leaving())
    }

    /// Adds to the histogram of the sizes to which pages were compressed.
    fn publish_sizes(&mut self) {
        let compressed = self.store.compressed_mut();
        let Some(sizes) = compressed.map(Compressed::take_sizes) else {
            return;
        };
        let record = self.shared.process(self.record());
        for (bucket, pages) in sizes.into_iter().enumerate() {
            if pages > 0 {
                record.record_sizes(bucket, pages);
            }
        }
    }

    fn copy_counters(&mut self) {
        let past = &self.before;
        let (core, store) = (self.vm.counters().since(&past.core), self.store.tally());
        for counter in Counter::ALL {
            if let (Kind::Sum, Some(count)) = (counter.kind(), core.get(counter)) {
                self.gauges.set(counter, count);
            }
        }
        let (read, written) = (
            store.read - past.store.read,
            store.written - past.store.written,
        );
        let (packed, before) = (store.compressed, past.store.compressed);
        let peak = self
            .store
            .compressed()
            .map_or(0, Compressed::pages_held_peak);
        for (counter, count) in [
            (
                Counter::CompressedPages,
                packed.compressed - before.compressed,
            ),
            (
                Counter::CompressedBytes,
                packed.compressed_bytes - before.compressed_bytes,
            ),
            (
                Counter::IncompressiblePages,
                packed.refused - before.refused,
            ),
            (
                Counter::DecompressedPages,
                packed.decompressed - before.decompressed,
            ),
            (Counter::ReadAheadUnknown, core.read_ahead_unknown()),
            (Counter::CompressedMemoryPeak, u64::from(peak)),
            (Counter::FramesBudget, u64::from(self.task.budget())),
            (Counter::ManagedBytes, self.managed.bytes() as u64),
            (Counter::ManagedRegions, self.managed.len() as u64),
            (Counter::BytesRead, read * PAGE_BYTES),
            (Counter::BytesWritten, written * PAGE_BYTES),
            (Counter::StoresUnderWay, self.stores_under_way()),
            (Counter::Setbacks, self.setbacks() - past.setbacks),
        ] {
            self.gauges.set(counter, count);
        }
        let stored = store.zeros_stored - past.store.zeros_stored;
        self.gauges.add(Counter::ZeroPages, stored);
        let charged = u64::from(self.frames_charged());
        let peak_so_far = self.gauges.get(Counter::FramesPeak).max(charged);
        let peak = match past.is_forked {
            true => peak_so_far,
            false if self.store.compressed().is_none() => core.frames_peak,
            false => peak_so_far,
        };
        self.gauges.set(Counter::FramesPeak, peak);
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
        let most = self.gauges.get(Counter::EngineBytes).max(bytes);
        self.gauges.set(Counter::EngineBytes, most);
        bytes
    }

    fn setbacks(&self) -> u64 {
        self.machine.tally().busy + self.machine.tally().disowned
    }

    /// The pages that count against the budget, in frames and compressed. What could
    /// not be given up before a fork is shared with the other process, and charged to neither.
    pub(super) fn frames_charged(&self) -> u32 {
        self.claimed().saturating_sub(self.freeze.shared())
    }

    /// The program ends in an orderly way: writes down what is still in memory.
    pub(super) fn finish(&mut self) {
        self.end_neighbours();
        self.measure_unmanaged();
        self.publish();
        self.flush_decisions();
        if let Some(path) = self.setup.counters.clone() {
            self.write_counters(&path);
        }
        self.tell_setbacks(true);
        self.tell_of_pins();
        self.tell_of_kept();
        self.report_if_verbose("ends");
        if !program::is_apart() {
            self.remove_folder_of_the_dead();
        }
    }

    /// Removes the folder of a run whose supervisor was killed, if its last process ends: until
    /// then what others execute loads this library from there. An engine that is a process asks
    /// when its own program has ended: the last one of several that end at once finds none alive.
    pub(super) fn remove_folder_of_the_dead(&self) {
        let Some(socket) = self.setup.control.as_ref() else {
            return;
        };
        let own = self.shared.process(self.record()).pid();
        let is_over = |pid: u32| program::is_over(pid) || (pid == own && !program::is_apart());
        let mut all = self.shared.processes();
        if self.control.is_none() && all.all(|(_, it)| is_over(it.pid())) {
            control::remove_deserted(socket);
        }
    }

    /// Says what went wrong with a policy from a file: nothing else would show it.
    pub(super) fn tell_setbacks(&self, is_end: bool) {
        let policy = &self.setup.policy;
        if let Some(setbacks) = tidemark_plugin::take_news(policy, is_end) {
            say(&format!("`{policy}`: {setbacks}"));
        }
    }

    /// Writes the counters as lines of a name and a number.
    fn write_counters(&self, path: &std::path::Path) {
        use rustix::fs::{Mode, OFlags};
        let mut text = String::new();
        let counted = |counter: &Counter| counter.scope() != Scope::World;
        for counter in Counter::ALL.into_iter().filter(counted) {
            // Writing to a string can't fail.
            let _ = writeln!(text, "{} {}", counter.name(), self.gauges.get(counter));
        }
        let record = self.shared.process(self.record());
        let _ = writeln!(
            text,
            "elapsed_ns {}",
            now().0.saturating_sub(record.start_ns())
        );
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::CLOEXEC;
        if let Ok(file) = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR) {
            // A lost line of statistics must not disturb the program's end.
            let _ = rustix::io::write(&file, text.as_bytes());
        }
    }
}
