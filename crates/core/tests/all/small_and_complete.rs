//! Small and complete: every trace of seven references over four pages, for every policy.
//!
//! In so small a world everything can be tried: no policy beats the optimum, none names a frame
//! that may not leave, and those that keep a fixed order never lose it.

use tidemark_core::policies::{build, entries};
use tidemark_core::vm::Config;
use tidemark_model::cache::{Cache, MachineKind, Misses, replay};
use tidemark_model::{demand, opt};

const REFERENCES: u32 = 7;
const PAGES: u64 = 4;
const FRAMES: u32 = 3;

fn collect_traces() -> Vec<Vec<u64>> {
    let digit = |number: u64, place: u32| number / PAGES.pow(place) % PAGES;
    let numbers = 0..PAGES.pow(REFERENCES);
    numbers
        .map(|number| (0..REFERENCES).map(|place| digit(number, place)).collect())
        .collect()
}

fn misses(name: &'static str, frames: u32, kind: MachineKind, trace: &[u64]) -> Misses {
    let policy = build(name, FRAMES + 1, frames, 1, &[]).expect("it is known");
    replay(policy, frames, kind, trace)
}

#[test]
fn no_policy_beats_the_optimum_or_names_a_frame_that_may_not_leave() {
    let traces = collect_traces();
    for frames in 1..=FRAMES {
        let best: Vec<u64> = traces
            .iter()
            .map(|t| opt::count_misses(frames as usize, t))
            .collect();
        for entry in entries() {
            let name = entry.description.name;
            for kind in [MachineKind::Bits, MachineKind::SoftFaults] {
                for (trace, &best) in traces.iter().zip(&best) {
                    let misses = misses(name, frames, kind, trace);
                    assert!(misses.hard >= best, "{name} {kind:?} {frames} {trace:?}");
                    assert_eq!(misses.refusals, 0, "{name} {kind:?} {frames} {trace:?}");
                }
            }
        }
    }
}

#[test]
fn the_page_that_was_used_last_is_always_there() {
    for entry in entries() {
        for trace in collect_traces().iter().step_by(37) {
            let policy = build(entry.description.name, FRAMES, FRAMES, 1, &[]).unwrap();
            let mut cache = Cache::new(policy, FRAMES, MachineKind::SoftFaults);
            for &page in trace {
                cache.touch(page);
                cache.policy.check();
                assert!(
                    cache.frame_of(page).is_some(),
                    "the page that was used is not there"
                );
            }
        }
    }
}

/// Returns true if pages are numbered in the order of their first use. Any trace is one of these
/// with its pages renamed.
fn is_plain(trace: &[u64]) -> bool {
    let mut next = 0;
    trace.iter().all(|&page| {
        let is_plain = page <= next;
        next += u64::from(page == next);
        is_plain
    })
}

#[test]
fn a_whole_memory_misses_exactly_when_the_bare_cache_does() {
    let traces = collect_traces();
    let plain: Vec<&Vec<u64>> = traces.iter().filter(|trace| is_plain(trace)).collect();
    assert_eq!(
        plain.len(),
        1 + 63 + 301 + 350,
        "partitions of seven references"
    );
    for entry in entries() {
        let name = entry.description.name;
        for kind in [MachineKind::Bits, MachineKind::SoftFaults] {
            for (frames, trace) in [2, 3]
                .into_iter()
                .flat_map(|n| plain.iter().map(move |t| (n, t)))
            {
                let policy = build(name, frames, frames, 1, &[]).expect("it is known");
                let expected = replay(policy, frames, kind, trace);
                let policy = build(name, frames, frames, 1, &[]).expect("it is known");
                let counters = demand::replay(policy, Config::demand(frames), kind, trace);
                let counted = (
                    counters.zero_fills + counters.page_ins,
                    counters.soft_faults,
                );
                assert_eq!(
                    counted,
                    (expected.hard, expected.soft),
                    "{name} {kind:?} {trace:?}"
                );
                assert_eq!(counters.refusals, 0, "{name} {kind:?} {trace:?}");
            }
        }
    }
}

#[test]
fn the_optimum_never_gets_worse_with_more_frames() {
    for trace in collect_traces() {
        let misses = [1, 2, 3, 4].map(|frames| opt::count_misses(frames, &trace));
        assert!(
            misses.is_sorted_by(|fewer, more| fewer >= more),
            "{trace:?}"
        );
    }
}

/// First in, first out, as one would write it down.
fn fifo_misses(frames: usize, trace: &[u64]) -> u64 {
    let mut queue = std::collections::VecDeque::new();
    let mut misses = 0;
    for &page in trace {
        if !queue.contains(&page) {
            misses += 1;
            queue.push_back(page);
            queue.drain(..queue.len().saturating_sub(frames));
        }
    }
    misses
}

/// The clock, as one would write it down: a queue of pages with a bit each.
fn clock_misses(frames: usize, trace: &[u64]) -> u64 {
    let mut queue: std::collections::VecDeque<(u64, bool)> = Default::default();
    let mut misses = 0;
    for &page in trace {
        if let Some((_, is_used)) = queue.iter_mut().find(|(other, _)| *other == page) {
            *is_used = true;
            continue;
        }
        misses += 1;
        while queue.len() == frames {
            let (oldest, is_used) = queue.pop_front().unwrap();
            if is_used {
                queue.push_back((oldest, false));
            }
        }
        queue.push_back((page, false));
    }
    misses
}

#[test]
fn fifo_and_clock_miss_exactly_when_the_plain_versions_do() {
    for trace in collect_traces() {
        for frames in 1..=FRAMES {
            let expected = fifo_misses(frames as usize, &trace);
            for kind in [MachineKind::Bits, MachineKind::SoftFaults] {
                assert_eq!(
                    misses("fifo", frames, kind, &trace).hard,
                    expected,
                    "{trace:?}"
                );
            }
            let expected = clock_misses(frames as usize, &trace);
            let clock = misses("clock", frames, MachineKind::Bits, &trace);
            assert_eq!(clock.hard, expected, "{frames} {trace:?}");
        }
    }
}
