//! In-thread mode: a fault served by the thread that met it, in its signal handler.
//!
//! The engine is then behind a [lock](super::Lock) that its own thread takes for each turn. A
//! thread that must wait for the store does so without the lock, and looks for the answer by
//! itself.

use std::os::fd::{AsRawFd, RawFd};

use tidemark_core::driver::Driver;
use tidemark_core::event::{Access, Fault, Resolution, Service};

use super::Engine;
use crate::machine::Probe;
use crate::parts::intake::{Arrival, FaultOutcome, Token};
use crate::parts::units::{address_of, now, page_of};
use crate::shared::{Counter, Latency};
use crate::sys::ring::Watch;
use crate::sys::signal;

/// Counters are shown after this many faults; the engine's own thread shows them at its turns.
const FAULTS_A_SHOW: u64 = 64;

impl Engine {
    /// Serves a fault of the calling thread at `address`.
    pub fn serve_here(&mut self, address: usize) -> FaultOutcome {
        self.store.leave_writes(true);
        let outcome = self.serve_at(address);
        self.hand_writes_over();
        outcome
    }

    /// Has the engine's thread write what this one has left to it.
    fn hand_writes_over(&mut self) {
        if self.store.has_left_writes() {
            // An engine whose timer the program has closed looks without being asked.
            let _ = signal::ring_timer(self.line.doorbell());
        }
    }

    fn serve_at(&mut self, address: usize) -> FaultOutcome {
        let at = page_of(address);
        self.now = now();
        let is_managed = self.addresses.contains(address_of(at));
        if !self.intake.is_settled() && !self.settle_changes() {
            return FaultOutcome::Touch;
        }
        if !is_managed {
            return if self.take_over_around(at) || self.machine.is_changing() {
                FaultOutcome::Touch
            } else {
                FaultOutcome::Foreign
            };
        }
        if self.vm.transfers_pending() > 0 {
            self.collect_replies();
        }
        let frame = self.vm.frame_at(self.space, at);
        if frame.is_some_and(|frame| self.machine.mapped_at(frame) == Some(at)) {
            self.look_at_mapped(at);
            return FaultOutcome::Touch;
        }
        self.serve_missing(address)
    }

    /// Returns true if a fault that had to wait is over.
    pub fn look_again(&mut self, token: Token) -> bool {
        self.now = now();
        self.store.leave_writes(true);
        if self.intake.is_settled() || self.settle_changes() {
            self.collect_replies();
            self.carry_out();
        }
        self.hand_writes_over();
        self.intake.faults().is_over(token)
    }

    fn serve_missing(&mut self, address: usize) -> FaultOutcome {
        let since = self.now;
        let arrival = Arrival {
            address,
            is_write: false,
            thread: 0,
            since,
        };
        let waiter = self.intake.faults_mut().add(arrival);
        // What may be written is the program's own mapping's business.
        let access = Access::Read;
        let fault = Fault {
            space: self.space,
            at: page_of(address),
            access,
            waiter,
        };
        if self.vm.counters().faults.is_multiple_of(FAULTS_A_SHOW) {
            self.publish();
        }
        match self.vm.handle_fault(self.now, &mut self.machine, fault) {
            Resolution::Resolved(service) => {
                self.intake.faults_mut().take(waiter);
                let kind = match service {
                    Service::Minor => Latency::Soft,
                    Service::Major | Service::ZeroFill | Service::Copy | Service::Buffer => {
                        Latency::ZeroFill
                    }
                };
                self.end_wait(arrival, Some(kind));
                self.conclude();
                FaultOutcome::Touch
            }
            Resolution::Pending(_) => {
                self.telemetry.add(Counter::PageInFaults, 1);
                let token = self.intake.faults().token(waiter);
                self.conclude();
                match token {
                    Some(token) if !self.intake.faults().is_over(token) => {
                        FaultOutcome::Wait(token)
                    }
                    Some(_) | None => FaultOutcome::Touch,
                }
            }
            Resolution::Invalid => {
                self.intake.faults_mut().take(waiter);
                FaultOutcome::Foreign
            }
        }
    }

    fn look_at_mapped(&mut self, at: tidemark_core::id::VirtPage) {
        if self.machine.has_deferred() {
            self.read_messages();
            self.machine.retry_deferred();
            return;
        }
        if self.machine.probe(at) == Probe::Refilled {
            self.vm.discard(&mut self.machine, self.space, at, 1);
            self.adopt_page(at);
        }
    }

    /// The number of the file that can be read when the store has finished something.
    pub fn store_file(&self) -> RawFd {
        let file = self.store.finished();
        // In in-thread mode there is one from the start.
        file.map_or(-1, |file| file.as_raw_fd())
    }

    /// The watch by which one sees from outside that the store has finished something, where that
    /// is possible.
    pub fn store_watch(&self) -> Option<Watch> {
        self.store.watch()
    }
}
