//! Serving faults: from the message to the moment the thread goes on.

use std::collections::VecDeque;

use tidemark_core::fault::{Access, Event, Failure, Fault, Resolution, Service};
use tidemark_core::id::{VirtPage, Waiter};
use tidemark_core::time::Time;

use super::Engine;
use crate::machine::Probe;
use crate::parts::units::{address_of, now, page_of, pages_in};
use crate::shared::{Counter, Latency};
use crate::sys::reserve;
use crate::sys::uffd::MESSAGES_MAX;

/// A fault that was read and is not over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) address: usize,
    pub(super) is_write: bool,
    pub(super) thread: u32,
    pub(super) since: Time,
}

/// The most faults that a frozen engine takes in. Threads that the kernel has no number for may
/// have several each.
const ARRIVED_MAX: usize = 16 << 10;

/// The faults that are not over.
#[derive(Default)]
pub(super) struct Waiting {
    /// Read and not served yet.
    pub(super) arrived: VecDeque<Arrival>,
    /// Some of them have not been looked at: a parked program's are looked at, and held.
    has_new: bool,
    /// To be looked at again in the next turn: the address space was changing.
    again: Vec<Arrival>,
    /// Handed to the core, by the number in their [`Waiter`].
    pending: Vec<Option<Arrival>>,
    unused: Vec<u32>,
}

impl Waiting {
    /// Returns true if some faults are to be looked at again soon.
    pub(super) fn has_again(&self) -> bool {
        !self.again.is_empty()
    }

    /// Returns true if some faults have been read and not looked at.
    pub(super) fn has_new(&self) -> bool {
        self.has_new
    }

    /// The number of faults that are not over.
    pub(super) fn len(&self) -> usize {
        let pending = self.pending.len() - self.unused.len();
        self.arrived.len() + self.again.len() + pending
    }

    /// Has all faults that have arrived begin to wait at `now`.
    pub(super) fn renew(&mut self, now: Time) {
        self.arrived
            .iter_mut()
            .for_each(|arrival| arrival.since = now);
    }

    /// Has a fault looked at again in the next turn.
    pub(super) fn put_off(&mut self, arrival: Arrival) {
        self.again.push(arrival);
    }

    /// Takes in a fault. A thread waits at one place: what it was said to wait at before is stale,
    /// and to serve that now would be to decide about a page without a touch. Threads that
    /// the kernel has no number for here share 0.
    pub(super) fn arrive(&mut self, arrival: Arrival) {
        if arrival.thread != 0 {
            let is_other = |known: &Arrival| known.thread != arrival.thread;
            self.arrived.retain(is_other);
            self.again.retain(is_other);
        }
        self.arrived.push_back(arrival);
        self.has_new = true;
    }

    /// Forgets all faults: their threads do not exist in a forked child.
    pub(super) fn clear(&mut self) {
        *self = Waiting::default();
    }

    /// Every fault that is not over, and forgets that they were looked at. From then on as many as
    /// a frozen engine takes in need no memory. Answers how many there are.
    pub(super) fn requeue_all(&mut self) -> usize {
        self.has_new |= self.has_again();
        self.arrived.extend(self.again.drain(..));
        let more = ARRIVED_MAX.saturating_sub(self.arrived.len());
        self.arrived.reserve(more);
        self.arrived.len()
    }

    /// Begins to look at every fault that is not over. Answers how many there are.
    pub(super) fn look_at_all(&mut self) -> usize {
        let count = self.requeue_all();
        self.has_new = false;
        count
    }

    /// Takes the fault that has been there longest. An empty queue begins at its start again: it
    /// would else go through all of the memory that it is given for a freeze.
    fn next_arrived(&mut self) -> Option<Arrival> {
        let next = self.arrived.pop_front();
        if self.arrived.is_empty() {
            self.arrived.clear();
        }
        next
    }

    /// Returns true if the faults of one more read need no memory.
    pub(super) fn has_room(&self) -> bool {
        self.arrived.len() + MESSAGES_MAX <= self.arrived.capacity()
    }

    /// A fault that was handed to the core; `None` if it is over.
    pub(super) fn find(&self, waiter: Waiter) -> Option<Arrival> {
        *self.pending.get(waiter.0 as usize)?
    }

