//! `cuda.bindings`: Python functions built from descriptors.
//!
//! Each function is a row of a table in `generated/` ([`descriptor`]). [`function`] is its Python object; [`call`] contains
//! the routes of a call. [`raising`] serves functions that raise for a bad status; [`custom`] has code for single functions, [`cython`] the
//! C functions for Cython extensions.
//! [`lazy_module`] fills the Python modules with functions, exceptions and the types of [`crate::types`], which does not
//! depend on this module.

pub mod call;
pub mod custom;
pub mod cython;
pub mod descriptions;
pub mod descriptor;
pub mod docstring;
pub mod errors;
pub mod exceptions;
pub mod function;
pub mod kernel_parameters;
pub mod last_error;
pub mod lazy_module;
pub mod raising;
pub mod symbols;

use pyo3::prelude::*;

use crate::cpython::{Obj, Raised};

/// Adds `lazy_module`, `fast_enum` and `cython_capsules`, which the Python packages call, to the native module.
///
/// # Errors
///
/// Any exception raised while adding them.
pub fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // SAFETY: `Bound` proves that the module is live and the thread attached.
    lazy_module::init(unsafe { Obj::new(module.as_ptr()) })
        .map_err(|Raised| PyErr::fetch(module.py()))?;
    cython::init(module)
}
