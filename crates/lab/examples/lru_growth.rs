//! The growth of the cost of an LRU depth with the number of pages, beside their logarithm.
//!
//!     cargo run --release -p tidemark-lab --example lru_growth -- [REFERENCES [PICTURE.svg]]
//!
//! Strings by Zipf's law and of equal chances, in memory. Times are processor time of one thread,
//! best of three, with what the tables cost to make. The picture has the same numbers, and dashed
//! what they would be if they grew as the logarithm does from the first on.

mod measure;

use std::fs;

use tidemark_lab::analysis::{References, stack};
use tidemark_model::traces;
use tidemark_report::axis::{Axis, Quantity, Spread};
use tidemark_report::colours::{LINES, Rgb};
use tidemark_report::picture::Picture;
use tidemark_report::picture::chart::{Area, Chart, Series};

use measure::{fail, rate};

/// The number of pages the strings draw from.
const SIZES: [u64; 7] = [
    10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000,
];
const WIDTH: usize = 760;
const HEIGHT: usize = 400;

/// Makes a string of so many references to so many pages.
type Draw = fn(u64, u64) -> Vec<u64>;
const STRINGS: [(&str, Draw); 2] = [
    ("Zipf's law", |pages, count| traces::zipf(3, pages, count)),
    ("equal chances", |pages, count| {
        traces::uniform(3, pages, count)
    }),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let count = match arguments.first().map(|text| (text, text.parse::<u64>())) {
        None => 20_000_000,
        Some((_, Ok(count))) if count > 0 => count,
        Some((text, _)) => fail(&format!(
            "`{text}` is no number of references; give one, like 20000000"
        )),
    };
    println!("LRU depths of {count} references: ns each, and the same by the logarithm of pages");
    let lines = STRINGS.map(|(name, draw)| (name, measure_growth(name, draw, count)));
    if let Some(path) = arguments.get(1)
        && let Err(error) = fs::write(path, draw(&lines).to_svg())
    {
        fail(&format!("`{path}`: {error}; name a file to write"));
    }
}

/// The pages a string has, and what a reference costs in ns, for each size.
fn measure_growth(name: &str, draw: Draw, count: u64) -> Vec<(f64, f64)> {
    let sizes = SIZES
        .into_iter()
        .filter(|&size| size <= count.max(20_000) / 2);
    let measure = |size| {
        let string = References::from_pages(draw(size, count));
        let (pages, page_count) = (&string.pages, string.page_count);
        let ns = 1e3 / rate(pages.len(), || stack::count_depths(pages, page_count));
        let by_log = ns / f64::from(page_count).ln();
        println!("{name:<14} {page_count:>9} pages {ns:6.1} {by_log:6.2}");
        (f64::from(page_count), ns)
    };
    sizes.map(measure).collect()
}

fn draw(lines: &[(&str, Vec<(f64, f64)>)]) -> Picture {
    let mut series = vec![];
    for ((name, points), colour) in lines.iter().zip(LINES) {
        let first = points[0];
        let as_log = |&(pages, _): &(f64, f64)| (pages, first.1 * pages.ln() / first.0.ln());
        series.push(line(name, colour, points.clone()));
        series.push(Series {
            is_dashed: true,
            width: 1.5,
            ..line("", colour, points.iter().map(as_log).collect())
        });
    }
    let ends = lines.iter().flat_map(|(_, points)| points);
    let (pages, ns) = ends.fold((0_f64, 0_f64), |most, point| {
        (most.0.max(point.0), most.1.max(point.1))
    });
    let chart = Chart {
        title: "LRU at every size: ns a reference (dashed: the logarithm of pages)".into(),
        across_name: "pages".into(),
        across: Axis::new(Quantity::Count, Spread::Logarithmic, SIZES[0] as f64, pages),
        up: Axis::new(Quantity::Count, Spread::Linear, 0.0, ns * 1.1),
        series,
        spans: vec![],
        levels: vec![],
        marks: vec![],
    };
    let mut picture = Picture::new(WIDTH, HEIGHT);
    let area = Area {
        x: 0.0,
        y: 0.0,
        width: WIDTH as f64,
        height: HEIGHT as f64,
    };
    chart.draw(&mut picture, area);
    picture
}

fn line(name: &str, colour: Rgb, points: Vec<(f64, f64)>) -> Series {
    Series {
        name: name.into(),
        colour,
        is_dashed: false,
        width: 2.5,
        points,
        dot: None,
    }
}
