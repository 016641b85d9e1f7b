//! Python methods of `Buffer`.

use cupyrite::{Error, MemoryKind, PointerInfo, Stream, enter_for_default_stream, fill_async};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};
use pyo3::{PyTraverseError, PyVisit, intern};

use crate::core::device;
use crate::core::dlpack::buffer::device_of;
use crate::core::errors::OrRaise;
use crate::core::graph::arguments::retain_buffers;
use crate::core::keyword_only::KeywordOnly;
use crate::core::memory::buffer::exports;
use crate::core::memory::buffer::release::set_stream;
use crate::core::memory::buffer::{Backing, PyBuffer};
use crate::core::memory::copy_operand;
use crate::core::memory::copy_operand::Operand;
use crate::core::memory::ipc;
use crate::core::memory::ipc_handles::PyBufferDescriptor;
use crate::core::memory::resource;
use crate::core::notebook;
use crate::core::stream;

/// Imports a buffer of another process.
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
                "Buffer.from_ipc_descriptor() argument 'ipc_descriptor' is corrupt: its size {problem}"
            )));
        }
        created => created.or_raise(py)?,
    };
    let (address, size) = (memory.address(), memory.size());
    let resource = Some(mr.clone().unbind());
    let created = PyBuffer::create(py, Backing::Pool(memory), address, size, resource, None)?;
    created.get().lock(py).descriptor = Some(descriptor.clone().unbind());
    Ok(created)
}

fn not_shared() -> PyErr {
    PyRuntimeError::new_err(
        "the memory of this Buffer cannot be shared with other processes: its memory resource is not IPC-enabled",
    )
}

#[pymethods]
impl PyBuffer {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<PyBuffer> {
        Err(PyRuntimeError::new_err(
            "Buffer cannot be instantiated; allocate with Device.allocate() or a memory resource, or wrap existing \
             memory with Buffer.from_handle()",
        ))
    }

