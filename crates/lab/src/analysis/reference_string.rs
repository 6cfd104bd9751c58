//! A reference string: which page a program touched when.
//!
//! Pages are dense ids. Time is virtual and comes in whole ticks: instructions where the trace has
//! them, else one tick a reference. The convention of every variable-space measure here: a tick
//! counts the pages that are resident after the references of that tick.
//!
//! # Invariants
//! 1. There is a time for each reference, or none at all.
//! 2. Times never go back.
//! 3. Every page is below `page_count`.

use tidemark_trace::Granularity;

use super::references::{Departure, References};

/// The duration of a reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Touch {
    /// The reference is over in its own tick. Right where each use of a page has a record of its
    /// own, and for recordings that note a page once a quantum.
    #[default]
    Momentary,
    /// The reference lasts until the tick before the next reference. Right for recordings of page
    /// *changes*: what happened between two records happened on the page of the first.
    UntilNext,
}

/// A sequence of references, lent.
#[derive(Clone, Copy, Debug)]
pub struct ReferenceString<'a> {
    pages: &'a [u32],
    times: &'a [u64],
    page_count: u32,
    touch: Touch,
    departures: &'a [Departure],
}

impl<'a> ReferenceString<'a> {
    /// The string of a loaded trace. If that has every change of page, uses last until the next.
    pub fn of(references: &'a References) -> ReferenceString<'a> {
        let touch = ReferenceString::touch_of(references.granularity);
        ReferenceString::new(&references.pages, references.page_count)
            .at(&references.times)
            .lasting(touch)
            .departing(&references.departures)
    }

    /// The duration of references, by their number.
    pub(crate) fn touch_of(granularity: Granularity) -> Touch {
        match granularity {
            Granularity::Exact => Touch::UntilNext,
            Granularity::Quantum(_) | Granularity::Window(_) | Granularity::Regions(_) => {
                Touch::Momentary
            }
        }
    }

    /// References one tick apart, to pages below `page_count`.
    pub fn new(pages: &'a [u32], page_count: u32) -> ReferenceString<'a> {
        ReferenceString {
            pages,
            times: &[],
            page_count,
            touch: Touch::Momentary,
            departures: &[],
        }
    }

    /// The same references at `times`, in ticks. An empty slice leaves them one tick apart.
    ///
    /// - Needs: as many times as references, never going back.
    pub fn at(self, times: &'a [u64]) -> ReferenceString<'a> {
        assert!(times.is_empty() || times.len() == self.pages.len());
        assert!(times.is_sorted());
        ReferenceString { times, ..self }
    }

    /// The same references, where each use lasts for a moment or until the next, by `touch`.
    pub fn lasting(self, touch: Touch) -> ReferenceString<'a> {
        ReferenceString { touch, ..self }
    }

    /// The same references, with pages that leave memory for good.
    ///
    /// - Needs: departures in order; no page departs twice, or is referenced afterwards.
    pub fn departing(self, departures: &'a [Departure]) -> ReferenceString<'a> {
        assert!(departures.is_sorted_by_key(|departure| departure.before));
        ReferenceString { departures, ..self }
    }

    /// The pages that leave memory for good, and the times.
    pub fn departures(&self) -> &'a [Departure] {
        self.departures
    }

    /// The pages, in the order of their references.
    pub fn pages(&self) -> &'a [u32] {
        self.pages
    }

    /// One more than the highest page id there may be.
    pub fn page_count(&self) -> u32 {
        self.page_count
    }

    /// The duration of a reference.
    pub fn touch(&self) -> Touch {
        self.touch
    }

    /// The time of the first reference, in ticks.
    pub fn start(&self) -> u64 {
        self.times.first().copied().unwrap_or(0)
    }

    /// The tick after the last reference's.
    pub fn end(&self) -> u64 {
        match self.times.last() {
            Some(&time) => time + 1,
            None => self.pages.len() as u64,
        }
    }

    /// The time of the reference at `place`, in ticks.
    pub fn time_at(&self, place: usize) -> u64 {
        self.times.get(place).copied().unwrap_or(place as u64)
    }

    /// From the first reference to the end, in ticks.
    pub fn duration(&self) -> u64 {
        self.end() - self.start()
    }

    /// The whole string as one stretch.
    pub fn stretch(&self) -> Stretch<'a> {
        Stretch {
            pages: self.pages,
            times: self.times,
            first: 0,
            next: None,
            page_count: self.page_count,
            touch: self.touch,
            departures: self.departures,
        }
    }

    /// Runs `job` with the clock that this string has, so that its loop is compiled for it.
    pub(super) fn with_clock<J: ClockJob<'a>>(self, job: J) -> J::Answer {
        if self.times.is_empty() {
            job.run(self, Counting)
        } else {
            job.run(self, Stamped(self.times))
        }
    }
}

/// References that follow one another in a string, for analyses that take a string piece by piece
/// and need not hold it.
#[derive(Clone, Copy, Debug)]
pub struct Stretch<'a> {
    /// The pages, in the order of their references.
    pub pages: &'a [u32],
    /// The times of the references, in ticks. Empty where references are one tick apart.
    pub times: &'a [u64],
    /// The number of references of the string that came before.
    pub first: u64,
    /// The time of the reference after the last one; `None` at the string's end.
    pub next: Option<u64>,
    /// A bound of the page ids up to the end of this stretch: one more than the highest.
    pub page_count: u32,
    /// The duration of a reference.
    pub touch: Touch,
    /// The pages that depart, before references here or elsewhere in the string.
    pub departures: &'a [Departure],
}

