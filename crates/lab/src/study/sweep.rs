//! One part of a sweep: a trace by one policy, in some sizes of memory.
//!
//! Failures are noted in the rows, so that the other parts go on.

use std::path::Path;

use tidemark_results::analysis::sweep::{SweepCount, SweepRow};
use tidemark_results::refusal::plain;
use tidemark_results::text;
use tidemark_trace::{Error, ErrorKind};

use super::order::{Assumed, CurveOrder, Sizes};
use super::policies::Named;
use super::{Opened, Study, Wanted};
use crate::amounts::parse_memory;

/// One part of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepPart {
    /// The trace, as it is named.
    pub trace: String,
    /// The policy.
    pub policy: Named,
    /// The sizes of memory, as they are asked for.
    pub memory: Vec<String>,
}

impl SweepPart {
    /// A row for each size, in their order. `None` if reading the trace takes more than
    /// `bytes_max` of memory.
    pub fn rows(&self, bytes_max: u64) -> Option<Vec<SweepRow>> {
        let blank = self.blank();
        match self.counted(bytes_max) {
            Ok(counted) => {
                let counted = counted?.into_iter();
                let rows = blank.into_iter().zip(counted);
                Some(rows.map(|(row, counted)| filled(row, counted)).collect())
            }
            Err(error) => {
                let rows = blank.into_iter();
                Some(rows.map(|row| filled(row, Err(error.clone()))).collect())
            }
        }
    }

    /// Rows that say `error`.
    pub fn failed(&self, error: &str) -> Vec<SweepRow> {
        let rows = self.blank().into_iter();
        rows.map(|row| filled(row, Err(error.into()))).collect()
    }

    /// A row for each size, with nothing counted.
    pub fn blank(&self) -> Vec<SweepRow> {
        let trace_bytes = trace_bytes(&self.trace);
        let rows = self.memory.iter().map(|memory| SweepRow {
            trace: self.trace.clone(),
            policy: self.policy.name().into(),
            memory: memory.clone(),
            trace_bytes,
            counted: None,
            error: None,
        });
        rows.collect()
    }

    fn counted(&self, bytes_max: u64) -> Result<Option<Vec<Result<SweepCount, String>>>, String> {
        let opened = Opened::open(Path::new(&self.trace), false);
        let opened = opened.map_err(|error| told(&error))?;
        if self.policy == Named::Opt && opened.is_beyond_optimum() {
            let references = text::count(opened.facts().records);
            return Err(format!(
                "{references} references: the optimum is counted for at most 2^30"
            ));
        }
        let assumed = Assumed {
            slowdowns_percent: vec![],
            ..Assumed::default()
        };
        let wanted = Wanted::curves(&[self.policy], &assumed);
        if opened.bytes_held(&wanted) > bytes_max {
            return Ok(None);
        }
        let study = Study::of(opened, wanted, &mut |_, _| {});
        let study = study.map_err(|error| told(&error))?;
        let sizes: Vec<Result<u64, String>> =
            self.memory.iter().map(|text| pages(text, &study)).collect();
        let mut known: Vec<u64> = sizes.iter().flatten().copied().collect();
        known.sort_unstable();
        known.dedup();
        let order = CurveOrder {
            policies: vec![self.policy],
            sizes: Sizes::At(known),
            assumed,
        };
        let record = study.curves(&order, &mut |_, _| {});
        let points = &record.curves[0].points;
        let counted = sizes.into_iter().map(|pages| {
            let pages = pages?;
            let point = points.iter().find(|point| point.pages == pages);
            let point = point.ok_or_else(|| self.too_small(pages))?;
            let references = study.facts().records;
            Ok(SweepCount {
                page_bytes: study.facts().page_bytes,
                references,
                trace_pages: study.facts().pages,
                pages,
                misses: point.misses,
                miss_ratio: point.misses as f64 / references.max(1) as f64,
                window: point.window,
                mean_pages: point.mean_pages,
            })
        });
        Ok(Some(counted.collect()))
    }

    /// The reason why there is no point with `pages`.
    fn too_small(&self, pages: u64) -> String {
        match self.policy {
            Named::WorkingSet | Named::Vmin | Named::Pff => {
                format!("{pages} pages are less than the mean of any window; give more")
            }
            _ => format!("{pages} pages are fewer than a sampling window touches; give more"),
        }
    }
}

/// The size of the file of a trace; 0 if there is none.
pub fn trace_bytes(trace: &str) -> u64 {
    std::fs::metadata(trace).map_or(0, |found| found.len())
}

/// A size of memory in pages of the trace.
fn pages(text: &str, study: &Study) -> Result<u64, String> {
    let facts = study.facts();
    let whole = facts.bytes(facts.footprint());
    match parse_memory("memory", text, facts.page_bytes, whole) {
        Ok(0) => Err(format!("{text} of memory is less than a page; give more")),
        Ok(pages) => Ok(u64::from(pages)),
        Err(refusal) => Err(refusal.to_string()),
    }
}

/// The error of a trace in one line, without the trace's name.
fn told(error: &Error) -> String {
    match &error.kind {
        ErrorKind::System(cause) => plain(cause),
        _ => error.to_string(),
    }
}

fn filled(row: SweepRow, counted: Result<SweepCount, String>) -> SweepRow {
    let (counted, error) = match counted {
        Ok(counted) => (Some(counted), None),
        Err(error) => (None, Some(error)),
    };
    SweepRow {
        counted,
        error,
        ..row
    }
}
