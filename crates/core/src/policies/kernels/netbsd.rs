//! NetBSD's clock: one active and one inactive queue, and shares of memory for classes of pages.
//!
//! New pages are active. A third of the pages are inactive; they got there in the order they
//! came, without their bits, and the oldest leaves unless it was used. Beyond that, a page is made
//! active again if there are few of its class (internal, file or program text), or if not too many
//! and there are too many of another: `vm.anonmin` and its like.
//!
//! # Departures
//! Which external pages are program text is not known here: all are, or, with the knob `text` at
//! 0, none. The daemon balances the queues after each scan; here before each choice that finds too
//! few pages inactive. What NetBSD does when swap is short is left out: stores are never short of
//! what they have promised.

use crate::collections::column::Column;
use crate::collections::queue::Queues;
use crate::id::{FrameId, PageId};
use crate::policies::parts::lists::{pull, pull_any};
use crate::policies::settings::Settings;
use crate::seams::policy::{
    Arrival, Departure, Description, Knob, Policy, Probe, Sees, SimulatedPolicy, SpacePolicy,
};

/// The description of `netbsd`.
pub static DESCRIPTION: Description = Description {
    name: "netbsd",
    summary: "a clock that spares classes of pages that have less than their share of memory",
    lineage: &[
        "Mach 3.0, 1991 (vm_pageout)",
        "Cranor 1998 (UVM)",
        "NetBSD (uvm_pdpolicy_clock)",
    ],
    sees: Sees::Bits,
    knobs: &[
        share("anonmin", "internal pages spared up to, in hundredths", 10),
        share(
            "anonmax",
            "internal pages not spared beyond, in hundredths",
            80,
        ),
        share("filemin", "file pages spared up to, in hundredths", 10),
        share("filemax", "file pages not spared beyond, in hundredths", 50),
        share("execmin", "text pages spared up to, in hundredths", 5),
        share("execmax", "text pages not spared beyond, in hundredths", 30),
        share(
            "inactive",
            "resident pages that are inactive, in hundredths",
            33,
        ),
        Knob {
            name: "text",
            meaning: "1: external pages count as program text; 0: as files",
            min: 0,
            max: 1,
            default: 1,
        },
    ],
};

const fn share(name: &'static str, meaning: &'static str, default: u64) -> Knob {
    Knob {
        name,
        meaning,
        min: 0,
        max: 100,
        default,
    }
}

const ACTIVE: u8 = 0;
const INACTIVE: u8 = 1;

const ANON: usize = 0;
const FILE: usize = 1;
const EXEC: usize = 2;
const CLASSES: usize = 3;

/// The bounds of what is kept free, in pages: 128 KiB and 1 MiB.
const FREE_LEAST: u32 = 32;
const FREE_MOST: u32 = 256;

#[derive(Clone, Copy)]
struct Bounds {
    min: u64,
    max: u64,
}

struct Netbsd {
    queues: Queues,
    classes: Column<usize>,
    counts: [u64; CLASSES],
    bounds: [Bounds; CLASSES],
    inactive_percent: u64,
    is_text: bool,
    frames: u32,
}

/// Makes a `netbsd`.
pub fn build(settings: Settings) -> impl Policy {
    let bounds = |class: usize| Bounds {
        min: settings.knobs[2 * class],
        max: settings.knobs[2 * class + 1],
    };
    Netbsd {
        queues: Queues::new(2, settings.frames_max),
        classes: Column::new(ANON, settings.frames_max as usize),
        counts: [0; CLASSES],
        bounds: [bounds(ANON), bounds(FILE), bounds(EXEC)],
        inactive_percent: settings.knobs[6],
        is_text: settings.knobs[7] == 1,
        frames: settings.frames,
    }
}

impl Policy for Netbsd {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn page_entered(&mut self, frame: FrameId, arrival: &Arrival) {
        let class = match (arrival.is_external, self.is_text) {
            (false, _) => ANON,
            (true, false) => FILE,
            (true, true) => EXEC,
        };
        self.classes[frame.index()] = class;
        self.counts[class] += 1;
        self.queues.push_back(ACTIVE, frame.0);
    }

    fn page_left(&mut self, frame: FrameId, _page: PageId, _departure: Departure) {
        self.counts[self.classes[frame.index()]] -= 1;
        self.queues.remove(frame.0);
    }

