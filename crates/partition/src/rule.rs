//! Rules: which processes give used frames to which others, while there are too few for all.
//!
//! A [`Rule`] sees the measures of each holder, and returns the frames that each gives up in an
//! interval and the need of each. The result is bounded for all rules alike: see
//! [`Divider`](crate::Divider).
//!
//! Three rules aim at a state: each has a *claim*, and memory is raised for all evenly, by equal
//! parts or by weights, until their claims are met. The others move frames step by step, from
//! holders with a smaller measure to holders with a larger one.

use alloc::vec;
use alloc::vec::Vec;

use crate::measures::Measures;
use crate::{Holder, kept};

/// The part of what a holder has beyond its due, as a divisor, that it gives in an interval.
const AIMED_PART: u64 = 8;
/// The part of what it is due beyond which that counts, as a divisor.
const BAND_PART: u64 = 16;
/// The frames beyond what it is due that do not count, at least.
const BAND_FRAMES: u64 = 64;
/// The part of what it has beyond the least that a holder gives in an interval if it is below
/// others in what is measured.
const DRIFT_PART: u64 = 16;
/// The part of all memory, as a divisor, that goes to other holders in an interval at most where
/// each page that is fetched takes a frame.
const GLOBAL_PART: u64 = 8;

/// A rule by which memory is divided that is too little for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// By the working sets that are measured.
    #[default]
    Demand,
    /// By page-fault frequency.
    FaultFrequency,
    /// By the pages moved of late.
    Pressure,
    /// In proportion to size.
    Proportional,
    /// In equal parts.
    Equal,
    /// As one memory for all would be.
    Global,
}

/// The frames that change hands in an interval. Of each holder in its place:
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Exchange {
    /// The frames that it gives.
    pub offers: Vec<u64>,
    /// The weight with which it gets of what others give.
    pub weights: Vec<u64>,
    /// The most that it gets.
    pub most: Vec<u64>,
}

impl Rule {
    /// All rules.
    pub const ALL: [Rule; 6] = [
        Rule::Demand,
        Rule::FaultFrequency,
        Rule::Pressure,
        Rule::Proportional,
        Rule::Equal,
        Rule::Global,
    ];

    /// The name in options and records.
    pub fn name(self) -> &'static str {
        match self {
            Rule::Demand => "demand",
            Rule::FaultFrequency => "fault-frequency",
            Rule::Pressure => "pressure",
            Rule::Proportional => "proportional",
            Rule::Equal => "equal",
            Rule::Global => "global",
        }
    }

    /// The rule of that name.
    pub fn find(name: &str) -> Option<Rule> {
        Rule::ALL.into_iter().find(|rule| rule.name() == name)
    }

    /// The frames, of an equal share of `fair`, to which a holder has a right that has had one and
    /// lost it: it gets them at once when it asks.
    pub(crate) fn right(self, holder: &Holder, fair: u64) -> u64 {
        match self {
            // One that asks has woken up since, and its need is not known.
            Rule::Demand if holder.measures.is_idle => fair,
            Rule::Demand => holder.measures.demand.map_or(0, kept).min(fair),
            Rule::Equal => fair,
            Rule::FaultFrequency | Rule::Pressure | Rule::Proportional | Rule::Global => 0,
        }
    }

    /// The frames that change hands among `holders`, with what each is `due` of `total`. Each gets
    /// at most what it `wants` in addition, and keeps the `least`.
    pub(crate) fn exchange(
        self,
        (total, least): (u64, u64),
        holders: &[Holder],
        wants: &[u64],
        due: &[u64],
    ) -> Exchange {
        let party = Party {
            total,
            least,
            holders,
            wants,
            due,
        };
        let claim = |holder: &Holder, is_wanting| match is_wanting {
            true => u64::MAX,
            false => kept(holder.resident),
        };
        match self {
            Rule::Demand => party.aim(
                |holder, is_wanting| match holder.measures.demand {
                    Some(demand) => kept(demand),
                    None => claim(holder, is_wanting),
                },
                |_| 1,
            ),
            Rule::Proportional => party.aim(claim, |holder| holder.measures.size.max(1)),
            Rule::Equal => party.aim(claim, |_| 1),
            Rule::Pressure => party.drift(|measures| measures.pressure),
            Rule::FaultFrequency => party.drift(|measures| measures.frequency),
            Rule::Global => party.pool(),
        }
    }
}

/// The holders among which frames change hands.
#[derive(Clone, Copy)]
struct Party<'a> {
    total: u64,
    least: u64,
    holders: &'a [Holder],
    wants: &'a [u64],
    due: &'a [u64],
}

