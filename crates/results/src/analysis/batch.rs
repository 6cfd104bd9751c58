//! Misses of caches of which visits want several objects at once, by the room that they have.

use serde::{Deserialize, Serialize};

use super::{TraceFacts, csv_field};

/// The name and version of the record's layout.
pub const SCHEMA: &str = "tidemark.batch.v1";

/// The findings of `tidemark curve --batch`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BatchRecord {
    /// The layout: [`SCHEMA`].
    pub schema: String,
    /// The version of the command that wrote the record.
    pub tidemark: String,
    /// The trace.
    pub trace: TraceFacts,
    /// The unit of rooms.
    pub unit: RoomUnit,
    /// The number of visits.
    pub visits: u64,
    /// The number of wants: each object once for each visit that wants it.
    pub wants: u64,
    /// The number of objects that any visit wants.
    pub objects: u64,
    /// The room that all objects take together.
    pub whole: u64,
    /// The room that the objects of the largest visit take.
    pub largest_visit: u64,
    /// A curve for each policy or bound, in the order in which they were asked for.
    pub curves: Vec<BatchCurve>,
    /// Remarks that a reader of the numbers may need.
    pub notes: Vec<String>,
}

/// The unit of the room that a cache has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RoomUnit {
    /// Objects, which are taken to be of one size.
    Objects,
    /// Bytes: the trace tells the size of each object.
    Bytes,
}

/// One policy's misses in each room.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BatchCurve {
    /// The policy's name on the command line; `pfoo-l` and `farthest` are bounds of the optimum.
    pub policy: String,
    /// The points.
    pub points: Vec<BatchPoint>,
}

/// One size of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BatchPoint {
    /// The room between visits.
    pub room: u64,
    /// The wants that missed.
    pub misses: u64,
    /// The share of wants that missed.
    pub miss_ratio: f64,
}

impl BatchRecord {
    /// The record as it is in a file.
    pub fn to_json(&self) -> String {
        super::to_json(self)
    }

    /// Reads a record back.
    ///
    /// # Errors
    /// The text is not a record, or one of another schema.
    pub fn from_json(text: &str) -> Result<BatchRecord, String> {
        super::from_json(text, SCHEMA)
    }

    /// The points of all curves, a line each; ratios to six decimals.
    pub fn to_csv(&self) -> String {
        let mut text = format!("policy,{},misses,miss_ratio\n", self.unit.name());
        for curve in &self.curves {
            let policy = csv_field(&curve.policy);
            for point in &curve.points {
                let BatchPoint {
                    room,
                    misses,
                    miss_ratio,
                } = point;
                text.push_str(&format!("{policy},{room},{misses},{miss_ratio:.6}\n"));
            }
        }
        text
    }
}

impl RoomUnit {
    /// Its name, as in records.
    pub fn name(self) -> &'static str {
        match self {
            RoomUnit::Objects => "objects",
            RoomUnit::Bytes => "bytes",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::TimeUnit;

    fn record() -> BatchRecord {
        BatchRecord {
            schema: SCHEMA.into(),
            tidemark: "0".into(),
            trace: TraceFacts {
                source: "a test".into(),
                command: vec![],
                page_bytes: 4096,
                granularity: "exact".into(),
                time_unit: TimeUnit::References,
                records: 9,
                pages: 4,
                processes: 1,
                time: 9,
                is_cut: false,
                is_pages_estimate: false,
                windows: None,
                pages_at_once: None,
                chosen: None,
            },
            unit: RoomUnit::Bytes,
            visits: 3,
            wants: 8,
            objects: 4,
            whole: 1000,
            largest_visit: 700,
            curves: vec![BatchCurve {
                policy: "lru".into(),
                points: vec![BatchPoint {
                    room: 512,
                    misses: 5,
                    miss_ratio: 0.625,
                }],
            }],
            notes: vec![],
        }
    }

    #[test]
    fn a_record_is_read_back_as_it_was() {
        let text = record().to_json();
        assert_eq!(BatchRecord::from_json(&text), Ok(record()));
        let other = text.replace("batch.v1", "batch.v2");
        assert!(
            BatchRecord::from_json(&other)
                .unwrap_err()
                .contains("tidemark.batch.v1")
        );
    }

    #[test]
    fn a_point_is_a_line() {
        let expected = "policy,bytes,misses,miss_ratio\nlru,512,5,0.625000\n";
        assert_eq!(record().to_csv(), expected);
    }
}
