//! The machine against the kernel: this test process is its own program.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidemark_core::id::{FrameId, SpaceId, VirtPage};
use tidemark_core::seams::machine::{Machine, Rights, Setback};

use super::*;
use crate::sys::memory::{self, Mapping};
use crate::sys::socket;
use crate::sys::testing::{self, Turn, fill, is_filled, skip};
use crate::sys::uffd::Progress;
use crate::sys::uffd::{Message, Messages};

const SPACE: SpaceId = SpaceId(0);
const PATIENCE: Duration = Duration::from_secs(20);

/// A machine and a registered range of program memory.
pub(crate) struct World {
    pub(crate) machine: LiveMachine,
    pub(crate) region: Arc<Mapping>,
    _turn: Turn,
}

impl World {
    pub(crate) fn new(frames: u32, pages: usize) -> Option<World> {
        World::with_turn(frames, pages, Turn::shared())
    }

    pub(crate) fn with_turn(frames: u32, pages: usize, turn: Turn) -> Option<World> {
        let mut machine = match LiveMachine::new(frames) {
            Ok(machine) => machine,
            Err(StartError::Uffd(error)) => {
                skip(&format!("a userfaultfd that moves pages: {error:?}"));
                return None;
            }
            Err(error) => panic!("{error:?}"),
        };
        let region = Arc::new(Mapping::anonymous(pages * PAGE).unwrap());
        let registered = machine.register(page_of(&region, 0), pages as u64);
        assert_eq!(registered, Ok(pages as u64));
        Some(World {
            machine,
            region,
            _turn: turn,
        })
    }

    pub(crate) fn at(&self, page: usize) -> VirtPage {
        page_of(&self.region, page)
    }

    /// Enters zero-filled frames from `frame` on at pages from `page` on, and settles.
    pub(crate) fn enter_zeros(&mut self, page: usize, frame: u32, count: u32) {
        for i in 0..count {
            self.machine.zero(FrameId(frame + i));
            self.machine.enter(
                SPACE,
                self.at(page + i as usize),
                FrameId(frame + i),
                Rights::Write,
            );
        }
        self.settle();
    }

    pub(crate) fn enter(&mut self, page: usize, frame: u32) {
        self.machine
            .enter(SPACE, self.at(page), FrameId(frame), Rights::Write);
        self.settle();
        self.await_deferred();
    }

    pub(crate) fn unmap(&mut self, frame: u32) {
        self.machine.restrict(FrameId(frame), Rights::None);
        self.settle();
    }

    fn settle(&mut self) {
        self.machine.settle();
        self.machine.check();
    }

    /// Waits until what the kernel refused for a moment has come to its place.
    fn await_deferred(&mut self) {
        let end = Instant::now() + PATIENCE;
        while self.machine.has_deferred() {
            assert!(Instant::now() < end, "a page is held for ever");
            std::thread::sleep(Duration::from_millis(1));
            self.machine.retry_deferred();
        }
    }

    /// Runs `program` in a thread of its own, showing each message to `serve`, until it ends.
    fn run<T: Send + 'static>(
        &mut self,
        program: impl FnOnce(&Mapping) -> T + Send + 'static,
        mut serve: impl FnMut(&mut World, Message),
    ) -> T {
        let region = Arc::clone(&self.region);
        let thread = std::thread::spawn(move || program(&region));
        let mut messages = Messages::new();
        let end = Instant::now() + PATIENCE;
        while !thread.is_finished() {
            assert!(Instant::now() < end, "the program waits for ever");
            socket::wait_readable(&[self.machine.program().as_fd()], Some(1_000_000)).unwrap();
            self.machine.program().read(&mut messages).unwrap();
            for message in messages.iter() {
                serve(self, message);
            }
        }
        thread.join().unwrap()
    }
}

fn page_of(region: &Mapping, page: usize) -> VirtPage {
    VirtPage((region.start() / PAGE + page) as u64)
}

fn no_message(_: &mut World, message: Message) {
    panic!("{message:?}");
}

