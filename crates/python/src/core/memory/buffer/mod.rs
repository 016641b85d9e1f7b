//! `Buffer`: memory with an owner.

pub mod construct;
pub mod exports;
pub mod methods;
pub mod release;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use cupyrite::destroyed::is_memory_freed;
use cupyrite::dlpack::DlDevice;
use cupyrite::{
    Context, Device, DeviceBuffer, FREED, ForkGeneration, MemoryPool, PointerInfo, RawAllocation,
    Stream, StreamUsage, pointer_info,
};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::core::closable::closed;
use crate::core::errors::OrRaise;
use crate::core::memory::buffer::release::{release, release_quietly, set_stream};
use crate::core::memory::ipc_handles::PyBufferDescriptor;
use crate::core::pin_count::PinCount;
use crate::core::stream;
use crate::cpython;
use crate::cpython::gil_lock::{GilLock, GilLockGuard};

/// Memory allocated by a memory resource or owned by another object.
///
/// Buffers come from :meth:`Device.allocate`, a memory resource's ``allocate`` and :meth:`from_handle`. The memory is
/// freed once, when the buffer is closed or garbage-collected: stream-ordered on the stream of the allocation, or on
/// the stream given to :meth:`close` or :meth:`set_deallocation_stream`. That stream first waits for launches, copies
/// and fills on other streams. The buffer owns its stream and its memory resource, which may be closed first.
///
/// Buffers are equal if their addresses and sizes are equal. A ``with`` statement closes the buffer.
#[doc = example!("cuda.core.Buffer")]
#[pyclass(
    frozen,
    weakref,
    subclass,
    mapping,
    module = "cuda.core._memory._buffer",
    name = "Buffer"
)]
pub struct PyBuffer {
    address: u64,
    /// The beginning of the allocation, and the result of `own_memory` for it; 0 if the buffer does not own it.
    allocation: u64,
    created: u32,
    /// Changes only when the memory grows.
    size: AtomicUsize,
    /// Pins of calls in progress (launches included) and of live exports. A pinned buffer keeps its memory when closed.
    pins: PinCount,
    state: GilLock<BufferState>,
    /// Handle of an unambiguous stream (`has_unambiguous_handle`) whose work the memory is known to outlive; 0 for
    /// none. Written under the lock of `state`.
    outlives: AtomicUsize,
    /// Device of the memory for DLPack; computed on first use, and constant.
    dl_device: OnceLock<DlDevice>,
}

/// BufferState needed to free the memory. A type of its own, so that it can be moved out before Python is called.
#[derive(Default)]
struct BufferState {
    backing: Backing,
    address: u64,
    size: usize,
    resource: Option<Py<PyAny>>,
    owner: Option<Py<PyAny>>,
    info: Option<PointerInfo>,
    /// Created on first use, or the descriptor with which the buffer was imported.
    descriptor: Option<Py<PyBufferDescriptor>>,
}

impl BufferState {
    /// Whether the memory is pool memory that will be freed on `stream`. Cheap test of the common case.
    #[inline]
    fn is_freed_on(&self, stream: &Stream) -> bool {
        matches!(&self.backing, Backing::Pool(memory)
            if memory.stream().handle() == stream.handle() && !stream.is_per_thread())
    }
}

/// Origin of the memory, which determines how it is freed.
#[derive(Default)]
pub enum Backing {
    /// Not freed by the buffer.
    #[default]
    Foreign,
    /// Memory of a pool or another resource of crate `cupyrite`.
    Pool(DeviceBuffer),
    /// A slice of another buffer, which is not a slice itself and stays pinned.
    Slice(Py<PyBuffer>),
    /// Synchronous allocation (`cuMemAlloc`).
    Synchronous(cupyrite::Buffer<u8>),
    /// Freed by the Python method `deallocate` of the resource.
    Resource(ResourceDeallocation),
}

/// Arguments and preconditions of a call of `deallocate`.
pub struct ResourceDeallocation {
    /// The stream object given by the program; None selects the default stream.
    pub object: Option<Py<PyAny>>,
    /// The deallocation stream, which outlives the object's `close`, and the streams that it waits for.
    pub users: StreamUsage,
    /// A forked child does not free memory of its parent.
    pub generation: ForkGeneration,
}