    /// Since when a fault waits; `None` if it is over.
    pub(super) fn since(&self, waiter: Waiter) -> Option<Time> {
        self.find(waiter).map(|arrival| arrival.since)
    }

    pub(super) fn add(&mut self, arrival: Arrival) -> Waiter {
        let number = self.unused.pop().unwrap_or_else(|| {
            self.pending.push(None);
            self.pending.len() as u32 - 1
        });
        self.pending[number as usize] = Some(arrival);
        Waiter(u64::from(number))
    }

    /// Ends a fault. In a forked child, those of its parent end without a waiting thread.
    pub(super) fn take(&mut self, waiter: Waiter) -> Option<Arrival> {
        let arrival = self.pending.get_mut(waiter.0 as usize)?.take()?;
        self.unused.push(waiter.0 as u32);
        Some(arrival)
    }
}

impl Engine {
    /// Has `serve` see to every fault that has arrived.
    pub(super) fn serve_arrived(&mut self, serve: fn(&mut Engine, Arrival)) {
        // As many as there are now: what must wait is put at the end again.
        for _ in 0..self.waiting.look_at_all() {
            let Some(arrival) = self.waiting.next_arrived() else {
                break;
            };
            self.place.note_fault(arrival.thread);
            serve(self, arrival);
        }
    }

    /// Serves a fault; its thread wakes where it is wanted.
    pub(super) fn serve_near(&mut self, arrival: Arrival) {
        self.place
            .keep_near(arrival.thread, self.now, self.telemetry.gauges_mut());
        self.serve(arrival);
    }

    pub(super) fn serve(&mut self, arrival: Arrival) {
        let at = page_of(arrival.address);
        if arrival.is_write && self.machine.is_closed(arrival.address) {
            return self.refuse_write(arrival);
        }
        let frame = self.vm.frame_at(self.space, at);
        if frame.is_some_and(|frame| self.machine.mapped_at(frame) == Some(at)) {
            self.serve_mapped(arrival);
            return;
        }
        self.note_thread(arrival.thread);
        if self.serve_blank(arrival) {
            return;
        }
        if arrival.is_write {
            self.map_neighbours(at);
        }
        self.note_touch(at, arrival.is_write);
        let access = if arrival.is_write {
            Access::Write
        } else {
            Access::Read
        };
        let waiter = self.waiting.add(arrival);
        let fault = Fault {
            space: self.space,
            at,
            access,
            waiter,
        };
        match self.vm.handle_fault(self.now, &mut self.machine, fault) {
            Resolution::Resolved(service) => {
                self.waiting.take(waiter);
                let kind = match service {
                    Service::Minor => Latency::Soft,
                    Service::ZeroFill => Latency::ZeroFill,
                    Service::Major | Service::Copy | Service::Buffer => Latency::PageIn,
                };
                self.end_wait(arrival, Some(kind));
                if kind == Latency::Soft {
                    self.count_retouch();
                }
                self.note_standing(at);
            }
            Resolution::Pending(_) => {
                self.telemetry.add(Counter::PageInFaults, 1);
            }
            Resolution::Invalid => {
                self.waiting.take(waiter);
                self.serve_unknown(arrival);
            }
        }
    }

    /// A fault on a page that should be there: another fault has brought it, or the program has
    /// taken it away by means that send no message.
    fn serve_mapped(&mut self, arrival: Arrival) {
        let at = page_of(arrival.address);
        if self.machine.has_deferred() {
            self.waiting.again.push(arrival);
            return;
        }
        if self.file_part(at).is_some() {
            return self.serve_mapped_file(arrival);
        }
        match self.machine.probe(at) {
            Probe::Present => {
                self.telemetry.add(Counter::SpuriousFaults, 1);
                self.end_wait(arrival, None);
            }
            Probe::Refilled => {
                self.vm.discard(&mut self.machine, self.space, at, 1);
                self.adopt_page(at);
                self.end_wait(arrival, Some(Latency::ZeroFill));
            }
            Probe::Changing => self.waiting.again.push(arrival),
            Probe::Unknown => self.machine.wake(at),
        }
    }

