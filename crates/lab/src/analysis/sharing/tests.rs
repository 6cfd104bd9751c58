use std::collections::{BTreeMap, BTreeSet};

use tidemark_model::traces::SplitMix64;
use tidemark_trace::{Block, Granularity, Header, LifeEvent, Placed, Rights, TimeUnit};

use super::*;
use crate::analysis::references::{Choice, Loading, References};

const LOAD: u8 = Kinds::LOAD.0;
const STORE: u8 = Kinds::STORE.0;

/// The course of one process: events, then accesses.
struct Turn<'a>(u32, Vec<Event>, &'a [(u64, u8)]);

fn start(pid: u32, parent: u32) -> Event {
    let program = "/bin/x".into();
    Event::Life(LifeEvent::Start {
        pid,
        parent,
        program,
    })
}

fn exit() -> Event {
    Event::Life(LifeEvent::Exit { status: 0 })
}

fn mapped(start: u64, pages: u64, file: &str, page: u64, is_shared: bool) -> Event {
    Event::Mapping(MappingEvent::Map {
        start,
        pages,
        rights: Rights::READ,
        is_shared,
        memory: file.into(),
        offset: page * 4096,
    })
}

fn file(start: u64, pages: u64, page: u64) -> Event {
    mapped(start, pages, "/lib/x", page, false)
}

fn header(page_bytes: u64) -> Header {
    Header {
        page_bytes,
        granularity: Granularity::Exact,
        time: TimeUnit::References,
        source: "test".into(),
        command: Vec::new(),
        speed: None,
    }
}

fn blocks(turns: &[Turn<'_>]) -> Vec<Block> {
    let block = |Turn(process, events, accesses): &Turn<'_>| {
        let placed = |event: &Event| Placed {
            after: 0,
            time: 0,
            event: event.clone(),
        };
        let mut block = Block {
            process: *process,
            events: events.iter().map(placed).collect(),
            ..Block::default()
        };
        for &(page, kinds) in *accesses {
            block.push(page, Kinds(kinds), 1);
        }
        block
    };
    turns.iter().map(block).collect()
}

fn load(mut loading: Loading, blocks: &[Block]) -> References {
    blocks.iter().for_each(|block| loading.take(block));
    loading.finish()
}

