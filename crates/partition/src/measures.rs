//! Measures: the use that a process makes of its memory, from existing counts.
//!
//! A [`Meter`] sees the counts of one process at each [interval](crate::INTERVAL_NS). It keeps
//! those of the last second: a page-in shows that an absent page was needed, a minor fault that an
//! unmapped one was. A process that takes neither, and no processor time, is idle.

/// The number of intervals that a second has.
const SPAN: usize = 5;
/// The processor time within a second up to which a process does nothing: the kernel counts in
/// ticks of 10 ms, and what its engine does is taken off to the nanosecond.
const IDLE_NS_MAX: u64 = 20_000_000;
/// The least processor time for which a frequency is computed. A few faults within a shorter time
/// say nothing.
const FREQUENCY_NS_MIN: u64 = 50_000_000;
/// The part of its frames, as a divisor, of which a process touches at least one in a second that
/// uses them all: less means that it is worth a trial with fewer.
const TOUCHED_PART: u64 = 8;
/// The part of its frames, as a divisor, that such a process does not need on trial.
const TRIAL_PART: u64 = 2;

/// The counts of one process so far, and what it has now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The pages that it has moved in and out.
    pub pages_moved: u64,
    /// The faults that have waited for the store.
    pub page_ins: u64,
    /// The faults on pages that were in memory, unmapped.
    pub minor_faults: u64,
    /// The processor time that it has used; `None` if that is not known.
    pub processor_ns: Option<u64>,
    /// The frames that it uses.
    pub resident: u64,
    /// The pages that it has in all, in memory or in the store.
    pub size: u64,
}

/// The measures of one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measures {
    /// The number of pages that it moved in and out lately: half of it in the last interval, half
    /// before, as one quiet interval does not make a process idle.
    pub pressure: u64,
    /// The number of its faults within the last interval that waited for the store.
    pub page_ins: u64,
    /// The number of its faults within the last second that waited for the store, for each second
    /// of processor time.
    pub frequency: u64,
    /// The pages that it has in all.
    pub size: u64,
    /// The frames that it needs, estimated from the last second; `None` if it is not known for as
    /// long as that.
    pub demand: Option<u64>,
    /// True if the process has done nothing within the last second.
    pub is_idle: bool,
}

/// The last second of one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meter {
    last: Option<Counts>,
    steps: [Step; SPAN],
    /// The number of steps that have been noted.
    noted: usize,
    pressure: u64,
}

/// The doings of one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Step {
    page_ins: u64,
    minor_faults: u64,
    processor_ns: Option<u64>,
}

impl Meter {
    /// Learns the counts at the end of an interval, and measures.
    pub fn note(&mut self, counts: Counts) -> Measures {
        // The first counts begin with the process: what it did before is its first interval's.
        let before = self.last.replace(counts).unwrap_or_default();
        let since = |now: u64, then: u64| now.saturating_sub(then);
        let processor_ns = counts.processor_ns.zip(before.processor_ns);
        let step = Step {
            page_ins: since(counts.page_ins, before.page_ins),
            minor_faults: since(counts.minor_faults, before.minor_faults),
            processor_ns: processor_ns.map(|(now, then)| since(now, then)),
        };
        self.steps[self.noted % SPAN] = step;
        self.noted += 1;
        let moved = since(counts.pages_moved, before.pages_moved);
        self.pressure = (self.pressure + moved) / 2;
        self.measure(&counts, step.page_ins)
    }

    fn measure(&self, counts: &Counts, page_ins: u64) -> Measures {
        let sum = |of: fn(&Step) -> u64| self.steps.iter().map(of).sum::<u64>();
        let fetched = sum(|step| step.page_ins);
        let minor_faults = sum(|step| step.minor_faults);
        let is_whole = self.noted >= SPAN;
        let processor_ns = self.steps.iter().map(|step| step.processor_ns);
        let processor_ns: Option<u64> = processor_ns.sum();
        let is_resting = processor_ns.is_some_and(|ns| ns <= IDLE_NS_MAX);
        let is_idle = is_whole && is_resting && fetched == 0;
        let least_ns = processor_ns.unwrap_or(0).max(FREQUENCY_NS_MIN);
        Measures {
            pressure: self.pressure,
            page_ins,
            frequency: (u128::from(fetched) * 1_000_000_000 / u128::from(least_ns)) as u64,
            size: counts.size,
            demand: is_whole.then(|| match is_idle {
                true => 0,
                false => demand(counts, fetched, fetched + minor_faults),
            }),
            is_idle,
        }
    }
}

