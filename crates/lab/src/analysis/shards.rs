//! LRU curves of strings too long to be counted whole: an estimate, with its error.
//!
//! Pages are sampled by a hash of what they are called, so that a page is seen always or never; a
//! distance among sampled pages, divided by the sampled share, estimates the distance among all
//! (Waldspurger, Park, Garthwaite and Ahmad 2015, "Efficient MRC construction with SHARDS"). The
//! share is fixed, or falls so that never more than a number of pages is kept. Counts are not
//! made to sum up to the sampled references but to all of them, which is the paper's adjustment
//! for pages of great weight that were or were not sampled.
//!
//! Several samples with different hashes are taken side by side. The estimate is their mean, and
//! its error the standard error of that mean, which the paper leaves to a comparison with the
//! exact curve.
//!
//! The samples may be wrong together: about pages that hardly any of them has, and about distances
//! shorter than the inverse of the share. [`Estimate::bound`] counts that in, as far as samples
//! show; of fewer than [`PAGES_LEAST`] pages they can't. Where a program's references go to a few
//! hundred pages, the exact curve of [`stack`](super::stack) is cheap.

use std::collections::{BinaryHeap, HashMap};

use rayon::prelude::*;
use tidemark_core::random::SplitMix64;

use super::stack::Stack;

/// The amount sampled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Share {
    /// This share of all pages, above 0 and at most 1.
    Rate(f64),
    /// At most this many pages, from all at first to ever fewer. At least 1.
    Pages(u32),
}

/// The parameters of sampling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// The amount that each sample takes.
    pub share: Share,
    /// The number of samples. From 2 on, the error is known.
    pub samples: u32,
    /// The seed of the hashes.
    pub seed: u64,
}

/// A point of an estimated curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The size of memory, in pages.
    pub pages: u64,
    /// About how many references miss: the mean of the samples.
    pub misses: f64,
    /// The standard error of that mean, if there are several samples.
    pub error: Option<f64>,
}

/// Samples of fewer pages than this say nothing for sure.
pub const PAGES_LEAST: u64 = 200;

/// A miss ratio is within this many of the curve's largest standard errors, and the share that no
/// sample has. With eight samples one in 600 lies beyond five errors at a point; over a whole curve
/// the largest was off by 4.5, on the strings of `an_estimate_is_within_its_bound`.
const ERRORS: f64 = 5.0;

/// The estimate of a string from samples: an estimate.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The points asked for, in their order.
    pub points: Vec<Point>,
    /// The number of references.
    pub references: u64,
    /// The number of references sampled, in all samples together.
    pub references_sampled: u64,
    /// The share of pages that each sample took at the end, on average.
    pub rate: f64,
    /// The number of pages that each sample had at the end, on average.
    pub pages_sampled: f64,
    /// The share of references by which those that the samples stand for differ from all there
    /// are: of pages of great weight that more or fewer samples have than should.
    pub astray: f64,
}

impl Estimate {
    /// Returns true if the samples have too few of the pages to be relied on.
    pub fn has_too_few(&self) -> bool {
        self.rate < 1.0 && self.pages_sampled < PAGES_LEAST as f64
    }

    /// The largest distance of the miss ratio at any size from the exact one, at most, as a share
    /// of all references: from the points, which should be those of a whole curve. `None` of one
    /// sample alone.
    pub fn bound(&self) -> Option<f64> {
        if self.has_too_few() {
            return Some(1.0);
        }
        let errors = self.points.iter().filter_map(|point| point.error);
        let largest = errors.reduce(f64::max)? / self.references.max(1) as f64;
        Some((ERRORS * largest + self.astray).min(1.0))
    }
}

/// Estimates how many of the references to `pages` miss under LRU in memories of `sizes` pages.
///
/// # Panics
/// If the share is 0 or above 1, or there are no samples.
pub fn estimate(pages: &[u32], sampling: &Sampling, sizes: &[u64]) -> Estimate {
    let mut samples = Sample::several(sampling);
    samples.par_iter_mut().for_each(|sample| {
        for &page in pages {
            sample.refer(u64::from(page));
        }
    });
    summarize(&samples, sizes)
}

