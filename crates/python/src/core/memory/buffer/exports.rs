//! Exports of buffers: array interfaces and the buffer protocol. All describe plain bytes.

use std::ffi::c_int;

use cupyrite::dlpack::DlDevice;
use pyo3::exceptions::{PyAttributeError, PyBufferError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::core::dlpack::buffer::device_of;
use crate::core::memory::buffer::PyBuffer;

/// The entries common to both array interfaces.
fn interface<'py>(buffer: &PyBuffer, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
    let extent = buffer.extent();
    let dict = PyDict::new(py);
    dict.set_item(intern!(py, "shape"), PyTuple::new(py, [extent.size])?)?;
    dict.set_item(intern!(py, "typestr"), intern!(py, "|u1"))?;
    dict.set_item(intern!(py, "data"), (extent.address, false))?;
    dict.set_item(intern!(py, "strides"), py.None())?;
    dict.set_item(intern!(py, "version"), 3)?;
    Ok(dict)
}

fn no_interface(name: &str, whose: &str) -> PyErr {
    PyAttributeError::new_err(format!(
        "this Buffer has no {name}: its memory is {whose} memory"
    ))
}

/// Implements `__cuda_array_interface__`.
///
/// # Errors
///
/// `AttributeError` for host-only memory, `RuntimeError` for a closed buffer.
pub fn cuda_array_interface<'py>(
    buffer: &PyBuffer,
    py: Python<'py>,
) -> PyResult<Bound<'py, PyDict>> {
    let DlDevice { kind, .. } = device_of(buffer, py)?;
    if !kind.is_device_accessible() {
        return Err(no_interface("__cuda_array_interface__", "host"));
    }
    let dict = interface(buffer, py)?;
    dict.set_item(intern!(py, "stream"), buffer.joined_stream(py)?)?;
    Ok(dict)
}

/// Implements `__array_interface__`.
///
/// # Errors
///
/// `AttributeError` for device-only memory, `RuntimeError` for a closed buffer.
pub fn array_interface<'py>(buffer: &PyBuffer, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
    let DlDevice { kind, .. } = device_of(buffer, py)?;
    if !kind.is_host_accessible() {
        return Err(no_interface("__array_interface__", "device"));
    }
    interface(buffer, py)
}

/// Implements the buffer protocol. The memory stays pinned until [`PyBuffer::unpin`].
///
/// # Errors
///
/// `BufferError` for device memory, `RuntimeError` for a closed buffer.
///
/// # Safety
///
/// `out` is valid for writes, or null.
pub unsafe fn buffer_protocol(
    slf: &Bound<'_, PyBuffer>,
    out: *mut ffi::Py_buffer,
    flags: c_int,
) -> PyResult<()> {
    let py = slf.py();
    if out.is_null() {
        return Err(PyBufferError::new_err("the view argument is null"));
    }
    // SAFETY: valid for writes; on errors `obj` must be null.
    unsafe { (*out).obj = std::ptr::null_mut() };
    if !device_of(slf.get(), py)?.kind.is_host_accessible() {
        return Err(PyBufferError::new_err(
            "this Buffer is device memory, which the host cannot access; copy it with copy_to()",
        ));
    }
    let pinned = slf.get().pin(py)?;
    let address = std::ptr::with_exposed_provenance_mut(pinned.address as usize);
    let Ok(size) = ffi::Py_ssize_t::try_from(pinned.size) else {
        return Err(PyBufferError::new_err(format!(
            "this Buffer has {} bytes; the buffer protocol supports at most 2**63 - 1",
            pinned.size
        )));
    };
    // SAFETY: a valid `out`, a live object, and memory that stays pinned.
    if unsafe { ffi::PyBuffer_FillInfo(out, slf.as_ptr(), address, size, 0, flags) } != 0 {
        return Err(PyErr::fetch(py));
    }
    // `__releasebuffer__` releases the pin.
    std::mem::forget(pinned);
    Ok(())
}
