//! The memory that a policy needs which has to be simulated: each size is a run of its own, so the
//! least is found by halving.

use std::collections::{BTreeMap, BTreeSet};

use tidemark_results::analysis::curve::{Need, Point};

use super::Study;
use super::order::Assumed;
use super::points::simulated_points;
use super::policies::Named;
use crate::analysis::needed::{Terms, needed_fixed};
use crate::analysis::reference_string::ReferenceString;
use crate::analysis::simulate::Job;

/// The answer exceeds the least size by at most this part of it, as a divisor.
const PART: u64 = 128;

impl Study {
    /// The points of a policy at these sizes, first uses included.
    pub(super) fn simulate_at(&self, name: &str, sizes: &[u64]) -> Vec<Point> {
        let (string, names) = (
            ReferenceString::of(&self.references),
            &self.references.names,
        );
        let points = simulated_points(&Job::new(name, 1), string, names, sizes);
        points.expect("the policy is registered, its knobs are at their defaults")
    }

    /// The least memory of the policy `name` for each slow-down, found from `points` on.
    pub(super) fn needs_simulated(
        &self,
        name: &'static str,
        points: &[Point],
        assumed: &Assumed,
    ) -> Vec<Need> {
        if self.facts.records == 0 {
            return vec![];
        }
        let ends = [self.sight.pages_min, self.facts.footprint()];
        let known = points.iter().map(|point| (point.pages, point.misses));
        let mut known: BTreeMap<u64, u64> = known.collect();
        let mut next: BTreeSet<u64> = ends.into_iter().collect();
        while !next.is_empty() {
            let sizes: Vec<u64> = next
                .into_iter()
                .filter(|at| !known.contains_key(at))
                .collect();
            let points = self.simulate_at(name, &sizes).into_iter();
            known.extend(points.map(|point| (point.pages, point.misses)));
            let gaps = assumed.slowdowns_percent.iter().filter_map(|percent| {
                let bearable = self.bearable(&assumed.terms(*percent, self.facts.time_unit));
                find_gap(&known, bearable)
            });
            next = gaps.collect();
        }
        let answer = |percent: &f64| {
            let terms = assumed.terms(*percent, self.facts.time_unit);
            let (first, sight) = (self.facts.pages, self.sight);
            let least = least_steady(&known, self.bearable(&terms))?;
            let point = known
                .get_key_value(&least)
                .map(|(pages, misses)| (*pages, *misses));
            let mut needed = needed_fixed(point, self.facts.time, first, &terms, sight)?;
            needed.is_at_most = least == sight.pages_min && least > 1;
            Some(self.need(Named::Simulated(name), *percent, &needed, assumed))
        };
        assumed
            .slowdowns_percent
            .iter()
            .filter_map(answer)
            .collect()
    }

    /// The most misses that are bearable.
    fn bearable(&self, terms: &Terms) -> u64 {
        let page_ins = terms.page_ins_max(self.facts.time);
        page_ins.saturating_add(self.facts.pages)
    }
}

/// The least of the known sizes from which on all have at most `misses`: some policies miss
/// more in more memory.
fn least_steady(known: &BTreeMap<u64, u64>, misses_max: u64) -> Option<u64> {
    let falling = known.iter().rev();
    let fits = falling.take_while(|(_, misses)| **misses <= misses_max);
    fits.last().map(|(pages, _)| *pages)
}

/// The size in the middle between that one and the one below, if they are not near enough.
fn find_gap(known: &BTreeMap<u64, u64>, misses_max: u64) -> Option<u64> {
    let least = least_steady(known, misses_max)?;
    let (below, _) = known.range(..least).next_back()?;
    let gap = least - below;
    (gap > (least / PART).max(1)).then_some(below + gap / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_size_is_found_by_halving() {
        let misses = |pages: u64| u64::from(pages < 437) * 50;
        let mut known = BTreeMap::from([(1, misses(1)), (1000, 0)]);
        let mut runs = 0;
        while let Some(next) = find_gap(&known, 0) {
            known.insert(next, misses(next));
            runs += 1;
        }
        let found = least_steady(&known, 0).unwrap();
        assert!((437..=440).contains(&found), "{found}");
        assert!(runs <= 10, "{runs}");
    }

    #[test]
    fn less_memory_that_happens_to_do_better_is_no_answer() {
        let known = BTreeMap::from([(100, 0), (300, 50), (500, 0), (1000, 0)]);
        assert_eq!(least_steady(&known, 0), Some(500));
        assert_eq!(find_gap(&known, 0), Some(400));
        assert_eq!(least_steady(&BTreeMap::from([(1, 9), (5, 9)]), 3), None);
    }
}
