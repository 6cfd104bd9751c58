use std::collections::BTreeMap;
use std::sync::Arc;

use tidemark_core::id::SpaceId;
use tidemark_core::policies;
use tidemark_core::vm::Config;
use tidemark_model::traces;
use tidemark_trace::{Kinds, TimeUnit};

use super::*;
use crate::analysis::References;
use crate::analysis::simulate::{Job, simulate_all};

mod compressed;
mod copies;
mod lives;
mod shares;
mod suspensions;
mod terms;
mod threads;

/// Policies that trim or clean, and measure nothing.
const TRIMMING: [&str; 5] = ["vms", "nt", "linux-rmap13b", "linux-rmap15", "freebsd"];

/// The part of each golden trace on which every policy is run.
const REFERENCES_MAX: usize = 8_000;

fn plain(policy: &'static str, eyes: MachineKind) -> System {
    System {
        name: "plain",
        summary: "one page at a time, and nothing costs anything",
        lineage: &[],
        policy,
        knobs: &[],
        config: Config::demand,
        costs: Costs::FREE,
        load: "none",
        eyes,
        is_divided: false,
        swap_ahead_seeking: None,
        tick_ns: 0,
    }
}

fn costly(policy: &'static str) -> System {
    System {
        costs: Costs {
            fault_ns: 2_000,
            zero_ns: 700,
            copy_ns: 900,
            page_table_ns: 90,
            reverse_map_ns: 60,
            question_ns: 30,
            swap_request_ns: 5_000,
            file_request_ns: 6_000,
            message_ns: 10_000,
            messages_per_swap_request: 2,
            switch_ns: 3_000,
            fork_ns: 50_000,
            ..Costs::FREE
        },
        config: |frames| Config::clustered(frames, frames),
        tick_ns: 1_000_000_000,
        ..plain(policy, MachineKind::Bits)
    }
}

fn instant(frames: u32, programs: Vec<Program>) -> Scenario {
    Scenario {
        disks: Disks {
            swap: DiskModel::INSTANT,
            files: None,
        },
        ..Scenario::new(frames, programs)
    }
}

fn program(pages: Vec<u64>) -> Program {
    Program::new("test", Arc::new(Script::from_pages(pages, Kinds::STORE)))
}

/// Times add up: each process's own, and the processors'.
fn check_sums(outcome: &Outcome, processors: u64) {
    let mut user_ns = 0;
    for program in &outcome.programs {
        for process in &program.processes {
            let booked = process.user_ns
                + process.system_ns
                + process.page_wait_ns
                + process.think_ns
                + process.ready_ns
                + process.suspended_ns;
            assert_eq!(booked, process.end_ns - process.start_ns, "{process:?}");
            user_ns += process.user_ns;
        }
    }
    assert_eq!(outcome.user_ns, user_ns);
    let capacity = outcome.elapsed_ns * processors;
    let booked = outcome.user_ns + outcome.system_ns + outcome.idle_ns;
    assert!(booked >= capacity, "{booked} of {capacity}");
    let counters = &outcome.counters;
    assert_eq!(counters.page_ins, outcome.swap_ins + outcome.file_ins);
    assert_eq!(counters.page_outs, outcome.swap_outs + outcome.file_outs);
    let read: u64 = outcome.disks.iter().map(|disk| disk.pages_read).sum();
    assert_eq!(read, outcome.swap_pages_read + outcome.file_ins);
    if outcome.is_compressing {
        return;
    }
    assert_eq!(read, counters.page_ins);
    let requests: u64 = outcome.disks.iter().map(|d| d.reads + d.writes).sum();
    assert_eq!(
        requests,
        counters.page_in_requests + counters.page_out_requests
    );
}

#[test]
fn one_program_misses_as_often_as_in_the_bare_simulation() {
    for mut trace in traces::golden() {
        trace.pages.truncate(REFERENCES_MAX);
        let script = Arc::new(Script::from_pages(
            trace.pages.iter().copied(),
            Kinds::STORE,
        ));
        let references = References::from_pages(trace.pages.iter().copied());
        for entry in policies::entries() {
            let name = entry.description.name;
            let policy = policies::build(name, trace.frames, trace.frames, 1, &[]).unwrap();
            // Policies that measure what a program needs, and those with a cache of pages that
            // left, give up pages although nobody needs frames; the bare simulation never asks.
            let is_trimming = policy.demand(SpaceId(0)).is_some() || TRIMMING.contains(&name);
            if is_trimming {
                continue;
            }
            for eyes in [MachineKind::Bits, MachineKind::SoftFaults] {
                let job = Job {
                    policy: name,
                    knobs: Vec::new(),
                    seed: 1,
                    frames: trace.frames,
                    eyes,
                };
                let cost = simulate_all(&references, &[job]).unwrap()[0];
                let program = Program::new(trace.name, Arc::clone(&script));
                let outcome = run(&plain(name, eyes), &instant(trace.frames, vec![program]));
                let outcome = outcome.unwrap();
                let counters = &outcome.counters;
                let found = (
                    counters.zero_fills + counters.page_ins,
                    counters.soft_faults,
                    counters.refusals,
                );
                let expected = (cost.misses, cost.soft_faults, cost.refusals);
                assert_eq!(found, expected, "{name} {eyes:?} {}", trace.name);
                assert_eq!(outcome.elapsed_ns, 1000 * trace.pages.len() as u64);
                check_sums(&outcome, 1);
            }
        }
    }
}

