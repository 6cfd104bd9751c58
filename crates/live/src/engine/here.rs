//! In-thread mode: a fault served by the thread that met it, in its signal handler.
//!
//! The engine is then behind a lock ([`Lock`]) that its own thread takes for each turn. A thread
//! that must wait for the store does so without the lock, and looks for the answer by itself.

use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tidemark_core::driver::Driver;
use tidemark_core::fault::{Access, Fault, Resolution, Service};
use tidemark_core::id::Waiter;
use tidemark_core::time::Time;

use super::Engine;
use super::faults::Arrival;
use crate::machine::Probe;
use crate::meters::{self, Metered};
use crate::parts::units::{address_of, now, page_of};
use crate::shared::{Counter, Latency};
use crate::sys::ring::Watch;
use crate::sys::{futex, signal};

/// Counters are shown after this many faults; the engine's own thread shows them at its turns.
const FAULTS_A_SHOW: u64 = 64;

/// The answer to a faulting thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultOutcome {
    /// Touch again: the page is there, or will be soon.
    Touch,
    /// The page is on its way: wait for the store, and ask again with this.
    Wait(Token),
    /// This address is nothing of the engine's.
    Foreign,
}

/// Names a fault that is not over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token {
    waiter: Waiter,
    since: Time,
}

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
        let is_managed = self.managed.contains(address_of(at));
        if !self.changes.is_settled() && !self.settle_changes() {
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
        if self.changes.is_settled() || self.settle_changes() {
            self.collect_replies();
            self.carry_out();
        }
        self.hand_writes_over();
        self.waiting.since(token.waiter) != Some(token.since)
    }

    fn serve_missing(&mut self, address: usize) -> FaultOutcome {
        let since = self.now;
        let arrival = Arrival {
            address,
            is_write: false,
            thread: 0,
            since,
        };
        let waiter = self.waiting.add(arrival);
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
                self.waiting.take(waiter);
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
                self.conclude();
                let is_over = self.waiting.since(waiter) != Some(since);
                if is_over {
                    FaultOutcome::Touch
                } else {
                    FaultOutcome::Wait(Token { waiter, since })
                }
            }
            Resolution::Invalid => {
                self.waiting.take(waiter);
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

/// A lock in static memory that is never managed. Not fair, and not to be taken twice.
pub struct Lock(AtomicU32);

const FREE: u32 = 0;
const TAKEN: u32 = 1;
const WANTED: u32 = 2;

impl Lock {
    /// A free lock.
    pub const fn new() -> Lock {
        Lock(AtomicU32::new(FREE))
    }

    /// Takes the lock, sleeping while another thread has it.
    pub fn take(&self) {
        let asked_ns = meters::asked();
        let is_free = self
            .0
            .compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed)
            .is_ok();
        if !is_free {
            while self.0.swap(WANTED, Ordering::Acquire) != FREE {
                futex::wait(&self.0, WANTED, Duration::from_millis(100));
            }
        }
        Metered::Engine.note_taken(asked_ns, !is_free);
    }

    /// Gives the lock back.
    pub fn release(&self) {
        Metered::Engine.note_released();
        if self.0.swap(FREE, Ordering::Release) == WANTED {
            futex::wake(&self.0, 1);
        }
    }

    /// Frees the lock, whichever thread had it: for a forked child, where none does.
    pub fn reset(&self) {
        self.0.store(FREE, Ordering::Release);
    }
}

impl Default for Lock {
    fn default() -> Self {
        Lock::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_lets_one_thread_in_at_a_time() {
        static LOCK: Lock = Lock::new();
        static INSIDE: AtomicU32 = AtomicU32::new(0);
        let threads: Vec<_> = (0..4)
            .map(|_| {
                std::thread::spawn(|| {
                    for _ in 0..2000 {
                        LOCK.take();
                        assert_eq!(INSIDE.fetch_add(1, Ordering::Relaxed), 0);
                        INSIDE.fetch_sub(1, Ordering::Relaxed);
                        LOCK.release();
                    }
                })
            })
            .collect();
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    }
}
