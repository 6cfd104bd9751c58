//! Made-up reference strings: the same numbers everywhere, from SplitMix64 and a seed.

pub use tidemark_core::random::SplitMix64;

/// A reference string with the memory it is meant for.
pub struct Trace {
    /// The name.
    pub name: &'static str,
    /// The frames it is meant for.
    pub frames: u32,
    /// The pages, in the order of their use.
    pub pages: Vec<u64>,
}

/// The traces with published miss counts.
pub fn golden() -> [Trace; 6] {
    [
        Trace {
            name: "LOOP",
            frames: 100,
            pages: looping(150, 100),
        },
        Trace {
            name: "SCANHOT",
            frames: 100,
            pages: hot_with_scan(),
        },
        Trace {
            name: "SKEW",
            frames: 100,
            pages: skewed(2, 1000, 200_000),
        },
        Trace {
            name: "PHASE",
            frames: 100,
            pages: phases(3, 20, 80, 5000),
        },
        Trace {
            name: "SHEEP",
            frames: 100,
            pages: sheep(4, 40, 50),
        },
        Trace {
            name: "MIXED",
            frames: 200,
            pages: mixed(),
        },
    ]
}

/// `pages` pages in order, over and over.
pub fn looping(pages: u64, rounds: u64) -> Vec<u64> {
    (0..rounds).flat_map(|_| 0..pages).collect()
}

/// Pages below `limit`, small numbers more often.
pub fn skewed(seed: u64, limit: u64, references: u64) -> Vec<u64> {
    let mut random = SplitMix64::new(seed);
    (0..references)
        .map(|_| random.skewed_below(limit))
        .collect()
}

/// Pages below `limit`, all equally often.
pub fn uniform(seed: u64, limit: u64, references: u64) -> Vec<u64> {
    let mut random = SplitMix64::new(seed);
    (0..references).map(|_| random.below(limit)).collect()
}

/// Zipf's law with exponent 1 over `pages` pages in shuffled order: the page of rank r is used a
/// r-th as often as the first.
pub fn zipf(seed: u64, pages: u64, references: u64) -> Vec<u64> {
    let mut random = SplitMix64::new(seed);
    let mut order: Vec<u64> = (0..pages).collect();
    for at in (1..pages).rev() {
        order.swap(at as usize, random.below(at + 1) as usize);
    }
    let add = |sum: &mut u64, rank: u64| {
        *sum += (1 << 40) / rank;
        Some(*sum)
    };
    let sums: Vec<u64> = (1..=pages).scan(0, add).collect();
    let all = sums[sums.len() - 1];
    (0..references)
        .map(|_| {
            let number = random.below(all);
            order[sums.partition_point(|&sum| sum <= number)]
        })
        .collect()
}

/// `count` working sets of `pages` pages each, one after the other.
pub fn phases(seed: u64, count: u64, pages: u64, references: u64) -> Vec<u64> {
    let mut random = SplitMix64::new(seed);
    (0..count)
        .flat_map(|phase| (0..references).map(move |_| phase * pages))
        .map(|first| first + random.below(pages))
        .collect()
}

/// `programs` programs of `pages` pages each, which take turns after as many references, and go
/// forward and backward over their memory `rounds` times.
pub fn sheep(programs: u64, pages: u64, rounds: u64) -> Vec<u64> {
    let turn = move |turn: u64, program: u64| {
        (0..pages).map(move |at| {
            program * pages
                + if turn.is_multiple_of(2) {
                    at
                } else {
                    pages - 1 - at
                }
        })
    };
    let turns = (0..2 * rounds).flat_map(move |at| (0..programs).map(move |program| (at, program)));
    turns.flat_map(|(at, program)| turn(at, program)).collect()
}

/// FNV-1a over whole page numbers: tells whether a generator makes the published trace.
pub fn fingerprint(pages: &[u64]) -> u64 {
    pages.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &page| {
        (hash ^ page).wrapping_mul(0x0100_0000_01b3)
    })
}

fn hot_with_scan() -> Vec<u64> {
    let mut random = SplitMix64::new(1);
    let mut fresh = 1_000_000..;
    (0..110_000)
        .map(|at| match at % 11 {
            10 => fresh.next().expect("the scan has no end"),
            _ => random.below(50),
        })
        .collect()
}

fn mixed() -> Vec<u64> {
    let mut random = SplitMix64::new(4);
    (0..200_000)
        .map(|at| match at % 2 {
            0 => random.skewed_below(500),
            _ => 10_000 + at / 2 % 300,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_used_page_of_zipf_is_used_twice_as_often_as_the_next() {
        let mut uses = [0_u64; 50];
        zipf(1, 50, 100_000)
            .iter()
            .for_each(|&page| uses[page as usize] += 1);
        uses.sort_unstable_by(|a, b| b.cmp(a));
        // One in 4.5 is for the first; the sum of 1/r up to 50 is that.
        assert!((21_500..22_900).contains(&uses[0]), "{uses:?}");
        assert!((10_600..11_600).contains(&uses[1]), "{uses:?}");
        assert!(uses[49] > 300 && uses[49] < 600, "{uses:?}");
    }

    #[test]
    fn the_generators_make_the_published_traces() {
        let expected: [(&str, &[u64], usize, u64); 6] = [
            ("LOOP", &[0, 1, 2, 3, 4, 5], 15_000, 0xc33e_6a66_e034_a00d),
            (
                "SCANHOT",
                &[15, 19, 40, 35, 11, 48],
                110_000,
                0x8db9_2ed8_3710_ba3c,
            ),
            (
                "SKEW",
                &[104, 484, 319, 59, 492, 805],
                200_000,
                0xdc9b_c138_d0dc_f6a6,
            ),
            (
                "PHASE",
                &[13, 41, 49, 47, 6, 55],
                100_000,
                0x2fc3_965f_703a_81c0,
            ),
            ("SHEEP", &[0, 1, 2, 3, 4, 5], 16_000, 0xbcbe_80a4_f07c_9ce5),
            (
                "MIXED",
                &[19, 10_000, 230, 10_001, 25, 10_002],
                200_000,
                0xc1b0_3c38_07d7_95fa,
            ),
        ];
        for (trace, (name, first, length, hash)) in golden().iter().zip(expected) {
            assert_eq!(trace.name, name);
            assert_eq!(trace.pages[..6], *first, "{name}");
            assert_eq!(trace.pages.len(), length, "{name}");
            assert_eq!(fingerprint(&trace.pages), hash, "{name}");
        }
    }
}
