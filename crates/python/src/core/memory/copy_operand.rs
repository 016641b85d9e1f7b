//! Operands of a copy: buffers, host arrays and device arrays of other libraries.

use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use cupyrite::sys::driver::CUdevice_attribute;
use cupyrite::{
    CopyOptions, Device, Event, EventOptions, ForkGeneration, MemoryKind, RelaxedCapture,
    SourceAccessOrder, Stream, copy_async, enter_for_default_stream, is_capturing, pointer_info,
};
use pyo3::exceptions::{PyBufferError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pyo3::{PyTraverseError, PyVisit};

use crate::core::errors::OrRaise;
use crate::core::memory::buffer::PyBuffer;
use crate::core::memory::location;
use crate::core::view::dtype::Typestr;

/// Memory of one operand of a copy, kept alive for its lifetime.
pub struct Operand<'py> {
    address: u64,
    size: usize,
    owner: OperandOwner<'py>,
}

enum OperandOwner<'py> {
    Buffer(PinnedBuffer<'py>),
    /// Host memory exported by the buffer protocol.
    View(BufferView),
    /// Another owner, with the stream to wait for first.
    Object(Bound<'py, PyAny>, Option<Stream>),
}

struct PinnedBuffer<'py>(Bound<'py, PyBuffer>);

impl Drop for PinnedBuffer<'_> {
    fn drop(&mut self) {
        self.0.get().unpin(self.0.py());
    }
}

/// A buffer-protocol view; dropped where Python may be called.
pub struct BufferView(Box<ffi::Py_buffer>);

// SAFETY: any attached thread may release a view (Python/C API, "Buffer Protocol"), and views are dropped on attached
// threads only.
unsafe impl Send for BufferView {}
// SAFETY: shared references only read what the exporter filled in.
unsafe impl Sync for BufferView {}

impl Drop for BufferView {
    fn drop(&mut self) {
        // SAFETY: filled by `PyObject_GetBuffer`, released once, attached.
        unsafe { ffi::PyBuffer_Release(&raw mut *self.0) };
    }
}

impl BufferView {
    /// Requests a view of an object with these flags.
    ///
    /// # Errors
    ///
    /// Errors of the exporter.
    pub fn take(given: &Bound<'_, PyAny>, flags: std::ffi::c_int) -> PyResult<BufferView> {
        let mut view = Box::new(ffi::Py_buffer::new());
        // SAFETY: a live object and a valid view with a stable address.
        if unsafe { ffi::PyObject_GetBuffer(given.as_ptr(), &raw mut *view, flags) } != 0 {
            return Err(PyErr::fetch(given.py()));
        }
        Ok(BufferView(view))
    }

    /// Reports the exporter to the garbage collector.
    ///
    /// # Errors
    ///
    /// Errors of the collector.
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        // SAFETY: a filled view owns a reference to its exporter, or none. The temporary is never dropped, so the
        // reference stays with the view.
        let obj = unsafe {
            let py = Python::assume_attached();
            Bound::<PyAny>::from_owned_ptr_or_opt(py, self.0.obj)
                .map(|obj| ManuallyDrop::new(obj.unbind()))
        };
        match obj {
            Some(obj) => visit.call(&*obj),
            None => Ok(()),
        }
    }

    /// Address of the first element.
    pub fn address(&self) -> usize {
        self.0.buf.expose_provenance()
    }

    /// Whether the memory is read-only.
    pub fn readonly(&self) -> bool {
        self.0.readonly != 0
    }

    /// Shape, strides in bytes if present, and element size.
    ///
    /// # Errors
    ///
    /// `BufferError` for memory with suboffsets.
    pub fn extents(&self) -> PyResult<(Vec<i64>, Option<Vec<i64>>, usize)> {
        if !self.0.suboffsets.is_null() {
            return Err(PyBufferError::new_err(
                "the buffer has suboffsets, which views do not support",
            ));
        }
        let item = self.0.itemsize.max(1).cast_unsigned();
        let dims = usize::try_from(self.0.ndim).unwrap_or(0);
        if dims == 0 {
            return Ok((Vec::new(), None, item));
        }
        if self.0.shape.is_null() {
            return Ok((vec![(self.len() / item) as i64], None, item));
        }
        // SAFETY: the exporter filled in one number per dimension.
        let numbers = |from: *mut ffi::Py_ssize_t| unsafe {
            std::slice::from_raw_parts(from, dims)
                .iter()
                .map(|&n| n as i64)
                .collect::<Vec<i64>>()
        };
        let strides = (!self.0.strides.is_null()).then(|| numbers(self.0.strides));
        Ok((numbers(self.0.shape), strides, item))
    }

    /// Element format in the syntax of module `struct`.
    pub fn format(&self) -> &[u8] {
        if self.0.format.is_null() {
            return b"B";
        }
        // SAFETY: a string of the exporter that lives as long as the view.
        unsafe { std::ffi::CStr::from_ptr(self.0.format) }.to_bytes()
    }

    /// Size in bytes.
    pub fn len(&self) -> usize {
        self.0.len.max(0).cast_unsigned()
    }
}

