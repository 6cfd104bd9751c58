//! Bounded locality intervals: when a program kept to a set of pages, at every level at once.
//!
//! Order pages by last use. The set of the first `k` stands still until a page from further down is
//! used. If each of its `k` members was used again since the set came to stand, then the set was a
//! *locality* for that time, its *interval*. Intervals of different levels nest or are apart; so
//! they form a hierarchy, from tight loops to the whole program. There are no parameters.
//!
//! Source: A. W. Madison and A. P. Batson, *Characteristics of Program Localities*, CACM 19(5),
//! 1976.
//!
//! # How all levels are watched at once
//! A use from depth `d` ends the runs of levels 1 to `d - 1` and begins new ones for all of them.
//! So levels with a common beginning are kept as one entry of a stack, lowest levels last, and a
//! use pops entries and pushes one. Of the levels in an entry only the lowest can be a locality:
//! the pages used since the common beginning all lie in its set, so they cannot fill a larger one.
//! A use costs the depth of its page and, averaged over the string, a constant.

use super::reference_string::{Clock, ClockJob, ReferenceString};

/// A set of pages that the program kept to for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Locality<'a> {
    /// The time at which the set came to stand, in ticks.
    pub start: u64,
    /// The time at which a page outside it was used, or the string ended, in ticks.
    pub end: u64,
    /// The pages, most recently used first.
    pub pages: &'a [u32],
}

/// Shows `visit` each locality of at most `pages_max` pages that lasted at least `ticks_min`, in
/// the order of their ends, inner ones before outer ones.
///
/// Uses deeper than `pages_max` cost as much as that depth.
pub fn visit_localities(
    string: ReferenceString<'_>,
    pages_max: u32,
    ticks_min: u64,
    visit: impl FnMut(Locality<'_>),
) {
    string.with_clock(Watching {
        pages_max: pages_max as usize,
        ticks_min,
        visit,
    });
}

/// The pass: everything but the clock.
struct Watching<V> {
    pages_max: usize,
    ticks_min: u64,
    visit: V,
}

impl<'a, V: FnMut(Locality<'_>)> ClockJob<'a> for Watching<V> {
    type Answer = ();

    fn run<C: Clock>(mut self, string: ReferenceString<'a>, clock: C) {
        let pages = string.pages();
        assert!(pages.len() < NEVER as usize);
        let mut watch = Watch {
            recency: Vec::new(),
            last: vec![NEVER; string.page_count() as usize],
            runs: Vec::new(),
        };
        for (place, &page) in pages.iter().enumerate() {
            // The commonest use changes nothing but its own time.
            if watch.recency.first() != Some(&page) {
                let depth = watch.depth(page);
                let levels = depth.unwrap_or(self.pages_max.saturating_add(1)) - 1;
                let now = clock.at(place);
                watch.end_runs(levels, &mut |begun, set| {
                    let start = clock.at(begun as usize);
                    if now - start >= self.ticks_min {
                        (self.visit)(Locality {
                            start,
                            end: now,
                            pages: set,
                        });
                    }
                });
                watch.begin_run(place as u32);
                watch.move_to_front(page, depth, self.pages_max);
            }
            watch.last[page as usize] = place as u32;
        }
        watch.end_runs(usize::MAX, &mut |begun, set| {
            let (start, end) = (clock.at(begun as usize), string.end());
            if end - start >= self.ticks_min {
                (self.visit)(Locality {
                    start,
                    end,
                    pages: set,
                });
            }
        });
    }
}

/// No use of the page yet, or so long ago that it left the list.
const NEVER: u32 = u32::MAX;

/// Levels whose sets have stood since one use.
#[derive(Clone, Copy)]
struct Run {
    /// The lowest of the levels; the highest is the one below the entry before, on the stack.
    lowest: usize,
    /// The place of the use that began it.
    begun: u32,
}

/// The state after each use.
struct Watch {
    /// Pages, most recently used first, as far as levels are watched.
    recency: Vec<u32>,
    /// The place of each page's last use.
    last: Vec<u32>,
    /// Runs, highest levels first.
    runs: Vec<Run>,
}

impl Watch {
    /// Ends the runs of levels 1 to `levels`, and shows those that were localities: the place
    /// where they began, and their set.
    #[inline]
    fn end_runs(&mut self, levels: usize, visit: &mut impl FnMut(u32, &[u32])) {
        let mut above = 0;
        while let Some(run) = self.runs.pop_if(|run| run.lowest <= levels) {
            if let Some(&deepest) = self.recency.get(run.lowest - 1)
                && self.last[deepest as usize] > run.begun
            {
                visit(run.begun, &self.recency[..run.lowest]);
            }
            above = run.begun;
        }
        let ends_at = self.runs.last().map_or(usize::MAX, |run| run.lowest - 1);
        if levels < ends_at && levels > 0 {
            self.runs.push(Run {
                lowest: levels + 1,
                begun: above,
            });
        }
    }