/// The references of these turns. Departures are as they are held to be.
fn shared(turns: &[Turn<'_>]) -> References {
    let loading = Loading::shared(&header(4096), Choice::All);
    let references = load(loading, &blocks(turns));
    check(&references);
    references
}

/// No page departs twice, or is referred to when it has departed; and as many are there as said.
fn check(references: &References) {
    let mut departures = references.departures.iter().peekable();
    let (mut there, mut gone) = (BTreeSet::new(), BTreeSet::new());
    let mut most = 0;
    for (at, page) in (0..).zip(&references.pages) {
        while let Some(departure) = departures.next_if(|it| it.before <= at) {
            for page in &departure.pages {
                assert!(there.remove(page), "{page} is not there");
                gone.insert(*page);
            }
        }
        assert!(!gone.contains(page), "{page} is referred to, and gone");
        there.insert(*page);
        most = most.max(there.len());
    }
    assert_eq!(most, references.alive_max as usize);
    let names: BTreeSet<_> = references.names.iter().collect();
    assert!(names.len() <= references.page_count as usize);
}

#[test]
fn found_m4_a_page_of_a_file_is_one_whoever_maps_it() {
    let references = shared(&[
        Turn(0, vec![file(10, 5, 0)], &[(10, LOAD), (12, LOAD)]),
        // At another address, and from its second page on.
        Turn(1, vec![file(99, 3, 2)], &[(99, LOAD), (100, LOAD)]),
        Turn(1, vec![mapped(50, 1, "/lib/y", 0, false)], &[(50, LOAD)]),
        Turn(0, vec![exit()], &[]),
        Turn(1, vec![], &[(99, LOAD)]),
        Turn(1, vec![exit()], &[]),
        Turn(2, vec![file(10, 5, 0)], &[(12, LOAD)]),
    ]);
    assert_eq!(references.pages, [0, 1, 1, 2, 3, 1, 4]);
    assert_eq!(references.alive_max, 4);
    let departed: Vec<&[u32]> = references
        .departures
        .iter()
        .map(|it| &it.pages[..])
        .collect();
    assert_eq!(departed, [&[0][..], &[1, 2, 3]]);
}

#[test]
fn found_m4_a_private_page_of_a_file_that_is_stored_to_is_the_process_s_own() {
    let references = shared(&[
        Turn(0, vec![file(10, 5, 0)], &[(10, LOAD), (11, LOAD)]),
        Turn(
            1,
            vec![file(10, 5, 0)],
            &[(10, LOAD), (10, STORE), (12, STORE)],
        ),
        Turn(0, vec![], &[(10, LOAD), (11, LOAD | STORE), (12, LOAD)]),
        // No process has the file's page any more: this one is as in the file.
        Turn(1, vec![], &[(11, LOAD), (10, LOAD)]),
    ]);
    assert_eq!(references.pages, [0, 1, 0, 2, 3, 0, 1, 4, 5, 2]);
}

#[test]
fn found_m4_pages_are_shared_after_a_fork_until_someone_stores() {
    let references = shared(&[
        Turn(
            0,
            vec![start(7, 0)],
            &[(1, STORE), (2, STORE), (3, STORE), (4, STORE)],
        ),
        Turn(1, vec![start(8, 7)], &[(1, LOAD), (2, STORE), (9, STORE)]),
        // The child has left page 2; page 3 it has.
        Turn(0, vec![], &[(2, STORE), (3, STORE), (3, LOAD), (9, STORE)]),
        Turn(1, vec![], &[(3, LOAD), (2, LOAD)]),
        Turn(1, vec![exit()], &[]),
        Turn(0, vec![], &[(4, STORE), (1, LOAD)]),
    ]);
    let expected = [0, 1, 2, 3, 0, 4, 5, 1, 6, 6, 7, 2, 4, 3, 0];
    assert_eq!(references.pages, expected);
    assert_eq!((references.page_count, references.alive_max), (8, 8));
    assert_eq!(references.departures[0].pages, [2, 4, 5]);
    let name = |page: usize| {
        let name = references.names[page];
        (name.process, name.page, name.copy)
    };
    assert_eq!(
        (name(2), name(4), name(6)),
        ((0, 3, 0), (1, 2, 0), (0, 3, 1))
    );
}

#[test]
fn found_m4_what_is_not_known_to_be_a_load_is_a_store() {
    let references = shared(&[
        Turn(0, vec![start(7, 0)], &[(1, 0)]),
        Turn(1, vec![start(8, 7)], &[(1, 0)]),
    ]);
    assert_eq!(references.pages, [0, 1]);
}

#[test]
fn found_m4_shared_memory_stays_shared() {
    for name in ["", "[shm]", "/dev/shm/x", "/memfd:x (deleted)"] {
        let map = || mapped(20, 9, name, 0, true);
        let references = shared(&[
            Turn(0, vec![start(7, 0), map()], &[(20, STORE)]),
            // A child's trace tells the mappings that it has inherited once more.
            Turn(1, vec![start(8, 7), map()], &[(20, STORE), (21, STORE)]),
            Turn(0, vec![], &[(21, STORE), (20, LOAD)]),
        ]);
        assert_eq!(references.pages, [0, 0, 1, 1, 0], "{name}");
        let others = shared(&[
            Turn(0, vec![start(7, 0), map()], &[(20, STORE)]),
            Turn(1, vec![start(8, 0), map()], &[(20, STORE)]),
        ]);
        let is_file = name.starts_with("/dev");
        assert_eq!(others.pages, [0, u32::from(!is_file)], "{name}");
    }
}

#[test]
fn found_m4_mappings_that_are_told_again_change_nothing() {
    let maps = || vec![file(10, 5, 0), mapped(30, 9, "", 0, false)];
    let told = |again: Vec<Event>| {
        shared(&[
            Turn(
                0,
                [vec![start(7, 0)], maps()].concat(),
                &[(10, LOAD), (11, STORE), (30, STORE)],
            ),
            Turn(
                1,
                [vec![start(8, 7)], again].concat(),
                &[(10, LOAD), (11, LOAD), (30, LOAD)],
            ),
            Turn(0, vec![], &[(11, STORE), (10, LOAD)]),
        ])
    };
    let references = told(maps());
    assert_eq!(references.pages, [0, 1, 2, 0, 1, 2, 3, 0]);
    assert_eq!(references, told(vec![]));
}

#[test]
fn found_m4_what_is_mapped_over_a_page_is_another() {
    let references = shared(&[
        Turn(0, vec![file(10, 5, 0)], &[(10, LOAD), (11, LOAD)]),
        Turn(1, vec![file(10, 5, 0)], &[(10, LOAD), (13, LOAD)]),
        // The same pages of memory show other pages of the file: the last of them is known.
        Turn(1, vec![file(13, 1, 1)], &[(13, LOAD)]),
        Turn(1, vec![file(10, 1, 2)], &[(10, LOAD)]),
        Turn(0, vec![], &[(10, LOAD), (12, LOAD), (13, LOAD)]),
    ]);
    assert_eq!(references.pages, [0, 1, 0, 2, 1, 3, 0, 3, 4]);
    assert_eq!(references.departures[0].pages, [2]);
}

#[test]
fn found_m4_a_file_that_is_cut_to_nothing_is_another() {
    let cut = Event::File(FileEvent::Cut {
        file: "/lib/x".into(),
        bytes: 0,
    });
    let references = shared(&[
        Turn(0, vec![file(10, 5, 0)], &[(10, LOAD)]),
        Turn(2, vec![cut], &[]),
        Turn(1, vec![file(10, 5, 0)], &[(10, LOAD)]),
        Turn(0, vec![], &[(10, LOAD)]),
    ]);
    assert_eq!(references.pages, [0, 1, 0]);
}

#[test]
fn found_m4_larger_pages_are_shared_after_forks_alone() {
    let turns = [
        Turn(0, vec![start(7, 0), file(10, 5, 0)], &[(10, LOAD)]),
        Turn(1, vec![start(8, 7)], &[(10, LOAD)]),
        Turn(2, vec![start(9, 0), file(10, 5, 0)], &[(10, LOAD)]),
    ];
    let loading = Loading::shared(&header(65536), Choice::All);
    assert_eq!(load(loading, &blocks(&turns)).pages, [0, 0, 1]);
}

#[test]
fn found_m4_children_do_not_take_over_without_end() {
    let mut sharing = Sharing::new(4096);
    let mut parent = Space::new();
    for page in 0..1000 {
        sharing.settle(&mut parent, page, STORE, page as u32);
    }
    let mut children: Vec<Space> = (0..INHERITED_MAX / 1000 + 10)
        .map(|_| {
            // What they have inherited takes memory until they end.
            let mut child = sharing.fork(&mut parent);
            let inherited = child.numbers.len();
            child.numbers = Numbers::new();
            assert!(inherited == 0 || inherited == 1000);
            child
        })
        .collect();
    let with_any = children.iter().filter(|child| child.inherited > 0).count();
    assert_eq!(with_any, INHERITED_MAX / 1000);
    sharing.clear(&mut children[0]);
    assert_eq!(sharing.fork(&mut parent).inherited, 1000);
}

/// Something that may happen to the memory of a process, or an access.
fn step(random: &mut SplitMix64, process: u32, pid: &mut u32, living: &[u32]) -> Turn<'static> {
    let start = random.below(60);
    let (pages, page) = (random.below(12) + 1, random.below(8));
    let name = ["/lib/x", "/lib/y", "", "[heap]"][random.below(4) as usize];
    let event = match random.below(40) {
        0..4 => mapped(start, pages, name, page, false),
        4..6 => mapped(start, pages, name, page, true),
        6..8 => Event::Mapping(MappingEvent::Unmap { start, pages }),
        8 => Event::Mapping(MappingEvent::Remap {
            from: start,
            from_pages: pages,
            to: random.below(60),
            to_pages: pages,
        }),
        9 if random.below(3) == 0 => Event::Life(LifeEvent::Exec {
            program: "/bin/y".into(),
        }),
        10 if random.below(3) == 0 => exit(),
        11 if !living.is_empty() => {
            *pid += 1;
            let parent = living[random.below(living.len() as u64) as usize];
            self::start(*pid, parent)
        }
        _ => {
            let kinds = [LOAD, LOAD, LOAD | STORE, STORE, 0][random.below(5) as usize];
            let accesses = (0..random.below(9)).map(|_| (random.below(64), kinds));
            let accesses: Vec<(u64, u8)> = accesses.collect();
            return Turn(process, vec![], accesses.leak());
        }
    };
    Turn(process, vec![event], &[])
}

