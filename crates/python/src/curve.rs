//! Curves: misses by memory, for one policy at a time.

use std::collections::BTreeMap;

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use rayon::prelude::*;
use tidemark_core::policy::{Sees, registry};
use tidemark_lab::analysis::depths::Depths;
use tidemark_lab::analysis::pff::run_pff;
use tidemark_lab::analysis::reference_string::ReferenceString;
use tidemark_lab::analysis::shards::{Sampling, Share, estimate};
use tidemark_lab::analysis::simulate::{Job, MachineKind, collect_page_ids, simulate};
use tidemark_lab::analysis::vmin::vmin_point;
use tidemark_lab::analysis::working_set::{window_for_mean, working_set_point};
use tidemark_lab::analysis::{optimum, queues, stack};

use crate::columns::{Column, column};
use crate::exceptions::{of_argument, of_policy};
use crate::references::References;

/// Sizes that are simulated unless others are asked for.
const SIZES: u32 = 24;
/// Sizes that are estimated unless others are asked for: as many as a curve is drawn with.
const SIZES_DRAWN: u32 = 480;
/// Windows for each power of two, unless others are asked for.
const WINDOWS_PER_DOUBLING: u32 = 12;
/// Values of PFF's interval for each power of two; each takes a run of its own.
const CRITICALS_PER_DOUBLING: u32 = 2;

/// So many samples are taken side by side; how they differ gives their error.
const SAMPLES: u32 = 8;

/// An estimate: sizes in pages, the misses with each, and their standard errors.
type Estimated = (Column<u64>, Column<u64>, Column<f64>);
/// A constant amount of memory: sizes in pages, and the misses with each.
type Fixed = (Column<u64>, Column<u64>);
/// Memory that follows the program: windows, the misses with each, and the mean pages.
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
    let most = references.page_count;
    let (sizes, misses) = match policy {
        "lru" | "opt" => {
            let is_optimum = policy == "opt";
            references.compute(py, |string| {
                let depths = match is_optimum {
                    true => optimum::count_depths(string.pages(), most),
                    false => stack::count_depths(string.pages(), most),
                };
                at_sizes(&depths, sizes, most)
            })?
        }
        _ => {
            let eyes = parse_eyes(eyes)?;
            let knobs: Vec<(&str, u64)> = knobs.iter().map(|(k, &v)| (k.as_str(), v)).collect();
            check_policy(policy, seed, &knobs)?;
            let sizes = sizes.unwrap_or_else(|| spread(most, SIZES));
            let frames: Vec<u32> = sizes.iter().map(|&size| frames(size, most)).collect();
            let misses = references.compute(py, |string| {
                let run = Run {
                    policy,
                    seed,
                    knobs: &knobs,
                    eyes,
                };
                run.count(string, references, &frames)
            })?;
            (sizes, misses)
        }
    };
    Ok((column(py, sizes), column(py, misses)))
}

/// Estimates the misses of LRU from samples of the pages: of a share of them, or of at most so many
/// at a time.
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
    let sizes = parse_sizes(sizes)?.unwrap_or_else(|| spread(references.page_count, SIZES_DRAWN));
    let found = references.compute(py, |string| estimate(string.pages(), &sampling, &sizes))?;
    let points = found.points.iter();
    let misses = points.clone().map(|point| point.misses.round() as u64);
    let errors = points.map(|point| point.error.expect("there are several samples"));
    let (misses, errors) = (misses.collect(), errors.collect());
    Ok((column(py, sizes), column(py, misses), column(py, errors)))
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
            let point = match policy {
                "ws" => working_set_point,
                _ => vmin_point,
            };
            references.compute(py, |string| {
                let intervals = references.intervals(string);
                let windows = windows.or_else(|| {
                    let longest = |&size: &u64| {
                        let window = window_for_mean(intervals, point, size as f64)?;
                        Some(window.min(intervals.longest()))
                    };
                    Some(sizes?.iter().filter_map(longest).collect())
                });
                let windows = windows.unwrap_or_else(|| intervals.windows(WINDOWS_PER_DOUBLING));
                let points = windows.into_iter().map(|window| {
                    let point = point(intervals, window);
                    (window, point.faults, point.pages_mean)
                });
                points.collect()
            })?
        }
        "pff" => references.compute(py, |string| pff_points(references, string, sizes, windows))?,
        _ => {
            return Err(of_argument(
                "policy",
                format!("`{policy}`"),
                "`ws`, `vmin` or `pff`",
            ));
        }
    };
    Ok((
        column(py, points.iter().map(|point| point.0).collect()),
        column(py, points.iter().map(|point| point.1).collect()),
        column(py, points.iter().map(|point| point.2).collect()),
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
    let entries = registry::entries().iter().map(|entry| entry.description);
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

/// A policy of the registry, ready to be run at any size.
struct Run<'a> {
    policy: &'a str,
    seed: u64,
    knobs: &'a [(&'a str, u64)],
    eyes: MachineKind,
}

