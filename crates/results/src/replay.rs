//! Replays: what programs come to on whole memory systems, in given amounts of memory.
//!
//! A [`ReplayRecord`] has a [`Run`] for each system and size of memory, systems first. Counts are
//! of pages of [`ReplayRecord::page_bytes`] unless they are called requests; times are simulated,
//! in seconds.

use serde::{Deserialize, Serialize};
use tidemark_core::counters::Counter;

use crate::analysis::{csv_field, csv_option, from_json, to_json};
use crate::basis::Bases;
use crate::suspension::Suspension;

/// The name and version of the record's layout.
pub const SCHEMA: &str = "tidemark.replay.v1";

/// The findings of `tidemark replay`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplayRecord {
    /// The layout: [`SCHEMA`].
    pub schema: String,
    /// The version of the command that wrote the record.
    pub tidemark: String,
    /// The traces that ran. With copies, each stands here once.
    pub traces: Vec<ReplayTrace>,
    /// The number of copies of each that ran at the same time.
    pub copies: u32,
    /// The size of a page in bytes.
    pub page_bytes: u64,
    /// The number of pages that all programs use together, those of each process counted apart.
    pub footprint_pages: u64,
    /// The machine beside its memory.
    pub machine: ReplayMachine,
    /// The bases of the numbers of runs that are not counted.
    #[serde(default, skip_serializing_if = "Bases::is_empty")]
    pub basis: Bases,
    /// A run for each system and size of memory.
    pub runs: Vec<Run>,
    /// The assumptions of the optimum.
    pub optimum: String,
    /// Remarks that a reader of the numbers may need.
    pub notes: Vec<String>,
}

/// A trace that was replayed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayTrace {
    /// The name of the program: the name of the trace's file.
    pub name: String,
    /// The program and its arguments, where the trace has them.
    pub command: Vec<String>,
    /// References on record.
    pub records: u64,
    /// Pages used, those of each process counted apart.
    pub pages: u64,
    /// The number of processes it has.
    pub processes: u64,
    /// True if it has the mappings, so that files are distinguished from other memory.
    pub has_mappings: bool,
}

/// The machine that runs were made on, beside its memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayMachine {
    /// The number of processors it has.
    pub processors: u32,
    /// The scheduler: `round-robin` or `fair`.
    pub scheduler: String,
    /// The longest turn while others wait, in milliseconds.
    pub quantum_ms: u64,
    /// The disk that swap is on.
    pub swap_disk: String,
    /// The disk that files are on; `None`: the same.
    pub file_disk: Option<String>,
    /// The sizes to which pages that leave are compressed, in memory; `None`: they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compressed: Option<String>,
    /// Memory that programs can't have, in bytes.
    pub wired_bytes: u64,
    /// The seed of random numbers.
    pub seed: u64,
}

