//! The loop: one turn takes in all that has happened and starts all that follows from it.

use std::fmt::Write;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering::Relaxed;

use rustix::time::ClockId;
use tidemark_core::driver::Driver;
use tidemark_core::pager::{Direction, Place};
use tidemark_core::time::Time;

use super::{Engine, Log};
use crate::parts::trouble::Trouble;
use crate::parts::units::{now, time_ns};
use crate::requests::Requests;
use crate::shared::{Cluster, Counter};
use crate::store::LISTENED_MAX;
use crate::sys::ring::{Wait, Watch};
use crate::sys::{Errno, program, signal, socket};

/// The interval at which the core gets the time while it works.
const TICK_NS: u64 = 10_000_000;
/// The longest sleep of the engine.
const SLEEP_NS_MOST: u64 = 250_000_000;
/// While faults keep it busy, the engine looks at all that is not about them this often. What
/// others want of it at once wakes it.
const LOOK_NS: u64 = 500_000;
/// The pause before something is tried again that the kernel refused for now. It doubles in steps.
pub(super) const RETRY_NS: u64 = 200_000;
/// The number of turns in vain after which it doubles.
const RETRIES_A_DOUBLING: u32 = 16;
/// The most such doublings.
const RETRY_DOUBLINGS_MAX: u32 = 6;
/// The operation named as failed when the store can't tell what it has done.
pub(super) const REAPING: &str = "collecting finished transfers";
/// The interval at which the store is looked at in in-thread mode.
const STORE_NS: u64 = 1_000_000;
/// Decisions are written when this number of bytes has come together, or when there is nothing else
/// to do.
const LOG_BYTES: usize = 16 << 10;

/// The state that a turn leaves to those that follow.
#[derive(Default)]
pub(super) struct Turns {
    /// The number of turns in a row that had something to try again.
    in_vain: u32,
    /// The time of the last look at what is not about faults.
    looked: Time,
    /// Compressed memory has come to rest in this turn: only what is started stirs it up.
    pub(super) is_tended: bool,
}

impl Engine {
    /// One turn of the loop. Answers how long there is nothing to do unless
    /// something happens: see [`sleep`].
    pub fn turn(&mut self, requests: &Requests) -> u64 {
        self.store.leave_writes(false);
        let pause_ns = if self.setup.mode.ends_work_at_each_fault() {
            self.work_in_step(requests)
        } else {
            self.work(requests)
        };
        self.turns.in_vain = match self.is_retrying() {
            true => self.turns.in_vain.saturating_add(1),
            false => 0,
        };
        if pause_ns > TICK_NS {
            self.flush_decisions();
        }
        pause_ns.min(self.see_off())
    }

    /// The watch to wait on awake for [`AWAKE_NS`](super::AWAKE_NS), before anything is slept on:
    /// where one thread waits beside the engine for a page from the disk, no other thread needs the
    /// processor.
    pub fn watched(&self) -> Option<Watch> {
        let is_sure = self.place.is_confining() && self.vm.faults_pending() == 1;
        let watch = is_sure.then(|| self.store.watch()).flatten();
        watch.filter(|_| self.setup.mode.waits_for_store())
    }

    /// The files or the store to sleep on.
    pub fn wakers(&mut self) -> Wakers {
        let has_store = self.setup.mode.waits_for_store();
        let others = self.other_wakers();
        // To wait for the ring costs more than to wait for files, where nothing is under way.
        let is_still = self.store.compressed().is_some() && self.store.is_still();
        let has_ring = has_store && !is_still;
        match has_ring.then(|| self.store.wait_with(others)).flatten() {
            Some(wait) => Wakers::Store(wait),
            None => Wakers::Files {
                store: self
                    .store
                    .finished()
                    .filter(|_| has_store)
                    .map(|file| file.as_raw_fd()),
                others,
            },
        }
    }

