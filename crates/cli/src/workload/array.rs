//! The array a workload pages over, and the two phases that touch it.

use std::time::{Duration, Instant};

use super::pattern::{Access, Pattern};
use super::random::mix;

/// Bytes in a page, everywhere in the benchmarks.
pub const PAGE_BYTES: u64 = 4096;
const PAGE_WORDS: usize = 512;
/// Words in a cache line: a read looks at one word of each line of the page.
const LINE_WORDS: usize = 8;

/// What a workload over an array saw, and how long its phases took.
pub struct Passage {
    /// Depends on every word read, and on the order.
    pub checksum: u64,
    /// The first touch of every page.
    pub fill: Duration,
    /// Everything after it.
    pub access: Duration,
    /// How many accesses followed the fill.
    pub accesses: u64,
}

/// Allocates the array as any program does (`calloc`) and follows `pattern` over it.
///
/// The allocation belongs to the measured time; giving the memory back does not.
pub fn follow_on_heap(pattern: Pattern) -> Passage {
    let start = Instant::now();
    let words = pattern.pages as usize * PAGE_WORDS;
    // One page more than needed, so that the array can start on a page boundary: the pages of
    // the pattern are then the pages of the machine.
    let mut memory = vec![0u64; words + PAGE_WORDS];
    let first = memory.as_ptr().align_offset(PAGE_BYTES as usize);
    assert!(
        first < PAGE_WORDS,
        "a page boundary lies within the first page"
    );
    follow(pattern, &mut memory[first..first + words], start)
}

/// Follows `pattern` over `memory`, which holds zeros; `start` is when the work began.
pub fn follow(pattern: Pattern, memory: &mut [u64], start: Instant) -> Passage {
    assert_eq!(memory.len(), pattern.pages as usize * PAGE_WORDS);
    for (page, words) in memory.chunks_exact_mut(PAGE_WORDS).enumerate() {
        fill_page(pattern.seed, page as u64, words);
    }
    let filled = Instant::now();
    let mut checksum = 0u64;
    let mut accesses = 0u64;
    for Access { page, is_write } in pattern.accesses() {
        let begin = page as usize * PAGE_WORDS;
        let words = &mut memory[begin..begin + PAGE_WORDS];
        checksum = fold(checksum, read_page(words));
        if is_write {
            words[checksum as usize % PAGE_WORDS] ^= checksum | 1;
        }
        accesses += 1;
    }
    Passage {
        checksum,
        fill: filled - start,
        access: filled.elapsed(),
        accesses,
    }
}

/// Writes every word of a page, with contents that do not compress.
fn fill_page(seed: u64, page: u64, words: &mut [u64]) {
    let first = mix(seed ^ (page << 20));
    let step = mix(first) | 1;
    for (place, word) in words.iter_mut().enumerate() {
        *word = first.wrapping_add(step.wrapping_mul(place as u64));
    }
}

/// Takes `sum` into `checksum` so that order and repetition count.
fn fold(checksum: u64, sum: u64) -> u64 {
    mix(checksum ^ sum)
}

fn read_page(words: &[u64]) -> u64 {
    words
        .iter()
        .step_by(LINE_WORDS)
        .fold(0u64, |sum, &word| sum.wrapping_add(word))
}

#[cfg(test)]
mod tests {
    use super::super::pattern::Shape;
    use super::*;

    fn checksum(shape: Shape, seed: u64) -> u64 {
        follow_on_heap(Pattern {
            shape,
            pages: 64,
            laps: 2,
            seed,
        })
        .checksum
    }

    #[test]
    fn the_checksum_repeats_and_tells_seeds_and_shapes_apart() {
        assert_eq!(checksum(Shape::Random, 1), checksum(Shape::Random, 1));
        assert_ne!(checksum(Shape::Random, 1), checksum(Shape::Random, 2));
        assert_ne!(checksum(Shape::Sheep, 1), checksum(Shape::Loop, 1));
        let laps = |laps| {
            follow_on_heap(Pattern {
                shape: Shape::Loop,
                pages: 64,
                laps,
                seed: 1,
            })
        };
        assert_ne!(laps(1).checksum, laps(3).checksum);
    }

    #[test]
    fn a_lost_page_changes_the_checksum() {
        let pattern = Pattern {
            shape: Shape::Loop,
            pages: 8,
            laps: 1,
            seed: 1,
        };
        let mut words = vec![0u64; 8 * PAGE_WORDS];
        let whole = follow(pattern, &mut words, Instant::now()).checksum;
        let mut lost = words.clone();
        lost[3 * PAGE_WORDS..4 * PAGE_WORDS].fill(0);
        let again = |memory: &[u64]| {
            memory
                .chunks_exact(PAGE_WORDS)
                .fold(0u64, |sum, page| fold(sum, read_page(page)))
        };
        assert_eq!(again(&words), whole);
        assert_ne!(again(&lost), whole);
    }
}
