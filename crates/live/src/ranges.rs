//! The set of addresses under management: disjoint ranges, merged where they touch.

use std::collections::BTreeMap;

/// A set of addresses, kept as ranges from a start to just before an end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    by_start: BTreeMap<usize, usize>,
    bytes: usize,
}

impl Ranges {
    /// The empty set.
    pub fn new() -> Ranges {
        Ranges::default()
    }

    /// Adds `start..end`, parts of which may be in the set.
    pub fn insert(&mut self, start: usize, end: usize) {
        assert!(start < end);
        self.remove(start, end);
        let (mut first, mut last) = (start, end);
        if let Some((&below, &below_end)) = self.by_start.range(..start).next_back()
            && below_end == start
        {
            self.by_start.remove(&below);
            first = below;
        }
        if let Some(above_end) = self.by_start.remove(&end) {
            last = above_end;
        }
        self.by_start.insert(first, last);
        self.bytes += end - start;
    }

    /// Takes `start..end` out, as far as it is in the set.
    pub fn remove(&mut self, start: usize, end: usize) {
        for (from, to) in self.collect_overlaps(start, end) {
            self.by_start.remove(&from);
            if from < start {
                self.by_start.insert(from, start);
            }
            if to > end {
                self.by_start.insert(end, to);
            }
            self.bytes -= to.min(end) - from.max(start);
        }
    }

    /// Returns true if `at` is in the set.
    pub fn contains(&self, at: usize) -> bool {
        self.by_start
            .range(..=at)
            .next_back()
            .is_some_and(|(_, &end)| at < end)
    }

    /// The parts of `start..end` that are not in the set, in order.
    pub fn collect_gaps(&self, start: usize, end: usize) -> Vec<(usize, usize)> {
        let mut gaps = Vec::new();
        let mut next = start;
        for (from, to) in self.collect_overlaps(start, end) {
            if from > next {
                gaps.push((next, from));
            }
            next = to;
        }
        if next < end {
            gaps.push((next, end));
        }
        gaps
    }

    /// The ranges of the set that overlap `start..end`, whole, in order.
    pub fn collect_overlaps(&self, start: usize, end: usize) -> Vec<(usize, usize)> {
        let below = self
            .by_start
            .range(..start)
            .next_back()
            .filter(|(_, to)| **to > start);
        let inside = self.by_start.range(start..end.max(start));
        below
            .into_iter()
            .chain(inside)
            .map(|(&from, &to)| (from, to))
            .collect()
    }

    /// All ranges, in order.
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize)> {
        self.by_start.iter().map(|(&start, &end)| (start, end))
    }

    /// The number of ranges.
    pub fn len(&self) -> usize {
        self.by_start.len()
    }

    /// Returns true if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }

    /// The number of addresses in the set.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_become_one() {
        let mut set = Ranges::new();
        set.insert(10, 20);
        set.insert(30, 40);
        set.insert(20, 30);
        assert_eq!(set.iter().collect::<Vec<_>>(), [(10, 40)]);
        assert_eq!((set.bytes(), set.len()), (30, 1));
    }

    #[test]
    fn a_hole_cuts_a_range_in_two() {
        let mut set = Ranges::new();
        set.insert(10, 40);
        set.remove(20, 30);
        assert_eq!(set.iter().collect::<Vec<_>>(), [(10, 20), (30, 40)]);
        assert!(set.contains(19) && !set.contains(20) && set.contains(30) && !set.contains(40));
        assert_eq!(set.collect_gaps(0, 50), [(0, 10), (20, 30), (40, 50)]);
        assert_eq!(set.collect_gaps(12, 18), []);
        assert_eq!(set.collect_gaps(22, 28), [(22, 28)]);
        assert_eq!(set.bytes(), 20);
    }

    #[test]
    fn the_set_agrees_with_a_table_of_bits() {
        let mut set = Ranges::new();
        let mut bits = [false; 64];
        let mut seed = 7u64;
        for _ in 0..4000 {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let start = (seed >> 33) as usize % 60;
            let end = (start + 1 + (seed >> 40) as usize % 9).min(64);
            let is_insert = seed >> 63 == 0;
            if is_insert {
                set.insert(start, end)
            } else {
                set.remove(start, end)
            }
            bits[start..end].fill(is_insert);
            for (at, &bit) in bits.iter().enumerate() {
                assert_eq!(set.contains(at), bit);
            }
            assert_eq!(set.bytes(), bits.iter().filter(|bit| **bit).count());
        }
    }
}
