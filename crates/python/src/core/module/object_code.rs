//! `ObjectCode`.

use std::path::PathBuf;

use cupyrite::{CodeKind, CodeSource, ObjectCode};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};

use crate::core::closable::DropDetached;
use crate::core::context::handle_object;
use crate::core::device;
use crate::core::errors::{OrRaise, message, to_python};
use crate::core::module::kernel::PyKernel;
use crate::cpython::{Buffer, Obj, Raised};
use crate::generated::driver_types::class;

/// Object code: PTX, machine code, or linker input.
///
/// Object codes come from :meth:`Program.compile` and :meth:`Linker.link`, or from bytes and files through
/// :meth:`from_cubin`, :meth:`from_ptx`, :meth:`from_ltoir`, :meth:`from_fatbin`, :meth:`from_object` and
/// :meth:`from_library`. The driver loads the code once, when a kernel or the handle is first requested, and unloads it
/// when the object and its kernels are destroyed. Pickling preserves the code, the name and the symbol mapping.
///
/// Object codes are equal only if they are identical: each loads its own copy, with its own variables.
///
/// See `Library management <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__LIBRARY.html>`_.
#[doc = example!("cuda.core.ObjectCode")]
#[pyclass(
    frozen,
    weakref,
    subclass,
    module = "cuda.core._module",
    name = "ObjectCode"
)]
pub struct PyObjectCode {
    code: DropDetached<ObjectCode>,
    /// Value of the attribute `code`: bytes, or the path of the file.
    displayed: PyOnceLock<Py<PyAny>>,
    /// As given by the program; the attribute returns copies.
    symbols: Py<PyDict>,
}

/// Creates the Python object of an object code, with a symbol mapping from `str` to `bytes`.
///
/// # Errors
///
/// `MemoryError`.
pub fn make(py: Python<'_>, code: ObjectCode) -> PyResult<Py<PyAny>> {
    let symbols = PyDict::new(py);
    for (name, lowered) in code.symbols() {
        symbols.set_item(name, PyBytes::new(py, lowered.as_bytes()))?;
    }
    make_with(py, code, symbols)
}

/// Creates the Python object of an object code, with a given symbol mapping.
///
/// # Errors
///
/// `MemoryError`.
pub fn make_with(
    py: Python<'_>,
    code: ObjectCode,
    symbols: Bound<'_, PyDict>,
) -> PyResult<Py<PyAny>> {
    let created = PyObjectCode {
        code: DropDetached::new(code),
        displayed: PyOnceLock::new(),
        symbols: symbols.unbind(),
    };
    Ok(Py::new(py, created)?.into_any())
}

/// The object code of an argument; `None` for other objects.
pub fn borrow<'a>(given: &'a Bound<'_, PyAny>) -> Option<&'a ObjectCode> {
    Some(&given.cast::<PyObjectCode>().ok()?.get().code)
}

/// Text of a `str` or `bytes`; `None` for other objects and invalid UTF-8.
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
                "{function}() argument 'symbol_mapping' maps {} to {}; expected str or bytes to str or bytes",
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
        let displayed = PyOnceLock::new();
        // SAFETY: the object is borrowed while this reference is used.
        let raw = unsafe { Obj::new(given.as_ptr()) };
        let code = if let Ok(bytes) = given.cast::<PyBytes>() {
            let _ = displayed.set(py, given.clone().unbind());
            ObjectCode::new(kind, bytes.as_bytes())
        } else if raw.is_str() || given.hasattr("__fspath__")? {
            // SAFETY: a live object; a new reference, or null with an exception.
            let path =
                unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyOS_FSPath(given.as_ptr()))? };
            let path: PathBuf = path.extract()?;
            let text = path.clone().into_os_string().into_pyobject(py)?;
            let _ = displayed.set(py, text.into_any().unbind());
            ObjectCode::from_file(kind, path)
        } else if raw.has_buffer() {
            let buffer = Buffer::get(raw).map_err(|Raised| PyErr::fetch(py))?;
            let Some(buffer) = buffer else {
                return Err(wrong_code(&function, given)?);
            };
            let mut bytes = Vec::with_capacity(buffer.len());
            // SAFETY: the buffer has this many bytes and stays valid until it is dropped below.
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
            code: DropDetached::new(code.named(name).with_symbols(symbols)),
            displayed,
            symbols: match symbol_mapping {
                Some(given) => given.copy()?.unbind(),
                None => PyDict::new(py).unbind(),
            },
        })
    }
}

