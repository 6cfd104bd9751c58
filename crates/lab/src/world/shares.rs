//! Shares: whose memory is whose, and how many frames each may use.
//!
//! Usually all processes share one memory, as under a kernel. In a world that is divided
//! ([`Scenario::is_divided`]) each program that is started or executed begins with a memory of its
//! own, as under `tidemark run`, and [`tidemark_partition`] says how many frames each is given:
//! when somebody comes, goes or asks for more, and at intervals. A forked child stays in its
//! parent's memory until it executes something.
//!
//! # Invariants
//! 1. One memory is at hand, `World::memory`; all others that are in use are parked.
//! 2. A memory that nobody uses is dropped when another takes its place. Replies to it go nowhere.
//! 3. A newcomer is [`State::Thinking`], and its process has no space.
//!
//! [`Scenario::is_divided`]: super::Scenario::is_divided

use std::collections::BTreeMap;

use tidemark_core::id::SpaceId;
use tidemark_core::load::tasks::TaskControl;
use tidemark_core::time::Time;
use tidemark_partition::{
    ADMISSION_NS, Admission, Divider, FRAMES_MIN, Holder, INTERVAL_NS, Occasion, TRANSFER_NS,
};

use super::engine::{Alarm, World};
use super::finding::Finding;
use super::memory::{Memory, Sums};
use super::thread::State;

/// The memories that are not at hand, and how far their division is.
#[derive(Default)]
pub(super) struct Shares {
    parked: BTreeMap<u32, Memory>,
    /// The sums of those that are gone.
    past: Sums,
    last_number: u32,
    /// Threads whose processes have no memory yet, and since when.
    newcomers: Vec<(usize, u64)>,
    /// The time at which frames are divided, if a process has come, gone or asked.
    asked_ns: Option<u64>,
    /// The time of the next look.
    next_ns: u64,
    /// The beginning of the next interval.
    interval_ns: u64,
    /// Since when frames have been on their way from one memory to another.
    unsettled_since: Option<u64>,
    /// Decides which tasks run.
    pub(super) control: Option<TaskControl>,
    /// A task has ended since that was last asked.
    pub(super) has_lost: bool,
}

/// The time until the part that divides has heard of something and engines have heard of the
/// outcome.
const WORD_NS: u64 = 100_000;

impl Shares {
    /// One memory, and a load control of those to come.
    pub(super) fn controlled_by(control: Option<TaskControl>) -> Shares {
        Shares {
            control,
            ..Shares::default()
        }
    }

    fn park(&mut self, memory: Memory) {
        if memory.processes > 0 {
            self.parked.insert(memory.number, memory);
            return;
        }
        memory.check();
        self.past.add(&memory);
    }

    /// Returns true if frames have been on their way for longer than is usual.
    fn is_slow(&self, now: u64) -> bool {
        let since = self.unsettled_since;
        since.is_some_and(|since| now - since > ADMISSION_NS)
    }
}

