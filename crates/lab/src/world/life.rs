//! Processes' lives: birth, mappings, forks, waiting, and the end, as their traces tell.

use tidemark_core::id::{SpaceId, VirtPage};
use tidemark_core::memory::address_space::Advice;
use tidemark_core::seams::machine::Rights;
use tidemark_trace::{Event, FileEvent, LifeEvent, MappingEvent, Memory};

use super::engine::{Alarm, World};
use super::file_call::FileCall;
use super::files::File;
use super::process::{Life, Process};
use super::script::Script;
use super::thread::State;

/// As many pages as an address space has.
const ALL_PAGES: u64 = 1 << 52;
/// The numbers of Linux's system calls that wait for a child: `wait4` and `waitid`, on x86-64 and
/// on aarch64. Those that have another meaning on the other wait for nothing.
const CHILD_CALLS: [u32; 4] = [61, 247, 260, 95];
/// `rt_sigsuspend` and `pselect6` on x86-64, where traces come from: a process that has children
/// waits with them for the signal that one has ended, as `make` and shells do.
const SIGNAL_CALLS: [u32; 2] = [130, 270];

impl World<'_> {
    /// Brings a process to life that is not forked.
    pub(super) fn bear(&mut self, process: usize, now: u64) {
        let thread = self.begin(process, now);
        if self.scenario.is_divided {
            return self.ask_for_memory(thread, now);
        }
        let space = self.memory.vm.create_space();
        self.settle_in(process, space);
        self.map_all(process);
        self.make_ready(thread, now);
    }

    /// Begins a process's life, and answers the thread that it begins with.
    fn begin(&mut self, process: usize, now: u64) -> usize {
        let found = &mut self.processes[process];
        found.begin(now);
        self.alive += 1;
        let threads = found.threads.clone();
        for thread in threads.clone() {
            self.shift(thread, State::Parked, now);
        }
        let order = &self.processes[process].order;
        let has_begun = self.threads[threads.start].begin_turn(order);
        assert!(has_begun, "the first turn does not wait");
        threads.start
    }

    /// Does what a thread does between two records.
    pub(super) fn act(&mut self, number: usize, running: usize) {
        let now = self.processors[number].now;
        let thread = &mut self.threads[running];
        let process = thread.process;
        let Some(place) = thread.take_event() else {
            return self.end_turn(number, running);
        };
        let (_, event) = &thread.course.events[place];
        let is_awaited = self.processes[process].order.note(place, event);
        match event {
            Event::Life(LifeEvent::Fork { child }) => self.fork(number, process, *child),
            Event::File(FileEvent::Read { .. } | FileEvent::Write { .. }) => {
                let copied = event.copied().expect("it has bytes");
                self.begin_copy(running, FileCall::new(copied));
            }
            Event::File(FileEvent::Cut { file, bytes }) => self.cut_file(running, file, *bytes),
            Event::Life(LifeEvent::Wait { call, ns }) => self.wait(number, running, *call, *ns),
            Event::Life(LifeEvent::Exit { .. } | LifeEvent::Killed { .. }) => {
                return self.end_running(number, running);
            }
            Event::Life(LifeEvent::Exec { program }) => {
                let found = &mut self.processes[process];
                found.outcome.program.clone_from(program);
                found.heap = None;
                if self.scenario.is_in_step {
                    // Live it has an engine of its own, whose clock begins anew.
                    self.restart_ticks(now);
                }
                if self.scenario.is_divided {
                    self.leave_memory(process, now);
                    self.ask_for_memory(running, now);
                } else {
                    self.begin_anew(process);
                }
            }
            Event::Mapping(event) => {
                let space = self.processes[process].space;
                let space = space.expect("a running process has a space");
                self.processes[process].unfound.note_change();
                self.change_mappings(process, space, event);
            }
            // A thread has a stack of its own.
            Event::Life(_) => self.processes[process].unfound.note_change(),
            Event::Mark { .. } | Event::Windows { .. } | Event::Visit | Event::Size { .. } => {}
        }
        let cost_ns = self.take_kernel_ns() + self.drain(now);
        self.charge(number, cost_ns);
        if is_awaited {
            self.wake_parked(number, process);
        }
        if self.processors[number].running == Some(running)
            && self.threads[running].state != State::Running
        {
            self.processors[number].running = None;
            let ended = self.processors[number].now;
            self.put_off(running, ended);
        }
    }

    /// Ends a process that memory can't serve.
    pub(super) fn kill(&mut self, process: usize, now: u64) {
        if self.processes[process].life == Life::Alive {
            self.processes[process].outcome.was_killed = true;
            self.end(process, now);
        }
    }

    /// Goes on with the thread's next turn, or has it wait for others, or ends it.
    fn end_turn(&mut self, number: usize, running: usize) {
        let thread = &mut self.threads[running];
        let process = thread.process;
        let order = &mut self.processes[process].order;
        let has_next = thread.end_turn(order);
        if order.is_done() {
            return self.end_running(number, running);
        }
        if !has_next {
            self.stop_running(number, State::Ended);
        } else if !thread.begin_turn(order) {
            self.stop_running(number, State::Parked);
        }
        self.wake_parked(number, process);
    }

    /// Has threads go on that have waited for what has just happened.
    fn wake_parked(&mut self, number: usize, process: usize) {
        let now = self.processors[number].now;
        let found = &self.processes[process];
        for thread in found.threads.clone() {
            let order = &self.processes[process].order;
            let found = &mut self.threads[thread];
            if found.state == State::Parked && found.begin_turn(order) {
                self.make_ready(thread, now);
            }
        }
    }

    fn end_running(&mut self, number: usize, running: usize) {
        let now = self.processors[number].now;
        let process = self.threads[running].process;
        self.end(process, now);
        let cost_ns = self.take_kernel_ns() + self.drain(now);
        self.charge(number, cost_ns);
        self.processors[number].running = None;
        let ended = self.processors[number].now;
        let outcome = &mut self.processes[process].outcome;
        outcome.end_ns = outcome.end_ns.max(ended);
    }

    fn end(&mut self, process: usize, now: u64) {
        self.close(process, now);
        let found = &mut self.processes[process];
        let parent = found.parent;
        self.leave_memory(process, now);
        self.alive -= 1;
        let Some(parent) = parent else { return };
        let found = &mut self.processes[parent];
        found.children -= 1;
        if found.waiting_for_child.is_empty() {
            found.children_ended += 1;
        } else {
            let thread = found.waiting_for_child.remove(0);
            self.make_ready(thread, now);
        }
    }

    /// Ends a process's threads, and says when that was and how far they had come.
    pub(super) fn close(&mut self, process: usize, now: u64) {
        let threads = self.processes[process].threads.clone();
        let mut end_ns = now;
        let mut records = self.processes[process].order.records_over;
        for thread in threads {
            if self.threads[thread].state == State::Ready {
                self.ready.remove(thread);
            }
            records += self.threads[thread].records_done(&self.processes[process].order);
            self.shift(thread, State::Ended, now);
            end_ns = end_ns.max(self.threads[thread].since);
        }
        let found = &mut self.processes[process];
        found.life = Life::Ended;
        found.outcome.end_ns = end_ns;
        found.outcome.records = records as u64;
    }

    fn fork(&mut self, number: usize, parent: usize, pid: u32) {
        let now = self.processors[number].now;
        self.charge(number, self.system.costs.fork_ns);
        let is_child = |process: &Process<'_>| {
            process.life == Life::Unborn
                && process.parent == Some(parent)
                && process.course.pid == pid
        };
        let Some(child) = self.processes.iter().position(is_child) else {
            return;
        };
        let space = self.processes[parent]
            .space
            .expect("a running process has a space");
        if self.finds_late() {
            // The engine knows of all that it has to copy.
            self.find_memory(parent, now);
        }
        let copy = self.memory.vm.fork(&mut self.memory.tables, space);
        self.processes[child].heap = self.processes[parent].heap;
        self.processes[parent].children += 1;
        let thread = self.begin(child, now);
        self.threads[thread].skip_inherited();
        self.settle_in(child, copy);
        self.inherit_growth(child, parent);
        self.begin_looking(child, now);
        self.make_ready(thread, now);
    }

    /// Waits for the world as long as the process did when it was recorded; for a child, until
    /// one ends.
    fn wait(&mut self, number: usize, running: usize, call: u32, ns: u64) {
        let now = self.processors[number].now;
        let process = self.process_of(running);
        let is_parent = process.children > 0 || process.children_ended > 0;
        if CHILD_CALLS.contains(&call) || (is_parent && SIGNAL_CALLS.contains(&call)) {
            if process.children_ended > 0 {
                process.children_ended -= 1;
            } else if process.children > 0 {
                process.waiting_for_child.push(running);
                self.shift(running, State::Thinking, now);
            }
            return;
        }
        self.shift(running, State::Thinking, now);
        self.set_alarm(now.saturating_add(ns), Alarm::Wake(running));
    }

    /// Empties a process's space for another program.
    fn begin_anew(&mut self, process: usize) {
        let space = self.processes[process].space;
        let space = space.expect("a running process has a space");
        let memory = &mut self.memory;
        memory
            .vm
            .unmap(&mut memory.tables, space, VirtPage(0), ALL_PAGES);
        self.map_all(process);
    }

    /// A trace without mappings has its processes use what they like.
    pub(super) fn map_all(&mut self, process: usize) {
        let process = &self.processes[process];
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

    fn change_mappings(&mut self, process: usize, space: SpaceId, event: &MappingEvent) {
        match event {
            MappingEvent::Map { .. } => self.map(process, space, event),
            MappingEvent::Unmap { start, pages } => self.unmap(space, *start, *pages),
            MappingEvent::Remap {
                from,
                from_pages,
                to,
                to_pages,
            } => self.remap(process, space, (*from, *from_pages), (*to, *to_pages)),
            MappingEvent::Protect {
                start,
                pages,
                rights,
            } => {
                let (at, rights) = (VirtPage(*start), rights_of(*rights));
                self.memory
                    .vm
                    .protect(&mut self.memory.tables, space, at, *pages, rights);
            }
            MappingEvent::Break { end } => self.set_break(process, space, *end),
            MappingEvent::StackGrowth { start, pages } => self.map_anonymous(space, *start, *pages),
        }
    }

    fn map(&mut self, process: usize, space: SpaceId, event: &MappingEvent) {
        let MappingEvent::Map {
            start,
            pages,
            rights,
            is_shared,
            memory,
            offset,
        } = event
        else {
            return;
        };
        if *memory == Memory::Heap {
            self.processes[process].heap = Some((*start, start + pages));
        }
        self.unmap(space, *start, *pages);
        match memory {
            Memory::HeapPiece if self.finds_late() => {
                return self.let_grow(process, *start, start + pages);
            }
            Memory::Inner if self.finds_late() => {
                return self.map_unseen(process, *start, start + pages);
            }
            _ => {}
        }
        let (at, rights) = (VirtPage(*start), rights_of(*rights));
        let mapped = if let Some(file) = memory.file() {
            let number = self.processes[process].program;
            let first = offset / self.script_of(number).page_bytes();
            let program = &self.scenario.programs[number];
            let File { object, pager, .. } = self.files.find(&program.file_key(number, file));
            let vm = &mut self.memory.vm;
            match is_shared {
                // A live engine has pages of its own for each mapping.
                _ if self.scenario.is_apart => vm.map_copy(space, at, *pages, pager, first, rights),
                true => vm.map_object(space, at, *pages, object, first, rights),
                false => vm.map_private(space, at, *pages, object, first, rights),
            }
        } else if *is_shared {
            self.memory
                .vm
                .map_shared(space, at, *pages, rights)
                .map(|_| ())
        } else {
            return self.map_new(space, *start, *pages, rights);
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

    pub(super) fn unmap(&mut self, space: SpaceId, start: u64, pages: u64) {
        let at = VirtPage(start);
        if let Some(owner) = self.owner_of(space) {
            self.cut_unseen(owner, space, start, start.saturating_add(pages));
        }
        self.memory
            .vm
            .unmap(&mut self.memory.tables, space, at, pages);
    }

    fn remap(&mut self, process: usize, space: SpaceId, from: (u64, u64), to: (u64, u64)) {
        if self.move_unseen(process, space, from, to) {
            return;
        }
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

    fn set_break(&mut self, process: usize, space: SpaceId, end: u64) {
        // Recorders tell where a heap begins by where it first ends.
        let (start, before) = self.processes[process].heap.unwrap_or((end, end));
        let end = end.max(start);
        if end > before && self.finds_late() {
            self.grow_unseen(process, before, end);
        } else if end > before {
            self.map_anonymous(space, before, end - before);
        } else if end < before {
            self.unmap(space, end, before - end);
        }
        self.processes[process].heap = Some((start, end));
    }

    /// Makes an anonymous mapping where nothing is mapped yet.
    pub(super) fn map_new(&mut self, space: SpaceId, start: u64, pages: u64, rights: Rights) {
        let (vm, at) = (&mut self.memory.vm, VirtPage(start));
        let mapped = match self.scenario.is_apart {
            true => vm.map_apart(space, at, pages, rights),
            false => vm.map_anonymous(space, at, pages, rights),
        };
        self.tally.irregular += u64::from(mapped.is_err());
        self.advise(space, start, pages);
    }

    /// Maps memory that grows, where nothing is mapped yet.
    pub(super) fn map_anonymous(&mut self, space: SpaceId, start: u64, pages: u64) {
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

fn rights_of(rights: tidemark_trace::Rights) -> Rights {
    if rights.0 & tidemark_trace::Rights::WRITE.0 != 0 {
        Rights::Write
    } else if rights.0 == 0 {
        Rights::None
    } else {
        Rights::Read
    }
}
