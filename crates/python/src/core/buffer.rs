//! `Buffer`: memory with an owner.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use cupyrite::dlpack::DlDevice;
use cupyrite::{
    Birth, Device, DeviceBuffer, MemoryKind, PointerInfo, Stream, enter_for, fill_async,
    pointer_info,
};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};
use pyo3::{PyTraverseError, PyVisit, intern};

use super::errors::OrRaise;
use super::ipc::{self, PyBufferDescriptor};
use super::memory_resource;
use super::numbers::pattern;
use super::operand::{self, Operand};
use super::slot::closed;
use super::stream::PyStream;
use super::uses::Uses;
use super::{buffer_shown, dlpack, stream};

mod parts;

/// Memory that a memory resource allocated, or that somebody else owns.
///
/// Buffers come from :meth:`Device.allocate`, from a memory resource's ``allocate`` and from :meth:`from_handle`. The
/// memory is freed once: when the buffer is closed or forgotten, in the order of the stream that it was allocated on, or of
/// the one given to :meth:`close` or :meth:`set_deallocation_stream`. It owns what it needs for that, so its stream and its
/// memory resource may be closed first. Copies and fills on other streams are waited for by that stream.
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
    state: Mutex<State>,
    /// Where the memory is for DLPack, once somebody asked; it does not move.
    place: OnceLock<DlDevice>,
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

/// Where the memory comes from.
#[derive(Default)]
pub enum Backing {
    /// Not ours to free.
    #[default]
    Foreign,
    /// A pool or another resource of the crate's.
    Pool(DeviceBuffer),
    /// Another buffer, of which this one is a part; pinned there for as long as this one has it.
    View(Py<PyBuffer>),
    /// `cuMemAlloc`.
    Plain(cupyrite::Buffer<u8>),
    /// The resource's method `deallocate`, with this stream; the default stream where there is none.
    Resource(Option<GivenStream>, Birth),
}