#[test]
fn only_what_is_mapped_is_registered() {
    // Alone: another test's memory could come to lie in the hole.
    let Some(mut world) = World::with_turn(8, 4, Turn::alone()) else {
        return;
    };
    let region = Mapping::anonymous(64 * PAGE).unwrap();
    let (first, start) = (page_of(&region, 0), region.start());
    // Two mappings and a hole.
    testing::mark(start, 5 * PAGE).unwrap();
    testing::unmap(start + 23 * PAGE, 9 * PAGE).unwrap();
    assert_eq!(world.machine.register(first, 64), Ok(23));
    assert_eq!(world.machine.register(first, 20), Ok(20));
    assert_eq!(world.machine.register(page_of(&region, 32), 32), Ok(32));
    world.machine.unregister(first, 64).unwrap();
    std::mem::forget(region);
}

#[test]
fn a_page_keeps_its_contents_on_its_way_out_and_in() {
    let Some(mut world) = World::new(8, 4) else {
        return;
    };
    world.enter_zeros(0, 2, 2);
    assert!(is_filled(&world.region, 0, 0));
    fill(&world.region, 0, 7);
    fill(&world.region, 1, 8);
    world.unmap(2);
    assert!(!world.machine.is_mapped(FrameId(2)));
    let mut page = [0; PAGE];
    world.machine.pool().read(FrameId(2), &mut page);
    assert!(page.iter().step_by(64).all(|byte| *byte == 7));
    // It comes back elsewhere, and its neighbour has not moved.
    world.enter(3, 2);
    assert!(is_filled(&world.region, 3, 7) && is_filled(&world.region, 1, 8));
    assert_eq!(world.machine.mapped_at(FrameId(2)), Some(world.at(3)));
    assert_eq!(world.machine.take_setback(), None);
}

#[test]
fn a_run_moves_in_one_call_and_a_broken_one_in_as_many_as_it_has_pieces() {
    let Some(mut world) = World::new(64, 64) else {
        return;
    };
    world.enter_zeros(0, 0, 64);
    assert_eq!(world.machine.tally().move_calls, 1);
    (0..64).for_each(|page| fill(&world.region, page, page as u8));
    // Told in any order.
    (0..64)
        .rev()
        .for_each(|frame| world.machine.restrict(FrameId(frame), Rights::None));
    world.settle();
    assert_eq!(world.machine.tally().move_calls, 2);
    for page in (0..64).filter(|page| page % 16 != 5) {
        world
            .machine
            .enter(SPACE, world.at(page as usize), FrameId(page), Rights::Write);
    }
    world.settle();
    let tally = world.machine.tally();
    assert_eq!(
        (tally.move_calls, tally.moved_in, tally.moved_out),
        (2 + 5, 60, 64)
    );
    (0..64).filter(|page| page % 16 != 5).for_each(|page| {
        assert!(is_filled(&world.region, page, page as u8));
    });
}

#[test]
fn a_run_over_several_mappings_moves_whole() {
    let Some(mut world) = World::new(32, 32) else {
        return;
    };
    // Three mappings, side by side, of 5, 3 and 24 pages.
    testing::mark(world.region.start() + 5 * PAGE, 3 * PAGE).unwrap();
    world.enter_zeros(0, 0, 32);
    (0..32).for_each(|page| fill(&world.region, page, 100 + page as u8));
    (0..32).for_each(|frame| world.machine.restrict(FrameId(frame), Rights::None));
    world.settle();
    for page in 0..32 {
        world
            .machine
            .enter(SPACE, world.at(page), FrameId(page as u32), Rights::Write);
    }
    world.settle();
    let tally = world.machine.tally();
    assert_eq!(
        (tally.zero_filled, tally.moved_out, tally.moved_in),
        (32, 32, 32)
    );
    assert_eq!(tally.copied_in, 0);
    assert!((0..32).all(|page| is_filled(&world.region, page, 100 + page as u8)));
}

