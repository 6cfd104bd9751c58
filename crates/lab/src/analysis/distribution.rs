//! A multiset of numbers, kept whole: for any bound, how many are not above it, and their sum.
//!
//! Small numbers are counted one by one in a table. Large ones are kept, and put into classes at
//! the end: of equal width within a power of two, 32 for each. So collecting costs a few
//! nanoseconds a number; an answer reads the numbers of one class, and is exact.
//!
//! # Invariants
//! 1. `large` holds the numbers from `SMALL` to below `u32::MAX`, by rising class; `huge` holds
//!    those above, sorted.
//! 2. The tables by class have an entry for each class and one at the end.

/// Numbers below this are counted; the table stays in the second-level cache.
const SMALL: usize = 1 << SMALL_BITS;
const SMALL_BITS: u32 = 13;

/// Classes in a power of two. Few enough in all that address translation and the first-level cache
/// have room for the place in each where the next number goes.
const CLASSES: u32 = 1 << CLASS_BITS;
const CLASS_BITS: u32 = 5;
const CLASSES_ALL: usize = ((32 - SMALL_BITS) * CLASSES) as usize;

/// How many numbers [`Collector::take`] may be given before [`Collector::settle`].
pub(super) const STRETCH: usize = 4096;

/// Takes numbers in.
pub(super) struct Collector {
    small: Vec<u64>,
    scratch: Box<[u32; STRETCH]>,
    waiting: usize,
    large: Vec<u32>,
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
    }

    /// Puts in order what was taken.
    pub(super) fn finish(mut self) -> Distribution {
        self.settle();
        self.huge.sort_unstable();
        let mut small = Vec::with_capacity(SMALL);
        let mut sums = Sums::default();
        for (number, &count) in (0u64..).zip(&self.small[..SMALL]) {
            sums.count += count;
            sums.sum += u128::from(count) * u128::from(number);
            small.push(sums);
        }
        let (large, classes) = classify(&self.large);
        Distribution {
            small,
            large,
            classes,
            huge: self.huge,
        }
    }
}

/// How many numbers, and their sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    count: u64,
    sum: u128,
}

/// Numbers, in order as far as answers need it.
#[derive(Clone, Debug)]
pub(super) struct Distribution {
    /// Up to and with each small number.
    small: Vec<Sums>,
    large: Vec<u32>,
    /// Of `large`, before each class.
    classes: Vec<Sums>,
    huge: Vec<u64>,
}

impl Distribution {
    /// How many numbers there are.
    pub(super) fn count(&self) -> u64 {
        self.small[SMALL - 1].count + (self.large.len() + self.huge.len()) as u64
    }

    /// How many numbers are at most `bound`, and their sum.
    pub(super) fn up_to(&self, bound: u64) -> (u64, u128) {
        if bound < SMALL as u64 {
            let sums = self.small[bound as usize];
            return (sums.count, sums.sum);
        }
        let mut sums = self.small[SMALL - 1];
        let mut add = |count: u64, sum: u128| {
            sums.count += count;
            sums.sum += sum;
        };
        match u32::try_from(bound) {
            Ok(bound) => {
                let class = class_of(bound);
                let before = self.classes[class];
                add(before.count, before.sum);
                let (mut count, mut sum) = (0, 0);
                for &number in self.members(class) {
                    count += u64::from(number <= bound);
                    sum += u64::from(number) * u64::from(number <= bound);
                }
                add(count, sum.into());
            }
            Err(_) => {
                let all = self.classes[CLASSES_ALL];
                add(all.count, all.sum);
            }
        }
        let huge = self.huge.partition_point(|&number| number <= bound);
        self.huge[..huge]
            .iter()
            .for_each(|&number| add(1, number.into()));
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
        if place >= self.large.len() as u64 {
            return self.huge[place as usize - self.large.len()];
        }
        let class = self.classes.partition_point(|before| before.count <= place) - 1;
        let mut members = self.members(class).to_vec();
        let within = (place - self.classes[class].count) as usize;
        u64::from(*members.select_nth_unstable(within).1)
    }

    /// The large numbers of `class`.
    fn members(&self, class: usize) -> &[u32] {
        let place = |class: usize| self.classes[class].count as usize;
        &self.large[place(class)..place(class + 1)]
    }
}

/// The class of a number from [`SMALL`] on.
#[inline(always)]
fn class_of(number: u32) -> usize {
    let power = 31 - number.leading_zeros();
    let within = (number >> (power - CLASS_BITS)) & (CLASSES - 1);
    ((power - SMALL_BITS) * CLASSES + within) as usize
}

/// `numbers` by class, and the sums before each class and at the end.
fn classify(numbers: &[u32]) -> (Vec<u32>, Vec<Sums>) {
    let mut counts = [0usize; CLASSES_ALL];
    let mut totals = [0u64; CLASSES_ALL];
    for &number in numbers {
        let class = class_of(number);
        counts[class] += 1;
        totals[class] += u64::from(number);
    }
    let mut classes = Vec::with_capacity(CLASSES_ALL + 1);
    let mut before = Sums::default();
    let mut places = [0usize; CLASSES_ALL];
    for class in 0..CLASSES_ALL {
        classes.push(before);
        places[class] = before.count as usize;
        before.count += counts[class] as u64;
        before.sum += u128::from(totals[class]);
    }
    classes.push(before);
    let mut sorted = vec![0; numbers.len()];
    for &number in numbers {
        let place = &mut places[class_of(number)];
        sorted[*place] = number;
        *place += 1;
    }
    (sorted, classes)
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
