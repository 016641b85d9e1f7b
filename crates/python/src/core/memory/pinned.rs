//! Page-locked memory of the host: `PinnedMemoryResource` and `LegacyPinnedMemoryResource`.

use std::sync::Arc;

use cupyrite::sys::driver::CUresult;
use cupyrite::{
    DeviceBuffer, Error, HostMemoryResource, MemoryLocation, MemoryPool, MemoryResource, PoolKind,
    PoolOptions, Stream,
};
use pyo3::exceptions::{PyOverflowError, PyRuntimeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::core::closable::Lent;
use crate::core::errors::OrRaise;
use crate::core::memory::buffer::{Backing, PyBuffer};
use crate::core::memory::ipc;
use crate::core::memory::ipc::PyAllocationHandle;
use crate::core::memory::location;
use crate::core::memory::managed::nearest_node;
use crate::core::memory::resource::{PyMemPool, PyMemoryResource};
use crate::core::numbers::{address_argument, shown, size_argument};
use crate::core::options::{OptionClass, Options};
use crate::core::stream;

/// Page-locked memory of the host, from a pool of the driver's, allocated and freed in the order of streams. The host and all
/// devices can use it.
///
/// Parameters
/// ----------
/// options : PinnedMemoryResourceOptions or dict, optional
///     How a pool of the resource's own is made. Without options the resource uses the driver's pool for memory of the host;
///     drivers before CUDA 13 have none, and the resource makes its own.
///
/// See `Stream-ordered memory allocator <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__MALLOC__ASYNC.html>`_.
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

/// The driver's pool of the host's memory, or an own one where the driver is too old to have it.
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
    // `__init__` has the parameters, so that derived classes may have others.
    #[new]
    #[pyo3(signature = (*_args, **_kwargs), text_signature = "(options=None)")]
    fn new(
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyClassInitializer<PyPinnedMemoryResource> {
        PyMemPool::unmade().add_subclass(PyPinnedMemoryResource)
    }

    #[pyo3(signature = (options=None))]
    fn __init__(slf: &Bound<'_, Self>, options: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let py = slf.py();
        let mut shareable = false;
        let made = match options.filter(|options| !options.is_none()) {
            None => py.detach(host_pool),
            given => {
                let class = "PinnedMemoryResourceOptions";
                let options = Options::accept(CLASS, &OPTIONS, given)?;
                shareable = options.flag(intern!(py, "ipc_enabled"), false)?;
                let max_size = match options.value(intern!(py, "max_size"))? {
                    None => 0,
                    Some(size) => size.extract::<usize>().map_err(|_| {
                        PyOverflowError::new_err(format!(
                            "{class}.max_size is {}; expected a number of bytes from 0 to 2**64-1",
                            shown(&size)
                        ))
                    })?,
                };
                let node = match options.value(intern!(py, "numa_id"))? {
                    None => None,
                    Some(node) => Some(node.extract::<i32>().map_err(|_| {
                        PyOverflowError::new_err(format!(
                            "{class}.numa_id is {}, which is the number of no NUMA node",
                            shown(&node)
                        ))
                    })?),
                };
                let node = match node {
                    Some(node) if node < 0 => {
                        return Err(PyValueError::new_err(format!(
                            "{class}.numa_id is {node}; NUMA nodes are numbered from 0, and None leaves the choice to the system"
                        )));
                    }
                    // Drivers share pools of a node only.
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
        let pool = Lent::new(py, made.or_raise(py)?);
        let (shared, uuid) = match shareable {
            true => ipc::share(py, &pool).map(|(handle, uuid)| (Some(handle), Some(uuid)))?,
            false => (None, None),
        };
        slf.as_super()
            .get()
            .fill(py, pool.clone(), CLASS, shared, uuid);
        Ok(())
    }

    /// -1: the memory is of no device.
    #[getter]
    fn device_id(&self) -> i64 {
        -1
    }

    /// The NUMA node of the memory; -1 where the system chooses.
    #[getter]
    fn numa_id(slf: &Bound<'_, Self>) -> PyResult<i32> {
        match slf.as_super().get().kind(slf.py())? {
            PoolKind::Host(Some(node)) => Ok(node),
            _ => Ok(-1),
        }
    }

    /// True: kernels can use the memory.
    #[getter]
    fn is_device_accessible(&self) -> bool {
        true
    }

    /// True: it is memory of the host.
    #[getter]
    fn is_host_accessible(&self) -> bool {
        true
    }

    /// What another process needs to use the pool, by :meth:`from_allocation_handle`: an ``IPCAllocationHandle``.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     The resource is not IPC-enabled.
    #[getter]
    fn allocation_handle(slf: &Bound<'_, Self>) -> PyResult<Py<PyAllocationHandle>> {
        slf.as_super().get().shared(slf.py())
    }

    /// Registers the resource under its UUID, so that buffers which arrive from other processes find it.
    ///
    /// Parameters
    /// ----------
    /// uuid : uuid.UUID
    ///     The pool's. A resource that was made from a file descriptor, and has none, takes it.
    ///
    /// Returns
    /// -------
    /// PinnedMemoryResource
    ///     The resource that is registered: this one, or the one that was registered under the UUID before.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     The resource is not IPC-enabled.
    /// ValueError
    ///     It has another UUID.
    fn register<'py>(
        slf: &Bound<'py, Self>,
        uuid: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        ipc::register(slf.as_super(), uuid)
    }

    /// The resource that was registered under a UUID. Those over pools of other processes are registered when they are
    /// made.
    ///
    /// Parameters
    /// ----------
    /// uuid : uuid.UUID
    ///     The pool's.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     There is none.
    #[staticmethod]
    fn from_registry<'py>(uuid: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        ipc::from_registry(uuid)
    }

    /// A resource over another process's pool. It hands out no memory of its own; its buffers come by
    /// :meth:`Buffer.from_ipc_descriptor`.
    ///
    /// Parameters
    /// ----------
    /// alloc_handle : IPCAllocationHandle or int
    ///     What the other process has as :attr:`allocation_handle`, or a file descriptor of it, which remains the caller's.
    ///
    /// Returns
    /// -------
    /// PinnedMemoryResource
    ///     The registered one, where the handle's pool is known in this process.
    #[classmethod]
    fn from_allocation_handle<'py>(
        class: &Bound<'py, PyType>,
        alloc_handle: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = class.py();
        // Drivers do not tell the node of an imported pool.
        let kind = PoolKind::Host(nearest_node(py, "alloc_handle").ok());
        let base = py.get_type::<PyPinnedMemoryResource>();
        ipc::import(class, &base, CLASS, kind, alloc_handle)
    }

    /// Pickling shares the pool with another process, which it has to allow: plainly by the UUID under which the process
    /// that loads it has registered the pool, by ``multiprocessing`` by its allocation handle.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        ipc::reduce(slf.as_super(), &slf.py().get_type::<Self>())
    }
}