#[test]
fn found_m4_a_trace_of_one_process_has_the_pages_that_it_had() {
    for seed in 0..50 {
        let mut random = SplitMix64::new(seed);
        let turns: Vec<Turn<'_>> = (0..400)
            .map(|_| step(&mut random, 0, &mut 0, &[]))
            .collect();
        let blocks = blocks(&turns);
        let apart = load(Loading::new(&header(4096), Choice::All), &blocks);
        let mut shared = load(Loading::shared(&header(4096), Choice::All), &blocks);
        // Only events say which of them are files'.
        shared.common.clear();
        assert_eq!(apart, shared, "seed {seed}");
    }
}

#[test]
fn found_m4_whatever_processes_do_each_page_has_its_holders() {
    for seed in 0..50 {
        let mut random = SplitMix64::new(seed);
        let mut sharing = Sharing::new(4096);
        let mut spaces: Vec<Space> = (0..4).map(|_| Space::new()).collect();
        let mut fresh = 0;
        for _ in 0..600 {
            let at = random.below(4) as usize;
            let Turn(_, events, accesses) = step(&mut random, 0, &mut 0, &[1]);
            for event in &events {
                if event.ends_program() {
                    sharing.clear(&mut spaces[at]);
                } else if let Event::Life(LifeEvent::Start { .. }) = event {
                    sharing.clear(&mut spaces[at]);
                    let other = (at + 1) % 4;
                    spaces[at] = sharing.fork(&mut spaces[other]);
                } else {
                    sharing.happen(&mut spaces[at], event);
                }
            }
            for &(page, kinds) in accesses {
                let accesses = accesses_of(kinds);
                let known = spaces[at].numbers.find(page);
                if known.is_some_and(|slot| slot.watch & accesses == 0) {
                    continue;
                }
                let settled = sharing.settle(&mut spaces[at], page, accesses, fresh);
                fresh += u32::from(settled.number == fresh);
            }
            check_holders(&sharing, &mut spaces);
        }
    }
}

