//! Columns: tables with an entry for each of many numbers, in memory only as far as they are used.
//!
//! A table is sized once, for the most memory there can ever be, and most programs use little of
//! it. So a column has its address range from the start and takes memory from the bottom up: up to
//! the highest entry that was ever written. What lies above reads as the blank entry. Nothing is
//! moved when it grows, and reading costs what reading a slice costs.
//!
//! Where two kinds of numbers share a table, frames and behind them what stands for pages that
//! have left, each kind has a part that grows by itself.
//!
//! # Invariants
//! 1. All entries beyond the written part of either half are the blank one.
//! 2. Neither part ever takes more than the capacity that it was made with.

use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

/// How many bytes of entries are written at a time.
const STEP_BYTES: usize = 4096;

/// Entries for the numbers below a fixed bound.
#[derive(Clone, Debug)]
pub struct Column<T> {
    entries: Vec<T>,
    /// Those of the numbers from `split` on.
    behind: Vec<T>,
    blank: T,
    split: usize,
    bound: usize,
}

impl<T: Copy> Column<T> {
    /// A table of `bound` times `blank`.
    pub fn new(blank: T, bound: usize) -> Column<T> {
        Column::in_two(blank, bound, bound)
    }

    /// The same, of which the numbers from `split` on are used apart from those below.
    pub fn in_two(blank: T, split: usize, bound: usize) -> Column<T> {
        assert!(split <= bound);
        Column {
            entries: Vec::with_capacity(split),
            behind: Vec::with_capacity(bound - split),
            blank,
            split,
            bound,
        }
    }

    /// How many numbers there are entries for.
    pub fn len(&self) -> usize {
        self.bound
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.bound == 0
    }

    /// The entries that are in memory, in the order of their numbers. All others are blank.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().chain(&self.behind)
    }

    /// How many bytes of memory the entries take.
    pub fn bytes(&self) -> usize {
        (self.entries.len() + self.behind.len()) * size_of::<T>()
    }

    #[cold]
    #[inline(never)]
    fn read_behind(&self, number: usize) -> &T {
        assert!(number < self.bound, "entry {number} of {}", self.bound);
        let behind = number.checked_sub(self.split);
        behind
            .and_then(|place| self.behind.get(place))
            .unwrap_or(&self.blank)
    }

    #[cold]
    #[inline(never)]
    fn write_behind(&mut self, number: usize) -> &mut T {
        assert!(number < self.bound, "entry {number} of {}", self.bound);
        let (part, place, most) = match number.checked_sub(self.split) {
            None => (&mut self.entries, number, self.split),
            Some(place) => (&mut self.behind, place, self.bound - self.split),
        };
        if place >= part.len() {
            let step = (STEP_BYTES / size_of::<T>().max(1)).max(1);
            part.resize((place + 1).next_multiple_of(step).min(most), self.blank);
        }
        &mut part[place]
    }
}

impl<T: Copy> Index<usize> for Column<T> {
    type Output = T;

    #[inline]
    fn index(&self, number: usize) -> &T {
        match self.entries.get(number) {
            Some(entry) => entry,
            None => self.read_behind(number),
        }
    }
}

impl<T: Copy> IndexMut<usize> for Column<T> {
    #[inline]
    fn index_mut(&mut self, number: usize) -> &mut T {
        if number < self.entries.len() {
            &mut self.entries[number]
        } else {
            self.write_behind(number)
        }
    }
}

#[cfg(test)]
impl<T: Copy + PartialEq, const N: usize> PartialEq<[T; N]> for Column<T> {
    fn eq(&self, other: &[T; N]) -> bool {
        self.len() == N && (0..N).all(|number| self[number] == other[number])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn found_f3_a_column_takes_memory_as_far_as_it_is_written() {
        let mut column = Column::new(7_u32, 1 << 30);
        assert_eq!((column[0], column[(1 << 30) - 1]), (7, 7));
        assert_eq!(column.bytes(), 0);
        column[5000] = 1;
        assert_eq!((column[4999], column[5000], column[5001]), (7, 1, 7));
        assert_eq!(column.bytes(), 5 * STEP_BYTES);
        assert_eq!(column.len(), 1 << 30);
    }

    #[test]
    fn the_part_behind_the_split_grows_by_itself() {
        let mut column = Column::in_two(0_u8, 1 << 20, (1 << 20) + 3);
        column[(1 << 20) + 2] = 9;
        column[2] = 5;
        assert_eq!(column.bytes(), STEP_BYTES + 3);
        let read = [2, 3, 1 << 20, (1 << 20) + 2].map(|number| column[number]);
        assert_eq!(read, [5, 0, 0, 9]);
    }

    #[test]
    #[should_panic(expected = "entry 3 of 3")]
    fn there_is_nothing_beyond_the_bound() {
        let mut column = Column::new(0_u8, 3);
        column[3] = 1;
    }
}
