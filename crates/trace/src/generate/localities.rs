//! The phase-transition model of program behaviour (Denning and Kahn, "A study of program locality
//! and lifetime functions", SOSP 1975): a program dwells in a locality, a set of pages, for a
//! holding time, then moves to another; inside, a micromodel picks the pages.
//!
//! As there, sizes of localities are normally distributed, holding times exponentially, and the
//! next locality does not depend on the one before, so that it may be the same again. Departure:
//! the pages that stay across a transition are the same in all localities.

use super::arithmetic::ln;
use tidemark_core::random::SplitMix64;

/// One in this many of a holding time's random numbers.
const UNIT: u64 = 1 << 52;

/// The model's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Localities {
    /// The number of localities; at least 1.
    pub count: u64,
    /// The mean number of pages in a locality; at least 1.
    pub pages_mean: u64,
    /// The standard deviation of the number of pages.
    pub pages_deviation: u64,
    /// The number of pages in every locality, which so stay across a transition.
    pub overlap_pages: u64,
    /// The mean number of references before a transition; at least 1.
    pub holding_mean: u64,
    /// The choice of pages inside a locality.
    pub micromodel: Micromodel,
}

/// The choice of pages inside a locality.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Micromodel {
    /// Each as likely as the other.
    Random,
    /// In order, over and over.
    Cyclic,
    /// In order, forward and backward.
    Sawtooth,
}

/// The endless walk of a program through its localities.
struct Walk {
    localities: Vec<Locality>,
    overlap_pages: u64,
    holding_mean: u64,
    micromodel: Micromodel,
    random: SplitMix64,
    now: Locality,
    /// References since the locality was entered, and before it is left.
    done: u64,
    left: u64,
}

/// The pages of a locality besides those that all have.
#[derive(Clone, Copy)]
struct Locality {
    first: u64,
    pages: u64,
}

impl Default for Localities {
    /// The means of the publication's experiments.
    fn default() -> Localities {
        Localities {
            count: 10,
            pages_mean: 30,
            pages_deviation: 5,
            overlap_pages: 0,
            holding_mean: 250,
            micromodel: Micromodel::Random,
        }
    }
}

impl Localities {
    /// An endless walk.
    pub fn walk(&self, mut random: SplitMix64) -> impl Iterator<Item = u64> + use<> {
        let mut first = self.overlap_pages;
        let localities: Vec<Locality> = (0..self.count)
            .map(|_| {
                let size = normal(&mut random, self.pages_mean, self.pages_deviation);
                let pages = size.saturating_sub(self.overlap_pages).max(1);
                let locality = Locality { first, pages };
                first += pages;
                locality
            })
            .collect();
        Walk {
            now: localities[0],
            localities,
            overlap_pages: self.overlap_pages,
            holding_mean: self.holding_mean,
            micromodel: self.micromodel,
            random,
            done: 0,
            left: 0,
        }
    }
}

impl Iterator for Walk {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if self.left == 0 {
            let next = self.random.below(self.localities.len() as u64);
            self.now = self.localities[next as usize];
            self.left = exponential(&mut self.random, self.holding_mean);
            self.done = 0;
        }
        let pages = self.overlap_pages + self.now.pages;
        let place = match self.micromodel {
            Micromodel::Random => self.random.below(pages),
            Micromodel::Cyclic => self.done % pages,
            Micromodel::Sawtooth => {
                let period = (2 * pages).saturating_sub(2).max(1);
                let at = self.done % period;
                at.min(period - at)
            }
        };
        self.done += 1;
        self.left -= 1;
        Some(match place.checked_sub(self.overlap_pages) {
            None => place,
            Some(own) => self.now.first + own,
        })
    }
}

/// A normally distributed number, at least 1: the sum of twelve uniform ones, which is normal to
/// three deviations and never beyond six.
fn normal(random: &mut SplitMix64, mean: u64, deviation: u64) -> u64 {
    const STEPS: u64 = 1 << 20;
    let sum: u64 = (0..12).map(|_| random.below(STEPS)).sum();
    let offset = i128::from(sum) - i128::from(6 * STEPS);
    let number = i128::from(mean) + i128::from(deviation) * offset / i128::from(STEPS);
    u64::try_from(number.max(1)).unwrap_or(u64::MAX)
}

/// An exponentially distributed number, at least 1.
fn exponential(random: &mut SplitMix64, mean: u64) -> u64 {
    let uniform = (random.below(UNIT) + 1) as f64 / UNIT as f64;
    let number = -ln(uniform) * mean as f64;
    (number as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_holding_times_have_their_means() {
        let mut random = SplitMix64::new(1);
        let sizes: Vec<u64> = (0..10_000).map(|_| normal(&mut random, 300, 50)).collect();
        let mean = sizes.iter().sum::<u64>() / 10_000;
        assert!((298..=302).contains(&mean), "{mean}");
        let within = sizes.iter().filter(|&&size| size.abs_diff(300) <= 50);
        assert!(
            (6600..7050).contains(&within.count()),
            "68 % lie within one deviation"
        );
        let times: u64 = (0..10_000).map(|_| exponential(&mut random, 250)).sum();
        assert!((2_400_000..2_600_000).contains(&times), "{times}");
    }

    #[test]
    fn a_locality_is_used_as_the_micromodel_says() {
        let walk = |micromodel| {
            let localities = Localities {
                count: 1,
                pages_mean: 4,
                pages_deviation: 0,
                overlap_pages: 1,
                holding_mean: 1 << 40,
                micromodel,
            };
            let pages: Vec<u64> = localities.walk(SplitMix64::new(3)).take(9).collect();
            pages
        };
        assert_eq!(walk(Micromodel::Cyclic), [0, 1, 2, 3, 0, 1, 2, 3, 0]);
        assert_eq!(walk(Micromodel::Sawtooth), [0, 1, 2, 3, 2, 1, 0, 1, 2]);
        assert!(walk(Micromodel::Random).iter().all(|&page| page < 4));
    }

    #[test]
    fn only_the_overlap_is_shared() {
        let localities = Localities {
            overlap_pages: 5,
            ..Localities::default()
        };
        let pages: Vec<u64> = localities.walk(SplitMix64::new(3)).take(100_000).collect();
        let distinct: std::collections::BTreeSet<u64> = pages.iter().copied().collect();
        // Ten localities of about 25 pages of their own, and the five.
        assert!((200..320).contains(&distinct.len()), "{}", distinct.len());
        let shared = pages.iter().filter(|&&page| page < 5).count();
        assert!((14_000..20_000).contains(&shared), "a sixth: {shared}");
    }
}
