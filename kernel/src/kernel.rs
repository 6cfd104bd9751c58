//! The kernel: who runs, what becomes of faults and interrupts, and how it all ends.
//!
//! Everything happens in one loop, with interrupts off. A program is run until it stops; what it
//! stopped for is dealt with; requests that the core has made go to the disks. When no process can
//! run, the kernel waits for an interrupt. A process that must wait inside a system call does the
//! call again when it is woken: nothing of a call is kept.
//!
//! # Invariants
//! 1. A process is in `ready` exactly once if it is ready and not suspended, unless it is the one
//!    that runs.
//! 2. In time of faults no transfer is under way when a program goes on.
//! 3. Load control knows the place of each process whenever it is asked: it gets them before each
//!    tick. A suspended process is in no queue until it is resumed.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use tidemark_core::counters::Counter;
use tidemark_core::driver::Driver;
use tidemark_core::event::Failure;
use tidemark_core::event::{Access, Event, Fault, Resolution, Service};
use tidemark_core::id::{ObjectId, PAGE_BYTES, SpaceId, Ticket, VirtPage, Waiter};
use tidemark_core::load::{self, Turn};
use tidemark_core::memory::swap_slots::LocalSlots;
use tidemark_core::policies;
use tidemark_core::seams::machine::Machine;
use tidemark_core::seams::pager::Reply;
use tidemark_core::time::{STEP_NS, STEP_TICK_NS, Time};
use tidemark_core::vm::{Config, Vm};

use crate::arch::clock::Clock;
use crate::arch::panic::Ending;
use crate::arch::trap::{self, FLAG_STEP, Trap};
use crate::arch::{Board, Purpose, has_room, interrupts, serial};
use crate::execute;
use crate::machine::PageTables;
use crate::parameters::{self, Injected, Layout, Parameters, Programs};
use crate::process::{Misdeed, Process, ProcessId, State};
use crate::say;
use crate::store::Store;
use crate::volume;

/// The first process: when it ends, all ends.
pub const FIRST: ProcessId = 1;
/// The interval at which the memory gets the time.
const MEMORY_TICK_NS: u64 = 1_000_000_000;
/// The most pages that come for one instruction or call: if swap is full, and else. It needs a
/// few; more come if they leave again.
const PAGES_IF_FULL: usize = 200;
const PAGES_MAX: usize = 20_000;
/// The status of a program that the kernel has ended.
const ENDED: u8 = 139;

/// The state of a fault: over or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Served {
    /// The page is there.
    Now(Service),
    /// The process waits for it, or has been ended.
    Later,
    /// There is no such page, or it may not be used so.
    Invalid,
}

/// All there is.
pub struct Kernel {
    pub(crate) vm: Vm,
    pub(crate) machine: PageTables,
    pub(crate) store: Store,
    clock: Clock,
    pub(crate) programs: Programs,
    time: parameters::Time,
    pace: u64,
    /// The time that has passed, in time of faults, while no process could fault.
    idle_ns: u64,
    suspensions: u64,
    is_logging: bool,
    pub(crate) processes: BTreeMap<ProcessId, Process>,
    ready: VecDeque<ProcessId>,
    next_process: ProcessId,
    /// The space in which the objects of files are kept; no program sees it.
    pub(crate) kept: SpaceId,
    /// The object of each file that was used.
    pub(crate) objects: BTreeMap<usize, ObjectId>,
    /// The files that programs may have written to, through mappings.
    pub(crate) written: BTreeSet<usize>,
    next_tick: Time,
    is_full_told: bool,
    /// The end of the first process.
    pub(crate) ending: Option<Ending>,
}

