//! The record of a suite of programs: each program, each share of memory, each contender.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::footprint::Footprint;
use super::turn::Outcome;
use super::{Cache, Entrant, GROUP_MORE_BYTES, MEMORY_MIN_BYTES};
use crate::child::Stop;
use crate::record::median;

/// The settings that all runs had in common.
#[derive(Clone, Debug, Serialize)]
pub struct SuiteSettings {
    /// The state of the page cache before each run.
    pub cache: Cache,
    /// The host's read-ahead from swap: the logarithm of pages.
    pub page_cluster: Option<u32>,
    /// The host's swappiness.
    pub swappiness: Option<String>,
    /// The host's setting of huge pages.
    pub huge_pages: Option<String>,
    /// The compressor of zswap.
    pub zswap_compressor: Option<String>,
    /// The size of zswap's pool, in percent of the machine's memory, while it took part.
    pub zswap_max_pool_percent: u32,
}

/// One program.
#[derive(Clone, Debug, Serialize)]
pub struct ProgramRecord {
    /// Its name.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The run without a limit.
    pub native: NativeRecord,
    /// The runs in less.
    pub shares: Vec<ShareRecord>,
}

/// The runs without a limit of memory.
#[derive(Clone, Debug, Default, Serialize)]
pub struct NativeRecord {
    /// The median.
    pub elapsed_s: f64,
    /// Every round.
    pub rounds_s: Vec<f64>,
    /// The most private memory it had at a time, in the first round.
    pub anonymous_peak_bytes: u64,
    /// The most mapped files it had at a time, in the first round.
    pub file_peak_bytes: u64,
    /// A hash of its outputs.
    pub checksum: String,
}

/// One share of memory.
#[derive(Clone, Debug, Serialize)]
pub struct ShareRecord {
    /// The memory in percent of the native peak of private memory.
    pub share_percent: u32,
    /// The memory of `tidemark run`.
    pub memory_bytes: u64,
    /// The memory of the kernel's control group: what the kernel takes for itself beside it, and
    /// mapped files, unless they are in memory before.
    pub group_bytes: u64,
    /// The longest time that a run may take.
    pub limit_s: f64,
    /// The contenders.
    pub contenders: Vec<EntrantRecord>,
}

/// The results of one contender.
#[derive(Clone, Debug, Default, Serialize)]
pub struct EntrantRecord {
    /// Its name.
    pub name: String,
    /// The median; the limit stands for runs that took longer. None if a run failed.
    pub elapsed_s: Option<f64>,
    /// Every round.
    pub rounds_s: Vec<f64>,
    /// Tells if a run was ended at the limit; there are no more of them then.
    pub is_over_limit: bool,
    /// The first round's counts.
    #[serde(flatten)]
    pub counts: Counts,
    /// The failures, a line each.
    pub failures: Vec<String>,
}

/// Counts of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Counts {
    /// Pages read from the store; for the kernel, from swap devices.
    pub page_ins: Option<u64>,
    /// Pages written to the store; for the kernel, to swap devices.
    pub page_outs: Option<u64>,
    /// Pages that came from zswap's pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool_page_ins: Option<u64>,
    /// The read-ahead of the kernel's swap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_cluster: Option<u32>,
    /// The compressor of zswap or zram.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compressor: Option<String>,
    /// The number of runs before this one that the kernel ended for want of memory.
    pub out_of_memory_before: u32,
    /// Tells if zswap wrote its pool back, since its group had no memory without that.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_pool_written_back: bool,
    /// The most memory its control group held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_peak_bytes: Option<u64>,
    /// The most memory that the zram device took, or zswap's pool where no group pays for it: the
    /// group's limit was lowered by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_peak_bytes: Option<u64>,
    /// Tells if that was so much that it could not all be taken off the limit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_over_memory: bool,
    /// The total of the statistics of `tidemark run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statistics: Option<serde_json::Value>,
}

/// A program or a contender that did not take part.
#[derive(Clone, Debug, Serialize)]
pub struct Skipped {
    /// Its name.
    pub name: String,
    /// The reason, in one line.
    pub reason: String,
}

impl NativeRecord {
    /// Takes in one round.
    pub(super) fn add(&mut self, elapsed: Duration, footprint: Footprint, checksum: String) {
        if self.rounds_s.is_empty() {
            self.anonymous_peak_bytes = footprint.anonymous_bytes;
            self.file_peak_bytes = footprint.file_bytes;
            self.checksum = checksum;
        }
        self.rounds_s.push(elapsed.as_secs_f64());
        self.elapsed_s = median(self.rounds_s.clone());
    }
}

impl ShareRecord {
    /// The share of what the native run took, for `entrants`, which have not run yet.
    pub(super) fn new(
        share_percent: u32,
        native: &NativeRecord,
        limit: Duration,
        plan: (Cache, &[Entrant]),
    ) -> ShareRecord {
        let (cache, entrants) = plan;
        // A page that is in the cache when a group's program maps it is not the group's: its first
        // reader's group pays for it.
        let files = match cache {
            Cache::Cold => native.file_peak_bytes,
            Cache::Warm => 0,
        };
        const PAGE: u64 = crate::workload::array::PAGE_BYTES;
        let bytes = native.anonymous_peak_bytes * u64::from(share_percent) / 100;
        let memory_bytes = (bytes / PAGE * PAGE).max(MEMORY_MIN_BYTES);
        let contender = |entrant: &Entrant| EntrantRecord {
            name: entrant.name(),
            ..EntrantRecord::default()
        };
        ShareRecord {
            share_percent,
            memory_bytes,
            group_bytes: memory_bytes + files + GROUP_MORE_BYTES,
            limit_s: limit.as_secs_f64(),
            contenders: entrants.iter().map(contender).collect(),
        }
    }
}

impl EntrantRecord {
    /// Tells if it need not run again.
    pub(super) fn is_given_up(&self) -> bool {
        self.is_over_limit
    }

    /// Takes in one round, whose output is to be like `checksum`.
    pub(super) fn add(&mut self, outcome: Outcome, checksum: &str) {
        match outcome {
            Outcome::Ran(sample) if sample.checksum != checksum => {
                let reason = "its output is not that of the native run";
                self.failures.push(reason.to_owned());
            }
            Outcome::Ran(sample) => {
                if self.rounds_s.is_empty() {
                    self.counts = sample.counts;
                }
                self.rounds_s.push(sample.elapsed.as_secs_f64());
            }
            Outcome::Stopped(Stop::TooLong(limit)) => {
                self.is_over_limit = true;
                self.rounds_s.push(limit.as_secs_f64());
            }
            Outcome::Stopped(stop @ (Stop::Failed(_) | Stop::Interrupted)) => {
                self.failures.push(stop.to_string());
            }
        }
        let is_whole = self.failures.is_empty() && !self.rounds_s.is_empty();
        self.elapsed_s = is_whole.then(|| median(self.rounds_s.clone()));
    }
}

impl fmt::Display for EntrantRecord {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: ", self.name)?;
        if let Some(failure) = self.failures.last() {
            return write!(formatter, "failed: {failure}");
        }
        let Some(elapsed_s) = self.rounds_s.last() else {
            return formatter.write_str("not run");
        };
        if self.is_over_limit {
            return write!(formatter, "ended after {elapsed_s:.1} s");
        }
        write!(formatter, "{elapsed_s:.2} s")?;
        if let Some(page_ins) = self.counts.page_ins {
            write!(formatter, ", {page_ins} page-ins")?;
        }
        match self.counts.pool_page_ins {
            Some(page_ins) => write!(formatter, ", {page_ins} from the pool"),
            None => Ok(()),
        }
    }
}
