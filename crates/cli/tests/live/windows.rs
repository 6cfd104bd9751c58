//! Programs of known phases: known pages in each window.

use tidemark_trace::{Event, Granularity, Kinds, LifeEvent, MappingEvent, Memory, TimeUnit};

use crate::running::{is_permitted, printed_pages, recorded};
use crate::support::Folder;
use crate::tool::compile;

/// Touches every page of three areas, one after the other, for 300 ms each: reads the second, and
/// writes to the others. Prints where they are.
const PHASES: &str = r#"
    #include <stdio.h>
    #include <sys/mman.h>
    #include <time.h>
    static volatile char *area(int pages) {
        return mmap(0, pages * 4096L, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    static void work(volatile char *at, int pages, int is_write) {
        clock_t end = clock() + CLOCKS_PER_SEC * 3 / 10;
        while (clock() < end)
            for (int page = 0; page < pages; page++)
                if (is_write) at[page * 4096L] = 1; else (void)at[page * 4096L];
    }
    int main(void) {
        volatile char *first = area(500), *second = area(200), *third = area(64);
        printf("%p %p %p\n", first, second, third);
        for (int page = 0; page < 200; page++) second[page * 4096L] = 1;
        work(first, 500, 1);
        work(second, 200, 0);
        work(third, 64, 1);
        return 0;
    }
"#;

#[test]
fn each_window_of_a_phase_has_the_pages_of_the_phase() {
    if !is_permitted() {
        return;
    }
    let folder = Folder::new("live-phases");
    let program = compile(&folder, "phases", PHASES, &[]);
    let (output, recording) = recorded(&folder, &["--window", "20ms", &program]);
    let header = &recording.header;
    assert_eq!(header.granularity, Granularity::Window(20_000_000));
    assert_eq!(header.time, TimeUnit::Nanoseconds);
    assert!(
        header.source.ends_with("live sampling"),
        "{}",
        header.source
    );
    let process = recording.only();
    let starts = printed_pages(&output);
    let areas = [(starts[0], 500), (starts[1], 200), (starts[2], 64)];
    let mut ended = 0;
    for (number, (start, pages)) in areas.into_iter().enumerate() {
        let times = process.times_in(start..start + pages);
        assert_eq!(times.len() as u64, pages, "area {number}");
        // The second area was filled before the phases began.
        let first = usize::from(number == 1);
        let counts: Vec<usize> = times.values().map(|times| times.len() - first).collect();
        let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
        // A phase begins and ends in the midst of a window. On a busy machine some are longer.
        assert!(
            *least >= 4 && most - least <= 2,
            "area {number}: {least} to {most}"
        );
        let begin = times.values().map(|times| times[first]).min().unwrap();
        assert!(begin >= ended, "area {number} comes after the one before");
        ended = times
            .values()
            .map(|times| *times.last().unwrap())
            .max()
            .unwrap();
    }
    // `clock` counts what the engine uses, too; the trace does not.
    assert!((300_000_000..3_000_000_000).contains(&process.time()));
}

#[test]
fn a_window_has_one_record_a_page() {
    if !is_permitted() {
        return;
    }
    let folder = Folder::new("live-once");
    let program = compile(&folder, "phases", PHASES, &[]);
    let (output, recording) = recorded(&folder, &["--window", "10s", &program]);
    let start = printed_pages(&output)[0];
    let process = recording.only();
    let times = process.times_in(start..start + 500);
    assert_eq!(times.len(), 500);
    assert!(times.values().all(|times| times.len() == 1));
    assert!(process.find(|it| matches!(it, Event::Life(LifeEvent::Exit { status: 0 }))));
}

#[test]
fn the_kind_of_the_first_access_is_told() {
    if !is_permitted() {
        return;
    }
    let folder = Folder::new("live-kinds");
    let program = compile(&folder, "phases", PHASES, &[]);
    let (output, recording) = recorded(&folder, &["--window", "20ms", &program]);
    let starts = printed_pages(&output);
    let records = &recording.only().records;
    let kinds_of = |start: u64, pages: u64| {
        let of_area = records
            .iter()
            .filter(move |it| (start..start + pages).contains(&it.page));
        of_area.map(|record| record.kinds)
    };
    assert!(kinds_of(starts[0], 500).all(|kinds| kinds == Kinds::STORE));
    let (loads, stores): (Vec<Kinds>, Vec<Kinds>) =
        kinds_of(starts[1], 200).partition(|kinds| *kinds == Kinds::LOAD);
    assert_eq!(stores, [Kinds::STORE; 200], "when it was filled");
    assert!(loads.len() >= 800);
}

/// Fills an area, lets it grow elsewhere, fills what is new, and unmaps it. Prints the places.
const MOVES: &str = r#"
    #define _GNU_SOURCE
    #include <stdio.h>
    #include <sys/mman.h>
    #include <stdlib.h>
    #include <unistd.h>
    int main(void) {
        long bytes = 64 * 4096L;
        char *from = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        char *to = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (long at = 0; at < bytes; at += 4096) from[at] = 1;
        // What was written is looked for each 20 ms.
        usleep(300000);
        to = mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to);
        for (long at = 0; at < bytes; at += 4096) if (to[at] != 1) abort();
        printf("%p %p\n", from, to);
        munmap(to, bytes);
        char *small = malloc(64000);
        for (int at = 0; at < 64000; at++) small[at] = 1;
        return 0;
    }
"#;

#[test]
fn what_is_mapped_moved_and_unmapped_is_told() {
    if !is_permitted() {
        return;
    }
    let folder = Folder::new("live-moves");
    let program = compile(&folder, "moves", MOVES, &[]);
    let (output, recording) = recorded(&folder, &[&program]);
    let places = printed_pages(&output);
    let process = recording.only();
    let order: Vec<u8> = process
        .events
        .iter()
        .filter_map(|(_, _, event)| match event {
            Event::Mapping(MappingEvent::Map { start, pages, .. })
                if (*start..start + pages).contains(&places[0]) =>
            {
                Some(1)
            }
            Event::Mapping(MappingEvent::Remap {
                from,
                to,
                from_pages: 64,
                to_pages: 64,
            }) if (*from, *to) == (places[0], places[1]) => Some(2),
            Event::Mapping(MappingEvent::Unmap { start, pages: 64 }) if *start == places[1] => {
                Some(3)
            }
            _ => None,
        })
        .collect();
    // What was mapped at the target goes when the other moves there.
    assert_eq!(
        order.iter().filter(|&&it| it == 2).count(),
        1,
        "{:?}",
        process.events
    );
    let moved = order.iter().position(|&it| it == 2).unwrap();
    assert!(
        order[..moved].contains(&1) && order[moved..].contains(&3),
        "{order:?}"
    );
    assert_eq!(process.times_in(places[0]..places[0] + 64).len(), 64);
    let is_heap = |memory: &Memory| *memory == Memory::Heap;
    assert!(process.find(
        |it| matches!(it, Event::Mapping(MappingEvent::Map { memory, .. }) if is_heap(memory))
    ));
}
