//! Going through a fork.
//!
//! A forked child has a copy of everything: the program's pages, the pool, and this engine's
//! tables, as they stood at one moment. So that they fit together, the engine comes to rest
//! before: no transfer is under way, and its tables do not change until the fork is over. But the
//! C library still takes locks between our hook and the fork, other threads may hold them, and
//! those may be waiting for pages. So a frozen engine goes on serving faults without its tables:
//! it copies the page to where it is wanted, and writes down that it did. Both processes settle
//! that list when they thaw.
//!
//! # Invariants
//! 1. While frozen, only `aside`, `held` and the faults that have arrived change, by appending
//!    within their capacity: a child would find the heap's lock taken. A page is in `aside` before
//!    it can be present.
//! 2. The child's record, and its share in every slot, exist before the fork. If there is none the
//!    engine ends the program rather than let a child go without its pages.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tidemark_core::driver::Driver;
use tidemark_core::time::Time;

use super::budget::DIVIDING_NS_MAX;
use super::place::Place;
use super::{Engine, Setup, Trouble, address_of, feed, now, page_of, pages_in};
use crate::machine::Probe;
use crate::meters;
use crate::requests::{Ask, Requests, Taken};
use crate::shared::{ProcessIndex, State};
use crate::sys::uffd::{Message, Progress, Stop};
use crate::sys::{PAGE, signal};

const ASIDE_MAX: usize = 64 << 10;
const HELD_MAX: usize = 4096;
/// The longest time that transfers may take to end.
const REST_NS_MAX: u64 = 20_000_000_000;
/// The time that a process may take to give up the half of its frames that its child will hold.
const HALVING_NS_MAX: u64 = 5_000_000_000;
/// A fork takes no longer. One that does never happened.
const FROZEN_NS_MAX: u64 = 30_000_000_000;
/// The alignment of the C library's heaps beyond the first (glibc `malloc/arena.c`).
const HEAP_BYTES: usize = 64 << 20;
/// The most heads looked for in one range: more would be another allocator's.
const HEADS_MAX: usize = 4096;
/// The number of tries to bring one back.
const HEAD_TRIES: u32 = 1000;

/// The state of a fork.
pub(super) struct Freeze {
    is_frozen: bool,
    /// The pages that are in use beyond the part that each process had after the last fork, as far
    /// as they have not been given up since.
    shared: u32,
    /// Pages that were copied to their places while frozen.
    aside: Vec<usize>,
    /// Changes of the address space that were read while frozen.
    held: Vec<Message>,
    /// The requests that wait for the thaw, other forks among them.
    since: Time,
    /// Pages to read into.
    pub(super) page: crate::sys::memory::Mapping,
}

impl Freeze {
    pub(super) fn new() -> Result<Freeze, crate::sys::Errno> {
        Ok(Freeze {
            is_frozen: false,
            shared: 0,
            aside: Vec::with_capacity(ASIDE_MAX),
            held: Vec::with_capacity(HELD_MAX),
            since: Time(0),
            page: crate::sys::memory::Mapping::anonymous(feed::RUN_MAX * PAGE)?,
        })
    }

    pub(super) fn is_frozen(&self) -> bool {
        self.is_frozen
    }

    /// The pages that could not be given up before a fork, and are shared with the other process.
    pub(super) fn shared(&self) -> u32 {
        self.shared
    }

    /// Learns that so many pages are, in a fork that could not wait any longer.
    pub(super) fn note_shared(&mut self, pages: u32) {
        self.shared = pages;
    }

    /// Learns how many frames are in use of those that may be.
    pub(super) fn note_in_use(&mut self, in_use: u32, budget: u32) {
        self.shared = self.shared.min(in_use.saturating_sub(budget));
    }

    /// Keeps a change for later.
    pub(super) fn hold(&mut self, message: Message) {
        assert!(self.held.len() < HELD_MAX);
        self.held.push(message);
    }

    fn has_room(&self) -> bool {
        self.held.len() + crate::sys::uffd::MESSAGES_MAX < HELD_MAX && self.aside.len() < ASIDE_MAX
    }
}

impl Engine {
    /// Returns true if what one more read brings can be kept while frozen without taking memory.
    fn has_room(&self) -> bool {
        self.freeze.has_room() && self.waiting.has_room()
    }

