//! The outbox: requests, events and decisions for the driver, in their order.

use alloc::collections::VecDeque;

use crate::decision::Decision;
use crate::event::Event;
use crate::seams::pager::Request;

/// Requests for pagers, events for programs and their scheduler, and decisions for a log.
pub(crate) struct Outbox {
    requests: VecDeque<Request>,
    events: VecDeque<Event>,
    decisions: VecDeque<Decision>,
    is_logging: bool,
}

impl Outbox {
    /// Nothing to hand out; decisions are kept if `is_logging` says so.
    pub(crate) fn new(is_logging: bool) -> Outbox {
        Outbox {
            requests: VecDeque::new(),
            events: VecDeque::new(),
            decisions: VecDeque::new(),
            is_logging,
        }
    }

    pub(crate) fn ask(&mut self, request: Request) {
        self.requests.push_back(request);
    }

    pub(crate) fn tell(&mut self, event: Event) {
        self.events.push_back(event);
    }

    #[inline]
    pub(crate) fn log(&mut self, decision: Decision) {
        if self.is_logging {
            self.decisions.push_back(decision);
        }
    }

    pub(crate) fn next_request(&mut self) -> Option<Request> {
        self.requests.pop_front()
    }

    pub(crate) fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    pub(crate) fn next_decision(&mut self) -> Option<Decision> {
        self.decisions.pop_front()
    }

    pub(crate) fn is_logging(&self) -> bool {
        self.is_logging
    }
}
