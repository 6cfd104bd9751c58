//! Reference strings: which page of the array a workload touches, in which order.
//!
//! One generator serves two readers: the measured program follows it over real memory, and the
//! optimum is computed from the same string. So the two can't drift apart.
//!
//! Every string starts with the fill: each page once, upwards, written. What follows depends on
//! the [`Shape`] and, where chance comes in, on the seed alone.

use super::random::{Random, Zipf};

/// The order in which a workload goes over its array after the fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Shape {
    /// Forward and then backward over everything, `laps` times. Reads.
    Sheep,
    /// Forward over everything, `laps` times with one lap by default: pure streaming. Reads.
    Scan,
    /// Forward over everything, again and again: more than memory, so that recency is no help.
    Loop,
    /// Uniformly random pages; every second access writes.
    Random,
    /// Pages by a Zipf law (exponent 0.99), hot pages scattered; every second access writes.
    Zipf,
    /// Eight phases, each at random over its own quarter of the array, half of it shared with the
    /// phase before; every second access writes.
    Phases,
}

/// The number of phases of [`Shape::Phases`].
const PHASES: u64 = 8;

/// One reference: a page of the array, and whether it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The page, counted from the start of the array.
    pub page: u32,
    /// True if the access changes the page.
    pub is_write: bool,
}

/// A reference string, as far as it is known before the program runs: all of it.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    /// The order.
    pub shape: Shape,
    /// The number of pages of the array.
    pub pages: u32,
    /// The number of laps: passes over the array, or accesses as a multiple of its pages.
    pub laps: u32,
    /// The seed of random numbers.
    pub seed: u64,
}

impl Shape {
    /// The number of laps of a workload, unless told otherwise.
    pub fn laps_default(self) -> u32 {
        match self {
            Shape::Scan | Shape::Random => 1,
            Shape::Zipf => 2,
            Shape::Sheep => 3,
            Shape::Phases => 4,
            Shape::Loop => 5,
        }
    }
}

impl Pattern {
    /// The references after the fill, in order.
    pub fn accesses(self) -> Box<dyn Iterator<Item = Access>> {
        let pages = self.pages;
        let laps = 0..self.laps;
        match self.shape {
            Shape::Sheep => Box::new(
                laps.flat_map(move |_| (0..pages).chain((0..pages).rev()))
                    .map(read),
            ),
            Shape::Scan | Shape::Loop => Box::new(laps.flat_map(move |_| 0..pages).map(read)),
            Shape::Random => {
                let mut random = Random::new(self.seed);
                Box::new(
                    (0..self.drawn()).map(move |_| random_access(&mut random, 0, pages, pages)),
                )
            }
            Shape::Zipf => {
                let mut random = Random::new(self.seed);
                let zipf = Zipf::new(u64::from(pages), 0.99);
                let scatter = Scatter::new(pages);
                Box::new((0..self.drawn()).map(move |_| Access {
                    page: scatter.page(zipf.draw(&mut random)),
                    is_write: random.coin(),
                }))
            }
            Shape::Phases => {
                let mut random = Random::new(self.seed);
                let drawn = self.drawn();
                Box::new((0..drawn).map(move |index| {
                    let phase = index * PHASES / drawn;
                    let first = phase * u64::from(pages) / PHASES;
                    random_access(&mut random, first, (pages / 4).max(1), pages)
                }))
            }
        }
    }

    /// The pages of the whole string, fill and accesses, for computing the optimum.
    pub fn pages_in_order(self) -> impl Iterator<Item = u32> {
        (0..self.pages).chain(self.accesses().map(|access| access.page))
    }

    /// The number of accesses, for patterns that draw pages at random.
    fn drawn(self) -> u64 {
        u64::from(self.pages) * u64::from(self.laps)
    }
}

/// Spreads ranks over pages one to one, so that popular pages are not neighbours.
struct Scatter {
    pages: u64,
    factor: u64,
}

