//! VMIN: the least memory for a number of faults.
//!
//! After each use a page stays if it is used again within the window, and leaves at once if not.
//! The faults are those of the working set; no policy with as few needs less memory. It looks into
//! the future, and so bounds what is possible; the window that suits is the cost of a page-in over
//! the cost of holding a page for a tick.
//!
//! Source: B. G. Prieve and R. S. Fabry, *VMIN: An Optimal Variable-Space Page Replacement
//! Algorithm*, CACM 19(5), 1976.

use std::collections::VecDeque;

use super::ahead::{AHEAD, bring_pages_near};
use super::intervals::Intervals;
use super::reference_string::{Clock, ClockJob, ReferenceString, last_tick};
use super::residence::{Arrival, Totals, Watcher, mean};
use super::working_set::WindowPoint;

/// The VMIN curve at one window. A page that leaves at once still counts in its tick of use.
pub fn vmin_point(intervals: &Intervals, window: u64) -> WindowPoint {
    let page_time = intervals.kept_if_within(window);
    WindowPoint {
        window,
        faults: intervals.faults(window),
        page_time,
        pages_mean: mean(page_time, intervals.duration()),
    }
}

/// The sums of VMIN with `window` ticks, from a walk along the string.
pub fn run_vmin(string: ReferenceString<'_>, window: u64) -> Totals {
    watch_vmin(string, window, Totals::default())
}

/// Shows VMIN's resident set with `window` ticks to `watcher`, and returns it.
pub fn watch_vmin<W: Watcher>(string: ReferenceString<'_>, window: u64, watcher: W) -> W {
    string.with_clock(Walk { window, watcher })
}

/// The walk: everything but the clock.
struct Walk<W> {
    window: u64,
    watcher: W,
}

impl<'a, W: Watcher> ClockJob<'a> for Walk<W> {
    type Answer = W;

    fn run<C: Clock>(mut self, string: ReferenceString<'a>, clock: C) -> W {
        let stays = stays_after(string, clock, self.window);
        let pages = string.pages();
        let mut state = vec![State::New; string.page_count() as usize];
        let mut size = 0;
        let mut now = string.start();
        // From when on how many pages of late uses are gone; at most two entries.
        let mut leaving: VecDeque<(u64, u64)> = VecDeque::new();
        let mut pass = |watcher: &mut W, size: u64, time: u64| {
            if time > now {
                watcher.stayed(now, time, size);
                now = time;
            }
        };
        for (place, &page) in pages.iter().enumerate() {
            if place % AHEAD == 0 {
                let some = place..pages.len().min(place + AHEAD);
                bring_pages_near(&state, &pages[some]);
            }
            let time = clock.at(place);
            while let Some((from, count)) = leaving.pop_front_if(|entry| entry.0 <= time) {
                pass(&mut self.watcher, size, from);
                size -= count;
            }
            if state[page as usize] != State::Resident {
                pass(&mut self.watcher, size, time);
                size += 1;
                let cause = match state[page as usize] {
                    State::New => Arrival::First,
                    State::Gone | State::Resident => Arrival::Return,
                };
                self.watcher.faulted(size, cause);
            }
            state[page as usize] = State::Resident;
            if !stays[place] {
                state[page as usize] = State::Gone;
                let from = last_tick(string, clock, place) + 1;
                match leaving.back_mut() {
                    Some(entry) if entry.0 == from => entry.1 += 1,
                    Some(_) | None => leaving.push_back((from, 1)),
                }
            }
        }
        if !pages.is_empty() {
            pass(&mut self.watcher, size, string.end());
        }
        self.watcher
    }
}

/// The state that VMIN keeps of a page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Resident,
    Gone,
}

/// For each use, whether the page's next comes within `window` ticks: a pass from the end.
fn stays_after<C: Clock>(string: ReferenceString<'_>, clock: C, window: u64) -> Vec<bool> {
    const NEVER: u64 = u64::MAX;
    let pages = string.pages();
    let mut next = vec![NEVER; string.page_count() as usize];
    let mut stays = vec![false; pages.len()];
    for place in (0..pages.len()).rev() {
        if place % AHEAD == AHEAD - 1 {
            bring_pages_near(&next, &pages[place + 1 - AHEAD..=place]);
        }
        let then = std::mem::replace(&mut next[pages[place] as usize], clock.at(place));
        if then != NEVER {
            stays[place] = then - last_tick(string, clock, place) <= window;
        }
    }
    stays
}

#[cfg(test)]
mod tests;