fn has_buffer(given: &Bound<'_, PyAny>) -> bool {
    // SAFETY: a live object.
    unsafe { ffi::PyObject_CheckBuffer(given.as_ptr()) != 0 }
}

/// Whether a format (module `struct`, with the extensions of the buffer protocol) contains Python object references.
fn has_objects(format: &[u8]) -> bool {
    // Field names are enclosed in colons.
    format
        .split(|&c| c == b':')
        .step_by(2)
        .any(|part| part.contains(&b'O'))
}

/// Size and first bytes of a contiguous object with the buffer protocol; `None` for other objects.
///
/// # Errors
///
/// Errors of the exporter, also for non-contiguous objects.
pub fn small_bytes(given: &Bound<'_, PyAny>) -> PyResult<Option<(usize, [u8; 4])>> {
    if !has_buffer(given) {
        return Ok(None);
    }
    let view = BufferView::take(given, ffi::PyBUF_SIMPLE)?;
    let (len, mut bytes) = (view.len(), [0; 4]);
    let first = len.min(bytes.len());
    // SAFETY: the view has `len` bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(view.0.buf.cast::<u8>(), bytes.as_mut_ptr(), first);
    }
    Ok(Some((len, bytes)))
}

impl<'py> Operand<'py> {
    /// An open buffer.
    ///
    /// # Errors
    ///
    /// `RuntimeError` for a closed buffer.
    pub fn of_buffer(buffer: &Bound<'py, PyBuffer>) -> PyResult<Operand<'py>> {
        let pinned = buffer.get().pin(buffer.py())?;
        let (address, size) = (pinned.address, pinned.size);
        // The operand releases the pin.
        std::mem::forget(pinned);
        Ok(Operand {
            address,
            size,
            owner: OperandOwner::Buffer(PinnedBuffer(buffer.clone())),
        })
    }

    /// Address of the memory.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Size in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Converts a buffer, or a C-contiguous object with the buffer protocol or an array interface, which must be
    /// writable for a destination.
    ///
    /// # Errors
    ///
    /// `TypeError` for other objects and arrays of Python objects, `BufferError` for non-contiguous or read-only
    /// memory.
    pub fn accept(
        given: &Bound<'py, PyAny>,
        function: &str,
        parameter: &str,
        writable: bool,
    ) -> PyResult<Operand<'py>> {
        if let Ok(buffer) = given.cast::<PyBuffer>() {
            return Self::of_buffer(buffer);
        }
        let what = || format!("{function}() argument '{parameter}'");
        if has_buffer(given) {
            return Self::of_view(given, &what, writable);
        }
        let py = given.py();
        for (name, on_device) in [
            (intern!(py, "__cuda_array_interface__"), true),
            (intern!(py, "__array_interface__"), false),
        ] {
            if let Some(interface) = given.getattr_opt(name)? {
                let what = || format!("{}: {name}", what());
                let Ok(interface) = interface.cast_into::<PyDict>() else {
                    return Err(PyTypeError::new_err(format!("{} is not a dict", what())));
                };
                return Self::of_interface(given, &interface, &what, writable, on_device);
            }
        }
        Err(PyTypeError::new_err(format!(
            "{} is of type {}; expected a Buffer, or an object with the buffer protocol, __cuda_array_interface__ or \
             __array_interface__",
            what(),
            given.get_type().name()?
        )))
    }

