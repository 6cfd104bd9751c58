//! The loop: one turn takes in all that has happened and starts all that follows from it.

use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::atomic::Ordering::Relaxed;

use rustix::time::ClockId;
use tidemark_core::driver::Driver;
use tidemark_core::seams::pager::{Direction, Place};
use tidemark_core::time::Time;

use super::Engine;
use crate::parts::gauges::stores_under_way;
use crate::parts::sleep::{Wakers, Woken};
use crate::parts::trouble::Trouble;
use crate::parts::turns::TICK_NS;
use crate::parts::units;
use crate::parts::units::{now, time_ns};
use crate::requests::Requests;
use crate::shared::{Cluster, Counter};
use crate::sys::blocking_read::{self, Waited};
use crate::sys::program;
use crate::sys::ring::Watch;

/// The longest sleep of the engine.
const SLEEP_NS_MOST: u64 = 250_000_000;
/// The least time for which the program's messages are waited for alone.
const WAIT_NS_LEAST: u64 = 500_000;
/// The operation named as failed when the store can't tell what it has done.
pub(super) const REAPING: &str = "collecting finished transfers";
/// The interval at which the store is looked at in in-thread mode.
const STORE_NS: u64 = 1_000_000;
impl Engine {
    /// One turn of the loop. Answers how long there is nothing to do unless
    /// something happens: see [`sleep`](super::sleep).
    pub fn turn(&mut self, requests: &Requests) -> u64 {
        self.store.leave_writes(false);
        let pause_ns = if self.setup.mode.ends_work_at_each_fault() {
            self.work_in_step(requests)
        } else {
            self.work(requests)
        };
        let is_retrying = self.is_retrying();
        self.turns.end(is_retrying, self.now);
        if pause_ns > TICK_NS {
            self.telemetry.flush_decisions();
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
        let others = self.line.wakers(self.machine.program().as_fd().as_raw_fd());
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

    /// Waits for messages of the program alone, for `pause_ns` at most, where its faults follow
    /// each other closely and nothing is under way. `None` if the engine is to
    /// [sleep](Self::wakers).
    pub fn await_messages(&mut self, pause_ns: u64) -> Option<Woken> {
        if blocking_read::is_called() {
            return Some(Woken::by_signal());
        }
        let is_simple = self.setup.mode.reads_alone()
            && program::is_apart()
            && !self.calls.is_listening()
            && !self.task.is_parked();
        if !is_simple || !self.turns.is_busy() || !self.store.is_still() || pause_ns < WAIT_NS_LEAST
        {
            return None;
        }
        let Engine {
            line,
            machine,
            intake,
            ..
        } = self;
        let now = now();
        let times = (now, now.after_ns(pause_ns));
        intake
            .await_messages(|into| line.await_messages(machine.program(), into, times))
            .map(|waited| match waited {
                Waited::Messages => Woken::default(),
                Waited::Called => Woken::by_signal(),
            })
    }

    /// The number of the timer to ring for this engine, if its doorbell is one.
    pub fn bell(&self) -> Option<RawFd> {
        let is_timer = self.setup.mode.is_rung_by_timer();
        is_timer.then(|| self.line.doorbell())
    }

    /// Takes in why a sleep ended.
    pub fn wake(&mut self, mut woken: Woken) {
        if woken.is_by_store() {
            self.reap();
            woken.note(self.store.take_heard());
        }
        if woken.is_by_doorbell() {
            self.turns.hasten_look();
        }
        if woken.is_by_doorbell() {
            self.line.take_rings();
        }
        // A system call that is held up is no reason to look at all else.
        if woken.is_by_control() && self.line.hear_supervisor() {
            self.turns.hasten_look();
        }
    }

    fn work(&mut self, requests: &Requests) -> u64 {
        self.now = now();
        self.check_listened();
        self.telemetry.begin_turn();
        self.turns.note_tended(false);
        let began = self.now;
        if !self.settle_changes() {
            return self.turns.retry_ns();
        }
        let looks = self.is_look_due();
        if looks {
            self.follow_parking();
        }
        self.serve_unless_parked();
        self.collect_replies();
        self.conclude();
        self.serve_calls();
        if looks {
            self.look_around(requests);
        }
        self.machine.retry_deferred();
        if self.now >= self.turns.next_tick() {
            self.vm.handle_tick(self.now, &mut self.machine);
            self.turns.plan_tick(self.now);
            self.count_processor_time();
            self.tell_setbacks(false);
        } else if self.vm.poll_deadline().is_some_and(|due| due <= self.now) {
            self.vm.handle_deadline(self.now, &mut self.machine);
        }
        self.sample();
        self.read_files_ahead();
        for (taken, answer) in self.go_on_writing() {
            requests.answer(taken, answer);
        }
        self.carry_out();
        self.place.follow(
            self.addresses.managed(),
            self.now,
            self.telemetry.gauges_mut(),
        );
        if looks {
            self.show();
            self.turns.note_look(self.now);
        }
        self.turns.note_tended(false);
        let end = now();
        self.telemetry.add(Counter::EngineNs, end.since_ns(began));
        self.pause(end)
    }

    /// Returns true if this turn is to look at more than faults.
    fn is_look_due(&self) -> bool {
        let always = self.telemetry.is_logging() || self.setup.mode.looks_at_all_each_turn();
        let due = self.turns.next_tick().min(self.turns.next_look());
        let due = due
            .min(self.addresses.adoption().due())
            .min(self.addresses.outside().due());
        always || self.now >= due
    }

    /// Sees to all that is not about faults.
    fn look_around(&mut self, requests: &Requests) {
        self.turns.note_tended(false);
        self.answer_asks(requests);
        self.yield_files();
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
        self.place.tell_confinement(&self.line.process());
        self.publish();
        self.draw_map();
        self.send_reports();
    }

    /// Counts the processor time that the program has used, and this engine. Helping threads use
    /// next to none.
    fn count_processor_time(&mut self) {
        let own_ns = time_ns(ClockId::ThreadCPUTime);
        self.telemetry
            .note_processor_time(program::processor_ns(), own_ns);
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
            self.line.process().record_cluster(kind, request.pages);
            let frames = self.vm.frames_of(request.ticket);
            let (ticket, machine) = (request.ticket, &mut self.machine);
            match request.place {
                Place::Swap { first } => {
                    self.store
                        .start(ticket, request.direction, first, frames, machine);
                }
                Place::External { pager } => {
                    let first = self.vm.pages_of(ticket)[0].index;
                    let (place, store) = ((pager, first), &mut self.store);
                    let counter = match request.direction {
                        Direction::Fetch => Counter::FileIns,
                        Direction::Store => Counter::FileOuts,
                    };
                    self.telemetry.add(counter, request.pages.into());
                    match request.direction {
                        Direction::Fetch => store.start_read(ticket, place, frames, machine),
                        Direction::Store => store.start_write(ticket, place, frames, machine),
                    }
                }
            }
            has_started = true;
        }
        if has_started || !self.turns.is_tended() {
            let follows = self.tend_compressed();
            self.turns.note_tended(!follows);
            has_started |= follows;
        }
        if has_started {
            // Before the first byte is on its way: the process that cleans up after this one must
            // know.
            let under_way = stores_under_way(&self.vm, &self.store);
            let record = self.line.process();
            record
                .counter(Counter::StoresUnderWay)
                .store(under_way, Relaxed);
        }
        // What was compressed or read as zeros is over already.
        let has_sent = has_started && !self.store.is_still();
        if has_sent && self.setup.mode.listens_while_awake() {
            // Who waits awake for what is started now must hear of all else meanwhile.
            self.store
                .listen_to(self.line.wakers(self.machine.program().as_fd().as_raw_fd()));
        }
        if has_sent && let Err(error) = self.store.submit(&self.machine) {
            self.end_for(&Trouble::Call {
                what: "starting transfers",
                error,
            });
        }
        has_started
    }

    pub(super) fn pause(&mut self, now: Time) -> u64 {
        if self.intake.faults().has_new() {
            // They came while the engine was at rest.
            return 0;
        }
        if self.is_retrying() {
            return self.turns.retry_ns();
        }
        let mut due = self.turns.rest_until(self.soft_due(now), now);
        due = due.min(self.vm.poll_deadline().unwrap_or(due));
        // Threads that compute have one processor until then.
        due = due.min(self.place.due().unwrap_or(due));
        if self.leaves_store_to_others() {
            // This is for when none of them faults.
            due = due.min(now.after_ns(STORE_NS));
        }
        due = due.min(self.calls_due().unwrap_or(due));
        let sampling = self.telemetry.sampling();
        let sampling_ns = sampling.map_or(u64::MAX, |it| it.pause_ns(units::now()));
        due.since_ns(now).min(sampling_ns)
    }

    /// The time at which there is something to do that can wait for a turn that is made anyway.
    fn soft_due(&self, now: Time) -> Time {
        let mut due = self
            .addresses
            .adoption()
            .due()
            .min(now.after_ns(SLEEP_NS_MOST));
        if !self.turns.has_looked(self.now) {
            due = due.min(self.turns.next_look());
        }
        due = due.min(self.addresses.outside().due());
        let is_waited_for = self.vm.faults_pending() > 0
            || self.vm.transfers_pending() > 0
            || self.intake.freeze().has_lent()
            || self.is_writing_back()
            || self.task.is_busy(&self.vm);
        // Or the supervisor would take what was done for the program's own doing.
        let is_counted = self.telemetry.is_time_counted();
        if is_waited_for || self.leaves_store_to_others() || !is_counted {
            due = due.min(self.turns.next_tick());
        }
        due
    }

    /// Returns true if transfers are under way, and program threads look after them.
    fn leaves_store_to_others(&self) -> bool {
        !self.setup.mode.waits_for_store() && !self.store.is_still()
    }

    /// The time for which the engine may sleep in step, where nothing is under way between two
    /// turns, and no memory is looked for.
    pub(super) fn pause_in_step(&self) -> u64 {
        match self.is_retrying() {
            _ if self.intake.faults().has_new() => 0,
            true => self.turns.retry_ns(),
            false => SLEEP_NS_MOST,
        }
    }

    fn is_retrying(&self) -> bool {
        self.machine.has_deferred() || self.intake.is_retrying()
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
        self.telemetry.take_decisions(&mut self.vm);
    }
}
