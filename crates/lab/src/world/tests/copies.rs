//! Files that system calls read and write: one cache with those that programs map.

use tidemark_trace::{Event, FileEvent};

use super::lives::Deed::{Load, Store};
use super::lives::{Deed, READ, WRITE, exit, fifo, map, outcome_of, script, start};
use super::*;
use crate::systems;

const PAGE: u64 = 4096;
/// The place of programs' private memory.
const PRIVATE: u64 = 1000;

fn read(file: &str, offset: u64, bytes: u64) -> Deed {
    let file = file.into();
    Deed::Event(Event::File(FileEvent::Read {
        file,
        offset,
        bytes,
    }))
}

fn write(file: &str, offset: u64, bytes: u64) -> Deed {
    let file = file.into();
    Deed::Event(Event::File(FileEvent::Write {
        file,
        offset,
        bytes,
    }))
}

fn cut(file: &str, bytes: u64) -> Deed {
    let file = file.into();
    Deed::Event(Event::File(FileEvent::Cut { file, bytes }))
}

fn process(deeds: Vec<Deed>) -> Vec<Deed> {
    let mut all = vec![start(1, 0), map(PRIVATE, 200, WRITE, ""), Store(PRIVATE)];
    all.extend(deeds);
    all.push(exit());
    all
}

fn outcome(frames: u32, deeds: Vec<Deed>) -> Outcome {
    outcome_of(&fifo(), frames, &[script(vec![process(deeds)])])
}

#[test]
fn a_file_read_twice_is_read_once_from_its_disk() {
    let deeds = || {
        vec![
            read("/data", 0, 10 * PAGE),
            read("/data", 100, 9 * PAGE),
            read("/data", 5 * PAGE, 1),
        ]
    };
    let found = outcome(64, deeds());
    assert_eq!((found.file_ins, found.file_outs), (10, 0));
    assert_eq!(found.bytes_copied, 19 * PAGE + 1);
    let reader = &found.programs[0].processes[0];
    // Only the first touch of private memory is a fault, and nothing that was copied is mapped.
    assert_eq!((reader.faults, reader.waits), (1, 10));
    assert_eq!((found.counters.soft_faults, found.mappings), (0, 2));
    // Another program finds the pages that the first has left.
    let programs = (0..2).map(|number| Program {
        start_ns: number * 60_000_000_000,
        ..Program::new("reader", script(vec![process(deeds())]))
    });
    let found = run(&fifo(), &Scenario::new(64, programs.collect())).unwrap();
    assert_eq!((found.file_ins, found.bytes_copied), (10, 38 * PAGE + 2));
}

#[test]
fn what_is_read_and_what_is_mapped_are_the_same_pages() {
    let mapped = map(100, 4, READ, "/bin/x");
    let deeds = vec![read("/bin/x", 0, 4 * PAGE), mapped, Load(100), Load(103)];
    let found = outcome(64, deeds);
    assert_eq!((found.file_ins, found.counters.soft_faults), (4, 2));
    let mapped = map(100, 4, READ, "/bin/x");
    let deeds = vec![mapped, Load(100), Load(103), read("/bin/x", 0, 4 * PAGE)];
    assert_eq!(outcome(64, deeds).file_ins, 4);
}

#[test]
fn copying_takes_time_by_the_byte() {
    let system = System {
        costs: Costs {
            copy_ns: 4096,
            ..Costs::FREE
        },
        ..fifo()
    };
    let times = [1, 3 * PAGE].map(|bytes| {
        let deeds = process(vec![read("/data", 0, 3 * PAGE), read("/data", 0, bytes)]);
        let found = outcome_of(&system, 64, &[script(vec![deeds])]);
        found.programs[0].processes[0].system_ns
    });
    assert_eq!(times, [3 * PAGE + 1, 6 * PAGE]);
}

#[test]
fn a_page_that_is_written_whole_or_behind_the_end_is_not_read_first() {
    // Part of a page that may hold something.
    assert_eq!(outcome(64, vec![write("/data", 10, 100)]).file_ins, 1);
    assert_eq!(outcome(64, vec![write("/data", 0, 2 * PAGE)]).file_ins, 0);
    // A file made anew: what is appended has nothing before it.
    let deeds = vec![
        cut("/new", 0),
        write("/new", 0, 10),
        write("/new", 10, PAGE),
        read("/new", 0, PAGE + 10),
    ];
    let found = outcome(64, deeds);
    assert_eq!((found.file_ins, found.file_outs), (0, 0));
}

