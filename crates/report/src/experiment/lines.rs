//! Lines: a metric of each run by memory or by the number of copies.

use tidemark_results::experiment::{Ending, Measurement, PictureOrder};

use super::words::amount;
use crate::axis::{Axis, Quantity, Spread};
use crate::page::escaped;

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 84.0;
const BELOW: f64 = 40.0;
const EDGE: f64 = 10.0;
const RIGHT: f64 = 36.0;
/// Values that differ by more are drawn on a logarithmic axis.
const WIDE: f64 = 20.0;
/// Colours there are; further lines are dashed.
const INKS: usize = 7;

/// One run's line.
pub struct Line<'a> {
    /// The run.
    pub run: &'a str,
    /// Across, up, and whether the run came to its end.
    pub points: Vec<(f64, f64, bool)>,
}

/// The lines of a picture, and the axes they stand on.
pub struct Lines<'a> {
    /// One for each run.
    pub lines: Vec<Line<'a>>,
    /// The axis to the right.
    pub across: Axis,
    /// The axis upwards.
    pub up: Axis,
    quantity: Quantity,
}

impl<'a> Lines<'a> {
    /// Collects the parts of a picture, if there is anything to show.
    pub fn new(order: &PictureOrder, measurements: &'a [Measurement]) -> Option<Lines<'a>> {
        let lines = collect(order, measurements);
        let all = || lines.iter().flat_map(|line| &line.points);
        all().next()?;
        let range = |part: fn(&(f64, f64, bool)) -> f64| {
            let values = all().map(part);
            values.fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(v), b.max(v)))
        };
        let (across, up) = (range(|point| point.0), range(|point| point.1));
        let quantity = match order.across.as_str() {
            "memory" => Quantity::Bytes,
            _ => Quantity::Count,
        };
        let across = Axis::new(quantity, Spread::Logarithmic, across.0, across.1);
        let up = match up.0 > 0.0 && up.1 / up.0 > WIDE {
            true => Axis::new(Quantity::Count, Spread::Logarithmic, up.0 / 1.2, up.1 * 1.2),
            false => Axis::new(Quantity::Count, Spread::Linear, 0.0, up.1 * 1.05),
        };
        Some(Lines {
            lines,
            across,
            up,
            quantity,
        })
    }

    /// The name of the horizontal axis.
    pub fn across_name(&self) -> &'static str {
        match self.quantity {
            Quantity::Bytes => "memory",
            Quantity::Count | Quantity::Time(_) => "times as many programs",
        }
    }
}

/// The lines, with axes and a legend.
pub fn draw(order: &PictureOrder, measurements: &[Measurement]) -> String {
    let Some(shown) = Lines::new(order, measurements) else {
        return String::new();
    };
    let (across, up) = (&shown.across, &shown.up);
    let x = |value| LEFT + across.place(value) * (WIDTH - LEFT - RIGHT);
    let y = |value| HEIGHT - BELOW - up.place(value) * (HEIGHT - BELOW - EDGE);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
        escaped(&order.title)
    );
    for tick in up.ticks(5) {
        let at = y(tick);
        svg.push_str(&format!(
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            at + 4.0,
            escaped(&amount(&order.metric, tick)),
        ));
    }
    for tick in across.ticks(5) {
        let at = x(tick);
        svg.push_str(&format!(
            "<line class=\"grid\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{EDGE}\" y2=\"{:.1}\"/>\
             <text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            HEIGHT - BELOW,
            HEIGHT - BELOW + 17.0,
            escaped(&across.label(tick)),
        ));
    }
    svg.push_str(&format!(
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - 5.0,
        shown.across_name(),
    ));
    for (number, line) in shown.lines.iter().enumerate() {
        svg.push_str(&stroke(number, line, &x, &y, &order.metric));
    }
    format!(
        "<figure><figcaption>{}</figcaption>{svg}</svg>{}</figure>",
        escaped(&order.title),
        legend(&shown.lines)
    )
}

fn collect<'a>(order: &PictureOrder, measurements: &'a [Measurement]) -> Vec<Line<'a>> {
    let mut lines: Vec<Line<'a>> = vec![];
    for measurement in measurements {
        let is_wanted = order.runs.is_empty() || order.runs.contains(&measurement.run);
        let value = measurement.metrics.get(&order.metric);
        let Some(&value) = value.filter(|value| is_wanted && value.is_finite()) else {
            continue;
        };
        let across = match order.across.as_str() {
            "memory" => measurement.memory_bytes as f64,
            _ => f64::from(measurement.times),
        };
        let point = (across, value, measurement.ending == Ending::Complete);
        match lines.iter_mut().find(|line| line.run == measurement.run) {
            Some(line) => line.points.push(point),
            None => lines.push(Line {
                run: &measurement.run,
                points: vec![point],
            }),
        }
    }
    for line in &mut lines {
        line.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    lines
}

fn stroke(
    number: usize,
    line: &Line<'_>,
    x: &impl Fn(f64) -> f64,
    y: &impl Fn(f64) -> f64,
    metric: &str,
) -> String {
    let points = line.points.iter();
    let path: Vec<String> = points
        .map(|&(across, up, _)| format!("{:.1},{:.1}", x(across), y(up)))
        .collect();
    let ink = format!("var(--s{})", number % INKS);
    let dashes = match number >= INKS {
        true => " stroke-dasharray=\"6 4\"",
        false => "",
    };
    let mut svg = format!(
        "<polyline fill=\"none\" stroke=\"{ink}\" stroke-width=\"2\"{dashes} points=\"{}\"/>",
        path.join(" ")
    );
    for &(across, up, is_complete) in &line.points {
        let (fill, told) = match is_complete {
            true => (ink.as_str(), ""),
            false => ("var(--ground)", ", did not complete"),
        };
        svg.push_str(&format!(
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\" fill=\"{fill}\" stroke=\"{ink}\">\
             <title>{}: {}{told}</title></circle>",
            x(across),
            y(up),
            escaped(line.run),
            escaped(&amount(metric, up)),
        ));
    }
    svg
}

fn legend(lines: &[Line<'_>]) -> String {
    let entries = lines.iter().enumerate().map(|(number, line)| {
        let kind = if number >= INKS { "dashed" } else { "plain" };
        format!(
            "<span><i class=\"stroke {kind}\" style=\"border-color:var(--s{})\"></i> {}</span>",
            number % INKS,
            escaped(line.run)
        )
    });
    format!(
        "<div class=\"legend\">{}</div>",
        entries.collect::<String>()
    )
}
