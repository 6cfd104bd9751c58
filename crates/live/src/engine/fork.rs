//! Going through a fork.
//!
//! A forked child has a copy of everything: the program's pages, the pool, and this engine's
//! tables. So that they fit together the engine rests for the time of the system call: no transfer
//! is under way, no table changes, no fault is served. The thread that forks has taken all locks of
//! the C library by then (see `sites` in the preload library), so that it needs no thread that may
//! wait for a page. The child has an engine of its own before anything else runs there.
//!
//! Meanwhile, that is from the beginning of the rest to the end of the system call:
//!
//! - **A fault of another thread** waits. In the child its thread does not exist.
//! - **A fault of the thread that forks**, whose stack may be managed, is served from the tables
//!   and noted in `aside`. The child takes over what is there.
//! - **A fault of another process**, which reads the program's memory, is served likewise. A tracer
//!   may hold the thread that forks, and let it go on when it has read what another thread hands
//!   to the kernel: were it to wait, neither would ever end. For the same reason a thread's fault
//!   does not wait for ever: who holds the one that forks may wait for that thread.
//! - **A page on its way in or out**: there is none. The rest begins when all have arrived, however
//!   long that takes.
//! - **`munmap` and `mremap` that returned before the fork** were told of before, or are in `held`.
//!   The child applies its own copy of that first.
//! - **Those that have not returned** wait for their message to be read, after the fork. In the
//!   child what is mapped tells: the rest is forgotten.
//! - **`madvise` that returned before the fork** was told of before, or is in `held`: the range
//!   reads as zeros on both sides. One that has not returned counts or does not, as natively.
//! - **`mmap`, `brk` and moves** return when the fork is over. What they made is not in use yet in
//!   the child, which finds it as new memory.
//! - **`mprotect`** tells nothing and moves nothing.
//! - **Another `fork`, or `clone` without `CLONE_VM`**, begins when this one is over.
//! - **`vfork`, `posix_spawn`, `exec`** need no engine, and go on.
//! - **No record for the child**: the fork fails with `EAGAIN`.
//! - **A supervisor that is slow**: the child waits for it, and for frames of others.
//! - **Another process that touches the child's memory before there is an engine** waits, where
//!   the kernel reports forks: the child's engine goes on with the userfaultfd that came with the
//!   fork (`parts/intake/freeze/loan.rs`).
//! - **No engine in the child**: all its pages are brought back, or it is ended with a line.
//!
//! The kernel holds a fork until the engine has read of it. What else is read before that may have
//! happened before the fork or after, and is kept in `held`: what the child's copy of that holds
//! was read before the copy was made.
//!
//! # Invariants
//! 1. At rest only `aside`, `held` and the faults that have arrived change, by appending within
//!    their capacity: the heap's lock is the forking thread's. A page is in `aside` before it can
//!    be present.
//! 2. Memory is not copied in one moment: a child's copy may have a page and not the entry in
//!    `aside`, unless it is the forking thread's. Its record says that there may be such pages
//!    before there are any.
//! 3. The child's record, and its share in every slot, exist before the fork.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tidemark_core::driver::Driver;
use tidemark_core::time::Time;

use super::Engine;
use super::budget::DIVIDING_NS_MAX;
use super::files::Passed;
use crate::machine::{LiveMachine, Probe};
use crate::meters;
use crate::parts::intake::{Arrival, Fate};
use crate::parts::place::Place;
use crate::parts::trouble::Trouble;
use crate::parts::units::{address_of, now, page_of, pages_in};
use crate::requests::Requests;
use crate::shared::{Loan, Offer, ProcessIndex};
use crate::sys::maps::{Area, Maps};
use crate::sys::memory;
use crate::sys::uffd::{Progress, Stop, Uffd};
use crate::sys::{PAGE, program, socket, thread};

/// The pause between two looks whether the address space is at rest.
const QUIET_PAUSE: Duration = Duration::from_micros(50);
/// The time that the engine of a child's parent may take to close what it has for the child.
const CLOSING_NS_MAX: u64 = 10_000_000_000;
/// The time for which a child waits for its userfaultfd. The engine of its parent offers it before
/// the child begins, unless something has gone wrong.
const OFFER_NS_MAX: u64 = 1_000_000_000;
/// The pause between two looks for it.
const OFFER_PAUSE: Duration = Duration::from_micros(50);
/// The longest sleep of an engine at rest.
const REST_SLEEP_NS: u64 = 100_000_000;
/// The longest sleep of an engine at rest while a fault is served.
const REST_RETRY_NS: u64 = 1_000_000;
/// The time for which a fault of a thread that does not fork waits for the end of the rest.
const OTHERS_WAIT_NS: u64 = 1_000_000_000;
/// The time that a process may take to give up the half of its frames that its child will hold.
const HALVING_NS_MAX: u64 = 5_000_000_000;