    fn of_view(
        given: &Bound<'py, PyAny>,
        what: &dyn Fn() -> String,
        writable: bool,
    ) -> PyResult<Operand<'py>> {
        let py = given.py();
        // The format shows object references. Some types, such as NumPy dates, have no format in the protocol; they
        // hold plain bytes.
        let view = match BufferView::take(given, ffi::PyBUF_STRIDES | ffi::PyBUF_FORMAT) {
            Ok(view) => view,
            Err(_) => BufferView::take(given, ffi::PyBUF_STRIDES)?,
        };
        if has_objects(view.format()) {
            return Err(PyTypeError::new_err(format!(
                "{} contains references to Python objects, which cannot be copied to a device",
                what()
            )));
        }
        // SAFETY: a filled view.
        let contiguous = unsafe { ffi::PyBuffer_IsContiguous(&raw const *view.0, b'C' as _) } != 0;
        if !contiguous && view.len() != 0 {
            return Err(not_contiguous(what));
        }
        if writable && view.0.readonly != 0 {
            return Err(read_only(what));
        }
        // Some exporters track writers.
        let view = if writable {
            BufferView::take(given, ffi::PyBUF_STRIDES | ffi::PyBUF_WRITABLE).map_err(|error| {
                let wrong = read_only(what);
                wrong.set_cause(py, Some(error));
                wrong
            })?
        } else {
            view
        };
        Ok(Operand {
            address: view.0.buf.expose_provenance() as u64,
            size: view.len(),
            owner: OperandOwner::View(view),
        })
    }

    /// Parses an array interface: `data`, `shape`, `typestr`, `strides`, and `stream` of the CUDA array interface.
    fn of_interface(
        given: &Bound<'py, PyAny>,
        interface: &Bound<'py, PyDict>,
        what: &dyn Fn() -> String,
        writable: bool,
        on_device: bool,
    ) -> PyResult<Operand<'py>> {
        let py = given.py();
        let get = |key: &str| -> PyResult<Option<Bound<'py, PyAny>>> {
            Ok(interface.get_item(key)?.filter(|value| !value.is_none()))
        };
        let wrong = |key: &str, cause: Option<PyErr>| {
            let error =
                PyTypeError::new_err(format!("{}['{key}'] is missing or malformed", what()));
            error.set_cause(py, cause);
            error
        };
        let typestr: String = match get("typestr")? {
            Some(text) => text.extract().map_err(|e| wrong("typestr", Some(e)))?,
            None => return Err(wrong("typestr", None)),
        };
        let parsed = Typestr::parse(&typestr).ok_or_else(|| wrong("typestr", None))?;
        if parsed.kind == b'O' {
            return Err(PyTypeError::new_err(format!(
                "{} contains references to Python objects, which cannot be copied to a device",
                what()
            )));
        }
        let item = parsed.size;
        let shape: Vec<usize> = match get("shape")? {
            Some(shape) => shape.extract().map_err(|e| wrong("shape", Some(e)))?,
            None => return Err(wrong("shape", None)),
        };
        let size = shape
            .iter()
            .try_fold(item, |size, &n| size.checked_mul(n))
            .ok_or_else(|| wrong("shape", None))?;
        if let Some(strides) = get("strides")? {
            let strides: Vec<isize> = strides.extract().map_err(|e| wrong("strides", Some(e)))?;
            if strides.len() != shape.len() {
                return Err(wrong("strides", None));
            }
            let mut dense = item;
            for (&n, &stride) in shape.iter().zip(&strides).rev() {
                if n > 1 && size != 0 && stride != dense.cast_signed() {
                    return Err(not_contiguous(what));
                }
                dense = dense.saturating_mul(n);
            }
        }
        let data = match get("data")? {
            Some(data) => data,
            // The host interface may defer to the buffer protocol, which this object does not support.
            None => return Err(wrong("data", None)),
        };
        let (address, readonly) = match data.cast::<PyTuple>() {
            Ok(data) => data
                .extract::<(u64, bool)>()
                .map_err(|e| wrong("data", Some(e)))?,
            Err(_) if !on_device && has_buffer(&data) => {
                return Self::of_view(&data, what, writable).and_then(|mut operand| {
                    let offset = match get("offset")? {
                        Some(offset) => offset.extract().map_err(|e| wrong("offset", Some(e)))?,
                        None => 0usize,
                    };
                    if operand
                        .size
                        .checked_sub(offset)
                        .is_none_or(|left| left < size)
                    {
                        return Err(wrong("data", None));
                    }
                    operand.address += offset as u64;
                    operand.size = size;
                    Ok(operand)
                });
            }
            Err(_) => return Err(wrong("data", None)),
        };
        if writable && readonly {
            return Err(read_only(what));
        }
        let stream = match get("stream")? {
            Some(stream) if on_device => {
                let handle: usize = stream.extract().map_err(|e| wrong("stream", Some(e)))?;
                if handle == 0 {
                    // Reserved: ambiguous between the two default streams.
                    return Err(wrong("stream", None));
                }
                // SAFETY: the interface guarantees a valid stream of the object, which is kept alive during the copy.
                Some(unsafe { Stream::from_handle(std::ptr::with_exposed_provenance_mut(handle)) })
            }
            _ => None,
        };
        Ok(Operand {
            address,
            size,
            owner: OperandOwner::Object(given.clone(), stream),
        })
    }

    /// The buffer, if the operand is one.
    pub fn buffer(&self) -> Option<&PyBuffer> {
        match &self.owner {
            OperandOwner::Buffer(buffer) => Some(buffer.0.get()),
            _ => None,
        }
    }

    /// Objects to keep alive until the copy completes; `None` for a buffer, which keeps itself, and for memory that the
    /// driver no longer needs when the call returns.
    fn into_keep_alive(self, device: Option<Device>) -> Option<KeepAlive> {
        match self.owner {
            OperandOwner::Buffer(_) => None,
            OperandOwner::View(view) => {
                (!is_staged(self.address, self.size, device)).then_some(KeepAlive::View(view))
            }
            OperandOwner::Object(object, _) => Some(KeepAlive::Object(object.unbind())),
        }
    }
}

