//! The kernel's part: faults, requests to disks, replies, and what the core has to say.

use tidemark_core::driver::Driver;
use tidemark_core::event::{Access, Event, Fault, Resolution, Service};
use tidemark_core::id::{SpaceId, Ticket, VirtPage, Waiter};
use tidemark_core::load::Turn;
use tidemark_core::seams::machine::Rights;
use tidemark_core::seams::pager::{Direction, Outcome, Place, Reply, Request};
use tidemark_core::time::Time;

use super::compressed::{Compressed, Effort};
use super::disk::{DiskRequest, Errand};
use super::engine::World;
use super::memory::Memory;
use super::thread::State;

/// The disk of swap, and that of files if it is another.
const SWAP: usize = 0;

impl<'a> World<'a> {
    /// Serves the fault of a thread on its processor.
    pub(super) fn take_fault(&mut self, number: usize, running: usize) {
        if self.fill_unseen(number, running) {
            return;
        }
        let now = self.processors[number].now;
        let thread = &mut self.threads[running];
        let process = &mut self.processes[thread.process];
        let record = process.course.records[thread.next_record];
        let space = process.space.expect("a running process has a space");
        let fault = Fault {
            space,
            at: VirtPage(process.course.page_at(record.place())),
            access: match record.is_store() {
                true => Access::Write,
                false => Access::Read,
            },
            waiter: Waiter(running as u64),
        };
        thread.is_faulting = false;
        process.outcome.faults += 1;
        if !self.scenario.is_in_step {
            self.memory.vm.handle_clock(space, process.ticks());
        }
        let resolution = self
            .memory
            .vm
            .handle_fault(Time(now), &mut self.memory.tables, fault);
        let mut cost_ns = self.system.costs.fault_ns;
        match resolution {
            Resolution::Resolved(service) => {
                self.threads[running].after_fault = Some(service == Service::Minor);
            }
            Resolution::Pending(_) => {
                self.process_of(running).outcome.waits += 1;
                self.threads[running].after_fault = Some(false);
                self.shift(running, State::Paging, now);
            }
            Resolution::Invalid => {
                self.permit(fault);
                self.threads[running].is_faulting = true;
            }
        }
        cost_ns += self.conclude(now);
        self.charge(number, cost_ns);
        if matches!(resolution, Resolution::Pending(_)) {
            self.processors[number].running = None;
            // The thread has waited from when the kernel was done with its fault.
            let ended = self.processors[number].now;
            self.put_off(running, ended);
        }
    }

    /// Takes in the end of a request.
    pub(super) fn take_reply(&mut self, now: u64, ticket: Ticket) {
        let outcome = Outcome::Done;
        let reply = Reply { ticket, outcome };
        self.memory
            .vm
            .handle_reply(Time(now), &mut self.memory.tables, reply);
        let cost_ns = self.conclude(now);
        self.charge_nobody(now, cost_ns);
    }

    /// Takes in the end of a part of a transfer of compressed memory.
    pub(super) fn end_part(&mut self, now: u64, transfer: u64) {
        let memory = &mut self.memory;
        let compressed = memory.compressed.as_mut();
        let compressed = compressed.expect("it has asked for that");
        compressed.end_part(transfer, &mut memory.vm, &mut memory.tables);
        let mut kernel = self.at(now);
        kernel.take_replies();
        kernel.conclude();
        let cost_ns = kernel.cost_ns;
        self.charge_nobody(now, cost_ns);
    }

    /// Tells the memory the time.
    pub(super) fn tick(&mut self, now: u64) {
        for number in 0..self.processes.len() {
            let process = &self.processes[number];
            let Some(space) = process.space else { continue };
            let memory = process.memory;
            self.turn_to(memory);
            let turn = self.turn_of(number);
            if !self.scenario.is_in_step {
                let ticks = self.processes[number].ticks();
                self.memory.vm.handle_clock(space, ticks);
            }
            self.memory.vm.handle_turn(space, turn);
        }
        for number in self.memory_numbers() {
            self.turn_to(number);
            let memory = &mut self.memory;
            memory.vm.handle_tick(Time(now), &mut memory.tables);
            let cost_ns = self.conclude(now);
            self.charge_nobody(now, cost_ns);
        }
    }

    /// The turn of a process: as soon as the first of its threads that want to.
    fn turn_of(&self, process: usize) -> Turn {
        let is_active = |thread: &usize| {
            use State::{Ended, Parked, Thinking, Unborn};
            !matches!(
                self.threads[*thread].state,
                Unborn | Parked | Thinking | Ended
            )
        };
        let order = |thread: usize| match self.threads[thread].state {
            // Who runs will be queued behind all others.
            State::Running => self.ready.order_behind(thread, self.fair_ns(thread)),
            _ => self.ready.order_of(thread, self.fair_ns(thread)),
        };
        let threads = self.processes[process].threads.clone();
        let first = threads.start;
        let active = threads.filter(is_active).map(order).min();
        Turn {
            order: active.unwrap_or_else(|| order(first)),
            ran_ns: match self.scenario.is_in_step {
                // Its duration means nothing where time is counted in faults.
                true => 0,
                false => self.processes[process].outcome.user_ns,
            },
            is_active: active.is_some(),
        }
    }

