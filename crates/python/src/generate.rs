//! Made-up references, as a column.

use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use tidemark_trace::generate::{Golden, Localities, Micromodel, Pattern};

use crate::columns::{Column, column};
use crate::exceptions::of_argument;
use crate::pool;

/// The first `references` pages of a pattern.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "Python names each")]
pub fn generate_pattern(
    py: Python<'_>,
    pattern: &str,
    references: u64,
    seed: u64,
    pages: u64,
    exponent: f64,
    phases: u64,
    localities: (u64, u64, u64, u64),
    micromodel: &str,
) -> PyResult<Column<u64>> {
    let pattern = match pattern {
        "sequential" => Pattern::Sequential,
        "reverse" => Pattern::Reverse,
        "loop" => Pattern::Loop { pages },
        "sweep" => Pattern::Sweep { pages },
        "random" => Pattern::Random { pages },
        "skewed" => Pattern::Skewed { pages },
        "zipf" => zipf(pages, exponent)?,
        "phased" => Pattern::Phased { phases, pages },
        "localities" => Pattern::Localities(walk(pages, localities, micromodel)?),
        _ => {
            let needs =
                "sequential, reverse, loop, sweep, random, zipf, skewed, phased or localities";
            return Err(of_argument("pattern", format!("`{pattern}`"), needs));
        }
    };
    if let Err(wrong) = pattern.check() {
        return Err(of_argument(wrong.parameter, wrong.value, &wrong.needs));
    }
    let mut numbers = Vec::new();
    let room = usize::try_from(references).map(|references| numbers.try_reserve_exact(references));
    if !matches!(room, Ok(Ok(()))) {
        return Err(PyMemoryError::new_err(format!(
            "no room for {references} references"
        )));
    }
    pool::compute(py, || numbers.extend(pattern.pages(references, seed)))?;
    Ok(column(py, numbers))
}

/// The trace of that name with published miss counts, and the frames they are published for.
#[pyfunction]
pub fn generate_golden(py: Python<'_>, name: &str) -> PyResult<(Column<u64>, u32)> {
    let Some(golden) = Golden::ALL.into_iter().find(|golden| golden.name() == name) else {
        let needs = Golden::ALL.map(Golden::name).join(", ");
        return Err(of_argument(
            "name",
            format!("`{name}`"),
            &format!("one of {needs}"),
        ));
    };
    Ok((column(py, golden.pages().collect()), golden.frames()))
}

fn zipf(pages: u64, exponent: f64) -> PyResult<Pattern> {
    let thousandths = (exponent * 1000.0).round();
    if !(0.0..=10_000.0).contains(&thousandths) {
        return Err(of_argument("exponent", exponent, "0 to 10"));
    }
    Ok(Pattern::Zipf {
        pages,
        exponent_thousandths: thousandths as u32,
    })
}

/// The phase-transition model: its numbers are count, deviation, overlap and holding time.
fn walk(pages: u64, numbers: (u64, u64, u64, u64), micromodel: &str) -> PyResult<Localities> {
    let (count, pages_deviation, overlap_pages, holding_mean) = numbers;
    let micromodel = match micromodel {
        "random" => Micromodel::Random,
        "cyclic" => Micromodel::Cyclic,
        "sawtooth" => Micromodel::Sawtooth,
        _ => {
            let needs = "`random`, `cyclic` or `sawtooth`";
            return Err(of_argument("micromodel", format!("`{micromodel}`"), needs));
        }
    };
    Ok(Localities {
        count,
        pages_mean: pages,
        pages_deviation,
        overlap_pages,
        holding_mean,
        micromodel,
    })
}
