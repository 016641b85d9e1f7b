//! `Linker` and its options.

use std::sync::{Mutex, MutexGuard, PoisonError};

use cupyrite::{CodeKind, Linker, LinkerBackend, LinkerOptions};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};

use crate::bindings::raising::exit_guard::Inside;
use crate::core::closable::DropDetached;
use crate::core::context::handle_object;
use crate::core::errors::OrRaise;
use crate::core::module::object_code;
use crate::core::options::{OptionClass, Options};
use crate::generated::driver_types::class;

/// Links object codes.
///
/// Parameters
/// ----------
/// object_codes : ObjectCode
///     Input: PTX, cubins, fat binaries, host objects and archives with device code; with ``link_time_optimization``
///     also LTO IR.
/// options : LinkerOptions or dict, optional
///     Options of the linker.
///
/// Raises
/// ------
/// cuda.bindings.nvjitlink.nvJitLinkError
///     An option or input is invalid; the message contains the linker's log. If the driver links, a ``CUDAError``.
///
/// nvJitLink links if it is installed, else the driver; the environment variable ``CUPYRITE_LINKER`` (``nvjitlink`` or
/// ``driver``) overrides the choice.
///
/// See `nvJitLink <https://docs.nvidia.com/cuda/nvjitlink/>`_.
#[doc = example!("cuda.core.Linker")]
#[pyclass(
    frozen,
    weakref,
    subclass,
    module = "cuda.core._linker",
    name = "Linker"
)]
pub struct PyLinker {
    state: DropDetached<Mutex<LinkerState>>,
    backend: LinkerBackend,
}

enum LinkerState {
    Open(Linker),
    /// The logs, which outlive the linker.
    Closed {
        info: String,
        error: String,
    },
}

/// The `CompilerBackendType` member of a backend.
fn backend_type(py: Python<'_>, backend: LinkerBackend) -> PyResult<Py<PyAny>> {
    let name = match backend {
        LinkerBackend::NvJitLink => "NVJITLINK",
        LinkerBackend::Driver => "DRIVER",
    };
    let class = PyModule::import(py, "cuda.core.typing")?.getattr("CompilerBackendType")?;
    Ok(class.getattr(name)?.unbind())
}

/// Reads a field with a str, a list or tuple of str, or None.
fn texts<'py>(options: &Options<'py>, field: &Bound<'py, PyString>) -> PyResult<Vec<String>> {
    let Some(given) = options.value(field)? else {
        return Ok(Vec::new());
    };
    if let Ok(text) = given.extract::<String>() {
        return Ok(vec![text]);
    }
    let several = given.cast::<PyList>().is_ok() || given.cast::<PyTuple>().is_ok();
    match given.extract::<Vec<String>>() {
        Ok(texts) if several => Ok(texts),
        _ => Err(PyTypeError::new_err(format!(
            "LinkerOptions.{field} is {}; expected a str, or a list or tuple of str",
            given.repr()?
        ))),
    }
}

static OPTIONS: OptionClass = OptionClass::new("cuda.core._linker", "LinkerOptions");

