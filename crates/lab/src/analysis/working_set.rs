//! The working set: the pages used within the last `window` ticks, the present one among them.
//!
//! At tick `t` these are the pages used in `(t - window, t]`. So a page leaves `window` ticks after
//! its use, and a use that comes just then finds it: it is a fault if and only if the interval
//! before it is longer than the window.
//!
//! Its curve comes from [`Intervals`], for any window, without running anything; its size over
//! time at many windows from one pass ([`ageing`](super::ageing)). A walk along the string, with a
//! second pointer that is one window behind, tells each change: the page there leaves if it was
//! not used since. A step is a few instructions whatever the window.
//!
//! Source: P. J. Denning, *The Working Set Model for Program Behavior*, CACM 11(5), 1968. The
//! damped variant: A. J. Smith, *A Modified Working Set Paging Algorithm*, IEEE TC C-25(9), 1976.

use super::ahead::{AHEAD, bring_pages_near};
use super::intervals::Intervals;
use super::reference_string::{Clock, ClockJob, ReferenceString, departs_at, last_tick};
use super::residence::{Arrival, Totals, Watcher, mean};

/// A point of the curve of a policy that is given a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowPoint {
    /// The window, in ticks.
    pub window: u64,
    /// Faults, first uses included.
    pub faults: u64,
    /// Resident pages times ticks, exactly.
    pub page_time: u128,
    /// Resident pages, averaged over virtual time.
    pub pages_mean: f64,
}

/// The working-set curve at one window.
///
/// A page is in the set for `window` ticks from its use on; the mean counts the set after the uses
/// of each tick.
pub fn working_set_point(intervals: &Intervals, window: u64) -> WindowPoint {
    let page_time = intervals.kept_for(window);
    WindowPoint {
        window,
        faults: intervals.faults(window),
        page_time,
        pages_mean: mean(page_time, intervals.duration()),
    }
}

/// The longest window at which a policy's mean has at most `pages_max` pages, in ticks, or `None`
/// if even the shortest, of one tick, has more. Found among all windows by halving: a mean never
/// falls with a longer window.
pub fn window_for_mean(
    intervals: &Intervals,
    point: fn(&Intervals, u64) -> WindowPoint,
    pages_max: f64,
) -> Option<u64> {
    let fits = |window| point(intervals, window).pages_mean <= pages_max;
    if !fits(1) {
        return None;
    }
    let (mut fitting, mut beyond) = (1, intervals.duration().max(2));
    if fits(beyond) {
        return Some(beyond);
    }
    while beyond - fitting > 1 {
        let middle = fitting + (beyond - fitting) / 2;
        if fits(middle) {
            fitting = middle;
        } else {
            beyond = middle;
        }
    }
    Some(fitting)
}

/// The sums of a working set of `window` ticks, from a walk along the string.
pub fn run_working_set(string: ReferenceString<'_>, window: u64) -> Totals {
    watch_working_set(string, window, Totals::default())
}

/// The sums of a damped working set: as the working set, but a page that comes takes the place
/// of the least recently used one if that was last used more than `window * damping_thousandths /
/// 1000` ticks ago.
pub fn run_damped(string: ReferenceString<'_>, window: u64, damping_thousandths: u64) -> Totals {
    let age = u128::from(window) * u128::from(damping_thousandths) / 1000;
    string.with_clock(Walk {
        window,
        damping: Some(u64::try_from(age).unwrap_or(u64::MAX)),
        watcher: Totals::default(),
    })
}

/// Shows the working set of `window` ticks to `watcher`, and returns it.
///
/// # Panics
/// If `window` is 0.
pub fn watch_working_set<W: Watcher>(string: ReferenceString<'_>, window: u64, watcher: W) -> W {
    string.with_clock(Walk {
        window,
        damping: None,
        watcher,
    })
}

/// The walk: everything but the clock.
struct Walk<W> {
    window: u64,
    /// At a fault, the least recently used page leaves if it was last used longer ago than this.
    damping: Option<u64>,
    watcher: W,
}

/// No use of the page yet.
const NEVER: u32 = u32::MAX;

impl<'a, W: Watcher> ClockJob<'a> for Walk<W> {
    type Answer = W;