impl Scatter {
    fn new(pages: u32) -> Scatter {
        let pages = u64::from(pages);
        // The golden section of the array keeps near ranks far apart; the search for the next
        // factor without a common divisor makes the map one to one.
        let mut factor = (pages as f64 * 0.618_033_988_75) as u64 | 1;
        while greatest_common_divisor(factor, pages) != 1 {
            factor += 1;
        }
        Scatter { pages, factor }
    }

    fn page(&self, rank: u64) -> u32 {
        u32::try_from(rank * self.factor % self.pages).expect("pages fit in 32 bits")
    }
}

fn greatest_common_divisor(mut left: u64, mut right: u64) -> u64 {
    while right != 0 {
        (left, right) = (right, left % right);
    }
    left
}

fn read(page: u32) -> Access {
    Access {
        page,
        is_write: false,
    }
}

/// Draws from the `span` pages that start at `first`, going around the end of the array.
fn random_access(random: &mut Random, first: u64, span: u32, pages: u32) -> Access {
    let page = (first + random.below(u64::from(span))) % u64::from(pages);
    Access {
        page: u32::try_from(page).expect("pages fit in 32 bits"),
        is_write: random.coin(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(shape: Shape, pages: u32, laps: u32) -> Pattern {
        Pattern {
            shape,
            pages,
            laps,
            seed: 1,
        }
    }

    fn pages(shape: Shape, count: u32, laps: u32) -> Vec<u32> {
        pattern(shape, count, laps).pages_in_order().collect()
    }

    #[test]
    fn sheep_goes_up_and_down_after_the_fill() {
        assert_eq!(pages(Shape::Sheep, 3, 1), [0, 1, 2, 0, 1, 2, 2, 1, 0]);
    }

    #[test]
    fn a_loop_goes_up_again_and_again() {
        assert_eq!(pages(Shape::Loop, 3, 2), [0, 1, 2, 0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn drawn_shapes_stay_inside_the_array_and_repeat_with_their_seed() {
        for shape in [Shape::Random, Shape::Zipf, Shape::Phases] {
            let first: Vec<Access> = pattern(shape, 100, 7).accesses().collect();
            let again: Vec<Access> = pattern(shape, 100, 7).accesses().collect();
            let other: Vec<Access> = Pattern {
                seed: 2,
                ..pattern(shape, 100, 7)
            }
            .accesses()
            .collect();
            assert_eq!(first, again);
            assert_ne!(first, other);
            assert_eq!(first.len(), 700);
            assert!(first.iter().all(|access| access.page < 100));
            let writes = first.iter().filter(|access| access.is_write).count();
            assert!(
                (280..420).contains(&writes),
                "{shape:?} writes {writes} of 700"
            );
        }
    }

    #[test]
    fn a_zipf_rank_has_a_page_of_its_own() {
        for count in [1, 2, 3, 100, 262_144] {
            let scatter = Scatter::new(count);
            let mut pages: Vec<u32> = (0..u64::from(count))
                .map(|rank| scatter.page(rank))
                .collect();
            pages.sort_unstable();
            assert!(pages.iter().copied().eq(0..count));
        }
    }

    #[test]
    fn zipf_prefers_few_pages() {
        let mut counts = vec![0u32; 1000];
        for access in pattern(Shape::Zipf, 1000, 100).accesses() {
            counts[access.page as usize] += 1;
        }
        counts.sort_unstable_by(|left, right| right.cmp(left));
        let hot: u32 = counts[..100].iter().sum();
        // The law gives the first tenth of the ranks 68.9 % of the accesses.
        assert!(
            (67_000..71_000).contains(&hot),
            "the hot tenth got {hot} of 100000"
        );
    }

    #[test]
    fn a_phase_keeps_to_its_quarter() {
        let accesses: Vec<Access> = pattern(Shape::Phases, 800, 1).accesses().collect();
        assert!(accesses[..100].iter().all(|access| access.page < 200));
        assert!(
            accesses[100..200]
                .iter()
                .all(|access| (100..300).contains(&access.page))
        );
    }
}
