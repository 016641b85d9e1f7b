//! `_MemPool`: what the resources over pools of the driver's have in common.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};

use cupyrite::{DeviceBuffer, MemoryAccess, MemoryPool, PoolKind, RawAllocation, Stream};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::core::closable::{Detached, Lent, closed, drop_detached};
use crate::core::context::handle_object;
use crate::core::errors::OrRaise;
use crate::core::memory::buffer::{Backing, PyBuffer};
use crate::core::memory::ipc::PyAllocationHandle;
use crate::core::memory::pool_attributes::{PyMemPoolAttributes, drop_pool};
use crate::core::memory::resource::{PyMemoryResource, stream_or_default};
use crate::core::numbers::{address_argument, size_argument, size_or_none};
use crate::core::stream;
use crate::cpython::gil_lock::{Guard, Held};
use crate::cpython::method::Method;
use crate::generated::ids::class::driver as class;

/// What memory resources over a pool of the driver's have in common.
#[pyclass(
    frozen,
    subclass,
    extends = PyMemoryResource,
    module = "cuda.core._memory._memory_pool",
    name = "_MemPool"
)]
pub struct PyMemPool {
    state: Held<State>,
    /// Whether it refers to no object that could refer to its buffers, as one of a class that is derived from this in Python
    /// may.
    is_leaf: AtomicBool,
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
    #[inline]
    fn lock<'a>(&'a self, py: Python<'a>) -> Guard<'a, State> {
        self.state.lock(py)
    }

    /// The pool.
    ///
    /// # Errors
    ///
    /// `RuntimeError` where the resource was closed, or never made.
    pub fn pool<'py>(&self, py: Python<'py>) -> PyResult<Lent<'py, MemoryPool>> {
        let state = self.lock(py);
        match &state.pool {
            Some(pool) => Ok(Lent::new(py, pool.clone())),
            None => match state.made {
                Some((class, _)) => Err(closed(class)),
                None => Err(unmade()),
            },
        }
    }

    /// A resource without a pool yet, for classes that derive from this one.
    pub fn unmade() -> PyClassInitializer<PyMemPool> {
        PyClassInitializer::from(PyMemoryResource).add_subclass(PyMemPool {
            state: Held::default(),
            is_leaf: AtomicBool::new(false),
        })
    }

    /// Gives the resource its pool; `class` is what it is called in messages.
    pub fn set(&self, py: Python<'_>, pool: MemoryPool, class: &'static str) {
        self.fill(py, pool, class, None, None);
    }

    /// Gives the resource its pool, and what other processes know it by.
    pub fn fill(
        &self,
        py: Python<'_>,
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
        let former = std::mem::replace(&mut *self.lock(py), state);
        drop((former.attributes, former.shared, former.uuid));
        drop_pool(former.pool);
    }

    /// Says that the resource refers to no object that could refer to its buffers: the collector need not know them then.
    /// (As for events: a program may give the resource another class, by `__class__`, and have that one refer to a buffer;
    /// they all stay then.)
    pub fn set_leaf(&self) {
        self.is_leaf.store(true, Ordering::Relaxed);
    }

    /// What the memory is and where, also when the resource was closed.
    ///
    /// # Errors
    ///
    /// `RuntimeError` where it was never made.
    pub fn kind(&self, py: Python<'_>) -> PyResult<PoolKind> {
        match self.lock(py).made {
            Some((_, kind)) => Ok(kind),
            None => Err(unmade()),
        }
    }

    /// The pool, for memory of it.
    #[inline(always)]
    fn allocating(&self, py: Python<'_>) -> PyResult<MemoryPool> {
        match &self.lock(py).pool {
            Some(pool) if !pool.is_imported() => return Ok(pool.clone()),
            _ => {}
        }
        self.not_allocating(py)
    }

    #[cold]
    #[inline(never)]
    fn not_allocating(&self, py: Python<'_>) -> PyResult<MemoryPool> {
        // Closed, or never made.
        self.pool(py)?;
        Err(PyTypeError::new_err(
            "this memory resource is another process's, which alone allocates from it; its buffers come by \
             Buffer.from_ipc_descriptor()",
        ))
    }

    /// Memory of the pool.
    ///
    /// # Errors
    ///
    /// `RuntimeError` where the resource was closed; what the driver says.
    pub fn take(&self, py: Python<'_>, size: usize, stream: Stream) -> PyResult<DeviceBuffer> {
        let pool = self.allocating(py)?;
        // The driver may wait for a stream when memory is short.
        py.detach(|| pool.into_buffer(size, stream)).or_raise(py)
    }

    /// A buffer of the pool.
    ///
    /// # Errors
    ///
    /// As [`PyMemPool::take`].
    #[inline(always)]
    pub fn allocate_on(
        slf: &Bound<'_, Self>,
        size: usize,
        stream: Stream,
    ) -> PyResult<Py<PyBuffer>> {
        let py = slf.py();
        let this = slf.get();
        let pool = this.allocating(py)?;
        let Some(home) = pool.fast_allocation_device(size, &stream) else {
            cupyrite::hint::cold_path();
            return PyMemPool::allocate_otherwise(slf, pool, size, stream);
        };
        let taken = {
            // The driver may wait for a stream when memory is short.
            // SAFETY: the pool and the stream are the driver's alone.
            let _detached = unsafe { Detached::new(py) };
            pool.allocate_raw_on(home, size, &stream)
        };
        match taken {
            Ok(taken) => PyMemPool::own(slf, taken, pool, size, stream),
            Err(error) => refused(py, *error, pool, stream),
        }
    }

    /// The buffer of what the driver gave.
    #[inline(always)]
    fn own(
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

    /// The same for other streams than those of this crate's making, for pools of other memory, and for no bytes.
    #[inline(never)]
    fn allocate_otherwise(
        slf: &Bound<'_, Self>,
        pool: MemoryPool,
        size: usize,
        stream: Stream,
    ) -> PyResult<Py<PyBuffer>> {
        let py = slf.py();
        if stream.is_foreign() {
            // It may keep a Python object.
            return PyMemPool::allocate_on_foreign(slf, pool, size, stream);
        }
        let taken = {
            // The driver may wait for a stream when memory is short.
            // SAFETY: the pool and the stream are the driver's alone.
            let _detached = unsafe { Detached::new(py) };
            pool.allocate_raw(size, &stream)
        };
        match taken {
            Ok(taken) => PyMemPool::own(slf, taken, pool, size, stream),
            Err(error) => refused(py, error, pool, stream),
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
        PyBuffer::make(py, backing, address, size, Some(resource), None)
    }
}

/// The driver has refused memory of a pool for a stream.
#[cold]
#[inline(never)]
fn refused(
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
    /// The pool, if other processes can use it.
    ///
    /// # Errors
    ///
    /// `RuntimeError` where they cannot, or where it was closed.
    pub fn shared_pool<'py>(&self, py: Python<'py>) -> PyResult<Lent<'py, MemoryPool>> {
        let pool = self.pool(py)?;
        if self.lock(py).shared.is_none() {
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
        self.pool(py)?;
        let state = self.lock(py);
        let handle = state.shared.as_ref().map(|handle| handle.clone_ref(py));
        handle.ok_or_else(no_ipc)
    }
}

