//! A set of small numbers that finds runs: the free frames and the free slots live in one each.
//!
//! Two levels: a bit for each number, and above it a bit for each word that is not empty, so that
//! a nearly empty set is searched 4096 numbers at a step.

use alloc::vec;
use alloc::vec::Vec;

use crate::collections::column::Column;

const WORD: usize = 64;
/// The number of words with members a search for a full-length run looks at before it settles for
/// less.
const WORDS_TRIED: usize = 32;

/// A set of numbers below a fixed bound.
pub struct Bitmap {
    words: Column<u64>,
    summary: Vec<u64>,
    bound: usize,
    count: usize,
    /// The number at which the next search starts: just past the last run taken.
    hint: usize,
}

impl Bitmap {
    /// An empty set of numbers below `bound`.
    pub fn new(bound: usize) -> Bitmap {
        let words = bound.div_ceil(WORD);
        Bitmap {
            words: Column::new(0, words),
            summary: vec![0; words.div_ceil(WORD)],
            bound,
            count: 0,
            hint: 0,
        }
    }

    /// Adds `number`, which must not be in the set.
    pub fn insert(&mut self, number: usize) {
        assert!(number < self.bound);
        let (word, bit) = (number / WORD, number % WORD);
        assert!(self.words[word] & (1 << bit) == 0);
        self.words[word] |= 1 << bit;
        self.summary[word / WORD] |= 1 << (word % WORD);
        self.count += 1;
    }

    /// Takes `number`, which must be in the set, out of it.
    pub fn remove(&mut self, number: usize) {
        let (word, bit) = (number / WORD, number % WORD);
        assert!(self.words[word] & (1 << bit) != 0);
        self.words[word] &= !(1 << bit);
        if self.words[word] == 0 {
            self.summary[word / WORD] &= !(1 << (word % WORD));
        }
        self.count -= 1;
    }

    /// Takes out a run of consecutive members, at least one and at most `want`, and says where it
    /// starts and how long it is. Prefers a run of full length near the last one taken.
    pub fn take_run(&mut self, want: usize) -> Option<(usize, usize)> {
        let (first, length) = self.find_run(want)?;
        for number in first..first + length {
            self.remove(number);
        }
        self.hint = first + length;
        Some((first, length))
    }

    /// Takes out the first member from `at` on, or else the first of all, and those right behind
    /// it: at most `want`. Says where they start and how many they are.
    pub fn take_from(&mut self, at: usize, want: usize) -> Option<(usize, usize)> {
        let first = self.find_from(at).or_else(|| self.find_from(0))?;
        let length = self.length_at(first, want);
        (first..first + length).for_each(|number| self.remove(number));
        Some((first, length))
    }

    /// Returns true if [`take_run`](Self::take_run) would find a run of full length.
    pub fn has_run(&self, want: usize) -> bool {
        self.count >= want
            && self
                .find_run(want)
                .is_some_and(|(_, length)| length == want)
    }

    /// The first `size` members side by side, at a multiple of `size`, from `from` on.
    pub fn find_block(&self, size: usize, from: usize) -> Option<usize> {
        let mut at = from;
        while let Some(member) = self.find_from(at) {
            let first = member - member % size;
            if first >= from && self.length_at(first, size) == size {
                return Some(first);
            }
            at = first + size;
        }
        None
    }

    /// Returns true if `number` is in the set.
    pub fn contains(&self, number: usize) -> bool {
        self.words[number / WORD] & (1 << (number % WORD)) != 0
    }

    /// The number of numbers in the set.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns true if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn find_run(&self, want: usize) -> Option<(usize, usize)> {
        let mut best: Option<(usize, usize)> = None;
        let mut at = if self.hint < self.bound { self.hint } else { 0 };
        for _ in 0..WORDS_TRIED {
            let Some(first) = self.find_from(at).or_else(|| self.find_from(0)) else {
                break;
            };
            let length = self.length_at(first, want);
            if length == want {
                return Some((first, length));
            }
            if best.is_none_or(|(_, longest)| length > longest) {
                best = Some((first, length));
            }
            at = first + length;
        }
        best
    }

    /// The least member that is at least `at`.
    fn find_from(&self, at: usize) -> Option<usize> {
        if at >= self.bound {
            return None;
        }
        let word = at / WORD;
        let rest = self.words[word] & (u64::MAX << (at % WORD));
        if rest != 0 {
            return Some(word * WORD + rest.trailing_zeros() as usize);
        }
        let next = word + 1;
        let mut group = next / WORD;
        let mut mask = u64::MAX << (next % WORD);
        while group < self.summary.len() {
            let words = self.summary[group] & mask;
            if words != 0 {
                let word = group * WORD + words.trailing_zeros() as usize;
                return Some(word * WORD + self.words[word].trailing_zeros() as usize);
            }
            group += 1;
            mask = u64::MAX;
        }
        None
    }

    fn length_at(&self, first: usize, want: usize) -> usize {
        let mut length = 0;
        while length < want {
            let at = first + length;
            if at >= self.bound {
                break;
            }
            let ones = (!(self.words[at / WORD] >> (at % WORD))).trailing_zeros() as usize;
            let ones = ones.min(WORD - at % WORD);
            length += ones;
            if ones < WORD - at % WORD || ones == 0 {
                break;
            }
        }
        length.min(want)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_full_length_is_preferred_to_a_nearer_short_one() {
        let mut set = Bitmap::new(300);
        set.insert(3);
        (100..164).for_each(|number| set.insert(number));
        assert_eq!(set.take_run(64), Some((100, 64)));
        assert_eq!(set.take_run(64), Some((3, 1)));
        assert_eq!(set.take_run(1), None);
        assert!(set.is_empty());
    }

    #[test]
    fn runs_cross_words_and_stop_at_holes_and_at_the_bound() {
        let mut set = Bitmap::new(130);
        (0..130).for_each(|number| set.insert(number));
        set.remove(70);
        assert_eq!(set.take_run(100), Some((0, 70)));
        assert_eq!(set.take_run(100), Some((71, 59)));
        assert_eq!(set.take_run(1), None);
    }

    #[test]
    fn a_block_lies_at_a_multiple_of_its_size_and_within_the_bound() {
        let mut set = Bitmap::new(10);
        (1..10).for_each(|number| set.insert(number));
        assert_eq!(set.find_block(4, 0), Some(4));
        assert_eq!(set.find_block(3, 0), Some(3));
        assert_eq!(set.find_block(4, 5), None);
        set.remove(6);
        assert_eq!(set.find_block(4, 0), None);
        assert_eq!(set.find_block(1, 6), Some(7));
    }

    #[test]
    fn a_sparse_set_is_found_far_away() {
        let mut set = Bitmap::new(1 << 20);
        set.insert((1 << 20) - 1);
        assert_eq!(set.take_run(8), Some(((1 << 20) - 1, 1)));
    }
}
