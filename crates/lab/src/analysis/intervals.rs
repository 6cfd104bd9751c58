//! Interreference intervals: the times between two uses of a page, from one pass.
//!
//! They are all it takes to know the working-set and the VMIN policy at *every* window (Denning and
//! Slutz 1978, after Denning and Schwartz 1972): a use comes as a fault exactly if the interval
//! before it is longer than the window, and a page stays resident for the interval or for the
//! window.
//!
//! Intervals run from the last tick of a use to the next use; a page's last use is followed by a
//! *tail*, to the end of the string. The pass takes one table look-up a reference.

use std::num::NonZeroU64;
use std::ops::Range;

use super::ahead::{AHEAD, bring_pages_near};
use super::distribution::{Collector, Distribution, STRETCH};
use super::reference_string::{Clock, ClockJob, ReferenceString, last_tick};

/// Every interreference interval of a reference string.
#[derive(Clone, Debug)]
pub struct Intervals {
    references: u64,
    duration: u64,
    /// Ticks for which pages were being used, beyond the first tick of each use.
    used: u128,
    between: Distribution,
    tails: Distribution,
}

impl Intervals {
    /// Measures `string`, in one pass.
    pub fn measure(string: ReferenceString<'_>) -> Intervals {
        string.with_clock(Measuring)
    }

    /// How many references were measured.
    pub fn references(&self) -> u64 {
        self.references
    }

    /// How many different pages they went to: the faults that no window avoids.
    pub fn distinct(&self) -> u64 {
        self.tails.count()
    }

    /// Virtual time from the first reference to the end, in ticks.
    pub fn duration(&self) -> u64 {
        self.duration
    }

    /// Faults with a window of `window` ticks, first uses included; the same for the working set
    /// and for VMIN.
    pub fn faults(&self, window: u64) -> u64 {
        self.distinct() + self.longer_than(window)
    }

    /// Repeated uses that come more than `window` ticks after the use before.
    pub fn longer_than(&self, window: u64) -> u64 {
        self.between.count() - self.between.up_to(window).0
    }

    /// The shortest window with at most `faults_max` faults, in ticks, or `None` if even an
    /// endless one has more.
    pub fn window_for_faults(&self, faults_max: u64) -> Option<u64> {
        let allowed = faults_max.checked_sub(self.distinct())?;
        match self
            .between
            .count()
            .checked_sub(allowed)
            .and_then(NonZeroU64::new)
        {
            None => Some(0),
            Some(kept) => Some(self.between.nth(kept.get() - 1)),
        }
    }

    /// The longest interval, in ticks: with this window, or any longer one, only first uses fault.
    pub fn longest(&self) -> u64 {
        match self.between.count() {
            0 => 0,
            count => self.between.nth(count - 1),
        }
    }

    /// Windows to draw a curve with: none twice, rising, `per_doubling` for each power of two, and
    /// the longest interval last.
    pub fn windows(&self, per_doubling: u32) -> Vec<u64> {
        let longest = self.longest();
        let mut windows = vec![0];
        let mut step = 0;
        loop {
            let window = (f64::from(step) / f64::from(per_doubling)).exp2() as u64;
            if window >= longest {
                break;
            }
            if windows.last() != Some(&window) {
                windows.push(window);
            }
            step += 1;
        }
        if longest > 0 {
            windows.push(longest);
        }
        windows
    }

    /// Page-time, in page-ticks, if each page stays for `window` ticks after a use, or until the
    /// next one.
    pub(super) fn kept_for(&self, window: u64) -> u128 {
        self.used + capped(&self.between, window) + capped(&self.tails, window)
    }

    /// Page-time, in page-ticks, if a page stays until its next use where that comes within
    /// `window` ticks, and leaves at once where not.
    pub(super) fn kept_if_within(&self, window: u64) -> u128 {
        let (within, ticks) = self.between.up_to(window);
        let at_once = self.between.count() - within + self.tails.count();
        self.used + ticks + u128::from(at_once)
    }
}

/// The sum of `numbers`, each at most `window` + 1: the tick of the use, and `window` more.
fn capped(numbers: &Distribution, window: u64) -> u128 {
    let (within, ticks) = numbers.up_to(window);
    ticks + u128::from(numbers.count() - within) * (u128::from(window) + 1)
}

/// The pass, with its clock to come.
struct Measuring;

/// The time of a page's last use, as the table keeps it.
trait Stamp: Copy + PartialEq {
    /// No use of the page yet.
    const NEVER: Self;
    /// The stamp of a time that fits.
    fn new(ticks: u64) -> Self;
    /// The time.
    fn ticks(self) -> u64;
}

impl Stamp for u32 {
    const NEVER: u32 = u32::MAX;
    fn new(ticks: u64) -> u32 {
        ticks as u32
    }
    fn ticks(self) -> u64 {
        self.into()
    }
}

impl Stamp for u64 {
    const NEVER: u64 = u64::MAX;
    fn new(ticks: u64) -> u64 {
        ticks
    }
    fn ticks(self) -> u64 {
        self
    }
}

impl<'a> ClockJob<'a> for Measuring {
    type Answer = Intervals;

    fn run<C: Clock>(self, string: ReferenceString<'a>, clock: C) -> Intervals {
        // A table half as large is the faster one: it is asked at random places.
        match string.end() <= u64::from(u32::MAX) {
            true => measure::<C, u32>(string, clock),
            false => measure::<C, u64>(string, clock),
        }
    }
}

/// The pass, with a table of stamps of type `S`, which holds every time of `string`.
fn measure<C: Clock, S: Stamp>(string: ReferenceString<'_>, clock: C) -> Intervals {
    let pages = string.pages();
    let mut last = vec![S::NEVER; string.page_count() as usize];
    let mut between = Collector::new();
    let mut used = 0;
    for first in (0..pages.len()).step_by(STRETCH) {
        let stretch = first..pages.len().min(first + STRETCH);
        used += u128::from(measure_stretch(
            string,
            clock,
            stretch,
            &mut last,
            &mut between,
        ));
        between.settle();
    }
    let mut tails = Collector::new();
    for stretch in last.chunks(STRETCH) {
        for time in stretch.iter().filter(|&&time| time != S::NEVER) {
            tails.take(string.end() - time.ticks());
        }
        tails.settle();
    }
    Intervals {
        references: pages.len() as u64,
        duration: string.duration(),
        used,
        between: between.finish(),
        tails: tails.finish(),
    }
}

/// Takes in the intervals that end in `stretch`. Returns for how many ticks the uses in it went on
/// beyond their first.
#[inline(always)]
fn measure_stretch<C: Clock, S: Stamp>(
    string: ReferenceString<'_>,
    clock: C,
    stretch: Range<usize>,
    last: &mut [S],
    between: &mut Collector,
) -> u64 {
    let pages = string.pages();
    let mut used = 0;
    for first in stretch.clone().step_by(AHEAD) {
        let some = first..stretch.end.min(first + AHEAD);
        bring_pages_near(last, &pages[some.clone()]);
        for place in some {
            let time = clock.at(place);
            let until = last_tick(string, clock, place);
            used += until - time;
            let before = std::mem::replace(&mut last[pages[place] as usize], S::new(until));
            if before != S::NEVER {
                between.take(time - before.ticks());
            }
        }
    }
    used
}
