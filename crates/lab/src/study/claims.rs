//! Claims: what was published against what was measured, by one rule for all.
//!
//! # The rule
//! A claim is *reproduced* if its direction is found and its size differs by a factor of no more
//! than [`FACTOR`], half an order of magnitude; *partly*, if its direction alone is found; *not*
//! otherwise. The size of a ratio is the ratio, and how far it is from 1, as a logarithm: a tenth
//! more and a hundredth more are as different as ten times and twice as much. What that means for
//! each form stands with [`Rule`]. No part of the rule depends on the experiment.

use tidemark_results::experiment::{Bound, Ending, Finding, Form, Measurement, Value, Verdict};

/// The factor by which a size may be off: the square root of ten.
const FACTOR: f64 = 3.162_277_660_168_379_5;
/// Values of an order that differ by less are taken for the same.
const TIE: f64 = 1.01;
/// The distance by which a slope, which is a logarithm already, may be off.
const SLOPE_FACTOR: f64 = 2.0;

/// A claim whose runs have been found.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// The claim, in a line.
    pub text: String,
    /// The weight of the evidence.
    pub strength: String,
    /// The metric compared.
    pub metric: String,
    /// Of the divisor, if that is another.
    pub over_metric: Option<String>,
    /// The comparison.
    pub rule: Rule,
    /// The reasons for the outcome: reproduced, partly, not.
    pub reasons: [Option<String>; 3],
}

/// The comparison. Numbers are places among the measurements.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// `of` over `over`. The direction is on which side of 1 it is.
    Ratio {
        /// The dividend.
        of: usize,
        /// The divisor.
        over: usize,
        /// The published value.
        published: f64,
    },
    /// Values that rise. Reproduced: no pair the wrong way round, and fewer than half of them
    /// alike. Partly: more pairs the right way round than the wrong.
    Order(Vec<usize>),
    /// Two values within a factor of each other. Partly: within a factor twice as far from 1.
    Equal {
        /// One.
        of: usize,
        /// The other.
        over: usize,
        /// The factor.
        within: f64,
    },
    /// A value within a factor of what was published. Partly: within [`FACTOR`].
    Value {
        /// The measurement.
        of: usize,
        /// The published value.
        published: f64,
        /// The factor.
        within: f64,
    },
    /// The exponent of the metric by what stands across, from the least squares of logarithms.
    /// Its direction is its sign; its size may be off by [`SLOPE_FACTOR`].
    Slope {
        /// The measurements.
        places: Vec<usize>,
        /// The axis.
        by: By,
        /// The published value.
        published: f64,
    },
    /// At most what was published. Partly: at most [`FACTOR`] times as much.
    AtMost {
        /// The measurement.
        of: usize,
        /// Over whose, if over any.
        over: Option<usize>,
        /// The bound.
        published: f64,
    },
    /// At least what was published. Partly: at least a [`FACTOR`]th.
    AtLeast {
        /// The measurement.
        of: usize,
        /// Over whose, if over any.
        over: Option<usize>,
        /// The bound.
        published: f64,
    },
    /// The run is given up, or stuck. Partly: ten times as long as `over`.
    Unfinished {
        /// The measurement.
        of: usize,
        /// The measurement it is compared with.
        over: Option<usize>,
    },
}

/// The axis of a slope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The size of memory.
    Memory,
    /// The number of times as many copies.
    Times,
}

/// Holds a claim against what was measured.
pub fn judge(claim: &Claim, measured: &[Measurement]) -> Finding {
    let sight = Sight { claim, measured };
    let (ours, bound, verdict) = match &claim.rule {
        Rule::Ratio {
            of,
            over,
            published,
        } => sight.ratio(*of, *over, |ratio| judge_ratio(ratio, *published)),
        Rule::Order(places) => (None, Bound::Exact, sight.judge_order(places)),
        Rule::Equal { of, over, within } => {
            sight.ratio(*of, *over, |ratio| judge_equal(ratio, *within))
        }
        Rule::Value {
            of,
            published,
            within,
        } => sight.value_of(*of, |value| judge_value(value, *published, *within)),
        Rule::Slope {
            places,
            by,
            published,
        } => sight.slope(places, *by, *published),
        Rule::AtMost {
            of,
            over,
            published,
        } => sight.maybe_over(*of, *over, |value| judge_most(value, *published)),
        Rule::AtLeast {
            of,
            over,
            published,
        } => sight.maybe_over(*of, *over, |value| judge_most(*published, value)),
        Rule::Unfinished { of, over } => sight.unfinished(*of, *over),
    };
    let [reproduced, partly, not] = &claim.reasons;
    let reason = match verdict {
        Verdict::Reproduced => reproduced,
        Verdict::Partly => partly,
        Verdict::Not => not,
        Verdict::Unknown => &None,
    };
    Finding {
        claim: claim.text.clone(),
        strength: claim.strength.clone(),
        form: claim.rule.form(),
        metric: claim.metric.clone(),
        published: claim.rule.published(),
        ours: ours.filter(|value| value.is_finite()),
        bound,
        values: sight.values(),
        verdict,
        reason: reason.clone(),
    }
}

