//! The map of a task's memory: a bar for each cell, in the order of addresses, and a line about it.
//!
//! A bar shows from below how much of its cell is in memory, compressed, and on disk. What is
//! nowhere is left open above. A cell with anything in it has a mark at least.

use std::cmp::Reverse;

use tidemark_results::control::{Cell, MemoryMap};

use super::{Line, Tone, clean, short};

/// The size of a page, in bytes.
const PAGE_BYTES: u64 = 4096;

/// The places of pages from below, with a mark, a name, and a colour each.
const PLACES: [(char, &str, &str); 3] = [
    ('█', "memory", "32"),
    ('▓', "compressed", "33"),
    ('░', "disk", "34"),
];

/// The map in `rows`; without one, a line that says so.
pub(super) fn draw(map: Option<&MemoryMap>, columns: usize, rows: usize) -> Vec<Line> {
    let mut lines = vec![Line::new(caption(map), Tone::Map)];
    let height = rows.saturating_sub(1);
    let cells = map.map_or(&[][..], |map| &map.cells);
    let bars: Vec<Vec<char>> = cells
        .iter()
        .take(columns)
        .map(|cell| bar(cell, height))
        .collect();
    for row in (0..height).rev() {
        let marks = bars.iter().map(|bar| bar.get(row).copied().unwrap_or(' '));
        lines.push(Line::new(marks.collect(), Tone::Map));
    }
    lines.truncate(rows);
    lines
}

/// A line of the map as a terminal takes it.
pub(super) fn painted(text: &str) -> String {
    let mut painted = String::new();
    let mut last = None;
    for character in text.chars() {
        let place = PLACES.iter().find(|(mark, _, _)| *mark == character);
        let colour = place.map(|(_, _, colour)| *colour);
        if colour != last {
            painted.push_str(&format!("\x1b[{}m", colour.unwrap_or("0")));
            last = colour;
        }
        painted.push(character);
    }
    if last.is_some() {
        painted.push_str("\x1b[0m");
    }
    painted
}

fn caption(map: Option<&MemoryMap>) -> String {
    let Some(map) = map.filter(|map| map.age_s.is_some()) else {
        return "no map yet".into();
    };
    let task = format!("map {} {:.9}", map.pid, clean(&map.program));
    let Some(shares) = map.shares() else {
        return format!("{task}: nothing is managed");
    };
    let places = PLACES.iter().zip(shares);
    let places =
        places.map(|((mark, name, _), share)| format!(" {mark} {name} {}", percent(share)));
    format!(
        "{task}, {}:{} empty {}",
        short(map.pages * PAGE_BYTES),
        places.collect::<String>(),
        percent(shares[PLACES.len()])
    )
}

fn percent(share: f64) -> String {
    match share * 100.0 {
        percent if percent > 0.0 && percent < 1.0 => "<1%".into(),
        // What is not quite all is not told as all.
        percent if percent > 99.0 && percent < 100.0 => "99%".into(),
        percent => format!("{percent:.0}%"),
    }
}

/// The marks of a cell from below.
fn bar(cell: &Cell, height: usize) -> Vec<char> {
    let counts = &cell.counts()[..PLACES.len()];
    let (used, all) = (
        counts.iter().sum::<u64>(),
        cell.counts().iter().sum::<u64>(),
    );
    if used == 0 {
        return vec![];
    }
    let height = (used * height as u64).div_ceil(all);
    // Whole rows first, and the others to those that lack the least for one.
    let mut rows: Vec<u64> = counts.iter().map(|count| count * height / used).collect();
    let mut places: Vec<usize> = (0..counts.len()).collect();
    places.sort_by_key(|&place| Reverse(counts[place] * height % used));
    let left = height - rows.iter().sum::<u64>();
    for &place in &places[..left as usize] {
        rows[place] += 1;
    }
    let marks = PLACES.iter().zip(rows);
    marks
        .flat_map(|((mark, _, _), rows)| std::iter::repeat_n(*mark, rows as usize))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(counts: [u64; 4]) -> Cell {
        let [in_memory, compressed, on_disk, empty] = counts;
        Cell {
            address: 0,
            in_memory,
            compressed,
            on_disk,
            empty,
        }
    }

    #[test]
    fn bars_stand_for_what_is_where() {
        let shown = |counts, height| bar(&cell(counts), height).into_iter().collect::<String>();
        assert_eq!(shown([32, 0, 0, 0], 4), "████");
        assert_eq!(shown([8, 8, 8, 8], 4), "█▓░");
        assert_eq!(shown([0, 0, 0, 32], 4), "");
        assert_eq!(shown([0, 0, 1, 31], 4), "░");
        assert_eq!(shown([0, 16, 16, 0], 8), "▓▓▓▓░░░░");
        assert_eq!(shown([29, 0, 3, 0], 8), "███████░");
        assert_eq!(shown([31, 0, 1, 0], 8), "████████");
    }

    #[test]
    fn a_map_has_its_rows_and_says_what_it_is() {
        let map = MemoryMap {
            pid: 20724,
            program: "python3\u{1b}".into(),
            age_s: Some(0.5),
            pages: 32768,
            cells: vec![cell([16, 8, 8, 0]); 300],
        };
        let lines = draw(Some(&map), 80, 4);
        let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        let told = "map 20724 python3?, 128M: █ memory 50% ▓ compressed 25% ░ disk 25% empty 0%";
        assert_eq!(texts[0], told);
        assert_eq!(texts[1..], ["░".repeat(80), "▓".repeat(80), "█".repeat(80)]);
        assert_eq!(painted("██ x"), "\u{1b}[32m██\u{1b}[0m x");
        assert_eq!(draw(None, 80, 4)[0].text, "no map yet");
        assert_eq!(draw(None, 80, 4).len(), 4);
    }
}
