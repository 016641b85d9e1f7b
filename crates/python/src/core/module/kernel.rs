//! `Kernel`.

use cupyrite::Kernel;
use pyo3::exceptions::{
    PyNotImplementedError, PyOverflowError, PyRuntimeError, PyTypeError, PyUserWarning,
    PyValueError,
};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyInt, PyList, PyTuple};

use crate::core::closable::DropDetached;
use crate::core::context::handle_object;
use crate::core::errors::OrRaise;
use crate::core::module::kernel_attributes::PyKernelAttributes;
use crate::core::module::object_code::PyObjectCode;
use crate::core::module::occupancy::PyKernelOccupancy;
use crate::cpython::Obj;
use crate::generated::driver_types::class;
use crate::types;

/// A kernel of loaded code, returned by :meth:`ObjectCode.get_kernel`.
///
/// A kernel keeps its code loaded and is independent of contexts: it runs on the device of the stream of the launch.
/// Kernels are equal if their handles are equal. A kernel of an :class:`ObjectCode` can be pickled, together with its
/// code.
#[doc = example!("cuda.core.Kernel")]
#[pyclass(
    frozen,
    weakref,
    subclass,
    module = "cuda.core._module",
    name = "Kernel"
)]
pub struct PyKernel {
    kernel: DropDetached<Kernel>,
    code: Option<Py<PyObjectCode>>,
    attributes: PyOnceLock<Py<PyKernelAttributes>>,
    occupancy: PyOnceLock<Py<PyKernelOccupancy>>,
}

/// The kernel of a `Kernel` object; `None`, without an exception, for other objects.
///
/// # Safety
///
/// `object` is a live Python object that outlives the result.
#[inline]
pub unsafe fn borrow<'a>(py: Python<'_>, object: *mut ffi::PyObject) -> Option<&'a Kernel> {
    // SAFETY: guaranteed by the caller.
    let object = unsafe { Borrowed::<PyAny>::from_ptr(py, object) };
    let kernel: *const Kernel = object.cast::<PyKernel>().ok()?.get().get();
    // SAFETY: the class is frozen, so the kernel does not move while the object lives, which the caller guarantees.
    Some(unsafe { &*kernel })
}

impl PyKernel {
    /// Creates the value of a kernel object, with the object code that defines the kernel.
    pub fn new(kernel: Kernel, code: Option<Py<PyObjectCode>>) -> PyKernel {
        PyKernel {
            kernel: DropDetached::new(kernel),
            code,
            attributes: PyOnceLock::new(),
            occupancy: PyOnceLock::new(),
        }
    }

    /// The kernel.
    pub fn get(&self) -> &Kernel {
        &self.kernel
    }
}

/// Converts a `CUkernel` or an int to an address.
fn address(given: &Bound<'_, PyAny>) -> PyResult<usize> {
    if let Some(address) = types::own_handle(Obj::of(given), class::CUkernel) {
        return Ok(address as usize);
    }
    let Ok(number) = given.cast::<PyInt>() else {
        return Err(PyTypeError::new_err(format!(
            "from_handle() argument 'handle' is of type {}; expected a CUkernel or an int",
            given.get_type().name()?
        )));
    };
    number.extract::<usize>().map_err(|_| {
        PyOverflowError::new_err(format!(
            "from_handle() argument 'handle' is {number}; expected an address of at most 64 bits"
        ))
    })
}