/// Page-locked memory of the host, allocated at once (``cuMemHostAlloc``). The host and all devices can use it.
///
/// Freeing waits for the streams that use the memory; :class:`PinnedMemoryResource` does not.
#[pyclass(
    frozen,
    dict,
    subclass,
    extends = PyMemoryResource,
    module = "cuda.core._memory._legacy",
    name = "LegacyPinnedMemoryResource"
)]
pub struct PyLegacyPinnedMemoryResource;

/// The stream that is given, or the default one.
fn given_stream(given: Option<&Bound<'_, PyAny>>, function: &str) -> PyResult<Stream> {
    match given {
        Some(given) => stream::accept(given, function, "stream", false),
        None => Ok(Stream::default_stream()),
    }
}

#[pymethods]
impl PyLegacyPinnedMemoryResource {
    // Derived classes may have parameters.
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
    ///     Bytes; 0 gives a buffer with the address 0.
    /// stream : Stream, optional
    ///     What freeing waits for; the default stream by default. The memory is there at once.
    ///
    /// Returns
    /// -------
    /// Buffer
    #[pyo3(signature = (size, *, stream=None))]
    fn allocate(
        slf: &Bound<'_, Self>,
        size: &Bound<'_, PyAny>,
        stream: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyBuffer>> {
        let py = slf.py();
        let size = size_argument(size, "allocate")?;
        let stream = given_stream(stream, "allocate")?;
        let memory = py
            .detach(|| DeviceBuffer::from_resource(Arc::new(HostMemoryResource), size, &stream))
            .or_raise(py)?;
        let (address, resource) = (memory.address(), slf.clone().into_any().unbind());
        PyBuffer::make(
            py,
            Backing::Pool(memory),
            address,
            size,
            Some(resource),
            None,
        )
    }

    /// Frees memory by its address, once the stream has done its work. A buffer frees its memory itself.
    ///
    /// Parameters
    /// ----------
    /// ptr : int or cuda.bindings.driver.CUdeviceptr
    ///     The address.
    /// size : int
    ///     Bytes.
    /// stream : Stream, optional
    ///     What to wait for; the default stream by default.
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
        let stream = given_stream(stream, "deallocate")?;
        if address == 0 {
            return Ok(());
        }
        // SAFETY: that nothing uses the memory any more is what this method asks of its caller; the driver refuses addresses
        // that it did not give out.
        py.detach(|| unsafe { HostMemoryResource.deallocate(address, size, &stream) })
            .or_raise(py)
    }

    /// ``RuntimeError``: the memory is of no device.
    #[getter]
    fn device_id(&self) -> PyResult<i64> {
        Err(PyRuntimeError::new_err(
            "page-locked memory of the host is of no device in particular",
        ))
    }

    /// True: kernels can use the memory.
    #[getter]
    fn is_device_accessible(&self) -> bool {
        true
    }

    /// True: it is memory of the host.
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
