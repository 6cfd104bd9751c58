//! Tests of the tier of compressed memory.

use core::convert::Infallible;

use super::*;
use crate::compressed::division::log_pages_max;
use crate::memory::swap_slots::LocalSlots;
use alloc::vec;

/// Memory of which nothing is known but which rooms are open.
#[derive(Default)]
struct Rooms(Vec<bool>);

impl Bytes for Rooms {
    type Error = Infallible;

    fn open(&mut self, room: Room) -> Result<(), Infallible> {
        let index = room.0 as usize;
        self.0.resize(self.0.len().max(index + 1), false);
        self.0[index] = true;
        Ok(())
    }

    fn copy(&mut self, from: (Room, u32), to: (Room, u32), bytes: u32) {
        assert!(bytes > 0 && self.0[from.0.0 as usize] && self.0[to.0.0 as usize]);
    }

    fn close(&mut self, room: Room) {
        assert!(core::mem::take(&mut self.0[room.0 as usize]));
    }
}

type Plain = Tier<Vec<u64>, u32>;

/// A tier in `pages` of memory that is full, with segments on disk, and its slots.
fn full(pages: u32, stored: u32) -> (Plain, LocalSlots, Rooms) {
    let mut tier = Plain::new(vec![0; 4096], pages);
    let (mut slots, mut rooms) = (LocalSlots::new(4096), Rooms::default());
    (0..stored).for_each(|slot| assert!(slots.claim(SlotId(slot))));
    tier.allow(pages, false);
    for slot in 0..stored {
        assert!(tier.put(SlotId(slot), 1000, &mut rooms).is_some());
        while let Some((segment, _, _)) = tier.tend(&mut slots, &mut rooms, true) {
            tier.end_write(segment, true);
        }
        tier.check();
    }
    (tier, slots, rooms)
}

#[test]
fn what_hardly_compresses_is_refused_and_counted() {
    let (mut tier, _, mut rooms) = full(4096, 1);
    assert_eq!(tier.put(SlotId(1), BYTES_MAX + 1, &mut rooms), None);
    assert!(tier.put(SlotId(2), BYTES_MAX, &mut rooms).is_some());
    assert!(!tier.wants(SlotId(1)) && tier.find(SlotId(1)).is_none());
    tier.remove(SlotId(1));
    assert!(tier.wants(SlotId(1)));
    let tally = tier.tally();
    assert_eq!((tally.compressed, tally.refused), (2, 1));
    assert_eq!(tally.compressed_bytes, 1000 + u64::from(BYTES_MAX));
}

#[test]
fn the_log_yields_to_plain_pages_that_a_few_frames_more_would_keep() {
    // A walk round plain pages: of a few more than there are frames, or of too many.
    for (pages, yields) in [(560, true), (2000, false)] {
        let (mut tier, mut slots, mut rooms) = full(1024, 2000);
        let before = tier.pages_held();
        assert!((448..=512).contains(&before));
        let walk = 2000..2000 + pages;
        walk.clone().for_each(|slot| tier.refuse(SlotId(slot)));
        for slot in walk.cycle().take(6000) {
            tier.note_plain(SlotId(slot), 1);
            while let Some((segment, _, _)) = tier.tend(&mut slots, &mut rooms, true) {
                tier.end_write(segment, true);
            }
        }
        tier.check();
        assert_eq!(tier.pages_held() < before, yields, "{pages}");
    }
}

#[test]
fn what_does_not_compress_is_tried_seldom_until_something_does() {
    let (mut tier, _, mut rooms) = full(4096, 1);
    let mut tried = 0;
    for slot in 1..=REFUSALS_TOLD + 10 * REFUSALS_TRIED {
        if tier.is_worth_trying() {
            tried += 1;
            assert_eq!(tier.put(SlotId(slot), BYTES_MAX + 1, &mut rooms), None);
        } else {
            tier.refuse(SlotId(slot));
        }
        assert!(!tier.wants(SlotId(slot)));
    }
    assert_eq!(tried, REFUSALS_TOLD + 10);
    assert_eq!(
        tier.tally().refused,
        u64::from(REFUSALS_TOLD + 10 * REFUSALS_TRIED)
    );
    assert!(tier.is_worth_trying(), "one of a few is");
    assert!(tier.put(SlotId(1), 1000, &mut rooms).is_some());
    assert!(tier.is_worth_trying());
    assert_eq!(tier.put(SlotId(2), BYTES_MAX + 1, &mut rooms), None);
    assert!(tier.is_worth_trying(), "it is one that did not");
}

#[test]
fn without_a_disk_all_is_kept_while_there_is_room() {
    let mut tier = Plain::new(vec![0; 4096], 4096).without_disk();
    let (mut slots, mut rooms) = (LocalSlots::new(4096), Rooms::default());
    (0..4000).for_each(|slot| assert!(slots.claim(SlotId(slot))));
    tier.set_emptying(true);
    tier.allow(0, false);
    let mut kept = 0;
    while tier.put(SlotId(kept), 4096, &mut rooms).is_some() {
        assert!(tier.is_worth_trying());
        assert_eq!(tier.tend(&mut slots, &mut rooms, true), None);
        kept += 1;
    }
    // All of memory but an eighth.
    assert_eq!(kept, 4096 - 512);
    assert_eq!(tier.pages_held(), kept);
    assert!(tier.find(SlotId(kept)).is_none());
    (0..16).for_each(|slot| tier.remove(SlotId(slot)));
    assert_eq!(tier.tend(&mut slots, &mut rooms, true), None);
    assert!(tier.put(SlotId(kept), 4096, &mut rooms).is_some());
    tier.check();
}