#[pymethods]
impl PyKernel {
    /// `kernel[grid, block]` is how numba-cuda configures a launch.
    fn __getitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let (grid, block) = match key.cast::<PyTuple>() {
            Ok(given) if given.len() >= 2 => (
                given.get_item(0)?.repr()?.to_string(),
                given.get_item(1)?.repr()?.to_string(),
            ),
            _ => ("...".to_owned(), "...".to_owned()),
        };
        Err(PyTypeError::new_err(format!(
            "a Kernel of cuda.core is not subscriptable: kernel[grid, block](...) is the syntax of numba-cuda; use \
             launch(stream, LaunchConfig(grid={grid}, block={block}), kernel, ...)"
        )))
    }

    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn py_new(
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyKernel> {
        Err(PyRuntimeError::new_err(
            "Kernel cannot be instantiated; use ObjectCode.get_kernel() or wrap a handle with Kernel.from_handle()",
        ))
    }

    /// Wraps a kernel handle.
    ///
    /// Parameters
    /// ----------
    /// handle : CUkernel or int
    ///     Driver handle of a kernel. The driver does not validate it and may crash on an invalid handle.
    /// mod : ObjectCode, optional
    ///     Code of the kernel, which the kernel then keeps loaded. Without it, the caller keeps the code loaded, unless
    ///     the handle came from this package. Other code is not used, with a ``UserWarning``.
    ///
    /// Returns
    /// -------
    /// Kernel
    #[doc = example!("cuda.core.Kernel.from_handle")]
    #[staticmethod]
    #[pyo3(signature = (handle, r#mod=None))]
    fn from_handle(
        py: Python<'_>,
        handle: &Bound<'_, PyAny>,
        r#mod: Option<&Bound<'_, PyObjectCode>>,
    ) -> PyResult<PyKernel> {
        let address = address(handle)?;
        let library = r#mod.and_then(|code| code.get().get().loaded_library().cloned());
        // SAFETY: the caller guarantees a valid handle, see above.
        let kernel = unsafe {
            Kernel::from_handle(
                std::ptr::with_exposed_provenance_mut(address),
                library.clone(),
            )
        };
        let Ok(kernel) = kernel else {
            return Err(PyValueError::new_err(
                "from_handle() argument 'handle' is 0; expected a kernel handle",
            ));
        };
        // A handle of this package has a library of its own, which may be another one. A kernel with other code would be
        // pickled as a kernel of that code.
        let belongs = kernel.library() == library.as_ref();
        if !belongs && library.is_some() {
            let message = c"from_handle() argument 'mod' is not the code of this kernel: it was loaded from another ObjectCode";
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), message, 1)?;
        }
        let code = r#mod.filter(|_| belongs);
        Ok(PyKernel::new(
            kernel,
            code.map(|code| code.clone().unbind()),
        ))
    }

    /// CUkernel: Driver handle. Reading it leaves unloading of the code to the program (:attr:`ObjectCode.handle`): the
    /// handle stays valid after this object is freed.
    #[doc = example!("cuda.core.Kernel.handle")]
    #[getter]
    fn handle(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        if let Some(library) = self.kernel.library() {
            library.disown();
        }
        handle_object(py, class::CUkernel, self.kernel.handle().addr())
    }

    /// int: Number of parameters.
    #[getter]
    fn num_arguments(&self, py: Python<'_>) -> PyResult<usize> {
        self.params(py).map(<[_]>::len)
    }

    /// list of ParamInfo: Offset and size in bytes of each parameter, in order.
    #[doc = example!("cuda.core.Kernel.arguments_info")]
    #[getter]
    fn arguments_info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let params = self.params(py)?;
        let created = PyList::empty(py);
        if !params.is_empty() {
            let class = PyModule::import(py, "cuda.core._module")?.getattr("ParamInfo")?;
            for param in params {
                created.append(class.call1((param.offset, param.size))?)?;
            }
        }
        Ok(created)
    }

    /// KernelAttributes: Driver attributes on the current device, or indexed by device.
    #[doc = example!("cuda.core.Kernel.attributes")]
    #[getter]
    fn attributes(&self, py: Python<'_>) -> PyResult<Py<PyKernelAttributes>> {
        let created = self.attributes.get_or_try_init(py, || {
            Py::new(py, PyKernelAttributes::of(self.get().clone()))
        })?;
        Ok(created.clone_ref(py))
    }

    /// KernelOccupancy: Occupancy queries.
    #[doc = example!("cuda.core.Kernel.occupancy")]
    #[getter]
    fn occupancy(&self, py: Python<'_>) -> PyResult<Py<PyKernelOccupancy>> {
        let created = self.occupancy.get_or_try_init(py, || {
            Py::new(py, PyKernelOccupancy::of(self.get().clone()))
        })?;
        Ok(created.clone_ref(py))
    }

    fn __eq__(&self, other: PyRef<'_, PyKernel>) -> bool {
        *self.kernel == *other.kernel
    }

    fn __hash__(&self) -> u64 {
        // Handles are aligned; dictionaries index by the low bits.
        (self.kernel.handle().addr() as u64).rotate_right(4)
    }

    /// The symbol, for the drawings of graphs; empty if the driver does not report it.
    #[getter]
    fn _name(&self) -> &str {
        self.kernel.name()
    }

    fn __repr__(&self) -> String {
        format!("<Kernel handle={:#x}>", self.kernel.handle().addr())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let Some(code) = &self.code else {
            return Err(PyTypeError::new_err(
                "a Kernel created from a handle cannot be pickled: its code is unknown",
            ));
        };
        let maker = PyModule::import(py, "cuda.core._module")?.getattr("_kernel")?;
        let name = self.kernel.name();
        (maker, (code.clone_ref(py), name)).into_pyobject(py)
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.code)
    }
}

impl PyKernel {
    fn params(&self, py: Python<'_>) -> PyResult<&[cupyrite::ParamInfo]> {
        let params = py.detach(|| self.get().try_params()).or_raise(py)?;
        params.ok_or_else(|| {
            PyNotImplementedError::new_err(
                "this driver does not report kernel parameters, which requires CUDA 12.4",
            )
        })
    }
}

/// Adds the class.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    core.add_class::<PyKernel>()
}
