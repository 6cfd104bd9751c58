//! The contents from which the pictures of a page are drawn: numbers as JSON, the map as bytes,
//! both compressed.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use tidemark_results::analysis::curve::Curve;
use tidemark_results::analysis::footprint::Footprint;
use tidemark_results::analysis::map::{MapRecord, Region};
use tidemark_results::analysis::report::ReportRecord;
use tidemark_results::analysis::wss::WindowSizes;

use super::tables::REGIONS;
use crate::colours::of_policy;
use crate::raster::{level, raster};
use crate::{footprint, numbers, regions, words};

/// The most rows of pixels that the map travels with, and the most across.
const MAP_HEIGHT: usize = 1536;
const MAP_WIDTH: usize = 2048;
/// A band has at least this many rows, so that it can be hit with a finger.
const BAND_LEAST: usize = 24;
/// The number of regions that have a band; the ones that were used least have none.
const REGIONS_MAX: usize = 120;
/// The number of moments that are drawn, the first ones.
const MARKS_MAX: usize = 400;

/// Four bytes with the length of the JSON, the JSON, and the levels of the map row by row.
pub fn packed(record: &ReportRecord) -> Vec<u8> {
    let map = busiest(&record.map);
    let width = map.columns.clamp(1, MAP_WIDTH);
    let raster = raster(&map, width, MAP_HEIGHT, 0, BAND_LEAST);
    let time = (map.columns as u64 * map.column_time).max(1);
    let listed: Vec<&Region> = regions::by_use(&record.map);
    let listed = &listed[..listed.len().min(REGIONS)];
    let in_map = map.regions.iter().map(|region| {
        let starts: Vec<u64> = region.rows.iter().map(|row| row.start).collect();
        let place = listed.iter().position(|it| *it == region);
        json!({ "name": words::region(region, &map), "starts": starts, "place": place })
    });
    let in_map: Vec<Value> = in_map.collect();
    let in_table = listed.iter().map(|region| {
        let memory = record.trace.bytes(region.touched);
        json!({ "name": words::region(region, &record.map), "memory": memory })
    });
    let in_table: Vec<Value> = in_table.collect();
    let bands: Vec<Value> = raster
        .bands
        .iter()
        .map(|band| json!({ "region": band.region, "top": band.top, "height": band.height }))
        .collect();
    let main = record.phases.main_level();
    let main = record
        .phases
        .levels
        .iter()
        .position(|level| Some(level) == main);
    let text = json!({
        "trace": record.trace,
        "curves": record.curve.curves.iter().enumerate()
            .map(|(at, curve)| curve_value(at, curve, record)).collect::<Vec<Value>>(),
        "sizes": record.wss.windows.iter().enumerate()
            .map(|(at, line)| window_value(at, line, record)).collect::<Vec<Value>>(),
        "footprint": record.wss.footprint.as_ref().map(|it| footprint_value(it, record)),
        "phases": { "levels": record.phases.levels, "main": main, "time": record.trace.time },
        "map": {
            "width": raster.width, "height": raster.height, "time": time, "most": raster.most,
            "regions": in_map, "bands": bands, "marks": map.marks,
        },
        "regions": in_table,
    })
    .to_string();
    let levels: Vec<u8> = raster
        .cells
        .iter()
        .map(|cell| level(*cell, raster.most))
        .collect();
    pack(&text, &levels)
}

/// Four bytes with the length of `text`, the text, and `rest`, compressed.
pub(crate) fn pack(text: &str, rest: &[u8]) -> Vec<u8> {
    let length = u32::try_from(text.len()).expect("aggregated records are small");
    let mut packer = GzEncoder::new(vec![], Compression::best());
    let written = packer
        .write_all(&length.to_le_bytes())
        .and_then(|()| packer.write_all(text.as_bytes()))
        .and_then(|()| packer.write_all(rest));
    written.expect("memory takes all writes");
    packer.finish().expect("memory takes all writes")
}