impl World<'_> {
    /// Takes the memory of that number to hand. False if it is gone.
    pub(super) fn turn_to(&mut self, number: u32) -> bool {
        if self.memory.number == number {
            return true;
        }
        let Some(memory) = self.shares.parked.remove(&number) else {
            return false;
        };
        self.take_to_hand(memory);
        true
    }

    /// All memories that are in use, and the one at hand.
    pub(super) fn memories(&self) -> impl Iterator<Item = &Memory> {
        std::iter::once(&self.memory).chain(self.shares.parked.values())
    }

    /// Their numbers, rising.
    pub(super) fn memory_numbers(&self) -> Vec<u32> {
        let mut numbers: Vec<u32> = self.memories().map(|memory| memory.number).collect();
        numbers.sort_unstable();
        numbers
    }

    /// The sums of all memories, those that are gone too.
    pub(super) fn sum_memories(&self) -> Sums {
        let mut sums = self.shares.past.clone();
        self.memories().for_each(|memory| sums.add(memory));
        sums
    }

    /// The number of pages that a process has mapped.
    pub(super) fn mapped_by(&self, process: usize) -> u32 {
        let process = &self.processes[process];
        let own = self.memories().find(|m| m.number == process.memory);
        own.zip(process.space)
            .map_or(0, |(memory, space)| memory.tables.mapped(space))
    }

    /// Has a thread wait for a memory of its process's own.
    ///
    /// - Needs: the process has no space.
    pub(super) fn ask_for_memory(&mut self, thread: usize, now: u64) {
        assert!(self.process_of(thread).space.is_none());
        self.shift(thread, State::Thinking, now);
        self.shares.newcomers.push((thread, now));
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
        let space = self.processes[process].space.take();
        let space = space.expect("a living process has a space");
        // What stands goes with the table.
        self.processes[process].finding = Finding::default();
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

    /// Looks whether frames are to be divided anew, and divides them.
    pub(super) fn handle_division(&mut self, now: u64) {
        let shares = &mut self.shares;
        let is_asked = shares.asked_ns.is_some_and(|due| now >= due);
        let is_over = now >= shares.interval_ns;
        if !is_asked && !is_over && now < shares.next_ns {
            return;
        }
        shares.asked_ns = None;
        let has_lost = std::mem::take(&mut shares.has_lost);
        if !is_over {
            if has_lost {
                self.control_load(now);
            }
            return self.divide(now, Occasion::Change);
        }
        shares.interval_ns = now + INTERVAL_NS;
        self.measure();
        if self.control_load(now) {
            self.divide(now, Occasion::Change);
        }
        self.divide(now, Occasion::Interval);
        self.each_memory(Memory::forget_asking);
    }

    /// Has frames divided anew if the memory at hand wants more, or has given up some.
    pub(super) fn look_for_shortage(&mut self, now: u64) {
        if self.scenario.is_divided && self.memory.is_managed && self.memory.has_news() {
            self.ask_for_division(now + WORD_NS);
        }
    }

    fn measure(&mut self) {
        let processes = &self.processes;
        let parked = self.shares.parked.values_mut();
        for memory in std::iter::once(&mut self.memory).chain(parked) {
            let owners = memory.owners.iter().flatten();
            let user_ns = owners.map(|&owner| processes[owner].ticks() * 1000).sum();
            memory.measure(user_ns);
        }
    }

    fn each_memory(&mut self, act: impl Fn(&mut Memory)) {
        act(&mut self.memory);
        self.shares.parked.values_mut().for_each(act);
    }

    pub(super) fn ask_for_division(&mut self, at: u64) {
        if self.shares.asked_ns.is_none_or(|due| at < due) {
            self.shares.asked_ns = Some(at);
            self.set_alarm(at, Alarm::Divide);
        }
    }

    /// Divides frames among all, and lets newcomers in for whom it suffices.
    fn divide(&mut self, now: u64, occasion: Occasion) {
        let is_member = |memory: &&Memory| memory.is_managed && memory.processes > 0;
        let mut members: Vec<(u32, Holder)> = self
            .memories()
            .filter(is_member)
            .map(|memory| (memory.number, memory.holder(now)))
            .collect();
        members.sort_unstable_by_key(|&(number, _)| number);
        let mut holders: Vec<Holder> = members.iter().map(|&(_, holder)| holder).collect();
        let newcomers = std::mem::take(&mut self.shares.newcomers);
        holders.extend(newcomers.iter().map(|_| Holder::NEW));
        let total = self.scenario.memory_pages - self.scenario.wired_pages;
        let division = Divider::default().divide(u64::from(total), &holders, occasion);
        self.each_memory(|memory| memory.note_share(division.fair));
        for (&(number, _), &frames) in members.iter().zip(&division.given) {
            self.set_limit(number, frames as u32, now);
        }
        for (newcomer, &frames) in newcomers.into_iter().zip(&division.given[members.len()..]) {
            let (thread, since) = newcomer;
            match division.admission(frames, now - since, false) {
                Admission::Admitted => self.admit(thread, (frames as u32, total), now),
                Admission::Waits => self.shares.newcomers.push(newcomer),
                Admission::TurnedAway => self.turn_away(thread, now),
            }
        }
        let is_leaving = self.memories().any(Memory::is_leaving);
        let is_settled = division.is_settled && !is_leaving && self.shares.newcomers.is_empty();
        self.plan_division(now, is_settled);
    }

    /// Decides when to look again: soon, while frames are on their way.
    fn plan_division(&mut self, now: u64, is_settled: bool) {
        let shares = &mut self.shares;
        shares.unsettled_since = match is_settled {
            true => None,
            false => shares.unsettled_since.or(Some(now)),
        };
        let is_hurried = !is_settled && (!shares.is_slow(now) || !shares.newcomers.is_empty());
        let soon = if is_hurried { TRANSFER_NS } else { INTERVAL_NS };
        shares.next_ns = shares.interval_ns.min(now + soon);
        let next_ns = shares.next_ns;
        self.set_alarm(next_ns, Alarm::Divide);
    }

    fn set_limit(&mut self, number: u32, frames: u32, now: u64) {
        assert!(self.turn_to(number), "members have a memory");
        if !self.memory.give(frames) {
            return;
        }
        self.memory.tell_limit(Time(now));
        let cost_ns = self.take_kernel_ns() + self.drain(now);
        self.charge_nobody(now, cost_ns);
        self.look_for_shortage(now);
    }

    /// Begins a memory for a thread's process: what it is given, and the most it can be.
    fn admit(&mut self, thread: usize, (frames, frames_max): (u32, u32), now: u64) {
        let memory = Memory::new(self.system, self.scenario, frames, frames_max);
        let mut memory = memory.expect("one like it was built before");
        self.shares.last_number += 1;
        memory.number = self.shares.last_number;
        self.take_to_hand(memory);
        let space = self.memory.vm.create_space();
        let process = self.threads[thread].process;
        self.settle_in(process, space);
        self.map_all(process);
        self.begin_looking(process, now);
        self.make_ready(thread, now);
    }

    /// Lets a process run without being managed: in memory beside the world's, as much as it likes.
    fn turn_away(&mut self, thread: usize, now: u64) {
        let pages = self.process_of(thread).course.pages() as u32;
        let ample = pages.max(FRAMES_MIN as u32) * 2;
        self.admit(thread, (ample, ample), now);
        self.memory.is_managed = false;
    }

    fn take_to_hand(&mut self, memory: Memory) {
        let before = std::mem::replace(&mut self.memory, memory);
        self.shares.park(before);
    }
}
