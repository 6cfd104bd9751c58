//! The optimum: the page whose next use is farthest away leaves. No policy does better in a fixed
//! number of frames, and none does it without knowing the future.

use crate::id::{FrameId, PageId};
use crate::policies::parts::frame_heap::FrameHeap;
use crate::policies::settings::Settings;
use crate::seams::policy::{
    Arrival, Departure, Description, Policy, Probe, Sees, SimulatedPolicy, SpacePolicy,
};

/// The description of `opt`.
pub static DESCRIPTION: Description = Description {
    name: "opt",
    summary: "the page whose next use is farthest away leaves: the optimum",
    lineage: &["Belady 1966", "Mattson, Gecsei, Slutz and Traiger 1970"],
    sees: Sees::Future,
    knobs: &[],
};

/// The next use of a page whose future was not shown.
const NEVER: u64 = u64::MAX;

struct Opt {
    /// The frames by the time of their pages' next uses.
    next_uses: FrameHeap<u64>,
}

/// Makes an `opt`.
pub fn build(settings: Settings) -> impl Policy {
    Opt {
        next_uses: FrameHeap::new(settings.frames_max),
    }
}

impl Policy for Opt {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn page_entered(&mut self, frame: FrameId, _arrival: &Arrival) {
        // The page's future was not shown yet.
        self.next_uses.insert(frame, NEVER);
    }

    fn page_left(&mut self, frame: FrameId, _page: PageId, _departure: Departure) {
        self.next_uses.remove(frame);
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        self.next_uses.greatest(|frame| probe.may_leave(frame))
    }

    fn check(&self) {
        self.next_uses.check();
    }
}

impl SimulatedPolicy for Opt {
    #[inline]
    fn page_foreseen(&mut self, frame: FrameId, next: u64) {
        // A page that is on its way out may still be in use: it is in no more.
        self.next_uses.set(frame, next);
    }
}

impl SpacePolicy for Opt {}
