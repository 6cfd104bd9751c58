//! The length of windows: as short as sampling may cost.
//!
//! A window is over as soon as it has lasted [`SHARE`] times as long as sampling has cost in it,
//! and as it will cost to have the pages that were touched in it back. So a program that comes to
//! use less has shorter windows from the next on. Costs are measured, not assumed: what the engine
//! has used of its processor for a page that came back, and for one that it moved out.
//!
//! # Invariants
//! 1. A window lasts at least [`Windows::first_ns`], but for delays of the engine itself.
//! 2. The length that was reported last is at least that of the present window, rounded to a
//!    doubling of the first: it is reported before a window becomes longer, and when one is over
//!    that was at most half as long.

/// A window goes on until it is this many times as long as sampling costs.
const SHARE: u64 = 10;
/// The cost of a touch of a page that was moved out, beside the engine's own work: the program's
/// fault and the two changes of thread. In nanoseconds.
const FAULT_NS: u64 = 4_000;
/// The engine's assumed work for a page that comes back, and for one that it moves out, before any
/// did. In nanoseconds.
const BACK_NS: u64 = 6_000;
const MOVE_NS: u64 = 500;
/// This many pages count for as much as all before them.
const PAGES_REMEMBERED: u64 = 4096;
/// Of the pages that are moved out, this many in [`ALL`] are taken to be touched again before any
/// were.
const BACK: u64 = 128;
const ALL: u64 = 256;

/// The lengths of windows, in nanoseconds of the program's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// At least, and at first.
    pub first_ns: u64,
    /// At most: they are longer than the first while sampling costs more than a tenth of the time
    /// it samples.
    pub most_ns: u64,
    /// The touches that are kept.
    pub kept: Kept,
}

/// The touches of a window that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Each page's first.
    Pages,
    /// The touches of a few pages of each region, which represent the others.
    Regions,
}

/// The work at the end of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// The work is over. `Some`: the window was so much shorter than those before that its length
    /// is written to the trace.
    Over(Option<u64>),
    /// The work goes on. `Some`: the window becomes longer than the trace says.
    Longer(Option<u64>),
}

/// The progress of the window at hand, and the cost of sampling.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    windows: Windows,
    /// The program's time at which the window began.
    began_ns: u64,
    /// The program's time at which to look if the window is over.
    due_ns: u64,
    /// True if it is the first: what stands there then is of a forked child's parent.
    is_first: bool,
    /// The length that was told last.
    told_ns: u64,
    /// The cost of sampling in this window.
    cost_ns: u64,
    /// Pages that were moved out in it, and pages that came back.
    moved: u64,
    back: u64,
    /// The share of the second in the first in the last window, in [`ALL`].
    back_share: u64,
    back_each: Each,
    move_each: Each,
}

/// The cost of a page, in the mean of the latest.
#[derive(Clone, Copy, Debug)]
struct Each {
    ns: u64,
    pages: u64,
}

impl Pace {
    pub fn new(windows: Windows) -> Pace {
        Pace {
            windows,
            began_ns: 0,
            due_ns: 0,
            is_first: true,
            told_ns: windows.first_ns,
            cost_ns: 0,
            moved: 0,
            back: 0,
            back_share: BACK,
            back_each: Each::new(BACK_NS + FAULT_NS),
            move_each: Each::new(MOVE_NS),
        }
    }

    /// The pace of a forked child, which has all that its parent touched, and what it learned.
    pub fn of_child(self) -> Pace {
        Pace {
            told_ns: self.told_ns,
            back_share: self.back_share,
            back_each: self.back_each,
            move_each: self.move_each,
            ..Pace::new(self.windows)
        }
    }

    /// Takes in that pages came back, and what the engine worked for them.
    pub fn note_back(&mut self, pages: u64, own_ns: u64) {
        let ns = own_ns + pages * FAULT_NS;
        self.back += pages;
        self.cost_ns += ns;
        self.back_each.add(pages, ns);
    }

