//! Helpers for objects that export their memory through the buffer protocol.

use std::ffi::{CString, c_int};
use std::ptr::null_mut;

use pyo3::ffi;

/// Flags that request C, Fortran or any contiguity, without the `PyBUF_STRIDES` bits that each includes.
const CONTIGUOUS: c_int =
    (ffi::PyBUF_C_CONTIGUOUS | ffi::PyBUF_F_CONTIGUOUS | ffi::PyBUF_ANY_CONTIGUOUS)
        & !ffi::PyBUF_STRIDES;

/// Whether a request accepts non-contiguous elements.
pub fn takes_strides(flags: c_int) -> bool {
    flags & ffi::PyBUF_STRIDES == ffi::PyBUF_STRIDES && flags & CONTIGUOUS == 0
}

/// Raises `BufferError`; returns -1.
///
/// # Safety
/// The GIL is held; `buffer` may be written.
pub unsafe fn refuse(buffer: *mut ffi::Py_buffer, text: &str) -> c_int {
    let text = CString::new(text).unwrap_or_default();
    // SAFETY: the caller guarantees a writable `buffer` and holds the GIL.
    unsafe {
        (*buffer).obj = null_mut();
        ffi::PyErr_SetString(ffi::PyExc_BufferError, text.as_ptr());
    }
    -1
}
