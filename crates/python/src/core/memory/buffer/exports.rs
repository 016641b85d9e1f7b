//! Buffers as others know memory: the array interfaces and the buffer protocol. All show plain bytes.

use std::ffi::c_int;

use cupyrite::dlpack::DlDevice;
use pyo3::exceptions::{PyAttributeError, PyBufferError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::core::dlpack;
use crate::core::memory::buffer::PyBuffer;

/// Address and size as both interfaces have them.
fn interface<'py>(buffer: &PyBuffer, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
    let place = buffer.place();
    let dict = PyDict::new(py);
    dict.set_item(intern!(py, "shape"), PyTuple::new(py, [place.size])?)?;
    dict.set_item(intern!(py, "typestr"), intern!(py, "|u1"))?;
    dict.set_item(intern!(py, "data"), (place.address, false))?;
    dict.set_item(intern!(py, "strides"), py.None())?;
    dict.set_item(intern!(py, "version"), 3)?;
    Ok(dict)
}

fn missing(name: &str, whose: &str) -> PyErr {
    PyAttributeError::new_err(format!("this Buffer has no {name}: its memory is {whose}"))
}

/// `__cuda_array_interface__`.
///
/// # Errors
///
/// `AttributeError` for memory of the host alone, `RuntimeError` for a closed buffer.
pub fn cuda_array_interface<'py>(
    buffer: &PyBuffer,
    py: Python<'py>,
) -> PyResult<Bound<'py, PyDict>> {
    let DlDevice { kind, .. } = dlpack::device(buffer, py)?;
    if !kind.is_device_accessible() {
        return Err(missing("__cuda_array_interface__", "the host's"));
    }
    let dict = interface(buffer, py)?;
    dict.set_item(intern!(py, "stream"), buffer.one_stream(py)?)?;
    Ok(dict)
}

/// `__array_interface__`.
///
/// # Errors
///
/// `AttributeError` for memory of a device alone, `RuntimeError` for a closed buffer.
pub fn array_interface<'py>(buffer: &PyBuffer, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
    let DlDevice { kind, .. } = dlpack::device(buffer, py)?;
    if !kind.is_host_accessible() {
        return Err(missing("__array_interface__", "a device's"));
    }
    interface(buffer, py)
}

/// Answers a request of the buffer protocol. The memory stays until [`PyBuffer::unpin`].
///
/// # Errors
///
/// `BufferError` for memory of a device, `RuntimeError` for a closed buffer.
///
/// # Safety
///
/// `out` is a place for the answer, or null.
pub unsafe fn show(
    slf: &Bound<'_, PyBuffer>,
    out: *mut ffi::Py_buffer,
    flags: c_int,
) -> PyResult<()> {
    let py = slf.py();
    if out.is_null() {
        return Err(PyBufferError::new_err("there is no place for the answer"));
    }
    // SAFETY: a place; errors leave no object in it.
    unsafe { (*out).obj = std::ptr::null_mut() };
    if !dlpack::device(slf.get(), py)?.kind.is_host_accessible() {
        return Err(PyBufferError::new_err(
            "the memory of this Buffer is a device's, which the host cannot read; copy it with copy_to()",
        ));
    }
    let pinned = slf.get().pin(py)?;
    let address = std::ptr::with_exposed_provenance_mut(pinned.address as usize);
    let Ok(size) = ffi::Py_ssize_t::try_from(pinned.size) else {
        return Err(PyBufferError::new_err(format!(
            "this Buffer has {} bytes; the buffer protocol shows at most 2**63 - 1",
            pinned.size
        )));
    };
    // SAFETY: a place, a live object, and memory that stays while it is pinned.
    if unsafe { ffi::PyBuffer_FillInfo(out, slf.as_ptr(), address, size, 0, flags) } != 0 {
        return Err(PyErr::fetch(py));
    }
    // The release undoes the pin.
    std::mem::forget(pinned);
    Ok(())
}