    /// Takes in that pages were moved out, and what that cost.
    pub fn note_moved(&mut self, pages: u64, own_ns: u64) {
        self.moved += pages;
        self.cost_ns += own_ns;
        self.move_each.add(pages, own_ns);
    }

    /// Returns true if it is time to look if the window is over.
    pub fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.due_ns
    }

    /// The time left until then.
    pub fn left_ns(&self, now_ns: u64) -> u64 {
        self.due_ns.saturating_sub(now_ns)
    }

    /// The reported length of windows, if it is not that of the first.
    pub fn told_beside_first(&self) -> Option<u64> {
        (self.told_ns != self.windows.first_ns).then_some(self.told_ns)
    }

    /// The number of pages that may be sampled in each window for a [share](SHARE) of its time.
    pub fn affordable_pages(&self) -> u64 {
        let all_ns = self.move_each.of(ALL) + self.back_each.of(self.back_share);
        self.windows.first_ns / SHARE * ALL / all_ns.max(1)
    }

    /// Looks if the window is over in which `touched` pages were touched, and begins the next if
    /// so.
    pub fn look(&mut self, now_ns: u64, touched: u64) -> Look {
        let Windows {
            first_ns, most_ns, ..
        } = self.windows;
        let lasted_ns = match self.is_first {
            true => now_ns.max(self.told_ns),
            false => now_ns.saturating_sub(self.began_ns),
        };
        let goes_on = self.cost_ns_of(touched).saturating_mul(SHARE) > lasted_ns;
        self.due_ns = (now_ns / first_ns + 1) * first_ns;
        if goes_on && lasted_ns.saturating_add(first_ns) <= most_ns {
            let longer_ns = self.rounded_ns(lasted_ns.saturating_add(first_ns));
            return Look::Longer(self.tell(longer_ns, longer_ns > self.told_ns));
        }
        let rounded_ns = self.rounded_ns(lasted_ns);
        let told = self.tell(rounded_ns, rounded_ns < self.told_ns);
        let back_share = (self.back * ALL).checked_div(self.moved);
        self.back_share = back_share.map_or(self.back_share, |share| share.min(ALL));
        (self.cost_ns, self.moved, self.back) = (0, 0, 0);
        (self.began_ns, self.is_first) = (now_ns, false);
        Look::Over(told)
    }

    /// The cost of sampling in this window, or will when what was touched is moved out, whichever
    /// is more.
    fn cost_ns_of(&self, touched: u64) -> u64 {
        let back_share = (self.back * ALL).checked_div(self.moved);
        let back_share = back_share.map_or(0, |share| share.min(ALL));
        let back = touched * back_share.max(self.back_share) / ALL;
        let next_ns = self.move_each.of(touched) + self.back_each.of(back);
        self.cost_ns.max(next_ns)
    }

    fn tell(&mut self, ns: u64, is_news: bool) -> Option<u64> {
        if is_news {
            self.told_ns = ns;
        }
        is_news.then_some(ns)
    }

    /// A length as it is reported: the least doubling of the first that is not shorter by more than
    /// what the engine may be late.
    fn rounded_ns(&self, lasted_ns: u64) -> u64 {
        let Windows {
            first_ns, most_ns, ..
        } = self.windows;
        let firsts = (lasted_ns.saturating_add(first_ns / 2) / first_ns).max(1);
        let rounded = firsts.checked_next_power_of_two().unwrap_or(firsts);
        rounded.saturating_mul(first_ns).min(most_ns)
    }
}

impl Each {
    fn new(ns: u64) -> Each {
        // What is assumed gives way to what is measured soon.
        let pages = PAGES_REMEMBERED / 16;
        Each {
            ns: ns * pages,
            pages,
        }
    }

    fn add(&mut self, pages: u64, ns: u64) {
        self.ns += ns;
        self.pages += pages;
        if self.pages > PAGES_REMEMBERED {
            let kept = PAGES_REMEMBERED / 2;
            self.ns = (u128::from(self.ns) * u128::from(kept) / u128::from(self.pages)) as u64;
            self.pages = kept;
        }
    }

