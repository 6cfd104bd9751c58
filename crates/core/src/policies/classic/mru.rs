//! Most recently used: the page that was used last leaves. The best there is for a loop that does
//! not fit into memory, and ruinous for nearly everything else.

use crate::collections::queue::Queues;
use crate::id::{FrameId, PageId};
use crate::policies::parts::lists::pull_newest;
use crate::policies::settings::Settings;
use crate::seams::policy::{
    Arrival, Departure, Description, Policy, Probe, Sees, SimulatedPolicy, SpacePolicy,
};

/// The description of `mru`.
pub static DESCRIPTION: Description = Description {
    name: "mru",
    summary: "the page that was used last leaves",
    lineage: &["Chou and DeWitt 1985 (DBMIN)"],
    sees: Sees::References,
    knobs: &[],
};

const LIST: u8 = 0;

struct Mru {
    /// The frames in the order of their pages' last uses.
    queues: Queues,
}

/// Makes an `mru`.
pub fn build(settings: Settings) -> impl Policy {
    Mru {
        queues: Queues::new(1, settings.frames_max),
    }
}

impl Policy for Mru {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    #[inline]
    fn page_entered(&mut self, frame: FrameId, _arrival: &Arrival) {
        self.queues.push_back(LIST, frame.0);
    }

    #[inline]
    fn page_left(&mut self, frame: FrameId, _page: PageId, _departure: Departure) {
        self.queues.remove(frame.0);
    }

    #[inline]
    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        pull_newest(&mut self.queues, LIST, probe)
    }

    fn check(&self) {
        self.queues.check();
    }
}

impl SimulatedPolicy for Mru {
    #[inline]
    fn page_referenced(&mut self, frame: FrameId) {
        self.queues.move_to_back(LIST, frame.0);
    }
}

impl SpacePolicy for Mru {}
