//! The longest interreference intervals, and the most pages that a policy with a window has.
//!
//! A working set and VMIN grow where a page comes and shrink where one leaves, and with a window
//! that only few intervals exceed, few pages leave before their last use. So how large the set is
//! at most follows from these few, without a second walk along the string.
//!
//! # Bounds
//! Memory: 32 bytes for each interval that is wanted, 24 for each page.

use super::intervals::Listener;

/// The intervals that are longest, of a string that is measured.
#[derive(Clone, Debug)]
pub struct Longest {
    /// The number wanted.
    wanted: usize,
    /// The tick the string ends at.
    end: u64,
    /// There are as many as are wanted that are at least so long.
    least: u64,
    kept: Vec<Interval>,
    /// The time at which each page was used first.
    first: Vec<u64>,
    /// The time at which each page's last use ended, and the tick by which it has departed.
    last: Vec<(u64, u64)>,
}

/// From the last tick of a use to the next use.
#[derive(Clone, Copy, Debug)]
struct Interval {
    from: u64,
    to: u64,
}

/// More than are wanted are kept for a while, so that they are sorted out rarely.
const SPARE: usize = 1 << 10;

impl Longest {
    /// The `wanted` longest, of no reference yet; the string ends at tick `end`.
    pub fn new(wanted: u64, end: u64) -> Longest {
        Longest {
            end,
            wanted: usize::try_from(wanted).unwrap_or(usize::MAX).max(1),
            least: 0,
            kept: Vec::new(),
            first: Vec::new(),
            last: Vec::new(),
        }
    }

    /// The most pages in the working set of `window` ticks.
    ///
    /// - Needs: fewer intervals than are wanted are longer than `window`.
    pub fn working_set_peak(&self, window: u64) -> u64 {
        self.peak(window, window)
    }

    /// The most pages VMIN has, as [`working_set_peak`](Self::working_set_peak).
    pub fn vmin_peak(&self, window: u64) -> u64 {
        self.peak(window, 1)
    }

    /// The most pages if each leaves `stay` ticks after a use that no other follows for `window`.
    fn peak(&self, window: u64, stay: u64) -> u64 {
        let longer = || self.kept.iter().filter(|kept| kept.length() > window);
        assert!(
            longer().count() < self.wanted,
            "a window of {window} is too short"
        );
        let mut comes: Vec<u64> = self.first.clone();
        comes.extend(longer().map(|kept| kept.to));
        let leaves = longer().map(|kept| (kept.from, u64::MAX));
        let leaves = leaves.chain(self.last.iter().copied());
        let leaves = leaves.map(|(from, gone)| from.saturating_add(stay).min(gone));
        let mut leaves: Vec<u64> = leaves.filter(|&at| at < self.end).collect();
        comes.sort_unstable();
        leaves.sort_unstable();
        let mut gone = leaves.iter().peekable();
        let (mut size, mut most) = (0, 0);
        for at in comes.chunk_by(|a, b| a == b) {
            while gone.next_if(|&&gone| gone <= at[0]).is_some() {
                size -= 1;
            }
            size += at.len() as u64;
            most = most.max(size);
        }
        most
    }

    /// Lets go all but the longest.
    #[cold]
    fn sort_out(&mut self) {
        let place = self.wanted - 1;
        let by_length = |kept: &Interval| std::cmp::Reverse(kept.length());
        let (_, last, _) = self.kept.select_nth_unstable_by_key(place, by_length);
        self.least = last.length();
        self.kept.truncate(self.wanted);
    }
}

impl Listener for Longest {
    fn began(&mut self, time: u64) {
        self.first.push(time);
    }

    #[inline(always)]
    fn lasted(&mut self, from: u64, to: u64) {
        if to - from > self.least {
            self.kept.push(Interval { from, to });
            if self.kept.len() >= self.wanted.saturating_mul(2).saturating_add(SPARE) {
                self.sort_out();
            }
        }
    }

    fn ended(&mut self, from: u64, gone: u64) {
        self.last.push((from, gone));
    }
}

impl Interval {
    fn length(&self) -> u64 {
        self.to - self.from
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::intervals::measure;
    use super::super::slow::departing_strings;
    use super::super::vmin::run_vmin;
    use super::super::working_set::run_working_set;
    use super::*;

    proptest! {
        #[test]
        fn found_h5_peaks_are_those_of_the_walks(
            owned in departing_strings(),
            allowed in 0u64..12,
            cut in 1usize..20,
        ) {
            let string = owned.string();
            let longest = Longest::new(allowed + 1, string.end());
            let (intervals, longest) = measure(string.end(), Some(longest), |take| {
                string.stretch().parts(cut).for_each(take);
            });
            let longest = longest.unwrap();
            let distinct = intervals.distinct();
            let window = intervals.window_for_faults(distinct + allowed).unwrap().max(1);
            for window in [window, window + 1, window * 2] {
                let (set, least) = (run_working_set(string, window), run_vmin(string, window));
                prop_assert_eq!(longest.working_set_peak(window), set.pages_max);
                prop_assert_eq!(longest.vmin_peak(window), least.pages_max);
            }
        }

        #[test]
        fn found_h5_stretches_have_the_intervals_of_the_whole(
            owned in departing_strings(),
            cut in 1usize..20,
        ) {
            let string = owned.string();
            let (parts, _) = measure(string.end(), None, |take| {
                string.stretch().parts(cut).for_each(take);
            });
            let whole = super::super::intervals::Intervals::measure(string);
            prop_assert_eq!(parts.duration(), whole.duration());
            prop_assert_eq!(parts.references(), whole.references());
            for window in 0..60 {
                prop_assert_eq!(parts.faults(window), whole.faults(window));
                prop_assert_eq!(parts.kept_for(window), whole.kept_for(window));
                prop_assert_eq!(parts.kept_if_within(window), whole.kept_if_within(window));
            }
        }
    }

    #[test]
    fn only_the_longest_are_kept() {
        let mut longest = Longest::new(10, 1 << 20);
        for at in 0..100_000u64 {
            longest.lasted(at, at + at * 7919 % 10_007);
            assert!(longest.kept.len() <= 20 + SPARE);
        }
        longest.sort_out();
        assert!(
            longest
                .kept
                .iter()
                .all(|kept| kept.length() >= longest.least)
        );
    }
}
