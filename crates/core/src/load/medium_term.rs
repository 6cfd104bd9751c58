//! Medium-term scheduling: programs run while what they need fits in memory.
//!
//! When the working sets of those that run no longer fit, the one that came last is swapped out
//! whole. One that waits comes back, first out first in, when its set fits beside the others'. If
//! it has waited for long, it takes the place of the one that has run longest.
//!
//! The swapper of VMS uses the number of free frames instead, with those that will soon be free.
//! When few are free although sets have been trimmed, an idle program is swapped out, or else the
//! one that has run longest; one that waits comes back when there is enough for its pages and the
//! goal besides.
//!
//! Sources: P. J. Denning, "The working set model for program behavior", CACM 11(5), 1968; "Working
//! sets past and present", IEEE TSE 6(1), 1980, for stopping the last to come. What a program needs
//! is measured by the policy (`working-set`, `dws`, `wsclock`, `pff`), which counts what was taken
//! from a set as well. Where the policy does not, resident pages stand for it, and these always
//! fit. VMS: H. Levy and P. Lipman, "Virtual memory management in the VAX/VMS operating system",
//! Computer 15(3), 1982; its priorities are left out.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::id::SpaceId;
use crate::seams::description::Knob;
use crate::seams::load_control::{Description, LoadControl, LoadView, SpaceLoad, Verdict};
use crate::time::Time;

/// The description of `medium-term`.
pub static DESCRIPTION: Description = Description {
    name: "medium-term",
    summary: "runs programs while their working sets fit, swaps the last to come out whole",
    lineage: &[
        "Denning 1968",
        "Denning 1980 (working sets past and present)",
    ],
    knobs: &[SETTLE, PATIENCE],
    is_live: true,
};

/// The description of `vms-swapper`.
pub static VMS: Description = Description {
    name: "vms-swapper",
    summary: "swaps out whole programs when trimming no longer frees enough, the idle first",
    lineage: &["Levy and Lipman 1982 (VAX/VMS)"],
    knobs: &[
        SETTLE,
        PATIENCE,
        Knob {
            name: "free-low",
            meaning: "free or as good as free below which one goes, in thousandths of memory",
            min: 0,
            max: 1000,
            default: 4,
        },
        Knob {
            name: "free-goal",
            meaning: "what is left free besides when one comes back, in thousandths of memory",
            min: 0,
            max: 1000,
            default: 24,
        },
    ],
    is_live: true,
};

const SETTLE: Knob = Knob {
    name: "settle-ms",
    meaning: "milliseconds between two changes, for sets to be measured anew",
    min: 0,
    max: 1_000_000,
    default: 2000,
};

const PATIENCE: Knob = Knob {
    name: "patience-ms",
    meaning: "milliseconds after which one that waits takes another's place",
    min: 1,
    max: 100_000_000,
    default: 30_000,
};

const MS_NS: u64 = 1_000_000;

/// The rule by which programs fit or do not.
enum Rule {
    /// Programs fit if the sum of their working sets is less than memory.
    Sets,
    /// Free frames; in thousandths of memory.
    Free {
        low: u64,
        goal: u64,
        /// Few were free at the last tick already: the sets have been trimmed since.
        was_short: bool,
    },
}

struct MediumTerm {
    rule: Rule,
    settle_ns: u64,
    patience_ns: u64,
    changed: Option<Time>,
    /// The programs that run, in the order they came.
    running: VecDeque<SpaceId>,
    /// The programs that wait, the longest first.
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    space: SpaceId,
    since: Time,
    /// The frames it needed when it was stopped.
    demand: u32,
}

/// Makes a `medium-term`.
pub fn build(knobs: &[u64]) -> Box<dyn LoadControl> {
    Box::new(MediumTerm::new(knobs, Rule::Sets))
}

/// Makes a `vms-swapper`.
pub fn build_vms(knobs: &[u64]) -> Box<dyn LoadControl> {
    let rule = Rule::Free {
        low: knobs[2],
        goal: knobs[3],
        was_short: false,
    };
    Box::new(MediumTerm::new(knobs, rule))
}

