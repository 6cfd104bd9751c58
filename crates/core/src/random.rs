//! Numbers that look random and are the same for the same seed, on every machine.
//!
//! The one source of them: policies, simulated disks, made-up traces, workloads and tests draw from
//! it. Results are kept by seed, so that no sequence may ever change.

/// The step from one state to the next: 2^64 over the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): one addition and a mix for each number.
#[derive(Clone, Debug)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// Starts at `seed`.
    pub fn new(seed: u64) -> SplitMix64 {
        SplitMix64 { state: seed }
    }

    /// Any number.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mix(self.state)
    }

    /// A number below `limit`, which is at least 1. The bias of the remainder is of no consequence
    /// for limits far below 2^64.
    #[inline]
    pub fn below(&mut self, limit: u64) -> u64 {
        self.draw() % limit
    }

    /// A number below `limit`, small ones more often than large ones.
    pub fn skewed_below(&mut self, limit: u64) -> u64 {
        let top = self.below(limit);
        self.below(top + 1)
    }
}

/// Spreads each bit of `word` over all: the finishing step of SplitMix64. Zero stays zero.
#[inline(always)]
pub fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        let mut random = SplitMix64::new(1_234_567);
        let drawn = [random.draw(), random.draw(), random.draw()];
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        assert_eq!(drawn, published);
    }
}