    /// Resumes the page daemon that is due at `now`.
    pub(super) fn wake_daemon(&mut self, now: u64) {
        let mut due = self
            .memories()
            .filter(|memory| memory.deadline() == Some(now));
        let number = due.next().expect("a daemon is due").number;
        drop(due);
        self.turn_to(number);
        self.memory
            .vm
            .handle_deadline(Time(now), &mut self.memory.tables);
        let cost_ns = self.take_kernel_ns() + self.drain(now);
        self.charge_nobody(now, cost_ns);
    }

    /// Carries out the outcome of a fault or a reply, then has room made for the next ones. Returns
    /// the cost of all of it.
    pub(super) fn conclude(&mut self, now: u64) -> u64 {
        let cost_ns = self.take_kernel_ns();
        let mut kernel = self.at(now);
        kernel.conclude();
        cost_ns + kernel.cost_ns
    }

    /// Takes the cost of the core's last call, requests apart.
    pub(super) fn take_kernel_ns(&mut self) -> u64 {
        let costs = &self.system.costs;
        let work = self.memory.tables.take_work();
        let questions = self.memory.vm.counters().questions - self.memory.questions;
        self.memory.questions += questions;
        self.tally.mappings += work.mappings;
        let policy_ns = questions * costs.question_ns;
        self.tally.policy_ns += policy_ns;
        policy_ns
            + work.mappings * (costs.page_table_ns + costs.reverse_map_ns)
            + work.zeros * costs.zero_ns
            + work.copies * costs.copy_ns
    }

    /// Carries out what the core wants done, and answers what starting requests cost.
    pub(super) fn drain(&mut self, now: u64) -> u64 {
        let mut kernel = self.at(now);
        kernel.carry_out();
        kernel.cost_ns
    }

    fn at<'w>(&'w mut self, now: u64) -> Kernel<'w, 'a> {
        Kernel {
            world: self,
            now,
            cost_ns: 0,
        }
    }

    fn take_word(&mut self, now: u64, event: Event) {
        match event {
            Event::Resolved(fault, _) | Event::Retry(fault) => {
                let thread = fault.waiter.0 as usize;
                if self.threads[thread].state == State::Paging {
                    self.make_ready(thread, now);
                }
            }
            Event::Failed(fault, _) => {
                let thread = fault.waiter.0 as usize;
                self.kill(self.threads[thread].process, now);
            }
            Event::StoreFull | Event::StoreFailed => {}
            Event::Disowned { .. } => unreachable!("the world's machines unmap every page"),
            // A memory of one program has no load control inside the core.
            Event::Suspend { .. } | Event::Resume { .. } if self.scenario.is_divided => {}
            Event::Suspend { space } => self.change_turn(space, now, Self::suspend),
            Event::Resume { space } => self.change_turn(space, now, Self::resume),
        }
    }

    /// Hands a request to its disk.
    fn submit(&mut self, now: u64, request: Request) -> u64 {
        let costs = &self.system.costs;
        let pages = u64::from(request.pages);
        let tally = &mut self.tally;
        let (address, disk, messages, cost_ns) = match request.place {
            Place::Swap { first } => {
                match request.direction {
                    Direction::Fetch => tally.swap_ins += pages,
                    Direction::Store => tally.swap_outs += pages,
                }
                let memory = &mut self.memory;
                if let Some(compressed) = &mut memory.compressed {
                    let what = (request.ticket, request.direction);
                    compressed.start(what, first, &mut memory.vm, &mut memory.tables);
                    return self.submit_parts(now);
                }
                match request.direction {
                    Direction::Fetch => tally.swap_pages_read += pages,
                    Direction::Store => tally.swap_pages_written += pages,
                }
                let messages = costs.messages_per_swap_request;
                (u64::from(first.0), SWAP, messages, costs.swap_request_ns)
            }
            Place::External { pager } => {
                match request.direction {
                    Direction::Fetch => tally.file_ins += pages,
                    Direction::Store => tally.file_outs += pages,
                }
                let index = self.memory.vm.pages_of(request.ticket)[0].index;
                let address = self.files.place_of(pager, index);
                let messages = costs.messages_per_file_request;
                let disk = self.disks.len() - 1;
                (address, disk, messages, costs.file_request_ns)
            }
        };
        tally.messages += u64::from(messages);
        let request = DiskRequest {
            memory: self.memory.number,
            errand: Errand::Request(request.ticket),
            direction: request.direction,
            address,
            pages: request.pages,
        };
        self.disks[disk].submit(now, request);
        cost_ns + u64::from(messages) * costs.message_ns
    }

    /// Hands what compressed memory asks for to the swap disk. Answers what that costs, and what
    /// compressed memory has done.
    fn submit_parts(&mut self, now: u64) -> u64 {
        let costs = &self.system.costs;
        let Some(compressed) = &mut self.memory.compressed else {
            return 0;
        };
        let Effort {
            compressed: packed,
            decompressed,
        } = compressed.take_effort();
        let mut cost_ns = packed * costs.compress_ns + decompressed * costs.decompress_ns;
        while let Some(part) = compressed.take_part() {
            let tally = &mut self.tally;
            match part.direction {
                Direction::Fetch => tally.swap_pages_read += u64::from(part.pages),
                Direction::Store => tally.swap_pages_written += u64::from(part.pages),
            }
            tally.parts += 1;
            let request = DiskRequest {
                memory: self.memory.number,
                errand: Errand::Part {
                    transfer: part.transfer,
                    number: tally.parts,
                },
                direction: part.direction,
                address: u64::from(part.first.0),
                pages: part.pages,
            };
            self.disks[SWAP].submit(now, request);
            cost_ns += costs.swap_request_ns;
        }
        cost_ns
    }

    /// Lets a use of a page pass that the trace doesn't say is mapped, or mapped so.
    fn permit(&mut self, fault: Fault) {
        self.tally.irregular += 1;
        let (space, at) = (fault.space, fault.at);
        if self
            .memory
            .vm
            .map_anonymous(space, at, 1, Rights::Write)
            .is_err()
        {
            let needed = fault.access.needed();
            self.memory
                .vm
                .protect(&mut self.memory.tables, space, at, 1, needed);
        }
    }

    fn change_turn(&mut self, space: SpaceId, now: u64, change: impl Fn(&mut Self, usize, u64)) {
        if let Some(process) = self.owner_of(space) {
            change(self, process, now);
        }
    }

    /// Has a process not run.
    pub(super) fn suspend(&mut self, process: usize, now: u64) {
        self.processes[process].is_suspended = true;
        for thread in self.processes[process].threads.clone() {
            if self.threads[thread].state == State::Ready {
                self.ready.remove(thread);
                self.shift(thread, State::Suspended, now);
            }
        }
    }

    /// Lets a process run again.
    pub(super) fn resume(&mut self, process: usize, now: u64) {
        self.processes[process].is_suspended = false;
        for thread in self.processes[process].threads.clone() {
            if self.threads[thread].state == State::Suspended {
                self.make_ready(thread, now);
            }
        }
    }
}

