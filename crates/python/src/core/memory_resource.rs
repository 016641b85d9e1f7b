//! `MemoryResource`, and the resources over device memory.

use std::sync::{Mutex, MutexGuard, PoisonError};

use cupyrite::{
    Device, DeviceBuffer, MemoryPool, PoolAccess, PoolAttribute, PoolKind, PoolOptions, Stream,
};
use pyo3::exceptions::{PyDeprecationWarning, PyOverflowError, PyRuntimeError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use super::buffer::{Backing, PyBuffer};
use super::context::handle_object;
use super::errors::OrRaise;
use super::ipc::{self, PyAllocationHandle};
use super::numbers::{address_argument, size_argument};
use super::options::{OptionClass, Options};
use super::pool_attributes::{PyMemPoolAttributes, drop_pool};
use super::slot::closed;
use super::{device, stream};
use crate::generated::ids::class::driver as class;

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

/// What memory resources over a pool of the driver's have in common.
#[pyclass(
    frozen,
    subclass,
    extends = PyMemoryResource,
    module = "cuda.core._memory._memory_pool",
    name = "_MemPool"
)]
pub struct PyMemPool {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    pool: Option<MemoryPool>,
    /// The class and the kind of the pool, which stay when it is closed; `None` before there was one.
    made: Option<(&'static str, PoolKind)>,
    attributes: Option<Py<PyMemPoolAttributes>>,
    /// Of a pool that other processes can use.
    shared: Option<Py<PyAllocationHandle>>,
    /// What identifies it among processes, where that is known.
    uuid: Option<Py<PyAny>>,
}

impl PyMemPool {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Held for a few instructions that neither panic nor call Python.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pool.
    ///
    /// # Errors
    ///
    /// `RuntimeError` where the resource was closed, or never made.
    pub fn pool(&self) -> PyResult<MemoryPool> {
        let state = self.lock();
        match &state.pool {
            Some(pool) => Ok(pool.clone()),
            None => match state.made {
                Some((class, _)) => Err(closed(class)),
                None => Err(unmade()),
            },
        }
    }

    /// A resource without a pool yet, for classes that derive from this one.
    pub fn unmade() -> PyClassInitializer<PyMemPool> {
        PyClassInitializer::from(PyMemoryResource).add_subclass(PyMemPool {
            state: Mutex::default(),
        })
    }

    /// Gives the resource its pool; `class` is what it is called in messages.
    pub fn set(&self, pool: MemoryPool, class: &'static str) {
        self.fill(pool, class, None, None);
    }

    /// Gives the resource its pool, and what other processes know it by.
    pub fn fill(
        &self,
        pool: MemoryPool,
        class: &'static str,
        shared: Option<Py<PyAllocationHandle>>,
        uuid: Option<Py<PyAny>>,
    ) {
        let state = State {
            made: Some((class, pool.kind())),
            pool: Some(pool),
            attributes: None,
            shared,
            uuid,
        };
        let former = std::mem::replace(&mut *self.lock(), state);
        drop((former.attributes, former.shared, former.uuid));
        drop_pool(former.pool);
    }

    /// What the memory is and where, also when the resource was closed.
    ///
    /// # Errors
    ///
    /// `RuntimeError` where it was never made.
    pub fn kind(&self) -> PyResult<PoolKind> {
        match self.lock().made {
            Some((_, kind)) => Ok(kind),
            None => Err(unmade()),
        }
    }

    /// Memory of the pool.
    ///
    /// # Errors
    ///
    /// `RuntimeError` where the resource was closed; what the driver says.
    pub fn take(&self, py: Python<'_>, size: usize, stream: &Stream) -> PyResult<DeviceBuffer> {
        let pool = self.pool()?;
        if pool.is_imported() {
            return Err(PyTypeError::new_err(
                "this memory resource is another process's, which alone allocates from it; its buffers come by \
                 Buffer.from_ipc_descriptor()",
            ));
        }
        // The driver may wait for a stream when memory is short.
        py.detach(|| pool.allocate(size, stream)).or_raise(py)
    }

