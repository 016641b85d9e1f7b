//! Page-locked host memory: `PinnedMemoryResource` and `LegacyPinnedMemoryResource`.

use std::sync::Arc;

use cupyrite::sys::driver::CUresult;
use cupyrite::{
    DeviceBuffer, Error, HostMemoryResource, MemoryLocation, MemoryPool, MemoryResource, PoolKind,
    PoolOptions,
};
use pyo3::exceptions::{PyOverflowError, PyRuntimeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::core::errors::OrRaise;
use crate::core::memory::buffer::{Backing, PyBuffer};
use crate::core::memory::ipc;
use crate::core::memory::ipc_handles::PyAllocationHandle;
use crate::core::memory::location;
use crate::core::memory::managed::nearest_node;
use crate::core::memory::resource::base::{PyMemoryResource, max_size};
use crate::core::memory::resource::pool::PyMemPool;
use crate::core::numbers::{address_argument, short_repr, size_argument};
use crate::core::options::{OptionClass, Options};
use crate::core::stream;

/// Page-locked host memory from a driver memory pool; stream-ordered allocation and deallocation. Accessible to the
/// host and all devices.
///
/// Parameters
/// ----------
/// options : PinnedMemoryResourceOptions or dict, optional
///     Options of a new pool. Without options, the resource uses the driver's current pool for host memory; drivers
///     before CUDA 13 have none, and the resource creates a pool.
///
/// See `Stream-ordered memory allocator <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__MALLOC__ASYNC.html>`_.
#[doc = example!("cuda.core.PinnedMemoryResource")]
#[pyclass(
    frozen,
    subclass,
    extends = PyMemPool,
    module = "cuda.core._memory._pinned_memory_resource",
    name = "PinnedMemoryResource"
)]
pub struct PyPinnedMemoryResource;

const CLASS: &str = "PinnedMemoryResource";

static OPTIONS: OptionClass = OptionClass::new(
    "cuda.core._memory._pinned_memory_resource",
    "PinnedMemoryResourceOptions",
);

/// The driver's current pool for host memory, or a new pool on drivers without one.
fn host_pool() -> cupyrite::Result<MemoryPool> {
    let kind = PoolKind::Host(None);
    match MemoryPool::current_for_kind(kind) {
        Err(
            Error::Load(_)
            | Error::Driver {
                status:
                    CUresult::CUDA_ERROR_NOT_FOUND | CUresult::CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER,
                ..
            },
        ) => MemoryPool::with_kind(kind, &PoolOptions::default()),
        found => found,
    }
}

