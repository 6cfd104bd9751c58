//! Regions: the memory that a program touches, told by a few pages of each region of it.
//!
//! As DAMON does (Park, Lee, Yeom; Middleware 2019; Linux, `Documentation/mm/damon/design.rst`):
//! the pages of a region are taken to be alike, so that a few are watched in place of all. At the
//! end of a window neighbours that turned out alike are merged, and regions are split while there
//! may be more. So sampling costs what was decided, however much memory there is.
//!
//! Two things differ, for want of accessed bits. A page is watched for a whole window, by being
//! taken away: it costs a fault if it is touched, and little if it is not. And each region has
//! several watched pages in a window, not one in each of many short intervals: the *share* of
//! them that is touched is the share of the region's pages. A region where that is neither
//! none nor all is split first, and at its middle, so that a border is found by halving.
//!
//! # Invariants
//! 1. Regions lie side by side, in the order of addresses, and the first begins at 0: each page is
//!    in one, also one that comes later.
//! 2. A region does not reach across one of the widest gaps between pages: a small heap is not
//!    taken for a part of a large mapping.

use std::collections::BinaryHeap;

use tidemark_core::random::SplitMix64;

use crate::ranges::Ranges;
use crate::sys::PAGE;

/// The pages that are watched in a region, if it has that many.
const WATCHED: u64 = 4;
/// A share of all.
pub const ALL: u64 = 256;
/// Shares that differ by no more are alike: the first that leaves half of the regions to split.
const ALIKE: [u64; 4] = [0, ALL / 4, ALL / 2, ALL];
/// The least gap that no region reaches across.
const GAP_BYTES: usize = 2 << 20;
/// The most such gaps.
const GAPS_MAX: usize = 15;

/// The memory of a program by regions.
pub struct Regions {
    /// Pages that the program has touched, and that are there yet.
    known: Ranges,
    regions: Vec<Region>,
    random: SplitMix64,
}

#[derive(Clone, Copy, Default)]
struct Region {
    start: usize,
    /// Pages of it of which is known if they were touched in the window at hand.
    seen: u64,
    /// The pages of it that were touched, of those seen.
    touched: u64,
}

/// Memory of which a share was touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touched {
    pub start: usize,
    pub bytes: usize,
    /// The part of its pages in [`ALL`].
    pub share: u64,
}

/// Known pages by their numbers, in the order of addresses.
struct Numbered {
    /// Ranges, each with the number of its first page.
    ranges: Vec<(usize, usize, u64)>,
    pages: u64,
}

/// A region by the numbers of its pages.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    /// Neither none of its pages was touched, nor all. It is the first to be split.
    is_mixed: bool,
    pages: u64,
    from: u64,
    /// In [`ALL`], where it is known.
    share: Option<u64>,
}

impl Regions {
    pub fn new() -> Regions {
        Regions {
            known: Ranges::new(),
            regions: vec![Region::default()],
            random: SplitMix64::new(1),
        }
    }

    /// Takes in that the page at `address` stands there.
    pub fn add(&mut self, address: usize) {
        if !self.known.contains(address) {
            self.known.insert(address, address + PAGE);
        }
    }

    /// Takes in that a range is empty.
    pub fn forget(&mut self, start: usize, end: usize) {
        self.known.remove(start, end);
    }

    /// Takes in that a range has moved.
    pub fn move_to(&mut self, from: usize, to: usize, bytes: usize) {
        let end = from + bytes;
        let parts = self.known.collect_overlaps(from, end);
        self.known.remove(from, end);
        for (start, stop) in parts {
            let there = |address: usize| address.clamp(from, end) - from + to;
            self.known.insert(there(start), there(stop));
        }
    }

    /// Returns true if there is nothing to watch.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Takes in that the watched page at `address` was touched in the window, or was not.
    pub fn note(&mut self, address: usize, is_touched: bool) {
        let after = self.regions.partition_point(|it| it.start <= address);
        let region = &mut self.regions[after - 1];
        region.seen += 1;
        region.touched += u64::from(is_touched);
    }

    /// The memory that was touched in the window that is over, but for regions of which each page
    /// was watched: their touches are known one by one.
    pub fn collect_touched(&self) -> Vec<Touched> {
        let ends = self.regions[1..].iter().map(|region| region.start);
        let bounded = self.regions.iter().zip(ends.chain([usize::MAX]));
        let mut touched = Vec::new();
        for (region, end) in bounded.filter(|(region, _)| region.touched > 0) {
            let share = region.touched * ALL / region.seen;
            let part = |(from, to): (usize, usize)| Touched {
                start: from.max(region.start),
                bytes: to.min(end) - from.max(region.start),
                share,
            };
            let ranges = self.known.collect_overlaps(region.start, end).into_iter();
            let parts: Vec<Touched> = ranges.map(part).collect();
            let bytes: usize = parts.iter().map(|part| part.bytes).sum();
            if (bytes / PAGE) as u64 > region.seen {
                touched.extend(parts);
            }
        }
        touched
    }