/// References among which no page departs, and what departs before them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run<'a> {
    /// The pages that depart as the first reference comes.
    pub(super) departed: &'a [u32],
    /// The time of that reference, in ticks; of no meaning where nothing departs.
    pub(super) time: u64,
    /// The references. None where more pages depart at once.
    pub(super) references: Stretch<'a>,
}

impl<'a> Stretch<'a> {
    /// The time of the first reference, if there is one.
    pub fn start(&self) -> Option<u64> {
        match self.times.first() {
            Some(&time) => Some(time),
            None if self.pages.is_empty() => None,
            None => Some(self.first),
        }
    }

    /// Calls `visit` with the page of each reference, its time, and the last tick of the use.
    #[inline(always)]
    pub(super) fn visit(&self, mut visit: impl FnMut(u32, u64, u64)) {
        let last_of = |time: u64, next: u64| match self.touch {
            Touch::UntilNext => time.max(next.saturating_sub(1)),
            Touch::Momentary => time,
        };
        let Some((&last, before)) = self.pages.split_last() else {
            return;
        };
        if self.times.is_empty() {
            // A tick each: no use outlasts its own.
            for (time, &page) in (self.first..).zip(self.pages) {
                visit(page, time, time);
            }
            return;
        }
        for (&page, pair) in before.iter().zip(self.times.windows(2)) {
            visit(page, pair[0], last_of(pair[0], pair[1]));
        }
        let time = self.times[before.len()];
        visit(last, time, last_of(time, self.next.unwrap_or(time)));
    }

    /// Parts of at most `length` references, in order.
    pub(super) fn parts(self, length: usize) -> impl Iterator<Item = Stretch<'a>> {
        let count = self.pages.len();
        (0..count)
            .step_by(length)
            .map(move |from| self.part(from, count.min(from + length)))
    }

    /// The runs between departures, in order: together they are the stretch.
    pub(super) fn runs(self) -> impl Iterator<Item = Run<'a>> {
        let end = self.first + self.pages.len() as u64;
        let from = self.departures.partition_point(|it| it.before < self.first);
        let until = self.departures.partition_point(|it| it.before < end);
        let here = &self.departures[from..until];
        let place = move |departure: &Departure| (departure.before - self.first) as usize;
        let first = Run {
            departed: &[],
            time: 0,
            references: self.part(0, here.first().map_or(self.pages.len(), place)),
        };
        let others = (0..here.len()).map(move |at| {
            let until = here.get(at + 1).map_or(self.pages.len(), place);
            let from = place(&here[at]);
            Run {
                departed: &here[at].pages,
                time: self.time_at(from),
                references: self.part(from, until),
            }
        });
        std::iter::once(first).chain(others)
    }

    /// The references at the places `from` to before `until`.
    fn part(self, from: usize, until: usize) -> Stretch<'a> {
        Stretch {
            pages: &self.pages[from..until],
            times: self.times.get(from..until).unwrap_or_default(),
            first: self.first + from as u64,
            next: match until < self.pages.len() {
                true => Some(self.time_at(until)),
                false => self.next,
            },
            ..self
        }
    }

    fn time_at(&self, place: usize) -> u64 {
        let time = self.times.get(place).copied();
        time.unwrap_or(self.first + place as u64)
    }
}

/// The tick by which a page is gone whose last use lasts until `used`, and which departs as a
/// reference at `time` comes. It stays for the tick of its use.
pub(super) fn departs_at(used: u64, time: u64) -> u64 {
    time.max(used + 1)
}

/// The times of references, by place.
pub(super) trait Clock: Copy {
    /// The time of the reference at `place`, in ticks.
    fn at(self, place: usize) -> u64;
}

/// Something done once for each kind of clock.
pub(super) trait ClockJob<'a> {
    /// The result.
    type Answer;
    /// Does it.
    fn run<C: Clock>(self, string: ReferenceString<'a>, clock: C) -> Self::Answer;
}

/// One tick a reference.
#[derive(Clone, Copy)]
pub(super) struct Counting;

impl Clock for Counting {
    #[inline(always)]
    fn at(self, place: usize) -> u64 {
        place as u64
    }
}

/// A time beside each reference.
#[derive(Clone, Copy)]
pub(super) struct Stamped<'a>(&'a [u64]);

impl Clock for Stamped<'_> {
    #[inline(always)]
    fn at(self, place: usize) -> u64 {
        self.0[place]
    }
}

/// The last tick of the reference at `place`.
#[inline(always)]
pub(super) fn last_tick<C: Clock>(string: ReferenceString<'_>, clock: C, place: usize) -> u64 {
    let time = clock.at(place);
    match string.touch {
        Touch::UntilNext if place + 1 < string.pages.len() => {
            time.max(clock.at(place + 1).saturating_sub(1))
        }
        Touch::UntilNext | Touch::Momentary => time,
    }
}
