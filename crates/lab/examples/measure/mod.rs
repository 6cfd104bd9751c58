//! What the examples that measure speed share: processor time, and references as a program makes
//! them.

use std::hint::black_box;

use rustix::time::{ClockId, clock_gettime};
use tidemark_model::traces::SplitMix64;

/// How often each measurement is repeated; the best counts.
pub const RUNS: u32 = 3;

/// Million references a second of processor time, of `count` that `run` works through.
pub fn rate<T>(count: usize, mut run: impl FnMut() -> T) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..RUNS {
        let start = seconds();
        black_box(run());
        best = best.min(seconds() - start);
    }
    count as f64 / best / 1e6
}

fn seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// References as a program makes them: most to the page before last, few deep in the stack.
pub fn program(references: usize) -> Vec<u64> {
    let mut random = SplitMix64::new(3);
    let mut recent: Vec<u64> = (0..1400).collect();
    let next = |_| {
        let depth = match random.below(1000) {
            0..700 => 2,
            700..900 => 2 + random.below(7),
            900..991 => 2 + random.below(63),
            _ => 2 + random.below(1399),
        };
        let page = recent.remove(depth as usize - 1);
        recent.insert(0, page);
        page
    };
    (0..references).map(next).collect()
}

/// Ends with a message.
pub fn fail(message: &str) -> ! {
    eprintln!("{message}");
    std::process::exit(2);
}

/// The page numbers in `file`: little-endian, 4 bytes each.
pub fn read_words(file: &str) -> Vec<u64> {
    let bytes = match std::fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) => fail(&format!("`{file}` can't be read: {error}")),
    };
    let (words, _) = bytes.as_chunks();
    words
        .iter()
        .map(|&word| u64::from(u32::from_le_bytes(word)))
        .collect()
}