impl Backing {
    /// The beginning of the allocation that the program may free itself, and the result of `own_memory` for it.
    #[inline(always)]
    fn allocation(&self) -> (u64, u32) {
        match self {
            Backing::Pool(memory) => (memory.address(), memory.created()),
            Backing::Slice(whole) => (whole.get().allocation, whole.get().created),
            Backing::Synchronous(memory) => (memory.address(), memory.created()),
            // The program's own memory, which nothing is noted of.
            Backing::Foreign | Backing::Resource(_) => (0, 0),
        }
    }

    /// Streams that use the memory, if they affect its deallocation.
    fn users(&self) -> Option<&StreamUsage> {
        match self {
            Backing::Pool(memory) => Some(memory.usage()),
            Backing::Resource(given) => Some(&given.users),
            // Freed synchronously, or not at all.
            Backing::Foreign | Backing::Synchronous(_) => None,
            // Recorded by the whole buffer.
            Backing::Slice(_) => None,
        }
    }
}

/// Whether there are several devices. Then the handle of a default stream does not determine its device.
fn has_several_devices() -> bool {
    Device::count().is_ok_and(|count| count > 1)
}

/// Whether the handle denotes the same stream in every thread and context.
#[inline]
fn has_unambiguous_handle(stream: &Stream) -> bool {
    !stream.is_default() || !(stream.is_per_thread() || has_several_devices())
}

/// Address and size of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferExtent {
    /// The address; 0 for a closed buffer.
    pub address: u64,
    /// Bytes; 0 for a closed buffer.
    pub size: usize,
    /// Whether the buffer is open.
    pub open: bool,
}

/// A pin of an open buffer; keeps the memory alive.
pub struct Pinned<'a> {
    py: Python<'a>,
    buffer: &'a PyBuffer,
    /// The address.
    pub address: u64,
    /// Bytes.
    pub size: usize,
}

impl Pinned<'_> {
    /// The memory resource, if the memory has one.
    fn resource(&self) -> Option<Py<PyAny>> {
        self.buffer.resource_of_pinned(self.py)
    }
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        self.buffer.unpin(self.py);
    }
}

/// The handle of the deallocation stream if it is unambiguous, else 0.
#[inline(always)]
fn unambiguous_handle(stream: &Stream) -> usize {
    if has_unambiguous_handle(stream) {
        stream.handle().addr()
    } else {
        0
    }
}

impl PyBuffer {
    /// Creates a buffer object for memory of `backing`.
    ///
    /// # Errors
    ///
    /// `MemoryError`.
    pub fn create(
        py: Python<'_>,
        backing: Backing,
        address: u64,
        size: usize,
        resource: Option<Py<PyAny>>,
        owner: Option<Py<PyAny>>,
    ) -> PyResult<Py<PyBuffer>> {
        Py::new(
            py,
            PyBuffer::new_value(backing, address, size, resource, owner),
        )
    }

    /// Creates a buffer object for memory just allocated from `pool` on `stream`. `resource` is the Python object of
    /// the pool; `tracked` is false if it refers to no object that could refer to the buffer.
    ///
    /// # Errors
    ///
    /// `MemoryError`; the memory is then freed.
    #[inline(always)]
    pub fn of_pool(
        py: Python<'_>,
        pool: MemoryPool,
        taken: RawAllocation,
        size: usize,
        stream: Stream,
        resource: Py<PyAny>,
        tracked: bool,
    ) -> PyResult<Py<PyBuffer>> {
        let address = taken.address();
        let outlives = unambiguous_handle(&stream);
        let backing = Backing::Pool(pool.into_buffer_from(taken, size, stream));
        let resource = Some(resource);
        let value = PyBuffer::from_fields(backing, address, size, resource, None, outlives);
        let created = Py::new(py, value)?;
        if !tracked {
            // Refers to the resource and possibly to a descriptor, which refers to nothing. It never gets an owner: owners
            // are set on construction.
            cpython::untrack(created.bind(py));
        }
        Ok(created)
    }

    /// The value of a buffer object, for subclasses.
    pub fn new_value(
        backing: Backing,
        address: u64,
        size: usize,
        resource: Option<Py<PyAny>>,
        owner: Option<Py<PyAny>>,
    ) -> PyBuffer {
        let outlives = backing
            .users()
            .map_or(0, |users| unambiguous_handle(users.deallocation_stream()));
        Self::from_fields(backing, address, size, resource, owner, outlives)
    }