impl LoadControl for MediumTerm {
    fn describe(&self) -> &'static Description {
        match self.rule {
            Rule::Sets => &DESCRIPTION,
            Rule::Free { .. } => &VMS,
        }
    }

    fn tick(&mut self, view: &LoadView<'_>, verdicts: &mut Vec<Verdict>) {
        self.meet(view);
        let is_short = self.is_short(view);
        let is_fresh = |changed| view.now.since_ns(changed) < self.settle_ns;
        let is_active = |&&space: &&SpaceId| is_active(view, space);
        let actives = self.running.iter().filter(is_active).count();
        // No program runs: one must, whether it fits or not.
        if self.changed.is_some_and(is_fresh) && actives > 0 {
            return;
        }
        let has_waited = |head: &Waiting| view.now.since_ns(head.since) >= self.patience_ns;
        let head = self.waiting.front();
        if is_short {
            if let Some(space) = self.pick_out(view) {
                self.stop(view, space, verdicts);
            }
        } else if head.is_some_and(|head| actives == 0 || self.fits(view, head.demand)) {
            self.resume(view, verdicts);
        } else if head.is_some_and(has_waited) {
            let first = self.running.iter().find(is_active).copied();
            self.resume(view, verdicts);
            self.stop(view, first.expect("some are active"), verdicts);
        }
    }

    fn space_ended(&mut self, space: SpaceId) {
        self.running.retain(|&other| other != space);
        self.waiting.retain(|other| other.space != space);
    }
}

impl MediumTerm {
    fn new(knobs: &[u64], rule: Rule) -> MediumTerm {
        MediumTerm {
            rule,
            settle_ns: knobs[0] * MS_NS,
            patience_ns: knobs[1] * MS_NS,
            changed: None,
            running: VecDeque::new(),
            waiting: VecDeque::new(),
        }
    }

    /// Takes note of spaces that are new.
    fn meet(&mut self, view: &LoadView<'_>) {
        for load in view.spaces {
            let is_waiting = self.waiting.iter().any(|other| other.space == load.space);
            if !is_waiting && !self.running.contains(&load.space) {
                self.running.push_back(load.space);
            }
        }
    }

    /// Returns true if those that run are too many for memory.
    fn is_short(&mut self, view: &LoadView<'_>) -> bool {
        let needed = self.needed(view);
        match &mut self.rule {
            Rule::Sets => needed > u64::from(view.frames),
            Rule::Free { low, was_short, .. } => {
                let is_short = available(view) < share(view, *low);
                core::mem::replace(was_short, is_short) && is_short
            }
        }
    }

    /// Returns true if one more fits that needs `demand` frames.
    fn fits(&self, view: &LoadView<'_>, demand: u32) -> bool {
        match self.rule {
            Rule::Sets => self.needed(view) + u64::from(demand) <= u64::from(view.frames),
            Rule::Free { goal, .. } => available(view) >= share(view, goal) + u64::from(demand),
        }
    }

    /// The frames needed by the active ones of those that run.
    fn needed(&self, view: &LoadView<'_>) -> u64 {
        let loads = self
            .running
            .iter()
            .filter_map(|&space| load_of(view, space));
        let active = loads.filter(|load| load.turn.is_active);
        active.map(|load| u64::from(demand(load))).sum()
    }

    /// Picks the space that must leave: none if no other would run then.
    fn pick_out(&self, view: &LoadView<'_>) -> Option<SpaceId> {
        let mut actives = self.running.iter().filter(|&&space| is_active(view, space));
        let (first, last) = (actives.next(), actives.next_back());
        let found = match self.rule {
            Rule::Sets => last,
            Rule::Free { .. } => {
                let has_pages = |load: &SpaceLoad| load.resident > 0 && !load.turn.is_active;
                let mut running = self.running.iter();
                let idle = running.find(|&&space| load_of(view, space).is_some_and(has_pages));
                idle.or(last.and(first))
            }
        };
        found.copied()
    }

    fn stop(&mut self, view: &LoadView<'_>, space: SpaceId, verdicts: &mut Vec<Verdict>) {
        self.changed = Some(view.now);
        self.running.retain(|&other| other != space);
        self.waiting.push_back(Waiting {
            space,
            since: view.now,
            demand: load_of(view, space).map_or(0, demand),
        });
        verdicts.push(Verdict::SwapOut(space));
    }

    fn resume(&mut self, view: &LoadView<'_>, verdicts: &mut Vec<Verdict>) {
        self.changed = Some(view.now);
        let head = self.waiting.pop_front().expect("one waits");
        self.running.push_back(head.space);
        verdicts.push(Verdict::Resume(head.space));
    }
}

fn load_of<'a>(view: &LoadView<'a>, space: SpaceId) -> Option<&'a SpaceLoad> {
    view.spaces.iter().find(|load| load.space == space)
}

fn is_active(view: &LoadView<'_>, space: SpaceId) -> bool {
    load_of(view, space).is_some_and(|load| load.turn.is_active)
}

/// Frames free or as good as free.
fn available(view: &LoadView<'_>) -> u64 {
    u64::from(view.frames_free) + u64::from(view.frames_spare)
}

fn share(view: &LoadView<'_>, permille: u64) -> u64 {
    u64::from(view.frames) * permille / 1000
}

fn demand(load: &SpaceLoad) -> u32 {
    load.demand.unwrap_or(load.resident)
}