    /// Finds frames for the child, or gives up half of what may be used, ends all transfers, claims
    /// the child's record and freezes. Answers the record plus one.
    ///
    /// The child starts with the same pages in its frames, and each of the two makes its own copy
    /// of what it writes to: with no more than either may have they hold no more together than this
    /// process might.
    pub(super) fn come_to_rest(&mut self) -> u64 {
        // Memory that nobody has seen yet would be in both processes beside all budgets.
        self.look_at_size();
        self.place.let_go(self.now);
        self.make_way();
        // What was written before the fork is this process's doing.
        self.catch_up();
        let child = self.make_child();
        // What was touched before the fork stands before what the child touches.
        self.publish_samples();
        self.waiting.requeue_all();
        self.publish();
        self.begin_freeze();
        self.serve_heads();
        u64::from(child.0) + 1
    }

    /// Changes no table from now on.
    pub(super) fn begin_freeze(&mut self) {
        self.freeze.since = self.now;
        self.freeze.is_frozen = true;
    }

    /// Comes to rest with as many pages as the child may have, claims its record, and gives it
    /// frames. What the supervisor takes meanwhile may ask for more pages to be given up.
    fn make_child(&mut self) -> ProcessIndex {
        let start = now();
        let (divided, late) = (
            start.after_ns(DIVIDING_NS_MAX),
            start.after_ns(HALVING_NS_MAX),
        );
        loop {
            self.end_transfers_before("waiting for transfers before a fork", |engine| {
                let most = engine.keep_way(divided);
                most.is_some_and(|most| engine.in_use() <= most) || engine.now >= late
            });
            tidemark_core::machine::Machine::settle(&mut self.machine);
            let child = self.claim_child();
            if self.split_budget(child, self.now >= late) {
                return child;
            }
            self.shared.release(child);
        }
    }

    /// Ends all transfers, and gives up memory until that `is_enough`. Transfers that come to no
    /// end are the end of the program: `what` it was.
    pub(super) fn end_transfers_before(
        &mut self,
        what: &'static str,
        is_enough: impl Fn(&mut Engine) -> bool,
    ) {
        self.now = now();
        let end = self.now.after_ns(REST_NS_MAX);
        let mut is_down = is_enough(self);
        loop {
            if self.settle_changes() {
                self.collect_replies();
                if !is_down {
                    self.vm.handle_tick(self.now, &mut self.machine);
                }
                self.carry_out();
                self.machine.retry_deferred();
            }
            self.now = now();
            is_down = is_enough(self);
            let is_idle = is_down && self.vm.transfers_pending() == 0 && self.store.is_idle();
            if is_idle && !self.machine.has_deferred() && self.changes.is_settled() {
                break;
            }
            if self.now > end {
                self.end_for(&Trouble::Call {
                    what,
                    error: crate::sys::Errno::TIMEDOUT,
                });
            }
            self.store.wait(1_000_000);
        }
    }

    /// Brings back the heads of the C library's heaps beyond the first, whose locks it resets in
    /// the child before there is an engine. What is present now stays so until the fork is over.
    fn serve_heads(&mut self) {
        let managed: Vec<(usize, usize)> = self.managed.iter().collect();
        for (start, end) in managed {
            let heads = (start.next_multiple_of(HEAP_BYTES)..end).step_by(HEAP_BYTES);
            for head in heads.take(HEADS_MAX) {
                if self.is_away(head) {
                    self.serve_head(head);
                }
            }
        }
    }

    /// Returns true if the page at `address` was there and was taken away.
    fn is_away(&self, address: usize) -> bool {
        let at = page_of(address);
        match self.vm.frame_at(self.space, at) {
            Some(frame) => !self.machine.is_mapped(frame),
            None => self.vm.slot_at(self.space, at).is_some(),
        }
    }

    fn serve_head(&mut self, head: usize) {
        for _ in 0..HEAD_TRIES {
            self.serve_aside(head);
            // Else another thread changes the address space at this moment.
            if self.machine.pages().is_present(head).unwrap_or(true) || !self.has_room() {
                return;
            }
            self.read_messages();
        }
    }

