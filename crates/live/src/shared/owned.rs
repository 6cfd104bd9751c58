//! The slots of the swap store that a process uses: a bitmap, and another of its parts.
//!
//! The bitmap is as large as the store, and most processes use little of it: who looks for the
//! slots of a process looks at the parts that have had one.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// The number of words of the bitmap of slots a part has.
pub(super) const PART_WORDS: usize = 512;

/// The slots of the swap store that a process uses.
#[derive(Clone, Copy)]
pub(crate) struct Owned<'a> {
    /// A bit for each part of the words that has had a slot.
    pub(super) parts: &'a [AtomicU64],
    /// A bit for each slot.
    pub(super) words: &'a [AtomicU64],
}

impl<'a> Owned<'a> {
    /// Notes that the process uses `slot`.
    pub(crate) fn insert(self, slot: u32) {
        let word = slot as usize / 64;
        self.note_part(word);
        self.words[word].fetch_or(1 << (slot % 64), Release);
    }

    /// Notes that the process does not use `slot` any more, and says whether it did.
    pub(crate) fn remove(self, slot: u32) -> bool {
        let bit = 1u64 << (slot % 64);
        self.words[slot as usize / 64].fetch_and(!bit, AcqRel) & bit != 0
    }

    /// Notes that a slot of `word` is used.
    pub(super) fn note_part(self, word: usize) {
        let part = word / PART_WORDS;
        let (parts, bit) = (&self.parts[part / 64], 1 << (part % 64));
        if parts.load(Relaxed) & bit == 0 {
            parts.fetch_or(bit, AcqRel);
        }
    }

    /// The words of all parts that have had a slot, in order.
    pub(super) fn words_used(self) -> impl Iterator<Item = usize> + 'a {
        let parts = self.parts.iter().enumerate();
        let parts = parts.flat_map(|(at, parts)| {
            ones(parts.load(Acquire)).map(move |bit| (at * 64 + bit) * PART_WORDS)
        });
        let words = self.words.len();
        parts.flat_map(move |first| first..words.min(first + PART_WORDS))
    }
}

/// The number of words a process's parts and slots have.
pub(super) fn owned_words(slots: usize) -> (usize, usize) {
    let words = slots.div_ceil(64);
    (words.div_ceil(PART_WORDS).div_ceil(64), words)
}

/// The positions of the ones in `bits`, lowest first.
pub(super) fn ones(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if bits == 0 {
            return None;
        }
        let bit = bits.trailing_zeros() as usize;
        bits &= bits - 1;
        Some(bit)
    })
}
