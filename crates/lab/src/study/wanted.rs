//! The parts of a trace that are wanted, and what they come to for a trace that is open.

use tidemark_results::analysis::TraceFacts;
use tidemark_trace::{Header, Speed};

use super::extent::Extent;
use super::order::Assumed;
use super::passing::{Passing, WorkingSets};
use super::policies::Named;
use crate::analysis::map::Fineness;
use crate::analysis::shards::Sampling;

/// The parts of a trace that are wanted. Each part takes memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wanted {
    /// The references in order: 12 bytes each.
    pub references: bool,
    /// The pages of the references in order, without times: 4 bytes each. Enough for policies of a
    /// fixed space.
    pub pages: bool,
    /// The counts made in passing.
    pub passing: Passing,
    /// Samples of the pages, from which LRU's curve is estimated: 100 bytes a page that is kept.
    pub sampling: Option<Sampling>,
    /// The address map.
    pub map: Option<Fineness>,
    /// True if the optimum is to be counted: 20 bytes a reference, for as long as that takes.
    pub optimum: bool,
    /// True if the good part of a trace that is cut off in the middle is used.
    pub partial: bool,
}

impl Wanted {
    /// The needs of curves of `policies`.
    pub fn curves(policies: &[Named], assumed: &Assumed) -> Wanted {
        let has = |named: &[Named]| policies.iter().any(|policy| named.contains(policy));
        let is_simulated = |policy: &Named| matches!(policy, Named::Simulated(_));
        Wanted {
            references: has(&[Named::Pff]),
            pages: has(&[Named::Opt]) || policies.iter().any(is_simulated),
            passing: Passing {
                depths: has(&[Named::Lru]),
                intervals: has(&[Named::WorkingSet, Named::Vmin]).then(|| assumed.clone()),
                working_sets: None,
            },
            optimum: has(&[Named::Opt]),
            ..Wanted::default()
        }
    }

    /// Returns true if any page is numbered.
    pub(super) fn has_pages(&self) -> bool {
        self.references || self.pages || self.passing != Passing::default()
    }
}

/// `wanted`, with the windows that are usual if none are named; and the working sets to be followed
/// when the trace has been read.
///
/// Of a trace that was sampled there are few references, and they tell what it can't: they are
/// held, and nothing is counted in passing.
pub(super) fn settle(
    mut wanted: Wanted,
    header: &Header,
    facts: &TraceFacts,
) -> (Wanted, Option<WorkingSets>) {
    if header.granularity.window_ns().is_some() {
        let passing = std::mem::take(&mut wanted.passing);
        wanted.references = true;
        return (wanted, passing.working_sets);
    }
    if let Some(sets) = &mut wanted.passing.working_sets
        && sets.windows.is_empty()
    {
        sets.windows = usual_windows(facts.time);
    }
    (wanted, None)
}

/// The number of longest intervals that decide how much memory is needed: one more than the
/// bearable page-ins.
pub(super) fn longest(
    passing: &Passing,
    speed: Option<Speed>,
    facts: &TraceFacts,
    extent: Extent,
) -> u64 {
    let Some(assumed) = &passing.intervals else {
        return 0;
    };
    assumed
        .informed(speed, facts.time_unit, facts.time)
        .page_ins_max(extent.end, facts.time_unit)
        .min(extent.references)
        + 1
}

/// The windows that are usually shown of a program that runs for `time`.
pub(super) fn usual_windows(time: u64) -> Vec<u64> {
    let round = |window: u64| {
        let power = 10u64.pow(window.max(1).ilog10());
        (window / power * power).max(1)
    };
    let mut windows: Vec<u64> = [1000, 100, 10].map(|part| round(time / part)).into();
    windows.dedup();
    windows
}
