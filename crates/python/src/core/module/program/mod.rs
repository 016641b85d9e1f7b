//! `Program` and `ProgramOptions`.

pub mod cache;
pub mod options;

use std::sync::{Arc, Mutex, PoisonError};

use cupyrite::{CodeKind, Compiler, CompilerBackend, PchStatus, Program, SourceKind};
use pyo3::exceptions::{
    PyAttributeError, PyDeprecationWarning, PyRuntimeError, PyTypeError, PyUserWarning,
    PyValueError,
};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::core::errors::OrRaise;
use crate::core::module::object_code;
use crate::core::numbers;
use crate::core::options::OptionClass;
use crate::core::wait;
use crate::cpython::Raised;
use crate::site_packages;
use crate::types;
use crate::types::table;

/// Adds the classes and the functions behind their Python code.
///
/// # Errors
///
/// Python errors.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    cache::init(core)?;
    core.add_class::<PyProgram>()?;
    core.add_function(wrap_pyfunction!(options::prepare_program_options, core)?)?;
    core.add_function(wrap_pyfunction!(options::program_options_as_bytes, core)?)
}

/// `str(value).lower()` of a str or an enumeration member; empty for other types.
fn lower(value: &Bound<'_, PyAny>) -> PyResult<String> {
    match value.cast::<PyString>() {
        Ok(text) => Ok(text.to_string_lossy().to_lowercase()),
        Err(_) => Ok(String::new()),
    }
}

/// Code format with a name such as `"ptx"`, case-insensitive.
fn kind_of(value: &Bound<'_, PyAny>) -> PyResult<Option<CodeKind>> {
    Ok(match lower(value)?.as_str() {
        "ptx" => Some(CodeKind::Ptx),
        "cubin" => Some(CodeKind::Cubin),
        "ltoir" => Some(CodeKind::LtoIr),
        _ => None,
    })
}

/// Targets of a source language.
fn targets(source: SourceKind) -> &'static [(CodeKind, &'static str)] {
    const PTX: (CodeKind, &str) = (CodeKind::Ptx, "ptx");
    const CUBIN: (CodeKind, &str) = (CodeKind::Cubin, "cubin");
    const LTO_IR: (CodeKind, &str) = (CodeKind::LtoIr, "ltoir");
    match source {
        SourceKind::Cxx => &[PTX, CUBIN, LTO_IR],
        SourceKind::Ptx => &[CUBIN, PTX],
        SourceKind::Nvvm => &[PTX, LTO_IR],
    }
}

/// Member of an enumeration of `cuda.core.typing`.
fn member<'py>(py: Python<'py>, class: &str, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import(intern!(py, "cuda.core.typing"))?
        .getattr(class)?
        .getattr(name)
}

/// Source code with its compiler.
///
/// Parameters
/// ----------
/// code : str, bytes or bytearray
///     Source code: CUDA C++ or PTX as str; NVVM IR as text (str or bytes) or bitcode (bytes or bytearray).
/// code_type : str or SourceCodeType
///     ``"c++"``, ``"ptx"`` or ``"nvvm"``, case-insensitive.
/// options : ProgramOptions or dict, optional
///     Compiler options.
///
/// Raises
/// ------
/// RuntimeError
///     `code_type` is invalid.
/// TypeError, ValueError
///     `code` or an option has an invalid type or value.
///
/// See https://docs.nvidia.com/cuda/cuda-python/latest/.
#[doc = example!("cuda.core.Program")]
#[pyclass(
    frozen,
    subclass,
    weakref,
    module = "cuda.core._program",
    name = "Program"
)]
pub struct PyProgram {
    source: SourceKind,
    backend: CompilerBackend,
    /// `None` if closed. Locked only to clone or take the compiler, not during compilation.
    compiler: Mutex<Option<Arc<Compiler>>>,
    /// The argument `options`, for pickling, and its values when the program was created.
    options: Option<(Py<PyAny>, cupyrite::ProgramOptions)>,
}