impl Party<'_> {
    /// An exchange after which each is nearer to what it is to have: its claim, or an even part of
    /// what there is by these weights. One that does nothing claims nothing but the least.
    fn aim(
        &self,
        claim: impl Fn(&Holder, bool) -> u64,
        weight: impl Fn(&Holder) -> u64,
    ) -> Exchange {
        let parties = || self.holders.iter().zip(self.wants).zip(self.due);
        let claims = parties().map(|((holder, &want), &due)| match self.is_in(holder) {
            true if holder.measures.is_idle => due - holder.idle_offer(self.least, due),
            // The least is for who uses so much: others do not have it.
            true => claim(holder, want > 0).max(self.least.min(due)),
            false => 0,
        });
        let apart = parties().filter(|((holder, _), _)| !self.is_in(holder));
        let apart: u64 = apart.map(|(_, &due)| due).sum();
        let weights: Vec<u64> = self.holders.iter().map(weight).collect();
        let left = self.total.saturating_sub(apart);
        let aims = raise_evenly(left, &claims.collect::<Vec<u64>>(), &weights);
        let band = |aim: u64| aim + aim / BAND_PART + BAND_FRAMES;
        let offers = parties().zip(&aims).map(|(((holder, _), &due), &aim)| {
            match self.is_in(holder) && due > band(aim) {
                true => due.saturating_sub(aim.max(self.least)) / AIMED_PART,
                false => 0,
            }
        });
        let missing = parties().zip(&aims);
        let missing = missing.map(|(((_, &want), &due), &aim)| aim.saturating_sub(due).min(want));
        let missing: Vec<u64> = missing.collect();
        Exchange {
            offers: offers.collect(),
            weights: missing.clone(),
            most: missing,
        }
    }

    /// An exchange from those of whom less is measured to those of whom more is. Half the mean is
    /// the mark: below it, a holder gives; above, it gets. In between lies peace.
    fn drift(&self, measure: impl Fn(&Measures) -> u64) -> Exchange {
        let hunger = self.holders.iter().map(|holder| match holder.is_hungry() {
            true => measure(&holder.measures),
            false => 0,
        });
        let hunger: Vec<u64> = hunger.collect();
        let hungry = hunger.iter().filter(|&&hunger| hunger > 0).count().max(1);
        let mark = hunger.iter().sum::<u64>() / (2 * hungry as u64);
        let offer = |((holder, &due), &hunger): ((&Holder, &u64), &u64)| match self.is_in(holder)
            && hunger < mark.max(1)
        {
            true => due.saturating_sub(self.least) / DRIFT_PART,
            false => 0,
        };
        let offers = self.holders.iter().zip(self.due).zip(&hunger).map(offer);
        let weight = |&hunger: &u64| if hunger >= mark { hunger } else { 0 };
        Exchange {
            offers: offers.collect(),
            weights: hunger.iter().map(weight).collect(),
            most: vec![u64::MAX; self.holders.len()],
        }
    }

    /// An exchange as if all frames were one pool and each page that comes took the frame of any
    /// other: each gives in proportion to what it has, and gets what it fetched.
    fn pool(&self) -> Exchange {
        let fetched = self.holders.iter().map(|holder| match holder.is_hungry() {
            true => holder.measures.page_ins,
            false => 0,
        });
        let fetched: Vec<u64> = fetched.collect();
        let taken = fetched.iter().sum::<u64>().min(self.total / GLOBAL_PART);
        let offer = |(holder, &due): (&Holder, &u64)| match self.is_in(holder) {
            true => {
                let part = u128::from(due) * u128::from(taken) / u128::from(self.total.max(1));
                (part as u64).min(due.saturating_sub(self.least))
            }
            false => 0,
        };
        Exchange {
            offers: self.holders.iter().zip(self.due).map(offer).collect(),
            weights: fetched,
            most: vec![u64::MAX; self.holders.len()],
        }
    }

    /// Returns true if a holder takes part: it is there, and not on its way out.
    fn is_in(&self, holder: &Holder) -> bool {
        holder.given > 0 && !holder.is_out()
    }
}

/// The parts of `total` if all are raised evenly, by their weights, until their claims are met.
fn raise_evenly(total: u64, claims: &[u64], weights: &[u64]) -> Vec<u64> {
    let mut parts = vec![0; claims.len()];
    let mut open: Vec<usize> = (0..claims.len()).collect();
    let mut left = total;
    loop {
        let sum: u128 = open.iter().map(|&place| u128::from(weights[place])).sum();
        let part =
            |place: usize| (u128::from(left) * u128::from(weights[place]) / sum.max(1)) as u64;
        let (met, rest): (Vec<usize>, Vec<usize>) = open
            .iter()
            .partition(|&&place| claims[place] <= part(place));
        if met.is_empty() {
            rest.iter().for_each(|&place| parts[place] = part(place));
            return parts;
        }
        for place in met {
            parts[place] = claims[place];
            left -= claims[place];
        }
        open = rest;
    }
}

#[cfg(test)]
mod tests;
