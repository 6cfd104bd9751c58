//! The course over time: working sets and phases, as records.

use std::ops::Range;

use tidemark_results::analysis::footprint::Footprint;
use tidemark_results::analysis::phases::{self, Level, Phase, PhasesRecord};
use tidemark_results::analysis::wss::{self, SizeBucket, WindowSizes, WssRecord};
use tidemark_trace::Error;

use super::Study;
use super::facts::VERSION;
use super::progress::Progress;
use crate::analysis::ageing::working_set_over_time;
use crate::analysis::footprint::Footprinter;
use crate::analysis::phases::{PhaseOptions, find_phases};
use crate::analysis::residence::{Piece, Timeline, Totals};

impl Study {
    /// The size of the working set at each of `windows`, in at most `pieces` spans of time.
    ///
    /// # Panics
    /// If the references were not wanted, or there is to be no span.
    pub fn working_sets(&self, windows: &[u64], pieces: usize) -> WssRecord {
        let lines = working_set_over_time(self.string(), windows, pieces);
        self.sizes(windows, &lines)
    }

    /// The size of the working set, as it was followed in passing.
    ///
    /// # Panics
    /// If that was not wanted.
    pub fn working_sets_passed(&self) -> WssRecord {
        let passed = self.passed.working_sets.as_ref();
        let (windows, lines) = passed.expect("they were wanted in passing");
        self.sizes(windows, lines)
    }

    fn sizes(&self, windows: &[u64], lines: &[Timeline]) -> WssRecord {
        let lines = match self.facts.records {
            0 => &[],
            _ => lines,
        };
        WssRecord {
            schema: wss::SCHEMA.into(),
            tidemark: VERSION.into(),
            trace: self.facts.clone(),
            windows: windows
                .iter()
                .zip(lines)
                .map(|(window, line)| {
                    let unknown = self.sampled.as_ref().map(|it| it.unknown(*window));
                    window_sizes(*window, line, &unknown.unwrap_or_default())
                })
                .collect(),
            marks: self.marks.clone(),
            footprint: None,
        }
    }

    /// The pages touched in at most `pieces` intervals of time, beside those that are mapped: one
    /// pass through the trace. Of a trace that was sampled no interval is shorter than its windows.
    ///
    /// # Errors
    /// The trace can't be read once more.
    ///
    /// # Panics
    /// If there is to be no interval.
    pub fn footprint(&self, pieces: u64, progress: &mut Progress<'_>) -> Result<Footprint, Error> {
        let (facts, header) = (&self.facts, self.blocks.header());
        let ticks_least = facts.windows.map_or(0, |windows| windows.longest_ns);
        let fineness = (pieces, ticks_least);
        let processes = facts.processes as usize;
        let mut footprinter = Footprinter::new(header, processes, facts.time, fineness);
        self.each_block("footprint", progress, |block| footprinter.take(block))?;
        Ok(footprinter.finish())
    }

    /// The phases at each level.
    ///
    /// # Panics
    /// If the references were not wanted.
    pub fn phases(&self) -> PhasesRecord {
        let string = self.string();
        let mut options = PhaseOptions::for_string(&string);
        // Within two windows of a sampled trace nothing is known to be in use throughout.
        options.piece_ticks_min = options.piece_ticks_min.max(self.sight.window_min);
        options.phase_ticks_min = options.phase_ticks_min.max(self.sight.window_min);
        let time = self.facts.time.max(1) as f64;
        let levels = match self.references.is_empty() {
            true => vec![],
            false => find_phases(string, &options),
        };
        let phase = |phase: &crate::analysis::phases::Phase| Phase {
            from: phase.start,
            until: phase.end,
            pages: u64::from(phase.pages),
            pages_new: u64::from(phase.entered_pages),
        };
        PhasesRecord {
            schema: phases::SCHEMA.into(),
            tidemark: VERSION.into(),
            trace: self.facts.clone(),
            phase_time_min: options.phase_ticks_min,
            levels: levels
                .iter()
                .map(|level| Level {
                    pages_from: u64::from(level.pages_from),
                    pages_to: u64::from(level.pages_to),
                    share: level.covered_ticks() as f64 / time,
                    pages_mean: level.pages_mean(),
                    phases: level.phases.iter().map(phase).collect(),
                })
                .collect(),
            marks: self.marks.clone(),
        }
    }
}

/// The sizes of a line, but for the pieces that lie in a range of time in which they are `unknown`.
fn window_sizes(window: u64, line: &Timeline, unknown: &[Range<u64>]) -> WindowSizes {
    let bucket = |&(from, piece): &(u64, &Piece)| SizeBucket {
        from,
        min: piece.pages_min,
        mean: piece.pages_mean(),
        max: piece.pages_max,
    };
    let pieces = line.pieces.iter().enumerate();
    let pieces = pieces.map(|(at, piece)| (line.start + at as u64 * line.piece_ticks, piece));
    let is_known = |(from, piece): &(u64, &Piece)| {
        let until = from + piece.ticks;
        !unknown
            .iter()
            .any(|range| range.start < until && *from < range.end)
    };
    let known: Vec<(u64, &Piece)> = pieces.filter(is_known).collect();
    let totals = match known.len() == line.pieces.len() {
        true => line.totals,
        false => known.iter().fold(Totals::default(), |mut sum, (_, piece)| {
            sum.duration += piece.ticks;
            sum.page_time += piece.page_time;
            sum.square_time += piece.square_time;
            sum.pages_max = sum.pages_max.max(piece.pages_max);
            sum
        }),
    };
    WindowSizes {
        window,
        known_share: totals.duration as f64 / line.totals.duration.max(1) as f64,
        mean: totals.pages_mean(),
        deviation: totals.pages_variance().sqrt(),
        peak: totals.pages_max,
        buckets: known.iter().map(bucket).collect(),
    }
}
