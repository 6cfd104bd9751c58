//! The record of one run: what was asked for, how it ended, and the counts of every process.

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;

/// The name and version of the record's layout.
pub const SCHEMA: &str = "tidemark.run.v1";
/// The size of the pages that are counted.
pub const PAGE_BYTES: u64 = 4096;

/// The record that one `tidemark run` leaves behind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The layout: [`SCHEMA`].
    pub schema: String,
    /// The version of the command that wrote the record.
    pub tidemark: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The replacement policy.
    pub policy: String,
    /// The way faults were delivered: `thread` or `in-thread`.
    pub mode: String,
    /// The memory all processes together were allowed.
    pub memory_bytes: u64,
    /// The size of the swap file.
    pub swap_bytes: u64,
    /// The way the program ended.
    pub ending: Ending,
    /// Remarks that a reader of the numbers may need: a fallback taken, a process that was not
    /// managed.
    pub notes: Vec<String>,
    /// The sum over all processes; see [`Statistics::add`] for what a sum means.
    pub total: Statistics,
    /// Every process that was managed, in the order in which they came.
    pub processes: Vec<ProcessRecord>,
}

/// The way a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// It returned this status.
    Status(i32),
    /// A signal of this number ended it.
    Signal(i32),
    /// It put another program in its place.
    Replaced,
    /// It ended, and only its parent knows how.
    Gone,
    /// It was still there when the record was written.
    Running,
}

/// One process: a program's stay under one process id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProcessRecord {
    /// The process id.
    pub pid: u32,
    /// The process id of the process that forked it, if that one was managed.
    pub parent: Option<u32>,
    /// The name of the program.
    pub program: String,
    /// The way it ended.
    pub ending: Ending,
    /// Its counts.
    #[serde(flatten)]
    pub statistics: Statistics,
}

/// Counts of one process or of all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Statistics {
    /// Pages read from the store.
    pub page_ins: u64,
    /// Pages written to the store.
    pub page_outs: u64,
    /// Reads from the store.
    pub page_in_requests: u64,
    /// Writes to the store.
    pub page_out_requests: u64,
    /// Faults on pages that were in memory, unmapped.
    pub soft_faults: u64,
    /// Pages filled with zeros on first touch.
    pub zero_fills: u64,
    /// Faults that made a private copy of a shared page.
    pub cow_faults: u64,
    /// Faults that waited for the store.
    pub page_in_faults: u64,
    /// Faults on pages that were there when the fault was looked at.
    pub spurious_faults: u64,
    /// Pages read along with another page that were used.
    pub read_ahead_used: u64,
    /// Pages read along with another page that left without having been used.
    pub read_ahead_wasted: u64,
    /// Pages that left without a write because the store had them already.
    pub clean_drops: u64,
    /// Pages that left without a write because they held only zeros.
    pub zero_pages: u64,
    /// Pages that stood in memory before they were taken over.
    pub adopted_pages: u64,
    /// Choices of the policy that were turned down.
    pub refusals: u64,
    /// Pages that could not leave because they were pinned, locked or shared.
    pub setbacks: u64,
    /// Pages that can't be moved because the program has given them to the kernel (registered
    /// buffers, input and output under way), when the record was written, ...
    pub pinned_pages: u64,
    /// ... and the most at a time.
    pub pinned_pages_peak: u64,
    /// The most of those that were beyond the budget at a time.
    pub over_budget_pages_peak: u64,
    /// The frames that might be used when the record was written.
    pub frames_budget: u64,
    /// The most frames that were used at a time.
    pub frames_peak: u64,
    /// The most memory that was resident at a time and not managed, without what files back:
    /// stacks, shared memory, and everything of programs that could not be managed.
    pub unmanaged_bytes: u64,
    /// Address space under management.
    pub managed_bytes: u64,
    /// The most memory that the engine itself had, beside the frames.
    pub engine_bytes: u64,
    /// Bytes read from the store.
    pub bytes_read: u64,
    /// Bytes written to the store.
    pub bytes_written: u64,
    /// From the first to the last moment, in seconds.
    pub elapsed_s: f64,
    /// Time threads spent waiting for their faults, in seconds.
    pub stall_s: f64,
    /// Time the engine worked, in seconds.
    pub engine_s: f64,
    /// Transfers that failed.
    pub store_errors: u64,
    /// The times that faults took to serve, by kind.
    pub latency: Latencies,
    /// The number of pages that a read moved.
    pub page_in_cluster_pages: Histogram,
    /// The number of pages that a write moved.
    pub page_out_cluster_pages: Histogram,
}

