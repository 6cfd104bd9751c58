//! A chart: lines over two axes, with a legend above and names beside.

use super::{Anchor, Lettering, Picture, Stroke, text_width};
use crate::axis::Axis;
use crate::colours::{PAPER, Rgb};

/// Lines over two axes.
pub struct Chart {
    /// The name of the vertical axis, above it.
    pub title: String,
    /// The name of the horizontal axis, below it.
    pub across_name: String,
    /// The axis to the right.
    pub across: Axis,
    /// The axis upwards.
    pub up: Axis,
    /// The lines, the last on top.
    pub series: Vec<Series>,
    /// Spans of time with a tint, behind the lines.
    pub spans: Vec<(f64, f64, Rgb)>,
    /// Lines straight across, with a name.
    pub levels: Vec<(f64, String)>,
    /// Lines straight up, with a name.
    pub marks: Vec<(f64, String)>,
}

/// A line of a chart.
pub struct Series {
    /// Its name in the legend; empty for none.
    pub name: String,
    /// Its colour.
    pub colour: Rgb,
    /// True if it is dashed.
    pub is_dashed: bool,
    /// Its width.
    pub width: f64,
    /// Its points, from left to right.
    pub points: Vec<(f64, f64)>,
    /// A point that is set off with a dot.
    pub dot: Option<(f64, f64)>,
}

/// A rectangle of a picture.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    /// Left edge.
    pub x: f64,
    /// Upper edge.
    pub y: f64,
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
}

/// Room around the lines: for numbers and names.
const LEFT: f64 = 84.0;
const RIGHT: f64 = 24.0;
const ABOVE: f64 = 58.0;
const BELOW: f64 = 56.0;
const LETTERS: u32 = 12;
/// From one line of the legend to the next.
const LEGEND_LINE: f64 = 18.0;
/// The gaps between a name of the legend and the next: a stroke and gaps.
const LEGEND_GAPS: [f64; 2] = [32.0, 16.0];

impl Chart {
    /// The chart as a picture of its own, as much higher as its legend needs.
    pub fn picture(&self, width: usize, height: usize) -> Picture {
        let height = height as f64 + self.legend_height(width as f64);
        let mut picture = Picture::new(width, height.ceil() as usize);
        let area = Area {
            x: 0.0,
            y: 0.0,
            width: width as f64,
            height,
        };
        self.draw(&mut picture, area);
        picture
    }

    /// Draws the chart into `area`.
    pub fn draw(&self, picture: &mut Picture, area: Area) {
        let inner = Area {
            x: area.x + LEFT,
            y: area.y + ABOVE + self.legend_height(area.width),
            width: area.width - LEFT - RIGHT,
            height: area.height - ABOVE - self.legend_height(area.width) - BELOW,
        };
        for (from, until, tint) in &self.spans {
            let x = |value| inner.x + self.across.place(value).clamp(0.0, 1.0) * inner.width;
            let (left, right) = (x(*from), x(*until));
            picture.fill((left, inner.y), (right - left, inner.height), *tint, 0.55);
        }
        self.draw_title(picture, area, inner);
        draw_across(picture, inner, &self.across, &self.across_name);
        self.draw_up(picture, inner);
        self.draw_levels(picture, inner);
        for series in &self.series {
            self.draw_series(picture, inner, series);
        }
        // Dots last: no line runs over them.
        for series in &self.series {
            if let Some(dot) = series.dot {
                let (x, y) = self.spot(inner, dot);
                picture.dot(x, y, 5.5, series.colour);
            }
        }
    }

    fn draw_title(&self, picture: &mut Picture, area: Area, inner: Area) {
        let lettering = Lettering::new(15).bold();
        picture.text(inner.x, area.y + 20.0, &self.title, lettering);
        for (series, (right, line)) in self.legend(inner.width) {
            let (x, y) = (inner.x + right, area.y + 43.0 + line as f64 * LEGEND_LINE);
            let stroke = Stroke::new(series.colour, 3.0).dashed(series.is_dashed);
            picture.line(vec![(x, y - 4.0), (x + 26.0, y - 4.0)], stroke);
            picture.text(x + LEGEND_GAPS[0], y, &series.name, Lettering::new(LETTERS));
        }
    }

