//! `Program` and `ProgramOptions`.

pub mod cache;
pub mod options;

use std::sync::{Arc, Mutex, PoisonError};

use cupyrite::{CodeKind, Compiler, CompilerBackend, PchStatus, Program, SourceKind};
use cupyrite_sys::loader::CudaLibrary;
use pyo3::exceptions::{
    PyAttributeError, PyDeprecationWarning, PyRuntimeError, PyTypeError, PyUserWarning,
    PyValueError,
};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::core::errors::OrRaise;
use crate::core::module::object_code;
use crate::site_packages;
use crate::types;
use crate::types::table;

/// Adds the classes and what the Python side of them calls.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    cache::init(core)?;
    core.add_class::<PyProgram>()?;
    core.add_function(wrap_pyfunction!(options::prepare_program_options, core)?)?;
    core.add_function(wrap_pyfunction!(options::program_options_as_bytes, core)?)
}

/// `str(value).lower()`: members of the enumerations of `cuda.core.typing` are str.
fn lower(value: &Bound<'_, PyAny>) -> PyResult<String> {
    match value.cast::<PyString>() {
        Ok(text) => Ok(text.to_string_lossy().to_lowercase()),
        Err(_) => Ok(String::new()),
    }
}

/// The kind of code that a name (`"ptx"`, in any case) means.
fn kind_of(value: &Bound<'_, PyAny>) -> PyResult<Option<CodeKind>> {
    Ok(match lower(value)?.as_str() {
        "ptx" => Some(CodeKind::Ptx),
        "cubin" => Some(CodeKind::Cubin),
        "ltoir" => Some(CodeKind::LtoIr),
        _ => None,
    })
}

/// The kinds of code that come of a source.
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

/// A member of an enumeration of `cuda.core.typing`.
fn member<'py>(py: Python<'py>, class: &str, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import(intern!(py, "cuda.core.typing"))?
        .getattr(class)?
        .getattr(name)
}

/// Source code and the compiler for it.
///
/// Parameters
/// ----------
/// code : str, bytes or bytearray
///     The source: CUDA C++ or PTX as str; NVVM IR as text (str or bytes) or bitcode (bytes or bytearray).
/// code_type : str or SourceCodeType
///     ``"c++"``, ``"ptx"`` or ``"nvvm"``, in any case.
/// options : ProgramOptions or dict, optional
///     What to compile with.
///
/// Raises
/// ------
/// RuntimeError
///     If `code_type` is none of these.
/// TypeError, ValueError
///     If `code` or an option is of the wrong type or value.
///
/// See https://docs.nvidia.com/cuda/cuda-python/latest/.
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
    /// `None` once it is closed. Held only to look at it, never while something is compiled.
    compiler: Mutex<Option<Arc<Compiler>>>,
}

impl PyProgram {
    fn live(&self) -> Option<Arc<Compiler>> {
        self.compiler
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn open(&self) -> PyResult<Arc<Compiler>> {
        self.live().ok_or_else(|| {
            PyRuntimeError::new_err("this Program was closed; it cannot compile any more")
        })
    }
}

fn source_kind(code_type: &Bound<'_, PyAny>) -> PyResult<SourceKind> {
    match lower(code_type)?.as_str() {
        "c++" => Ok(SourceKind::Cxx),
        "ptx" => Ok(SourceKind::Ptx),
        "nvvm" => Ok(SourceKind::Nvvm),
        _ => Err(PyRuntimeError::new_err(format!(
            "Program() argument 'code_type' is {}; it is 'c++', 'ptx' or 'nvvm'",
            code_type.repr()?
        ))),
    }
}

/// The program that the arguments of `Program()` describe.
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
                    "{function} argument 'code' is of type {}; CUDA C++ and PTX are given as str",
                    code.get_type().name()?
                )));
            };
            let text = text.to_str()?;
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
                    "{function} argument 'code' is of type {}; NVVM IR is given as str, bytes or bytearray",
                    code.get_type().name()?
                )));
            }
        },
    };
    Ok(program.with_options(options))
}

/// Options as they are given to functions: an instance, a dict of its fields, or nothing.
fn accept_options(
    py: Python<'_>,
    given: Option<&Bound<'_, PyAny>>,
) -> PyResult<cupyrite::ProgramOptions> {
    let Some(given) = given.filter(|given| !given.is_none()) else {
        return Ok(cupyrite::ProgramOptions::default());
    };
    let class = py
        .import(intern!(py, "cuda.core._program"))?
        .getattr(intern!(py, "ProgramOptions"))?;
    if let Ok(fields) = given.cast::<PyDict>() {
        return options::read(&class.call((), Some(fields))?, true);
    }
    if !given.is_instance(&class)? {
        return Err(PyTypeError::new_err(format!(
            "Program() argument 'options' is of type {}; expected ProgramOptions, a dict of its fields, or None",
            given.get_type().name()?
        )));
    }
    options::read(given, true)
}

/// A name expression as NVRTC takes it.
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
        "compile() argument 'name_expressions' has an item of type {}; its items are str or bytes",
        given.get_type().name()?
    )))
}

