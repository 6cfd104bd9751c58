//! Linux 2.4 and early 2.5: two lists, and page tables that are walked in the order of addresses;
//! and the same lists with a minimal reverse map instead.
//!
//! - `linux-classzone`: the pager looks through the inactive list for unmapped pages. When it has
//!   met too many mapped ones, it walks the page tables of one program after the other and unmaps
//!   what was not used since the last walk. A page that several programs share is free only when
//!   the walk has come by at each.
//! - `linux-rmap` (the patch measured against it in 2002): what maps a page is known from the
//!   page, so that it is asked and unmapped when its turn comes. There is no ageing yet.
//!
//! A choice goes on with the round in which the last one stopped: a round frees 32 pages, or looks
//! at a part of the inactive list that grows from a sixth to all of it.
//!
//! # Departures
//! There is one zone, and no caches of other kinds to shrink. Where the kernel would find nothing
//! after its last round and kill a process, the page tables are walked without having been asked
//! for, and at last the oldest page goes. The pages unmapped in one walk, 32, are at most a 32nd
//! of memory: less memory than that did not occur.

use crate::collections::column::Column;
use crate::collections::queue::Queues;
use crate::id::{FrameId, PageId, SpaceId, VirtPage};
use crate::policies::parts::lists::pull_any;
use crate::policies::settings::Settings;
use crate::seams::policy::{
    Arrival, Cause, Departure, Description, KernelUse, Knob, Policy, Probe, Sees, SimulatedPolicy,
    SpacePolicy,
};

/// The description of `linux-classzone`.
pub static VIRTUAL: Description = Description {
    name: "linux-classzone",
    summary: "pages leave once a walk along the programs' page tables has unmapped them",
    lineage: &["Linux 2.4.10-2.4.22 and 2.5.23 (mm/vmscan.c)"],
    sees: Sees::Bits,
    knobs: &[Knob {
        name: "pace",
        meaning: "0: six growing rounds, as in 2.5.23; 1: sixty equal ones, as in 2.4.22",
        min: 0,
        max: 1,
        default: 0,
    }],
};

/// The description of `linux-rmap`.
pub static REVERSE: Description = Description {
    name: "linux-rmap",
    summary: "inactive pages leave unless they were used, found through a reverse map",
    lineage: &[
        "Linux 2.5.23 (mm/vmscan.c)",
        "McCracken and van Riel 2002 (minimal rmap)",
    ],
    sees: Sees::Bits,
    knobs: &[],
};

const ACTIVE: u8 = 0;
const INACTIVE: u8 = 1;

/// SWAP_CLUSTER_MAX: pages freed in a try, and unmapped in a walk.
const BATCH: u64 = 32;
/// Rounds of a try, by pace.
const ROUNDS: [u64; 2] = [6, 60];
/// The pace of 2.4.22: the part of all pages a round looks at, mapped pages met for each page
/// wanted before a walk, and how much longer the active list may be than the inactive one.
const SCAN_RATIO: u64 = 6;
const MAPPED_RATIO: u64 = 100;
const BALANCE_RATIO: u64 = 2;
/// Tries, and walks, for one choice at most.
const TRIES_MAX: u32 = 2;
const WALKS_MAX: u32 = 2;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Search {
    /// Walks page tables, at the pace of 2.4.22 or of 2.5.23.
    Virtual {
        is_even: bool,
    },
    Reverse,
}

/// The progress of a try.
#[derive(Default)]
struct Round {
    /// Rounds left, this one included.
    left: u64,
    /// Pages still to be freed.
    wanted: u64,
    /// Pages of the inactive list still to be looked at.
    scan: u64,
    /// Mapped pages that may be met before a walk begins.
    mapped: u64,
}

struct Classzone {
    description: &'static Description,
    search: Search,
    queues: Queues,
    is_referenced: Column<bool>,
    /// True for each page whose last mapping a walk has removed.
    is_unmapped: Column<bool>,
    round: Round,
    /// The place that the walk along the page tables has reached.
    hand: Option<(SpaceId, VirtPage)>,
    walks: u32,
    frames: u64,
}

/// Makes a `linux-classzone`.
pub fn build_virtual(settings: Settings) -> impl Policy {
    let is_even = settings.knobs[0] == 1;
    build(&VIRTUAL, Search::Virtual { is_even }, &settings)
}

/// Makes a `linux-rmap`.
pub fn build_reverse(settings: Settings) -> impl Policy {
    build(&REVERSE, Search::Reverse, &settings)
}

