//! Checks that every machine, every pager and every [`policy`] must pass.
//!
//! The suites know only the contracts. A machine under test shows its program side as a
//! [`ProgramSide`]; a pager under test lets the suite see its frames as a [`Depot`]. Each test is
//! listed by name, so that a runner can say which one failed for which entry.

use tidemark_core::id::{FrameId, ObjectId, PageId, SpaceId, Ticket, VirtPage};
use tidemark_core::seams::machine::{Machine, Rights};
use tidemark_core::seams::pager::{Direction, Outcome, Place, Reply, Request};

use crate::physical::Stamp;

pub mod policy;

/// A machine with programs on it.
pub trait ProgramSide: Machine {
    /// Reads a page as a program does; `None` is a fault.
    fn read(&mut self, space: SpaceId, at: VirtPage) -> Option<Stamp>;

    /// Writes a page as a program does; `false` is a fault.
    fn write(&mut self, space: SpaceId, at: VirtPage, stamp: Stamp) -> bool;

    /// Puts a page where none is, behind the core's back.
    fn place(&mut self, space: SpaceId, at: VirtPage, stamp: Stamp);
}

/// A pager with frames to serve.
pub trait Depot {
    /// Starts a transfer: `pages[i]` to or from `frames[i]`. Its reply may come in any order.
    fn start(&mut self, request: Request, pages: &[PageId], frames: &[FrameId]);

    /// Hands over the next finished transfer.
    fn next_reply(&mut self) -> Option<Reply>;

    /// The place at which the suite may keep `pages` pages.
    fn place_of(&self, pages: u32) -> Place;

    /// Fills a frame.
    fn write_frame(&mut self, frame: FrameId, stamp: Stamp);

    /// Reads the contents of a frame.
    fn read_frame(&mut self, frame: FrameId) -> Stamp;

    /// Waits for the next reply, within a limit after which it panics.
    fn wait_reply(&mut self) -> Reply;

    /// Makes the next transfer fail. `false` if that cannot be arranged.
    fn fail_next(&mut self, direction: Direction) -> bool;
}