impl Engine {
    /// Finds frames for the child, or gives up half of what may be used, ends all transfers, claims
    /// the child's record and freezes. `None` if there is no record.
    ///
    /// The child starts with the same pages in its frames, and each of the two makes its own copy
    /// of what it writes to: with no more than either may have they hold no more together than this
    /// process might.
    pub(super) fn come_to_rest(&mut self) -> Option<ProcessIndex> {
        self.give_all_files_up(Passed::Forked);
        // Memory that has not been found yet would be in both processes beside all budgets.
        self.look_at_size();
        self.place.let_go(self.now);
        self.make_way();
        // What was written before the fork is this process's doing.
        self.catch_up();
        let child = self.make_child()?;
        while !self.settle_changes() || self.machine.is_changing() {
            std::thread::sleep(QUIET_PAUSE);
        }
        self.intake.begin_freeze(self.line.record(), child);
        Some(child)
    }

    /// Rests until the fork of `child` by `thread` is over, and goes on in the parent with what it
    /// has left.
    pub(super) fn rest(&mut self, thread: u32, child: ProcessIndex, requests: &Requests) {
        let program = self.machine.program().as_fd().as_raw_fd();
        // The supervisor has to wait.
        let [program, doorbell, _] = self.line.wakers(program);
        let files = [program, doorbell, None, None];
        let begun = now();
        while !requests.take_thaw() {
            // It may have been read before the rest began, or be refused for now.
            let pause_ns = match self.serve_frozen((thread, child), begun) {
                true => REST_RETRY_NS,
                false => REST_SLEEP_NS,
            };
            // A sleep that fails for any reason is a short one.
            let ready = socket::wait_readable_raw(files, pause_ns).unwrap_or(0);
            if ready & 2 != 0 {
                self.line.take_rings();
            }
            if ready & 1 != 0 && self.intake.has_room() {
                self.read_messages();
            }
            self.close_needless();
            if ready == 0 {
                leave_if_alone();
            }
        }
        self.intake.freeze_mut().end_fork();
        self.thaw();
        self.follow_budget();
    }

    /// Comes to rest with as many pages as the child may have, claims its record, and gives it
    /// frames. What the supervisor takes meanwhile may ask for more pages to be given up.
    fn make_child(&mut self) -> Option<ProcessIndex> {
        let start = now();
        let (divided, late) = (
            start.after_ns(DIVIDING_NS_MAX),
            start.after_ns(HALVING_NS_MAX),
        );
        loop {
            self.bring_to_rest(|engine| {
                let most = engine.keep_way(divided);
                most.is_some_and(|most| engine.in_use() <= most) || engine.now >= late
            });
            tidemark_core::seams::machine::Machine::settle(&mut self.machine);
            // The child does not need the memory that transfers have had.
            self.store.rest();
            // What was touched before the fork stands before what the child touches.
            self.telemetry.publish_samples();
            // The child's pages count from here on: what was given up for it must not count, too.
            // It is not said again that this process has what is the child's then.
            self.publish();
            let child = self.line.claim_child()?;
            if self.split_budget(child, self.now >= late) {
                return Some(child);
            }
            self.line.shared().release(child);
        }
    }

    /// Ends all transfers, and gives up memory until that `is_enough`.
    fn bring_to_rest(&mut self, is_enough: impl Fn(&mut Engine) -> bool) {
        self.now = now();
        let mut is_down = is_enough(self);
        loop {
            if self.settle_changes() {
                self.collect_replies();
                if !is_down {
                    self.vm.handle_tick(self.now, &mut self.machine);
                }
                self.turns.note_tended(false);
                self.carry_out();
                self.machine.retry_deferred();
            }
            self.now = now();
            is_down = is_enough(self);
            let is_idle = is_down && self.vm.transfers_pending() == 0 && self.store.is_idle();
            if is_idle && self.intake.is_settled() {
                return;
            }
            self.store.wait(1_000_000);
        }
    }