impl PyProgram {
    fn live(&self) -> Option<Arc<Compiler>> {
        self.compiler
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn open(&self) -> PyResult<Arc<Compiler>> {
        self.live()
            .ok_or_else(|| PyRuntimeError::new_err("this Program was closed and cannot compile"))
    }
}

fn source_kind(code_type: &Bound<'_, PyAny>) -> PyResult<SourceKind> {
    match lower(code_type)?.as_str() {
        "c++" => Ok(SourceKind::Cxx),
        "ptx" => Ok(SourceKind::Ptx),
        "nvvm" => Ok(SourceKind::Nvvm),
        _ => Err(PyRuntimeError::new_err(format!(
            "Program() argument 'code_type' is {}; expected 'c++', 'ptx' or 'nvvm'",
            code_type.repr()?
        ))),
    }
}

/// Whether a source is the path of a source file: CUDA C++ and PTX without any of the characters excluded here declare
/// nothing.
fn is_path(source: &str) -> bool {
    const SUFFIXES: [&str; 8] = [".cu", ".cuh", ".cpp", ".cc", ".cxx", ".h", ".hpp", ".ptx"];
    source.len() < 4096
        && SUFFIXES.iter().any(|suffix| source.ends_with(suffix))
        && !source.starts_with("//")
        && !source.contains(['\n', ';', '{', '}', '"', '<', '#', '*'])
}

/// The program described by the arguments of `Program()`.
fn program(
    function: &str,
    code: &Bound<'_, PyAny>,
    source: SourceKind,
    options: cupyrite::ProgramOptions,
) -> PyResult<Program> {
    let program = match source {
        SourceKind::Cxx | SourceKind::Ptx => {
            let Ok(text) = code.cast::<PyString>() else {
                return Err(PyTypeError::new_err(format!(
                    "{function} argument 'code' is of type {}; expected CUDA C++ or PTX as str",
                    code.get_type().name()?
                )));
            };
            let text = text.to_str()?;
            if is_path(text) {
                return Err(PyValueError::new_err(format!(
                    "{function} argument 'code' is {}, a path; expected the source itself: \
                     pathlib.Path({0}).read_text()",
                    code.repr()?
                )));
            }
            if source == SourceKind::Cxx {
                Program::new(text)
            } else {
                Program::from_ptx(text)
            }
        }
        SourceKind::Nvvm => match options::bytes_of(code)? {
            Some(bytes) => Program::from_nvvm(bytes),
            None => {
                return Err(PyTypeError::new_err(format!(
                    "{function} argument 'code' is of type {}; expected NVVM IR as str, bytes or bytearray",
                    code.get_type().name()?
                )));
            }
        },
    };
    Ok(program.with_options(options))
}

/// The option class `ProgramOptions`.
static OPTIONS: OptionClass = OptionClass::new("cuda.core._program", "ProgramOptions");

/// Converts an options argument: an instance, a dict of fields, or None.
fn accept_options(given: Option<&Bound<'_, PyAny>>) -> PyResult<cupyrite::ProgramOptions> {
    match given.filter(|given| !given.is_none()) {
        Some(given) => options::read(&OPTIONS.convert("Program", "options", given)?, true),
        None => Ok(cupyrite::ProgramOptions::default()),
    }
}

/// Converts a name expression for NVRTC.
fn expression(given: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = given.cast::<PyString>() {
        return Ok(text.to_str()?.to_owned());
    }
    if let Ok(bytes) = given.cast::<PyBytes>() {
        return match std::str::from_utf8(bytes.as_bytes()) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(PyValueError::new_err(format!(
                "compile() argument 'name_expressions': {} is not UTF-8",
                given.repr()?
            ))),
        };
    }
    Err(PyTypeError::new_err(format!(
        "compile() argument 'name_expressions' contains an item of type {}; expected str or bytes",
        given.get_type().name()?
    )))
}

