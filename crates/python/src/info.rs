//! What Cupyrite tells about itself: the device and why it was chosen, and where libraries come from.

use std::ffi::OsString;
use std::path::PathBuf;

use cupyrite_sys::loader::{self, Library};
use pyo3::prelude::*;

use crate::runtime::{self, raise_load_error};

/// Adds the functions below, and hands the places where packages are installed to the search for libraries.
pub fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // As they are, without a look at any of them: that happens when a library is needed.
    let path: Vec<PathBuf> = module
        .py()
        .import("sys")?
        .getattr("path")?
        .try_iter()?
        .filter_map(|entry| entry.ok()?.extract::<PathBuf>().ok())
        .filter(|path| path.is_absolute())
        .collect();
    cupyrite_pathfinder::set_site_packages(path);
    module.add_function(wrap_pyfunction!(device_reason, module)?)?;
    module.add_function(wrap_pyfunction!(internal_errors, module)?)?;
    module.add_function(wrap_pyfunction!(library_path, module)?)
}

/// Why driver calls go where they go: a sentence without its full stop. Chooses the device if need be.
///
/// Raises what the first driver call would raise.
#[pyfunction]
fn device_reason(py: Python<'_>) -> PyResult<String> {
    runtime::prepare()
        .and_then(|()| {
            loader::backend_reason().map_err(|error| raise_load_error(&error, "the CUDA driver"))
        })
        .map_err(|_| PyErr::fetch(py))
}

/// The file a library ("cuda", "nvrtc", "nvJitLink") was loaded from; None before its first use and for the CPU device.
#[pyfunction]
fn library_path(name: &str) -> Option<OsString> {
    Library::from_name(name)
        .and_then(loader::library_path)
        .map(PathBuf::into_os_string)
}

/// The exceptions (FunctionNotFoundError, NotSupportedError) of cuda.bindings._internal.utils.
#[pyfunction]
fn internal_errors(py: Python<'_>) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
    let class = |made: crate::py::R<*mut pyo3::ffi::PyObject>| match made {
        // SAFETY: the class is live and kept for ever.
        Ok(class) => Ok(unsafe { Bound::from_borrowed_ptr(py, class) }.unbind()),
        Err(_) => Err(PyErr::fetch(py)),
    };
    Ok((
        class(crate::errors::function_not_found())?,
        class(crate::errors::not_supported())?,
    ))
}
