//! A multiset of numbers, kept whole: for any bound, how many are not above it, and their sum.
//!
//! Small numbers are counted one by one in a table. Large ones wait until there are many; then
//! they are sorted and put to [`Runs`], which has each distinct number once. So collecting costs
//! some nanoseconds a number, memory grows with distinct numbers, and every answer is exact.
//!
//! # Invariants
//! 1. `runs` holds the numbers from `SMALL` to below `u32::MAX`; `huge` those above, sorted.

use super::runs::{Runs, Sums, sort};

/// Numbers below this are counted; the table stays in the second-level cache.
const SMALL: usize = 1 << 13;
/// At least this many large numbers wait before they are put in order.
const WAITING_MIN: usize = 1 << 20;
/// At least one large number waits for this many distinct ones: then merging costs but a few steps
/// a number.
const WAITING_SHARE: usize = 2;

/// The number of numbers [`Collector::take`] may be given before [`Collector::settle`].
pub(super) const STRETCH: usize = 4096;

/// Takes numbers in.
pub(super) struct Collector {
    small: Vec<u64>,
    scratch: Box<[u32; STRETCH]>,
    waiting: usize,
    large: Vec<u32>,
    /// Room to sort in.
    room: Vec<u32>,
    runs: Runs,
    huge: Vec<u64>,
}

impl Collector {
    /// Nothing taken yet.
    pub(super) fn new() -> Collector {
        Collector {
            small: vec![0; SMALL + 1],
            scratch: Box::new([0; STRETCH]),
            waiting: 0,
            large: Vec::new(),
            room: Vec::new(),
            runs: Runs::default(),
            huge: Vec::new(),
        }
    }

    /// Takes in one number. At most [`STRETCH`] times between two calls of `settle`.
    #[inline(always)]
    pub(super) fn take(&mut self, number: u64) {
        // Without a branch on the size, which no predictor could guess: each number is written to
        // the scratch and the place moves on for large ones alone.
        self.small[number.min(SMALL as u64) as usize] += 1;
        self.scratch[self.waiting & (STRETCH - 1)] = number as u32;
        let above = number.wrapping_sub(SMALL as u64);
        self.waiting += usize::from(above < u64::from(u32::MAX) - SMALL as u64);
        if number >= u64::from(u32::MAX) {
            self.huge.push(number);
        }
    }

    /// Makes room for [`STRETCH`] more numbers.
    pub(super) fn settle(&mut self) {
        assert!(self.waiting <= STRETCH);
        self.large.extend_from_slice(&self.scratch[..self.waiting]);
        self.waiting = 0;
        if self.large.len() >= WAITING_MIN.max(self.runs.distinct() / WAITING_SHARE) {
            self.put_in_order();
        }
    }

    /// Puts in order what was taken.
    pub(super) fn finish(mut self) -> Distribution {
        self.settle();
        self.put_in_order();
        self.huge.sort_unstable();
        let mut small = Vec::with_capacity(SMALL);
        let mut sums = Sums::default();
        for (number, &count) in (0u64..).zip(&self.small[..SMALL]) {
            sums.add(number, count);
            small.push(sums);
        }
        Distribution {
            small,
            runs: self.runs,
            huge: self.huge,
        }
    }

    fn put_in_order(&mut self) {
        if self.large.is_empty() {
            return;
        }
        sort(&mut self.large, &mut self.room);
        self.runs = self.runs.merged(&self.large);
        self.large.clear();
    }
}

/// Numbers, in order.
#[derive(Clone, Debug)]
pub(super) struct Distribution {
    /// Up to and with each small number.
    small: Vec<Sums>,
    runs: Runs,
    huge: Vec<u64>,
}

impl Distribution {
    /// The number of numbers.
    pub(super) fn count(&self) -> u64 {
        self.small[SMALL - 1].count + self.runs.all().count + self.huge.len() as u64
    }

    /// The number of numbers that are at most `bound`, and their sum.
    pub(super) fn up_to(&self, bound: u64) -> (u64, u128) {
        if bound < SMALL as u64 {
            let sums = self.small[bound as usize];
            return (sums.count, sums.sum);
        }
        let runs = match u32::try_from(bound) {
            Ok(bound) => self.runs.up_to(bound),
            Err(_) => self.runs.all(),
        };
        let mut sums = self.small[SMALL - 1];
        sums.count += runs.count;
        sums.sum += runs.sum;
        let huge = self.huge.partition_point(|&number| number <= bound);
        self.huge[..huge]
            .iter()
            .for_each(|&number| sums.add(number, 1));
        (sums.count, sums.sum)
    }

    /// The number at `place` in rising order, from 0.
    ///
    /// - Needs: `place` is below the count.
    pub(super) fn nth(&self, place: u64) -> u64 {
        let small = self.small[SMALL - 1].count;
        if place < small {
            return self.small.partition_point(|sums| sums.count <= place) as u64;
        }
        let place = place - small;
        match place.checked_sub(self.runs.all().count) {
            Some(place) => self.huge[place as usize],
            None => self.runs.nth(place).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn collect(numbers: &[u64]) -> Distribution {
        let mut collector = Collector::new();
        for stretch in numbers.chunks(STRETCH) {
            stretch.iter().for_each(|&number| collector.take(number));
            collector.settle();
        }
        collector.finish()
    }

    #[test]
    fn nothing_has_no_sum() {
        let empty = collect(&[]);
        assert_eq!(empty.count(), 0);
        assert_eq!(empty.up_to(u64::MAX), (0, 0));
    }

    #[test]
    fn large_numbers_are_found_by_their_place() {
        let numbers: Vec<u64> = (0..10_000u64)
            .map(|i| (i * 2_654_435_761) % 5_000_000_000)
            .collect();
        let kept = collect(&numbers);
        let mut sorted = numbers.clone();
        sorted.sort_unstable();
        for (place, &number) in (0u64..).zip(&sorted) {
            assert_eq!(kept.nth(place), number);
        }
    }

    proptest! {
        #[test]
        fn bounds_count_and_sum_exactly(
            numbers in prop::collection::vec(
                prop_oneof![
                    0u64..20,
                    0u64..20_000,
                    4_294_967_290u64..4_294_967_300,
                    any::<u32>().prop_map(u64::from),
                ],
                0..400,
            ),
            bounds in prop::collection::vec(
                prop_oneof![0u64..20, 0u64..20_000, 4_294_967_290u64..4_294_967_300, any::<u64>()],
                1..20,
            ),
        ) {
            let kept = collect(&numbers);
            prop_assert_eq!(kept.count(), numbers.len() as u64);
            for bound in bounds {
                let below: Vec<u64> = numbers.iter().copied().filter(|&n| n <= bound).collect();
                let sum = below.iter().map(|&n| u128::from(n)).sum::<u128>();
                prop_assert_eq!(kept.up_to(bound), (below.len() as u64, sum));
            }
        }
    }
}
