//! Working sets over time as a picture.

use tidemark_results::analysis::phases::PhasesRecord;
use tidemark_results::analysis::wss::{SizeBucket, WindowSizes, WssRecord};

use super::Picture;
use super::chart::{Area, Chart, Series};
use super::curves::draw_head;
use crate::axis::{Axis, Quantity, Spread};
use crate::colours::{LINES, Rgb};
use crate::{numbers, words};

const WIDTH: usize = 960;
const HEIGHT: usize = 520;
const HEAD: f64 = 64.0;
/// Tints of phases: two neighbours differ.
const TINTS: [Rgb; 2] = [[228, 236, 246], [246, 238, 226]];

/// The sizes at every window. Phases, where they are given, are tinted.
pub fn sizes(record: &WssRecord, phases: Option<&PhasesRecord>) -> Picture {
    let mut picture = Picture::new(WIDTH, HEIGHT);
    draw_head(
        &mut picture,
        &words::title(&record.trace),
        &words::facts(&record.trace),
    );
    let page_bytes = record.trace.page_bytes as f64;
    let most = record
        .windows
        .iter()
        .map(|line| line.peak)
        .max()
        .unwrap_or(1);
    let unit = record.trace.time_unit;
    let time = record.trace.time as f64;
    let level = phases.and_then(PhasesRecord::main_level);
    let spans = level.map(|level| {
        let spans = level.phases.iter().enumerate();
        spans
            .map(|(at, phase)| {
                let tint = TINTS[at % TINTS.len()];
                (phase.from as f64, phase.until as f64, tint)
            })
            .collect()
    });
    let chart = Chart {
        title: "Working set: memory used within a window of virtual time".into(),
        across_name: format!("virtual time ({})", unit.name()),
        across: Axis::new(Quantity::Time(unit), Spread::Linear, 0.0, time),
        up: Axis::new(
            Quantity::Bytes,
            Spread::Linear,
            0.0,
            most as f64 * page_bytes * 1.05,
        ),
        series: record
            .windows
            .iter()
            .enumerate()
            .rev()
            .flat_map(|(at, line)| series(at, line, record))
            .collect(),
        spans: spans.unwrap_or_default(),
        levels: vec![],
        marks: record
            .marks
            .iter()
            .map(|mark| (mark.time as f64, mark.name.clone()))
            .collect(),
    };
    let area = Area {
        x: 0.0,
        y: HEAD,
        width: WIDTH as f64,
        height: HEIGHT as f64 - HEAD,
    };
    chart.draw(&mut picture, area);
    picture
}

/// A line through lowest and highest of each span, so that no peak is lost; one for each stretch of
/// spans, the first with the name.
fn series(at: usize, line: &WindowSizes, record: &WssRecord) -> Vec<Series> {
    let unit = record.trace.time_unit;
    let page_bytes = record.trace.page_bytes as f64;
    let window = numbers::time_short(line.window as f64, unit);
    let step = line
        .buckets
        .windows(2)
        .map(|two| two[1].from - two[0].from)
        .min();
    let points = |stretch: &[SizeBucket]| -> Vec<(f64, f64)> {
        let points = stretch.iter().flat_map(|bucket| {
            let until = step.map_or(record.trace.time, |step| bucket.from + step);
            let until = until.min(record.trace.time).max(bucket.from);
            let part = |part: f64| bucket.from as f64 + (until - bucket.from) as f64 * part;
            [
                (part(0.33), bucket.min as f64 * page_bytes),
                (part(0.67), bucket.max as f64 * page_bytes),
            ]
        });
        points.collect()
    };
    let stretches = line.stretches().enumerate();
    let series = stretches.map(|(place, stretch)| Series {
        name: match place {
            0 => format!("window {window}"),
            _ => String::new(),
        },
        colour: LINES[at % LINES.len()],
        is_dashed: false,
        width: 1.5,
        points: points(stretch),
        dot: None,
    });
    series.collect()
}
