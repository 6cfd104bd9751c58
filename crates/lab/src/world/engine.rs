//! The engine: processors, events, and the order in which things happen.
//!
//! Each processor has a clock of its own. The one furthest behind goes on, up to the next event;
//! an event is taken in when every busy processor has come to it. So calls into the core never go
//! back in time.
//!
//! # Invariants
//! 1. A thread is running exactly when a processor names it, and ready exactly when it is queued.
//!    One whose process has ended leaves its processor before it does anything.
//! 2. `alive` counts the processes that are born and have not ended.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tidemark_core::decision::Decision;
use tidemark_core::id::SpaceId;
use tidemark_core::random::SplitMix64;
use tidemark_core::seams::policy::Sees;

use super::disk::{Disk, Errand};
use super::division::Division;
use super::error::WorldError;
use super::files::Files;
use super::layout::build_disks;
use super::memory::{self, Memory};
use super::outcome::{Outcome, Suspension};
use super::process::{self, Process};
use super::ready::Ready;
use super::scenario::Scenario;
use super::system::System;
use super::tables::Stop;
use super::tally::{Samples, Tally};
use super::thread::{State, Thread};

/// The time by which a processor may run ahead of the others.
const AHEAD_NS: u64 = 20_000;
/// The longest time for which nothing may happen but the clock's ticking.
const STILL_NS: u64 = 3_600_000_000_000;
/// The least memory that every system works in.
pub(super) const FRAMES_MIN: u32 = 8;

/// Something that is due at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Alarm {
    /// A process is born.
    Birth(usize),
    /// A thread's waiting for the world is over.
    Wake(usize),
    /// An engine looks for a process's memory.
    Look(usize),
    /// The memory gets the time.
    Tick,
    /// Frames are divided among memories.
    Divide,
    /// A sample is taken.
    Sample,
}

/// One processor.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Processor {
    pub(super) now: u64,
    pub(super) running: Option<usize>,
    turn_end: u64,
    last: Option<usize>,
}

/// A scenario on a system.
pub(super) struct World<'a> {
    pub(super) system: &'a System,
    pub(super) scenario: &'a Scenario,
    /// The memory at hand: of the process that goes on, or of the request that is over.
    pub(super) memory: Memory,
    pub(super) division: Division,
    pub(super) sees: Sees,
    pub(super) processes: Vec<Process<'a>>,
    pub(super) threads: Vec<Thread<'a>>,
    pub(super) processors: Vec<Processor>,
    pub(super) ready: Ready,
    pub(super) disks: Vec<Disk>,
    pub(super) files: Files,
    pub(super) alarms: BinaryHeap<Reverse<(u64, u64, Alarm)>>,
    alarms_set: u64,
    pub(super) alive: usize,
    /// Alarms that will start a process, or let one go on.
    pub(super) awaited: usize,
    /// The time of the last event that was no tick.
    pub(super) moved_ns: u64,
    pub(super) tally: Tally,
    pub(super) samples: Samples,
    pub(super) decisions: Vec<Decision>,
    pub(super) suspensions: Vec<Suspension>,
    /// The delays of engines when they look for memory.
    pub(super) delays: SplitMix64,
}