macro_rules! define_run {
    ($({ $(#[doc = $meaning:literal])+ $name:ident $variant:ident $unit:ident $kind:ident
         $basis:ident $field:literal })*) => {
        /// The results of the programs on one system in one size of memory.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct Run {
            /// The system.
            pub system: String,
            /// The policy that was in force.
            pub policy: String,
            /// The load control that was in force.
            pub load: String,
            /// The size of memory.
            pub memory_bytes: u64,
            /// From the start of the first program to the end of the last.
            pub elapsed_s: f64,
            /// The use of processors, added up over them.
            pub processor: ProcessorUse,
            $($(#[doc = $meaning])+ #[serde(rename = $field, default)] pub $name: u64,)*
            /// The fewest page-ins any policy could have had; [`ReplayRecord::optimum`] says how.
            pub optimal_page_ins: u64,
            /// Page-ins over the optimum's; `None` where it has none and the run has some.
            pub over_optimal: Option<f64>,
            /// The evenness with which programs were slowed down, from 1 (all alike) to one over
            /// their number: Jain's index of their processor time over their time from start to
            /// end.
            pub fairness: f64,
            /// The programs.
            pub programs: Vec<ProgramRun>,
            /// The times for which load control had tasks wait, where each program has a memory of
            /// its own, in the order in which they began.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            pub suspensions: Vec<Suspension>,
            /// The disks: swap, and files if those are on another.
            pub disks: Vec<DiskRun>,
            /// The run over time, if that was asked for.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub time_line: Option<TimeLine>,
        }

        impl Run {
            /// The counts, by counter, and nothing else.
            pub fn of_counts(count: impl Fn(Counter) -> u64) -> Run {
                Run {
                    $($name: count(Counter::$variant),)*
                    ..Run::default()
                }
            }

            /// The count of one counter; `None` of one that is not in the record of a replay.
            pub fn get(&self, counter: Counter) -> Option<u64> {
                match counter {
                    $(Counter::$variant => Some(self.$name),)*
                    _ => None,
                }
            }
        }
    };
}

tidemark_core::counters! { replay define_run }

/// Counters that are no columns of the table: it was settled without them.
const NO_COLUMNS: [Counter; 9] = [
    Counter::FramesPeak,
    Counter::DoublePaged,
    Counter::CompressedPages,
    Counter::CompressedBytes,
    Counter::IncompressiblePages,
    Counter::DecompressedPages,
    Counter::CompressedMemoryPeak,
    Counter::BytesRead,
    Counter::BytesWritten,
];

/// The counters that are columns of the table, in its order.
fn columns() -> impl Iterator<Item = Counter> {
    let is_column =
        |counter: &Counter| counter.replay_name().is_some() && !NO_COLUMNS.contains(counter);
    Counter::ALL.into_iter().filter(is_column)
}

/// The use of processors, in seconds, added up over them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessorUse {
    /// In programs.
    pub user_s: f64,
    /// In the kernel: faults, requests, switches, the page daemon.
    pub system_s: f64,
    /// Nothing.
    pub idle_s: f64,
    /// The part of `system_s` in which the policy's questions were answered.
    pub policy_s: f64,
}

/// The outcome of one program: sums over its processes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProgramRun {
    /// Its name.
    pub name: String,
    /// The time at which its first process started.
    pub start_s: f64,
    /// The time at which its last process ended.
    pub end_s: f64,
    /// On a processor, in the program itself.
    pub user_s: f64,
    /// On a processor, in the kernel.
    pub system_s: f64,
    /// Waiting for pages.
    pub page_wait_s: f64,
    /// Waiting for the world, or for children.
    pub think_s: f64,
    /// Ready, and not running.
    pub ready_s: f64,
    /// Suspended by load control.
    pub suspended_s: f64,
    /// Faults taken.
    pub faults: u64,
    /// Faults that had to be waited for.
    pub waits: u64,
    /// References done.
    pub records: u64,
    /// Processes.
    pub processes: u64,
    /// Processes that memory could not serve, so that they were ended.
    pub killed: u64,
}

/// The requests made to a disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DiskRun {
    /// The use it serves: `swap`, `files`, or `swap and files`.
    pub name: String,
    /// Requests to read.
    pub reads: u64,
    /// Pages read.
    pub pages_read: u64,
    /// Requests to write.
    pub writes: u64,
    /// Pages written.
    pub pages_written: u64,
    /// The time requests were being served, added up.
    pub busy_s: f64,
    /// The time requests waited to be served, added up.
    pub queued_s: f64,
    /// The most requests that waited or were served at one time.
    pub queue_max: u32,
}

/// A run over time: columns with a value for each moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimeLine {
    /// The moments.
    pub time_s: Vec<f64>,
    /// Frames that were free.
    pub free: Vec<u32>,
    /// Pages on their way to disks.
    pub laundry: Vec<u32>,
    /// Resident pages of files.
    pub files: Vec<u32>,
    /// Processes that were ready and not running.
    pub ready: Vec<u32>,
    /// Pages mapped by each program: a column each.
    pub resident: Vec<Vec<u32>>,
    /// Requests at each disk: a column each.
    pub queues: Vec<Vec<u32>>,
}

