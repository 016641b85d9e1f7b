//! `_repr_html_`, by which notebooks show objects. The HTML is made in Python, in `cuda.core._html`, from public
//! properties.

use pyo3::call::PyCallArgs;
use pyo3::intern;
use pyo3::prelude::*;

/// Calls a formatter of `cuda.core._html`.
///
/// # Errors
///
/// Import errors. The formatters do not raise.
pub fn html<'py>(
    py: Python<'py>,
    formatter: &str,
    arguments: impl PyCallArgs<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    PyModule::import(py, intern!(py, "cuda.core._html"))?
        .getattr(formatter)?
        .call1(arguments)
}
