//! The clock: first in, first out, with a second chance for whatever was used since.
//!
//! The reference that brings a page in is no use of it: the page enters with its bit clear. Where
//! the bit is set on entry, as some textbooks have it, a page used once stays a round longer.

use crate::collections::queue::Queues;
use crate::id::{FrameId, PageId};
use crate::policies::settings::Settings;
use crate::seams::policy::{
    Arrival, Departure, Description, Policy, Probe, Sees, SimulatedPolicy, SpacePolicy,
};

/// The description of `clock`.
pub static DESCRIPTION: Description = Description {
    name: "clock",
    summary: "the oldest page leaves unless used since the last look; new pages' bits are clear",
    lineage: &["Corbató 1968, \"A paging experiment with the Multics system\""],
    sees: Sees::Bits,
    knobs: &[],
};

const LIST: u8 = 0;

struct Clock {
    queues: Queues,
}

/// Makes a `clock`.
pub fn build(settings: Settings) -> impl Policy {
    Clock {
        queues: Queues::new(1, settings.frames_max),
    }
}

impl Policy for Clock {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn page_entered(&mut self, frame: FrameId, _arrival: &Arrival) {
        self.queues.push_back(LIST, frame.0);
    }

    fn page_left(&mut self, frame: FrameId, _page: PageId, _departure: Departure) {
        self.queues.remove(frame.0);
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        // One round clears every bit, so that the second finds a page if any may leave.
        for _ in 0..2 * u64::from(self.queues.length(LIST)) {
            let frame = FrameId(self.queues.front(LIST)?);
            if probe.may_leave(frame) && !probe.take_referenced(frame) {
                return Some(frame);
            }
            self.queues.move_to_back(LIST, frame.0);
        }
        None
    }

    fn check(&self) {
        self.queues.check();
    }
}

impl SimulatedPolicy for Clock {}

impl SpacePolicy for Clock {}
