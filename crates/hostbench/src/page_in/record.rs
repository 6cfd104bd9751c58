//! The record of `bench page-in`.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Key;
use super::observer::ALL;
use crate::workload::faults::{Beside, Phase, Work};

/// The name and version of the record's layout.
pub const SCHEMA: &str = "tidemark.page-in.v1";

/// The reason that the bare loop has no busy second thread.
pub const ONE_PROCESSOR: &str = "there is only one processor";

/// The least time, in hundredths of a second, whose division is shown.
const TICKS_MIN: u64 = 20;

/// The cost of faults on a machine.
#[derive(Clone, Debug, Serialize)]
pub struct PageInRecord {
    /// The layout: [`SCHEMA`].
    pub schema: &'static str,
    /// The version of the command that wrote the record.
    pub tidemark: &'static str,
    /// The size of the array.
    pub size_bytes: u64,
    /// The memory while the program pages.
    pub memory_bytes: u64,
    /// The touches of a lap, as a multiple of the pages.
    pub laps: u32,
    /// The number of times that all was measured. Rows are the rounds of the median.
    pub rounds: u32,
    /// The processors of the machine.
    pub processors: usize,
    /// The size of a packed page, in percent.
    pub packed_percent: Option<f64>,
    /// The processor time that packing a page takes by itself.
    pub pack_us: f64,
    /// The processor time that unpacking a page takes by itself.
    pub unpack_us: f64,
    /// The kinds of work.
    pub rows: Vec<Row>,
    /// The things that could not be counted, each with the reason.
    pub not_counted: Vec<String>,
    /// The things that failed.
    pub left_out: Vec<LeftOut>,
}

/// Something that failed.
#[derive(Clone, Debug, Serialize)]
pub struct LeftOut {
    /// Its name.
    pub name: String,
    /// The number of rounds in which it did.
    pub rounds_failed: u32,
    /// The reason for the first time.
    pub reason: String,
}

/// One kind of work, by the engine or by the bare loop. All is for each fault; for each page where
/// pages leave, and of first touches.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The kind.
    pub work: Work,
    /// The company of the thread that faults.
    pub beside: Beside,
    /// The one that serves: `tidemark` or `bare`.
    pub by: &'static str,
    /// The number of faults that were timed.
    pub faults: u64,
    /// The pages that came in with each.
    pub pages: f64,
    /// The faults of other kinds among them, in percent. Their time is in the numbers.
    pub others_percent: f64,
    /// The processor time of program and engine, without the loop's own.
    pub processor_us: f64,
    /// The elapsed time.
    pub elapsed_us: f64,
    /// The processor time of the program: in user mode.
    pub program_user_us: f64,
    /// The processor time of the program in the kernel. The division is sampled.
    pub program_system_us: f64,
    /// The processor time of the engine: in user mode, if it was long enough to tell.
    pub engine_user_us: Option<f64>,
    /// The processor time of the engine in the kernel. The division is sampled, too.
    pub engine_system_us: Option<f64>,
    /// The part of the time that a busy second thread ran, in percent: less than a hundred where
    /// others want the processors, too.
    pub busy_percent: Option<f64>,
    /// The system calls of the engine, if they were counted.
    pub system_calls: Option<f64>,
    /// The system calls of the engine by name; those that are not named are the rest.
    pub system_calls_by_name: BTreeMap<String, f64>,
    /// The instructions of the engine in user mode, if they were counted.
    pub instructions: Option<f64>,
    /// The processor time as a multiple of the bare loop's.
    pub ratio: Option<f64>,
}

impl PageInRecord {
    /// The record in JSON.
    pub fn to_json(&self) -> String {
        let text = serde_json::to_string_pretty(self).expect("every key is a string");
        format!("{text}\n")
    }
}

impl LeftOut {
    /// True if it is for want of a second processor, and nothing is amiss.
    pub fn may_be(&self) -> bool {
        self.reason == ONE_PROCESSOR
    }
}

impl Row {
    /// The row of one phase.
    pub fn new((work, beside, is_own): Key, phase: &Phase) -> Row {
        let each = |all: u64, faults: u64| all as f64 / faults.max(1) as f64;
        let us = |ns: u64| each(ns, phase.faults) / 1e3;
        let cost = &phase.cost;
        let ticks = cost.engine_user_ticks + cost.engine_system_ticks;
        let user = cost.engine_user_ticks as f64 / ticks.max(1) as f64;
        let divided = |part: f64| (ticks >= TICKS_MIN).then_some(us(cost.engine_ns) * part);
        let counted = &phase.counted;
        let calls =
            |(name, count): (&String, &u64)| (name.clone(), each(*count, phase.counted_faults));
        let mut by_name: BTreeMap<String, f64> = counted.calls.iter().map(calls).collect();
        let system_calls = by_name.remove(ALL);
        by_name.retain(|_, count| *count >= 0.005);
        let is_way_out = matches!(work, Work::WayOut | Work::Look);
        let is_timed = beside == Beside::Busy && !is_way_out;
        let busy = 100.0 * each(cost.busy_ns, cost.elapsed_in_all_ns);
        let instructions = counted.instructions.filter(|_| phase.counted_faults > 0);
        Row {
            work,
            beside,
            by: if is_own { "tidemark" } else { "bare" },
            faults: phase.faults,
            pages: each(phase.pages, phase.faults),
            others_percent: 100.0 * each(phase.others, phase.others + phase.faults),
            processor_us: us(cost.processor_ns()),
            elapsed_us: us(cost.elapsed_ns),
            program_user_us: us(cost.program_user_ns),
            program_system_us: us(cost.program_system_ns),
            engine_user_us: divided(user),
            engine_system_us: divided(1.0 - user),
            busy_percent: is_timed.then_some(busy),
            system_calls: system_calls.filter(|_| phase.counted_faults > 0),
            system_calls_by_name: by_name,
            instructions: instructions.map(|count| each(count, phase.counted_faults)),
            ratio: None,
        }
    }

    /// True if the engine has served.
    pub fn is_own(&self) -> bool {
        self.by == "tidemark"
    }

    /// True if `other` is of the same kind, in the same company.
    pub fn is_like(&self, other: &Row) -> bool {
        (self.work, self.beside) == (other.work, other.beside)
    }
}

/// The company, for people.
pub fn beside_name(beside: Beside) -> &'static str {
    match beside {
        Beside::Alone => "one thread",
        Beside::Busy => "busy second thread",
        Beside::Fork => "forked child",
    }
}

/// The company, on the command line.
pub fn beside_word(beside: Beside) -> &'static str {
    match beside {
        Beside::Alone => "alone",
        Beside::Busy => "busy",
        Beside::Fork => "fork",
    }
}

/// The kind of work, for people.
pub fn work_name(work: Work) -> &'static str {
    match work {
        Work::PageIn => "page-in from memory",
        Work::PageInFromDisk => "page-in from disk",
        Work::SoftFault => "soft fault",
        Work::FirstTouch => "first touch, a page",
        Work::WayOut => "way out, a page",
        Work::Look => "taken for a look, a page",
    }
}
