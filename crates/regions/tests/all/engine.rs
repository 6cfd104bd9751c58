//! Engines that tests start, and the ranges that they read and write.

use std::ops::Range;

use tidemark_core::random::SplitMix64;
use tidemark_regions::{Builder, Engine, Error};
use tidemark_testing::permitted;

const PAGE: u64 = 4096;

/// An engine, unless the kernel does not permit one.
pub fn start(settings: Builder) -> Option<Engine> {
    permitted(settings.start(), Error::is_refusal)
}

/// A range at random within `bytes`, of some pages at most.
pub fn range(random: &mut SplitMix64, bytes: usize) -> Range<usize> {
    let start = random.below(bytes as u64) as usize;
    start..(start + random.below(5 * PAGE) as usize).min(bytes)
}
