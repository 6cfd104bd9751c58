//! Experiments as pictures: the ones that stand on their page, each for a file of its own.

use tidemark_results::experiment::{ExperimentRecord, Measurement, PictureOrder};

use super::chart::{Chart, Series};
use super::{Anchor, Lettering, Picture, text_width};
use crate::colours::{LINES, PAPER};
use crate::experiment::bars::{Bar, bars};
use crate::experiment::lines::Lines;

const WIDTH: usize = 760;
const HEIGHT: usize = 400;
/// A bar and the gap below it.
const BAR: f64 = 24.0;
const HEAD: f64 = 48.0;
const LETTERS: u32 = 13;
/// The most room that names and values may take beside bars.
const NAME_MOST: f64 = 330.0;
const VALUE: f64 = 150.0;

/// Each picture, and a name for its file: `tcm3-page-ins`.
pub fn pictures(record: &ExperimentRecord) -> Vec<(String, Picture)> {
    let drawn = record.pictures.iter().filter_map(|order| {
        let picture = draw(order, &record.measurements)?;
        Some((format!("{}-{}", record.name, slug(&order.title)), picture))
    });
    drawn.collect()
}

fn draw(order: &PictureOrder, measurements: &[Measurement]) -> Option<Picture> {
    match order.across.as_str() {
        "runs" => {
            let bars = bars(order, measurements);
            (!bars.is_empty()).then(|| draw_bars(order, &bars))
        }
        _ => Lines::new(order, measurements).map(|lines| draw_lines(order, &lines)),
    }
}

fn draw_bars(order: &PictureOrder, bars: &[Bar]) -> Picture {
    let height = HEAD + bars.len() as f64 * BAR + 12.0;
    let mut picture = Picture::new(WIDTH, height.ceil() as usize);
    picture.text(20.0, 28.0, &order.title, Lettering::new(15).bold());
    let names = bars.iter().map(|bar| text_width(&bar.name, LETTERS));
    let left = 32.0 + names.fold(0.0, f64::max).min(NAME_MOST);
    let room = WIDTH as f64 - left - VALUE;
    let most = bars.iter().map(|bar| bar.value).fold(1e-12, f64::max);
    for (number, bar) in bars.iter().enumerate() {
        let y = HEAD + number as f64 * BAR;
        let name = Lettering::new(LETTERS).anchored(Anchor::End);
        picture.text(left - 10.0, y + 12.0, &bar.name, name);
        let width = (bar.value / most * room).max(1.0);
        // Ours is set off from those it stands beside; what was given up is pale.
        let ink = LINES[usize::from(bar.name.starts_with("tidemark"))];
        let opacity = if bar.is_cut { 0.4 } else { 1.0 };
        picture.fill((left, y), (width, 16.0), ink, opacity);
        let value = Lettering::new(LETTERS).coloured(PAPER.faint);
        picture.text(left + width + 8.0, y + 12.0, &bar.told, value);
    }
    picture
}

fn draw_lines(order: &PictureOrder, lines: &Lines<'_>) -> Picture {
    let series = lines.lines.iter().enumerate().map(|(number, line)| Series {
        name: line.run.to_owned(),
        colour: LINES[number % LINES.len()],
        is_dashed: number >= LINES.len(),
        width: 2.2,
        points: line.points.iter().map(|&(x, y, _)| (x, y)).collect(),
        dot: None,
    });
    let chart = Chart {
        title: order.title.clone(),
        across_name: lines.across_name().into(),
        series: series.collect(),
        spans: vec![],
        levels: vec![],
        marks: vec![],
        across: lines.across,
        up: lines.up,
    };
    chart.picture(WIDTH, HEIGHT)
}

/// A title as a part of a file's name: letters and digits, with dashes between words.
fn slug(title: &str) -> String {
    let plain = title.to_lowercase();
    let words = plain.split(|letter: char| !letter.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> ExperimentRecord {
        let measured = |run: &str, memory_bytes, value| Measurement {
            run: run.into(),
            memory: format!("{memory_bytes}"),
            memory_bytes,
            times: 1,
            metrics: [("page_ins".to_owned(), value)].into(),
            ..Measurement::default()
        };
        let order = |title: &str, across: &str| PictureOrder {
            title: title.into(),
            metric: "page_ins".into(),
            across: across.into(),
            runs: vec![],
        };
        ExperimentRecord {
            name: "x".into(),
            measurements: vec![
                measured("gnumach", 1 << 20, 400.0),
                measured("gnumach", 1 << 21, 100.0),
                measured("tidemark", 1 << 20, 50.0),
            ],
            pictures: vec![
                order("Page-ins, by run", "runs"),
                order("By memory", "memory"),
                PictureOrder {
                    metric: "none".into(),
                    ..order("Empty", "runs")
                },
            ],
            ..ExperimentRecord::default()
        }
    }

    #[test]
    fn each_picture_that_has_something_to_show_is_drawn_and_named() {
        let drawn = pictures(&record());
        let names: Vec<&str> = drawn.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["x-page-ins-by-run", "x-by-memory"]);
        let bars = drawn[0].1.to_svg();
        assert!(bars.contains("tidemark") && bars.contains("gnumach in 1048576"));
        let lines = drawn[1].1.to_svg();
        assert!(lines.contains("gnumach") && !lines.contains("gnumach in"));
        assert!(
            lines.contains("1 MiB") && lines.contains("2 MiB"),
            "{lines}"
        );
    }

    #[test]
    fn bars_are_as_long_as_their_values() {
        let record = record();
        let bars = bars(&record.pictures[0], &record.measurements);
        let values: Vec<f64> = bars.iter().map(|bar| bar.value).collect();
        assert_eq!(values, [400.0, 100.0, 50.0]);
        let svg = draw_bars(&record.pictures[0], &bars).to_svg();
        let widths = svg.split("<rect").skip(1).filter_map(|rect| {
            let at = rect.find("width=\"")? + 7;
            rect[at..].split('"').next()?.parse::<f64>().ok()
        });
        let widths: Vec<f64> = widths.collect();
        let [.., longest, second, third] = widths[..] else {
            panic!("three bars in {svg}");
        };
        assert!((longest / second - 4.0).abs() < 0.05, "{widths:?}");
        assert!((longest / third - 8.0).abs() < 0.1, "{widths:?}");
    }
}
