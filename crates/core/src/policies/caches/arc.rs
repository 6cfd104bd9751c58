//! ARC: least recently used, divided between pages seen once and pages seen again, with a boundary
//! that learns from the names of pages that left.

use core::cmp::Ordering;

use crate::id::{FrameId, PageId};
use crate::policies::parts::adaptive::{AGAIN, AGAIN_GONE, Adaptive, ONCE, ONCE_GONE};
use crate::policies::parts::lists::pull;
use crate::policies::settings::Settings;
use crate::seams::policy::{
    Arrival, Departure, Description, Policy, Probe, Sees, SimulatedPolicy, SpacePolicy,
};

/// The description of `arc`.
pub static DESCRIPTION: Description = Description {
    name: "arc",
    summary: "least recently used, of pages seen once or of those seen again, as ghosts advise",
    lineage: &["Megiddo and Modha 2003"],
    sees: Sees::References,
    knobs: &[],
};

struct Arc {
    lists: Adaptive,
    /// The page that was missed last, until it comes, and the list its name was on.
    missed: Option<(PageId, Option<u8>)>,
}

/// Makes an `arc`.
pub fn build(settings: Settings) -> impl Policy {
    Arc {
        lists: Adaptive::new(settings.frames_max, settings.frames),
        missed: None,
    }
}

impl Policy for Arc {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn page_missed(&mut self, page: PageId) {
        // A fault that waits is tried again, and is still one miss.
        if self.missed.is_some_and(|(missed, _)| missed == page) {
            return;
        }
        let gone = self.lists.find_gone(page);
        self.missed = Some((page, gone));
        if let Some(gone) = gone {
            let length = |list| self.lists.queues.length(list);
            let (once_gone, again_gone) = (length(ONCE_GONE), length(AGAIN_GONE));
            self.lists.adapt(gone, once_gone, again_gone);
        }
    }

    fn page_entered(&mut self, frame: FrameId, arrival: &Arrival) {
        self.lists.enter(frame, arrival);
        self.missed.take_if(|(missed, _)| *missed == arrival.page);
    }

    fn page_left(&mut self, frame: FrameId, page: PageId, departure: Departure) {
        self.lists.leave(frame, page, departure);
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        let is_again = matches!(self.missed, Some((_, Some(AGAIN_GONE))));
        let takes_once = match self.lists.compare_once() {
            Ordering::Greater => true,
            Ordering::Equal => is_again,
            Ordering::Less => false,
        };
        let (first, second) = if takes_once {
            (ONCE, AGAIN)
        } else {
            (AGAIN, ONCE)
        };
        let queues = &mut self.lists.queues;
        pull(queues, first, probe).or_else(|| pull(queues, second, probe))
    }

    fn resize(&mut self, frames: u32) {
        self.lists.resize(frames);
    }

    fn check(&self) {
        self.lists.check();
    }
}

impl SimulatedPolicy for Arc {
    #[inline]
    fn page_referenced(&mut self, frame: FrameId) {
        self.lists.queues.move_to_back(AGAIN, frame.0);
    }
}

impl SpacePolicy for Arc {}
