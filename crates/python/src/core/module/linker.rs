//! `Linker`, and what its options say.

use std::sync::{Mutex, MutexGuard, PoisonError};

use cupyrite::{CodeKind, Linker, LinkerBackend, LinkerOptions};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};

use crate::core::closable::Unlocked;
use crate::core::context::handle_object;
use crate::core::errors::OrRaise;
use crate::core::module::object_code;
use crate::core::options::{OptionClass, Options};
use crate::generated::ids::class::driver as class;

/// Links object codes into one.
///
/// Parameters
/// ----------
/// object_codes : ObjectCode
///     What is linked: PTX, cubins, fat binaries, host objects and archives with device code, and LTO IR where the
///     options say ``link_time_optimization``.
/// options : LinkerOptions or dict, optional
///     How.
///
/// Raises
/// ------
/// cuda.bindings.nvjitlink.nvJitLinkError
///     For a wrong option or input, with the linker's log. Where the driver links, that is a ``CUDAError``.
///
/// nvJitLink does the work where it is installed, else the driver; the environment variable ``CUPYRITE_LINKER``
/// (``nvjitlink`` or ``driver``) decides otherwise.
///
/// See `nvJitLink <https://docs.nvidia.com/cuda/nvjitlink/>`_.
#[pyclass(
    frozen,
    weakref,
    subclass,
    module = "cuda.core._linker",
    name = "Linker"
)]
pub struct PyLinker {
    state: Unlocked<Mutex<State>>,
    backend: LinkerBackend,
}

enum State {
    Open(Linker),
    /// The logs, which outlive the linker.
    Closed {
        info: String,
        error: String,
    },
}

/// The member of `CompilerBackendType` for a backend.
fn backend_type(py: Python<'_>, backend: LinkerBackend) -> PyResult<Py<PyAny>> {
    let name = match backend {
        LinkerBackend::NvJitLink => "NVJITLINK",
        LinkerBackend::Driver => "DRIVER",
    };
    let class = PyModule::import(py, "cuda.core.typing")?.getattr("CompilerBackendType")?;
    Ok(class.getattr(name)?.unbind())
}

/// A field that is one text, a list or tuple of them, or None.
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

/// Linker options as given to `function`: an instance of `LinkerOptions`, a dict of its fields, or None.
///
/// # Errors
///
/// `TypeError` or `ValueError`, which name what is wrong.
pub fn accept_options(
    py: Python<'_>,
    function: &str,
    given: Option<&Bound<'_, PyAny>>,
) -> PyResult<LinkerOptions> {
    let options = Options::accept(function, &OPTIONS, given)?;
    if options.get::<bool>(intern!(py, "numba_debug"))?.is_some() {
        let category = py.get_type::<pyo3::exceptions::PyDeprecationWarning>();
        let text = c"LinkerOptions.numba_debug does nothing, since no linker knows it; set ProgramOptions.numba_debug";
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

/// A switch that may be left to the linker: None, or the truth of anything else.
fn truth<'py>(options: &Options<'py>, field: &Bound<'py, PyString>) -> PyResult<Option<bool>> {
    match options.value(field)? {
        None => Ok(None),
        Some(value) => value.is_truthy().map(Some),
    }
}

/// Options as nvJitLink takes them; what `LinkerOptions.as_bytes` gives.
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
    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, State> {
        if let Ok(state) = self.state.try_lock() {
            return state;
        }
        // Another thread is linking, and may need the GIL to end.
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
                "Linker() needs at least one ObjectCode to link",
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
        let linker = py.detach(|| Linker::new(&codes, &options)).or_raise(py)?;
        Ok(PyLinker {
            backend: linker.backend(),
            state: Unlocked::new(Mutex::new(State::Open(linker))),
        })
    }

    /// Links. This can be done once.
    ///
    /// Parameters
    /// ----------
    /// target_type : ObjectCodeFormatType or str
    ///     ``"cubin"``, or ``"ptx"`` where the options say ``link_time_optimization`` and ``ptx``.
    ///
    /// Returns
    /// -------
    /// ObjectCode
    ///     Its name is that of the options.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     For another target.
    /// cuda.bindings.nvjitlink.nvJitLinkError
    ///     If the codes cannot be linked, with the linker's log. Where the driver links, that is a ``CUDAError``.
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
        let linked =
            py.detach(
                || match &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner) {
                    State::Open(linker) => Some(linker.link(kind)),
                    State::Closed { .. } => None,
                },
            );
        match linked {
            Some(linked) => object_code::make(py, linked.or_raise(py)?),
            None => Err(PyRuntimeError::new_err("this Linker was closed")),
        }
    }

    /// str: What the linker told so far; still there after :meth:`close`.
    ///
    /// Returns
    /// -------
    /// str
    fn get_info_log(&self, py: Python<'_>) -> String {
        match &*self.lock(py) {
            State::Open(linker) => linker.info_log(),
            State::Closed { info, .. } => info.clone(),
        }
    }

    /// str: What the linker complained of so far; still there after :meth:`close`.
    ///
    /// Returns
    /// -------
    /// str
    fn get_error_log(&self, py: Python<'_>) -> String {
        match &*self.lock(py) {
            State::Open(linker) => linker.error_log(),
            State::Closed { error, .. } => error.clone(),
        }
    }

    /// Lets go of the linker; what it linked stays. Closing again does nothing.
    fn close(&self, py: Python<'_>) {
        let before = {
            let mut state = self.lock(py);
            let closed = match &*state {
                State::Open(linker) => State::Closed {
                    info: linker.info_log(),
                    error: linker.error_log(),
                },
                State::Closed { .. } => return,
            };
            std::mem::replace(&mut *state, closed)
        };
        py.detach(|| drop(before));
    }

    /// int or CUlinkState: The handle of nvJitLink, or that of the driver; 0 once closed.
    #[getter]
    fn handle(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let address = match &*self.lock(py) {
            State::Open(linker) => linker.handle().addr(),
            State::Closed { .. } => 0,
        };
        match self.backend {
            LinkerBackend::NvJitLink => Ok(address.into_pyobject(py)?.into_any().unbind()),
            LinkerBackend::Driver => handle_object(py, class::CUlinkState, address),
        }
    }

    /// bool: Whether it was closed.
    #[getter]
    fn is_closed(&self, py: Python<'_>) -> bool {
        matches!(&*self.lock(py), State::Closed { .. })
    }

    /// CompilerBackendType: What links: ``"nvJitLink"`` or ``"driver"``.
    #[getter]
    fn backend(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        backend_type(py, self.backend)
    }

    /// What links in a linker that is made now.
    ///
    /// Returns
    /// -------
    /// CompilerBackendType
    ///     ``"nvJitLink"`` or ``"driver"``.
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
