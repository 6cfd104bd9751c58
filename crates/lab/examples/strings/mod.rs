//! Reference strings that several examples measure.

use tidemark_model::traces::SplitMix64;

use crate::measure::fail;

/// References as a program makes them: most to the page before last, few deep in the stack.
pub fn program(references: usize) -> Vec<u64> {
    let mut random = SplitMix64::new(3);
    let mut recent: Vec<u64> = (0..1400).collect();
    let next = |_| {
        let depth = match random.below(1000) {
            0..700 => 2,
            700..900 => 2 + random.below(7),
            900..991 => 2 + random.below(63),
            _ => 2 + random.below(1399),
        };
        let page = recent.remove(depth as usize - 1);
        recent.insert(0, page);
        page
    };
    (0..references).map(next).collect()
}

/// The page numbers in `file`: little-endian, 4 bytes each.
pub fn read_words(file: &str) -> Vec<u64> {
    let bytes = match std::fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) => fail(&format!("`{file}` can't be read: {error}")),
    };
    let (words, _) = bytes.as_chunks();
    words
        .iter()
        .map(|&word| u64::from(u32::from_le_bytes(word)))
        .collect()
}