    /// Claims a record for a child. If all are taken, waits for processes to end.
    fn claim_child(&mut self) -> ProcessIndex {
        let end = now().after_ns(REST_NS_MAX);
        loop {
            if let Some(child) = self.shared.claim_child(self.record()) {
                return child;
            }
            if self.control.is_none() {
                self.release_dead();
            }
            if now() > end {
                let what = "forking more processes than a run can have";
                let error = crate::sys::Errno::AGAIN;
                self.end_for(&Trouble::Call { what, error });
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Without a supervisor nobody else gives back what dead processes had.
    fn release_dead(&self) {
        let records = self.shared.processes();
        let dead = records.filter(|(_, process)| {
            let pid = rustix::process::Pid::from_raw(process.pid() as i32);
            let is_running = process.state() == State::Running;
            let alive = pid.map(rustix::process::test_kill_process);
            is_running && alive == Some(Err(crate::sys::Errno::SRCH))
        });
        for (index, _) in dead {
            self.shared.release(index);
        }
    }

    /// One turn while frozen: serves faults aside, until the fork is over.
    pub(super) fn turn_frozen(&mut self, requests: &Requests) -> u64 {
        self.serve_frozen();
        match requests.take_thaw() {
            Some((taken, _)) => {
                self.go_on();
                requests.answer(taken, 0);
                0
            }
            None if now().since_ns(self.freeze.since) > FROZEN_NS_MAX => {
                self.go_on();
                0
            }
            None => 1_000_000,
        }
    }

    /// Serves all faults there are, aside.
    pub(super) fn serve_frozen(&mut self) {
        if self.has_room() {
            self.read_messages();
        }
        // Nothing may be freed here: the queue is walked, not emptied.
        for index in 0..self.waiting.arrived.len() {
            let address = self.waiting.arrived[index].address;
            self.serve_aside(address);
        }
    }

    /// Gives back the record of a child that did not come to be.
    pub(super) fn abandon_child(&mut self, child: u64) {
        if let Some(index) = child.checked_sub(1) {
            self.shared.release(ProcessIndex(index as u32));
        }
    }

    /// Goes on after a fork in the parent, with what it has left.
    fn go_on(&mut self) {
        self.thaw();
        self.follow_budget();
    }

    /// Goes on after a fork, in the parent or in the child.
    pub(super) fn thaw(&mut self) {
        self.now = now();
        self.freeze.is_frozen = false;
        let mut aside = std::mem::take(&mut self.freeze.aside);
        for &address in &aside {
            if self.machine.pages().is_present(address).unwrap_or(false) {
                // What stands there is newer than whatever the tables know.
                self.vm
                    .discard(&mut self.machine, self.space, page_of(address), 1);
                self.adopt_page(page_of(address));
            }
        }
        aside.clear();
        self.freeze.aside = aside;
        let mut held = std::mem::take(&mut self.freeze.held);
        for message in held.drain(..) {
            self.apply(message);
        }
        self.freeze.held = held;
        self.adoption.scan_soon(self.now);
        self.outside.hasten(self.now);
    }

    /// Serves a fault without changing the tables.
    pub(super) fn serve_aside(&mut self, address: usize) {
        let at = page_of(address);
        let start = address_of(at);
        if !self.managed.contains(start) {
            self.machine.wake(at);
            return;
        }
        let frame = self.vm.frame_at(self.space, at);
        if frame.is_some_and(|frame| self.machine.mapped_at(frame) == Some(at)) {
            self.note_aside(start);
            // Whether it stood there or not, it stands there now.
            let _: Probe = self.machine.probe(at);
            return;
        }
        let source = match (frame, self.vm.slot_at(self.space, at)) {
            (Some(frame), _) => self.machine.pool().address(frame),
            (None, Some(slot)) => {
                if self.store.read_now(slot, &mut self.freeze.page).is_err() {
                    self.end_for_fetch(start);
                }
                self.freeze.page.start()
            }
            (None, None) => self.machine.pool().zeros(),
        };
        self.note_aside(start);
        match self.machine.program().copy(start, source, PAGE) {
            Progress::All | Progress::Part(_) => {}
            Progress::Nothing(Stop::Present) => self.machine.wake(at),
            // The thread still waits: it is served again in the next turn.
            Progress::Nothing(_) => {}
        }
    }

    fn note_aside(&mut self, start: usize) {
        if self.freeze.aside.len() < ASIDE_MAX && !self.freeze.aside.contains(&start) {
            self.freeze.aside.push(start);
        }
    }

    /// Goes on in a forked child, on its new engine thread, with the record that its parent
    /// claimed. The thread that forked waits, and touches nothing of what is managed.
    /// If it `is_at_socket`, this thread is in the folder of the supervisor's socket, which has no
    /// path here.
    pub fn resume_in_child(&mut self, child: u64, is_at_socket: bool) -> Result<(), Trouble> {
        self.now = now();
        let parent_engine = self.own_thread;
        let index = child.checked_sub(1).map(|index| ProcessIndex(index as u32));
        let Some(index) = index else {
            let error = crate::sys::Errno::INVAL;
            return Err(Trouble::Call {
                what: "a fork that was not announced",
                error,
            });
        };
        self.record
            .store(index.0, std::sync::atomic::Ordering::Relaxed);
        self.waiting.clear();
        self.open_in_child(index, parent_engine, is_at_socket)?;
        // The copy speaks of the parent's threads, and of where the parent's engine was.
        self.place = Place::new(self.setup.cpu_finder, self.shared.disk_processor());
        self.gauges = super::publish::Gauges::new();
        meters::reset();
        self.before = super::publish::Before::of(self);
        self.thaw();
        self.wipe_in_child();
        self.follow_budget();
        self.publish();
        Ok(())
    }

    /// Puts every page back where it belongs, in a child that can't have a userfaultfd (it has
    /// given up the right to one): from then on the child is not managed, and uses what memory it
    /// needs.
    pub fn come_home(&mut self) -> Result<(), Trouble> {
        let managed: Vec<(usize, usize)> = self.managed.iter().collect();
        for &(start, end) in &managed {
            // It may have had one before it was refused the rest. Else this fails.
            let _ = self
                .machine
                .unregister(page_of(start), pages_in(start, end));
        }
        for (start, end) in managed {
            for address in (start..end).step_by(PAGE) {
                self.bring_home(address)?;
            }
        }
        let process = self.shared.process(self.record());
        process
            .counter(crate::shared::Counter::ManagedRegions)
            .store(0, Relaxed);
        process.set_resident(0);
        Ok(())
    }

    fn bring_home(&mut self, address: usize) -> Result<(), Trouble> {
        let at = page_of(address);
        // What was served during the fork is there, and newer.
        if self.freeze.aside.contains(&address) || self.wiped.contains(address) {
            return Ok(());
        }
        let source = match (
            self.vm.frame_at(self.space, at),
            self.vm.slot_at(self.space, at),
        ) {
            (Some(frame), _) if self.machine.is_mapped(frame) => return Ok(()),
            (Some(frame), _) => self.machine.pool().address(frame),
            (None, Some(_)) if !self.has_store => {
                return Err(Trouble::Call {
                    what: "reaching the swap store from a forked process",
                    error: crate::sys::Errno::NOENT,
                });
            }
            (None, Some(slot)) => {
                if self.store.read_now(slot, &mut self.freeze.page).is_err() {
                    self.end_for_fetch(address);
                }
                self.freeze.page.start()
            }
            (None, None) => return Ok(()),
        };
        let written = crate::sys::memory::write_own_memory(address, source, PAGE);
        written.map_err(|error| Trouble::Call {
            what: "bringing back the pages of a forked process",
            error,
        })
    }

    /// Registers what is managed with the child's userfaultfd. What another thread of the parent
    /// was unmapping at the moment of the fork is dropped.
    pub(super) fn register_again(&mut self) -> Result<(), Trouble> {
        let call = |what| move |error| Trouble::Call { what, error };
        self.scanner
            .read()
            .map_err(call("reading the child's mappings"))?;
        let anonymous = self.scanner.find(&self.managed, self.now).anonymous;
        let managed: Vec<(usize, usize)> = self.managed.iter().collect();
        for (start, end) in managed {
            let mut next = start;
            for (from, to) in anonymous.collect_overlaps(start, end) {
                let (from, to) = (from.max(start), to.min(end));
                if from > next {
                    self.forget_range(next, from);
                }
                let registered = self
                    .machine
                    .register_again(page_of(from), pages_in(from, to));
                registered.map_err(call("registering memory in a forked child"))?;
                next = to;
            }
            if next < end {
                self.forget_range(next, end);
            }
        }
        Ok(())
    }

    /// The doorbell is this thread's from now on.
    pub(super) fn open_doorbell(setup: &Setup) -> Result<std::os::fd::OwnedFd, Trouble> {
        let opened = match setup.is_in_thread {
            true => signal::timer(),
            false => signal::doorbell(),
        };
        opened.map_err(|error| Trouble::Call {
            what: "making a doorbell",
            error,
        })
    }
}

impl Requests {
    /// Takes the request that ends a freeze, if it was asked for; everything else waits.
    fn take_thaw(&self) -> Option<(Taken, Ask)> {
        self.take_if(|ask| matches!(ask, Ask::Thaw))
    }
}

/// The time for which a program thread waits for the engine to come to rest.
pub const REST_LIMIT: Duration = Duration::from_nanos(REST_NS_MAX + 5_000_000_000);
