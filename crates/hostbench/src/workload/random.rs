//! A small random source with a seed, the same on every machine, and a Zipf law on top of it.

use tidemark_core::random::SplitMix64;

/// SplitMix64 with the draws that workloads need.
pub struct Random {
    source: SplitMix64,
}

impl Random {
    /// A source that starts at `seed`.
    pub fn new(seed: u64) -> Random {
        Random {
            source: SplitMix64::new(seed),
        }
    }

    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.source.draw()
    }

    /// A number below `bound`, by multiplication: the bias is below 2^-32 for the bounds here.
    pub fn below(&mut self, bound: u64) -> u64 {
        let product = u128::from(self.next()) * u128::from(bound);
        u64::try_from(product >> 64).expect("the high half of a product has 64 bits")
    }

    /// True in half of the cases.
    pub fn coin(&mut self) -> bool {
        self.next() & 1 == 1
    }

    /// A fraction in [0, 1) with 53 bits.
    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Ranks 0, 1, 2 … drawn with probability falling as `1 / (rank + 1) ^ exponent`.
///
/// Rejection-inversion after Hörmann and Derflinger (ACM TOMACS 6(3), 1996). It needs no table,
/// which would itself take part in the paging that is measured.
pub struct Zipf {
    ranks: f64,
    exponent: f64,
    area_first: f64,
    area_all: f64,
    squeeze: f64,
}

impl Zipf {
    /// A law over `ranks` ranks. The exponent is positive and not 1.
    pub fn new(ranks: u64, exponent: f64) -> Zipf {
        assert!(ranks > 0 && exponent > 0.0 && (exponent - 1.0).abs() > 1e-9);
        let mut zipf = Zipf {
            ranks: ranks as f64,
            exponent,
            area_first: 0.0,
            area_all: 0.0,
            squeeze: 0.0,
        };
        zipf.area_first = zipf.area(1.5) - 1.0;
        zipf.area_all = zipf.area(zipf.ranks + 0.5);
        zipf.squeeze = 2.0 - zipf.area_inverse(zipf.area(2.5) - zipf.height(2.0));
        zipf
    }

    /// Draws one rank, counted from zero.
    pub fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let area = self.area_all + random.fraction() * (self.area_first - self.area_all);
            let place = self.area_inverse(area);
            let rank = place.round().clamp(1.0, self.ranks);
            if rank - place <= self.squeeze || area >= self.area(rank + 0.5) - self.height(rank) {
                return rank as u64 - 1;
            }
        }
    }

    /// The density at `place`.
    fn height(&self, place: f64) -> f64 {
        place.powf(-self.exponent)
    }

    /// The integral of the density up to `place`.
    fn area(&self, place: f64) -> f64 {
        place.powf(1.0 - self.exponent) / (1.0 - self.exponent)
    }

    fn area_inverse(&self, area: f64) -> f64 {
        (area * (1.0 - self.exponent)).powf(1.0 / (1.0 - self.exponent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_below_a_bound_reach_all_of_it() {
        let mut random = Random::new(7);
        let mut seen = [false; 10];
        for _ in 0..1000 {
            seen[usize::try_from(random.below(10)).expect("below ten")] = true;
        }
        assert_eq!(seen, [true; 10]);
    }

    #[test]
    fn the_law_gives_each_rank_its_share() {
        let zipf = Zipf::new(50, 0.99);
        let mut random = Random::new(3);
        let mut counts = [0u32; 50];
        let draws = 500_000;
        for _ in 0..draws {
            counts[usize::try_from(zipf.draw(&mut random)).expect("below fifty")] += 1;
        }
        let total: f64 = (1..=50).map(|rank| f64::from(rank).powf(-0.99)).sum();
        for (rank, count) in (1..=50).zip(counts) {
            let expected = f64::from(rank).powf(-0.99) / total * f64::from(draws);
            let error = (f64::from(count) - expected).abs();
            assert!(
                error < 6.0 * expected.sqrt(),
                "rank {rank}: {count} against {expected}"
            );
        }
    }
}