    fn allocate_on(slf: &Bound<'_, Self>, size: usize, stream: &Stream) -> PyResult<Py<PyBuffer>> {
        let py = slf.py();
        let memory = slf.get().take(py, size, stream)?;
        let address = memory.address();
        let resource = slf.clone().into_any().unbind();
        PyBuffer::make(
            py,
            Backing::Pool(memory),
            address,
            size,
            Some(resource),
            None,
        )
    }
}

impl Drop for PyMemPool {
    fn drop(&mut self) {
        let state = std::mem::take(self.state.get_mut().unwrap_or_else(PoisonError::into_inner));
        drop((state.attributes, state.shared, state.uuid));
        drop_pool(state.pool);
    }
}

impl PyMemPool {
    /// The pool, if other processes can use it.
    ///
    /// # Errors
    ///
    /// `RuntimeError` where they cannot, or where it was closed.
    pub fn shared_pool(&self) -> PyResult<MemoryPool> {
        let pool = self.pool()?;
        if self.lock().shared.is_none() {
            return Err(no_ipc());
        }
        Ok(pool)
    }
}

impl PyMemPool {
    /// The handle that other processes import the pool with.
    ///
    /// # Errors
    ///
    /// As [`PyMemPool::shared_pool`].
    pub fn shared(&self, py: Python<'_>) -> PyResult<Py<PyAllocationHandle>> {
        self.pool()?;
        let state = self.lock();
        let handle = state.shared.as_ref().map(|handle| handle.clone_ref(py));
        handle.ok_or_else(no_ipc)
    }
}

fn unmade() -> PyErr {
    PyRuntimeError::new_err(
        "this memory resource was not made: its class's __init__() was not called",
    )
}

pub(super) fn no_ipc() -> PyErr {
    PyRuntimeError::new_err(
        "this memory resource is not IPC-enabled: its memory stays in this process",
    )
}

/// The stream of an argument that used to be optional.
pub(super) fn stream_or_default<'py>(
    py: Python<'py>,
    given: Option<&Bound<'py, PyAny>>,
    function: &str,
) -> PyResult<Stream> {
    if let Some(given) = given {
        return stream::accept(given, function, "stream", false);
    }
    let category = py.get_type::<PyDeprecationWarning>();
    PyErr::warn(
        py,
        &category,
        c"allocate() without a stream allocates on the default stream; give it stream=device.default_stream",
        1,
    )?;
    Ok(Stream::default_stream())
}

#[pymethods]
impl PyMemPool {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyClassInitializer<PyMemPool> {
        PyMemPool::unmade()
    }

    /// Allocates memory from the pool, in the order of a stream.
    ///
    /// Parameters
    /// ----------
    /// size : int
    ///     Bytes; 0 gives a buffer with the address 0.
    /// stream : Stream
    ///     In whose order the memory is there, and by default is freed.
    ///
    /// Returns
    /// -------
    /// Buffer
    ///
    /// Raises
    /// ------
    /// CUDAError
    ///     There is not as much memory (``CUDA_ERROR_OUT_OF_MEMORY``).
    #[pyo3(signature = (size, stream=None), text_signature = "($self, size, *, stream)")]
    fn allocate<'py>(
        slf: &Bound<'py, Self>,
        size: &Bound<'py, PyAny>,
        stream: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Py<PyBuffer>> {
        let size = size_argument(size, "allocate")?;
        let stream = stream_or_default(slf.py(), stream, "allocate")?;
        Self::allocate_on(slf, size, &stream)
    }

    /// Frees memory of the pool by its address, in the order of a stream. A buffer frees its memory itself.
    ///
    /// Parameters
    /// ----------
    /// ptr : int or cuda.bindings.driver.CUdeviceptr
    ///     The address.
    /// size : int
    ///     Bytes.
    /// stream : Stream
    ///     In whose order the memory is free.
    #[pyo3(signature = (ptr, size, stream), text_signature = "($self, ptr, size, *, stream)")]
    fn deallocate(
        &self,
        py: Python<'_>,
        ptr: &Bound<'_, PyAny>,
        size: &Bound<'_, PyAny>,
        stream: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let address = address_argument(ptr, "deallocate")?;
        size_argument(size, "deallocate")?;
        let stream = stream::accept(stream, "deallocate", "stream", false)?;
        // Buffers outlive `close`, so their memory can be freed after it.
        let kind = self.kind()?;
        // SAFETY: that nothing uses the memory any more is what this method asks of its caller; the driver refuses addresses
        // that it did not give out.
        py.detach(|| unsafe { kind.deallocate(address, &stream) })
            .or_raise(py)
    }

    /// Lets go of the pool. One that the resource made is destroyed when its last buffer is freed; the device's own stays.
    /// Buffers stay valid.
    fn close(&self, py: Python<'_>) {
        let (pool, others) = {
            let mut state = self.lock();
            let others = (
                state.attributes.take(),
                state.shared.take(),
                state.uuid.take(),
            );
            (state.pool.take(), others)
        };
        drop(others);
        py.detach(|| drop(pool));
    }

    /// The driver's handle, a ``cuda.bindings.driver.CUmemoryPool``; 0 once the resource was closed.
    #[getter]
    fn handle(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let handle = self.lock().pool.as_ref().map_or(0, |p| p.handle().addr());
        handle_object(py, class::CUmemoryPool, handle)
    }

