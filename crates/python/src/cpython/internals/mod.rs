//! Private layouts of CPython, NumPy, ctypes and CuPy.
//!
//! The extension module is built for the limited API. All code that relies on more is in this folder; this table lists what
//! a new release can break:
//!
//! | fast path | what is assumed | checked on | elsewhere |
//! |---|---|---|---|
//! | `reuse` ([`reference_count`]) | an object begins with its reference count; a tuple or handle with one reference may be changed, as tuples do not cache their hash | 3.11 to 3.13 with a GIL | a result that differs from the previous one is a new object |
//! | `tuples` ([`tuple`]) | the items follow `tp_basicsize`; the length follows the head | 3.11 to 3.13 with a GIL | `PyTuple_GetItem` is called |
//! | `scalars` ([`scalar_values`]) | the bytes of a NumPy or ctypes number, or their address, follow the head | each type, on first use | the buffer protocol is used |
//! | `cupy` ([`cupy_array`]) | the fields that `cupy.ndarray` declares in its `.pxd` files | found in two arrays | DLPack is used |
//!
//! [`init`] checks the assumptions about Python when the module is imported and disables the fast paths whose assumption fails.
//! Assumptions about other packages are checked when a value of theirs is first used. `CUPYRITE_STRICT_ABI=1` disables all
//! fast paths; a comma-separated list of the names above disables single ones.
//!
//! What each gains is in docs/performance.md, "Private layouts".
//!
//! Incrementing reference counts in place gained 2 to 5 ns of 145 and was removed.

pub mod cupy_array;
pub mod reference_count;
pub mod scalar_values;
pub mod tuple;

use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::cpython::GIL;

/// The environment variable that disables the fast paths.
const VARIABLE: &str = "CUPYRITE_STRICT_ABI";

/// A use of a private layout; a row of the table above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrivateLayout {
    /// Result objects that only the extension refers to are reused.
    Reuse,
    /// Items and lengths of tuples are read in place.
    Tuples,
    /// NumPy and ctypes numbers are read in place.
    Scalars,
    /// CuPy arrays are read in place.
    Cupy,
}

/// The first version that the fast paths were not checked on (3.14): from there on, no layout of CPython is relied on.
const UNCHECKED: u32 = 0x030E_0000;

/// One row of the table.
struct Row {
    layout: PrivateLayout,
    name: &'static str,
    /// Versions of Python that the assumption was checked on, in the format of `Py_Version`.
    versions: std::ops::Range<u32>,
    /// Whether the assumption holds in this process.
    check: fn(Python<'_>) -> bool,
}

const ROWS: [Row; 4] = [
    Row {
        layout: PrivateLayout::Reuse,
        name: "reuse",
        versions: 0..UNCHECKED,
        check: reference_count::check,
    },
    Row {
        layout: PrivateLayout::Tuples,
        name: "tuples",
        versions: 0..UNCHECKED,
        check: tuple::check,
    },
    Row {
        layout: PrivateLayout::Scalars,
        name: "scalars",
        versions: 0..u32::MAX,
        check: |_| true,
    },
    Row {
        layout: PrivateLayout::Cupy,
        name: "cupy",
        versions: 0..u32::MAX,
        check: |_| true,
    },
];

/// One bit for each fast path in use; 0 before [`init`].
static ENABLED: AtomicU32 = AtomicU32::new(0);

/// Whether a fast path is in use: it is not disabled and its assumption holds.
#[inline(always)]
pub fn enabled(layout: PrivateLayout) -> bool {
    ENABLED.load(Ordering::Relaxed) & (1 << layout as u32) != 0
}

/// Reads the environment variable and checks the assumptions. Called once, when the module is imported.
///
/// # Errors
///
/// `ValueError` if the variable has an invalid value.
pub fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let given = std::env::var_os(VARIABLE).unwrap_or_default();
    let given = given.to_string_lossy();
    let (off, unknown) = turned_off(&given);
    if let Some(unknown) = unknown {
        let names = ROWS.map(|row| row.name).join(", ");
        return Err(PyValueError::new_err(format!(
            "{VARIABLE}={given:?}: unknown name {unknown:?}; expected 0, 1 or a comma-separated list of {names}"
        )));
    }
    let py = module.py();
    // SAFETY: `Py_Version` is a constant that the interpreter exports.
    let version = u32::try_from(unsafe { ffi::Py_Version }).unwrap_or(u32::MAX);
    let mut enabled = 0;
    for row in &ROWS {
        let about_python = !matches!(row.layout, PrivateLayout::Scalars | PrivateLayout::Cupy);
        let bit = 1 << row.layout as u32;
        if off & bit == 0
            && (GIL || !about_python)
            && row.versions.contains(&version)
            && (row.check)(py)
        {
            enabled |= bit;
        }
    }
    ENABLED.store(enabled, Ordering::Relaxed);
    module.add_function(wrap_pyfunction!(private_layouts, module)?)
}

/// The fast paths that the value of the variable disables, as bits, and the first unknown name.
fn turned_off(given: &str) -> (u32, Option<&str>) {
    match given.trim() {
        "" | "0" => return (0, None),
        "1" => return (u32::MAX, None),
        _ => {}
    }
    let mut off = 0;
    for name in given.split(',').map(str::trim) {
        match ROWS.iter().find(|row| row.name == name) {
            Some(row) => off |= 1 << row.layout as u32,
            None => return (0, Some(name)),
        }
    }
    (off, None)
}

/// The names of the private layouts in use: see `CUPYRITE_STRICT_ABI` in the documentation.
#[pyfunction]
fn private_layouts() -> Vec<&'static str> {
    ROWS.iter()
        .filter(|row| enabled(row.layout))
        .map(|row| row.name)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_turns_off_all_or_single_tricks() {
        assert_eq!(turned_off(""), (0, None));
        assert_eq!(turned_off("0"), (0, None));
        assert_eq!(turned_off("1"), (u32::MAX, None));
        let both = (1 << PrivateLayout::Reuse as u32) | (1 << PrivateLayout::Cupy as u32);
        assert_eq!(turned_off("reuse, cupy"), (both, None));
        assert_eq!(turned_off("reuse,yes"), (0, Some("yes")));
    }

    #[test]
    fn every_trick_has_a_row_and_a_bit_of_its_own() {
        for (index, row) in ROWS.iter().enumerate() {
            assert_eq!(row.layout as usize, index);
        }
    }
}