#[pymethods]
impl PyPinnedMemoryResource {
    // `__init__` takes the parameters, so that subclasses can have others.
    #[new]
    #[pyo3(signature = (*_args, **_kwargs), text_signature = "(options=None)")]
    fn new(
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyClassInitializer<PyPinnedMemoryResource> {
        PyMemPool::uninitialized().add_subclass(PyPinnedMemoryResource)
    }

    #[pyo3(signature = (options=None))]
    fn __init__(slf: &Bound<'_, Self>, options: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let py = slf.py();
        let mut shareable = false;
        let created = match options.filter(|options| !options.is_none()) {
            None => py.detach(host_pool),
            given => {
                let class = "PinnedMemoryResourceOptions";
                let options = Options::accept(CLASS, &OPTIONS, given)?;
                shareable = options.flag(intern!(py, "ipc_enabled"), false)?;
                let max_size = max_size(py, &options, class)?;
                let node = match options.value(intern!(py, "numa_id"))? {
                    None => None,
                    Some(node) => Some(node.extract::<i32>().map_err(|_| {
                        PyOverflowError::new_err(format!(
                            "{class}.numa_id is {}, which is not a NUMA node number",
                            short_repr(&node)
                        ))
                    })?),
                };
                let node = match node {
                    Some(node) if node < 0 => {
                        return Err(PyValueError::new_err(format!(
                            "{class}.numa_id is {node}; expected a node number from 0, or None for the system's choice"
                        )));
                    }
                    // Drivers only share pools of a specific node.
                    None if shareable => Some(nearest_node(py, &format!("{class}.numa_id"))?),
                    node => node,
                };
                let options = PoolOptions::default()
                    .max_size(max_size)
                    .shareable(shareable);
                let place = node.map(MemoryLocation::HostNuma);
                py.detach(|| MemoryPool::with_kind(PoolKind::Host(node), &options))
                    .map_err(|error| {
                        location::explain(error, place.as_slice(), &format!("{class}.numa_id"))
                    })
            }
        };
        slf.as_super()
            .get()
            .initialize(py, created, CLASS, shareable)
    }

    /// -1: the memory belongs to no device.
    #[getter]
    fn device_id(&self) -> i64 {
        -1
    }

    /// NUMA node of the memory; -1 if the system chooses.
    #[doc = example!("cuda.core.PinnedMemoryResource.numa_id")]
    #[getter]
    fn numa_id(slf: &Bound<'_, Self>) -> PyResult<i32> {
        match slf.as_super().get().kind(slf.py())? {
            PoolKind::Host(Some(node)) => Ok(node),
            _ => Ok(-1),
        }
    }

    /// True: the memory is device-accessible.
    #[getter]
    fn is_device_accessible(&self) -> bool {
        true
    }

    /// True: the memory is host-accessible.
    #[getter]
    fn is_host_accessible(&self) -> bool {
        true
    }

    /// Handle with which another process imports the pool by :meth:`from_allocation_handle`: an
    /// ``IPCAllocationHandle``.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     The resource is not IPC-enabled.
    #[doc = example!("cuda.core.PinnedMemoryResource.allocation_handle")]
    #[getter]
    fn allocation_handle(slf: &Bound<'_, Self>) -> PyResult<Py<PyAllocationHandle>> {
        slf.as_super().get().shared(slf.py())
    }

    /// Registers the resource under its UUID, so that buffers received from other processes find it.
    ///
    /// Parameters
    /// ----------
    /// uuid : uuid.UUID
    ///     UUID of the pool. A resource created from a file descriptor has none and adopts it.
    ///
    /// Returns
    /// -------
    /// PinnedMemoryResource
    ///     The registered resource: this one, or the one already registered under the UUID.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     The resource is not IPC-enabled.
    /// ValueError
    ///     The resource has another UUID.
    #[doc = example!("cuda.core.PinnedMemoryResource.register")]
    fn register<'py>(
        slf: &Bound<'py, Self>,
        uuid: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        ipc::register(slf.as_super(), uuid)
    }

    /// The resource registered under a UUID. Imported resources are registered on creation.
    ///
    /// Parameters
    /// ----------
    /// uuid : uuid.UUID
    ///     UUID of the pool.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     No resource is registered.
    #[staticmethod]
    fn from_registry<'py>(uuid: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        ipc::from_registry(uuid)
    }

    /// Creates a resource over another process's pool. It cannot allocate; its buffers come from
    /// :meth:`Buffer.from_ipc_descriptor`.
    ///
    /// Parameters
    /// ----------
    /// alloc_handle : IPCAllocationHandle or int
    ///     The other process's :attr:`allocation_handle`, or a file descriptor, which remains owned by the caller.
    ///
    /// Returns
    /// -------
    /// PinnedMemoryResource
    ///     The registered resource, if the handle's pool is registered in this process.
    #[doc = example!("cuda.core.PinnedMemoryResource.from_allocation_handle")]
    #[classmethod]
    fn from_allocation_handle<'py>(
        class: &Bound<'py, PyType>,
        alloc_handle: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = class.py();
        // Drivers do not report the node of an imported pool.
        let kind = PoolKind::Host(nearest_node(py, "alloc_handle").ok());
        let base = py.get_type::<PyPinnedMemoryResource>();
        ipc::import(class, &base, CLASS, kind, alloc_handle)
    }

    /// Pickling requires an IPC-enabled resource. Plain pickles contain the UUID, under which the receiving process has
    /// registered the pool; ``multiprocessing`` sends the allocation handle.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        ipc::reduce(slf.as_super(), &slf.py().get_type::<Self>())
    }
}

