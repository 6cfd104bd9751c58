//! Portraits of records: of `tidemark curve`, of `tidemark run`, of `tidemark bench`.

use serde::Deserialize;

use super::{Amount, Group, Portrait, Subject, Unit};
use crate::analysis::curve::{Curve, CurveRecord, Point};
use crate::analysis::{TimeUnit, TraceFacts};
use crate::compare::{Counts, ROWS};
use crate::record::{PAGE_BYTES, RunRecord};

/// The part of a benchmark's record that is compared. Its own type only writes.
#[derive(Debug, Deserialize)]
struct Bench {
    workload: String,
    memory_bytes: u64,
    contenders: Vec<Contender>,
}

/// The results of a contender.
#[derive(Debug, Deserialize)]
struct Contender {
    name: String,
    elapsed_s: f64,
    page_ins: u64,
    page_outs: u64,
    #[serde(default)]
    soft_faults: Option<u64>,
    #[serde(default)]
    memory_peak_bytes: Option<u64>,
}

/// The sizes of memory in which misses are compared, if none are named: a quarter, half and all of
/// the `pages` that the first input uses.
pub fn usual_sizes(pages: u64) -> Vec<u64> {
    let mut sizes = vec![pages.div_ceil(4), pages.div_ceil(2), pages];
    sizes.retain(|size| *size > 0);
    sizes.dedup();
    sizes
}

/// The amounts that facts about a trace hold: memory, references and time.
pub fn amounts_of(trace: &TraceFacts) -> Vec<Amount> {
    let amount = |group, name, unit, value| Amount::new(group, name, None, unit, value as f64);
    let mut amounts = vec![amount(Group::Memory, "touched", Unit::Pages, trace.pages)];
    if let Some(pages) = trace.pages_at_once {
        amounts.push(amount(Group::Memory, "at-once", Unit::Pages, pages));
    }
    let records = amount(Group::References, "references", Unit::Count, trace.records);
    amounts.push(records);
    if trace.processes > 1 {
        let processes = trace.processes;
        amounts.push(amount(
            Group::References,
            "processes",
            Unit::Count,
            processes,
        ));
    }
    // Where time counts references it tells no more than they do.
    if trace.time_unit != TimeUnit::References {
        amounts.push(amount(
            Group::Time,
            "time",
            trace.time_unit.into(),
            trace.time,
        ));
    }
    amounts
}

/// The portrait of a curve's record, with its misses in memory of these `sizes`, in pages. Between
/// two points of a curve misses are interpolated.
pub fn of_curve(file: &str, record: &CurveRecord, sizes: &[u64]) -> Portrait {
    let trace = &record.trace;
    let mut amounts = amounts_of(trace);
    let mut is_interpolated = false;
    for curve in &record.curves {
        for &size in sizes {
            let Some((misses, is_point)) = misses_at(curve, size) else {
                continue;
            };
            is_interpolated |= !is_point;
            amounts.push(Amount::new(
                Group::Misses,
                &curve.policy,
                Some(size),
                Unit::Count,
                misses.round(),
            ));
        }
    }
    amounts.extend(needs_of(record));
    let note = "misses between two points of a curve are interpolated";
    Portrait {
        subject: Subject {
            file: file.into(),
            title: trace.title(),
            trace: Some(trace.clone()),
        },
        amounts,
        sizes: sizes.to_vec(),
        regions: vec![],
        processes: vec![],
        curves: record.curves.iter().map(points_of).collect(),
        notes: is_interpolated.then(|| note.into()).into_iter().collect(),
    }
}

/// The portrait of the statistics of a run: what a comparison has of it.
pub fn of_run(file: &str, record: &RunRecord) -> Portrait {
    let amount = |group, name, unit, value| Amount::new(group, name, None, unit, value);
    let counts = Counts::of_live(&record.total, record.total.frames_peak, PAGE_BYTES);
    let processes = record.processes.len() as u64 + record.others.processes;
    let mut amounts = vec![
        amount(
            Group::Memory,
            "budget",
            Unit::Bytes,
            record.memory_bytes as f64,
        ),
        amount(
            Group::Time,
            "waited",
            Unit::Seconds,
            record.total.stall_ns.seconds(),
        ),
    ];
    for (name, value) in ROWS {
        let (group, unit) = match *name {
            "peak resident" => (Group::Memory, Unit::Bytes),
            "elapsed" => (Group::Time, Unit::Seconds),
            "read from disk" | "written to disk" => (Group::Counts, Unit::Bytes),
            _ => (Group::Counts, Unit::Count),
        };
        amounts.push(amount(group, name, unit, value(&counts)));
    }
    amounts.push(amount(
        Group::Counts,
        "processes",
        Unit::Count,
        processes as f64,
    ));
    Portrait {
        subject: Subject {
            file: file.into(),
            title: format!("{} · policy {}", record.command.join(" "), record.policy),
            trace: None,
        },
        amounts,
        ..Portrait::default()
    }
}

