//! The map as a picture: addresses upwards, time to the right, regions named beside their bands.

use std::collections::BTreeMap;

use tidemark_results::analysis::map::MapRecord;
use tidemark_results::text;

use super::chart::{Area, draw_across};
use super::curves::draw_head;
use super::{Anchor, Lettering, Picture, Stroke};
use crate::axis::{Axis, Quantity, Spread};
use crate::colours::{PAPER, heat};
use crate::raster::{Band, Raster, level, raster};
use crate::{numbers, words};

const WIDTH: usize = 1100;
const HEAD: usize = 72;
const LEFT: usize = 210;
const RIGHT: usize = 24;
const BODY: usize = 620;
const BELOW: usize = 60;
/// A band with a name of its own is this high.
const NAMED: usize = 13;
/// The bands of a process are at least this high together, with several processes.
const PROCESS: usize = 15;
/// The place at which several processes' names begin, and the marks of their extents stand.
const PROCESSES_AT: f64 = 8.0;
const EXTENTS_AT: f64 = 84.0;
/// This many letters of a process's name fit, and of a region's.
const PROCESS_LETTERS: usize = 12;
const REGION_LETTERS: usize = 20;
/// The letters of a region's name that fit beside a process's.
const REGION_LETTERS_BESIDE: usize = 9;
/// Between bands, in pixels.
const BETWEEN: usize = 2;
/// The colour where nothing was referred to.
const COLD: [u8; 3] = [244, 246, 248];

/// The map, with its legend.
pub fn map(record: &MapRecord) -> Picture {
    let scale = Picture::scale();
    let width = WIDTH - LEFT - RIGHT;
    let processes = collect_processes(record).len();
    let height = (processes * PROCESS).max(BODY) * scale;
    // Where not all bands can be named, the larger ones are, and the others leave them the room.
    let is_crowded = record.regions.len() * (NAMED * scale + BETWEEN) > height;
    let least = if is_crowded { 1 } else { NAMED * scale };
    let raster = raster(record, width * scale, height, BETWEEN, least);
    let body = raster.height.div_ceil(scale).max(1);
    let mut picture = Picture::new(WIDTH, HEAD + body + BELOW);
    draw_head(
        &mut picture,
        &words::title(&record.trace),
        &words::facts(&record.trace),
    );
    let inner = Area {
        x: LEFT as f64,
        y: HEAD as f64,
        width: width as f64,
        height: body as f64,
    };
    let unit = record.trace.time_unit;
    let axis = Axis::new(Quantity::Time(unit), Spread::Linear, 0.0, map_time(record));
    let name = format!("virtual time ({})", unit.name());
    draw_across(&mut picture, inner, &axis, &name);
    draw_names(&mut picture, record, &raster);
    picture.image((LEFT, HEAD), (width, body), |x, y| {
        if y >= raster.height || raster.band_at(y).is_none() {
            return PAPER.ground;
        }
        match raster.cells[y * raster.width + x] {
            0 => COLD,
            records => heat(level(records, raster.most)),
        }
    });
    draw_legend(&mut picture, 24.0, raster.most);
    picture
}

/// The virtual time that all columns cover.
fn map_time(record: &MapRecord) -> f64 {
    (record.columns as u64 * record.column_time).max(1) as f64
}

/// Names the bands: what, and how much of it was touched. Several processes are named once each,
/// beside a line along their bands.
fn draw_names(picture: &mut Picture, record: &MapRecord, raster: &Raster) {
    let has_several = collect_processes(record).len() > 1;
    if has_several {
        draw_processes(picture, record, raster);
    }
    let letters = match has_several {
        true => REGION_LETTERS_BESIDE,
        false => REGION_LETTERS,
    };
    let scale = Picture::scale();
    let mut free_from = 0.0;
    for band in &raster.bands {
        let region = &record.regions[band.region];
        let middle = height_of(band.top + band.height / 2);
        let is_hidden = has_several && band.height + scale < NAMED * scale;
        if is_hidden || middle - 5.0 < free_from {
            continue;
        }
        free_from = middle + 7.0;
        let name = words::shortened(region.short_label(), letters);
        let size = text::bytes(record.trace.bytes(region.touched));
        let lettering = Lettering::new(11).anchored(Anchor::End);
        let x = LEFT as f64 - 8.0;
        picture.text(x - 62.0, middle + 4.0, &name, lettering);
        picture.text(x, middle + 4.0, &size, lettering.coloured(PAPER.faint));
    }
}

/// Names each process, beside a line along its bands.
fn draw_processes(picture: &mut Picture, record: &MapRecord, raster: &Raster) {
    let of = |band: &&Band| record.regions[band.region].process;
    for (process, program) in collect_processes(record) {
        let mut bands = raster.bands.iter().filter(|band| of(band) == process);
        let Some(first) = bands.next() else {
            continue;
        };
        let last = bands.next_back().unwrap_or(first);
        let (top, bottom) = (height_of(first.top), height_of(last.top + last.height));
        let stroke = Stroke::new(PAPER.frame, 1.5);
        picture.line(
            vec![(EXTENTS_AT, top + 0.5), (EXTENTS_AT, bottom - 0.5)],
            stroke,
        );
        let program = program.rsplit('/').next().unwrap_or_default();
        let name = words::shortened(&format!("{process} {program}"), PROCESS_LETTERS);
        let lettering = Lettering::new(11).bold();
        picture.text(PROCESSES_AT, (top + bottom) / 2.0 + 4.0, &name, lettering);
    }
}

/// The processes in the order of their bands, each with the last program it ran.
fn collect_processes(record: &MapRecord) -> BTreeMap<u32, &str> {
    let regions = record.regions.iter();
    regions
        .map(|region| (region.process, &region.program[..]))
        .collect()
}

/// The place of a row of the raster's pixels in the picture.
fn height_of(row: usize) -> f64 {
    HEAD as f64 + row as f64 / Picture::scale() as f64
}

fn draw_legend(picture: &mut Picture, y: f64, most: u64) {
    let (width, x) = (200, WIDTH - RIGHT - 260);
    let lettering = Lettering::new(11).coloured(PAPER.faint);
    let before = lettering.anchored(Anchor::End);
    picture.text(x as f64 - 14.0, y + 9.0, "references in a cell:  1", before);
    picture.image((x, y as usize), (width, 10), |at, _| {
        heat((at * 255 / (width * Picture::scale() - 1)) as u8)
    });
    let end = (x + width) as f64;
    picture.text(end + 8.0, y + 9.0, &numbers::count(most as f64), lettering);
    let frame = Stroke::new(PAPER.frame, 0.5);
    picture.line(vec![(x as f64, y + 10.5), (end, y + 10.5)], frame);
}
