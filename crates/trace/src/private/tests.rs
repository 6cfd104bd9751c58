use super::*;
use crate::model::{Granularity, Kinds, Placed, TimeUnit};

const HEADER_PAGE: u64 = 4096;

fn memory<'a>(managed: impl Into<Managed<'a>>) -> PrivateMemory<'a> {
    let header = Header {
        page_bytes: HEADER_PAGE,
        granularity: Granularity::Exact,
        time: TimeUnit::Instructions,
        source: String::new(),
        command: Vec::new(),
        speed: None,
    };
    PrivateMemory::new(&header, managed)
}

fn map(start: u64, pages: u64, file: &str, rights: u8) -> Event {
    Event::Mapping(MappingEvent::Map {
        start,
        pages,
        rights: Rights(rights),
        is_shared: false,
        memory: file.into(),
        offset: 0,
    })
}

/// A block of these events, then of these pages, each after 10 units of time.
fn block(events: Vec<Event>, pages: &[u64]) -> Block {
    let mut block = Block {
        time_start: 100,
        ..Block::default()
    };
    let placed = |event| Placed {
        after: 0,
        time: 100,
        event,
    };
    block.events = events.into_iter().map(placed).collect();
    pages
        .iter()
        .for_each(|&page| block.push(page, Kinds::STORE, 10));
    block
}

fn kept<'a>(managed: impl Into<Managed<'a>>, events: Vec<Event>, pages: &[u64]) -> Block {
    let mut block = block(events, pages);
    memory(managed).keep(&mut block);
    block.check().unwrap();
    block
}

#[test]
fn files_stacks_and_their_tails_go_and_time_stays() {
    let events = vec![
        map(10, 10, "/bin/x", 5),
        map(20, 4, "", 3),
        map(100, 50, "", 3),
        map(200, 8, "[stack]", 3),
        map(300, 40, "", 7),
    ];
    let block = kept(Extent::All, events, &[10, 100, 21, 200, 149, 150, 300, 101]);
    assert_eq!(block.pages, [100, 149, 101]);
    assert_eq!(block.gaps, [20, 30, 30]);
    let maps = block.events.iter().map(|placed| &placed.event);
    assert_eq!(maps.collect::<Vec<_>>(), [&map(100, 50, "", 3)]);
}

#[test]
fn mappings_of_named_files_stay_but_for_those_that_are_left_alone() {
    let file = |start: u64, name: &str, rights: u8, is_shared: bool| {
        Event::Mapping(MappingEvent::Map {
            start,
            pages: 4,
            rights: Rights(rights),
            is_shared,
            memory: name.into(),
            offset: 8 * HEADER_PAGE,
        })
    };
    let events = vec![
        file(10, "/x/data", 1, true),
        file(20, "/x/data", 3, false),
        file(30, "/x/other", 1, true),
        file(40, "/x/data", 3, true),
        file(50, "/x/data", 5, false),
        file(60, "/x/data", 0, false),
    ];
    let managed = Managed {
        extent: Extent::Large,
        files: Some(&|path: &str| path.ends_with("/data")),
    };
    let block = kept(managed, events, &[10, 20, 30, 40, 50, 60, 23]);
    assert_eq!(block.pages, [10, 20, 23]);
    let maps = block.events.iter().map(|placed| &placed.event);
    // Shared ones are never written to. Who else shares them is of no matter.
    let expected = [file(10, "/x/data", 1, false), file(20, "/x/data", 3, false)];
    assert_eq!(maps.cloned().collect::<Vec<_>>(), expected);
}

#[test]
fn time_passes_on_to_the_next_block() {
    let mut memory = memory(Extent::All);
    let mut first = block(vec![map(5, 5, "", 3)], &[5, 90, 91]);
    let mut next = block(vec![], &[92, 6]);
    next.time_start = first.time_end();
    memory.keep(&mut first);
    memory.keep(&mut next);
    assert_eq!((first.pages, first.gaps), (vec![5], vec![10]));
    assert_eq!((next.time_start, next.gaps), (110, vec![40]));
}

#[test]
fn the_heap_begins_where_it_is_first_told_to_end() {
    let events = [50, 60, 55].map(|end| Event::Mapping(MappingEvent::Break { end }));
    let block = kept(
        Extent::All,
        [vec![map(5, 5, "", 3)], events.into()].concat(),
        &[49, 50, 54, 55],
    );
    assert_eq!(block.pages, [50, 54]);
    assert_eq!(block.events.len(), 4);
}

#[test]
fn found_h6_what_is_mapped_when_the_heap_is_refused_more_is_a_piece_of_it() {
    let ends = [50, 60, 60].map(|end| Event::Mapping(MappingEvent::Break { end }));
    let maps = vec![map(100, 34, "", 3), map(200, 34, "", 3)];
    let events = [vec![map(5, 5, "", 3)], ends.into(), maps].concat();
    let block = kept(Extent::All, events, &[100, 200]);
    let files = block
        .events
        .iter()
        .filter_map(|placed| match &placed.event {
            Event::Mapping(MappingEvent::Map { memory, .. }) => Some(memory.clone()),
            _ => None,
        });
    assert_eq!(
        files.collect::<Vec<_>>(),
        [Memory::Inner, Memory::HeapPiece, Memory::Anonymous]
    );
    assert_eq!(block.pages, [100, 200]);
}

#[test]
fn found_h6_what_malloc_maps_right_above_a_file_is_not_its_end() {
    let events = vec![
        map(5, 5, "", 3),
        map(10, 8, "/lib/y", 3),
        map(18, 4, "", 3),
        map(30, 8, "/lib/z", 3),
        map(38, 4, "[inner]", 3),
    ];
    let block = kept(Extent::All, events, &[12, 19, 38, 41]);
    assert_eq!(block.pages, [38, 41]);
}

#[test]
fn what_opens_above_a_guard_is_a_stack() {
    let open = |start, pages| {
        Event::Mapping(MappingEvent::Protect {
            start,
            pages,
            rights: Rights(3),
        })
    };
    let events = vec![
        map(10, 100, "", 0),
        open(11, 99),
        map(200, 100, "", 0),
        open(200, 9),
    ];
    let block = kept(Extent::All, events, &[20, 200, 208]);
    assert_eq!(block.pages, [200, 208]);
}

#[test]
fn small_pieces_are_left_out_in_step() {
    let events = vec![
        map(10, 1023, "", 3),
        map(5000, 1024, "", 3),
        Event::Mapping(MappingEvent::Break { end: 9000 }),
        Event::Mapping(MappingEvent::Break { end: 99_000 }),
    ];
    let block = kept(Extent::Large, events, &[10, 5000, 6023, 9510]);
    assert_eq!(block.pages, [5000, 6023]);
    assert_eq!(block.events.len(), 1);
}

#[test]
fn memory_that_moves_or_is_covered_is_followed() {
    let remap = Event::Mapping(MappingEvent::Remap {
        from: 10,
        from_pages: 5,
        to: 30,
        to_pages: 9,
    });
    let events = vec![map(10, 5, "", 3), remap, map(32, 2, "/lib/y", 1)];
    let block = kept(Extent::All, events, &[10, 31, 32, 38]);
    assert_eq!(block.pages, [31, 38]);
    let last = &block.events[2].event;
    assert_eq!(
        *last,
        Event::Mapping(MappingEvent::Unmap {
            start: 32,
            pages: 2
        })
    );
}

#[test]
fn without_mappings_nothing_is_taken_out() {
    let before = block(vec![], &[1, 2]);
    let mut after = before.clone();
    memory(Extent::All).keep(&mut after);
    assert_eq!(before, after);
}