/// The frames that a process needs, by its fetches and minor faults within a second: what it has
/// and what it fetched, and no more than it has at all. One that touched next to none of them is
/// tried with less.
fn demand(counts: &Counts, fetched: u64, touched: u64) -> u64 {
    let trial = match touched.saturating_mul(TOUCHED_PART) < counts.resident {
        true => counts.resident / TRIAL_PART,
        false => 0,
    };
    (counts.resident + fetched - trial).min(counts.size.max(counts.resident - trial))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A process of 1000 pages, 600 of them in memory, that has done nothing yet.
    fn quiet() -> Counts {
        Counts {
            processor_ns: Some(0),
            resident: 600,
            size: 1000,
            ..Counts::default()
        }
    }

    /// The measures after a number of intervals, in each of which it did the same.
    fn after(intervals: u64, each: Counts) -> Measures {
        let mut meter = Meter::default();
        let mut measures = Measures::default();
        for interval in 1..=intervals {
            measures = meter.note(Counts {
                pages_moved: each.pages_moved * interval,
                page_ins: each.page_ins * interval,
                minor_faults: each.minor_faults * interval,
                processor_ns: each.processor_ns.map(|ns| ns * interval),
                ..each
            });
        }
        measures
    }

    #[test]
    fn who_does_nothing_for_a_second_is_idle_and_needs_nothing() {
        let measures = after(4, quiet());
        assert_eq!((measures.demand, measures.is_idle), (None, false));
        let measures = after(6, quiet());
        assert_eq!((measures.demand, measures.is_idle), (Some(0), true));
        let busy = Counts {
            processor_ns: Some(5 * MS),
            ..quiet()
        };
        assert!(!after(9, busy).is_idle);
        let waiting = Counts {
            page_ins: 1,
            ..quiet()
        };
        assert!(!after(9, waiting).is_idle, "it waits for the store");
        let unknown = Counts {
            processor_ns: None,
            ..quiet()
        };
        assert!(!after(9, unknown).is_idle, "it is not known");
    }

    #[test]
    fn one_quiet_interval_does_not_take_all_pressure_away() {
        let mut meter = Meter::default();
        let moved = |pages_moved| Counts {
            pages_moved,
            ..quiet()
        };
        assert_eq!(meter.note(moved(800)).pressure, 400);
        assert_eq!(meter.note(moved(800)).pressure, 200);
        assert_eq!(meter.note(moved(1000)).pressure, 200);
    }

    #[test]
    fn what_was_fetched_within_a_second_is_needed_up_to_all_that_there_is() {
        let fetching = |page_ins| Counts {
            page_ins,
            processor_ns: Some(100 * MS),
            ..quiet()
        };
        assert_eq!(after(9, fetching(20)).demand, Some(700));
        assert_eq!(after(9, fetching(80)).demand, Some(1000));
        assert_eq!(after(9, fetching(20)).page_ins, 20);
        assert_eq!(after(9, fetching(20)).frequency, 200);
    }

    #[test]
    fn who_touches_next_to_nothing_is_tried_with_less() {
        let touching = |minor_faults| Counts {
            minor_faults,
            processor_ns: Some(100 * MS),
            ..quiet()
        };
        assert_eq!(after(9, touching(0)).demand, Some(300));
        assert_eq!(
            after(9, touching(16)).demand,
            Some(600),
            "a minor fault shows use"
        );
    }

    #[test]
    fn a_frequency_is_that_of_processor_time_if_there_was_enough() {
        let faulting = |ns| Counts {
            page_ins: 10,
            processor_ns: Some(ns),
            ..quiet()
        };
        assert_eq!(after(9, faulting(200 * MS)).frequency, 50);
        assert_eq!(after(9, faulting(20 * MS)).frequency, 500);
        assert_eq!(after(9, faulting(0)).frequency, 1000, "not without bound");
    }
}
