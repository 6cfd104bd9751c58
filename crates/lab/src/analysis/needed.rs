//! The memory that a program needs: the least that slows it down by no more than is bearable.
//!
//! The measure is the program's own time with memory in plenty: its ticks, at an assumed rate.
//! First uses of pages cost the same in any memory and are left out. So a slow-down is page-ins
//! times the cost of one, over that time; page-ins that overlap with work, or come in clusters,
//! cost less.

use super::intervals::Intervals;
use super::longest::Longest;
use super::reference_string::ReferenceString;
use super::residence::Totals;
use super::sight::Sight;
use super::vmin::{run_vmin, vmin_point};
use super::working_set::{run_working_set, working_set_point};

/// The bearable slow-down, and the assumptions. To be shown with every answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// The most slow-down, as a share of the program's own time: 0.05 for 5 %.
    pub slow_down_max: f64,
    /// The wait for one page, in ns.
    pub page_in_ns: f64,
    /// Ticks in a second of the program's own time: instructions, or references.
    pub ticks_per_second: f64,
}

impl Terms {
    /// The program's own time, in ns.
    pub fn own_ns(&self, duration_ticks: u64) -> f64 {
        duration_ticks as f64 / self.ticks_per_second * 1e9
    }

    /// The most page-ins that are bearable.
    pub fn page_ins_max(&self, duration_ticks: u64) -> u64 {
        (self.own_ns(duration_ticks) * self.slow_down_max / self.page_in_ns) as u64
    }

    /// The slow-down by page-ins, as a share of the program's own time.
    pub fn slow_down(&self, duration_ticks: u64, page_ins: u64) -> f64 {
        page_ins as f64 * self.page_in_ns / self.own_ns(duration_ticks)
    }
}

/// An answer: the memory that a policy needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Needed {
    /// Memory, averaged over virtual time, in pages.
    pub pages_mean: f64,
    /// The most memory at any time, in pages. For fixed-space policies the same.
    pub pages_max: u64,
    /// For policies with a window: the shortest that will do, in ticks.
    pub window: Option<u64>,
    /// Page-ins, without first uses.
    pub page_ins: u64,
    /// The slow-down that follows, as a share of the program's own time.
    pub slow_down: f64,
    /// True if less may suffice: the trace shows nothing below.
    pub is_at_most: bool,
}

/// The fewest frames among `points` with which a fixed-space policy stays within `terms`, or `None`
/// if it does with none of them.
///
/// A point is a number of frames and its faults, first uses included; in any order. `distinct` is
/// the number of first uses. Of fewer frames than `sight` has an answer for, faults are too few:
/// if it does with those, too, it needs at most the fewest that there is an answer for.
pub fn needed_fixed(
    points: impl IntoIterator<Item = (u64, u64)>,
    duration_ticks: u64,
    distinct: u64,
    terms: &Terms,
    sight: Sight,
) -> Option<Needed> {
    let page_ins_max = terms.page_ins_max(duration_ticks);
    let page_ins = |faults: u64| faults.saturating_sub(distinct);
    let fits = points
        .into_iter()
        .filter(|&(_, faults)| page_ins(faults) <= page_ins_max);
    let (out_of_sight, fits): (Vec<_>, Vec<_>) =
        fits.partition(|(pages, _)| *pages < sight.pages_min);
    let (pages, faults) = fits.into_iter().min()?;
    Some(Needed {
        is_at_most: !out_of_sight.is_empty(),
        pages_mean: pages as f64,
        pages_max: pages,
        window: None,
        page_ins: page_ins(faults),
        slow_down: terms.slow_down(duration_ticks, page_ins(faults)),
    })
}

/// The least working set that stays within `terms`; searched among all windows.
///
/// - Needs: `intervals` are those of `string`.
pub fn needed_working_set(
    string: ReferenceString<'_>,
    intervals: &Intervals,
    terms: &Terms,
    sight: Sight,
) -> Needed {
    let (window, is_at_most) = window_in_sight(intervals, terms, sight);
    let totals = run_working_set(string, window);
    assert_eq!(
        totals.page_time,
        working_set_point(intervals, window).page_time
    );
    with_window(window, &totals, terms, is_at_most)
}