    /// Serves those faults that have arrived and don't wait for the end of the rest, which has
    /// `begun` for a fork by a thread, of a child. False if there are none.
    fn serve_frozen(&mut self, (forking, child): (u32, ProcessIndex), begun: Time) -> bool {
        let mut has_any = false;
        // Nothing may be freed here: the queue is walked, not emptied.
        let mut index = 0;
        while let Some(arrival) = self.intake.faults().arrived_at(index) {
            index += 1;
            let is_others = arrival.thread != forking;
            if is_others && !is_urgent(&arrival, begun) {
                continue;
            }
            if is_others {
                self.line.shared().process(child).note_served_at_fork();
            }
            self.serve_aside(arrival.address, is_others);
            has_any = true;
        }
        has_any
    }

    /// Gives back the record of a child that did not come to be.
    pub(super) fn abandon_child(&mut self, child: u64) {
        if let Some(index) = child.checked_sub(1) {
            self.line.shared().release(ProcessIndex(index as u32));
        }
    }

    /// Goes on after a fork, in the parent or in the child.
    fn thaw(&mut self) {
        self.now = now();
        for message in self.intake.freeze_mut().thaw() {
            self.apply(message);
        }
        self.take_in_aside();
        self.addresses.adoption_mut().scan_soon(self.now);
        self.addresses.outside_mut().hasten(self.now);
    }

    /// Takes in what was copied to its place: it is newer than what the tables know. What has been
    /// moved since is found where it is by now, as in the end all is that stands there.
    fn take_in_aside(&mut self) {
        let aside = self.intake.freeze_mut().take_aside();
        while !aside.is_empty() && self.await_changes() {
            // Chosen before the first is taken in, which may send away others that are known.
            let is_newer = |address: &usize| {
                let is_there = self.machine.pages().is_present(*address);
                let is_managed = self.addresses.contains(*address);
                is_managed && is_there.unwrap_or(false) && !self.is_known(page_of(*address))
            };
            let newer: Vec<usize> = aside.iter().copied().filter(is_newer).collect();
            // What was seen may be what has come after something that has moved away.
            if !self.machine.is_changing() {
                for address in newer {
                    self.adopt_newer(page_of(address));
                }
                return;
            }
        }
        for address in aside {
            if self.addresses.contains(address) {
                self.addresses.adoption_mut().add(address, address + PAGE);
            }
        }
    }

    /// Serves a fault without changing the tables; it `is_others` if the thread that forks goes on
    /// without it.
    fn serve_aside(&mut self, address: usize, is_others: bool) {
        let at = page_of(address);
        let start = address_of(at);
        let fate = self.intake.freeze().fate_of(start);
        let is_known = self.addresses.contains(start) && fate != Fate::Remapped;
        let is_served = self.intake.freeze().is_aside(start)
            && self.machine.pages().is_present(start).unwrap_or(false);
        if !is_known || is_served {
            self.machine.wake(at);
            return;
        }
        let frame = self.vm.frame_at(self.space, at);
        let is_of_file = self.file_part(at).is_some();
        let mut is_mapped = frame.is_some_and(|frame| self.machine.mapped_at(frame) == Some(at));
        if is_mapped && is_of_file {
            if self.machine.pages().is_present(start).unwrap_or(false) {
                return self.machine.wake(at);
            }
            // It has gone without a word: the file has it.
            is_mapped = false;
        }
        if is_mapped {
            self.intake.freeze_mut().note_aside(start);
            // Whether it stood there or not, it stands there now.
            let _: Probe = self.machine.probe(at);
            return;
        }
        let zeros = self.machine.pool().zeros();
        let is_in_frame = frame.is_some_and(|frame| self.machine.pooled(frame).is_some());
        let source = match (frame, self.vm.slot_at(self.space, at)) {
            (_, slot)
                if is_of_file && !is_in_frame && (slot.is_none() || fate == Fate::Emptied) =>
            {
                match self.read_file_frozen(start) {
                    Some(source) => source,
                    // Who waits for the page meets this again when the rest is over.
                    None if is_others => return,
                    None => self.end_for_fetch(start),
                }
            }
            _ if fate == Fate::Emptied => zeros,
            (Some(frame), _) => self.machine.pooled(frame).unwrap_or(zeros),
            (None, Some(slot)) => match self.store.read_now(slot, self.intake.page()) {
                Ok(()) => self.intake.page().start(),
                // Who waits for the page meets this again when the rest is over.
                Err(_) if is_others => return,
                Err(_) => self.end_for_fetch(start),
            },
            (None, None) => zeros,
        };
        self.intake.freeze_mut().note_aside(start);
        match self.machine.program().copy(start, source, PAGE) {
            Progress::All | Progress::Part(_) => {}
            Progress::Nothing(Stop::Present) => self.machine.wake(at),
            // The thread still waits: it is served again in the next turn.
            Progress::Nothing(_) => {}
        }
    }

