//! Least frequently used: the page that was used the fewest times leaves; of several, the one whose
//! last use is longest ago.
//!
//! Where each use is drawn from fixed chances, whatever came before, it tends to the best that can
//! be had (Aho, Denning and Ullman 1971). Elsewhere it keeps for ever what was used much once.
//!
//! Counts go on when a page leaves: this is what Breslau and others 1999 call perfect LFU. They do
//! it with a count for every page there is; here the counts of the pages that left last are kept,
//! and with `ghosts=0` none, which is their in-cache LFU.
//!
//! # Invariants
//! 1. Every resident page was used once at least.
//! 2. Every entry of the directory is on the list, and has a count.

use core::cmp::Reverse;

use crate::collections::column::Column;
use crate::collections::queue::Queues;
use crate::id::{FrameId, PageId};
use crate::policies::parts::directory::Directory;
use crate::policies::parts::frame_heap::FrameHeap;
use crate::policies::settings::Settings;
use crate::seams::policy::{
    Arrival, Cause, Departure, Description, Knob, Policy, Probe, Sees, SimulatedPolicy, SpacePolicy,
};

/// The description of `lfu`.
pub static DESCRIPTION: Description = Description {
    name: "lfu",
    summary: "the page that was used the fewest times leaves",
    lineage: &[
        "Aho, Denning and Ullman 1971 (A0)",
        "Robinson and Devarakonda 1990",
        "Breslau, Cao, Fan, Phillips and Shenker 1999 (perfect LFU)",
    ],
    sees: Sees::References,
    knobs: &[Knob {
        name: "ghosts",
        meaning: "counts kept of pages that left, in thousandths of the frames",
        min: 0,
        max: 100_000,
        default: 10_000,
    }],
};

/// The number of uses of a page, and the time of the last.
type Use = (u64, u64);

struct Lfu {
    /// The frames by their pages' uses, the fewest at the top.
    uses: FrameHeap<Reverse<Use>>,
    ghosts: Directory,
    /// The uses of each entry's page.
    counts: Column<u64>,
    /// The entries, the page that left longest ago in front.
    left: Queues,
    ghosts_max: u64,
    ghosts_permille: u64,
    /// Uses so far, of all pages.
    now: u64,
}

/// Makes an `lfu`.
pub fn build(settings: Settings) -> impl Policy {
    let ghosts_permille = settings.knobs[0];
    let ghosts_of = |frames: u32| u64::from(frames) * ghosts_permille / 1000;
    // One more than is kept: the oldest goes when a new one has come.
    let room = (ghosts_of(settings.frames_max) + 1) as u32;
    Lfu {
        uses: FrameHeap::new(settings.frames_max),
        ghosts: Directory::new(room),
        counts: Column::new(0, room as usize),
        left: Queues::new(1, room),
        ghosts_max: ghosts_of(settings.frames),
        ghosts_permille,
        now: 0,
    }
}

impl Policy for Lfu {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn page_entered(&mut self, frame: FrameId, arrival: &Arrival) {
        let before = match self.ghosts.find(arrival.page) {
            Some(entry) => self.forget(entry),
            None => 0,
        };
        let count = match arrival.cause {
            Cause::Fetched | Cause::ZeroFill | Cause::Copied | Cause::Adopted => before + 1,
            // Not used since it left, or at all.
            Cause::Prefetched | Cause::ZeroAhead | Cause::Kept | Cause::Cleaned => before.max(1),
        };
        self.now += 1;
        self.uses.insert(frame, Reverse((count, self.now)));
    }

    fn page_left(&mut self, frame: FrameId, page: PageId, departure: Departure) {
        let Some(Reverse((count, _))) = self.uses.remove(frame) else {
            return;
        };
        match departure {
            Departure::Evicted => {
                // It may have come under another name, and this one left before.
                if let Some(entry) = self.ghosts.find(page) {
                    self.forget(entry);
                }
                let entry = self.ghosts.insert(page);
                self.counts[entry as usize] = count;
                self.left.push_back(0, entry);
                self.trim();
            }
            Departure::Discarded => {}
        }
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        self.uses.greatest(|frame| probe.may_leave(frame))
    }

    fn resize(&mut self, frames: u32) {
        self.ghosts_max = u64::from(frames) * self.ghosts_permille / 1000;
        self.trim();
    }

    fn check(&self) {
        self.uses.check();
        self.ghosts.check();
        self.left.check();
        assert_eq!(self.left.length(0), self.ghosts.len());
        for entry in self.left.iter(0) {
            assert!(self.counts[entry as usize] > 0, "a page was never used");
        }
    }
}

impl SimulatedPolicy for Lfu {
    #[inline]
    fn page_referenced(&mut self, frame: FrameId) {
        self.now += 1;
        if let Some(Reverse((count, _))) = self.uses.key(frame) {
            self.uses.set(frame, Reverse((count + 1, self.now)));
        }
    }
}

impl SpacePolicy for Lfu {}

impl Lfu {
    /// Forgets the pages that left longest ago until no more counts are kept than may be.
    fn trim(&mut self) {
        while u64::from(self.ghosts.len()) > self.ghosts_max {
            let oldest = self.left.front(0).expect("counts are kept");
            self.forget(oldest);
        }
    }

    /// Forgets the page of `entry`, and answers its uses.
    fn forget(&mut self, entry: u32) -> u64 {
        self.ghosts.remove(entry);
        self.left.remove(entry);
        self.counts[entry as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::parts::bench::{Bench, settings};

    fn leaving(ghosts: u64) -> (Option<u32>, Option<u32>) {
        let mut policy = build(settings(3, &[ghosts]));
        let mut bench = Bench::new(3);
        for number in 0..3 {
            bench.bring(&mut policy, number, Cause::ZeroFill);
        }
        for number in [0, 0, 1, 2, 1] {
            policy.page_referenced(FrameId(number));
        }
        let first = bench.evict_one(&mut policy);
        // It comes back, with its uses before or without.
        bench.bring(&mut policy, 2, Cause::Fetched);
        policy.page_referenced(FrameId(2));
        let second = bench.evict_one(&mut policy);
        (first, second)
    }

    #[test]
    fn a_page_that_comes_back_has_its_uses_if_they_are_kept() {
        assert_eq!(leaving(10_000), (Some(2), Some(0)));
        assert_eq!(leaving(0), (Some(2), Some(2)));
    }
}
