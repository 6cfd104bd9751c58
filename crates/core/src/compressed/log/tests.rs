use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use super::*;
use crate::random::SplitMix64;

fn log(slots: usize) -> SegmentLog<Vec<u64>> {
    SegmentLog::new(vec![0; slots])
}

#[test]
fn entries_hold_the_largest_places_there_are() {
    let entry = Entry {
        segment: u32::MAX,
        offset: SEGMENT_BYTES - 8,
        bytes: 4096,
    };
    let back = Entry::unpack(entry.pack()).expect("it is one");
    assert_eq!(
        (back.segment, back.offset, back.bytes),
        (u32::MAX, SEGMENT_BYTES - 8, 4096)
    );
    assert!(Entry::unpack(0).is_none());
}

#[test]
fn what_is_oldest_is_written_first_and_a_dead_segment_gives_its_room_back() {
    let mut log = log(200);
    for slot in 0..48 {
        assert!(log.append(SlotId(slot), 4096, 8).is_some());
    }
    assert_eq!(log.rooms(), 3);
    let (first, room, bytes) = log.begin_write().expect("two are full");
    assert_eq!(
        (log.find(SlotId(0)).unwrap().segment, bytes),
        (first, SEGMENT_BYTES)
    );
    // Removed while it is under way: it is freed when that is over.
    (0..16).for_each(|slot| assert!(log.remove(SlotId(slot))));
    assert!(log.take_freed().is_none());
    log.end_write(first, true);
    let freed = [log.take_freed(), log.take_freed()];
    assert!(freed.contains(&Some(Freed::Room(room))));
    assert!(freed.contains(&Some(Freed::Disk(first))));
    log.check();
}

#[test]
fn no_more_rooms_are_taken_than_there_may_be() {
    let mut log = log(100);
    let put = (0..100).take_while(|slot| log.append(SlotId(*slot), 4000, 2).is_some());
    assert_eq!(put.count(), 32);
    assert_eq!(log.rooms(), 2);
}

#[test]
fn a_segment_comes_back_from_disk_and_leaves_again_without_being_written() {
    let mut log = log(100);
    (0..32).for_each(|slot| assert!(log.append(SlotId(slot), 4096, 9).is_some()));
    let (id, _, _) = log.begin_write().expect("one is full");
    log.end_write(id, true);
    assert!(log.drop_clean());
    assert!(!log.drop_clean());
    assert_eq!(log.find(SlotId(3)).unwrap().room, None);
    let (_, bytes) = log.begin_read(id);
    assert_eq!(bytes, SEGMENT_BYTES);
    assert_eq!(log.find(SlotId(3)).unwrap().room, None);
    log.end_read(id, true);
    assert!(log.find(SlotId(3)).unwrap().room.is_some());
    assert!(log.drop_clean());
    log.check();
}

#[test]
fn a_room_without_memory_is_used_last() {
    let mut log = log(100);
    (0..32).for_each(|slot| assert!(log.append(SlotId(slot), 4096, 9).is_some()));
    log.append(SlotId(40), 8, 9);
    (0..32).for_each(|slot| assert!(log.remove(SlotId(slot))));
    let Some(Freed::Room(without)) = log.take_freed() else {
        panic!("two are free");
    };
    log.use_last(without);
    let Some(Freed::Room(with)) = log.take_freed() else {
        panic!("another is free");
    };
    let used: Vec<Room> = (0..48)
        .filter_map(|slot| log.append(SlotId(slot), 4096, 9))
        .filter_map(|(room, offset)| (offset == 0).then_some(room))
        .collect();
    assert_eq!(used[..2], [with, without]);
}

#[test]
fn ranks_are_told_by_age_wherever_pages_lie() {
    let mut log = log(800);
    (0..640).for_each(|slot| assert!(log.append(SlotId(slot), 4096, 80).is_some()));
    (0..80).for_each(|slot| assert!(log.remove(SlotId(slot))));
    log.count_ranks();
    let of = |log: &SegmentLog<Vec<u64>>, slot: u32| {
        log.part_of(log.find(SlotId(slot)).unwrap().segment)
    };
    let parts: Vec<usize> = (80..640).map(|slot| of(&log, slot)).collect();
    assert!(parts.is_sorted_by(|one, next| one >= next));
    assert_eq!((parts[0], parts[559]), (PARTS - 1, 0));
    let pages = log.ranks().pages;
    for (part, count) in pages.into_iter().enumerate() {
        let there = parts.iter().filter(|it| **it == part).count();
        assert_eq!(there as u64, count, "{part}");
        // A part ends with a segment.
        assert!([16, 32].contains(&count), "{pages:?}");
    }
    assert_eq!(log.ranks().in_memory, 560);
    // What comes after that is the youngest, and what leaves memory is as old as before.
    log.append(SlotId(700), 4096, 80).unwrap();
    assert_eq!(of(&log, 700), 0);
    let (id, _, _) = log.begin_write().unwrap();
    log.end_write(id, true);
    assert!(log.drop_clean());
    assert_eq!(log.part_of(id), PARTS - 1);
    let _ = log.begin_read(id);
    log.end_read(id, true);
    assert_eq!(log.part_of(id), PARTS - 1);
    log.count_ranks();
    assert_eq!(log.ranks().pages.iter().sum::<u64>(), 561);
}