    /// Wraps existing memory.
    ///
    /// Parameters
    /// ----------
    /// ptr : int or cuda.bindings.driver.CUdeviceptr
    ///     Device or host address.
    /// size : int
    ///     Size in bytes.
    /// mr : MemoryResource, optional
    ///     Resource that frees the memory: ``mr.deallocate(ptr, size, stream=...)`` is called once, when the buffer is
    ///     closed or garbage-collected.
    /// owner : object, optional
    ///     Owner of the memory, kept alive until the buffer is closed. Excludes `mr`. Without `mr` and `owner`, the
    ///     caller guarantees that the memory outlives the buffer.
    /// stream : Stream, optional
    ///     Stream passed to `mr`. Default: the default stream.
    ///
    /// Returns
    /// -------
    /// Buffer
    #[doc = example!("cuda.core.Buffer.from_handle")]
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
        Py::new(py, Self::from_arguments(ptr, size, mr, owner, stream)?)
    }

    /// Returns a slice: a buffer that shares the memory.
    ///
    /// The memory stays valid until the slices are closed or garbage-collected, even if this buffer is closed earlier.
    ///
    /// Parameters
    /// ----------
    /// key : slice
    ///     Range of bytes, with step 1.
    ///
    /// Returns
    /// -------
    /// Buffer
    ///     A :class:`ManagedBuffer` if this is one. Its ``owner`` is this buffer.
    fn __getitem__<'py>(
        slf: &Bound<'py, Self>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::slice(slf, key)
    }

    /// Imports a buffer of another process. The imported buffer must be closed before the exporting process frees the
    /// memory.
    ///
    /// Parameters
    /// ----------
    /// mr : DeviceMemoryResource or PinnedMemoryResource
    ///     Memory resource over the exporting process's pool, created by ``from_allocation_handle``.
    /// ipc_descriptor : IPCBufferDescriptor
    ///     The exported buffer's :attr:`ipc_descriptor`.
    /// stream : Stream
    ///     Stream on which the buffer is closed.
    ///
    /// Returns
    /// -------
    /// Buffer
    ///     Importing an open buffer again returns another object with the same address.
    ///
    /// Raises
    /// ------
    /// CUDAError
    ///     The descriptor belongs to another pool, or to a pool of this process (``CUDA_ERROR_INVALID_VALUE``).
    /// ValueError
    ///     The descriptor is corrupt.
    #[doc = example!("cuda.core.Buffer.from_ipc_descriptor")]
    #[classmethod]
    #[pyo3(
        signature = (mr, ipc_descriptor, *, stream=KeywordOnly(None)),
        text_signature = "($cls, mr, ipc_descriptor, *, stream)"
    )]
    fn from_ipc_descriptor(
        _class: &Bound<'_, PyType>,
        py: Python<'_>,
        mr: &Bound<'_, PyAny>,
        ipc_descriptor: &Bound<'_, PyAny>,
        stream: KeywordOnly<'_, '_>,
    ) -> PyResult<Py<PyBuffer>> {
        let stream = stream.get("Buffer.from_ipc_descriptor", "stream")?;
        let accepted = stream::lend(stream, "Buffer.from_ipc_descriptor", "stream", false)?;
        import(py, mr, ipc_descriptor, &accepted)
    }

    /// Unpickles a buffer.
    #[staticmethod]
    fn _reduce_helper(
        py: Python<'_>,
        mr: &Bound<'_, PyAny>,
        ipc_descriptor: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyBuffer>> {
        import(py, mr, ipc_descriptor, &stream::selected_default(py)?)
    }

    /// Descriptor with which another process imports the memory by :meth:`from_ipc_descriptor`: a picklable
    /// ``IPCBufferDescriptor``.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     The memory resource is not IPC-enabled.
    #[doc = example!("cuda.core.Buffer.ipc_descriptor")]
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
                Backing::Slice(_) => {
                    return Err(PyRuntimeError::new_err(
                        "a slice of a Buffer cannot be shared with other processes; share the whole buffer (its owner) \
                         and slice it there",
                    ));
                }
                _ => return Err(not_shared()),
            }
        };
        let created = Py::new(py, PyBufferDescriptor::new_of(described.or_raise(py)?))?;
        let mut state = self.lock(py);
        // Keeps the descriptor of a thread that was faster.
        let kept = state
            .descriptor
            .get_or_insert_with(|| created.clone_ref(py));
        Ok(kept.clone_ref(py))
    }

    /// Address of the memory; 0 if the buffer was closed.
    #[getter]
    fn handle(&self) -> u64 {
        self.extent().address
    }

    /// Size in bytes; 0 if the buffer was closed.
    #[getter]
    fn size(&self) -> usize {
        self.extent().size
    }

    /// Whether :meth:`close` was called.
    #[getter]
    fn is_closed(&self) -> bool {
        !self.extent().open
    }

    /// Device number of the memory; -1 for memory unknown to CUDA.
    #[getter]
    pub(super) fn device_id(&self, py: Python<'_>) -> PyResult<i64> {
        let native = match &self.lock(py).backing {
            Backing::Pool(memory) => Some(memory.device()),
            _ => None,
        };
        if let Some(device) = native {
            // Page-locked memory has no device, and its resource may raise.
            self.pin(py)?;
            return Ok(device.map_or(-1, |device| device.ordinal() as i64));
        }
        self.attribute(py, intern!(py, "device_id"), |info| {
            info.device.map_or(-1, |ordinal| ordinal as i64)
        })
    }

    /// Whether kernels can access the memory.
    #[getter]
    pub(super) fn is_device_accessible(&self, py: Python<'_>) -> PyResult<bool> {
        let name = intern!(py, "is_device_accessible");
        self.bool_attribute(py, name, |info| info.kind != MemoryKind::Unknown)
    }

    /// Whether the host can access the memory.
    #[getter]
    pub(super) fn is_host_accessible(&self, py: Python<'_>) -> PyResult<bool> {
        let name = intern!(py, "is_host_accessible");
        self.bool_attribute(py, name, |info| info.kind != MemoryKind::Device)
    }

    /// Whether the memory is managed (unified) memory.
    #[doc = example!("cuda.core.Buffer.is_managed")]
    #[getter]
    pub(super) fn is_managed(&self, py: Python<'_>) -> PyResult<bool> {
        let name = intern!(py, "is_managed");
        if self.bool_attribute(py, name, |info| info.kind == MemoryKind::Managed)? {
            return Ok(true);
        }
        // The base class of memory resources says False for all that are written in Python; the driver knows.
        Ok(!self.is_of_pool(py)
            && matches!(self.info(py), Ok(info) if info.kind == MemoryKind::Managed))
    }

    /// Whether the memory was imported from another process.
    #[doc = example!("cuda.core.Buffer.is_mapped")]
    #[getter]
    fn is_mapped(&self, py: Python<'_>) -> bool {
        self.is_imported(py)
    }

    /// The memory resource; None if there is none or the buffer was closed.
    #[doc = example!("cuda.core.Buffer.memory_resource")]
    #[getter]
    fn memory_resource(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.resource(py)
    }

    /// The owner given to :meth:`from_handle`; None if there is none or the buffer was closed.
    #[getter]
    fn owner(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let state = self.lock(py);
        if !self.extent().open {
            return None;
        }
        state.owner.as_ref().map(|o| o.clone_ref(py))
    }

    /// Sets the stream on which the memory is freed.
    ///
    /// Parameters
    /// ----------
    /// stream : Stream
    ///     The stream; it first waits for the current work of the previous deallocation stream.
    #[doc = example!("cuda.core.Buffer.set_deallocation_stream")]
    fn set_deallocation_stream(&self, py: Python<'_>, stream: &Bound<'_, PyAny>) -> PyResult<()> {
        let accepted = stream::lend(stream, "Buffer.set_deallocation_stream", "stream", false)?;
        let mut state = self.lock(py);
        if !self.extent().open {
            return Err(self.closed_error());
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

    /// Copies the whole buffer, stream-ordered.
    ///
    /// Parameters
    /// ----------
    /// dst : Buffer or array, optional
    ///     Destination: a buffer, or an object with the buffer protocol, ``__cuda_array_interface__`` or
    ///     ``__array_interface__`` that is writable, C-contiguous and of equal size. Default: a new buffer from the
    ///     same memory resource.
    /// stream : Stream
    ///     The stream.
    /// options : CopyOptions, optional
    ///     Options of the copy.
    ///
    /// Returns
    /// -------
    /// Buffer or array
    ///     The destination.
    ///
    /// Notes
    /// -----
    /// The contents are available after the stream has completed the copy: synchronize, for example with
    /// ``stream.sync()``, before reading a host array. A host array is kept alive and locked against resizing until
    /// then.
    #[doc = example!("cuda.core.Buffer.copy_to")]
    #[pyo3(
        signature = (dst=None, *, stream=KeywordOnly(None), options=None),
        text_signature = "($self, dst=None, *, stream, options=None)"
    )]
    fn copy_to<'py>(
        slf: &Bound<'py, Self>,
        dst: Option<&Bound<'py, PyAny>>,
        stream: KeywordOnly<'_, 'py>,
        options: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let stream = stream.get("Buffer.copy_to", "stream")?;
        let py = slf.py();
        let accepted = stream::lend(stream, "Buffer.copy_to", "stream", false)?;
        let options = copy_operand::copy_options("Buffer.copy_to", options)?;
        let source = Operand::of_buffer(slf)?;
        let dst = match dst {
            Some(given) => given.clone(),
            None => {
                let Some(resource) = slf.get().resource_of_pinned(py) else {
                    return Err(PyValueError::new_err(
                        "Buffer.copy_to() requires 'dst': this Buffer has no memory resource to allocate from",
                    ));
                };
                let device = match slf.get().device(py) {
                    Some(device) => device,
                    None => device::current(py)?,
                };
                resource::allocate(resource.bind(py), source.size(), stream, device)?
            }
        };
        let destination = Operand::accept(&dst, "Buffer.copy_to", "dst", true, &accepted)?;
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

    /// Copies into the buffer, stream-ordered.
    ///
    /// Parameters
    /// ----------
    /// src : Buffer or array
    ///     Source: a buffer, or an object with the buffer protocol, ``__cuda_array_interface__`` or
    ///     ``__array_interface__`` that is C-contiguous and of equal size.
    /// stream : Stream
    ///     The stream.
    /// options : CopyOptions, optional
    ///     Options of the copy.
    ///
    /// Notes
    /// -----
    /// A host array must not be modified before the stream has completed the copy, unless the options specify
    /// ``src_access_order="during_api_call"``. It is kept alive and locked against resizing until then.
    #[doc = example!("cuda.core.Buffer.copy_from")]
    #[pyo3(
        signature = (src, *, stream=KeywordOnly(None), options=None),
        text_signature = "($self, src, *, stream, options=None)"
    )]
    fn copy_from<'py>(
        slf: &Bound<'py, Self>,
        src: &Bound<'py, PyAny>,
        stream: KeywordOnly<'_, 'py>,
        options: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let stream = stream.get("Buffer.copy_from", "stream")?;
        let accepted = stream::lend(stream, "Buffer.copy_from", "stream", false)?;
        let options = copy_operand::copy_options("Buffer.copy_from", options)?;
        let destination = Operand::of_buffer(slf)?;
        let source = Operand::accept(src, "Buffer.copy_from", "src", false, &accepted)?;
        copy_operand::copy(
            slf.py(),
            "Buffer.copy_from",
            destination,
            source,
            &accepted,
            &options,
        )
    }

    /// Fills the buffer with a pattern, stream-ordered.
    ///
    /// Parameters
    /// ----------
    /// value : int or object with the buffer protocol
    ///     An int from 0 to 255 fills every byte. An object of 1, 2 or 4 bytes, such as ``b"\xff"`` or
    ///     ``np.float32(1)``, is repeated; the buffer's size must be a multiple of its size.
    /// stream : Stream
    ///     The stream.
    #[doc = example!("cuda.core.Buffer.fill")]
    #[pyo3(
        signature = (value, *, stream=KeywordOnly(None)),
        text_signature = "($self, value, *, stream)"
    )]
    fn fill(
        slf: &Bound<'_, Self>,
        value: &Bound<'_, PyAny>,
        stream: KeywordOnly<'_, '_>,
    ) -> PyResult<()> {
        let stream = stream.get("Buffer.fill", "stream")?;
        let (py, this) = (slf.py(), slf.get());
        let accepted = stream::lend(stream, "Buffer.fill", "stream", false)?;
        let pinned = this.pin(py)?;
        let pattern = copy_operand::fill_pattern(value)?;
        let width = pattern.width();
        if !pinned.size.is_multiple_of(width) {
            return Err(PyValueError::new_err(format!(
                "Buffer.fill() argument 'value' has {width} bytes; the size of the buffer, {} bytes, is not a multiple",
                pinned.size
            )));
        }
        if !pinned.address.is_multiple_of(width as u64) {
            return Err(PyValueError::new_err(format!(
                "Buffer.fill() argument 'value' has {width} bytes; the buffer's address {:#x} is not aligned to it",
                pinned.address
            )));
        }
        if accepted.is_of_builder() {
            retain_buffers(&accepted, &[slf])?;
        }
        this.note_use(py, &accepted);
        let device = if accepted.is_default() {
            this.device(py)
        } else {
            None
        };
        py.detach(|| {
            let _entered = device
                .map(|device| enter_for_default_stream(&accepted, device))
                .transpose()?;
            // SAFETY: the memory is pinned during the call and freed after this work (`note_use`). The caller of
            // `from_handle` guarantees `size` valid bytes.
            unsafe { fill_async(pinned.address, pinned.size, pattern, &accepted) }
        })
        .or_raise(py)
    }

    /// ``(device type, device number)`` as defined by DLPack.
    fn __dlpack_device__(slf: &Bound<'_, Self>) -> PyResult<(i32, i32)> {
        let here = device_of(slf.get(), slf.py())?;
        Ok((here.kind.0, here.number))
    }

    /// CUDA array interface (version 3) of the memory as bytes; only for device-accessible memory. Its stream is
    /// ordered after all known uses of the memory.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        exports::cuda_array_interface(self, py)
    }

    /// NumPy array interface (version 3) of the memory as bytes; only for host-accessible memory.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        exports::array_interface(self, py)
    }

    /// Buffer protocol: the memory as bytes; only for host-accessible memory.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        out: *mut ffi::Py_buffer,
        flags: std::ffi::c_int,
    ) -> PyResult<()> {
        // SAFETY: Python passes a valid pointer, or null.
        unsafe { exports::buffer_protocol(&slf, out, flags) }
    }

    unsafe fn __releasebuffer__(&self, py: Python<'_>, _view: *mut ffi::Py_buffer) {
        self.unpin(py);
    }

    // PyO3 returns `NotImplemented` for other types.
    fn __eq__(&self, other: &Bound<'_, PyBuffer>) -> bool {
        let (a, b) = (self.extent(), other.get().extent());
        (a.address, a.size) == (b.address, b.size)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        let extent = self.extent();
        (extent.address, extent.size).into_pyobject(py)?.hash()
    }

    /// HTML for notebooks.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        notebook::html(slf.py(), "buffer", (slf,))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let extent = self.extent();
        let mapped = if self.is_imported(py) {
            " is_mapped=True"
        } else {
            ""
        };
        format!(
            "<Buffer ptr={:#x} size={}{mapped}>",
            extent.address, extent.size
        )
    }

    /// Pickles a reference to the memory for another process; requires an IPC-enabled memory resource.
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
        // A held lock belongs to a thread that the collector has suspended, so the object is alive.
        // SAFETY: the collector runs on an attached thread.
        let py = unsafe { Python::assume_attached() };
        if let Some(state) = self.state.try_lock(py) {
            visit.call(&state.owner)?;
            visit.call(&state.resource)?;
            match &state.backing {
                Backing::Resource(given) => visit.call(&given.object)?,
                Backing::Slice(whole) => visit.call(whole)?,
                _ => {}
            }
        }
        Ok(())
    }

    // No `__clear__`: freeing the memory requires these references, so they are dropped last. Cycles through a buffer
    // are broken at another object: owner and resource can refer back only through objects of their own.
}

impl PyBuffer {
    /// Whether the buffer is open and was imported from another process.
    fn is_imported(&self, py: Python<'_>) -> bool {
        let state = self.lock(py);
        self.extent().open
            && match &state.backing {
                Backing::Pool(memory) => {
                    memory.pool().is_some_and(cupyrite::MemoryPool::is_imported)
                }
                Backing::Slice(whole) => whole.get().is_imported(py),
                _ => false,
            }
    }

    /// As [`PyBuffer::attribute`], with Python truth-value semantics.
    fn bool_attribute(
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
