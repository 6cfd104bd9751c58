//! Working sets over time, knees, and how much memory is needed.

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use rayon::prelude::*;
use tidemark_lab::analysis::lifetime::{Lifetime, LifetimePoint};
use tidemark_lab::analysis::needed::{
    Needed, Terms, needed_fixed, needed_vmin, needed_working_set,
};
use tidemark_lab::analysis::pff::watch_pff;
use tidemark_lab::analysis::residence::{Piece, Timeline};
use tidemark_lab::analysis::vmin::watch_vmin;
use tidemark_lab::analysis::working_set::watch_working_set;

use crate::columns::{Column, column};
use crate::exceptions::of_argument;
use crate::references::References;

/// Pages that are resident over time: the beginning of each piece, its length, the fewest, mean and
/// most pages, and the faults in it; then mean, variance and greatest number over the whole.
type Followed = (
    Column<u64>,
    Column<u64>,
    Column<u64>,
    Column<f64>,
    Column<u64>,
    Column<u64>,
    (f64, f64, u64),
);

/// An answer: mean pages, most pages, window, page-ins, slow-down as a share, whether less may do.
type Answer = (f64, u64, Option<u64>, u64, f64, bool);

/// Follows the pages that `ws`, `vmin` or `pff` keeps, with each of `windows`, in at most `pieces`.
#[pyfunction]
pub fn follow(
    py: Python<'_>,
    references: &Bound<'_, References>,
    policy: &str,
    windows: Vec<u64>,
    pieces: usize,
) -> PyResult<Vec<Followed>> {
    if pieces == 0 {
        return Err(of_argument("pieces", 0, "at least 1"));
    }
    let watch = match policy {
        "ws" => watch_working_set::<Timeline>,
        "vmin" => watch_vmin::<Timeline>,
        "pff" => watch_pff::<Timeline>,
        _ => {
            let needs = "`ws`, `vmin` or `pff`; the others keep a constant number of pages";
            return Err(of_argument("policy", format!("`{policy}`"), needs));
        }
    };
    let least = 2 * references.get().sampling_window().unwrap_or(0);
    if let Some(window) = windows.iter().find(|window| **window < least) {
        let needs = format!("{least} or more: twice the longest window that it was sampled in");
        return Err(of_argument("window", window, &needs));
    }
    let timelines: Vec<Timeline> = references.get().compute(py, |string| {
        windows
            .par_iter()
            .map(|&window| watch(string, window, Timeline::new(&string, pieces)))
            .collect()
    })?;
    Ok(timelines
        .iter()
        .map(|timeline| followed(py, timeline))
        .collect())
}

/// The knee of a curve whose points have these pages and misses, and the lifetime there, in units
/// of time; nothing for a curve without points.
#[pyfunction]
pub fn find_knee(
    duration: u64,
    pages: PyReadonlyArray1<'_, f64>,
    misses: PyReadonlyArray1<'_, u64>,
) -> PyResult<Option<(f64, f64)>> {
    let points = pages
        .as_slice()?
        .iter()
        .copied()
        .zip(misses.as_slice()?.iter().copied());
    let knees = Lifetime::new(duration, points).find_knees();
    Ok(knees
        .primary
        .map(|knee: LifetimePoint| (knee.pages, knee.lifetime_ticks)))
}

/// The least memory for `ws` or `vmin` within the terms.
#[pyfunction]
pub fn need_variable(
    py: Python<'_>,
    references: &Bound<'_, References>,
    policy: &str,
    slow_down_max: f64,
    page_in_ns: f64,
    time_unit_ns: f64,
) -> PyResult<Answer> {
    let terms = terms(slow_down_max, page_in_ns, time_unit_ns)?;
    let need = match policy {
        "ws" => needed_working_set,
        "vmin" => needed_vmin,
        _ => {
            return Err(of_argument(
                "policy",
                format!("`{policy}`"),
                "`ws` or `vmin`",
            ));
        }
    };
    let references = references.get();
    let needed = references.compute(py, |string| {
        let sight = references.sight(string);
        need(string, references.intervals(string), &terms, sight)
    })?;
    Ok(answer(&needed))
}

/// The fewest pages within the terms among `pages` with their `misses`, if any will do.
#[pyfunction]
pub fn need_fixed(
    py: Python<'_>,
    references: &Bound<'_, References>,
    pages: PyReadonlyArray1<'_, u64>,
    misses: PyReadonlyArray1<'_, u64>,
    slow_down_max: f64,
    page_in_ns: f64,
    time_unit_ns: f64,
) -> PyResult<Option<Answer>> {
    let terms = terms(slow_down_max, page_in_ns, time_unit_ns)?;
    let references = references.get();
    let points = pages
        .as_slice()?
        .iter()
        .copied()
        .zip(misses.as_slice()?.iter().copied());
    let first = references.page_count.into();
    let sight = references.compute(py, |string| references.sight(string))?;
    let needed = needed_fixed(points, references.duration, first, &terms, sight);
    Ok(needed.as_ref().map(answer))
}

fn terms(slow_down_max: f64, page_in_ns: f64, time_unit_ns: f64) -> PyResult<Terms> {
    let amounts = [
        ("slow_down", slow_down_max),
        ("page_in_ns", page_in_ns),
        ("time_unit_ns", time_unit_ns),
    ];
    let is_amount = |value: f64| value > 0.0 && value.is_finite();
    match amounts.iter().find(|(_, value)| !is_amount(*value)) {
        Some((name, value)) => Err(of_argument(name, value, "a number above 0")),
        None => Ok(Terms {
            slow_down_max,
            page_in_ns,
            ticks_per_second: 1e9 / time_unit_ns,
        }),
    }
}

fn answer(needed: &Needed) -> Answer {
    (
        needed.pages_mean,
        needed.pages_max,
        needed.window,
        needed.page_ins,
        needed.slow_down,
        needed.is_at_most,
    )
}

fn followed(py: Python<'_>, timeline: &Timeline) -> Followed {
    let pieces = &timeline.pieces;
    let start = |number: usize| timeline.start + number as u64 * timeline.piece_ticks;
    let count = |of: fn(&Piece) -> u64| column(py, pieces.iter().map(of).collect());
    let totals = &timeline.totals;
    (
        column(py, (0..pieces.len()).map(start).collect()),
        count(|piece| piece.ticks),
        count(|piece| piece.pages_min),
        column(py, pieces.iter().map(Piece::pages_mean).collect()),
        count(|piece| piece.pages_max),
        count(|piece| piece.faults),
        (
            totals.pages_mean(),
            totals.pages_variance(),
            totals.pages_max,
        ),
    )
}
