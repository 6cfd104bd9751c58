//! The processor time that a program has used.
//!
//! A process that gives up memory has its engine work for that. The program may do nothing all the
//! while.

use std::fs;
use std::sync::atomic::Ordering::Relaxed;

use tidemark_live::shared::{Counter, Process};

/// The length of the kernel's ticks as it reports them, on every machine.
const TICK_NS: u64 = 10_000_000;

/// The processor time so far of a process without its engine's, to the tick; zero if it is gone.
/// `is_apart`: its engine is a process of its own.
pub fn ns_of_program(pid: u32, process: &Process<'_>, is_apart: bool) -> u64 {
    if is_apart {
        return of(pid) * TICK_NS;
    }
    // The engine's first: what it does in between counts as the program's.
    let engine_ns = process.counter(Counter::EngineProcessorNs).load(Relaxed);
    (of(pid) * TICK_NS).saturating_sub(engine_ns)
}

/// The processor time of a process so far, in the kernel's ticks; zero if it is gone.
fn of(pid: u32) -> u64 {
    fs::read_to_string(format!("/proc/{pid}/stat")).map_or(0, |text| parse(&text).unwrap_or(0))
}

/// Reads it from a line of `/proc/PID/stat`: in user mode and in the kernel, its children's left
/// out. The name, which may hold anything, ends with the last bracket.
fn parse(text: &str) -> Option<u64> {
    let (_, rest) = text.rsplit_once(')')?;
    let mut words = rest.split_ascii_whitespace().skip(11);
    let (user, system): (u64, u64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_times_are_found_behind_a_strange_name() {
        let line = "7 (a) b) R 1 7 7 0 -1 4194304 90 0 0 0 12 30 4 5 20 0 1 0 100 0 0";
        assert_eq!(parse(line), Some(42));
        assert_eq!(parse("7 (a"), None);
    }

    #[test]
    fn a_process_that_is_gone_has_used_nothing() {
        assert_eq!(of(u32::MAX), 0);
    }
}
