//! The pager of Mach 2.5 and 3.0: second chance with reference bits, on inactive pages alone.
//!
//! Active pages become inactive in the order they came, whether used or not, and their bits are
//! cleared. An inactive page that was used by the time it is first in line becomes active again.
//! Where there are no bits, clearing one unmaps the page, and the soft fault activates it: the
//! machine-dependent part of Mach did the same.

use crate::collections::queue::Queues;
use crate::id::{FrameId, PageId};
use crate::policies::parts::lists::pull;
use crate::policies::settings::Settings;
use crate::seams::policy::{
    Arrival, Departure, Description, Knob, Policy, Probe, Sees, SimulatedPolicy, SpacePolicy,
};

/// The description of `mach3`.
pub static DESCRIPTION: Description = Description {
    name: "mach3",
    summary: "active pages age in order of arrival; inactive ones stay if they were used",
    lineage: &["Mach 1986 (vm_pageout)", "Mach 3.0, 1991 (vm_pageout)"],
    sees: Sees::Bits,
    knobs: &[Knob {
        name: "inactive",
        meaning: "resident pages that are inactive, in thousandths",
        min: 1,
        max: 1000,
        default: 667,
    }],
};

const ACTIVE: u8 = 0;
const INACTIVE: u8 = 1;

struct Mach3 {
    queues: Queues,
    inactive_permille: u64,
}

/// Makes a `mach3`.
pub fn build(settings: Settings) -> impl Policy {
    Mach3 {
        queues: Queues::new(2, settings.frames_max),
        inactive_permille: settings.knobs[0],
    }
}

impl Policy for Mach3 {
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
        // A fault on an active page leaves it where it is: active is a true queue.
        if self.queues.list_of(frame.0) == Some(INACTIVE) {
            self.queues.move_to_back(ACTIVE, frame.0);
        }
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        // Whatever became inactive in here has its bit cleared, so that one round is enough.
        for _ in 0..=self.resident() {
            self.refill(probe);
            let Some(frame) = pull(&mut self.queues, INACTIVE, probe) else {
                break;
            };
            if !probe.take_referenced(frame) {
                return Some(frame);
            }
            self.queues.move_to_back(ACTIVE, frame.0);
        }
        pull(&mut self.queues, ACTIVE, probe)
    }

    fn check(&self) {
        self.queues.check();
    }
}

impl SimulatedPolicy for Mach3 {}

impl SpacePolicy for Mach3 {}

impl Mach3 {
    /// Moves the oldest active pages to the inactive queue until it has its share.
    fn refill(&mut self, probe: &mut Probe<'_>) {
        let total = u64::from(self.resident());
        while u64::from(self.queues.length(INACTIVE)) * 1000 < total * self.inactive_permille {
            let Some(frame) = pull(&mut self.queues, ACTIVE, probe) else {
                break;
            };
            probe.take_referenced(frame);
            self.queues.move_to_back(INACTIVE, frame.0);
        }
    }

    fn resident(&self) -> u32 {
        self.queues.length(ACTIVE) + self.queues.length(INACTIVE)
    }
}