/// The least memory that any policy could do with, in the mean: VMIN's. As [`needed_working_set`].
///
/// Of a sampled trace a page has one touch in a window, however long it was in use: VMIN would give
/// it up at once. Where the answer depends on that, it is the working set's, which is enough.
pub fn needed_vmin(
    string: ReferenceString<'_>,
    intervals: &Intervals,
    terms: &Terms,
    sight: Sight,
) -> Needed {
    let (window, is_at_most) = window_in_sight(intervals, terms, sight);
    if is_at_most {
        return needed_working_set(string, intervals, terms, sight);
    }
    let totals = run_vmin(string, window);
    assert_eq!(totals.page_time, vmin_point(intervals, window).page_time);
    with_window(window, &totals, terms, is_at_most)
}

/// As [`needed_working_set`], of a string that is not held.
///
/// - Needs: `longest` are those of the same string, more than there may be bearable page-ins.
pub fn needed_working_set_of(
    intervals: &Intervals,
    longest: &Longest,
    terms: &Terms,
    sight: Sight,
) -> Needed {
    let (window, is_at_most) = window_in_sight(intervals, terms, sight);
    Needed {
        is_at_most,
        pages_mean: working_set_point(intervals, window).pages_mean,
        pages_max: longest.working_set_peak(window),
        ..of_window(intervals, window, terms)
    }
}

/// As [`needed_vmin`], of a string that is not held. As [`needed_working_set_of`].
pub fn needed_vmin_of(
    intervals: &Intervals,
    longest: &Longest,
    terms: &Terms,
    sight: Sight,
) -> Needed {
    let (window, is_at_most) = window_in_sight(intervals, terms, sight);
    if is_at_most {
        return needed_working_set_of(intervals, longest, terms, sight);
    }
    Needed {
        is_at_most,
        pages_mean: vmin_point(intervals, window).pages_mean,
        pages_max: longest.vmin_peak(window),
        ..of_window(intervals, window, terms)
    }
}

/// The answer with `window`, but for the pages that a policy has.
fn of_window(intervals: &Intervals, window: u64, terms: &Terms) -> Needed {
    let page_ins = intervals.longer_than(window);
    Needed {
        is_at_most: false,
        pages_mean: 0.0,
        pages_max: 0,
        window: Some(window),
        page_ins,
        slow_down: terms.slow_down(intervals.duration(), page_ins),
    }
}

/// The shortest bearable window that the trace can show, and whether a shorter one may suffice.
fn window_in_sight(intervals: &Intervals, terms: &Terms, sight: Sight) -> (u64, bool) {
    let shortest = shortest_window(intervals, terms);
    let window = shortest.max(sight.window_min);
    (window, shortest < window)
}

/// The shortest window that is bearable. There is one: the longest interval leaves no page-ins.
fn shortest_window(intervals: &Intervals, terms: &Terms) -> u64 {
    let bearable = terms.page_ins_max(intervals.duration());
    let faults_max = intervals.distinct().saturating_add(bearable);
    let found = intervals.window_for_faults(faults_max);
    found.expect("an endless window has first uses only").max(1)
}

/// The answer from a run with `window`.
fn with_window(window: u64, totals: &Totals, terms: &Terms, is_at_most: bool) -> Needed {
    Needed {
        is_at_most,
        pages_mean: totals.pages_mean(),
        pages_max: totals.pages_max,
        window: Some(window),
        page_ins: totals.returns,
        slow_down: terms.slow_down(totals.duration, totals.returns),
    }
}

#[cfg(test)]
mod tests {
    use super::super::intervals::measure;
    use super::*;

    const TERMS: Terms = Terms {
        slow_down_max: 0.1,
        page_in_ns: 1000.0,
        ticks_per_second: 1e8,
    };