#[test]
fn faults_tell_their_thread_and_page_and_are_served() {
    let Some(mut world) = World::new(8, 8) else {
        return;
    };
    let mut faults = Vec::new();
    let thread = world.run(
        |region| {
            (0..8).for_each(|page| fill(region, page, 40 + page as u8));
            crate::sys::thread::current()
        },
        |world, message| {
            let Message::Fault {
                at,
                is_write,
                thread,
            } = message
            else {
                panic!("{message:?}")
            };
            let page = (at - world.region.start()) / PAGE;
            faults.push((page, is_write, thread));
            world.enter_zeros(page, page as u32, 1);
        },
    );
    assert_eq!(
        faults,
        (0..8).map(|page| (page, true, thread)).collect::<Vec<_>>()
    );
    assert!((0..8).all(|page| is_filled(&world.region, page, 40 + page as u8)));
}

#[test]
fn a_soft_fault_is_the_reference_bit() {
    let Some(mut world) = World::new(2, 2) else {
        return;
    };
    world.enter_zeros(0, 0, 1);
    fill(&world.region, 0, 3);
    assert!(world.machine.take_referenced(FrameId(0)));
    assert!(!world.machine.take_referenced(FrameId(0)));
    world.settle();
    assert!(!world.machine.take_referenced(FrameId(0)));
    let is_kept = world.run(
        |region| is_filled(region, 0, 3),
        |world, message| {
            assert!(matches!(
                message,
                Message::Fault {
                    is_write: false,
                    ..
                }
            ));
            world.enter(0, 0);
        },
    );
    assert!(is_kept && world.machine.take_referenced(FrameId(0)));
}

#[test]
fn a_page_is_modified_if_its_contents_differ_and_only_then() {
    let Some(mut world) = World::new(2, 1) else {
        return;
    };
    let frame = FrameId(0);
    world.enter_zeros(0, 0, 1);
    world.unmap(0);
    assert!(!world.machine.take_modified(frame), "still zeros");
    world.enter(0, 0);
    fill(&world.region, 0, 9);
    world.unmap(0);
    assert!(world.machine.take_modified(frame));
    assert!(!world.machine.take_modified(frame), "asking forgets");
    let sum = world.machine.sum(frame);
    world.enter(0, 0);
    fill(&world.region, 0, 9);
    world.unmap(0);
    assert!(
        !world.machine.take_modified(frame),
        "written, but with what it held"
    );
    assert_eq!(world.machine.sum(frame), sum);
    world.machine.forget_sum(frame);
    assert!(world.machine.take_modified(frame));
    world.machine.zero(frame);
    assert_eq!(world.machine.sum(frame), ZERO_SUM);
    assert!(!world.machine.take_modified(frame));
}

#[test]
fn a_used_slot_comes_back_as_zeros_without_new_memory() {
    let Some(mut world) = World::new(1, 2) else {
        return;
    };
    world.enter_zeros(0, 0, 1);
    fill(&world.region, 0, 1);
    world.unmap(0);
    world.enter_zeros(1, 0, 1);
    assert!(is_filled(&world.region, 1, 0));
    let tally = world.machine.tally();
    assert_eq!(
        (tally.zero_filled, tally.moved_in),
        (1, 1),
        "cleared in place and moved"
    );
}

#[test]
fn a_page_its_owner_has_removed_is_gone() {
    let Some(mut world) = World::new(4, 4) else {
        return;
    };
    world.enter_zeros(0, 0, 4);
    let start = world.region.start();
    let mut removed = Vec::new();
    world.run(
        move |_| testing::remove(start + PAGE, PAGE).unwrap(),
        |_, message| removed.push(message),
    );
    assert_eq!(
        removed,
        [Message::Remove {
            start: start + PAGE,
            end: start + 2 * PAGE
        }]
    );
    (0..4).for_each(|frame| world.machine.restrict(FrameId(frame), Rights::None));
    world.settle();
    assert_eq!(
        world.machine.take_setback(),
        Some((FrameId(1), Setback::Gone))
    );
    assert_eq!(world.machine.take_setback(), None);
    assert_eq!(world.machine.tally().moved_out, 3);
    // What is mapped in its place starts as zeros.
    world.enter_zeros(1, 1, 1);
    assert!(is_filled(&world.region, 1, 0));
}

