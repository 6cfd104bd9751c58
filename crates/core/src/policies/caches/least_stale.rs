//! Least-Stale: pages that the present pass has not used leave first, in the order in which the
//! pass before used them.
//!
//! Made for the experts of a model, of which each layer wants some: the layers run one after the
//! other, pass after pass, and many experts are brought ahead of their use (Hoang and others 2026,
//! SpecMD). Two generations, the pages that came or were used in this pass and the stale ones, are
//! each first in, first out. All stale pages went to the end before the first page of this pass, so
//! that one queue holds both: a page goes to its end when it comes, and at its first use in a pass
//! in which it did not come.
//!
//! So it differs from LRU by the pages that are brought ahead: their first use does not move them.
//! Where none are, each page is used once in a pass, and it is LRU, as Zhang 2026 (Reproducible
//! Evaluation of MoE Expert Caching) finds too.
//!
//! The paper's runtime knows when a pass begins. Here a pass is a run of references to rising page
//! numbers, as of pages that are numbered layer by layer: it ends where a number is no higher than
//! the one before.
//!
//! # Invariants
//! 1. The pages that this pass has used are behind all others.

use crate::collections::column::Column;
use crate::collections::queue::Queues;
use crate::id::{FrameId, ObjectId, PageId};
use crate::policies::parts::lists::pull;
use crate::policies::settings::Settings;
use crate::seams::policy::{
    Arrival, Cause, Departure, Description, Policy, Probe, Sees, SimulatedPolicy, SpacePolicy,
};

/// The description of `least-stale`.
pub static DESCRIPTION: Description = Description {
    name: "least-stale",
    summary: "pages leave that this pass has not used, first in, first out",
    lineage: &["Hoang, Jaiswal, Samragh and Cho 2026 (SpecMD)"],
    sees: Sees::References,
    knobs: &[],
};

const LIST: u8 = 0;

/// The page in a frame, and the last pass that used it.
#[derive(Clone, Copy)]
struct Held {
    page: PageId,
    pass: u64,
}

const NOTHING: Held = Held {
    page: PageId {
        object: ObjectId(u32::MAX),
        index: u64::MAX,
    },
    pass: 0,
};

struct LeastStale {
    /// The frames in the order of their pages' first uses in the last pass that used them.
    queues: Queues,
    held: Column<Held>,
    /// The page of the reference before.
    before: Option<PageId>,
    /// The number of passes that have begun.
    pass: u64,
}

/// Makes a `least-stale`.
pub fn build(settings: Settings) -> impl Policy {
    LeastStale {
        queues: Queues::new(1, settings.frames_max),
        held: Column::new(NOTHING, settings.frames_max as usize),
        before: None,
        pass: 1,
    }
}

impl Policy for LeastStale {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn page_entered(&mut self, frame: FrameId, arrival: &Arrival) {
        match arrival.cause {
            Cause::Fetched | Cause::ZeroFill | Cause::Copied | Cause::Adopted => {
                self.follow(arrival.page);
            }
            // Not used yet: it was brought for this pass.
            Cause::Prefetched | Cause::ZeroAhead | Cause::Kept | Cause::Cleaned => {}
        }
        self.held[frame.index()] = Held {
            page: arrival.page,
            pass: self.pass,
        };
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

impl SimulatedPolicy for LeastStale {
    #[inline]
    fn page_referenced(&mut self, frame: FrameId) {
        let held = self.held[frame.index()];
        self.follow(held.page);
        if held.pass != self.pass {
            self.held[frame.index()].pass = self.pass;
            self.queues.move_to_back(LIST, frame.0);
        }
    }
}

impl SpacePolicy for LeastStale {}

impl LeastStale {
    /// Takes in the page of a reference, which may begin a pass.
    fn follow(&mut self, page: PageId) {
        let before = self.before.replace(page);
        self.pass += u64::from(before.is_some_and(|before| page <= before));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::parts::bench::{Bench, settings};

    #[test]
    fn a_page_brought_ahead_stays_where_it_came_when_it_is_used() {
        let mut policy = build(settings(3, &[]));
        let mut bench = Bench::new(3);
        bench.bring(&mut policy, 0, Cause::ZeroFill);
        bench.bring(&mut policy, 1, Cause::Prefetched);
        bench.bring(&mut policy, 2, Cause::Prefetched);
        policy.page_referenced(FrameId(1));
        let mut leaving = || bench.evict_one(&mut policy).unwrap();
        assert_eq!([leaving(), leaving(), leaving()], [0, 1, 2]);
    }

    #[test]
    fn what_this_pass_has_used_leaves_after_what_is_stale() {
        let mut policy = build(settings(4, &[]));
        let mut bench = Bench::new(4);
        for number in 0..4 {
            bench.bring(&mut policy, number, Cause::ZeroFill);
        }
        // The second pass uses the first and the third page.
        policy.page_referenced(FrameId(0));
        policy.page_referenced(FrameId(2));
        let mut leaving = || bench.evict_one(&mut policy).unwrap();
        assert_eq!([leaving(), leaving(), leaving(), leaving()], [1, 3, 0, 2]);
    }
}