impl Run<'_> {
    /// The misses in each number of `frames`, side by side.
    ///
    /// - Needs: the policy can be made.
    fn count(&self, string: ReferenceString<'_>, of: &References, frames: &[u32]) -> Vec<u64> {
        let pages = string.pages();
        // The two that all are compared with have loops of their own.
        if self.knobs.is_empty() && self.eyes == MachineKind::Bits {
            match self.policy {
                "fifo" => return queues::count_fifo_misses(pages, of.page_count, frames),
                "clock" => return queues::count_clock_misses(pages, of.page_count, frames),
                _ => {}
            }
        }
        let ids = collect_page_ids(&of.names);
        frames
            .par_iter()
            .map(|&frames| {
                let job = Job {
                    policy: self.policy,
                    knobs: self.knobs.to_vec(),
                    seed: self.seed,
                    frames,
                    eyes: self.eyes,
                };
                let cost = simulate(&job, pages, &ids);
                cost.expect("it was made before").misses
            })
            .collect()
    }
}

/// Makes the policy once, to see whether it can be.
fn check_policy(policy: &str, seed: u64, knobs: &[(&str, u64)]) -> PyResult<()> {
    let built = registry::build(policy, 1, 1, seed, knobs);
    built.map(drop).map_err(|error| of_policy(&error))
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

/// A memory of `size` pages; one that holds all pages is as good as any larger.
fn frames(size: u64, most: u32) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX).min(most).max(1)
}

fn at_sizes(depths: &Depths, sizes: Option<Vec<u64>>, most: u32) -> (Vec<u64>, Vec<u64>) {
    let misses = depths.misses();
    let Some(sizes) = sizes else {
        let misses = misses[1..].to_vec();
        return ((1..=u64::from(most)).collect(), misses);
    };
    let at = |&size: &u64| misses[size.min(most.into()) as usize];
    let misses = sizes.iter().map(at).collect();
    (sizes, misses)
}

/// At most `count` + 1 sizes from 1 to `most`, rising in equal ratios.
fn spread(most: u32, count: u32) -> Vec<u64> {
    let ratio = f64::from(most).powf(1.0 / f64::from(count - 1));
    let mut sizes: Vec<u64> = (0..count)
        .map(|step| (ratio.powf(step.into()).round() as u64).clamp(1, most.max(1).into()))
        .collect();
    sizes.push(most.max(1).into());
    sizes.dedup();
    sizes
}

/// PFF's points: at the intervals asked for, or for each size the one with fewest faults that fits.
fn pff_points(
    references: &References,
    string: ReferenceString<'_>,
    sizes: Option<Vec<u64>>,
    windows: Option<Vec<u64>>,
) -> Vec<(u64, u64, f64)> {
    let usual = || references.intervals(string).windows(CRITICALS_PER_DOUBLING);
    let criticals = windows.unwrap_or_else(usual);
    let totals = run_pff(string, &criticals);
    let points = criticals.iter().zip(&totals);
    let points: Vec<(u64, u64, f64)> = points
        .map(|(&critical, totals)| (critical, totals.faults(), totals.pages_mean()))
        .collect();
    let Some(sizes) = sizes else {
        return points;
    };
    let best = |&size: &u64| {
        let fitting = points.iter().filter(|point| point.2 <= size as f64);
        fitting.min_by_key(|point| point.1).copied()
    };
    sizes.iter().filter_map(best).collect()
}
