//! First in, first out: the page that came first leaves first, used or not.

use crate::collections::queue::Queues;
use crate::id::{FrameId, PageId};
use crate::policies::parts::lists::pull;
use crate::policies::settings::Settings;
use crate::seams::policy::{
    Arrival, Departure, Description, Policy, Probe, Sees, SimulatedPolicy, SpacePolicy,
};

/// The description of `fifo`.
pub static DESCRIPTION: Description = Description {
    name: "fifo",
    summary: "the page that came first leaves first, used or not",
    lineage: &["Belady 1966"],
    sees: Sees::Faults,
    knobs: &[],
};

const LIST: u8 = 0;

struct Fifo {
    queues: Queues,
}

/// Makes a `fifo`.
pub fn build(settings: Settings) -> impl Policy {
    Fifo {
        queues: Queues::new(1, settings.frames_max),
    }
}

impl Policy for Fifo {
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
        pull(&mut self.queues, LIST, probe)
    }

    fn check(&self) {
        self.queues.check();
    }
}

impl SimulatedPolicy for Fifo {}

impl SpacePolicy for Fifo {}
