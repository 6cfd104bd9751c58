//! A multiset of numbers in few bytes: each distinct number once, with how often it is there.
//!
//! Numbers stand in rising order, as the step from the one before and a count, each in as many
//! bytes as it needs: most take two or three bytes together, however often the number occurs.
//!
//! # Invariants
//! 1. Numbers rise; each has a count of at least 1.
//! 2. There is a mark for every [`SPAN`] numbers, with what lies before it.

/// Numbers between two marks.
const SPAN: usize = 256;

/// The count and the sum of numbers in a multiset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) count: u64,
    pub(super) sum: u128,
}

impl Sums {
    /// Adds `number` that many times.
    #[inline]
    pub(super) fn add(&mut self, number: u64, count: u64) {
        self.count += count;
        self.sum += u128::from(number) * u128::from(count);
    }
}

/// The multiset.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    bytes: Vec<u8>,
    marks: Vec<Mark>,
    /// The number of distinct numbers.
    distinct: usize,
    /// The greatest number.
    last: u32,
    all: Sums,
}

/// A place among the bytes, and what stands before it.
#[derive(Clone, Copy, Debug)]
struct Mark {
    /// The place.
    at: usize,
    /// The number at that place.
    first: u32,
    /// The number before.
    before: u32,
    sums: Sums,
}

impl Runs {
    /// Empty, with room for `bytes`.
    fn with_room(bytes: usize) -> Runs {
        Runs {
            bytes: Vec::with_capacity(bytes),
            ..Runs::default()
        }
    }

    /// These and `sorted`, which rises.
    pub(super) fn merged(&self, sorted: &[u32]) -> Runs {
        let mut merged = Runs::with_room(self.bytes.len() + 3 * sorted.len().min(1 << 20));
        let mut new = sorted.chunk_by(|a, b| a == b).peekable();
        for (number, count) in self.iter() {
            while let Some(equal) = new.next_if(|equal| equal[0] < number) {
                merged.push(equal[0], equal.len() as u64);
            }
            let more = new
                .next_if(|equal| equal[0] == number)
                .map_or(0, <[u32]>::len);
            merged.push(number, count + more as u64);
        }
        for equal in new {
            merged.push(equal[0], equal.len() as u64);
        }
        merged
    }

    /// The number of distinct numbers.
    pub(super) fn distinct(&self) -> usize {
        self.distinct
    }

    /// The number of numbers in all, and their sum.
    pub(super) fn all(&self) -> Sums {
        self.all
    }

    /// The number of numbers at most `bound`, and their sum.
    pub(super) fn up_to(&self, bound: u32) -> Sums {
        let Some(mark) = self.mark_where(|mark| mark.first <= bound) else {
            return Sums::default();
        };
        let mut sums = mark.sums;
        for (number, count) in self
            .iter_from(mark)
            .take(SPAN)
            .take_while(|run| run.0 <= bound)
        {
            sums.add(number.into(), count);
        }
        sums
    }

    /// The number at `place` in rising order, from 0.
    ///
    /// - Needs: `place` is below the count.
    pub(super) fn nth(&self, place: u64) -> u32 {
        let mark = self.mark_where(|mark| mark.sums.count <= place);
        let mark = mark.expect("the first mark has nothing before it");
        let mut before = mark.sums.count;
        let found = self.iter_from(mark).find(|(_, count)| {
            before += count;
            before > place
        });
        found.expect("there are more numbers than that").0
    }

    /// Appends a number that is greater than all others.
    fn push(&mut self, number: u32, count: u64) {
        if self.distinct.is_multiple_of(SPAN) {
            self.marks.push(Mark {
                at: self.bytes.len(),
                first: number,
                before: self.last,
                sums: self.all,
            });
        }
        put(&mut self.bytes, u64::from(number - self.last));
        put(&mut self.bytes, count);
        self.last = number;
        self.distinct += 1;
        self.all.add(number.into(), count);
    }

