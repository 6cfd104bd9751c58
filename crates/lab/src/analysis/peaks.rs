//! Peaks: what the working set swells to when a program changes its locality.
//!
//! For a window after the change the set holds both localities, the old one because it was used not
//! long ago. So it is larger than before and larger than after, though the program needs less.

use super::phases::{Level, Phase};
use super::residence::Timeline;

/// The working set around a transition, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peak {
    /// The end of the old phase, in ticks.
    pub from: u64,
    /// The time at which the new phase has lasted for a window, or is over.
    pub to: u64,
    /// The most pages in the set from `from` to `to`.
    pub pages_max: u64,
    /// The most pages in the set during the old phase, from a window after its beginning.
    pub before_max: u64,
    /// The most pages in the set during the new phase, from `to` on.
    pub after_max: u64,
}

impl Peak {
    /// Returns true if the set was larger at the transition than in either phase.
    pub fn stands_out(&self) -> bool {
        self.pages_max > self.before_max.max(self.after_max)
    }

    /// The peak over the larger of the phases' sets.
    pub fn height(&self) -> f64 {
        self.pages_max as f64 / self.before_max.max(self.after_max) as f64
    }
}

/// The working set at each transition of `level` whose two phases both last for longer than a
/// window, from its size over time with `window` ticks.
///
/// Good to one piece of `line`: a piece belongs to the phase that it lies in whole, else to the
/// transition.
pub fn find_peaks(level: &Level, line: &Timeline, window: u64) -> Vec<Peak> {
    let long = |phase: &Phase| phase.holding_ticks() > window.saturating_add(line.piece_ticks * 2);
    let pairs = level.phases.windows(2).filter(|pair| pair.iter().all(long));
    let peaks = pairs.map(|pair| {
        let (old, new) = (&pair[0], &pair[1]);
        let to = new.start + window;
        Peak {
            from: old.end,
            to,
            pages_max: most_touching(line, old.end, to),
            before_max: most_within(line, old.start + window, old.end),
            after_max: most_within(line, to, new.end),
        }
    });
    peaks.collect()
}

/// The most pages in pieces that have a tick from `from` to before `to`.
fn most_touching(line: &Timeline, from: u64, to: u64) -> u64 {
    let first = (from - line.start) / line.piece_ticks;
    let end = (to - line.start).div_ceil(line.piece_ticks);
    most(line, first, end)
}

/// The most pages in pieces with no tick outside of `from` to before `to`.
fn most_within(line: &Timeline, from: u64, to: u64) -> u64 {
    let first = (from - line.start).div_ceil(line.piece_ticks);
    let end = (to - line.start) / line.piece_ticks;
    most(line, first, end)
}

/// The most pages in the pieces from place `first` to before `end`; 0 for none.
fn most(line: &Timeline, first: u64, end: u64) -> u64 {
    let end = (end as usize).min(line.pieces.len());
    let pieces = line.pieces.get(first as usize..end).unwrap_or_default();
    pieces
        .iter()
        .map(|piece| piece.pages_max)
        .max()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::ageing::working_set_over_time;
    use super::super::phases::{PhaseOptions, find_phases};
    use super::super::reference_string::ReferenceString;
    use super::*;

    #[test]
    fn a_change_of_locality_stands_out() {
        let pages: Vec<u32> = (0..40_000).map(|i| i % 10 + i / 10_000 * 10).collect();
        let string = ReferenceString::new(&pages, 40);
        let levels = find_phases(string, &PhaseOptions::for_string(&string));
        let lines = working_set_over_time(string, &[100], 4_000);
        let peaks = find_peaks(&levels[0], &lines[0], 100);
        assert_eq!(peaks.len(), 3);
        for peak in peaks {
            assert!(peak.stands_out());
            assert_eq!(
                (peak.pages_max, peak.before_max, peak.after_max),
                (20, 10, 10)
            );
            assert_eq!(peak.height(), 2.0);
        }
    }

    #[test]
    fn growing_without_leaving_does_not_stand_out() {
        // The second locality contains the first.
        let pages: Vec<u32> = (0..20_000)
            .map(|i| if i < 10_000 { i % 9 } else { i % 16 })
            .collect();
        let string = ReferenceString::new(&pages, 16);
        let levels = find_phases(string, &PhaseOptions::for_string(&string));
        let lines = working_set_over_time(string, &[100], 2_000);
        let level = levels.iter().find(|level| level.pages_to == 16).unwrap();
        let peaks = find_peaks(level, &lines[0], 100);
        assert_eq!(peaks.len(), 1, "{levels:?}");
        assert!(!peaks[0].stands_out(), "{peaks:?}");
    }
}
