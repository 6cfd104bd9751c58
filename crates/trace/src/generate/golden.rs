//! The traces with published miss counts, page for page: what a simulator is checked against.

use super::swept;
use tidemark_core::random::SplitMix64;

/// A trace with published miss counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Golden {
    /// 150 pages in a loop, 100 times.
    Loop,
    /// 50 hot pages; every eleventh reference is to a page that never comes back.
    ScanHot,
    /// 1000 pages, low numbers more often.
    Skew,
    /// 20 sets of 80 pages, one after the other.
    Phase,
    /// Four programs that go forward and backward over 40 pages each, and take turns.
    Sheep,
    /// A loop over 300 pages between references to 500 others, low numbers more often.
    Mixed,
}

impl Golden {
    /// All golden traces.
    pub const ALL: [Golden; 6] = [
        Golden::Loop,
        Golden::ScanHot,
        Golden::Skew,
        Golden::Phase,
        Golden::Sheep,
        Golden::Mixed,
    ];

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Golden::Loop => "loop",
            Golden::ScanHot => "scanhot",
            Golden::Skew => "skew",
            Golden::Phase => "phase",
            Golden::Sheep => "sheep",
            Golden::Mixed => "mixed",
        }
    }

    /// The frames its miss counts are published for.
    pub const fn frames(self) -> u32 {
        match self {
            Golden::Mixed => 200,
            Golden::Loop | Golden::ScanHot | Golden::Skew | Golden::Phase | Golden::Sheep => 100,
        }
    }

    /// The seed of its random numbers; 0 where it has none.
    pub const fn seed(self) -> u64 {
        match self {
            Golden::Loop | Golden::Sheep => 0,
            Golden::ScanHot => 1,
            Golden::Skew => 2,
            Golden::Phase => 3,
            Golden::Mixed => 4,
        }
    }

    /// The number of references of the trace.
    pub const fn references(self) -> u64 {
        match self {
            Golden::Loop => 15_000,
            Golden::ScanHot => 110_000,
            Golden::Phase => 100_000,
            Golden::Sheep => 16_000,
            Golden::Skew | Golden::Mixed => 200_000,
        }
    }

    /// Its pages.
    pub fn pages(self) -> Box<dyn Iterator<Item = u64>> {
        let mut random = SplitMix64::new(self.seed());
        let all = 0..self.references();
        match self {
            Golden::Loop => Box::new(all.map(|at| at % 150)),
            Golden::ScanHot => Box::new(all.map(move |at| match at % 11 {
                10 => 1_000_000 + at / 11,
                _ => random.below(50),
            })),
            Golden::Skew => Box::new(all.map(move |_| random.skewed_below(1000))),
            Golden::Phase => Box::new(all.map(move |at| at / 5000 * 80 + random.below(80))),
            Golden::Sheep => Box::new(all.map(|at| {
                let (turn, place) = (at / 40, at % 40);
                let (round, program) = (turn / 4, turn % 4);
                program * 40 + swept(round * 40 + place, 40)
            })),
            Golden::Mixed => Box::new(all.map(move |at| match at % 2 {
                0 => random.skewed_below(500),
                _ => 10_000 + at / 2 % 300,
            })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FNV-1a over whole page numbers.
    fn fingerprint(pages: &[u64]) -> u64 {
        pages.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &page| {
            (hash ^ page).wrapping_mul(0x0100_0000_01b3)
        })
    }

    #[test]
    fn they_are_the_published_ones() {
        let published: [(&[u64], u64); 6] = [
            (&[0, 1, 2, 3, 4, 5], 0xc33e_6a66_e034_a00d),
            (&[15, 19, 40, 35, 11, 48], 0x8db9_2ed8_3710_ba3c),
            (&[104, 484, 319, 59, 492, 805], 0xdc9b_c138_d0dc_f6a6),
            (&[13, 41, 49, 47, 6, 55], 0x2fc3_965f_703a_81c0),
            (&[0, 1, 2, 3, 4, 5], 0xbcbe_80a4_f07c_9ce5),
            (
                &[19, 10_000, 230, 10_001, 25, 10_002],
                0xc1b0_3c38_07d7_95fa,
            ),
        ];
        for (golden, (first, hash)) in Golden::ALL.into_iter().zip(published) {
            let pages: Vec<u64> = golden.pages().collect();
            assert_eq!(pages[..6], *first, "{golden:?}");
            assert_eq!(pages.len() as u64, golden.references(), "{golden:?}");
            assert_eq!(fingerprint(&pages), hash, "{golden:?}");
        }
    }
}