fn build(description: &'static Description, search: Search, settings: &Settings) -> Classzone {
    Classzone {
        description,
        search,
        queues: Queues::new(2, settings.frames_max),
        is_referenced: Column::new(false, settings.frames_max as usize),
        is_unmapped: Column::new(false, settings.frames_max as usize),
        round: Round::default(),
        hand: None,
        walks: 0,
        frames: settings.frames.into(),
    }
}

impl Policy for Classzone {
    fn describe(&self) -> &'static Description {
        self.description
    }

    fn page_entered(&mut self, frame: FrameId, arrival: &Arrival) {
        // The fault that brings a page counts as its first use.
        self.is_referenced[frame.index()] = match arrival.cause {
            Cause::ZeroFill | Cause::Fetched | Cause::Adopted | Cause::Kept => true,
            Cause::ZeroAhead | Cause::Prefetched | Cause::Copied | Cause::Cleaned => false,
        };
        self.is_unmapped[frame.index()] = false;
        self.queues.push_back(INACTIVE, frame.0);
    }

    fn page_left(&mut self, frame: FrameId, _page: PageId, _departure: Departure) {
        self.queues.remove(frame.0);
    }

    fn page_rescued(&mut self, frame: FrameId) {
        // Other soft faults are how a machine without bits sets one, which the next walk finds.
        if core::mem::take(&mut self.is_unmapped[frame.index()]) {
            self.mark_accessed(frame);
        }
    }

    fn page_copied(&mut self, frame: FrameId, kernel_use: KernelUse) -> bool {
        // `mark_page_accessed`. The first use is counted when the page comes.
        if kernel_use == KernelUse::Again {
            self.mark_accessed(frame);
        }
        true
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        self.walks = 0;
        let mut tries = 0;
        while self.queues.total() > 0 {
            if self.round.scan == 0 || self.round.wanted == 0 {
                if self.round.left <= 1 {
                    tries += 1;
                    if tries > TRIES_MAX {
                        break;
                    }
                }
                self.begin_round(probe);
                continue;
            }
            if self.walks() {
                self.pass_mapped(probe);
                if self.round.scan == 0 {
                    continue;
                }
            }
            if let Some(frame) = self.look(probe) {
                self.round.wanted -= 1;
                return Some(frame);
            }
        }
        self.find_by_force(probe)
    }

    fn resize(&mut self, frames: u32) {
        self.frames = frames.into();
    }

    fn check(&self) {
        self.queues.check();
    }
}

impl SimulatedPolicy for Classzone {}

impl SpacePolicy for Classzone {
    fn walks(&self) -> bool {
        self.search != Search::Reverse
    }
}

impl Classzone {
    /// Begins the next round, of a new try if the last is over.
    fn begin_round(&mut self, probe: &mut Probe<'_>) {
        let is_even = self.search == (Search::Virtual { is_even: true });
        let rounds = ROUNDS[usize::from(is_even)];
        if self.round.left <= 1 || self.round.wanted == 0 {
            self.round.left = rounds;
            self.round.wanted = BATCH;
        } else {
            self.round.left -= 1;
        }
        let (active, inactive) = (self.length(ACTIVE), self.length(INACTIVE));
        let wanted = self.round.wanted;
        if is_even {
            self.refill(wanted * active / (BALANCE_RATIO * inactive + 1), probe);
            self.round.scan = (self.length(ACTIVE) + self.length(INACTIVE)).div_ceil(SCAN_RATIO);
            self.round.mapped = wanted * MAPPED_RATIO;
        } else {
            self.refill(wanted * active / ((inactive + 1) * 2), probe);
            self.round.scan = self.length(INACTIVE) / self.round.left;
            self.round.mapped = wanted << (9 - self.round.left);
        }
        if self.search == Search::Reverse {
            self.round.mapped = u64::MAX;
        }
    }

    /// Passes the oldest inactive pages that only go to the back of their list when they are looked
    /// at: most are mapped, and each walk is preceded by thousands of them. So they are counted as
    /// they lie, and the list is turned once.
    fn pass_mapped(&mut self, probe: &Probe<'_>) {
        let Round {
            mut scan,
            mut mapped,
            ..
        } = self.round;
        let mut at = self.queues.front(INACTIVE);
        while scan > 0
            && let Some(frame) = at
        {
            if probe.may_leave(FrameId(frame)) {
                if mapped == 0 || !probe.is_mapped(FrameId(frame)) {
                    break;
                }
                mapped -= 1;
            }
            scan -= 1;
            at = self.queues.next(frame);
        }
        // A list that was passed to its end is as it was.
        if let Some(frame) = at {
            self.queues.turn_to(frame);
        }
        (self.round.scan, self.round.mapped) = (scan, mapped);
    }

