//! The settings that a scenario may have in place of its system's own.

use tidemark_core::memory::address_space::Advice;

use super::*;

fn sweeps(laps: u64) -> Program {
    program((0..laps).flat_map(|_| 0..400).collect())
}

#[test]
fn a_run_is_given_up_at_its_limit() {
    let system = costly("fifo");
    let whole = Scenario::new(100, vec![sweeps(3)]);
    let all = run(&system, &whole).unwrap();
    assert!(all.is_complete);
    let half = Scenario {
        limit_ns: Some(all.elapsed_ns / 2),
        ..whole.clone()
    };
    let cut = run(&system, &half).unwrap();
    assert!(!cut.is_complete);
    assert_eq!(cut.elapsed_ns, all.elapsed_ns / 2);
    assert!(cut.counters.page_ins > 0 && cut.counters.page_ins < all.counters.page_ins);
    let done = cut.programs[0].sum(|process| process.records);
    assert!(done > 0 && done < 1200, "{done}");
    assert!(!cut.programs[0].has_ended() && all.programs[0].has_ended());
    let ample = Scenario {
        limit_ns: Some(all.elapsed_ns + 1),
        ..whole
    };
    assert_eq!(run(&system, &ample).unwrap(), all);
}

#[test]
fn a_limit_holds_for_many_programs_and_processors() {
    let system = costly("clock");
    let scenario = Scenario {
        processors: 2,
        limit_ns: Some(30_000_000),
        ..Scenario::new(200, vec![sweeps(4), sweeps(4), sweeps(4)])
    };
    let cut = run(&system, &scenario).unwrap();
    assert!(!cut.is_complete);
    for program in &cut.programs {
        assert!(program.end_ns >= 30_000_000, "{program:?}");
    }
}

#[test]
fn requests_have_the_size_that_is_asked_for() {
    let system = costly("fifo");
    let scenario = Scenario::new(100, vec![sweeps(3)]);
    let own = run(&system, &scenario).unwrap().counters;
    assert!(own.page_in_requests < own.page_ins);
    let single = Scenario {
        clusters: Clusters {
            most: Some(1),
            around: None,
            ahead: Some(0),
        },
        ..scenario
    };
    let counters = run(&system, &single).unwrap().counters;
    assert_eq!(counters.page_in_requests, counters.page_ins);
    assert_eq!(counters.page_out_requests, counters.page_outs);
}

#[test]
fn what_a_program_says_of_its_memory_is_heard() {
    // Every third page, which is no stream that could be detected.
    let pages = |laps: u64| (0..laps).flat_map(|lap| (0..130).map(move |n| n * 3 + lap % 3));
    let advised = |advice| {
        let program = Program {
            advice,
            ..program(pages(9).collect())
        };
        let scenario = Scenario::new(100, vec![program]);
        run(&costly("fifo"), &scenario).unwrap().counters
    };
    let (normal, random) = (advised(Advice::Normal), advised(Advice::Random));
    let sequential = advised(Advice::Sequential);
    assert_eq!(random.page_in_requests, random.page_ins);
    assert!(
        sequential.read_ahead_used > normal.read_ahead_used,
        "{sequential:?} {normal:?}"
    );
}

#[test]
fn a_load_control_takes_its_knobs() {
    let with = |knobs: Vec<(String, u64)>| {
        let scenario = Scenario {
            load: Some("clock-pressure".into()),
            load_knobs: knobs,
            ..Scenario::new(200, vec![sweeps(2), sweeps(2)])
        };
        run(&costly("clock"), &scenario)
    };
    assert!(with(vec![("who".into(), 2)]).is_ok());
    let error = with(vec![("who".into(), 9)]).unwrap_err();
    assert!(matches!(error, WorldError::KnobOutOfRange { value: 9, .. }));
    let error = with(vec![("whose".into(), 1)]).unwrap_err();
    assert_eq!(
        error,
        WorldError::UnknownKnob {
            name: "whose".into()
        }
    );
}