impl Kernel {
    /// A kernel without processes.
    ///
    /// # Errors
    /// A line on what the parameters ask for and can't have.
    pub fn new(board: Board, parameters: &Parameters<'_>) -> Result<Kernel, &'static str> {
        let Board {
            frames,
            kernel,
            volume: mut files,
            swap,
            clock,
        } = board;
        let volume = volume::mount(&mut files).map_err(|error| {
            say!("kernel: the first disk {error}");
            "it needs a volume there, as `tidemark kernel image` makes it"
        })?;
        let store = Store::new(swap, files, volume, parameters.injected);
        let count = frames.count();
        let config = match parameters.layout {
            Layout::Demand => Config::demand(count),
            Layout::Clustered => Config::clustered(count, count),
        };
        let config = Config {
            is_logging: parameters.is_logging,
            ..config
        };
        let policy = policies::build(parameters.policy, count, count, parameters.seed, &[]);
        let policy = policy.map_err(|_| "`policy` names none; `tidemark policies` lists them")?;
        let load = load::registry::find(parameters.load).ok_or("`load` names no load control")?;
        let load = load.build(&[]).map_err(|_| "`load` can't be built")?;
        let mut vm = Vm::new(config, policy, Box::new(LocalSlots::new(store.slots())));
        vm.set_load_control(load);
        let kept = vm.create_space();
        let idle = Turn {
            order: u64::MAX,
            is_active: false,
            ..Turn::default()
        };
        vm.handle_turn(kept, idle);
        let next_tick = match parameters.time {
            parameters::Time::Real => Time(clock.now_ns() * parameters.pace + MEMORY_TICK_NS),
            parameters::Time::Faults => Time(STEP_TICK_NS),
        };
        Ok(Kernel {
            kept,
            vm,
            machine: PageTables::new(frames, kernel),
            store,
            clock,
            programs: parameters.programs,
            time: parameters.time,
            pace: parameters.pace,
            idle_ns: 0,
            suspensions: 0,
            is_logging: parameters.is_logging,
            processes: BTreeMap::new(),
            ready: VecDeque::new(),
            next_process: FIRST,
            objects: BTreeMap::new(),
            written: BTreeSet::new(),
            next_tick,
            is_full_told: false,
            ending: None,
        })
    }

    /// Runs the program that `run` names until it ends.
    pub fn run(&mut self, run: &str) -> Ending {
        let arguments: Vec<Vec<u8>> = run
            .split(',')
            .map(|word| word.as_bytes().to_vec())
            .collect();
        let space = self.create_space();
        let first = Process::new(0, space);
        self.add_process(Process {
            to_execute: Some(arguments),
            ..first
        });
        while self.ending.is_none() {
            match self.ready.pop_front() {
                Some(id) => self.run_process(id),
                None => self.wait(),
            }
        }
        self.close();
        self.ending.expect("the loop ends with it")
    }

    /// Writes what was counted, in the words of `tidemark.run.v1` (docs/formats/run-v1.md), and of
    /// this machine's own.
    pub fn report(&self) {
        let counters = self.vm.counters();
        let (work, traffic) = (self.machine.work(), self.store.traffic());
        let counts = [
            ("faults", counters.faults),
            ("frames_budget", u64::from(self.machine.frames().count())),
            ("bytes_read", traffic.read[0] * PAGE_BYTES),
            ("bytes_written", traffic.written[0] * PAGE_BYTES),
            ("engine_bytes", crate::arch::used_bytes() as u64),
        ];
        let own = [
            ("file_page_ins", traffic.read[1]),
            ("file_page_outs", traffic.written[1]),
            ("requests_at_once", traffic.depth_max as u64),
            ("entries_made", work.entered),
            ("entries_removed", work.removed),
            ("translations_forgotten", work.forgotten_pages),
            ("all_translations_forgotten", work.forgotten_all),
            ("suspensions", self.suspensions),
        ];
        let of_the_core = Counter::ALL
            .into_iter()
            .filter_map(|counter| Some((counter.run_name()?, counters.get(counter)?)));
        report_counts(counts.into_iter().chain(of_the_core));
        serial::report(format_args!(",\"machine\":"));
        report_counts(own.into_iter());
        serial::report(format_args!("}}"));
        let elapsed_us = self.clock.now_ns() / 1000;
        let (seconds, rest) = (elapsed_us / 1_000_000, elapsed_us % 1_000_000);
        serial::report(format_args!(",\"elapsed_s\":{seconds}.{rest:06}}}\n"));
    }

    /// The time for the core: nanoseconds since the start, or a count of faults in their place.
    pub(crate) fn now(&self) -> Time {
        match self.time {
            parameters::Time::Real => Time(self.clock.now_ns() * self.pace),
            parameters::Time::Faults => {
                let faults = self.vm.counters().faults;
                Time(faults * STEP_NS * self.pace + self.idle_ns)
            }
        }
    }

    /// The machine's clock, whatever the core's counts.
    pub(crate) fn clock_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// A space for a program, with its table.
    pub(crate) fn create_space(&mut self) -> SpaceId {
        let space = self.vm.create_space();
        self.machine.create(space);
        space
    }

    /// Takes a space away, with all that is in it.
    pub(crate) fn destroy_space(&mut self, space: SpaceId) {
        self.vm.destroy_space(&mut self.machine, space);
        self.machine.destroy(space);
        self.conclude();
    }

    /// Adds a process that is ready to run.
    pub(crate) fn add_process(&mut self, process: Process) -> ProcessId {
        let id = self.next_process;
        self.next_process += 1;
        self.processes.insert(id, process);
        self.ready.push_back(id);
        id
    }

    /// Ends a process. Its parent may ask for `status`.
    pub(crate) fn end_process(&mut self, id: ProcessId, status: u8) {
        let Some(process) = self.processes.remove(&id) else {
            return;
        };
        self.ready.retain(|&other| other != id);
        self.destroy_space(process.space);
        if let Some(parent) = self.processes.get_mut(&process.parent) {
            parent.ended.push_back((id, status));
            if parent.state == State::Waiting {
                self.wake(process.parent);
            }
        }
        if id == FIRST {
            self.ending = Some(if status == 0 {
                Ending::Success
            } else {
                Ending::Failure
            });
        }
    }

    /// Ends a program that did what it may not, and says so.
    pub(crate) fn end_for(&mut self, id: ProcessId, misdeed: Misdeed) {
        let Some(process) = self.processes.get(&id) else {
            return;
        };
        let at = process.registers.rip;
        match &process.to_execute {
            None => say!(
                "kernel: {} ({id}) is ended at {at:#x}: {misdeed}",
                process.name
            ),
            Some(words) => say!(
                "kernel: {} ({id}) is ended before it begins: {misdeed}",
                volume::shown(&words[0])
            ),
        }
        self.end_process(id, ENDED);
    }

    /// Has a process wait.
    pub(crate) fn block(&mut self, id: ProcessId, state: State) {
        if let Some(process) = self.processes.get_mut(&id) {
            process.state = state;
        }
    }

    /// Serves a touch that the tables do not allow.
    pub(crate) fn serve(
        &mut self,
        id: ProcessId,
        space: SpaceId,
        at: VirtPage,
        access: Access,
    ) -> Served {
        if !has_room(Purpose::Fault) {
            self.end_for(id, Misdeed::Crowded);
            return Served::Later;
        }
        let fault = Fault {
            space,
            at,
            access,
            waiter: Waiter(id),
        };
        let now = self.now();
        let resolution = self.vm.handle_fault(now, &mut self.machine, fault);
        if matches!(resolution, Resolution::Pending(_)) {
            if space != self.kept {
                self.machine.prepare(space, at);
            }
            self.block(id, State::Paging);
        }
        self.conclude_at(now);
        if self.time == parameters::Time::Faults {
            self.finish_step(now);
        }
        let is_waiting = |process: &Process| process.state == State::Paging;
        match resolution {
            Resolution::Invalid => Served::Invalid,
            _ if self.processes.get(&id).is_none_or(is_waiting) => Served::Later,
            // It may have to look again: what it waited for may have changed.
            Resolution::Pending(_) => Served::Later,
            Resolution::Resolved(service) => Served::Now(service),
        }
    }

    fn run_process(&mut self, id: ProcessId) {
        let Some(process) = self.processes.get_mut(&id) else {
            return;
        };
        if process.state != State::Ready || process.is_suspended {
            return;
        }
        if process.to_execute.is_some() {
            self.execute(id);
            return self.queue(id, false);
        }
        self.machine.activate(process.space);
        let began = self.clock.now_ns();
        let trap = trap::run(&mut process.registers, &mut process.vectors);
        process.ran_ns += self.clock.now_ns() - began;
        let mut is_turn_over = false;
        match trap {
            Trap::PageFault {
                address,
                is_write,
                is_fetch,
            } => {
                self.take_fault(id, address, is_write, is_fetch);
            }
            Trap::Stepped => self.end_step(id),
            Trap::SystemCall => is_turn_over = self.call(id),
            Trap::Interrupt { line } => {
                // In time of faults the timer says nothing: programs go on until they wait or
                // yield, so that the same programs take the same turns.
                is_turn_over = line == 0 && self.time == parameters::Time::Real;
                self.take_interrupts(1 << line);
            }
            Trap::Exception { vector, .. } => self.end_for(id, Misdeed::Exception { vector }),
        }
        self.queue(id, is_turn_over);
    }

    /// Puts the process that ran where it belongs.
    fn queue(&mut self, id: ProcessId, is_turn_over: bool) {
        let Some(process) = self.processes.get(&id) else {
            return;
        };
        if process.state != State::Ready || process.is_suspended || self.ready.contains(&id) {
            return;
        }
        match is_turn_over {
            true => self.ready.push_back(id),
            false => self.ready.push_front(id),
        }
    }

    fn wake(&mut self, id: ProcessId) {
        let Some(process) = self.processes.get_mut(&id) else {
            return;
        };
        if process.state == State::Ready {
            return;
        }
        process.state = State::Ready;
        if !process.is_suspended {
            self.ready.push_back(id);
        }
    }

    fn take_fault(&mut self, id: ProcessId, address: u64, is_write: bool, is_fetch: bool) {
        let at = VirtPage(address / PAGE_BYTES);
        let space = self.processes[&id].space;
        if is_fetch && !self.machine.is_text(space, at) {
            return self.end_for(id, Misdeed::Execute { address });
        }
        if self.store.count_down(Injected::Panic) {
            panic!("asked for by `inject`");
        }
        if self.store.count_down(Injected::Overflow) {
            fill_stack(1);
        }
        let access = if is_write {
            Access::Write
        } else {
            Access::Read
        };
        let served = self.serve(id, space, at, access);
        if served == Served::Invalid {
            return self.end_for(id, Misdeed::Touch { address, is_write });
        }
        if self.note_fresh(id, at, served)
            && let Some(process) = self.processes.get_mut(&id)
        {
            process.registers.flags |= FLAG_STEP;
        }
    }

    /// Notes a page that has come for an instruction or a call that is still to use it. As in the
    /// lab, only the touch of a page that was in memory all along is a reference. Answers whether
    /// it came.
    pub(crate) fn note_fresh(&mut self, id: ProcessId, at: VirtPage, served: Served) -> bool {
        let has_come = !matches!(served, Served::Now(Service::Minor) | Served::Invalid);
        if let Some(process) = self.processes.get_mut(&id)
            && has_come
        {
            process.fresh.push(at);
            self.end_if_stuck(id);
        }
        has_come
    }

    /// Ends a program whose pages leave again before it can use them. If swap is full that does
    /// not change by itself: what may still leave are pages of files, its own text among them.
    fn end_if_stuck(&mut self, id: ProcessId) {
        let pages = self.processes[&id].fresh.len();
        if pages > PAGES_IF_FULL && self.vm.slots_mut().free() == 0 {
            self.end_for(id, Misdeed::Lost(Failure::StoreFull));
        } else if pages > PAGES_MAX {
            self.end_for(id, Misdeed::Stuck);
        }
    }

    /// Takes in that the instruction or the call is over for which pages had come.
    pub(crate) fn end_step(&mut self, id: ProcessId) {
        let Some(process) = self.processes.get_mut(&id) else {
            return;
        };
        process.registers.flags &= !FLAG_STEP;
        for at in process.fresh.drain(..) {
            self.machine.forget_use(process.space, at);
        }
        self.machine.settle();
    }

    /// Waits for an interrupt.
    fn wait(&mut self) {
        let is_awaiting =
            |process: &Process| matches!(process.state, State::Sleeping(_)) || process.is_suspended;
        let is_alive = self.vm.transfers_pending() > 0 || self.processes.values().any(is_awaiting);
        assert!(is_alive, "every process waits, and for nothing");
        if self.time == parameters::Time::Faults && self.is_load_controlled() {
            return self.pass_idle();
        }
        let lines = trap::wait();
        self.take_interrupts(lines);
    }

    /// Returns true if who does not run waits for load control alone.
    fn is_load_controlled(&self) -> bool {
        let is_sleeping = |process: &Process| matches!(process.state, State::Sleeping(_));
        !self.processes.values().any(is_sleeping)
    }

    /// Advances time of faults to the next tick, without a fault: load control may resume a process
    /// then.
    fn pass_idle(&mut self) {
        let now = self.now();
        self.idle_ns += self.next_tick.since_ns(now);
        self.finish_step(self.now());
    }

    /// Takes in interrupts on `lines`, a bit a line.
    fn take_interrupts(&mut self, lines: u64) {
        acknowledge_all(lines);
        self.store.take_interrupts(lines, self.machine.frames_mut());
        while let Some(reply) = self.store.next_reply() {
            let now = self.now();
            self.vm.handle_reply(now, &mut self.machine, reply);
            self.conclude();
        }
        if lines & 1 == 1 {
            self.tick();
        }
    }

    fn tick(&mut self) {
        let now_ns = self.clock.now_ns();
        let is_over = |(id, process): (&ProcessId, &Process)| match process.state {
            State::Sleeping(until) if until <= now_ns => Some(*id),
            _ => None,
        };
        let over: Vec<ProcessId> = self.processes.iter().filter_map(is_over).collect();
        over.into_iter().for_each(|id| self.wake(id));
        if self.time == parameters::Time::Faults {
            return;
        }
        let now = self.now();
        if self.vm.poll_deadline().is_some_and(|due| due <= now) {
            self.vm.handle_deadline(now, &mut self.machine);
            self.conclude();
        }
        if self.next_tick <= now {
            self.next_tick = now.after_ns(MEMORY_TICK_NS);
            self.tell_turns();
            self.vm.handle_tick(now, &mut self.machine);
            self.conclude();
        }
    }

    /// Tells load control where each process stands.
    fn tell_turns(&mut self) {
        for (id, process) in &self.processes {
            let place = self.ready.iter().position(|other| other == id);
            let turn = Turn {
                order: place.unwrap_or(self.ready.len()) as u64,
                ran_ns: match self.time {
                    parameters::Time::Real => process.ran_ns * self.pace,
                    // Its duration means nothing in time of faults.
                    parameters::Time::Faults => 0,
                },
                is_active: !matches!(process.state, State::Waiting | State::Sleeping(_)),
            };
            self.vm.handle_turn(process.space, turn);
        }
    }

    /// Does all that follows from a fault before its program goes on, in time of faults.
    fn finish_step(&mut self, now: Time) {
        self.finish_transfers(now);
        while self.next_tick <= self.now() {
            let now = self.next_tick;
            self.tell_turns();
            self.vm.handle_tick(now, &mut self.machine);
            self.conclude_at(now);
            self.finish_transfers(now);
            self.next_tick = now.after_ns(STEP_TICK_NS);
        }
    }

    /// Waits for every transfer, and brings the answers to the core in the order of the questions.
    fn finish_transfers(&mut self, now: Time) {
        let mut replies: BTreeMap<Ticket, Reply> = BTreeMap::new();
        while self.vm.transfers_pending() > 0 {
            while let Some(reply) = self.store.next_reply() {
                replies.insert(reply.ticket, reply);
            }
            if replies.len() < self.vm.transfers_pending() {
                let lines = trap::wait();
                acknowledge_all(lines);
                self.store.take_interrupts(lines, self.machine.frames_mut());
                continue;
            }
            let (_, reply) = replies.pop_first().expect("every transfer has an answer");
            self.vm.handle_reply(now, &mut self.machine, reply);
            self.conclude_at(now);
        }
    }

    /// Carries out what the core wants, and has it make room for the next faults.
    pub(crate) fn conclude(&mut self) {
        self.conclude_at(self.now());
    }

    fn conclude_at(&mut self, now: Time) {
        AtTime { kernel: self, now }.conclude();
    }

    fn take_event(&mut self, event: Event) {
        match event {
            Event::Resolved(fault, _) | Event::Retry(fault) => self.wake(fault.waiter.0),
            Event::Failed(fault, failure) => self.end_for(fault.waiter.0, Misdeed::Lost(failure)),
            Event::StoreFull => self.tell_full(),
            Event::StoreFailed => match self.store.take_file_failure() {
                true => say!("kernel: the volume fails to take pages of files"),
                false => say!("kernel: swap fails to take pages"),
            },
            Event::Disowned { .. } => unreachable!("every page can be unmapped"),
            Event::Suspend { space } => self.suspend(space, true),
            Event::Resume { space } => self.suspend(space, false),
        }
    }

    /// Says that swap is full: once, though that comes and goes.
    fn tell_full(&mut self) {
        if !core::mem::replace(&mut self.is_full_told, true) {
            say!("kernel: swap is full");
        }
    }

    fn suspend(&mut self, space: SpaceId, is_suspended: bool) {
        let found = self
            .processes
            .iter_mut()
            .find(|(_, process)| process.space == space);
        let Some((&id, process)) = found else { return };
        self.suspensions += u64::from(is_suspended && !process.is_suspended);
        process.is_suspended = is_suspended;
        let is_ready = process.state == State::Ready;
        self.ready.retain(|&other| other != id);
        if is_ready && !is_suspended {
            self.ready.push_back(id);
        }
    }

    /// Writes the pages of files that programs may have written to, and waits until that is done.
    /// Answers whether the disk took them.
    pub(crate) fn write_back(&mut self) -> bool {
        for &file in &self.written {
            let bytes = self.store.volume()[file].bytes();
            for index in 0..bytes.div_ceil(PAGE_BYTES) {
                let at = execute::window_of(file).plus(index);
                if let Some(frame) = self.vm.frame_at(self.kept, at) {
                    let memory = self.machine.frames_mut();
                    self.store.write_back(file, index, frame, memory);
                }
            }
        }
        while self.store.is_writing_back() {
            let lines = trap::wait();
            acknowledge_all(lines);
            let memory = self.machine.frames_mut();
            self.store.take_interrupts(lines, memory);
        }
        !self.store.take_write_back_failure()
    }

    /// Ends what is left, and checks that nothing stays behind.
    fn close(&mut self) {
        while let Some(&id) = self.processes.keys().next() {
            self.end_process(id, 0);
        }
        if !self.write_back() {
            say!("kernel: the volume fails to take pages of files; what was written is lost");
            self.ending = Some(Ending::Failure);
        }
        self.vm.destroy_space(&mut self.machine, self.kept);
        self.conclude();
        while self.vm.transfers_pending() > 0 {
            let lines = trap::wait();
            self.take_interrupts(lines);
        }
        self.vm.check();
        self.machine.check();
        assert_eq!(
            self.vm.frames().in_use(),
            0,
            "frames are in use, and no process is left"
        );
        let free = self.vm.slots_mut().free();
        assert_eq!(
            free,
            self.store.slots(),
            "slots are in use, and no process is left"
        );
    }
}

/// Writes counts as the beginning of an object, which stays open.
fn report_counts(counts: impl Iterator<Item = (&'static str, u64)>) {
    for (number, (name, count)) in counts.enumerate() {
        let before = if number == 0 { '{' } else { ',' };
        serial::report(format_args!("{before}\"{name}\":{count}"));
    }
}

/// Lets lines rise again, a bit a line.
fn acknowledge_all(lines: u64) {
    let risen = (0..16).filter(|line| lines >> line & 1 == 1);
    risen.for_each(interrupts::acknowledge);
}

/// Calls itself until the stack is full, to see what becomes of the kernel then.
#[inline(never)]
fn fill_stack(depth: u64) -> u64 {
    let room = core::hint::black_box([depth; 64]);
    match depth {
        u64::MAX => room[0],
        _ => fill_stack(depth + 1) + room[1],
    }
}

/// The kernel as the driver of its memory, at a time.
struct AtTime<'a> {
    kernel: &'a mut Kernel,
    now: Time,
}

impl Driver for AtTime<'_> {
    fn start_requests(&mut self) -> bool {
        let kernel = &mut *self.kernel;
        let mut has_started = false;
        while let Some(request) = kernel.vm.poll_request() {
            let pages = kernel.vm.pages_of(request.ticket);
            let frames = kernel.vm.frames_of(request.ticket);
            let memory = kernel.machine.frames_mut();
            kernel.store.start(request, pages, frames, memory);
            has_started = true;
        }
        has_started
    }

    fn pass_event(&mut self) -> bool {
        let event = self.kernel.vm.poll_event();
        event.map(|event| self.kernel.take_event(event)).is_some()
    }

    fn make_room(&mut self) {
        let kernel = &mut *self.kernel;
        kernel.vm.handle_idle(self.now, &mut kernel.machine);
    }

    fn note_decisions(&mut self) {
        while let Some(decision) = self.kernel.vm.poll_decision() {
            if self.kernel.is_logging {
                serial::log(format_args!("{decision}\n"));
            }
        }
    }
}
