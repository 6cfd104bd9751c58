//! Misses of visits as a picture: their share of all wants over the room.

use tidemark_results::analysis::batch::{BatchCurve, BatchRecord, RoomUnit};

use super::Picture;
use super::chart::{Area, Chart, Series};
use super::curves::draw_head;
use crate::axis::{Axis, Quantity, Spread};
use crate::colours::of_policy;
use crate::words;

const WIDTH: usize = 960;
const HEIGHT: usize = 520;
const HEAD: f64 = 64.0;

/// The chart of all curves.
pub fn batch(record: &BatchRecord) -> Picture {
    let mut picture = Picture::new(WIDTH, HEIGHT);
    let facts = words::visits(record);
    draw_head(&mut picture, &words::title(&record.trace), &facts);
    let area = Area {
        x: 0.0,
        y: HEAD,
        width: WIDTH as f64,
        height: HEIGHT as f64 - HEAD,
    };
    chart(record).draw(&mut picture, area);
    picture
}

fn chart(record: &BatchRecord) -> Chart {
    let points = || record.curves.iter().flat_map(|curve| &curve.points);
    let rooms = || points().map(|point| point.room as f64);
    let misses = || points().map(|point| point.misses as f64);
    let (room_most, misses_most) = (rooms().fold(1.0, f64::max), misses().fold(1.0, f64::max));
    let floor = record.objects as f64;
    let misses_least = misses().fold(floor, f64::min).max(1.0);
    let quantity = match record.unit {
        RoomUnit::Objects => Quantity::Count,
        RoomUnit::Bytes => Quantity::Bytes,
    };
    let series = |(at, curve): (usize, &BatchCurve)| {
        let (colour, is_dashed) = of_policy(&curve.policy, at);
        let points = curve.points.iter();
        let mut points: Vec<(f64, f64)> = points
            .map(|point| (point.room as f64, point.misses as f64))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Series {
            name: words::policy(&curve.policy),
            colour,
            is_dashed,
            width: 2.2,
            points,
            dot: None,
        }
    };
    Chart {
        title: "Misses by the room between visits".into(),
        across_name: "room".into(),
        across: Axis::new(
            quantity,
            Spread::Logarithmic,
            rooms().fold(room_most, f64::min).max(1.0),
            room_most,
        ),
        up: Axis::new(
            Quantity::Count,
            Spread::Logarithmic,
            misses_least / 1.3,
            misses_most * 1.3,
        ),
        series: record.curves.iter().enumerate().map(series).collect(),
        spans: vec![],
        levels: vec![(floor, "first wants: no room avoids these".into())],
        marks: vec![],
    }
}