    fn of(&self, pages: u64) -> u64 {
        (u128::from(self.ns) * u128::from(pages) / u128::from(self.pages)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST_NS: u64 = 100_000_000;
    const WINDOWS: Windows = Windows {
        first_ns: FIRST_NS,
        most_ns: 3_600_000_000_000,
        kept: Kept::Pages,
    };

    /// A program that uses `pages` pages over and over, until `until_ns`, where a page that comes
    /// back costs the engine `back_ns`. Answers how long each window lasted, and adds what was
    /// told.
    fn live(
        pace: &mut Pace,
        (from_ns, until_ns): (u64, u64),
        pages: u64,
        back_ns: u64,
        told: &mut Vec<u64>,
    ) -> Vec<u64> {
        let (mut now, mut began, mut lengths) = (from_ns, from_ns, vec![]);
        let mut out = true;
        while now < until_ns {
            if out {
                pace.note_back(pages, pages * back_ns);
                out = false;
            }
            now += FIRST_NS;
            match pace.look(now, pages) {
                Look::Longer(longer) => told.extend(longer),
                Look::Over(shorter) => {
                    told.extend(shorter);
                    lengths.push(now - began);
                    pace.note_moved(pages, pages * 300);
                    (began, out) = (now, true);
                }
            }
        }
        lengths
    }

    #[test]
    fn found_h1_windows_shrink_when_less_memory_is_used() {
        let (mut pace, mut told) = (Pace::new(WINDOWS), vec![]);
        let much = live(&mut pace, (0, 12_000_000_000), 15_000, 4_000, &mut told);
        // 15,000 pages cost 120 ms when they come back, and 5 ms to be moved out.
        let settled = &much[much.len() / 2..];
        assert!(settled.iter().all(|ns| *ns == 1_300_000_000), "{much:?}");
        assert_eq!(told.last(), Some(&1_600_000_000));
        let mut told = vec![];
        let span = (12_000_000_000, 24_000_000_000);
        let little = live(&mut pace, span, 1_000, 4_000, &mut told);
        assert!(little[2..].iter().all(|ns| *ns == FIRST_NS), "{little:?}");
        assert_eq!(told.last(), Some(&FIRST_NS));
    }

    #[test]
    fn windows_grow_by_what_sampling_is_measured_to_cost() {
        for (back_ns, longest) in [(1_000, 3), (36_000, 17)] {
            let (mut pace, mut told) = (Pace::new(WINDOWS), vec![]);
            let span = (0, 30_000_000_000);
            let lengths = live(&mut pace, span, 4_000, back_ns, &mut told);
            let last = lengths[lengths.len() - 1];
            assert_eq!(last, longest * FIRST_NS, "{back_ns}: {lengths:?}");
        }
    }

    #[test]
    fn a_length_that_was_asked_for_stays() {
        let fixed = Windows {
            first_ns: FIRST_NS,
            most_ns: FIRST_NS,
            ..WINDOWS
        };
        let (mut pace, mut told) = (Pace::new(fixed), vec![]);
        let lengths = live(&mut pace, (0, 3_000_000_000), 50_000, 40_000, &mut told);
        assert!(lengths.iter().all(|ns| *ns == FIRST_NS), "{lengths:?}");
        assert_eq!(told, []);
    }

    #[test]
    fn what_is_told_is_never_less_than_the_window_at_hand() {
        let (mut pace, mut told_ns) = (Pace::new(WINDOWS), FIRST_NS);
        let (mut now, mut began) = (0, 0);
        for step in 0..300_u64 {
            // Ever more pages, then fewer again.
            let pages = step.min(300 - step) * 60;
            now += FIRST_NS;
            match pace.look(now, pages) {
                Look::Longer(longer) => told_ns = longer.unwrap_or(told_ns),
                Look::Over(shorter) => {
                    told_ns = shorter.unwrap_or(told_ns);
                    assert!(now - began <= told_ns || pace.is_first, "{step}");
                    began = now;
                    pace.note_moved(pages, pages * 300);
                    pace.note_back(pages, pages * 5_000);
                }
            }
        }
        assert_eq!(told_ns, FIRST_NS);
    }
}