    /// The program's faults and changes, requests of its threads, and the supervisor, if there is
    /// one.
    fn other_wakers(&self) -> [Option<RawFd>; LISTENED_MAX] {
        let program = self.machine.program().as_fd().as_raw_fd();
        let control = self.control.as_ref().map(AsRawFd::as_raw_fd);
        [Some(program), Some(self.doorbell.as_raw_fd()), control]
    }

    /// The number of the timer to ring for this engine, if its doorbell is one.
    pub fn bell(&self) -> Option<RawFd> {
        let is_timer = self.setup.mode.is_rung_by_timer();
        is_timer.then(|| self.doorbell.as_raw_fd())
    }

    /// Takes in why a sleep ended.
    pub fn wake(&mut self, mut woken: Woken) {
        if woken.by_store {
            self.reap();
            woken.note(self.store.take_heard());
        }
        if woken.by_doorbell || woken.by_control {
            self.turns.looked = Time(0);
        }
        if woken.by_doorbell {
            signal::take_rings(&self.doorbell);
        }
        if woken.by_control {
            self.hear_supervisor();
        }
    }

    fn work(&mut self, requests: &Requests) -> u64 {
        self.now = now();
        self.gauges.is_time_counted = false;
        self.turns.is_tended = false;
        let began = self.now;
        if !self.settle_changes() {
            return self.retry_ns();
        }
        let looks = self.is_look_due();
        if looks {
            self.follow_parking();
        }
        self.serve_unless_parked();
        self.collect_replies();
        self.conclude();
        if looks {
            self.look_around(requests);
        }
        self.machine.retry_deferred();
        if self.now >= self.next_tick {
            self.vm.handle_tick(self.now, &mut self.machine);
            self.next_tick = self.now.after_ns(TICK_NS);
            self.count_processor_time();
            self.tell_setbacks(false);
        } else if self.vm.poll_deadline().is_some_and(|due| due <= self.now) {
            self.vm.handle_deadline(self.now, &mut self.machine);
        }
        self.sample();
        self.read_files_ahead();
        self.carry_out();
        self.place.follow(&self.managed, self.now, &mut self.gauges);
        if looks {
            self.show();
            self.turns.looked = self.now;
        }
        self.turns.is_tended = false;
        let end = now();
        self.gauges.add(Counter::EngineNs, end.since_ns(began));
        self.pause(end)
    }

    /// Returns true if this turn is to look at more than faults.
    fn is_look_due(&self) -> bool {
        let always = self.is_logging() || self.setup.mode.looks_at_all_each_turn();
        let due = self.next_tick.min(self.turns.looked.after_ns(LOOK_NS));
        let due = due.min(self.adoption.due()).min(self.outside.due());
        always || self.now >= due
    }

    /// Sees to all that is not about faults.
    fn look_around(&mut self, requests: &Requests) {
        self.turns.is_tended = false;
        self.answer_asks(requests);
        self.follow_budget();
        self.take_unassigned(0);
        self.look_for_memory(requests);
        self.look_outside();
        self.task
            .handle_room(self.now, &mut self.vm, &mut self.machine);
        self.close_needless();
    }

    /// Shows others what this engine has come to.
    fn show(&mut self) {
        self.tell_confinement();
        self.publish();
        self.draw_map();
        self.send_reports();
    }

    /// Counts the processor time that the program has used, and this engine. Helping threads use
    /// next to none.
    fn count_processor_time(&mut self) {
        self.gauges.set(Counter::ProgramNs, program::processor_ns());
        let own = time_ns(ClockId::ThreadCPUTime);
        self.gauges.set(Counter::EngineProcessorNs, own);
        self.gauges.is_time_counted = true;
    }

    /// Brings the store's answers to the core.
    pub(super) fn collect_replies(&mut self) {
        self.reap();
        self.take_replies();
    }

    /// Has the store look which transfers are over.
    pub(super) fn reap(&mut self) {
        if let Err(error) = self.store.reap(&mut self.machine) {
            self.end_for(&Trouble::Call {
                what: REAPING,
                error,
            });
        }
    }

