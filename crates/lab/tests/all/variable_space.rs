//! Working set, VMIN and PFF on the golden traces: the published counts, exactly, both from the
//! analyses and from the core's policies where every reference is shown to them.

use std::collections::BTreeMap;

use tidemark_core::policies;
use tidemark_lab::analysis::intervals::Intervals;
use tidemark_lab::analysis::pff::run_pff;
use tidemark_lab::analysis::reference_string::ReferenceString;
use tidemark_lab::analysis::residence::Totals;
use tidemark_lab::analysis::vmin::{run_vmin, vmin_point};
use tidemark_lab::analysis::working_set::{
    WindowPoint, run_damped, run_working_set, working_set_point,
};
use tidemark_model::{room, traces};

/// Dense ids in the order of first use.
fn dense(pages: &[u64]) -> (Vec<u32>, u32) {
    let mut ids = BTreeMap::new();
    let renamed = pages.iter().map(|&page| {
        let next = ids.len() as u32;
        *ids.entry(page).or_insert(next)
    });
    let renamed = renamed.collect();
    (renamed, ids.len() as u32)
}

/// Faults, and mean resident pages in thousandths, cut.
type Row = [(u64, u128); 6];

fn row(measure: impl Fn(ReferenceString<'_>) -> (u64, u128)) -> Row {
    traces::golden().map(|trace| {
        let (pages, count) = dense(&trace.pages);
        let string = ReferenceString::new(&pages, count);
        let (faults, page_time) = measure(string);
        (faults, page_time * 1000 / u128::from(string.duration()))
    })
}

fn point_row(point: fn(&Intervals, u64) -> WindowPoint, window: u64) -> Row {
    row(|string| {
        let point = point(&Intervals::measure(string), window);
        (point.faults, point.page_time)
    })
}

fn run_row(run: impl Fn(ReferenceString<'_>) -> Totals) -> Row {
    row(|string| {
        let totals = run(string);
        (totals.faults(), totals.page_time)
    })
}

/// The published rows. They count each page for a tick longer than Denning's definition: for the
/// ticks from `t - window` to `t`.
const WORKING_SETS: [(u64, Row); 3] = [
    (
        100,
        [
            (15000, 100663),
            (25889, 51394),
            (165307, 91789),
            (28973, 57701),
            (16000, 100684),
            (182715, 96429),
        ],
    ),
    (
        200,
        [
            (150, 149255),
            (12545, 67001),
            (138851, 167403),
            (9298, 74602),
            (160, 159205),
            (169431, 184239),
        ],
    ),
    (
        400,
        [
            (150, 149255),
            (10114, 86335),
            (102025, 286121),
            (2196, 83157),
            (160, 159205),
            (151092, 343513),
        ],
    ),
];

const VMINS: [(u64, Row); 2] = [
    (
        100,
        [
            (15000, 1000),
            (25889, 27889),
            (165307, 9160),
            (28973, 28763),
            (16000, 1000),
            (182715, 5096),
        ],
    ),
    (
        200,
        [
            (150, 148510),
            (12545, 44277),
            (138851, 28643),
            (9298, 56106),
            (160, 158410),
            (169431, 14904),
        ],
    ),
];

const PFFS: [(u64, Row); 2] = [
    (
        5,
        [
            (150, 149255),
            (67343, 24363),
            (156782, 116527),
            (63953, 29015),
            (160, 159205),
            (159449, 266870),
        ],
    ),
    (
        50,
        [
            (150, 149255),
            (10050, 5049569),
            (51486, 523467),
            (2870, 97731),
            (160, 159205),
            (65497, 477639),
        ],
    ),
];

#[test]
fn found_m9_the_working_set_is_the_published_one_less_the_tick_it_leaves_in() {
    for (window, published) in WORKING_SETS {
        let row = point_row(working_set_point, window);
        let run = run_row(|string| run_working_set(string, window));
        assert_eq!(run, row, "window {window}");
        let faults = |row: Row| row.map(|counts| counts.0);
        assert_eq!(faults(row), faults(published), "window {window}");
        // The sizes are published ones, of a window that is one tick shorter.
        let longer = point_row(working_set_point, window + 1);
        let means = |row: Row| row.map(|counts| counts.1);
        assert_eq!(means(longer), means(published), "window {window}");
    }
}

#[test]
fn vmin_is_the_published_one() {
    for (window, expected) in VMINS {
        assert_eq!(point_row(vmin_point, window), expected, "window {window}");
        assert_eq!(
            run_row(|string| run_vmin(string, window)),
            expected,
            "window {window}"
        );
    }
}

#[test]
fn pff_is_the_published_one() {
    let criticals = PFFS.map(|(critical, _)| critical);
    for (place, (critical, expected)) in PFFS.into_iter().enumerate() {
        let counts = run_row(|string| run_pff(string, &criticals)[place]);
        assert_eq!(counts, expected, "critical interval {critical}");
    }
}

/// The row of the core's policy of that name, with a tick a reference.
fn policy_row(name: &'static str, knobs: &[(&'static str, u64)]) -> Row {
    traces::golden().map(|trace| {
        let (pages, count) = dense(&trace.pages);
        let policy = policies::build(name, count, count, 0, knobs).expect("it is known");
        let pages: Vec<u64> = pages.into_iter().map(u64::from).collect();
        let cost = room::replay_exactly(policy, count, &pages);
        (cost.faults, cost.page_time * 1000 / pages.len() as u128)
    })
}

#[test]
fn the_core_s_working_set_is_the_published_one() {
    for (window, expected) in WORKING_SETS {
        let row = policy_row("working-set", &[("window", window)]);
        assert_eq!(row, expected, "window {window}");
    }
}

#[test]
fn the_core_s_vmin_is_the_published_one() {
    for (window, expected) in VMINS {
        let row = policy_row("vmin", &[("window", window)]);
        assert_eq!(row, expected, "window {window}");
    }
}

#[test]
fn the_core_s_pff_is_the_published_one() {
    for (critical, expected) in PFFS {
        let row = policy_row("pff", &[("critical", critical)]);
        assert_eq!(row, expected, "critical interval {critical}");
    }
}

#[test]
fn the_core_s_damped_working_set_faults_as_the_analysis_s() {
    for (window, damping) in [(100, 500), (200, 500), (400, 250), (200, 1000)] {
        let row = policy_row("dws", &[("window", window), ("damping", damping)]);
        let expected = run_row(|string| run_damped(string, window, damping));
        let faults = |row: Row| row.map(|counts| counts.0);
        assert_eq!(
            faults(row),
            faults(expected),
            "window {window}, damping {damping}"
        );
        // The core lets a page go before the next reference, the analysis after the last.
        for (core, analysis) in row.iter().zip(&expected) {
            let lag = 1.0 - analysis.1 as f64 / core.1 as f64;
            assert!(
                (0.0..0.02).contains(&lag),
                "window {window}: {core:?} {analysis:?}"
            );
        }
    }
}
