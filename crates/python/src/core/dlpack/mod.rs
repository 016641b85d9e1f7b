//! DLPack export of buffers and views (`dlpack.h`, versions 0 and 1): [`export`], and the Python and C entry points.

pub mod buffer;
pub mod exchange;
pub mod export;
pub mod managed;
pub mod method;
pub mod view_api;

use pyo3::prelude::*;

use crate::core::memory::buffer::PyBuffer;
use crate::core::view::state::PyView;

/// Adds `__dlpack__` and the exchange API to the classes, which exist.
///
/// # Errors
///
/// Python errors.
pub fn init(py: Python<'_>) -> PyResult<()> {
    method::add::<PyBuffer>(py)?;
    method::add::<PyView>(py)?;
    view_api::add(py)
}
