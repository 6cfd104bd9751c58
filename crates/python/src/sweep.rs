//! Sweeps: the rows of one trace by one policy, and tables of them as text. Which rows there are to
//! be, and who counts them, is said in Python.

use std::str::FromStr;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tidemark_lab::amounts;
use tidemark_lab::study::Named;
use tidemark_lab::study::sweep::{self, SweepPart};
use tidemark_results::analysis::sweep::SweepRecord;

use crate::exceptions::{is_module, no_policy};
use crate::pool;

/// Refuses policies and sizes of memory that can be of no trace.
#[pyfunction]
pub fn check_sweep(policies: Vec<String>, memory: Vec<String>) -> PyResult<()> {
    policies.iter().try_for_each(|name| named(name).map(drop))?;
    let checked = amounts::check_memories("memory", memory.iter().map(String::as_str));
    checked.map_err(|refusal| PyValueError::new_err(refusal.to_string()))
}

/// Counts a row for each size of memory; answers with a record of them, as JSON. Failures of the
/// trace are noted in the rows.
#[pyfunction]
pub fn sweep_rows(
    py: Python<'_>,
    trace: String,
    policy: &str,
    memory: Vec<String>,
) -> PyResult<String> {
    let part = SweepPart {
        trace,
        policy: named(policy)?,
        memory,
    };
    let rows = pool::compute(py, || part.rows(u64::MAX))?;
    Ok(SweepRecord::new(rows.unwrap_or_default()).to_json())
}

/// The size of a trace's file, as rows have it.
#[pyfunction]
pub fn trace_bytes(trace: &str) -> u64 {
    sweep::trace_bytes(trace)
}

/// Reads a table, of either form, and answers with its record as JSON.
#[pyfunction]
pub fn read_sweep(name: &str, text: &str) -> PyResult<String> {
    match SweepRecord::from_text(text) {
        Ok(record) => Ok(SweepRecord::new(record.rows).to_json()),
        Err(why) => Err(PyValueError::new_err(format!(
            "`{name}`: is no table of a sweep ({why}); name another file"
        ))),
    }
}

/// A record that is JSON, as the text of a table: as it is, or as CSV.
#[pyfunction]
pub fn write_sweep(record: &str, is_json: bool) -> PyResult<String> {
    let record = SweepRecord::from_text(record);
    let record = record.map_err(|why| PyValueError::new_err(format!("`record`: {why}")))?;
    Ok(match is_json {
        true => record.to_json(),
        false => record.to_csv(),
    })
}

fn named(name: &str) -> PyResult<Named> {
    is_module(name)?;
    Named::from_str(name).map_err(|_| PyValueError::new_err(no_policy(name)))
}
