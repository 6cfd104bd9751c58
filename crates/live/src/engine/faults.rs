//! Serving faults: from the message to the moment the thread goes on.

use tidemark_core::event::{Access, Event, Failure, Fault, Resolution, Service};
use tidemark_core::id::VirtPage;

use super::Engine;
use crate::machine::Probe;
use crate::parts::intake::Arrival;
use crate::parts::units::{address_of, now, page_of, pages_in};
use crate::shared::{Counter, Latency};
use crate::sys::reserve;

impl Engine {
    /// Has `serve` see to every fault that has arrived.
    pub(super) fn serve_arrived(&mut self, serve: fn(&mut Engine, Arrival)) {
        // As many as there are now: what must wait is put at the end again.
        for _ in 0..self.intake.faults_mut().look_at_all() {
            let Some(arrival) = self.intake.faults_mut().next_arrived() else {
                break;
            };
            self.turns.note_served();
            self.place.note_fault(arrival.thread);
            self.note_running(arrival.thread);
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
        if self.is_given_up(arrival.address) {
            return self.intake.faults_mut().put_off(arrival);
        }
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
        let waiter = self.intake.faults_mut().add(arrival);
        let fault = Fault {
            space: self.space,
            at,
            access,
            waiter,
        };
        match self.vm.handle_fault(self.now, &mut self.machine, fault) {
            Resolution::Resolved(service) => {
                self.intake.faults_mut().take(waiter);
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
                self.intake.faults_mut().take(waiter);
                self.serve_unknown(arrival);
            }
        }
    }

    /// A fault on a page that should be there: another fault has brought it, or the program has
    /// taken it away by means that send no message.
    fn serve_mapped(&mut self, arrival: Arrival) {
        let at = page_of(arrival.address);
        if self.machine.has_deferred() {
            self.intake.faults_mut().put_off(arrival);
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
            Probe::Changing => self.intake.faults_mut().put_off(arrival),
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
            self.intake.faults_mut().put_off(arrival);
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
        let found = self.addresses.find_untaken_around(address);
        found.is_some_and(|(start, end)| self.take_over(start, end))
    }

    /// Passes on what the core says became of a fault.
    pub(super) fn handle_event(&mut self, event: Event) {
        match event {
            Event::Resolved(fault, service) => {
                if let Some(arrival) = self.intake.faults_mut().take(fault.waiter) {
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
            Event::StoreFailed => {
                self.hear_all_failed_writes();
                self.report_if_verbose("the swap store fails to take pages");
            }
            // One process has one space; whole processes are suspended by the supervisor.
            Event::Suspend { .. } | Event::Resume { .. } => {}
        }
    }

    /// Has the thread of a fault run on, to meet it anew.
    pub(super) fn retry(&mut self, fault: Fault) {
        self.machine.wake(fault.at);
        if let Some(arrival) = self.intake.faults_mut().take(fault.waiter) {
            self.end_wait(arrival, None);
        }
    }

    /// Counts the wait of a fault that is over, and answers how long it was.
    pub(super) fn end_wait(&mut self, arrival: Arrival, kind: Option<Latency>) -> u64 {
        let waited = now().since_ns(arrival.since);
        self.telemetry.add(Counter::StallNs, waited);
        // Also one that had to wait for the disk: the thread's next is likely to come soon.
        self.turns.note_served();
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
        // A system call that goes on would miss what has not been filled yet.
        if self.calls.holds_any(start, end, 0) {
            self.addresses.adoption_mut().hasten_scan();
            return false;
        }
        self.take_over_held(start, end)
    }

    /// Takes a range under management, even if system calls under way need its memory.
    pub(super) fn take_over_held(&mut self, start: usize, end: usize) -> bool {
        // What was seen there may be what has come after something whose end is not known yet: its
        // message would be taken for the end of this.
        if self.machine.is_changing() || !self.intake.is_settled() {
            self.addresses.adoption_mut().hasten_scan();
            return false;
        }
        if reserve::is_locked(start, end - start) {
            self.addresses.scanner_mut().note_locked_parts(start, end);
            return false;
        }
        let at = page_of(start);
        let Ok(pages) = self.machine.register(at, pages_in(start, end)) else {
            // A mapping that is gone already, that grows downwards, or that the program has
            // registered with a userfaultfd of its own.
            self.addresses.scanner_mut().refuse(start, end);
            return false;
        };
        if pages < pages_in(start, end) {
            // The mappings are not those any more that were seen. Whatever stands at the rest by
            // now, something that was moved there perhaps, is to be found anew.
            self.addresses.adoption_mut().hasten_scan();
        }
        if pages == 0 {
            return false;
        }
        let end = address_of(at.plus(pages));
        // What the core may still believe to be there is of a mapping that is gone.
        self.unmap_gone(at, pages);
        let rights = tidemark_core::seams::machine::Rights::Write;
        let mapped = match self.setup.mode.ends_work_at_each_fault() {
            true => self.vm.map_apart(self.space, at, pages, rights),
            false => self.vm.map_anonymous(self.space, at, pages, rights),
        };
        mapped.expect("the range has just been unmapped");
        self.addresses.insert(start, end);
        self.addresses.adoption_mut().add(start, end);
        self.note_mapped(start, end);
        true
    }
}
