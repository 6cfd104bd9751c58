//! The footprint in a terminal.

use tidemark_results::analysis::wss::WssRecord;
use tidemark_results::text;

use crate::axis::{Axis, Quantity, Spread};
use crate::colours::LINES;
use crate::footprint::{COLUMNS, lines, rows, sentence};
use crate::terminal::canvas::{Canvas, MARGIN};
use crate::terminal::{Screen, wrapped};

/// Legend, drawing and table; nothing where there is no footprint.
pub fn drawing(record: &WssRecord, screen: Screen) -> String {
    let Some(footprint) = &record.footprint else {
        return String::new();
    };
    let page_bytes = record.trace.page_bytes;
    let lines = lines(footprint);
    let mut told = String::from("\n");
    let signs = lines.iter().enumerate().map(|(at, (name, _))| {
        let sign = screen.paint(&format!("{}⠒", letter(at)), LINES[at % LINES.len()]);
        format!("  {sign} {name}")
    });
    let signs: String = signs.collect();
    told.push_str(&format!("  footprint over time:\n{signs}\n"));
    let most = lines.iter().flat_map(|(_, pages)| pages).max().copied();
    let most = most.unwrap_or(0).max(1) as f64;
    let time = Quantity::Time(record.trace.time_unit);
    let across = Axis::new(time, Spread::Linear, 0.0, record.trace.time as f64);
    let up = Axis::new(
        Quantity::Bytes,
        Spread::Linear,
        0.0,
        most * page_bytes as f64,
    );
    let mut canvas = Canvas::new(screen.columns - MARGIN, screen.lines);
    for (at, (_, pages)) in lines.iter().enumerate().rev() {
        let spots = footprint.intervals.iter().zip(pages);
        let spots = spots.map(|(interval, pages)| {
            let y = up.place((pages * page_bytes) as f64);
            (across.place(interval.from as f64), y)
        });
        let spots: Vec<(f64, f64)> = spots.collect();
        canvas.line(&spots, LINES[at % LINES.len()]);
    }
    // Without colours the letters tell the lines apart: each at its own part of the time.
    for (at, (_, pages)) in lines.iter().enumerate() {
        let place = (at + 1) * pages.len() / (lines.len() + 1);
        if let Some((interval, pages)) = footprint.intervals.get(place).zip(pages.get(place)) {
            let y = up.place((pages * page_bytes) as f64);
            let spot = (across.place(interval.from as f64), y);
            canvas.letter(spot, letter(at), LINES[at % LINES.len()]);
        }
    }
    told.push_str(&canvas.framed(&across, &up, screen));
    told.push_str(&wrapped(&sentence(record, footprint), screen.columns));
    let rows = rows(footprint, page_bytes);
    if !rows.is_empty() {
        let table = text::folded(&COLUMNS, &rows, 1, 1, Some(screen.columns));
        told.push_str(&format!("{table}\n"));
    }
    told
}

fn letter(at: usize) -> char {
    char::from(b'a' + (at % 26) as u8)
}
