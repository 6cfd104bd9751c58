//! The last second of a space's paging: what it had to fetch, how long its programs waited for
//! pages, and how long they ran.

use alloc::collections::VecDeque;

use crate::seams::load_control::SpaceLoad;
use crate::time::Time;

/// The length of what is remembered.
pub const WINDOW_NS: u64 = 1_000_000_000;
/// The time between two samples.
const STEP_NS: u64 = 50_000_000;

/// The counts of a space over the last second.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Samples of the latest ticks, the oldest first.
    samples: VecDeque<Sample>,
    last: Sample,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    at: Time,
    page_ins: u64,
    waited_ns: u64,
    ran_ns: u64,
    paged_ns: u64,
}

/// The doings of a space's programs in a span of time, of all threads together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Doings {
    /// The time that they waited for pages.
    pub waited_ns: u64,
    /// The time that programs used a processor.
    pub ran_ns: u64,
    /// The time that their paging used one.
    pub paged_ns: u64,
    /// The length of the span.
    pub span_ns: u64,
}

impl Doings {
    /// The share of their time that they waited for pages, in hundredths. What they waited for a
    /// processor, or for others, counts for neither side: where tasks are many, that is most of
    /// the time, whether they page or not.
    pub fn waited_percent(&self) -> u64 {
        let both = u128::from(self.waited_ns) + u128::from(self.ran_ns);
        (u128::from(self.waited_ns) * 100 / both.max(1)) as u64
    }
}

impl History {
    /// Learns how a space stands at `now`.
    pub fn note(&mut self, now: Time, load: &SpaceLoad) {
        self.last = Sample {
            at: now,
            page_ins: load.page_ins,
            waited_ns: load.waited_ns,
            ran_ns: load.turn.ran_ns,
            paged_ns: load.paged_ns,
        };
        let is_due = |newest: &Sample| now.since_ns(newest.at) >= STEP_NS;
        if self.samples.back().is_none_or(is_due) {
            self.samples.push_back(self.last);
        }
        // The oldest that is kept is as old as the window, or older by less than a step.
        while self.samples.len() > 1 && now.since_ns(self.samples[1].at) >= WINDOW_NS {
            self.samples.pop_front();
        }
    }

    /// Returns true if it goes back for as long as is remembered.
    pub fn is_whole(&self) -> bool {
        let oldest = self.samples.front();
        oldest.is_some_and(|oldest| self.last.at.since_ns(oldest.at) >= WINDOW_NS)
    }

    /// The frames that a space needs by what it has now and what it had to fetch within the last
    /// second: a page that it fetched twice counts twice.
    pub fn demand(&self, resident: u32) -> u32 {
        let before = self.samples.front().map_or(0, |oldest| oldest.page_ins);
        let fetched = self.last.page_ins.saturating_sub(before);
        resident.saturating_add(u32::try_from(fetched).unwrap_or(u32::MAX))
    }

    /// The doings of its programs within the last `span_ns`, or little more. `None` if less than
    /// that is remembered.
    pub fn doings(&self, span_ns: u64) -> Option<Doings> {
        let is_old = |sample: &&Sample| self.last.at.since_ns(sample.at) >= span_ns;
        let from = self.samples.iter().rev().find(is_old)?;
        Some(Doings {
            waited_ns: self.last.waited_ns.saturating_sub(from.waited_ns),
            ran_ns: self.last.ran_ns.saturating_sub(from.ran_ns),
            paged_ns: self.last.paged_ns.saturating_sub(from.paged_ns),
            span_ns: self.last.at.since_ns(from.at),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::SpaceId;
    use crate::seams::load_control::Turn;

    const MS: u64 = 1_000_000;

    fn load(page_ins: u64, waited_ns: u64, ran_ns: u64) -> SpaceLoad {
        SpaceLoad {
            space: SpaceId(0),
            faults: 0,
            page_ins,
            waited_ns,
            paged_ns: 0,
            resident: 0,
            demand: None,
            turn: Turn {
                ran_ns,
                ..Turn::default()
            },
            is_suspended: false,
        }
    }

    #[test]
    fn what_was_fetched_counts_for_a_second() {
        let mut history = History::default();
        assert_eq!(history.demand(10), 10);
        for step in 0..40 {
            // Ten pages in each of the first twenty steps.
            let page_ins = 10 * step.min(20);
            history.note(Time(step * STEP_NS), &load(page_ins, 0, 0));
            assert_eq!(history.is_whole(), step >= 20);
            let within = page_ins - 10 * step.saturating_sub(20).min(20);
            assert_eq!(u64::from(history.demand(5)), 5 + within, "{step}");
        }
    }

    #[test]
    fn doings_are_told_of_a_span_that_is_remembered() {
        let mut history = History::default();
        history.note(Time(0), &load(0, 0, 0));
        history.note(Time(100 * MS), &load(0, 100 * MS, 0));
        assert_eq!(history.doings(200 * MS), None);
        let doings = history.doings(100 * MS).unwrap();
        assert_eq!(doings.waited_percent(), 100);
        history.note(Time(300 * MS), &load(0, 150 * MS, 50 * MS));
        let doings = history.doings(200 * MS).unwrap();
        let (waited_ns, ran_ns, span_ns) = (50 * MS, 50 * MS, 200 * MS);
        assert_eq!(
            doings,
            Doings {
                waited_ns,
                ran_ns,
                paged_ns: 0,
                span_ns
            }
        );
    }

    #[test]
    fn what_is_spent_on_neither_counts_for_neither() {
        let share = |waited_ns, ran_ns| {
            let span_ns = 200 * MS;
            let doings = Doings {
                waited_ns,
                ran_ns,
                paged_ns: 0,
                span_ns,
            };
            doings.waited_percent()
        };
        assert_eq!(share(0, 0), 0);
        assert_eq!(share(20 * MS, 5 * MS), 80);
        // Four threads of one task.
        assert_eq!(share(600 * MS, 200 * MS), 75);
    }
}