    /// Goes on in a forked child, on its new engine thread, with the record that its parent
    /// claimed. The thread that forked waits, and touches nothing of what is managed.
    /// If it `is_at_socket`, this thread is in the folder of the supervisor's socket, which has no
    /// path here.
    pub fn resume_in_child(&mut self, child: u64, is_at_socket: bool) -> Result<(), Trouble> {
        self.now = now();
        let index = child.checked_sub(1).map(|index| ProcessIndex(index as u32));
        let Some(index) = index else {
            let error = crate::sys::Errno::INVAL;
            return Err(Trouble::Call {
                what: "a fork that was not announced",
                error,
            });
        };
        self.line.take_record(index);
        self.intake.faults_mut().clear();
        self.addresses.adoption_mut().forget_holding();
        self.open_in_child(index, is_at_socket)?;
        // The copy speaks of the parent's threads, and of where the parent's engine was.
        self.place = Place::new(self.setup.cpu_finder, self.line.shared().disk_processor());
        meters::reset();
        self.vm.forget_read_ahead();
        self.telemetry
            .restart_counts((&self.vm, &self.store, &self.machine));
        self.thaw();
        if self.line.shared().process(index).was_served_at_fork() {
            self.addresses.adopt_all();
        }
        self.wipe_in_child();
        self.follow_budget();
        self.publish();
        Ok(())
    }

    /// Closes the userfaultfds of children that need them no longer here.
    pub(super) fn close_needless(&mut self) {
        let witness = self.machine.witness();
        self.intake
            .freeze_mut()
            .close_needless(self.line.shared(), witness);
    }

    /// Takes a copy of the userfaultfd that the engine of this child's parent has for it. `None` if
    /// there is none: where the kernel reports no forks, where the engine is a thread of its
    /// program, in a namespace that the parent's engine has no number in, or when that has ended.
    pub(super) fn take_userfaultfd(
        &mut self,
        record: ProcessIndex,
        parent_engine: u32,
    ) -> Option<Uffd> {
        self.intake.freeze_mut().forget_lent();
        let parents = self.machine.program();
        if !program::is_engine() || !parents.tells_of_forks() {
            return None;
        }
        let record = self.line.shared().process(record);
        let end = now().after_ns(OFFER_NS_MAX);
        while record.offer() == Offer::Open && now() < end && !program::is_over(parent_engine) {
            std::thread::sleep(OFFER_PAUSE);
        }
        let loan = match record.offer() {
            Offer::File(loan) => Some(loan),
            Offer::Open | Offer::Nothing | Offer::Ended | Offer::Taken(_) => None,
        };
        let copy = |loan: Loan| program::copy_of_others_file(parent_engine, loan.number).ok();
        let copied = loan.and_then(copy);
        // Its memory can't belong to another one before the parent's engine has closed this.
        record.close_offer(loan.filter(|_| copied.is_some()));
        copied.map(|file| Uffd::for_child(file, parents))
    }

    /// Puts every page back where it belongs, in a child that can't have a userfaultfd (it has
    /// given up the right to one): from then on the child is not managed, and uses what memory it
    /// needs.
    pub fn come_home(&mut self) -> Result<(), Trouble> {
        // While the parent's engine has this child's open, what is missing can't be written to.
        self.line.process().close_offer(None);
        let managed: Vec<(usize, usize)> = self.addresses.managed().iter().collect();
        // It may have had one before it was refused the rest. Else this fails.
        let unregister = |machine: &mut LiveMachine, start, end| {
            let _ = machine.unregister(page_of(start), pages_in(start, end));
        };
        for &(start, end) in &managed {
            unregister(&mut self.machine, start, end);
        }
        // What was registered and not known of belongs to the inherited one as well.
        let _ = Maps::open().and_then(|mut maps| {
            maps.visit_areas(|area| unregister(&mut self.machine, area.start, area.end))
        });
        // Without `/proc` only what may be written to can be brought back.
        let closed = find_closed(&managed);
        set_open(&closed, true)?;
        for (start, end) in managed {
            for address in (start..end).step_by(PAGE) {
                self.bring_home(address)?;
            }
        }
        set_open(&closed, false)?;
        let process = self.line.process();
        process
            .counter(crate::shared::Counter::ManagedRegions)
            .store(0, Relaxed);
        process.set_resident(0);
        // From here on the record is for others.
        self.line.give_record_up();
        Ok(())
    }

