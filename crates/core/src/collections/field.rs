//! Fields: small values side by side in one word, of which a table has many.

/// Some bits of a word, beside each other.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    first: u32,
    bits: u32,
}

impl Field {
    /// The field of `bits` bits from bit `first` on.
    pub const fn new(first: u32, bits: u32) -> Field {
        assert!(bits > 0 && bits < u64::BITS && first + bits <= u64::BITS);
        Field { first, bits }
    }

    /// The largest value that it can have.
    pub const fn most(self) -> u64 {
        (1 << self.bits) - 1
    }

    /// Its value in `word`.
    #[inline]
    pub const fn get(self, word: u64) -> u64 {
        word >> self.first & self.most()
    }

    /// The word that differs from `word` in this field alone, which has `value`.
    ///
    /// # Panics
    /// If the value has more bits.
    #[inline]
    pub fn put(self, word: u64, value: u64) -> u64 {
        assert!(
            value <= self.most(),
            "{value} has more than {} bits",
            self.bits
        );
        word & !(self.most() << self.first) | value << self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_changed_and_its_neighbours_are_not() {
        let field = Field::new(9, 3);
        let word = field.put(u64::MAX, 5);
        assert_eq!((field.get(word), field.most()), (5, 7));
        assert_eq!(field.put(word, 7), u64::MAX);
        assert_eq!(Field::new(63, 1).put(0, 1), 1 << 63);
    }

    #[test]
    #[should_panic(expected = "8 has more than 3 bits")]
    fn a_value_that_is_too_large_is_refused() {
        Field::new(9, 3).put(0, 8);
    }
}
