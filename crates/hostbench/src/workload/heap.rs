//! Pages as those of a dictionary of Python: small records, which LZ4 packs to a quarter of their
//! size.
//!
//! Of two records, one is a string object (count of references, type, length, hash, and its decimal
//! number three times) and the other an entry of a table (pointers to a key and a value, which lie
//! near each other, and small numbers). Every word follows from its place, so that a page that came
//! back can be checked without another copy of it.

use tidemark_core::random::mix;

/// Words in a page.
pub const PAGE_WORDS: usize = 512;
/// Words in a record.
const RECORD_WORDS: usize = 8;
/// The address of a type object, and the first address of the heap.
const TYPE: u64 = 0x7f3a_91c0_5e40;
const HEAP: u64 = 0x7f3a_6000_0000;

/// The word at a place of a page.
pub fn word(page: u32, place: usize) -> u64 {
    let record = u64::from(page) * (PAGE_WORDS / RECORD_WORDS) as u64;
    let record = record + (place / RECORD_WORDS) as u64;
    let object = record / 2;
    match (record % 2, place % RECORD_WORDS) {
        (0, 0) => 1,
        (0, 1) => TYPE,
        (0, 2) => 24,
        (0, 3) => mix(object + 1),
        (0, 4) => 0xe4,
        (0, _) => digits(object),
        (_, 0 | 1) => HEAP + object * 64 * (place % RECORD_WORDS + 1) as u64,
        (_, 2) => object,
        (_, 3) => TYPE + 0x340,
        _ => 0,
    }
}

/// Fills a page.
pub fn fill(page: u32, bytes: &mut [u8]) {
    for (place, bytes) in bytes.chunks_exact_mut(size_of::<u64>()).enumerate() {
        bytes.copy_from_slice(&word(page, place).to_ne_bytes());
    }
}

/// The last eight decimal digits of a number, as text in a word.
fn digits(number: u64) -> u64 {
    let mut left = number;
    let mut text = [0; 8];
    for digit in text.iter_mut().rev() {
        *digit = b'0' + (left % 10) as u8;
        left /= 10;
    }
    u64::from_ne_bytes(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_differ_and_hold_their_words() {
        let page = |number| {
            let mut bytes = vec![0; PAGE_WORDS * 8];
            fill(number, &mut bytes);
            bytes
        };
        assert_ne!(page(0), page(1));
        let word_at = |bytes: &[u8], place: usize| {
            u64::from_ne_bytes(bytes[place * 8..][..8].try_into().unwrap())
        };
        assert_eq!(word_at(&page(3), 77), word(3, 77));
        assert_eq!(&page(0)[16 * 8 + 5 * 8..][..8], b"00000001");
    }
}
