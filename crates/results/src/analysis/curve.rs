//! Misses by memory: one curve a policy, over all sizes.

use serde::{Deserialize, Serialize};

use super::verdict::Verdict;
use super::{Accuracy, TraceFacts, UnitSource, csv_field, csv_option};

/// The name and version of the record's layout.
pub const SCHEMA: &str = "tidemark.curve.v1";

/// The findings of `tidemark curve`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurveRecord {
    /// The layout: [`SCHEMA`].
    pub schema: String,
    /// The version of the command that wrote the record.
    pub tidemark: String,
    /// The trace.
    pub trace: TraceFacts,
    /// A curve for each policy that was asked for, in that order.
    pub curves: Vec<Curve>,
    /// The memory that the program needs under `tidemark run`, if that was simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunNeeds>,
    /// The reasons for its misses, if both LRU and the optimum were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The memory that the program needs under an ideal policy, by how much it may be slowed down.
    pub needs: Vec<Need>,
    /// Remarks that a reader of the numbers may need.
    pub notes: Vec<String>,
}

/// One policy's misses at each size of memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// The policy's name on the command line.
    pub policy: String,
    /// The kind of space: a constant, or one that follows the program.
    pub space: Space,
    /// The accuracy of the misses.
    pub accuracy: Accuracy,
    /// The size at which more memory begins to pay less, if the curve has such a place.
    pub knee: Option<Knee>,
    /// The points, with pages rising.
    pub points: Vec<Point>,
}

/// The kind of space that a policy works in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Space {
    /// A constant number of frames.
    Fixed,
    /// The resident set grows and shrinks; its mean stands for the memory used.
    Variable,
}

/// One size of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Frames. For a variable space the mean of the resident set, rounded up; with sizes that were
    /// asked for, the size that was asked for.
    pub pages: u64,
    /// References that missed, first touches included.
    pub misses: u64,
    /// The standard error of `misses`, where they were estimated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misses_error: Option<f64>,
    /// The policy's parameter at this point, for a variable space: a window of virtual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// The mean of the resident set over virtual time, for a variable space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_pages: Option<f64>,
}

/// The knee of a lifetime curve: where a ray from the origin to it is steepest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Knee {
    /// Memory there, in pages.
    pub pages: f64,
    /// Virtual time between misses there.
    pub lifetime: f64,
    /// The policy's parameter there, for a variable space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
}

/// The least memory for a bounded slow-down, and what that takes for granted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Need {
    /// The policy that has the memory.
    pub policy: String,
    /// The bound: how much longer the program may take, in percent of its time in ample memory.
    pub slowdown_percent_max: f64,
    /// The slow-down that it has, as far as page-ins are concerned.
    pub slowdown_percent: f64,
    /// The least memory that keeps the bound; for a variable space its mean, rounded up.
    pub pages: u64,
    /// The least memory that keeps the bound, in bytes.
    pub bytes: u64,
    /// The most memory at any one time, in pages.
    pub pages_peak: u64,
    /// The policy's parameter, for a variable space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// Misses on pages that had been there before.
    pub page_ins: u64,
    /// True if less may suffice: the trace was sampled, and does not show less.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub is_at_most: bool,
    /// The assumed cost of a page-in, in nanoseconds.
    pub page_in_ns: f64,
    /// The assumed length of a unit of virtual time, in nanoseconds.
    pub time_unit_ns: f64,
    /// The source of that length.
    #[serde(default)]
    pub time_unit_source: UnitSource,
}

/// The least memory under `tidemark run`, by how much the program may be slowed down: from
/// simulations of it in several sizes of memory, with all that it costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunNeeds {
    /// The policy.
    pub policy: String,
    /// The store: where pages go that leave.
    #[serde(default)]
    pub store: String,
    /// The sizes to which pages compress, as they were assumed.
    #[serde(default)]
    pub compression: String,
    /// The disk that is swapped to.
    pub disk: String,
    /// The assumed cost of a fault, in nanoseconds.
    pub fault_ns: u64,
    /// The assumed length of a unit of virtual time, in nanoseconds.
    pub time_unit_ns: f64,
    /// The source of that length.
    pub time_unit_source: UnitSource,
    /// The time of the program by itself, in nanoseconds.
    pub native_ns: u64,
    /// The time that it takes to start, beyond that, in any amount of memory.
    #[serde(default)]
    pub start_ns: u64,
    /// The pages of managed memory that the program uses, those of each process apart.
    pub footprint_pages: u64,
    /// The slow-down with all the memory that it uses, in percent; none if that is more
    /// than all bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowdown_percent_least: Option<f64>,
    /// The bounds that no size of memory keeps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slowdowns_percent_unmet: Vec<f64>,
    /// The bounds for which the program is too short: what it may take longer is less than the
    /// chance in what it takes to start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slowdowns_percent_short: Vec<f64>,
    /// The answers, bounds rising.
    pub needs: Vec<RunNeed>,
}

/// The least memory under `tidemark run` for a bounded slow-down.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunNeed {
    /// The bound: how much longer the program may take, in percent of its time by itself.
    pub slowdown_percent_max: f64,
    /// The slow-down with that memory.
    pub slowdown_percent: f64,
    /// The least memory that keeps the bound.
    pub pages: u64,
    /// The least memory that keeps the bound, in bytes.
    pub bytes: u64,
    /// The least memory, in pages, if the assumed costs are too high by as much as they may be.
    pub pages_low: u64,
    /// The least memory, in pages, if the assumed costs are too low by as much as they may be; none
    /// if no size of memory keeps the bound then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages_high: Option<u64>,
    /// Pages that come back from the disk, with that memory.
    pub page_ins: u64,
    /// True if less may suffice: the trace does not show less, or nothing runs in less.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub is_at_most: bool,
}

impl CurveRecord {
    /// The record as it is in a file.
    pub fn to_json(&self) -> String {
        super::to_json(self)
    }

    /// Reads a record back.
    ///
    /// # Errors
    /// The text is not a record, or one of another schema.
    pub fn from_json(text: &str) -> Result<CurveRecord, String> {
        super::from_json(text, SCHEMA)
    }

    /// The points of all curves, a line each.
    pub fn to_csv(&self) -> String {
        let mut text =
            String::from("policy,pages,bytes,misses,lifetime,window,mean_pages,misses_error\n");
        for curve in &self.curves {
            let policy = csv_field(&curve.policy);
            for point in &curve.points {
                text.push_str(&format!(
                    "{policy},{},{},{},{:.3},{},{},{}\n",
                    point.pages,
                    self.trace.bytes(point.pages),
                    point.misses,
                    point.lifetime(&self.trace),
                    csv_option(point.window),
                    csv_option(point.mean_pages),
                    csv_option(point.misses_error),
                ));
            }
        }
        text
    }

    /// The curve of a policy.
    pub fn curve(&self, policy: &str) -> Option<&Curve> {
        self.curves.iter().find(|curve| curve.policy == policy)
    }
}

impl Point {
    /// Virtual time between misses.
    pub fn lifetime(&self, trace: &TraceFacts) -> f64 {
        trace.time as f64 / self.misses.max(1) as f64
    }

    /// Memory used, as exactly as it is known.
    pub fn memory_pages(&self) -> f64 {
        self.mean_pages.unwrap_or(self.pages as f64)
    }
}
