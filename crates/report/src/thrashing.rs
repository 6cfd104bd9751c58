//! The thrashing curve as a picture and in a terminal: page accesses in a second, over how many
//! times the memory the working sets of all tasks are.

use tidemark_results::text;
use tidemark_results::thrashing::{ThrashPoint, Thrashing};

use crate::axis::{Axis, Quantity, Spread};
use crate::colours::{LINES, Rgb};
use crate::numbers;
use crate::picture::Picture;
use crate::picture::chart::{Chart, Series};
use crate::terminal::canvas::{Canvas, MARGIN};
use crate::terminal::{Screen, wrapped};

const WIDTH: usize = 760;
const HEIGHT: usize = 420;
const TITLE: &str = "Page accesses in a second";
const ACROSS: &str = "working sets of all tasks, as a multiple of memory";

/// The curve as a picture.
pub fn picture(record: &Thrashing) -> Picture {
    let [across, up] = axes(record);
    let lines = record.lines();
    let series = lines
        .iter()
        .enumerate()
        .map(|(number, (name, points))| Series {
            name: (*name).to_owned(),
            colour: colour(number),
            is_dashed: number >= LINES.len(),
            width: 2.2,
            points: points.iter().map(|point| spot(point)).collect(),
            dot: None,
        });
    let chart = Chart {
        title: format!("{TITLE}: {}", setting(record)),
        across_name: ACROSS.into(),
        series: series.collect(),
        spans: vec![],
        levels: vec![],
        marks: vec![],
        across,
        up,
    };
    chart.picture(WIDTH, HEIGHT)
}

/// The curve in a terminal, and a table of its points.
pub fn drawing(record: &Thrashing, screen: Screen) -> String {
    let [across, up] = axes(record);
    let mut canvas = Canvas::new(screen.columns - MARGIN, screen.lines);
    let lines = record.lines();
    let mut legend = String::new();
    for (number, (name, points)) in lines.iter().enumerate() {
        let place = |point: &ThrashPoint| {
            let (x, y) = spot(point);
            (across.place(x), up.place(y))
        };
        let spots: Vec<(f64, f64)> = points.iter().map(|point| place(point)).collect();
        let letter = letter(number);
        canvas.line(&spots, colour(number));
        // Each at another part of its line, so that none lies under another's.
        if let Some(spot) = spots.get(number % spots.len().max(1)) {
            canvas.letter(*spot, letter, colour(number));
        }
        let sign = screen.paint(&format!("{letter}⠒⠒"), colour(number));
        legend.push_str(&format!(" {sign} {name} \n"));
    }
    let mut told = wrapped(&format!("{TITLE}: {}", setting(record)), screen.columns);
    told.push_str(&legend);
    told.push_str(&canvas.framed(&across, &up, screen));
    told.push_str(&format!("{ACROSS:>width$}\n\n", width = screen.columns));
    told.push_str(&table(record, screen));
    for line in &record.left_out {
        told.push_str(&wrapped(&format!("note: {line}"), screen.columns));
    }
    told
}

/// A row for each load, and a column for each contender.
fn table(record: &Thrashing, screen: Screen) -> String {
    let lines = record.lines();
    let mut loads: Vec<(u32, f64)> = vec![];
    for point in &record.points {
        if !loads.iter().any(|(tasks, _)| *tasks == point.tasks) {
            loads.push((point.tasks, point.load));
        }
    }
    let names = lines.iter().map(|(name, _)| *name);
    let head: Vec<&str> = ["tasks", "times memory"].into_iter().chain(names).collect();
    let mut rows = vec![];
    for (tasks, load) in loads {
        let mut row = vec![tasks.to_string(), numbers::digits(load)];
        row.extend(lines.iter().map(|(_, points)| {
            let point = points.iter().find(|point| point.tasks == tasks);
            point.map_or("-".into(), |point| numbers::count(point.accesses_per_s))
        }));
        rows.push(row);
    }
    let width = Some(screen.columns);
    format!("{}\n", text::folded(&head, &rows, 0, 2, width))
}

fn setting(record: &Thrashing) -> String {
    let (size, memory) = (record.size_bytes, record.memory_bytes);
    format!("tasks of {} in {}", text::bytes(size), text::bytes(memory))
}

fn axes(record: &Thrashing) -> [Axis; 2] {
    let range = |of: fn(&ThrashPoint) -> f64| {
        let values = record.points.iter().map(of);
        values.fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(v), b.max(v)))
    };
    let (least, most) = range(|point| point.load);
    let across = Axis::new(Quantity::Count, Spread::Logarithmic, least, most);
    let (least, most) = range(|point| point.accesses_per_s);
    let up = Axis::new(
        Quantity::Count,
        Spread::Logarithmic,
        least / 1.3,
        most * 1.3,
    );
    [across, up]
}

fn spot(point: &ThrashPoint) -> (f64, f64) {
    (point.load, point.accesses_per_s)
}

fn colour(number: usize) -> Rgb {
    LINES[number % LINES.len()]
}

fn letter(number: usize) -> char {
    ('A'..='Z').nth(number % 26).expect("there are 26 letters")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_results::thrashing::SCHEMA;

    fn record() -> Thrashing {
        let point = |contender: &str, tasks, accesses_per_s| ThrashPoint {
            contender: contender.into(),
            tasks,
            load: f64::from(tasks) / 4.0,
            elapsed_s: 1.0,
            accesses_per_s,
            page_ins: 0,
        };
        Thrashing {
            schema: SCHEMA,
            tidemark: "1",
            memory_bytes: 128 << 20,
            size_bytes: 32 << 20,
            laps: 12,
            points: vec![
                point("tidemark", 2, 1e6),
                point("kernel-swap", 2, 2e6),
                point("tidemark", 32, 1e3),
            ],
            left_out: vec!["kernel-swap with 32 tasks: it took longer than 60 s".into()],
        }
    }

    #[test]
    fn the_picture_names_what_it_shows() {
        let svg = picture(&record()).to_svg();
        for text in [
            "tasks of 32 MiB in 128 MiB",
            "kernel-swap",
            "multiple of memory",
        ] {
            assert!(svg.contains(text), "{text}");
        }
    }

    #[test]
    fn the_drawing_has_every_point_and_what_is_missing() {
        let text = drawing(&record(), Screen::new(80, false));
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{text}");
        let rows: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert!(
            rows.contains(&vec!["2", "0.5", "1", "M", "2", "M"]),
            "{text}"
        );
        assert!(rows.contains(&vec!["32", "8", "1", "k", "-"]), "{text}");
        assert!(text.contains("note: kernel-swap with 32 tasks"), "{text}");
    }
}
