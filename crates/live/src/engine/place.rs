//! Following the program: a fault served on the processor of the thread that waits costs a small
//! part of one that wakes another processor (measured on virtual machines: 7 against 50 µs).

use rustix::thread::CpuSet;

use tidemark_core::time::Time;

use super::publish::Gauges;
use super::pull::{Held, Pull};
use crate::ranges::Ranges;
use crate::shared::Counter;
use crate::sys::thread::{self, CpuFinder};

/// One fault in so many is looked at: to ask where a thread runs costs three system calls. An odd
/// number: two threads that take turns are looked at in turn, too.
const SAMPLE_EVERY: u32 = 5;
/// The engine moves when so many samples in a row came from the same other processor.
const SAMPLES_AGREEING: u32 = 2;

/// Where the engine runs, and where faults come from.
pub(super) struct Place {
    finder: Option<CpuFinder>,
    allowed: Option<CpuSet>,
    faults: u32,
    /// Whose place is to be looked up.
    sample: Option<u32>,
    last_cpu: u32,
    agreeing: u32,
    own_cpu: Option<u32>,
    pull: Pull,
    /// Whether the thread that waits is to be brought to the disk's processor when it is woken.
    is_pulling: bool,
}

impl Place {
    /// `disk` is the processor that hears from the disk of the swap store, if one does.
    pub(super) fn new(finder: Option<CpuFinder>, disk: Option<u32>) -> Place {
        // Without the right to go first the engine goes with the others.
        let _ = thread::set_nice(-10);
        let allowed = thread::allowed().ok();
        Place {
            finder,
            allowed,
            faults: 0,
            sample: None,
            last_cpu: u32::MAX,
            agreeing: 0,
            own_cpu: None,
            pull: Pull::new(disk),
            is_pulling: false,
        }
    }

    /// Learns that `thread` waits for the disk, in thread mode.
    pub(super) fn note_wait(&mut self, thread: u32, now: Time) {
        self.is_pulling = self.pull.note_wait(thread, self.last_cpu, now);
    }

    /// Confines the thread that has waited, and is about to be woken, to the disk's processor, if
    /// it is to be pulled. The engine [follows](Self::follow).
    pub(super) fn begin_pull(&mut self) -> Option<Held> {
        if !std::mem::take(&mut self.is_pulling) {
            return None;
        }
        let (disk, held) = self.pull.begin()?;
        self.last_cpu = disk;
        self.agreeing = SAMPLES_AGREEING;
        Some(held)
    }

    /// Learns that the calling thread waits for the disk, in in-thread mode, and brings it to the
    /// disk's processor if it is to be pulled.
    pub(super) fn wait_here(&mut self, now: Time) {
        let cpu = thread::current_cpu();
        if self.pull.note_wait(thread::current(), cpu, now)
            && self.pull.away_from(cpu).is_some()
            && let Some((_, held)) = self.pull.begin()
        {
            held.release();
        }
    }

    /// Learns that `thread` has faulted. What follows from it has time until the fault is served.
    pub(super) fn note_fault(&mut self, thread: u32) {
        self.faults = self.faults.wrapping_add(1);
        if self.faults.is_multiple_of(SAMPLE_EVERY) {
            self.sample = Some(thread);
        }
    }

    /// Looks up on which processor the thread of a sample runs.
    fn look_up(&mut self, number: u32, managed: &Ranges) {
        let Some(finder) = self.finder else { return };
        let address = finder.address_for(number);
        // What is in managed memory must not be read from here: it may be missing.
        let address = address.filter(|address| !managed.contains(*address));
        let Some(cpu) = address.and_then(|address| finder.read(address)) else {
            return;
        };
        self.agreeing = if cpu == self.last_cpu {
            self.agreeing + 1
        } else {
            1
        };
        self.last_cpu = cpu;
    }

    /// Moves to where the faults come from.
    pub(super) fn follow(&mut self, managed: &Ranges, gauges: &mut Gauges) {
        if let Some(thread) = self.sample.take() {
            self.look_up(thread, managed);
        }
        let cpu = self.last_cpu;
        if self.agreeing < SAMPLES_AGREEING || self.own_cpu == Some(cpu) {
            return;
        }
        if thread::stay_on(cpu).is_ok() {
            self.own_cpu = Some(cpu);
            gauges.add(Counter::EngineMoves, 1);
        } else if let Some(allowed) = &self.allowed {
            // Not permitted there: anywhere is better than the wrong place.
            let _ = thread::stay_anywhere(allowed);
            self.own_cpu = None;
        }
        self.agreeing = 0;
    }
}
