//! Curves: misses by memory, for one policy at a time, as columns. The points are those of
//! [`tidemark_lab::study::points`], of which the command's records are made, too.

use std::collections::BTreeMap;

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use tidemark_core::policies;
use tidemark_core::seams::policy::Sees;
use tidemark_lab::analysis::shards::{Sampling, Share, estimate};
use tidemark_lab::analysis::simulate::{Job, MachineKind};
use tidemark_lab::analysis::vmin::vmin_point;
use tidemark_lab::analysis::working_set::working_set_point;
use tidemark_lab::study::points::{self, PointOf};
use tidemark_results::analysis::curve::Point;

use crate::columns::{Column, column};
use crate::exceptions::{is_module, of_argument, of_policy};
use crate::references::References;

/// Sizes that are simulated unless others are asked for.
const SIZES: u64 = 24;
/// Sizes that are estimated unless others are asked for: as many as a curve is drawn with.
const SIZES_DRAWN: u64 = 480;
/// Windows for each power of two, unless others are asked for.
const WINDOWS_PER_DOUBLING: u32 = 12;
/// Values of PFF's interval for each power of two; each takes a run of its own.
const CRITICALS_PER_DOUBLING: u32 = 2;

/// This many samples are taken side by side; their differences give their error.
const SAMPLES: u32 = 8;

/// An estimate: sizes in pages, the misses with each, and their standard errors.
type Estimated = (Column<u64>, Column<u64>, Column<f64>);
/// The columns of a policy with constant memory: sizes in pages, and the misses with each.
type Fixed = (Column<u64>, Column<u64>);
/// The columns of a policy with varying memory: windows, the misses with each, and the mean pages.
type Variable = (Column<u64>, Column<u64>, Column<f64>);

/// Counts the misses of a policy that has a constant amount of memory.
#[pyfunction]
pub fn count_misses(
    py: Python<'_>,
    references: &Bound<'_, References>,
    policy: &str,
    sizes: Option<PyReadonlyArray1<'_, u64>>,
    seed: u64,
    knobs: BTreeMap<String, u64>,
    eyes: &str,
) -> PyResult<Fixed> {
    let references = references.get();
    let sizes = parse_sizes(sizes)?;
    let most = u64::from(references.page_count.max(1));
    let points = match policy {
        "lru" | "opt" => {
            let depths_of = match policy {
                "opt" => points::optimum_depths,
                _ => points::lru_depths,
            };
            let sizes = sizes.unwrap_or_else(|| (1..=u64::from(references.page_count)).collect());
            references.compute(py, |string| {
                points::stack_points(&depths_of(string), &sizes)
            })?
        }
        _ => {
            let job = Job {
                knobs: knobs.iter().map(|(k, &v)| (k.as_str(), v)).collect(),
                seed,
                eyes: parse_eyes(eyes)?,
                ..Job::new(policy, 1)
            };
            check_policy(&job)?;
            let sizes = sizes.unwrap_or_else(|| points::spread(most, SIZES));
            let found = references.compute(py, |string| {
                points::simulated_points(&job, string, &references.names, &sizes)
            })?;
            found.map_err(|error| of_policy(&error))?
        }
    };
    Ok((pages_of(py, &points), misses_of(py, &points)))
}

/// Estimates the misses of LRU from samples of the pages: of a share of them, or of at most a
/// number at a time.
#[pyfunction]
pub fn estimate_misses(
    py: Python<'_>,
    references: &Bound<'_, References>,
    rate: Option<f64>,
    pages: Option<u32>,
    sizes: Option<PyReadonlyArray1<'_, u64>>,
    seed: u64,
) -> PyResult<Estimated> {
    let references = references.get();
    let share = match (rate, pages) {
        (Some(rate), None) if rate > 0.0 && rate <= 1.0 => Share::Rate(rate),
        (None, Some(pages)) if pages > 0 => Share::Pages(pages),
        (Some(rate), _) => {
            let needs = "a share above 0 and at most 1, or a number of pages";
            return Err(of_argument("sample", rate, needs));
        }
        (None, _) => return Err(of_argument("sample", 0, "at least 1 page")),
    };
    let sampling = Sampling {
        share,
        samples: SAMPLES,
        seed,
    };
    let most = u64::from(references.page_count.max(1));
    let sizes = parse_sizes(sizes)?.unwrap_or_else(|| points::spread(most, SIZES_DRAWN));
    let found = references.compute(py, |string| estimate(string.pages(), &sampling, &sizes))?;
    let points = points::sampled_points(&found);
    let error = |point: &Point| point.misses_error.expect("there are several samples");
    let errors = points.iter().map(error).collect();
    Ok((
        pages_of(py, &points),
        misses_of(py, &points),
        column(py, errors),
    ))
}

