//! The windows of a sampled trace over its time: the finest that it shows at each time.
//!
//! A recording begins with short windows and makes them longer where sampling would cost too much,
//! so that one part of a trace may show working sets that another can't. A set over `window`
//! ticks is known at a time if no sampling window that began within `window` before was longer than
//! half of it: between two records of a page that is in constant use nearly two windows may lie.
//! Until `window` has passed the set is all that was ever touched, which first touches show.

use std::ops::Range;

use tidemark_trace::{Block, Event};

use super::references::Clock;

/// Windows of one length, from the trace's tick `from` to before `until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    from: u64,
    until: u64,
    ticks: u64,
}

/// The windows of a trace, being read.
pub(crate) struct WindowsReading {
    first_ticks: u64,
    clock: Clock,
    /// The windows that go on in each process, by its number: their beginning and length.
    open: Vec<Option<(u64, u64)>>,
    spans: Vec<Span>,
}

/// The windows of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampledWindows {
    spans: Vec<Span>,
    end: u64,
}

impl WindowsReading {
    /// Of a trace whose windows are so long at first.
    pub(crate) fn new(first_ticks: u64) -> WindowsReading {
        WindowsReading {
            first_ticks,
            clock: Clock::default(),
            open: Vec::new(),
            spans: Vec::new(),
        }
    }

    /// Takes the next block.
    pub(crate) fn take(&mut self, block: &Block) {
        self.clock.begin(block.process, block.time_start);
        let process = block.process as usize;
        if process >= self.open.len() {
            self.open.resize(process + 1, None);
        }
        let (mut from, mut ticks) =
            self.open[process].unwrap_or((self.clock.now, self.first_ticks));
        for placed in &block.events {
            let Event::Windows { ns } = placed.event else {
                continue;
            };
            let passed = placed.time.saturating_sub(block.time_start);
            let now = self.clock.now.saturating_add(passed);
            // The window that goes on is as long. If it grows, it began within the old length.
            let until = match ns > ticks {
                true => now.saturating_sub(ticks).max(from),
                false => now.max(from),
            };
            self.close(from, until, ticks);
            (from, ticks) = (until, ns);
        }
        self.open[process] = Some((from, ticks));
        self.clock
            .pass(block.gaps.iter().map(|&gap| u64::from(gap)).sum());
    }

    /// The windows of what was taken in.
    pub(crate) fn finish(mut self) -> SampledWindows {
        let end = self.clock.now.saturating_add(1);
        for (from, ticks) in std::mem::take(&mut self.open).into_iter().flatten() {
            // The last window ends with the trace, however long it was to be.
            self.close(from, end, ticks.min(end.saturating_sub(from)));
        }
        SampledWindows {
            spans: self.spans,
            end,
        }
    }

    fn close(&mut self, from: u64, until: u64, ticks: u64) {
        if from < until {
            self.spans.push(Span { from, until, ticks });
        }
    }
}

impl SampledWindows {
    /// The times at which a working set over `window` ticks is not known, in order and apart.
    pub fn unknown(&self, window: u64) -> Vec<Range<u64>> {
        let coarse = self.spans.iter();
        let coarse = coarse.filter(|span| span.ticks.saturating_mul(2) > window);
        let reaches =
            |span: &Span| span.from.max(window)..span.until.saturating_add(window).min(self.end);
        let mut ranges: Vec<Range<u64>> = coarse.map(reaches).collect();
        ranges.retain(|range| range.start < range.end);
        ranges.sort_by_key(|range| range.start);
        let mut apart: Vec<Range<u64>> = Vec::new();
        for range in ranges {
            match apart.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => apart.push(range),
            }
        }
        apart
    }

    /// The share of the time at which a working set over `window` ticks is known.
    pub fn known_share(&self, window: u64) -> f64 {
        let unknown: u64 = self
            .unknown(window)
            .iter()
            .map(|range| range.end - range.start)
            .sum();
        1.0 - unknown as f64 / self.end.max(1) as f64
    }

    /// The windows that are usually shown, rising: the shortest that is known for half of the time,
    /// with those twice and four times as long, where they are no longer than half of the time.
    /// Where there is none, the one that is known for most of it, if that is a tenth, and the
    /// shortest that is known throughout.
    pub fn usual(&self) -> Vec<u64> {
        let windows = self.spans.iter().map(|span| span.ticks.saturating_mul(2));
        let mut windows: Vec<u64> = windows.collect();
        windows.sort_unstable();
        windows.dedup();
        let Some(&throughout) = windows.last() else {
            return vec![1];
        };
        let fits = |window: &u64| *window <= self.end / 2;
        windows.retain(fits);
        let shares: Vec<(u64, f64)> = windows
            .iter()
            .map(|&window| (window, self.known_share(window)))
            .collect();
        if let Some((least, _)) = shares.iter().find(|(_, share)| *share >= 0.5) {
            let times = [1, 2, 4].map(|times| least.saturating_mul(times));
            return times.into_iter().filter(fits).collect();
        }
        let most = shares.iter().max_by(|a, b| a.1.total_cmp(&b.1));
        let most = most.filter(|(_, share)| *share >= 0.1);
        let most = most.map(|(window, _)| *window);
        most.into_iter()
            .chain([throughout.clamp(1, self.end)])
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use tidemark_trace::Placed;

    use super::*;

    /// A trace of `end` ticks in one process, with windows of 10 that change at these times.
    fn windows(end: u32, changes: &[(u64, u64)]) -> SampledWindows {
        let mut block = Block {
            time_start: 1000,
            pages: vec![1],
            kinds: vec![2],
            gaps: vec![end - 1],
            ..Block::default()
        };
        block.events = changes
            .iter()
            .map(|&(at, ns)| Placed {
                after: 0,
                time: 1000 + at,
                event: Event::Windows { ns },
            })
            .collect();
        let mut reading = WindowsReading::new(10);
        reading.take(&block);
        reading.finish()
    }

    #[test]
    fn found_b17_a_long_window_rules_out_shorter_ones_where_it_was_alone() {
        let one_size = windows(1000, &[]);
        assert_eq!(one_size.unknown(20), []);
        assert_eq!(one_size.unknown(19), vec![19..1000; 1]);
        assert_eq!(one_size.usual(), [20, 40, 80]);
        // One early window of 100, from 20 to 120 at most; then short ones again.
        let early = windows(1000, &[(30, 100), (120, 10)]);
        assert_eq!(early.unknown(20), vec![20..140; 1]);
        assert_eq!(early.unknown(200), []);
        assert_eq!(early.known_share(20), 0.88);
        assert_eq!(early.usual(), [20, 40, 80]);
    }

    #[test]
    fn found_b17_the_last_window_is_no_longer_than_what_is_left() {
        // Windows double, and the last was to be twice as long as the whole trace.
        let short = windows(340, &[(10, 20), (30, 40), (70, 80), (150, 160), (310, 640)]);
        let usual = short.usual();
        // The first is known until it has passed, and no longer; the second is the whole trace.
        assert_eq!(usual, [160, 340], "{short:?}");
        assert_eq!(short.known_share(340), 1.0);
        assert_eq!(short.known_share(160), 160.0 / 340.0);
        assert_eq!(short.unknown(700), []);
    }
}
