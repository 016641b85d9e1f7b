//! Information about Cupyrite: why it chose the device, where libraries were loaded from, addresses of their functions.

use cupyrite_sys::loader::{self, Backend, CudaLibrary, LoadErrorKind};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::bindings::symbols;
use crate::bindings::symbols::raise_load_error;
use crate::cpython::R;
use crate::pathfinder::FileName;
use crate::site_packages;

/// Adds the functions below, and passes the site-packages folders to the search for libraries.
pub fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // Reads settings only; the folders are read when a library is needed.
    site_packages::refresh(module.py());
    module.add_function(wrap_pyfunction!(device, module)?)?;
    module.add_function(wrap_pyfunction!(device_reason, module)?)?;
    module.add_function(wrap_pyfunction!(internal_errors, module)?)?;
    module.add_function(wrap_pyfunction!(library_path, module)?)?;
    module.add_function(wrap_pyfunction!(symbol_address, module)?)?;
    module.add_function(wrap_pyfunction!(symbol_addresses, module)?)
}

/// Why driver calls go where they go: a sentence without its full stop. Chooses the device if need be.
///
/// Raises what the first driver call would raise.
#[pyfunction]
fn device_reason(py: Python<'_>) -> PyResult<String> {
    symbols::prepare()
        .and_then(|()| {
            loader::backend_reason().map_err(|error| raise_load_error(&error, "the CUDA driver"))
        })
        .map_err(|_| PyErr::fetch(py))
}

/// Where driver calls go: "gpu" or "cpu". Chooses the device if need be.
///
/// Raises what the first driver call would raise.
#[pyfunction]
fn device(py: Python<'_>) -> PyResult<&'static str> {
    symbols::prepare()
        .and_then(|()| {
            loader::driver_backend().map_err(|error| raise_load_error(&error, "the CUDA driver"))
        })
        .map(|backend| match backend {
            Backend::Gpu => "gpu",
            Backend::Cpu => "cpu",
        })
        .map_err(|_| PyErr::fetch(py))
}

/// The file a library ("cuda", "nvrtc", "nvJitLink") was loaded from; None before its first use and for the CPU device.
#[pyfunction]
fn library_path(name: &str) -> Option<FileName> {
    CudaLibrary::from_name(name)
        .and_then(loader::library_path)
        .map(FileName)
}

/// The exceptions (FunctionNotFoundError, NotSupportedError) of cuda.bindings._internal.utils.
#[pyfunction]
fn internal_errors(py: Python<'_>) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
    let class = |made: crate::cpython::R<*mut pyo3::ffi::PyObject>| match made {
        // SAFETY: `errors` creates the class once and never frees it.
        Ok(class) => Ok(unsafe { Bound::from_borrowed_ptr(py, class) }.unbind()),
        Err(_) => Err(PyErr::fetch(py)),
    };
    Ok((
        class(crate::bindings::errors::function_not_found())?,
        class(crate::bindings::errors::not_supported())?,
    ))
}

/// The address of a library's function by the name it is exported by; 0 if the installed library has none, None if the
/// bindings know no such function. Loads the library.
///
/// Raises what the first call of one of the library's functions would raise.
#[pyfunction]
fn symbol_address(py: Python<'_>, library: &str, name: &str) -> PyResult<Option<usize>> {
    let library = known_library(library)?;
    let rows = cupyrite_sys::table(library).symbols();
    let Some(index) = rows
        .iter()
        .position(|row| row.export.to_bytes() == name.as_bytes())
    else {
        return Ok(None);
    };
    address(library, index)
        .map(Some)
        .map_err(|_| PyErr::fetch(py))
}

/// The addresses of all functions of a library that the bindings know, by the names they are exported by; 0 where the
/// installed library has none. Loads the library.
///
/// Raises what the first call of one of the library's functions would raise.
#[pyfunction]
fn symbol_addresses<'py>(py: Python<'py>, library: &str) -> PyResult<Bound<'py, PyDict>> {
    let library = known_library(library)?;
    let all = PyDict::new(py);
    for (index, row) in cupyrite_sys::table(library).symbols().iter().enumerate() {
        let address = address(library, index).map_err(|_| PyErr::fetch(py))?;
        all.set_item(row.export.to_string_lossy(), address)?;
    }
    Ok(all)
}

fn known_library(name: &str) -> PyResult<CudaLibrary> {
    CudaLibrary::from_name(name).ok_or_else(|| {
        PyValueError::new_err(format!("no library of the bindings is called {name:?}"))
    })
}

/// The address of a row of the table; 0 if the library lacks the function.
fn address(library: CudaLibrary, index: usize) -> R<usize> {
    if library == CudaLibrary::Driver {
        symbols::prepare()?;
    }
    match cupyrite_sys::table(library).get(index) {
        Ok(address) => Ok(address.addr()),
        Err(error) if error.kind == LoadErrorKind::SymbolNotFound => Ok(0),
        Err(error) => Err(raise_load_error(error, library.name())),
    }
}