    /// The last mark for which `is_before` holds, as it does for all before it.
    fn mark_where(&self, is_before: impl Fn(&Mark) -> bool) -> Option<Mark> {
        let after = self.marks.partition_point(is_before);
        Some(self.marks[after.checked_sub(1)?])
    }

    /// Each number with its count, rising.
    fn iter(&self) -> impl Iterator<Item = (u32, u64)> {
        self.iter_from(Mark {
            at: 0,
            first: 0,
            before: 0,
            sums: Sums::default(),
        })
    }

    fn iter_from(&self, mark: Mark) -> impl Iterator<Item = (u32, u64)> {
        let (mut at, mut number) = (mark.at, mark.before);
        std::iter::from_fn(move || {
            if at == self.bytes.len() {
                return None;
            }
            number += take(&self.bytes, &mut at) as u32;
            Some((number, take(&self.bytes, &mut at)))
        })
    }
}

/// Appends `number`, seven bits a byte, the lowest first; all but its last byte have the high bit.
#[inline]
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Takes the number at `at`, and moves there.
#[inline]
fn take(bytes: &[u8], at: &mut usize) -> u64 {
    let mut number = 0;
    let mut shift = 0;
    loop {
        let byte = bytes[*at];
        *at += 1;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return number;
        }
        shift += 7;
    }
}

/// Sorts `numbers` by digits of eight bits, with `scratch` to move them to and fro.
pub(super) fn sort(numbers: &mut Vec<u32>, scratch: &mut Vec<u32>) {
    /// Fewer are sorted by comparing.
    const FEW: usize = 1 << 12;
    if numbers.len() < FEW {
        numbers.sort_unstable();
        return;
    }
    let all = numbers.iter().fold(0, |all, number| all | number);
    scratch.resize(numbers.len(), 0);
    for shift in (0..u32::BITS - all.leading_zeros()).step_by(8) {
        let digit = |number: u32| (number >> shift) as usize & 0xff;
        let mut places = [0; 256];
        for &number in numbers.iter() {
            places[digit(number)] += 1;
        }
        let mut before = 0;
        for place in &mut places {
            before += std::mem::replace(place, before);
        }
        for &number in numbers.iter() {
            let place = &mut places[digit(number)];
            scratch[*place] = number;
            *place += 1;
        }
        std::mem::swap(numbers, scratch);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn repeats_and_neighbours_take_two_bytes() {
        let numbers: Vec<u32> = (0..100_000).map(|at| 8192 + at / 10).collect();
        let runs = Runs::default().merged(&numbers);
        assert_eq!((runs.distinct(), runs.all().count), (10_000, 100_000));
        assert!(runs.bytes.len() <= 20_002, "{}", runs.bytes.len());
    }

    #[test]
    fn digits_sort_as_comparing_does() {
        let mut numbers: Vec<u32> = (0..20_000u32)
            .map(|at| at.wrapping_mul(2_654_435_761))
            .collect();
        let mut expected = numbers.clone();
        expected.sort_unstable();
        sort(&mut numbers, &mut Vec::new());
        assert_eq!(numbers, expected);
    }

    proptest! {
        #[test]
        fn parts_merge_to_the_whole(
            parts in prop::collection::vec(
                prop::collection::vec(prop_oneof![0u32..50, 0u32..5000, any::<u32>()], 0..700),
                0..5,
            ),
            bounds in prop::collection::vec(prop_oneof![0u32..50, 0u32..5000, any::<u32>()], 1..20),
        ) {
            let mut runs = Runs::default();
            let mut all: Vec<u32> = parts.concat();
            for mut part in parts {
                part.sort_unstable();
                runs = runs.merged(&part);
            }
            all.sort_unstable();
            prop_assert_eq!(runs.all().count, all.len() as u64);
            for bound in bounds {
                let below = all.iter().filter(|&&number| number <= bound);
                let mut sums = Sums::default();
                below.for_each(|&number| sums.add(number.into(), 1));
                prop_assert_eq!(runs.up_to(bound), sums);
            }
            for (place, &number) in all.iter().enumerate() {
                prop_assert_eq!(runs.nth(place as u64), number);
            }
        }
    }
}