    fn bring_home(&mut self, address: usize) -> Result<(), Trouble> {
        let at = page_of(address);
        // What was served during the fork is there, and newer.
        if self.intake.freeze().is_aside(address) || self.addresses.is_wiped(address) {
            return Ok(());
        }
        let source = match (
            self.vm.frame_at(self.space, at),
            self.vm.slot_at(self.space, at),
        ) {
            (Some(frame), _) if self.machine.is_mapped(frame) => return Ok(()),
            (Some(frame), _) => self.machine.pool().address(frame),
            (None, Some(_)) if !self.line.has_store() => {
                return Err(Trouble::Call {
                    what: "reaching the swap store from a forked process",
                    error: crate::sys::Errno::NOENT,
                });
            }
            (None, Some(slot)) => {
                if self.store.read_now(slot, self.intake.page()).is_err() {
                    self.end_for_fetch(address);
                }
                self.intake.page().start()
            }
            (None, None) => match self.read_file_now(address, address + PAGE) {
                Ok(0) => return Ok(()),
                Ok(_) => self.intake.page().start(),
                Err(_) => self.end_for_fetch(address),
            },
        };
        // The parent's engine may be about to close the userfaultfd that it has for this process.
        let end = now().after_ns(CLOSING_NS_MAX);
        let mut written = memory::write_own_memory(address, source, PAGE);
        while written == Err(crate::sys::Errno::FAULT) && now() < end {
            std::thread::sleep(QUIET_PAUSE);
            written = memory::write_own_memory(address, source, PAGE);
        }
        written.map_err(|error| Trouble::Call {
            what: "bringing back the pages of a forked process",
            error,
        })
    }

    /// Applies, in a child, what was read in the parent before the fork.
    pub(super) fn apply_held(&mut self) {
        for message in self.intake.freeze_mut().take_held() {
            self.apply(message);
        }
        self.settle_in_child();
    }

    /// Registers the managed ranges with the child's userfaultfd. Ranges that another thread of the
    /// parent was unmapping at the moment of the fork are dropped.
    pub(super) fn register_again(&mut self) -> Result<(), Trouble> {
        let call = |what| move |error| Trouble::Call { what, error };
        self.addresses
            .scanner_mut()
            .read()
            .map_err(call("reading the child's mappings"))?;
        let anonymous = self.addresses.find(self.now).anonymous;
        let managed: Vec<(usize, usize)> = self.addresses.managed().iter().collect();
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
}

/// Ends an engine whose program has ended, or has executed another, in the midst of a fork: no
/// code is left to end the rest, or to give back the heap.
fn leave_if_alone() {
    let is_gone = || program::await_end(0) || program::has_other_memory() == Some(true);
    if program::is_engine() && is_gone() {
        program::leave();
    }
}

/// Returns true if a fault does not wait for the end of a rest that has `begun`, though its thread
/// is not the one that forks.
fn is_urgent(arrival: &Arrival, begun: Time) -> bool {
    let has_waited = now().since_ns(arrival.since.max(begun)) >= OTHERS_WAIT_NS;
    has_waited || thread::is_elsewhere(arrival.thread)
}

/// Finds the parts of `managed` that the program may not write to, and the mapping of each; none
/// where the mappings can't be read.
fn find_closed(managed: &[(usize, usize)]) -> Vec<(usize, usize, Area)> {
    let mut closed = Vec::new();
    let read = Maps::open().and_then(|mut maps| {
        maps.visit_areas(|area| {
            let parts = managed.iter().filter(|_| !area.is_writable);
            let parts = parts.map(|&(start, end)| (start.max(area.start), end.min(area.end), area));
            closed.extend(parts.filter(|(start, end, _)| start < end));
        })
    });
    match read {
        Ok(()) => closed,
        Err(_) => Vec::new(),
    }
}

/// Opens the parts for writing, or gives them the rights back that they had. The one thread of the
/// program waits.
fn set_open(parts: &[(usize, usize, Area)], open: bool) -> Result<(), Trouble> {
    for &(start, end, area) in parts {
        memory::set_rights(start, end, area, open).map_err(|error| Trouble::Call {
            what: "opening the pages of a forked process",
            error,
        })?;
    }
    Ok(())
}
