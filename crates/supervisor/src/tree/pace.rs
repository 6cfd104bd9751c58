//! The pace of a task: its counts a second or two ago, from which rates follow.

use tidemark_results::control::{Counts, Rates};

/// The interval at which counts are kept.
const INTERVAL_NS: u64 = 1_000_000_000;
/// A shorter time says nothing about rates.
const LEAST_NS: u64 = 100_000_000;

/// The counts that were kept last, and those before, with their times.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    last: Option<(u64, Counts)>,
    before: Option<(u64, Counts)>,
}

impl Pace {
    /// Learns the counts of now.
    pub fn note(&mut self, now_ns: u64, counts: Counts) {
        let is_due = |(at, _): &(u64, Counts)| now_ns - at >= INTERVAL_NS;
        if self.last.as_ref().is_none_or(is_due) {
            self.before = self.last.replace((now_ns, counts));
        }
    }

    /// The rates of the last second or two, up to `counts`, which are those of now.
    pub fn rates(&self, now_ns: u64, counts: &Counts) -> Rates {
        match self.before.or(self.last) {
            Some((at, past)) if now_ns - at >= LEAST_NS => counts.since(&past, now_ns - at),
            _ => Rates::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_live::shared::Counter;

    #[test]
    fn rates_are_those_of_the_last_second_or_two() {
        let mut pace = Pace::default();
        let counts = |pages| Counts::of(|_| pages);
        let rate = |pace: &Pace, now_ns, pages| {
            let rates = pace.rates(now_ns, &counts(pages));
            rates.get(Counter::PageIns)
        };
        let second = INTERVAL_NS;
        assert_eq!(rate(&pace, 0, 5), 0.0);
        pace.note(0, counts(0));
        assert_eq!(rate(&pace, 1, 5), 0.0);
        pace.note(second / 2, counts(40));
        assert_eq!(rate(&pace, second / 2, 40), 80.0);
        pace.note(second, counts(100));
        pace.note(2 * second, counts(100));
        pace.note(3 * second, counts(100));
        assert_eq!(rate(&pace, 3 * second, 100), 0.0);
        assert_eq!(rate(&pace, 4 * second, 200), 50.0);
    }
}