#[test]
fn a_probe_tells_a_spurious_fault_from_a_page_taken_away() {
    let Some(mut world) = World::new(1, 2) else {
        return;
    };
    world.enter_zeros(0, 0, 1);
    assert_eq!(world.machine.probe(world.at(0)), Probe::Present);
    let start = world.region.start();
    world.run(move |_| testing::remove(start, PAGE).unwrap(), |_, _| {});
    assert_eq!(world.machine.probe(world.at(0)), Probe::Refilled);
    assert!(is_filled(&world.region, 0, 0));
    assert_eq!(world.machine.probe(VirtPage(1)), Probe::Unknown);
}

#[test]
fn a_discarded_page_leaves_its_frame_free_for_others() {
    let Some(mut world) = World::new(2, 2) else {
        return;
    };
    world.enter_zeros(0, 0, 2);
    fill(&world.region, 1, 5);
    world.unmap(1);
    let start = world.region.start();
    world.run(
        move |_| testing::remove(start, 2 * PAGE).unwrap(),
        |world, message| {
            assert!(matches!(message, Message::Remove { .. }));
            world.machine.discard(FrameId(0));
            world.machine.discard(FrameId(1));
        },
    );
    world.machine.check();
    world.enter_zeros(0, 1, 1);
    world.enter_zeros(1, 0, 1);
    assert!(is_filled(&world.region, 0, 0) && is_filled(&world.region, 1, 0));
}

#[test]
fn the_page_that_stands_there_wins() {
    let Some(mut world) = World::new(2, 2) else {
        return;
    };
    world.enter_zeros(0, 0, 1);
    fill(&world.region, 0, 77);
    // The core does not know of the page, and tries to put others there.
    world.machine.discard(FrameId(0));
    world.enter_zeros(0, 1, 1);
    assert_eq!(
        world.machine.take_setback(),
        Some((FrameId(1), Setback::Gone))
    );
    assert!(is_filled(&world.region, 0, 77));
    world.machine.adopt(SPACE, world.at(0), FrameId(1));
    world.unmap(1);
    assert_eq!(world.machine.take_setback(), None);
    assert!(
        world.machine.take_modified(FrameId(1)),
        "adopted pages are on no store"
    );
    world.enter(1, 1);
    assert!(is_filled(&world.region, 1, 77));
}

#[test]
fn pages_shared_by_a_fork_are_busy_until_written() {
    let Some(mut world) = World::with_turn(4, 4, Turn::alone()) else {
        return;
    };
    world.enter_zeros(0, 0, 4);
    (0..4).for_each(|page| fill(&world.region, page, 60 + page as u8));
    world.unmap(3);
    let child = testing::Child::fork();
    world.unmap(0);
    assert_eq!(
        world.machine.take_setback(),
        Some((FrameId(0), Setback::Busy))
    );
    assert!(world.machine.is_mapped(FrameId(0)) && is_filled(&world.region, 0, 60));
    // A page that was in the pool comes in at once: the machine writes to its own slots.
    world.enter(3, 3);
    assert!(is_filled(&world.region, 3, 63) && !world.machine.has_deferred());
    drop(child);
    world.unmap(1);
    assert_eq!(
        world.machine.take_setback(),
        Some((FrameId(1), Setback::Busy))
    );
    let start = world.region.start();
    world.run(
        move |_| memory::populate_for_writing(start, 3 * PAGE).unwrap(),
        no_message,
    );
    (0..3).for_each(|frame| world.machine.restrict(FrameId(frame), Rights::None));
    world.settle();
    assert_eq!(world.machine.take_setback(), None);
    world.enter(0, 2);
    assert!(is_filled(&world.region, 0, 62));
}

