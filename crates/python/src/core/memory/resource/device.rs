//! `DeviceMemoryResource`.

use cupyrite::{Device, MemoryPool, PoolAttribute, PoolKind, PoolOptions};
use pyo3::exceptions::PyOverflowError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::core::closable::Lent;
use crate::core::device;
use crate::core::errors::OrRaise;
use crate::core::memory::ipc;
use crate::core::memory::ipc::PyAllocationHandle;
use crate::core::memory::resource::pool::{PyMemPool, unmade};
use crate::core::numbers::shown;
use crate::core::options::{OptionClass, Options};

static OPTIONS: OptionClass = OptionClass::new(
    "cuda.core._memory._device_memory_resource",
    "DeviceMemoryResourceOptions",
);

/// Memory of a device, from a pool of the driver's, allocated and freed in the order of streams.
///
/// Parameters
/// ----------
/// device_id : int or Device
///     The device.
/// options : DeviceMemoryResourceOptions or dict, optional
///     How a pool of the resource's own is made. Without options the resource uses the device's current pool, shared with
///     the rest of the process; that one is told to keep unused memory (its release threshold, where it is 0, becomes the
///     largest number) so that allocating again is cheap.
///
/// See `Stream-ordered memory allocator <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__MALLOC__ASYNC.html>`_.
#[pyclass(
    frozen,
    subclass,
    extends = PyMemPool,
    module = "cuda.core._memory._device_memory_resource",
    name = "DeviceMemoryResource"
)]
pub struct PyDeviceMemoryResource;

/// The current pool of a device, told to keep what is freed.
fn current_pool(device: Device) -> cupyrite::Result<MemoryPool> {
    let pool = MemoryPool::current(&device)?;
    // 0, the driver's own default, gives all unused memory back at every synchronization; somebody's other choice stays.
    if pool.attribute(PoolAttribute::ReleaseThreshold)? == 0 {
        pool.set_attribute(PoolAttribute::ReleaseThreshold, u64::MAX)?;
    }
    Ok(pool)
}

#[pymethods]
impl PyDeviceMemoryResource {
    // `__init__` has the parameters, so that derived classes may have others.
    #[new]
    #[pyo3(signature = (*_args, **_kwargs), text_signature = "(device_id, options=None)")]
    fn new(
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyClassInitializer<PyDeviceMemoryResource> {
        PyMemPool::unmade().add_subclass(PyDeviceMemoryResource)
    }

    #[pyo3(signature = (device_id, options=None))]
    fn __init__(
        slf: &Bound<'_, Self>,
        device_id: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let py = slf.py();
        let function = "DeviceMemoryResource";
        let device = if device_id.is_none() {
            device::current(py)?
        } else {
            device::accept(device_id, function, "device_id")?
        };
        let mut shareable = false;
        let made = match options.filter(|options| !options.is_none()) {
            None => py.detach(|| current_pool(device)),
            given => {
                let options = Options::accept(function, &OPTIONS, given)?;
                shareable = options.flag(intern!(py, "ipc_enabled"), false)?;
                let max_size: usize = match options.value(intern!(py, "max_size"))? {
                    None => 0,
                    Some(size) => size.extract().map_err(|_| {
                        PyOverflowError::new_err(format!(
                            "DeviceMemoryResourceOptions.max_size is {}; expected a number of bytes from 0 to 2**64-1",
                            shown(&size)
                        ))
                    })?,
                };
                let options = PoolOptions::default()
                    .max_size(max_size)
                    .shareable(shareable);
                py.detach(|| MemoryPool::new(&device, &options))
            }
        };
        let pool = Lent::new(py, made.or_raise(py)?);
        let (shared, uuid) = match shareable {
            true => ipc::share(py, &pool).map(|(handle, uuid)| (Some(handle), Some(uuid)))?,
            false => (None, None),
        };
        slf.as_super()
            .get()
            .fill(py, pool.clone(), function, shared, uuid);
        // Of this very class, it has no attributes but those of this crate.
        if slf.is_exact_instance_of::<PyDeviceMemoryResource>() {
            slf.as_super().get().set_leaf();
        }
        Ok(())
    }

    /// The number of the device.
    #[getter]
    fn device_id(slf: &Bound<'_, Self>) -> PyResult<usize> {
        match slf.as_super().get().kind(slf.py())? {
            PoolKind::Device(device) => Ok(device.ordinal()),
            _ => Err(unmade()),
        }
    }

    /// True: kernels can use the memory.
    #[getter]
    fn is_device_accessible(&self) -> bool {
        true
    }

    /// False: the host cannot use the memory.
    #[getter]
    fn is_host_accessible(&self) -> bool {
        false
    }

    /// The devices, other than the resource's own, whose kernels can use the memory: a set of :class:`Device` that can be
    /// changed, and assigned to as a whole.
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
    /// DeviceMemoryResource
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
    /// device_id : int or Device
    ///     The device.
    /// alloc_handle : IPCAllocationHandle or int
    ///     What the other process has as :attr:`allocation_handle`, or a file descriptor of it, which remains the caller's.
    ///
    /// Returns
    /// -------
    /// DeviceMemoryResource
    ///     The registered one, where the handle's pool is known in this process.
    #[classmethod]
    fn from_allocation_handle<'py>(
        class: &Bound<'py, PyType>,
        device_id: &Bound<'py, PyAny>,
        alloc_handle: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = class.py();
        let function = "DeviceMemoryResource.from_allocation_handle";
        let device = if device_id.is_none() {
            device::current(py)?
        } else {
            device::accept(device_id, function, "device_id")?
        };
        let base = py.get_type::<PyDeviceMemoryResource>();
        let kind = PoolKind::Device(device);
        ipc::import(class, &base, "DeviceMemoryResource", kind, alloc_handle)
    }

    /// Pickling shares the pool with another process, which it has to allow: plainly by the UUID under which the process
    /// that loads it has registered the pool, by ``multiprocessing`` by its allocation handle.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        ipc::reduce(slf.as_super(), &slf.py().get_type::<Self>())
    }
}
