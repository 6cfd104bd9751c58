//! Processes with mappings: what is shared, what is copied, and who waits for whom.

use tidemark_trace::{
    Block, Event, Granularity, Header, Kinds, LifeEvent, MappingEvent, Placed, Rights, TimeUnit,
};

use super::*;

pub(super) const READ: Rights = Rights(Rights::READ.0 | Rights::EXECUTE.0);
pub(super) const WRITE: Rights = Rights(Rights::READ.0 | Rights::WRITE.0);
const WAIT4: u32 = 61;
const PSELECT6: u32 = 270;

/// A step of a process: uses pages, or has something happen.
pub(super) enum Deed {
    Load(u64),
    Store(u64),
    Event(Event),
}

use Deed::{Load, Store};

pub(super) fn start(pid: u32, parent: u32) -> Deed {
    let program = format!("program {pid}");
    Deed::Event(Event::Life(LifeEvent::Start {
        pid,
        parent,
        program,
    }))
}

pub(super) fn map(start: u64, pages: u64, rights: Rights, file: &str) -> Deed {
    Deed::Event(Event::Mapping(MappingEvent::Map {
        start,
        pages,
        rights,
        is_shared: false,
        memory: file.into(),
        offset: 0,
    }))
}

pub(super) fn exit() -> Deed {
    Deed::Event(Event::Life(LifeEvent::Exit { status: 0 }))
}

/// A trace of processes, each given by its deeds; a unit of time passes before each use.
pub(super) fn script(processes: Vec<Vec<Deed>>) -> Arc<Script> {
    let mut writing = Writing::new(&Header {
        page_bytes: 4096,
        granularity: Granularity::Exact,
        time: TimeUnit::Instructions,
        source: "test".into(),
        command: Vec::new(),
        speed: None,
    });
    for (process, deeds) in processes.into_iter().enumerate() {
        let mut block = Block {
            process: process as u32,
            ..Block::default()
        };
        for deed in deeds {
            match deed {
                Load(page) => block.push(page, Kinds::LOAD, 1000),
                Store(page) => block.push(page, Kinds::STORE, 1000),
                Deed::Event(event) => block.events.push(Placed {
                    after: block.len() as u32,
                    time: block.time_end(),
                    event,
                }),
            }
        }
        assert_eq!(block.check(), Ok(()));
        writing.take(&block);
    }
    Arc::new(writing.finish())
}

pub(super) fn outcome_of(system: &System, frames: u32, scripts: &[Arc<Script>]) -> Outcome {
    let programs = scripts.iter().map(|s| Program::new("test", Arc::clone(s)));
    let outcome = run(system, &Scenario::new(frames, programs.collect()));
    let outcome = outcome.unwrap();
    check_sums(&outcome, 1);
    outcome
}

pub(super) fn fifo() -> System {
    plain("fifo", MachineKind::Bits)
}

#[test]
fn text_is_read_once_for_all_who_run_it_and_stays_when_they_are_gone() {
    let text = || {
        vec![
            start(1, 0),
            map(100, 4, READ, "/bin/x"),
            Load(100),
            Load(103),
            exit(),
        ]
    };
    let scripts = [script(vec![text()]), script(vec![text()])];
    let outcome = outcome_of(&fifo(), 64, &scripts);
    assert_eq!((outcome.file_ins, outcome.swap_ins), (2, 0));
    // The second waits for the same transfers, or finds the pages.
    assert_eq!(outcome.counters.zero_fills, 0);
    let late = Scenario {
        programs: vec![
            Program::new("early", Arc::clone(&scripts[0])),
            Program {
                start_ns: 60_000_000_000,
                ..Program::new("late", Arc::clone(&scripts[1]))
            },
        ],
        ..Scenario::new(64, Vec::new())
    };
    let outcome = run(&fifo(), &late).unwrap();
    assert_eq!((outcome.file_ins, outcome.counters.soft_faults), (2, 2));
}

#[test]
fn copies_may_have_files_of_their_own() {
    let deeds = vec![
        start(1, 0),
        map(100, 4, READ, "/bin/x"),
        map(200, 4, READ, "/work/clients/y"),
        Load(100),
        Load(200),
        exit(),
    ];
    let script = script(vec![deeds]);
    let ins = |own_files: Option<&str>| {
        let copy = || Program {
            own_files: own_files.map(String::from),
            ..Program::new("copy", Arc::clone(&script))
        };
        let scenario = Scenario::new(64, vec![copy(), copy()]);
        run(&fifo(), &scenario).unwrap().file_ins
    };
    assert_eq!((ins(None), ins(Some("/clients/"))), (2, 3));
}

