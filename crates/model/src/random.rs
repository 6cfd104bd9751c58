//! The source of choices: a seed, or the bytes of a fuzzer.
//!
//! Everything random in this crate asks a [`Choices`], so that a run is named by its seed and a
//! fuzzer can steer the very code that the seeds run.

pub use tidemark_core::random::SplitMix64;

/// A source of choices. The same source gives the same choices.
pub trait Choices {
    /// A number below `bound`, which is not zero.
    fn below(&mut self, bound: u64) -> u64;

    /// Returns true if an event that happens `parts` times in `of` happens now.
    fn chance(&mut self, parts: u64, of: u64) -> bool {
        self.below(of) < parts
    }
}

impl Choices for SplitMix64 {
    fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "a choice needs something to choose from");
        SplitMix64::below(self, bound)
    }
}

/// Choices from bytes, zero after their end.
#[derive(Clone, Debug)]
pub struct Bytes<'a> {
    rest: &'a [u8],
}

impl<'a> Bytes<'a> {
    /// The choices that `bytes` spell.
    pub fn new(bytes: &'a [u8]) -> Bytes<'a> {
        Bytes { rest: bytes }
    }

    /// Returns true if all bytes have been used up.
    pub fn is_spent(&self) -> bool {
        self.rest.is_empty()
    }
}

impl Choices for Bytes<'_> {
    fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "a choice needs something to choose from");
        let wanted = if bound <= 256 { 1 } else { 4 };
        let mut number = 0;
        for _ in 0..wanted {
            let Some((&first, rest)) = self.rest.split_first() else {
                break;
            };
            number = number << 8 | u64::from(first);
            self.rest = rest;
        }
        number % bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_names_one_sequence() {
        let numbers = |seed| {
            let mut random = SplitMix64::new(seed);
            [random.below(1000), random.below(1000), random.below(1000)]
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
    }

    #[test]
    fn bytes_give_zero_after_their_end() {
        let mut bytes = Bytes::new(&[5, 1]);
        assert_eq!(bytes.below(10), 5);
        assert_eq!(bytes.below(10), 1);
        assert!(bytes.is_spent());
        assert_eq!(bytes.below(1_000_000), 0);
    }
}