/// A named test of a machine that has at least four frames, none of them mapped.
pub type MachineTest = (&'static str, fn(&mut dyn ProgramSide));

/// A named test of a pager that has at least four frames and room for four pages.
pub type PagerTest = (&'static str, fn(&mut dyn Depot));

const SPACE: SpaceId = SpaceId(0);
const HERE: VirtPage = VirtPage(16);
const THERE: VirtPage = VirtPage(20);
const FRAME: FrameId = FrameId(1);
const OTHER: FrameId = FrameId(2);

/// The tests of [`Machine`] that hold on every machine.
pub const MACHINE: &[MachineTest] = &[
    (
        "an_entered_frame_is_reached_there_and_nowhere_else",
        |machine| {
            enter_zeroed(machine, HERE, FRAME);
            assert_eq!(machine.read(SPACE, HERE), Some(Stamp::ZEROS));
            assert_eq!(machine.read(SPACE, THERE), None);
            assert!(!machine.write(SPACE, THERE, Stamp(1)));
        },
    ),
    ("what_is_written_is_read", |machine| {
        enter_zeroed(machine, HERE, FRAME);
        enter_zeroed(machine, THERE, OTHER);
        assert!(machine.write(SPACE, HERE, Stamp(5)));
        assert!(machine.write(SPACE, THERE, Stamp(6)));
        assert_eq!(machine.read(SPACE, HERE), Some(Stamp(5)));
        assert_eq!(machine.read(SPACE, THERE), Some(Stamp(6)));
    }),
    (
        "an_unmapped_page_keeps_its_contents_and_faults",
        |machine| {
            enter_written(machine, HERE, FRAME, Stamp(5));
            unmap(machine, FRAME);
            assert_eq!(machine.read(SPACE, HERE), None);
            assert!(!machine.write(SPACE, HERE, Stamp(6)));
            machine.enter(SPACE, HERE, FRAME, Rights::Write);
            machine.settle();
            assert_eq!(machine.read(SPACE, HERE), Some(Stamp(5)));
        },
    ),
    ("a_left_page_can_be_entered_elsewhere", |machine| {
        enter_written(machine, HERE, FRAME, Stamp(5));
        machine.leave(SPACE, HERE, FRAME);
        machine.settle();
        assert_eq!(machine.read(SPACE, HERE), None);
        machine.enter(SPACE, THERE, FRAME, Rights::Write);
        machine.settle();
        assert_eq!(machine.read(SPACE, THERE), Some(Stamp(5)));
    }),
    ("a_discarded_frame_can_be_used_again", |machine| {
        enter_written(machine, HERE, FRAME, Stamp(5));
        machine.discard(FRAME);
        machine.settle();
        assert_eq!(machine.read(SPACE, HERE), None);
        enter_zeroed(machine, HERE, FRAME);
        assert_eq!(machine.read(SPACE, HERE), Some(Stamp::ZEROS));
    }),
    ("a_use_is_reported_once", |machine| {
        enter_zeroed(machine, HERE, FRAME);
        assert!(machine.read(SPACE, HERE).is_some());
        assert!(machine.take_referenced(FRAME));
        machine.settle();
        assert!(!machine.take_referenced(FRAME));
    }),
    ("a_page_that_was_never_written_is_not_modified", |machine| {
        enter_zeroed(machine, HERE, FRAME);
        assert_eq!(machine.read(SPACE, HERE), Some(Stamp::ZEROS));
        unmap(machine, FRAME);
        assert!(!machine.take_modified(FRAME));
    }),
    ("a_write_is_reported_once", |machine| {
        enter_written(machine, HERE, FRAME, Stamp(5));
        unmap(machine, FRAME);
        assert!(machine.take_modified(FRAME));
        assert!(!machine.take_modified(FRAME));
    }),
    ("a_copy_holds_the_same_and_is_modified", |machine| {
        enter_written(machine, HERE, FRAME, Stamp(5));
        machine.copy(FRAME, OTHER);
        machine.enter(SPACE, THERE, OTHER, Rights::Write);
        machine.settle();
        assert_eq!(machine.read(SPACE, THERE), Some(Stamp(5)));
        assert!(machine.write(SPACE, THERE, Stamp(6)));
        assert_eq!(machine.read(SPACE, HERE), Some(Stamp(5)));
        unmap(machine, OTHER);
        assert!(machine.take_modified(OTHER));
    }),
    (
        "an_adopted_page_keeps_its_contents_and_is_modified",
        |machine| {
            machine.place(SPACE, HERE, Stamp(9));
            machine.adopt(SPACE, HERE, FRAME);
            machine.settle();
            assert_eq!(machine.read(SPACE, HERE), Some(Stamp(9)));
            unmap(machine, FRAME);
            assert!(machine.take_modified(FRAME));
            machine.enter(SPACE, HERE, FRAME, Rights::Write);
            machine.settle();
            assert_eq!(machine.read(SPACE, HERE), Some(Stamp(9)));
        },
    ),
    ("a_retired_frame_can_be_used_again", |machine| {
        enter_written(machine, HERE, FRAME, Stamp(5));
        machine.discard(FRAME);
        machine.settle();
        machine.retire(FRAME);
        machine.settle();
        enter_zeroed(machine, THERE, FRAME);
        assert_eq!(machine.read(SPACE, THERE), Some(Stamp::ZEROS));
    }),
];

/// The tests of [`Machine`] for those that know several spaces and rights: hardware does, a live
/// process with one space does not.
pub const SHARING_MACHINE: &[MachineTest] = &[
    ("a_mapping_for_reading_refuses_writes", |machine| {
        machine.zero(FRAME);
        machine.enter(SPACE, HERE, FRAME, Rights::Read);
        machine.settle();
        assert_eq!(machine.read(SPACE, HERE), Some(Stamp::ZEROS));
        assert!(!machine.write(SPACE, HERE, Stamp(1)));
        machine.enter(SPACE, HERE, FRAME, Rights::Write);
        machine.settle();
        assert!(machine.write(SPACE, HERE, Stamp(1)));
    }),
    ("restrict_lowers_every_mapping_of_the_frame", |machine| {
        enter_written(machine, HERE, FRAME, Stamp(5));
        machine.enter(SpaceId(1), THERE, FRAME, Rights::Write);
        machine.restrict(FRAME, Rights::Read);
        machine.settle();
        assert!(!machine.write(SPACE, HERE, Stamp(6)));
        assert!(!machine.write(SpaceId(1), THERE, Stamp(6)));
        assert_eq!(machine.read(SpaceId(1), THERE), Some(Stamp(5)));
        unmap(machine, FRAME);
        assert_eq!(machine.read(SPACE, HERE), None);
        assert_eq!(machine.read(SpaceId(1), THERE), None);
    }),
    ("leave_removes_one_mapping_and_no_other", |machine| {
        enter_written(machine, HERE, FRAME, Stamp(5));
        machine.enter(SpaceId(1), HERE, FRAME, Rights::Read);
        machine.leave(SPACE, HERE, FRAME);
        machine.settle();
        assert_eq!(machine.read(SPACE, HERE), None);
        assert_eq!(machine.read(SpaceId(1), HERE), Some(Stamp(5)));
    }),
];

/// The tests of pagers.
pub const PAGER: &[PagerTest] = &[
    ("what_was_stored_is_fetched", |depot| {
        transfer(
            depot,
            Direction::Store,
            &[Stamp(7), Stamp(8)],
            Outcome::Done,
        );
        transfer(
            depot,
            Direction::Fetch,
            &[Stamp(7), Stamp(8)],
            Outcome::Done,
        );
    }),
    ("a_second_store_replaces_the_first", |depot| {
        transfer(
            depot,
            Direction::Store,
            &[Stamp(7), Stamp(8)],
            Outcome::Done,
        );
        transfer(
            depot,
            Direction::Store,
            &[Stamp(9), Stamp(8)],
            Outcome::Done,
        );
        transfer(
            depot,
            Direction::Fetch,
            &[Stamp(9), Stamp(8)],
            Outcome::Done,
        );
    }),
    ("every_request_is_answered_once", |depot| {
        let place = depot.place_of(4);
        for number in 0..4 {
            depot.write_frame(FrameId(number), Stamp(u64::from(number) + 1));
            start(
                depot,
                Direction::Store,
                part_of(place, number),
                number,
                &[FrameId(number)],
            );
        }
        let mut answered: Vec<u64> = (0..4).map(|_| depot.wait_reply().ticket.0).collect();
        answered.sort_unstable();
        assert_eq!(answered, [0, 1, 2, 3]);
        assert_eq!(depot.next_reply(), None);
    }),
    ("a_failed_fetch_says_so_and_can_be_repeated", |depot| {
        transfer(depot, Direction::Store, &[Stamp(7)], Outcome::Done);
        if depot.fail_next(Direction::Fetch) {
            transfer(depot, Direction::Fetch, &[], Outcome::Failed);
        }
        transfer(depot, Direction::Fetch, &[Stamp(7)], Outcome::Done);
    }),
    ("a_failed_store_says_so_and_can_be_repeated", |depot| {
        if depot.fail_next(Direction::Store) {
            transfer(depot, Direction::Store, &[Stamp(7)], Outcome::Failed);
        }
        transfer(depot, Direction::Store, &[Stamp(7)], Outcome::Done);
        transfer(depot, Direction::Fetch, &[Stamp(7)], Outcome::Done);
    }),
];

fn enter_zeroed(machine: &mut dyn ProgramSide, at: VirtPage, frame: FrameId) {
    machine.zero(frame);
    machine.enter(SPACE, at, frame, Rights::Write);
    machine.settle();
}

fn enter_written(machine: &mut dyn ProgramSide, at: VirtPage, frame: FrameId, stamp: Stamp) {
    enter_zeroed(machine, at, frame);
    assert!(
        machine.write(SPACE, at, stamp),
        "a page mapped for writing is written"
    );
}

fn unmap(machine: &mut dyn ProgramSide, frame: FrameId) {
    machine.restrict(frame, Rights::None);
    machine.settle();
    assert_eq!(machine.take_setback(), None);
}

/// Moves one page per stamp and expects `outcome`: stores write the stamps, fetches find them. A
/// fetch that fails moves one page, of which nothing is expected.
fn transfer(depot: &mut dyn Depot, direction: Direction, stamps: &[Stamp], outcome: Outcome) {
    let frames: Vec<FrameId> = (0..stamps.len().max(1) as u32).map(FrameId).collect();
    for (&frame, &stamp) in frames.iter().zip(stamps) {
        let is_store = direction == Direction::Store;
        depot.write_frame(frame, if is_store { stamp } else { Stamp::NOISE });
    }
    let place = depot.place_of(frames.len() as u32);
    start(depot, direction, place, 0, &frames);
    let reply = depot.wait_reply();
    assert_eq!(
        reply,
        Reply {
            ticket: Ticket(0),
            outcome
        }
    );
    for (&frame, &stamp) in frames.iter().zip(stamps) {
        assert_eq!(
            depot.read_frame(frame),
            stamp,
            "{frame:?} after {direction:?}"
        );
    }
}

fn start(
    depot: &mut dyn Depot,
    direction: Direction,
    place: Place,
    number: u32,
    frames: &[FrameId],
) {
    let first = u64::from(number);
    let pages: Vec<PageId> = (first..first + frames.len() as u64)
        .map(|index| PageId {
            object: ObjectId(0),
            index,
        })
        .collect();
    let request = Request {
        ticket: Ticket(first),
        direction,
        place,
        pages: frames.len() as u32,
        is_urgent: true,
    };
    depot.start(request, &pages, frames);
}

/// The place of page `number` of a stretch that begins at `place`.
fn part_of(place: Place, number: u32) -> Place {
    match place {
        Place::Swap { first } => Place::Swap {
            first: tidemark_core::id::SlotId(first.0 + number),
        },
        Place::External { .. } => place,
    }
}
