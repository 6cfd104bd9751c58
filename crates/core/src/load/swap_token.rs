//! The swap token: the pages of one program are spared, so that at least one gets on.
//!
//! A program that faults on an absent page may ask for the token. The original passes it on when
//! the holder had no such fault since the last request, or has had the token for long; it asks
//! every two seconds at most. The preempting one keeps a priority a program, which grows while its
//! faults come closer to each other, and gives the token to a program with more than the holder.
//!
//! Sources: S. Jiang and X. Zhang, "Token-ordered LRU: an effective page replacement policy",
//! Performance Evaluation 60, 2005; Linux 2.6.9 and 2.6.20, `mm/thrash.c`. There a page of the
//! holder counts as referenced; here it may not leave while a page of another program may, which
//! holds for policies that look at no reference bits too.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::id::SpaceId;
use crate::seams::description::Knob;
use crate::seams::load_control::{Description, LoadControl, LoadView, Verdict};
use crate::time::Time;

/// The description of `swap-token`.
pub static ORIGINAL: Description = Description {
    name: "swap-token",
    summary: "spares the pages of one program, until it no longer faults or its time is up",
    lineage: &[
        "Jiang and Zhang 2005 (token-ordered LRU)",
        "Linux 2.6.9, 2004",
    ],
    knobs: &[
        Knob {
            name: "check-ms",
            meaning: "milliseconds between two times the token may change hands",
            min: 1,
            max: 1_000_000,
            default: 2000,
        },
        Knob {
            name: "timeout-ms",
            meaning: "milliseconds the token may be held, and then not asked for",
            min: 1,
            max: 100_000_000,
            default: 300_000,
        },
    ],
    is_live: false,
};

/// The description of `swap-token-preempting`.
pub static PREEMPTING: Description = Description {
    name: "swap-token-preempting",
    summary: "spares the pages of the program whose faults come closest to each other",
    lineage: &[
        "Jiang and Zhang 2005 (token-ordered LRU)",
        "Linux 2.6.20, 2006",
    ],
    knobs: &[],
    is_live: false,
};

const MS_NS: u64 = 1_000_000;

#[derive(Default)]
struct Original {
    check_ns: u64,
    timeout_ns: u64,
    holder: Option<SpaceId>,
    has_paged_in: bool,
    last_check: Option<Time>,
    held_until: Time,
    /// The spaces that may not ask, each with the time until which it is barred.
    barred_until: BTreeMap<SpaceId, Time>,
}

/// Makes a `swap-token`.
pub fn build_original(knobs: &[u64]) -> Box<dyn LoadControl> {
    Box::new(Original {
        check_ns: knobs[0] * MS_NS,
        timeout_ns: knobs[1] * MS_NS,
        ..Original::default()
    })
}

impl LoadControl for Original {
    fn describe(&self) -> &'static Description {
        &ORIGINAL
    }

    fn tick(&mut self, _view: &LoadView<'_>, _verdicts: &mut Vec<Verdict>) {}

    fn page_in(&mut self, now: Time, space: SpaceId, verdicts: &mut Vec<Verdict>) {
        if self.holder == Some(space) {
            self.has_paged_in = true;
            return;
        }
        let is_early = |last| now.since_ns(last) < self.check_ns;
        let is_barred = |&until: &Time| now < until;
        if self.last_check.is_some_and(is_early)
            || self.barred_until.get(&space).is_some_and(is_barred)
        {
            return;
        }
        self.last_check = Some(now);
        if let Some(holder) = self.holder {
            let is_in_need = core::mem::take(&mut self.has_paged_in);
            if is_in_need && now <= self.held_until {
                return;
            }
            if is_in_need {
                let until = now.after_ns(self.timeout_ns);
                self.barred_until.insert(holder, until);
            }
        }
        self.holder = Some(space);
        self.has_paged_in = false;
        self.held_until = now.after_ns(self.timeout_ns);
        self.barred_until.remove(&space);
        verdicts.push(Verdict::Protect(space));
    }

    fn space_ended(&mut self, space: SpaceId) {
        self.barred_until.remove(&space);
        self.holder = self.holder.filter(|&holder| holder != space);
    }
}

/// The state kept for a space.
#[derive(Clone, Copy, Default)]
struct Standing {
    /// The number of faults in all at the time of its last one.
    stamp: u64,
    /// The number of faults of others between its last two.
    interval: u64,
    priority: u64,
}

