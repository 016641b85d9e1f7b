//! `_MemPool`: base class of memory resources over a driver memory pool.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};

use cupyrite::{DeviceBuffer, MemoryAccess, MemoryPool, PoolKind, RawAllocation, Stream};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::core::closable::{Lent, closed, drop_detached};
use crate::core::context::handle_object;
use crate::core::errors::OrRaise;
use crate::core::keyword_only::KeywordOnly;
use crate::core::memory::buffer::{Backing, PyBuffer};
use crate::core::memory::ipc;
use crate::core::memory::ipc_handles::PyAllocationHandle;
use crate::core::memory::pool_attributes::{PyMemPoolAttributes, drop_pool};
use crate::core::memory::resource::base::{PyMemoryResource, stream_or_default};
use crate::core::numbers::{address_argument, size_argument, size_or_none};
use crate::core::stream;
use crate::cpython;
use crate::cpython::gil_lock::{GilLock, GilLockGuard};
use crate::cpython::method::Method;
use crate::generated::driver_types::class;

/// Base class of memory resources over a driver memory pool.
#[pyclass(
    frozen,
    subclass,
    extends = PyMemoryResource,
    module = "cuda.core._memory._memory_pool",
    name = "_MemPool"
)]
pub struct PyMemPool {
    state: GilLock<PoolState>,
    /// Whether the resource refers to no object that could refer to its buffers. Instances of Python subclasses may.
    is_leaf: AtomicBool,
}

#[derive(Default)]
struct PoolState {
    pool: Option<MemoryPool>,
    /// Class name and kind of the pool, which remain after `close`; `None` before `__init__`.
    identity: Option<(&'static str, PoolKind)>,
    attributes: Option<Py<PyMemPoolAttributes>>,
    /// Set for an IPC-enabled pool.
    shared: Option<Py<PyAllocationHandle>>,
    /// UUID of the pool across processes, if known.
    uuid: Option<Py<PyAny>>,
}

impl PyMemPool {
    #[inline]
    fn lock<'a>(&'a self, py: Python<'a>) -> GilLockGuard<'a, PoolState> {
        self.state.lock(py)
    }