#[test]
fn enters_wait_while_the_address_space_changes() {
    let Some(mut world) = World::new(4, 4) else {
        return;
    };
    let start = world.region.start();
    world.enter_zeros(3, 3, 1);
    // The thread sleeps in its call until its message is read.
    let region = Arc::clone(&world.region);
    let thread = std::thread::spawn(move || {
        testing::remove(start + 3 * PAGE, PAGE).unwrap();
        fill(&region, 0, 21);
    });
    let polled = [world.machine.program().as_fd()];
    assert_eq!(
        socket::wait_readable(&polled, Some(PATIENCE.as_nanos() as u64)),
        Ok(1)
    );
    world.machine.zero(FrameId(0));
    world
        .machine
        .enter(SPACE, world.at(0), FrameId(0), Rights::Write);
    world.settle();
    assert!(world.machine.has_deferred() && world.machine.is_mapped(FrameId(0)));
    assert!(world.machine.is_deferred(FrameId(0)));
    world.machine.retry_deferred();
    assert!(
        world.machine.has_deferred(),
        "the message has not been read yet"
    );
    let mut messages = Messages::new();
    let end = Instant::now() + PATIENCE;
    while !thread.is_finished() {
        assert!(Instant::now() < end);
        world.machine.program().read(&mut messages).unwrap();
        world.machine.retry_deferred();
        world.machine.check();
    }
    assert!(!world.machine.has_deferred() && is_filled(&world.region, 0, 21));
    assert_eq!(world.machine.take_setback(), None);
}

#[test]
fn a_deferred_enter_can_be_taken_back_and_moved() {
    let Some(mut world) = World::new(4, 4) else {
        return;
    };
    let start = world.region.start();
    let thread = std::thread::spawn(move || testing::remove(start + 3 * PAGE, PAGE).unwrap());
    let polled = [world.machine.program().as_fd()];
    assert_eq!(
        socket::wait_readable(&polled, Some(PATIENCE.as_nanos() as u64)),
        Ok(1)
    );
    for frame in 0..3 {
        world
            .machine
            .enter(SPACE, world.at(frame), FrameId(frame as u32), Rights::Write);
    }
    world.settle();
    assert!(
        world.machine.take_referenced(FrameId(0)),
        "a thread waits for it"
    );
    world.machine.restrict(FrameId(0), Rights::None);
    world.machine.discard(FrameId(1));
    let (from, to) = (world.at(2), world.at(3));
    world.machine.relocate(SPACE, from, to, FrameId(2));
    world.machine.check();
    world.machine.program().read(&mut Messages::new()).unwrap();
    thread.join().unwrap();
    world.machine.retry_deferred();
    world.machine.check();
    let mapped = [0, 1, 2].map(|frame| world.machine.mapped_at(FrameId(frame)));
    assert_eq!(mapped, [None, None, Some(to)]);
    assert!(is_filled(&world.region, 3, 0));
    let pages = world.machine.pages();
    assert!(!pages.is_present(start).unwrap() && !pages.is_present(start + 2 * PAGE).unwrap());
}

#[test]
fn a_moved_mapping_takes_its_pages_along() {
    let Some(mut world) = World::new(4, 8) else {
        return;
    };
    world.enter_zeros(0, 0, 4);
    (0..4).for_each(|page| fill(&world.region, page, 90 + page as u8));
    world.unmap(1);
    let (from, to) = (world.region.start(), world.region.start() + 4 * PAGE);
    let mut moved = Vec::new();
    let region = Arc::clone(&world.region);
    // The first half goes back to the system, so that the whole must not be unmapped at the end.
    std::mem::forget(Arc::clone(&region));
    world.run(
        move |_| {
            testing::move_mapping(from, to, 4 * PAGE).unwrap();
            is_filled(&region, 5, 91)
        },
        |world, message| {
            match message {
                Message::Remap { .. } => {
                    for frame in [0, 2, 3] {
                        let (from, to) = (world.at(frame), world.at(frame + 4));
                        world
                            .machine
                            .relocate(SPACE, from, to, FrameId(frame as u32));
                    }
                }
                Message::Fault { at, .. } => {
                    assert_eq!(at, to + PAGE, "the new place is registered");
                    world.enter(5, 1);
                }
                Message::Unmap { .. } => {}
                Message::Fork { .. } | Message::Remove { .. } | Message::Unknown(_) => {
                    panic!("{message:?}")
                }
            }
            moved.push(message);
        },
    );
    assert!(
        moved.contains(&Message::Remap {
            from,
            to,
            bytes: 4 * PAGE
        }),
        "{moved:?}"
    );
    assert!((0..4).all(|page| is_filled(&world.region, 4 + page, 90 + page as u8)));
    world.unmap(3);
    assert_eq!(world.machine.take_setback(), None);
}

