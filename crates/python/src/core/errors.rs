//! `CUDAError`, `NVRTCError`, and the conversion of errors of crate [`cupyrite`] to Python exceptions.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use cupyrite::sys::driver::CUresult;
use cupyrite::sys::loader::CudaLibrary;
use cupyrite::{Error, UNUSABLE_CONTEXT};
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::bindings::symbols;
use crate::cpython::{Owned, Raised};

/// An exception class of `cuda.core`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExceptionClass {
    /// Driver errors.
    Cuda,
    /// NVRTC errors.
    Nvrtc,
}

struct ExceptionSpec {
    class: ExceptionClass,
    name: &'static CStr,
    base: Option<ExceptionClass>,
    doc: &'static CStr,
}

/// In the order of [`ExceptionClass`], base classes first.
const CLASSES: [ExceptionSpec; 2] = [
    ExceptionSpec {
        class: ExceptionClass::Cuda,
        name: c"cuda.core._utils.cuda_utils.CUDAError",
        base: None,
        doc: c"A call of the CUDA driver failed. The message begins with the name of the status and names the function.",
    },
    ExceptionSpec {
        class: ExceptionClass::Nvrtc,
        name: c"cuda.core._utils.cuda_utils.NVRTCError",
        base: Some(ExceptionClass::Cuda),
        doc: c"A call of NVRTC failed. The message contains the compilation log.",
    },
];

static CREATED: [AtomicPtr<ffi::PyObject>; CLASSES.len()] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; CLASSES.len()];

impl ExceptionClass {
    /// The class, a static object. Available once the native module has been imported.
    pub fn get(self) -> *mut ffi::PyObject {
        let class = CREATED[self as usize].load(Ordering::Acquire);
        assert!(
            !class.is_null(),
            "the exception classes are created with the module"
        );
        class
    }

    /// Creates an exception of this class.
    pub fn error(self, py: Python<'_>, message: String) -> PyErr {
        // SAFETY: a live, static class.
        let class = unsafe { Bound::from_borrowed_ptr(py, self.get()) };
        match class.cast_into::<PyType>() {
            Ok(class) => PyErr::from_type(class, message),
            Err(error) => error.into(),
        }
    }
}

/// Description of a driver status; None if unknown. Used by `cuda.core._utils`.
#[pyfunction]
#[pyo3(name = "_explanation")]
fn explanation(code: i32) -> Option<&'static str> {
    cupyrite::explain_status(code)
}

/// Adds the exception classes.
///
/// # Errors
///
/// Python errors.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = core.py();
    core.add_function(wrap_pyfunction!(explanation, core)?)?;
    for row in &CLASSES {
        // SAFETY: built-in classes are immortal, and ours are never released; names and texts are NUL-terminated.
        let created = unsafe {
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
        let class = created.into_ptr();
        // The table keeps the reference for the lifetime of the process.
        CREATED[row.class as usize].store(class, Ordering::Release);
        let name = row.name.to_str().unwrap_or_default();
        let name = name.rsplit('.').next().unwrap_or_default();
        // SAFETY: a live object, see above.
        core.add(name, unsafe { Bound::from_borrowed_ptr(py, class) })?;
    }
    Ok(())
}

/// Functions of the crate whose counterparts in `cuda.core` have another name than [`python_name`]'s rule gives.
const RENAMED: &[(&str, &str)] = &[
    ("Context::create_green_stream", "Context.create_stream"),
    ("Device::create_green_context", "Device.create_context"),
    ("DeviceBuffer", "Buffer"),
    ("Event::ipc_handle", "Event.ipc_descriptor"),
    ("Event::milliseconds_since", "Event.__sub__"),
    ("Graph::set_child", "ChildGraphNode.update"),
    ("Graph::set_kernel", "ExecutableKernelNode.update"),
    ("GraphBuilder::begin", "GraphBuilder.begin_building"),
    ("GraphBuilder::begin_into", "GraphBuilder.begin_building"),
    ("GraphBuilder::end", "GraphBuilder.end_building"),
    (
        "GraphDefinition::write_dot",
        "GraphDefinition.debug_dot_print",
    ),
    ("Kernel::launch", "launch"),
    ("Library::global", "ObjectCode.get_global"),
    ("Library::kernel", "ObjectCode.get_kernel"),
    ("ObjectCode::bytes", "ObjectCode.code"),
    ("ObjectCode::kernel", "ObjectCode.get_kernel"),
    ("TensorMap::new", "StridedMemoryView.as_tensor_map"),
    (
        "TensorMap::replace_address",
        "TensorMapDescriptor.replace_address",
    ),
    ("TextureResource::linear", "ResourceDescriptor.from_linear"),
    (
        "TextureResource::pitch2d",
        "ResourceDescriptor.from_pitch2d",
    ),
    ("copy_batch_async", "copy_batch"),
    ("fill", "Buffer.fill"),
];

