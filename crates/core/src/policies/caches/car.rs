//! CAR: ARC with clocks in the place of lists in the order of last use, so that a bit a page is
//! all it must see.

use crate::id::{FrameId, PageId};
use crate::policies::parts::adaptive::{AGAIN, AGAIN_GONE, Adaptive, ONCE, ONCE_GONE};
use crate::policies::parts::lists::pull;
use crate::policies::parts::second_reference::{Fresh, Use};
use crate::policies::settings::Settings;
use crate::seams::policy::{
    Arrival, Cause, Departure, Description, Policy, Probe, Sees, SimulatedPolicy, SpacePolicy,
};

/// The description of `car`.
pub static DESCRIPTION: Description = Description {
    name: "car",
    summary: "two clocks, of pages seen once and of those seen again, divided as ghosts advise",
    lineage: &["Megiddo and Modha 2003 (ARC)", "Bansal and Modha 2004"],
    sees: Sees::Bits,
    knobs: &[],
};

struct Car {
    lists: Adaptive,
    fresh: Fresh,
}

/// Makes a `car`.
pub fn build(settings: Settings) -> impl Policy {
    Car {
        lists: Adaptive::new(settings.frames_max, settings.frames),
        fresh: Fresh::new(settings.frames_max),
    }
}

impl Policy for Car {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn page_entered(&mut self, frame: FrameId, arrival: &Arrival) {
        let length = |list| self.lists.queues.length(list);
        let (once_gone, again_gone) = (length(ONCE_GONE), length(AGAIN_GONE));
        let gone = self.lists.enter(frame, arrival);
        let is_wanted = !matches!(
            arrival.cause,
            Cause::Prefetched | Cause::ZeroAhead | Cause::Kept | Cause::Cleaned
        );
        if let (Some(gone), true) = (gone, is_wanted) {
            self.lists.adapt(gone, once_gone, again_gone);
        }
        self.fresh.enter(frame);
    }

    fn page_left(&mut self, frame: FrameId, page: PageId, departure: Departure) {
        self.lists.leave(frame, page, departure);
        self.fresh.leave(frame);
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        // A page is passed twice at most on each clock before its bit is known to be clear.
        for _ in 0..4 * u64::from(self.lists.resident()) {
            let has_many = self.lists.queues.length(ONCE) > 0 && self.has_many_seen_once();
            let list = if has_many { ONCE } else { AGAIN };
            let Some(frame) = pull(&mut self.lists.queues, list, probe) else {
                break;
            };
            match self.fresh.take_use(frame, probe) {
                Use::None => return Some(frame),
                Use::Unknown => self.lists.queues.move_to_back(list, frame.0),
                Use::Again => self.lists.queues.move_to_back(AGAIN, frame.0),
            }
        }
        let queues = &mut self.lists.queues;
        pull(queues, ONCE, probe).or_else(|| pull(queues, AGAIN, probe))
    }

    fn resize(&mut self, frames: u32) {
        self.lists.resize(frames);
    }

    fn check(&self) {
        self.lists.check();
    }
}

impl SimulatedPolicy for Car {}

impl SpacePolicy for Car {}

impl Car {
    /// Returns true if there are at least as many pages seen once as the target says, and one.
    fn has_many_seen_once(&self) -> bool {
        self.lists.compare_once().is_ge() || self.lists.queues.length(AGAIN) == 0
    }
}
