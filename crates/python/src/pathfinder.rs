//! The native part of `cuda.pathfinder`: its exceptions and searches.
//!
//! The exceptions are defined here, not in the Python package, so that `cuda.bindings` raises them without importing it.
//! Belongs here: converting the results of [`cupyrite_pathfinder`] to Python objects. Does not belong here: rules about
//! search locations.

use std::ffi::CStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicPtr, Ordering};

use cupyrite_pathfinder::table::{self, Origin};
use cupyrite_pathfinder::{
    FindError, FindErrorKind, FoundVia, LoadError, LoadErrorKind, LocatedPath, Platform,
};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use crate::cpython;
use crate::cpython::{Owned, Raised};
use crate::site_packages;

/// An exception class of `cuda.pathfinder`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// A library was not found.
    DynamicLibNotFound,
    /// No library has this name.
    DynamicLibUnknown,
    /// The library does not exist for this platform.
    DynamicLibNotAvailable,
    /// A bitcode library was not found.
    BitcodeLibNotFound,
    /// A static library was not found.
    StaticLibNotFound,
    /// No tool has this name.
    UnsupportedBinary,
}

struct Row {
    class: Class,
    name: &'static CStr,
    base: Option<Class>,
    doc: &'static CStr,
}

/// The rows are sorted as in [`Class`], bases first.
const CLASSES: [Row; 6] = [
    Row {
        class: Class::DynamicLibNotFound,
        name: c"cuda.pathfinder.DynamicLibNotFoundError",
        base: None,
        doc: c"A library could not be found. The message lists every place looked at and what to install.",
    },
    Row {
        class: Class::DynamicLibUnknown,
        name: c"cuda.pathfinder.DynamicLibUnknownError",
        base: Some(Class::DynamicLibNotFound),
        doc: c"No library of this name is known.",
    },
    Row {
        class: Class::DynamicLibNotAvailable,
        name: c"cuda.pathfinder.DynamicLibNotAvailableError",
        base: Some(Class::DynamicLibNotFound),
        doc: c"The library exists, but not for this platform.",
    },
    Row {
        class: Class::BitcodeLibNotFound,
        name: c"cuda.pathfinder.BitcodeLibNotFoundError",
        base: None,
        doc: c"A library in LLVM bitcode could not be found. The message lists every place looked at and what to \
               install.",
    },
    Row {
        class: Class::StaticLibNotFound,
        name: c"cuda.pathfinder.StaticLibNotFoundError",
        base: None,
        doc: c"A static library could not be found. The message lists every place looked at and what to install.",
    },
    Row {
        class: Class::UnsupportedBinary,
        name: c"cuda.pathfinder.UnsupportedBinaryError",
        base: None,
        doc: c"No tool of this name is known. Its attribute ``utility`` is the name that was asked for.",
    },
];

const _: () = {
    let mut index = 0;
    while index < CLASSES.len() {
        assert!(CLASSES[index].class as usize == index);
        index += 1;
    }
};

static MADE: [AtomicPtr<ffi::PyObject>; CLASSES.len()] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; CLASSES.len()];

impl Class {
    /// The class, which is never freed. `init` creates it when the module is imported, before any use.
    pub fn get(self) -> *mut ffi::PyObject {
        let class = MADE[self as usize].load(Ordering::Acquire);
        assert!(!class.is_null(), "the exceptions are made with the module");
        class
    }

    fn error(self, py: Python<'_>, message: String) -> PyErr {
        // SAFETY: `get` returns a live class, which is never freed.
        let class = unsafe { Bound::from_borrowed_ptr(py, self.get()) };
        match class.cast_into::<PyType>() {
            Ok(class) => PyErr::from_type(class, message),
            Err(error) => error.into(),
        }
    }
}

