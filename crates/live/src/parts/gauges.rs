//! The counts of an engine, as its process's record shows them.

use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use tidemark_core::counters::{Counters, Kind, Scope};
use tidemark_core::id::PAGE_BYTES;
use tidemark_core::vm::Vm;

use crate::machine::LiveMachine;
use crate::shared::{Counter, Process};
use crate::store::compressed::Compressed;
use crate::store::{SwapStore, Tally};

/// Counts that are the engine's own, and those of the core and the store as they were when they
/// were last taken over.
pub struct Gauges {
    counts: [u64; Counter::ALL.len()],
}

impl Gauges {
    /// None has counted anything.
    pub fn new() -> Gauges {
        Gauges {
            counts: [0; Counter::ALL.len()],
        }
    }

    /// Counts on.
    pub fn add(&mut self, counter: Counter, count: u64) {
        self.counts[counter as usize] += count;
    }

    /// Sets a level.
    pub fn set(&mut self, counter: Counter, count: u64) {
        self.counts[counter as usize] = count;
    }

    /// Sets a level, and its peak if that is lower.
    pub fn set_with_peak(&mut self, level: Counter, peak: Counter, count: u64) {
        self.set(level, count);
        self.set(peak, count.max(self.get(peak)));
    }

    /// The count of a counter.
    pub fn get(&self, counter: Counter) -> u64 {
        self.counts[counter as usize]
    }

    /// Writes all of them into a record, but for those that are said in words of their own.
    pub fn show(&self, record: &Process<'_>) {
        for counter in Counter::ALL {
            if !matches!(counter, Counter::FramesResident | Counter::FramesBudget) {
                record.counter(counter).store(self.get(counter), Relaxed);
            }
        }
    }

    /// Appends the counters to a file, as lines of a name and a number.
    pub fn write(&self, path: &Path, elapsed_ns: u64) {
        use rustix::fs::{Mode, OFlags};
        let mut text = String::new();
        let counted = |counter: &Counter| counter.scope() != Scope::World;
        for counter in Counter::ALL.into_iter().filter(counted) {
            // Writing to a string can't fail.
            let _ = writeln!(text, "{} {}", counter.name(), self.get(counter));
        }
        let _ = writeln!(text, "elapsed_ns {elapsed_ns}");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::CLOEXEC;
        if let Ok(file) = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR) {
            // A lost line of statistics must not disturb the program's end.
            let _ = rustix::io::write(&file, text.as_bytes());
        }
    }

    /// Takes over what core, store and machine have counted since the fork that made this process.
    pub fn take_over(&mut self, before: &Before, (vm, store, machine): Counting<'_>) {
        let (core, tally) = (vm.counters().since(&before.core), store.tally());
        for counter in Counter::ALL {
            if let (Kind::Sum, Some(count)) = (counter.kind(), core.get(counter)) {
                self.set(counter, count);
            }
        }
        let (packed, past) = (tally.compressed, before.store.compressed);
        let read = tally.read - before.store.read;
        let written = tally.written - before.store.written;
        let peak = store.compressed().map_or(0, Compressed::pages_held_peak);
        let under_way = stores_under_way(vm, store);
        let setbacks = setbacks(machine) - before.setbacks;
        let refused = packed.refused - past.refused;
        let bytes = packed.compressed_bytes - past.compressed_bytes;
        for (counter, count) in [
            (
                Counter::CompressedPages,
                packed.compressed - past.compressed,
            ),
            (Counter::CompressedBytes, bytes),
            (Counter::IncompressiblePages, refused),
            (
                Counter::DecompressedPages,
                packed.decompressed - past.decompressed,
            ),
            (Counter::ReadAheadUnknown, core.read_ahead_unknown()),
            (Counter::CompressedMemoryPeak, u64::from(peak)),
            (Counter::BytesRead, read * PAGE_BYTES),
            (Counter::BytesWritten, written * PAGE_BYTES),
            (Counter::StoresUnderWay, under_way),
            (Counter::Setbacks, setbacks),
        ] {
            self.set(counter, count);
        }
        let stored = tally.zeros_stored - before.store.zeros_stored;
        self.add(Counter::ZeroPages, stored);
    }

    /// Learns the number of pages that are charged now, for the peak of them.
    pub fn note_charged(&mut self, charged: u32, before: &Before, (vm, store, _): Counting<'_>) {
        let so_far = self.get(Counter::FramesPeak).max(u64::from(charged));
        let peak = match before.is_forked || store.compressed().is_some() {
            true => so_far,
            false => vm.counters().since(&before.core).frames_peak,
        };
        self.set(Counter::FramesPeak, peak);
    }
}

/// The parts of an engine that keep counters of their own.
pub type Counting<'a> = (&'a Vm, &'a SwapStore, &'a LiveMachine);

/// The writes to the store under way: pages, and segments of compressed ones.
pub fn stores_under_way(vm: &Vm, store: &SwapStore) -> u64 {
    u64::from(vm.laundry()) + u64::from(store.segments_leaving())
}

fn setbacks(machine: &LiveMachine) -> u64 {
    machine.tally().busy + machine.tally().disowned
}

/// The counts at the moment of the fork that made this process.
#[derive(Default)]
pub struct Before {
    core: Counters,
    store: Tally,
    setbacks: u64,
    is_forked: bool,
}

impl Before {
    /// The counts as they are, in a process that has just been forked.
    pub fn of((vm, store, machine): Counting<'_>) -> Before {
        Before {
            core: vm.counters().clone(),
            store: store.tally(),
            setbacks: setbacks(machine),
            is_forked: true,
        }
    }
}
