//! `Buffer`: memory with an owner.

pub mod construct;
pub mod exports;
pub mod methods;
pub mod release;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use cupyrite::dlpack::DlDevice;
use cupyrite::{
    Context, Device, DeviceBuffer, ForkGeneration, MemoryPool, PointerInfo, RawAllocation, Stream,
    StreamUsage, pointer_info,
};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::core::closable::closed;
use crate::core::errors::OrRaise;
use crate::core::memory::buffer::release::{release, release_quietly, set_stream};
use crate::core::memory::ipc::PyBufferDescriptor;
use crate::core::pin_count::Uses;
use crate::core::stream;
use crate::cpython::freelist::{Fresh, Parts, Recycled};
use crate::cpython::gil_lock::{Guard, Held};

/// Memory that a memory resource allocated, or that somebody else owns.
///
/// Buffers come from :meth:`Device.allocate`, from a memory resource's ``allocate`` and from :meth:`from_handle`. The
/// memory is freed once: when the buffer is closed or forgotten, in the order of the stream that it was allocated on, or of
/// the one given to :meth:`close` or :meth:`set_deallocation_stream`. It owns what it needs for that, so its stream and its
/// memory resource may be closed first. Launches, copies and fills on other streams are waited for by that stream.
///
/// Two buffers are equal if address and size are. ``with`` closes a buffer at the end.
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
    /// Changes only where memory grows.
    size: AtomicUsize,
    /// Calls in progress, launches among them, and exports alive: the memory stays for them even when the buffer is closed.
    uses: Uses,
    state: Held<State>,
    /// The handle of a stream whose work the memory is known to outlive, and that means the same everywhere (`means_one`); 0
    /// for none.
    /// Written under the lock of `state`.
    outlives: AtomicUsize,
    /// Where the memory is for DLPack, once somebody asked; it does not move.
    place: OnceLock<DlDevice>,
    /// Whether the collector has to know the buffer: not that of a resource which refers to nothing, where there is no owner.
    tracked: bool,
}

/// What is needed to give the memory back; of its own, so that it can leave the object before Python is called.
#[derive(Default)]
struct State {
    backing: Backing,
    address: u64,
    size: usize,
    resource: Option<Py<PyAny>>,
    owner: Option<Py<PyAny>>,
    info: Option<PointerInfo>,
    /// Made when it was first asked for, or what the buffer was imported by.
    descriptor: Option<Py<PyBufferDescriptor>>,
}

impl State {
    /// Whether the memory is the crate's to free, and will be freed on this stream; common, and soon said.
    #[inline]
    fn is_freed_on(&self, stream: &Stream) -> bool {
        matches!(&self.backing, Backing::Pool(memory)
            if memory.stream().handle() == stream.handle() && !stream.is_per_thread())
    }
}

/// Where the memory comes from.
#[derive(Default)]
pub enum Backing {
    /// Not ours to free.
    #[default]
    Foreign,
    /// A pool or another resource of the crate's.
    Pool(DeviceBuffer),
    /// Another buffer, which is no part itself, of which this one is a part; pinned there for as long as this one has it.
    View(Py<PyBuffer>),
    /// `cuMemAlloc`.
    Plain(cupyrite::Buffer<u8>),
    /// The resource's method `deallocate`.
    Resource(GivenBack),
}

/// What `deallocate` is called with, and when.
pub struct GivenBack {
    /// The stream as Python gave it; the default stream where it gave none.
    pub object: Option<Py<PyAny>>,
    /// That stream, which stays when the object is closed, and those that it waits for.
    pub users: StreamUsage,
    /// In a forked child the memory is the parent's.
    pub generation: ForkGeneration,
}

impl Backing {
    /// Who uses the memory, where that matters to whoever frees it.
    fn users(&self) -> Option<&StreamUsage> {
        match self {
            Backing::Pool(memory) => Some(memory.usage()),
            Backing::Resource(given) => Some(&given.users),
            // Freeing waits for the device, or is not ours.
            Backing::Foreign | Backing::Plain(_) => None,
            // The whole knows.
            Backing::View(_) => None,
        }
    }
}

/// Whether there are several devices, so that a default stream's handle alone does not say of which it is.
fn has_peers() -> bool {
    Device::count().is_ok_and(|count| count > 1)
}

/// Whether the handle of a stream means the same stream in every thread and context.
#[inline]
fn means_one(stream: &Stream) -> bool {
    !stream.is_default() || !(stream.is_per_thread() || has_peers())
}

/// Where a buffer is, for those who pass it to the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The address; 0 for a closed buffer.
    pub address: u64,
    /// Bytes; 0 for a closed buffer.
    pub size: usize,
    /// Whether the buffer is open.
    pub open: bool,
}

