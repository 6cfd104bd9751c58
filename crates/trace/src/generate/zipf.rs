//! Zipf's law over pages in shuffled order.

use super::arithmetic::{exp, ln};
use tidemark_core::random::SplitMix64;

/// The most pages: each takes 16 bytes while the trace is made.
pub const PAGES_MAX: u64 = 1 << 26;

/// The weight of the first rank. The sum of all weights stays within 2^62.
const FIRST: u64 = 1 << 36;

/// Draws pages by rank.
pub struct Zipf {
    /// The page of each rank.
    order: Vec<u64>,
    /// The sum of the weights up to each rank.
    sums: Vec<u64>,
}

impl Zipf {
    /// The law for `pages` pages, whose order is shuffled by `random`.
    pub fn new(pages: u64, exponent_thousandths: u32, random: &mut SplitMix64) -> Zipf {
        assert!((1..=PAGES_MAX).contains(&pages));
        let mut order: Vec<u64> = (0..pages).collect();
        for at in (1..pages).rev() {
            order.swap(at as usize, random.below(at + 1) as usize);
        }
        let exponent = f64::from(exponent_thousandths) / 1000.0;
        let weight = |rank: u64| match exponent_thousandths {
            0 => FIRST,
            1000 => FIRST / rank,
            _ => (FIRST as f64 * exp((-exponent * ln(rank as f64)).max(-700.0))) as u64,
        };
        let mut sum = 0;
        let add = |rank| {
            // No page is impossible.
            sum += weight(rank).max(1);
            sum
        };
        let sums = (1..=pages).map(add).collect();
        Zipf { order, sums }
    }

    /// A page.
    pub fn draw(&self, random: &mut SplitMix64) -> u64 {
        let all = *self.sums.last().expect("there is a page");
        let number = random.below(all);
        self.order[self.sums.partition_point(|&sum| sum <= number)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(exponent_thousandths: u32) -> Vec<u64> {
        let mut random = SplitMix64::new(1);
        let law = Zipf::new(50, exponent_thousandths, &mut random);
        let mut uses = vec![0; 50];
        (0..100_000).for_each(|_| uses[law.draw(&mut random) as usize] += 1);
        uses.sort_unstable_by(|a, b| b.cmp(a));
        uses
    }

    #[test]
    fn the_first_is_drawn_twice_as_often_as_the_second() {
        let uses = uses(1000);
        // The sum of 1/r up to 50 is 4.5.
        assert!((21_500..22_900).contains(&uses[0]), "{uses:?}");
        assert!((10_600..11_600).contains(&uses[1]), "{uses:?}");
    }

    #[test]
    fn the_exponent_says_how_steep_it_is() {
        let flat = uses(0);
        assert!(flat[0] < 2300 && flat[49] > 1700, "{flat:?}");
        // The sum of r^-2 up to 50 is 1.625.
        let steep = uses(2000);
        assert!((60_000..63_000).contains(&steep[0]), "{steep:?}");
        assert!((14_700..16_100).contains(&steep[1]), "{steep:?}");
    }
}