/// The function's name in Python, without parentheses, for messages: `SmResource::split` is `SMResource.split`, and
/// `OpaqueArray::new` is `OpaqueArray`.
fn python_name(function: &str) -> String {
    if let Some((_, name)) = RENAMED.iter().find(|(rust, _)| *rust == function) {
        return (*name).to_owned();
    }
    let function = function.strip_suffix("::new").unwrap_or(function);
    match function.split_once("::") {
        Some(("SmResource", method)) => format!("SMResource.{method}"),
        _ => function.replace("::", "."),
    }
}

/// The message for an invalid argument.
fn invalid_argument(function: &str, parameter: &str, problem: &str) -> String {
    let function = python_name(function);
    // A problem is a predicate ("is 3; expected 1") or a statement.
    let is_predicate = [
        "is ",
        "are ",
        "was ",
        "has ",
        "contains ",
        "belongs ",
        "asks ",
        "does ",
        "names ",
    ]
    .iter()
    .any(|verb| problem.starts_with(verb));
    match (parameter, is_predicate) {
        ("self", true) => format!("{function}(): the object {problem}"),
        ("self", false) => format!("{function}(): {problem}"),
        (_, true) => format!("{function}() argument '{parameter}' {problem}"),
        (_, false) => format!("{function}() argument '{parameter}': {problem}"),
    }
}

/// The text of an error in Python's terms.
pub fn message(error: &Error) -> String {
    match error {
        Error::Unsupported { function, problem } => {
            format!("{}(): {problem}", python_name(function))
        }
        Error::InvalidArgument {
            function,
            parameter,
            problem,
        } => invalid_argument(function, parameter, problem),
        _ => error.to_string(),
    }
}

/// Whether an exception with a status that leaves its context unusable was made.
static CONTEXT_ERROR: AtomicBool = AtomicBool::new(false);

/// Whether the program was told that a context is unusable. Destructors that fail for this reason then report nothing: each
/// object of the context would.
pub fn is_context_error_known() -> bool {
    CONTEXT_ERROR.load(Ordering::Relaxed)
}

/// Whether an exception is a `CUDAError` with a status that leaves its context unusable.
pub fn is_context_error(py: Python<'_>, error: &PyErr) -> bool {
    // SAFETY: a live, static class.
    let class = unsafe { Bound::from_borrowed_ptr(py, ExceptionClass::Cuda.get()) };
    error.is_instance(py, &class)
        && error.value(py).str().is_ok_and(|text| {
            let text = text.to_string_lossy();
            // As `Display` of the error begins.
            text.split_once(':').is_some_and(|(name, _)| {
                UNUSABLE_CONTEXT
                    .iter()
                    .any(|status| status.name() == Some(name))
            })
        })
}

/// Converts an error of the crate to a Python exception.
///
/// Driver and NVRTC errors become `CUDAError` and `NVRTCError`, an invalid argument `ValueError`; a missing library
/// raises the exceptions of `cuda.pathfinder`.
pub fn to_python(py: Python<'_>, error: &Error) -> PyErr {
    match error {
        // The CPU device's status of a wait that a signal handler has ended.
        Error::Driver {
            status: CUresult::CUDA_ERROR_LAUNCH_TIMEOUT,
            ..
        } if symbols::check_interrupt().is_err() => PyErr::fetch(py),
        Error::Driver { .. } => {
            if error.leaves_context_unusable() {
                CONTEXT_ERROR.store(true, Ordering::Relaxed);
            }
            ExceptionClass::Cuda.error(py, error.to_string())
        }
        Error::Nvrtc { .. } => ExceptionClass::Nvrtc.error(py, error.to_string()),
        Error::NvJitLink { status, log, .. } => library(py, CudaLibrary::NvJitLink, status.0, log),
        Error::Nvvm { status, log, .. } => library(py, CudaLibrary::Nvvm, status.0, log),
        Error::Unsupported { .. } => ExceptionClass::Cuda.error(py, message(error)),
        Error::Find(find) => not_found(py, &find.to_string()),
        Error::Load(load) => {
            let Raised = symbols::raise_load_error(load, "cuda.core");
            PyErr::fetch(py)
        }
        _ => PyValueError::new_err(message(error)),
    }
}

/// The exception of `cuda.pathfinder` for missing bitcode.
fn not_found(py: Python<'_>, text: &str) -> PyErr {
    let class = py
        .import("cuda.pathfinder")
        .and_then(|pathfinder| pathfinder.getattr("BitcodeLibNotFoundError"));
    match class.and_then(|class| class.call1((text,))) {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

/// The bindings' exception for a status of a library, with the library's log in its message.
fn library(py: Python<'_>, library: CudaLibrary, status: u32, log: &str) -> PyErr {
    let module = crate::types::Module::first(library);
    let Raised =
        crate::bindings::exceptions::raise_status(module, i64::from(status), None, None, None);
    let error = PyErr::fetch(py);
    let log = log.trim_end();
    if !log.is_empty() {
        let value = error.value(py);
        let text = format!("{value}\n{log}");
        // A failure to add the log must not hide the error.
        let _ = value.setattr("args", (text,));
        let _ = value.setattr("log", log);
    }
    error
}

/// Converts results of crate [`cupyrite`] for use with `?`.
pub trait OrRaise<T> {
    /// The value, or the error converted by [`to_python`].
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
