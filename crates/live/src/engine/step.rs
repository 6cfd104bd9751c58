//! In step: a program waits at each fault until all that follows from it is over.
//!
//! What an engine decides depends on when transfers end and on what the program has touched
//! meanwhile. In step neither matters: transfers are answered in the order in which they were asked
//! for, the clock counts faults alone, and a thread that has faulted is woken when all work is
//! done. So the decisions follow from the program's references, and the lab can come to the same
//! ones (`tidemark replay --in-step`), for a program of one thread.
//!
//! Nor may it matter when memory is found, or what the engine's start maps. Managed are mappings
//! of a [least size](super::MAPPED_BYTES_LEAST) that the program asks for: the pool of `--malloc
//! pool`, and what is as large.
//!
//! # Invariants
//! 1. No transfer is under way when a thread goes on.

use std::collections::BTreeMap;

use tidemark_core::driver::Driver;
use tidemark_core::id::Ticket;
use tidemark_core::seams::pager::Reply;
use tidemark_core::time::Time;

use super::Engine;
use super::turn::REAPING;
use crate::parts::intake::Arrival;
use crate::parts::trouble::Trouble;
use crate::parts::units::{now, page_of};
use crate::requests::Requests;
use crate::shared::Counter;

/// The time that the store may take for the last request.
const ANSWER_NS_MAX: u64 = 60_000_000_000;

/// An engine in step: no reply is taken before its turn.
struct InStep<'a>(&'a mut Engine);

impl Driver for InStep<'_> {
    fn start_requests(&mut self) -> bool {
        self.0.start_requests()
    }

    fn pass_event(&mut self) -> bool {
        self.0.pass_event()
    }

    fn make_room(&mut self) {
        self.0.make_room();
    }

    fn note_decisions(&mut self) {
        self.0.note_decisions();
    }
}

impl Engine {
    /// One turn of the loop, in step.
    pub(super) fn work_in_step(&mut self, requests: &Requests) -> u64 {
        let began = now();
        if !self.settle_changes() {
            return self.turns.retry_ns();
        }
        self.serve_arrived(Engine::take_step);
        self.answer_asks(requests);
        self.follow_budget();
        InStep(self).carry_out();
        self.end_transfers();
        self.machine.retry_deferred();
        self.place.follow(
            self.addresses.managed(),
            self.now,
            self.telemetry.gauges_mut(),
        );
        self.publish();
        self.draw_map();
        self.telemetry.add(Counter::EngineNs, now().since_ns(began));
        self.pause_in_step()
    }

    /// Serves a fault and does all that follows from it, before its thread goes on.
    fn take_step(&mut self, arrival: Arrival) {
        self.now = self.step_time();
        self.serve(arrival);
        InStep(self).conclude();
        self.end_transfers();
        self.pass_time();
        while let Some(tick) = self.turns.take_step_tick(self.step_time()) {
            self.now = tick;
            self.vm.handle_tick(self.now, &mut self.machine);
            InStep(self).conclude();
            self.end_transfers();
        }
        // Touches of the program on its way out are decided, too, until an unknown moment.
        self.telemetry.flush_decisions();
        self.machine.wake(page_of(arrival.address));
    }

    /// The time, which each fault takes further by as much.
    fn step_time(&self) -> Time {
        self.turns.step_time(self.vm.counters().faults)
    }

    /// Advances the time while a fault waits for nothing else. Pages that could not be moved are
    /// tried again after pauses, and in step only faults advance the time.
    fn pass_time(&mut self) {
        let end = now().after_ns(ANSWER_NS_MAX);
        while self.vm.faults_pending() > 0
            && let Some(due) = self.vm.poll_deadline()
        {
            if now() > end {
                let error = crate::sys::Errno::TIMEDOUT;
                let what = "waiting for a page that can be moved";
                self.end_for(&Trouble::Call { what, error });
            }
            self.turns.pass(due.since_ns(self.step_time()).max(1));
            self.now = self.step_time();
            self.vm.handle_deadline(self.now, &mut self.machine);
            self.conclude();
            self.end_transfers();
        }
    }

    /// Waits for every transfer, and brings the answers to the core in the order of the questions.
    fn end_transfers(&mut self) {
        let mut replies: BTreeMap<Ticket, Reply> = BTreeMap::new();
        while self.vm.transfers_pending() > 0 {
            self.await_replies(&mut replies);
            let (_, reply) = replies.pop_first().expect("every transfer has an answer");
            self.vm.handle_reply(self.now, &mut self.machine, reply);
            InStep(self).conclude();
        }
    }

    /// Waits until there is an answer to each transfer.
    fn await_replies(&mut self, replies: &mut BTreeMap<Ticket, Reply>) {
        let end = now().after_ns(ANSWER_NS_MAX);
        loop {
            self.reap();
            while let Some(reply) = self.store.next_reply() {
                replies.insert(reply.ticket, reply);
            }
            if replies.len() >= self.vm.transfers_pending() {
                return;
            }
            if now() > end {
                let error = crate::sys::Errno::TIMEDOUT;
                self.end_for(&Trouble::Call {
                    what: REAPING,
                    error,
                });
            }
            self.store.wait(1_000_000);
        }
    }
}
