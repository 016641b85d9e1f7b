//! `Buffer`: memory with an owner.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

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
use super::memory_resource::{self, PyMemoryResource};
use super::numbers::{address_argument, pattern, size_argument};
use super::operand::{self, Operand};
use super::slot::closed;
use super::{dlpack, stream};

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
    module = "cuda.core._memory._buffer",
    name = "Buffer"
)]
pub struct PyBuffer {
    address: AtomicU64,
    size: AtomicUsize,
    open: AtomicBool,
    state: Mutex<State>,
}

/// What is needed to give the memory back; of its own, so that it can leave the object before Python is called.
#[derive(Default)]
struct State {
    backing: Backing,
    address: u64,
    size: usize,
    resource: Option<Py<PyAny>>,
    owner: Option<Py<PyAny>>,
    /// Calls in progress and exports alive, for which the memory stays even when the buffer is closed.
    pins: usize,
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
    /// A pool.
    Pool(DeviceBuffer),
    /// `cuMemAlloc`.
    Plain(cupyrite::Buffer<u8>),
    /// The resource's method `deallocate`, with this stream; the default stream where there is none.
    Resource(Option<Py<PyAny>>, Birth),
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

/// Where a buffer is; `None` for any other object. It allocates nothing and raises nothing.
#[inline]
pub fn address_of(obj: &Bound<'_, PyAny>) -> Option<Place> {
    let buffer = obj.cast::<PyBuffer>().ok()?;
    Some(buffer.get().place())
}

/// The memory of an open buffer, which stays for as long as this lives.
pub struct Pinned<'a> {
    buffer: &'a PyBuffer,
    /// The address.
    pub address: u64,
    /// Bytes.
    pub size: usize,
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        self.buffer.unpin();
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
        Py::new(
            py,
            PyBuffer {
                address: AtomicU64::new(address),
                size: AtomicUsize::new(size),
                open: AtomicBool::new(true),
                state: Mutex::new(State {
                    backing,
                    address,
                    size,
                    resource,
                    owner,
                    pins: 0,
                    info: None,
                    descriptor: None,
                }),
            },
        )
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Held for a few instructions that neither panic nor call Python.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where it is.
    #[inline]
    pub fn place(&self) -> Place {
        Place {
            address: self.address.load(Ordering::Relaxed),
            size: self.size.load(Ordering::Relaxed),
            open: self.open.load(Ordering::Relaxed),
        }
    }