/// Adds the exceptions and the functions below.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    for row in &CLASSES {
        // SAFETY: the built-in classes are immortal, and `MADE` keeps the base classes alive. Names and texts end with a
        // nul.
        let made = unsafe {
            let base = match row.base {
                Some(base) => base.get(),
                // Unknown static and bitcode libraries raise `ValueError` too.
                None if row.class == Class::UnsupportedBinary => ffi::PyExc_ValueError,
                None => ffi::PyExc_RuntimeError,
            };
            Owned::take(ffi::PyErr_NewExceptionWithDoc(
                row.name.as_ptr(),
                row.doc.as_ptr(),
                base,
                std::ptr::null_mut(),
            ))
        }
        .map_err(|Raised| PyErr::fetch(py))?;
        // SAFETY: `made` owns the class and keeps it alive.
        let class = unsafe { Bound::from_borrowed_ptr(py, made.ptr()) };
        module.add(class.getattr("__name__")?.cast_into::<PyString>()?, class)?;
        // `MADE` keeps this reference and never releases it.
        MADE[row.class as usize].store(made.into_ptr(), Ordering::Release);
    }
    module.add_function(wrap_pyfunction!(find_names, module)?)?;
    module.add_function(wrap_pyfunction!(find_cuda_path_or_home, module)?)?;
    module.add_function(wrap_pyfunction!(load_library, module)?)?;
    module.add_function(wrap_pyfunction!(find_header_directory, module)?)?;
    module.add_function(wrap_pyfunction!(find_binary, module)?)?;
    module.add_function(wrap_pyfunction!(find_static_library, module)?)?;
    module.add_function(wrap_pyfunction!(find_bitcode_library, module)?)
}

/// Sets the exception for a library that could not be loaded. `message` is the complete text.
///
/// A file that exists but does not load (`failed`) raises `RuntimeError` itself, caused by an `OSError`. Programs that
/// tolerate a library that is not installed therefore do not ignore a broken one.
pub fn raise(py: Python<'_>, failed: bool, message: String) -> Raised {
    cpython::set(error(py, Class::DynamicLibNotFound, failed, message))
}

fn error(py: Python<'_>, class: Class, failed: bool, message: String) -> PyErr {
    if !failed {
        return class.error(py, message);
    }
    let cause = PyOSError::new_err(message.lines().next().unwrap_or_default().to_owned());
    let error = PyRuntimeError::new_err(message);
    error.set_cause(py, Some(cause));
    error
}

fn load_error(py: Python<'_>, error_: &LoadError) -> PyErr {
    let class = match error_.kind {
        LoadErrorKind::Unknown => Class::DynamicLibUnknown,
        LoadErrorKind::NotAvailable => Class::DynamicLibNotAvailable,
        LoadErrorKind::NotFound | LoadErrorKind::Failed | LoadErrorKind::InvalidSetting => {
            Class::DynamicLibNotFound
        }
    };
    let failed = error_.kind == LoadErrorKind::Failed;
    error(py, class, failed, error_.to_string())
}

/// A path as Python represents it: a `str` in the file system encoding, which round-trips to the same bytes.
pub struct FileName(pub PathBuf);

impl<'py> IntoPyObject<'py> for FileName {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let bytes = self.0.as_os_str().as_bytes();
        // SAFETY: `bytes` is readable for its length.
        let made = unsafe {
            ffi::PyUnicode_DecodeFSDefaultAndSize(bytes.as_ptr().cast(), bytes.len().cast_signed())
        };
        match Owned::take(made) {
            // SAFETY: `into_ptr` transfers a new reference.
            Ok(made) => Ok(unsafe { Bound::from_owned_ptr(py, made.into_ptr()) }),
            Err(Raised) => Err(PyErr::fetch(py)),
        }
    }
}

/// (SUPPORTED_NVIDIA_LIBNAMES, SUPPORTED_HEADERS_CTK, SUPPORTED_BINARY_UTILITIES, SUPPORTED_STATIC_LIBS,
/// SUPPORTED_BITCODE_LIBS) of this platform.
#[pyfunction]
fn find_names(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
    let platform = Platform::CURRENT;
    let archives = |rows: &'static [table::LinkableFile]| {
        let there =
            |row: &&table::LinkableFile| !platform.is_windows() || !row.windows_file.is_empty();
        let names: Vec<&str> = rows.iter().filter(there).map(|row| row.name).collect();
        PyTuple::new(py, names)
    };
    let libraries: Vec<&str> = table::LIBRARIES
        .iter()
        .filter(|row| row.origin == Origin::Toolkit && !row.names(platform).is_empty())
        .map(|row| row.name)
        .collect();
    let headers = PyDict::new(py);
    for row in table::HEADERS {
        if row.origin == Origin::Toolkit && (!platform.is_windows() || row.on_windows) {
            headers.set_item(row.name, row.header)?;
        }
    }
    let binaries: Vec<&str> = table::BINARIES.iter().map(|row| row.name).collect();
    PyTuple::new(
        py,
        [
            PyTuple::new(py, libraries)?.into_any(),
            headers.into_any(),
            PyTuple::new(py, binaries)?.into_any(),
            archives(table::STATIC_LIBRARIES)?.into_any(),
            archives(table::BITCODE_LIBRARIES)?.into_any(),
        ],
    )
}