    /// Looks at the oldest inactive page. Answers its frame if it is to go.
    fn look(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        self.round.scan -= 1;
        let Some(frame) = self.queues.front(INACTIVE).map(FrameId) else {
            self.round.scan = 0;
            return None;
        };
        self.queues.move_to_back(INACTIVE, frame.0);
        if !probe.may_leave(frame) {
            return None;
        }
        match self.search {
            Search::Reverse => {
                let was_marked = core::mem::take(&mut self.is_referenced[frame.index()]);
                let was_used = probe.take_referenced(frame) || was_marked;
                // An unmapped page becomes active by being copied again, and not here.
                if !was_used || !probe.is_in_use(frame) {
                    return Some(frame);
                }
                self.queues.move_to_back(ACTIVE, frame.0);
                None
            }
            Search::Virtual { .. } if !probe.is_mapped(frame) => Some(frame),
            Search::Virtual { is_even } => {
                self.meet_mapped(is_even, probe);
                None
            }
        }
    }

    /// Counts a mapped page on the inactive list. Too many make the page tables be walked, which
    /// ends a round of 2.5.23.
    fn meet_mapped(&mut self, is_even: bool, probe: &mut Probe<'_>) {
        if self.round.mapped > 0 {
            self.round.mapped -= 1;
            return;
        }
        if self.walks == WALKS_MAX {
            self.round.scan = 0;
            return;
        }
        self.swap_out(probe);
        if is_even {
            let wanted = self.round.wanted;
            self.round.mapped = wanted * MAPPED_RATIO;
            let (active, inactive) = (self.length(ACTIVE), self.length(INACTIVE));
            self.refill(wanted * active / (BALANCE_RATIO * inactive + 1), probe);
        } else {
            self.round.scan = 0;
        }
    }

    /// Makes up to `count` of the oldest active pages inactive; those marked as used go round
    /// once more without their mark. Whether they were used otherwise is asked only where what
    /// maps a page is known from the page.
    fn refill(&mut self, count: u64, probe: &mut Probe<'_>) {
        let mut left = count;
        for _ in 0..2 * self.queues.length(ACTIVE) {
            let Some(frame) = self.queues.front(ACTIVE) else {
                break;
            };
            if left == 0 {
                break;
            }
            let was_marked = core::mem::take(&mut self.is_referenced[frame as usize]);
            let was_used = !self.walks() && probe.take_referenced(FrameId(frame));
            if was_marked || was_used {
                self.queues.move_to_back(ACTIVE, frame);
                continue;
            }
            left -= 1;
            self.queues.move_to_back(INACTIVE, frame);
            // One more use makes it active again.
            self.is_referenced[frame as usize] = self.walks();
        }
    }

    /// Walks on along the page tables, twice to their end at most, and unmaps what was not used
    /// since the last walk and is not active.
    fn swap_out(&mut self, probe: &mut Probe<'_>) {
        self.walks += 1;
        let mut left = BATCH.min(self.frames / BATCH).max(1);
        let mut ends = 0;
        while left > 0 && ends < 2 {
            let Some((mapping, was_used)) = probe.walk(self.hand) else {
                ends += 1;
                self.hand = None;
                continue;
            };
            self.hand = Some((mapping.space, mapping.at));
            let frame = mapping.frame;
            if was_used {
                self.mark_accessed(frame);
            } else if self.queues.list_of(frame.0) == Some(INACTIVE) && probe.may_leave(frame) {
                probe.unmap_at(mapping);
                self.is_unmapped[frame.index()] = !probe.is_mapped(frame);
                left -= 1;
            }
        }
    }

    /// Finds a page where the kernel would have given up.
    fn find_by_force(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        while self.walks() && self.walks < WALKS_MAX {
            self.swap_out(probe);
            let found = self.queues.iter(INACTIVE).map(FrameId);
            let mut free = found.filter(|&frame| !probe.is_mapped(frame) && probe.may_leave(frame));
            if let Some(frame) = free.next() {
                return Some(frame);
            }
        }
        pull_any(&mut self.queues, &[INACTIVE, ACTIVE], probe)
    }

