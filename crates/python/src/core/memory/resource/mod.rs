//! `MemoryResource`, the base class, and the ways to use any of them; the resources over device memory.

pub mod device;
pub mod pool;
pub mod synchronous;

use cupyrite::{Device, MemoryPool, Stream};
pub use device::PyDeviceMemoryResource;
pub use pool::{PyMemPool, shared_pool_of};
use pyo3::exceptions::{PyDeprecationWarning, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
pub use synchronous::PySynchronousMemoryResource;

use crate::core::errors::OrRaise;
use crate::core::memory::buffer::PyBuffer;
use crate::core::memory::pool_attributes::PyMemPoolAttributes;
use crate::core::stream;
use crate::cpython::method;

/// Where buffers get their memory; the base class of all memory resources.
///
/// Deriving from it makes a resource of one's own: ``allocate`` returns ``Buffer.from_handle(ptr, size, mr=self)``,
/// ``deallocate`` gets the address back, once, when that buffer is closed or forgotten, and the properties say of what kind
/// the memory is. ``Device.memory_resource`` takes such a resource.
#[pyclass(
    frozen,
    weakref,
    subclass,
    module = "cuda.core._memory._buffer",
    name = "MemoryResource"
)]
pub struct PyMemoryResource;

fn not_implemented(what: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "MemoryResource.{what} is left to derived classes, and this class does not have it"
    ))
}

#[pymethods]
impl PyMemoryResource {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> PyMemoryResource {
        PyMemoryResource
    }

    /// Allocates memory; derived classes implement it.
    ///
    /// Parameters
    /// ----------
    /// size : int
    ///     Bytes.
    /// stream : Stream
    ///     In whose order the memory is there.
    ///
    /// Returns
    /// -------
    /// Buffer
    #[pyo3(signature = (size, *, stream))]
    fn allocate(&self, size: &Bound<'_, PyAny>, stream: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let (_, _) = (size, stream);
        Err(not_implemented("allocate()"))
    }

    /// Frees memory that this resource allocated; derived classes implement it.
    ///
    /// Parameters
    /// ----------
    /// ptr : int
    ///     The address.
    /// size : int
    ///     Bytes.
    /// stream : Stream
    ///     In whose order the memory is free.
    #[pyo3(signature = (ptr, size, *, stream))]
    fn deallocate(
        &self,
        ptr: &Bound<'_, PyAny>,
        size: &Bound<'_, PyAny>,
        stream: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (_, _, _) = (ptr, size, stream);
        Err(not_implemented("deallocate()"))
    }

    /// Whether kernels can use the memory; derived classes say so.
    #[getter]
    fn is_device_accessible(&self) -> PyResult<bool> {
        Err(not_implemented("is_device_accessible"))
    }

    /// Whether the host can use the memory; derived classes say so.
    #[getter]
    fn is_host_accessible(&self) -> PyResult<bool> {
        Err(not_implemented("is_host_accessible"))
    }

    /// Whether the memory is managed; not unless a derived class says so.
    #[getter]
    fn is_managed(&self) -> bool {
        false
    }

    /// The number of the device that the memory belongs to; derived classes say so.
    #[getter]
    fn device_id(&self) -> PyResult<i64> {
        Err(not_implemented("device_id"))
    }
}

/// The stream of an argument that used to be optional.
#[inline(always)]
pub(super) fn stream_or_default<'py>(
    py: Python<'py>,
    given: Option<&Bound<'py, PyAny>>,
    function: &str,
) -> PyResult<Stream> {
    if let Some(given) = given {
        return stream::accept_for_memory(given, function, "stream");
    }
    warn_of_default(py)?;
    Ok(Stream::default_stream())
}

#[cold]
#[inline(never)]
fn warn_of_default(py: Python<'_>) -> PyResult<()> {
    let category = py.get_type::<PyDeprecationWarning>();
    PyErr::warn(
        py,
        &category,
        c"allocate() without a stream allocates on the default stream; give it stream=device.default_stream",
        1,
    )
}

/// Memory of `device` from any resource, in the order of a stream.
///
/// # Errors
///
/// What the resource raises; `TypeError` where it gives something else than a `Buffer`.
pub fn allocate<'py>(
    resource: &Bound<'py, PyAny>,
    size: usize,
    stream: &Bound<'py, PyAny>,
    device: Device,
) -> PyResult<Bound<'py, PyAny>> {
    let py = resource.py();
    if let Ok(ours) = resource.cast_exact::<PyDeviceMemoryResource>() {
        let accepted = stream::accept_for_memory(stream, "allocate", "stream")?;
        let buffer = PyMemPool::allocate_on(ours.as_super(), size, accepted)?;
        return Ok(buffer.into_bound(py).into_any());
    }
    let keywords = PyDict::new(py);
    keywords.set_item(intern!(py, "stream"), stream)?;
    // A default stream is one of the current context, so this device's has to be that.
    let entered = device.enter().or_raise(py)?;
    let buffer = resource.call_method(intern!(py, "allocate"), (size,), Some(&keywords));
    drop(entered);
    let buffer = buffer?;
    if buffer.cast::<PyBuffer>().is_err() {
        return Err(PyTypeError::new_err(format!(
            "{}.allocate() returned an object of type {}; expected a Buffer",
            resource.get_type().name()?,
            buffer.get_type().name()?
        )));
    }
    Ok(buffer)
}

/// The resource that a device allocates from unless it is told otherwise.
///
/// # Errors
///
/// What the driver says.
pub fn default_for(py: Python<'_>, device: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let opened = crate::core::device::accept(device, "Device.memory_resource", "device")?;
    let class = if MemoryPool::supported(&opened).or_raise(py)? {
        py.get_type::<PyDeviceMemoryResource>()
    } else {
        py.get_type::<PySynchronousMemoryResource>()
    };
    class.call1((device,)).map(Bound::unbind)
}

/// Adds the classes.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    core.add_class::<PyMemoryResource>()?;
    core.add_class::<PyMemPool>()?;
    method::add::<pool::Allocate, 2>(core.py())?;
    core.add_class::<PyMemPoolAttributes>()?;
    core.add_class::<PyDeviceMemoryResource>()?;
    core.add_class::<PySynchronousMemoryResource>()?;
    core.add_function(wrap_pyfunction!(pool::mempool_get_access, core)?)?;
    core.add_function(wrap_pyfunction!(pool::_deferred_pool_count, core)?)?;
    core.add_function(wrap_pyfunction!(pool::mempool_set_access, core)?)
}
