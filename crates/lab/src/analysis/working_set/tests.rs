use proptest::prelude::*;

use super::super::ageing::working_set_over_time;
use super::super::residence::Timeline;
use super::super::slow::{self, Owned, departing_strings, strings};
use super::super::vmin::{run_vmin, vmin_point};
use super::*;

fn intervals(owned: &Owned) -> Intervals {
    Intervals::measure(owned.string())
}

#[test]
fn nothing_has_an_empty_working_set() {
    let empty = ReferenceString::new(&[], 0);
    let point = working_set_point(&Intervals::measure(empty), 10);
    assert_eq!((point.faults, point.page_time), (0, 0));
    assert_eq!(run_working_set(empty, 10), Totals::default());
    assert!(working_set_over_time(empty, &[1], 5)[0].pieces.is_empty());
}

#[test]
fn a_transition_shows_as_a_peak() {
    // Ten pages in turn, then ten others: for a while both are in the set.
    let pages: Vec<u32> = (0..2000).map(|i| i % 10 + i / 1000 * 10).collect();
    let string = ReferenceString::new(&pages, 20);
    let lines = working_set_over_time(string, &[30], 100);
    let peak = lines[0].pieces.iter().map(|piece| piece.pages_max).max();
    assert_eq!(peak, Some(20));
    let calm = lines[0].pieces.iter().filter(|piece| piece.pages_max == 10);
    assert!(calm.count() > 90);
}

#[test]
fn a_piece_keeps_a_peak_of_one_tick() {
    // Three pages in one tick among thousands of ticks with one.
    let times = [0, 5000, 5000, 5000, 9999];
    let string = ReferenceString::new(&[0, 0, 1, 2, 0], 3).at(&times);
    let line = &working_set_over_time(string, &[1], 10)[0];
    let most: Vec<u64> = line.pieces.iter().map(|piece| piece.pages_max).collect();
    assert_eq!(most, [1, 0, 0, 0, 0, 3, 0, 0, 0, 1]);
}

#[test]
fn found_m9_a_window_of_one_tick_has_one_page() {
    // Denning's W(t, T) has what was used in (t - T, t].
    let pages: Vec<u32> = (0..300).map(|i| i % 3).collect();
    let string = ReferenceString::new(&pages, 3);
    for window in 1..5 {
        let totals = run_working_set(string, window);
        let line = &working_set_over_time(string, &[window], 10)[0];
        assert_eq!((totals.pages_max, line.totals), (window.min(3), totals));
        let point = working_set_point(&Intervals::measure(string), window);
        assert_eq!(point.page_time, totals.page_time);
        // An interval as long as the window is no fault.
        assert_eq!(totals.faults(), if window < 3 { 300 } else { 3 });
    }
}

#[test]
fn a_constant_set_does_not_vary() {
    let pages: Vec<u32> = (0..3000).map(|i| i % 3).collect();
    let totals = run_working_set(ReferenceString::new(&pages[..], 3), 5);
    assert_eq!(totals.pages_max, 3);
    assert!(totals.pages_variance() < 0.01);
}

proptest! {
    #[test]
    fn the_walk_is_the_definition(owned in strings(), window in 1u64..50) {
        let totals = run_working_set(owned.string(), window);
        prop_assert_eq!(totals, slow::working_set(&owned, window, None));
    }

    #[test]
    fn found_m4_pages_that_depart_leave_the_set(
        owned in departing_strings(),
        window in 1u64..50,
        damping in 0u64..1000,
    ) {
        let totals = run_working_set(owned.string(), window);
        prop_assert_eq!(totals, slow::working_set(&owned, window, None));
        let point = working_set_point(&intervals(&owned), window);
        prop_assert_eq!(point.faults, totals.faults());
        prop_assert_eq!(point.page_time, totals.page_time);
        let vmin = vmin_point(&intervals(&owned), window);
        prop_assert_eq!(vmin.page_time, run_vmin(owned.string(), window).page_time);
        let damped = run_damped(owned.string(), window, damping);
        let age = window * damping / 1000;
        prop_assert_eq!(damped, slow::working_set(&owned, window, Some(age)));
    }

    #[test]
    fn the_curve_is_the_walk(owned in strings(), window in 1u64..50) {
        let totals = run_working_set(owned.string(), window);
        let point = working_set_point(&intervals(&owned), window);
        prop_assert_eq!(point.faults, totals.faults());
        prop_assert_eq!(point.page_time, totals.page_time);
        prop_assert_eq!(intervals(&owned).duration(), totals.duration);
    }

    #[test]
    fn faults_never_rise_and_sizes_never_fall_with_the_window(owned in strings()) {
        let intervals = intervals(&owned);
        for window in 1..60 {
            let (short, long) = (window, window + 1);
            for point in [working_set_point, vmin_point] {
                let (short, long) = (point(&intervals, short), point(&intervals, long));
                prop_assert!(short.faults >= long.faults);
                prop_assert!(short.page_time <= long.page_time);
            }
        }
    }

    #[test]
    fn damping_is_its_definition(owned in strings(), window in 1u64..50, damping in 0u64..1000) {
        let totals = run_damped(owned.string(), window, damping);
        let age = window * damping / 1000;
        prop_assert_eq!(totals, slow::working_set(&owned, window, Some(age)));
    }

    #[test]
    fn pieces_add_up_to_the_whole(owned in strings(), window in 1u64..50, pieces in 1usize..20) {
        let line = &working_set_over_time(owned.string(), &[window], pieces)[0];
        prop_assert!(line.pieces.len() <= pieces);
        let ticks: u64 = line.pieces.iter().map(|piece| piece.ticks).sum();
        let page_time: u128 = line.pieces.iter().map(|piece| piece.page_time).sum();
        let faults: u64 = line.pieces.iter().map(|piece| piece.faults).sum();
        let most = line.pieces.iter().map(|piece| piece.pages_max).max().unwrap_or(0);
        let walked = Timeline::new(&owned.string(), pieces);
        if !owned.pages.is_empty() {
            prop_assert_eq!(line, &watch_working_set(owned.string(), window, walked));
        }
        let totals = line.totals;
        prop_assert_eq!((ticks, page_time), (totals.duration, totals.page_time));
        prop_assert_eq!((faults, most), (totals.faults(), totals.pages_max));
        for piece in &line.pieces {
            prop_assert!(piece.pages_min as f64 <= piece.pages_mean());
            prop_assert!(piece.pages_mean() <= piece.pages_max as f64);
        }
    }

    #[test]
    fn the_window_for_a_mean_is_the_longest(owned in strings(), pages in 0u32..8) {
        let intervals = intervals(&owned);
        let fits = |w| working_set_point(&intervals, w).pages_mean <= f64::from(pages);
        match window_for_mean(&intervals, working_set_point, pages.into()) {
            None => prop_assert!(!fits(1)),
            Some(window) if window >= intervals.duration() => prop_assert!(fits(window)),
            Some(window) => prop_assert!(fits(window) && !fits(window + 1)),
        }
    }

    #[test]
    fn the_window_for_faults_is_the_shortest(owned in strings(), faults_max in 0u64..30) {
        let intervals = intervals(&owned);
        match intervals.window_for_faults(faults_max) {
            None => prop_assert!(intervals.faults(intervals.longest()) > faults_max),
            Some(0) => prop_assert!(intervals.faults(0) <= faults_max),
            Some(window) => {
                prop_assert!(intervals.faults(window) <= faults_max);
                prop_assert!(intervals.faults(window - 1) > faults_max);
            }
        }
    }
}