/// A stream as Python gave it, and the stream itself: that stays when the object is closed.
pub type GivenStream = (Py<PyAny>, Stream);

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
        Py::new(py, Self::shell(backing, address, size, resource, owner))
    }

    /// What such an object holds, for classes that derive from this one.
    pub fn shell(
        backing: Backing,
        address: u64,
        size: usize,
        resource: Option<Py<PyAny>>,
        owner: Option<Py<PyAny>>,
    ) -> PyBuffer {
        PyBuffer {
            address,
            size: AtomicUsize::new(size),
            uses: Uses::new(),
            state: Mutex::new(State {
                backing,
                address,
                size,
                resource,
                owner,
                info: None,
                descriptor: None,
            }),
            place: OnceLock::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Held for a few instructions that neither panic nor call Python.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
        if !self.uses.end_open(py) {
            self.end_launch_of_closed(py, stream);
        }
    }

    /// Whoever closed the buffer before the kernel was queued cannot have ordered the streams: it is done for them.
    #[cold]
    #[inline(never)]
    fn end_launch_of_closed(&self, py: Python<'_>, stream: &Stream) {
        self.used_by(stream);
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
        let state = std::mem::take(&mut *self.lock());
        release_quietly(py, state);
    }

    /// Says that work of `stream` uses the memory: it is freed after that.
    pub fn used_by(&self, stream: &Stream) {
        match &self.lock().backing {
            Backing::Pool(memory) => memory.used_by(stream),
            Backing::View(whole) => whole.get().used_by(stream),
            Backing::Foreign | Backing::Plain(_) | Backing::Resource(..) => {}
        }
    }

    /// The device whose default streams are meant for memory from a pool, and the streams that are known to use it.
    pub fn streams(&self) -> Option<(Device, Vec<Stream>)> {
        match &self.lock().backing {
            Backing::Pool(memory) => Some((memory.home(), memory.streams())),
            Backing::View(whole) => whole.get().streams(),
            _ => None,
        }
    }

    /// The address of a stream that is behind all work that is known to use the memory; `None` for memory of no stream.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn one_stream(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        let Some((device, streams)) = self.streams() else {
            return Ok(None);
        };
        // The last reference to one of them may go here, which destroys it: detached.
        py.detach(move || {
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

    fn info(&self) -> cupyrite::Result<PointerInfo> {
        let known = self.lock().info;
        if let Some(info) = known {
            return Ok(info);
        }
        let info = pointer_info(self.address)?;
        self.lock().info = Some(info);
        Ok(info)
    }

    /// The device whose memory it is, for default streams; `None` where the current one has to do.
    pub fn device(&self) -> Option<Device> {
        let known = match &self.lock().backing {
            Backing::Pool(memory) => memory.device(),
            Backing::View(whole) => whole.get().device(),
            _ => None,
        };
        if known.is_some() {
            return known;
        }
        Device::new(self.info().ok()?.device?).ok()
    }

    /// The memory resource, where the buffer is open and has one.
    pub fn resource(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.pin(py).ok()?.resource()
    }

    /// The memory resource of memory that the caller has pinned, also should the buffer have been closed since.
    fn resource_of_pinned(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let state = self.lock();
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
            None => self.info().map(of_info).or_raise(py),
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
            Some(given) => Some((
                given,
                stream::accept(given, "Buffer.close", "stream", false)?,
            )),
            None => None,
        };
        // Dropped when the lock is free again: dropping an object may call anything.
        let mut former = None;
        let state = {
            let mut state = self.lock();
            // Closed by nobody else from here on: that takes the lock.
            if !self.uses.is_open() {
                return Ok(());
            }
            if let Some((given, accepted)) = accepted {
                match set_stream(&mut state, given, &accepted) {
                    Ok(before) => former = before,
                    Err(error) => {
                        drop(state);
                        return Err(super::errors::to_python(py, &error));
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

/// Sets where the memory will be freed; gives the stream object that it had before.
fn set_stream(
    state: &mut State,
    given: &Bound<'_, PyAny>,
    accepted: &Stream,
) -> cupyrite::Result<Option<Py<PyAny>>> {
    match &mut state.backing {
        Backing::Pool(memory) => memory.set_deallocation_stream(accepted)?,
        Backing::Resource(stream, _) => {
            let former = stream.replace((given.clone().unbind(), accepted.clone()));
            return Ok(former.map(|(object, _)| object));
        }
        // The whole is freed after what that stream holds then.
        Backing::View(whole) => whole.get().used_by(accepted),
        Backing::Foreign | Backing::Plain(_) => {}
    }
    Ok(None)
}

/// Gives the memory back to where it came from.
fn release(py: Python<'_>, state: State) -> PyResult<()> {
    let State {
        backing,
        address,
        size,
        resource,
        owner,
        ..
    } = state;
    let result = match backing {
        Backing::Foreign => Ok(()),
        Backing::Pool(memory) => py.detach(|| memory.close(None)).or_raise(py),
        Backing::Plain(memory) => {
            // It waits for the device.
            py.detach(|| drop(memory));
            Ok(())
        }
        Backing::View(whole) => {
            whole.get().unpin(py);
            Ok(())
        }
        Backing::Resource(stream, birth) => match &resource {
            // In a forked child the memory is the parent's.
            Some(resource) if birth.is_here() => {
                deallocate(py, resource.bind(py), address, size, stream)
            }
            _ => Ok(()),
        },
    };
    drop((resource, owner));
    result
}

fn deallocate(
    py: Python<'_>,
    resource: &Bound<'_, PyAny>,
    address: u64,
    size: usize,
    stream: Option<GivenStream>,
) -> PyResult<()> {
    let stream = match stream {
        // Where the object was closed meanwhile, another one has the stream that it had.
        Some((object, stream)) => match stream::accept(object.bind(py), "", "", false) {
            Ok(_) => object,
            Err(_) => PyStream::wrap(py, stream)?.into_any(),
        },
        None => stream::default_object(py)?.into_any(),
    };
    let keywords = PyDict::new(py);
    keywords.set_item(intern!(py, "stream"), stream)?;
    let done = resource.call_method(intern!(py, "deallocate"), (address, size), Some(&keywords));
    if let Err(error) = done {
        // The buffer is gone all the same, and whoever lets go of it has nothing to do with the resource's error.
        error.write_unraisable(py, Some(resource));
    }
    Ok(())
}

/// As [`release`], for places that cannot raise; an exception that is on its way stays.
fn release_quietly(py: Python<'_>, state: State) {
    if matches!(state.backing, Backing::Foreign)
        && state.owner.is_none()
        && state.resource.is_none()
    {
        return;
    }
    // SAFETY: attached; the three references are given back below.
    let raised = unsafe {
        let (mut kind, mut value, mut trace) = (
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        );
        ffi::PyErr_Fetch(&raw mut kind, &raw mut value, &raw mut trace);
        (kind, value, trace)
    };
    if let Err(error) = release(py, state) {
        error.write_unraisable(py, None);
    }
    // SAFETY: what was fetched above, once.
    unsafe { ffi::PyErr_Restore(raised.0, raised.1, raised.2) };
}

impl Drop for PyBuffer {
    fn drop(&mut self) {
        let state = std::mem::take(self.state.get_mut().unwrap_or_else(PoisonError::into_inner));
        // SAFETY: contents of Python objects are dropped by their deallocation, which runs attached; as does what fails
        // to become one.
        let py = unsafe { Python::assume_attached() };
        release_quietly(py, state);
    }
}

/// A buffer of another process's memory.
fn import(
    py: Python<'_>,
    mr: &Bound<'_, PyAny>,
    descriptor: &Bound<'_, PyAny>,
    stream: &Stream,
) -> PyResult<Py<PyBuffer>> {
    let Ok(descriptor) = descriptor.cast::<PyBufferDescriptor>() else {
        return Err(PyTypeError::new_err(format!(
            "Buffer.from_ipc_descriptor() argument 'ipc_descriptor' is of type {}; expected an IPCBufferDescriptor",
            descriptor.get_type().name()?
        )));
    };
    let pool = memory_resource::shared_pool_of(mr)?;
    let described = descriptor.get().described()?;
    let memory = py
        .detach(|| pool.import_buffer(&described, stream))
        .or_raise(py)?;
    let (address, size) = (memory.address(), memory.size());
    let resource = Some(mr.clone().unbind());
    let made = PyBuffer::make(py, Backing::Pool(memory), address, size, resource, None)?;
    made.get().lock().descriptor = Some(descriptor.clone().unbind());
    Ok(made)
}

fn not_shared() -> PyErr {
    PyRuntimeError::new_err(
        "the memory of this buffer cannot be shared with other processes: its memory resource is not IPC-enabled",
    )
}

#[pymethods]
impl PyBuffer {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<PyBuffer> {
        Err(PyRuntimeError::new_err(
            "a Buffer is not made by its class: allocate one with Device.allocate() or a memory resource's allocate(), or \
             take existing memory with Buffer.from_handle()",
        ))
    }

    /// A buffer of memory that exists.
    ///
    /// Parameters
    /// ----------
    /// ptr : int or cuda.bindings.driver.CUdeviceptr
    ///     The address, on a device or on the host.
    /// size : int
    ///     Bytes.
    /// mr : MemoryResource, optional
    ///     Who frees the memory: ``mr.deallocate(ptr, size, stream=...)`` is called once, when the buffer is closed or
    ///     forgotten.
    /// owner : object, optional
    ///     Who owns the memory; it is kept until the buffer is closed. Not together with `mr`. With neither, the memory has
    ///     to outlive the buffer.
    /// stream : Stream, optional
    ///     The stream that `mr` is given; the default stream by default.
    ///
    /// Returns
    /// -------
    /// Buffer
    #[staticmethod]
    #[pyo3(signature = (ptr, size, mr=None, owner=None, *, stream=None))]
    fn from_handle(
        py: Python<'_>,
        ptr: &Bound<'_, PyAny>,
        size: &Bound<'_, PyAny>,
        mr: Option<&Bound<'_, PyAny>>,
        owner: Option<Py<PyAny>>,
        stream: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyBuffer>> {
        Py::new(py, Self::of_handle(ptr, size, mr, owner, stream)?)
    }

    /// A part of the buffer: a buffer that shares its memory.
    ///
    /// The memory stays until the parts are closed or forgotten too, whenever this buffer is closed.
    ///
    /// Parameters
    /// ----------
    /// key : slice
    ///     Which bytes, as of a ``bytes`` object; the step is 1.
    ///
    /// Returns
    /// -------
    /// Buffer
    ///     Of managed memory a :class:`ManagedBuffer`, where this is one. Its ``owner`` is this buffer.
    fn __getitem__<'py>(
        slf: &Bound<'py, Self>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::part(slf, key)
    }

    /// A buffer of another process's memory. It has to be closed before that process frees the memory.
    ///
    /// Parameters
    /// ----------
    /// mr : DeviceMemoryResource or PinnedMemoryResource
    ///     The memory resource over the other process's pool, made by its ``from_allocation_handle``.
    /// ipc_descriptor : IPCBufferDescriptor
    ///     The buffer's :attr:`ipc_descriptor` there.
    /// stream : Stream
    ///     In whose order the buffer is closed.
    ///
    /// Returns
    /// -------
    /// Buffer
    ///     Imported again while it is open it is another object of the same address.
    ///
    /// Raises
    /// ------
    /// CUDAError
    ///     The descriptor is of another pool, or the resource is this process's own (``CUDA_ERROR_INVALID_VALUE``).
    /// ValueError
    ///     The descriptor is damaged.
    #[classmethod]
    #[pyo3(signature = (mr, ipc_descriptor, *, stream))]
    fn from_ipc_descriptor(
        _class: &Bound<'_, PyType>,
        py: Python<'_>,
        mr: &Bound<'_, PyAny>,
        ipc_descriptor: &Bound<'_, PyAny>,
        stream: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyBuffer>> {
        let accepted = stream::accept(stream, "Buffer.from_ipc_descriptor", "stream", false)?;
        import(py, mr, ipc_descriptor, &accepted)
    }

    /// What unpickling calls.
    #[staticmethod]
    fn _reduce_helper(
        py: Python<'_>,
        mr: &Bound<'_, PyAny>,
        ipc_descriptor: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyBuffer>> {
        import(py, mr, ipc_descriptor, &Stream::default_stream())
    }

    /// What another process needs to use the memory, by :meth:`from_ipc_descriptor`: an ``IPCBufferDescriptor``, which can be
    /// pickled.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     The memory resource is not IPC-enabled.
    #[getter]
    fn ipc_descriptor(&self, py: Python<'_>) -> PyResult<Py<PyBufferDescriptor>> {
        let _pinned = self.pin(py)?;
        let described = {
            let state = self.lock();
            if let Some(known) = &state.descriptor {
                return Ok(known.clone_ref(py));
            }
            match &state.backing {
                Backing::Pool(memory) if ipc::is_shared(py, state.resource.as_ref()) => {
                    memory.descriptor()
                }
                _ => return Err(not_shared()),
            }
        };
        let made = Py::new(py, PyBufferDescriptor::new_of(described.or_raise(py)?))?;
        let mut state = self.lock();
        // Another thread may have been first: then that one stays.
        let kept = state.descriptor.get_or_insert_with(|| made.clone_ref(py));
        Ok(kept.clone_ref(py))
    }

    /// The address; 0 once the buffer was closed.
    #[getter]
    fn handle(&self) -> u64 {
        self.place().address
    }

    /// Bytes; 0 once the buffer was closed.
    #[getter]
    fn size(&self) -> usize {
        self.place().size
    }

    /// Whether :meth:`close` was called.
    #[getter]
    fn is_closed(&self) -> bool {
        !self.place().open
    }

    /// The number of the device that the memory belongs to; -1 for memory that CUDA does not know.
    #[getter]
    fn device_id(&self, py: Python<'_>) -> PyResult<i64> {
        let native = match &self.lock().backing {
            Backing::Pool(memory) => Some(memory.device()),
            _ => None,
        };
        if let Some(device) = native {
            // Page-locked memory has no device, and its resource may refuse to name one.
            self.pin(py)?;
            return Ok(device.map_or(-1, |device| device.ordinal() as i64));
        }
        self.fact(py, intern!(py, "device_id"), |info| {
            info.device.map_or(-1, |ordinal| ordinal as i64)
        })
    }

    /// Whether kernels can use the memory.
    #[getter]
    fn is_device_accessible(&self, py: Python<'_>) -> PyResult<bool> {
        let name = intern!(py, "is_device_accessible");
        self.truth(py, name, |info| info.kind != MemoryKind::Unknown)
    }

    /// Whether the host can use the memory.
    #[getter]
    fn is_host_accessible(&self, py: Python<'_>) -> PyResult<bool> {
        let name = intern!(py, "is_host_accessible");
        self.truth(py, name, |info| info.kind != MemoryKind::Device)
    }

    /// Whether the memory is managed: it moves to whoever uses it.
    #[getter]
    fn is_managed(&self, py: Python<'_>) -> PyResult<bool> {
        let name = intern!(py, "is_managed");
        self.truth(py, name, |info| info.kind == MemoryKind::Managed)
    }

    /// Whether the memory is another process's.
    #[getter]
    fn is_mapped(&self) -> bool {
        self.imported()
    }

    /// The memory resource that the memory is of; None where there is none, and once the buffer was closed.
    #[getter]
    fn memory_resource(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.resource(py)
    }

    /// The object that was given as the memory's owner; None where there is none, and once the buffer was closed.
    #[getter]
    fn owner(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let state = self.lock();
        if !self.place().open {
            return None;
        }
        state.owner.as_ref().map(|o| o.clone_ref(py))
    }

    /// Frees the memory in the order of a stream: after what the stream holds now. Later calls do nothing.
    ///
    /// While arrays made from the buffer by DLPack are alive the memory stays. What other threads queue just now, a launch
    /// or a copy with the buffer, comes first.
    ///
    /// Parameters
    /// ----------
    /// stream : Stream, optional
    ///     By default the stream that the memory was allocated on, or that :meth:`set_deallocation_stream` was given.
    #[pyo3(signature = (stream=None))]
    fn close(&self, py: Python<'_>, stream: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        self.close_on(py, stream)
    }

    /// Has the memory freed in the order of another stream than the one it was allocated on.
    ///
    /// Parameters
    /// ----------
    /// stream : Stream
    ///     Where; it first waits for what the stream set before holds now.
    fn set_deallocation_stream(&self, py: Python<'_>, stream: &Bound<'_, PyAny>) -> PyResult<()> {
        let accepted = stream::accept(stream, "Buffer.set_deallocation_stream", "stream", false)?;
        let mut state = self.lock();
        if !self.place().open {
            return Err(closed("Buffer"));
        }
        let done = set_stream(&mut state, stream, &accepted);
        drop(state);
        done.map(drop).or_raise(py)
    }

    fn __enter__(slf: Py<PyBuffer>) -> Py<PyBuffer> {
        slf
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&self, py: Python<'_>, _args: &Bound<'_, PyTuple>) -> PyResult<bool> {
        self.close_on(py, None)?;
        Ok(false)
    }

    /// Copies the whole buffer, in the order of a stream.
    ///
    /// Parameters
    /// ----------
    /// dst : Buffer or array, optional
    ///     Where to: another buffer, or any object with the buffer protocol, ``__cuda_array_interface__`` or
    ///     ``__array_interface__`` that is contiguous in C order, can be written and has just as many bytes. By default a
    ///     new buffer from the same memory resource.
    /// stream : Stream
    ///     In whose order.
    /// options : CopyOptions, optional
    ///     How.
    ///
    /// Returns
    /// -------
    /// Buffer or array
    ///     The destination.
    ///
    /// Notes
    /// -----
    /// The contents are there when the stream has come to the copy: wait for it, by ``stream.sync()`` say, before reading an
    /// array of the host. An array of the host is kept alive, and unresizable, until then.
    #[pyo3(signature = (dst=None, *, stream, options=None))]
    fn copy_to<'py>(
        slf: &Bound<'py, Self>,
        dst: Option<&Bound<'py, PyAny>>,
        stream: &Bound<'py, PyAny>,
        options: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let accepted = stream::accept(stream, "Buffer.copy_to", "stream", false)?;
        let options = operand::copy_options("Buffer.copy_to", options)?;
        let source = Operand::of_buffer(slf)?;
        let dst = match dst {
            Some(given) => given.clone(),
            None => {
                let Some(resource) = slf.get().resource_of_pinned(py) else {
                    return Err(PyValueError::new_err(
                        "Buffer.copy_to() needs 'dst': this buffer has no memory resource to allocate one from",
                    ));
                };
                let device = match slf.get().device() {
                    Some(device) => device,
                    None => super::device::current(py)?,
                };
                memory_resource::allocate(resource.bind(py), source.size(), stream, device)?
            }
        };
        let destination = Operand::accept(&dst, "Buffer.copy_to", "dst", true)?;
        operand::copy(
            py,
            "Buffer.copy_to",
            destination,
            source,
            &accepted,
            &options,
        )?;
        Ok(dst)
    }

    /// Copies something into the buffer, in the order of a stream.
    ///
    /// Parameters
    /// ----------
    /// src : Buffer or array
    ///     Where from: another buffer, or any object with the buffer protocol, ``__cuda_array_interface__`` or
    ///     ``__array_interface__`` that is contiguous in C order and has just as many bytes.
    /// stream : Stream
    ///     In whose order.
    /// options : CopyOptions, optional
    ///     How.
    ///
    /// Notes
    /// -----
    /// An array of the host must not be changed before the stream has come to the copy, unless the options say
    /// ``src_access_order="during_api_call"``. It is kept alive, and unresizable, until then.
    #[pyo3(signature = (src, *, stream, options=None))]
    fn copy_from<'py>(
        slf: &Bound<'py, Self>,
        src: &Bound<'py, PyAny>,
        stream: &Bound<'py, PyAny>,
        options: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let accepted = stream::accept(stream, "Buffer.copy_from", "stream", false)?;
        let options = operand::copy_options("Buffer.copy_from", options)?;
        let destination = Operand::of_buffer(slf)?;
        let source = Operand::accept(src, "Buffer.copy_from", "src", false)?;
        operand::copy(
            slf.py(),
            "Buffer.copy_from",
            destination,
            source,
            &accepted,
            &options,
        )
    }

    /// Fills the buffer with a pattern, in the order of a stream.
    ///
    /// Parameters
    /// ----------
    /// value : int or object with the buffer protocol
    ///     An int from 0 to 255 fills every byte. An object of 1, 2 or 4 bytes, such as ``b"\xff"`` or ``np.float32(1)``, is
    ///     repeated; the buffer's size must be a multiple of its size.
    /// stream : Stream
    ///     In whose order.
    #[pyo3(signature = (value, *, stream))]
    fn fill(
        &self,
        py: Python<'_>,
        value: &Bound<'_, PyAny>,
        stream: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let accepted = stream::accept(stream, "Buffer.fill", "stream", false)?;
        let pinned = self.pin(py)?;
        let pattern = pattern(value)?;
        let width = pattern.width();
        if !pinned.size.is_multiple_of(width) {
            return Err(PyValueError::new_err(format!(
                "Buffer.fill() argument 'value' has {width} bytes, of which the size of the buffer, {}, is no multiple",
                pinned.size
            )));
        }
        if !pinned.address.is_multiple_of(width as u64) {
            return Err(PyValueError::new_err(format!(
                "Buffer.fill() argument 'value' has {width} bytes, to which the buffer's address {:#x} is not aligned",
                pinned.address
            )));
        }
        self.used_by(&accepted);
        let device = if accepted.is_default() {
            self.device()
        } else {
            None
        };
        py.detach(|| {
            let _entered = device
                .map(|device| enter_for(&accepted, device))
                .transpose()?;
            // SAFETY: the memory is there while it is pinned, and freed after this work: `used_by`. That an address which
            // somebody else gave is good for `size` bytes is what `from_handle` asks of its caller.
            unsafe { fill_async(pinned.address, pinned.size, pattern, &accepted) }
        })
        .or_raise(py)
    }

    /// Exports the memory by DLPack, as one dimension of 8-bit integers.
    ///
    /// Parameters
    /// ----------
    /// stream : int, optional
    ///     The consumer's stream, which waits for the streams that are known to use the memory; -1 for no waiting.
    /// max_version : tuple of int, optional
    ///     The newest version that the consumer understands; from (1, 0) on it gets a versioned capsule.
    /// dl_device : tuple of int, optional
    ///     The device wanted; only where the memory is.
    /// copy : bool, optional
    ///     True is refused: the memory itself is exported.
    ///
    /// Returns
    /// -------
    /// capsule
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        slf: &Bound<'py, Self>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<&Bound<'py, PyAny>>,
        dl_device: Option<&Bound<'py, PyAny>>,
        copy: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let request = dlpack::Request {
            class: "Buffer",
            stream,
            max_version,
            dl_device,
            copy,
        };
        dlpack::export(slf, &request)
    }

    /// ``(device type, device number)`` of the memory, as DLPack numbers them.
    fn __dlpack_device__(slf: &Bound<'_, Self>) -> PyResult<(i32, i32)> {
        let here = dlpack::device(slf.get(), slf.py())?;
        Ok((here.kind.0, here.number))
    }

    /// Address and size for libraries of device arrays (version 3), as bytes; where a device can use the memory. Its stream is
    /// behind all work that is known to use the memory.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        buffer_shown::cuda_array_interface(self, py)
    }

    /// Address and size for NumPy (version 3), as bytes; where the host can use the memory.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        buffer_shown::array_interface(self, py)
    }

    /// The memory by the buffer protocol, as bytes, where the host can use it.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        out: *mut ffi::Py_buffer,
        flags: std::ffi::c_int,
    ) -> PyResult<()> {
        // SAFETY: as Python has it: a place for the answer, or null from those that err.
        unsafe { buffer_shown::show(&slf, out, flags) }
    }

    unsafe fn __releasebuffer__(&self, py: Python<'_>, _view: *mut ffi::Py_buffer) {
        self.unpin(py);
    }

    // Anything but a buffer does not get here: Python is told that this class does not know it.
    fn __eq__(&self, other: &Bound<'_, PyBuffer>) -> bool {
        let (a, b) = (self.place(), other.get().place());
        (a.address, a.size) == (b.address, b.size)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        let place = self.place();
        (place.address, place.size).into_pyobject(py)?.hash()
    }

    fn __repr__(&self) -> String {
        let place = self.place();
        let mapped = if self.imported() {
            " is_mapped=True"
        } else {
            ""
        };
        format!(
            "<Buffer ptr={:#x} size={}{mapped}>",
            place.address, place.size
        )
    }

    /// Pickling shares the memory with another process, which its memory resource has to allow.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let descriptor = slf.get().ipc_descriptor(py)?;
        let make = py
            .get_type::<PyBuffer>()
            .getattr(intern!(py, "_reduce_helper"))?;
        let arguments = (slf.get().resource(py), descriptor);
        Ok((make, arguments).into_pyobject(py)?.into_any())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // A lock that is held now is held by a thread that the collector has stopped: its object is alive.
        if let Ok(state) = self.state.try_lock() {
            visit.call(&state.owner)?;
            visit.call(&state.resource)?;
            match &state.backing {
                Backing::Resource(Some((stream, _)), _) => visit.call(stream)?,
                Backing::View(whole) => visit.call(whole)?,
                _ => {}
            }
        }
        Ok(())
    }

    // No `__clear__`: the memory is given back by what it refers to, so it lets go of that last, when it is dropped. Cycles
    // through a buffer are broken at another of their objects: owner and resource are objects that can refer back only
    // through something of their own.
}

impl PyBuffer {
    /// Whether the buffer is open and the memory another process's.
    fn imported(&self) -> bool {
        let state = self.lock();
        self.place().open
            && matches!(&state.backing, Backing::Pool(memory) if memory.pool().is_some_and(cupyrite::MemoryPool::is_imported))
    }

    /// As [`PyBuffer::fact`], with the resource's answer taken as Python takes truth.
    fn truth(
        &self,
        py: Python<'_>,
        name: &Bound<'_, PyString>,
        of_info: impl FnOnce(PointerInfo) -> bool,
    ) -> PyResult<bool> {
        let pinned = self.pin(py)?;
        match pinned.resource() {
            Some(resource) => resource.bind(py).getattr(name)?.is_truthy(),
            None => self.info().map(of_info).or_raise(py),
        }
    }
}

/// Adds the class.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    core.add_class::<PyBuffer>()
}
