//! Reference counts, read in place to find objects that nobody else refers to. The limited API does not offer the count.

use pyo3::ffi;
use pyo3::prelude::*;

use crate::cpython::internals::{Trick, enabled};
use crate::cpython::{GIL, Owned};

/// Number of references to an object.
///
/// # Safety
///
/// The object is live, the thread attached, and the layout known: [`check`] has succeeded.
#[inline(always)]
unsafe fn count(object: *mut ffi::PyObject) -> u32 {
    // Since Python 3.12 the count has 32 bits, before it had 64, of which the upper half is 0. Either way it comes first.
    let low = if cfg!(target_endian = "little") { 0 } else { 1 };
    // SAFETY: as promised by the caller.
    unsafe { object.cast::<u32>().add(low).read() }
}

/// Whether the caller's reference is the only one and the object may be changed and returned again. False where that is
/// not known.
///
/// # Safety
///
/// The object is live, is a tuple or one of our handles, and the thread is attached.
#[inline(always)]
pub unsafe fn is_unshared(object: *mut ffi::PyObject) -> bool {
    // SAFETY: as promised by the caller; the trick is on only where the layout was checked.
    GIL && enabled(Trick::Reuse) && unsafe { count(object) == 1 }
}

/// Whether a new object begins with a count of one that `Py_IncRef` raises and `Py_DecRef` lowers by one.
pub fn check(_attached: Python<'_>) -> bool {
    // SAFETY: the thread is attached; each reference added here is given back.
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
