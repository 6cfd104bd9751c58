//! The store against a real file, by io_uring and by threads.

use std::os::fd::AsFd;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use tidemark_core::id::{FrameId, SlotId, Ticket};
use tidemark_core::memory::swap_slots::{LocalSlots, Slots};
use tidemark_core::seams::machine::{Machine, PageBits, Rights};
use tidemark_core::seams::pager::{Direction, Outcome, Reply};

use super::faults::FaultPlan;
use super::*;
use crate::machine::tests::World;
use crate::sys::memory::Mapping;
use crate::sys::socket;
use crate::sys::testing::{Turn, fill, is_filled, is_so_in_child, skip};
use crate::sys::uffd::Features;

const SLOTS: u32 = 256;

/// A world with a store, all of whose frames hold a page of their own number plus one.
pub(super) struct Swapping {
    pub(super) world: World,
    pub(super) store: SwapStore,
    next: u64,
}

impl Swapping {
    pub(super) fn new(frames: u32, means: Means, faults: &str) -> Option<Swapping> {
        Swapping::with_turn(frames, means, faults, Turn::shared())
    }

    fn with_turn(frames: u32, means: Means, faults: &str, turn: Turn) -> Option<Swapping> {
        let mut world = World::with_turn(frames, frames as usize, turn)?;
        let directory = std::env::temp_dir();
        let file = file::create(&directory, u64::from(SLOTS) * PAGE_BYTES).unwrap();
        let plan = FaultPlan::parse(faults).unwrap();
        let store = match SwapStore::new(file.fd, SLOTS, means, plan) {
            Ok(store) => store.encrypt().unwrap(),
            Err(error) => {
                skip(&format!("io_uring: {error}"));
                return None;
            }
        };
        world.enter_zeros(0, 0, frames);
        (0..frames).for_each(|page| fill(&world.region, page as usize, page as u8 + 1));
        (0..frames).for_each(|frame| world.machine.restrict(FrameId(frame), Rights::None));
        world.machine.settle();
        Some(Swapping {
            world,
            store,
            next: 0,
        })
    }

    /// The same with compressed memory in front of the file, of frames and compressed pages that
    /// have `pages` together.
    fn compressed(frames: u32, faults: &str, pages: u32) -> Option<Swapping> {
        let mut swapping = Swapping::new(frames, Means::Best, faults)?;
        swapping.store = swapping.store.compress(pages, true).unwrap();
        swapping.store.allow(pages, false);
        Some(swapping)
    }

    /// Fills the frames with pages that compress to a quarter, each another.
    fn fill_with_words(&mut self, frames: &[FrameId]) {
        for frame in frames {
            self.world.machine.prepare(&[*frame]).unwrap();
            let page = words_of(*frame);
            self.world.machine.pool_mut().write(*frame, &page);
            self.world.machine.forget_sum(*frame);
        }
    }

    /// Keeps house until nothing is under way.
    fn tend(&mut self, slots: &mut LocalSlots, pages: u32) {
        let end = Instant::now() + Duration::from_secs(30);
        self.store.allow(pages, false);
        while self.store.tend(slots, pages) || !self.store.is_still() {
            assert!(Instant::now() < end, "segments are written in time");
            self.store.submit(&self.world.machine).unwrap();
            self.store.reap(&mut self.world.machine).unwrap();
            self.store.wait(1_000_000);
        }
    }

    /// Does one transfer and waits for its reply.
    pub(super) fn transfer(
        &mut self,
        direction: Direction,
        first: u32,
        frames: &[FrameId],
    ) -> Outcome {
        let ticket = self.start(direction, first, frames);
        let replies = self.collect(1);
        assert_eq!(replies[0].ticket, ticket);
        replies[0].outcome
    }

    pub(super) fn start(&mut self, direction: Direction, first: u32, frames: &[FrameId]) -> Ticket {
        self.next += 1;
        let ticket = Ticket(self.next);
        self.store.start(
            ticket,
            direction,
            SlotId(first),
            frames,
            &mut self.world.machine,
        );
        ticket
    }