    /// Begins a run of the levels that have none, with the use at `place`.
    #[inline]
    fn begin_run(&mut self, place: u32) {
        if self.runs.last().is_none_or(|run| run.lowest > 1) {
            self.runs.push(Run {
                lowest: 1,
                begun: place,
            });
        }
    }

    /// The depth of `page` in the order of recency, from 1, or `None` if it is not there.
    #[inline]
    fn depth(&self, page: u32) -> Option<usize> {
        if self.last[page as usize] == NEVER {
            return None;
        }
        // Sixteen at once, without an exit between them, compile to a few wide comparisons.
        let mut passed = 0;
        for block in self.recency.chunks(16) {
            if block
                .iter()
                .fold(false, |found, &other| found | (other == page))
            {
                break;
            }
            passed += block.len();
        }
        let within = self.recency[passed..]
            .iter()
            .position(|&other| other == page)?;
        Some(passed + within + 1)
    }

    /// Puts `page`, from `depth`, first; what then lies beyond `pages_max` is forgotten.
    #[inline]
    fn move_to_front(&mut self, page: u32, depth: Option<usize>, pages_max: usize) {
        let depth = match depth {
            Some(depth) => depth,
            None if self.recency.len() < pages_max => {
                self.recency.push(page);
                self.recency.len()
            }
            None => {
                let Some(&oldest) = self.recency.last() else {
                    return;
                };
                self.last[oldest as usize] = NEVER;
                self.recency.len()
            }
        };
        self.recency.copy_within(0..depth - 1, 1);
        self.recency[0] = page;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::super::slow::{Owned, strings};
    use super::*;

    type Found = BTreeSet<(u64, u64, BTreeSet<u32>)>;

    fn localities(owned: &Owned, pages_max: u32, ticks_min: u64) -> Found {
        let mut found = Found::new();
        visit_localities(owned.string(), pages_max, ticks_min, |locality| {
            let set = locality.pages.iter().copied().collect();
            assert!(
                found.insert((locality.start, locality.end, set)) || locality.start == locality.end
            );
        });
        found
    }

    /// Level by level, from the definition.
    fn by_definition(owned: &Owned, pages_max: u32, ticks_min: u64) -> Found {
        let time = |i: usize| match owned.times.get(i) {
            Some(&time) => time,
            None if owned.times.is_empty() => i as u64,
            None => owned.string().end(),
        };
        let count = owned.pages.len();
        let top = |place: usize, level: usize| {
            let mut recent: Vec<u32> = Vec::new();
            for &page in owned.pages[..=place].iter().rev() {
                if !recent.contains(&page) {
                    recent.push(page);
                }
            }
            let set: BTreeSet<u32> = recent.iter().copied().take(level).collect();
            set
        };
        let mut found = Found::new();
        for level in 1..=pages_max as usize {
            let mut begun = 0;
            for place in 1..=count {
                let set = top(begun, level);
                if place < count && top(place, level) == set {
                    continue;
                }
                let used: BTreeSet<u32> = owned.pages[begun + 1..place].iter().copied().collect();
                if set.len() == level && used == set && time(place) - time(begun) >= ticks_min {
                    found.insert((time(begun), time(place), set));
                }
                begun = place;
            }
        }
        found
    }

    #[test]
    fn a_loop_within_a_loop_is_two_levels() {
        // Twice: pages 0 and 1 in turn, then once round 2, 3, 4.
        let pages = [0, 1, 0, 1, 0, 1, 2, 3, 4, 0, 1, 0, 1, 0, 1, 2, 3, 4];
        let owned = Owned {
            pages: pages.to_vec(),
            times: Vec::new(),
            page_count: 5,
            touch: Default::default(),
            departures: Vec::new(),
        };
        let inner = BTreeSet::from([0, 1]);
        let whole = BTreeSet::from([0, 1, 2, 3, 4]);
        let expected = [(1, 6, inner.clone()), (8, 18, whole), (10, 15, inner)];
        assert_eq!(localities(&owned, 8, 1), expected.into());
    }

    proptest! {
        #[test]
        fn localities_are_the_definition(
            owned in strings(),
            pages_max in 1u32..9,
            ticks_min in 0u64..6,
        ) {
            prop_assert_eq!(
                localities(&owned, pages_max, ticks_min),
                by_definition(&owned, pages_max, ticks_min)
            );
        }

        #[test]
        fn intervals_nest_or_are_apart(owned in strings()) {
            let found: Vec<_> = localities(&owned, 8, 1).into_iter().collect();
            for (start, end, set) in &found {
                for (other_start, other_end, other_set) in &found {
                    let apart = end <= other_start || other_end <= start;
                    let is_inside = other_start <= start && end <= other_end;
                    let nested = (is_inside && set.is_subset(other_set))
                        || (start <= other_start && other_end <= end && other_set.is_subset(set));
                    prop_assert!(apart || nested);
                }
            }
        }
    }
}
