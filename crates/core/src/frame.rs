//! Frames: the fixed table of memory slots and what each holds.
//!
//! # Invariants
//! 1. A frame is in exactly one [`State`]; the counts per state add up to the table's size.
//! 2. A frame has a page exactly when it is filling, resident or leaving.
//! 3. The free list holds every free frame once; the arrival list every resident frame once, in
//!    the order of arrival.

use alloc::vec;
use alloc::vec::Vec;

use crate::id::{FrameId, ObjectId, PageId, Ticket};

/// What a frame is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Holds nothing and may be taken.
    Free,
    /// Waits for its contents to come from a pager.
    Filling,
    /// Holds a page that programs can use.
    Resident,
    /// Holds a page that is being written to its pager, to be freed afterwards.
    Leaving,
    /// Beyond the memory limit: holds nothing and may not be taken.
    Retired,
}

const STATES: usize = 5;
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Frame {
    state: State,
    /// Came ahead of its use, and nobody has been seen to touch it.
    is_ahead: bool,
    /// The page may leave no more while this is not zero.
    wires: u16,
    newer: u32,
    older: u32,
    page: PageId,
    ticket: Ticket,
}

/// The frame table.
pub struct Frames {
    table: Vec<Frame>,
    free: Vec<u32>,
    counts: [u32; STATES],
    newest: u32,
    oldest: u32,
}

impl Frames {
    /// Makes a table of `frames_max` frames, of which the first `frames_limit` are free and the
    /// others retired.
    pub fn new(frames_max: u32, frames_limit: u32) -> Frames {
        let no_page = PageId { object: ObjectId(NONE), index: 0 };
        let blank = Frame {
            state: State::Free,
            is_ahead: false,
            wires: 0,
            newer: NONE,
            older: NONE,
            page: no_page,
            ticket: Ticket(0),
        };
        let mut table = vec![blank; frames_max as usize];
        for frame in table.iter_mut().skip(frames_limit as usize) {
            frame.state = State::Retired;
        }
        let mut counts = [0; STATES];
        counts[State::Free as usize] = frames_limit;
        counts[State::Retired as usize] = frames_max - frames_limit;
        Frames {
            table,
            free: (0..frames_limit).rev().collect(),
            counts,
            newest: NONE,
            oldest: NONE,
        }
    }

    /// How many frames there are in all.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there are no frames at all.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// How many frames are in `state`.
    pub fn count(&self, state: State) -> u32 {
        self.counts[state as usize]
    }

    /// What `frame` is doing.
    pub fn state(&self, frame: FrameId) -> State {
        self.table[frame.index()].state
    }

    /// Whether `frame` holds a page that is neither wired nor in transit.
    pub fn may_leave(&self, frame: FrameId) -> bool {
        let entry = &self.table[frame.index()];
        entry.state == State::Resident && entry.wires == 0
    }

    /// Puts `frame` into `state`, past every rule: for whoever drives a policy without a
    /// [`Vm`](crate::vm::Vm), and needs frames that may leave and frames that may not.
    pub fn force(&mut self, frame: FrameId, state: State, is_wired: bool) {
        let entry = &mut self.table[frame.index()];
        self.counts[entry.state as usize] -= 1;
        self.counts[state as usize] += 1;
        entry.state = state;
        entry.wires = is_wired.into();
    }
}
