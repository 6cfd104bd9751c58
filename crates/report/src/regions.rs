//! The table of regions: the same columns on a page and in a terminal.

use tidemark_results::analysis::map::{MapRecord, Region};
use tidemark_results::text;

use crate::raster::addresses;
use crate::words;

/// The names of the columns.
pub const COLUMNS: [&str; 6] = [
    "region",
    "addresses",
    "touched",
    "references",
    "stores",
    "fetches",
];

/// The regions, those that were used most first.
pub fn by_use(record: &MapRecord) -> Vec<&Region> {
    let mut regions: Vec<&Region> = record.regions.iter().collect();
    regions.sort_by_key(|region| std::cmp::Reverse((region.touched, region.records)));
    regions
}

/// The cells of a region, column by column.
pub fn row(region: &Region, record: &MapRecord) -> [String; 6] {
    [
        words::region(region, record),
        addresses(region, record.trace.page_bytes),
        text::bytes(record.trace.bytes(region.touched)),
        text::count(region.records),
        share(region.stores, region.records),
        share(region.fetches, region.records),
    ]
}

/// A part in percent.
pub fn share(part: u64, of: u64) -> String {
    format!("{:.0} %", part as f64 * 100.0 / of.max(1) as f64)
}