    fn run<C: Clock>(mut self, string: ReferenceString<'a>, clock: C) -> W {
        assert!(self.window > 0, "`window` is 0; needs 1");
        let pages = string.pages();
        assert!(pages.len() < NEVER as usize);
        let mut resident = Resident {
            pages,
            clock,
            string,
            last: vec![NEVER; string.page_count() as usize],
            tail: 0,
            size: 0,
            now: string.start(),
            late: 0,
            late_until: 0,
        };
        let mut departures = string.departures().iter().peekable();
        for (place, &page) in pages.iter().enumerate() {
            if place % AHEAD == 0 {
                resident.look_ahead(place);
            }
            let time = clock.at(place);
            resident.let_late_go(place, self.window, time, &mut self.watcher);
            resident.expire(place, self.window, time, &mut self.watcher);
            while let Some(departure) = departures.next_if(|next| next.before <= place as u64) {
                resident.depart(&departure.pages, time, &mut self.watcher);
            }
            let before = std::mem::replace(&mut resident.last[page as usize], place as u32);
            if before != NEVER && before as usize >= resident.tail {
                continue;
            }
            resident.pass(time, &mut self.watcher);
            if let Some(age) = self.damping {
                resident.give_up_older(place, age, time);
            }
            resident.size += 1;
            let cause = match before {
                NEVER => Arrival::First,
                _ => Arrival::Return,
            };
            self.watcher.faulted(resident.size, cause);
        }
        resident.finish(self.window, &mut self.watcher);
        self.watcher
    }
}

/// The pages of the set, as the part of the string from `tail` on: a page is resident if its last
/// use lies there.
struct Resident<'a, C> {
    pages: &'a [u32],
    clock: C,
    string: ReferenceString<'a>,
    last: Vec<u32>,
    tail: usize,
    size: u64,
    now: u64,
    /// The number of pages that have departed, and stay until that tick.
    late: u64,
    late_until: u64,
}

impl<C: Clock> Resident<'_, C> {
    /// Brings near what is asked next: at both ends of the set, which go on at the same pace.
    #[inline]
    fn look_ahead(&self, place: usize) {
        for first in [place, self.tail] {
            let some = first..self.pages.len().min(first + AHEAD);
            bring_pages_near(&self.last, &self.pages[some]);
        }
    }

    /// Lets go the pages whose last use, before `place`, is more than `window` ticks before `time`.
    /// One that leaves at `time` itself may be used then, and stays for now.
    #[inline]
    fn expire<W: Watcher>(&mut self, place: usize, window: u64, time: u64, watcher: &mut W) {
        while self.tail < place {
            let leaves = last_tick(self.string, self.clock, self.tail).saturating_add(window);
            if leaves >= time {
                break;
            }
            if self.is_last_use(self.tail) {
                self.pass(leaves, watcher);
                self.size -= 1;
            }
            self.tail += 1;
        }
    }

    /// Lets pages go for good, before a use at `time`.
    fn depart<W: Watcher>(&mut self, departed: &[u32], time: u64, watcher: &mut W) {
        for &page in departed {
            let last = std::mem::replace(&mut self.last[page as usize], NEVER);
            if last == NEVER || (last as usize) < self.tail {
                continue;
            }
            let used = last_tick(self.string, self.clock, last as usize);
            if departs_at(used, time) > time {
                self.late += 1;
                self.late_until = time + 1;
            } else {
                self.pass(time, watcher);
                self.size -= 1;
            }
        }
    }

    /// Lets go what departed in the tick of its use, if that is before `time`.
    fn let_late_go<W: Watcher>(&mut self, place: usize, window: u64, time: u64, watcher: &mut W) {
        if self.late > 0 && self.late_until <= time {
            self.expire(place, window, self.late_until, watcher);
            self.pass(self.late_until, watcher);
            self.size -= std::mem::take(&mut self.late);
        }
    }

    /// Lets go the least recently used page if its last use is more than `age` ticks before
    /// `time`. The page used at `place` is not resident yet.
    fn give_up_older(&mut self, place: usize, age: u64, time: u64) {
        while self.tail < place && !self.is_last_use(self.tail) {
            self.tail += 1;
        }
        if self.tail < place && time - last_tick(self.string, self.clock, self.tail) > age {
            self.tail += 1;
            self.size -= 1;
        }
    }

    /// Tells that the size stays until `time`.
    #[inline]
    fn pass<W: Watcher>(&mut self, time: u64, watcher: &mut W) {
        if time > self.now {
            watcher.stayed(self.now, time, self.size);
            self.now = time;
        }
    }

    /// Lets go what leaves before the string's end, and goes there.
    fn finish<W: Watcher>(&mut self, window: u64, watcher: &mut W) {
        let end = self.string.end();
        self.expire(self.pages.len(), window, end, watcher);
        if !self.pages.is_empty() {
            self.pass(end, watcher);
        }
    }

    /// Returns true if the use at `place` is its page's last so far.
    #[inline]
    fn is_last_use(&self, place: usize) -> bool {
        self.last[self.pages[place] as usize] as usize == place
    }
}

#[cfg(test)]
mod tests;
