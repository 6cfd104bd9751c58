//! Contention as measurements: what waiting for locks comes to, by name.

use std::collections::BTreeMap;

use tidemark_results::experiment::{Ending, Measurement};

use crate::contention::{Charges, Outcome, Setup, Work, contend};

/// The metrics of processors that contend, and their meanings. Times are simulated.
pub const LOCK_METRICS: &[(&str, &str)] = &[
    ("elapsed_s", "from the start until the last work was done"),
    ("user_s", "what programs computed, added up over processors"),
    (
        "system_s",
        "what the system worked for them, waiting included",
    ),
    ("spin_s", "the waiting for locks"),
    ("spin_free_s", "the part of it for the free pages"),
    ("spin_queue_s", "the part of it for the page queues"),
    ("spin_windows_s", "the part of it for the windows of files"),
    ("spin_files_s", "the part of it for the pages of files"),
    ("spin_most_s", "the waiting for the lock waited for longest"),
    ("lock_takes", "how often locks were taken"),
    ("lock_waits", "how often a thread waited"),
    ("lines_moved", "cache lines that went to another processor"),
    (
        "lines_moved_false",
        "of these, for another thing than that processor used",
    ),
    ("window_hits", "windows that were there"),
    ("window_misses", "windows that had to be made"),
    ("idle_zeroed", "pages that idle processors filled"),
];

/// Measures one run.
pub fn measure_locks(run: &str, work: &Work, setup: &Setup, charges: &Charges) -> Measurement {
    Measurement {
        run: run.to_owned(),
        times: 1,
        ending: Ending::Complete,
        metrics: metrics(&contend(work, setup, charges)),
        ..Measurement::default()
    }
}

fn metrics(outcome: &Outcome) -> BTreeMap<String, f64> {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let kinds = [outcome.free, outcome.queue, outcome.windows, outcome.files];
    let spin_ns: u64 = kinds.iter().map(|kind| kind.spin_ns).sum();
    let takes: u64 = kinds.iter().map(|kind| kind.takes).sum();
    let waits: u64 = kinds.iter().map(|kind| kind.waits).sum();
    let values = [
        ("elapsed_s", seconds(outcome.elapsed_ns)),
        ("user_s", seconds(outcome.user_ns)),
        ("system_s", seconds(outcome.system_ns)),
        ("spin_s", seconds(spin_ns)),
        ("spin_free_s", seconds(outcome.free.spin_ns)),
        ("spin_queue_s", seconds(outcome.queue.spin_ns)),
        ("spin_windows_s", seconds(outcome.windows.spin_ns)),
        ("spin_files_s", seconds(outcome.files.spin_ns)),
        ("spin_most_s", seconds(outcome.spin_ns_most)),
        ("lock_takes", takes as f64),
        ("lock_waits", waits as f64),
        ("lines_moved", outcome.lines_moved as f64),
        ("lines_moved_false", outcome.lines_moved_false as f64),
        ("window_hits", outcome.window_hits as f64),
        ("window_misses", outcome.window_misses as f64),
        ("idle_zeroed", outcome.idle_zeroed as f64),
    ];
    let named = values.map(|(name, value)| (name.to_owned(), value));
    named.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_is_measured_and_explained() {
        let outcome = Outcome {
            elapsed_ns: 2_000_000_000,
            ..Outcome::default()
        };
        let metrics = metrics(&outcome);
        assert_eq!(metrics["elapsed_s"], 2.0);
        let mut told: Vec<&str> = LOCK_METRICS.iter().map(|(name, _)| *name).collect();
        told.sort_unstable();
        assert_eq!(metrics.keys().collect::<Vec<_>>(), told);
    }
}