    pub(super) fn collect(&mut self, count: usize) -> Vec<Reply> {
        let mut replies = Vec::new();
        let end = Instant::now() + Duration::from_secs(30);
        while replies.len() < count {
            assert!(Instant::now() < end, "{} of {count} replies", replies.len());
            self.store.reap(&mut self.world.machine).unwrap();
            replies.extend(std::iter::from_fn(|| self.store.next_reply()));
            if replies.len() < count {
                self.store.wait(5_000_000);
            }
        }
        assert!(self.store.is_idle());
        self.world.machine.check();
        replies
    }

    pub(super) fn byte(&self, frame: FrameId) -> u8 {
        let mut page = [0; PAGE];
        self.world.machine.pool().read(frame, &mut page);
        assert!(page.iter().step_by(64).all(|byte| *byte == page[0]));
        page[0]
    }
}

/// A page of numbers that looks like a program's, and like no other frame's.
fn words_of(frame: FrameId) -> [u8; PAGE] {
    let mut page = [0; PAGE];
    for (place, word) in page.chunks_mut(16).enumerate() {
        let number = (place as u32).wrapping_mul(0x9e37_79b9) ^ frame.0;
        word[..4].copy_from_slice(&number.to_le_bytes());
    }
    page
}

/// A page that does not compress.
fn noise() -> [u8; PAGE] {
    std::array::from_fn(|at| (xxhash_rust::xxh3::xxh3_64(&at.to_le_bytes()) >> 7) as u8)
}

fn frames(numbers: impl IntoIterator<Item = u32>) -> Vec<FrameId> {
    numbers.into_iter().map(FrameId).collect()
}

fn by_all_means(faults: &str, count: u32, test: impl Fn(&mut Swapping)) {
    let ways = [Means::Ring, Means::Threads, Means::AtOnce];
    for (means, is_in_one_piece) in ways.into_iter().flat_map(|it| [(it, false), (it, true)]) {
        if let Some(mut swapping) = Swapping::new(count, means, faults) {
            if is_in_one_piece {
                swapping.store.bounces.insist();
            }
            let is_ring = matches!(swapping.store.carrier, Carrier::Ring(_));
            assert_eq!(is_ring, means == Means::Ring);
            test(&mut swapping);
        }
    }
}

#[test]
fn pages_come_back_as_they_went() {
    by_all_means("", 64, |swapping| {
        // Scattered over the pool, in the order of slots.
        let from = frames((0..64).map(|i| i * 23 % 64));
        assert_eq!(
            swapping.transfer(Direction::Store, 100, &from),
            Outcome::Done
        );
        (0..64).for_each(|frame| swapping.world.machine.zero(FrameId(frame)));
        let to = frames((0..64).map(|i| i * 5 % 64));
        assert_eq!(swapping.transfer(Direction::Fetch, 100, &to), Outcome::Done);
        for (from, to) in from.iter().zip(&to) {
            assert_eq!(u32::from(swapping.byte(*to)), from.0 + 1);
            assert!(!swapping.world.machine.take_modified(*to));
        }
        swapping.world.enter(0, to[0].0);
        assert!(is_filled(&swapping.world.region, 0, from[0].0 as u8 + 1));
        let tally = swapping.store.tally();
        assert_eq!(
            (
                tally.written,
                tally.read,
                tally.write_calls,
                tally.read_calls
            ),
            (64, 64, 1, 1)
        );
    });
}

