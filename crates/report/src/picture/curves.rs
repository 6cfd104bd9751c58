//! Curves as a picture: misses over memory, and below it the lifetime.

use tidemark_results::analysis::curve::{Curve, CurveRecord, Point};

use super::chart::{Area, Chart, Series};
use super::{Lettering, Picture};
use crate::axis::{Axis, Quantity, Spread};
use crate::colours::{PAPER, of_policy};
use crate::words;

const WIDTH: usize = 960;
const HEIGHT: usize = 900;
const HEAD: f64 = 64.0;

/// Both charts, one under the other.
pub fn curves(record: &CurveRecord) -> Picture {
    let mut picture = Picture::new(WIDTH, HEIGHT);
    draw_head(
        &mut picture,
        &words::title(&record.trace),
        &words::facts(&record.trace),
    );
    let height = (HEIGHT as f64 - HEAD) / 2.0;
    for (at, chart) in [misses(record), lifetime(record)].iter().enumerate() {
        let area = Area {
            x: 0.0,
            y: HEAD + at as f64 * height,
            width: WIDTH as f64,
            height,
        };
        chart.draw(&mut picture, area);
    }
    picture
}

/// Writes what the picture is of.
pub fn draw_head(picture: &mut Picture, title: &str, facts: &str) {
    picture.text(
        24.0,
        32.0,
        &words::shortened(title, 76),
        Lettering::new(18).bold(),
    );
    let lettering = Lettering::new(12).coloured(PAPER.faint);
    picture.text(24.0, 53.0, &words::shortened(facts, 140), lettering);
}

fn misses(record: &CurveRecord) -> Chart {
    let all = || record.curves.iter().flat_map(|curve| &curve.points);
    let most = all().map(|point| point.misses as f64).fold(1.0, f64::max);
    let least = all().map(|point| point.misses as f64).fold(most, f64::min);
    let floor = record.trace.pages as f64;
    Chart {
        title: "Misses by memory".into(),
        across_name: "memory".into(),
        across: memory_axis(record, Spread::Logarithmic),
        up: Axis::new(
            Quantity::Count,
            Spread::Logarithmic,
            least.min(floor).max(1.0) / 1.3,
            most * 1.3,
        ),
        series: series(record, &|point| point.misses as f64, false),
        spans: vec![],
        levels: vec![(floor, "first touches: no memory avoids these".into())],
        marks: vec![],
    }
}

fn lifetime(record: &CurveRecord) -> Chart {
    let value = |point: &Point| point.lifetime(&record.trace);
    let all = || record.curves.iter().flat_map(|curve| &curve.points);
    let most = all().map(value).fold(1.0, f64::max);
    let least = all().map(value).fold(most, f64::min);
    let unit = record.trace.time_unit;
    Chart {
        title: format!("Lifetime: {} between misses", unit.name()),
        across_name: "memory (a dot marks the knee)".into(),
        across: memory_axis(record, Spread::Linear),
        up: Axis::new(
            Quantity::Time(unit),
            Spread::Logarithmic,
            least / 1.3,
            most * 1.3,
        ),
        series: series(record, &value, true),
        spans: vec![],
        levels: vec![],
        marks: vec![],
    }
}

fn series(record: &CurveRecord, value: &dyn Fn(&Point) -> f64, has_knee: bool) -> Vec<Series> {
    let page_bytes = record.trace.page_bytes as f64;
    let curve = |(at, curve): (usize, &Curve)| {
        let (colour, is_dashed) = of_policy(&curve.policy, at);
        let points = curve.points.iter();
        let mut points: Vec<(f64, f64)> = points
            .map(|point| (point.memory_pages() * page_bytes, value(point)))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let knee = curve.knee.filter(|_| has_knee);
        Series {
            name: words::curve_name(curve),
            colour,
            is_dashed,
            width: 2.2,
            points,
            dot: knee.map(|knee| (knee.pages * page_bytes, knee.lifetime)),
        }
    };
    record.curves.iter().enumerate().map(curve).collect()
}

fn memory_axis(record: &CurveRecord, spread: Spread) -> Axis {
    let page_bytes = record.trace.page_bytes as f64;
    let all = || record.curves.iter().flat_map(|curve| &curve.points);
    let most = all().map(Point::memory_pages).fold(1.0, f64::max);
    let least = match spread {
        Spread::Linear => 0.0,
        Spread::Logarithmic => all().map(Point::memory_pages).fold(most, f64::min).max(1.0),
    };
    Axis::new(
        Quantity::Bytes,
        spread,
        least * page_bytes,
        most * page_bytes,
    )
}
