//! Buffer-protocol export of views.

use std::ffi::{CString, c_int};

use cupyrite::dlpack::DataType;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::core::view::state::PyView;

/// Data of a `Py_buffer`, owned by its `internal` field.
pub struct BufferData {
    shape: Vec<ffi::Py_ssize_t>,
    strides: Vec<ffi::Py_ssize_t>,
    format: CString,
}

/// Fills in a `Py_buffer`.
///
/// # Errors
///
/// `BufferError` for an unsupported request.
///
/// # Safety
///
/// `out` is valid for writes, or null.
pub unsafe fn export(
    slf: &Bound<'_, PyView>,
    out: *mut ffi::Py_buffer,
    flags: c_int,
) -> PyResult<()> {
    let (py, view) = (slf.py(), slf.get());
    let refuse = |why: &str| Err(PyBufferError::new_err(why.to_owned()));
    if out.is_null() {
        return refuse("the view argument is null");
    }
    // SAFETY: valid for writes, see above; on errors `obj` must be null.
    unsafe { (*out).obj = std::ptr::null_mut() };
    if !view.device().kind.is_host_accessible() {
        return refuse(
            "the memory is device memory, which the buffer protocol does not support; copy it to the host",
        );
    }
    if flags & ffi::PyBUF_WRITABLE != 0 && view.is_readonly() {
        return refuse("the memory is read-only");
    }
    let layout = view.layout();
    let wants = |what: c_int| flags & what == what;
    let dense = layout.is_contiguous_c();
    if wants(ffi::PyBUF_C_CONTIGUOUS) && !dense
        || wants(ffi::PyBUF_F_CONTIGUOUS) && !layout.is_contiguous_f()
        || wants(ffi::PyBUF_ANY_CONTIGUOUS) && !dense && !layout.is_contiguous_f()
        || !wants(ffi::PyBUF_STRIDES) && !dense
    {
        return refuse("the elements are not contiguous as requested");
    }
    let format = if view.has_unknown_type() {
        format!("{}s", layout.item_size())
    } else {
        format_of(view.data_type(py)?)?
    };
    let numbers = |from: &[i64]| {
        from.iter()
            .map(|&n| n as ffi::Py_ssize_t)
            .collect::<Vec<_>>()
    };
    let mut data = Box::new(BufferData {
        shape: numbers(layout.shape()),
        strides: numbers(&layout.strides_in_bytes()),
        format: CString::new(format).unwrap_or_default(),
    });
    let none = std::ptr::null_mut();
    // SAFETY: valid for writes, see above. The pointed-to data is freed on release; the view keeps the memory alive.
    unsafe {
        (*out).buf = std::ptr::with_exposed_provenance_mut(view.address() as usize);
        (*out).len = (layout.volume() * layout.item_size() as i64) as ffi::Py_ssize_t;
        (*out).readonly = view.is_readonly().into();
        (*out).itemsize = layout.item_size() as ffi::Py_ssize_t;
        (*out).format = if wants(ffi::PyBUF_FORMAT) {
            data.format.as_ptr().cast_mut()
        } else {
            none
        };
        // Without PyBUF_ND the consumer gets one dimension, as from a memoryview, and ignores `ndim`.
        (*out).ndim = if wants(ffi::PyBUF_ND) {
            layout.ndim()
        } else {
            layout.ndim().min(1)
        } as c_int;
        (*out).shape = if wants(ffi::PyBUF_ND) {
            data.shape.as_mut_ptr()
        } else {
            std::ptr::null_mut()
        };
        (*out).strides = if wants(ffi::PyBUF_STRIDES) {
            data.strides.as_mut_ptr()
        } else {
            std::ptr::null_mut()
        };
        (*out).suboffsets = std::ptr::null_mut();
        (*out).internal = Box::into_raw(data).cast();
        (*out).obj = slf.clone().into_ptr();
    }
    Ok(())
}

/// Format of a type in the syntax of module `struct`.
fn format_of(dtype: DataType) -> PyResult<String> {
    let code = match (dtype.code, dtype.bits, dtype.lanes) {
        (DataType::INT, 8, 1) => "b",
        (DataType::INT, 16, 1) => "h",
        (DataType::INT, 32, 1) => "i",
        (DataType::INT, 64, 1) => "q",
        (DataType::UINT, 8, 1) => "B",
        (DataType::UINT, 16, 1) => "H",
        (DataType::UINT, 32, 1) => "I",
        (DataType::UINT, 64, 1) => "Q",
        (DataType::FLOAT, 16, 1) => "e",
        (DataType::FLOAT, 32, 1) => "f",
        (DataType::FLOAT, 64, 1) => "d",
        (DataType::COMPLEX, 64, 1) => "Zf",
        (DataType::COMPLEX, 128, 1) => "Zd",
        (DataType::BOOL, 8, 1) => "?",
        _ => {
            return Err(PyBufferError::new_err(
                "the buffer protocol has no format for elements of this type; view them as integers of the same size",
            ));
        }
    };
    Ok(code.to_owned())
}