    #[inline(always)]
    fn from_fields(
        backing: Backing,
        address: u64,
        size: usize,
        resource: Option<Py<PyAny>>,
        owner: Option<Py<PyAny>>,
        outlives: usize,
    ) -> PyBuffer {
        let (allocation, created) = backing.allocation();
        PyBuffer {
            address,
            allocation,
            created,
            size: AtomicUsize::new(size),
            pins: PinCount::new(),
            outlives: AtomicUsize::new(outlives),
            state: GilLock::new(BufferState {
                backing,
                address,
                size,
                resource,
                owner,
                info: None,
                descriptor: None,
            }),
            dl_device: OnceLock::new(),
        }
    }

    #[inline]
    fn lock<'a>(&'a self, py: Python<'a>) -> GilLockGuard<'a, BufferState> {
        self.state.lock(py)
    }

    /// Whether the program has freed the memory itself. The buffer then counts as closed, and frees nothing.
    #[inline(always)]
    pub fn is_freed_by_program(&self) -> bool {
        self.allocation != 0 && is_memory_freed(self.allocation, self.created)
    }

    /// The error of a use of a closed buffer.
    #[cold]
    pub fn closed_error(&self) -> PyErr {
        if self.pins.is_open() && self.is_freed_by_program() {
            return PyRuntimeError::new_err(format!("this Buffer was closed: {FREED}"));
        }
        closed("Buffer")
    }

    /// Address and size; both 0 for a closed buffer.
    #[inline]
    pub fn extent(&self) -> BufferExtent {
        let open = self.pins.is_open() && !self.is_freed_by_program();
        BufferExtent {
            address: if open { self.address } else { 0 },
            size: if open {
                self.size.load(Ordering::Relaxed)
            } else {
                0
            },
            open,
        }
    }

    /// Creates a buffer object for memory that a graph allocates.
    ///
    /// # Errors
    ///
    /// `MemoryError`.
    pub fn of_graph(
        py: Python<'_>,
        memory: DeviceBuffer,
        size: usize,
        resource: Py<PyAny>,
    ) -> PyResult<Py<PyBuffer>> {
        let address = memory.address();
        PyBuffer::create(
            py,
            Backing::Pool(memory),
            address,
            size,
            Some(resource),
            None,
        )
    }

    /// Whether a graph that a builder records allocates the memory, which then belongs to the graph.
    pub fn is_graph_memory(&self, py: Python<'_>) -> bool {
        match &self.lock(py).backing {
            Backing::Pool(memory) => memory.stream().is_of_builder(),
            Backing::Slice(whole) => whole.get().is_graph_memory(py),
            _ => false,
        }
    }

    /// Pins the memory, so that it stays valid even if another thread closes the buffer.
    ///
    /// # Errors
    ///
    /// `RuntimeError` for a closed buffer.
    pub fn pin<'a>(&'a self, py: Python<'a>) -> PyResult<Pinned<'a>> {
        if self.is_freed_by_program() || !self.pins.try_pin(py) {
            return Err(self.closed_error());
        }
        Ok(Pinned {
            py,
            buffer: self,
            address: self.address,
            size: self.size.load(Ordering::Relaxed),
        })
    }

    /// As [`PyBuffer::pin`], for launches: returns the address, or `None` for a closed buffer. Paired with
    /// [`PyBuffer::end_launch`].
    #[inline(always)]
    pub fn begin_launch(&self, py: Python<'_>) -> Option<u64> {
        (!self.is_freed_by_program() && self.pins.try_pin(py)).then_some(self.address)
    }

    /// Releases the pin of [`PyBuffer::begin_launch`] after the kernel was queued in `stream`, or the launch failed.
    #[inline(always)]
    pub fn end_launch(&self, py: Python<'_>, stream: &Stream) {
        // Before unpinning: a concurrent close cannot have ordered the streams.
        if self.outlives.load(Ordering::Relaxed) != stream.handle().addr() {
            self.note_use_on(py, stream, None);
        }
        self.unpin(py);
    }

    /// Releases one pin; the last pin of a closed buffer frees the memory.
    #[inline(always)]
    pub fn unpin(&self, py: Python<'_>) {
        if self.pins.unpin(py) {
            self.release_last(py);
        }
    }