/// Page-locked host memory by synchronous allocation (``cuMemHostAlloc``). Accessible to the host and all devices.
///
/// Deallocation waits for the streams that use the memory, unlike that of :class:`PinnedMemoryResource`.
#[doc = example!("cuda.core.LegacyPinnedMemoryResource")]
#[pyclass(
    frozen,
    dict,
    subclass,
    extends = PyMemoryResource,
    module = "cuda.core._memory._legacy",
    name = "LegacyPinnedMemoryResource"
)]
pub struct PyLegacyPinnedMemoryResource;

#[pymethods]
impl PyLegacyPinnedMemoryResource {
    // Subclasses may have parameters.
    #[new]
    #[pyo3(signature = (*_args, **_kwargs), text_signature = "()")]
    fn new(
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyClassInitializer<PyLegacyPinnedMemoryResource> {
        PyClassInitializer::from(PyMemoryResource).add_subclass(PyLegacyPinnedMemoryResource)
    }

    /// Allocates memory.
    ///
    /// Parameters
    /// ----------
    /// size : int
    ///     Size in bytes; 0 yields a buffer with address 0.
    /// stream : Stream, optional
    ///     Stream that deallocation waits for. Default: the default stream. The allocation is synchronous.
    ///
    /// Returns
    /// -------
    /// Buffer
    #[doc = example!("cuda.core.LegacyPinnedMemoryResource.allocate")]
    #[pyo3(signature = (size, *, stream=None))]
    fn allocate(
        slf: &Bound<'_, Self>,
        size: &Bound<'_, PyAny>,
        stream: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyBuffer>> {
        let py = slf.py();
        let size = size_argument(size, "allocate")?;
        let stream = stream::accept_or_default(py, stream, "allocate")?;
        let memory = py
            .detach(|| DeviceBuffer::from_resource(Arc::new(HostMemoryResource), size, &stream))
            .or_raise(py)?;
        let (address, resource) = (memory.address(), slf.clone().into_any().unbind());
        PyBuffer::create(
            py,
            Backing::Pool(memory),
            address,
            size,
            Some(resource),
            None,
        )
    }

    /// Frees memory by address after the stream's work has completed. Buffers free their memory themselves.
    ///
    /// Parameters
    /// ----------
    /// ptr : int or cuda.bindings.driver.CUdeviceptr
    ///     Address.
    /// size : int
    ///     Size in bytes.
    /// stream : Stream, optional
    ///     Stream to wait for. Default: the default stream.
    #[doc = example!("cuda.core.LegacyPinnedMemoryResource.deallocate")]
    #[pyo3(signature = (ptr, size, *, stream=None))]
    fn deallocate(
        &self,
        py: Python<'_>,
        ptr: &Bound<'_, PyAny>,
        size: &Bound<'_, PyAny>,
        stream: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let address = address_argument(ptr, "deallocate")?;
        let size = size_argument(size, "deallocate")?;
        let stream = stream::accept_or_default(py, stream, "deallocate")?;
        if address == 0 {
            return Ok(());
        }
        // SAFETY: the caller guarantees that the memory is no longer used; the driver rejects addresses that it did not
        // allocate.
        py.detach(|| unsafe { HostMemoryResource.deallocate(address, size, &stream) })
            .or_raise(py)
    }

    /// ``RuntimeError``: the memory belongs to no device.
    #[getter]
    fn device_id(&self) -> PyResult<i64> {
        Err(PyRuntimeError::new_err(
            "page-locked host memory belongs to no device",
        ))
    }

    /// True: the memory is device-accessible.
    #[getter]
    fn is_device_accessible(&self) -> bool {
        true
    }

    /// True: the memory is host-accessible.
    #[getter]
    fn is_host_accessible(&self) -> bool {
        true
    }
}

/// Adds the classes.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    core.add_class::<PyPinnedMemoryResource>()?;
    core.add_class::<PyLegacyPinnedMemoryResource>()
}
