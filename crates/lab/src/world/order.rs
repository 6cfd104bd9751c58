//! Order: which turns of a process's threads may begin.
//!
//! A trace tells the turns of a process in one order, in which a recorder that runs one thread at a
//! time let them go on. Some of it is kept. What a thread does keeps its order; what concerns the
//! whole process is done alone, after all before it; a thread begins when another has started it.
//!
//! What threads wait for of each other is not on record. So none is ahead of the one furthest
//! behind by more than a round: as many turns as there are threads. One that waited for a while
//! when it was recorded has no turns of that time, or short ones, and waits so for the long ones of
//! others.
//!
//! # Invariants
//! 1. All turns before `oldest` are over, and it is not.
//! 2. All turns from `oldest` to before `alone` run beside others.

use tidemark_trace::{Event, LifeEvent};

use super::script::{Course, Turn};

/// The progress of the turns of a process.
pub(super) struct Order<'a> {
    turns: &'a [Turn],
    is_over: Vec<bool>,
    oldest: usize,
    /// The first turn from `oldest` on that is to be alone.
    alone: usize,
    /// The number of threads.
    round: usize,
    /// True for each event that has happened.
    has_happened: Vec<bool>,
    /// The number of records of the turns that are over.
    pub(super) records_over: usize,
}

impl<'a> Order<'a> {
    /// The turns of all threads of a course, or all of it as one. None has begun.
    pub(super) fn new(course: &'a Course, are_overlapping: bool) -> Order<'a> {
        let turns = match are_overlapping {
            true => &course.turns[..],
            false => std::slice::from_ref(&course.whole),
        };
        let mut order = Order {
            turns,
            is_over: vec![false; turns.len()],
            oldest: 0,
            alone: 0,
            round: course.firsts.len(),
            has_happened: vec![false; course.events.len()],
            records_over: 0,
        };
        order.find_alone();
        order
    }

    /// A turn.
    pub(super) fn turn(&self, number: usize) -> Turn {
        self.turns[number]
    }

    /// Returns true if a turn may begin.
    pub(super) fn may_begin(&self, number: usize) -> bool {
        let has_room = match self.turns[number].is_alone {
            true => number == self.oldest,
            false => number < self.alone && number <= self.oldest + self.round,
        };
        let needs = self.turns[number].needs;
        has_room && needs.is_none_or(|event| self.has_happened[event])
    }

    /// Notes that an event has happened. Returns true if a thread may have waited for it.
    pub(super) fn note(&mut self, number: usize, event: &Event) -> bool {
        self.has_happened[number] = true;
        matches!(event, Event::Life(LifeEvent::ThreadStart { .. }))
    }

    /// Ends a turn.
    pub(super) fn end(&mut self, number: usize) {
        let turn = self.turns[number];
        self.is_over[number] = true;
        self.records_over += turn.record_end - turn.record_start;
        let rest = self.is_over[self.oldest..].iter();
        self.oldest += rest.take_while(|is_over| **is_over).count();
        self.find_alone();
    }

    /// Returns true if all turns are over.
    pub(super) fn is_done(&self) -> bool {
        self.oldest == self.turns.len()
    }

    fn find_alone(&mut self) {
        self.alone = self.alone.max(self.oldest);
        let rest = self.turns[self.alone..].iter();
        self.alone += rest.take_while(|turn| !turn.is_alone).count();
    }
}

/// Returns true if an event is the whole process's, so that it happens beside nothing else.
pub(super) fn is_of_process(event: &Event) -> bool {
    match event {
        Event::Life(
            LifeEvent::Fork { .. }
            | LifeEvent::Exec { .. }
            | LifeEvent::Wait { .. }
            | LifeEvent::Exit { .. }
            | LifeEvent::Killed { .. },
        ) => true,
        Event::Life(
            LifeEvent::Start { .. }
            | LifeEvent::ThreadStart { .. }
            | LifeEvent::ThreadExit { .. }
            | LifeEvent::ThreadSwitch { .. },
        )
        | Event::Mark { .. }
        | Event::Windows { .. }
        | Event::Mapping(_)
        | Event::File(_)
        | Event::Visit
        | Event::Size { .. } => false,
    }
}