fn accesses_of(kinds: u8) -> u8 {
    super::accesses(kinds)
}

/// Walks the invariants of the module.
fn check_holders(sharing: &Sharing, spaces: &mut [Space]) {
    let mut holders: BTreeMap<u32, u32> = BTreeMap::new();
    for space in spaces.iter_mut() {
        let slots: Vec<(u32, u8)> = space
            .numbers
            .slots()
            .map(|it| (it.number, it.watch))
            .collect();
        let numbers: BTreeSet<u32> = slots.iter().map(|slot| slot.0).collect();
        assert_eq!(numbers.len(), slots.len(), "a process has a page once");
        for &(number, watch) in &slots {
            *holders.entry(number).or_default() += 1;
            let is_known = sharing.keys.contains_key(&number);
            assert!(
                !is_known || space.held.contains(&number),
                "{number} is held"
            );
            let is_common = sharing.holders[number as usize] > 1;
            assert!(
                watch != OWN || !is_known && !is_common,
                "{number} is watched"
            );
        }
        assert!(space.held.is_subset(&numbers));
    }
    for (number, &count) in (0..).zip(&sharing.holders) {
        assert_eq!(
            holders.get(&number).copied().unwrap_or(0),
            count,
            "{number}"
        );
    }
    assert_eq!(sharing.keys.len(), sharing.pages.len());
    for (number, key) in &sharing.keys {
        assert_eq!(sharing.pages[key], *number);
        assert!(holders.contains_key(number));
    }
}
