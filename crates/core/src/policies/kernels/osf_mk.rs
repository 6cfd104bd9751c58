//! The pager of OSF's Mach microkernels: Mach's second chance, and a preference for pages whose
//! pager can be trusted when memory is all but gone.
//!
//! Two thirds of the pages are inactive. Active ones become so in the order they came, without
//! their bits, whether used or not; an inactive page that was used becomes active again. While
//! fewer frames are free than the daemon itself may need, pages of the default pager leave first:
//! another pager may need memory to take its own. What was read ahead comes inactive, and so does
//! a page that a sequential reader has passed.
//!
//! Clusters, the bounds on what is in flight and the task swapper are the system's business.

use alloc::vec::Vec;

use crate::collections::column::Column;
use crate::collections::queue::Queues;
use crate::id::{FrameId, PageId};
use crate::policies::parts::lists::{pull, pull_any};
use crate::policies::parts::sequential::DropBehind;
use crate::policies::settings::Settings;
use crate::seams::policy::{
    Arrival, Cause, Departure, Description, Knob, Policy, Probe, Sees, SimulatedPolicy, SpacePolicy,
};

/// The description of `osf-mk`.
pub static DESCRIPTION: Description = Description {
    name: "osf-mk",
    summary: "active pages age in order; used ones stay; trusted pagers first when memory is gone",
    lineage: &[
        "Mach 3.0, 1991 (vm_pageout)",
        "OSF MK6 and MK7, 1995 (vm_pageout)",
    ],
    sees: Sees::Bits,
    knobs: &[
        Knob {
            name: "inactive",
            meaning: "resident pages that are inactive, in thousandths",
            min: 1,
            max: 1000,
            default: 667,
        },
        Knob {
            name: "reserved",
            meaning: "free frames up to which only trusted pagers' pages leave",
            min: 0,
            max: 1_000_000,
            // Twice the clusters in flight, one for the processor, and five for the daemon.
            default: 26,
        },
        Knob {
            name: "deactivate-behind",
            meaning: "1: a page is inactive as soon as the next of its object comes; 0: it is not",
            min: 0,
            max: 1,
            default: 1,
        },
    ],
};

/// Each kind has lists of its own; stamps say which of two pages came to theirs first.
const ACTIVE: [u8; 2] = [0, 1];
const INACTIVE: [u8; 2] = [2, 3];
/// Pages a sequential reader has passed: inactive as soon as their bits can be cleared, which
/// needs a probe.
const PASSED: u8 = 4;
const LISTS: u8 = 5;
const INTERNAL: usize = 0;
const EXTERNAL: usize = 1;

struct OsfMk {
    queues: Queues,
    kinds: Column<usize>,
    /// The time at which each page came to its list, in moves.
    stamps: Column<u64>,
    moves: u64,
    drop_behind: DropBehind,
    inactive_permille: u64,
    reserved: u64,
    is_deactivating_behind: bool,
}

/// Makes an `osf-mk`.
pub fn build(settings: Settings) -> impl Policy {
    OsfMk {
        queues: Queues::new(LISTS, settings.frames_max),
        kinds: Column::new(INTERNAL, settings.frames_max as usize),
        stamps: Column::new(0, settings.frames_max as usize),
        moves: 0,
        drop_behind: DropBehind::new(settings.frames_max),
        inactive_permille: settings.knobs[0],
        reserved: settings.knobs[1],
        is_deactivating_behind: settings.knobs[2] == 1,
    }
}

impl Policy for OsfMk {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn page_entered(&mut self, frame: FrameId, arrival: &Arrival) {
        let kind = if arrival.is_external {
            EXTERNAL
        } else {
            INTERNAL
        };
        self.kinds[frame.index()] = kind;
        let lists = match arrival.cause {
            Cause::Prefetched | Cause::ZeroAhead | Cause::Cleaned => INACTIVE,
            Cause::ZeroFill | Cause::Fetched | Cause::Copied | Cause::Adopted | Cause::Kept => {
                ACTIVE
            }
        };
        self.append(lists, frame);
        // A page that stays has not come just now, and the pages before it have not been passed.
        if matches!(arrival.cause, Cause::Kept | Cause::Cleaned) {
            return;
        }
        let passed = self.drop_behind.enter(frame, arrival.page);
        if let Some(passed) = passed.filter(|_| self.is_deactivating_behind) {
            self.queues.move_to_back(PASSED, passed.0);
        }
    }

