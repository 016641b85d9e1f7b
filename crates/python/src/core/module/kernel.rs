//! `Kernel`.

use cupyrite::Kernel;
use pyo3::exceptions::{
    PyNotImplementedError, PyOverflowError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyInt, PyList, PyTuple};

use crate::core::closable::Unlocked;
use crate::core::context::handle_object;
use crate::core::errors::OrRaise;
use crate::core::module::kernel_attributes::PyKernelAttributes;
use crate::core::module::object_code::PyObjectCode;
use crate::core::module::occupancy::PyKernelOccupancy;
use crate::generated::ids::class::driver as class;
use crate::types;

/// A kernel of loaded code, as :meth:`ObjectCode.get_kernel` gives it.
///
/// It keeps its code loaded, and belongs to no context: it runs on the device of the stream that it is launched in.
/// Kernels are equal if they have the same handle. A kernel that came from an :class:`ObjectCode` can be pickled, and
/// takes its code along.
#[pyclass(
    frozen,
    weakref,
    subclass,
    module = "cuda.core._module",
    name = "Kernel"
)]
pub struct PyKernel {
    kernel: Unlocked<Kernel>,
    code: Option<Py<PyObjectCode>>,
    attributes: PyOnceLock<Py<PyKernelAttributes>>,
    occupancy: PyOnceLock<Py<PyKernelOccupancy>>,
}

/// The kernel that an object is; None for any other object, and no exception.
///
/// # Safety
///
/// `object` is a live Python object, and stays alive for as long as the result is used.
#[inline]
pub unsafe fn borrow<'a>(py: Python<'_>, object: *mut ffi::PyObject) -> Option<&'a Kernel> {
    // SAFETY: the caller's promise.
    let object = unsafe { Borrowed::<PyAny>::from_ptr(py, object) };
    let kernel: *const Kernel = object.cast::<PyKernel>().ok()?.get().get();
    // SAFETY: the class is frozen, so the kernel stays where it is while the object lives, as the caller promises.
    Some(unsafe { &*kernel })
}

impl PyKernel {
    /// The shell of a kernel, with the object code that it came from.
    pub fn new(kernel: Kernel, code: Option<Py<PyObjectCode>>) -> PyKernel {
        PyKernel {
            kernel: Unlocked::new(kernel),
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

/// The address that a `CUkernel` or an int stands for.
fn address(given: &Bound<'_, PyAny>) -> PyResult<usize> {
    if let Some(address) = types::own_handle(given.as_ptr(), class::CUkernel) {
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
            "from_handle() argument 'handle' is {number}, which is no address"
        ))
    })
}

#[pymethods]
impl PyKernel {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn py_new(
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyKernel> {
        Err(PyRuntimeError::new_err(
            "a Kernel is not made directly: take it from an ObjectCode with get_kernel, or wrap a handle with \
             Kernel.from_handle",
        ))
    }

    /// A kernel that something else has loaded.
    ///
    /// Parameters
    /// ----------
    /// handle : CUkernel or int
    ///     The driver's handle. It must be that of a kernel: the driver cannot tell, and may crash where it is not.
    /// mod : ObjectCode, optional
    ///     The code that it belongs to, which the kernel then keeps loaded. Without it the code must stay loaded by
    ///     other means, unless the handle came from this package.
    ///
    /// Returns
    /// -------
    /// Kernel
    #[staticmethod]
    #[pyo3(signature = (handle, r#mod=None))]
    fn from_handle(
        handle: &Bound<'_, PyAny>,
        r#mod: Option<&Bound<'_, PyObjectCode>>,
    ) -> PyResult<PyKernel> {
        let address = address(handle)?;
        let library = r#mod.and_then(|code| code.get().get().loaded_library().cloned());
        // SAFETY: that it is a kernel's handle is the caller's promise, see above.
        let kernel =
            unsafe { Kernel::from_handle(std::ptr::with_exposed_provenance_mut(address), library) };
        match kernel {
            Ok(kernel) => Ok(PyKernel::new(
                kernel,
                r#mod.map(|code| code.clone().unbind()),
            )),
            Err(_) => Err(PyValueError::new_err(
                "from_handle() argument 'handle' is 0; expected the handle of a kernel",
            )),
        }
    }

    /// CUkernel: The driver's handle; valid while this object lives.
    #[getter]
    fn handle(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        handle_object(py, class::CUkernel, self.kernel.handle().addr())
    }

    /// int: How many parameters the kernel has.
    #[getter]
    fn num_arguments(&self, py: Python<'_>) -> PyResult<usize> {
        self.params(py).map(<[_]>::len)
    }

    /// list of ParamInfo: Offset and size in bytes of each parameter, in order.
    #[getter]
    fn arguments_info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let params = self.params(py)?;
        let made = PyList::empty(py);
        if !params.is_empty() {
            let class = PyModule::import(py, "cuda.core._module")?.getattr("ParamInfo")?;
            for param in params {
                made.append(class.call1((param.offset, param.size))?)?;
            }
        }
        Ok(made)
    }

    /// KernelAttributes: What the driver knows of the kernel, on the current device or, indexed, on another one.
    #[getter]
    fn attributes(&self, py: Python<'_>) -> PyResult<Py<PyKernelAttributes>> {
        let made = self.attributes.get_or_try_init(py, || {
            Py::new(py, PyKernelAttributes::of(self.get().clone()))
        })?;
        Ok(made.clone_ref(py))
    }

    /// KernelOccupancy: How much of the kernel fits on a device at once.
    #[getter]
    fn occupancy(&self, py: Python<'_>) -> PyResult<Py<PyKernelOccupancy>> {
        let made = self.occupancy.get_or_try_init(py, || {
            Py::new(py, PyKernelOccupancy::of(self.get().clone()))
        })?;
        Ok(made.clone_ref(py))
    }

    fn __eq__(&self, other: PyRef<'_, PyKernel>) -> bool {
        *self.kernel == *other.kernel
    }

    fn __hash__(&self) -> u64 {
        // Handles are aligned; the low bits are the ones that dictionaries look at.
        (self.kernel.handle().addr() as u64).rotate_right(4)
    }

    fn __repr__(&self) -> String {
        format!("<Kernel handle={:#x}>", self.kernel.handle().addr())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let Some(code) = &self.code else {
            return Err(PyTypeError::new_err(
                "a Kernel made from a handle cannot be pickled: the code that it belongs to is not known",
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
                "this driver does not tell a kernel's parameters; CUDA 12.4 and later do",
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
