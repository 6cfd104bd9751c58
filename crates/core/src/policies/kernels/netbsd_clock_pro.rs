//! NetBSD's CLOCK-Pro: the paper's idea with four queues instead of three hands on one list.
//!
//! Pages are hot or cold, and a cold one may be *in test*: if it is used before its test is over it
//! becomes hot, whether it is still there or has left meanwhile. New pages are on a separate queue
//! first, so that the use of their fault is not taken for another. Pages read ahead are not in test
//! until they are used.
//!
//! Against the paper's: a tenth of memory is cold and stays so unless the knob `adaptive` is 1;
//! what has left is remembered for twice as many pages as there are; a test is over when the hot
//! queue has gone round as far as its memory reaches back, and not when a third hand comes by.
//!
//! # Departures
//! The kernel keeps 32-bit hashes in buckets of 14, and takes two pages of one hash for the same;
//! here they are distinguished. The queue of new pages holds a MiB at least: here no more than a
//! fortieth of memory.

use crate::collections::column::Column;
use crate::collections::queue::Queues;
use crate::id::{FrameId, PageId};
use crate::policies::parts::ghost_list::{Ghost, Ghosts};
use crate::policies::parts::lists::{pull, pull_any};
use crate::policies::settings::Settings;
use crate::seams::policy::{
    Arrival, Cause, Departure, Description, Knob, Policy, Probe, Sees, SimulatedPolicy, SpacePolicy,
};

/// The description of `netbsd-clock-pro`.
pub static DESCRIPTION: Description = Description {
    name: "netbsd-clock-pro",
    summary: "hot pages stay; a cold one used while in test takes the place of one that was not",
    lineage: &[
        "Jiang, Chen and Zhang 2005 (CLOCK-Pro)",
        "NetBSD (uvm_pdpolicy_clockpro)",
    ],
    sees: Sees::Bits,
    knobs: &[
        Knob {
            name: "cold",
            meaning: "cold pages, in hundredths of memory",
            min: 1,
            max: 90,
            default: 10,
        },
        Knob {
            name: "adaptive",
            meaning: "1: each page that becomes hot in its test adds a cold one; 0: they are fixed",
            min: 0,
            max: 1,
            default: 0,
        },
    ],
};

/// Pages that came lately: their first use counts for nothing.
const NEW: u8 = 0;
const COLD: u8 = 1;
const HOT: u8 = 2;
const LISTS: u8 = 3;

/// The number of pages remembered after they left, for each frame.
const GHOSTS_A_FRAME: u32 = 2;
/// The most of memory that can be cold, in hundredths.
const COLD_MOST: u64 = 90;
/// The queue of new pages holds a MiB, or a fortieth of memory if that is less, at least.
const NEW_LEAST: u64 = 256;
const NEW_PART: u64 = 40;

#[derive(Clone, Copy, Default)]
struct Page {
    is_in_test: bool,
    /// Read ahead, and not seen used.
    is_speculative: bool,
}

struct ClockPro {
    queues: Queues,
    pages: Column<Page>,
    ghosts: Ghosts,
    cold_target: u64,
    cold_percent: u64,
    is_adaptive: bool,
    /// Memories to be forgotten, in parts of a hot page.
    expiry: u64,
    frames: u64,
}

/// Makes a `netbsd-clock-pro`.
pub fn build(settings: Settings) -> impl Policy {
    ClockPro::new(&settings)
}

impl ClockPro {
    fn new(settings: &Settings) -> ClockPro {
        let frames = u64::from(settings.frames);
        ClockPro {
            queues: Queues::new(LISTS, settings.frames_max),
            pages: Column::new(Page::default(), settings.frames_max as usize),
            ghosts: Ghosts::new((GHOSTS_A_FRAME * settings.frames_max).max(1)),
            cold_target: (frames * settings.knobs[0] / 100).max(1),
            cold_percent: settings.knobs[0],
            is_adaptive: settings.knobs[1] == 1,
            expiry: 0,
            frames,
        }
    }
}

