//! The record of one run: what was asked for, how it ended, and the counts of every process.

use serde::{Deserialize, Serialize};
use tidemark_core::counters::{Counter, Kind};

use crate::basis::{self, Bases};
use crate::histogram::Histogram;
use crate::locks::Locks;
use crate::suspension::Suspension;

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
    /// The rule by which it was divided among them, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub division: Option<String>,
    /// The memory that was left to each process that used so much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_bytes_min: Option<u64>,
    /// The store of pages that left: `file`, `compressed` or `compressed+file`; of a kernel's
    /// programs, and in older records, it is not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    /// The size of the swap file.
    pub swap_bytes: u64,
    /// The way the program ended.
    pub ending: Ending,
    /// The processes that were ended because nothing more could leave memory: the store was full.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ended_for_room: u64,
    /// Remarks that a reader of the numbers may need: a fallback taken, a process that was not
    /// managed.
    pub notes: Vec<String>,
    /// The methods behind numbers that are estimated or sampled, by field.
    #[serde(default, skip_serializing_if = "Bases::is_empty")]
    pub basis: Bases,
    /// The sum over all processes; see [`Statistics::add`] for what a sum means.
    pub total: Statistics,
    /// The jobs, if there was a job server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<Jobs>,
    /// The times for which load control had tasks wait, in the order in which they began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suspensions: Vec<Suspension>,
    /// The locks of all processes, if they were measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locks: Option<Locks>,
    /// The processes that were managed, in the order in which they ended; of thousands, those that
    /// paged most.
    pub processes: Vec<ProcessRecord>,
    /// The rest of them, if not every process has a record.
    #[serde(default, skip_serializing_if = "OtherProcesses::is_none")]
    pub others: OtherProcesses,
}

/// Processes of which there is the sum, and no record of each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OtherProcesses {
    /// The number of these processes.
    pub processes: u64,
    /// The locks of their engines, if they were measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locks: Option<Locks>,
    /// The sum of their counts; see [`Statistics::add`] for what a sum means.
    #[serde(flatten)]
    pub statistics: Statistics,
}

/// The jobs that a job server offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jobs {
    /// The most at a time that were asked for.
    pub slots: u32,
    /// The most that were at work at a time, with the one that needs no token.
    pub at_work_peak: u32,
    /// The tokens that had not come back at the end.
    pub tokens_missing: u32,
}

/// The way a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// The process returned this status.
    Status(i32),
    /// A signal of this number ended it.
    Signal(i32),
    /// The process put another program in its place.
    Replaced,
    /// The process ended. Its status is known to its parent alone.
    Gone,
    /// The process was still there when the record was written.
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
    /// Its locks, if they were measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locks: Option<Locks>,
    /// Its counts.
    #[serde(flatten)]
    pub statistics: Statistics,
}

macro_rules! quantity {
    (Nanoseconds) => {
        Nanoseconds
    };
    ($unit:ident) => {
        u64
    };
}