    /// A fault where the core has no region: memory that grew in place, or that moved away.
    fn serve_unknown(&mut self, arrival: Arrival) {
        let at = page_of(arrival.address);
        if self.serve_beyond_file(arrival) {
            return;
        }
        // The range may be one that has just been moved here, and the message is not here yet.
        if self.take_over_around(at) || self.machine.is_changing() {
            self.waiting.again.push(arrival);
        } else {
            // Nothing to serve: the thread touches again, and meets what is there. What is passed
            // through may be registered as a part of a mapping that has grown.
            let _ = self.machine.unregister(at, 1);
            self.machine.wake(at);
            self.end_wait(arrival, None);
        }
    }

    /// Takes over what can be managed around `at` and is not yet. False if that is nothing.
    pub(super) fn take_over_around(&mut self, at: VirtPage) -> bool {
        let address = address_of(at);
        let Some(area) = self.scanner.find_manageable(address) else {
            return false;
        };
        // Where a thread waits for the engine something is registered.
        self.scanner.forget_refused(area.start, area.end);
        let gaps = self.managed.collect_gaps(area.start, area.end);
        let mut free = gaps
            .into_iter()
            .flat_map(|(s, e)| self.scanner.collect_free(s, e));
        let gap = free.find(|(start, end)| (*start..*end).contains(&address));
        gap.is_some_and(|(start, end)| self.take_over(start, end))
    }

    /// Passes on what the core says became of a fault.
    pub(super) fn handle_event(&mut self, event: Event) {
        match event {
            Event::Resolved(fault, service) => {
                if let Some(arrival) = self.waiting.take(fault.waiter) {
                    let waited = self.end_wait(arrival, Some(Latency::PageIn));
                    // A new page that had to wait for a frame is nothing that was needed before.
                    if service == Service::Major {
                        self.telemetry.add(Counter::FetchStallNs, waited);
                    }
                    self.note_standing(fault.at);
                }
            }
            Event::Retry(fault) => self.retry(fault),
            Event::Failed(fault, Failure::PagerFailed) if self.lose_file_page(fault) => {}
            Event::Failed(fault, Failure::PagerFailed) => self.end_for_fetch(address_of(fault.at)),
            Event::Failed(fault, why) => {
                let is_failing = why == Failure::StoreFailed;
                // If the swap file keeps failing, more memory does not help.
                let may_wait = !is_failing || !self.setup.store.has_file();
                if !may_wait || !self.gets_more() {
                    self.end_for_store(is_failing);
                }
                self.retry(fault);
            }
            Event::StoreFull => self.report_if_verbose("the swap store is full"),
            Event::Disowned { at, .. } => self.note_disowned(at),
            Event::StoreFailed => self.report_if_verbose("the swap store fails to take pages"),
            // One process has one space; whole processes are suspended by the supervisor.
            Event::Suspend { .. } | Event::Resume { .. } => {}
        }
    }

    /// Has the thread of a fault run on, to meet it anew.
    pub(super) fn retry(&mut self, fault: Fault) {
        self.machine.wake(fault.at);
        if let Some(arrival) = self.waiting.take(fault.waiter) {
            self.end_wait(arrival, None);
        }
    }

    /// Counts the wait of a fault that is over, and answers how long it was.
    pub(super) fn end_wait(&mut self, arrival: Arrival, kind: Option<Latency>) -> u64 {
        let waited = now().since_ns(arrival.since);
        self.telemetry.add(Counter::StallNs, waited);
        if let Some(kind) = kind {
            self.line.process().record_latency(kind, waited);
        }
        waited
    }