#[test]
fn programs_that_do_not_fit_together_get_on_faster_in_turns() {
    let in_no_order = |laps: u64| program((0..400 * laps).map(|at| at * 7919 % 400).collect());
    let with = |load: &str| {
        let scenario = Scenario {
            load: Some(load.into()),
            // None of them comes to its end before the others begin.
            scheduler: Scheduler::RoundRobin {
                quantum_ns: 1_000_000,
            },
            ..Scenario::new(900, (0..8).map(|_| in_no_order(20)).collect())
        };
        let system = System {
            tick_ns: 10_000_000,
            ..costly("clock")
        };
        run(&system, &scenario).unwrap()
    };
    let (none, turns) = (with("none"), with("working-set"));
    assert!(none.is_complete && turns.is_complete);
    assert!(
        turns.elapsed_ns * 3 < none.elapsed_ns,
        "{} and {}",
        turns.elapsed_ns,
        none.elapsed_ns
    );
    assert!(turns.counters.page_ins * 5 < none.counters.page_ins);
}

/// Sixteen programs on two processors, each of which does something for so long at each page that
/// it uses, of so many pages in no order. Paging keeps the processors busy, as the engine does in
/// a live run.
fn crowd(load: &str, each_ns: u32, frames: u32) -> Outcome {
    let uses = (0..200 * 60).map(|at| (at * 7919 % 200, Kinds::STORE, each_ns));
    let script = Arc::new(Script::from_uses(TimeUnit::Nanoseconds, uses));
    let scenario = Scenario {
        load: Some(load.into()),
        processors: 2,
        scheduler: Scheduler::RoundRobin {
            quantum_ns: 1_000_000,
        },
        disks: Disks {
            swap: DiskModel::Fixed {
                request_ns: 50_000,
                page_ns: 2_000,
                channels: 32,
            },
            files: None,
        },
        ..Scenario::new(
            frames,
            (0..16)
                .map(|_| Program::new("one", script.clone()))
                .collect(),
        )
    };
    let system = System {
        tick_ns: 10_000_000,
        ..costly("clock")
    };
    let outcome = run(&system, &scenario).unwrap();
    assert!(outcome.is_complete);
    outcome
}

fn suspended_ns(outcome: &Outcome) -> u64 {
    let each = outcome.programs.iter();
    each.map(|program| program.sum(|it| it.suspended_ns)).sum()
}

#[test]
fn programs_that_wait_for_processors_because_all_page_get_on_faster_in_turns() {
    let (none, turns) = (
        crowd("none", 10_000, 900),
        crowd("working-set", 10_000, 900),
    );
    assert!(turns.elapsed_ns * 3 < none.elapsed_ns * 2);
    assert!(turns.counters.page_ins * 10 < none.counters.page_ins);
}

#[test]
fn programs_that_fit_together_have_no_turns() {
    for each_ns in [1_000, 10_000, 300_000] {
        let (none, turns) = (
            crowd("none", each_ns, 3300),
            crowd("working-set", each_ns, 3300),
        );
        assert_eq!(suspended_ns(&turns), 0);
        assert_eq!(turns.elapsed_ns, none.elapsed_ns);
    }
}

#[test]
fn the_most_that_was_in_use_is_counted() {
    let outcome = run(
        &plain("fifo", MachineKind::Bits),
        &instant(1000, vec![sweeps(2)]),
    )
    .unwrap();
    assert_eq!(outcome.mappings_max, 400);
    // Their addresses are next to each other, and a table has 1,024 entries.
    assert!((1..=2).contains(&outcome.table_pages_max));
    assert!((400..=1000).contains(&outcome.frames_used_max));
    let outcome = run(
        &plain("fifo", MachineKind::Bits),
        &instant(100, vec![sweeps(2)]),
    )
    .unwrap();
    assert!(outcome.mappings_max <= 100 && outcome.frames_used_max <= 100);
}
