//! Least recently used: the page whose last use is longest ago leaves. What other policies
//! approximate, and are measured by.

use crate::collections::queue::Queues;
use crate::id::{FrameId, PageId};
use crate::policies::parts::lists::pull;
use crate::policies::settings::Settings;
use crate::seams::policy::{
    Arrival, Departure, Description, Policy, Probe, Sees, SimulatedPolicy, SpacePolicy,
};

/// The description of `lru`.
pub static DESCRIPTION: Description = Description {
    name: "lru",
    summary: "the page whose last use is longest ago leaves",
    lineage: &[
        "Belady 1966",
        "Mattson, Gecsei, Slutz and Traiger 1970 (stack algorithms)",
    ],
    sees: Sees::References,
    knobs: &[],
};

const LIST: u8 = 0;

struct Lru {
    /// The frames in the order of their pages' last uses.
    queues: Queues,
}

/// Makes an `lru`.
pub fn build(settings: Settings) -> impl Policy {
    Lru {
        queues: Queues::new(1, settings.frames_max),
    }
}

impl Policy for Lru {
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
        pull(&mut self.queues, LIST, probe)
    }

    fn check(&self) {
        self.queues.check();
    }
}

impl SimulatedPolicy for Lru {
    #[inline]
    fn page_referenced(&mut self, frame: FrameId) {
        self.queues.move_to_back(LIST, frame.0);
    }
}

impl SpacePolicy for Lru {}