/// The map with the regions that were used most, in their order.
fn busiest(map: &MapRecord) -> MapRecord {
    let mut by_use: Vec<usize> = (0..map.regions.len()).collect();
    by_use
        .sort_by_key(|at| std::cmp::Reverse((map.regions[*at].records, map.regions[*at].touched)));
    by_use.truncate(REGIONS_MAX);
    by_use.sort_unstable();
    MapRecord {
        regions: by_use.iter().map(|at| map.regions[*at].clone()).collect(),
        schema: map.schema.clone(),
        tidemark: map.tidemark.clone(),
        trace: map.trace.clone(),
        marks: map.marks.iter().take(MARKS_MAX).cloned().collect(),
        ..*map
    }
}

fn curve_value(at: usize, curve: &Curve, record: &ReportRecord) -> Value {
    let page_bytes = record.trace.page_bytes as f64;
    // A line needs one value for each place, rising: of equal places the fewest misses stand.
    // With less than a page nothing runs: such means would only stretch the axis.
    let points = curve.points.iter();
    let mut points: Vec<_> = points.filter(|point| point.memory_pages() >= 1.0).collect();
    points.sort_by(|a, b| {
        let by_memory = a.memory_pages().total_cmp(&b.memory_pages());
        by_memory.then(a.misses.cmp(&b.misses))
    });
    points.dedup_by(|next, kept| next.memory_pages() == kept.memory_pages());
    let memory: Vec<f64> = points
        .iter()
        .map(|point| (point.memory_pages() * page_bytes).round())
        .collect();
    let misses: Vec<u64> = points.iter().map(|point| point.misses).collect();
    let windows: Option<Vec<u64>> = points.iter().map(|point| point.window).collect();
    let knee = curve
        .knee
        .map(|knee| json!({ "memory": knee.pages * page_bytes, "lifetime": knee.lifetime }));
    json!({
        "name": words::policy(&curve.policy),
        "ink": ink_of(&curve.policy, at),
        "dashed": of_policy(&curve.policy, at).1,
        "memory": memory,
        "misses": misses,
        "window": windows,
        "knee": knee,
    })
}

fn window_value(at: usize, line: &WindowSizes, record: &ReportRecord) -> Value {
    let page_bytes = record.trace.page_bytes;
    let buckets = &line.buckets;
    let mean = |mean: f64| (mean * page_bytes as f64).round();
    json!({
        "name": numbers::time_short(line.window as f64, record.trace.time_unit),
        "ink": format!("--s{}", at % 7),
        "times": buckets.iter().map(|bucket| bucket.from).collect::<Vec<u64>>(),
        "min": buckets.iter().map(|bucket| bucket.min * page_bytes).collect::<Vec<u64>>(),
        "mean": buckets.iter().map(|bucket| mean(bucket.mean)).collect::<Vec<f64>>(),
        "max": buckets.iter().map(|bucket| bucket.max * page_bytes).collect::<Vec<u64>>(),
    })
}

fn footprint_value(footprint: &Footprint, record: &ReportRecord) -> Value {
    let page_bytes = record.trace.page_bytes;
    let lines = footprint::lines(footprint)
        .into_iter()
        .map(|(name, pages)| {
            let bytes = pages.iter().map(|pages| pages * page_bytes);
            json!({ "name": name, "bytes": bytes.collect::<Vec<u64>>() })
        });
    let times = footprint.intervals.iter().map(|interval| interval.from);
    json!({ "times": times.collect::<Vec<u64>>(), "lines": lines.collect::<Vec<Value>>() })
}

/// The page's name for a policy's colour; the theme says which colour that is.
fn ink_of(policy: &str, at: usize) -> String {
    let (colour, _) = of_policy(policy, at);
    let place = crate::colours::LINES
        .iter()
        .position(|line| *line == colour);
    format!("--s{}", place.expect("lines have colours of the palette"))
}
