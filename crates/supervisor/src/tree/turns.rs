//! The times for which load control had tasks wait, for the record of the run.

use tidemark_results::suspension::{self, Suspension};

/// The most suspensions that are kept: a service may run for years.
const TURNS_MAX: usize = 10_000;

/// The suspensions by load control so far, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct Turns {
    kept: Vec<Suspension>,
    /// The number of suspensions that there was no room for.
    dropped: u64,
}

impl Turns {
    /// Notes that a task is suspended, or goes on, so long after the run's beginning.
    pub(super) fn note(&mut self, pid: u32, is_suspended: bool, at_ns: u64) {
        if is_suspended && self.kept.len() >= TURNS_MAX {
            self.dropped += 1;
            return;
        }
        suspension::note(&mut self.kept, pid.into(), is_suspended, at_ns as f64 / 1e9);
    }

    /// All suspensions that were kept, and a note if some are missing.
    pub(super) fn finish(&mut self) -> (Vec<Suspension>, Option<String>) {
        let dropped = match self.dropped {
            0 => None,
            dropped => Some(format!(
                "{dropped} suspensions are not in the record: it has the first {TURNS_MAX}"
            )),
        };
        (std::mem::take(&mut self.kept), dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suspension_lasts_until_its_task_goes_on_and_no_more_than_the_most_are_kept() {
        let mut turns = Turns::default();
        turns.note(7, true, 1_000_000_000);
        turns.note(8, true, 1_500_000_000);
        turns.note(7, false, 2_000_000_000);
        turns.note(7, false, 3_000_000_000);
        let (kept, note) = turns.finish();
        let of = |task, from_s, until_s| Suspension {
            task,
            from_s,
            until_s,
        };
        assert_eq!(kept, [of(7, 1.0, Some(2.0)), of(8, 1.5, None)]);
        assert_eq!(note, None);
        for time in 0..=TURNS_MAX as u64 {
            turns.note(7, true, time);
            turns.note(7, false, time);
        }
        let (kept, note) = turns.finish();
        assert_eq!(kept.len(), TURNS_MAX);
        assert!(note.unwrap().starts_with("1 suspensions are not in"));
    }
}