fn not_contiguous(what: &dyn Fn() -> String) -> PyErr {
    PyBufferError::new_err(format!(
        "{} is not C-contiguous; make a contiguous copy, for example with numpy.ascontiguousarray()",
        what()
    ))
}

fn read_only(what: &dyn Fn() -> String) -> PyErr {
    PyBufferError::new_err(format!(
        "{} is read-only and cannot be the destination of a copy",
        what()
    ))
}

/// Whether the memory is pageable host memory that the device cannot access directly. The driver has then read or
/// written it when the call returns (CUDA Driver API, "API synchronization behavior").
fn is_staged(address: u64, size: usize, device: Option<Device>) -> bool {
    let unknown =
        |address| pointer_info(address).is_ok_and(|info| info.kind == MemoryKind::Unknown);
    let by_itself = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS;
    device.is_some_and(|device| device.attribute(by_itself).is_ok_and(|able| able == 0))
        && unknown(address)
        && unknown(address.wrapping_add(size as u64).wrapping_sub(1))
}

/// Keeps an operand alive until its copy completes.
#[expect(dead_code, reason = "held for its destructor")]
enum KeepAlive {
    View(BufferView),
    Object(Py<PyAny>),
}

struct Pending {
    done: Event,
    generation: ForkGeneration,
    hold: KeepAlive,
}

/// Queued copies and the objects they need.
static PENDING: Mutex<Vec<Pending>> = Mutex::new(Vec::new());
/// Number of queued copies; avoids locking if there are none.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Drops the objects of completed copies.
///
/// Called wherever copies are queued or waited for. A stream callback cannot do this: it would need the GIL on a driver
/// thread, while a program that waits for the driver may hold it.
pub fn drop_completed(py: Python<'_>) {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return;
    }
    let lock = || PENDING.lock().unwrap_or_else(PoisonError::into_inner);
    let pending = std::mem::take(&mut *lock());
    // Detached: driver calls may wait for other threads. A failed copy counts as completed. A forked child cannot
    // query, and keeps the objects of its parent's copies.
    let (done, waiting) = py.detach(|| {
        // These queries are implicit: they must not invalidate a capture. A query refused during a capture counts as
        // pending.
        let _relaxed = RelaxedCapture::enter();
        let (done, waiting): (Vec<Pending>, Vec<Pending>) = pending
            .into_iter()
            .partition(|copy| copy.generation.is_current() && copy.done.is_done().unwrap_or(true));
        let done: Vec<KeepAlive> = done.into_iter().map(|copy| copy.hold).collect();
        (done, waiting)
    });
    COUNT.fetch_sub(done.len(), Ordering::Relaxed);
    lock().extend(waiting);
    drop(done);
}