/// What is raised for a resource whose `__init__` was never called.
pub fn unmade() -> PyErr {
    PyRuntimeError::new_err(
        "this memory resource was not made: its class's __init__() was not called",
    )
}

/// What is raised where other processes cannot use the pool.
fn no_ipc() -> PyErr {
    PyRuntimeError::new_err(
        "this memory resource is not IPC-enabled: its memory stays in this process",
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
        PyMemPool::unmade()
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
        let stream = stream::lend(stream, "deallocate", "stream", false)?;
        // Buffers outlive `close`, so their memory can be freed after it.
        let kind = self.kind(py)?;
        // SAFETY: that nothing uses the memory any more is what this method asks of its caller; the driver refuses addresses
        // that it did not give out.
        py.detach(|| unsafe { kind.deallocate(address, &stream) })
            .or_raise(py)
    }

    /// Lets go of the pool. One that the resource made is destroyed when its last buffer is freed; the device's own stays.
    /// Buffers stay valid.
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

    /// The driver's handle, a ``cuda.bindings.driver.CUmemoryPool``; 0 once the resource was closed.
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

    /// Whether the pool was made by this resource, and is not the device's own.
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

    /// Whether the pool is another process's.
    #[getter]
    fn is_mapped(&self, py: Python<'_>) -> bool {
        self.lock(py)
            .pool
            .as_ref()
            .is_some_and(MemoryPool::is_imported)
    }

    /// What identifies the pool among processes, a ``uuid.UUID``; None unless it is IPC-enabled, and where the resource was
    /// made from a mere file descriptor.
    #[getter]
    pub fn uuid(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.lock(py).uuid.as_ref().map(|uuid| uuid.clone_ref(py))
    }

    /// What `register` does where the UUID is new.
    fn _take_uuid(&self, py: Python<'_>, uuid: Py<PyAny>) -> PyResult<()> {
        self.shared_pool(py)?;
        let former = self.lock(py).uuid.replace(uuid);
        drop(former);
        Ok(())
    }

    /// The pool's attributes: what it holds and what it keeps.
    #[getter]
    fn attributes(&self, py: Python<'_>) -> PyResult<Py<PyMemPoolAttributes>> {
        let pool = self.pool(py)?;
        if let Some(known) = &self.lock(py).attributes {
            return Ok(known.clone_ref(py));
        }
        let made = Py::new(py, PyMemPoolAttributes::new_of(pool.clone()))?;
        let mut state = self.lock(py);
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

/// `_MemPool.allocate(size, *, stream)`. The stream may also be given by place.
pub(super) struct Allocate;

impl Method<2> for Allocate {
    type Class = PyMemPool;
    const FUNCTION: &'static str = "allocate";
    const NAME: &'static CStr = c"allocate";
    const TEXT: &'static CStr = c"allocate($self, size, *, stream)
--

Allocates memory from the pool, in the order of a stream.

Parameters
----------
size : int
    Bytes; 0 gives a buffer with the address 0.
stream : Stream
    In whose order the memory is there, and by default is freed.

Returns
-------
Buffer

Raises
------
CUDAError
    There is not as much memory (``CUDA_ERROR_OUT_OF_MEMORY``).";
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

/// The pool of a resource whose memory other processes can use.
///
/// # Errors
///
/// `TypeError` for what is no resource over a pool, `RuntimeError` for one that was closed or is this process's alone.
pub fn shared_pool_of<'py>(mr: &Bound<'py, PyAny>) -> PyResult<Lent<'py, MemoryPool>> {
    match mr.cast::<PyMemPool>() {
        Ok(pool) => pool.get().shared_pool(mr.py()),
        Err(_) => Err(PyTypeError::new_err(format!(
            "Buffer.from_ipc_descriptor() argument 'mr' is of type {}; expected a memory resource over a pool",
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

/// What a device may do with the memory of a pool: ``'rw'``, ``'r'`` or ``''``.
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

/// Lets devices use the memory of a pool, or no longer; all of them or none.
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

/// How many memory pools have ended whose memory is not free yet: what streams hold uses it.
#[pyfunction]
pub(super) fn _deferred_pool_count() -> usize {
    cupyrite::deferred_pool_count()
}