#[test]
fn many_transfers_at_once_all_get_their_reply() {
    by_all_means("", 200, |swapping| {
        for frame in 0..200 {
            swapping.start(Direction::Store, frame, &frames([frame]));
        }
        assert!(
            swapping
                .collect(200)
                .iter()
                .all(|reply| reply.outcome == Outcome::Done)
        );
        (0..200).for_each(|frame| swapping.world.machine.zero(FrameId(frame)));
        for frame in 0..200 {
            swapping.start(Direction::Fetch, frame, &frames([199 - frame]));
        }
        let mut tickets: Vec<u64> = swapping
            .collect(200)
            .iter()
            .map(|reply| reply.ticket.0)
            .collect();
        tickets.sort_unstable();
        assert!(tickets.iter().copied().eq(201..=400));
        assert!(
            (0..200)
                .all(|frame| u32::from(swapping.byte(FrameId(199 - frame))) == (frame + 1) % 256)
        );
    });
}

#[test]
fn a_wait_ends_with_a_transfer_and_with_a_file_that_can_be_read() {
    let Some(mut swapping) = Swapping::new(4, Means::Ring, "") else {
        return;
    };
    let (first, second) = (socket::Bell::new().unwrap(), socket::Bell::new().unwrap());
    let files = [&first, &second].map(|bell| Some(bell.as_fd().as_raw_fd()));
    let files = [files[0], files[1], None];
    let wait = |swapping: &mut Swapping, limit_ns: u64| {
        let Some(wait) = swapping.store.wait_with(files) else {
            return skip("waits with a limit");
        };
        wait.wait(limit_ns);
        swapping.store.reap(&mut swapping.world.machine).unwrap();
    };
    let patience_ns = 30_000_000_000;
    wait(&mut swapping, 1_000);
    assert_eq!(swapping.store.take_heard(), 0, "nothing has happened");
    for _ in 0..3 {
        second.ring();
        wait(&mut swapping, patience_ns);
        assert_eq!(swapping.store.take_heard(), 2);
        // A file that was not read is reported again.
        wait(&mut swapping, patience_ns);
        assert_eq!(swapping.store.take_heard(), 2);
        assert!(second.take());
    }
    wait(&mut swapping, 1_000);
    let ticket = swapping.start(Direction::Store, 0, &frames(0..4));
    swapping.store.submit(&swapping.world.machine).unwrap();
    while swapping.store.replies.is_empty() {
        let begun = Instant::now();
        wait(&mut swapping, patience_ns);
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
    assert_eq!(swapping.store.next_reply().unwrap().ticket, ticket);
    first.ring();
    wait(&mut swapping, patience_ns);
    assert_eq!(swapping.store.take_heard(), 1);
}

#[test]
fn zeros_are_neither_written_nor_read() {
    by_all_means("", 8, |swapping| {
        for frame in [0, 3, 4, 7] {
            swapping.world.machine.zero(FrameId(frame));
        }
        let all = frames(0..8);
        assert_eq!(swapping.transfer(Direction::Store, 0, &all), Outcome::Done);
        let tally = swapping.store.tally();
        assert_eq!(
            (tally.written, tally.write_calls, tally.zeros_stored),
            (4, 2, 4)
        );
        let back = frames((0..8).rev());
        assert_eq!(swapping.transfer(Direction::Fetch, 0, &back), Outcome::Done);
        assert_eq!(
            [7, 6, 5, 4, 3, 2, 1, 0].map(|frame| swapping.byte(FrameId(frame))),
            [0, 2, 3, 0, 0, 6, 7, 0]
        );
        let tally = swapping.store.tally();
        assert_eq!(
            (tally.read, tally.read_calls, tally.zeros_fetched),
            (4, 2, 4)
        );
        // Nothing but zeros: answered at once.
        for frame in 0..8 {
            swapping.world.machine.zero(FrameId(frame));
        }
        let ticket = swapping.start(Direction::Store, 8, &all);
        let reply = Reply {
            ticket,
            outcome: Outcome::Done,
        };
        assert_eq!(swapping.store.next_reply(), Some(reply));
    });
}

#[test]
fn a_flipped_bit_is_a_failure_and_names_its_slot() {
    by_all_means("flip:2", 8, |swapping| {
        assert_eq!(
            swapping.transfer(Direction::Store, 40, &frames(0..8)),
            Outcome::Done
        );
        assert_eq!(
            swapping.transfer(Direction::Fetch, 40, &frames(0..4)),
            Outcome::Done
        );
        assert_eq!(swapping.store.next_failure(), None);
        assert_eq!(
            swapping.transfer(Direction::Fetch, 44, &frames(4..8)),
            Outcome::Failed
        );
        let failure = swapping.store.next_failure().unwrap();
        assert_eq!((failure.slot, failure.cause), (SlotId(44), Cause::Differs));
        assert_eq!(failure.offset(), 44 * 4096);
        // The file itself is sound.
        assert_eq!(
            swapping.transfer(Direction::Fetch, 44, &frames(4..8)),
            Outcome::Done
        );
    });
}

#[test]
fn what_the_file_answers_is_told_and_a_failed_store_leaves_pages_modified() {
    by_all_means("write:1,read:1", 2, |swapping| {
        let both = frames(0..2);
        assert!(
            both.iter()
                .all(|frame| swapping.world.machine.take_modified(*frame))
        );
        assert_eq!(
            swapping.transfer(Direction::Store, 9, &both),
            Outcome::Failed
        );
        let failure = swapping.store.next_failure().unwrap();
        assert_eq!(
            (failure.slot, failure.cause),
            (SlotId(9), Cause::File(Errno::IO))
        );
        assert_eq!(failure.direction, Direction::Store);
        assert!(
            both.iter()
                .all(|frame| swapping.world.machine.take_modified(*frame))
        );
        assert_eq!((swapping.byte(both[0]), swapping.byte(both[1])), (1, 2));
        assert_eq!(swapping.transfer(Direction::Store, 9, &both), Outcome::Done);
        assert!(
            !both
                .iter()
                .any(|frame| swapping.world.machine.take_modified(*frame))
        );
        assert_eq!(
            swapping.transfer(Direction::Fetch, 9, &both),
            Outcome::Failed
        );
        assert_eq!(
            swapping.store.next_failure().unwrap().direction,
            Direction::Fetch
        );
        assert_eq!(swapping.transfer(Direction::Fetch, 9, &both), Outcome::Done);
    });
}

#[test]
fn found_f2_what_is_refused_for_now_is_tried_again_after_a_pause() {
    by_all_means("again:3", 4, |swapping| {
        for direction in [Direction::Store, Direction::Fetch] {
            let outcome = swapping.transfer(direction, 0, &frames(0..4));
            assert_eq!(outcome, Outcome::Done, "{direction:?}");
        }
        let tally = swapping.store.tally();
        let (calls, pages) = ((tally.write_calls, tally.read_calls), tally.written);
        assert_eq!((calls, pages), ((4, 4), 4));
    });
}

#[test]
fn found_f2_what_is_refused_without_end_fails() {
    by_all_means("again:1000", 4, |swapping| {
        let outcome = swapping.transfer(Direction::Store, 0, &frames(0..4));
        assert_eq!(outcome, Outcome::Failed);
        let failure = swapping.store.next_failure().unwrap();
        assert_eq!(failure.cause, Cause::File(Errno::AGAIN));
        let calls = swapping.store.tally().write_calls;
        assert_eq!(calls, u64::from(TRIES_MAX) + 1);
    });
}

#[test]
fn a_file_that_ends_too_soon_is_told() {
    by_all_means("", 4, |swapping| {
        assert_eq!(
            swapping.transfer(Direction::Store, 0, &frames(0..4)),
            Outcome::Done
        );
        rustix::fs::ftruncate(swapping.store.file.as_file(), 2 * PAGE_BYTES).unwrap();
        assert_eq!(
            swapping.transfer(Direction::Fetch, 0, &frames(0..4)),
            Outcome::Failed
        );
        let failure = swapping.store.next_failure().unwrap();
        assert_eq!((failure.slot, failure.cause), (SlotId(2), Cause::Short));
    });
}

#[test]
fn a_page_wanted_while_it_is_stored_comes_at_once_and_is_stored_as_it_was() {
    by_all_means("", 2, |swapping| {
        let frame = FrameId(0);
        swapping.start(Direction::Store, 5, &[frame]);
        swapping.world.enter(0, 0);
        fill(&swapping.world.region, 0, 200);
        assert_eq!(swapping.collect(1)[0].outcome, Outcome::Done);
        swapping.world.unmap(0);
        assert_eq!(swapping.world.machine.take_setback(), None);
        assert!(swapping.world.machine.take_modified(frame));
        assert_eq!(
            swapping.transfer(Direction::Fetch, 5, &[FrameId(1)]),
            Outcome::Done
        );
        assert_eq!((swapping.byte(frame), swapping.byte(FrameId(1))), (200, 1));
    });
}

#[test]
fn a_forked_child_goes_on_with_copies_of_everything() {
    for means in [Means::Ring, Means::Threads, Means::AtOnce] {
        let Some(mut swapping) = Swapping::with_turn(8, means, "", Turn::alone()) else {
            return;
        };
        assert_eq!(
            swapping.transfer(Direction::Store, 0, &frames(0..4)),
            Outcome::Done
        );
        (0..4).for_each(|frame| swapping.world.machine.zero(FrameId(frame)));
        swapping.world.enter(5, 5);
        let file = swapping.store.file.as_file().try_clone().unwrap();
        let child = &mut swapping;
        assert!(is_so_in_child(move || {
            let features = Features::THREAD_ID.and(Features::CHANGES);
            child.world.machine.reopen(features, None).unwrap();
            let first = child.world.at(0);
            child.world.machine.register(first, 8).unwrap();
            child.store.reopen(file, means).unwrap();
            // From the store, from the pool, and what stood in the program.
            assert_eq!(
                child.transfer(Direction::Fetch, 0, &frames(0..4)),
                Outcome::Done
            );
            child.world.enter(0, 3);
            child.world.enter(7, 7);
            fill(&child.world.region, 5, 250);
            child.world.unmap(5);
            assert_eq!(child.world.machine.take_setback(), None);
            child.world.enter(6, 5);
            let is_as_left = |page, value| is_filled(&child.world.region, page, value);
            is_as_left(0, 4) && is_as_left(7, 8) && is_as_left(6, 250)
        }));
        // The parent has seen nothing of it.
        swapping.world.enter(7, 7);
        assert!(is_filled(&swapping.world.region, 5, 6) && is_filled(&swapping.world.region, 7, 8));
        assert_eq!(
            swapping.transfer(Direction::Fetch, 0, &frames(0..4)),
            Outcome::Done
        );
    }
}

#[test]
fn a_swap_file_has_its_size_and_no_name() {
    let directory = std::env::temp_dir();
    let file = file::create(&directory, 1 << 20).unwrap();
    let stat = rustix::fs::fstat(&file.fd).unwrap();
    assert_eq!(
        (stat.st_size, stat.st_nlink, stat.st_mode & 0o777),
        (1 << 20, 0, 0o600)
    );
    assert!(!file.is_reserved || stat.st_blocks * 512 >= 1 << 20);
    file::release(&file.fd);
    let stat = rustix::fs::fstat(&file.fd).unwrap();
    assert_eq!((stat.st_size, stat.st_blocks), (0, 0));
    let missing = file::create(&directory.join("no such place"), 4096);
    assert_eq!(missing.unwrap_err(), Errno::NOENT);
}

/// The slots of these tests, of which the first 128 are the pages'.
fn slots_for_segments() -> LocalSlots {
    let mut slots = LocalSlots::new(SLOTS);
    (0..128).for_each(|slot| assert!(slots.claim(SlotId(slot))));
    slots
}

#[test]
fn compressed_pages_come_back_as_they_went_without_the_file() {
    let Some(mut swapping) = Swapping::compressed(64, "", 4096) else {
        return;
    };
    let all = frames(0..64);
    swapping.fill_with_words(&all);
    assert_eq!(swapping.transfer(Direction::Store, 0, &all), Outcome::Done);
    assert!(swapping.store.is_near(SlotId(63)));
    assert!((1..=32).contains(&swapping.store.pages_held()));
    // To other frames than they came from.
    let others = frames((0..64).map(|i| 63 - i));
    assert_eq!(
        swapping.transfer(Direction::Fetch, 0, &others),
        Outcome::Done
    );
    for (from, to) in all.iter().zip(&others) {
        let page = swapping.world.machine.pool().bytes_of(*to);
        assert!(page == words_of(*from), "frame {}", to.0);
    }
    let tally = swapping.store.tally();
    assert_eq!((tally.read, tally.written), (0, 0));
    // The frames are all there is of them.
    assert!(!swapping.store.is_near(SlotId(63)));
    assert!(
        others
            .iter()
            .all(|frame| swapping.world.machine.take_modified(*frame))
    );
}

#[test]
fn what_does_not_compress_goes_to_the_file_as_it_is() {
    let Some(mut swapping) = Swapping::compressed(2, "", 4096) else {
        return;
    };
    let noise = noise();
    let one = frames([0]);
    swapping.fill_with_words(&one);
    swapping.world.machine.pool_mut().write(FrameId(0), &noise);
    assert_eq!(swapping.transfer(Direction::Store, 7, &one), Outcome::Done);
    assert_eq!(swapping.store.tally().written, 1);
    assert_eq!(
        swapping.transfer(Direction::Fetch, 7, &frames([1])),
        Outcome::Done
    );
    assert_eq!(swapping.world.machine.pool().bytes_of(FrameId(1)), noise);
    assert_eq!(swapping.store.pages_held(), 0);
    // It is there still, and need not be tried again.
    assert!(!swapping.world.machine.take_modified(FrameId(1)));
}

#[test]
fn what_goes_to_the_file_for_want_of_room_is_compressed_the_next_time() {
    let Some(mut swapping) = Swapping::compressed(2, "", 4096) else {
        return;
    };
    let one = frames([0]);
    swapping.fill_with_words(&one);
    swapping.store.allow(0, false);
    assert_eq!(swapping.transfer(Direction::Store, 7, &one), Outcome::Done);
    assert_eq!(swapping.store.tally().written, 1);
    let other = frames([1]);
    assert_eq!(
        swapping.transfer(Direction::Fetch, 7, &other),
        Outcome::Done
    );
    assert!(swapping.world.machine.pool().bytes_of(FrameId(1)) == words_of(FrameId(0)));
    assert!(swapping.world.machine.take_modified(FrameId(1)));
}

#[test]
fn without_a_file_a_page_is_kept_as_it_is_or_refused() {
    let Some(mut swapping) = Swapping::new(2, Means::Best, "") else {
        return;
    };
    let noise = noise();
    // For 64 pages at most.
    swapping.store = swapping.store.compress(128, false).unwrap();
    let one = frames([0]);
    swapping.fill_with_words(&one);
    swapping.world.machine.pool_mut().write(FrameId(0), &noise);
    assert_eq!(swapping.transfer(Direction::Store, 7, &one), Outcome::Done);
    let other = frames([1]);
    assert_eq!(
        swapping.transfer(Direction::Fetch, 7, &other),
        Outcome::Done
    );
    assert_eq!(swapping.world.machine.pool().bytes_of(FrameId(1)), noise);
    let mut slots = 8..SLOTS;
    let failed =
        slots.find(|slot| swapping.transfer(Direction::Store, *slot, &one) != Outcome::Done);
    // The place of the first is a hole.
    assert_eq!(failed, Some(8 + 63));
    let failure = swapping.store.next_failure().expect("it is reported");
    assert_eq!(failure.cause, Cause::Full);
    assert_eq!(swapping.store.tally().written, 0);
    assert!(swapping.store.is_still());
}

/// Stores 64 pages, and has all that is compressed leave for the file. Reads come in one piece.
fn with_segments_on_disk(faults: &str) -> Option<(Swapping, LocalSlots)> {
    let mut swapping = Swapping::compressed(64, faults, 4096)?;
    swapping.store.bounces.insist();
    let mut slots = slots_for_segments();
    let all = frames(0..64);
    swapping.fill_with_words(&all);
    assert_eq!(swapping.transfer(Direction::Store, 0, &all), Outcome::Done);
    // A segment that is being filled stays: another takes its place.
    swapping.fill_with_words(&all);
    assert_eq!(swapping.transfer(Direction::Store, 64, &all), Outcome::Done);
    swapping.tend(&mut slots, 64);
    Some((swapping, slots))
}

#[test]
fn segments_leave_for_the_file_and_come_back() {
    let Some((mut swapping, mut slots)) = with_segments_on_disk("") else {
        return;
    };
    assert!(swapping.store.tally().written >= 16);
    assert!(!swapping.store.is_near(SlotId(0)));
    let others = frames((0..64).map(|i| 63 - i));
    assert_eq!(
        swapping.transfer(Direction::Fetch, 0, &others),
        Outcome::Done
    );
    for (number, to) in (0..64).zip(&others) {
        let page = swapping.world.machine.pool().bytes_of(*to);
        assert!(page == words_of(FrameId(number)), "frame {}", to.0);
    }
    // What is dead on disk gives its space back.
    let before = slots.free();
    (64..128).for_each(|slot| slots.release(SlotId(slot)));
    (64..128).for_each(|slot| swapping.store.forget(SlotId(slot)));
    swapping.tend(&mut slots, 4096);
    assert!(slots.free() > before + 64);
    assert!(swapping.store.pages_held() <= 2 * 16 + 4 * 16);
}

#[test]
fn more_pages_are_wanted_from_segments_than_can_be_read_by_themselves_at_one_time() {
    let Some(mut swapping) = Swapping::compressed(128, "", 4096) else {
        return;
    };
    let mut slots = slots_for_segments();
    let halves = [frames(0..64), frames(64..128)];
    for (first, half) in [0, 64].into_iter().zip(&halves) {
        swapping.fill_with_words(half);
        assert_eq!(
            swapping.transfer(Direction::Store, first, half),
            Outcome::Done
        );
    }
    swapping.tend(&mut slots, 64);
    let is_away = |slot: &u32| !swapping.store.is_near(SlotId(*slot));
    assert!((0..128).filter(is_away).count() > 64);
    // With no room for segments each page is read by itself.
    swapping.store.allow(0, false);
    let held = swapping.store.pages_held();
    swapping.start(Direction::Fetch, 0, &halves[0]);
    swapping.start(Direction::Fetch, 64, &halves[1]);
    assert_eq!(swapping.store.pages_held(), held);
    let replies = swapping.collect(2);
    assert!(replies.iter().all(|reply| reply.outcome == Outcome::Done));
    for frame in halves.iter().flatten() {
        let page = swapping.world.machine.pool().bytes_of(*frame);
        assert!(page == words_of(*frame), "frame {}", frame.0);
    }
}

#[test]
fn segments_on_their_way_to_the_file_are_told() {
    let Some(mut swapping) = Swapping::compressed(64, "", 4096) else {
        return;
    };
    let mut slots = slots_for_segments();
    let all = frames(0..64);
    swapping.fill_with_words(&all);
    assert_eq!(swapping.transfer(Direction::Store, 0, &all), Outcome::Done);
    assert_eq!(swapping.store.segments_leaving(), 0);
    assert!(swapping.store.tend(&mut slots, 64));
    assert!(swapping.store.segments_leaving() > 0);
    swapping.tend(&mut slots, 64);
    assert_eq!(swapping.store.segments_leaving(), 0);
}

#[test]
fn pages_of_segments_on_disk_can_be_read_at_once() {
    let Some((mut swapping, _)) = with_segments_on_disk("") else {
        return;
    };
    let mut into = Mapping::anonymous(64 * PAGE).unwrap();
    swapping
        .store
        .read_run_now(SlotId(0), 64, &mut into)
        .unwrap();
    for (number, page) in (0..64).zip(into.first_pages(64).chunks(PAGE)) {
        assert!(page == words_of(FrameId(number)), "page {number}");
    }
}

#[test]
fn a_bit_that_flips_in_compressed_memory_or_on_its_way_from_disk_is_found() {
    let Some(mut swapping) = Swapping::compressed(4, "flip:1", 4096) else {
        return;
    };
    let all = frames(0..4);
    swapping.fill_with_words(&all);
    assert_eq!(swapping.transfer(Direction::Store, 0, &all), Outcome::Done);
    assert_eq!(
        swapping.transfer(Direction::Fetch, 0, &all),
        Outcome::Failed
    );
    let failure = swapping.store.next_failure().unwrap();
    assert_eq!((failure.slot, failure.cause), (SlotId(0), Cause::Differs));
    drop(swapping);
    let Some((mut swapping, _)) = with_segments_on_disk("flip:1") else {
        return;
    };
    let all = frames(0..64);
    assert_eq!(
        swapping.transfer(Direction::Fetch, 0, &all),
        Outcome::Failed
    );
    assert_eq!(swapping.store.next_failure().unwrap().cause, Cause::Differs);
}

#[test]
fn a_segment_that_cant_be_read_fails_who_waits_and_one_that_cant_be_written_stays() {
    let Some((mut swapping, _)) = with_segments_on_disk("read:1") else {
        return;
    };
    let all = frames(0..64);
    assert_eq!(
        swapping.transfer(Direction::Fetch, 0, &all),
        Outcome::Failed
    );
    let failure = swapping.store.next_failure().unwrap();
    assert_eq!(failure.cause, Cause::File(Errno::IO));
    drop(swapping);
    let Some((mut swapping, _)) = with_segments_on_disk("writes-from:1") else {
        return;
    };
    assert!(swapping.store.is_near(SlotId(0)));
    assert_eq!(swapping.transfer(Direction::Fetch, 0, &all), Outcome::Done);
}

#[test]
fn what_was_stored_uncompressed_for_want_of_room_counts_as_modified_once_it_is_read() {
    let Some(mut swapping) = Swapping::compressed(8, "", 4096) else {
        return;
    };
    let (words, noise) = (frames(0..4), frames(4..8));
    swapping.fill_with_words(&words);
    for frame in &noise {
        let mut random = tidemark_core::random::SplitMix64::new(frame.0.into());
        let page: [u8; PAGE] = std::array::from_fn(|_| random.draw() as u8);
        swapping.world.machine.prepare(&[*frame]).unwrap();
        swapping.world.machine.pool_mut().write(*frame, &page);
        swapping.world.machine.forget_sum(*frame);
    }
    for room in [0, 4096] {
        swapping.store.allow(room, false);
        for (first, some) in [(0, &words), (4, &noise)] {
            assert_eq!(
                swapping.transfer(Direction::Store, first, some),
                Outcome::Done
            );
        }
        assert_eq!(swapping.store.is_near(SlotId(0)), room > 0);
        assert!(!swapping.store.is_near(SlotId(4)));
        swapping.store.allow(0, false);
        assert_eq!(
            swapping.transfer(Direction::Fetch, 4, &noise),
            Outcome::Done
        );
        assert!(
            !noise
                .iter()
                .any(|frame| swapping.world.machine.take_modified(*frame))
        );
        assert_eq!(
            swapping.transfer(Direction::Fetch, 0, &words),
            Outcome::Done
        );
        assert!(
            words
                .iter()
                .all(|frame| swapping.world.machine.take_modified(*frame))
        );
    }
}