    fn page_left(&mut self, frame: FrameId, _page: PageId, _departure: Departure) {
        self.queues.remove(frame.0);
        self.drop_behind.leave(frame);
    }

    fn page_rescued(&mut self, frame: FrameId) {
        // A fault on an active page leaves it where it is: active is a true queue.
        if !matches!(self.queues.list_of(frame.0), Some(list) if ACTIVE.contains(&list)) {
            self.append(ACTIVE, frame);
        }
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        while let Some(frame) = self.queues.front(PASSED).map(FrameId) {
            probe.take_referenced(frame);
            self.append(INACTIVE, frame);
        }
        // Whatever became inactive in here has its bit cleared, so that one round is enough.
        for _ in 0..=self.queues.total() {
            self.refill(probe);
            let Some(frame) = self.find_first(INACTIVE, probe) else {
                break;
            };
            if !probe.take_referenced(frame) {
                return Some(frame);
            }
            self.append(ACTIVE, frame);
        }
        let [first, second] = ACTIVE;
        pull_any(&mut self.queues, &[first, second], probe)
    }

    fn check(&self) {
        self.queues.check();
        for list in 0..PASSED {
            let members: Vec<u32> = self.queues.iter(list).collect();
            let kind = usize::from(list) % 2;
            assert!(
                members
                    .iter()
                    .all(|&frame| self.kinds[frame as usize] == kind)
            );
        }
    }
}

impl SimulatedPolicy for OsfMk {}

impl SpacePolicy for OsfMk {}

impl OsfMk {
    /// Makes the oldest active pages inactive until those have their share.
    fn refill(&mut self, probe: &mut Probe<'_>) {
        let total = u64::from(self.queues.total());
        while self.length(INACTIVE) * 1000 < total * self.inactive_permille {
            let Some(frame) = self.find_first(ACTIVE, probe) else {
                break;
            };
            probe.take_referenced(frame);
            self.append(INACTIVE, frame);
        }
    }

    /// Finds the page that came first to either list and may leave; when next to nothing is free,
    /// the first of a trusted pager if there is one.
    fn find_first(&mut self, lists: [u8; 2], probe: &Probe<'_>) -> Option<FrameId> {
        let [internal, external] = lists.map(|list| pull(&mut self.queues, list, probe));
        if u64::from(probe.frames_free()) <= self.reserved {
            return internal.or(external);
        }
        let stamp = |frame: &FrameId| self.stamps[frame.index()];
        internal.into_iter().chain(external).min_by_key(stamp)
    }

    fn append(&mut self, lists: [u8; 2], frame: FrameId) {
        self.moves += 1;
        self.stamps[frame.index()] = self.moves;
        self.queues
            .move_to_back(lists[self.kinds[frame.index()]], frame.0);
    }

    fn length(&self, lists: [u8; 2]) -> u64 {
        lists
            .map(|list| u64::from(self.queues.length(list)))
            .iter()
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::parts::bench::{Bench, settings};

    fn policy(frames: u32, reserved: u64) -> (impl Policy, Bench) {
        let mut bench = Bench::new(frames);
        let mut policy = build(settings(frames, &[667, reserved, 1]));
        for number in 0..frames {
            bench.bring_of(&mut policy, number, Cause::Fetched, number < 4);
        }
        (policy, bench)
    }

    #[test]
    fn the_oldest_leaves_whoever_keeps_it_while_memory_is_left() {
        let (mut policy, mut bench) = policy(8, 0);
        bench.evict(&mut policy, 7);
        bench.touch(&[1]);
        // The use was before it became inactive, and counts for nothing.
        assert_eq!(bench.evict_one(&mut policy), Some(0));
        bench.touch(&[1]);
        assert_eq!(bench.evict_one(&mut policy), Some(2));
    }

    #[test]
    fn pages_of_trusted_pagers_leave_first_when_memory_is_gone() {
        let (mut policy, mut bench) = policy(8, 26);
        for expected in [4, 5, 6, 7, 0] {
            assert_eq!(bench.evict_one(&mut policy), Some(expected));
        }
    }

    #[test]
    fn what_is_read_ahead_leaves_before_what_was_wanted() {
        let (mut policy, mut bench) = policy(8, 0);
        bench.evict(&mut policy, 6);
        bench.evict(&mut policy, 7);
        bench.bring(&mut policy, 7, Cause::Prefetched);
        assert_eq!(bench.evict_one(&mut policy), Some(7));
    }
}