impl Rule {
    fn form(&self) -> Form {
        match self {
            Rule::Ratio { .. } => Form::Ratio,
            Rule::Order(_) => Form::Order,
            Rule::Equal { .. } => Form::Equal,
            Rule::Value { .. } => Form::Value,
            Rule::Slope { .. } => Form::Slope,
            Rule::AtMost { .. } => Form::AtMost,
            Rule::AtLeast { .. } => Form::AtLeast,
            Rule::Unfinished { .. } => Form::Unfinished,
        }
    }

    fn published(&self) -> Option<f64> {
        match self {
            Rule::Ratio { published, .. }
            | Rule::Value { published, .. }
            | Rule::Slope { published, .. }
            | Rule::AtMost { published, .. }
            | Rule::AtLeast { published, .. } => Some(*published),
            Rule::Equal { within, .. } => Some(*within),
            Rule::Order(_) | Rule::Unfinished { .. } => None,
        }
    }

    /// The measurements, in the order of the claim, and whether each is a divisor.
    fn places(&self) -> Vec<(usize, bool)> {
        match self {
            Rule::Ratio { of, over, .. } | Rule::Equal { of, over, .. } => {
                vec![(*of, false), (*over, true)]
            }
            Rule::Order(places) | Rule::Slope { places, .. } => {
                places.iter().map(|&place| (place, false)).collect()
            }
            Rule::Value { of, .. } => vec![(*of, false)],
            Rule::AtMost { of, over, .. }
            | Rule::AtLeast { of, over, .. }
            | Rule::Unfinished { of, over } => {
                let over = over.iter().map(|&over| (over, true));
                [(*of, false)].into_iter().chain(over).collect()
            }
        }
    }
}

/// A claim and what it is held against.
struct Sight<'a> {
    claim: &'a Claim,
    measured: &'a [Measurement],
}

type Judged = (Option<f64>, Bound, Verdict);

