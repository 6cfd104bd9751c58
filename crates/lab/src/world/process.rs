//! Processes: how far each has come, and where its time went.

use tidemark_core::id::SpaceId;
use tidemark_trace::{Event, TimeUnit};

use super::copies::Copying;
use super::outcome::ProcessOutcome;
use super::script::{Course, NO_USE};
use super::strands::Strands;
use super::system::Costs;

/// What a process is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Not born yet.
    Unborn,
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

/// A process at work.
pub(super) struct Process<'a> {
    pub(super) program: usize,
    pub(super) course: &'a Course,
    pub(super) space: Option<SpaceId>,
    /// The number of the memory that its space is in.
    pub(super) memory: u32,
    pub(super) parent: Option<usize>,
    pub(super) weight: u32,
    pub(super) state: State,
    /// When it came to be in `state`.
    since: u64,
    /// How many records are done.
    pub(super) next_record: usize,
    /// How much of the gap before the next record has been spent.
    pub(super) gap_spent: u64,
    /// How many events are done.
    pub(super) next_event: usize,
    /// The next record's page can't be used: a fault is due.
    pub(super) is_faulting: bool,
    /// A fault on the next record is over, and whether its page was in memory all along.
    pub(super) after_fault: Option<bool>,
    pub(super) strands: Strands<'a>,
    /// A system call copies bytes of a file for it.
    pub(super) copying: Option<Copying<'a>>,
    /// Load control wants it stopped.
    pub(super) is_suspended: bool,
    pub(super) children: u32,
    /// Children that ended before their parent waited for them.
    pub(super) children_ended: u32,
    pub(super) is_waiting_for_child: bool,
    /// Where the heap begins and ends.
    pub(super) heap: Option<(u64, u64)>,
    unit_ps: u64,
    /// Picoseconds run that make no whole nanosecond.
    carry_ps: u64,
    pub(super) outcome: ProcessOutcome,
}

impl<'a> Process<'a> {
    pub(super) fn new(
        program: usize,
        course: &'a Course,
        weight: u32,
        time: TimeUnit,
        costs: &Costs,
        are_overlapping: bool,
    ) -> Process<'a> {
        Process {
            program,
            course,
            space: None,
            memory: 0,
            parent: None,
            weight: weight.max(1),
            state: State::Unborn,
            since: 0,
            next_record: 0,
            gap_spent: 0,
            next_event: 0,
            is_faulting: false,
            after_fault: None,
            strands: Strands::new(course, are_overlapping),
            copying: None,
            is_suspended: false,
            children: 0,
            children_ended: 0,
            is_waiting_for_child: false,
            heap: None,
            unit_ps: match time {
                TimeUnit::Instructions => costs.instruction_ps,
                TimeUnit::References => costs.reference_ps,
                TimeUnit::Nanoseconds => 1000,
            },
            carry_ps: 0,
            outcome: ProcessOutcome {
                program: course.program.clone(),
                ..ProcessOutcome::default()
            },
        }
    }

    /// Has it fault on a record before the one that it has just faulted on: its machine does the
    /// instruction again, whose page has left meanwhile.
    pub(super) fn go_back(&mut self, record: usize) {
        assert!(record < self.next_record);
        self.next_record = record;
        self.gap_spent = u64::from(self.course.records[record].gap);
        (self.after_fault, self.is_faulting) = (None, true);
    }

    /// Begins its life.
    pub(super) fn begin(&mut self, now: u64) {
        assert_eq!(self.state, State::Unborn);
        (self.state, self.since) = (State::Ready, now);
        self.outcome.start_ns = now;
    }

    /// Passes over what a recorder says a forked process has mapped from the start: it has it from
    /// its parent, contents and all.
    pub(super) fn skip_inherited(&mut self) {
        let is_told = |event: &(u64, Event)| matches!(event, (0, Event::Map { .. }));
        let rest = &self.course.events[self.next_event..];
        self.next_event += rest.iter().take_while(|event| is_told(event)).count();
    }

    /// Comes to be in another state. Time on a processor is booked as it is spent, by
    /// [`spend_user`](Self::spend_user) and [`spend_system`](Self::spend_system).
    ///
    /// A reply may come while the processor still works on the request: then the wait is over as
    /// soon as it begins.
    pub(super) fn shift(&mut self, state: State, now: u64) {
        let now = now.max(self.since);
        let spent = now - self.since;
        match self.state {
            State::Unborn | State::Running | State::Ended => {}
            State::Ready => self.outcome.ready_ns += spent,
            State::Paging => self.outcome.page_wait_ns += spent,
            State::Thinking => self.outcome.think_ns += spent,
            State::Suspended => self.outcome.suspended_ns += spent,
        }
        (self.state, self.since) = (state, now);
    }

    /// Moves the start of its state to when the processor was done with it.
    pub(super) fn put_off(&mut self, now: u64) {
        self.since = self.since.max(now);
        if self.state == State::Ended {
            self.outcome.end_ns = self.since;
        }
    }

    /// When it came to be in its state.
    pub(super) fn since(&self) -> u64 {
        self.since
    }

    /// How many units of its trace's time fit before `span_ns` is over; the last may run over it.
    pub(super) fn units_in(&self, span_ns: u64) -> u64 {
        if self.unit_ps == 0 {
            return u64::MAX;
        }
        let span_ps = u128::from(span_ns) * 1000 - u128::from(self.carry_ps.min(span_ns));
        u64::try_from(span_ps.div_ceil(u128::from(self.unit_ps))).unwrap_or(u64::MAX)
    }

    /// Books units of the trace's time, and answers how long they took.
    pub(super) fn spend_user(&mut self, units: u64) -> u64 {
        let ps = u128::from(units) * u128::from(self.unit_ps) + u128::from(self.carry_ps);
        self.carry_ps = (ps % 1000) as u64;
        let ns = (ps / 1000) as u64;
        self.outcome.user_ns += ns;
        ns
    }

    /// Its own time in the core's ticks: microseconds on a processor, in the program itself.
    pub(super) fn ticks(&self) -> u64 {
        self.outcome.user_ns / 1000
    }

    /// Its own time when so many units more will have passed.
    pub(super) fn ticks_after(&self, units: u64) -> u64 {
        let ps = u128::from(units) * u128::from(self.unit_ps) + u128::from(self.carry_ps);
        (u128::from(self.outcome.user_ns) + ps / 1000) as u64 / 1000
    }

    /// Its own time when the page of a record is used again, if that is so long after so many
    /// units more; [`NO_USE`] stays what it is.
    pub(super) fn ticks_at_use(&self, units: u64, wait: u64) -> u64 {
        match wait {
            NO_USE => NO_USE,
            _ => self.ticks_after(units.saturating_add(wait)),
        }
    }

    /// Books time in the kernel.
    pub(super) fn spend_system(&mut self, ns: u64) {
        self.outcome.system_ns += ns;
    }

    /// How long it has been on processors.
    pub(super) fn run_ns(&self) -> u64 {
        self.outcome.user_ns + self.outcome.system_ns
    }

    /// The clock by which a fair scheduler gives turns.
    pub(super) fn fair_ns(&self) -> u64 {
        let scaled = u128::from(self.run_ns()) * u128::from(super::scenario::Program::WEIGHT);
        (scaled / u128::from(self.weight)) as u64
    }

    /// How many records there are before the next event.
    pub(super) fn records_end(&self) -> usize {
        let (record_end, event_end) = self.strands.end();
        let event = self.course.events[..event_end].get(self.next_event);
        event.map_or(record_end, |&(after, _)| after as usize)
    }
}
