//! Working sets over time in a terminal, and a table of the windows.

use tidemark_results::analysis::wss::WssRecord;
use tidemark_results::text;

use super::canvas::{Canvas, MARGIN};
use super::paragraphs::{headline, wrapped};
use super::screen::Screen;
use crate::axis::{Axis, Quantity, Spread};
use crate::colours::LINES;
use crate::{numbers, words};

/// Headline, drawing and table.
pub fn sizes(record: &WssRecord, screen: Screen) -> String {
    let mut text = headline(&record.trace, screen);
    text.push_str(&legend(record, screen));
    text.push_str(&drawing(record, screen));
    text.push('\n');
    text.push_str(&table(record));
    if let Some(line) = words::sight(&record.trace) {
        text.push_str(&wrapped(&line, screen.columns));
    }
    text
}

fn legend(record: &WssRecord, screen: Screen) -> String {
    let unit = record.trace.time_unit;
    let mut text = String::from("  working set over time, by window: ");
    for (at, line) in record.windows.iter().enumerate() {
        let sign = screen.paint(&format!("{}⠒", letter(at)), LINES[at % LINES.len()]);
        let window = numbers::time_short(line.window as f64, unit);
        text.push_str(&format!(" {sign} {window} "));
    }
    format!("{}\n", text.trim_end())
}

fn drawing(record: &WssRecord, screen: Screen) -> String {
    let trace = &record.trace;
    let page_bytes = trace.page_bytes as f64;
    let peak = record
        .windows
        .iter()
        .map(|line| line.peak)
        .max()
        .unwrap_or(1);
    let time = Quantity::Time(trace.time_unit);
    let across = Axis::new(time, Spread::Linear, 0.0, trace.time as f64);
    let up = Axis::new(
        Quantity::Bytes,
        Spread::Linear,
        0.0,
        peak as f64 * page_bytes,
    );
    let mut canvas = Canvas::new(screen.columns - MARGIN, screen.lines);
    for (at, line) in record.windows.iter().enumerate().rev() {
        for stretch in line.stretches() {
            let spots = stretch.iter().flat_map(|bucket| {
                let x = across.place(bucket.from as f64);
                let y = |pages: u64| up.place(pages as f64 * page_bytes);
                [(x, y(bucket.min)), (x, y(bucket.max))]
            });
            let spots: Vec<(f64, f64)> = spots.collect();
            canvas.line(&spots, LINES[at % LINES.len()]);
        }
    }
    // Without colours the letters tell the lines apart: each at its own part of the time.
    let count = record.windows.len();
    for (at, line) in record.windows.iter().enumerate() {
        let place = (at + 1) * line.buckets.len() / (count + 1);
        if let Some(bucket) = line.buckets.get(place) {
            let y = up.place(bucket.max as f64 * page_bytes);
            let spot = (across.place(bucket.from as f64), y);
            canvas.letter(spot, letter(at), LINES[at % LINES.len()]);
        }
    }
    canvas.framed(&across, &up, screen)
}

fn table(record: &WssRecord) -> String {
    let is_partly = record.windows.iter().any(|line| line.known_share < 1.0);
    let mut columns = vec![
        "window",
        "mean",
        "deviation",
        "peak",
        "mean pages",
        "peak pages",
    ];
    if is_partly {
        columns.push("known for");
    }
    let mut table = text::table(&columns, 0);
    let bytes = |pages: f64| numbers::bytes(pages * record.trace.page_bytes as f64);
    for line in &record.windows {
        let mut row = vec![
            text::count(line.window),
            bytes(line.mean),
            bytes(line.deviation),
            bytes(line.peak as f64),
            format!("{:.1}", line.mean),
            text::count(line.peak),
        ];
        if is_partly {
            row.push(format!("{:.0} % of the time", line.known_share * 100.0));
        }
        table.add_row(row);
    }
    format!("{table}\n")
}

fn letter(at: usize) -> char {
    char::from(b'a' + (at % 26) as u8)
}
