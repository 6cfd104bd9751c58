//! The activity of tasks: some of the [counters](tidemark_core::counters!), in all and per second.
//!
//! Both stand in records as objects, by the names that the record of a run has for them.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tidemark_core::counters::{Counter, Unit};

/// The counters that tell what a task does.
pub const COUNTED: [Counter; 20] = [
    Counter::SoftFaults,
    Counter::ZeroFills,
    Counter::CowFaults,
    Counter::PageInFaults,
    Counter::PageIns,
    Counter::PageOuts,
    Counter::PageInRequests,
    Counter::PageOutRequests,
    Counter::ReadAhead,
    Counter::ReadAheadUsed,
    Counter::ReadAheadWasted,
    Counter::ReadAheadUnknown,
    Counter::CleanDrops,
    Counter::CompressedPages,
    Counter::DecompressedPages,
    Counter::BytesRead,
    Counter::BytesWritten,
    Counter::StallNs,
    Counter::EngineNs,
    Counter::StoreErrors,
];

const KINDS: usize = COUNTED.len();

/// The counters of all kinds of faults.
const FAULTS: [Counter; 4] = [
    Counter::SoftFaults,
    Counter::ZeroFills,
    Counter::CowFaults,
    Counter::PageInFaults,
];

/// Counts so far. Times are in nanoseconds here, and in seconds in records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([u64; KINDS]);

/// Counts per second. Times are in seconds per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates([f64; KINDS]);

impl Counts {
    /// The counts that `count` tells.
    pub fn of(count: impl Fn(Counter) -> u64) -> Counts {
        Counts(COUNTED.map(count))
    }

    /// One of the counts; zero for a counter that is not [`COUNTED`].
    pub fn get(&self, counter: Counter) -> u64 {
        place_of(counter).map_or(0, |place| self.0[place])
    }

    /// The number of faults of all kinds.
    pub fn faults(&self) -> u64 {
        FAULTS.iter().map(|&counter| self.get(counter)).sum()
    }

    /// Adds the counts of another task.
    pub fn add(&mut self, other: &Counts) {
        for (own, more) in self.0.iter_mut().zip(other.0) {
            *own += more;
        }
    }

    /// The rates at which they have risen since they were `past`, `ns` nanoseconds ago.
    pub fn since(&self, past: &Counts, ns: u64) -> Rates {
        let mut rates = Rates::default();
        for (place, counter) in COUNTED.into_iter().enumerate() {
            let risen = self.0[place].saturating_sub(past.0[place]);
            rates.0[place] = in_seconds(counter, risen) * 1e9 / ns.max(1) as f64;
        }
        rates
    }
}

impl Rates {
    /// One of the rates; zero for a counter that is not [`COUNTED`].
    pub fn get(&self, counter: Counter) -> f64 {
        place_of(counter).map_or(0.0, |place| self.0[place])
    }

    /// The rate of faults of all kinds.
    pub fn faults(&self) -> f64 {
        FAULTS.iter().map(|&counter| self.get(counter)).sum()
    }

    /// Adds the rates of another task.
    pub fn add(&mut self, other: &Rates) {
        for (own, more) in self.0.iter_mut().zip(other.0) {
            *own += more;
        }
    }
}

/// The name of a counter in records.
pub fn name_of(counter: Counter) -> &'static str {
    counter.run_name().unwrap_or(counter.name())
}

fn place_of(counter: Counter) -> Option<usize> {
    COUNTED.iter().position(|&counted| counted == counter)
}

/// A count as it is in records.
fn in_seconds(counter: Counter, count: u64) -> f64 {
    match counter.unit() {
        Unit::Nanoseconds => count as f64 / 1e9,
        _ => count as f64,
    }
}

/// A number that is written without a point if it is whole.
#[derive(Serialize)]
#[serde(untagged)]
enum Number {
    Whole(u64),
    Real(f64),
}

impl Serialize for Counts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(COUNTED.into_iter().zip(self.0).map(|(counter, count)| {
            let number = match counter.unit() {
                Unit::Nanoseconds => Number::Real(in_seconds(counter, count)),
                _ => Number::Whole(count),
            };
            (name_of(counter), number)
        }))
    }
}

impl Serialize for Rates {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rounded = |rate: f64| (rate * 1000.0).round() / 1000.0;
        let rates = COUNTED.into_iter().zip(self.0);
        serializer.collect_map(rates.map(|(counter, rate)| (name_of(counter), rounded(rate))))
    }
}

impl<'de> Deserialize<'de> for Counts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Counts, D::Error> {
        let numbers = BTreeMap::<String, f64>::deserialize(deserializer)?;
        Ok(Counts::of(|counter| {
            let number = numbers.get(name_of(counter)).copied().unwrap_or(0.0);
            match counter.unit() {
                Unit::Nanoseconds => (number * 1e9).round() as u64,
                _ => number as u64,
            }
        }))
    }
}

impl<'de> Deserialize<'de> for Rates {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Rates, D::Error> {
        let numbers = BTreeMap::<String, f64>::deserialize(deserializer)?;
        let rate = |counter| numbers.get(name_of(counter)).copied().unwrap_or(0.0);
        Ok(Rates(COUNTED.map(rate)))
    }
}