    /// The pool.
    ///
    /// # Errors
    ///
    /// `RuntimeError` for a closed or uninitialized resource.
    pub fn pool<'py>(&self, py: Python<'py>) -> PyResult<Lent<'py, MemoryPool>> {
        let state = self.lock(py);
        match &state.pool {
            Some(pool) => Ok(Lent::new(py, pool.clone())),
            None => match state.identity {
                Some((class, _)) => Err(closed(class)),
                None => Err(uninitialized()),
            },
        }
    }

    /// A resource without a pool, for subclasses.
    pub fn uninitialized() -> PyClassInitializer<PyMemPool> {
        PyClassInitializer::from(PyMemoryResource).add_subclass(PyMemPool {
            state: GilLock::default(),
            is_leaf: AtomicBool::new(false),
        })
    }

    /// Completes `__init__`: sets the pool, and exports it if it is shareable. `class` is the class name in messages.
    ///
    /// # Errors
    ///
    /// Driver errors.
    pub fn initialize(
        &self,
        py: Python<'_>,
        pool: cupyrite::Result<MemoryPool>,
        class: &'static str,
        shareable: bool,
    ) -> PyResult<()> {
        let pool = Lent::new(py, pool.or_raise(py)?);
        let (shared, uuid) = if shareable {
            let (handle, uuid) = ipc::share(py, &pool)?;
            (Some(handle), Some(uuid))
        } else {
            (None, None)
        };
        self.fill(py, pool.clone(), class, shared, uuid);
        Ok(())
    }

    /// Sets the pool, its IPC handle and its UUID; `class` is the class name in messages.
    pub fn fill(
        &self,
        py: Python<'_>,
        pool: MemoryPool,
        class: &'static str,
        shared: Option<Py<PyAllocationHandle>>,
        uuid: Option<Py<PyAny>>,
    ) {
        let state = PoolState {
            identity: Some((class, pool.kind())),
            pool: Some(pool),
            attributes: None,
            shared,
            uuid,
        };
        let previous = std::mem::replace(&mut *self.lock(py), state);
        drop((previous.attributes, previous.shared, previous.uuid));
        drop_pool(previous.pool);
    }

    /// Declares that the resource refers to no object that could refer to its buffers, so that the collector need not
    /// track them. (A program may assign another `__class__` that refers to a buffer; such a cycle is not collected.)
    pub fn set_leaf(&self) {
        self.is_leaf.store(true, Ordering::Relaxed);
    }

    /// Kind of the pool; also available after `close`.
    ///
    /// # Errors
    ///
    /// `RuntimeError` for an uninitialized resource.
    pub fn kind(&self, py: Python<'_>) -> PyResult<PoolKind> {
        match self.lock(py).identity {
            Some((_, kind)) => Ok(kind),
            None => Err(uninitialized()),
        }
    }

    /// The pool, for an allocation.
    #[inline(always)]
    fn pool_for_allocation(&self, py: Python<'_>) -> PyResult<MemoryPool> {
        match &self.lock(py).pool {
            Some(pool) if !pool.is_imported() => return Ok(pool.clone()),
            _ => {}
        }
        self.allocation_error(py)
    }

    #[cold]
    #[inline(never)]
    fn allocation_error(&self, py: Python<'_>) -> PyResult<MemoryPool> {
        // Closed or uninitialized.
        self.pool(py)?;
        Err(PyTypeError::new_err(
            "this memory resource is another process's, which alone allocates from it; import buffers with \
             Buffer.from_ipc_descriptor()",
        ))
    }

    /// Allocates memory from the pool.
    ///
    /// # Errors
    ///
    /// `RuntimeError` for a closed resource; driver errors.
    pub fn allocate_memory(
        &self,
        py: Python<'_>,
        size: usize,
        stream: Stream,
    ) -> PyResult<DeviceBuffer> {
        let pool = self.pool_for_allocation(py)?;
        // Detached: the driver may wait for a stream when memory is short.
        py.detach(|| pool.into_buffer(size, stream)).or_raise(py)
    }

    /// Allocates a buffer from the pool.
    ///
    /// # Errors
    ///
    /// As [`PyMemPool::allocate_memory`].
    #[inline(always)]
    pub fn allocate_on(
        slf: &Bound<'_, Self>,
        size: usize,
        stream: Stream,
    ) -> PyResult<Py<PyBuffer>> {
        let py = slf.py();
        let this = slf.get();
        let pool = this.pool_for_allocation(py)?;
        let Some(home) = pool.fast_allocation_device(size, &stream) else {
            cupyrite::hint::cold_path();
            return PyMemPool::allocate_general(slf, pool, size, stream);
        };
        // Detached: the driver may wait for a stream when memory is short.
        // SAFETY: pool and stream contain no Python objects.
        let taken = unsafe { cpython::detached(|| pool.allocate_raw_on(home, size, &stream)) };
        match taken {
            Ok(taken) => PyMemPool::create_buffer(slf, taken, pool, size, stream),
            Err(error) => allocation_failed(py, *error, pool, stream),
        }
    }

    /// Creates the buffer object of a raw allocation.
    #[inline(always)]
    fn create_buffer(
        slf: &Bound<'_, Self>,
        taken: RawAllocation,
        pool: MemoryPool,
        size: usize,
        stream: Stream,
    ) -> PyResult<Py<PyBuffer>> {
        let resource = slf.clone().into_any().unbind();
        let tracked = !slf.get().is_leaf.load(Ordering::Relaxed);
        PyBuffer::of_pool(slf.py(), pool, taken, size, stream, resource, tracked)
    }

    /// As `allocate_on`, for foreign streams, pools of other memory, and zero bytes.
    #[inline(never)]
    fn allocate_general(
        slf: &Bound<'_, Self>,
        pool: MemoryPool,
        size: usize,
        stream: Stream,
    ) -> PyResult<Py<PyBuffer>> {
        let py = slf.py();
        if stream.is_foreign() {
            // A foreign stream may own a Python object.
            return PyMemPool::allocate_on_foreign(slf, pool, size, stream);
        }
        // Detached: the driver may wait for a stream when memory is short.
        // SAFETY: pool and stream contain no Python objects.
        let taken = unsafe { cpython::detached(|| pool.allocate_raw(size, &stream)) };
        match taken {
            Ok(taken) => PyMemPool::create_buffer(slf, taken, pool, size, stream),
            Err(error) => allocation_failed(py, error, pool, stream),
        }
    }

    #[inline(never)]
    fn allocate_on_foreign(
        slf: &Bound<'_, Self>,
        pool: MemoryPool,
        size: usize,
        stream: Stream,
    ) -> PyResult<Py<PyBuffer>> {
        let py = slf.py();
        let memory = py.detach(|| pool.into_buffer(size, stream)).or_raise(py)?;
        let address = memory.address();
        let resource = slf.clone().into_any().unbind();
        let backing = Backing::Pool(memory);
        PyBuffer::create(py, backing, address, size, Some(resource), None)
    }
}

/// Raises the error of a failed allocation.
#[cold]
#[inline(never)]
fn allocation_failed(
    py: Python<'_>,
    error: cupyrite::Error,
    pool: MemoryPool,
    stream: Stream,
) -> PyResult<Py<PyBuffer>> {
    drop_detached((pool, stream));
    Err(error).or_raise(py)
}

impl Drop for PyMemPool {
    fn drop(&mut self) {
        let state = std::mem::take(self.state.get_mut());
        drop((state.attributes, state.shared, state.uuid));
        drop_pool(state.pool);
    }
}