    /// The height that a chart of that width must have more than usual, for its legend.
    pub fn legend_height(&self, width: f64) -> f64 {
        let legend = self.legend(width - LEFT - RIGHT);
        legend.last().map_or(0, |(_, (_, line))| *line) as f64 * LEGEND_LINE
    }

    /// The place of each name of the legend: how far to the right, and in which line.
    fn legend(&self, width: f64) -> Vec<(&Series, (f64, usize))> {
        let (mut right, mut line) = (0.0, 0);
        let named = self.series.iter().filter(|series| !series.name.is_empty());
        let placed = named.map(|series| {
            let long = LEGEND_GAPS[0] + text_width(&series.name, LETTERS);
            if right > 0.0 && right + long > width {
                (right, line) = (0.0, line + 1);
            }
            let place = (right, line);
            right += long + LEGEND_GAPS[1];
            (series, place)
        });
        placed.collect()
    }

    fn draw_up(&self, picture: &mut Picture, inner: Area) {
        let wanted = (inner.height / 38.0) as usize;
        for tick in self.up.ticks(wanted) {
            let y = inner.y + (1.0 - self.up.place(tick)) * inner.height;
            let grid = Stroke::new(PAPER.grid, 1.0);
            picture.line(vec![(inner.x, y), (inner.x + inner.width, y)], grid);
            let lettering = Lettering::new(LETTERS).anchored(Anchor::End);
            picture.text(inner.x - 8.0, y + 4.0, &self.up.label(tick), lettering);
        }
        let frame = Stroke::new(PAPER.frame, 1.0);
        let bottom = inner.y + inner.height;
        picture.line(vec![(inner.x, inner.y), (inner.x, bottom)], frame);
    }

    fn draw_levels(&self, picture: &mut Picture, inner: Area) {
        let stroke = Stroke::new(PAPER.frame, 1.0).dashed(true);
        let lettering = Lettering::new(11).coloured(PAPER.faint);
        for (value, name) in &self.levels {
            let y = inner.y + (1.0 - self.up.place(*value)) * inner.height;
            if y < inner.y || y > inner.y + inner.height {
                continue;
            }
            picture.line(vec![(inner.x, y), (inner.x + inner.width, y)], stroke);
            picture.text(inner.x + 8.0, y - 5.0, name, lettering);
        }
        let mut taken_until = f64::MIN;
        for (value, name) in &self.marks {
            let x = inner.x + self.across.place(*value) * inner.width;
            if x < inner.x || x > inner.x + inner.width {
                continue;
            }
            picture.line(vec![(x, inner.y), (x, inner.y + inner.height)], stroke);
            if x > taken_until {
                picture.text(x + 4.0, inner.y + 12.0, name, lettering);
                taken_until = x + text_width(name, 11) + 8.0;
            }
        }
    }

    fn draw_series(&self, picture: &mut Picture, inner: Area, series: &Series) {
        let spots: Vec<(f64, f64)> = series
            .points
            .iter()
            .map(|point| self.spot(inner, *point))
            .collect();
        let spots = thinned(&clipped(&spots, inner));
        let stroke = Stroke::new(series.colour, series.width).dashed(series.is_dashed);
        match spots.len() {
            0 => {}
            1 => picture.dot(spots[0].0, spots[0].1, 3.5, series.colour),
            _ => picture.line(spots, stroke),
        }
    }

    fn spot(&self, inner: Area, point: (f64, f64)) -> (f64, f64) {
        let x = inner.x + self.across.place(point.0) * inner.width;
        let y = inner.y + (1.0 - self.up.place(point.1)) * inner.height;
        (x, y)
    }
}

/// Draws an axis to the right under `inner`: ticks that don't touch, numbers, a name.
pub fn draw_across(picture: &mut Picture, inner: Area, axis: &Axis, name: &str) {
    let bottom = inner.y + inner.height;
    let mut taken_until = f64::MIN;
    for tick in axis.ticks((inner.width / 84.0) as usize) {
        let x = inner.x + axis.place(tick) * inner.width;
        let grid = Stroke::new(PAPER.grid, 1.0);
        picture.line(vec![(x, inner.y), (x, bottom)], grid);
        let frame = Stroke::new(PAPER.frame, 1.0);
        picture.line(vec![(x, bottom), (x, bottom + 5.0)], frame);
        let label = axis.label(tick);
        let half = text_width(&label, LETTERS) / 2.0;
        if x - half > taken_until {
            let lettering = Lettering::new(LETTERS).anchored(Anchor::Middle);
            picture.text(x, bottom + 20.0, &label, lettering);
            taken_until = x + half + 6.0;
        }
    }
    let frame = Stroke::new(PAPER.frame, 1.0);
    picture.line(
        vec![(inner.x, bottom), (inner.x + inner.width, bottom)],
        frame,
    );
    let lettering = Lettering::new(LETTERS).coloured(PAPER.faint);
    let lettering = lettering.anchored(Anchor::Middle);
    picture.text(inner.x + inner.width / 2.0, bottom + 42.0, name, lettering);
}