    /// Frees the memory of a closed buffer without pins.
    #[cold]
    fn release_last(&self, py: Python<'_>) {
        // The state is dropped after the lock is released: dropping may switch threads and call Python.
        let state = std::mem::take(&mut *self.lock(py));
        // Capsule destructors are called without PyO3, which would defer reference drops unless it is attached
        // explicitly. Attaching fails during interpreter shutdown, where deferral does not matter.
        let mut state = Some(state);
        Python::try_attach(|py| state.take().map(|state| release_quietly(py, state)));
        if let Some(state) = state {
            release_quietly(py, state);
        }
    }

    /// As [`PyBuffer::note_use`]. A default stream belongs to `device`, or to the current context's device if `None`.
    #[cold]
    #[inline(never)]
    pub fn note_use_on(&self, py: Python<'_>, stream: &Stream, device: Option<Device>) {
        if !stream.is_default() || !has_several_devices() {
            return self.note_use(py, stream);
        }
        let of = device.or_else(|| Context::current().ok()?.map(|context| context.device()));
        match of {
            Some(device) if self.default_stream_device(py) != Some(device) => {
                self.note_use(py, &stream.on_device(device));
            }
            _ => self.note_use(py, stream),
        }
    }

    /// The device to which default streams belong unless specified otherwise; see [`StreamUsage::add`].
    fn default_stream_device(&self, py: Python<'_>) -> Option<Device> {
        match &self.lock(py).backing {
            Backing::Pool(memory) => return Some(memory.default_stream_device()),
            Backing::Slice(whole) => return whole.get().default_stream_device(py),
            _ => {}
        }
        self.device(py)
    }

    /// Records that work of `stream` uses the pinned memory, which is then freed after that work. A default stream
    /// without an explicit device belongs to the memory's device.
    #[cold]
    #[inline(never)]
    pub fn note_use(&self, py: Python<'_>, stream: &Stream) {
        if stream.is_of_builder() {
            // The graph pins the memory: it uses it whenever it is launched.
            return;
        }
        let many = {
            let state = self.lock(py);
            if let Backing::Slice(whole) = &state.backing {
                return whole.get().note_use(py, stream);
            }
            let many = state.backing.users().is_some_and(|users| users.add(stream));
            if has_unambiguous_handle(stream) {
                let handle = stream.handle().addr();
                self.outlives.store(handle, Ordering::Relaxed);
            }
            many
        };
        if many {
            self.prune_idle_streams(py);
        }
    }

    /// Drops streams that no other object owns and whose work is complete, since a buffer may be long-lived.
    #[cold]
    fn prune_idle_streams(&self, py: Python<'_>) {
        let clones = {
            let state = self.lock(py);
            state.backing.users().map(StreamUsage::unshared_streams)
        };
        let Some(clones) = clones else { return };
        // Queries the driver without holding a lock.
        let idle = py.detach(|| StreamUsage::retain_idle(clones));
        let removed = {
            let state = self.lock(py);
            let removed = state.backing.users().map(|users| users.remove_idle(&idle));
            // The handle may be reused by another stream.
            self.outlives.store(0, Ordering::Relaxed);
            removed
        };
        // Destroys the streams.
        py.detach(|| drop((idle, removed)));
    }

    /// For pool memory: the device of its default streams, and the streams known to use it.
    pub fn streams(&self, py: Python<'_>) -> Option<(Device, Vec<Stream>)> {
        match &self.lock(py).backing {
            Backing::Pool(memory) => Some((memory.default_stream_device(), memory.streams())),
            Backing::Slice(whole) => whole.get().streams(py),
            _ => None,
        }
    }

    /// Handle of a stream that is ordered after all known uses of the memory; `None` if the memory is not
    /// stream-ordered.
    ///
    /// # Errors
    ///
    /// Driver errors.
    pub fn joined_stream(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        let Some((device, streams)) = self.streams(py) else {
            return Ok(None);
        };
        // Detached: may drop the last reference to a stream, which destroys it.
        py.detach(move || {
            // Prefer a stream whose handle is unambiguous given the memory's device.
            let (others, mut streams): (Vec<Stream>, Vec<Stream>) = streams
                .into_iter()
                .partition(|stream| stream.default_device().is_some());
            streams.extend(others);
            let Some((first, others)) = streams.split_first() else {
                return Ok(None);
            };
            if !others.is_empty() {
                let _entered = device.enter()?;
                cupyrite::wait_for_streams(first, others)?;
            }
            // The array interface forbids 0, which could be either default stream.
            Ok(Some(first.handle().addr().max(1)))
        })
        .or_raise(py)
    }