    /// Begins a window in which at most `most` pages are watched: adjusts the regions to what was
    /// seen in the last, and chooses the pages.
    pub fn begin_window(&mut self, most: u64) -> Vec<usize> {
        let numbered = Numbered::of(&self.known);
        let walls = numbered.collect_walls();
        let regions_max = (most / WATCHED).max(1) as usize;
        let mut parts = self.collect_parts(&numbered, &walls);
        for alike in ALIKE {
            parts = merge(&parts, &walls, alike);
            if parts.len() <= regions_max / 2 {
                break;
            }
        }
        let parts = split(parts, regions_max);
        let region = |part: &Part| Region {
            start: numbered.address_of(part.from),
            ..Region::default()
        };
        self.regions = parts.iter().map(region).collect();
        match self.regions.first_mut() {
            Some(first) => first.start = 0,
            None => self.regions.push(Region::default()),
        }
        let mut chosen = Vec::with_capacity(parts.len() * WATCHED as usize);
        for part in parts {
            // One of each of the stretches: no two are the same.
            let count = part.pages.min(WATCHED);
            for stretch in 0..count {
                let from = part.pages * stretch / count;
                let pages = part.pages * (stretch + 1) / count - from;
                let page = part.from + from + self.random.below(pages);
                chosen.push(numbered.address_of(page));
            }
        }
        chosen
    }

    /// The regions that have pages, cut at `walls`.
    fn collect_parts(&self, numbered: &Numbered, walls: &[u64]) -> Vec<Part> {
        let ends = self.regions[1..].iter().map(|region| region.start);
        let mut parts = Vec::with_capacity(self.regions.len() + walls.len());
        for (region, end) in self.regions.iter().zip(ends.chain([usize::MAX])) {
            let share = (region.touched * ALL).checked_div(region.seen);
            let (mut from, to) = (numbered.number_of(region.start), numbered.number_of(end));
            let inside = walls.iter().filter(|&&wall| from < wall && wall < to);
            let cuts: Vec<u64> = inside.copied().chain([to]).collect();
            for cut in cuts {
                if from < cut {
                    parts.push(Part::new(from, cut - from, share));
                }
                from = cut;
            }
        }
        parts
    }
}

impl Numbered {
    fn of(known: &Ranges) -> Numbered {
        let mut pages = 0;
        let number = |(start, end): (usize, usize)| {
            let first = pages;
            pages += ((end - start) / PAGE) as u64;
            (start, end, first)
        };
        let ranges = known.iter().map(number).collect();
        Numbered { ranges, pages }
    }

    /// The number of pages below `address`.
    fn number_of(&self, address: usize) -> u64 {
        let after = self.ranges.partition_point(|&(start, ..)| start <= address);
        match after.checked_sub(1).map(|at| self.ranges[at]) {
            Some((start, end, first)) => first + ((address.min(end) - start) / PAGE) as u64,
            None => 0,
        }
    }

    /// The address of the page of that number.
    fn address_of(&self, number: u64) -> usize {
        assert!(number < self.pages);
        let after = self.ranges.partition_point(|&(.., first)| first <= number);
        let (start, _, first) = self.ranges[after - 1];
        start + (number - first) as usize * PAGE
    }

    /// The numbers of the pages behind the widest gaps, rising.
    fn collect_walls(&self) -> Vec<u64> {
        let pairs = self.ranges.windows(2);
        let gaps = pairs.map(|pair| (pair[1].0 - pair[0].1, pair[1].2));
        let mut widest: Vec<(usize, u64)> = gaps.filter(|gap| gap.0 >= GAP_BYTES).collect();
        widest.sort_unstable_by(|one, other| other.cmp(one));
        widest.truncate(GAPS_MAX);
        let mut walls: Vec<u64> = widest.into_iter().map(|(_, number)| number).collect();
        walls.sort_unstable();
        walls
    }
}

impl Part {
    fn new(from: u64, pages: u64, share: Option<u64>) -> Part {
        Part {
            is_mixed: share.is_some_and(|share| 0 < share && share < ALL),
            pages,
            from,
            share,
        }
    }

    /// Both together.
    fn with(self, next: Part) -> Part {
        let pages = self.pages + next.pages;
        let share = match (self.share, next.share) {
            (Some(one), Some(other)) => {
                Some((one * self.pages + other * next.pages).div_ceil(pages))
            }
            (one, other) => one.or(other),
        };
        Part::new(self.from, pages, share)
    }
}

/// Merges neighbours whose shares differ by at most `alike`, and those of which none is known with
/// the one before. Not across `walls`.
fn merge(parts: &[Part], walls: &[u64], alike: u64) -> Vec<Part> {
    let mut merged: Vec<Part> = Vec::with_capacity(parts.len());
    for part in parts {
        let is_alike = |last: &Part| match (last.share, part.share) {
            (Some(one), Some(other)) => one.abs_diff(other) <= alike,
            _ => true,
        };
        let is_wall = walls.binary_search(&part.from).is_ok();
        match merged.last_mut() {
            Some(last) if !is_wall && is_alike(last) => *last = last.with(*part),
            _ => merged.push(*part),
        }
    }
    merged
}