#[test]
fn a_store_to_a_private_file_mapping_copies_the_page_and_leaves_the_file_alone() {
    let deeds = vec![
        start(1, 0),
        map(100, 4, WRITE, "/bin/x"),
        Load(100),
        Store(100),
        Store(101),
        exit(),
    ];
    let outcome = outcome_of(&fifo(), 64, &[script(vec![deeds])]);
    let counters = &outcome.counters;
    assert_eq!((outcome.file_ins, counters.cow_faults), (2, 2));
    assert_eq!((outcome.file_outs, counters.zero_fills), (0, 0));
}

#[test]
fn a_shared_file_mapping_is_written_back_and_a_private_copy_goes_to_swap() {
    let map_shared = Deed::Event(Event::Mapping(MappingEvent::Map {
        start: 100,
        pages: 4,
        rights: WRITE,
        is_shared: true,
        memory: "/data".into(),
        offset: 8 * 4096,
    }));
    let mut deeds = vec![start(1, 0), map_shared, map(200, 1, WRITE, "/bin/x")];
    deeds.extend([Store(100), Store(200)]);
    deeds.push(map(1000, 20, WRITE, ""));
    deeds.extend((1000..1020).map(Store));
    deeds.push(Load(200));
    let outcome = outcome_of(&fifo(), 10, &[script(vec![deeds])]);
    assert_eq!(outcome.file_outs, 1);
    // The file's page, the text under the private copy, and that copy back from swap.
    assert_eq!((outcome.file_ins, outcome.swap_ins), (2, 1));
}

fn family() -> Arc<Script> {
    let mut parent = vec![
        start(1, 0),
        map(100, 4, READ, "/bin/x"),
        map(200, 30, WRITE, ""),
    ];
    parent.push(Load(100));
    parent.extend((200..220).map(Store));
    parent.push(Deed::Event(Event::Life(LifeEvent::Fork { child: 2 })));
    parent.push(Deed::Event(Event::Life(LifeEvent::Fork { child: 3 })));
    parent.extend((200..205).map(Store));
    for _ in 0..2 {
        let (call, ns) = (WAIT4, 1);
        parent.push(Deed::Event(Event::Life(LifeEvent::Wait { call, ns })));
    }
    parent.push(Load(210));
    parent.push(exit());
    let mut writer = vec![start(2, 1)];
    writer.extend((200..230).map(Store));
    let program = "/bin/y".to_owned();
    let mut other = vec![
        start(3, 1),
        Load(201),
        Deed::Event(Event::Life(LifeEvent::Exec { program })),
    ];
    other.extend([map(100, 4, READ, "/bin/y"), map(300, 200, WRITE, "[heap]")]);
    other.push(Deed::Event(Event::Mapping(MappingEvent::Break {
        end: 600,
    })));
    other.push(Load(101));
    other.extend((300..600).map(Store));
    other.push(exit());
    script(vec![parent, writer, other])
}

#[test]
fn a_family_forks_copies_waits_and_leaves_nothing_behind() {
    for frames in [16, 64, 1024] {
        for policy in ["fifo", "clock", "gnumach", "tidemark"] {
            for system in [plain(policy, MachineKind::Bits), costly(policy)] {
                let outcome = outcome_of(&system, frames, &[family()]);
                let [parent, writer, other] = &outcome.programs[0].processes[..] else {
                    panic!("there are three processes");
                };
                assert_eq!(outcome.irregular, 0);
                assert_eq!((writer.records, other.records), (30, 302));
                assert_eq!(other.program, "/bin/y");
                assert!(parent.end_ns > writer.end_ns && parent.end_ns > other.end_ns);
                assert!(parent.think_ns > 0);
                assert!(outcome.counters.cow_faults >= 20, "{policy} {frames}");
            }
        }
    }
}

#[test]
fn every_system_carries_a_family_through() {
    for system in crate::systems::entries() {
        for frames in [16, 64] {
            let outcome = outcome_of(system, frames, &[family()]);
            let processes = &outcome.programs[0].processes;
            let records: u64 = processes.iter().map(|process| process.records).sum();
            assert_eq!(records, 27 + 30 + 302, "{} {frames}", system.name);
        }
    }
}

