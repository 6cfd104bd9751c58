//! Heat maps in a terminal: two cells in each character, with the names of regions beside them.

use tidemark_results::analysis::map::MapRecord;
use tidemark_results::text;

use super::paragraphs::headline;
use super::ruler::ruler;
use super::screen::{Cell, Screen};
use crate::axis::{Axis, Quantity, Spread};
use crate::colours::heat;
use crate::raster::{Raster, level, raster};
use crate::regions::{self, share};
use crate::words;

/// Room for names beside the map.
const MARGIN: usize = 18;
/// Without colours, heat is the density of a character.
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];
/// The number of regions that the table shows.
const REGIONS: usize = 12;

/// Headline, drawing and a table of the regions.
pub fn map(record: &MapRecord, screen: Screen) -> String {
    let mut text = headline(&record.trace, screen);
    text.push_str("  addresses over time; brighter is more references\n");
    text.push_str(&drawing(record, screen));
    text.push('\n');
    text.push_str(&table(record));
    text
}

fn drawing(record: &MapRecord, screen: Screen) -> String {
    let columns = screen.columns - MARGIN;
    let lines = (screen.lines + 6).max(record.regions.len().min(40));
    // With colours a character has an upper and a lower half.
    let halves = if screen.has_colours { 2 } else { 1 };
    let raster = raster(record, columns, lines * halves, 0, halves);
    let mut text = String::new();
    let mut named = None;
    for line in 0..raster.height.div_ceil(halves) {
        // The name of the band that the line's last half is in, on its first line.
        let band = raster.band_at((line * halves + halves - 1).min(raster.height - 1));
        let region = band.map(|band| band.region);
        let is_new = region.is_some() && region != named;
        let name = region.filter(|_| is_new).map(|region| name(record, region));
        named = region;
        let (name, width) = (name.unwrap_or_default(), MARGIN - 2);
        let line = line_text(&raster, line, screen);
        text.push_str(format!("{name:>width$} │{line}").trim_end());
        text.push('\n');
    }
    text.push_str(&time_axis(record, columns));
    text
}

fn line_text(raster: &Raster, line: usize, screen: Screen) -> String {
    let level_at = |x: usize, y: usize| match y < raster.height {
        true => level(raster.cells[y * raster.width + x], raster.most),
        false => 0,
    };
    let plain = |letter| Cell {
        letter,
        ink: None,
        ground: None,
    };
    if !screen.has_colours {
        let shade = |x| match level_at(x, line) {
            0 => SHADES[0],
            level => SHADES[1 + usize::from(level - 1) * 4 / 255],
        };
        return screen.line((0..raster.width).map(|x| plain(shade(x))));
    }
    screen.line((0..raster.width).map(|x| {
        let (upper, lower) = (level_at(x, line * 2), level_at(x, line * 2 + 1));
        let (letter, ink, ground) = match (upper, lower) {
            (0, 0) => return plain(' '),
            (upper, 0) => ('▀', upper, None),
            (0, lower) => ('▄', lower, None),
            (upper, lower) if upper == lower => ('█', upper, None),
            (upper, lower) => ('▀', upper, Some(heat(lower))),
        };
        Cell {
            letter,
            ink: Some(heat(ink)),
            ground,
        }
    }))
}

fn name(record: &MapRecord, region: usize) -> String {
    words::shortened(&words::region(&record.regions[region], record), MARGIN - 3)
}

fn time_axis(record: &MapRecord, columns: usize) -> String {
    let unit = record.trace.time_unit;
    let time = (record.columns as u64 * record.column_time).max(1) as f64;
    let axis = Axis::new(Quantity::Time(unit), Spread::Linear, 0.0, time);
    let (ruler, margin) = (ruler(&axis, columns, MARGIN), " ".repeat(MARGIN));
    format!("{ruler}{margin}{}\n", unit.name())
}

/// The regions that were used most.
fn table(record: &MapRecord) -> String {
    let mut table = text::table(&regions::COLUMNS, 2);
    let regions = regions::by_use(record);
    for region in regions.iter().take(REGIONS) {
        let mut row = regions::row(region, record);
        row[0] = words::shortened(&row[0], 28);
        table.add_row(row);
    }
    let rest = regions.get(REGIONS..).unwrap_or_default();
    if !rest.is_empty() {
        let sum = |what: fn(&&tidemark_results::analysis::map::Region) -> u64| -> u64 {
            rest.iter().copied().map(|region| what(&region)).sum()
        };
        let records = sum(|region| region.records);
        table.add_row([
            format!("{} more", rest.len()),
            String::new(),
            text::bytes(record.trace.bytes(sum(|region| region.touched))),
            text::count(records),
            share(sum(|region| region.stores), records),
            share(sum(|region| region.fetches), records),
        ]);
    }
    format!("{table}\n")
}