    /// A use: the second makes an inactive page active.
    fn mark_accessed(&mut self, frame: FrameId) {
        let is_referenced = &mut self.is_referenced[frame.index()];
        if *is_referenced && self.queues.list_of(frame.0) == Some(INACTIVE) {
            *is_referenced = false;
            self.queues.move_to_back(ACTIVE, frame.0);
        } else {
            *is_referenced = true;
        }
    }

    fn length(&self, list: u8) -> u64 {
        self.queues.length(list).into()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use alloc::boxed::Box;

    use super::*;
    use crate::policies::parts::bench::{Bench, settings};

    fn bring(bench: &mut Bench, policy: &mut dyn Policy, numbers: &[u32]) {
        for &number in numbers {
            bench.bring(policy, number, Cause::Copied);
        }
    }

    fn evict_all(bench: &mut Bench, policy: &mut dyn Policy) -> Vec<u32> {
        core::iter::from_fn(|| bench.evict_one(policy)).collect()
    }

    #[test]
    fn pages_leave_in_the_order_of_their_addresses() {
        let mut bench = Bench::new(10);
        let mut policy = build_virtual(settings(10, &[0]));
        bring(&mut bench, &mut policy, &[5, 3, 9, 1]);
        assert_eq!(evict_all(&mut bench, &mut policy), [1, 3, 5, 9]);
        let mut policy = build_reverse(settings(10, &[]));
        bring(&mut bench, &mut policy, &[5, 3, 9, 1]);
        assert_eq!(evict_all(&mut bench, &mut policy), [5, 3, 9, 1]);
    }

    #[test]
    fn a_shared_page_stays_until_the_walk_has_been_at_each_of_its_mappings() {
        let policies: [(Box<dyn Policy>, _); 3] = [
            (Box::new(build_virtual(settings(4, &[0]))), [1, 2, 3, 0]),
            (Box::new(build_virtual(settings(4, &[1]))), [1, 2, 3, 0]),
            (Box::new(build_reverse(settings(4, &[]))), [0, 1, 2, 3]),
        ];
        for (mut policy, expected) in policies {
            let mut bench = Bench::new(4);
            bring(&mut bench, &mut *policy, &[0, 1, 2, 3]);
            bench.map(0, 1);
            bench.map(0, 2);
            assert_eq!(evict_all(&mut bench, &mut *policy), expected);
        }
    }

    #[test]
    fn the_second_use_found_by_the_walk_makes_a_page_active() {
        let mut bench = Bench::new(4);
        let mut policy = build_virtual(settings(4, &[0]));
        bring(&mut bench, &mut policy, &[0, 1, 2, 3]);
        bench.touch(&[0]);
        assert_eq!(bench.evict_one(&mut policy), Some(1));
        bench.touch(&[0]);
        assert_eq!(bench.evict_one(&mut policy), Some(2));
        assert_eq!(bench.evict_one(&mut policy), Some(3));
        // Not used since: it goes when it has become inactive again.
        assert_eq!(bench.evict_one(&mut policy), Some(0));
    }

    #[test]
    fn a_page_touched_after_the_walk_has_unmapped_it_is_looked_at_again() {
        let mut bench = Bench::new(4);
        let mut policy = build_virtual(settings(4, &[0]));
        bring(&mut bench, &mut policy, &[0, 1, 2]);
        let first = policy.choose(&mut bench.probe());
        assert_eq!(first, Some(FrameId(0)));
        bench.map(0, 0);
        policy.page_rescued(FrameId(0));
        bench.touch(&[0]);
        assert_eq!(bench.evict_one(&mut policy), Some(1));
    }

    #[test]
    fn copies_by_system_calls_are_uses() {
        let mut bench = Bench::new(64);
        let mut policy = build_reverse(settings(64, &[]));
        (0..64).for_each(|number| bench.bring(&mut policy, number, Cause::Copied));
        assert!(policy.page_copied(FrameId(0), KernelUse::First));
        assert!(policy.page_copied(FrameId(1), KernelUse::Again));
        assert!(policy.page_copied(FrameId(2), KernelUse::Again));
        assert!(policy.page_copied(FrameId(2), KernelUse::Again));
        let left: Vec<_> = (0..3).map(|_| bench.evict_one(&mut policy)).collect();
        assert_eq!(left, [Some(0), Some(3), Some(4)]);
    }
}
