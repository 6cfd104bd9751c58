//! words FILE: counts the words of a text, and says which are the most frequent.
#![no_std]
#![no_main]

extern crate alloc;

mod library;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

/// The number of words that are named.
const NAMED_MAX: usize = 5;

fn main() -> i32 {
    let Some(text) = library::read_named(1) else {
        say!("words: needs a file");
        return 2;
    };
    let words = text.split(|byte| !byte.is_ascii_alphanumeric());
    let mut counts: BTreeMap<&[u8], u64> = BTreeMap::new();
    for word in words.filter(|word| !word.is_empty()) {
        *counts.entry(word).or_default() += 1;
    }
    let total: u64 = counts.values().sum();
    say!("{total} words, {} of them different", counts.len());
    let mut ranked: Vec<(&[u8], u64)> = counts.into_iter().collect();
    // Of those that are as frequent, the first by the alphabet.
    ranked.sort_by_key(|&(_, count)| core::cmp::Reverse(count));
    for (word, count) in ranked.into_iter().take(NAMED_MAX) {
        say!("{count} {}", String::from_utf8_lossy(word));
    }
    0
}