/// Converts linker options given to `function`: an instance of `LinkerOptions`, a dict of fields, or None.
///
/// # Errors
///
/// `TypeError` or `ValueError` that names the field.
pub fn accept_options(
    py: Python<'_>,
    function: &str,
    given: Option<&Bound<'_, PyAny>>,
) -> PyResult<LinkerOptions> {
    let options = Options::accept(function, &OPTIONS, given)?;
    if options.get::<bool>(intern!(py, "numba_debug"))?.is_some() {
        let category = py.get_type::<pyo3::exceptions::PyDeprecationWarning>();
        let text = c"LinkerOptions.numba_debug is deprecated and has no effect; use ProgramOptions.numba_debug";
        PyErr::warn(py, &category, text, 2)?;
    }
    Ok(LinkerOptions {
        name: options
            .get(intern!(py, "name"))?
            .unwrap_or_else(|| "<default linker>".to_owned()),
        arch: options.get(intern!(py, "arch"))?,
        max_register_count: options.get(intern!(py, "max_register_count"))?,
        time: options.flag(intern!(py, "time"), false)?,
        verbose: options.flag(intern!(py, "verbose"), false)?,
        link_time_optimization: options.flag(intern!(py, "link_time_optimization"), false)?,
        ptx: options.flag(intern!(py, "ptx"), false)?,
        optimization_level: options.get(intern!(py, "optimization_level"))?,
        debug: options.flag(intern!(py, "debug"), false)?,
        lineinfo: options.flag(intern!(py, "lineinfo"), false)?,
        ftz: truth(&options, intern!(py, "ftz"))?,
        prec_div: truth(&options, intern!(py, "prec_div"))?,
        prec_sqrt: truth(&options, intern!(py, "prec_sqrt"))?,
        fma: truth(&options, intern!(py, "fma"))?,
        kernels_used: texts(&options, intern!(py, "kernels_used"))?,
        variables_used: texts(&options, intern!(py, "variables_used"))?,
        optimize_unused_variables: options.flag(intern!(py, "optimize_unused_variables"), false)?,
        ptxas_options: texts(&options, intern!(py, "ptxas_options"))?,
        split_compile: options.get(intern!(py, "split_compile"))?,
        split_compile_extended: options.get(intern!(py, "split_compile_extended"))?,
        no_cache: options.flag(intern!(py, "no_cache"), false)?,
    })
}

/// Reads an optional flag with Python truth-value semantics.
fn truth<'py>(options: &Options<'py>, field: &Bound<'py, PyString>) -> PyResult<Option<bool>> {
    match options.value(field)? {
        None => Ok(None),
        Some(value) => value.is_truthy().map(Some),
    }
}

/// Options as nvJitLink arguments; implements `LinkerOptions.as_bytes`.
#[pyfunction]
fn linker_arguments<'py>(options: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
    let py = options.py();
    let options = accept_options(py, "as_bytes", Some(options))?;
    let list = py.detach(|| options.nvjitlink_arguments()).or_raise(py)?;
    PyList::new(
        py,
        list.iter().map(|text| PyBytes::new(py, text.as_bytes())),
    )
}

impl PyLinker {
    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, LinkerState> {
        if let Ok(state) = self.state.try_lock() {
            return state;
        }
        // The lock is held by a thread that links, which may need the GIL to finish.
        loop {
            py.detach(|| drop(self.state.lock().unwrap_or_else(PoisonError::into_inner)));
            if let Ok(state) = self.state.try_lock() {
                return state;
            }
        }
    }
}

