//! Curves in a terminal, and a table of some of their points.

use tidemark_results::analysis::curve::{Curve, CurveRecord, Point};
use tidemark_results::text;

use super::canvas::{Canvas, MARGIN};
use super::needs::{ideal_needs, run_needs};
use super::paragraphs::{headline, wrapped};
use super::screen::Screen;
use crate::axis::{Axis, Quantity, Spread};
use crate::colours::of_policy;
use crate::verdict::verdict;
use crate::{numbers, words};

/// The number of sizes that the table shows.
const SIZES: usize = 8;

/// Headline, the memory needed under `tidemark run`, drawing, table, and what ideal policies need.
pub fn curves(record: &CurveRecord, screen: Screen) -> String {
    let trace = &record.trace;
    let mut text = headline(trace, screen);
    let run = run_needs(record, screen);
    if !run.is_empty() {
        text.push_str(&format!("\n{run}\n"));
    }
    text.push_str(&drawing(record, screen));
    text.push('\n');
    text.push_str(&table(record));
    text.push('\n');
    text.push_str(&ideal_needs(record, screen));
    for sentence in verdict(record) {
        text.push_str(&wrapped(&sentence, screen.columns));
    }
    let sight = words::sight(&record.trace);
    let accuracies = words::accuracies(record);
    for line in sight.iter().chain(&accuracies).chain(&record.notes) {
        text.push_str(&wrapped(&format!("note: {line}"), screen.columns));
    }
    text
}

fn drawing(record: &CurveRecord, screen: Screen) -> String {
    let points = || record.curves.iter().flat_map(|curve| &curve.points);
    let page_bytes = record.trace.page_bytes as f64;
    let most = points().map(Point::memory_pages).fold(1.0, f64::max);
    let least = points()
        .map(Point::memory_pages)
        .fold(most, f64::min)
        .max(1.0);
    let misses_most = points()
        .map(|point| point.misses as f64)
        .fold(1.0, f64::max);
    let misses_least = points()
        .map(|point| point.misses as f64)
        .fold(misses_most, f64::min);
    let across = Axis::new(
        Quantity::Bytes,
        Spread::Logarithmic,
        least * page_bytes,
        most * page_bytes,
    );
    let floor = misses_least.min(record.trace.pages as f64).max(1.0);
    let up = Axis::new(
        Quantity::Count,
        Spread::Logarithmic,
        floor / 1.2,
        misses_most * 1.2,
    );
    let mut canvas = Canvas::new(screen.columns - MARGIN, screen.lines);
    let spot = |pages: f64, misses: f64| (across.place(pages * page_bytes), up.place(misses));
    for (at, curve) in record.curves.iter().enumerate() {
        let spots: Vec<(f64, f64)> = curve
            .points
            .iter()
            .map(|point| spot(point.memory_pages(), point.misses as f64))
            .collect();
        canvas.line(&spots, of_policy(&curve.policy, at).0);
    }
    let letters = letters(record);
    for (at, (curve, letter)) in record.curves.iter().zip(&letters).enumerate() {
        let colour = of_policy(&curve.policy, at).0;
        if let Some(place) = letter_place(curve, at, record.curves.len()) {
            let spot = spot(place.memory_pages(), place.misses as f64);
            canvas.letter(spot, *letter, colour);
        }
        if let Some(knee) = curve.knee {
            let misses = record.trace.time as f64 / knee.lifetime.max(1e-9);
            canvas.letter(spot(knee.pages, misses), '◆', colour);
        }
    }
    let mut text = legend(record, &letters, screen);
    text.push_str(&canvas.framed(&across, &up, screen));
    text
}

fn legend(record: &CurveRecord, letters: &[char], screen: Screen) -> String {
    let mut text = String::from("  misses by memory  ");
    for (at, (curve, letter)) in record.curves.iter().zip(letters).enumerate() {
        let colour = of_policy(&curve.policy, at).0;
        let sign = screen.paint(&format!("{letter}⠒⠒"), colour);
        text.push_str(&format!(" {sign} {} ", words::policy(&curve.policy)));
    }
    if record.curves.iter().any(|curve| curve.knee.is_some()) {
        text.push_str(" ◆ knee");
    }
    text.push('\n');
    text
}

/// A letter for each curve: the first of its name that is not taken.
fn letters(record: &CurveRecord) -> Vec<char> {
    let mut taken: Vec<char> = vec![];
    for curve in &record.curves {
        let name = words::policy(&curve.policy).to_uppercase();
        let spare = ('A'..='Z').chain('0'..='9');
        let mut wanted = name
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .chain(spare);
        let letter = wanted.find(|letter| !taken.contains(letter));
        taken.push(letter.unwrap_or('*'));
    }
    taken
}

/// The place of a curve's letter: at a part of its length that no other curve has.
fn letter_place(curve: &Curve, at: usize, count: usize) -> Option<&Point> {
    let place = (at + 1) * curve.points.len() / (count + 1);
    curve
        .points
        .get(place.min(curve.points.len().saturating_sub(1)))
}

/// Misses at some sizes, and the knees.
fn table(record: &CurveRecord) -> String {
    let sizes = table_sizes(record);
    let names: Vec<String> = record
        .curves
        .iter()
        .map(|curve| words::policy(&curve.policy))
        .collect();
    let mut columns = vec!["memory", "pages"];
    columns.extend(names.iter().map(String::as_str));
    let mut table = text::table(&columns, 0);
    for pages in sizes {
        let mut row = vec![text::bytes(record.trace.bytes(pages)), text::count(pages)];
        for curve in &record.curves {
            row.push(match misses_within(curve, pages) {
                Some((misses, None)) => text::count(misses),
                Some((misses, Some(error))) => {
                    format!(
                        "{} ± {}",
                        text::count(misses),
                        text::count(error.ceil() as u64)
                    )
                }
                None => "–".into(),
            });
        }
        table.add_row(row);
    }
    if record.curves.iter().any(|curve| curve.knee.is_some()) {
        let mut row = vec!["knee at".to_owned(), String::new()];
        for curve in &record.curves {
            let bytes = |pages| numbers::bytes(pages * record.trace.page_bytes as f64);
            row.push(curve.knee.map_or("–".into(), |knee| bytes(knee.pages)));
        }
        table.add_row(row);
    }
    format!("{table}\n")
}

/// The misses of a policy with at most `pages` pages of memory: at the largest point that fits.
/// With their standard error, if they were estimated.
fn misses_within(curve: &Curve, pages: u64) -> Option<(u64, Option<f64>)> {
    let fits = curve.points.iter().filter(|point| point.pages <= pages);
    let best = fits.min_by_key(|point| point.misses)?;
    Some((best.misses, best.misses_error))
}

/// A few sizes between the least and the most, in equal ratios and without repeats.
fn table_sizes(record: &CurveRecord) -> Vec<u64> {
    let fixed: Vec<u64> = record
        .curves
        .iter()
        .flat_map(|curve| &curve.points)
        .map(|p| p.pages)
        .collect();
    let (Some(least), Some(most)) = (fixed.iter().min(), fixed.iter().max()) else {
        return vec![];
    };
    let mut all: Vec<u64> = fixed.clone();
    all.sort_unstable();
    all.dedup();
    if all.len() <= SIZES {
        return all;
    }
    let (least, most) = ((*least).max(1) as f64, *most as f64);
    let mut sizes: Vec<u64> = (0..SIZES)
        .map(|at| least * (most / least).powf(at as f64 / (SIZES - 1) as f64))
        .map(|size| size.round() as u64)
        .collect();
    sizes.dedup();
    sizes
}