impl Policy for ClockPro {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn page_entered(&mut self, frame: FrameId, arrival: &Arrival) {
        let was_in_test = self.ghosts.take(arrival.page).is_some();
        let is_speculative = match arrival.cause {
            Cause::ZeroAhead | Cause::Prefetched | Cause::Cleaned => true,
            Cause::ZeroFill | Cause::Fetched | Cause::Copied | Cause::Adopted | Cause::Kept => {
                false
            }
        };
        self.pages[frame.index()] = Page {
            is_in_test: !is_speculative,
            is_speculative,
        };
        let is_hot = was_in_test && !is_speculative && arrival.cause != Cause::Kept;
        if is_hot {
            self.widen_cold();
            self.pages[frame.index()].is_in_test = false;
        }
        self.queues
            .push_back(if is_hot { HOT } else { NEW }, frame.0);
    }

    fn page_left(&mut self, frame: FrameId, page: PageId, departure: Departure) {
        self.queues.remove(frame.0);
        if departure == Departure::Evicted && self.pages[frame.index()].is_in_test {
            let ghost = Ghost {
                page,
                seen: 0,
                was_hot: false,
            };
            let most = GHOSTS_A_FRAME * self.frames as u32;
            self.ghosts.remember(ghost, most);
        }
    }

    fn page_rescued(&mut self, frame: FrameId) {
        let page = &mut self.pages[frame.index()];
        if core::mem::take(&mut page.is_speculative) {
            page.is_in_test = true;
        }
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        self.absorb_new(probe);
        for _ in 0..=2 * self.queues.total() {
            self.run_hot_hand(probe);
            let cold = pull(&mut self.queues, COLD, probe);
            let Some(frame) = cold.or_else(|| pull(&mut self.queues, NEW, probe)) else {
                break;
            };
            if !probe.take_referenced(frame) {
                return Some(frame);
            }
            self.see_used(frame);
        }
        pull_any(&mut self.queues, &[COLD, NEW, HOT], probe)
    }

    fn resize(&mut self, frames: u32) {
        self.frames = frames.into();
        self.cold_target = (self.frames * self.cold_percent / 100).max(1);
    }

    fn check(&self) {
        self.queues.check();
        self.ghosts.check();
        let mut hot = self.queues.iter(HOT);
        assert!(hot.all(|frame| !self.pages[frame as usize].is_in_test));
    }
}

impl SimulatedPolicy for ClockPro {
    fn pages_ahead(&self, wanted: &[PageId], leaving: &[PageId]) {
        self.ghosts.bring_near(wanted, leaving);
    }
}

impl SpacePolicy for ClockPro {}

impl ClockPro {
    /// Makes the oldest new pages cold, without the use that goes with their coming.
    fn absorb_new(&mut self, probe: &mut Probe<'_>) {
        let least = NEW_LEAST.min(self.frames / NEW_PART);
        let most = (self.cold_target / 4).max(least);
        while u64::from(self.queues.length(NEW)) > most {
            let Some(frame) = self.queues.front(NEW).map(FrameId) else {
                break;
            };
            if !self.pages[frame.index()].is_speculative {
                probe.take_referenced(frame);
            }
            self.queues.move_to_back(COLD, frame.0);
        }
    }

    /// A cold page was used: a second time in its test, or for the first time since it was over.
    fn see_used(&mut self, frame: FrameId) {
        let page = &mut self.pages[frame.index()];
        let was_in_test = core::mem::replace(&mut page.is_in_test, true);
        if core::mem::take(&mut page.is_speculative) || !was_in_test {
            self.queues.move_to_back(COLD, frame.0);
            return;
        }
        page.is_in_test = false;
        self.widen_cold();
        self.queues.move_to_back(HOT, frame.0);
    }

