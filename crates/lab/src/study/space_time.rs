//! Space-time: what each policy costs at its best point.
//!
//! The product alone is often least with a page or two: there is so little memory to hold that even
//! a program that does nothing but wait holds little of it. No program is run so. So the best point
//! is looked for from the curve's knee on; of a curve without one, among the points that slow the
//! program down by no more than is bearable.

use std::collections::BTreeMap;

use rayon::prelude::*;
use tidemark_results::analysis::TraceFacts;
use tidemark_results::analysis::curve::{Curve, CurveRecord, Point, Space};
use tidemark_results::analysis::report::{SpaceTime, SpaceTimes};

use super::Study;
use super::order::Assumed;
use crate::analysis::space_time::{self, Costs, fixed_space, variable_space};
use crate::analysis::vmin::run_vmin;
use crate::analysis::working_set::run_working_set;

/// Windows that are tried at a time, of a policy that has one: the likeliest and one to each side.
/// Each is a pass over the trace.
const TRIED: usize = 3;

impl Study {
    /// The space-time products of the curves' policies, each at the point where its own is least.
    pub fn space_time(&self, record: &CurveRecord, assumed: &Assumed) -> SpaceTimes {
        let unit = self.facts.time_unit;
        let looking = assumed.costs(unit, true);
        let rows = record.curves.iter().filter_map(|curve| match curve.space {
            Space::Fixed => self.best_fixed(curve, assumed),
            Space::Variable => self.best_variable(curve, assumed),
        });
        SpaceTimes {
            time_unit_ns: looking.tick_ns,
            page_in_ns: looking.page_in_ns,
            first_touch_ns: looking.first_use_ns,
            choice_ns: looking.choice_ns,
            look_ns: looking.scan_page_ns,
            look_every: looking.scan_every_ticks,
            rows: rows.collect(),
        }
    }

    fn best_fixed(&self, curve: &Curve, assumed: &Assumed) -> Option<SpaceTime> {
        let costs = assumed.costs(self.facts.time_unit, must_look(&curve.policy));
        let first = self.facts.pages;
        let row = |point: &Point| {
            let returns = point.misses.saturating_sub(first);
            let cost = fixed_space(point.pages, self.facts.time, first, returns, &costs);
            row(curve, point.pages as f64, None, point.misses, &cost)
        };
        let rows = worth_running(curve, self.misses_max(assumed)).map(row);
        rows.min_by(|a, b| a.total().total_cmp(&b.total()))
    }

    fn best_variable(&self, curve: &Curve, assumed: &Assumed) -> Option<SpaceTime> {
        let costs = assumed.costs(self.facts.time_unit, must_look(&curve.policy));
        let run = |window| match curve.policy.as_str() {
            "ws" => Some(run_working_set(self.string(), window)),
            "vmin" => Some(run_vmin(self.string(), window)),
            _ => None,
        };
        let points = worth_running(curve, self.misses_max(assumed));
        let (windows, likeliest) = likely_windows(points, &self.facts, &costs)?;
        let product = |at: usize| {
            let totals = run(windows[at])?;
            let cost = variable_space(&totals, &costs);
            let pages = totals.pages_mean();
            Some(row(curve, pages, Some(windows[at]), totals.faults(), &cost))
        };
        find_valley(windows.len(), likeliest, product)
    }

    /// The most misses that are bearable, first uses included.
    fn misses_max(&self, assumed: &Assumed) -> u64 {
        let page_ins_max = assumed.page_ins_max(self.facts.time, self.facts.time_unit);
        self.facts.pages.saturating_add(page_ins_max)
    }
}

/// The points of `curve` with which the program might be run: from its knee on, or with at
/// most `misses_max`.
fn worth_running(curve: &Curve, misses_max: u64) -> impl Iterator<Item = &Point> + Clone {
    curve.points.iter().filter(move |point| match &curve.knee {
        Some(knee) => point.memory_pages() >= knee.pages,
        None => point.misses <= misses_max,
    })
}

