//! `DeviceMemoryResource`.

use cupyrite::{Device, MemoryPool, PoolAttribute, PoolKind, PoolOptions};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::core::device;
use crate::core::memory::ipc;
use crate::core::memory::ipc_handles::PyAllocationHandle;
use crate::core::memory::resource::base::max_size;
use crate::core::memory::resource::pool::{PyMemPool, uninitialized};
use crate::core::options::{OptionClass, Options};

static OPTIONS: OptionClass = OptionClass::new(
    "cuda.core._memory._device_memory_resource",
    "DeviceMemoryResourceOptions",
);

/// Device memory from a driver memory pool; stream-ordered allocation and deallocation.
///
/// Parameters
/// ----------
/// device_id : int or Device
///     The device.
/// options : DeviceMemoryResourceOptions or dict, optional
///     Options of a new pool. Without options, the resource uses the device's current pool, shared with the rest of the
///     process, and raises its release threshold from 0 to the maximum, so that repeated allocations are cheap.
///
/// See `Stream-ordered memory allocator <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__MALLOC__ASYNC.html>`_.
#[doc = example!("cuda.core.DeviceMemoryResource")]
#[pyclass(
    frozen,
    subclass,
    extends = PyMemPool,
    module = "cuda.core._memory._device_memory_resource",
    name = "DeviceMemoryResource"
)]
pub struct PyDeviceMemoryResource;

/// The device's current pool, configured to retain freed memory.
fn current_pool(device: Device) -> cupyrite::Result<MemoryPool> {
    let pool = MemoryPool::current(&device)?;
    // 0, the driver's default, releases all unused memory at every synchronization. Other values were set by the
    // program and are kept.
    if pool.attribute(PoolAttribute::ReleaseThreshold)? == 0 {
        pool.set_attribute(PoolAttribute::ReleaseThreshold, u64::MAX)?;
    }
    Ok(pool)
}

#[pymethods]
impl PyDeviceMemoryResource {
    // `__init__` takes the parameters, so that subclasses can have others.
    #[new]
    #[pyo3(signature = (*_args, **_kwargs), text_signature = "(device_id, options=None)")]
    fn new(
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyClassInitializer<PyDeviceMemoryResource> {
        PyMemPool::uninitialized().add_subclass(PyDeviceMemoryResource)
    }

    #[pyo3(signature = (device_id, options=None))]
    fn __init__(
        slf: &Bound<'_, Self>,
        device_id: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let py = slf.py();
        let function = "DeviceMemoryResource";
        let device = device::accept_or_current(device_id, function, "device_id")?;
        let mut shareable = false;
        let created = match options.filter(|options| !options.is_none()) {
            None => py.detach(|| current_pool(device)),
            given => {
                let options = Options::accept(function, &OPTIONS, given)?;
                shareable = options.flag(intern!(py, "ipc_enabled"), false)?;
                let options = PoolOptions::default()
                    .max_size(max_size(py, &options, "DeviceMemoryResourceOptions")?)
                    .shareable(shareable);
                py.detach(|| MemoryPool::new(&device, &options))
            }
        };
        slf.as_super()
            .get()
            .initialize(py, created, function, shareable)?;
        // An instance of exactly this class has only the attributes of this crate.
        if slf.is_exact_instance_of::<PyDeviceMemoryResource>() {
            slf.as_super().get().set_leaf();
        }
        Ok(())
    }

    /// Device number.
    #[getter]
    fn device_id(slf: &Bound<'_, Self>) -> PyResult<usize> {
        match slf.as_super().get().kind(slf.py())? {
            PoolKind::Device(device) => Ok(device.ordinal()),
            _ => Err(uninitialized()),
        }
    }

    /// True: the memory is device-accessible.
    #[getter]
    fn is_device_accessible(&self) -> bool {
        true
    }

    /// False: the memory is not host-accessible.
    #[getter]
    fn is_host_accessible(&self) -> bool {
        false
    }

    /// Peer devices with access to the memory: a mutable set of :class:`Device`, which can also be assigned.
    #[doc = example!("cuda.core.DeviceMemoryResource.peer_accessible_by")]
    #[getter]
    fn peer_accessible_by<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.as_super().get().pool(slf.py())?;
        let py = slf.py();
        PyModule::import(py, intern!(py, "cuda.core._memory._peer_access_utils"))?
            .getattr(intern!(py, "PeerAccessibleBySetProxy"))?
            .call1((slf,))
    }

    #[setter]
    fn set_peer_accessible_by(slf: &Bound<'_, Self>, devices: &Bound<'_, PyAny>) -> PyResult<()> {
        slf.as_super().get().pool(slf.py())?;
        let py = slf.py();
        PyModule::import(py, intern!(py, "cuda.core._memory._peer_access_utils"))?
            .getattr(intern!(py, "replace_peer_accessible_by"))?
            .call1((slf, devices))
            .map(drop)
    }

    /// Handle with which another process imports the pool by :meth:`from_allocation_handle`: an
    /// ``IPCAllocationHandle``.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     The resource is not IPC-enabled.
    #[doc = example!("cuda.core.DeviceMemoryResource.allocation_handle")]
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
    /// DeviceMemoryResource
    ///     The registered resource: this one, or the one already registered under the UUID.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     The resource is not IPC-enabled.
    /// ValueError
    ///     The resource has another UUID.
    #[doc = example!("cuda.core.DeviceMemoryResource.register")]
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
    /// device_id : int or Device
    ///     The device.
    /// alloc_handle : IPCAllocationHandle or int
    ///     The other process's :attr:`allocation_handle`, or a file descriptor, which remains owned by the caller.
    ///
    /// Returns
    /// -------
    /// DeviceMemoryResource
    ///     The registered resource, if the handle's pool is registered in this process.
    #[doc = example!("cuda.core.DeviceMemoryResource.from_allocation_handle")]
    #[classmethod]
    fn from_allocation_handle<'py>(
        class: &Bound<'py, PyType>,
        device_id: &Bound<'py, PyAny>,
        alloc_handle: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = class.py();
        let function = "DeviceMemoryResource.from_allocation_handle";
        let device = device::accept_or_current(device_id, function, "device_id")?;
        let base = py.get_type::<PyDeviceMemoryResource>();
        let kind = PoolKind::Device(device);
        ipc::import(class, &base, "DeviceMemoryResource", kind, alloc_handle)
    }

    /// Pickling requires an IPC-enabled resource. Plain pickles contain the UUID, under which the receiving process has
    /// registered the pool; ``multiprocessing`` sends the allocation handle.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        ipc::reduce(slf.as_super(), &slf.py().get_type::<Self>())
    }
}
