//! The errors of the crates below, as Python's exceptions.
//!
//! What the system refuses is an `OSError` with its number and the file. All else that is wrong
//! with a file or an argument is a `ValueError` with the line that the command prints.

use std::io;
use std::path::Path;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use tidemark_core::policies::BuildError;
use tidemark_lab::names::find_module;
use tidemark_lab::near::collect_near;
use tidemark_lab::study::Named;
use tidemark_trace::{Error, ErrorKind};

/// The error of the trace at `path`.
pub fn of_trace(path: &Path, error: &Error) -> PyErr {
    match &error.kind {
        ErrorKind::System(system) => of_system(path, system),
        _ => PyValueError::new_err(format!("`{}`: {error}", path.display())),
    }
}

/// The error of the system for the file at `path`.
pub fn of_system(path: &Path, error: &io::Error) -> PyErr {
    let text = error.to_string();
    match error.raw_os_error() {
        Some(number) => {
            // Python adds the number and the file itself.
            let reason = text.split(" (os error").next().unwrap_or(&text).to_owned();
            // As text: an object of `pathlib` would be shown as one.
            PyOSError::new_err((number, reason, path.as_os_str().to_owned()))
        }
        None => PyOSError::new_err(format!("`{}`: {text}", path.display())),
    }
}

/// The reason why a policy of the registry can't be made.
pub fn of_policy(error: &BuildError<'_>) -> PyErr {
    PyValueError::new_err(match *error {
        BuildError::UnknownPolicy { name } => no_policy(name),
        BuildError::UnknownKnob { name } => {
            format!("the policy has no knob `{name}`; `tidemark.policies()` lists them")
        }
        BuildError::OutOfRange { knob, value } => {
            let (name, min, max) = (knob.name, knob.min, knob.max);
            format!("knob `{name}` is {value}; needs {min} to {max}")
        }
    })
}

/// Returns true if a policy's name is that of a file with a module, as the command takes it.
///
/// # Errors
/// There is no module in it that can be used.
pub fn is_module(name: &str) -> PyResult<bool> {
    find_module(name).map_err(|refusal| PyValueError::new_err(refusal.to_string()))
}

/// The message for a name that no policy has: those that are near, or where all are listed.
pub fn no_policy(name: &str) -> String {
    let near = collect_near(name, Named::all().into_iter());
    let near: Vec<String> = near.iter().map(|name| format!("`{name}`")).collect();
    match near.is_empty() {
        true => format!("no policy is called `{name}`; `tidemark.policies()` lists them"),
        false => {
            let near = near.join(" or ");
            format!("no policy is called `{name}`; did you mean {near}?")
        }
    }
}

/// An argument that can't be: which, its value, and what it needs.
pub fn of_argument(name: &str, value: impl std::fmt::Display, needs: &str) -> PyErr {
    PyValueError::new_err(format!("`{name}` is {value}; needs {needs}"))
}