    pub(super) fn start_transfers(&mut self) -> bool {
        let mut has_started = false;
        // Slots that were let go of may be those of what is stored next.
        self.store.forget_released(self.vm.slots_mut());
        self.allow_compressed();
        while let Some(request) = self.vm.poll_request() {
            let kind = match request.direction {
                Direction::Fetch => Cluster::In,
                Direction::Store => Cluster::Out,
            };
            let record = self.record();
            self.shared
                .process(record)
                .record_cluster(kind, request.pages);
            let frames = self.vm.frames_of(request.ticket);
            let (ticket, machine) = (request.ticket, &mut self.machine);
            match request.place {
                Place::Swap { first } => {
                    self.store
                        .start(ticket, request.direction, first, frames, machine);
                }
                Place::External { pager } => {
                    assert_eq!(request.direction, Direction::Fetch, "files are copied");
                    let first = self.vm.pages_of(ticket)[0].index;
                    self.gauges.add(Counter::FileIns, request.pages.into());
                    self.store
                        .start_read(ticket, (pager, first), frames, machine);
                }
            }
            has_started = true;
        }
        if has_started || !self.turns.is_tended {
            let follows = self.tend_compressed();
            self.turns.is_tended = !follows;
            has_started |= follows;
        }
        if has_started {
            // Before the first byte is on its way: the process that cleans up after this one must
            // know.
            let under_way = self.stores_under_way();
            let record = self.shared.process(self.record());
            record
                .counter(Counter::StoresUnderWay)
                .store(under_way, Relaxed);
        }
        // What was compressed or read as zeros is over already.
        let has_sent = has_started && !self.store.is_still();
        if has_sent && self.setup.mode.listens_while_awake() {
            // Who waits awake for what is started now must hear of all else meanwhile.
            self.store.listen_to(self.other_wakers());
        }
        if has_sent && let Err(error) = self.store.submit(&self.machine) {
            self.end_for(&Trouble::Call {
                what: "starting transfers",
                error,
            });
        }
        has_started
    }

    /// Writes the decisions that wait to be written.
    pub(super) fn flush_decisions(&mut self) {
        if let Some(log) = &mut self.decisions {
            log.flush();
        }
    }

    pub(super) fn pause(&mut self, now: Time) -> u64 {
        if self.waiting.has_new() {
            // They came while the engine was at rest.
            return 0;
        }
        if self.is_retrying() {
            return self.retry_ns();
        }
        let mut due = self.adoption.due().min(now.after_ns(SLEEP_NS_MOST));
        if self.turns.looked != self.now {
            due = due.min(self.turns.looked.after_ns(LOOK_NS));
        }
        due = due.min(self.outside.due());
        due = due.min(self.place.due().unwrap_or(due));
        due = due.min(self.vm.poll_deadline().unwrap_or(due));
        let is_waited_for = self.vm.faults_pending() > 0
            || self.vm.transfers_pending() > 0
            || self.freeze.has_lent()
            || self.task.is_busy(&self.vm);
        if !self.gauges.is_time_counted {
            // Or the supervisor would take what was done for the program's own doing.
            due = due.min(self.next_tick);
        }
        let is_left_to_others = !self.setup.mode.waits_for_store();
        if is_waited_for || is_left_to_others && !self.store.is_still() {
            due = due.min(self.next_tick);
            if is_left_to_others {
                // Program threads look after the store; this is for when none faults.
                due = due.min(now.after_ns(STORE_NS));
            }
        }
        due.since_ns(now).min(self.sampling_pause_ns())
    }

    /// The same in step, where nothing is under way between two turns, and no memory is looked for.
    pub(super) fn pause_in_step(&self) -> u64 {
        match self.is_retrying() {
            _ if self.waiting.has_new() => 0,
            true => self.retry_ns(),
            false => SLEEP_NS_MOST,
        }
    }

    /// The time after which a refused call is tried again.
    pub(super) fn retry_ns(&self) -> u64 {
        let doublings = self.turns.in_vain / RETRIES_A_DOUBLING;
        RETRY_NS << doublings.min(RETRY_DOUBLINGS_MAX)
    }

