//! Columns: tables with an entry for each of many numbers, in memory only as far as they are used.
//!
//! A table is sized once, for the most memory there can ever be, and most programs use little of
//! it. So a column has its address range from the start and takes memory from the bottom up: up to
//! the highest entry that was ever written. What lies above reads as the blank entry. Nothing is
//! moved when it grows, and reading costs what reading a slice costs.
//!
//! Where two kinds of numbers share a table, frames and behind them remembered pages, all are in
//! one piece for as long as the frames are used first. If others come before the frames have all
//! been used, each kind has a part that grows by itself.
//!
//! An access to what is in one piece is an access to a slice, and whatever else is needed is done
//! out of its way. Code with several accesses asks for the slice once.
//!
//! # Invariants
//! 1. All entries beyond the written part of either half are the blank one.
//! 2. Neither part ever takes more than the capacity that it was made with.
//! 3. `entries` is empty while the table is in two parts.

use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

/// The number of bytes of entries written at a time.
const STEP_BYTES: usize = 4096;

/// Entries for the numbers below a fixed bound.
#[derive(Clone, Debug)]
pub struct Column<T> {
    /// All that are written, if they are in one piece.
    entries: Vec<T>,
    /// The entries of numbers below `split`, if the table is in two parts.
    below: Vec<T>,
    /// The entries of numbers from `split` on, if the table is in two parts.
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

    /// A table of `bound` times `blank`, of which the numbers from `split` on are used apart from
    /// those below.
    pub fn in_two(blank: T, split: usize, bound: usize) -> Column<T> {
        assert!(split <= bound);
        Column {
            entries: Vec::with_capacity(bound),
            below: Vec::new(),
            behind: Vec::with_capacity(bound - split),
            blank,
            split,
            bound,
        }
    }

    /// The number of keys that have an entry.
    pub fn len(&self) -> usize {
        self.bound
    }

    /// Returns true if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.bound == 0
    }

    /// The entries that are in memory, in the order of their numbers. All others are blank.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().chain(&self.below).chain(&self.behind)
    }

    /// The number of bytes of memory the entries take.
    pub fn bytes(&self) -> usize {
        self.iter().count() * size_of::<T>()
    }

    /// The entries that are in one piece: those of a table for numbers of one kind that were ever
    /// written, and their neighbours.
    #[inline]
    pub fn written(&self) -> &[T] {
        &self.entries
    }

    /// The entries of [`written`](Self::written), to be changed.
    #[inline]
    pub fn written_mut(&mut self) -> &mut [T] {
        &mut self.entries
    }

    /// Writes the entry of `number` if it never was, so that it is in the slices.
    #[inline]
    pub fn reach(&mut self, number: usize) {
        if number >= self.entries.len() {
            self.write_behind(number);
        }
    }

    #[cold]
    #[inline(never)]
    fn read_behind(&self, number: usize) -> &T {
        assert!(number < self.bound, "entry {number} of {}", self.bound);
        let entry = match number.checked_sub(self.split) {
            None => self.below.get(number),
            Some(place) => self.behind.get(place),
        };
        entry.unwrap_or(&self.blank)
    }

    #[cold]
    #[inline(never)]
    fn write_behind(&mut self, number: usize) -> &mut T {
        assert!(number < self.bound, "entry {number} of {}", self.bound);
        if number >= self.split && self.behind.is_empty() && self.entries.len() < self.split {
            self.below = core::mem::take(&mut self.entries);
            grow(&mut self.behind, 0, self.blank, self.bound - self.split);
        }
        let (part, place, most) = match (self.behind.is_empty(), number.checked_sub(self.split)) {
            (true, None) => (&mut self.entries, number, self.split),
            (true, Some(_)) => (&mut self.entries, number, self.bound),
            (false, None) => (&mut self.below, number, self.split),
            (false, Some(place)) => (&mut self.behind, place, self.bound - self.split),
        };
        grow(part, place, self.blank, most);
        &mut part[place]
    }
}

/// Writes blank entries up to that of `place`, and some more: `most` in all at the most.
fn grow<T: Copy>(part: &mut Vec<T>, place: usize, blank: T, most: usize) {
    if place >= part.len() {
        let step = (STEP_BYTES / size_of::<T>().max(1)).max(1);
        part.resize((place + 1).next_multiple_of(step).min(most), blank);
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
    fn a_table_is_in_one_piece_if_what_is_below_the_split_is_used_first() {
        let mut column = Column::in_two(0_u8, 3, 10_000);
        (0..3).for_each(|number| column[number] = 1);
        column[3] = 2;
        assert_eq!(column.written()[..5], [1, 1, 1, 2, 0]);
        let mut other = Column::in_two(0_u8, 10_000, 10_003);
        other[0] = 1;
        other[10_000] = 2;
        assert!(other.written().is_empty());
        other[9_999] = 3;
        let read = [0, 1, 9_999, 10_000, 10_001].map(|number| other[number]);
        assert_eq!(read, [1, 0, 3, 2, 0]);
        assert_eq!(other.bytes(), 10_003);
    }

    #[test]
    #[should_panic(expected = "entry 3 of 3")]
    fn there_is_nothing_beyond_the_bound() {
        let mut column = Column::new(0_u8, 3);
        column[3] = 1;
    }
}