/// The portrait of a benchmark from the text of its record.
///
/// # Errors
/// The text is no such record.
pub fn of_bench(file: &str, text: &str) -> Result<Portrait, String> {
    let bench: Bench = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut amounts = vec![];
    for contender in &bench.contenders {
        let mut push = |name: &str, unit, value: Option<f64>| {
            let name = format!("{}, {name}", contender.name);
            let amount = |value| Amount::new(Group::Contenders, &name, None, unit, value);
            amounts.extend(value.map(amount));
        };
        let count = |value: Option<u64>| value.map(|value| value as f64);
        push("elapsed", Unit::Seconds, Some(contender.elapsed_s));
        push("page-ins", Unit::Count, count(Some(contender.page_ins)));
        push("page-outs", Unit::Count, count(Some(contender.page_outs)));
        push("soft faults", Unit::Count, count(contender.soft_faults));
        push("peak", Unit::Bytes, count(contender.memory_peak_bytes));
    }
    Ok(Portrait {
        subject: Subject {
            file: file.into(),
            title: format!(
                "{} in {}",
                bench.workload,
                crate::text::bytes(bench.memory_bytes)
            ),
            trace: None,
        },
        amounts,
        ..Portrait::default()
    })
}

/// A curve's misses in `pages` pages, and true if that is one of its points; `None` below them.
fn misses_at(curve: &Curve, pages: u64) -> Option<(f64, bool)> {
    let mut points: Vec<&Point> = curve.points.iter().collect();
    points.sort_by(|a, b| a.memory_pages().total_cmp(&b.memory_pages()));
    let wanted = pages as f64;
    let behind = points.partition_point(|point| point.memory_pages() <= wanted);
    let before = points.get(behind.checked_sub(1)?)?;
    let (from, misses) = (before.memory_pages(), before.misses as f64);
    let Some(next) = points.get(behind).filter(|_| from < wanted) else {
        return Some((misses, from >= wanted || behind == points.len()));
    };
    let part = (wanted - from) / (next.memory_pages() - from);
    Some((misses + (next.misses as f64 - misses) * part, false))
}

fn needs_of(record: &CurveRecord) -> Vec<Amount> {
    let amount = |name: &str, percent: f64, pages: u64| {
        let at = Some(percent.round() as u64);
        Amount::new(Group::Needs, name, at, Unit::Pages, pages as f64)
    };
    let ideal = record.needs.iter();
    let ideal = ideal.map(|need| amount(&need.policy, need.slowdown_percent_max, need.pages));
    let live = record.run.iter().flat_map(|run| &run.needs);
    let live = live.map(|need| amount("tidemark run", need.slowdown_percent_max, need.pages));
    ideal.chain(live).collect()
}

fn points_of(curve: &Curve) -> (String, Vec<Point>) {
    (curve.policy.clone(), curve.points.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{Accuracy, curve::Space};

    fn curve(points: &[(u64, u64)]) -> Curve {
        let point = |&(pages, misses): &(u64, u64)| Point {
            pages,
            misses,
            ..Point::default()
        };
        Curve {
            policy: "lru".into(),
            space: Space::Fixed,
            accuracy: Accuracy::Exact,
            knee: None,
            points: points.iter().map(point).collect(),
        }
    }

    #[test]
    fn misses_are_those_of_points_and_interpolated_between_them() {
        let curve = curve(&[(10, 100), (20, 50)]);
        assert_eq!(misses_at(&curve, 9), None);
        assert_eq!(misses_at(&curve, 10), Some((100.0, true)));
        assert_eq!(misses_at(&curve, 12), Some((90.0, false)));
        assert_eq!(misses_at(&curve, 20), Some((50.0, true)));
        // More than the last point has is as good as that.
        assert_eq!(misses_at(&curve, 99), Some((50.0, true)));
    }

    #[test]
    fn a_benchmark_is_read_by_its_contenders() {
        let text = r#"{"schema": "tidemark.bench.v1", "workload": "loop", "memory_bytes": 1048576,
            "contenders": [{"name": "clock", "elapsed_s": 1.5, "page_ins": 7, "page_outs": 3,
            "ratio": 1.0, "soft_faults": 2}]}"#;
        let portrait = of_bench("a.json", text).unwrap();
        assert_eq!(portrait.subject.title, "loop in 1 MiB");
        let found: Vec<(&str, f64)> = portrait
            .amounts
            .iter()
            .map(|amount| (&amount.name[..], amount.value))
            .collect();
        let expected = [
            ("clock, elapsed", 1.5),
            ("clock, page-ins", 7.0),
            ("clock, page-outs", 3.0),
            ("clock, soft faults", 2.0),
        ];
        assert_eq!(found, expected);
        assert!(of_bench("a.json", "{}").is_err());
    }

    #[test]
    fn usual_sizes_are_parts_of_the_footprint_each_once() {
        assert_eq!(usual_sizes(100), [25, 50, 100]);
        assert_eq!(usual_sizes(1), [1]);
        assert_eq!(usual_sizes(0), [0; 0]);
    }
}
