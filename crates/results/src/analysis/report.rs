//! Everything that was found out about one trace.

use serde::{Deserialize, Serialize};

use super::curve::CurveRecord;
use super::map::MapRecord;
use super::phases::PhasesRecord;
use super::wss::WssRecord;
use super::{TraceFacts, csv_field, csv_option};

/// The name and version of the record's layout.
pub const SCHEMA: &str = "tidemark.report.v1";

/// The findings of `tidemark report`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReportRecord {
    /// The layout: [`SCHEMA`].
    pub schema: String,
    /// The version of the command that wrote the record.
    pub tidemark: String,
    /// The trace.
    pub trace: TraceFacts,
    /// Misses by memory, and the memory needed.
    pub curve: CurveRecord,
    /// The working set over time.
    pub wss: WssRecord,
    /// Addresses over time.
    pub map: MapRecord,
    /// Localities.
    pub phases: PhasesRecord,
    /// The cost of memory over time, by policy.
    pub space_time: SpaceTimes,
}

/// Space-time products, and what they take for granted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SpaceTimes {
    /// A unit of virtual time, in nanoseconds.
    pub time_unit_ns: f64,
    /// The wait for a page that was resident before, in nanoseconds.
    pub page_in_ns: f64,
    /// The wait for a page that never was, in nanoseconds.
    pub first_touch_ns: f64,
    /// The policy's work at a miss, in nanoseconds.
    pub choice_ns: f64,
    /// The policy's work to look at a resident page, in nanoseconds.
    pub look_ns: f64,
    /// Virtual time from one look at all resident pages to the next, for policies that look; 0 for
    /// never.
    pub look_every: u64,
    /// A line for each policy.
    pub rows: Vec<SpaceTime>,
}

/// Memory held over time by one policy, in page-nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SpaceTime {
    /// The policy's name on the command line.
    pub policy: String,
    /// Memory in the mean over virtual time, in pages.
    pub pages: f64,
    /// The policy's parameter there, for a variable space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// References that missed, first touches included.
    pub misses: u64,
    /// While the program ran. This alone is Denning's approximation.
    pub running: f64,
    /// While it waited for pages.
    pub waiting: f64,
    /// While the policy worked.
    pub managing: f64,
    /// The program's whole time, in nanoseconds.
    pub elapsed_ns: f64,
}

impl SpaceTime {
    /// The space-time product, with nothing left out.
    pub fn total(&self) -> f64 {
        self.running + self.waiting + self.managing
    }
}

impl ReportRecord {
    /// The record as it is in a file.
    pub fn to_json(&self) -> String {
        super::to_json(self)
    }

    /// Reads a record back.
    ///
    /// # Errors
    /// The text is not a record, or one of another schema.
    pub fn from_json(text: &str) -> Result<ReportRecord, String> {
        super::from_json(text, SCHEMA)
    }

    /// The space-time table, a line a policy.
    pub fn to_csv(&self) -> String {
        let head = "policy,pages,window,misses,running,waiting,managing,total,elapsed_ns\n";
        let mut text = String::from(head);
        for row in &self.space_time.rows {
            text.push_str(&format!(
                "{},{},{},{},{},{},{},{},{}\n",
                csv_field(&row.policy),
                row.pages,
                csv_option(row.window),
                row.misses,
                row.running,
                row.waiting,
                row.managing,
                row.total(),
                row.elapsed_ns,
            ));
        }
        text
    }
}
