//! Work that takes time, with Python running on beside it.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Does `job` on every processor while other Python threads run.
///
/// The threads are made for the job and end with it. Threads that stay would be missing in the
/// child of a `fork`, as Python's own process pools make them, and the child would wait forever.
///
/// # Errors
/// The system gives no threads.
pub fn compute<T: Send>(py: Python<'_>, job: impl FnOnce() -> T + Send) -> PyResult<T> {
    let pool = threads()?;
    Ok(py.detach(|| pool.install(job)))
}

/// Threads for one job: as many as there are processors, or as `RAYON_NUM_THREADS` says.
///
/// # Errors
/// The system gives none.
pub fn threads() -> PyResult<ThreadPool> {
    let pool = ThreadPoolBuilder::new().build();
    pool.map_err(|error| PyRuntimeError::new_err(format!("can't start threads: {error}")))
}
