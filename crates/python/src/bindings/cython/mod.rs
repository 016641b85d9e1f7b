//! The Cython C API: `__pyx_capi__` of `cuda.bindings.cydriver` and its siblings.
//!
//! Cython extensions look up a C function as a capsule, whose name is the text of the function's C type. A capsule contains
//! the address of a stub ([`stubs`]), which resolves the function on its first call, as a call from Python does. Names and
//! texts are in `generated/cython.rs`.
//!
//! A call of a function whose library or symbol is missing sets a Python exception and returns the value with which the
//! declarations announce one (`except ?CUDA_ERROR_NOT_FOUND`). A thread that Python does not know gets the value only.

mod builtin;
mod stubs;

use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;

use cupyrite_sys::loader::CudaLibrary;
use cupyrite_sys::runtime::cudaChannelFormatDesc;
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::bindings::symbols;
use crate::cpython::errors::guard_or;
use crate::cpython::{Raised, attached};
use crate::generated::cython::MODULES;

pub use builtin::Builtin;

/// Added to a [`Builtin`] in [`CapsuleModule::sources`].
pub const BUILTIN: u16 = 0x8000;

/// A Cython module: a row of the generated table.
pub struct CapsuleModule {
    /// `cydriver`.
    pub name: &'static str,
    /// The library with the functions.
    pub library: CudaLibrary,
    /// Called instead of a missing function that returns a status.
    pub missing: extern "C" fn() -> c_int,
    /// Index of the first function among the stubs.
    pub first: usize,
    /// Per function: its index in the library's symbols, or [`BUILTIN`] and a [`Builtin`].
    pub sources: &'static [u16],
    /// Per function: name and text of the C type, each with a nul at its end.
    pub texts: &'static str,
}

impl CapsuleModule {
    /// Names and texts of C types, in the order of [`CapsuleModule::sources`].
    fn functions(&self) -> impl Iterator<Item = (&'static CStr, &'static CStr)> {
        let mut rest = self.texts.as_bytes();
        let mut next = move || {
            let text = CStr::from_bytes_until_nul(rest).ok()?;
            rest = &rest[text.count_bytes() + 1..];
            Some(text)
        };
        std::iter::from_fn(move || Some((next()?, next()?)))
    }
}

/// A result of a missing function that returns a status.
pub extern "C" fn missing_status<const STATUS: c_int>() -> c_int {
    STATUS
}

extern "C" fn missing_pointer() -> *const c_void {
    std::ptr::null()
}

/// -1 as a number of bytes, and -1 in both members of `CUfileError_t`, which all supported ABIs return as one word.
extern "C" fn missing_word() -> i64 {
    -1
}

extern "C" fn missing_channel_format() -> cudaChannelFormatDesc {
    cudaChannelFormatDesc::default()
}

/// The function to call instead of a missing one, by the text of its C type.
fn missing(module: &CapsuleModule, signature: &str) -> *const c_void {
    let result = signature.split('(').next().unwrap_or_default();
    match result.trim_end() {
        pointer if pointer.ends_with('*') => missing_pointer as *const c_void,
        "CUfileError_t" | "Py_ssize_t" | "long" | "void" => missing_word as *const c_void,
        "struct cudaChannelFormatDesc" => missing_channel_format as *const c_void,
        _ => module.missing as *const c_void,
    }
}

/// The function behind a stub, and whether it is resolved. Sets the exception for a missing library or symbol.
fn resolve(index: usize) -> (*const c_void, bool) {
    let Some(module) = MODULES.iter().rfind(|m| m.first <= index) else {
        return (missing_pointer as *const c_void, false);
    };
    let at = index - module.first;
    let source = module.sources[at];
    if let Some(builtin) = source.checked_sub(BUILTIN) {
        return (builtin::address(builtin), true);
    }
    match find(module, at, source as usize) {
        Some(address) => (address, true),
        None => {
            let signature = module.functions().nth(at).map(|f| f.1.to_str());
            let signature = signature.and_then(Result::ok).unwrap_or_default();
            (missing(module, signature), false)
        }
    }
}

/// The address of a library's function; `None` with an exception if it is missing.
fn find(module: &CapsuleModule, at: usize, symbol: usize) -> Option<*const c_void> {
    let with_python = attached(|_py| {
        // The caller may have an exception pending, with which resolving must not interfere.
        let mut pending = [null_mut(); 3];
        let [class, value, traceback] = &mut pending;
        // SAFETY: attached; the three references are owned until they are restored or released.
        unsafe { ffi::PyErr_Fetch(class, value, traceback) };
        let name = module.functions().nth(at).map(|f| f.0.to_str());
        let name = name.and_then(Result::ok).unwrap_or_default();
        let found = guard_or(Err(Raised), || {
            symbols::symbol_at(module.library, symbol, name)
        });
        // SAFETY: as above; the exception of a missing function replaces the pending one.
        unsafe {
            match found {
                Ok(_) => ffi::PyErr_Restore(pending[0], pending[1], pending[2]),
                Err(Raised) => pending.iter().for_each(|o| ffi::Py_XDECREF(*o)),
            }
        }
        found.ok()
    });
    // Without an interpreter, or while it shuts down.
    with_python.unwrap_or_else(|| cupyrite_sys::table(module.library).get(symbol).ok())
}

/// The capsules of a module (`cydriver`) by the names of the functions.
#[pyfunction]
fn cython_capsules<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyDict>> {
    let module = (MODULES.iter().find(|m| m.name == name)).ok_or_else(|| {
        PyValueError::new_err(format!("cython_capsules(): no table for {name:?}"))
    })?;
    let dict = PyDict::new(py);
    for (at, (function, signature)) in module.functions().enumerate() {
        let stub = stubs::address(module.first + at)?;
        // SAFETY: attached; the stub is not null, and the name lives as long as the process.
        let capsule = unsafe {
            let capsule = ffi::PyCapsule_New(stub.cast_mut(), signature.as_ptr(), None);
            Bound::from_owned_ptr_or_err(py, capsule)?
        };
        dict.set_item(function.to_str().unwrap_or_default(), capsule)?;
    }
    Ok(dict)
}

/// Adds `cython_capsules` to the native module.
///
/// # Errors
///
/// `MemoryError`.
pub fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(cython_capsules, module)?)
}