/// Queues a copy between operands of equal size.
///
/// # Errors
///
/// `ValueError` for different sizes, `RuntimeError` for arrays in a capturing stream, driver errors.
pub fn copy(
    py: Python<'_>,
    function: &str,
    destination: Operand<'_>,
    source: Operand<'_>,
    stream: &Stream,
    options: &CopyOptions,
) -> PyResult<()> {
    if destination.size != source.size {
        return Err(PyValueError::new_err(format!(
            "{function}(): the source has {} bytes, the destination {}; both must have the same size",
            source.size, destination.size
        )));
    }
    drop_completed(py);
    let size = source.size;
    if size == 0 {
        return Ok(());
    }
    let plain = destination.buffer().is_some() && source.buffer().is_some();
    if !plain && is_capturing(stream).or_raise(py)? {
        return Err(PyRuntimeError::new_err(format!(
            "{function}(): the stream is being captured, and the resulting graph cannot keep an array alive; use a Buffer \
             (Buffer.from_handle() wraps existing memory)"
        )));
    }
    let sides = [&destination, &source];
    let device = sides
        .iter()
        .filter_map(|side| side.buffer())
        .find_map(|buffer| buffer.device(py));
    for side in sides {
        if let Some(buffer) = side.buffer() {
            buffer.note_use_on(py, stream, device);
        }
    }
    let producers: Vec<&Stream> = sides
        .iter()
        .filter_map(|side| match &side.owner {
            OperandOwner::Object(_, producer) => producer.as_ref(),
            _ => None,
        })
        .filter(|producer| producer.handle() != stream.handle())
        .collect();
    let (to, from) = (destination.address, source.address);
    py.detach(|| {
        let _entered = device
            .map(|device| enter_for_default_stream(stream, device))
            .transpose()?;
        for producer in producers {
            stream.wait_for_stream(producer)?;
        }
        // SAFETY: both operands are pinned for the call, and kept until the copy completes by `note_use` or the objects
        // held below. Whoever passed an address guarantees its size.
        unsafe { copy_async(to, from, size, stream, options) }
    })
    .or_raise(py)?;
    let kept: Vec<KeepAlive> = [destination, source]
        .into_iter()
        .filter_map(|side| side.into_keep_alive(device))
        .collect();
    if kept.is_empty() {
        return Ok(());
    }
    register_pending(py, device, stream, kept)
}

/// Keeps objects alive until the stream has completed its current work.
///
/// # Errors
///
/// Driver errors; the stream is then idle.
pub fn keep_until_done(
    py: Python<'_>,
    device: Option<Device>,
    stream: &Stream,
    objects: Vec<Py<PyAny>>,
) -> PyResult<()> {
    drop_completed(py);
    register_pending(
        py,
        device,
        stream,
        objects.into_iter().map(KeepAlive::Object).collect(),
    )
}

fn register_pending(
    py: Python<'_>,
    device: Option<Device>,
    stream: &Stream,
    kept: Vec<KeepAlive>,
) -> PyResult<()> {
    let count = kept.len();
    let marks = py.detach(|| {
        let _entered = device
            .map(|device| enter_for_default_stream(stream, device))
            .transpose()?;
        let mark = || stream.record_with(&EventOptions::default());
        let marks: cupyrite::Result<Vec<Event>> = (0..count).map(|_| mark()).collect();
        // Without an event the completion is unknown, so wait for the stream. If that fails too, the work has ended.
        marks.or_else(|_| stream.synchronize().map(|()| Vec::new()))
    });
    let marks = marks.or_raise(py)?;
    if !marks.is_empty() {
        COUNT.fetch_add(marks.len(), Ordering::Relaxed);
        PENDING
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(marks.into_iter().zip(kept).map(|(done, hold)| Pending {
                done,
                generation: ForkGeneration::current(),
                hold,
            }));
    }
    Ok(())
}

/// Converts `CopyOptions`.
///
/// # Errors
///
/// `TypeError` for other types.
pub fn copy_options(function: &str, given: Option<&Bound<'_, PyAny>>) -> PyResult<CopyOptions> {
    let mut options = CopyOptions::default();
    let Some(given) = given else {
        return Ok(options);
    };
    let py = given.py();
    let class = PyModule::import(py, intern!(py, "cuda.core._memory._copy_enums"))?
        .getattr(intern!(py, "CopyOptions"))?;
    if !given.is_instance(&class)? {
        return Err(PyTypeError::new_err(format!(
            "{function}() argument 'options' is of type {}; expected CopyOptions or None",
            given.get_type().name()?
        )));
    }
    let order: String = given.getattr(intern!(py, "src_access_order"))?.extract()?;
    options.source_access_order = match order.as_str() {
        "during_api_call" => SourceAccessOrder::DuringApiCall,
        "any" => SourceAccessOrder::Any,
        _ => SourceAccessOrder::Stream,
    };
    let overlap: String = given.getattr(intern!(py, "overlap_mode"))?.extract()?;
    options.prefer_overlap_with_compute = overlap == "prefer_overlap_with_compute";
    for (field, hint) in [
        (intern!(py, "src_location_hint"), &mut options.source_hint),
        (
            intern!(py, "dst_location_hint"),
            &mut options.destination_hint,
        ),
    ] {
        *hint = location::accept(&given.getattr(field)?, || format!("CopyOptions.{field}"))?;
    }
    Ok(options)
}
