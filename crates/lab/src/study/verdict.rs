//! The verdict: whether a program misses for want of memory or for want of a better policy.
//!
//! Of LRU's misses in a size of memory, the optimum (Belady 1966) has some, too: no policy avoids
//! those, more memory does. The others are the policy's.

use rayon::prelude::*;
use tidemark_core::policies;
use tidemark_core::seams::policy::Description;
use tidemark_results::analysis::verdict::{Best, Cliff, Reasons, Verdict};

use super::Study;
use super::order::Sizes;
use crate::analysis::depths::Depths;

/// The most references that all policies together are shown, in all sizes, to find the best ones.
const SIMULATED_MOST: u64 = 32 << 20;
/// The hits of a loop come within this part of its size, as a divisor.
const LOOP_PART: u64 = 20;

/// The misses of the two policies that a verdict compares, by size of memory.
#[derive(Default)]
pub(super) struct Compared {
    lru: Option<Vec<u64>>,
    optimum: Option<Vec<u64>>,
}

impl Compared {
    /// Takes in the depths of LRU's stack.
    pub(super) fn note_lru(&mut self, depths: &Depths) {
        self.lru = Some(depths.misses());
    }

    /// Takes in the depths of the optimum's stack.
    pub(super) fn note_optimum(&mut self, depths: &Depths) {
        self.optimum = Some(depths.misses());
    }
}

impl Study {
    /// The verdict, if both policies were counted and there is a reference.
    pub(super) fn verdict(&self, compared: Compared, sizes: &Sizes) -> Option<Verdict> {
        let (lru, optimum) = (compared.lru?, compared.optimum?);
        if self.facts.records == 0 {
            return None;
        }
        let footprint = self.facts.footprint();
        let sizes = match sizes {
            Sizes::At(sizes) => sizes.clone(),
            Sizes::Spread | Sizes::All => vec![footprint.div_ceil(2)],
        };
        let in_sight = sizes
            .into_iter()
            .filter(|pages| *pages >= self.sight.pages_min);
        let sizes: Vec<u64> = in_sight.collect();
        let best = self.best_at(&sizes);
        let sizes = sizes.iter().enumerate().map(|(place, &pages)| Reasons {
            bytes: self.facts.bytes(pages),
            best: best.get(place).cloned(),
            ..reasons(&lru, &optimum, pages)
        });
        let cliff = find_cliff(&lru, &optimum).filter(|cliff| cliff.pages >= self.sight.pages_min);
        Some(Verdict {
            sizes: sizes.collect(),
            cliff: cliff.map(|cliff| Cliff {
                bytes: self.facts.bytes(cliff.pages),
                ..cliff
            }),
        })
    }

    /// The policy with the fewest misses in each size, of those that can run live; of several the
    /// first in the list. Empty where that would take too long.
    fn best_at(&self, sizes: &[u64]) -> Vec<Best> {
        let policies: Vec<&Description> = policies::entries()
            .iter()
            .map(|entry| entry.description)
            .filter(|it| it.sees.is_shown_live())
            .collect();
        let is_kept = self.references.len() as u64 == self.facts.records;
        let runs = (policies.len() * sizes.len()) as u64;
        if !is_kept || self.facts.records.saturating_mul(runs) > SIMULATED_MOST {
            return vec![];
        }
        let simulated = policies
            .par_iter()
            .map(|policy| self.simulate_at(policy.name, sizes));
        let simulated: Vec<_> = simulated.collect();
        let best = (0..sizes.len()).filter_map(|size| {
            let of_policy = policies.iter().zip(&simulated);
            let best = of_policy.min_by_key(|(_, points)| points[size].misses);
            best.map(|(policy, points)| Best {
                policy: policy.name.into(),
                misses: points[size].misses,
            })
        });
        best.collect()
    }
}

/// The misses in `pages` pages, given those in each size from 0 on.
fn reasons(lru: &[u64], optimum: &[u64], pages: u64) -> Reasons {
    let at = |misses: &[u64]| {
        let most = misses.len() - 1;
        misses[usize::try_from(pages).map_or(most, |pages| pages.min(most))]
    };
    let first_touches = lru.last().copied().unwrap_or(0);
    let (misses, optimal) = (at(lru), at(optimum));
    Reasons {
        pages,
        misses,
        first_touches,
        for_size: optimal - first_touches,
        for_policy: misses - optimal,
        ..Reasons::default()
    }
}

/// The smallest memory in which LRU has at least half of the optimum's hits.
fn find_cliff(lru: &[u64], optimum: &[u64]) -> Option<Cliff> {
    let all = lru[0];
    let hits = |misses: &[u64], pages: usize| all - misses[pages.min(misses.len() - 1)];
    let has_half = |pages: &usize| {
        let most = hits(optimum, *pages);
        most > 0 && hits(lru, *pages) * 2 >= most
    };
    let pages = (1..lru.len()).find(has_half)?;
    let before = pages as u64 - (pages as u64 / LOOP_PART).max(1);
    let gained = hits(lru, pages) - hits(lru, before as usize);
    Some(Cliff {
        pages: pages as u64,
        // One page is no loop.
        is_loop: pages > 1 && gained * 2 >= hits(optimum, pages),
        ..Cliff::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A loop of four pages, ten times: LRU misses always in less, the optimum once a turn for each
    /// page that it has not.
    const LOOP: ([u64; 5], [u64; 5]) = ([40, 40, 40, 40, 4], [40, 31, 22, 13, 4]);

    #[test]
    fn misses_add_up_by_their_reasons() {
        let (lru, optimum) = LOOP;
        let found = reasons(&lru, &optimum, 3);
        assert_eq!(
            (found.first_touches, found.for_size, found.for_policy),
            (4, 9, 27)
        );
        assert_eq!(
            found.first_touches + found.for_size + found.for_policy,
            found.misses
        );
        // More than there are pages is as good as all.
        assert_eq!(reasons(&lru, &optimum, 100).misses, 4);
    }

    #[test]
    fn the_cliff_of_a_loop_is_its_length() {
        let (lru, optimum) = LOOP;
        let cliff = find_cliff(&lru, &optimum).unwrap();
        assert_eq!((cliff.pages, cliff.is_loop), (4, true));
    }

    #[test]
    fn a_program_of_few_pages_at_a_time_has_its_cliff_at_one() {
        // Each of three pages touched ten times in a row.
        let cliff = find_cliff(&[30, 3, 3, 3], &[30, 3, 3, 3]).unwrap();
        assert_eq!((cliff.pages, cliff.is_loop), (1, false));
        // Each page once: nothing hits.
        assert_eq!(find_cliff(&[3, 3, 3, 3], &[3, 3, 3, 3]), None);
    }
}
