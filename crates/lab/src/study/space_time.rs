//! Space-time: what each policy costs at its best point.

use rayon::prelude::*;
use tidemark_results::analysis::TraceFacts;
use tidemark_results::analysis::curve::{Curve, CurveRecord, Point, Space};
use tidemark_results::analysis::report::{SpaceTime, SpaceTimes};

use super::Study;
use super::order::Assumed;
use crate::analysis::space_time::{self, Costs, fixed_space, variable_space};
use crate::analysis::vmin::run_vmin;
use crate::analysis::working_set::run_working_set;

/// Of a policy with a window, so many points are tried: each is a pass over the trace.
const TRIED: usize = 8;

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
        let rows = curve.points.iter().map(row);
        rows.min_by(|a, b| a.total().total_cmp(&b.total()))
    }

    fn best_variable(&self, curve: &Curve, assumed: &Assumed) -> Option<SpaceTime> {
        let costs = assumed.costs(self.facts.time_unit, must_look(&curve.policy));
        let run = |window| match curve.policy.as_str() {
            "ws" => Some(run_working_set(self.string(), window)),
            "vmin" => Some(run_vmin(self.string(), window)),
            _ => None,
        };
        let windows = likely_windows(curve, &self.facts, &costs);
        let tried = windows.par_iter().filter_map(|window| {
            let totals = run(*window)?;
            let cost = variable_space(&totals, &costs);
            let pages = totals.pages_mean();
            Some(row(curve, pages, Some(*window), totals.faults(), &cost))
        });
        tried.min_by(|a, b| a.total().total_cmp(&b.total()))
    }
}

/// The windows with the least products by the mean alone. The true product counts how large the set
/// is at each miss; that is found by a run, and only for these.
fn likely_windows(curve: &Curve, trace: &TraceFacts, costs: &Costs) -> Vec<u64> {
    let estimate = |point: &Point| {
        let returns = point.misses.saturating_sub(trace.pages) as f64;
        let elapsed_ns = trace.time as f64 * costs.tick_ns + returns * costs.page_in_ns;
        point.memory_pages() * elapsed_ns
    };
    let mut points: Vec<&Point> = curve.points.iter().collect();
    points.sort_by(|a, b| estimate(a).total_cmp(&estimate(b)));
    points
        .iter()
        .filter_map(|point| point.window)
        .take(TRIED)
        .collect()
}

/// Whether a policy has to look at resident pages to know of their use. The optima know it all.
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
