//! 2Q: a page must come back soon after it left to be kept by its uses.
//!
//! Pages that come go through a queue in order of arrival, whatever their use; of those that leave
//! it the names are kept for a while. A page that comes back while its name is kept goes to the
//! main list.
//!
//! `2q` is the published one: it sees each reference, and the main list is in the order of last
//! use. `2q-faults` sees faults and no reference between them, so that the order of last use is the
//! order of arrival. It never takes a mapping away to see whether a page is used: the fault of a
//! page that comes back soon says so.

use alloc::vec::Vec;

use crate::collections::queue::Queues;
use crate::id::{FrameId, PageId};
use crate::policies::parts::ghost_list::Names;
use crate::policies::parts::lists::pull;
use crate::policies::settings::Settings;
use crate::seams::policy::{
    Arrival, Cause, Departure, Description, Knob, Policy, Probe, Sees, SimulatedPolicy, SpacePolicy,
};

/// The description of `2q`.
pub static DESCRIPTION: Description = Description {
    name: "2q",
    summary: "first in, first out, until a page comes back soon; then least recently used",
    lineage: &["Johnson and Shasha 1994 (full version)"],
    sees: Sees::References,
    knobs: KNOBS,
};

/// The description of `2q-faults`.
pub static FAULTS: Description = Description {
    name: "2q-faults",
    summary: "2q that sees faults alone: pages that come back soon have a list of their own",
    lineage: &["Johnson and Shasha 1994 (full version)"],
    sees: Sees::Faults,
    knobs: KNOBS,
};

const KNOBS: &[Knob] = &[
    Knob {
        name: "in",
        meaning: "frames for pages that came and were not known, in thousandths",
        min: 1,
        max: 1000,
        default: 250,
    },
    Knob {
        name: "out",
        meaning: "names kept of pages that left, in thousandths of the frames",
        min: 0,
        max: 4000,
        default: 500,
    },
];

const IN: u8 = 0;
const MAIN: u8 = 1;

struct TwoQ {
    description: &'static Description,
    queues: Queues,
    ghosts: Names,
    frames: u64,
    in_permille: u64,
    out_permille: u64,
}

/// Makes a `2q`.
pub fn build(settings: Settings) -> impl Policy {
    TwoQ::new(&DESCRIPTION, settings)
}

/// Makes a `2q-faults`.
pub fn build_faults(settings: Settings) -> impl Policy {
    TwoQ::new(&FAULTS, settings)
}

impl TwoQ {
    fn new(description: &'static Description, settings: Settings) -> TwoQ {
        // One more than is kept: a page leaves before the name of the one that comes is taken out.
        let ghosts_max = u64::from(settings.frames_max) * settings.knobs[1] / 1000 + 1;
        TwoQ {
            description,
            queues: Queues::new(2, settings.frames_max),
            ghosts: Names::new(ghosts_max as u32),
            frames: settings.frames.into(),
            in_permille: settings.knobs[0],
            out_permille: settings.knobs[1],
        }
    }

    /// The list from which a page leaves, and the one from which it does if that has none.
    fn order(&self) -> (u8, u8) {
        let share = (self.frames * self.in_permille / 1000).max(1);
        let is_long = u64::from(self.queues.length(IN)) > share;
        if is_long { (IN, MAIN) } else { (MAIN, IN) }
    }
}

impl Policy for TwoQ {
    fn describe(&self) -> &'static Description {
        self.description
    }

    fn page_entered(&mut self, frame: FrameId, arrival: &Arrival) {
        let is_known = self.ghosts.take(arrival.page).is_some();
        self.ghosts.trim(self.frames * self.out_permille / 1000);
        let is_wanted_back = match arrival.cause {
            Cause::Fetched | Cause::ZeroFill | Cause::Copied | Cause::Adopted => is_known,
            // Not asked for again.
            Cause::Prefetched | Cause::ZeroAhead | Cause::Kept | Cause::Cleaned => false,
        };
        let list = if is_wanted_back { MAIN } else { IN };
        self.queues.push_back(list, frame.0);
    }

    fn page_left(&mut self, frame: FrameId, page: PageId, departure: Departure) {
        let list = self.queues.remove(frame.0);
        if list == Some(IN) && departure == Departure::Evicted {
            self.ghosts.push_name(page);
        }
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        let (first, second) = self.order();
        pull(&mut self.queues, first, probe).or_else(|| pull(&mut self.queues, second, probe))
    }

    fn resize(&mut self, frames: u32) {
        self.frames = frames.into();
    }

    fn check(&self) {
        self.queues.check();
        self.ghosts.check();
    }
}

impl SimulatedPolicy for TwoQ {
    fn frames_ahead(&self, count: usize, frames: &mut Vec<FrameId>) {
        let (first, _) = self.order();
        frames.extend(self.queues.iter(first).take(count).map(FrameId));
    }

    fn pages_ahead(&self, wanted: &[PageId], leaving: &[PageId]) {
        self.ghosts.bring_near(wanted, leaving);
    }

    #[inline]
    fn page_referenced(&mut self, frame: FrameId) {
        // Uses that follow an arrival closely belong together, and say nothing of the next.
        if self.queues.list_of(frame.0) == Some(MAIN) {
            self.queues.move_to_back(MAIN, frame.0);
        }
    }
}

impl SpacePolicy for TwoQ {}