    /// Takes a range under management: from now on its missing pages are the engine's business,
    /// and present ones will be adopted. Answers whether that worked.
    ///
    /// Nothing else about the range changes. Advice against huge pages, say, on a part that has
    /// grown would split the mapping, and `mremap` refuses to work on two.
    pub(super) fn take_over(&mut self, start: usize, end: usize) -> bool {
        // What was seen there may be what has come after something whose end is not known yet: its
        // message would be taken for the end of this.
        if self.machine.is_changing() || !self.changes.is_settled() {
            self.adoption.hasten_scan();
            return false;
        }
        if reserve::is_locked(start, end - start) {
            self.scanner.note_locked_parts(start, end);
            return false;
        }
        let at = page_of(start);
        let Ok(pages) = self.machine.register(at, pages_in(start, end)) else {
            // A mapping that is gone already, that grows downwards, or that the program has
            // registered with a userfaultfd of its own.
            self.scanner.refuse(start, end);
            return false;
        };
        if pages < pages_in(start, end) {
            // The mappings are not those any more that were seen. Whatever stands at the rest by
            // now, something that was moved there perhaps, is to be found anew.
            self.adoption.hasten_scan();
        }
        if pages == 0 {
            return false;
        }
        let end = address_of(at.plus(pages));
        // What the core may still believe to be there is of a mapping that is gone.
        self.vm.unmap(&mut self.machine, self.space, at, pages);
        let rights = tidemark_core::machine::Rights::Write;
        let mapped = match self.setup.mode.ends_work_at_each_fault() {
            true => self.vm.map_apart(self.space, at, pages, rights),
            false => self.vm.map_anonymous(self.space, at, pages, rights),
        };
        mapped.expect("the range has just been unmapped");
        self.managed.insert(start, end);
        self.adoption.add(start, end);
        self.note_mapped(start, end);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(thread: u32, address: usize) -> Arrival {
        Arrival {
            address,
            is_write: false,
            thread,
            since: Time(0),
        }
    }

    #[test]
    fn a_frozen_engine_takes_faults_in_without_memory() {
        let mut waiting = Waiting::default();
        assert!(!waiting.has_room());
        waiting.put_off(fault(7, 0x1000));
        waiting.requeue_all();
        let capacity = waiting.arrived.capacity();
        while waiting.has_room() {
            (0..MESSAGES_MAX).for_each(|_| waiting.arrive(fault(0, 0x2000)));
        }
        assert_eq!(waiting.arrived.capacity(), capacity);
        assert!(waiting.arrived.len() + 2 * MESSAGES_MAX > ARRIVED_MAX);
    }

    #[test]
    fn faults_are_new_until_they_are_looked_at() {
        let mut waiting = Waiting::default();
        waiting.arrive(fault(7, 0x1000));
        // Room is made for a freeze, and nothing is looked at.
        waiting.requeue_all();
        assert!(waiting.has_new());
        assert_eq!(waiting.look_at_all(), 1);
        // It is held: its program is parked.
        assert!(!waiting.has_new() && waiting.len() == 1);
        // The thread was interrupted and touches the same page.
        waiting.arrive(fault(7, 0x1000));
        assert!(waiting.has_new() && waiting.len() == 1);
        // One that was looked at in vain is looked at again after a freeze.
        waiting.look_at_all();
        waiting.put_off(fault(8, 0x2000));
        waiting.requeue_all();
        assert!(waiting.has_new());
    }

    #[test]
    fn faults_that_come_one_by_one_use_the_same_memory() {
        let mut waiting = Waiting::default();
        waiting.requeue_all();
        let mut place_of_next = || {
            waiting.arrive(fault(0, 0x1000));
            let place = std::ptr::from_ref(&waiting.arrived[0]);
            waiting.next_arrived().expect("it has arrived");
            place
        };
        assert_eq!(place_of_next(), place_of_next());
    }

    #[test]
    fn a_thread_waits_at_the_last_place_it_was_said_to_wait_at() {
        let mut waiting = Waiting::default();
        waiting.put_off(fault(7, 0x1000));
        waiting.put_off(fault(8, 0x2000));
        waiting.arrive(fault(7, 0x3000));
        waiting.arrive(fault(9, 0x4000));
        waiting.arrive(fault(9, 0x5000));
        // Two threads without a number.
        waiting.arrive(fault(0, 0x6000));
        waiting.arrive(fault(0, 0x7000));
        waiting.requeue_all();
        let left = waiting.arrived.iter().map(|arrival| arrival.address);
        assert_eq!(
            left.collect::<Vec<_>>(),
            [0x3000, 0x5000, 0x6000, 0x7000, 0x2000]
        );
    }
}
