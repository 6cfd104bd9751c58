//! The known results on program behaviour, on recordings of real programs.
//!
//! How they were recorded is in `traces/README.md`, and what they show beside larger ones in
//! `docs/guide/working-sets.md`.

use std::path::Path;

use tidemark_lab::analysis::ageing::working_set_over_time;
use tidemark_lab::analysis::intervals::Intervals;
use tidemark_lab::analysis::lifetime::Lifetime;
use tidemark_lab::analysis::peaks::find_peaks;
use tidemark_lab::analysis::phases::{PhaseOptions, find_phases};
use tidemark_lab::analysis::reference_string::ReferenceString;
use tidemark_lab::analysis::residence::Totals;
use tidemark_lab::analysis::stack::count_depths;
use tidemark_lab::analysis::vmin::{run_vmin, vmin_point};
use tidemark_lab::analysis::working_set::{run_working_set, window_for_mean, working_set_point};
use tidemark_lab::analysis::{Choice, Loading, References};
use tidemark_trace::{Block, Granularity, Reader};

fn load(name: &str) -> References {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces");
    let mut reader = Reader::open(folder.join(name)).unwrap();
    let mut loading = Loading::of(reader.header(), Choice::All, 1);
    let mut block = Block::default();
    while reader.next_block(&mut block).unwrap() {
        loading.take(&block);
    }
    loading.finish()
}

/// The lifetime functions of LRU and of the working set.
fn lifetimes(trace: &References) -> (Lifetime, Lifetime) {
    let Granularity::Quantum(quantum) = trace.granularity else {
        panic!("it was recorded in quanta");
    };
    let intervals = Intervals::measure(ReferenceString::of(trace));
    let duration = intervals.duration();
    let misses = count_depths(&trace.pages, trace.page_count).misses();
    let sizes = misses.iter().enumerate().skip(1);
    let lru = Lifetime::new(
        duration,
        sizes.map(|(pages, &misses)| (pages as f64, misses)),
    );
    let sets = intervals.windows(32).into_iter().map(|window| {
        let point = working_set_point(&intervals, window);
        (point.pages_mean, point.faults)
    });
    (
        lru.resolved(quantum),
        Lifetime::new(duration, sets).resolved(quantum),
    )
}

#[test]
fn the_working_set_beats_lru_in_little_memory() {
    for (name, shares) in [
        ("sqlite3.tide", [7, 10, 15, 20]),
        ("sort.tide", [5, 7, 10, 15]),
    ] {
        let trace = load(name);
        let intervals = Intervals::measure(ReferenceString::of(&trace));
        let misses = count_depths(&trace.pages, trace.page_count).misses();
        for share in shares {
            let pages = intervals.distinct() * share / 100;
            let window = window_for_mean(&intervals, working_set_point, pages as f64).unwrap();
            let (set, lru) = (intervals.faults(window), misses[pages as usize]);
            assert!(
                set * 6 < lru * 5,
                "{name}: {share} %: {set} faults, LRU {lru}"
            );
        }
    }
}

#[test]
fn the_working_set_has_its_knee_at_less_than_half_the_memory() {
    for name in ["sqlite3.tide", "sort.tide"] {
        let (lru, sets) = lifetimes(&load(name));
        let lru = lru.find_knees().primary.unwrap();
        let set = sets.find_knees().primary.unwrap();
        assert!(set.pages * 2.0 < lru.pages, "{name}: {set:?}, LRU {lru:?}");
    }
}

#[test]
fn the_working_set_peaks_at_transitions() {
    for (name, pages_to) in [("sqlite3.tide", 128), ("sort.tide", 16)] {
        let trace = load(name);
        let string = ReferenceString::of(&trace);
        let levels = find_phases(string, &PhaseOptions::for_string(&string));
        let level = levels
            .iter()
            .find(|level| level.pages_to == pages_to)
            .unwrap();
        let window = string.duration() / 1000;
        let line = &working_set_over_time(string, &[window], 50_000)[0];
        let peaks = find_peaks(level, line, window);
        let out = peaks.iter().filter(|peak| peak.stands_out()).count();
        assert!(peaks.len() >= 40, "{name}: {} transitions", peaks.len());
        assert!(
            out * 4 >= peaks.len() * 3,
            "{name}: {out} of {}",
            peaks.len()
        );
    }
}

#[test]
fn walks_and_curves_agree_on_a_whole_program() {
    let trace = load("sort.tide");
    let string = ReferenceString::of(&trace);
    let intervals = Intervals::measure(string);
    for window in [1, 2_000, 1_000_000, intervals.longest()] {
        let sums = |totals: Totals| (totals.faults(), totals.page_time);
        let set = working_set_point(&intervals, window);
        let least = vmin_point(&intervals, window);
        assert_eq!(
            sums(run_working_set(string, window)),
            (set.faults, set.page_time)
        );
        assert_eq!(
            sums(run_vmin(string, window)),
            (least.faults, least.page_time)
        );
        assert!(least.page_time <= set.page_time);
    }
}