impl PyMemPool {
    /// The pool, if it is IPC-enabled.
    ///
    /// # Errors
    ///
    /// `RuntimeError` if it is not IPC-enabled or was closed.
    pub fn shared_pool<'py>(&self, py: Python<'py>) -> PyResult<Lent<'py, MemoryPool>> {
        let pool = self.pool(py)?;
        if self.lock(py).shared.is_none() {
            return Err(not_ipc_enabled());
        }
        Ok(pool)
    }
}

impl PyMemPool {
    /// The allocation handle of the pool.
    ///
    /// # Errors
    ///
    /// As [`PyMemPool::shared_pool`].
    pub fn shared(&self, py: Python<'_>) -> PyResult<Py<PyAllocationHandle>> {
        self.pool(py)?;
        let state = self.lock(py);
        let handle = state.shared.as_ref().map(|handle| handle.clone_ref(py));
        handle.ok_or_else(not_ipc_enabled)
    }
}

/// Error for a resource whose `__init__` was not called.
pub fn uninitialized() -> PyErr {
    PyRuntimeError::new_err(
        "this memory resource was not initialized: its class did not call __init__()",
    )
}

/// Error for a resource that is not IPC-enabled.
fn not_ipc_enabled() -> PyErr {
    PyRuntimeError::new_err(
        "this memory resource is not IPC-enabled: its memory cannot be shared with other processes",
    )
}

#[pymethods]
impl PyMemPool {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyClassInitializer<PyMemPool> {
        PyMemPool::uninitialized()
    }

    /// Frees memory of the pool by address, stream-ordered. Buffers free their memory themselves.
    ///
    /// Parameters
    /// ----------
    /// ptr : int or cuda.bindings.driver.CUdeviceptr
    ///     Address.
    /// size : int
    ///     Size in bytes.
    /// stream : Stream
    ///     Stream of the stream-ordered deallocation.
    #[pyo3(
        signature = (ptr, size, *, stream=KeywordOnly(None)),
        text_signature = "($self, ptr, size, *, stream)"
    )]
    fn deallocate(
        &self,
        py: Python<'_>,
        ptr: &Bound<'_, PyAny>,
        size: &Bound<'_, PyAny>,
        stream: KeywordOnly<'_, '_>,
    ) -> PyResult<()> {
        let stream = stream.get("MemoryResource.deallocate", "stream")?;
        let address = address_argument(ptr, "deallocate")?;
        size_argument(size, "deallocate")?;
        let stream = stream::lend(stream, "deallocate", "stream", false)?;
        // Buffers outlive `close`, so their memory may be freed after it.
        let kind = self.kind(py)?;
        // SAFETY: the caller guarantees that the memory is no longer used; the driver rejects addresses that it did not
        // allocate.
        py.detach(|| unsafe { kind.deallocate(address, &stream) })
            .or_raise(py)
    }

    /// Releases the pool. A pool created by the resource is destroyed when its last buffer is freed; the device's
    /// current pool is kept. Buffers stay valid.
    fn close(&self, py: Python<'_>) {
        let (pool, others) = {
            let mut state = self.lock(py);
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

    /// Driver handle, a ``cuda.bindings.driver.CUmemoryPool``; 0 if the resource was closed.
    #[getter]
    fn handle(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let handle = self.lock(py).pool.as_ref().map_or(0, |p| p.handle().addr());
        handle_object(py, class::CUmemoryPool, handle)
    }

    /// Whether :meth:`close` was called.
    #[getter]
    fn is_closed(&self, py: Python<'_>) -> bool {
        self.lock(py).pool.is_none()
    }

    /// Whether the resource created the pool, rather than using the device's current pool.
    #[getter]
    fn is_handle_owned(&self, py: Python<'_>) -> bool {
        self.lock(py)
            .pool
            .as_ref()
            .is_some_and(MemoryPool::is_owned)
    }

    /// Whether the memory can be shared with other processes.
    #[getter]
    fn is_ipc_enabled(&self, py: Python<'_>) -> bool {
        self.lock(py).shared.is_some()
    }

    /// Whether the pool was imported from another process.
    #[getter]
    fn is_mapped(&self, py: Python<'_>) -> bool {
        self.lock(py)
            .pool
            .as_ref()
            .is_some_and(MemoryPool::is_imported)
    }

    /// UUID that identifies the pool across processes, a ``uuid.UUID``; None if the pool is not IPC-enabled or was
    /// imported from a file descriptor.
    #[getter]
    pub fn uuid(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.lock(py).uuid.as_ref().map(|uuid| uuid.clone_ref(py))
    }

    /// Adopts a UUID; called by `register`.
    fn _take_uuid(&self, py: Python<'_>, uuid: Py<PyAny>) -> PyResult<()> {
        self.shared_pool(py)?;
        let previous = self.lock(py).uuid.replace(uuid);
        drop(previous);
        Ok(())
    }

    /// Attributes of the pool.
    #[getter]
    fn attributes(&self, py: Python<'_>) -> PyResult<Py<PyMemPoolAttributes>> {
        let pool = self.pool(py)?;
        if let Some(known) = &self.lock(py).attributes {
            return Ok(known.clone_ref(py));
        }
        let created = Py::new(py, PyMemPoolAttributes::new_of(pool.clone()))?;
        let mut state = self.lock(py);
        // Keeps the object of a thread that was faster. `created` is dropped after the lock is released.
        let kept = match &state.attributes {
            Some(known) => known.clone_ref(py),
            None => {
                state.attributes = Some(created.clone_ref(py));
                created.clone_ref(py)
            }
        };
        drop(state);
        Ok(kept)
    }
}

/// `_MemPool.allocate(size, *, stream)`. `stream` is also accepted by position.
pub(super) struct Allocate;

impl Method<2> for Allocate {
    type Class = PyMemPool;
    type Receiver = Self::Class;
    const FUNCTION: &'static str = "allocate";
    const NAME: &'static CStr = c"allocate";
    const TEXT: &'static CStr = c"allocate($self, size, *, stream)
--

Allocates memory from the pool, stream-ordered.

Parameters
----------
size : int
    Size in bytes; 0 yields a buffer with address 0.
stream : Stream
    Stream of the allocation and, by default, of the deallocation.

Returns
-------
Buffer

Raises
------
CUDAError
    Out of memory (``CUDA_ERROR_OUT_OF_MEMORY``).";
    const NAMES: [&'static str; 2] = ["size", "stream"];
    const REQUIRED: usize = 1;

    fn known() -> &'static PyOnceLock<[Py<PyString>; 2]> {
        static KNOWN: PyOnceLock<[Py<PyString>; 2]> = PyOnceLock::new();
        &KNOWN
    }

    #[inline]
    fn call<'py>(
        slf: &Bound<'py, PyMemPool>,
        [size, stream]: [Option<&Bound<'py, PyAny>>; 2],
    ) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let size = size_or_none(py, size, "allocate")?;
        let stream = stream_or_default(py, stream, "allocate")?;
        PyMemPool::allocate_on(slf, size, stream).map(Py::into_any)
    }
}