    /// Whether :meth:`close` was called.
    #[getter]
    fn is_closed(&self) -> bool {
        self.lock().pool.is_none()
    }

    /// Whether the pool was made by this resource, and is not the device's own.
    #[getter]
    fn is_handle_owned(&self) -> bool {
        self.lock().pool.as_ref().is_some_and(MemoryPool::is_owned)
    }

    /// Whether the memory can be shared with other processes.
    #[getter]
    fn is_ipc_enabled(&self) -> bool {
        self.lock().shared.is_some()
    }

    /// Whether the pool is another process's.
    #[getter]
    fn is_mapped(&self) -> bool {
        self.lock()
            .pool
            .as_ref()
            .is_some_and(MemoryPool::is_imported)
    }

    /// What identifies the pool among processes, a ``uuid.UUID``; None unless it is IPC-enabled, and where the resource was
    /// made from a mere file descriptor.
    #[getter]
    pub(super) fn uuid(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.lock().uuid.as_ref().map(|uuid| uuid.clone_ref(py))
    }

    /// What `register` does where the UUID is new.
    fn _take_uuid(&self, uuid: Py<PyAny>) -> PyResult<()> {
        self.shared_pool()?;
        let former = self.lock().uuid.replace(uuid);
        drop(former);
        Ok(())
    }

    /// The pool's attributes: what it holds and what it keeps.
    #[getter]
    fn attributes(&self, py: Python<'_>) -> PyResult<Py<PyMemPoolAttributes>> {
        let pool = self.pool()?;
        if let Some(known) = &self.lock().attributes {
            return Ok(known.clone_ref(py));
        }
        let made = Py::new(py, PyMemPoolAttributes::new_of(pool))?;
        let mut state = self.lock();
        // Another thread may have been first: then that one stays. `made` goes at the end, when the lock is free.
        let kept = match &state.attributes {
            Some(known) => known.clone_ref(py),
            None => {
                state.attributes = Some(made.clone_ref(py));
                made.clone_ref(py)
            }
        };
        drop(state);
        Ok(kept)
    }
}

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
                            "DeviceMemoryResourceOptions.max_size is {size}; expected a number of bytes from 0 to 2**64-1"
                        ))
                    })?,
                };
                let options = PoolOptions::default()
                    .max_size(max_size)
                    .shareable(shareable);
                py.detach(|| MemoryPool::new(&device, &options))
            }
        };
        let pool = made.or_raise(py)?;
        let (shared, uuid) = match shareable {
            true => ipc::share(py, &pool).map(|(handle, uuid)| (Some(handle), Some(uuid)))?,
            false => (None, None),
        };
        slf.as_super().get().fill(pool, function, shared, uuid);
        Ok(())
    }

    /// The number of the device.
    #[getter]
    fn device_id(slf: &Bound<'_, Self>) -> PyResult<usize> {
        match slf.as_super().get().kind()? {
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
        slf.as_super().get().pool()?;
        let py = slf.py();
        PyModule::import(py, intern!(py, "cuda.core._memory._peer_access_utils"))?
            .getattr(intern!(py, "PeerAccessibleBySetProxy"))?
            .call1((slf,))
    }

    #[setter]
    fn set_peer_accessible_by(slf: &Bound<'_, Self>, devices: &Bound<'_, PyAny>) -> PyResult<()> {
        slf.as_super().get().pool()?;
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

/// Memory of a device, allocated at once (``cuMemAlloc``): for devices without memory pools.
///
/// Freeing waits for the device.
#[pyclass(
    frozen,
    subclass,
    extends = PyMemoryResource,
    module = "cuda.core._memory._legacy",
    name = "_SynchronousMemoryResource"
)]
pub struct PySynchronousMemoryResource {
    device: Device,
}

#[pymethods]
impl PySynchronousMemoryResource {
    #[new]
    #[pyo3(signature = (device_id))]
    fn new(
        device_id: &Bound<'_, PyAny>,
    ) -> PyResult<PyClassInitializer<PySynchronousMemoryResource>> {
        let device = device::accept(device_id, "_SynchronousMemoryResource", "device_id")?;
        Ok(PyClassInitializer::from(PyMemoryResource)
            .add_subclass(PySynchronousMemoryResource { device }))
    }

