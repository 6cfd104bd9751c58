//! Curves as measurements: misses and lifetimes at given sizes, knees, and the least space-time.

use std::collections::BTreeMap;

use tidemark_results::analysis::curve::{Curve, CurveRecord};
use tidemark_results::analysis::report::SpaceTime;
use tidemark_results::experiment::Measurement;

use super::Study;
use super::order::{Assumed, CurveOrder, Sizes};
use super::policies::Named;
use super::progress::Progress;

/// The metrics of a curve, and their meanings.
pub const CURVE_METRICS: &[(&str, &str)] = &[
    ("misses", "references that missed, first touches included"),
    ("lifetime", "virtual time between misses"),
    ("mean_pages", "memory used in the mean"),
    ("knee_pages", "memory at the knee; `in knee`"),
    ("knee_lifetime", "lifetime at the knee; `in knee`"),
    (
        "space_time",
        "the least space-time product, in page-seconds; `in best`",
    ),
    ("running", "its part while the program runs; `in best`"),
    (
        "waiting",
        "its part while the program waits for pages; `in best`",
    ),
    ("managing", "its part while the policy works; `in best`"),
    ("pages", "memory at that point; `in best`"),
    ("elapsed_s", "the program's whole time there; `in best`"),
];

/// A measurement that is wanted: a policy, and a share of all pages in a hundred, `knee` or `best`.
pub type Wish<'a> = (&'a str, Named, &'a str);

/// Measures a trace whose references are read. Answers in the order of the wishes; a size that is
/// no number has no measure.
pub fn measure_curves(
    study: &Study,
    wishes: &[Wish<'_>],
    assumed: &Assumed,
    progress: &mut Progress<'_>,
) -> Vec<Measurement> {
    let mut policies: Vec<Named> = vec![];
    for (_, named, _) in wishes {
        if !policies.contains(named) {
            policies.push(*named);
        }
    }
    let mut sizes: Vec<u64> = wishes
        .iter()
        .filter_map(|wish| share_of(study, wish.2))
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut curves = |sizes| {
        let order = CurveOrder {
            policies: policies.clone(),
            sizes,
            assumed: assumed.clone(),
        };
        study.curves(&order, progress)
    };
    let whole = curves(Sizes::Spread);
    let there = curves(Sizes::At(sizes));
    let best = study.space_time(&whole, assumed);
    let measured = wishes.iter().map(|&(run, named, memory)| {
        let row = best.rows.iter().find(|row| row.policy == named.name());
        let metrics = match memory {
            "knee" => whole.curve(named.name()).map(knee).unwrap_or_default(),
            "best" => row.map(least).unwrap_or_default(),
            _ => at_size(study, &there, named, share_of(study, memory)),
        };
        let pages = share_of(study, memory).unwrap_or(0);
        Measurement {
            run: run.to_owned(),
            memory: memory.to_owned(),
            memory_bytes: pages * study.facts().page_bytes,
            times: 1,
            metrics,
            ..Measurement::default()
        }
    });
    measured.collect()
}

/// The pages that are `60%` of all.
fn share_of(study: &Study, text: &str) -> Option<u64> {
    let share: f64 = text.strip_suffix('%')?.trim().parse().ok()?;
    Some(((study.facts().pages as f64 * share / 100.0) as u64).max(1))
}

fn at_size(
    study: &Study,
    record: &CurveRecord,
    named: Named,
    pages: Option<u64>,
) -> BTreeMap<String, f64> {
    let curve = record.curve(named.name());
    let mut points = curve.map_or([].iter(), |curve| curve.points.iter());
    let Some(point) = points.find(|point| Some(point.pages) == pages) else {
        return BTreeMap::new();
    };
    named_numbers([
        ("misses", point.misses as f64),
        ("lifetime", point.lifetime(study.facts())),
        ("mean_pages", point.memory_pages()),
    ])
}

fn knee(curve: &Curve) -> BTreeMap<String, f64> {
    let Some(knee) = curve.knee else {
        return BTreeMap::new();
    };
    named_numbers([("knee_pages", knee.pages), ("knee_lifetime", knee.lifetime)])
}

fn least(row: &SpaceTime) -> BTreeMap<String, f64> {
    named_numbers([
        ("space_time", row.total() / 1e9),
        ("running", row.running / 1e9),
        ("waiting", row.waiting / 1e9),
        ("managing", row.managing / 1e9),
        ("pages", row.pages),
        ("elapsed_s", row.elapsed_ns / 1e9),
    ])
}

fn named_numbers<const N: usize>(numbers: [(&str, f64); N]) -> BTreeMap<String, f64> {
    let numbers = numbers.map(|(name, number)| (name.to_owned(), number));
    numbers.into_iter().collect()
}
