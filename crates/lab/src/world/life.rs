//! Processes' lives: birth, mappings, forks, waiting, and the end, as their traces tell.

use tidemark_core::id::{SpaceId, VirtPage};
use tidemark_core::machine::Rights;
use tidemark_core::space::Advice;
use tidemark_trace::Event;
use tidemark_trace::regions::HEAP;

use super::copies::Copying;
use super::engine::{Alarm, World};
use super::process::{Process, State};
use super::scenario::Scenario;
use super::script::{Script, is_file};
use super::system::System;

/// As many pages as an address space has.
const ALL_PAGES: u64 = 1 << 52;
/// The numbers of Linux's system calls that wait for a child: `wait4` and `waitid`, on x86-64 and
/// on aarch64. Those that have another meaning on the other wait for nothing.
const CHILD_CALLS: [u32; 4] = [61, 247, 260, 95];
/// `rt_sigsuspend` and `pselect6` on x86-64, where traces come from: a process that has children
/// waits with them for the signal that one has ended, as `make` and shells do.
const SIGNAL_CALLS: [u32; 2] = [130, 270];

impl World<'_> {
    /// Brings a process to life that nobody forks.
    pub(super) fn bear(&mut self, process: usize, now: u64) {
        self.processes[process].begin(now);
        self.alive += 1;
        if self.scenario.is_divided {
            return self.ask_for_memory(process, now);
        }
        let space = self.memory.vm.create_space();
        self.settle_in(process, space);
        self.map_all(process);
        self.make_ready(process, now);
    }

    /// Does what a process does between two records.
    pub(super) fn act(&mut self, number: usize, running: usize) {
        let now = self.processors[number].now;
        let process = &mut self.processes[running];
        let course = process.course;
        let (_, event_end) = process.strands.end();
        let Some((_, event)) = course.events[..event_end].get(process.next_event) else {
            return self.end_turn(number, running);
        };
        process.next_event += 1;
        match event {
            Event::Fork { child } => self.fork(number, running, *child),
            Event::FileRead { .. } | Event::FileWrite { .. } => {
                let copied = event.copied().expect("it tells of bytes");
                self.begin_copy(running, Copying::new(copied));
            }
            Event::FileCut { file, bytes } => self.cut_file(running, file, *bytes),
            Event::Wait { call, ns } => self.wait(number, running, *call, *ns),
            Event::Exit { .. } | Event::Killed { .. } => return self.end_running(number, running),
            Event::Exec { program } => {
                process.outcome.program.clone_from(program);
                process.heap = None;
                if self.scenario.is_in_step {
                    // Live it has an engine of its own, whose clock begins anew.
                    self.restart_ticks(now);
                }
                if self.scenario.is_divided {
                    self.leave_memory(running, now);
                    self.ask_for_memory(running, now);
                } else {
                    self.begin_anew(running);
                }
            }
            _ => {
                let space = process.space.expect("a running process has a space");
                self.change_mappings(running, space, event);
            }
        }
        let cost_ns = self.take_kernel_ns() + self.drain(now);
        self.charge(number, cost_ns);
        if self.processors[number].running == Some(running)
            && self.processes[running].state != State::Running
        {
            self.processors[number].running = None;
            let ended = self.processors[number].now;
            self.processes[running].put_off(ended);
        }
    }

    /// Ends a process that memory can't serve.
    pub(super) fn kill(&mut self, process: usize, now: u64) {
        self.processes[process].outcome.was_killed = true;
        self.end(process, now);
    }

    /// Goes on with another turn of the process, or waits, or ends it.
    fn end_turn(&mut self, number: usize, running: usize) {
        let process = &mut self.processes[running];
        if process.is_last_turn() {
            // Turns need not end in the order in which they began.
            process.next_record = process.course.records.len();
            return self.end_running(number, running);
        }
        if !process.end_turn() {
            self.stop_running(number, State::Paging);
        }
    }

    fn end_running(&mut self, number: usize, running: usize) {
        let now = self.processors[number].now;
        self.end(running, now);
        let cost_ns = self.take_kernel_ns() + self.drain(now);
        self.charge(number, cost_ns);
        self.processors[number].running = None;
        let ended = self.processors[number].now;
        self.processes[running].put_off(ended);
    }

    fn end(&mut self, process: usize, now: u64) {
        let found = &mut self.processes[process];
        found.shift(State::Ended, now);
        found.outcome.end_ns = found.since();
        found.outcome.records = found.next_record as u64;
        let parent = found.parent;
        self.leave_memory(process, now);
        self.alive -= 1;
        let Some(parent) = parent else { return };
        let found = &mut self.processes[parent];
        found.children -= 1;
        if found.is_waiting_for_child {
            found.is_waiting_for_child = false;
            self.make_ready(parent, now);
        } else {
            found.children_ended += 1;
        }
    }

    fn fork(&mut self, number: usize, running: usize, pid: u32) {
        let now = self.processors[number].now;
        self.charge(number, self.system.costs.fork_ns);
        let is_child = |process: &Process<'_>| {
            process.state == State::Unborn
                && process.parent == Some(running)
                && process.course.pid == pid
        };
        let Some(child) = self.processes.iter().position(is_child) else {
            return;
        };
        let space = self.processes[running]
            .space
            .expect("a running process has a space");
        let copy = self.memory.vm.fork(&mut self.memory.tables, space);
        self.processes[child].heap = self.processes[running].heap;
        self.processes[child].skip_inherited();
        self.processes[running].children += 1;
        self.processes[child].begin(now);
        self.alive += 1;
        self.settle_in(child, copy);
        self.make_ready(child, now);
    }

    /// Waits for the world as long as the process did when it was recorded; for a child, until
    /// one ends.
    fn wait(&mut self, number: usize, running: usize, call: u32, ns: u64) {
        let now = self.processors[number].now;
        let process = &mut self.processes[running];
        let is_parent = process.children > 0 || process.children_ended > 0;
        if CHILD_CALLS.contains(&call) || (is_parent && SIGNAL_CALLS.contains(&call)) {
            if process.children_ended > 0 {
                process.children_ended -= 1;
            } else if process.children > 0 {
                process.is_waiting_for_child = true;
                process.shift(State::Thinking, now);
            }
            return;
        }
        process.shift(State::Thinking, now);
        self.set_alarm(now.saturating_add(ns), Alarm::Wake(running));
    }

    /// Empties a process's space for another program.
    fn begin_anew(&mut self, running: usize) {
        let space = self.processes[running].space;
        let space = space.expect("a running process has a space");
        let memory = &mut self.memory;
        memory
            .vm
            .unmap(&mut memory.tables, space, VirtPage(0), ALL_PAGES);
        self.map_all(running);
    }

    /// A trace without mappings has its processes use what they like.
    pub(super) fn map_all(&mut self, running: usize) {
        let process = &self.processes[running];
        if !self.script_of(process.program).has_maps() {
            let space = process.space.expect("a running process has a space");
            let all = self
                .memory
                .vm
                .map_anonymous(space, VirtPage(0), ALL_PAGES, Rights::Write);
            all.expect("nothing else is mapped");
            self.advise(space, 0, ALL_PAGES);
        }
    }

    fn change_mappings(&mut self, running: usize, space: SpaceId, event: &Event) {
        match event {
            Event::Map { .. } => self.map(running, space, event),
            Event::Unmap { start, pages } => self.unmap(space, *start, *pages),
            Event::Remap {
                from,
                from_pages,
                to,
                to_pages,
            } => self.remap(space, (*from, *from_pages), (*to, *to_pages)),
            Event::Protect {
                start,
                pages,
                rights,
            } => {
                let (at, rights) = (VirtPage(*start), rights_of(*rights));
                self.memory
                    .vm
                    .protect(&mut self.memory.tables, space, at, *pages, rights);
            }
            Event::Break { end } => self.set_break(running, space, *end),
            Event::StackGrowth { start, pages } => self.map_anonymous(space, *start, *pages),
            Event::Start { .. }
            | Event::ThreadStart { .. }
            | Event::ThreadExit { .. }
            | Event::ThreadSwitch { .. }
            | Event::Fork { .. }
            | Event::Exec { .. }
            | Event::Wait { .. }
            | Event::Mark { .. }
            | Event::Exit { .. }
            | Event::Killed { .. }
            | Event::FileRead { .. }
            | Event::FileWrite { .. }
            | Event::FileCut { .. }
            | Event::Windows { .. } => {}
        }
    }

    fn map(&mut self, running: usize, space: SpaceId, event: &Event) {
        let Event::Map {
            start,
            pages,
            rights,
            is_shared,
            file,
            offset,
        } = event
        else {
            return;
        };
        if file == HEAP {
            self.processes[running].heap = Some((*start, start + pages));
        }
        self.unmap(space, *start, *pages);
        let (at, rights) = (VirtPage(*start), rights_of(*rights));
        let mapped = if is_file(file) {
            let number = self.processes[running].program;
            let first = offset / self.script_of(number).page_bytes();
            let program = &self.scenario.programs[number];
            let object = self.files.find(&program.file_key(number, file)).object;
            match is_shared {
                true => self
                    .memory
                    .vm
                    .map_object(space, at, *pages, object, first, rights),
                false => self
                    .memory
                    .vm
                    .map_private(space, at, *pages, object, first, rights),
            }
        } else if *is_shared {
            self.memory
                .vm
                .map_shared(space, at, *pages, rights)
                .map(|_| ())
        } else if self.scenario.is_apart {
            self.memory.vm.map_apart(space, at, *pages, rights)
        } else {
            self.memory.vm.map_anonymous(space, at, *pages, rights)
        };
        self.tally.irregular += u64::from(mapped.is_err());
        self.advise(space, *start, *pages);
    }

    /// Says of new memory what its program says of all its memory.
    fn advise(&mut self, space: SpaceId, start: u64, pages: u64) {
        let Some(owner) = self.owner_of(space) else {
            return;
        };
        let advice = self.scenario.programs[self.processes[owner].program].advice;
        if advice != Advice::Normal {
            self.memory.vm.advise(space, VirtPage(start), pages, advice);
        }
    }

    fn unmap(&mut self, space: SpaceId, start: u64, pages: u64) {
        let at = VirtPage(start);
        self.memory
            .vm
            .unmap(&mut self.memory.tables, space, at, pages);
    }

    fn remap(&mut self, space: SpaceId, from: (u64, u64), to: (u64, u64)) {
        let kept = from.1.min(to.1);
        if from.0 != to.0 {
            let (old, new) = (VirtPage(from.0), VirtPage(to.0));
            self.memory
                .vm
                .remap(&mut self.memory.tables, space, old, new, kept);
        }
        if from.1 > kept {
            self.unmap(space, from.0 + kept, from.1 - kept);
        }
        if to.1 > kept {
            self.unmap(space, to.0 + kept, to.1 - kept);
            self.map_anonymous(space, to.0 + kept, to.1 - kept);
        }
    }

    fn set_break(&mut self, running: usize, space: SpaceId, end: u64) {
        // Recorders tell where a heap begins by where it first ends.
        let (start, before) = self.processes[running].heap.unwrap_or((end, end));
        let end = end.max(start);
        if end > before {
            self.map_anonymous(space, before, end - before);
        } else if end < before {
            self.unmap(space, end, before - end);
        }
        self.processes[running].heap = Some((start, end));
    }

    /// Maps memory that grows, where nothing is mapped yet.
    fn map_anonymous(&mut self, space: SpaceId, start: u64, pages: u64) {
        let at = VirtPage(start);
        let mapped = self
            .memory
            .vm
            .map_anonymous(space, at, pages, Rights::Write);
        self.tally.irregular += u64::from(mapped.is_err());
        self.advise(space, start, pages);
    }

    fn script_of(&self, program: usize) -> &Script {
        &self.scenario.programs[program].script
    }
}

/// The processes of a scenario, each with its parent: a process that forks it by its number.
pub(super) fn collect_processes<'a>(system: &System, scenario: &'a Scenario) -> Vec<Process<'a>> {
    let mut processes: Vec<Process<'a>> = Vec::new();
    for (number, program) in scenario.programs.iter().enumerate() {
        let script = &*program.script;
        let first = processes.len();
        let forks = |parent: &super::script::Course, child: u32| {
            let is_fork = |(_, event): &(u64, Event)| *event == Event::Fork { child };
            parent.events.iter().any(is_fork)
        };
        for course in &script.courses {
            let mut process = Process::new(
                number,
                course,
                program.weight,
                script.time(),
                &system.costs,
                scenario.are_threads_overlapping,
            );
            let is_parent = |other: &super::script::Course| {
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
    processes
}

fn rights_of(rights: tidemark_trace::Rights) -> Rights {
    if rights.0 & tidemark_trace::Rights::WRITE.0 != 0 {
        Rights::Write
    } else if rights.0 == 0 {
        Rights::None
    } else {
        Rights::Read
    }
}