    /// Allocates memory.
    ///
    /// Parameters
    /// ----------
    /// size : int
    ///     Bytes.
    /// stream : Stream, optional
    ///     Checked, and not needed: the memory is there at once.
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
        if let Some(stream) = stream {
            stream::accept(stream, "allocate", "stream", false)?;
        }
        let device = slf.get().device;
        let memory = py.detach(|| device.buffer::<u8>(size)).or_raise(py)?;
        let address = memory.address();
        let resource = slf.clone().into_any().unbind();
        PyBuffer::make(
            py,
            Backing::Plain(memory),
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
    ///     What to wait for.
    #[pyo3(signature = (ptr, size, *, stream=None))]
    fn deallocate(
        &self,
        py: Python<'_>,
        ptr: &Bound<'_, PyAny>,
        size: &Bound<'_, PyAny>,
        stream: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let address = address_argument(ptr, "deallocate")?;
        size_argument(size, "deallocate")?;
        let stream = stream
            .map(|stream| stream::accept(stream, "deallocate", "stream", false))
            .transpose()?;
        let device = self.device;
        py.detach(|| {
            let _entered = device.enter()?;
            if let Some(stream) = stream {
                stream.synchronize()?;
            }
            // SAFETY: that nothing uses the memory any more is what this method asks of its caller; the driver refuses
            // addresses that it did not give out.
            unsafe { device.free(address) }
        })
        .or_raise(py)
    }

    /// The number of the device.
    #[getter]
    fn device_id(&self) -> usize {
        self.device.ordinal()
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
        let accepted = stream::accept(stream, "allocate", "stream", false)?;
        let buffer = PyMemPool::allocate_on(ours.as_super(), size, &accepted)?;
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
    let opened = device::accept(device, "Device.memory_resource", "device")?;
    let class = if MemoryPool::supported(&opened).or_raise(py)? {
        py.get_type::<PyDeviceMemoryResource>()
    } else {
        py.get_type::<PySynchronousMemoryResource>()
    };
    class.call1((device,)).map(Bound::unbind)
}

/// The pool of a resource whose memory other processes can use.
///
/// # Errors
///
/// `TypeError` for what is no resource over a pool, `RuntimeError` for one that was closed or is this process's alone.
pub fn shared_pool_of(mr: &Bound<'_, PyAny>) -> PyResult<MemoryPool> {
    match mr.cast::<PyMemPool>() {
        Ok(pool) => pool.get().shared_pool(),
        Err(_) => Err(PyTypeError::new_err(format!(
            "Buffer.from_ipc_descriptor() argument 'mr' is of type {}; expected a memory resource over a pool",
            mr.get_type().name()?
        ))),
    }
}

fn pool_of(mr: &Bound<'_, PyAny>) -> PyResult<MemoryPool> {
    match mr.cast::<PyMemPool>() {
        Ok(pool) => pool.get().pool(),
        Err(_) => Err(PyTypeError::new_err(format!(
            "argument 'mr' is of type {}; expected a DeviceMemoryResource",
            mr.get_type().name()?
        ))),
    }
}

/// What a device may do with the memory of a pool: ``'rw'``, ``'r'`` or ``''``.
#[pyfunction]
fn mempool_get_access<'py>(
    py: Python<'py>,
    mr: &Bound<'py, PyAny>,
    device_id: usize,
) -> PyResult<&'py Bound<'py, PyString>> {
    static NAMES: PyOnceLock<[Py<PyString>; 3]> = PyOnceLock::new();
    let names = NAMES.get_or_init(py, || {
        ["rw", "r", ""].map(|name| PyString::intern(py, name).unbind())
    });
    let access = pool_of(mr)?.access(device_id).or_raise(py)?;
    let index = match access {
        PoolAccess::ReadWrite => 0,
        PoolAccess::Read => 1,
        PoolAccess::None => 2,
    };
    Ok(names[index].bind(py))
}

/// Lets devices use the memory of a pool, or no longer; all of them or none.
#[pyfunction]
fn mempool_set_access(
    py: Python<'_>,
    mr: &Bound<'_, PyAny>,
    add: Vec<usize>,
    remove: Vec<usize>,
) -> PyResult<()> {
    let pool = pool_of(mr)?;
    let rights: Vec<(usize, PoolAccess)> = add
        .into_iter()
        .map(|ordinal| (ordinal, PoolAccess::ReadWrite))
        .chain(
            remove
                .into_iter()
                .map(|ordinal| (ordinal, PoolAccess::None)),
        )
        .collect();
    py.detach(|| pool.set_access(&rights)).or_raise(py)
}

/// Adds the classes.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    core.add_class::<PyMemoryResource>()?;
    core.add_class::<PyMemPool>()?;
    core.add_class::<PyMemPoolAttributes>()?;
    core.add_class::<PyDeviceMemoryResource>()?;
    core.add_class::<PySynchronousMemoryResource>()?;
    core.add_function(wrap_pyfunction!(mempool_get_access, core)?)?;
    core.add_function(wrap_pyfunction!(mempool_set_access, core)?)
}
