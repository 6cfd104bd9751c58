//! Medium-term scheduling by working sets: programs run while what they need fits in memory.
//!
//! When the working sets of those that run no longer fit, the one that came last is swapped out
//! whole. One that waits comes back, first out first in, when its set fits beside the others'. If
//! it has waited for long, it takes the place of the one that has run longest.
//!
//! Sources: P. J. Denning, "The working set model for program behavior", CACM 11(5), 1968; "Working
//! sets past and present", IEEE TSE 6(1), 1980, for stopping the last to come. What a program needs
//! is measured by the policy (`working-set`, `dws`, `wsclock`, `pff`), which counts what was taken
//! from a set as well. Where the policy does not, resident pages stand for it, and these always
//! fit.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::{Description, LoadControl, LoadView, SpaceLoad, Verdict};
use crate::id::SpaceId;
use crate::policy::Knob;
use crate::time::Time;

/// What `medium-term` says of itself.
pub static DESCRIPTION: Description = Description {
    name: "medium-term",
    summary: "runs programs while their working sets fit, swaps the last to come out whole",
    lineage: &[
        "Denning 1968",
        "Denning 1980 (working sets past and present)",
    ],
    knobs: &[
        Knob {
            name: "settle-ms",
            meaning: "milliseconds between two changes, for sets to be measured anew",
            min: 0,
            max: 1_000_000,
            default: 2000,
        },
        Knob {
            name: "patience-ms",
            meaning: "milliseconds after which one that waits takes another's place",
            min: 1,
            max: 100_000_000,
            default: 30_000,
        },
    ],
};

const MS_NS: u64 = 1_000_000;

struct MediumTerm {
    settle_ns: u64,
    patience_ns: u64,
    changed: Option<Time>,
    /// Those that run, in the order they came.
    running: VecDeque<SpaceId>,
    /// Those that wait, the longest first.
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    space: SpaceId,
    since: Time,
    /// What it needed when it was stopped.
    demand: u32,
}

/// Makes a `medium-term`.
pub fn build(knobs: &[u64]) -> Box<dyn LoadControl> {
    Box::new(MediumTerm {
        settle_ns: knobs[0] * MS_NS,
        patience_ns: knobs[1] * MS_NS,
        changed: None,
        running: VecDeque::new(),
        waiting: VecDeque::new(),
    })
}

impl LoadControl for MediumTerm {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn tick(&mut self, view: &LoadView<'_>, verdicts: &mut Vec<Verdict>) {
        self.meet(view);
        let is_fresh = |changed| view.now.since_ns(changed) < self.settle_ns;
        let active = self
            .running
            .iter()
            .filter_map(|&space| load_of(view, space));
        let active = active.filter(|load| load.turn.is_active);
        let (mut needed, mut count) = (0, 0);
        for load in active {
            needed += u64::from(demand(load));
            count += 1;
        }
        // Nobody runs: whatever fits or not, somebody must.
        if self.changed.is_some_and(is_fresh) && count > 0 {
            return;
        }
        let capacity = u64::from(view.frames);
        let has_waited = |head: &Waiting| view.now.since_ns(head.since) >= self.patience_ns;
        let head = self.waiting.front();
        if needed > capacity && count > 1 {
            let last = self.last_to_come(view);
            self.stop(view, last, verdicts);
        } else if head.is_some_and(|head| count == 0 || needed + u64::from(head.demand) <= capacity)
        {
            self.resume(view, verdicts);
        } else if head.is_some_and(has_waited) {
            let first = self.running.iter().copied();
            let first = first.clone().find(|&space| is_active(view, space));
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
    /// Takes note of spaces that are new.
    fn meet(&mut self, view: &LoadView<'_>) {
        for load in view.spaces {
            let is_waiting = self.waiting.iter().any(|other| other.space == load.space);
            if !is_waiting && !self.running.contains(&load.space) {
                self.running.push_back(load.space);
            }
        }
    }

    fn last_to_come(&self, view: &LoadView<'_>) -> SpaceId {
        let mut newest = self.running.iter().rev().copied();
        let found = newest.find(|&space| is_active(view, space));
        found.expect("more than one are active")
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

fn demand(load: &SpaceLoad) -> u32 {
    load.demand.unwrap_or(load.resident)
}