/// The kernel at work on what its memory has decided.
struct Kernel<'w, 'a> {
    world: &'w mut World<'a>,
    now: u64,
    /// The cost of the work so far.
    cost_ns: u64,
}

impl Driver for Kernel<'_, '_> {
    fn start_requests(&mut self) -> bool {
        let mut has_started = false;
        self.world.memory.prepare_compressed();
        while let Some(request) = self.world.memory.vm.poll_request() {
            self.cost_ns += self.world.submit(self.now, request);
            has_started = true;
        }
        if self.world.memory.compressed.is_some() {
            has_started |= self.world.memory.tend_compressed(Time(self.now));
            self.cost_ns += self.world.submit_parts(self.now) + self.world.take_kernel_ns();
        }
        has_started
    }

    /// Pages that are compressed in memory are there at once.
    fn take_replies(&mut self) -> bool {
        let mut has_taken = false;
        loop {
            let memory = &mut self.world.memory;
            let reply = memory.compressed.as_mut().and_then(Compressed::take_reply);
            let Some(reply) = reply else { break };
            let now = Time(self.now);
            memory.vm.handle_reply(now, &mut memory.tables, reply);
            self.cost_ns += self.world.take_kernel_ns();
            has_taken = true;
        }
        has_taken
    }

    fn pass_event(&mut self) -> bool {
        let event = self.world.memory.vm.poll_event();
        event
            .map(|event| self.world.take_word(self.now, event))
            .is_some()
    }

    fn make_room(&mut self) {
        let (task_memory, vm, tables) = self.world.memory.parts();
        vm.handle_idle(Time(self.now), tables);
        task_memory.handle_room(Time(self.now), vm, tables);
        let managed = self.world.memories().filter(|memory| memory.is_managed);
        let used = managed.map(Memory::in_use).sum();
        let most = &mut self.world.tally.frames_used_max;
        *most = (*most).max(used);
        self.world.look_for_shortage(self.now);
        self.cost_ns += self.world.take_kernel_ns();
    }

    fn note_decisions(&mut self) {
        while let Some(decision) = self.world.memory.vm.poll_decision() {
            self.world.decisions.push(decision);
        }
    }
}
