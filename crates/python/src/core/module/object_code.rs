//! `ObjectCode`.

use std::path::PathBuf;

use cupyrite::{CodeKind, CodeSource, ObjectCode};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};

use crate::core::closable::Unlocked;
use crate::core::context::handle_object;
use crate::core::device;
use crate::core::errors::{OrRaise, to_python};
use crate::core::module::kernel::PyKernel;
use crate::cpython::{Buffer, Obj, Raised};
use crate::generated::ids::class::driver as class;

/// Compiled code: PTX, machine code, or something to be linked.
///
/// Object codes come from :meth:`Program.compile` and :meth:`Linker.link`, or from bytes and files through
/// :meth:`from_cubin`, :meth:`from_ptx`, :meth:`from_ltoir`, :meth:`from_fatbin`, :meth:`from_object` and
/// :meth:`from_library`. The driver loads the code when a kernel or the handle is first asked for, once; it is
/// unloaded when the object and the last of its kernels are gone. Pickling carries the code, the name and the symbol
/// mapping.
///
/// Two object codes are equal only if they are the same: each loads on its own, with variables of its own.
///
/// See `Library management <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__LIBRARY.html>`_.
#[pyclass(
    frozen,
    weakref,
    subclass,
    module = "cuda.core._module",
    name = "ObjectCode"
)]
pub struct PyObjectCode {
    code: Unlocked<ObjectCode>,
    /// What the attribute `code` gives: bytes, or the path of the file.
    shown: PyOnceLock<Py<PyAny>>,
    /// As it was given; copied for whoever asks.
    symbols: Py<PyDict>,
}

/// The Python object of an object code, for what makes such: symbols become a dict from `str` to `bytes`.
///
/// # Errors
///
/// Memory.
pub fn make(py: Python<'_>, code: ObjectCode) -> PyResult<Py<PyAny>> {
    let symbols = PyDict::new(py);
    for (name, lowered) in code.symbols() {
        symbols.set_item(name, PyBytes::new(py, lowered.as_bytes()))?;
    }
    make_with(py, code, symbols)
}

/// The same where the symbols have been given names of several types: `symbols` is what Python is shown.
///
/// # Errors
///
/// Memory.
pub fn make_with(
    py: Python<'_>,
    code: ObjectCode,
    symbols: Bound<'_, PyDict>,
) -> PyResult<Py<PyAny>> {
    let made = PyObjectCode {
        code: Unlocked::new(code),
        shown: PyOnceLock::new(),
        symbols: symbols.unbind(),
    };
    Ok(Py::new(py, made)?.into_any())
}

/// The object code that an argument is; None for anything else.
pub fn borrow<'a>(given: &'a Bound<'_, PyAny>) -> Option<&'a ObjectCode> {
    Some(&given.cast::<PyObjectCode>().ok()?.get().code)
}

/// Text of a `str` or `bytes`; None for anything else and for what is not UTF-8.
fn text_of(given: &Bound<'_, PyAny>) -> Option<String> {
    if let Ok(text) = given.cast::<PyString>() {
        return text.to_str().ok().map(str::to_owned);
    }
    let bytes = given.cast::<PyBytes>().ok()?.as_bytes();
    String::from_utf8(bytes.to_vec()).ok()
}

fn symbols_of(
    function: &str,
    given: Option<&Bound<'_, PyDict>>,
) -> PyResult<Vec<(String, String)>> {
    let Some(given) = given else {
        return Ok(Vec::new());
    };
    let mut symbols = Vec::with_capacity(given.len());
    for (key, value) in given {
        let (Some(name), Some(lowered)) = (text_of(&key), text_of(&value)) else {
            return Err(PyTypeError::new_err(format!(
                "{function}() argument 'symbol_mapping' has {} for {}; expected str or bytes for str or bytes",
                value.repr()?,
                key.repr()?
            )));
        };
        symbols.push((name, lowered));
    }
    Ok(symbols)
}

impl PyObjectCode {
    /// The object code.
    pub fn get(&self) -> &ObjectCode {
        &self.code
    }

