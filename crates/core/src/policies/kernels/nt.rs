//! Windows NT: a working set a process between a least and a greatest size, trimmed every second.
//!
//! While memory is plentiful a set grows past its greatest size; while it is tight, a process at
//! that size gives up one of its own pages at a fault. Once a second, if memory is tight, sets are
//! trimmed: those with the most pages above their least first. A page that was used since the last
//! time gets its age back to nothing; one that was not ages, and leaves its set when it is old
//! enough. The scan of a set goes on where it stopped. What leaves a set stays in memory, on the
//! standby list or, until it is written, on the modified one, and comes back by a soft fault.
//!
//! Source: the documented behaviour of Windows NT ("Inside Windows NT", 1993; "Windows Internals",
//! sixth edition, part 2). No program is in the
//! foreground here, and none is spared.

use alloc::vec::Vec;

use crate::collections::column::Column;
use crate::id::{FrameId, PageId, SpaceId};
use crate::policies::parts::local_sets::Local;
use crate::policies::settings::Settings;
use crate::seams::policy::{
    Arrival, Departure, Description, Knob, Policy, Probe, Sees, SimulatedPolicy, SpacePolicy,
};
use crate::time::Time;

/// The description of `nt`.
pub static DESCRIPTION: Description = Description {
    name: "nt",
    summary: "a working set a process, trimmed every second while memory is tight",
    lineage: &[
        "Turner and Levy 1981 (VMS)",
        "Windows NT 3.1, 1993 (balance set manager)",
    ],
    sees: Sees::Bits,
    knobs: &[
        Knob {
            name: "least",
            meaning: "pages a set is not trimmed below",
            min: 1,
            max: 1 << 30,
            default: 50,
        },
        Knob {
            name: "greatest",
            meaning: "pages above which a set grows only while memory is plentiful",
            min: 1,
            max: 1 << 30,
            default: 345,
        },
        Knob {
            name: "plenty",
            meaning: "frames free or as good as free for memory to be plentiful, in thousandths",
            min: 0,
            max: 1000,
            default: 60,
        },
        Knob {
            name: "age",
            meaning: "times a page must be found unused before it leaves its set",
            min: 1,
            max: 255,
            default: 2,
        },
        Knob {
            name: "modified-high",
            meaning: "modified pages out of sets that start the writer, in thousandths of memory",
            min: 0,
            max: 1000,
            default: 30,
        },
    ],
};

/// The balance set manager looks at sets so often.
const PERIOD_NS: u64 = 1_000_000_000;

struct Nt {
    local: Local,
    /// The number of times that each page was found unused.
    ages: Column<u8>,
    /// Spaces that have faulted since the last trimming.
    faulted: Vec<SpaceId>,
    balanced: Option<Time>,
    least: u32,
    greatest: u32,
    plenty_permille: u64,
    age: u8,
    modified_permille: u64,
}

/// Makes an `nt`.
pub fn build(settings: Settings) -> impl Policy {
    let least = settings.knobs[0] as u32;
    Nt {
        local: Local::new(settings.frames_max, settings.frames),
        ages: Column::new(0, settings.frames_max as usize),
        faulted: Vec::new(),
        balanced: None,
        least,
        greatest: (settings.knobs[1] as u32).max(least),
        plenty_permille: settings.knobs[2],
        age: settings.knobs[3] as u8,
        modified_permille: settings.knobs[4],
    }
}

impl Policy for Nt {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn page_entered(&mut self, frame: FrameId, arrival: &Arrival) {
        self.ages[frame.index()] = 0;
        if self.local.enter(frame, arrival) {
            self.note_fault(arrival.space);
        }
    }

    fn page_left(&mut self, frame: FrameId, _page: PageId, _departure: Departure) {
        self.local.sets.remove(frame);
    }

    fn page_rescued(&mut self, frame: FrameId) {
        self.ages[frame.index()] = 0;
        if self.local.rescue(frame) {
            self.note_fault(self.local.owner(frame));
        }
    }

    fn choose(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        self.local.judge(probe);
        if let Some(frame) = self.local.choose(probe) {
            return Some(frame);
        }
        let spaces = self.local.sets.collect_largest_first();
        spaces
            .into_iter()
            .find_map(|space| self.find_unused(space, probe))
    }

    fn trim(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        self.local.judge(probe);
        while let Some(space) = self.faulted.pop() {
            let is_full = self.local.sets.length(space) > self.greatest;
            let is_tight = is_full && !self.is_plentiful();
            if is_tight && let Some(frame) = self.find_unused(space, probe) {
                self.local.remove(frame, probe);
            }
        }
        None
    }

    fn clean(&mut self, probe: &mut Probe<'_>) -> Option<FrameId> {
        let high = self.local.share(self.modified_permille);
        self.local.clean(high, 0, probe)
    }

    fn tick(&mut self, probe: &mut Probe<'_>) {
        let now = probe.now();
        let is_early = |last| now.since_ns(last) < PERIOD_NS;
        if self.balanced.is_some_and(is_early) {
            return;
        }
        self.balanced = Some(now);
        self.local.judge(probe);
        for space in self.local.sets.collect_largest_first() {
            if self.is_plentiful() {
                return;
            }
            self.age_set(space, probe);
        }
    }

    fn resize(&mut self, frames: u32) {
        self.local.resize(frames);
    }

    fn check(&self) {
        self.local.check();
    }
}

impl SimulatedPolicy for Nt {}

impl SpacePolicy for Nt {
    fn frames_spare(&self) -> u32 {
        self.local.spare()
    }
}

impl Nt {
    fn note_fault(&mut self, space: SpaceId) {
        if !self.faulted.contains(&space) {
            self.faulted.push(space);
        }
    }

    /// Returns true if as many frames are free or as good as free as should be.
    fn is_plentiful(&self) -> bool {
        let available = self.local.free() + self.local.removed();
        available >= self.local.share(self.plenty_permille)
    }

    /// Looks at each page of `space` once, and removes those that are old enough, until memory is
    /// plentiful or the set is at its least.
    fn age_set(&mut self, space: SpaceId, probe: &mut Probe<'_>) {
        for _ in 0..self.local.sets.length(space) {
            if self.local.sets.length(space) <= self.least || self.is_plentiful() {
                return;
            }
            let Some(frame) = self.local.sets.front(space, usize::MAX, probe) else {
                return;
            };
            self.local.sets.move_to_back(frame);
            let age = &mut self.ages[frame.index()];
            *age = if probe.take_referenced(frame) {
                0
            } else {
                age.saturating_add(1)
            };
            if *age >= self.age {
                self.local.remove(frame, probe);
            }
        }
    }

    /// The next page of `space` that was not used since it was last looked at.
    fn find_unused(&mut self, space: SpaceId, probe: &mut Probe<'_>) -> Option<FrameId> {
        // One round clears every bit, so that the second finds a page if any may leave.
        for _ in 0..=2 * self.local.sets.length(space) {
            let frame = self.local.sets.front(space, usize::MAX, probe)?;
            if !probe.take_referenced(frame) {
                return Some(frame);
            }
            self.ages[frame.index()] = 0;
            self.local.sets.move_to_back(frame);
        }
        None
    }
}