/// The pool of an IPC-enabled resource.
///
/// # Errors
///
/// `TypeError` for other objects, `RuntimeError` for a closed resource or one that is not IPC-enabled.
pub fn shared_pool_of<'py>(mr: &Bound<'py, PyAny>) -> PyResult<Lent<'py, MemoryPool>> {
    match mr.cast::<PyMemPool>() {
        Ok(pool) => pool.get().shared_pool(mr.py()),
        Err(_) => Err(PyTypeError::new_err(format!(
            "Buffer.from_ipc_descriptor() argument 'mr' is of type {}; expected a memory resource with a pool",
            mr.get_type().name()?
        ))),
    }
}

fn pool_of<'py>(mr: &Bound<'py, PyAny>) -> PyResult<Lent<'py, MemoryPool>> {
    match mr.cast::<PyMemPool>() {
        Ok(pool) => pool.get().pool(mr.py()),
        Err(_) => Err(PyTypeError::new_err(format!(
            "argument 'mr' is of type {}; expected a DeviceMemoryResource",
            mr.get_type().name()?
        ))),
    }
}

/// Access rights of a device to the memory of a pool: ``'rw'``, ``'r'`` or ``''``.
#[pyfunction]
pub(super) fn mempool_get_access<'py>(
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
        MemoryAccess::ReadWrite => 0,
        MemoryAccess::Read => 1,
        MemoryAccess::None => 2,
    };
    Ok(names[index].bind(py))
}

/// Grants and revokes access of devices to the memory of a pool; all changes are applied or none.
#[pyfunction]
pub(super) fn mempool_set_access(
    py: Python<'_>,
    mr: &Bound<'_, PyAny>,
    add: Vec<usize>,
    remove: Vec<usize>,
) -> PyResult<()> {
    let pool = pool_of(mr)?;
    let rights: Vec<(usize, MemoryAccess)> = add
        .into_iter()
        .map(|ordinal| (ordinal, MemoryAccess::ReadWrite))
        .chain(
            remove
                .into_iter()
                .map(|ordinal| (ordinal, MemoryAccess::None)),
        )
        .collect();
    py.detach(|| pool.set_access(&rights)).or_raise(py)
}

/// Number of released memory pools whose destruction is deferred until streams have freed their memory.
#[pyfunction]
pub(super) fn _deferred_pool_count() -> usize {
    cupyrite::deferred_pool_count()
}