    fn from_argument(
        kind: CodeKind,
        given: &Bound<'_, PyAny>,
        name: &str,
        symbol_mapping: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyObjectCode> {
        let py = given.py();
        let function = format!("from_{kind}");
        let shown = PyOnceLock::new();
        // SAFETY: the object is borrowed for as long as this is used.
        let raw = unsafe { Obj::new(given.as_ptr()) };
        let code = if let Ok(bytes) = given.cast::<PyBytes>() {
            let _ = shown.set(py, given.clone().unbind());
            ObjectCode::new(kind, bytes.as_bytes())
        } else if raw.is_str() || given.hasattr("__fspath__")? {
            // SAFETY: a live object; a new reference, or null with an exception.
            let path =
                unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyOS_FSPath(given.as_ptr()))? };
            let path: PathBuf = path.extract()?;
            let text = path.clone().into_os_string().into_pyobject(py)?;
            let _ = shown.set(py, text.into_any().unbind());
            ObjectCode::from_file(kind, path)
        } else if raw.has_buffer() {
            let buffer = Buffer::get(raw).map_err(|Raised| PyErr::fetch(py))?;
            let Some(buffer) = buffer else {
                return Err(wrong_code(&function, given)?);
            };
            let mut bytes = Vec::with_capacity(buffer.len());
            // SAFETY: the buffer has as many bytes, and stays until it is dropped below.
            unsafe {
                let from = std::ptr::with_exposed_provenance::<u8>(buffer.address() as usize);
                std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), buffer.len());
                bytes.set_len(buffer.len());
            }
            drop(buffer);
            ObjectCode::new(kind, bytes)
        } else {
            return Err(wrong_code(&function, given)?);
        };
        let symbols = symbols_of(&function, symbol_mapping)?;
        Ok(PyObjectCode {
            code: Unlocked::new(code.named(name).with_symbols(symbols)),
            shown,
            symbols: match symbol_mapping {
                Some(given) => given.copy()?.unbind(),
                None => PyDict::new(py).unbind(),
            },
        })
    }
}

fn wrong_code(function: &str, given: &Bound<'_, PyAny>) -> PyResult<PyErr> {
    Ok(PyTypeError::new_err(format!(
        "{function}() argument 'module' is of type {}; expected bytes with the code, or the path of a file as str or \
         PathLike",
        given.get_type().name()?
    )))
}

#[pymethods]
impl PyObjectCode {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyObjectCode> {
        Err(PyRuntimeError::new_err(
            "an ObjectCode is not made directly: compile a Program, link with a Linker, or load code with \
             ObjectCode.from_cubin, from_ptx, from_ltoir, from_fatbin, from_object or from_library",
        ))
    }

