//! The footprint: memory touched beside what is allocated, and regions with memory that is mapped
//! and never touched. The same lines and rows on a page and in a [terminal](drawing).

pub mod drawing;

use tidemark_results::analysis::footprint::{Footprint, Interval};
use tidemark_results::analysis::wss::WssRecord;
use tidemark_results::text;

use crate::numbers;

/// The number of regions that the table lists.
const REGIONS: usize = 12;
/// More than this multiple of touched memory is not drawn: it would press the other lines flat.
const HIGHEST: u64 = 16;
/// The columns of the table of regions.
pub(crate) const COLUMNS: [&str; 5] = ["region", "mapped", "touched", "never touched", ""];

/// The lines of the picture, the highest first: their names, and pages in each interval.
pub(crate) fn lines(footprint: &Footprint) -> Vec<(&'static str, Vec<u64>)> {
    let of = |pages: fn(&Interval) -> Option<u64>| {
        let pages = footprint.intervals.iter().map(pages);
        pages.collect::<Option<Vec<u64>>>()
    };
    let so_far = footprint.touched_so_far();
    let bound = so_far.last().copied().unwrap_or(0).saturating_mul(HIGHEST);
    let touched = footprint.intervals.iter().map(|interval| interval.touched);
    let new = footprint.intervals.iter().map(|interval| interval.new);
    let mut lines = vec![
        ("mapped", of(|interval| interval.mapped)),
        ("allocated", of(|interval| interval.allocated)),
    ];
    lines.retain(|(_, pages)| {
        let most = pages.iter().flatten().max();
        most.is_some_and(|most| *most <= bound)
    });
    let known = lines
        .into_iter()
        .map(|(name, pages)| (name, pages.unwrap_or_default()));
    let own = [
        ("touched so far", so_far),
        ("touched", touched.collect()),
        ("new", new.collect()),
    ];
    known.chain(own).collect()
}

/// The most that was allocated and mapped, beside what was touched, in words.
pub(crate) fn sentence(record: &WssRecord, footprint: &Footprint) -> String {
    let bytes = |pages: u64| text::bytes(record.trace.bytes(pages));
    let touched = footprint.touched_so_far().last().copied().unwrap_or(0);
    let interval = numbers::time(footprint.interval as f64, record.trace.time_unit);
    let mut told = format!("{} touched in all; intervals of {interval}", bytes(touched));
    let intervals = || footprint.intervals.iter();
    let allocated = intervals().filter_map(|it| it.allocated).max();
    let mapped = intervals().filter_map(|it| it.mapped).max();
    if let (Some(allocated), Some(mapped)) = (allocated, mapped) {
        told.push_str(&format!(
            "; at most {} allocated, and {} mapped, at one time",
            bytes(allocated),
            bytes(mapped)
        ));
    }
    told + "."
}

/// A row for each region that has most memory that was mapped and never touched.
pub(crate) fn rows(footprint: &Footprint, page_bytes: u64) -> Vec<Vec<String>> {
    let bytes = |pages: u64| text::bytes(pages * page_bytes);
    let regions = footprint.regions.iter().take(REGIONS);
    let rows = regions.map(|region| {
        let name = match region.label.starts_with('/') {
            true => region.label.rsplit('/').next().unwrap_or(&region.label),
            false => &region.label,
        };
        let share = region.never_touched() as f64 * 100.0 / region.mapped.max(1) as f64;
        vec![
            name.to_owned(),
            bytes(region.mapped),
            bytes(region.touched),
            bytes(region.never_touched()),
            format!("{share:.0} %"),
        ]
    });
    rows.collect()
}