/// `CUDA_PATH`, or else `CUDA_HOME`, as it is set; None where neither is.
#[pyfunction]
fn find_cuda_path_or_home() -> Option<FileName> {
    cupyrite_pathfinder::cuda_path_or_home().map(FileName)
}

/// Finds and loads a library: (path, whether it was loaded before, handle, how it was found).
#[pyfunction]
fn load_library(
    py: Python<'_>,
    name: &Bound<'_, PyString>,
) -> PyResult<(FileName, bool, usize, String)> {
    site_packages::refresh(py);
    let name = name.to_string_lossy();
    let loaded = py
        .detach(|| cupyrite_pathfinder::load(&name))
        .map_err(|error| load_error(py, &error))?;
    Ok((
        FileName(loaded.path),
        loaded.found_via == FoundVia::AlreadyLoaded,
        loaded.handle.0.addr(),
        loaded.found_via.to_string(),
    ))
}

/// Finds a folder of headers: (path, how it was found), or None.
#[pyfunction]
fn find_header_directory(
    py: Python<'_>,
    name: &Bound<'_, PyString>,
) -> PyResult<Option<(FileName, String)>> {
    find(py, name, cupyrite_pathfinder::find_header_directory)
        .map(|found| found.map(path_and_origin))
        .map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

/// Finds a tool: (path, how it was found), or None.
#[pyfunction]
fn find_binary(py: Python<'_>, name: &Bound<'_, PyString>) -> PyResult<Option<(FileName, String)>> {
    find(py, name, cupyrite_pathfinder::find_binary)
        .map(|found| found.map(path_and_origin))
        .map_err(|error| {
            if error.kind != FindErrorKind::Unknown {
                return PyRuntimeError::new_err(error.to_string());
            }
            let raised = Class::UnsupportedBinary.error(py, error.to_string());
            match raised.value(py).setattr("utility", name) {
                Ok(()) => raised,
                Err(other) => other,
            }
        })
}

/// Finds a static library: (path, how it was found).
#[pyfunction]
fn find_static_library(py: Python<'_>, name: &Bound<'_, PyString>) -> PyResult<(FileName, String)> {
    find(py, name, cupyrite_pathfinder::locate_static_library)
        .map(path_and_origin)
        .map_err(|error| archive_error(py, Class::StaticLibNotFound, &error))
}

/// Finds a library in LLVM bitcode: (path, how it was found).
#[pyfunction]
fn find_bitcode_library(
    py: Python<'_>,
    name: &Bound<'_, PyString>,
) -> PyResult<(FileName, String)> {
    find(py, name, cupyrite_pathfinder::locate_bitcode_library)
        .map(path_and_origin)
        .map_err(|error| archive_error(py, Class::BitcodeLibNotFound, &error))
}

/// Runs a search without the GIL.
fn find<T: Send>(
    py: Python<'_>,
    name: &Bound<'_, PyString>,
    search: fn(&str) -> Result<T, FindError>,
) -> Result<T, FindError> {
    site_packages::refresh(py);
    let name = name.to_string_lossy();
    py.detach(|| search(&name))
}

fn path_and_origin(found: LocatedPath) -> (FileName, String) {
    (FileName(found.path), found.found_via.to_string())
}

fn archive_error(py: Python<'_>, class: Class, error: &FindError) -> PyErr {
    match error.kind {
        FindErrorKind::Unknown | FindErrorKind::NotAvailable => {
            PyValueError::new_err(error.to_string())
        }
        FindErrorKind::NotFound | FindErrorKind::InvalidSetting => {
            class.error(py, error.to_string())
        }
    }
}