    /// Machine code of one architecture.
    ///
    /// Parameters
    /// ----------
    /// module : bytes or str or PathLike
    ///     The code itself, or the path of a file with it, which is read when the code is needed.
    /// name : str
    ///     A name for messages.
    /// symbol_mapping : dict, optional
    ///     Names by which :meth:`get_kernel` knows kernels, each with the name in the code: name expressions and their
    ///     mangled names, say. Both are `str` or `bytes`.
    ///
    /// Returns
    /// -------
    /// ObjectCode
    #[staticmethod]
    #[pyo3(signature = (module, *, name="", symbol_mapping=None))]
    fn from_cubin(
        module: &Bound<'_, PyAny>,
        name: &str,
        symbol_mapping: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyObjectCode> {
        Self::from_argument(CodeKind::Cubin, module, name, symbol_mapping)
    }

    /// PTX text. The parameters are those of :meth:`from_cubin`.
    #[staticmethod]
    #[pyo3(signature = (module, *, name="", symbol_mapping=None))]
    fn from_ptx(
        module: &Bound<'_, PyAny>,
        name: &str,
        symbol_mapping: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyObjectCode> {
        Self::from_argument(CodeKind::Ptx, module, name, symbol_mapping)
    }

    /// NVVM IR for optimisation at link time, which a :class:`Linker` takes. The parameters are those of
    /// :meth:`from_cubin`.
    #[staticmethod]
    #[pyo3(signature = (module, *, name="", symbol_mapping=None))]
    fn from_ltoir(
        module: &Bound<'_, PyAny>,
        name: &str,
        symbol_mapping: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyObjectCode> {
        Self::from_argument(CodeKind::LtoIr, module, name, symbol_mapping)
    }

    /// A fat binary: code for several architectures. The parameters are those of :meth:`from_cubin`.
    #[staticmethod]
    #[pyo3(signature = (module, *, name="", symbol_mapping=None))]
    fn from_fatbin(
        module: &Bound<'_, PyAny>,
        name: &str,
        symbol_mapping: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyObjectCode> {
        Self::from_argument(CodeKind::Fatbin, module, name, symbol_mapping)
    }

    /// A host object file with device code in it, which a :class:`Linker` takes. The parameters are those of
    /// :meth:`from_cubin`.
    #[staticmethod]
    #[pyo3(signature = (module, *, name="", symbol_mapping=None))]
    fn from_object(
        module: &Bound<'_, PyAny>,
        name: &str,
        symbol_mapping: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyObjectCode> {
        Self::from_argument(CodeKind::Object, module, name, symbol_mapping)
    }

    /// An archive of host object files with device code in them, which a :class:`Linker` takes. The parameters are
    /// those of :meth:`from_cubin`.
    #[staticmethod]
    #[pyo3(signature = (module, *, name="", symbol_mapping=None))]
    fn from_library(
        module: &Bound<'_, PyAny>,
        name: &str,
        symbol_mapping: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyObjectCode> {
        Self::from_argument(CodeKind::Library, module, name, symbol_mapping)
    }

    /// str: The name for messages; may be empty.
    #[getter]
    fn name(&self) -> &str {
        self.code.name()
    }

    /// bytes or str: The code, or the path of the file that has it.
    #[getter]
    fn code(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let shown = self.shown.get_or_try_init(py, || match self.code.code() {
            CodeSource::Bytes(bytes) => Ok(PyBytes::new(py, bytes).into_any().unbind()),
            CodeSource::File(path) => {
                Ok::<_, PyErr>(path.as_os_str().into_pyobject(py)?.into_any().unbind())
            }
        })?;
        Ok(shown.clone_ref(py))
    }

    /// str: What the code is: ``"cubin"``, ``"ptx"``, ``"ltoir"``, ``"fatbin"``, ``"object"`` or ``"library"``.
    #[getter]
    fn code_type<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        PyString::intern(py, self.code.kind().name())
    }

    /// dict: Names by which :meth:`get_kernel` knows kernels, each with the name in the code; a copy.
    #[getter]
    fn symbol_mapping<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.symbols.bind(py).copy()
    }

    /// CUlibrary: The loaded code; asking for it loads it. Valid while this object or one of its kernels lives.
    #[getter]
    fn handle(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let library = py.detach(|| self.get().library().cloned()).or_raise(py)?;
        handle_object(py, class::CUlibrary, library.handle().addr())
    }

    /// A kernel by name; loads the code if nothing has yet.
    ///
    /// Parameters
    /// ----------
    /// name : str or bytes
    ///     The name in the code (mangled for C++ without ``extern "C"``), or one of :attr:`symbol_mapping`.
    ///
    /// Returns
    /// -------
    /// Kernel
    ///
    /// Raises
    /// ------
    /// CUDAError
    ///     If the driver cannot load the code, or there is no kernel of that name; the message has the names there are.
    ///     Code that must be linked first usually cannot be loaded.
    /// RuntimeError
    ///     For code that must be linked first, if the driver does load it.
    fn get_kernel(slf: &Bound<'_, Self>, name: &Bound<'_, PyAny>) -> PyResult<PyKernel> {
        let py = slf.py();
        let Some(name) = text_of(name) else {
            return Err(PyTypeError::new_err(format!(
                "get_kernel() argument 'name' is {} of type {}; expected str or bytes in UTF-8",
                name.repr()?,
                name.get_type().name()?
            )));
        };
        let code = slf.get().get();
        let kernel = py
            .detach(|| code.kernel(&name))
            .map_err(|error| match error {
                // The name was looked at: what is left is code that must be linked.
                cupyrite::Error::InvalidArgument { .. } if !code.kind().is_loadable() => {
                    PyRuntimeError::new_err(error.to_string())
                }
                other => to_python(py, &other),
            })?;
        Ok(PyKernel::new(kernel, Some(slf.clone().unbind())))
    }

    /// CUmodule: The loaded code as the module that it is in the current context, or where there is none in the primary
    /// context of the current device; valid while this object lives.
    ///
    /// Returns
    /// -------
    /// CUmodule
    fn get_module(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let device = device::current(py)?;
        let module = py
            .detach(|| {
                let _entered = device.enter()?;
                self.get().library()?.module().map(|module| module.addr())
            })
            .or_raise(py)?;
        handle_object(py, class::CUmodule, module)
    }

    fn __eq__(&self, other: PyRef<'_, PyObjectCode>) -> bool {
        *self.code == *other.code
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.code.hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        // Loads nothing: whoever looks at broken code wants to see it, not an exception.
        let handle = match self.code.loaded_library() {
            Some(library) => format!("{:#x}", library.handle().addr()),
            None => "None".to_owned(),
        };
        format!(
            "<ObjectCode handle={handle} code_type='{}'>",
            self.code.kind()
        )
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let maker = PyModule::import(py, "cuda.core._module")?.getattr("_object_code")?;
        let parts = (
            self.code(py)?,
            self.code_type(py),
            self.name(),
            self.symbol_mapping(py)?,
        );
        (maker, parts).into_pyobject(py)
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.symbols)
    }
}

/// Adds the class.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    core.add_class::<PyObjectCode>()
}
