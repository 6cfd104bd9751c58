//! The knowledge that the numbers of a record rest on: a list of those that are not counted.

use std::collections::BTreeMap;

use tidemark_core::counters::{Basis, Counter};

use crate::control::activity::{COUNTED, name_of};

/// The bases of numbers of a record, by the name of their field: `sampled` or `inferred`. Those
/// that are not named are counted.
pub type Bases = BTreeMap<String, String>;

/// The mark of a number in a table that is sampled.
pub const SAMPLED_MARK: char = '≈';
/// The meaning of that mark.
pub const SAMPLED_MEANING: &str = "sampled several times a second";

/// The bases of the numbers in the record of a run.
pub fn of_run() -> Bases {
    bases(Counter::run_name, &Counter::ALL)
}

/// The bases of the numbers in the record of a replay.
pub fn of_replay() -> Bases {
    let simulated = |counter: Counter| {
        // The lab sees every level at every moment.
        let is_sampled = counter.basis() == Basis::Sampled;
        counter.replay_name().filter(|_| !is_sampled)
    };
    bases(simulated, &Counter::ALL)
}

/// The bases of the numbers in the state of a run that goes on: of its counters, of memory, and the
/// rates.
pub fn of_state() -> Bases {
    let mut all = bases(|counter| Some(name_of(counter)), &COUNTED);
    for field in ["rates", "unmanaged_bytes", "engine_bytes"] {
        all.insert(field.into(), Basis::Sampled.name().into());
    }
    all
}

fn bases(name: impl Fn(Counter) -> Option<&'static str>, counters: &[Counter]) -> Bases {
    let other = |counter: &&Counter| counter.basis() != Basis::Counted;
    let named = |counter: &Counter| Some((name(*counter)?.into(), counter.basis().name().into()));
    counters.iter().filter(other).filter_map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_names_what_is_not_counted() {
        let run = of_run();
        assert_eq!(run["unmanaged_bytes"], "sampled");
        assert_eq!(run["read_ahead_passed"], "inferred");
        for counted in ["page_ins", "read_ahead_used", "read_ahead_unknown"] {
            assert!(!run.contains_key(counted), "{counted}");
        }
        assert_eq!(
            of_replay().into_keys().collect::<Vec<_>>(),
            ["read_ahead_passed"]
        );
        assert_eq!(of_state()["rates"], "sampled");
    }
}
