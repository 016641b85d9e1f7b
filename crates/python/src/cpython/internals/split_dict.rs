//! Instance dictionaries with a shared key table ("split" dictionaries, PEP 412), read in place.
//!
//! The instance dictionaries of a class share one key table, to which keys are only ever added. Each dictionary has its own
//! value array, indexed like that table. A dictionary with an already examined key table therefore has its values at the
//! indices found then, regardless of later changes to the dictionary: one that Python has converted to its own key table,
//! for example because keys were deleted, has a different table address.

use std::ffi::c_void;

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

const WORD: usize = size_of::<usize>();
/// Layout of a dictionary: object head, number of items, watcher word, key table, and value array, which is null if the
/// dictionary shares no table.
const NAMES: usize = size_of::<ffi::PyObject>() + 2 * WORD;
const VALUES: usize = NAMES + WORD;
const SIZE: usize = VALUES + WORD;

/// Index of the first value: since Python 3.13 a value array begins with a header word.
#[inline(always)]
fn first_value() -> usize {
    // SAFETY: `Py_Version` is a constant of the interpreter.
    usize::from(unsafe { ffi::Py_Version } >= 0x030D_0000)
}

/// The key table of a dictionary and the address of its first value, which is null if the dictionary shares no table.
///
/// # Safety
///
/// The interpreter's dictionaries have this layout: [`check`] has succeeded.
#[inline(always)]
pub unsafe fn parts(fields: &Bound<'_, PyDict>) -> (*mut c_void, *const *mut ffi::PyObject) {
    let fields = fields.as_ptr();
    // SAFETY: the dictionary is live; the caller guarantees its layout.
    unsafe {
        let names = fields.byte_add(NAMES).cast::<*mut c_void>().read();
        let row = fields
            .byte_add(VALUES)
            .cast::<*const *mut ffi::PyObject>()
            .read();
        if row.is_null() {
            return (names, row);
        }
        (names, row.add(first_value()))
    }
}

/// Whether dictionaries have the expected size. The positions of the values are checked for each class.
pub fn check(py: Python<'_>) -> bool {
    py.get_type::<PyDict>()
        .getattr(intern!(py, "__basicsize__"))
        .and_then(|size| size.extract::<usize>())
        .is_ok_and(|size| size == SIZE)
}
