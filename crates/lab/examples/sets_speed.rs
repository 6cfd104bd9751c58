//! The number of million references a second the variable-space measures take, on one thread.
//!
//!     cargo run --release --example sets_speed -p tidemark-lab [-- REFERENCES]
//!
//! The trace lies in memory. `program` has nested localities of up to 2,000 pages, as programs do;
//! `zipf` draws from a million pages. With `instructions` each reference has a time of its own. The
//! best of three runs is shown.

mod measure;

use std::hint::black_box;

use tidemark_lab::analysis::intervals::Intervals;
use tidemark_lab::analysis::pff::watch_pff;
use tidemark_lab::analysis::phases::{PhaseOptions, find_phases};
use tidemark_lab::analysis::reference_string::{ReferenceString, Touch};
use tidemark_lab::analysis::residence::{Timeline, Totals};
use tidemark_lab::analysis::vmin::{run_vmin, vmin_point};
use tidemark_lab::analysis::working_set::{watch_working_set, working_set_point};
use tidemark_model::traces::{SplitMix64, zipf};

use measure::{RUNS, fail, rate};

fn main() {
    let asked = std::env::args().nth(1).map(|count| count.parse());
    let Ok(references) = asked.unwrap_or(Ok(20_000_000)) else {
        fail("the number of references is not a number; give one, like 20000000")
    };
    println!("{references} references, million a second of one thread's time, best of {RUNS}");
    measure(references);
}

/// Measures on both traces, with each kind of clock.
fn measure(references: usize) {
    let zipf: Vec<u32> = zipf(7, 1_000_000, references as u64)
        .into_iter()
        .map(|page| page as u32)
        .collect();
    for (name, pages) in [("program", program(references)), ("zipf", zipf)] {
        let count = pages.iter().max().map_or(0, |&page| page + 1);
        let mut random = SplitMix64::new(9);
        let mut time = 0;
        let times: Vec<u64> = (0..pages.len())
            .map(|_| {
                time += random.below(400);
                time
            })
            .collect();
        let plain = ReferenceString::new(&pages, count);
        show(name, "references", plain);
        show(name, "instructions", plain.at(&times));
        show(name, "changes", plain.at(&times).lasting(Touch::UntilNext));
    }
}

/// References that stay in a small set for a while, in a larger one for longer.
fn program(references: usize) -> Vec<u32> {
    let mut random = SplitMix64::new(3);
    let (mut outer, mut inner) = (0, 0);
    (0..references)
        .map(|place| {
            if place % 500_000 == 0 {
                outer = random.below(1_400);
            }
            if place % 5_000 == 0 {
                inner = outer + random.below(560);
            }
            (inner + random.skewed_below(40)) as u32
        })
        .collect()
}

fn show(trace: &str, clock: &str, string: ReferenceString<'_>) {
    let count = string.pages().len();
    let middle = string.duration() / count as u64 * 10_000;
    let row = |what: &str, rate: f64| println!("{trace:<8} {clock:<13} {what:<28} {rate:8.1}");
    row(
        "intervals alone",
        rate(count, || {
            black_box(Intervals::measure(string));
        }),
    );
    row(
        "intervals: WS+VMIN, every window",
        rate(count, || {
            let intervals = Intervals::measure(string);
            for window in intervals.windows(8) {
                black_box(working_set_point(&intervals, window));
                black_box(vmin_point(&intervals, window));
            }
        }),
    );
    row(
        "working set over time",
        rate(count, || {
            black_box(watch_working_set(
                string,
                middle,
                Timeline::new(&string, 1000),
            ));
        }),
    );
    row(
        "VMIN run",
        rate(count, || {
            black_box(run_vmin(string, middle));
        }),
    );
    row(
        "PFF run",
        rate(count, || {
            black_box(watch_pff(string, middle / 100, Totals::default()));
        }),
    );
    row(
        "phases",
        rate(count, || {
            black_box(find_phases(string, &PhaseOptions::for_string(&string)));
        }),
    );
}

#[cfg(test)]
#[test]
fn a_small_run_measures_everything() {
    measure(20_000);
}
