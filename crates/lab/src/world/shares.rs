//! Shares: whose memory is whose, and how many frames each may use.
//!
//! Usually all processes share one memory, as under a kernel. In a world that is divided
//! ([`Scenario::is_divided`]) each program that is started or executed begins with a memory of its
//! own, as under `tidemark run`, and the [`Steward`] says how many frames each is given: when
//! a process comes, goes or asks for more, and at intervals. A forked child stays in its
//! parent's memory until it executes something.
//!
//! # Invariants
//! 1. One memory is at hand, `World::memory`; all others that are in use are parked.
//! 2. A memory that no process uses is dropped when another takes its place. Replies to it go
//!    nowhere.
//! 3. A newcomer is [`State::Thinking`], and its process has no space.
//!
//! [`Scenario::is_divided`]: super::Scenario::is_divided

use tidemark_core::id::SpaceId;
use tidemark_core::time::Time;
use tidemark_partition::FRAMES_MIN;
use tidemark_tasks::{Action, Record, Remains, Steward, TaskId};

use super::engine::{Alarm, World};
use super::memory::{Memory, Sums};
use super::thread::State;
use super::unfound::Unfound;

/// The time until the part that divides has heard of something and engines have heard of the
/// outcome.
const WORD_NS: u64 = 100_000;