macro_rules! define_statistics {
    ($({ $(#[doc = $meaning:literal])+ $name:ident $variant:ident $unit:ident $kind:ident
         $basis:ident $field:literal })*) => {
        /// Counts of one process or of all: those of the table of
        /// [counters](tidemark_core::counters!), and what is no counter.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Statistics {
            $($(#[doc = $meaning])+ #[serde(rename = $field)] pub $name: quantity!($unit),)*
            /// From the first to the last moment, in seconds.
            pub elapsed_s: f64,
            /// The times that faults took to serve, by kind.
            pub latency: Latencies,
            /// The number of pages that a read moved.
            pub page_in_cluster_pages: Histogram,
            /// The number of pages that a write moved.
            pub page_out_cluster_pages: Histogram,
            /// The bytes to which pages that left were compressed, those included that were stored
            /// as they are because it was hardly less; pages of zeros have none.
            pub compressed_page_bytes: Histogram,
        }

        impl Statistics {
            /// The counts, by counter, and nothing else.
            pub fn of_counts(count: impl Fn(Counter) -> u64) -> Statistics {
                Statistics {
                    $($name: count(Counter::$variant).into(),)*
                    ..Statistics::default()
                }
            }

            /// The count of one counter; `None` of one that is not in the record of a run.
            pub fn get(&self, counter: Counter) -> Option<u64> {
                match counter {
                    $(Counter::$variant => Some(self.$name.into()),)*
                    _ => None,
                }
            }

            /// Adds the counts of `other`.
            ///
            /// - Leaves: `elapsed_s` and the counters whose total is measured as they are.
            ///   Processes come and go, so that the sum over all that ever were would mean
            ///   nothing; the caller knows the true ones.
            pub fn add(&mut self, other: &Statistics) {
                $(if is_added(Kind::$kind) {
                    self.$name += other.$name;
                })*
                self.latency.soft.add(&other.latency.soft);
                self.latency.zero_fill.add(&other.latency.zero_fill);
                self.latency.page_in.add(&other.latency.page_in);
                self.page_in_cluster_pages.add(&other.page_in_cluster_pages);
                self.page_out_cluster_pages
                    .add(&other.page_out_cluster_pages);
                self.compressed_page_bytes.add(&other.compressed_page_bytes);
            }
        }
    };
}

tidemark_core::counters! { run define_statistics }

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// True if the total over processes is the sum.
fn is_added(kind: Kind) -> bool {
    match kind {
        Kind::Sum | Kind::Level | Kind::Peak => true,
        Kind::MeasuredLevel | Kind::MeasuredPeak => false,
    }
}

/// A time that is in files as seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "f64", into = "f64")]
pub struct Nanoseconds(pub u64);

impl Nanoseconds {
    /// The time in seconds.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl From<u64> for Nanoseconds {
    fn from(ns: u64) -> Nanoseconds {
        Nanoseconds(ns)
    }
}

impl From<Nanoseconds> for u64 {
    fn from(time: Nanoseconds) -> u64 {
        time.0
    }
}

impl From<f64> for Nanoseconds {
    fn from(seconds: f64) -> Nanoseconds {
        Nanoseconds((seconds * 1e9).round() as u64)
    }
}

impl From<Nanoseconds> for f64 {
    fn from(time: Nanoseconds) -> f64 {
        time.seconds()
    }
}

impl std::ops::AddAssign for Nanoseconds {
    fn add_assign(&mut self, other: Nanoseconds) {
        self.0 += other.0;
    }
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
    /// The record of a program, without all else.
    pub fn of(command: Vec<String>, ending: Ending, total: Statistics) -> RunRecord {
        RunRecord {
            schema: SCHEMA.into(),
            tidemark: env!("CARGO_PKG_VERSION").into(),
            command,
            policy: String::new(),
            mode: String::new(),
            memory_bytes: 0,
            division: None,
            task_bytes_min: None,
            store: None,
            swap_bytes: 0,
            ending,
            ended_for_room: 0,
            notes: vec![],
            basis: basis::of_run(),
            total,
            jobs: None,
            suspensions: vec![],
            locks: None,
            processes: vec![],
            others: OtherProcesses::default(),
        }
    }

    /// The record as it is in a statistics file.
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

impl OtherProcesses {
    /// Adds a process. The most memory that one of them had beside what is managed is that of all.
    pub fn add(&mut self, process: &ProcessRecord) {
        self.processes += 1;
        self.locks = Locks::sum(self.locks.into_iter().chain(process.locks));
        let peak = process.statistics.unmanaged_bytes_peak;
        self.statistics.add(&process.statistics);
        self.statistics.unmanaged_bytes_peak = self.statistics.unmanaged_bytes_peak.max(peak);
    }

    /// True if there are none: every process has a record.
    pub fn is_none(&self) -> bool {
        self.processes == 0
    }
}

impl Statistics {
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
