//! The Python binding: the compiled half of the package in `python/tidemark`.
//!
//! It turns Python's arguments into those of the crates below, and what they answer into columns.
//! The Python half names the columns and checks nothing twice. [`trace`] reads and writes files,
//! [`events`] lists what happened in them, [`references`] loads them for the analyses, [`curve`],
//! [`sets`] and [`phases`] run those, [`replay`] runs traces on memory systems, [`sweep`] counts
//! the rows of sweeps, [`generate`] makes references up, [`regions`] has memory for arrays, and
//! [`allocator`] for those that numpy makes, by functions that it calls: the one file with unsafe
//! code.
//!
//! # Invariants
//! 1. A column is made once and belongs to its array from then on; it is read-only.
//! 2. No analysis that takes time keeps Python from running ([`pool`]), and no Python runs inside.
//! 3. What is wrong with a file or an argument is an exception with one line ([`exceptions`]).

#![deny(unsafe_code)]

#[allow(unsafe_code)]
mod allocator;
mod columns;
mod curve;
mod events;
mod exceptions;
mod generate;
mod phases;
mod pool;
mod references;
mod regions;
mod replay;
mod sets;
mod sweep;
mod trace;

/// The compiled half of `tidemark`.
#[pyo3::pymodule]
mod _tidemark {
    #[pymodule_export]
    use super::allocator::set_allocator;
    #[pymodule_export]
    use super::curve::{count_faults, count_misses, describe_policies, estimate_misses};
    #[pymodule_export]
    use super::generate::{generate_golden, generate_pattern};
    #[pymodule_export]
    use super::phases::find_phases;
    #[pymodule_export]
    use super::references::{References, load, number, restore};
    #[pymodule_export]
    use super::regions::{Engine, Region, parse_size};
    #[pymodule_export]
    use super::replay::{describe_systems, replay};
    #[pymodule_export]
    use super::sets::{find_knee, follow, need_fixed, need_variable};
    #[pymodule_export]
    use super::sweep::{check_sweep, read_sweep, sweep_rows, trace_bytes, write_sweep};
    #[pymodule_export]
    use super::trace::{Columns, Summary, read, summarize, write};

    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