/// Halves regions until there are `most`: mixed ones once, and then the largest. Answers them in
/// the order of addresses.
fn split(parts: Vec<Part>, most: usize) -> Vec<Part> {
    let mut heap = BinaryHeap::from(parts);
    let mut whole = Vec::new();
    while heap.len() + whole.len() < most
        && let Some(part) = heap.pop()
    {
        if part.pages <= WATCHED {
            whole.push(part);
            continue;
        }
        let half = part.pages / 2;
        // A half is not known to be mixed.
        heap.push(Part::new(part.from, half, None));
        heap.push(Part::new(part.from + half, part.pages - half, None));
    }
    whole.extend(heap);
    whole.sort_unstable_by_key(|part| part.from);
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: usize = 1 << 32;

    fn page(number: usize) -> usize {
        BASE + number * PAGE
    }

    /// Regions of a program with `pages` from [`BASE`] on.
    fn regions(pages: usize) -> Regions {
        let mut regions = Regions::new();
        regions.known.insert(page(0), page(pages));
        regions
    }

    /// Watches at most `most` pages in `windows` of a program that touches what `is_touched`
    /// says. Answers what is taken to be touched in the last.
    fn live(
        regions: &mut Regions,
        (windows, most): (usize, u64),
        is_touched: impl Fn(usize) -> bool,
    ) -> Vec<Touched> {
        for _ in 0..windows {
            let chosen = regions.begin_window(most);
            assert!(chosen.len() as u64 <= most);
            for address in chosen {
                regions.note(address, is_touched(address));
            }
        }
        regions.collect_touched()
    }

    /// The pages of `touched`, by their shares.
    fn pages(touched: &[Touched]) -> u64 {
        let shares = touched.iter().map(|it| it.bytes as u64 / 4096 * it.share);
        shares.sum::<u64>() / ALL
    }

    #[test]
    fn a_hot_part_is_found_to_a_few_pages() {
        // 1 GiB, of which an eighth is hot; its borders are at no half.
        let (hot_from, hot_to) = (page(100_001), page(132_769));
        let mut regions = regions(262_144);
        let is_hot = |address| (hot_from..hot_to).contains(&address);
        let touched = live(&mut regions, (20, 1024), is_hot);
        let outside = touched.iter().filter(|it| {
            it.start < hot_from - 16 * PAGE || it.start + it.bytes > hot_to + 16 * PAGE
        });
        assert_eq!(outside.count(), 0, "{touched:?}");
        assert!(pages(&touched).abs_diff(32_768) <= 32, "{touched:?}");
    }

    #[test]
    fn what_becomes_hot_later_is_found() {
        let mut regions = regions(65_536);
        live(&mut regions, (10, 512), |address| address < page(8_192));
        let hot = page(40_000)..page(48_192);
        let touched = live(&mut regions, (14, 512), |address| hot.contains(&address));
        assert!(pages(&touched).abs_diff(8_192) <= 64, "{touched:?}");
        assert!(touched[0].start >= hot.start - 64 * PAGE, "{touched:?}");
    }

    #[test]
    fn pages_that_are_used_here_and_there_count_by_their_share() {
        let mut regions = regions(262_144);
        let one_in_eight =
            |address: usize| tidemark_core::random::mix(address as u64).is_multiple_of(8);
        let sizes: Vec<u64> = (0..20)
            .map(|_| pages(&live(&mut regions, (1, 1024), one_in_eight)))
            .collect();
        let mean = sizes.iter().sum::<u64>() / sizes.len() as u64;
        assert!(mean.abs_diff(32_768) < 8_000, "{sizes:?}");
    }

    #[test]
    fn of_a_small_program_every_page_is_watched() {
        let mut regions = regions(100);
        let chosen = regions.begin_window(1024);
        assert_eq!(chosen, (0..100).map(page).collect::<Vec<_>>());
        assert_eq!(live(&mut regions, (1, 1024), |_| true), []);
    }

    #[test]
    fn a_small_heap_is_not_taken_for_a_part_of_a_large_mapping() {
        let mut regions = regions(262_144);
        let heap = 1 << 20;
        regions.known.insert(heap, heap + 64 * PAGE);
        let touched = live(&mut regions, (3, 256), |address| address < BASE);
        let whole = Touched {
            start: heap,
            bytes: 64 * PAGE,
            share: ALL,
        };
        assert_eq!(pages(&touched), 64);
        assert_eq!(touched.first(), Some(&whole));
    }

    #[test]
    fn memory_that_is_gone_is_not_told_of() {
        let mut regions = regions(4_096);
        live(&mut regions, (2, 256), |_| true);
        regions.forget(page(0), page(1_024));
        regions.move_to(page(1_024), page(10_000), 1_024 * PAGE);
        let touched = live(&mut regions, (1, 256), |_| true);
        assert_eq!(pages(&touched), 3_072);
        assert_eq!(touched[0].start, page(2_048));
        regions.forget(0, usize::MAX & !(PAGE - 1));
        assert_eq!(regions.begin_window(256), []);
        assert!(regions.is_empty() && regions.collect_touched().is_empty());
    }
}