/// Goes downhill from `start` among `count` places until no neighbour's product is less, and
/// answers with the product there.
fn find_valley(
    count: usize,
    start: usize,
    product: impl Fn(usize) -> Option<SpaceTime> + Sync,
) -> Option<SpaceTime> {
    let mut known: BTreeMap<usize, SpaceTime> = BTreeMap::new();
    let mut best = start;
    loop {
        let near = best.saturating_sub(TRIED / 2)..count.min(best + 1 + TRIED / 2);
        let new: Vec<usize> = near.clone().filter(|at| !known.contains_key(at)).collect();
        let found: Option<Vec<SpaceTime>> = new.par_iter().map(|at| product(*at)).collect();
        known.extend(new.into_iter().zip(found?));
        let least = near.min_by(|a, b| known[a].total().total_cmp(&known[b].total()))?;
        if least == best {
            return known.remove(&best);
        }
        best = least;
    }
}

/// The windows of `points`, and which of them has the least product by the mean alone. The true
/// product counts how large the set is at each miss; that is found by a run.
fn likely_windows<'a>(
    points: impl Iterator<Item = &'a Point> + Clone,
    trace: &TraceFacts,
    costs: &Costs,
) -> Option<(Vec<u64>, usize)> {
    let estimate = |point: &Point| {
        let returns = point.misses.saturating_sub(trace.pages) as f64;
        let elapsed_ns = trace.time as f64 * costs.tick_ns + returns * costs.page_in_ns;
        // Who waits for a page holds it, however small its window.
        point.memory_pages().max(1.0) * elapsed_ns
    };
    let windows: Option<Vec<u64>> = points.clone().map(|point| point.window).collect();
    let estimates = points.map(estimate).enumerate();
    let (likeliest, _) = estimates.min_by(|a, b| a.1.total_cmp(&b.1))?;
    Some((windows?, likeliest))
}

/// Returns true if a policy has to look at resident pages to know of their use. The optima know it
/// all.
fn must_look(policy: &str) -> bool {
    !matches!(policy, "opt" | "vmin")
}

fn row(
    curve: &Curve,
    pages: f64,
    window: Option<u64>,
    misses: u64,
    cost: &space_time::SpaceTime,
) -> SpaceTime {
    SpaceTime {
        policy: curve.policy.clone(),
        pages,
        window,
        misses,
        running: cost.running,
        waiting: cost.waiting,
        managing: cost.managing,
        elapsed_ns: cost.elapsed_ns,
    }
}

#[cfg(test)]
mod tests {
    use tidemark_results::analysis::Accuracy;
    use tidemark_results::analysis::curve::Knee;

    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn found_m3_a_page_that_makes_a_program_wait_is_no_best_point() {
        let points = [(1, 100_000), (2, 90_000), (40, 500), (50, 450), (80, 100)];
        let points = points.map(|(pages, misses)| Point {
            pages,
            misses,
            ..Point::default()
        });
        let knee = Knee {
            pages: 40.0,
            lifetime: 1.0,
            window: None,
        };
        let curve = |knee| Curve {
            policy: "lru".into(),
            space: Space::Fixed,
            accuracy: Accuracy::Exact,
            knee,
            points: points.into(),
        };
        let pages = |curve: &Curve, misses_max| {
            let points = worth_running(curve, misses_max);
            points.map(|point| point.pages).collect::<Vec<_>>()
        };
        assert_eq!(pages(&curve(Some(knee)), 0), [40, 50, 80]);
        assert_eq!(pages(&curve(None), 450), [50, 80]);
    }

    #[test]
    fn the_valley_is_found_from_its_slope_without_trying_all() {
        let tried = AtomicUsize::new(0);
        let product = |at: usize| {
            tried.fetch_add(1, Ordering::Relaxed);
            Some(SpaceTime {
                running: (at as f64 - 40.0).powi(2) + 1.0,
                misses: at as u64,
                ..SpaceTime::default()
            })
        };
        assert_eq!(
            find_valley(100, 43, product).map(|row| row.misses),
            Some(40)
        );
        assert_eq!(tried.load(Ordering::Relaxed), 6);
        assert_eq!(find_valley(3, 0, product).map(|row| row.misses), Some(2));
        assert_eq!(find_valley(0, 0, product), None);
    }
}