    /// Makes hot pages cold that were not used since the hand last came by, while too few are.
    fn run_hot_hand(&mut self, probe: &mut Probe<'_>) {
        for _ in 0..2 * self.queues.length(HOT) {
            let cold = self.queues.length(COLD) + self.queues.length(NEW);
            if u64::from(cold) >= self.cold_target {
                break;
            }
            let Some(frame) = self.queues.front(HOT).map(FrameId) else {
                break;
            };
            self.expire();
            let was_used = probe.take_referenced(frame);
            let list = if was_used { HOT } else { COLD };
            self.queues.move_to_back(list, frame.0);
        }
    }

    /// Forgets as great a part of those who left as one step is of the hot queue.
    fn expire(&mut self) {
        self.expiry += u64::from(self.ghosts.len());
        let hot = u64::from(self.queues.length(HOT)).max(1);
        while self.expiry >= hot {
            self.expiry -= hot;
            self.ghosts.drop_oldest();
        }
    }

    fn widen_cold(&mut self) {
        let most = (self.frames * COLD_MOST / 100).max(1);
        if self.is_adaptive && self.cold_target < most {
            self.cold_target += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::policies::parts::bench::{Bench, settings};

    fn policy(frames: u32, adaptive: u64) -> (ClockPro, Bench) {
        let mut bench = Bench::new(frames);
        let mut policy = ClockPro::new(&settings(frames, &[10, adaptive]));
        (0..frames).for_each(|number| bench.bring(&mut policy, number, Cause::ZeroFill));
        (policy, bench)
    }

    #[test]
    fn the_use_that_goes_with_the_fault_counts_for_nothing() {
        let (mut policy, mut bench) = policy(40, 0);
        let all: Vec<u32> = (0..40).collect();
        bench.touch(&all);
        assert_eq!(bench.evict_one(&mut policy), Some(0));
        // A use after that makes a page hot that is still in its test.
        bench.touch(&[1]);
        assert_eq!(bench.evict_one(&mut policy), Some(2));
        assert_eq!(policy.queues.list_of(1), Some(HOT));
    }

    #[test]
    fn a_page_that_comes_back_in_its_test_is_hot() {
        let (mut policy, mut bench) = policy(40, 1);
        let target = policy.cold_target;
        assert_eq!(bench.evict_one(&mut policy), Some(0));
        bench.bring(&mut policy, 0, Cause::Fetched);
        assert_eq!(policy.queues.list_of(0), Some(HOT));
        assert_eq!(policy.cold_target, target + 1);
    }

    #[test]
    fn what_was_read_ahead_is_not_in_test_before_somebody_uses_it() {
        let (mut policy, mut bench) = policy(4, 0);
        bench.evict(&mut policy, 0);
        bench.bring(&mut policy, 0, Cause::Prefetched);
        bench.evict(&mut policy, 0);
        bench.bring(&mut policy, 0, Cause::Prefetched);
        assert_eq!(policy.queues.list_of(0), Some(NEW));
        policy.queues.move_to_back(COLD, 0);
        policy.see_used(FrameId(0));
        assert!(policy.pages[0].is_in_test && policy.queues.list_of(0) == Some(COLD));
        policy.see_used(FrameId(0));
        assert_eq!(policy.queues.list_of(0), Some(HOT));
    }

    #[test]
    fn the_hot_hand_cools_what_was_not_used_and_forgets_as_it_goes() {
        let (mut policy, mut bench) = policy(40, 0);
        // Twenty have left, and twenty are hot.
        (0..20).for_each(|number| bench.evict(&mut policy, number));
        (20..40).for_each(|number| policy.queues.move_to_back(HOT, number));
        (20..40).for_each(|number| policy.pages[number].is_in_test = false);
        bench.touch(&[20, 21]);
        policy.run_hot_hand(&mut bench.probe());
        let cold: Vec<u32> = policy.queues.iter(COLD).collect();
        assert_eq!(cold, [22, 23, 24, 25]);
        // A part of what is remembered for each of six steps, as great as each is of the queue.
        assert_eq!(policy.ghosts.len(), 15);
    }
}