/// Puts samples of one string together.
///
/// # Panics
/// If there is none.
pub fn summarize(samples: &[Sample], sizes: &[u64]) -> Estimate {
    assert!(!samples.is_empty(), "an estimate needs a sample");
    let count = samples.len() as f64;
    let point = |&pages: &u64| {
        let misses = samples.iter().map(|sample| sample.misses_at(pages));
        let mean = misses.clone().sum::<f64>() / count;
        let spread: f64 = misses.map(|misses| (misses - mean).powi(2)).sum();
        Point {
            pages,
            misses: mean,
            error: (samples.len() > 1).then(|| (spread / (count - 1.0) / count).sqrt()),
        }
    };
    Estimate {
        points: sizes.iter().map(point).collect(),
        references: samples[0].references,
        references_sampled: samples.iter().map(|sample| sample.references_sampled).sum(),
        rate: samples.iter().map(Sample::rate).sum::<f64>() / count,
        pages_sampled: samples.iter().map(Sample::pages).sum::<f64>() / count,
        astray: astray(samples),
    }
}

/// The share of references by which those that `samples` stand for differ from all there are.
fn astray(samples: &[Sample]) -> f64 {
    let all = samples[0].references.max(1) as f64;
    let stand_for = samples.iter().map(|sample| sample.weights.all());
    (stand_for.sum::<f64>() / samples.len() as f64 / all - 1.0).abs()
}

/// One sample in the making. Takes references one by one, so that the string need not be kept.
pub struct Sample {
    seed: u64,
    pages_max: u32,
    /// Pages are sampled whose hash is below this.
    threshold: u64,
    /// The sampled pages, each with its number in the stack.
    numbers: HashMap<u64, u32>,
    /// The sampled pages by hash, the next to go first.
    by_hash: BinaryHeap<(u64, u64)>,
    /// Numbers that were given back.
    free: Vec<u32>,
    stack: Stack,
    weights: Weights,
    references: u64,
    references_sampled: u64,
}

/// Hashes are numbers below this.
const HASHES: u64 = 1 << 32;
/// The pages a stack has room for at first.
const PAGES_FIRST: u32 = 1 << 10;

impl Sample {
    /// The samples that `sampling` wants.
    ///
    /// # Panics
    /// If the share is 0 or above 1, or there are no samples.
    pub fn several(sampling: &Sampling) -> Vec<Sample> {
        assert!(sampling.samples > 0, "`samples` is 0; needs 1");
        let seeds = (0..u64::from(sampling.samples)).map(|at| mix(sampling.seed ^ mix(at + 1)));
        seeds
            .map(|seed| Sample::new(sampling.share, seed))
            .collect()
    }

    fn new(share: Share, seed: u64) -> Sample {
        let (threshold, pages_max) = match share {
            Share::Rate(rate) => {
                let is_share = rate > 0.0 && rate <= 1.0;
                assert!(is_share, "`rate` is {rate}; needs to be above 0, at most 1");
                (((rate * HASHES as f64).round() as u64).max(1), u32::MAX)
            }
            Share::Pages(pages) => {
                assert!(pages > 0, "`pages` is 0; needs 1");
                (HASHES, pages)
            }
        };
        Sample {
            seed,
            pages_max,
            threshold,
            numbers: HashMap::new(),
            by_hash: BinaryHeap::new(),
            free: Vec::new(),
            stack: Stack::new(PAGES_FIRST),
            weights: Weights::new(),
            references: 0,
            references_sampled: 0,
        }
    }

    /// Takes a reference to the page called `name`.
    #[inline]
    pub fn refer(&mut self, name: u64) {
        self.references += 1;
        let hash = mix(name ^ self.seed) >> 32;
        if hash < self.threshold {
            self.refer_sampled(name, hash);
        }
    }

    /// The share of pages that is sampled now.
    pub fn rate(&self) -> f64 {
        self.threshold as f64 / HASHES as f64
    }

    /// The number of pages in the sample now.
    fn pages(&self) -> f64 {
        self.numbers.len() as f64
    }

    /// About how many references miss in a memory of `pages` pages.
    pub fn misses_at(&self, pages: u64) -> f64 {
        if pages == 0 {
            return self.references as f64;
        }
        self.weights.beyond(pages).min(self.references as f64)
    }

