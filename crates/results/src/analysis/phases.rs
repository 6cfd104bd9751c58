//! The localities a program went through.

use serde::{Deserialize, Serialize};

use super::{Mark, TraceFacts};

/// The name and version of the record's layout.
pub const SCHEMA: &str = "tidemark.phases.v1";

/// The phases of a trace, by the size of their localities.
///
/// A program keeps to a few pages for a short while within a time in which it keeps to more:
/// phases of different levels lie inside one another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhasesRecord {
    /// The layout: [`SCHEMA`].
    pub schema: String,
    /// The version of the command that wrote the record.
    pub tidemark: String,
    /// The trace.
    pub trace: TraceFacts,
    /// The shortest stay that counts as a phase, in virtual time.
    pub phase_time_min: u64,
    /// Phases of each class of sizes that has some, smallest first.
    pub levels: Vec<Level>,
    /// Moments that were named, in order.
    pub marks: Vec<Mark>,
}

/// Phases whose localities are about as large.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// The smallest locality of the class, in pages.
    pub pages_from: u64,
    /// The largest locality of the class, in pages.
    pub pages_to: u64,
    /// The share of time spent in these phases; the rest is transitions.
    pub share: f64,
    /// Pages of the locality, averaged over the time in phases.
    pub pages_mean: f64,
    /// The phases, in order of time.
    pub phases: Vec<Phase>,
}

/// A time in which a program keeps to one set of pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase {
    /// The time at which it begins.
    pub from: u64,
    /// The time at which it ends.
    pub until: u64,
    /// The number of pages of its locality.
    pub pages: u64,
    /// The number of them that the phase before did not have.
    pub pages_new: u64,
}

impl PhasesRecord {
    /// The record as it is in a file.
    pub fn to_json(&self) -> String {
        super::to_json(self)
    }

    /// Reads a record back.
    ///
    /// # Errors
    /// The text is not a record, or one of another schema.
    pub fn from_json(text: &str) -> Result<PhasesRecord, String> {
        super::from_json(text, SCHEMA)
    }

    /// The phases of all levels, a line each.
    pub fn to_csv(&self) -> String {
        let mut text = String::from("pages_from,pages_to,from,until,pages,pages_new\n");
        for level in &self.levels {
            for phase in &level.phases {
                text.push_str(&format!(
                    "{},{},{},{},{},{}\n",
                    level.pages_from,
                    level.pages_to,
                    phase.from,
                    phase.until,
                    phase.pages,
                    phase.pages_new
                ));
            }
        }
        text
    }

    /// The level that tells most of the program: of those that hold for half of the time the one
    /// with the largest localities, else the one that holds longest.
    pub fn main_level(&self) -> Option<&Level> {
        let half = self.levels.iter().rev().find(|level| level.share >= 0.5);
        half.or_else(|| {
            let by_share = |a: &&Level, b: &&Level| a.share.total_cmp(&b.share);
            self.levels.iter().max_by(by_share)
        })
    }
}