/// The part of a line inside `inner`: segments are cut where they cross its edges.
fn clipped(spots: &[(f64, f64)], inner: Area) -> Vec<(f64, f64)> {
    let (right, bottom) = (inner.x + inner.width, inner.y + inner.height);
    let inside = |spot: &(f64, f64)| spot.0 >= inner.x - 0.01 && spot.0 <= right + 0.01;
    let mut kept: Vec<(f64, f64)> = vec![];
    for (at, spot) in spots.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| spots[at]);
        if let Some(before) = before
            && inside(&before) != inside(spot)
        {
            let edge = if before.0.min(spot.0) < inner.x {
                inner.x
            } else {
                right
            };
            let part = (edge - before.0) / (spot.0 - before.0);
            kept.push((edge, before.1 + (spot.1 - before.1) * part));
        }
        if inside(spot) {
            kept.push(*spot);
        }
    }
    for spot in &mut kept {
        spot.1 = spot.1.clamp(inner.y, bottom);
    }
    kept
}

/// The line with at most four points for each half unit of width: first, last, lowest and highest.
fn thinned(spots: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut kept: Vec<(f64, f64)> = vec![];
    let mut from = 0;
    while from < spots.len() {
        let column = (spots[from].0 * 2.0).floor();
        let same = spots[from..]
            .iter()
            .take_while(|spot| (spot.0 * 2.0).floor() == column);
        let until = from + same.count();
        let part = &spots[from..until];
        if part.len() <= 4 {
            kept.extend_from_slice(part);
        } else {
            let by = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
            let lowest = part.iter().min_by(by).expect("it has points");
            let highest = part.iter().max_by(by).expect("it has points");
            kept.extend([part[0], *lowest, *highest, part[part.len() - 1]]);
        }
        from = until;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::{Quantity, Spread};

    const INNER: Area = Area {
        x: 0.0,
        y: 0.0,
        width: 10.0,
        height: 10.0,
    };

    #[test]
    fn a_legend_that_is_too_long_goes_on_in_the_next_line() {
        let series = ["first", "second", "third"].map(|name| Series {
            name: name.repeat(4),
            colour: PAPER.text,
            is_dashed: false,
            width: 1.0,
            points: vec![],
            dot: None,
        });
        let axis = || Axis::new(Quantity::Count, Spread::Linear, 0.0, 1.0);
        let chart = Chart {
            title: String::new(),
            across_name: String::new(),
            across: axis(),
            up: axis(),
            series: series.into(),
            spans: vec![],
            levels: vec![],
            marks: vec![],
        };
        let lines = |width| {
            chart
                .legend(width)
                .iter()
                .map(|(_, at)| at.1)
                .collect::<Vec<_>>()
        };
        assert_eq!(lines(2000.0), [0, 0, 0]);
        assert_eq!(lines(420.0), [0, 0, 1]);
        assert_eq!(lines(10.0), [0, 1, 2]);
        assert!((chart.legend_height(10.0) - 36.0).abs() < 1e-9);
    }

    #[test]
    fn lines_are_cut_at_the_edges() {
        let cut = clipped(&[(-5.0, 0.0), (5.0, 10.0), (15.0, 0.0)], INNER);
        assert_eq!(cut, [(0.0, 5.0), (5.0, 10.0), (10.0, 5.0)]);
    }

    #[test]
    fn thinning_keeps_the_extremes() {
        let mut spots: Vec<(f64, f64)> = (0..1000).map(|at| (3.0, f64::from(at % 7))).collect();
        spots[500].1 = 99.0;
        let kept = thinned(&spots);
        assert_eq!(kept.len(), 4);
        assert!(kept.contains(&(3.0, 99.0)));
    }
}
