//! Tables by page, for what is looked up at every reference of a long trace: page numbers come from
//! us and not from an enemy, and so are hashed in a few instructions.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A map from page numbers.
pub(crate) type PageMap<V> = HashMap<u64, V, BuildHasherDefault<PageHasher>>;
/// A set of page numbers.
pub(crate) type PageSet = HashSet<u64, BuildHasherDefault<PageHasher>>;

/// Hashes by multiplication (Knuth, The Art of Computer Programming 3, 6.4).
#[derive(Default)]
pub(crate) struct PageHasher(u64);

impl Hasher for PageHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u64(&mut self, number: u64) {
        // The high bits of the product are the good ones, and tables take the low ones, too.
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
}
