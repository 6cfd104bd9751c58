//! Axes: from values to places, and where the numbers stand.

use tidemark_results::analysis::TimeUnit;

use crate::numbers;

/// The quantity that an axis shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantity {
    /// Bytes.
    Bytes,
    /// A count.
    Count,
    /// Virtual time.
    Time(TimeUnit),
}

/// The scale along which values are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// Equal steps are equal differences.
    Linear,
    /// Equal steps are equal ratios.
    Logarithmic,
}

/// A range of values laid along a line.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    quantity: Quantity,
    spread: Spread,
    least: f64,
    most: f64,
}

impl Axis {
    /// An axis over `least..=most`. Widened where that is empty, and to positive values where it
    /// is logarithmic.
    pub fn new(quantity: Quantity, spread: Spread, least: f64, most: f64) -> Axis {
        let floor = match spread {
            Spread::Linear => f64::MIN,
            Spread::Logarithmic => 1e-3,
        };
        let least = least.max(floor);
        let most = match spread {
            Spread::Linear => most.max(least + 1.0),
            Spread::Logarithmic => most.max(least * 1.5),
        };
        Axis {
            quantity,
            spread,
            least,
            most,
        }
    }

    /// The place of `value` on the axis, from 0 (the least) to 1 (the most); beyond for values
    /// outside.
    pub fn place(&self, value: f64) -> f64 {
        match self.spread {
            Spread::Linear => (value - self.least) / (self.most - self.least),
            Spread::Logarithmic => {
                (value.max(1e-9) / self.least).ln() / (self.most / self.least).ln()
            }
        }
    }

    /// The value at a place from 0 to 1.
    pub fn value(&self, place: f64) -> f64 {
        match self.spread {
            Spread::Linear => self.least + place * (self.most - self.least),
            Spread::Logarithmic => self.least * (self.most / self.least).powf(place),
        }
    }

    /// At most about `wanted` values with round numbers, rising.
    pub fn ticks(&self, wanted: usize) -> Vec<f64> {
        match self.spread {
            Spread::Linear => self.linear_ticks(wanted),
            Spread::Logarithmic => self.ratio_ticks(wanted),
        }
    }

    /// The text at a tick.
    pub fn label(&self, value: f64) -> String {
        match self.quantity {
            Quantity::Bytes => numbers::bytes(value),
            Quantity::Count => numbers::count(value),
            Quantity::Time(unit) => numbers::time_short(value, unit),
        }
    }

    fn linear_ticks(&self, wanted: usize) -> Vec<f64> {
        let step = round_step(
            (self.most - self.least) / wanted.max(1) as f64,
            self.quantity,
        );
        let mut at = (self.least / step).ceil();
        let mut ticks = vec![];
        while at * step <= self.most * (1.0 + 1e-9) {
            ticks.push(at * step);
            at += 1.0;
        }
        ticks
    }

    fn ratio_ticks(&self, wanted: usize) -> Vec<f64> {
        let base: f64 = match self.quantity {
            Quantity::Bytes => 2.0,
            Quantity::Count | Quantity::Time(_) => 10.0,
        };
        let least = self.least.log(base);
        let most = self.most.log(base);
        let steps = ((most - least) / wanted.max(1) as f64).ceil().max(1.0);
        let few = match self.quantity {
            Quantity::Bytes => 1.5,
            Quantity::Count | Quantity::Time(_) => 2.0,
        };
        if most - least < few {
            return match self.quantity {
                Quantity::Bytes => self.linear_ticks(wanted),
                Quantity::Count | Quantity::Time(_) => self.few_ratio_ticks(),
            };
        }
        let mut at = (least / steps - 1e-9).ceil() * steps;
        let mut ticks = vec![];
        while at <= most + 1e-9 {
            ticks.push(base.powf(at));
            at += steps;
        }
        ticks
    }

    /// Ticks of a logarithmic axis that spans less than two powers of ten.
    fn few_ratio_ticks(&self) -> Vec<f64> {
        let power = 10f64.powf(self.least.log10().floor());
        [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]
            .iter()
            .map(|factor| factor * power)
            .filter(|tick| *tick >= self.least * 0.999 && *tick <= self.most * 1.001)
            .collect()
    }
}

/// The least round number that is at least `step`.
fn round_step(step: f64, quantity: Quantity) -> f64 {
    match quantity {
        Quantity::Bytes => 2f64.powf(step.max(1.0).log2().ceil()),
        Quantity::Count | Quantity::Time(_) => {
            let power = 10f64.powf(step.max(1e-12).log10().floor());
            let factor = [1.0, 2.0, 2.5, 5.0, 10.0];
            let fits = |factor: &&f64| **factor * power >= step * 0.999_999;
            factor.iter().find(fits).unwrap_or(&10.0) * power
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_ticks_are_round_and_inside() {
        let axis = Axis::new(Quantity::Count, Spread::Linear, 0.0, 1234.0);
        assert_eq!(axis.ticks(5), [0.0, 250.0, 500.0, 750.0, 1000.0]);
        let axis = Axis::new(Quantity::Bytes, Spread::Linear, 0.0, 10.0 * 1024.0);
        let labels: Vec<String> = axis.ticks(5).iter().map(|tick| axis.label(*tick)).collect();
        assert_eq!(
            labels,
            ["0 B", "2 KiB", "4 KiB", "6 KiB", "8 KiB", "10 KiB"]
        );
    }

    #[test]
    fn logarithmic_ticks_are_powers() {
        let axis = Axis::new(Quantity::Count, Spread::Logarithmic, 3.0, 2e6);
        assert_eq!(axis.ticks(8), [10.0, 100.0, 1e3, 1e4, 1e5, 1e6]);
        let axis = Axis::new(Quantity::Bytes, Spread::Logarithmic, 4096.0, 65536.0);
        assert_eq!(axis.ticks(5).len(), 5);
    }

    #[test]
    fn a_short_logarithmic_range_has_ticks_too() {
        let mib = f64::from(1 << 20);
        let axis = Axis::new(
            Quantity::Bytes,
            Spread::Logarithmic,
            72.0 * mib,
            120.0 * mib,
        );
        assert_eq!(axis.ticks(4), [80.0, 96.0, 112.0].map(|tick| tick * mib));
        let axis = Axis::new(Quantity::Count, Spread::Logarithmic, 40.0, 300.0);
        assert_eq!(axis.ticks(4), [50.0, 100.0, 200.0]);
    }

    #[test]
    fn places_and_values_are_inverse() {
        for spread in [Spread::Linear, Spread::Logarithmic] {
            let axis = Axis::new(Quantity::Count, spread, 2.0, 700.0);
            for place in [0.0, 0.3, 1.0] {
                assert!((axis.place(axis.value(place)) - place).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn an_empty_range_is_widened() {
        let axis = Axis::new(Quantity::Count, Spread::Linear, 5.0, 5.0);
        assert!(axis.place(5.0).is_finite() && !axis.ticks(4).is_empty());
        let axis = Axis::new(Quantity::Count, Spread::Logarithmic, 0.0, 0.0);
        assert!(axis.place(0.0).is_finite());
    }
}