/// The times of faults from their message to their resolution.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Latencies {
    /// Faults on pages that were in memory, unmapped.
    pub soft: Latency,
    /// First touches.
    pub zero_fill: Latency,
    /// Faults that waited for the store.
    pub page_in: Latency,
}

/// The times of faults of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Latency {
    /// Percentiles, in microseconds.
    pub percentiles_us: Percentiles,
    /// Counts, in nanoseconds.
    pub histogram_ns: Histogram,
}

/// Percentiles of a distribution. Zero where there were no samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Half the samples lie below.
    pub p50: f64,
    /// Nine in ten lie below.
    pub p90: f64,
    /// Ninety-nine in a hundred lie below.
    pub p99: f64,
    /// Nine hundred and ninety-nine in a thousand lie below.
    pub p999: f64,
}

impl RunRecord {
    /// The record as it stands in a statistics file.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("every key is a string");
        text.push('\n');
        text
    }

    /// Reads a record back.
    ///
    /// # Errors
    /// The text is not a record, or one of another schema.
    pub fn from_json(text: &str) -> Result<RunRecord, String> {
        let record: RunRecord = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if record.schema != SCHEMA {
            return Err(format!(
                "`schema` is `{}`; this reads `{SCHEMA}`",
                record.schema
            ));
        }
        Ok(record)
    }
}

impl Statistics {
    /// Adds the counts of `other`.
    ///
    /// - Leaves: `frames_budget`, `frames_peak`, `unmanaged_bytes`, `managed_bytes`, `engine_bytes`
    ///   and `elapsed_s` as they are. Processes come and go, so that the sum over all that ever
    ///   were would mean nothing; the caller knows the true ones.
    pub fn add(&mut self, other: &Statistics) {
        self.page_ins += other.page_ins;
        self.page_outs += other.page_outs;
        self.page_in_requests += other.page_in_requests;
        self.page_out_requests += other.page_out_requests;
        self.soft_faults += other.soft_faults;
        self.zero_fills += other.zero_fills;
        self.cow_faults += other.cow_faults;
        self.page_in_faults += other.page_in_faults;
        self.spurious_faults += other.spurious_faults;
        self.read_ahead_used += other.read_ahead_used;
        self.read_ahead_wasted += other.read_ahead_wasted;
        self.clean_drops += other.clean_drops;
        self.zero_pages += other.zero_pages;
        self.adopted_pages += other.adopted_pages;
        self.refusals += other.refusals;
        self.setbacks += other.setbacks;
        self.pinned_pages += other.pinned_pages;
        self.pinned_pages_peak += other.pinned_pages_peak;
        self.over_budget_pages_peak += other.over_budget_pages_peak;
        self.bytes_read += other.bytes_read;
        self.bytes_written += other.bytes_written;
        self.stall_s += other.stall_s;
        self.engine_s += other.engine_s;
        self.store_errors += other.store_errors;
        self.latency.soft.add(&other.latency.soft);
        self.latency.zero_fill.add(&other.latency.zero_fill);
        self.latency.page_in.add(&other.latency.page_in);
        self.page_in_cluster_pages.add(&other.page_in_cluster_pages);
        self.page_out_cluster_pages
            .add(&other.page_out_cluster_pages);
    }

    /// Pages a read moved, on average.
    pub fn page_in_cluster_mean(&self) -> f64 {
        self.page_ins as f64 / self.page_in_requests.max(1) as f64
    }

    /// Pages a write moved, on average.
    pub fn page_out_cluster_mean(&self) -> f64 {
        self.page_outs as f64 / self.page_out_requests.max(1) as f64
    }
}

impl Latency {
    /// The latencies counted in `histogram_ns`.
    pub fn new(histogram_ns: Histogram) -> Latency {
        Latency {
            percentiles_us: Percentiles::of_ns(&histogram_ns),
            histogram_ns,
        }
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Latency) {
        self.histogram_ns.add(&other.histogram_ns);
        self.percentiles_us = Percentiles::of_ns(&self.histogram_ns);
    }
}

impl Percentiles {
    /// The percentiles, in microseconds, of a histogram of nanoseconds.
    fn of_ns(histogram: &Histogram) -> Percentiles {
        let us = |per_mille| histogram.quantile(per_mille).unwrap_or(0.0) / 1000.0;
        Percentiles {
            p50: us(500),
            p90: us(900),
            p99: us(990),
            p999: us(999),
        }
    }
}

#[cfg(test)]
mod tests;
