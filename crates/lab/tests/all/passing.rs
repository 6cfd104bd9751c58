//! Counts made while a trace is read are those from references in memory.

use std::fs::File;
use std::path::PathBuf;

use tidemark_lab::analysis::{Choice, References};
use tidemark_lab::study::{
    Assumed, CurveOrder, Named, Opened, Passing, Sizes, Study, Wanted, WorkingSets,
};
use tidemark_model::traces::SplitMix64;
use tidemark_trace::{
    Block, Event, Granularity, Header, Kinds, LifeEvent, Placed, Reader, TimeUnit, Writer,
};

/// A file that goes away.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A trace of three processes in turns, one of which executes another program; blocks end with
/// events behind the last record, and some have none.
fn written(seed: u64, granularity: Granularity, time: TimeUnit) -> Scratch {
    let name = format!(
        "tidemark-passing-{}-{seed}-{time:?}.tide",
        std::process::id()
    );
    let path = Scratch(std::env::temp_dir().join(name));
    let header = Header {
        page_bytes: 4096,
        granularity,
        time,
        source: "test".into(),
        command: Vec::new(),
        speed: None,
    };
    let mut random = SplitMix64::new(seed);
    let mut writer = Writer::new(File::create(&path.0).unwrap(), &header).unwrap();
    let mut ends = [7, 900, 30];
    for round in 0..30_u64 {
        let process = round % 3;
        let mut block = Block {
            process: process as u32,
            time_start: ends[process as usize] + random.below(50),
            ..Block::default()
        };
        let length = if round % 7 == 6 || round > 20 && process == 2 {
            0
        } else {
            random.below(3000)
        };
        for _ in 0..length {
            let page = match random.below(4) {
                0 => random.below(2000),
                1 => random.below(300),
                _ => random.below(30) + round * 10,
            };
            block.push(
                page,
                Kinds::LOAD,
                random.below(5) as u32 * random.below(40) as u32,
            );
        }
        let after = block.pages.len() as u32;
        let event = match round {
            13 => Event::Life(LifeEvent::Exec {
                program: "other".into(),
            }),
            // Two behind the last reference of all, and one long before.
            20 => Event::Life(LifeEvent::Exit { status: 0 }),
            28 | 29 => Event::Life(LifeEvent::Killed { signal: 9 }),
            _ => Event::Mark {
                name: "there".into(),
            },
        };
        let time = block.time_end() + random.below(100);
        block.events.push(Placed { after, time, event });
        ends[process as usize] = block.time_end();
        writer.write(&block).unwrap();
    }
    writer.finish().unwrap();
    path
}

fn read(path: &Scratch, wanted: Wanted) -> Study {
    Study::read(&path.0, wanted, &mut |_, _| ()).unwrap()
}

fn all() -> Wanted {
    Wanted {
        references: true,
        ..Wanted::default()
    }
}

const KINDS: [(Granularity, TimeUnit); 3] = [
    (Granularity::Exact, TimeUnit::Instructions),
    (Granularity::Quantum(100), TimeUnit::Nanoseconds),
    (Granularity::Exact, TimeUnit::References),
];

#[test]
fn found_h5_curves_in_passing_are_those_of_memory() {
    for (seed, (granularity, time)) in (1..).zip(KINDS) {
        let path = written(seed, granularity, time);
        let mut reader = Reader::open(&path.0).unwrap();
        let references = References::read(&mut reader, Choice::All).unwrap();
        for sizes in [Sizes::Spread, Sizes::At(vec![5, 100, 700])] {
            let order = CurveOrder {
                policies: vec![Named::Lru, Named::WorkingSet, Named::Vmin, Named::Opt],
                sizes,
                assumed: Assumed {
                    slowdowns_percent: vec![1.0, 50.0, 100_000.0],
                    page_in_ns: 200.0,
                    time_unit_ns: Some(1.0),
                    ..Assumed::default()
                },
            };
            let passing = Wanted::curves(&order.policies, &order.assumed);
            assert!(passing.pages && !passing.references);
            let passed = read(&path, passing);
            assert_eq!(passed.facts().time, references.duration());
            assert_eq!(passed.facts().pages, u64::from(references.page_count));
            let at_once = passed.facts().pages_at_once;
            assert_eq!(at_once, Some(u64::from(references.alive_max)));
            let passed = passed.curves(&order, &mut |_, _| ()).to_json();
            assert_eq!(
                passed,
                read(&path, all()).curves(&order, &mut |_, _| ()).to_json()
            );
        }
    }
}

#[test]
fn found_h5_working_sets_in_passing_are_those_of_memory() {
    for (seed, (granularity, time)) in (11..).zip(KINDS) {
        let path = written(seed, granularity, time);
        let held = read(&path, all());
        for windows in [vec![], vec![1, 50, 3000, 1_000_000]] {
            let wanted = Wanted {
                passing: Passing {
                    working_sets: Some(WorkingSets {
                        windows,
                        pieces: 100,
                    }),
                    ..Passing::default()
                },
                ..Wanted::default()
            };
            let passed = read(&path, wanted.clone()).working_sets_passed();
            let windows = match &wanted.passing.working_sets {
                Some(sets) if !sets.windows.is_empty() => sets.windows.clone(),
                _ => held.usual_windows(),
            };
            assert_eq!(passed.to_json(), held.working_sets(&windows, 100).to_json());
        }
    }
}

#[test]
fn found_h1_the_references_of_sampled_traces_are_held_in_any_case() {
    let path = written(31, Granularity::Window(100), TimeUnit::Nanoseconds);
    let held = read(&path, all());
    let policies = vec![Named::Lru, Named::WorkingSet, Named::Vmin];
    let order = CurveOrder {
        policies,
        sizes: Sizes::Spread,
        assumed: Assumed {
            page_in_ns: 200.0,
            ..Assumed::default()
        },
    };
    let sets = Passing {
        working_sets: Some(WorkingSets {
            windows: vec![],
            pieces: 100,
        }),
        ..Passing::default()
    };
    let wanted = Wanted {
        passing: sets,
        ..Wanted::curves(&order.policies, &order.assumed)
    };
    let opened = Opened::open(&path.0, false).unwrap();
    assert_eq!(opened.bytes_held(&wanted), 12 * opened.facts().records);
    let study = read(&path, wanted);
    let windows = held.usual_windows();
    assert!(windows[0] >= study.facts().window_least(), "{windows:?}");
    let sets = held.working_sets(&windows, 100).to_json();
    assert_eq!(study.working_sets_passed().to_json(), sets);
    let curves = |study: &Study| study.curves(&order, &mut |_, _| ()).to_json();
    assert_eq!(curves(&study), curves(&held));
}

#[test]
fn found_h5_what_is_held_by_references_is_known_before() {
    let path = written(21, Granularity::Exact, TimeUnit::Instructions);
    let opened = Opened::open(&path.0, false).unwrap();
    let records = opened.facts().records;
    let assumed = Assumed {
        page_in_ns: 1e9,
        ..Assumed::default()
    };
    let held = |policies: &[Named]| opened.bytes_held(&Wanted::curves(policies, &assumed));
    assert_eq!(held(&[Named::Lru]), 0);
    // One interval may be wanted, and is one more than the page-ins that are bearable.
    assert_eq!(held(&[Named::WorkingSet, Named::Vmin]), 32);
    assert_eq!(held(&[Named::Opt]), 24 * records);
    assert_eq!(held(&[Named::Pff]), 12 * records);
    assert!(!opened.is_beyond_optimum());
}
