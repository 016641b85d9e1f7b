//! What Cupyrite tells about itself: the device and why it was chosen, and where libraries come from.

use cupyrite_sys::loader::{self, Library};
use pyo3::prelude::*;

use crate::pathfinder::FileName;
use crate::roots;
use crate::runtime::{self, raise_load_error};

/// Adds the functions below, and hands the places where packages are installed to the search for libraries.
pub fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // Only the words: a look at the folders is taken when a library is needed.
    roots::refresh(module.py());
    module.add_function(wrap_pyfunction!(device_reason, module)?)?;
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

/// The file a library ("cuda", "nvrtc") was loaded from; None before its first use and for the CPU device.
#[pyfunction]
fn library_path(name: &str) -> Option<FileName> {
    [Library::Driver, Library::Nvrtc]
        .into_iter()
        .find(|library| library.name() == name)
        .and_then(loader::library_path)
        .map(FileName)
}
