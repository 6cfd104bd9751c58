//! Processes: what their threads share, and where their time went.

use std::ops::Range;

use tidemark_core::id::SpaceId;
use tidemark_trace::{Event, LifeEvent, TimeUnit};

use super::order::Order;
use super::outcome::ProcessOutcome;
use super::scenario::{Program, Scenario};
use super::script::{Course, NO_USE};
use super::system::{Costs, System};
use super::thread::{State, Thread};
use super::unfound::Unfound;

/// The stage of a process in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Life {
    /// Not born yet.
    Unborn,
    /// The process has threads that are not over.
    Alive,
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
    pub(super) life: Life,
    /// Its threads, by their numbers in the world.
    pub(super) threads: Range<usize>,
    pub(super) order: Order<'a>,
    /// Load control wants it stopped.
    pub(super) is_suspended: bool,
    pub(super) children: u32,
    /// Children that ended before their parent waited for them.
    pub(super) children_ended: u32,
    /// Threads that wait for a child to end.
    pub(super) waiting_for_child: Vec<usize>,
    /// The bounds of the heap.
    pub(super) heap: Option<(u64, u64)>,
    pub(super) unfound: Unfound,
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
        order: Order<'a>,
        threads: Range<usize>,
    ) -> Process<'a> {
        Process {
            program,
            course,
            space: None,
            memory: 0,
            parent: None,
            weight: weight.max(1),
            life: Life::Unborn,
            threads,
            order,
            is_suspended: false,
            children: 0,
            children_ended: 0,
            waiting_for_child: Vec::new(),
            heap: None,
            unfound: Unfound::default(),
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

    /// Begins its life.
    pub(super) fn begin(&mut self, now: u64) {
        assert_eq!(self.life, Life::Unborn);
        self.life = Life::Alive;
        self.outcome.start_ns = now;
    }

    /// Books what a thread of it has spent in a state. Time on a processor is booked as it is
    /// spent, by [`spend_user`](Self::spend_user) and [`spend_system`](Self::spend_system).
    pub(super) fn book(&mut self, state: State, spent: u64) {
        match state {
            State::Unborn | State::Parked | State::Running | State::Ended => {}
            State::Ready => self.outcome.ready_ns += spent,
            State::Paging => self.outcome.page_wait_ns += spent,
            State::Thinking => self.outcome.think_ns += spent,
            State::Suspended => self.outcome.suspended_ns += spent,
        }
    }

    /// The number of units of its trace's time that fit before `span_ns` is over; the last may run
    /// over it.
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

    /// Its own time after `units` more.
    pub(super) fn ticks_after(&self, units: u64) -> u64 {
        let ps = u128::from(units) * u128::from(self.unit_ps) + u128::from(self.carry_ps);
        (u128::from(self.outcome.user_ns) + ps / 1000) as u64 / 1000
    }

    /// Its own time when the page of a record is used again, that long after `units` more;
    /// [`NO_USE`] stays what it is.
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

    /// The clock by which a fair scheduler gives turns to a thread of it that has run for so long.
    pub(super) fn fair_ns(&self, run_ns: u64) -> u64 {
        let scaled = u128::from(run_ns) * u128::from(Program::WEIGHT);
        (scaled / u128::from(self.weight)) as u64
    }
}

/// The processes of a scenario, each with its parent, a process that forks it, by its number; and
/// their threads, those of each one after the other.
pub(super) fn collect<'a>(
    system: &System,
    scenario: &'a Scenario,
) -> (Vec<Process<'a>>, Vec<Thread<'a>>) {
    let mut processes: Vec<Process<'a>> = Vec::new();
    let mut threads = Vec::new();
    for (number, program) in scenario.programs.iter().enumerate() {
        let script = &*program.script;
        let first = processes.len();
        let forks = |parent: &Course, child: u32| {
            let is_fork =
                |(_, event): &(u64, Event)| *event == Event::Life(LifeEvent::Fork { child });
            parent.events.iter().any(is_fork)
        };
        for course in &script.courses {
            let are_overlapping = scenario.are_threads_overlapping;
            let firsts = match are_overlapping {
                true => &course.firsts[..],
                false => &[0],
            };
            let own = firsts.iter().enumerate();
            let own = own.map(|(place, &turn)| Thread::new(processes.len(), course, place, turn));
            threads.extend(own);
            let mut process = Process::new(
                number,
                course,
                program.weight,
                script.time(),
                &system.costs,
                Order::new(course, are_overlapping),
                threads.len() - firsts.len()..threads.len(),
            );
            let is_parent = |other: &Course| {
                course.pid != 0
                    && other.pid == course.parent
                    && other.pid != course.pid
                    && forks(other, course.pid)
            };
            process.parent = script
                .courses
                .iter()
                .position(is_parent)
                .map(|parent| first + parent);
            processes.push(process);
        }
    }
    (processes, threads)
}
