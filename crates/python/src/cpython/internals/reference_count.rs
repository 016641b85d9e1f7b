//! Reads reference counts in place to detect unshared objects. The limited API does not expose the count.

use pyo3::ffi;
use pyo3::prelude::*;

use crate::cpython::internals::{PrivateLayout, enabled};
use crate::cpython::{GIL, Owned};

/// Number of references to an object.
///
/// # Safety
///
/// The object is live, the thread attached, and the layout known: [`check`] has succeeded.
#[inline(always)]
unsafe fn count(object: *mut ffi::PyObject) -> u32 {
    // The count is the first field: 32 bits since Python 3.12, before that 64 bits with a zero upper half.
    let low = if cfg!(target_endian = "little") { 0 } else { 1 };
    // SAFETY: as promised by the caller.
    unsafe { object.cast::<u32>().add(low).read() }
}

/// Whether the caller holds the only reference, so that the object may be modified and returned again. False if unknown.
///
/// # Safety
///
/// The object is live, is a tuple or one of our handles, and the thread is attached.
#[inline(always)]
pub unsafe fn is_unshared(object: *mut ffi::PyObject) -> bool {
    // SAFETY: the caller guarantees a live object and an attached thread; the fast path is enabled only if `check` succeeded.
    GIL && enabled(PrivateLayout::Reuse) && unsafe { count(object) == 1 }
}

/// Whether a new object has a count of one, which `Py_IncRef` and `Py_DecRef` change by one.
pub fn check(_attached: Python<'_>) -> bool {
    // SAFETY: the thread is attached, and every reference added here is released.
    unsafe {
        let Ok(list) = Owned::take(ffi::PyList_New(0)) else {
            crate::cpython::clear();
            return false;
        };
        let object = list.ptr();
        let new = count(object);
        ffi::Py_IncRef(object);
        let second = count(object);
        if (new, second) != (1, 2) {
            ffi::Py_DecRef(object);
            return false;
        }
        ffi::Py_DecRef(object);
        count(object) == 1
    }
}
