//! Strands: turns of a process's threads that are under way beside each other.
//!
//! A recorder runs one thread at a time, and tells when another's *turn* begins. Live, a thread
//! that waits for a page does not stop the others. So where a turn waits, the next may begin if it
//! is another thread's, and whoever has its page goes on. What a thread does keeps its order, and
//! so does what concerns the whole process: all before it must be over.
//!
//! A recording says nothing of what threads wait for of each other. A turn runs ahead of those
//! before it by one turn a thread at most.
//!
//! # Invariants
//! 1. Of the turns before `next_turn` each is over, at hand, or parked.
//! 2. No two that are not over are of the same thread.

use tidemark_core::id::Waiter;
use tidemark_trace::Event;

use super::process::Process;
use super::script::{Course, Turn};

/// Where a waiter's number keeps the turn.
const TURN_SHIFT: u32 = 32;

/// How far a turn has come that is not at hand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strand {
    turn: usize,
    next_record: usize,
    gap_spent: u64,
    next_event: usize,
    after_fault: Option<bool>,
    /// Its page has not come.
    is_waiting: bool,
}

/// The turns of a process.
#[derive(Clone, Debug)]
pub(super) struct Strands<'a> {
    turns: &'a [Turn],
    /// The turn at hand; `None` where all that are under way wait.
    at_hand: Option<usize>,
    next_turn: usize,
    parked: Vec<Strand>,
}

impl<'a> Strands<'a> {
    /// All of a course, in its threads' turns or in one.
    pub(super) fn new(course: &'a Course, are_overlapping: bool) -> Strands<'a> {
        let turns = match are_overlapping {
            true => &course.turns[..],
            false => std::slice::from_ref(&course.whole),
        };
        Strands {
            turns,
            at_hand: Some(0),
            next_turn: 1,
            parked: Vec::new(),
        }
    }

    /// Where the turn at hand ends: how many records and events are done by then.
    pub(super) fn end(&self) -> (usize, usize) {
        let turn = &self.turns[self.at_hand.expect("somebody is at hand")];
        (turn.record_end, turn.event_end)
    }
}

impl Process<'_> {
    /// Who waits for a page: the process, and its turn.
    pub(super) fn waiter(&self, number: usize) -> Waiter {
        let turn = self.strands.at_hand.unwrap_or(0);
        Waiter(number as u64 | (turn as u64) << TURN_SHIFT)
    }

    /// Puts the turn at hand, which waits for its page, behind another that can go on. False if
    /// there is none: then the process waits for whoever's page comes first.
    pub(super) fn change_strand(&mut self) -> bool {
        if self.strands.turns.len() == 1 {
            return false;
        }
        let turn = self.strands.at_hand.take();
        self.strands.parked.push(Strand {
            turn: turn.expect("somebody is at hand"),
            next_record: self.next_record,
            gap_spent: self.gap_spent,
            next_event: self.next_event,
            after_fault: self.after_fault.take(),
            is_waiting: true,
        });
        self.take_up()
    }

    /// Goes on with another turn, as the one at hand is over. False if there is none that can go
    /// on now.
    pub(super) fn end_turn(&mut self) -> bool {
        self.strands.at_hand = None;
        self.take_up()
    }

    /// Whether all turns are over but for the one at hand.
    pub(super) fn is_last_turn(&self) -> bool {
        let strands = &self.strands;
        strands.next_turn >= strands.turns.len() && strands.parked.is_empty()
    }

    /// Learns that the page has come that a turn has waited for. Where nobody was at hand, that
    /// one is.
    pub(super) fn serve_strand(&mut self, waiter: Waiter) {
        let turn = (waiter.0 >> TURN_SHIFT) as usize;
        let mut parked = self.strands.parked.iter_mut();
        if let Some(strand) = parked.find(|strand| strand.turn == turn) {
            strand.is_waiting = false;
        }
        if self.strands.at_hand.is_none() {
            self.take_up();
        }
    }

    /// Takes up the earliest turn that can go on: one that was parked, or the next.
    fn take_up(&mut self) -> bool {
        let strands = &mut self.strands;
        let ready = strands.parked.iter().enumerate();
        let ready = ready.filter(|(_, strand)| !strand.is_waiting);
        if let Some((place, _)) = ready.min_by_key(|(_, strand)| strand.turn) {
            let strand = strands.parked.swap_remove(place);
            strands.at_hand = Some(strand.turn);
            self.next_record = strand.next_record;
            self.gap_spent = strand.gap_spent;
            self.next_event = strand.next_event;
            self.after_fault = strand.after_fault;
            return true;
        }
        let Some(next) = strands.turns.get(strands.next_turn) else {
            return false;
        };
        let is_beside = |strand: &Strand| {
            let other = &strands.turns[strand.turn];
            other.thread != next.thread && !other.is_alone && !next.is_alone
        };
        if !strands.parked.iter().all(is_beside) {
            return false;
        }
        let before = &strands.turns[strands.next_turn - 1];
        (self.next_record, self.next_event) = (before.record_end, before.event_end);
        (self.gap_spent, self.after_fault) = (0, None);
        strands.at_hand = Some(strands.next_turn);
        strands.next_turn += 1;
        true
    }
}

/// The process of a waiter.
pub(super) fn process_of(waiter: Waiter) -> usize {
    (waiter.0 & ((1 << TURN_SHIFT) - 1)) as usize
}

/// Whether an event is the whole process's, so that its turn runs beside no other.
pub(super) fn is_of_process(event: &Event) -> bool {
    match event {
        Event::Fork { .. }
        | Event::Exec { .. }
        | Event::Wait { .. }
        | Event::Exit { .. }
        | Event::Killed { .. }
        | Event::FileRead { .. }
        | Event::FileWrite { .. }
        | Event::FileCut { .. } => true,
        Event::Start { .. }
        | Event::ThreadStart { .. }
        | Event::ThreadExit { .. }
        | Event::ThreadSwitch { .. }
        | Event::Mark { .. }
        | Event::Windows { .. }
        | Event::Map { .. }
        | Event::Unmap { .. }
        | Event::Remap { .. }
        | Event::Protect { .. }
        | Event::Break { .. }
        | Event::StackGrowth { .. } => false,
    }
}
