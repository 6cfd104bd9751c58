//! Phases, as columns.

use pyo3::prelude::*;
use tidemark_lab::analysis::phases::{self, Level, Phase, PhaseOptions};

use crate::columns::{Column, column};
use crate::exceptions::of_argument;
use crate::references::References;

/// A row for each phase: the least and greatest size of its level in pages, when it begins and
/// ends, its pages, those of its core, those it entered with, and from how many localities it was
/// joined.
type Phases = (
    Column<u32>,
    Column<u32>,
    Column<u64>,
    Column<u64>,
    Column<u32>,
    Column<u32>,
    Column<u32>,
    Column<u32>,
);

/// Finds the phases at every level, smallest localities first.
#[pyfunction]
pub fn find_phases(
    py: Python<'_>,
    references: &Bound<'_, References>,
    pages_max: u32,
    duration_min: Option<u64>,
) -> PyResult<Phases> {
    if pages_max == 0 {
        return Err(of_argument("pages_max", 0, "at least 1 page"));
    }
    let levels = references.get().compute(py, |string| {
        let mut options = PhaseOptions::for_string(&string);
        options.pages_max = pages_max;
        if let Some(duration_min) = duration_min {
            options.phase_ticks_min = duration_min.max(1);
            options.piece_ticks_min = (duration_min / 10).max(1);
        }
        phases::find_phases(string, &options)
    })?;
    let rows: Vec<(&Level, &Phase)> = levels
        .iter()
        .flat_map(|level| level.phases.iter().map(move |phase| (level, phase)))
        .collect();
    let narrow = |of: fn(&(&Level, &Phase)) -> u32| column(py, rows.iter().map(of).collect());
    Ok((
        narrow(|row| row.0.pages_from),
        narrow(|row| row.0.pages_to),
        column(py, rows.iter().map(|row| row.1.start).collect()),
        column(py, rows.iter().map(|row| row.1.end).collect()),
        narrow(|row| row.1.pages),
        narrow(|row| row.1.core_pages),
        narrow(|row| row.1.entered_pages),
        narrow(|row| row.1.pieces),
    ))
}