    #[test]
    fn the_fewest_frames_that_will_do() {
        // 10,000 ticks of 10 ns: 0.1 ms, of which a tenth is ten page-ins.
        assert_eq!(TERMS.page_ins_max(10_000), 10);
        let points = [(4, 15), (1, 100), (2, 16), (3, 15)];
        let needed = needed_fixed(points, 10_000, 5, &TERMS, Sight::FULL).unwrap();
        assert_eq!((needed.pages_max, needed.page_ins), (3, 10));
        assert_eq!(needed.slow_down, 0.1);
        let none = needed_fixed(points, 10_000, 4, &TERMS, Sight::FULL);
        assert_eq!(none, None);
    }

    #[test]
    fn found_h1_less_than_a_window_touches_is_no_answer() {
        let sight = Sight {
            pages_min: 3,
            window_min: 50,
        };
        let points = [(1, 6), (2, 6), (3, 5), (4, 5)];
        let needed = needed_fixed(points, 10_000, 5, &TERMS, sight).unwrap();
        assert_eq!((needed.pages_max, needed.is_at_most), (3, true));
        // What does not fit, with misses that are too few, is less than enough in any case.
        let points = [(1, 60), (2, 60), (3, 60), (4, 5)];
        let needed = needed_fixed(points, 10_000, 5, &TERMS, sight).unwrap();
        assert_eq!((needed.pages_max, needed.is_at_most), (4, false));
        let pages: Vec<u32> = (0..100).collect();
        let string = ReferenceString::new(&pages, 100);
        let intervals = Intervals::measure(string);
        for needed in [
            needed_working_set(string, &intervals, &TERMS, sight),
            needed_vmin(string, &intervals, &TERMS, sight),
        ] {
            assert_eq!((needed.window, needed.is_at_most), (Some(50), true));
            // A new page each tick is in use for up to a window: one page is not enough.
            assert!(needed.pages_mean > 30.0, "{needed:?}");
        }
    }

    #[test]
    fn the_working_set_needs_less_in_the_mean_than_at_most() {
        // A loop over 10 pages for long, over 30 for a while, again and again.
        let pages: Vec<u32> = (0..100_000)
            .map(|i| if i % 10_000 < 8_000 { i % 10 } else { i % 30 })
            .collect();
        let string = ReferenceString::new(&pages, 30);
        let intervals = Intervals::measure(string);
        // 20 pages come back nine times.
        let terms = Terms {
            slow_down_max: 0.19,
            ..TERMS
        };
        let set = needed_working_set(string, &intervals, &terms, Sight::FULL);
        assert_eq!((terms.page_ins_max(100_000), set.page_ins), (190, 180));
        assert!(set.slow_down <= 0.19);
        assert_eq!(set.pages_max, 30);
        assert!(set.pages_mean < 20.0, "{set:?}");
        let shorter = set.window.unwrap() - 1;
        assert!(intervals.longer_than(shorter) > 190);
        let least = needed_vmin(string, &intervals, &terms, Sight::FULL);
        assert_eq!((least.window, least.page_ins), (set.window, set.page_ins));
        assert!(least.pages_mean <= set.pages_mean);
        let longest = Longest::new(191, string.end());
        let (same, longest) = measure(string.end(), Some(longest), |take| take(string.stretch()));
        let longest = longest.unwrap();
        assert_eq!(
            needed_working_set_of(&same, &longest, &terms, Sight::FULL),
            set
        );
        assert_eq!(needed_vmin_of(&same, &longest, &terms, Sight::FULL), least);
    }

    #[test]
    fn a_program_that_uses_nothing_twice_needs_one_page() {
        let pages: Vec<u32> = (0..100).collect();
        let string = ReferenceString::new(&pages, 100);
        let intervals = Intervals::measure(string);
        let needed = needed_working_set(string, &intervals, &TERMS, Sight::FULL);
        assert_eq!(
            (needed.window, needed.pages_max, needed.page_ins),
            (Some(1), 1, 0)
        );
    }
}
