//! Columns: what an analysis found, as arrays that own it.

use numpy::{Element, IntoPyArray, PyArray1, PyArrayMethods};
use pyo3::prelude::*;

/// A column as Python holds it.
pub type Column<T> = Py<PyArray1<T>>;

/// Hands `values` over to an array that can't be written to. Nothing is copied.
pub fn column<T: Element>(py: Python<'_>, values: Vec<T>) -> Column<T> {
    let array = values.into_pyarray(py).readwrite().make_nonwriteable();
    let array: &Bound<'_, PyArray1<T>> = &array;
    array.clone().unbind()
}