impl ReplayRecord {
    /// The record as it is in a file.
    pub fn to_json(&self) -> String {
        to_json(self)
    }

    /// Reads a record back.
    ///
    /// # Errors
    /// The text is not a record, or one of another schema.
    pub fn from_json(text: &str) -> Result<ReplayRecord, String> {
        from_json(text, SCHEMA)
    }

    /// The runs, a line each.
    pub fn to_csv(&self) -> String {
        let counts: Vec<&str> = columns().filter_map(Counter::replay_name).collect();
        let mut text = format!(
            "system,policy,load,memory_bytes,elapsed_s,user_s,system_s,idle_s,policy_s,{},\
             optimal_page_ins,over_optimal,fairness\n",
            counts.join(","),
        );
        for run in &self.runs {
            text.push_str(&run.to_csv());
        }
        text
    }
}

impl Run {
    fn to_csv(&self) -> String {
        let names = [&self.system, &self.policy, &self.load].map(|name| csv_field(name));
        let used = &self.processor;
        let times = [used.user_s, used.system_s, used.idle_s, used.policy_s];
        let times = times.map(|time| time.to_string());
        let counts = columns().filter_map(|counter| self.get(counter));
        let counts = counts.chain([self.optimal_page_ins]);
        let counts: Vec<String> = counts.map(|count| count.to_string()).collect();
        format!(
            "{},{},{},{},{},{},{}\n",
            names.join(","),
            self.memory_bytes,
            self.elapsed_s,
            times.join(","),
            counts.join(","),
            csv_option(self.over_optimal),
            self.fairness,
        )
    }
}

impl ProgramRun {
    /// The factor by which the program took longer than its work: its time from start to end over
    /// its time on processors. 1 for a program that never waited.
    pub fn slow_down(&self) -> f64 {
        (self.end_s - self.start_s) / (self.user_s + self.system_s).max(1e-9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> ReplayRecord {
        let run = |system: &str, memory_bytes| Run {
            system: system.into(),
            policy: "fifo".into(),
            load: "none".into(),
            memory_bytes,
            page_ins: 7,
            optimal_page_ins: 4,
            over_optimal: Some(1.75),
            fairness: 1.0,
            ..Run::default()
        };
        ReplayRecord {
            schema: SCHEMA.into(),
            tidemark: "0.1.0".into(),
            traces: vec![],
            copies: 1,
            page_bytes: 4096,
            footprint_pages: 100,
            machine: ReplayMachine {
                processors: 1,
                scheduler: "round-robin".into(),
                quantum_ms: 10,
                swap_disk: "hdd".into(),
                file_disk: None,
                compressed: None,
                wired_bytes: 0,
                seed: 1,
            },
            basis: crate::basis::of_replay(),
            runs: vec![run("plain", 4096), run("odd, one", 8192)],
            optimum: String::new(),
            notes: vec![],
        }
    }

    #[test]
    fn a_record_reads_back_as_it_was() {
        let record = record();
        assert_eq!(ReplayRecord::from_json(&record.to_json()), Ok(record));
    }

    #[test]
    fn every_line_of_the_table_has_every_column() {
        let csv = record().to_csv();
        let mut lines = csv.lines();
        let columns: Vec<&str> = lines.next().unwrap().split(',').collect();
        let plain: Vec<&str> = lines.next().unwrap().split(',').collect();
        assert_eq!(columns.len(), plain.len());
        let at = |name| plain[columns.iter().position(|column| *column == name).unwrap()];
        let found = ["system", "memory_bytes", "page_ins", "optimal_page_ins"].map(at);
        assert_eq!(found, ["plain", "4096", "7", "4"]);
        assert_eq!((at("over_optimal"), at("fairness")), ("1.75", "1"));
        assert!(
            lines
                .next()
                .unwrap()
                .starts_with("\"odd, one\",fifo,none,8192,")
        );
    }
}
