//! Threads: how far each has come, and what it is doing.
//!
//! A recorder runs one thread at a time, and tells when another's *turn* begins. In the world each
//! thread goes its own way, on whichever processor is free: what it does keeps its order, and
//! [`order`](super::order) says what of it has to wait for others.

use tidemark_trace::{Event, MappingEvent};

use super::file_call::FileCall;
use super::order::Order;
use super::script::{Course, Turn};

/// The state of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Its process is not born yet.
    Unborn,
    /// Waits for other threads of its process.
    Parked,
    /// Wants a processor.
    Ready,
    /// Has one.
    Running,
    /// Waits for a page, or for a frame.
    Paging,
    /// Waits for the world, or for a child.
    Thinking,
    /// Would be ready, if load control allowed.
    Suspended,
    /// Over.
    Ended,
}

/// A thread at work.
pub(super) struct Thread<'a> {
    /// Its process.
    pub(super) process: usize,
    /// The thread's place among those of the process.
    pub(super) place: usize,
    pub(super) course: &'a Course,
    pub(super) state: State,
    /// The time at which it came to be in `state`.
    pub(super) since: u64,
    /// Its turn at hand, or the one that it is to begin.
    pub(super) turn: usize,
    has_begun: bool,
    /// The number of records and events of its process that are over before its next step, and the
    /// end of its turn.
    pub(super) next_record: usize,
    record_end: usize,
    pub(super) next_event: usize,
    event_end: usize,
    /// The part of the gap before the next record that has been spent.
    pub(super) gap_spent: u64,
    /// The next record's page can't be used: a fault is due.
    pub(super) is_faulting: bool,
    /// A fault on the next record is over, and whether its page was in memory all along.
    pub(super) after_fault: Option<bool>,
    /// A system call copies bytes of a file for it.
    pub(super) copying: Option<FileCall<'a>>,
    /// The time it has been on processors.
    pub(super) run_ns: u64,
}

impl<'a> Thread<'a> {
    /// A thread of a process that is not born, which is to begin with that turn.
    pub(super) fn new(process: usize, course: &'a Course, place: usize, turn: usize) -> Thread<'a> {
        Thread {
            process,
            place,
            course,
            state: State::Unborn,
            since: 0,
            turn,
            has_begun: false,
            next_record: 0,
            record_end: 0,
            next_event: 0,
            event_end: 0,
            gap_spent: 0,
            is_faulting: false,
            after_fault: None,
            copying: None,
            run_ns: 0,
        }
    }

    /// Comes to be in another state. Answers for how long it was in the one before, which is over
    /// as soon as it begins where a reply comes while a processor still works on the request.
    pub(super) fn shift(&mut self, state: State, now: u64) -> u64 {
        let now = now.max(self.since);
        let spent = now - self.since;
        (self.state, self.since) = (state, now);
        spent
    }

    /// Begins its turn, if it may. A thread that has begun it goes on.
    pub(super) fn begin_turn(&mut self, order: &Order) -> bool {
        if self.has_begun || !order.may_begin(self.turn) {
            return self.has_begun;
        }
        self.has_begun = true;
        self.place_at(order.turn(self.turn));
        true
    }

    /// Passes over what a recorder says a forked process has mapped from the start: it has it from
    /// its parent, contents and all.
    pub(super) fn skip_inherited(&mut self) {
        let is_told =
            |event: &(u64, Event)| matches!(event, (0, Event::Mapping(MappingEvent::Map { .. })));
        let rest = &self.course.events[self.next_event..self.event_end];
        self.next_event += rest.iter().take_while(|event| is_told(event)).count();
    }

    /// Goes to the start of a turn.
    fn place_at(&mut self, turn: Turn) {
        (self.next_record, self.record_end) = (turn.record_start, turn.record_end);
        (self.next_event, self.event_end) = (turn.event_start, turn.event_end);
        (self.gap_spent, self.after_fault) = (0, None);
    }

    /// Ends its turn. False if it has no other.
    pub(super) fn end_turn(&mut self, order: &mut Order) -> bool {
        assert!(self.has_begun);
        order.end(self.turn);
        self.has_begun = false;
        let next = order.turn(self.turn).next;
        self.turn = next.unwrap_or(self.turn);
        next.is_some()
    }

    /// The number of records of its turn that it has done.
    pub(super) fn records_done(&self, order: &Order) -> usize {
        match self.has_begun {
            true => self.next_record - order.turn(self.turn).record_start,
            false => 0,
        }
    }

    /// Takes the thread back to a record before the one that it has just faulted on: its machine
    /// repeats the instruction, whose page has left meanwhile.
    pub(super) fn go_back(&mut self, record: usize) {
        assert!(record < self.next_record);
        self.next_record = record;
        self.gap_spent = u64::from(self.course.records[record].gap);
        (self.after_fault, self.is_faulting) = (None, true);
    }

    /// The number of records before its next event, or the end of its turn.
    pub(super) fn records_end(&self) -> usize {
        let event = self.course.events[..self.event_end].get(self.next_event);
        event.map_or(self.record_end, |&(after, _)| after as usize)
    }

    /// Goes past the next event of its turn, and answers its number; `None` if there is none.
    pub(super) fn take_event(&mut self) -> Option<usize> {
        let number = self.next_event;
        if number == self.event_end {
            return None;
        }
        self.next_event += 1;
        Some(number)
    }
}
