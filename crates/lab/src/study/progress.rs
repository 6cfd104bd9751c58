//! The progress of long work, and jobs made side by side that tell it.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

/// Gets the progress: the step at work, and the share that is done, from 0 to 1.
pub type Progress<'a> = dyn FnMut(&str, f64) + 'a;

/// Gets the progress of runs, from the thread that has made one: the step at work, and the share
/// that is done, from 0 to 1.
pub type Told<'a> = dyn Fn(&str, f64) + Sync + 'a;

/// Makes all runs of `jobs`, on every processor. Answers what they came to, in order, or why one of
/// them can't be made.
pub(super) fn run_jobs<J: Sync, T: Send, E: Send>(
    jobs: &[J],
    progress: &Told<'_>,
    run: impl Fn(usize, &J) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let done = AtomicUsize::new(0);
    progress("replaying", 0.0);
    let numbered = jobs.par_iter().enumerate().with_max_len(1);
    let results = numbered.map(|(place, job)| {
        let result = run(place, job);
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        progress("replaying", done as f64 / jobs.len() as f64);
        result
    });
    results.collect()
}