    fn is_retrying(&self) -> bool {
        self.machine.has_deferred() || self.waiting.has_again() || !self.changes.is_settled()
    }

    /// Takes in a poke; without a supervisor the engine goes on alone.
    pub(super) fn hear_supervisor(&mut self) {
        let Some(control) = &self.control else { return };
        let mut bytes = [0u8; 64];
        let flags = rustix::net::RecvFlags::DONTWAIT;
        match rustix::net::recv(control, &mut bytes, flags) {
            Ok((count, _)) if count > 0 => {}
            Err(Errno::AGAIN | Errno::INTR) => {}
            Ok(_) | Err(_) => self.control = None,
        }
    }
}

impl Driver for Engine {
    fn start_requests(&mut self) -> bool {
        self.start_transfers()
    }

    fn pass_event(&mut self) -> bool {
        let event = self.vm.poll_event();
        event.map(|event| self.handle_event(event)).is_some()
    }

    fn make_room(&mut self) {
        self.vm.handle_idle(self.now, &mut self.machine);
    }

    /// Pages of zeros need no transfer: their answers are there at once.
    fn take_replies(&mut self) -> bool {
        let Engine { vm, machine, .. } = self;
        self.store.reply_to(vm, self.now, machine)
    }

    fn note_decisions(&mut self) {
        let Some(log) = &mut self.decisions else {
            return;
        };
        while let Some(decision) = self.vm.poll_decision() {
            // Writing to a string can't fail.
            let _ = writeln!(log.text, "{decision}");
        }
        if log.text.len() >= LOG_BYTES {
            log.flush();
        }
    }
}

/// The wait of an engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wakers {
    /// The store, which listens to all else. One call waits, and takes in what has finished; to
    /// poll its file takes two, as what has finished interrupts the first.
    Store(Wait),
    /// Files by number.
    Files {
        /// The store, unless others look after it.
        store: Option<RawFd>,
        /// The other files.
        others: [Option<RawFd>; LISTENED_MAX],
    },
}

/// The reason for which a sleep ended. The other reasons are found by looking.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Woken {
    by_store: bool,
    by_doorbell: bool,
    by_control: bool,
}

impl Woken {
    /// The store has finished something, or heard of something else.
    pub fn by_store() -> Woken {
        Woken {
            by_store: true,
            ..Woken::default()
        }
    }

    /// Notes which files are ready, in the order of [`Engine::other_wakers`].
    fn note(&mut self, ready: u32) {
        self.by_doorbell |= ready & 2 != 0;
        self.by_control |= ready & 4 != 0;
    }
}

/// Sleeps until something happens, or for so long. It needs no engine, so that other threads may
/// use that meanwhile.
pub fn sleep(wakers: Wakers, pause_ns: u64) -> Woken {
    let mut woken = Woken::default();
    match wakers {
        Wakers::Store(wait) => {
            wait.wait(pause_ns);
            woken.by_store = true;
        }
        Wakers::Files { store, others } => {
            let [program, doorbell, control] = others;
            let files = [program, doorbell, control, store];
            // A sleep that fails for any reason is a short one.
            woken.note(socket::wait_readable_raw(files, pause_ns).unwrap_or(0));
        }
    }
    woken
}

impl Log {
    /// A log with nothing in it.
    pub(super) fn new(file: OwnedFd) -> Log {
        let text = String::new();
        Log { file, text }
    }

    /// Writes what has come together.
    pub(super) fn flush(&mut self) {
        if self.text.is_empty() {
            return;
        }
        let mut rest = self.text.as_bytes();
        while !rest.is_empty() {
            match rustix::io::write(&self.file, rest) {
                Ok(count) => rest = &rest[count..],
                Err(Errno::INTR) => {}
                // A log that can't be written must not end the program it is about.
                Err(_) => break,
            }
        }
        self.text.clear();
    }
}
