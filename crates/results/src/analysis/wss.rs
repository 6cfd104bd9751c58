//! The size of the working set over time, at several windows.

use serde::{Deserialize, Serialize};

use super::footprint::Footprint;
use super::{Mark, TraceFacts};

/// The name and version of the record's layout.
pub const SCHEMA: &str = "tidemark.wss.v1";

/// The findings of `tidemark wss`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WssRecord {
    /// The layout: [`SCHEMA`].
    pub schema: String,
    /// The version of the command that wrote the record.
    pub tidemark: String,
    /// The trace.
    pub trace: TraceFacts,
    /// A time line for each window, windows rising.
    pub windows: Vec<WindowSizes>,
    /// Moments that were named, in order.
    pub marks: Vec<Mark>,
    /// Memory touched, allocated and mapped over time, if that was wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub footprint: Option<Footprint>,
}

/// The working set at one window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowSizes {
    /// The window, in virtual time: a page is in the set for so long after a reference.
    pub window: u64,
    /// The share of the time at which the size is known, from 0 to 1; absent where that is all of
    /// it. What follows is of that time.
    #[serde(default = "all", skip_serializing_if = "is_all")]
    pub known_share: f64,
    /// The mean size, in pages.
    pub mean: f64,
    /// The standard deviation of the size, in pages.
    pub deviation: f64,
    /// The largest size, in pages.
    pub peak: u64,
    /// Equal spans of time, in order; those are missing in which the size is not known throughout.
    pub buckets: Vec<SizeBucket>,
}

/// The sizes within one span of time, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SizeBucket {
    /// The time at which the span begins.
    pub from: u64,
    /// The least size.
    pub min: u64,
    /// The mean size.
    pub mean: f64,
    /// The largest size.
    pub max: u64,
}

fn all() -> f64 {
    1.0
}

fn is_all(share: &f64) -> bool {
    *share >= 1.0
}

impl WindowSizes {
    /// The buckets, in stretches without a gap.
    pub fn stretches(&self) -> impl Iterator<Item = &[SizeBucket]> {
        let steps = self.buckets.windows(2).map(|two| two[1].from - two[0].from);
        let step = steps.min().unwrap_or(0);
        self.buckets
            .chunk_by(move |one, next| next.from - one.from <= step)
    }
}

impl WssRecord {
    /// The record as it is in a file.
    pub fn to_json(&self) -> String {
        super::to_json(self)
    }

    /// Reads a record back.
    ///
    /// # Errors
    /// The text is not a record, or one of another schema.
    pub fn from_json(text: &str) -> Result<WssRecord, String> {
        super::from_json(text, SCHEMA)
    }

    /// The buckets of all windows, a line each.
    pub fn to_csv(&self) -> String {
        let mut text = String::from("window,time,min_pages,mean_pages,max_pages\n");
        for line in &self.windows {
            for bucket in &line.buckets {
                text.push_str(&format!(
                    "{},{},{},{},{}\n",
                    line.window, bucket.from, bucket.min, bucket.mean, bucket.max
                ));
            }
        }
        text
    }
}
