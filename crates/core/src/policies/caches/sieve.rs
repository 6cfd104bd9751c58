//! SIEVE: one queue in order of arrival, and a hand that spares pages in use where they stand.
//!
//! The hand goes from the oldest page to the newest, clears bits, and takes the first page whose
//! bit is clear; there it stays. So young pages are looked at soon, and those that were spared stay
//! behind the hand for a round.
//!
//! If uses are not seen, the hand stays among the newest pages for ever, and all that lies behind
//! it is lost as memory: see policies that expect sampled bits. On a machine whose first answer is
//! always yes it passes a page once before that page can leave.

use crate::collections::queue::Queues;
use crate::id::{FrameId, PageId};
use crate::policies::settings::Settings;
use crate::seams::policy::{
    Arrival, Departure, Description, Policy, Probe, Sees, SimulatedPolicy, SpacePolicy,
};

/// The description of `sieve`.
pub static DESCRIPTION: Description = Description {
    name: "sieve",
    summary: "a hand passes pages in use, from old to new, and takes the first that is not",
    lineage: &["Zhang, Yang, Yue, Vigfusson and Rashmi 2024"],
    sees: Sees::Bits,
    knobs: &[],
};

const LIST: u8 = 0;

struct Sieve {
    queues: Queues,
    /// The place where the search goes on; at the oldest page if nowhere.
    hand: Option<u32>,
}

/// Makes a `sieve`.
pub fn build(settings: Settings) -> impl Policy {
    Sieve {
        queues: Queues::new(1, settings.frames_max),
        hand: None,
    }
}

impl Policy for Sieve {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn page_entered(&mut self, frame: FrameId, _arrival: &Arrival) {
        self.queues.push_back(LIST, frame.0);
    }

    fn page_left(&mut self, frame: FrameId, _page: PageId, _departure: Departure) {
        if self.hand == Some(frame.0) {
            self.hand = self.queues.next(frame.0);
        }
        self.queues.remove(frame.0);
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        // One round clears every bit, so that the second finds a page if any may leave.
        for _ in 0..2 * u64::from(self.queues.length(LIST)) {
            let frame = FrameId(self.hand.or(self.queues.front(LIST))?);
            self.hand = Some(frame.0);
            if probe.may_leave(frame) && !probe.take_referenced(frame) {
                return Some(frame);
            }
            self.hand = self.queues.next(frame.0);
        }
        None
    }

    fn check(&self) {
        self.queues.check();
        if let Some(frame) = self.hand {
            assert_eq!(
                self.queues.list_of(frame),
                Some(LIST),
                "the hand is off the list"
            );
        }
    }
}

impl SimulatedPolicy for Sieve {}

impl SpacePolicy for Sieve {}