impl Sight<'_> {
    fn ratio(&self, of: usize, over: usize, verdict: impl Fn(f64) -> Verdict) -> Judged {
        let bound = match (self.is_cut(of), self.is_cut(over)) {
            (false, false) => Bound::Exact,
            (true, false) => Bound::AtLeast,
            (false, true) => Bound::AtMost,
            (true, true) => return (None, Bound::Exact, Verdict::Unknown),
        };
        match (self.value(of, false), self.value(over, true)) {
            (Some(0.0), Some(0.0)) | (None, _) | (_, None) => (None, bound, Verdict::Unknown),
            (Some(of), Some(over)) => (Some(of / over), bound, verdict(of / over)),
        }
    }

    fn value_of(&self, of: usize, verdict: impl Fn(f64) -> Verdict) -> Judged {
        let bound = match self.is_cut(of) {
            true => Bound::AtLeast,
            false => Bound::Exact,
        };
        let value = self.value(of, false);
        (value, bound, value.map_or(Verdict::Unknown, verdict))
    }

    fn maybe_over(
        &self,
        of: usize,
        over: Option<usize>,
        verdict: impl Fn(f64) -> Verdict,
    ) -> Judged {
        match over {
            Some(over) => self.ratio(of, over, verdict),
            None => self.value_of(of, verdict),
        }
    }

    fn slope(&self, places: &[usize], by: By, published: f64) -> Judged {
        let pairs = places.iter().filter_map(|&place| {
            let across = match by {
                By::Memory => self.measured[place].memory_bytes as f64,
                By::Times => f64::from(self.measured[place].times),
            };
            let up = self.value(place, false)?;
            (up > 0.0 && across > 0.0).then(|| (across.ln(), up.ln()))
        });
        let pairs: Vec<(f64, f64)> = pairs.collect();
        let slope = least_squares(&pairs);
        let verdict = slope.map_or(Verdict::Unknown, |slope| {
            let share = slope / published;
            match share {
                _ if share <= 0.0 => Verdict::Not,
                _ if share.max(1.0 / share) <= SLOPE_FACTOR => Verdict::Reproduced,
                _ => Verdict::Partly,
            }
        });
        (slope, Bound::Exact, verdict)
    }

    fn unfinished(&self, of: usize, over: Option<usize>) -> Judged {
        let ratio = over.map(|over| self.ratio(of, over, |_| Verdict::Unknown));
        let (ours, bound, _) = ratio.unwrap_or((None, Bound::Exact, Verdict::Unknown));
        let verdict = match ours {
            _ if self.is_cut(of) => Verdict::Reproduced,
            Some(ratio) if ratio >= 10.0 => Verdict::Partly,
            _ => Verdict::Not,
        };
        (ours, bound, verdict)
    }

    fn judge_order(&self, places: &[usize]) -> Verdict {
        let values: Option<Vec<f64>> = places
            .iter()
            .map(|&place| self.value(place, false))
            .collect();
        let Some(values) = values else {
            return Verdict::Unknown;
        };
        let (mut right, mut wrong, mut alike) = (0, 0, 0);
        for (at, &one) in values.iter().enumerate() {
            for &other in &values[at + 1..] {
                match (one, other) {
                    _ if one * TIE < other => right += 1,
                    _ if other * TIE < one => wrong += 1,
                    _ => alike += 1,
                }
            }
        }
        match (right, wrong) {
            (_, 0) if 2 * alike < right + alike => Verdict::Reproduced,
            _ if right > wrong => Verdict::Partly,
            _ => Verdict::Not,
        }
    }

    fn value(&self, place: usize, is_divisor: bool) -> Option<f64> {
        let metric = match (&self.claim.over_metric, is_divisor) {
            (Some(over), true) => over,
            _ => &self.claim.metric,
        };
        self.measured[place].metrics.get(metric).copied()
    }

    fn is_cut(&self, place: usize) -> bool {
        matches!(self.measured[place].ending, Ending::GivenUp | Ending::Stuck)
    }

    fn values(&self) -> Vec<Value> {
        let places = self.claim.rule.places();
        let runs = places.iter().map(|&(place, is_divisor)| Value {
            of: self.name(place),
            value: self.value(place, is_divisor),
            ending: self.measured[place].ending,
        });
        runs.collect()
    }

    /// The run, and what else tells it from its neighbours.
    fn name(&self, place: usize) -> String {
        let here = &self.measured[place];
        let own = self.measured.iter().filter(|other| other.run == here.run);
        let own: Vec<&Measurement> = own.collect();
        let mut name = here.run.clone();
        if own.iter().any(|other| other.memory != here.memory) {
            name.push_str(&format!(" in {}", here.memory));
        }
        if own.iter().any(|other| other.times != here.times) {
            name.push_str(&format!(" × {}", here.times));
        }
        name
    }
}

fn judge_ratio(ours: f64, published: f64) -> Verdict {
    let is_same_way = (ours > 1.0) == (published > 1.0) && ours != 1.0;
    let is_near = |share: f64| share.max(1.0 / share) <= FACTOR;
    match is_same_way {
        false => Verdict::Not,
        true if is_near(ours / published) && is_near(ours.ln() / published.ln()) => {
            Verdict::Reproduced
        }
        true => Verdict::Partly,
    }
}

fn judge_equal(ratio: f64, within: f64) -> Verdict {
    let off = ratio.max(1.0 / ratio);
    match off {
        _ if off <= within => Verdict::Reproduced,
        _ if off <= 2.0 * within - 1.0 => Verdict::Partly,
        _ => Verdict::Not,
    }
}

fn judge_value(ours: f64, published: f64, within: f64) -> Verdict {
    let share = ours / published;
    let off = share.max(1.0 / share);
    match off {
        _ if off <= within => Verdict::Reproduced,
        _ if off <= FACTOR => Verdict::Partly,
        _ => Verdict::Not,
    }
}

/// Judges whether `less`.
fn judge_most(less: f64, more: f64) -> Verdict {
    match less {
        _ if less <= more => Verdict::Reproduced,
        _ if less <= more * FACTOR => Verdict::Partly,
        _ => Verdict::Not,
    }
}

fn least_squares(pairs: &[(f64, f64)]) -> Option<f64> {
    let count = pairs.len() as f64;
    let mean = |part: fn(&(f64, f64)) -> f64| pairs.iter().map(part).sum::<f64>() / count;
    let (across, up) = (mean(|pair| pair.0), mean(|pair| pair.1));
    let spread: f64 = pairs.iter().map(|pair| (pair.0 - across).powi(2)).sum();
    let joint: f64 = pairs
        .iter()
        .map(|pair| (pair.0 - across) * (pair.1 - up))
        .sum();
    (spread > 0.0).then(|| joint / spread)
}

#[cfg(test)]
mod tests;