#[test]
fn think_time_passes_without_a_processor() {
    let (call, ns) = (7, 2_000_000_000);
    let sleeper = vec![
        start(1, 0),
        Deed::Event(Event::Life(LifeEvent::Wait { call, ns })),
        exit(),
    ];
    let mut worker = vec![start(1, 0), map(1, 1, WRITE, "")];
    worker.extend((0..1_000).map(|_| Store(1)));
    let outcome = outcome_of(&fifo(), 16, &[script(vec![sleeper]), script(vec![worker])]);
    assert_eq!(outcome.elapsed_ns, 2_000_000_000);
    assert_eq!(outcome.programs[0].processes[0].think_ns, 2_000_000_000);
    assert_eq!(
        (outcome.user_ns, outcome.idle_ns),
        (1_000_000, 1_999_000_000)
    );
}

#[test]
fn a_program_that_yields_runs_again_behind_those_that_are_ready() {
    let (call, ns) = (24, 0);
    let program = |stores: usize| {
        let mut deeds = vec![start(1, 0), map(1, 1, WRITE, ""), Store(1)];
        deeds.push(Deed::Event(Event::Life(LifeEvent::Wait { call, ns })));
        deeds.extend((1..stores).map(|_| Store(1)));
        deeds.push(exit());
        script(vec![deeds])
    };
    // All of it is a part of one turn.
    let outcome = outcome_of(&fifo(), 16, &[program(1000), program(10)]);
    let [long, short] = [0, 1].map(|number| &outcome.programs[number].processes[0]);
    assert_eq!((long.end_ns, short.end_ns), (1_001_000, 1_010_000));
    let other = outcome_of(&fifo(), 16, &[program(10), program(1000)]);
    let [short, long] = [0, 1].map(|number| &other.programs[number].processes[0]);
    assert_eq!((short.end_ns, long.end_ns), (11_000, 1_010_000));
    assert_eq!(short.think_ns, 0);
}

#[test]
fn a_parent_waits_for_the_signal_of_a_child_and_others_for_their_time() {
    let (call, ns) = (PSELECT6, 5_000_000_000);
    let wait = || Deed::Event(Event::Life(LifeEvent::Wait { call, ns }));
    let fork = || Deed::Event(Event::Life(LifeEvent::Fork { child: 2 }));
    let parent = vec![start(1, 0), fork(), wait(), exit()];
    let mut child = vec![start(2, 1), map(1, 1, WRITE, "")];
    child.extend((0..1_000).map(|_| Store(1)));
    child.push(exit());
    let family = script(vec![parent, child]);
    assert_eq!(outcome_of(&fifo(), 16, &[family]).elapsed_ns, 1_000_000);
    let alone = script(vec![vec![start(1, 0), wait(), exit()]]);
    assert_eq!(outcome_of(&fifo(), 16, &[alone]).elapsed_ns, ns);
}

#[test]
fn memory_that_grows_shrinks_and_moves_keeps_what_it_holds() {
    let mut deeds = vec![start(1, 0), map(100, 8, WRITE, "")];
    deeds.extend((100..108).map(Store));
    let (from, to) = (100, 500);
    deeds.push(Deed::Event(Event::Mapping(MappingEvent::Remap {
        from,
        from_pages: 8,
        to,
        to_pages: 16,
    })));
    // Where the pages moved to they are there, and behind them is fresh memory.
    deeds.extend((500..516).map(Load));
    deeds.push(Deed::Event(Event::Mapping(MappingEvent::StackGrowth {
        start: 900,
        pages: 2,
    })));
    deeds.push(Store(901));
    deeds.push(Deed::Event(Event::Mapping(MappingEvent::Unmap {
        start: 502,
        pages: 3,
    })));
    deeds.push(Deed::Event(Event::Mapping(MappingEvent::Protect {
        start: 500,
        pages: 1,
        rights: READ,
    })));
    deeds.push(Load(500));
    let outcome = outcome_of(&fifo(), 64, &[script(vec![deeds])]);
    assert_eq!(outcome.counters.zero_fills, 8 + 8 + 1);
    assert_eq!(outcome.irregular, 0);
}

#[test]
fn a_heap_begins_where_it_is_first_told_to_end_and_grows_as_one() {
    let mut deeds = vec![start(1, 0), map(10, 1, WRITE, "")];
    deeds.extend(
        [50, 54, 58, 52].map(|end| Deed::Event(Event::Mapping(MappingEvent::Break { end }))),
    );
    deeds.extend([Store(50), Store(51)]);
    let outcome = outcome_of(&fifo(), 64, &[script(vec![deeds])]);
    assert_eq!((outcome.irregular, outcome.counters.zero_fills), (0, 2));
}