    /// Device of the memory for DLPack.
    ///
    /// # Errors
    ///
    /// `RuntimeError` for a closed buffer; the errors of `find`, which is called once.
    pub fn dl_device(&self, find: impl FnOnce() -> PyResult<DlDevice>) -> PyResult<DlDevice> {
        if !self.extent().open {
            return Err(self.closed_error());
        }
        if let Some(known) = self.dl_device.get() {
            return Ok(*known);
        }
        let found = find()?;
        Ok(*self.dl_device.get_or_init(|| found))
    }

    /// Number of the memory's device; -1 for none.
    ///
    /// # Errors
    ///
    /// As the property.
    pub fn device_number(&self, py: Python<'_>) -> PyResult<i64> {
        self.device_id(py)
    }

    /// Whether the memory was allocated from a pool whose kind of memory the resource knows.
    fn is_of_pool(&self, py: Python<'_>) -> bool {
        matches!(self.lock(py).backing, Backing::Pool(_))
    }

    fn info(&self, py: Python<'_>) -> cupyrite::Result<PointerInfo> {
        let known = self.lock(py).info;
        if let Some(info) = known {
            return Ok(info);
        }
        let info = pointer_info(self.address)?;
        self.lock(py).info = Some(info);
        Ok(info)
    }

    /// The device of the memory, to which default streams belong; `None` selects the current device.
    pub fn device(&self, py: Python<'_>) -> Option<Device> {
        let known = match &self.lock(py).backing {
            Backing::Pool(memory) => memory.device(),
            Backing::Slice(whole) => whole.get().device(py),
            _ => None,
        };
        if known.is_some() {
            return known;
        }
        Device::new(self.info(py).ok()?.device?).ok()
    }

    /// The memory resource of an open buffer, if it has one.
    pub fn resource(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.pin(py).ok()?.resource()
    }

    /// The memory resource of memory pinned by the caller; also available after the buffer was closed.
    fn resource_of_pinned(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let state = self.lock(py);
        state.resource.as_ref().map(|r| r.clone_ref(py))
    }

    /// An attribute of the memory resource, or derived from the driver's pointer attributes if there is no resource.
    fn attribute<'py, T>(
        &self,
        py: Python<'py>,
        name: &Bound<'py, PyString>,
        of_info: impl FnOnce(PointerInfo) -> T,
    ) -> PyResult<T>
    where
        T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
    {
        let pinned = self.pin(py)?;
        match pinned.resource() {
            Some(resource) => resource.bind(py).getattr(name)?.extract::<T>(),
            None => self.info(py).map(of_info).or_raise(py),
        }
    }

    /// `(is_device_accessible, is_host_accessible, is_managed)`.
    ///
    /// # Errors
    ///
    /// `RuntimeError` for a closed buffer; errors of the memory resource.
    pub fn accessible(&self, py: Python<'_>) -> PyResult<(bool, bool, bool)> {
        Ok((
            self.is_device_accessible(py)?,
            self.is_host_accessible(py)?,
            self.is_managed(py)?,
        ))
    }

    /// Closes the buffer and frees the memory once; raises driver errors.
    fn close_on(&self, py: Python<'_>, stream: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        if !self.pins.is_open() {
            return Ok(());
        }
        let accepted = match stream {
            Some(given) => Some((given, stream::lend(given, "Buffer.close", "stream", false)?)),
            None => None,
        };
        // Dropped after the lock is released: dropping an object may call Python.
        let mut previous = None;
        let state = {
            let mut state = self.lock(py);
            // From here on no other thread closes the buffer: that requires the lock.
            if !self.pins.is_open() {
                return Ok(());
            }
            // By reference: dropping the lent stream may destroy it, which must happen after the lock is released.
            if let Some((given, accepted)) = &accepted
                && !state.is_freed_on(accepted)
            {
                match set_stream(&mut state, given, accepted) {
                    Ok(before) => previous = before,
                    Err(error) => {
                        drop(state);
                        return Err(crate::core::errors::to_python(py, &error));
                    }
                }
            }
            if !self.pins.close(py) {
                // Another thread or an export pins the memory; the last unpin frees it.
                return Ok(());
            }
            std::mem::take(&mut *state)
        };
        drop(previous);
        release(py, state, false)
    }
}

/// Adds the class.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    core.add_class::<PyBuffer>()?;
    crate::cpython::method::add::<release::Close, 1>(core.py())
}