impl<'a> World<'a> {
    pub(super) fn new(system: &'a System, scenario: &'a Scenario) -> Result<World<'a>, WorldError> {
        check(scenario)?;
        let frames = scenario.memory_pages - scenario.wired_pages;
        let mut memory = Memory::new(system, scenario, frames, frames)?;
        let control = match scenario.is_divided {
            true => memory::build_control(scenario)?,
            false => None,
        };
        let sees = memory.vm.policy().describe().sees;
        let slots = u64::from(memory::count_slots(scenario));
        let (disks, files) = build_disks(&mut memory.vm, scenario, slots);
        let (processes, threads) = process::collect(system, scenario);
        let mut world = World {
            delays: SplitMix64::new(scenario.seed),
            sees,
            division: Division::new(scenario, control),
            memory,
            processors: vec![Processor::default(); scenario.processors as usize],
            ready: Ready::new(scenario.scheduler, threads.len()),
            disks,
            files,
            alarms: BinaryHeap::new(),
            alarms_set: 0,
            alive: 0,
            awaited: 0,
            moved_ns: 0,
            tally: Tally::default(),
            samples: Samples::new(scenario.watch.sample_ns),
            decisions: Vec::new(),
            suspensions: Vec::new(),
            processes,
            threads,
            system,
            scenario,
        };
        world.set_first_alarms();
        Ok(world)
    }

    pub(super) fn run(mut self) -> Result<Outcome, WorldError> {
        let limit_ns = self.scenario.limit_ns;
        loop {
            self.dispatch();
            if self.alive == 0 && self.awaited == 0 {
                return Ok(self.finish());
            }
            let behind = self.find_behind();
            let event = self.next_event();
            let moments = behind.map(|number| self.processors[number].now);
            let next = moments.into_iter().chain(event).min();
            if next
                .zip(limit_ns)
                .is_some_and(|(next, limit_ns)| next >= limit_ns)
            {
                return Ok(self.cut());
            }
            match (behind, event) {
                (Some(number), Some(at)) if at > self.processors[number].now => {
                    self.step(number, at);
                }
                (Some(number), None) => self.step(number, u64::MAX),
                (_, Some(at)) => self.take_event(at)?,
                (None, None) => return Err(self.stuck(self.moved_ns)),
            }
        }
    }

    /// Has `alarm` go off at `at`.
    pub(super) fn set_alarm(&mut self, at: u64, alarm: Alarm) {
        self.alarms_set += 1;
        self.alarms.push(Reverse((at, self.alarms_set, alarm)));
        self.awaited += usize::from(matches!(alarm, Alarm::Birth(_) | Alarm::Wake(_)));
    }

    /// Has the memory told the time from `now` on.
    pub(super) fn restart_ticks(&mut self, now: u64) {
        let is_other =
            |Reverse((_, _, alarm)): &Reverse<(u64, u64, Alarm)>| !matches!(alarm, Alarm::Tick);
        self.alarms.retain(is_other);
        self.set_alarm(now + self.system.tick_ns, Alarm::Tick);
    }

    /// Has a thread be in another state.
    pub(super) fn shift(&mut self, thread: usize, state: State, now: u64) {
        let found = &mut self.threads[thread];
        let before = found.state;
        let spent = found.shift(state, now);
        self.processes[found.process].book(before, spent);
    }

    /// Moves the start of a thread's state to when the processor was done with it.
    pub(super) fn put_off(&mut self, thread: usize, now: u64) {
        let found = &mut self.threads[thread];
        found.since = found.since.max(now);
    }

    /// The process of a thread.
    pub(super) fn process_of(&mut self, thread: usize) -> &mut Process<'a> {
        &mut self.processes[self.threads[thread].process]
    }

    /// The clock by which a fair scheduler gives turns to a thread.
    pub(super) fn fair_ns(&self, thread: usize) -> u64 {
        let found = &self.threads[thread];
        self.processes[found.process].fair_ns(found.run_ns)
    }

    /// Puts a thread among those that want a processor, or among the suspended.
    pub(super) fn make_ready(&mut self, thread: usize, now: u64) {
        if self.process_of(thread).is_suspended {
            return self.shift(thread, State::Suspended, now);
        }
        self.shift(thread, State::Ready, now);
        let fair_ns = self.fair_ns(thread);
        self.ready.push(thread, fair_ns);
    }

    /// Takes the running thread off its processor.
    pub(super) fn stop_running(&mut self, number: usize, state: State) {
        let now = self.processors[number].now;
        let thread = self.processors[number].running.take();
        let thread = thread.expect("a processor that steps runs a thread");
        match state {
            State::Ready => self.make_ready(thread, now),
            other => self.shift(thread, other, now),
        }
    }

    /// Books kernel work of a thread on its processor.
    pub(super) fn charge(&mut self, number: usize, ns: u64) {
        let processor = &mut self.processors[number];
        processor.now += ns;
        self.tally.system_ns += ns;
        if let Some(thread) = processor.running {
            self.threads[thread].run_ns += ns;
            self.process_of(thread).spend_system(ns);
        }
    }

    /// Books kernel work without a process, done at `now`.
    pub(super) fn charge_nobody(&mut self, now: u64, ns: u64) {
        let processor = &mut self.processors[0];
        processor.now = processor.now.max(now);
        self.charge(0, ns);
    }

    /// The process of a space.
    pub(super) fn owner_of(&self, space: SpaceId) -> Option<usize> {
        *self.memory.owners.get(space.0 as usize)?
    }

    /// Gives idle processors to threads that want one.
    fn dispatch(&mut self) {
        while self.ready.len() > 0 {
            let idle = self.processors.iter().enumerate();
            let idle = idle.filter(|(_, processor)| processor.running.is_none());
            let Some(number) = idle.min_by_key(|(_, p)| p.now).map(|(number, _)| number) else {
                return;
            };
            let thread = self.ready.pop().expect("a thread is ready");
            let start = self.processors[number].now.max(self.threads[thread].since);
            self.shift(thread, State::Running, start);
            let processor = &mut self.processors[number];
            processor.now = start;
            processor.running = Some(thread);
            if processor.last.replace(thread) != Some(thread) {
                self.tally.switches += 1;
                self.charge(number, self.system.costs.switch_ns);
            }
            let weight = self.process_of(thread).weight;
            let turn_ns = self.ready.turn_ns(weight);
            self.processors[number].turn_end = self.processors[number].now + turn_ns;
        }
    }

    /// The busy processor that is furthest behind.
    fn find_behind(&self) -> Option<usize> {
        let numbered = self.processors.iter().enumerate();
        let busy = numbered.filter(|(_, processor)| processor.running.is_some());
        busy.min_by_key(|(_, processor)| processor.now)
            .map(|(number, _)| number)
    }

    fn next_event(&self) -> Option<u64> {
        let alarm = self.alarms.peek().map(|&Reverse((at, ..))| at);
        let disks = self.disks.iter().filter_map(Disk::next_done);
        let daemon = self.memories().filter_map(Memory::deadline).min();
        disks.chain(alarm).chain(daemon).min()
    }

    /// Takes in what is due at `at`: disks first, then alarms in the order they were set, then the
    /// page daemon.
    fn take_event(&mut self, at: u64) -> Result<(), WorldError> {
        let done = |disk: &Disk| disk.next_done() == Some(at);
        if let Some(number) = self.disks.iter().position(done) {
            self.moved_ns = at;
            if let Some((memory, errand)) = self.disks[number].finish(at)
                && self.turn_to(memory)
            {
                match errand {
                    Errand::Request(ticket) => self.take_reply(at, ticket),
                    Errand::Part { transfer, .. } => self.end_part(at, transfer),
                }
            }
            return Ok(());
        }
        let is_due = |&Reverse((due, ..)): &Reverse<(u64, u64, Alarm)>| due == at;
        if self.alarms.peek().is_some_and(is_due) {
            self.sound_alarm(at);
        } else {
            self.wake_daemon(at);
        }
        let is_still = self.awaited == 0 && self.find_behind().is_none();
        let is_still = is_still && self.ready.len() == 0;
        if is_still && self.disks_idle() && at - self.moved_ns.min(at) > STILL_NS {
            return Err(self.stuck(at));
        }
        Ok(())
    }

    fn sound_alarm(&mut self, at: u64) {
        let Reverse((_, _, alarm)) = self.alarms.pop().expect("an alarm is due");
        match alarm {
            Alarm::Birth(process) => {
                (self.awaited, self.moved_ns) = (self.awaited - 1, at);
                self.bear(process, at);
            }
            Alarm::Wake(thread) => {
                (self.awaited, self.moved_ns) = (self.awaited - 1, at);
                if self.threads[thread].state == State::Thinking {
                    self.make_ready(thread, at);
                }
            }
            Alarm::Look(process) => self.sound_look(process, at),
            Alarm::Tick => {
                self.set_alarm(at + self.system.tick_ns, alarm);
                self.tick(at);
            }
            Alarm::Divide => self.handle_division(at),
            Alarm::Sample => {
                self.take_sample(at);
                self.set_alarm(self.samples.next_ns(), alarm);
            }
        }
    }

    /// Lets a processor go on, for not longer than to `horizon`, which is ahead.
    fn step(&mut self, number: usize, horizon: u64) {
        let processor = self.processors[number];
        let running = processor.running.expect("a busy processor runs a thread");
        self.moved_ns = processor.now;
        if self.threads[running].state == State::Ended {
            self.processors[number].running = None;
            return;
        }
        if self.process_of(running).is_suspended {
            return self.stop_running(number, State::Suspended);
        }
        if processor.turn_end <= processor.now {
            if self.ready.len() > 0 {
                return self.stop_running(number, State::Ready);
            }
            let weight = self.process_of(running).weight;
            let turn_ns = self.ready.turn_ns(weight);
            self.processors[number].turn_end = processor.now + turn_ns;
        }
        let memory = self.process_of(running).memory;
        let is_there = self.turn_to(memory);
        assert!(is_there, "who runs has a memory");
        let thread = &self.threads[running];
        if thread.is_faulting {
            self.take_fault(number, running);
        } else if thread.copying.is_some() {
            self.copy_page(number, running);
        } else if thread.next_record >= thread.records_end() {
            self.act(number, running);
        } else {
            let mut until = horizon.min(self.processors[number].turn_end);
            if self.processors.len() > 1 {
                until = until.min(processor.now + AHEAD_NS);
            }
            self.run_records(number, running, until);
        }
    }

    /// Runs records of a thread until `until`, or until one faults or an event comes.
    fn run_records(&mut self, number: usize, running: usize, until: u64) {
        let thread = &mut self.threads[running];
        let process = &mut self.processes[thread.process];
        let space = process.space.expect("a running process has a space");
        let table = self.memory.tables.table(space);
        let is_watching = self.sees >= Sees::References;
        let course = process.course;
        let waits = match self.sees {
            Sees::Future => course.waits(),
            _ => &[],
        };
        let end = thread.records_end();
        if self.scenario.is_in_step
            && thread.after_fault.is_some()
            && let Some(record) = table.find_lost(course, thread.next_record)
        {
            thread.go_back(record);
            return;
        }
        if let Some(was_resident) = thread.after_fault.take() {
            let record = course.records[thread.next_record];
            let Some(frame) = table.run_again(record, was_resident) else {
                thread.is_faulting = true;
                return;
            };
            if is_watching && was_resident {
                self.memory.vm.handle_clock(space, process.ticks());
                self.memory.vm.handle_reference(frame);
            }
            if let Some(&wait) = waits.get(thread.next_record) {
                self.memory
                    .vm
                    .handle_foresight(frame, process.ticks_at_use(0, wait));
            }
            thread.next_record += 1;
            thread.gap_spent = 0;
        }
        let records = &course.records[thread.next_record..end];
        let span_ns = until - self.processors[number].now;
        let credit = thread.gap_spent;
        let units_max = process.units_in(span_ns).saturating_add(credit);
        let ran = if is_watching {
            let process = &*process;
            let mut waits = waits.iter().skip(thread.next_record);
            table.run(records, units_max, |frame, units| {
                let units = units - credit;
                self.memory
                    .vm
                    .handle_clock(space, process.ticks_after(units));
                self.memory.vm.handle_reference(frame);
                if let Some(&wait) = waits.next() {
                    self.memory
                        .vm
                        .handle_foresight(frame, process.ticks_at_use(units, wait));
                }
            })
        } else {
            table.run(records, units_max, |_, _| ())
        };
        thread.next_record += ran.records;
        thread.gap_spent = ran.gap_spent;
        thread.is_faulting = ran.stop == Stop::Fault;
        let ns = process.spend_user(ran.units - credit);
        thread.run_ns += ns;
        self.processors[number].now += ns;
        self.tally.user_ns += ns;
    }

    fn set_first_alarms(&mut self) {
        for process in 0..self.processes.len() {
            let found = &self.processes[process];
            if found.parent.is_none() {
                let start_ns = self.scenario.programs[found.program].start_ns;
                self.set_alarm(start_ns, Alarm::Birth(process));
            }
        }
        if self.system.tick_ns > 0 {
            self.set_alarm(self.system.tick_ns, Alarm::Tick);
        }
        if self.scenario.watch.sample_ns > 0 {
            self.set_alarm(0, Alarm::Sample);
        }
    }

    fn disks_idle(&self) -> bool {
        self.disks.iter().all(|disk| disk.depth() == 0)
    }

    fn stuck(&self, time_ns: u64) -> WorldError {
        let count = |state| self.threads.iter().filter(|t| t.state == state).count() as u32;
        WorldError::Stuck {
            time_ns,
            waiting: count(State::Paging) + count(State::Thinking),
            suspended: count(State::Suspended),
        }
    }
}

fn check(scenario: &Scenario) -> Result<(), WorldError> {
    let Some(first) = scenario.programs.first() else {
        return Err(WorldError::NoPrograms);
    };
    if scenario.processors == 0 {
        return Err(WorldError::NoProcessors);
    }
    if scenario.memory_pages < scenario.wired_pages.saturating_add(FRAMES_MIN) {
        return Err(WorldError::MemoryTooSmall {
            memory_pages: scenario.memory_pages,
            wired_pages: scenario.wired_pages,
            needs_pages: FRAMES_MIN,
        });
    }
    let one = first.script.page_bytes();
    let sizes = scenario.programs.iter().map(|p| p.script.page_bytes());
    match sizes.into_iter().find(|&other| other != one) {
        Some(other) => Err(WorldError::PageSizesDiffer { one, other }),
        None => Ok(()),
    }
}
