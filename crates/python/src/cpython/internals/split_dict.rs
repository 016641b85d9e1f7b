//! Instance dictionaries that share the table of their names ("split" dictionaries, PEP 412).
//!
//! The dictionaries of the instances of one class share a table of names, to which names are only ever added, and have a
//! row of values each, in the order of that table. A dictionary with a table that was seen before has its values at the
//! places found then, whatever was done to the dictionary since: one that Python has given a table of its own, as it does
//! when names are deleted, has another address there.

use std::ffi::c_void;

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

const WORD: usize = size_of::<usize>();
/// The parts of a dictionary: its head, the number of its items, a word for its watchers, the table of names, and the row
/// of values, which is null in a dictionary that shares nothing.
const NAMES: usize = size_of::<ffi::PyObject>() + 2 * WORD;
const VALUES: usize = NAMES + WORD;
const SIZE: usize = VALUES + WORD;

/// Since Python 3.13 a row of values begins with a word about itself.
#[inline(always)]
fn first_value() -> usize {
    // SAFETY: a constant of the interpreter.
    usize::from(unsafe { ffi::Py_Version } >= 0x030D_0000)
}

/// The table of names of a dictionary and its first value; the latter is null where the dictionary shares no table.
///
/// # Safety
///
/// The interpreter's dictionaries have this layout: [`check`] has succeeded.
#[inline(always)]
pub unsafe fn parts(fields: &Bound<'_, PyDict>) -> (*mut c_void, *const *mut ffi::PyObject) {
    let fields = fields.as_ptr();
    // SAFETY: the caller's promise; a live dictionary.
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

/// Whether a dictionary has the expected size. That values are where they are expected is checked for each class.
pub fn check(py: Python<'_>) -> bool {
    py.get_type::<PyDict>()
        .getattr(intern!(py, "__basicsize__"))
        .and_then(|size| size.extract::<usize>())
        .is_ok_and(|size| size == SIZE)
}