/// The memory of an open buffer, which stays for as long as this lives.
pub struct Pinned<'a> {
    py: Python<'a>,
    buffer: &'a PyBuffer,
    /// The address.
    pub address: u64,
    /// Bytes.
    pub size: usize,
}

impl Pinned<'_> {
    /// The memory resource, where the memory has one.
    fn resource(&self) -> Option<Py<PyAny>> {
        self.buffer.resource_of_pinned(self.py)
    }
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        self.buffer.unpin(self.py);
    }
}

static OBJECTS: Fresh<PyBuffer> = Fresh::new();

// SAFETY: the state that is asked for owns nothing, and the rest are numbers. A buffer that is not tracked refers to its
// resource, from which nothing leads back (see `PyMemPool::set_leaf`), and perhaps to a descriptor, which refers to
// nothing. It never gets an owner: buffers have theirs from the beginning, and those are tracked.
unsafe impl Recycled for PyBuffer {
    #[inline(always)]
    fn fresh() -> &'static Fresh<PyBuffer> {
        &OBJECTS
    }

    #[inline(always)]
    fn is_tracked(&self) -> bool {
        self.tracked
    }

    #[inline(always)]
    fn is_spent(&mut self) -> bool {
        matches!(
            self.state.get_mut(),
            State {
                backing: Backing::Foreign,
                resource: None,
                owner: None,
                descriptor: None,
                ..
            }
        )
    }
}

/// What the shell of memory is made of.
struct Shell {
    backing: Backing,
    address: u64,
    size: usize,
    resource: Option<Py<PyAny>>,
    owner: Option<Py<PyAny>>,
}

// SAFETY: plain moves, and questions to a stream.
unsafe impl Parts<PyBuffer> for Shell {
    #[inline]
    fn value(self) -> PyBuffer {
        PyBuffer::shell(
            self.backing,
            self.address,
            self.size,
            self.resource,
            self.owner,
        )
    }
}

/// What the shell of memory from a pool is made of.
struct PoolShell {
    pool: MemoryPool,
    taken: RawAllocation,
    size: usize,
    stream: Stream,
    /// [`outlived`] by that stream.
    outlives: usize,
    resource: Py<PyAny>,
    tracked: bool,
}

// SAFETY: as above.
unsafe impl Parts<PyBuffer> for PoolShell {
    #[inline(always)]
    fn value(self) -> PyBuffer {
        let address = self.taken.address();
        let outlives = self.outlives;
        let memory = self
            .pool
            .into_buffer_from(self.taken, self.size, self.stream);
        let backing = Backing::Pool(memory);
        PyBuffer::of_parts(
            backing,
            address,
            self.size,
            Some(self.resource),
            None,
            outlives,
            self.tracked,
        )
    }
}

/// The handle of the stream that memory is freed on, where it means one stream; else 0.
#[inline(always)]
fn outlived(stream: &Stream) -> usize {
    if means_one(stream) {
        stream.handle().addr()
    } else {
        0
    }
}

impl PyBuffer {
    /// The shell of memory from `backing`.
    ///
    /// # Errors
    ///
    /// Memory.
    pub fn make(
        py: Python<'_>,
        backing: Backing,
        address: u64,
        size: usize,
        resource: Option<Py<PyAny>>,
        owner: Option<Py<PyAny>>,
    ) -> PyResult<Py<PyBuffer>> {
        let shell = Shell {
            backing,
            address,
            size,
            resource,
            owner,
        };
        OBJECTS.make(py, shell)
    }

