//! FIFO and CLOCK at up to 64 sizes of memory in one walk over the string.
//!
//! Neither is a stack policy: each size must be simulated. But a hit changes nothing, or one bit;
//! so the sizes share one word per page, with a bit for each size that says whether the page is
//! resident there. A page that is resident in all of them costs one look. Counts equal those of
//! the core's `fifo` and `clock`, where a page's bit is clear when it comes.

use rayon::prelude::*;

/// The number of references that miss under FIFO, for each of the sizes `frames`. Pages are
/// numbered below `page_count`.
///
/// # Panics
/// If a size is 0 or a page's number is too large.
pub fn count_fifo_misses(pages: &[u32], page_count: u32, frames: &[u32]) -> Vec<u64> {
    count_misses::<false>(pages, page_count, frames)
}

/// The number of references that miss under CLOCK, for each of the sizes `frames`. Pages are
/// numbered below `page_count`.
///
/// # Panics
/// If a size is 0 or a page's number is too large.
pub fn count_clock_misses(pages: &[u32], page_count: u32, frames: &[u32]) -> Vec<u64> {
    count_misses::<true>(pages, page_count, frames)
}

/// Sizes that share a walk: the bits of a word.
const SIZES: usize = 64;

fn count_misses<const LOOKS: bool>(pages: &[u32], page_count: u32, frames: &[u32]) -> Vec<u64> {
    let share = frames.len().div_ceil(rayon::current_num_threads());
    let walks = frames.par_chunks(share.clamp(1, SIZES));
    walks
        .flat_map_iter(|sizes| Walk::new(page_count, sizes).run::<LOOKS>(pages))
        .collect()
}

/// One walk over the string.
struct Walk {
    /// For each page, the sizes at which it is resident.
    resident: Vec<u64>,
    /// For each page, the sizes at which its reference bit is set.
    referenced: Vec<u64>,
    memories: Vec<Memory>,
}

/// The memory of one size: a ring of frames.
struct Memory {
    frames: usize,
    /// The page of each frame that was ever used.
    ring: Vec<u32>,
    /// The oldest frame, once all are used.
    hand: usize,
    misses: u64,
}

impl Walk {
    fn new(page_count: u32, sizes: &[u32]) -> Walk {
        let memory = |&frames: &u32| {
            assert!(frames > 0, "`frames` is 0; needs 1");
            Memory {
                frames: frames as usize,
                ring: Vec::with_capacity(frames.min(page_count) as usize),
                hand: 0,
                misses: 0,
            }
        };
        Walk {
            resident: vec![0; page_count as usize],
            referenced: vec![0; page_count as usize],
            memories: sizes.iter().map(memory).collect(),
        }
    }

    fn run<const LOOKS: bool>(mut self, pages: &[u32]) -> Vec<u64> {
        let all = u64::MAX >> (SIZES - self.memories.len());
        for &page in pages {
            let at = page as usize;
            let resident = self.resident[at];
            if LOOKS {
                self.referenced[at] |= resident;
            }
            if resident != all {
                self.load::<LOOKS>(page, all & !resident);
            }
        }
        self.memories
            .into_iter()
            .map(|memory| memory.misses)
            .collect()
    }

    /// Brings `page` to memory at each size in `missing`.
    fn load<const LOOKS: bool>(&mut self, page: u32, missing: u64) {
        let mut left = missing;
        while left != 0 {
            let bit = left & left.wrapping_neg();
            left ^= bit;
            let memory = &mut self.memories[bit.trailing_zeros() as usize];
            memory.misses += 1;
            if memory.ring.len() < memory.frames {
                memory.ring.push(page);
                continue;
            }
            if LOOKS {
                memory.pass_referenced(&mut self.referenced, bit);
            }
            let oldest = std::mem::replace(&mut memory.ring[memory.hand], page);
            self.resident[oldest as usize] &= !bit;
            memory.advance();
        }
        self.resident[page as usize] |= missing;
        if LOOKS {
            self.referenced[page as usize] &= !missing;
        }
    }
}

impl Memory {
    /// Moves the hand to the first page whose `bit` is not set, and clears those it passes.
    fn pass_referenced(&mut self, referenced: &mut [u64], bit: u64) {
        loop {
            let word = &mut referenced[self.ring[self.hand] as usize];
            if *word & bit == 0 {
                return;
            }
            *word &= !bit;
            self.advance();
        }
    }

    fn advance(&mut self) {
        self.hand += 1;
        if self.hand == self.frames {
            self.hand = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::references::References;
    use crate::analysis::simulate::{Job, MachineKind, simulate_all};
    use proptest::prelude::*;

    fn count_by_core(policy: &str, references: &References, sizes: &[u32]) -> Vec<u64> {
        let job = |&frames: &u32| Job {
            policy,
            knobs: Vec::new(),
            seed: 0,
            frames,
            eyes: MachineKind::Bits,
        };
        let jobs: Vec<Job<'_>> = sizes.iter().map(job).collect();
        let costs = simulate_all(references, &jobs).unwrap();
        costs.iter().map(|cost| cost.misses).collect()
    }

    proptest! {
        #[test]
        fn they_are_the_queues_of_the_core(
            words in prop::collection::vec(prop_oneof![0..10_u64, 0..100_u64], 0..2000),
            mut sizes in prop::collection::vec(1..120_u32, 0..100),
        ) {
            let references = References::from_pages(words);
            sizes.push(u32::MAX);
            let (pages, page_count) = (&references.pages, references.page_count);
            let fifo = count_fifo_misses(pages, page_count, &sizes);
            prop_assert_eq!(fifo, count_by_core("fifo", &references, &sizes));
            let clock = count_clock_misses(pages, page_count, &sizes);
            prop_assert_eq!(clock, count_by_core("clock", &references, &sizes));
        }
    }

    #[test]
    fn belady_s_string_misses_more_with_more_frames() {
        let pages = [0, 1, 2, 3, 0, 1, 4, 0, 1, 2, 3, 4];
        assert_eq!(count_fifo_misses(&pages, 5, &[3, 4]), [9, 10]);
        assert!(count_clock_misses(&pages, 5, &[]).is_empty());
    }
}