#[test]
fn holes_are_found_wherever_they_are() {
    let mut log = log(32_000);
    (0..32_000).for_each(|slot| assert!(log.append(SlotId(slot), 4096, 2000).is_some()));
    // The young half has holes, the old one has none.
    (16_000..32_000)
        .step_by(2)
        .for_each(|slot| assert!(log.remove(SlotId(slot))));
    let mut live = Vec::new();
    let mut cleaned = 0;
    for _ in 0..4000 {
        if log.choose_to_clean(&mut live) {
            cleaned += 1;
            for (slot, found) in &live {
                log.relocate(*slot, *found).expect("there is a room");
            }
        }
    }
    assert!(cleaned > 300, "{cleaned}");
    log.check();
    while log.take_freed().is_some() {}
    let full = 24_000_u32.div_ceil(SEGMENT_PAGES);
    assert!(log.rooms() <= full * 8 / 7 + 2, "{} rooms", log.rooms());
}

/// Moves bytes as a store does.
#[derive(Default)]
struct Store {
    memory: BTreeMap<u32, Vec<u32>>,
    disk: BTreeMap<u32, Vec<u32>>,
    writing: Vec<(SegmentId, Room)>,
    reading: Vec<(SegmentId, Room)>,
}

impl Store {
    fn put(&mut self, (room, offset): (Room, u32), value: u32) {
        let words = self.memory.entry(room.0).or_insert_with(|| vec![0; 8192]);
        words[offset as usize / 8] = value;
    }

    fn get(&self, found: Found) -> u32 {
        match found.room {
            Some(room) => self.memory[&room.0][found.offset as usize / 8],
            None => self.disk[&found.segment.0][found.offset as usize / 8],
        }
    }
}

/// One step at random of a log of 300 pages, in lockstep with a map.
fn take_step(
    numbers: &mut SplitMix64,
    log: &mut SegmentLog<Vec<u64>>,
    store: &mut Store,
    model: &mut BTreeMap<u32, u32>,
    number: u32,
) {
    let (kind, slot) = (numbers.below(20), numbers.below(300) as u32);
    match kind {
        0..8 => {
            let bytes = 1 + numbers.below(4096) as u32;
            if let Some(place) = log.append(SlotId(slot), bytes, 12) {
                store.put(place, number);
                model.insert(slot, number);
            }
        }
        8..12 => assert_eq!(log.remove(SlotId(slot)), model.remove(&slot).is_some()),
        12..14 => {
            let mut live = Vec::new();
            if log.choose_to_clean(&mut live) {
                for (slot, found) in live {
                    let value = store.get(found);
                    let place = log.relocate(slot, found).expect("there is a room");
                    store.put(place, value);
                }
            }
        }
        14..16 => store
            .writing
            .extend(log.begin_write().map(|(id, room, _)| (id, room))),
        16 => {
            if let Some((id, room)) = store.writing.pop() {
                store.disk.insert(id.0, store.memory[&room.0].clone());
                log.end_write(id, slot % 4 > 0);
            }
        }
        17 => drop(log.drop_clean()),
        18 => {
            let found = log.find(SlotId(slot)).filter(|it| it.room.is_none());
            if let Some(found) = found
                && !log.is_being_read(found.segment)
            {
                let (room, _) = log.begin_read(found.segment);
                store.reading.push((found.segment, room));
            }
        }
        _ => {
            if let Some((id, room)) = store.reading.pop() {
                let bytes = store.disk[&id.0].clone();
                store.memory.insert(room.0, bytes);
                log.end_read(id, slot % 4 > 0);
            }
        }
    }
}

#[test]
fn every_page_is_found_where_its_bytes_are() {
    for seed in 0..40 {
        let mut numbers = SplitMix64::new(seed);
        let (mut log, mut store, mut model) = (log(300), Store::default(), BTreeMap::new());
        for number in 1..2000 {
            take_step(&mut numbers, &mut log, &mut store, &mut model, number);
            // What is free is given back late: nothing else may be there by then.
            while number % 7 == 0
                && let Some(freed) = log.take_freed()
            {
                if let Freed::Room(room) = freed {
                    let is_read_to = |(_, it): &(SegmentId, Room)| *it == room;
                    assert!(!store.writing.iter().any(is_read_to));
                    assert!(!store.reading.iter().any(is_read_to));
                    store.memory.remove(&room.0);
                }
            }
            log.check();
            for (slot, value) in &model {
                let found = log.find(SlotId(*slot)).expect("it was put in");
                assert_eq!(store.get(found), *value);
            }
            assert_eq!(log.pages(), model.len() as u64);
        }
    }
}