#[pymethods]
impl PyProgram {
    #[new]
    #[pyo3(signature = (code, code_type, options=None))]
    fn new(
        py: Python<'_>,
        code: &Bound<'_, PyAny>,
        code_type: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyProgram> {
        let source = source_kind(code_type)?;
        let options = accept_options(py, options)?;
        if source == SourceKind::Ptx && options.numba_debug == Some(true) {
            let category = py.get_type::<PyUserWarning>();
            let message = c"numba_debug does nothing for a program in PTX: PTX goes to the linker, which has no such option";
            PyErr::warn(py, &category, message, 1)?;
        }
        let program = program("Program()", code, source, options)?;
        site_packages::refresh(py);
        let compiler = py.detach(|| program.compiler()).or_raise(py)?;
        Ok(PyProgram {
            source,
            backend: compiler.backend(),
            compiler: Mutex::new(Some(Arc::new(compiler))),
        })
    }

    /// Compiles to PTX, a cubin or LTO IR.
    ///
    /// Parameters
    /// ----------
    /// target_type : str or ObjectCodeFormatType
    ///     ``"ptx"``, ``"cubin"`` or ``"ltoir"``. Of PTX come cubin and PTX, of NVVM IR come PTX and LTO IR.
    /// name_expressions : iterable of str or bytes, optional
    ///     Names of C++ kernels, functions and variables, template instances among them, by which the result knows them.
    /// logs : object, optional
    ///     Something with a method ``write(str)``, which gets the compiler's log if it has one and compiling succeeds.
    /// cache : ProgramCacheResource, optional
    ///     Where compiled code is looked up, and kept when it had to be made.
    ///
    /// Returns
    /// -------
    /// ObjectCode
    ///
    /// Raises
    /// ------
    /// NVRTCError, cuda.bindings.nvvm.nvvmError, cuda.bindings.nvjitlink.nvJitLinkError
    ///     If the source or an option is wrong, with the compiler's log.
    /// ValueError
    ///     If `target_type` does not come of this source.
    /// RuntimeError
    ///     If the program was closed.
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
        let right = targets(self.source);
        let target = kind_of(target_type)?.filter(|kind| right.iter().any(|row| row.0 == *kind));
        let Some(target) = target else {
            let names: Vec<String> = right.iter().map(|row| format!("{:?}", row.1)).collect();
            return Err(PyValueError::new_err(format!(
                "compile() argument 'target_type' is {}; of this source come {}",
                target_type.repr()?,
                names.join(", ").replace('"', "'")
            )));
        };
        let mut given = Vec::new();
        if let Some(list) = name_expressions {
            if list.is_instance_of::<PyString>() || list.is_instance_of::<PyBytes>() {
                return Err(PyTypeError::new_err(format!(
                    "compile() argument 'name_expressions' is {}; it is a list or tuple of such names",
                    list.repr()?
                )));
            }
            for item in list.try_iter()? {
                given.push(item?);
            }
        }
        let expressions: Vec<String> = given.iter().map(expression).collect::<PyResult<_>>()?;
        if let Some(logs) = logs
            && !logs.hasattr(intern!(py, "write"))?
        {
            return Err(PyAttributeError::new_err(format!(
                "compile() argument 'logs' is of type {}, which has no method write()",
                logs.get_type().name()?
            )));
        }
        let cache = cache
            .map(|cache| cache::Use::new(cache, &compiler, target, &given))
            .transpose()?;
        if let Some(found) = cache.as_ref().map(cache::Use::find).transpose()?.flatten() {
            return Ok(found);
        }
        let code = py
            .detach(|| compiler.compile(target, &expressions))
            .or_raise(py)?;
        if let Some(logs) = logs
            && !code.log().is_empty()
        {
            logs.call_method1(intern!(py, "write"), (code.log(),))?;
        }
        let symbols = PyDict::new(py);
        for (key, expression) in given.iter().zip(&expressions) {
            // Only CUDA C++ has names that are called something else in the code.
            if let Some(name) = code.lowered_name(expression) {
                symbols.set_item(key, PyBytes::new(py, name.as_bytes()))?;
            }
        }
        let made = object_code::make_with(py, code.clone(), symbols)?;
        if let Some(cache) = cache {
            cache.keep(&made, &code)?;
        }
        Ok(made)
    }

    /// The earlier name of :meth:`compile` for programs in PTX.
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
                "Program.link() is for programs in PTX; compile this one, and give the result to a Linker",
            ));
        }
        let category = py.get_type::<PyDeprecationWarning>();
        PyErr::warn(py, &category, c"Program.link() is now Program.compile()", 1)?;
        self.compile(py, target_type, None, logs, None)
    }

    /// Lets go of the compiler's object. Closing twice does nothing; what was compiled stays.
    fn close(&self, py: Python<'_>) {
        let compiler = self
            .compiler
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        py.detach(|| drop(compiler));
    }

    /// The compiler's own object: `cuda.bindings.nvrtc.nvrtcProgram`, or the address of the libNVVM program or the
    /// linker as int. 0 when this was closed.
    #[getter]
    fn handle<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let value = self.live().map_or(0, |live| live.handle() as u64);
        if self.source != SourceKind::Cxx {
            return Ok(value.into_pyobject(py)?.into_any());
        }
        let id = table::class_named(CudaLibrary::Nvrtc, "nvrtcProgram")
            .ok_or_else(|| PyRuntimeError::new_err("the bindings have no class nvrtcProgram"))?;
        // SAFETY: a new reference, or null with an exception.
        unsafe { Bound::from_owned_ptr_or_err(py, types::new_handle(id, value)) }
    }

    /// The library that compiles: a `CompilerBackendType`.
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

    /// Whether this was closed.
    #[getter]
    fn is_closed(&self) -> bool {
        self.live().is_none()
    }

    /// What became of the precompiled header at the last :meth:`compile`: a `PCHStatusType`.
    ///
    /// ``"created"``, ``"not_attempted"`` or ``"failed"``; None if none was asked for (``pch`` and ``create_pch`` of
    /// the options), if the last compilation failed or none was made, or if NVRTC is older than CUDA 12.8.
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
}
