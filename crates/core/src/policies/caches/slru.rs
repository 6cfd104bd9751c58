//! Segmented LRU: two lists in the order of last use. A page comes to the first, and a use there
//! takes it to the second; what the second has too many of goes back to the first.

use crate::collections::queue::Queues;
use crate::id::{FrameId, PageId};
use crate::policies::parts::lists::pull;
use crate::policies::settings::Settings;
use crate::seams::policy::{
    Arrival, Departure, Description, Knob, Policy, Probe, Sees, SimulatedPolicy, SpacePolicy,
};

/// The description of `slru`.
pub static DESCRIPTION: Description = Description {
    name: "slru",
    summary: "least recently used, of the pages used once before those used again",
    lineage: &["Karedla, Love and Wherry 1994"],
    sees: Sees::References,
    knobs: &[Knob {
        name: "protected",
        meaning: "frames for pages that were used again, in thousandths",
        min: 0,
        max: 1000,
        default: 800,
    }],
};

const PROBATION: u8 = 0;
const PROTECTED: u8 = 1;

struct Slru {
    queues: Queues,
    protected_permille: u64,
    /// The number of pages the second list may have.
    protected_max: u32,
}

/// Makes an `slru`.
pub fn build(settings: Settings) -> impl Policy {
    let mut slru = Slru {
        queues: Queues::new(2, settings.frames_max),
        protected_permille: settings.knobs[0],
        protected_max: 0,
    };
    slru.resize(settings.frames);
    slru
}

impl Policy for Slru {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn page_entered(&mut self, frame: FrameId, _arrival: &Arrival) {
        self.queues.push_back(PROBATION, frame.0);
    }

    fn page_left(&mut self, frame: FrameId, _page: PageId, _departure: Departure) {
        self.queues.remove(frame.0);
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        pull(&mut self.queues, PROBATION, probe)
            .or_else(|| pull(&mut self.queues, PROTECTED, probe))
    }

    fn resize(&mut self, frames: u32) {
        let most = u64::from(frames) * self.protected_permille / 1000;
        // Of frames there are less than 2^31: see `Config::frames_max`.
        self.protected_max = u32::try_from(most).unwrap_or(u32::MAX);
    }

    fn check(&self) {
        self.queues.check();
    }
}

impl SimulatedPolicy for Slru {
    #[inline]
    fn page_referenced(&mut self, frame: FrameId) {
        self.queues.move_to_back(PROTECTED, frame.0);
        while self.queues.length(PROTECTED) > self.protected_max {
            let Some(oldest) = self.queues.front(PROTECTED) else {
                break;
            };
            self.queues.move_to_back(PROBATION, oldest);
        }
    }
}

impl SpacePolicy for Slru {}