#[test]
fn a_mapping_that_refuses_moves_gets_a_copy() {
    let Some(mut world) = World::new(2, 2) else {
        return;
    };
    world.enter_zeros(0, 0, 1);
    fill(&world.region, 0, 11);
    world.unmap(0);
    testing::make_read_only(world.region.start(), 2 * PAGE).unwrap();
    world.enter(0, 0);
    assert!(is_filled(&world.region, 0, 11));
    assert_eq!(world.machine.tally().copied_in, 1);
    world.unmap(0);
    assert_eq!(
        world.machine.take_setback(),
        Some((FrameId(0), Setback::Gone))
    );
    assert_eq!(world.machine.tally().disowned, 1);
    assert!(is_filled(&world.region, 0, 11));
    testing::make_writable(world.region.start(), 2 * PAGE).unwrap();
    let at = VirtPage((world.region.start() / PAGE) as u64);
    world.machine.adopt(SpaceId(0), at, FrameId(0));
    world.unmap(0);
    assert_eq!(world.machine.take_setback(), None);
    world.enter(1, 0);
    assert!(is_filled(&world.region, 1, 11));
}

#[test]
fn a_page_for_a_range_that_is_not_there_is_given_up_in_the_end() {
    let Some(mut world) = World::new(1, 1) else {
        return;
    };
    world.machine.unregister(world.at(0), 1).unwrap();
    world.enter_zeros(0, 0, 1);
    let mut tries = 0;
    while world.machine.has_deferred() {
        world.machine.retry_deferred();
        tries += 1;
        assert!(tries < 1000);
    }
    assert_eq!(
        world.machine.take_setback(),
        Some((FrameId(0), Setback::Gone))
    );
    world.machine.check();
}

#[test]
fn a_held_page_is_copied_in_and_can_leave_after_its_transfer() {
    let Some(mut world) = World::new(2, 2) else {
        return;
    };
    let frame = FrameId(0);
    world.enter_zeros(0, 0, 1);
    fill(&world.region, 0, 33);
    world.unmap(0);
    world.machine.hold(&[frame]);
    world.enter(0, 0);
    fill(&world.region, 0, 34);
    let mut saved = [0; PAGE];
    world.machine.pool().read(frame, &mut saved);
    assert!(
        saved.iter().step_by(64).all(|byte| *byte == 33),
        "the transfer sees no later write"
    );
    world.unmap(0);
    assert_eq!(world.machine.take_setback(), Some((frame, Setback::Busy)));
    world.machine.release(&[frame]);
    world.unmap(0);
    assert_eq!(world.machine.take_setback(), None);
    world.enter(1, 0);
    assert!(is_filled(&world.region, 1, 34));
}

#[test]
fn a_retired_frame_costs_no_memory() {
    let Some(mut world) = World::new(3, 3) else {
        return;
    };
    world.enter_zeros(0, 0, 3);
    (0..3).for_each(|frame| world.machine.restrict(FrameId(frame), Rights::None));
    world.settle();
    let is_backed = |world: &World, frame| {
        let slot = world.machine.pool().address(FrameId(frame));
        world.machine.pages().is_present(slot).unwrap()
    };
    assert!((0..3).all(|frame| is_backed(&world, frame)));
    world.machine.retire(FrameId(1));
    world.settle();
    assert_eq!(
        [0, 1, 2].map(|frame| is_backed(&world, frame)),
        [true, false, true]
    );
    assert_eq!(world.machine.sum(FrameId(1)), ZERO_SUM);
}