    fn refer_sampled(&mut self, name: u64, hash: u64) {
        self.references_sampled += 1;
        let (number, is_new) = match self.numbers.get(&name) {
            Some(&number) => (number, false),
            None => (self.admit(name, hash), true),
        };
        let depth = self.stack.refer_one(number);
        let weight = 1.0 / self.rate();
        match depth {
            // The page itself is not among the others that stand for more than themselves.
            Some(depth) => {
                let others = (f64::from(depth) - 1.0) * weight;
                self.weights.add(1 + others.round() as u64, weight);
            }
            None => self.weights.cold += weight,
        }
        if is_new && self.numbers.len() > self.pages_max as usize {
            self.shrink();
        }
    }

    /// Gives the page a number.
    fn admit(&mut self, name: u64, hash: u64) -> u32 {
        let number = self.free.pop().unwrap_or(self.numbers.len() as u32);
        self.stack.make_room(number);
        self.numbers.insert(name, number);
        if self.pages_max != u32::MAX {
            self.by_hash.push((hash, name));
        }
        number
    }

    /// Gives up the pages with the greatest hash.
    fn shrink(&mut self) {
        let (hash, _) = *self.by_hash.peek().expect("there is a page too many");
        while let Some(&(_, name)) = self.by_hash.peek().filter(|page| page.0 == hash) {
            self.by_hash.pop();
            let number = self.numbers.remove(&name).expect("it is sampled");
            self.stack.forget(number);
            self.free.push(number);
        }
        self.threshold = hash;
    }
}

/// Numbers by their size: exact below [`EXACT`], then to one part in 256.
struct Weights {
    sums: Vec<f64>,
    cold: f64,
}

const EXACT: u64 = 512;
const STEPS: u64 = 256;

impl Weights {
    fn new() -> Weights {
        Weights {
            sums: Vec::new(),
            cold: 0.0,
        }
    }

    fn add(&mut self, number: u64, weight: f64) {
        let place = place(number);
        if place >= self.sums.len() {
            self.sums.resize(place + 1, 0.0);
        }
        self.sums[place] += weight;
    }

    /// The weight of all numbers, infinite ones among them.
    fn all(&self) -> f64 {
        self.cold + self.sums.iter().sum::<f64>()
    }

    /// The weight of numbers above `number`, and of those that are infinite.
    fn beyond(&self, number: u64) -> f64 {
        let above = self.sums.iter().skip(place(number) + 1);
        self.cold + above.sum::<f64>()
    }
}

fn place(number: u64) -> usize {
    if number < EXACT {
        return number as usize;
    }
    let octave = u64::from(number.ilog2() - EXACT.ilog2());
    let step = (number >> (octave + 1)) - STEPS;
    (EXACT + octave * STEPS + step) as usize
}

