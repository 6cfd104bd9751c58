//! Records of analyses: what a trace says of the memory its program needs.
//!
//! [`curve`] has misses by memory, [`wss`] the working set over time, with the [`footprint`] if
//! that is wanted, [`map`] which addresses were used when, [`phases`] the localities a program went
//! through, and [`report`] all of them, for one trace. [`sweep`] has misses
//! of many traces. Each names its schema and can be read back;
//! each has a CSV form of its main table.
//!
//! # Units
//! Times are process virtual time in the unit that [`TraceFacts::time_unit`] names. Where a trace
//! has several processes their times are laid end to end in the order in which they ran. Memory is
//! in pages of [`TraceFacts::page_bytes`].

pub mod batch;
pub mod curve;
pub mod footprint;
pub mod map;
pub mod phases;
pub mod report;
pub mod sweep;
pub mod verdict;
pub mod wss;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The facts about the trace that was analysed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceFacts {
    /// The program that made the trace, with its version.
    pub source: String,
    /// The program and its arguments; empty where there was none.
    pub command: Vec<String>,
    /// The size of a page in bytes.
    pub page_bytes: u64,
    /// The kinds of repeated references that the recorder kept: `exact`, `quantum 1000`, `window
    /// 1000000`, `regions 1000000`: as windows, and an estimate.
    pub granularity: String,
    /// The unit of times.
    pub time_unit: TimeUnit,
    /// The number of references on record.
    pub records: u64,
    /// The number of pages touched; one that processes have in common counts once.
    pub pages: u64,
    /// The number of processes.
    pub processes: u64,
    /// Virtual time from the first to the last reference, over all processes.
    pub time: u64,
    /// True if the file ends before its end: a recording that was killed.
    pub is_cut: bool,
    /// True if `pages` was estimated from a sample of them.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_pages_estimate: bool,
    /// The windows of sampling, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<Windows>,
    /// The most pages that were there at one time: those of processes that had ended, or ran
    /// another program, were gone. Absent where that is all of `pages`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages_at_once: Option<u64>,
    /// The processes that this is of, where they were chosen: the rest of the trace is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<Chosen>,
}

/// A choice of a trace's processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chosen {
    /// The number of processes in the trace.
    pub of: u64,
    /// The processes that were chosen, by their numbers.
    pub processes: Vec<ChosenProcess>,
}

/// A process that was chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChosenProcess {
    /// Its number in the trace.
    pub process: u32,
    /// Its number in the system, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The last program that it ran; empty where that is not known.
    pub program: String,
}

/// The windows in which a trace was sampled: a page is on record once in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Windows {
    /// The length of the first, in nanoseconds.
    pub first_ns: u64,
    /// The length of the longest.
    pub longest_ns: u64,
    /// The most pages that were touched within the longest: of less memory the trace tells
    /// nothing.
    pub pages_touched: u64,
}

/// The unit of the times of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeUnit {
    /// Instructions the process executed.
    Instructions,
    /// References, one unit each.
    References,
    /// Nanoseconds of processor time.
    Nanoseconds,
}

/// The source of the length of a unit of virtual time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnitSource {
    /// The times are counted in that unit: its length is 1.
    Exact,
    /// The length was given by the user.
    Given,
    /// The program was run by itself when it was recorded.
    Measured,
    /// The clock of the machine was measured when the program was recorded there.
    Calibrated,
    /// A guess.
    #[default]
    Assumed,
}

/// The accuracy of a number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Accuracy {
    /// The number follows from the trace with nothing left out.
    Exact,
    /// The number was estimated from a sample of the pages.
    Sampled {
        /// The share of pages that was looked at.
        rate: f64,
        /// The largest error of a miss ratio, as a part of one; 1 where too few pages were
        /// sampled to tell.
        error: f64,
    },
}

/// A moment that the program or its user named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The time, in virtual time over all processes.
    pub time: u64,
    /// The process that was marked, counted from 0.
    pub process: u32,
    /// Its name.
    pub name: String,
}

impl TimeUnit {
    /// The unit's name for a count other than one.
    pub fn name(self) -> &'static str {
        match self {
            TimeUnit::Instructions => "instructions",
            TimeUnit::References => "references",
            TimeUnit::Nanoseconds => "nanoseconds",
        }
    }
}

impl TraceFacts {
    /// The name of the trace in a headline: its command, or what made it.
    pub fn title(&self) -> String {
        match self.command.is_empty() {
            true => self.source.clone(),
            false => self.command.join(" "),
        }
    }

    /// The shortest window of a working set that the trace can show: 0 if it was not sampled.
    pub fn window_least(&self) -> u64 {
        self.windows
            .map_or(0, |windows| windows.longest_ns.saturating_mul(2))
    }

    /// The pages for which memory in plenty has room: the most that were there at one time.
    pub fn footprint(&self) -> u64 {
        self.pages_at_once.unwrap_or(self.pages)
    }

    /// `pages` in bytes.
    pub fn bytes(&self, pages: u64) -> u64 {
        pages.saturating_mul(self.page_bytes)
    }
}

/// The text of a record as it is in a file.
pub(crate) fn to_json<T: Serialize>(record: &T) -> String {
    let mut text = serde_json::to_string(record).expect("every key is a string");
    text.push('\n');
    text
}

/// A record from its text, if it is of `schema`.
pub(crate) fn from_json<T: DeserializeOwned>(text: &str, schema: &str) -> Result<T, String> {
    #[derive(Deserialize)]
    struct Head {
        schema: String,
    }
    let head: Head = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if head.schema != schema {
        return Err(format!(
            "`schema` is `{}`; this reads `{schema}`",
            head.schema
        ));
    }
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// For fields that are written only if they are set.
pub(crate) fn is_false(value: &bool) -> bool {
    !value
}

/// A field of a CSV line: quoted where it has to be.
pub(crate) fn csv_field(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

/// The text of an optional number: empty where there is none.
pub(crate) fn csv_option<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

#[cfg(test)]
mod tests;