#[test]
fn who_sees_the_future_gives_pages_up_in_time() {
    let pages = traces::phases(3, 12, 40, 1_500);
    // In a program that uses a page each microsecond, no page is missed that comes back in time.
    let mut used_at = BTreeMap::new();
    let late = pages.iter().zip(0_u64..).filter(|&(page, now)| {
        let before = used_at.insert(page, now);
        before.is_none_or(|before| now - before > 100)
    });
    let misses_most = late.count() as u64;
    let knobs = vec![("window".to_owned(), 100)];
    let scenario = Scenario {
        policy: Some(PolicyChoice {
            name: "vmin".into(),
            knobs,
        }),
        ..instant(2_000, vec![program(pages)])
    };
    let outcome = run(&plain("vmin", MachineKind::Bits), &scenario).unwrap();
    let counters = &outcome.counters;
    let misses = counters.zero_fills + counters.page_ins;
    assert!(counters.page_ins > 0 && misses <= misses_most, "{misses}");
    let frames = outcome.frames_used_max;
    assert!(frames < 240, "pages of old phases stay: {frames}");
}

#[test]
fn a_program_waits_for_each_page_it_misses() {
    // Two frames' worth too many: each page is read again, each time round.
    let pages: Vec<u64> = traces::looping(10, 3);
    let outcome = run(
        &plain("fifo", MachineKind::Bits),
        &Scenario::new(8, vec![program(pages)]),
    );
    let outcome = outcome.unwrap();
    assert_eq!(outcome.counters.page_ins, 20);
    assert_eq!(outcome.counters.page_outs, 10 - 8 + 20);
    let process = &outcome.programs[0].processes[0];
    // 5.1 ms each for the store that makes room and the fetch.
    assert_eq!(process.page_wait_ns, (22 + 20) * 5_100_000);
    assert_eq!(process.user_ns, 30_000);
    assert_eq!(
        (process.faults, process.waits, process.records),
        (30, 22, 30)
    );
    assert_eq!(outcome.disks[0].busy_ns, 42 * 5_100_000);
    check_sums(&outcome, 1);
}

#[test]
fn the_same_seed_gives_the_same_outcome_and_the_same_decisions() {
    let programs = || {
        let names = 1..=3;
        let texts = names.map(|seed| program(traces::skewed(seed, 300, 20_000)));
        texts.collect::<Vec<_>>()
    };
    let scenario = Scenario {
        processors: 2,
        watch: Watch {
            sample_ns: 100_000_000,
            is_logging: true,
        },
        ..Scenario::new(256, programs())
    };
    for policy in ["random", "tidemark", "gnumach-activity"] {
        let first = run(&costly(policy), &scenario).unwrap();
        let second = run(&costly(policy), &scenario).unwrap();
        assert_eq!(first, second);
        let text = |outcome: &Outcome| {
            let mut text = String::new();
            outcome.write_decisions(&mut text).unwrap();
            text
        };
        assert_eq!(text(&first), text(&second));
        assert!(!first.decisions.is_empty());
        assert!(first.samples.len() > 10 && first.samples.len() < 2 * Watch::SAMPLES);
        let first_gap = first.samples[1].time_ns - first.samples[0].time_ns;
        for pair in first.samples.windows(2) {
            assert_eq!(pair[1].time_ns - pair[0].time_ns, first_gap);
        }
        check_sums(&first, 2);
    }
}

#[test]
fn what_cannot_be_run_is_named() {
    let system = plain("fifo", MachineKind::Bits);
    let none = run(&system, &Scenario::new(8, Vec::new()));
    assert_eq!(none, Err(WorldError::NoPrograms));
    let scenario = Scenario {
        wired_pages: 5,
        ..Scenario::new(12, vec![program(vec![1])])
    };
    let expected = WorldError::MemoryTooSmall {
        memory_pages: 12,
        wired_pages: 5,
        needs_pages: 8,
    };
    assert_eq!(run(&system, &scenario), Err(expected));
    let choose = |name: &str, knobs: Vec<(String, u64)>| Scenario {
        policy: Some(PolicyChoice {
            name: name.into(),
            knobs,
        }),
        ..Scenario::new(8, vec![program(vec![1])])
    };
    let name = "lifo".to_owned();
    let unknown = run(&system, &choose("lifo", Vec::new()));
    assert_eq!(unknown, Err(WorldError::UnknownPolicy { name }));
    let name = "sight".to_owned();
    let unknown = run(&system, &choose("fifo", vec![("sight".into(), 3)]));
    assert_eq!(unknown, Err(WorldError::UnknownKnob { name }));
}

#[test]
fn in_step_an_instruction_is_done_again_whose_first_page_has_left() {
    // Eight pages fill memory. Then the first is used, and a ninth that takes its frame: in the
    // same instruction, or in the next.
    let page_ins = |gap| {
        let fill = (0..8).map(|page| (page, Kinds::STORE, 1));
        let two = [(0, Kinds::LOAD, 1), (8, Kinds::LOAD, gap)];
        let script = Script::from_uses(TimeUnit::Instructions, fill.chain(two));
        let program = Program::new("test", Arc::new(script));
        let mut scenario = instant(8, vec![program]);
        scenario.is_in_step = true;
        let system = plain("fifo", MachineKind::Bits).in_step();
        run(&system, &scenario).unwrap().counters.page_ins
    };
    assert_eq!((page_ins(1), page_ins(0)), (0, 1));
}
