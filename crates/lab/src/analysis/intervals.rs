//! Interreference intervals: the times between two uses of a page, from one pass.
//!
//! They are all it takes to know the working-set and the VMIN policy at *every* window (Denning and
//! Slutz 1978, after Denning and Schwartz 1972): a use comes as a fault exactly if the interval
//! before it is longer than the window, and a page stays resident for the interval or for the
//! window.
//!
//! Intervals run from the last tick of a use to the next use; a page's last use is followed by a
//! *tail*, to the end of the string or to where the page departs. The pass takes one table
//! look-up a reference, and a string in
//! stretches: it need not be held.
//!
//! # Bounds
//! Memory: 8 bytes a page at most, and some three for each *distinct* interval. Each page's
//! intervals add up to no more than the string lasts, so that of `p` pages in `d` ticks at most
//! the square root of `2 p d` are distinct, however many references there are.

use std::num::NonZeroU64;

use super::ahead::{AHEAD, bring_pages_near};
use super::distribution::{Collector, Distribution, STRETCH};
use super::longest::Longest;
use super::reference_string::{ReferenceString, Stretch, departs_at};

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
        measure(string.end(), None, |take| take(string.stretch())).0
    }

    /// The number of references measured.
    pub fn references(&self) -> u64 {
        self.references
    }

    /// The number of different pages they went to: the faults that no window avoids.
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
        let mut windows = vec![];
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
        windows.push(longest.max(1));
        windows
    }

    /// Page-time, in page-ticks, if each page stays for `window` ticks from its use on, or until
    /// the next one.
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

/// The sum of `numbers`, each at most `window`: the tick of the use is one of these.
fn capped(numbers: &Distribution, window: u64) -> u128 {
    let (within, ticks) = numbers.up_to(window);
    ticks + u128::from(numbers.count() - within) * u128::from(window)
}

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

/// Measures a string that ends at tick `end`, whose stretches `feed` hands over in order. Keeps
/// aside its `longest` intervals, if any are wanted.
pub fn measure(
    end: u64,
    longest: Option<Longest>,
    feed: impl FnOnce(&mut dyn FnMut(Stretch<'_>)),
) -> (Intervals, Option<Longest>) {
    // A table half as large is the faster one: it is asked at random places.
    let is_short = end <= u64::from(u32::MAX);
    match longest {
        None if is_short => (Measuring::<u32, _>::new(()).run(end, feed).0, None),
        None => (Measuring::<u64, _>::new(()).run(end, feed).0, None),
        Some(longest) => {
            let (intervals, longest) = match is_short {
                true => Measuring::<u32, _>::new(longest).run(end, feed),
                false => Measuring::<u64, _>::new(longest).run(end, feed),
            };
            (intervals, Some(longest))
        }
    }
}

/// A listener that also learns of intervals.
pub(super) trait Listener {
    /// A page was used first at `time`.
    fn began(&mut self, time: u64);
    /// A page that was used until `from` is used again at `to`.
    fn lasted(&mut self, from: u64, to: u64);
    /// A page was used until `from`, and not again; by `gone` it has departed, or all is over.
    fn ended(&mut self, from: u64, gone: u64);
}

impl Listener for () {
    #[inline(always)]
    fn began(&mut self, _time: u64) {}
    #[inline(always)]
    fn lasted(&mut self, _from: u64, _to: u64) {}
    #[inline(always)]
    fn ended(&mut self, _from: u64, _gone: u64) {}
}

/// The pass, with a table of stamps of type `S`, which holds every time of the string.
struct Measuring<S, L> {
    last: Vec<S>,
    between: Collector,
    tails: Collector,
    /// Ticks for which uses went on beyond their first.
    used: u128,
    references: u64,
    start: Option<u64>,
    listener: L,
}

impl<S: Stamp, L: Listener> Measuring<S, L> {
    fn new(listener: L) -> Measuring<S, L> {
        Measuring {
            last: Vec::new(),
            between: Collector::new(),
            tails: Collector::new(),
            used: 0,
            references: 0,
            start: None,
            listener,
        }
    }

    fn run(mut self, end: u64, feed: impl FnOnce(&mut dyn FnMut(Stretch<'_>))) -> (Intervals, L) {
        feed(&mut |stretch| self.take_all(stretch));
        self.finish(end)
    }

    fn take_all(&mut self, stretch: Stretch<'_>) {
        self.start = self.start.or(stretch.start());
        self.references += stretch.pages.len() as u64;
        let pages = stretch.page_count as usize;
        if self.last.len() < pages {
            self.last.resize(pages, S::NEVER);
        }
        for run in stretch.runs() {
            self.depart(run.departed, run.time);
            for part in run.references.parts(STRETCH) {
                self.take(part);
                self.between.settle();
            }
        }
    }

    /// Ends the tails of pages that depart at `time`.
    fn depart(&mut self, departed: &[u32], time: u64) {
        for some in departed.chunks(STRETCH) {
            for &page in some {
                let used = std::mem::replace(&mut self.last[page as usize], S::NEVER).ticks();
                let gone = departs_at(used, time);
                self.tails.take(gone - used);
                self.listener.ended(used, gone);
            }
            self.tails.settle();
        }
    }

    /// Takes in the intervals that end in `stretch`, of at most [`STRETCH`] references.
    #[inline(always)]
    fn take(&mut self, stretch: Stretch<'_>) {
        let mut used = 0;
        let (last, between) = (&mut self.last[..], &mut self.between);
        for some in stretch.parts(AHEAD) {
            bring_pages_near(last, some.pages);
            some.visit(|page, time, until| {
                used += until - time;
                let before = std::mem::replace(&mut last[page as usize], S::new(until));
                if before != S::NEVER {
                    between.take(time - before.ticks());
                    self.listener.lasted(before.ticks(), time);
                } else {
                    self.listener.began(time);
                }
            });
        }
        self.used += u128::from(used);
    }

    fn finish(mut self, end: u64) -> (Intervals, L) {
        let mut tails = self.tails;
        for stretch in self.last.chunks(STRETCH) {
            for time in stretch.iter().filter(|&&time| time != S::NEVER) {
                assert!(
                    time.ticks() < end,
                    "the string ends after its last reference"
                );
                tails.take(end - time.ticks());
                self.listener.ended(time.ticks(), end);
            }
            tails.settle();
        }
        let intervals = Intervals {
            references: self.references,
            duration: self.start.map_or(0, |start| end - start),
            used: self.used,
            between: self.between.finish(),
            tails: tails.finish(),
        };
        (intervals, self.listener)
    }
}