#[test]
fn a_child_has_what_its_parent_had_though_its_recording_begins_with_mappings() {
    let mut parent = vec![start(1, 0), map(100, 8, WRITE, "")];
    parent.extend((100..108).map(Store));
    parent.push(Deed::Event(Event::Life(LifeEvent::Fork { child: 2 })));
    parent.push(exit());
    let mut child = vec![start(2, 1), map(100, 8, WRITE, "")];
    child.extend((100..108).map(Load));
    child.push(exit());
    let outcome = outcome_of(&fifo(), 64, &[script(vec![parent, child])]);
    assert_eq!((outcome.counters.zero_fills, outcome.irregular), (8, 0));
}

#[test]
fn uses_of_what_is_not_mapped_are_let_pass_and_counted() {
    let deeds = vec![
        start(1, 0),
        map(100, 1, READ, "/x"),
        Store(100),
        Load(700),
        Load(700),
    ];
    let outcome = outcome_of(&fifo(), 64, &[script(vec![deeds])]);
    assert_eq!((outcome.irregular, outcome.counters.zero_fills), (2, 1));
}

#[test]
fn turns_are_shared_by_weight() {
    let pages = || program(traces::looping(4, 100_000));
    for scheduler in [
        Scheduler::RoundRobin {
            quantum_ns: 1_000_000,
        },
        Scheduler::Fair {
            quantum_ns: 1_000_000,
        },
    ] {
        let heavy = Program {
            weight: 3 * Program::WEIGHT,
            ..pages()
        };
        let scenario = Scenario {
            scheduler,
            ..instant(16, vec![pages(), heavy])
        };
        let outcome = run(&fifo(), &scenario).unwrap();
        // While the heavier one needs its 400 ms it has three quarters of the time.
        let end_ns = outcome.programs[1].end_ns;
        assert!(
            (533_000_000..=534_000_000).contains(&end_ns),
            "{scheduler:?} {end_ns}"
        );
        assert_eq!((outcome.elapsed_ns, outcome.idle_ns), (800_000_000, 0));
        check_sums(&outcome, 1);
    }
}

#[test]
fn two_processors_take_half_the_time_and_one_of_them_waits_for_no_disk() {
    let pages = || program(traces::looping(4, 10_000));
    let scenario = Scenario {
        processors: 2,
        ..instant(16, vec![pages(), pages(), pages(), pages()])
    };
    let outcome = run(&fifo(), &scenario).unwrap();
    assert_eq!(
        (outcome.elapsed_ns, outcome.user_ns),
        (80_000_000, 160_000_000)
    );
    check_sums(&outcome, 2);
    let waiting = program(traces::looping(20, 20));
    let scenario = Scenario {
        processors: 1,
        ..Scenario::new(14, vec![waiting, pages()])
    };
    let outcome = run(&fifo(), &scenario).unwrap();
    let busy = &outcome.programs[1].processes[0];
    assert!(busy.end_ns < outcome.elapsed_ns / 2, "{busy:?}");
    check_sums(&outcome, 1);
}

#[test]
fn a_swapper_stops_programs_that_do_not_fit_together_and_starves_none() {
    let system = crate::systems::find("osf-mk").expect("a system");
    // Each walks to and fro over its own pages, ten in a millisecond; together they are nearly
    // three times what there is.
    let walk = |rounds: u64| {
        let there = (0..rounds).flat_map(|_| (0..120).chain((0..120).rev()));
        let uses = there.map(|page| (page, Kinds::STORE, 100_000));
        let script = Script::from_uses(TimeUnit::Nanoseconds, uses);
        Program::new("walk", Arc::new(script))
    };
    let programs = || (0..9).map(|_| walk(100)).collect();
    let run_with = |load: &str| {
        let scenario = Scenario {
            load: Some(load.to_owned()),
            ..Scenario::new(400, programs())
        };
        let outcome = run(system, &scenario).unwrap();
        check_sums(&outcome, 1);
        assert_eq!(outcome.load, load);
        outcome
    };
    let (free, swapped) = (run_with("none"), run_with("task-swapper"));
    let suspended = |outcome: &Outcome| {
        let each = outcome
            .programs
            .iter()
            .map(|p| p.sum(|process| process.suspended_ns));
        each.sum::<u64>()
    };
    assert_eq!(suspended(&free), 0);
    assert!(suspended(&swapped) > 0);
    let page_ins = |outcome: &Outcome| outcome.counters.page_ins;
    assert!(
        page_ins(&swapped) < page_ins(&free),
        "{} {}",
        page_ins(&swapped),
        page_ins(&free)
    );
    for program in &swapped.programs {
        assert_eq!(program.processes[0].records, 24_000);
    }
}
