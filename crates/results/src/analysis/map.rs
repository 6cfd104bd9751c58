//! The addresses that were used, and the times: a heat map, divided into the regions of each
//! process.

use serde::{Deserialize, Serialize};

use super::{Mark, TraceFacts, csv_field};

/// The name and version of the record's layout.
pub const SCHEMA: &str = "tidemark.map.v1";

/// The findings of `tidemark map`.
///
/// A cell is a row (some consecutive pages of a region) and a column (an equal span of time); its
/// value is how many references fell into it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MapRecord {
    /// The layout: [`SCHEMA`].
    pub schema: String,
    /// The version of the command that wrote the record.
    pub tidemark: String,
    /// The trace.
    pub trace: TraceFacts,
    /// The number of columns of the time line.
    pub columns: usize,
    /// The virtual time of one column; the last may be shorter.
    pub column_time: u64,
    /// The regions, by process and then by address.
    pub regions: Vec<Region>,
    /// Moments that were named, in order.
    pub marks: Vec<Mark>,
}

/// A part of an address space that holds one kind of thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// The process, counted from 0 in order of appearance.
    pub process: u32,
    /// The program it ran when the region was first used.
    pub program: String,
    /// A file's path, `[heap]`, `[stack]`, `anonymous`, or `unnamed` where the trace says nothing.
    pub label: String,
    /// Its first page.
    pub start: u64,
    /// The number of pages that lie from its first to its last row.
    pub pages: u64,
    /// The number of its pages that were touched.
    pub touched: u64,
    /// References on record.
    pub records: u64,
    /// Of those, the ones that stored.
    pub stores: u64,
    /// Of those, the ones that fetched instructions.
    pub fetches: u64,
    /// Its rows, by address. Rows without a reference are left out.
    pub rows: Vec<Row>,
}

/// Consecutive pages, and how often they were referred to in each column.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Its first page.
    pub start: u64,
    /// The number of pages that it covers.
    pub pages: u64,
    /// The first column with a reference.
    pub from: usize,
    /// References in each column from there to the last column that has any.
    pub cells: Vec<u64>,
}

impl MapRecord {
    /// The record as it is in a file.
    pub fn to_json(&self) -> String {
        super::to_json(self)
    }

    /// Reads a record back.
    ///
    /// # Errors
    /// The text is not a record, or one of another schema.
    pub fn from_json(text: &str) -> Result<MapRecord, String> {
        super::from_json(text, SCHEMA)
    }

    /// The cells that have a reference, a line each.
    pub fn to_csv(&self) -> String {
        let mut text = String::from("process,label,page,pages,time,records\n");
        for region in &self.regions {
            let label = csv_field(&region.label);
            for row in &region.rows {
                for (at, records) in row.cells.iter().enumerate().filter(|(_, cell)| **cell > 0) {
                    text.push_str(&format!(
                        "{},{label},{},{},{},{records}\n",
                        region.process,
                        row.start,
                        row.pages,
                        (row.from + at) as u64 * self.column_time,
                    ));
                }
            }
        }
        text
    }
}

impl Region {
    /// The label beside the region: a file's name without its folders.
    pub fn short_label(&self) -> &str {
        match self.label.starts_with('/') {
            true => self.label.rsplit('/').next().unwrap_or(&self.label),
            false => &self.label,
        }
    }
}