impl World<'_> {
    /// Takes the memory of that number to hand. False if it is gone.
    pub(super) fn turn_to(&mut self, number: u32) -> bool {
        if self.memory.number == number {
            return true;
        }
        let Some(memory) = self.division.parked.remove(&number) else {
            return false;
        };
        self.take_to_hand(memory);
        true
    }

    /// The memory of that number, unless it is gone.
    pub(super) fn memory_of(&self, number: u32) -> Option<&Memory> {
        match self.memory.number == number {
            true => Some(&self.memory),
            false => self.division.parked.get(&number),
        }
    }

    /// All memories that are in use, and the one at hand.
    pub(super) fn memories(&self) -> impl Iterator<Item = &Memory> {
        std::iter::once(&self.memory).chain(self.division.parked.values())
    }

    /// The numbers of all memories in use, rising.
    pub(super) fn memory_numbers(&self) -> Vec<u32> {
        let mut numbers: Vec<u32> = self.memories().map(|memory| memory.number).collect();
        numbers.sort_unstable();
        numbers
    }

    /// The sums of all memories, those that are gone too.
    pub(super) fn sum_memories(&self) -> Sums {
        let mut sums = self.division.past.clone();
        self.memories().for_each(|memory| sums.add(memory));
        sums
    }

    /// The number of pages that a process has mapped.
    pub(super) fn mapped_by(&self, process: usize) -> u32 {
        let process = &self.processes[process];
        let own = self.memory_of(process.memory);
        own.zip(process.space)
            .map_or(0, |(memory, space)| memory.tables.mapped(space))
    }

    /// Has a thread wait for a memory of its process's own.
    ///
    /// - Needs: the process has no space.
    pub(super) fn ask_for_memory(&mut self, thread: usize, now: u64) {
        assert!(self.process_of(thread).space.is_none());
        self.shift(thread, State::Thinking, now);
        self.division.newcomers.push((thread, now, None));
        self.ask_for_division(now);
    }

    /// Gives a process a space in the memory at hand.
    pub(super) fn settle_in(&mut self, process: usize, space: SpaceId) {
        let number = space.0 as usize;
        let owners = &mut self.memory.owners;
        if owners.len() <= number {
            owners.resize(number + 1, None);
        }
        owners[number] = Some(process);
        let found = &mut self.processes[process];
        self.memory.tables.create(space, found.course);
        self.memory.processes += 1;
        (found.space, found.memory) = (Some(space), self.memory.number);
    }

    /// Takes a process's space from it, and all that is mapped there.
    ///
    /// - Needs: its memory is at hand.
    pub(super) fn leave_memory(&mut self, process: usize, now: u64) {
        let mut past = self.memory.past;
        self.add_counts(&self.memory, process, &mut past);
        self.memory.past = past;
        let space = self.processes[process].space.take();
        let space = space.expect("a living process has a space");
        // What stands goes with the table.
        self.processes[process].unfound = Unfound::default();
        let memory = &mut self.memory;
        memory.vm.destroy_space(&mut memory.tables, space);
        memory.tables.destroy(space);
        memory.owners[space.0 as usize] = None;
        memory.processes -= 1;
        if self.scenario.is_divided && memory.processes == 0 {
            self.note_task_end();
            self.ask_for_division(now);
        }
    }

    /// Tells the steward what is new, or that time has passed, and does what it says.
    pub(super) fn handle_division(&mut self, now: u64) {
        let is_asked = self.division.asked_ns.is_some_and(|due| now >= due);
        let steward = self.division.steward.as_ref();
        let due = steward
            .expect("it is at work in here alone")
            .poll_deadline();
        if !is_asked && Time(now) < due {
            return;
        }
        self.division.asked_ns = None;
        let mut steward = self.division.steward.take().expect("it was there");
        for (task, remains) in std::mem::take(&mut self.division.gone) {
            steward.handle_gone(task, remains);
        }
        for (_, since, task) in &mut self.division.newcomers {
            task.get_or_insert_with(|| steward.handle_arrival(Time(*since), None));
        }
        self.tell_steward(&mut steward, now);
        while let Some(action) = steward.poll_action() {
            self.carry_out(&mut steward, action, now);
        }
        self.hold_all_down(now);
        self.set_alarm(steward.poll_deadline().0, Alarm::Divide);
        self.division.steward = Some(steward);
    }

    fn carry_out(&mut self, steward: &mut Steward, action: Action, now: u64) {
        match action {
            Action::Admit { task, frames } => {
                let total = self.scenario.memory_pages - self.scenario.wired_pages;
                self.admit(task, (frames as u32, total), now);
                self.memory.task = Some(task);
                steward.handle_admitted(task, Record(self.memory.number));
            }
            Action::TurnAway(task) => self.turn_away(task, now),
            // What is written is done at once.
            Action::Poke(_) | Action::Turn { .. } | Action::Suspension { .. } => {}
        }
    }

    /// Has the steward hear that no process uses the memory at hand any more.
    fn note_task_end(&mut self) {
        let counters = self.memory.vm.counters();
        let remains = Remains {
            page_outs: counters.page_outs,
            page_out_requests: counters.page_out_requests,
            pages: self.memory.size().into(),
        };
        let task = self.memory.task.take();
        self.division.gone.extend(task.map(|task| (task, remains)));
    }

    /// Has frames divided anew if the memory at hand wants more, or has given up some.
    pub(super) fn look_for_shortage(&mut self, now: u64) {
        if self.scenario.is_divided && self.memory.is_managed && self.memory.has_news() {
            self.ask_for_division(now + WORD_NS);
        }
    }

    pub(super) fn ask_for_division(&mut self, at: u64) {
        if self.division.asked_ns.is_none_or(|due| at < due) {
            self.division.asked_ns = Some(at);
            self.set_alarm(at, Alarm::Divide);
        }
    }

    /// Has the memory at hand use up to `frames`.
    pub(super) fn set_limit(&mut self, frames: u32, now: u64) {
        let (task_memory, vm, tables) = self.memory.parts();
        task_memory.handle_budget(Time(now), frames, vm, tables);
        let cost_ns = self.take_kernel_ns() + self.drain(now);
        self.charge_nobody(now, cost_ns);
        self.look_for_shortage(now);
    }

    /// Begins a memory for a newcomer: what it is given, and the most it can be.
    fn admit(&mut self, task: TaskId, (frames, frames_max): (u32, u32), now: u64) {
        let thread = self.thread_of(task);
        self.division
            .newcomers
            .retain(|newcomer| newcomer.2 != Some(task));
        let memory = Memory::new(self.system, self.scenario, frames, frames_max);
        let mut memory = memory.expect("one like it was built before");
        self.division.last_number += 1;
        memory.number = self.division.last_number;
        self.take_to_hand(memory);
        let space = self.memory.vm.create_space();
        let process = self.threads[thread].process;
        self.settle_in(process, space);
        self.map_all(process);
        self.begin_looking(process, now);
        self.make_ready(thread, now);
    }

    /// Lets a process run without being managed: in memory beside the world's, as much as it likes.
    fn turn_away(&mut self, task: TaskId, now: u64) {
        let thread = self.thread_of(task);
        let pages = self.process_of(thread).course.pages() as u32;
        let ample = pages.max(FRAMES_MIN as u32) * 2;
        self.admit(task, (ample, ample), now);
        self.memory.is_managed = false;
    }

    fn thread_of(&self, task: TaskId) -> usize {
        let mut newcomers = self.division.newcomers.iter();
        let found = newcomers.find(|newcomer| newcomer.2 == Some(task));
        found.expect("it waits for its memory").0
    }

    fn take_to_hand(&mut self, memory: Memory) {
        let before = std::mem::replace(&mut self.memory, memory);
        self.division.park(before);
    }
}