/// Mixes all bits of a word.
#[inline(always)]
pub(super) fn mix(word: u64) -> u64 {
    SplitMix64::new(word).draw()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::stack::count_depths;
    use tidemark_model::traces;

    fn zipf() -> (Vec<u32>, u32) {
        let pages = traces::zipf(5, 20_000, 300_000);
        (pages.iter().map(|&page| page as u32).collect(), 20_000)
    }

    fn sampling(share: Share) -> Sampling {
        Sampling {
            share,
            samples: 8,
            seed: 3,
        }
    }

    #[test]
    fn places_never_fall_and_are_fine_enough() {
        let places: Vec<usize> = (0..100_000).map(place).collect();
        assert!(
            places
                .windows(2)
                .all(|pair| pair[0] <= pair[1] && pair[1] - pair[0] <= 1)
        );
        for number in [512_u64, 1000, 4096, 1 << 20, u64::MAX - 1] {
            let width = number / STEPS + 1;
            assert_ne!(
                place(number),
                place(number.saturating_sub(width)),
                "{number}"
            );
        }
    }

    #[test]
    fn a_sample_of_everything_is_exact_where_places_are() {
        let (pages, page_count) = zipf();
        let exact = count_depths(&pages, page_count);
        for share in [Share::Rate(1.0), Share::Pages(page_count)] {
            let sizes: Vec<u64> = (0..EXACT - 1).collect();
            for point in estimate(&pages, &sampling(share), &sizes).points {
                let misses = exact.misses_at(point.pages as u32) as f64;
                assert_eq!(
                    (point.misses, point.error),
                    (misses, Some(0.0)),
                    "{point:?}"
                );
            }
        }
    }

    #[test]
    fn an_estimate_is_as_near_as_it_says() {
        let (pages, page_count) = zipf();
        let exact = count_depths(&pages, page_count);
        let sizes = [500, 1000, 2000, 4000, 8000, 15_000];
        for share in [Share::Rate(0.1), Share::Pages(1000)] {
            let estimate = estimate(&pages, &sampling(share), &sizes);
            assert_eq!(estimate.references, 300_000);
            assert!(estimate.references_sampled < 8 * 150_000, "{estimate:?}");
            for point in estimate.points {
                let misses = exact.misses_at(point.pages as u32) as f64;
                let error = point.error.unwrap();
                // Seven degrees of freedom: beyond 5 errors in 1 of 600.
                assert!(
                    (point.misses - misses).abs() < 5.0 * error,
                    "{misses} {point:?}"
                );
                assert!(error < 0.1 * 300_000.0, "{point:?}");
            }
        }
    }

    #[test]
    fn found_m10_an_estimate_is_within_its_bound() {
        let loops: Vec<u32> = (0..40_000).map(|at| at % 5000).collect();
        let mut random = traces::SplitMix64::new(7);
        let mut heavy = |few: u64, many: u64| -> Vec<u32> {
            let page = |random: &mut traces::SplitMix64| match random.below(10) {
                0..7 => random.below(few) as u32,
                _ => random.below(many) as u32,
            };
            (0..40_000).map(|_| page(&mut random)).collect()
        };
        let phases: Vec<u32> = heavy(60, 60)
            .iter()
            .zip(0..)
            .map(|(page, at)| at / 2000 * 40 + page)
            .collect();
        let zipf: Vec<u32> = zipf().0[..60_000].to_vec();
        let strings = [loops, heavy(4, 2000), heavy(300, 900), phases, zipf];
        for (name, pages) in strings.iter().enumerate() {
            let page_count = pages.iter().max().unwrap() + 1;
            let exact = count_depths(pages, page_count);
            let sizes: Vec<u64> = (1..60).map(|at| at * u64::from(page_count) / 60).collect();
            for (seed, share) in (0..12).flat_map(|seed| [0.01, 0.05, 0.25].map(|r| (seed, r))) {
                let sampling = Sampling {
                    share: Share::Rate(share),
                    samples: 8,
                    seed,
                };
                let estimate = estimate(pages, &sampling, &sizes);
                let bound = estimate.bound().unwrap();
                for point in &estimate.points {
                    let misses = exact.misses_at(point.pages as u32) as f64;
                    let off = (point.misses - misses).abs() / pages.len() as f64;
                    assert!(
                        off <= bound,
                        "{name} {share} {seed}: {off} {bound} {point:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn found_m10_a_few_pages_say_nothing() {
        let pages: Vec<u32> = (0..40_000).map(|at| at % 817).collect();
        let one_percent = sampling(Share::Rate(0.01));
        let estimate = super::estimate(&pages, &one_percent, &[100, 400, 816]);
        assert!(estimate.pages_sampled < 20.0);
        assert_eq!(estimate.bound(), Some(1.0));
        let whole = super::estimate(&pages[..300], &sampling(Share::Rate(1.0)), &[10]);
        assert_eq!(whole.bound(), Some(0.0));
    }

    #[test]
    fn no_more_pages_are_kept_than_were_allowed() {
        let (pages, _) = zipf();
        let mut samples = Sample::several(&sampling(Share::Pages(100)));
        for &page in &pages {
            samples[0].refer(u64::from(page));
            assert!(samples[0].numbers.len() <= 100);
        }
        assert!(samples[0].rate() < 0.02);
        let numbers = samples[0].numbers.values().copied().max().unwrap();
        assert!(numbers <= 100, "{numbers}");
    }
}