    /// Keeps the memory, also should another thread close the buffer meanwhile.
    ///
    /// # Errors
    ///
    /// `RuntimeError` where it was closed.
    pub fn pin(&self) -> PyResult<Pinned<'_>> {
        let mut state = self.lock();
        if !self.place().open {
            return Err(closed("Buffer"));
        }
        state.pins += 1;
        Ok(Pinned {
            buffer: self,
            address: state.address,
            size: state.size,
        })
    }

    /// Undoes one pin; the last one of a closed buffer frees the memory.
    pub fn unpin(&self) {
        let state = {
            let mut state = self.lock();
            state.pins -= 1;
            if state.pins != 0 || self.place().open {
                return;
            }
            // Freed when the lock is free again: that may let other threads run, and call anything.
            std::mem::take(&mut *state)
        };
        // SAFETY: pins are made and undone by methods of a Python object and by its exports, attached.
        let py = unsafe { Python::assume_attached() };
        release_quietly(py, state);
    }

    /// Says that work of `stream` uses the memory: it is freed after that.
    pub fn used_by(&self, stream: &Stream) {
        if let Backing::Pool(memory) = &self.lock().backing {
            memory.used_by(stream);
        }
    }

    /// The device of memory from a pool, and the streams that are known to use it.
    pub fn streams(&self) -> Option<(Device, Vec<Stream>)> {
        match &self.lock().backing {
            Backing::Pool(memory) => Some((memory.pool().device(), memory.streams())),
            _ => None,
        }
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
        let (known, address) = {
            let state = self.lock();
            (state.info, state.address)
        };
        if let Some(info) = known {
            return Ok(info);
        }
        let info = pointer_info(address)?;
        self.lock().info = Some(info);
        Ok(info)
    }

    /// The device whose memory it is, for default streams; `None` where the current one has to do.
    pub fn device(&self) -> Option<Device> {
        if let Backing::Pool(memory) = &self.lock().backing {
            return Some(memory.pool().device());
        }
        Device::new(self.info().ok()?.device?).ok()
    }

    /// The memory resource, where the buffer is open and has one.
    pub fn resource(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let state = self.lock();
        if !self.place().open {
            return None;
        }
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
        let _pinned = self.pin()?;
        match self.resource(py) {
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
            if !self.open.swap(false, Ordering::Relaxed) {
                return Ok(());
            }
            if let Some((given, accepted)) = accepted {
                match set_stream(&mut state, given, &accepted) {
                    Ok(before) => former = before,
                    Err(error) => {
                        self.open.store(true, Ordering::Relaxed);
                        drop(state);
                        return Err(super::errors::to_python(py, &error));
                    }
                }
            }
            self.address.store(0, Ordering::Relaxed);
            self.size.store(0, Ordering::Relaxed);
            if state.pins != 0 {
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
        Backing::Resource(stream, _) => return Ok(stream.replace(given.clone().unbind())),
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
    stream: Option<Py<PyAny>>,
) -> PyResult<()> {
    let stream = match stream {
        Some(stream) => stream,
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
        let address = address_argument(ptr, "Buffer.from_handle")?;
        let size = size_argument(size, "Buffer.from_handle")?;
        let Some(resource) = mr else {
            if stream.is_some() {
                return Err(PyValueError::new_err(
                    "Buffer.from_handle() argument 'stream' says where 'mr' frees the memory; without 'mr' nobody frees it",
                ));
            }
            return PyBuffer::make(py, Backing::Foreign, address, size, None, owner);
        };
        if resource.cast::<PyMemoryResource>().is_err() {
            return Err(PyTypeError::new_err(format!(
                "Buffer.from_handle() argument 'mr' is of type {}; expected a MemoryResource",
                resource.get_type().name()?
            )));
        }
        if owner.is_some() {
            return Err(PyValueError::new_err(
                "Buffer.from_handle() takes 'mr', which frees the memory, or 'owner', which owns it, not both",
            ));
        }
        if let Some(stream) = stream {
            stream::accept(stream, "Buffer.from_handle", "stream", false)?;
        }
        let backing = Backing::Resource(stream.map(|s| s.clone().unbind()), Birth::now());
        PyBuffer::make(
            py,
            backing,
            address,
            size,
            Some(resource.clone().unbind()),
            None,
        )
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
        let _pinned = self.pin()?;
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
    /// While arrays made from the buffer by DLPack are alive the memory stays.
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
                let Some(resource) = slf.get().resource(py) else {
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
        let pinned = self.pin()?;
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
        dlpack::export(slf, stream, max_version, dl_device, copy)
    }

    /// ``(device type, device number)`` of the memory, as DLPack numbers them.
    fn __dlpack_device__(slf: &Bound<'_, Self>) -> PyResult<(i32, i32)> {
        dlpack::device(slf.get(), slf.py())
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
            if let Backing::Resource(stream, _) = &state.backing {
                visit.call(stream)?;
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
            && matches!(&state.backing, Backing::Pool(memory) if memory.pool().is_imported())
    }

    /// As [`PyBuffer::fact`], with the resource's answer taken as Python takes truth.
    fn truth(
        &self,
        py: Python<'_>,
        name: &Bound<'_, PyString>,
        of_info: impl FnOnce(PointerInfo) -> bool,
    ) -> PyResult<bool> {
        let _pinned = self.pin()?;
        match self.resource(py) {
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