#[pymethods]
impl PyProgram {
    /// Only for attributes that do not exist: `get_kernel` belongs to what `compile` returns.
    fn __getattr__<'py>(
        slf: &Bound<'py, PyProgram>,
        name: &Bound<'py, PyString>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if name.to_str()? == "get_kernel" {
            return Err(PyAttributeError::new_err(
                "a Program has no attribute 'get_kernel': compile it first, as in \
                 program.compile(\"cubin\").get_kernel(\"name\")",
            ));
        }
        // SAFETY: both objects are live. Fails again, with Python's message.
        unsafe {
            Bound::from_owned_ptr_or_err(
                py,
                ffi::PyObject_GenericGetAttr(slf.as_ptr(), name.as_ptr()),
            )
        }
    }

    #[new]
    #[pyo3(signature = (code, code_type, options=None))]
    fn new(
        py: Python<'_>,
        code: &Bound<'_, PyAny>,
        code_type: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyProgram> {
        let source = source_kind(code_type)?;
        let given = options.filter(|given| !given.is_none());
        let options = accept_options(given)?;
        let kept = given.map(|given| (given.clone().unbind(), options.clone()));
        if source == SourceKind::Ptx && options.numba_debug == Some(true) {
            let category = py.get_type::<PyUserWarning>();
            let message =
                c"numba_debug has no effect on a PTX program: the linker does not support it";
            PyErr::warn(py, &category, message, 1)?;
        }
        let program = program("Program()", code, source, options)?;
        site_packages::refresh(py);
        let compiler = py.detach(|| program.compiler()).or_raise(py)?;
        Ok(PyProgram {
            source,
            backend: compiler.backend(),
            compiler: Mutex::new(Some(Arc::new(compiler))),
            options: kept,
        })
    }

    /// Compiles to PTX, a cubin or LTO IR.
    ///
    /// Parameters
    /// ----------
    /// target_type : str or ObjectCodeFormatType
    ///     ``"ptx"``, ``"cubin"`` or ``"ltoir"``. PTX programs compile to cubin and PTX, NVVM IR to PTX and LTO IR.
    /// name_expressions : iterable of str or bytes, optional
    ///     C++ names of kernels, functions and variables, including template instances, that the result must resolve.
    /// logs : object, optional
    ///     An object with a method ``write(str)``, which receives the log of a successful compilation.
    /// cache : ProgramCacheResource, optional
    ///     Cache for lookup and storage of the compiled code. Of the threads and processes that miss the same code at once, one
    ///     compiles, and the others wait for its result. An `OSError` of the cache is a `RuntimeWarning`.
    ///
    /// Returns
    /// -------
    /// ObjectCode
    ///
    /// Raises
    /// ------
    /// NVRTCError, cuda.bindings.nvvm.nvvmError, cuda.bindings.nvjitlink.nvJitLinkError
    ///     The source or an option is invalid; the message contains the compiler's log.
    /// ValueError
    ///     `target_type` is not a target of this source language.
    /// RuntimeError
    ///     The program was closed.
    #[doc = example!("cuda.core.Program.compile")]
    #[pyo3(signature = (target_type, name_expressions=None, logs=None, *, cache=None),
           text_signature = "(self, target_type, name_expressions=(), logs=None, *, cache=None)")]
    fn compile<'py>(
        &self,
        py: Python<'py>,
        target_type: &Bound<'py, PyAny>,
        name_expressions: Option<&Bound<'py, PyAny>>,
        logs: Option<&Bound<'py, PyAny>>,
        cache: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let compiler = self.open()?;
        let expected = targets(self.source);
        let target = kind_of(target_type)?.filter(|kind| expected.iter().any(|row| row.0 == *kind));
        let Some(target) = target else {
            let names: Vec<String> = expected.iter().map(|row| format!("{:?}", row.1)).collect();
            return Err(PyValueError::new_err(format!(
                "compile() argument 'target_type' is {}; expected for this source: {}",
                target_type.repr()?,
                names.join(", ").replace('"', "'")
            )));
        };
        let mut given = Vec::new();
        if let Some(list) = name_expressions {
            if list.is_instance_of::<PyString>() || list.is_instance_of::<PyBytes>() {
                return Err(PyTypeError::new_err(format!(
                    "compile() argument 'name_expressions' is {}; expected a list or tuple of names",
                    list.repr()?
                )));
            }
            let what = || "compile() argument 'name_expressions'".to_owned();
            for item in numbers::elements_of(list, what, "a list or tuple of names")? {
                given.push(item?);
            }
        }
        let expressions: Vec<String> = given.iter().map(expression).collect::<PyResult<_>>()?;
        if let Some(logs) = logs
            && !logs.hasattr(intern!(py, "write"))?
        {
            return Err(PyAttributeError::new_err(format!(
                "compile() argument 'logs' is of type {}; expected an object with a method write()",
                logs.get_type().name()?
            )));
        }
        let cache = cache
            .map(|cache| cache::CacheAccess::new(cache, &compiler, target, &given))
            .transpose()?;
        let compile = || {
            let code = wait::for_compilation(py, |interrupted| {
                compiler.compile_unless(target, &expressions, interrupted)
            })?;
            let symbols = PyDict::new(py);
            for (key, expression) in given.iter().zip(&expressions) {
                // Only CUDA C++ has names that are mangled.
                if let Some(name) = code.lowered_name(expression) {
                    symbols.set_item(key, PyBytes::new(py, name.as_bytes()))?;
                }
            }
            let created = object_code::make_with(py, code.clone(), symbols)?;
            Ok((created, code))
        };
        let (object, compiled) = match cache {
            Some(cache) => cache.find_or_compile(compile)?,
            None => compile().map(|(created, code)| (created, Some(code)))?,
        };
        // After the cache has released its lock: this is code of the program.
        if let (Some(logs), Some(code)) = (logs, &compiled)
            && !code.log().is_empty()
        {
            logs.call_method1(intern!(py, "write"), (code.log(),))?;
        }
        Ok(object)
    }

    /// Former name of :meth:`compile` for PTX programs.
    ///
    /// Parameters
    /// ----------
    /// target_type : str
    ///     ``"cubin"`` or ``"ptx"``.
    /// logs : object, optional
    ///     As for :meth:`compile`.
    ///
    /// .. deprecated:: 1.0
    ///    Use ``compile``.
    #[pyo3(signature = (target_type, logs=None))]
    fn link<'py>(
        &self,
        py: Python<'py>,
        target_type: &Bound<'py, PyAny>,
        logs: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        if self.source != SourceKind::Ptx {
            return Err(PyRuntimeError::new_err(
                "Program.link() requires a PTX program; compile this program and pass the result to a Linker",
            ));
        }
        let category = py.get_type::<PyDeprecationWarning>();
        PyErr::warn(
            py,
            &category,
            c"Program.link() is deprecated; use Program.compile()",
            1,
        )?;
        self.compile(py, target_type, None, logs, None)
    }

    /// Releases the compiler. Compiled code stays valid. Further calls do nothing.
    fn close(&self, py: Python<'_>) {
        let compiler = self
            .compiler
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        py.detach(|| drop(compiler));
    }

    /// Handle of the compiler: a `cuda.bindings.nvrtc.nvrtcProgram`, or the address of the libNVVM program or linker as
    /// an int. 0 if closed.
    #[doc = example!("cuda.core.Program.handle")]
    #[getter]
    fn handle<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let value = self.live().map_or(0, |live| live.handle() as u64);
        if self.source != SourceKind::Cxx {
            return Ok(value.into_pyobject(py)?.into_any());
        }
        let id = table::class_named(table::Module::Nvrtc, "nvrtcProgram")
            .ok_or_else(|| PyRuntimeError::new_err("the bindings have no class nvrtcProgram"))?;
        types::new_handle(id, value)
            .map(|handle| handle.into_bound(py))
            .map_err(|Raised| PyErr::fetch(py))
    }

    /// The compiler: a `CompilerBackendType`.
    #[getter]
    fn backend<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let name = match self.backend {
            CompilerBackend::Nvrtc => "NVRTC",
            CompilerBackend::Nvvm => "NVVM",
            CompilerBackend::NvJitLink => "NVJITLINK",
            CompilerBackend::Driver => "DRIVER",
        };
        member(py, "CompilerBackendType", name)
    }

    /// Whether :meth:`close` was called.
    #[getter]
    fn is_closed(&self) -> bool {
        self.live().is_none()
    }

    /// Result of creating a precompiled header in the last :meth:`compile`: a `PCHStatusType`.
    ///
    /// ``"created"``, ``"not_attempted"`` or ``"failed"``; None if the options request none (``pch`` and
    /// ``create_pch``), if the last compilation failed or there was none, or if NVRTC is older than CUDA 12.8.
    #[doc = example!("cuda.core.Program.pch_status")]
    #[getter]
    fn pch_status<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let name = match self.live().and_then(|live| live.pch_status()) {
            None => return Ok(None),
            Some(PchStatus::Created) => "CREATED",
            Some(PchStatus::NotAttempted) => "NOT_ATTEMPTED",
            Some(PchStatus::Failed) => "FAILED",
        };
        member(py, "PCHStatusType", name).map(Some)
    }

    fn __repr__(&self) -> String {
        let name = match self.backend {
            CompilerBackend::Nvrtc => "NVRTC",
            CompilerBackend::Nvvm => "NVVM",
            CompilerBackend::NvJitLink => "nvJitLink",
            CompilerBackend::Driver => "driver",
        };
        format!("<Program backend='{name}'>")
    }

    /// Pickles the source and the options: unpickling creates the compiler anew.
    fn __reduce__<'py>(slf: &Bound<'py, PyProgram>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let this = slf.get();
        let compiler = this.live().ok_or_else(|| {
            PyRuntimeError::new_err("this Program was closed and cannot be pickled")
        })?;
        let program = compiler.program();
        let given = this.options.as_ref().map(|(given, _)| given.bind(py));
        // The attributes of ProgramOptions can be assigned after the program was created.
        if let Some((_, kept)) = &this.options
            && accept_options(given)? != *kept
        {
            return Err(PyRuntimeError::new_err(
                "this Program cannot be pickled: its ProgramOptions were changed after it was created",
            ));
        }
        let source = program.source();
        let (source, language) = match this.source {
            SourceKind::Cxx => (text_of(py, source)?, "c++"),
            SourceKind::Ptx => (text_of(py, source)?, "ptx"),
            SourceKind::Nvvm => (PyBytes::new(py, source).into_any(), "nvvm"),
        };
        (slf.get_type(), (source, language, given))
            .into_pyobject(py)
            .map(Bound::into_any)
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        match &self.options {
            Some((given, _)) => visit.call(given),
            None => Ok(()),
        }
    }
}

/// The text of a source.
fn text_of<'py>(py: Python<'py>, source: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    // Sources of CUDA C++ and PTX are created from `str` without lone surrogates.
    Ok(PyString::from_bytes(py, source)?.into_any())
}
