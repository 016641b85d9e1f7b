//! `CUDAError`, `NVRTCError`, and how an error of the crate [`cupyrite`] becomes a Python exception.

use std::ffi::CStr;
use std::sync::atomic::{AtomicPtr, Ordering};

use cupyrite::Error;
use cupyrite::sys::loader::CudaLibrary;
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::bindings::symbols;
use crate::cpython::{Owned, Raised};

/// An exception class of `cuda.core`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// What the driver answers.
    Cuda,
    /// What the compiler answers.
    Nvrtc,
}

struct Row {
    class: Class,
    name: &'static CStr,
    base: Option<Class>,
    doc: &'static CStr,
}

/// In the order of [`Class`], bases first.
const CLASSES: [Row; 2] = [
    Row {
        class: Class::Cuda,
        name: c"cuda.core._utils.cuda_utils.CUDAError",
        base: None,
        doc: c"A call of the CUDA driver failed. The message begins with the status's name and says which call it was.",
    },
    Row {
        class: Class::Nvrtc,
        name: c"cuda.core._utils.cuda_utils.NVRTCError",
        base: Some(Class::Cuda),
        doc: c"A call of the run-time compiler failed. The message holds the compiler's log.",
    },
];

static MADE: [AtomicPtr<ffi::PyObject>; CLASSES.len()] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; CLASSES.len()];

impl Class {
    /// The class, kept for ever. It is there once the native module has been imported.
    pub fn get(self) -> *mut ffi::PyObject {
        let class = MADE[self as usize].load(Ordering::Acquire);
        assert!(!class.is_null(), "the exceptions are made with the module");
        class
    }

    /// An exception of this class.
    pub fn error(self, py: Python<'_>, message: String) -> PyErr {
        // SAFETY: a live class, and it is kept for ever.
        let class = unsafe { Bound::from_borrowed_ptr(py, self.get()) };
        match class.cast_into::<PyType>() {
            Ok(class) => PyErr::from_type(class, message),
            Err(error) => error.into(),
        }
    }
}

/// What a status of the driver means; None for one that is not known. For `cuda.core._utils`.
#[pyfunction]
#[pyo3(name = "_explanation")]
fn explanation(code: i32) -> Option<&'static str> {
    cupyrite::explain_status(code)
}

/// Adds the exceptions.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = core.py();
    core.add_function(wrap_pyfunction!(explanation, core)?)?;
    for row in &CLASSES {
        // SAFETY: the built-in classes are immortal and ours are kept; names and texts end with a nul.
        let made = unsafe {
            let base = match row.base {
                Some(base) => base.get(),
                None => ffi::PyExc_Exception,
            };
            Owned::take(ffi::PyErr_NewExceptionWithDoc(
                row.name.as_ptr(),
                row.doc.as_ptr(),
                base,
                std::ptr::null_mut(),
            ))
        }
        .map_err(|Raised| PyErr::fetch(py))?;
        let class = made.into_ptr();
        // The table keeps the reference for as long as the process lives.
        MADE[row.class as usize].store(class, Ordering::Release);
        let name = row.name.to_str().unwrap_or_default();
        let name = name.rsplit('.').next().unwrap_or_default();
        // SAFETY: a live object, see above.
        core.add(name, unsafe { Bound::from_borrowed_ptr(py, class) })?;
    }
    Ok(())
}

/// An error of the crate as a Python exception.
///
/// The driver's and the compiler's become `CUDAError` and `NVRTCError`, a wrong argument `ValueError`; a library that
/// is not there raises what `cuda.pathfinder` raises.
pub fn to_python(py: Python<'_>, error: &Error) -> PyErr {
    match error {
        Error::Driver { .. } => Class::Cuda.error(py, error.to_string()),
        Error::Nvrtc { .. } => Class::Nvrtc.error(py, error.to_string()),
        Error::NvJitLink { status, log, .. } => library(py, CudaLibrary::NvJitLink, status.0, log),
        Error::Nvvm { status, log, .. } => library(py, CudaLibrary::Nvvm, status.0, log),
        Error::Unsupported { .. } => Class::Cuda.error(py, error.to_string()),
        Error::Find(find) => not_found(py, &find.to_string()),
        Error::Load(load) => {
            let Raised = symbols::raise_load_error(load, "cuda.core");
            PyErr::fetch(py)
        }
        _ => PyValueError::new_err(error.to_string()),
    }
}

/// What `cuda.pathfinder` raises where bitcode is missing.
fn not_found(py: Python<'_>, text: &str) -> PyErr {
    let class = py
        .import("cuda.pathfinder")
        .and_then(|pathfinder| pathfinder.getattr("BitcodeLibNotFoundError"));
    match class.and_then(|class| class.call1((text,))) {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

/// The bindings' exception for a status of a library; its text has the library's log.
fn library(py: Python<'_>, library: CudaLibrary, status: u32, log: &str) -> PyErr {
    let Raised =
        crate::types::exceptions::raise_status(library, i64::from(status), None, None, None);
    let error = PyErr::fetch(py);
    let log = log.trim_end();
    if !log.is_empty() {
        let value = error.value(py);
        let text = format!("{value}\n{log}");
        // What cannot be added does not hide the error.
        let _ = value.setattr("args", (text,));
        let _ = value.setattr("log", log);
    }
    error
}

/// `?` for results of the crate [`cupyrite`].
pub trait OrRaise<T> {
    /// The value, or the error as [`to_python`] has it.
    ///
    /// # Errors
    ///
    /// The Python exception.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for cupyrite::Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| to_python(py, &error))
    }
}