    /// The shell of memory that was just taken from `pool`, in the order of `stream`; `resource` is the object of the pool,
    /// and `tracked` false where that refers to nothing that could refer to the buffer.
    ///
    /// # Errors
    ///
    /// Memory; that from the pool is freed then.
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
        let shell = PoolShell {
            pool,
            taken,
            size,
            outlives: outlived(&stream),
            stream,
            resource,
            tracked,
        };
        OBJECTS.make(py, shell)
    }

    /// What such an object holds, for classes that derive from this one.
    pub fn shell(
        backing: Backing,
        address: u64,
        size: usize,
        resource: Option<Py<PyAny>>,
        owner: Option<Py<PyAny>>,
    ) -> PyBuffer {
        let outlives = backing
            .users()
            .map_or(0, |users| outlived(users.deallocation_stream()));
        Self::of_parts(backing, address, size, resource, owner, outlives, true)
    }

    #[inline(always)]
    fn of_parts(
        backing: Backing,
        address: u64,
        size: usize,
        resource: Option<Py<PyAny>>,
        owner: Option<Py<PyAny>>,
        outlives: usize,
        tracked: bool,
    ) -> PyBuffer {
        PyBuffer {
            address,
            size: AtomicUsize::new(size),
            uses: Uses::new(),
            outlives: AtomicUsize::new(outlives),
            state: Held::new(State {
                backing,
                address,
                size,
                resource,
                owner,
                info: None,
                descriptor: None,
            }),
            place: OnceLock::new(),
            tracked,
        }
    }

    #[inline]
    fn lock<'a>(&'a self, py: Python<'a>) -> Guard<'a, State> {
        self.state.lock(py)
    }

    /// Where it is.
    #[inline]
    pub fn place(&self) -> Place {
        let open = self.uses.is_open();
        Place {
            address: if open { self.address } else { 0 },
            size: if open {
                self.size.load(Ordering::Relaxed)
            } else {
                0
            },
            open,
        }
    }

    /// Keeps the memory, also should another thread close the buffer meanwhile.
    ///
    /// # Errors
    ///
    /// `RuntimeError` where it was closed.
    pub fn pin<'a>(&'a self, py: Python<'a>) -> PyResult<Pinned<'a>> {
        if !self.uses.begin(py) {
            return Err(closed("Buffer"));
        }
        Ok(Pinned {
            py,
            buffer: self,
            address: self.address,
            size: self.size.load(Ordering::Relaxed),
        })
    }

    /// As [`PyBuffer::pin`], for launches: the address, or `None` where it was closed. [`PyBuffer::end_launch`] undoes it.
    #[inline(always)]
    pub fn begin_launch(&self, py: Python<'_>) -> Option<u64> {
        self.uses.begin(py).then_some(self.address)
    }

    /// Undoes [`PyBuffer::begin_launch`] when the kernel is queued in `stream`, or is not going to be.
    #[inline(always)]
    pub fn end_launch(&self, py: Python<'_>, stream: &Stream) {
        // Before the pin goes: whoever closed the buffer meanwhile cannot have ordered the streams.
        if self.outlives.load(Ordering::Relaxed) != stream.handle().addr() {
            self.used_in(py, stream, None);
        }
        self.unpin(py);
    }

    /// Undoes one pin; the last one of a closed buffer frees the memory.
    #[inline(always)]
    pub fn unpin(&self, py: Python<'_>) {
        if self.uses.end(py) {
            self.release_last(py);
        }
    }

    /// Frees the memory of a closed buffer that nobody holds any more.
    #[cold]
    fn release_last(&self, py: Python<'_>) {
        // Freed when the lock is free again: that may let other threads run, and call anything.
        let state = std::mem::take(&mut *self.lock(py));
        // Destructors of capsules come from Python without PyO3, which would put off giving references back if it were not
        // told that the thread is attached. When the interpreter ends it cannot be told any more, and nothing needs to be.
        let mut state = Some(state);
        Python::try_attach(|py| state.take().map(|state| release_quietly(py, state)));
        if let Some(state) = state {
            release_quietly(py, state);
        }
    }

    /// As [`PyBuffer::used_by`], where a default stream is that of a device, or else of the current context.
    #[cold]
    #[inline(never)]
    pub fn used_in(&self, py: Python<'_>, stream: &Stream, device: Option<Device>) {
        if !stream.is_default() || !has_peers() {
            return self.used_by(py, stream);
        }
        let of = device.or_else(|| Context::current().ok()?.map(|context| context.device()));
        match of {
            Some(device) if self.home(py) != Some(device) => {
                self.used_by(py, &stream.on_device(device));
            }
            _ => self.used_by(py, stream),
        }
    }

    /// The device whose default streams are meant where nothing else is said: see [`StreamUsage::add`].
    fn home(&self, py: Python<'_>) -> Option<Device> {
        match &self.lock(py).backing {
            Backing::Pool(memory) => return Some(memory.default_stream_device()),
            Backing::View(whole) => return whole.get().home(py),
            _ => {}
        }
        self.device(py)
    }

    /// Says that work of `stream` uses the memory, which somebody holds: it is freed after that. A default stream is that of
    /// the memory's device, unless it says of which it is.
    #[cold]
    #[inline(never)]
    pub fn used_by(&self, py: Python<'_>, stream: &Stream) {
        let many = {
            let state = self.lock(py);
            if let Backing::View(whole) = &state.backing {
                return whole.get().used_by(py, stream);
            }
            let many = state.backing.users().is_some_and(|users| users.add(stream));
            if means_one(stream) {
                let handle = stream.handle().addr();
                self.outlives.store(handle, Ordering::Relaxed);
            }
            many
        };
        if many {
            self.forget_idle_streams(py);
        }
    }

    /// Lets go of streams that nobody else has and whose work is done: a buffer may live long.
    #[cold]
    fn forget_idle_streams(&self, py: Python<'_>) {
        let clones = {
            let state = self.lock(py);
            state.backing.users().map(StreamUsage::unshared_streams)
        };
        let Some(clones) = clones else { return };
        // The driver is asked without any lock.
        let idle = py.detach(|| StreamUsage::retain_idle(clones));
        let gone = {
            let state = self.lock(py);
            let gone = state.backing.users().map(|users| users.remove_idle(&idle));
            // Its handle may be given to another stream.
            self.outlives.store(0, Ordering::Relaxed);
            gone
        };
        // Destroys them.
        py.detach(|| drop((idle, gone)));
    }

    /// The device whose default streams are meant for memory from a pool, and the streams that are known to use it.
    pub fn streams(&self, py: Python<'_>) -> Option<(Device, Vec<Stream>)> {
        match &self.lock(py).backing {
            Backing::Pool(memory) => Some((memory.default_stream_device(), memory.streams())),
            Backing::View(whole) => whole.get().streams(py),
            _ => None,
        }
    }

    /// The address of a stream that is behind all work that is known to use the memory; `None` for memory of no stream.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn one_stream(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        let Some((device, streams)) = self.streams(py) else {
            return Ok(None);
        };
        // The last reference to one of them may go here, which destroys it: detached.
        py.detach(move || {
            // One whose handle says enough to who knows the memory's device.
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
            // 0 is not allowed where this goes, for it could be either default stream.
            Ok(Some(first.handle().addr().max(1)))
        })
        .or_raise(py)
    }

    /// Where the memory is for DLPack.
    ///
    /// # Errors
    ///
    /// `RuntimeError` where it was closed, else those of `find`, which is asked the first time.
    pub fn dl_device(&self, find: impl FnOnce() -> PyResult<DlDevice>) -> PyResult<DlDevice> {
        if !self.place().open {
            return Err(closed("Buffer"));
        }
        if let Some(known) = self.place.get() {
            return Ok(*known);
        }
        let found = find()?;
        Ok(*self.place.get_or_init(|| found))
    }

    /// The number of the memory's device, -1 for none.
    ///
    /// # Errors
    ///
    /// As the property.
    pub fn device_number(&self, py: Python<'_>) -> PyResult<i64> {
        self.device_id(py)
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

    /// The device whose memory it is, for default streams; `None` where the current one has to do.
    pub fn device(&self, py: Python<'_>) -> Option<Device> {
        let known = match &self.lock(py).backing {
            Backing::Pool(memory) => memory.device(),
            Backing::View(whole) => whole.get().device(py),
            _ => None,
        };
        if known.is_some() {
            return known;
        }
        Device::new(self.info(py).ok()?.device?).ok()
    }

    /// The memory resource, where the buffer is open and has one.
    pub fn resource(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.pin(py).ok()?.resource()
    }

    /// The memory resource of memory that the caller has pinned, also should the buffer have been closed since.
    fn resource_of_pinned(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let state = self.lock(py);
        state.resource.as_ref().map(|r| r.clone_ref(py))
    }

    /// A fact that the memory resource states, or that follows from what the driver knows of the address.
    fn fact<'py, T>(
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

    /// `(on a device, on the host, managed)`: who can use the memory.
    ///
    /// # Errors
    ///
    /// `RuntimeError` where it was closed; what the memory resource raises.
    pub fn accessible(&self, py: Python<'_>) -> PyResult<(bool, bool, bool)> {
        Ok((
            self.is_device_accessible(py)?,
            self.is_host_accessible(py)?,
            self.is_managed(py)?,
        ))
    }

    /// Frees the memory, once; with errors as the driver has them.
    fn close_on(&self, py: Python<'_>, stream: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        if !self.place().open {
            return Ok(());
        }
        let accepted = match stream {
            Some(given) => Some((given, stream::lend(given, "Buffer.close", "stream", false)?)),
            None => None,
        };
        // Dropped when the lock is free again: dropping an object may call anything.
        let mut former = None;
        let state = {
            let mut state = self.lock(py);
            // Closed by nobody else from here on: that takes the lock.
            if !self.uses.is_open() {
                return Ok(());
            }
            // By reference: what was lent may end something, which is done when the lock is free again.
            if let Some((given, accepted)) = &accepted
                && !state.is_freed_on(accepted)
            {
                match set_stream(&mut state, given, accepted) {
                    Ok(before) => former = before,
                    Err(error) => {
                        drop(state);
                        return Err(crate::core::errors::to_python(py, &error));
                    }
                }
            }
            if !self.uses.close(py) {
                // A call of another thread is using the memory, or an export: the last of them frees it.
                return Ok(());
            }
            std::mem::take(&mut *state)
        };
        drop(former);
        release(py, state)
    }
}

/// Adds the class.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    core.add_class::<PyBuffer>()?;
    crate::cpython::method::add::<release::Close, 1>(core.py())?;
    crate::core::dlpack::method::add::<PyBuffer>(core.py())
}
