//! The sizes to which pages compress.
//!
//! Traces have no contents. The sizes of compressed pages are given as a distribution, and each
//! page keeps its place in it: the same page has about the same size whenever it is stored.

use tidemark_core::compressed::tier::BYTES_MAX;
use tidemark_core::id::{PAGE_BYTES, PageId};
use tidemark_core::random::{SplitMix64, mix};

/// The part of a size, as a divisor, by which pages of one [ratio](PageSizes::of_ratio) differ to
/// either side.
const SPREAD_PART: u32 = 2;

/// The sizes to which pages compress, and the number of pages of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageSizes {
    /// By rising size: from this size on, below that, and how many pages are of it or smaller.
    steps: Vec<Step>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    from: u32,
    below: u32,
    pages_to: u64,
}

impl PageSizes {
    /// Sizes by their numbers of pages: each from the first bound on, below the second, in bytes.
    /// Pages of zeros have no size. Nothing without pages.
    pub fn new(counts: impl IntoIterator<Item = (u32, u32, u64)>) -> Option<PageSizes> {
        let mut counts: Vec<(u32, u32, u64)> = counts.into_iter().collect();
        counts.retain(|&(from, below, pages)| from < below && pages > 0);
        counts.sort_unstable();
        let mut pages_to = 0;
        let steps = counts.into_iter().map(|(from, below, pages)| {
            pages_to += pages;
            Step {
                from,
                below,
                pages_to,
            }
        });
        let steps: Vec<Step> = steps.collect();
        (!steps.is_empty()).then_some(PageSizes { steps })
    }

    /// Sizes around one that makes `ratio` pages take as much as one, in thousandths.
    ///
    /// - Needs: a ratio of 1 at least.
    pub fn of_ratio(ratio_per_mille: u32) -> PageSizes {
        assert!(ratio_per_mille >= 1000);
        let mean = (PAGE_BYTES * 1000 / u64::from(ratio_per_mille)).max(16) as u32;
        let spread = (mean / SPREAD_PART).min(BYTES_MAX.saturating_sub(mean));
        let (from, below) = (mean - spread, mean + spread + 1);
        PageSizes {
            steps: vec![Step {
                from,
                below,
                pages_to: 1,
            }],
        }
    }

    /// The size of a page when it is stored, `version` telling that from other times.
    pub(super) fn size_of(&self, page: PageId, version: u64) -> u32 {
        let key = mix(u64::from(page.object.0) << 40 ^ (page.index + 1));
        let mut random = SplitMix64::new(key);
        let all = self.steps.last().map_or(1, |step| step.pages_to);
        let rank = random.below(all);
        let at = self.steps.partition_point(|step| step.pages_to <= rank);
        let Step { from, below, .. } = self.steps[at];
        let width = u64::from(below - from);
        // Half of what is open within the bounds is the page's own, and half the version's.
        let own = random.below(width);
        let other = SplitMix64::new(mix(key ^ version)).below(width);
        from + ((own + other) / 2) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_core::id::ObjectId;

    fn page(index: u64) -> PageId {
        PageId {
            object: ObjectId(3),
            index,
        }
    }

    #[test]
    fn pages_have_the_sizes_that_were_told_and_keep_about_their_own() {
        let told = [(0, 1, 100), (1024, 1088, 600), (3073, 4105, 300)];
        let sizes = PageSizes::new(told).expect("there are pages");
        let mut counts = [0; 3];
        for index in 0..10_000 {
            let size = sizes.size_of(page(index), 1);
            let of = |(from, below, _): &(u32, u32, u64)| (*from..*below).contains(&size);
            let bucket = told.iter().position(of).expect("it is one of them");
            counts[bucket] += 1;
            let later = sizes.size_of(page(index), 7 + index);
            assert!(of(&told[bucket]) && size.abs_diff(later) <= 600);
        }
        for (count, (.., told)) in counts.into_iter().zip(told) {
            assert!((told * 9..told * 11).contains(&count), "{count} of {told}");
        }
        assert_eq!(sizes.size_of(page(5), 9), sizes.size_of(page(5), 9));
        assert_eq!(PageSizes::new([(64, 128, 0)]), None);
    }

    #[test]
    fn a_ratio_is_kept_on_the_whole() {
        for ratio in [1500, 3000, 8000] {
            let sizes = PageSizes::of_ratio(ratio);
            let all: u64 = (0..10_000)
                .map(|at| u64::from(sizes.size_of(page(at), at)))
                .sum();
            let found = 10_000 * PAGE_BYTES * 1000 / all;
            assert!(found.abs_diff(u64::from(ratio)) < 40, "{found} for {ratio}");
        }
        // Pages of a ratio near 1 are hardly smaller, and go to disk as they are.
        assert!(PageSizes::of_ratio(1100).size_of(page(1), 1) > BYTES_MAX);
    }
}