#[test]
fn found_f1_pages_of_a_pool_in_several_mappings_are_dropped() {
    let Some(mut world) = World::new(16, 16) else {
        return;
    };
    world.enter_zeros(0, 0, 16);
    // As in a forked child, where what is opened later is a mapping of its own.
    testing::mark(world.machine.pool().address(FrameId(3)), 8 * PAGE).unwrap();
    (0..16).for_each(|frame| world.machine.restrict(FrameId(frame), Rights::None));
    world.settle();
    assert_eq!(world.machine.tally().moved_out, 16);
    (0..16).for_each(|frame| world.machine.retire(FrameId(frame)));
    world.settle();
    for frame in 0..16 {
        let slot = world.machine.pool().address(FrameId(frame));
        assert_eq!(world.machine.pages().is_present(slot), Ok(false), "{frame}");
    }
}

#[test]
fn a_copy_holds_what_the_original_held() {
    let Some(mut world) = World::new(2, 2) else {
        return;
    };
    world.enter_zeros(0, 0, 1);
    fill(&world.region, 0, 55);
    world.machine.copy(FrameId(0), FrameId(1));
    world.enter(1, 1);
    assert!(is_filled(&world.region, 0, 55) && is_filled(&world.region, 1, 55));
    world.unmap(1);
    assert!(world.machine.take_modified(FrameId(1)));
}

#[test]
fn a_tip_that_somebody_has_read_still_takes_pages_to_drop() {
    let Some(mut world) = World::new(2, 2) else {
        return;
    };
    world.enter_zeros(0, 0, 2);
    (0..2).for_each(|frame| world.machine.restrict(FrameId(frame), Rights::None));
    world.settle();
    // As a debugger does, or another reader of all memory.
    assert_eq!(world.machine.tip.get(0), 0);
    world.machine.retire(FrameId(0));
    world.machine.retire(FrameId(1));
    world.settle();
    assert_eq!(world.machine.sum(FrameId(1)), ZERO_SUM);
    world.machine.check();
}

#[test]
fn a_page_that_moves_without_a_word_is_not_lost() {
    let Some(mut world) = World::new(4, 4) else {
        return;
    };
    world.enter_zeros(0, 0, 4);
    (0..4).for_each(|page| fill(&world.region, page, 60 + page as u8));
    // What the kernel does in the midst of a call, and then refuses the call for.
    let slip = |world: &World, page: usize, is_out: bool| {
        let inside = world.region.start() + page * PAGE;
        let slot = world.machine.pool().address(FrameId(page as u32));
        let (to, from) = if is_out {
            (slot, inside)
        } else {
            (inside, slot)
        };
        let moved = world.machine.program().move_pages(to, from, PAGE);
        assert_eq!(moved, Progress::All);
    };
    (0..4).for_each(|frame| world.machine.restrict(FrameId(frame), Rights::None));
    [1, 2].iter().for_each(|page| slip(&world, *page, true));
    world.settle();
    assert_eq!(world.machine.take_setback(), None);
    let mut page = [0; PAGE];
    for frame in 0..4 {
        world.machine.pool().read(FrameId(frame), &mut page);
        assert!(
            page.iter()
                .step_by(64)
                .all(|byte| *byte == 60 + frame as u8)
        );
    }
    for page in 0..4 {
        let (at, frame) = (world.at(page), FrameId(page as u32));
        world.machine.enter(SPACE, at, frame, Rights::Write);
    }
    slip(&world, 2, false);
    world.settle();
    assert_eq!(world.machine.take_setback(), None);
    assert!((0..4).all(|page| is_filled(&world.region, page, 60 + page as u8)));
    assert_eq!(world.machine.tally().unsaid, 3);
}