#[test]
fn without_a_disk_the_frames_keep_some_while_memory_becomes_less() {
    let mut tier = Plain::new(vec![0; 8192], 4096).without_disk();
    let mut rooms = Rooms::default();
    let mut kept = 0;
    while tier.put(SlotId(kept), 4096, &mut rooms).is_some() {
        kept += 1;
    }
    // Nothing compresses, so what leaves the frames frees nothing.
    let budget = 3776;
    tier.set_budget(budget);
    loop {
        let held = tier.pages_held();
        tier.allow(log_pages_max(budget, 4096 - held, held, true), true);
        if tier.put(SlotId(kept), 4096, &mut rooms).is_none() {
            break;
        }
        kept += 1;
    }
    assert_eq!(4096 - tier.pages_held(), 64);
    tier.check();
}

#[test]
fn while_memory_becomes_less_what_comes_stays_and_what_is_old_leaves() {
    // The log may have the half of it, and the frames have the rest.
    let (mut tier, mut slots, mut rooms) = full(4096, 2000);
    let held = tier.pages_held();
    (2000..3000).for_each(|slot| assert!(slots.claim(SlotId(slot))));
    tier.set_budget(held);
    let mut written = 0;
    for slot in 2000..3000 {
        tier.allow(tier.pages_held() + 3 * SEGMENT_PAGES, true);
        assert!(tier.put(SlotId(slot), 1000, &mut rooms).is_some());
        while let Some((segment, _, _)) = tier.tend(&mut slots, &mut rooms, true) {
            tier.end_write(segment, true);
            written += 1;
        }
        tier.check();
    }
    assert!(written >= 4, "{written}");
    assert!(tier.pages_held() <= held + 3 * SEGMENT_PAGES);
    assert!(tier.find(SlotId(2999)).is_some_and(|it| it.room.is_some()));
}

#[test]
fn memory_is_bounded_by_what_no_frame_has() {
    let (mut tier, _, mut rooms) = full(4096, 1);
    tier.allow(2 * SEGMENT_PAGES, false);
    let placed = (1..4000).take_while(|slot| tier.put(SlotId(*slot), 1000, &mut rooms).is_some());
    assert!(placed.count() < 2 * 65);
    assert_eq!(tier.pages_held(), 2 * SEGMENT_PAGES);
}

#[test]
fn the_oldest_segments_leave_and_come_back_whole_where_that_pays() {
    let (mut tier, mut slots, mut rooms) = full(256, 1000);
    let held = tier.pages_held();
    assert!(held <= 128 && tier.leaving() == 0, "{held}");
    let Way::Segment(segment, room, _) = tier.seek(SlotId(0)) else {
        panic!("the first one is on disk");
    };
    assert_eq!(tier.open(room, &mut rooms), Ok(()));
    tier.wait_for(segment, 0);
    assert_eq!(tier.seek(SlotId(1)), Way::Coming(segment));
    tier.end_read(segment, true);
    assert_eq!(tier.take_waiter(segment), Some(0));
    assert_eq!(tier.take_waiter(segment), None);
    tier.note_taken(SlotId(0));
    assert!(tier.find(SlotId(0)).is_none());
    let found = tier.find(SlotId(1)).expect("it stays until it is taken");
    assert_eq!(tier.seek(SlotId(1)), Way::Here(found));
    // The last of it gives its space on disk back.
    let before = slots.free();
    (1..1000).for_each(|slot| tier.remove(SlotId(slot)));
    while tier.tend(&mut slots, &mut rooms, true).is_some() {}
    assert!(slots.free() > before);
    tier.check();
}

#[test]
fn single_pages_have_their_places_and_wait_for_one() {
    let (mut tier, _, _) = full(256, 1000);
    tier.allow(0, false);
    for slot in 0..SINGLES_MAX as u32 {
        let way = tier.seek(SlotId(slot));
        assert!(matches!(way, Way::Single(found, _) if blocks_of(found).len() <= BLOCKS_MAX));
    }
    assert_eq!(tier.seek(SlotId(64)), Way::Later);
    tier.put_off(64);
    assert_eq!(tier.take_put_off(), None);
    tier.leave_single(7);
    assert_eq!(tier.take_put_off(), Some(64));
    assert!(matches!(tier.seek(SlotId(64)), Way::Single(_, 7)));
}

#[test]
fn a_segment_is_not_read_whole_while_a_page_of_it_is_read_by_itself() {
    let (mut tier, mut slots, mut rooms) = full(256, 1000);
    tier.allow(0, false);
    let Way::Single(found, place) = tier.seek(SlotId(0)) else {
        panic!("there is no room for a segment");
    };
    let home = tier.home(found.segment, 0);
    // Now there is, and whole segments have paid.
    tier.allow(256, false);
    let Way::Single(next, other) = tier.seek(SlotId(1)) else {
        panic!("it would move a page that is being read");
    };
    assert_eq!(next.segment, found.segment);
    (2..1000).for_each(|slot| tier.remove(SlotId(slot)));
    while tier.tend(&mut slots, &mut rooms, true).is_some() {}
    assert_eq!(tier.home(found.segment, 0), home);
    assert!(!slots.claim(home), "its space is in use");
    for (slot, place) in [(0, place), (1, other)] {
        tier.note_taken(SlotId(slot));
        tier.leave_single(place);
    }
    while tier.tend(&mut slots, &mut rooms, true).is_some() {}
    assert!(slots.claim(home), "it is given back");
    tier.check();
}
