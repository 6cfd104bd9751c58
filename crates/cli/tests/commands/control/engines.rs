//! The engine of one program of a run, and the processor time that it uses.

use std::fs;

use crate::process_tree::engines;

/// The engine under `supervisor` whose program has `word` in its command line.
pub fn engine_of(supervisor: u32, word: &str) -> u32 {
    let has_word = |engine: &u32| {
        let line = fs::read(format!("/proc/{engine}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0)
            .any(|known| known == word.as_bytes())
    };
    let engines = engines(supervisor);
    engines.into_iter().find(has_word).expect("it has one")
}

/// The processor time of a process so far, in seconds, to the kernel's tick.
pub fn processor_s(process: u32) -> f64 {
    let line = fs::read_to_string(format!("/proc/{process}/stat")).expect("it is there");
    let fields = line
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace();
    let ticks = fields
        .skip(11)
        .take(2)
        .map(|field| field.parse::<u64>().expect("a number"));
    ticks.sum::<u64>() as f64 / rustix::param::clock_ticks_per_second() as f64
}
