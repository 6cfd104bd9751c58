use tidemark_trace::{Event, LifeEvent, MappingEvent, Placed};

use super::super::testing;
use super::*;

const LOAD: u8 = Kinds::LOAD.0;

fn block(process: u32, pages: &[u64]) -> Block {
    Block {
        process,
        time_start: 0,
        pages: pages.to_vec(),
        kinds: vec![LOAD; pages.len()],
        gaps: vec![1; pages.len()],
        events: vec![],
    }
}

fn mapping(after: u32, start: u64, pages: u64, file: &str) -> Placed {
    placed(after, testing::map(start, pages, file))
}

fn placed(after: u32, event: Event) -> Placed {
    Placed {
        after,
        time: 0,
        event,
    }
}

fn map(fineness: (usize, usize), blocks: &[Block]) -> AddressMap {
    let fineness = Fineness {
        columns_max: fineness.0,
        rows_max: fineness.1,
    };
    let mut mapper = Mapper::new(TimeUnit::Instructions, fineness);
    blocks.iter().for_each(|block| mapper.take(block));
    mapper.finish()
}

fn cells(map: &AddressMap) -> u64 {
    let rows = map.regions.iter().flat_map(|region| &region.rows);
    rows.flat_map(|row| &row.cells).sum()
}

#[test]
fn a_short_trace_is_mapped_reference_by_reference() {
    let map = map((16, 16), &[block(0, &[7, 8, 7])]);
    assert_eq!((map.columns, map.column_time, map.time), (3, 1, 3));
    let [region] = map.regions.as_slice() else {
        panic!("{map:?}");
    };
    assert_eq!(region.label, "unnamed");
    assert_eq!((region.start, region.pages, region.touched), (7, 2, 2));
    assert_eq!(
        (region.rows[0].from, &region.rows[0].cells[..]),
        (0, &[1, 0, 1][..])
    );
    assert_eq!(
        (region.rows[1].from, &region.rows[1].cells[..]),
        (1, &[1][..])
    );
}

#[test]
fn nothing_is_lost_when_rows_and_columns_are_merged() {
    let pages: Vec<u64> = (0..10_000).map(|at| at * at % 5_003).collect();
    let map = map((32, 20), &[block(0, &pages)]);
    assert_eq!(cells(&map), 10_000);
    assert!(map.columns <= 32 && map.columns > 16, "{}", map.columns);
    let rows: usize = map.regions.iter().map(|region| region.rows.len()).sum();
    assert!(rows <= 20 && rows > 9, "{rows}");
    let distinct: std::collections::BTreeSet<u64> = pages.iter().copied().collect();
    let touched: u64 = map.regions.iter().map(|region| region.touched).sum();
    assert_eq!(touched, distinct.len() as u64);
    let records: u64 = map.regions.iter().map(|region| region.records).sum();
    assert_eq!(records, 10_000);
}

#[test]
fn merged_columns_have_the_sums_of_a_finer_map() {
    let pages: Vec<u64> = (0..1000).map(|at| at % 3).collect();
    let fine = map((1024, 4), &[block(0, &pages)]);
    let coarse = map((250, 4), &[block(0, &pages)]);
    assert_eq!(coarse.column_time, 4);
    for (fine, coarse) in fine.regions[0].rows.iter().zip(&coarse.regions[0].rows) {
        let mut sums = vec![0; 250];
        for (at, cell) in fine.cells.iter().enumerate() {
            sums[(fine.from + at) / 4] += cell;
        }
        assert_eq!(
            &sums[coarse.from..coarse.from + coarse.cells.len()],
            coarse.cells
        );
    }
}

#[test]
fn pages_belong_to_what_was_mapped_when_they_were_used() {
    let mut block = block(0, &[10, 11, 10, 50, 12]);
    block.events = vec![
        mapping(0, 10, 2, "/lib/one.so"),
        mapping(2, 10, 2, "/lib/two.so"),
        placed(
            3,
            Event::Mapping(MappingEvent::Unmap {
                start: 11,
                pages: 1,
            }),
        ),
        mapping(3, 50, 1, ""),
    ];
    let map = map((16, 16), &[block]);
    let told: Vec<(&str, u64, u64)> = map
        .regions
        .iter()
        .map(|region| (region.label.as_str(), region.start, region.records))
        .collect();
    let expected = [
        ("/lib/one.so", 10, 2),
        ("/lib/two.so", 10, 1),
        ("unnamed", 12, 1),
        ("anonymous", 50, 1),
    ];
    assert_eq!(told, expected);
}

#[test]
fn the_heap_follows_its_break_and_a_child_has_what_its_parent_mapped() {
    let start = |pid, parent| {
        Event::Life(LifeEvent::Start {
            pid,
            parent,
            program: "sh".into(),
        })
    };
    let mut parent = block(0, &[20, 25]);
    parent.events = vec![
        placed(0, start(100, 1)),
        mapping(0, 20, 1, "[heap]"),
        placed(1, Event::Mapping(MappingEvent::Break { end: 30 })),
    ];
    let mut child = block(1, &[25, 25, 20]);
    child.events = vec![
        placed(0, start(101, 100)),
        placed(1, Event::Mapping(MappingEvent::Break { end: 22 })),
        placed(
            2,
            Event::Life(LifeEvent::Exec {
                program: "ls".into(),
            }),
        ),
    ];
    let map = map((16, 16), &[parent, child]);
    let told: Vec<(u32, &str, &str, u64)> = map
        .regions
        .iter()
        .map(|region| {
            let (program, label) = (region.program.as_str(), region.label.as_str());
            (region.process, program, label, region.start)
        })
        .collect();
    let expected = [
        (0, "sh", "[heap]", 20),
        (1, "ls", "unnamed", 20),
        (1, "sh", "[heap]", 25),
        (1, "sh", "unnamed", 25),
    ];
    assert_eq!(told, expected);
}

#[test]
fn far_apart_pages_of_one_kind_are_regions_of_their_own() {
    let map = map((16, 64), &[block(0, &[1, 2, 1 << 30, (1 << 30) + 1])]);
    let starts: Vec<u64> = map.regions.iter().map(|region| region.start).collect();
    assert_eq!(starts, [1, 1 << 30]);
}

#[test]
fn marks_have_the_time_over_all_processes() {
    let mut second = block(1, &[1, 1]);
    second.events = vec![placed(
        1,
        Event::Mark {
            name: "sorting".into(),
        },
    )];
    let map = map((16, 16), &[block(0, &[5, 5, 5]), second]);
    let expected = Mark {
        time: 4,
        process: 1,
        name: "sorting".into(),
    };
    assert_eq!(map.marks, [expected]);
}
