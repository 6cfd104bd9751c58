//! Sets of pages: a word of bits for each 64 neighbours.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A set of page numbers.
///
/// # Bounds
/// Memory: about 40 bytes for each group of 64 neighbours with a page in the set.
#[derive(Debug, Default)]
pub struct PageSet {
    /// Bits of pages by their number divided by 64.
    words: HashMap<u64, u64, BuildHasherDefault<Mixer>>,
    pages: u64,
}

impl PageSet {
    /// Puts `page` into the set.
    #[inline]
    pub fn insert(&mut self, page: u64) {
        let word = self.words.entry(page / 64).or_default();
        let bit = 1 << (page % 64);
        self.pages += u64::from(*word & bit == 0);
        *word |= bit;
    }

    /// Puts in every page of `other`.
    pub fn unite(&mut self, other: &PageSet) {
        for (&group, &bits) in &other.words {
            let word = self.words.entry(group).or_default();
            self.pages += u64::from((bits & !*word).count_ones());
            *word |= bits;
        }
    }

    /// The number of pages it has.
    pub fn count(&self) -> u64 {
        self.pages
    }
}

/// A hash of one number: a product whose high half is mixed into the low one. The standard one,
/// which withstands numbers chosen to collide, takes several times as long; such numbers could only
/// waste the reader's time.
#[derive(Default)]
struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        // 2^64 over the golden ratio.
        let product = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = product ^ (product >> 32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_set_has_each_page_once() {
        let pages = (0..5000_u64).map(|at| (at * at % 1000) << (at % 7 * 8));
        let (mut some, mut others) = (PageSet::default(), PageSet::default());
        let mut known = BTreeSet::new();
        for (at, page) in pages.enumerate() {
            let set = if at % 3 == 0 { &mut others } else { &mut some };
            set.insert(page);
            set.insert(page);
            known.insert(page);
        }
        assert!(some.count() < known.len() as u64);
        some.unite(&others);
        assert_eq!(some.count(), known.len() as u64);
        some.unite(&others);
        assert_eq!(some.count(), known.len() as u64);
    }
}
