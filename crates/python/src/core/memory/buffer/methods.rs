//! What Python sees of a `Buffer`.

use cupyrite::{Error, MemoryKind, PointerInfo, Stream, enter_for_default_stream, fill_async};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};
use pyo3::{PyTraverseError, PyVisit, intern};

use crate::core::closable::closed;
use crate::core::errors::OrRaise;
use crate::core::memory::buffer::exports;
use crate::core::memory::buffer::release::set_stream;
use crate::core::memory::buffer::{Backing, PyBuffer};
use crate::core::memory::copy_operand;
use crate::core::memory::copy_operand::Operand;
use crate::core::memory::ipc;
use crate::core::memory::ipc::PyBufferDescriptor;
use crate::core::memory::resource;
use crate::core::numbers::pattern;
use crate::core::{device, dlpack, stream};

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
    let pool = resource::shared_pool_of(mr)?;
    let described = descriptor.get().described()?;
    let memory = match py.detach(|| pool.import_buffer(&described, stream)) {
        Err(Error::InvalidArgument { problem, .. }) => {
            return Err(PyValueError::new_err(format!(
                "Buffer.from_ipc_descriptor() argument 'ipc_descriptor' is damaged: its size {problem}"
            )));
        }
        made => made.or_raise(py)?,
    };
    let (address, size) = (memory.address(), memory.size());
    let resource = Some(mr.clone().unbind());
    let made = PyBuffer::make(py, Backing::Pool(memory), address, size, resource, None)?;
    made.get().lock(py).descriptor = Some(descriptor.clone().unbind());
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
        let accepted = stream::lend(stream, "Buffer.from_ipc_descriptor", "stream", false)?;
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
            let state = self.lock(py);
            if let Some(known) = &state.descriptor {
                return Ok(known.clone_ref(py));
            }
            match &state.backing {
                Backing::Pool(memory) if ipc::is_shared(py, state.resource.as_ref()) => {
                    memory.descriptor()
                }
                Backing::View(_) => {
                    return Err(PyRuntimeError::new_err(
                        "a part of a Buffer is not shared with other processes: share the whole one, its owner, and take \
                         the part there",
                    ));
                }
                _ => return Err(not_shared()),
            }
        };
        let made = Py::new(py, PyBufferDescriptor::new_of(described.or_raise(py)?))?;
        let mut state = self.lock(py);
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
    pub(super) fn device_id(&self, py: Python<'_>) -> PyResult<i64> {
        let native = match &self.lock(py).backing {
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
    pub(super) fn is_device_accessible(&self, py: Python<'_>) -> PyResult<bool> {
        let name = intern!(py, "is_device_accessible");
        self.truth(py, name, |info| info.kind != MemoryKind::Unknown)
    }

    /// Whether the host can use the memory.
    #[getter]
    pub(super) fn is_host_accessible(&self, py: Python<'_>) -> PyResult<bool> {
        let name = intern!(py, "is_host_accessible");
        self.truth(py, name, |info| info.kind != MemoryKind::Device)
    }

    /// Whether the memory is managed: it moves to whoever uses it.
    #[getter]
    pub(super) fn is_managed(&self, py: Python<'_>) -> PyResult<bool> {
        let name = intern!(py, "is_managed");
        self.truth(py, name, |info| info.kind == MemoryKind::Managed)
    }

    /// Whether the memory is another process's.
    #[getter]
    fn is_mapped(&self, py: Python<'_>) -> bool {
        self.imported(py)
    }

    /// The memory resource that the memory is of; None where there is none, and once the buffer was closed.
    #[getter]
    fn memory_resource(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.resource(py)
    }

    /// The object that was given as the memory's owner; None where there is none, and once the buffer was closed.
    #[getter]
    fn owner(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let state = self.lock(py);
        if !self.place().open {
            return None;
        }
        state.owner.as_ref().map(|o| o.clone_ref(py))
    }

    /// Has the memory freed in the order of another stream than the one it was allocated on.
    ///
    /// Parameters
    /// ----------
    /// stream : Stream
    ///     Where; it first waits for what the stream set before holds now.
    fn set_deallocation_stream(&self, py: Python<'_>, stream: &Bound<'_, PyAny>) -> PyResult<()> {
        let accepted = stream::lend(stream, "Buffer.set_deallocation_stream", "stream", false)?;
        let mut state = self.lock(py);
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
        let accepted = stream::lend(stream, "Buffer.copy_to", "stream", false)?;
        let options = copy_operand::copy_options("Buffer.copy_to", options)?;
        let source = Operand::of_buffer(slf)?;
        let dst = match dst {
            Some(given) => given.clone(),
            None => {
                let Some(resource) = slf.get().resource_of_pinned(py) else {
                    return Err(PyValueError::new_err(
                        "Buffer.copy_to() needs 'dst': this buffer has no memory resource to allocate one from",
                    ));
                };
                let device = match slf.get().device(py) {
                    Some(device) => device,
                    None => device::current(py)?,
                };
                resource::allocate(resource.bind(py), source.size(), stream, device)?
            }
        };
        let destination = Operand::accept(&dst, "Buffer.copy_to", "dst", true)?;
        copy_operand::copy(
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
        let accepted = stream::lend(stream, "Buffer.copy_from", "stream", false)?;
        let options = copy_operand::copy_options("Buffer.copy_from", options)?;
        let destination = Operand::of_buffer(slf)?;
        let source = Operand::accept(src, "Buffer.copy_from", "src", false)?;
        copy_operand::copy(
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
        let accepted = stream::lend(stream, "Buffer.fill", "stream", false)?;
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
        self.used_by(py, &accepted);
        let device = if accepted.is_default() {
            self.device(py)
        } else {
            None
        };
        py.detach(|| {
            let _entered = device
                .map(|device| enter_for_default_stream(&accepted, device))
                .transpose()?;
            // SAFETY: the memory is there while it is pinned, and freed after this work: `used_by`. That an address which
            // somebody else gave is good for `size` bytes is what `from_handle` asks of its caller.
            unsafe { fill_async(pinned.address, pinned.size, pattern, &accepted) }
        })
        .or_raise(py)
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
        exports::cuda_array_interface(self, py)
    }

    /// Address and size for NumPy (version 3), as bytes; where the host can use the memory.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        exports::array_interface(self, py)
    }

    /// The memory by the buffer protocol, as bytes, where the host can use it.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        out: *mut ffi::Py_buffer,
        flags: std::ffi::c_int,
    ) -> PyResult<()> {
        // SAFETY: as Python has it: a place for the answer, or null from those that err.
        unsafe { exports::show(&slf, out, flags) }
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

    fn __repr__(&self, py: Python<'_>) -> String {
        let place = self.place();
        let mapped = if self.imported(py) {
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
        // SAFETY: the collector runs on an attached thread.
        let py = unsafe { Python::assume_attached() };
        if let Some(state) = self.state.try_lock(py) {
            visit.call(&state.owner)?;
            visit.call(&state.resource)?;
            match &state.backing {
                Backing::Resource(given) => visit.call(&given.object)?,
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
    fn imported(&self, py: Python<'_>) -> bool {
        let state = self.lock(py);
        self.place().open
            && match &state.backing {
                Backing::Pool(memory) => {
                    memory.pool().is_some_and(cupyrite::MemoryPool::is_imported)
                }
                Backing::View(whole) => whole.get().imported(py),
                _ => false,
            }
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
            None => self.info(py).map(of_info).or_raise(py),
        }
    }
}
