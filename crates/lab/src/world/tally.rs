//! The counts and samples taken while the world runs.

use super::outcome::Sample;
use super::scenario::Watch;

/// Sums over a run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) user_ns: u64,
    pub(super) system_ns: u64,
    pub(super) policy_ns: u64,
    pub(super) swap_ins: u64,
    pub(super) swap_outs: u64,
    /// Pages that the swap disk read and wrote: those of segments, too.
    pub(super) swap_pages_read: u64,
    pub(super) swap_pages_written: u64,
    /// Requests to it for parts of transfers of compressed memory.
    pub(super) parts: u64,
    pub(super) file_ins: u64,
    pub(super) file_outs: u64,
    pub(super) messages: u64,
    pub(super) switches: u64,
    pub(super) mappings: u64,
    pub(super) irregular: u64,
    pub(super) bytes_copied: u64,
    pub(super) frames_used_max: u32,
}

/// The samples taken so far. Their number is bounded, however long the run.
pub(super) struct Samples {
    pub(super) taken: Vec<Sample>,
    distance_ns: u64,
}

impl Samples {
    pub(super) fn new(distance_ns: u64) -> Samples {
        Samples {
            taken: Vec::new(),
            distance_ns,
        }
    }

    /// The time at which the next is due.
    pub(super) fn next_ns(&self) -> u64 {
        let last = self.taken.last();
        last.map_or(0, |last| last.time_ns + self.distance_ns)
    }

    /// Keeps a sample; every second one alone, once there are many.
    pub(super) fn push(&mut self, sample: Sample) {
        self.taken.push(sample);
        if self.taken.len() >= 2 * Watch::SAMPLES {
            let mut number = 0;
            self.taken.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.distance_ns *= 2;
        }
    }
}