#[test]
fn what_was_written_is_written_back_when_its_frames_are_wanted_unless_it_was_cut() {
    let fill = || (0..100).map(|page| Store(PRIVATE + page));
    let mut kept = vec![cut("/new", 0), write("/new", 0, 8 * PAGE)];
    kept.extend(fill());
    kept.push(read("/new", 0, 8 * PAGE));
    let found = outcome(32, kept);
    assert_eq!((found.file_outs, found.file_ins), (8, 8));
    let mut gone = vec![
        cut("/new", 0),
        write("/new", 0, 8 * PAGE),
        cut("/new", 2 * PAGE),
    ];
    gone.extend(fill());
    assert_eq!(outcome(32, gone).file_outs, 2);
}

#[test]
fn every_system_copies_the_same_bytes() {
    let deeds = || {
        let mut deeds = Vec::new();
        for round in 0..20 {
            deeds.extend((0..60).map(|page| Store(PRIVATE + (7 * round + page) % 150)));
            deeds.push(read("/data", 0, 100 * PAGE));
            deeds.push(write("/log", round * 5000, 5000));
            deeds.push(cut("/log", round * 2500));
        }
        process(deeds)
    };
    for system in systems::entries() {
        let scripts = [script(vec![deeds()]), script(vec![deeds()])];
        let found = outcome_of(system, 256, &scripts);
        let expected = 2 * 20 * (100 * PAGE + 5000);
        assert_eq!(found.bytes_copied, expected, "{}", system.name);
        assert!(found.file_ins >= 100, "{}", system.name);
        assert_eq!(found.counters.refusals, 0, "{}", system.name);
    }
}

/// A file that is read over and over, and private memory that nobody looks at meanwhile.
fn scan(system: &str) -> Outcome {
    let mut deeds: Vec<Deed> = (0..200).map(|page| Store(PRIVATE + page)).collect();
    for round in 0..30 {
        deeds.push(read("/data", 0, 160 * PAGE));
        deeds.push(Store(PRIVATE + round));
    }
    let system = systems::find(system).unwrap();
    outcome_of(system, 320, &[script(vec![process(deeds)])])
}

#[test]
fn who_gives_up_files_first_reads_them_again_and_who_weighs_both_swaps() {
    let mach = scan("gnumach");
    let modern = scan("linux-modern");
    assert_eq!(mach.swap_outs, 0, "while there are pages of files");
    assert!(mach.file_ins > 160 * 20, "{}", mach.file_ins);
    assert!(modern.swap_outs > 0);
    assert!(modern.file_ins < mach.file_ins / 2, "{}", modern.file_ins);
}

#[test]
fn while_nobody_gets_a_frame_gnu_machs_files_are_written_by_way_of_the_swap_store() {
    let writer = |system: &str| {
        let system = systems::find(system).unwrap();
        let deeds = process(vec![write("/out", 0, 1000 * PAGE)]);
        outcome_of(system, 320, &[script(vec![deeds])])
    };
    let found = writer("gnumach");
    let (doubled, back) = (found.counters.double_paged, found.swap_ins);
    assert!(doubled > 100, "{doubled}");
    assert_eq!(found.swap_outs, doubled, "no private page leaves");
    // Files' pagers read what was paged twice, and have the last of it still before them.
    assert!((1..=doubled).contains(&back), "{back} of {doubled}");
    assert_eq!(writer("mach3").counters.double_paged, 0);
}

#[test]
fn rmap_13b_gives_up_what_nobody_has_mapped() {
    let swap_ins = |deed: Option<Deed>| {
        let mut deeds: Vec<Deed> = deed.into_iter().collect();
        deeds.extend((0..200).map(|page| Store(PRIVATE + page)));
        for _ in 0..10 {
            deeds.push(read("/data", 0, 100 * PAGE));
            deeds.extend((0..200).map(|page| Load(PRIVATE + page)));
        }
        let system = systems::find("linux-rmap13b").unwrap();
        outcome_of(system, 280, &[script(vec![process(deeds)])]).swap_ins
    };
    let unmapped = swap_ins(None);
    let mapped = swap_ins(Some(map(100, 100, READ, "/data")));
    assert!(unmapped < mapped * 2 / 3, "{unmapped} {mapped}");
}