#[derive(Default)]
struct Preempting {
    holder: Option<SpaceId>,
    faults: u64,
    standings: BTreeMap<SpaceId, Standing>,
}

/// Makes a `swap-token-preempting`.
pub fn build_preempting(_knobs: &[u64]) -> Box<dyn LoadControl> {
    Box::new(Preempting::default())
}

impl LoadControl for Preempting {
    fn describe(&self) -> &'static Description {
        &PREEMPTING
    }

    fn tick(&mut self, _view: &LoadView<'_>, _verdicts: &mut Vec<Verdict>) {}

    fn page_in(&mut self, _now: Time, space: SpaceId, verdicts: &mut Vec<Verdict>) {
        self.faults += 1;
        let highest = self.holder.and_then(|holder| self.standings.get(&holder));
        let highest = highest.map_or(0, |standing| standing.priority);
        let standing = self.standings.entry(space).or_default();
        let interval = self.faults - standing.stamp;
        let is_taking = match self.holder {
            None => true,
            Some(holder) if holder == space => {
                standing.priority += 2;
                false
            }
            Some(_) => {
                if interval < standing.interval {
                    standing.priority += 1;
                } else {
                    standing.priority = standing.priority.saturating_sub(1);
                }
                standing.priority > highest
            }
        };
        if is_taking {
            standing.priority += 2;
            self.holder = Some(space);
            verdicts.push(Verdict::Protect(space));
        }
        (standing.stamp, standing.interval) = (self.faults, interval);
    }

    fn space_ended(&mut self, space: SpaceId) {
        self.standings.remove(&space);
        self.holder = self.holder.filter(|&holder| holder != space);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Lets each space fault at its second, and says who took the token then.
    fn takers(
        load: &mut dyn LoadControl,
        faults: impl IntoIterator<Item = (u64, u32)>,
    ) -> Vec<(u64, u32)> {
        let mut taken = Vec::new();
        for (second, space) in faults {
            let mut verdicts = Vec::new();
            load.page_in(Time(second * SECOND), SpaceId(space), &mut verdicts);
            match verdicts[..] {
                [] => {}
                [Verdict::Protect(SpaceId(space))] => taken.push((second, space)),
                _ => panic!("{verdicts:?}"),
            }
        }
        taken
    }

    #[test]
    fn the_token_passes_when_its_holder_has_enough_memory() {
        let mut load = build_original(&[2000, 300_000]);
        let faults = [(0, 1), (1, 2), (2, 2), (3, 1), (4, 1)];
        assert_eq!(takers(&mut *load, faults), [(0, 1), (2, 2), (4, 1)]);
    }

    #[test]
    fn the_token_stays_while_its_holder_faults_and_its_time_lasts() {
        let mut load = build_original(&[2000, 10_000]);
        let both = (0..40).flat_map(|second| [(second, 1), (second, 2)]);
        // The holder may not ask again for as long as it held the token.
        assert_eq!(
            takers(&mut *load, both),
            [(0, 1), (12, 2), (24, 1), (36, 2)]
        );
        let mut load = build_original(&[2000, 300_000]);
        let both = (0..40).flat_map(|second| [(second, 1), (second, 2)]);
        assert_eq!(takers(&mut *load, both), [(0, 1)]);
    }

    #[test]
    fn the_token_of_one_that_ends_is_free() {
        let mut load = build_original(&[2000, 300_000]);
        assert_eq!(takers(&mut *load, [(0, 1), (1, 1)]), [(0, 1)]);
        load.space_ended(SpaceId(1));
        assert_eq!(takers(&mut *load, [(1, 2), (2, 2)]), [(2, 2)]);
    }

    #[test]
    fn whoever_faults_ever_faster_preempts_a_holder_that_does_not() {
        let mut load = build_preempting(&[]);
        assert_eq!(takers(&mut *load, [(0, 1)]), [(0, 1)]);
        // The holder has two. Each fault of 2 comes sooner after its last than that one did, while
        // others pad the time between.
        let mut faults = Vec::new();
        for gap in [4, 3, 2, 1, 0] {
            faults.extend((0..gap).map(|other| (1, 100 + other)));
            faults.push((1, 2));
        }
        assert_eq!(takers(&mut *load, faults), [(1, 2)]);
    }

    #[test]
    fn a_steady_holder_is_not_preempted_by_steady_faulters() {
        let mut load = build_preempting(&[]);
        let turns = (0..200).map(|at| (at, (at % 4) as u32));
        assert_eq!(takers(&mut *load, turns), [(0, 0)]);
    }
}