/// Counts the faults of a policy whose memory follows the program: `ws`, `vmin` or `pff`.
#[pyfunction]
pub fn count_faults(
    py: Python<'_>,
    references: &Bound<'_, References>,
    policy: &str,
    sizes: Option<PyReadonlyArray1<'_, u64>>,
    windows: Option<PyReadonlyArray1<'_, u64>>,
) -> PyResult<Variable> {
    let references = references.get();
    let to_vec = |array: Option<PyReadonlyArray1<'_, u64>>| {
        array
            .map(|array| array.as_slice().map(<[u64]>::to_vec))
            .transpose()
    };
    let (sizes, windows) = (to_vec(sizes)?, to_vec(windows)?);
    let points = match policy {
        "ws" | "vmin" => {
            let point: PointOf = match policy {
                "ws" => working_set_point,
                _ => vmin_point,
            };
            references.compute(py, |string| {
                let intervals = references.intervals(string);
                match (windows, sizes) {
                    (Some(windows), _) => points::window_points(intervals, point, windows),
                    (None, Some(sizes)) => points::fitting_points(intervals, point, &sizes, 0),
                    (None, None) => {
                        let windows = intervals.windows(WINDOWS_PER_DOUBLING);
                        points::window_points(intervals, point, windows)
                    }
                }
            })?
        }
        "pff" => references.compute(py, |string| {
            let usual = || references.intervals(string).windows(CRITICALS_PER_DOUBLING);
            let points = points::pff_points(string, &windows.unwrap_or_else(usual));
            match sizes {
                Some(sizes) => points::best_points(&points, &sizes),
                None => points,
            }
        })?,
        _ => {
            return Err(of_argument(
                "policy",
                format!("`{policy}`"),
                "`ws`, `vmin` or `pff`",
            ));
        }
    };
    let window = |point: &Point| point.window.expect("its memory follows a window");
    Ok((
        column(py, points.iter().map(window).collect()),
        misses_of(py, &points),
        column(py, points.iter().map(Point::memory_pages).collect()),
    ))
}

/// The policies of the registry: name, summary, what each must see, knobs with meaning, least and
/// greatest value and default.
#[pyfunction]
#[expect(clippy::type_complexity, reason = "named in Python")]
pub fn describe_policies() -> Vec<(
    &'static str,
    &'static str,
    &'static str,
    Vec<(&'static str, &'static str, u64, u64, u64)>,
)> {
    let entries = policies::entries().iter().map(|entry| entry.description);
    let describe = entries.map(|description| {
        let sees = match description.sees {
            Sees::Faults => "faults",
            Sees::Bits => "bits",
            Sees::References => "references",
            Sees::Future => "future",
        };
        let knobs = description.knobs.iter();
        let knobs = knobs.map(|knob| (knob.name, knob.meaning, knob.min, knob.max, knob.default));
        (description.name, description.summary, sees, knobs.collect())
    });
    describe.collect()
}

/// Makes the policy once, to see whether it can be, before references are looked at.
fn check_policy(job: &Job<'_>) -> PyResult<()> {
    if is_module(job.policy)? {
        return Ok(());
    }
    let built = policies::build(job.policy, 1, 1, job.seed, &job.knobs);
    built.map(drop).map_err(|error| of_policy(&error))
}

fn pages_of(py: Python<'_>, points: &[Point]) -> Column<u64> {
    column(py, points.iter().map(|point| point.pages).collect())
}

fn misses_of(py: Python<'_>, points: &[Point]) -> Column<u64> {
    column(py, points.iter().map(|point| point.misses).collect())
}

fn parse_sizes(sizes: Option<PyReadonlyArray1<'_, u64>>) -> PyResult<Option<Vec<u64>>> {
    let sizes = sizes
        .map(|sizes| sizes.as_slice().map(<[u64]>::to_vec))
        .transpose()?;
    match &sizes {
        Some(sizes) if sizes.contains(&0) => Err(of_argument("sizes", 0, "at least 1 page")),
        Some(_) | None => Ok(sizes),
    }
}

fn parse_eyes(eyes: &str) -> PyResult<MachineKind> {
    match eyes {
        "bits" => Ok(MachineKind::Bits),
        "soft-faults" => Ok(MachineKind::SoftFaults),
        _ => Err(of_argument(
            "eyes",
            format!("`{eyes}`"),
            "`bits` or `soft-faults`",
        )),
    }
}
