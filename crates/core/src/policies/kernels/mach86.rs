//! The pager of Mach in 1986: second chance without reference bits.
//!
//! Pages leave an active queue in the order they came, lose their mappings, and wait on the
//! reclaim queue. A touch there is a soft fault and brings the page back. The lengths of the two
//! queues are all the policy decides; cleaning and the free-page targets are the core's.

use crate::collections::queue::Queues;
use crate::id::{FrameId, PageId};
use crate::policies::parts::lists::pull;
use crate::policies::settings::Settings;
use crate::seams::policy::{
    Arrival, Departure, Description, Knob, Policy, Probe, Sees, SimulatedPolicy, SpacePolicy,
};

/// The description of `mach86`.
pub static DESCRIPTION: Description = Description {
    name: "mach86",
    summary: "pages lose their mappings in order of age; a soft fault is their second chance",
    lineage: &["Turner and Levy 1981 (VMS)", "Mach 1986 (vm_pageout)"],
    sees: Sees::Faults,
    knobs: &[Knob {
        name: "inactive",
        meaning: "resident pages that wait unmapped, in thousandths",
        min: 1,
        max: 1000,
        // The reclaim target of 1986 was a tenth of memory.
        default: 100,
    }],
};

const ACTIVE: u8 = 0;
const RECLAIM: u8 = 1;

struct Mach86 {
    queues: Queues,
    inactive_permille: u64,
}

/// Makes a `mach86`.
pub fn build(settings: Settings) -> impl Policy {
    Mach86 {
        queues: Queues::new(2, settings.frames_max),
        inactive_permille: settings.knobs[0],
    }
}

impl Policy for Mach86 {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn page_entered(&mut self, frame: FrameId, _arrival: &Arrival) {
        self.queues.push_back(ACTIVE, frame.0);
    }

    fn page_left(&mut self, frame: FrameId, _page: PageId, _departure: Departure) {
        self.queues.remove(frame.0);
    }

    fn page_rescued(&mut self, frame: FrameId) {
        if self.queues.list_of(frame.0) == Some(RECLAIM) {
            self.queues.move_to_back(ACTIVE, frame.0);
        }
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        self.refill(probe);
        // If everything on the reclaim queue must stay, an active page may still go.
        pull(&mut self.queues, RECLAIM, probe).or_else(|| pull(&mut self.queues, ACTIVE, probe))
    }

    fn check(&self) {
        self.queues.check();
    }
}

impl SimulatedPolicy for Mach86 {}

impl SpacePolicy for Mach86 {}

impl Mach86 {
    /// Moves the oldest active pages to the reclaim queue until it has its share.
    fn refill(&mut self, probe: &mut Probe<'_>) {
        let total = u64::from(self.queues.length(ACTIVE) + self.queues.length(RECLAIM));
        for _ in 0..self.queues.length(ACTIVE) {
            let reclaim = u64::from(self.queues.length(RECLAIM));
            if reclaim * 1000 >= total * self.inactive_permille {
                break;
            }
            let Some(frame) = pull(&mut self.queues, ACTIVE, probe) else {
                break;
            };
            probe.unmap(frame);
            self.queues.move_to_back(RECLAIM, frame.0);
        }
    }
}