#[pymethods]
impl PyLinker {
    #[new]
    #[pyo3(signature = (*object_codes, options=None))]
    fn new(
        object_codes: &Bound<'_, PyTuple>,
        options: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyLinker> {
        let py = object_codes.py();
        if object_codes.is_empty() {
            return Err(PyValueError::new_err(
                "Linker() requires at least one ObjectCode",
            ));
        }
        let mut codes = Vec::with_capacity(object_codes.len());
        for (at, given) in object_codes.iter().enumerate() {
            let Some(code) = object_code::borrow(&given) else {
                return Err(PyTypeError::new_err(format!(
                    "Linker() argument {} is of type {}; expected an ObjectCode",
                    at + 1,
                    given.get_type().name()?
                )));
            };
            codes.push(code.clone());
        }
        let options = accept_options(py, "Linker", options)?;
        let inside = Inside::begin(py);
        let linker = py
            .detach(|| {
                let linker = Linker::new(&codes, &options);
                drop(inside);
                linker
            })
            .or_raise(py)?;
        Ok(PyLinker {
            backend: linker.backend(),
            state: DropDetached::new(Mutex::new(LinkerState::Open(linker))),
        })
    }

    /// Links the inputs. Can be called once.
    ///
    /// Parameters
    /// ----------
    /// target_type : ObjectCodeFormatType or str
    ///     ``"cubin"``, or ``"ptx"`` if the options enable ``link_time_optimization`` and ``ptx``.
    ///
    /// Returns
    /// -------
    /// ObjectCode
    ///     Has the name given in the options.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     The target is invalid.
    /// cuda.bindings.nvjitlink.nvJitLinkError
    ///     Linking failed; the message contains the linker's log. If the driver links, a ``CUDAError``.
    #[doc = example!("cuda.core.Linker.link")]
    fn link(&self, py: Python<'_>, target_type: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let kind = target_type
            .cast::<PyString>()
            .ok()
            .and_then(|name| CodeKind::from_name(name.to_str().ok()?))
            .filter(|kind| matches!(kind, CodeKind::Cubin | CodeKind::Ptx));
        let Some(kind) = kind else {
            return Err(PyValueError::new_err(format!(
                "link() argument 'target_type' is {}; expected 'cubin' or 'ptx'",
                target_type.repr()?
            )));
        };
        let inside = Inside::begin(py);
        let linked = py.detach(|| {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let linked = match &mut *state {
                LinkerState::Open(linker) => Some(linker.link(kind)),
                LinkerState::Closed { .. } => None,
            };
            drop(inside);
            linked
        });
        match linked {
            Some(linked) => object_code::make(py, linked.or_raise(py)?),
            None => Err(PyRuntimeError::new_err("this Linker was closed")),
        }
    }

    /// str: Info log of the linker; also available after :meth:`close`.
    ///
    /// Returns
    /// -------
    /// str
    #[doc = example!("cuda.core.Linker.get_info_log")]
    fn get_info_log(&self, py: Python<'_>) -> String {
        match &*self.lock(py) {
            LinkerState::Open(linker) => linker.info_log(),
            LinkerState::Closed { info, .. } => info.clone(),
        }
    }

    /// str: Error log of the linker; also available after :meth:`close`.
    ///
    /// Returns
    /// -------
    /// str
    #[doc = example!("cuda.core.Linker.get_error_log")]
    fn get_error_log(&self, py: Python<'_>) -> String {
        match &*self.lock(py) {
            LinkerState::Open(linker) => linker.error_log(),
            LinkerState::Closed { error, .. } => error.clone(),
        }
    }

    /// Releases the linker; linked code stays valid. Further calls do nothing.
    fn close(&self, py: Python<'_>) {
        let before = {
            let mut state = self.lock(py);
            let closed = match &*state {
                LinkerState::Open(linker) => LinkerState::Closed {
                    info: linker.info_log(),
                    error: linker.error_log(),
                },
                LinkerState::Closed { .. } => return,
            };
            std::mem::replace(&mut *state, closed)
        };
        py.detach(|| drop(before));
    }

    /// int or CUlinkState: Handle of nvJitLink or of the driver's linker; 0 if closed.
    #[getter]
    fn handle(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let address = match &*self.lock(py) {
            LinkerState::Open(linker) => linker.handle().addr(),
            LinkerState::Closed { .. } => 0,
        };
        match self.backend {
            LinkerBackend::NvJitLink => Ok(address.into_pyobject(py)?.into_any().unbind()),
            LinkerBackend::Driver => handle_object(py, class::CUlinkState, address),
        }
    }

    /// bool: Whether :meth:`close` was called.
    #[getter]
    fn is_closed(&self, py: Python<'_>) -> bool {
        matches!(&*self.lock(py), LinkerState::Closed { .. })
    }

    /// CompilerBackendType: The linker in use: ``"nvJitLink"`` or ``"driver"``.
    #[getter]
    fn backend(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        backend_type(py, self.backend)
    }

    /// The linker that a new `Linker` would use.
    ///
    /// Returns
    /// -------
    /// CompilerBackendType
    ///     ``"nvJitLink"`` or ``"driver"``.
    #[doc = example!("cuda.core.Linker.which_backend")]
    #[classmethod]
    fn which_backend(class: &Bound<'_, pyo3::types::PyType>) -> PyResult<Py<PyAny>> {
        let py = class.py();
        let backend = py.detach(LinkerBackend::choose).or_raise(py)?;
        backend_type(py, backend)
    }
}

/// Adds the class, and the function behind `LinkerOptions.as_bytes`.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    core.add_class::<PyLinker>()?;
    core.add_function(wrap_pyfunction!(linker_arguments, core)?)
}