fn wrong_code(function: &str, given: &Bound<'_, PyAny>) -> PyResult<PyErr> {
    Ok(PyTypeError::new_err(format!(
        "{function}() argument 'module' is of type {}; expected the code as bytes, or the path of a file as str or \
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
            "ObjectCode cannot be instantiated; use Program.compile(), Linker.link(), or ObjectCode.from_cubin(), \
             from_ptx(), from_ltoir(), from_fatbin(), from_object() or from_library()",
        ))
    }

    /// Wraps machine code of one architecture.
    ///
    /// Parameters
    /// ----------
    /// module : bytes or str or PathLike
    ///     The code, or the path of a file with the code, which is read when the code is loaded.
    /// name : str
    ///     Name for messages.
    /// symbol_mapping : dict, optional
    ///     Alias of each kernel for :meth:`get_kernel`, mapped to its symbol name: for example name expressions and
    ///     their mangled names. Keys and values are `str` or `bytes`.
    ///
    /// Returns
    /// -------
    /// ObjectCode
    #[doc = example!("cuda.core.ObjectCode.from_cubin")]
    #[staticmethod]
    #[pyo3(signature = (module, *, name="", symbol_mapping=None))]
    fn from_cubin(
        module: &Bound<'_, PyAny>,
        name: &str,
        symbol_mapping: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyObjectCode> {
        Self::from_argument(CodeKind::Cubin, module, name, symbol_mapping)
    }

    /// Wraps PTX. Parameters as for :meth:`from_cubin`.
    #[doc = example!("cuda.core.ObjectCode.from_ptx")]
    #[staticmethod]
    #[pyo3(signature = (module, *, name="", symbol_mapping=None))]
    fn from_ptx(
        module: &Bound<'_, PyAny>,
        name: &str,
        symbol_mapping: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyObjectCode> {
        Self::from_argument(CodeKind::Ptx, module, name, symbol_mapping)
    }

    /// Wraps LTO IR, the input of a :class:`Linker`. Parameters as for :meth:`from_cubin`.
    #[doc = example!("cuda.core.ObjectCode.from_ltoir")]
    #[staticmethod]
    #[pyo3(signature = (module, *, name="", symbol_mapping=None))]
    fn from_ltoir(
        module: &Bound<'_, PyAny>,
        name: &str,
        symbol_mapping: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyObjectCode> {
        Self::from_argument(CodeKind::LtoIr, module, name, symbol_mapping)
    }

    /// Wraps a fat binary: code for several architectures. Parameters as for :meth:`from_cubin`.
    #[doc = example!("cuda.core.ObjectCode.from_fatbin")]
    #[staticmethod]
    #[pyo3(signature = (module, *, name="", symbol_mapping=None))]
    fn from_fatbin(
        module: &Bound<'_, PyAny>,
        name: &str,
        symbol_mapping: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyObjectCode> {
        Self::from_argument(CodeKind::Fatbin, module, name, symbol_mapping)
    }

    /// Wraps a host object file with device code, the input of a :class:`Linker`. Parameters as for :meth:`from_cubin`.
    #[doc = example!("cuda.core.ObjectCode.from_object")]
    #[staticmethod]
    #[pyo3(signature = (module, *, name="", symbol_mapping=None))]
    fn from_object(
        module: &Bound<'_, PyAny>,
        name: &str,
        symbol_mapping: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyObjectCode> {
        Self::from_argument(CodeKind::Object, module, name, symbol_mapping)
    }

    /// Wraps an archive of host object files with device code, the input of a :class:`Linker`. Parameters as for
    /// :meth:`from_cubin`.
    #[doc = example!("cuda.core.ObjectCode.from_library")]
    #[staticmethod]
    #[pyo3(signature = (module, *, name="", symbol_mapping=None))]
    fn from_library(
        module: &Bound<'_, PyAny>,
        name: &str,
        symbol_mapping: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyObjectCode> {
        Self::from_argument(CodeKind::Library, module, name, symbol_mapping)
    }

    /// str: Name for messages; may be empty.
    #[getter]
    fn name(&self) -> &str {
        self.code.name()
    }

    /// bytes or str: The code, or the path of its file.
    #[getter]
    fn code(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let displayed = self
            .displayed
            .get_or_try_init(py, || match self.code.code() {
                CodeSource::Bytes(bytes) => Ok(PyBytes::new(py, bytes).into_any().unbind()),
                CodeSource::File(path) => {
                    Ok::<_, PyErr>(path.as_os_str().into_pyobject(py)?.into_any().unbind())
                }
            })?;
        Ok(displayed.clone_ref(py))
    }

    /// str: Format of the code: ``"cubin"``, ``"ptx"``, ``"ltoir"``, ``"fatbin"``, ``"object"`` or ``"library"``.
    #[getter]
    fn code_type<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        PyString::intern(py, self.code.kind().name())
    }

    /// dict: Copy of the symbol mapping: kernel aliases and their symbol names.
    #[doc = example!("cuda.core.ObjectCode.symbol_mapping")]
    #[getter]
    fn symbol_mapping<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.symbols.bind(py).copy()
    }

    /// CUlibrary: Handle of the loaded code; loads it on first use. Reading it leaves unloading to the program: the handle
    /// stays valid after this object is freed, until ``cuLibraryUnload``.
    #[doc = example!("cuda.core.ObjectCode.handle")]
    #[getter]
    fn handle(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let library = py.detach(|| self.get().library().cloned()).or_raise(py)?;
        library.disown();
        handle_object(py, class::CUlibrary, library.handle().addr())
    }

    /// Returns a kernel by name; loads the code on first use.
    ///
    /// Parameters
    /// ----------
    /// name : str or bytes
    ///     Symbol name (mangled for C++ without ``extern "C"``), or a key of :attr:`symbol_mapping`.
    ///
    /// Returns
    /// -------
    /// Kernel
    ///
    /// Raises
    /// ------
    /// CUDAError
    ///     The driver cannot load the code, or there is no kernel of that name; the message lists the existing names.
    /// RuntimeError
    ///     The code must be linked first.
    #[doc = example!("cuda.core.ObjectCode.get_kernel")]
    fn get_kernel(slf: &Bound<'_, Self>, name: &Bound<'_, PyAny>) -> PyResult<PyKernel> {
        let py = slf.py();
        let Some(name) = text_of(name) else {
            return Err(PyTypeError::new_err(format!(
                "get_kernel() argument 'name' is {} of type {}; expected str or UTF-8 bytes",
                name.repr()?,
                name.get_type().name()?
            )));
        };
        let code = slf.get().get();
        let kernel = py
            .detach(|| code.kernel(&name))
            .map_err(|error| match error {
                // The name is valid, so the error is code that must be linked.
                cupyrite::Error::InvalidArgument { .. } if !code.kind().is_loadable() => {
                    PyRuntimeError::new_err(message(&error))
                }
                other => to_python(py, &other),
            })?;
        Ok(PyKernel::new(kernel, Some(slf.clone().unbind())))
    }

    /// CUmodule: The loaded code as a module of the current context, or of the current device's primary context if
    /// there is none. As with :attr:`handle`, unloading is left to the program.
    ///
    /// Returns
    /// -------
    /// CUmodule
    #[doc = example!("cuda.core.ObjectCode.get_module")]
    fn get_module(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let device = device::current(py)?;
        let module = py
            .detach(|| {
                let _entered = device.enter()?;
                let library = self.get().library()?;
                let module = library.module()?;
                library.disown();
                Ok(module.addr())
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
        // Does not load the code: the repr of invalid code must not raise.
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