    fn page_rescued(&mut self, frame: FrameId) {
        // A fault that resolves an inactive page makes it active.
        if self.queues.list_of(frame.0) == Some(INACTIVE) {
            self.queues.move_to_back(ACTIVE, frame.0);
        }
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        let is_spared = self.classes_spared(probe);
        // What is spared while nothing else is inactive would be spared for ever.
        for _ in 0..2 * self.queues.total() {
            self.balance(probe);
            let Some(frame) = pull(&mut self.queues, INACTIVE, probe) else {
                break;
            };
            if !probe.take_referenced(frame) && !is_spared[self.classes[frame.index()]] {
                return Some(frame);
            }
            self.queues.move_to_back(ACTIVE, frame.0);
        }
        pull_any(&mut self.queues, &[INACTIVE, ACTIVE], probe)
    }

    fn resize(&mut self, frames: u32) {
        self.frames = frames;
    }

    fn check(&self) {
        self.queues.check();
        let mut counts = [0; CLASSES];
        for list in [ACTIVE, INACTIVE] {
            for frame in self.queues.iter(list) {
                counts[self.classes[frame as usize]] += 1;
            }
        }
        assert_eq!(counts, self.counts);
    }
}

impl SimulatedPolicy for Netbsd {}

impl SpacePolicy for Netbsd {}

impl Netbsd {
    /// Finds the classes that have too little of memory, or not too much while another has.
    fn classes_spared(&self, probe: &Probe<'_>) -> [bool; CLASSES] {
        let total = u64::from(self.queues.total()) + u64::from(probe.frames_free());
        let is_under = |class: usize| self.counts[class] * 100 <= total * self.bounds[class].min;
        let is_over = |class: usize| self.counts[class] * 100 > total * self.bounds[class].max;
        let spared = [ANON, FILE, EXEC].map(|class| {
            let mut others = (0..CLASSES).filter(|&other| other != class);
            is_under(class) || (!is_over(class) && others.any(is_over))
        });
        // Were all spared, nothing could leave.
        match spared {
            [true, true, true] => [false; CLASSES],
            spared => spared,
        }
    }

    /// Makes the oldest active pages inactive until there are as many as there should be.
    fn balance(&mut self, probe: &mut Probe<'_>) {
        let total = u64::from(self.queues.total());
        let free_min = (self.frames / 200).clamp(FREE_LEAST, FREE_MOST);
        let free_target = u64::from(free_min * 4 / 3);
        let target = (total * self.inactive_percent / 100).max(free_target + 1);
        while u64::from(self.queues.length(INACTIVE)) < target {
            let Some(frame) = pull(&mut self.queues, ACTIVE, probe) else {
                break;
            };
            probe.take_referenced(frame);
            self.queues.move_to_back(INACTIVE, frame.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::policies::parts::bench::{Bench, settings};
    use crate::seams::arrival::Cause;

    const SHARES: [u64; 8] = [10, 80, 10, 50, 5, 30, 33, 1];

    #[test]
    fn a_class_within_its_share_is_spared_while_another_has_too_much() {
        let mut bench = Bench::new(200);
        let mut policy = build(settings(200, &SHARES));
        // Text is older, and a tenth of memory; the rest is internal.
        for number in 0..200 {
            bench.bring_of(&mut policy, number, Cause::Fetched, number < 20);
        }
        let first: Vec<u32> = (0..40)
            .filter_map(|_| bench.evict_one(&mut policy))
            .collect();
        let expected: Vec<u32> = (20..60).collect();
        assert_eq!(first, expected);
        // Where no class has too much, the oldest page leaves.
        let mut bench = Bench::new(200);
        let mut policy = build(settings(200, &SHARES));
        for number in 0..200 {
            bench.bring_of(&mut policy, number, Cause::Fetched, number < 50);
        }
        assert_eq!(bench.evict_one(&mut policy), Some(0));
    }

    #[test]
    fn a_third_of_the_pages_is_inactive_and_used_ones_become_active_again() {
        let mut bench = Bench::new(300);
        let mut policy = build(settings(300, &SHARES));
        (0..300).for_each(|number| bench.bring(&mut policy, number, Cause::ZeroFill));
        // Bits set before a page is inactive are cleared on the way.
        bench.touch(&[0, 1]);
        assert_eq!(bench.evict_one(&mut policy), Some(0));
        bench.touch(&[1, 98, 99]);
        assert_eq!(bench.evict_one(&mut policy), Some(2));
        // A page that was not inactive yet has lost its bit when it gets there.
        let left: Vec<u32> = (0..98)
            .filter_map(|_| bench.evict_one(&mut policy))
            .collect();
        assert!(!left.contains(&1) && !left.contains(&98) && left.contains(&99));
    }
}
