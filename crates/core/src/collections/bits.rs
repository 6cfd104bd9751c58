//! Bits: one answer, yes or no, about each of many frames.
//!
//! Policies ask about frames all over memory. The answers about a hundred thousand of them fit
//! into the nearest cache when each is a bit, and not when each is an entry of a table.
//!
//! [`Bitmap`](crate::collections::bitmap::Bitmap) is for sets that are searched for runs: it keeps
//! a summary and a count at each change, and what is added must not be there.

use crate::collections::column::Column;

const WORD: usize = u64::BITS as usize;

/// A bit for each number below a fixed bound.
pub(crate) struct Bits {
    words: Column<u64>,
}

impl Bits {
    /// All clear, for numbers below `bound`.
    pub(crate) fn new(bound: usize) -> Bits {
        Bits {
            words: Column::new(0, bound.div_ceil(WORD)),
        }
    }

    /// Makes the bit of `number` say `is_set`.
    #[inline]
    pub(crate) fn set(&mut self, number: usize, is_set: bool) {
        let bit = number % WORD;
        let word = &mut self.words[number / WORD];
        *word = *word & !(1 << bit) | u64::from(is_set) << bit;
    }

    /// Returns true if the bit of `number` is set; it is clear afterwards.
    #[inline]
    pub(crate) fn take(&mut self, number: usize) -> bool {
        let was_set = self.get(number);
        if was_set {
            self.set(number, false);
        }
        was_set
    }

    /// Returns true if the bit of `number` is set. One that was never written is not.
    #[inline]
    pub(crate) fn get(&self, number: usize) -> bool {
        let word = self.words.written().get(number / WORD);
        word.is_some_and(|word| word >> (number % WORD) & 1 != 0)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn each_bit_stands_for_itself() {
        let mut bits = Bits::new(130);
        for number in [0, 63, 64, 129] {
            bits.set(number, true);
        }
        bits.set(63, false);
        assert!(bits.take(64));
        assert!(!bits.take(64));
        let set: Vec<usize> = (0..130).filter(|&number| bits.get(number)).collect();
        assert_eq!(set, [0, 129]);
    }
}
