//! The parts that the examples that measure speed share: processor time, and how they complain.

// Each uses what it needs of this.
#![allow(dead_code)]

use std::hint::black_box;

use rustix::time::{ClockId, clock_gettime};

/// The number of times each measurement is repeated; the best counts.
pub const RUNS: u32 = 3;

/// Million references a second of processor time, of `count` that `run` works through.
pub fn rate<T>(count: usize, mut run: impl FnMut() -> T) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..RUNS {
        best = best.min(time(&mut run));
    }
    count as f64 / best / 1e6
}

/// The number of seconds of processor time `run` takes.
pub fn time<T>(run: impl FnOnce() -> T) -> f64 {
    let start = seconds();
    black_box(run());
    seconds() - start
}

fn seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Ends with a message.
pub fn fail(message: &str) -> ! {
    eprintln!("{message}");
    std::process::exit(2);
}
