//! The two sides of a copy: buffers, arrays of the host and arrays of other libraries.

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

/// Memory that one side of a copy stands for, kept for as long as this lives.
pub struct Operand<'py> {
    address: u64,
    size: usize,
    keep: Keep<'py>,
}

enum Keep<'py> {
    Buffer(PinnedBuffer<'py>),
    /// Memory of the host that an object shows by the buffer protocol.
    View(View),
    /// What else owns memory, with the stream that is to be waited for first.
    Object(Bound<'py, PyAny>, Option<Stream>),
}

struct PinnedBuffer<'py>(Bound<'py, PyBuffer>);

impl Drop for PinnedBuffer<'_> {
    fn drop(&mut self) {
        self.0.get().unpin(self.0.py());
    }
}

/// A view by the buffer protocol; dropped where Python may be called.
pub struct View(Box<ffi::Py_buffer>);

// SAFETY: a view may be released by another thread than the one that took it, if it is attached (Python/C API, "Buffer
// Protocol"); views are dropped by attached threads only.
unsafe impl Send for View {}
// SAFETY: shared references only read what the exporter filled in.
unsafe impl Sync for View {}

impl Drop for View {
    fn drop(&mut self) {
        // SAFETY: filled by `PyObject_GetBuffer`, released once, attached.
        unsafe { ffi::PyBuffer_Release(&raw mut *self.0) };
    }
}

impl View {
    /// The view of an object, with these flags.
    ///
    /// # Errors
    ///
    /// The exporter's.
    pub fn take(given: &Bound<'_, PyAny>, flags: std::ffi::c_int) -> PyResult<View> {
        let mut view = Box::new(ffi::Py_buffer::new());
        // SAFETY: a live object and a valid place, which stays where it is until it is released.
        if unsafe { ffi::PyObject_GetBuffer(given.as_ptr(), &raw mut *view, flags) } != 0 {
            return Err(PyErr::fetch(given.py()));
        }
        Ok(View(view))
    }

    /// Shows the collector the object that the view holds.
    ///
    /// # Errors
    ///
    /// The collector's.
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        // SAFETY: a filled view has a reference to an object, or none. It is looked at and stays the view's: what is made of
        // it is never dropped.
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

    /// Where the first element is.
    pub fn address(&self) -> usize {
        self.0.buf.expose_provenance()
    }

    /// Whether nobody may write to it.
    pub fn readonly(&self) -> bool {
        self.0.readonly != 0
    }

    /// Shape, strides in bytes where there are some, and bytes of an element.
    ///
    /// # Errors
    ///
    /// `BufferError` for memory that is reached through pointers.
    pub fn extents(&self) -> PyResult<(Vec<i64>, Option<Vec<i64>>, usize)> {
        if !self.0.suboffsets.is_null() {
            return Err(PyBufferError::new_err(
                "the memory is reached through pointers (it has suboffsets), which a view cannot describe",
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
        // SAFETY: the exporter filled in as many numbers as there are dimensions.
        let numbers = |from: *mut ffi::Py_ssize_t| unsafe {
            std::slice::from_raw_parts(from, dims)
                .iter()
                .map(|&n| n as i64)
                .collect::<Vec<i64>>()
        };
        let strides = (!self.0.strides.is_null()).then(|| numbers(self.0.strides));
        Ok((numbers(self.0.shape), strides, item))
    }

    /// What the elements are, as module `struct` names it.
    pub fn format(&self) -> &[u8] {
        if self.0.format.is_null() {
            return b"B";
        }
        // SAFETY: a string of the exporter's that lives as long as the view.
        unsafe { std::ffi::CStr::from_ptr(self.0.format) }.to_bytes()
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        self.0.len.max(0).cast_unsigned()
    }
}

fn has_buffer(given: &Bound<'_, PyAny>) -> bool {
    // SAFETY: a live object.
    unsafe { ffi::PyObject_CheckBuffer(given.as_ptr()) != 0 }
}

/// Whether a format (of module `struct`, as the buffer protocol extends it) has references to Python objects.
fn has_objects(format: &[u8]) -> bool {
    // Names of fields stand between colons.
    format
        .split(|&c| c == b':')
        .step_by(2)
        .any(|part| part.contains(&b'O'))
}

/// The first bytes of a contiguous object with the buffer protocol, and how many there are; `None` for other objects.
///
/// # Errors
///
/// The exporter's, for one that is not contiguous.
pub fn small_bytes(given: &Bound<'_, PyAny>) -> PyResult<Option<(usize, [u8; 4])>> {
    if !has_buffer(given) {
        return Ok(None);
    }
    let view = View::take(given, ffi::PyBUF_SIMPLE)?;
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
    /// `RuntimeError` where it was closed.
    pub fn of_buffer(buffer: &Bound<'py, PyBuffer>) -> PyResult<Operand<'py>> {
        let pinned = buffer.get().pin(buffer.py())?;
        let (address, size) = (pinned.address, pinned.size);
        // The operand undoes the pin.
        std::mem::forget(pinned);
        Ok(Operand {
            address,
            size,
            keep: Keep::Buffer(PinnedBuffer(buffer.clone())),
        })
    }

    /// The address.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// A buffer, or any object with the buffer protocol or an array interface that is contiguous and, where it is to be
    /// written, writable.
    ///
    /// # Errors
    ///
    /// `TypeError` for other objects and for arrays of Python objects, `BufferError` for what is not contiguous or
    /// read-only.
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
                    return Err(PyTypeError::new_err(format!("{} is no dictionary", what())));
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
        // The format says whether there are references in it. Some types have none that the protocol could name (dates of
        // NumPy's, for one); those hold plain bytes.
        let view = match View::take(given, ffi::PyBUF_STRIDES | ffi::PyBUF_FORMAT) {
            Ok(view) => view,
            Err(_) => View::take(given, ffi::PyBUF_STRIDES)?,
        };
        if has_objects(view.format()) {
            return Err(PyTypeError::new_err(format!(
                "{} holds references to Python objects, which mean nothing on a device",
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
        // Some exporters want to be told that somebody is going to write.
        let view = if writable {
            View::take(given, ffi::PyBUF_STRIDES | ffi::PyBUF_WRITABLE).map_err(|error| {
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
            keep: Keep::View(view),
        })
    }

    /// What an array interface describes: `data`, `shape`, `typestr`, `strides`, and for devices `stream`.
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
                "{} holds references to Python objects, which mean nothing on a device",
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
            // The host's interface may leave the memory to the buffer protocol, which this object does not have.
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
                    // Reserved: it would be either default stream.
                    return Err(wrong("stream", None));
                }
                // SAFETY: the interface says that this is a stream of the object's, which is kept during the copy.
                Some(unsafe { Stream::from_handle(std::ptr::with_exposed_provenance_mut(handle)) })
            }
            _ => None,
        };
        Ok(Operand {
            address,
            size,
            keep: Keep::Object(given.clone(), stream),
        })
    }

    /// The buffer, where it is one.
    pub fn buffer(&self) -> Option<&PyBuffer> {
        match &self.keep {
            Keep::Buffer(buffer) => Some(buffer.0.get()),
            _ => None,
        }
    }

    /// What has to be kept until the copy is done; `None` where a buffer keeps itself, or where the driver is done with the
    /// memory when the call returns.
    fn hold(self, device: Option<Device>) -> Option<Hold> {
        match self.keep {
            Keep::Buffer(_) => None,
            Keep::View(view) => {
                (!is_staged(self.address, self.size, device)).then_some(Hold::View(view))
            }
            Keep::Object(object, _) => Some(Hold::Object(object.unbind())),
        }
    }
}

fn not_contiguous(what: &dyn Fn() -> String) -> PyErr {
    PyBufferError::new_err(format!(
        "{} is not contiguous in C order; copy it into an array that is, by numpy.ascontiguousarray() for one",
        what()
    ))
}

fn read_only(what: &dyn Fn() -> String) -> PyErr {
    PyBufferError::new_err(format!("{} is read-only; it cannot be copied to", what()))
}

/// Whether the memory is pageable memory of the host that the device cannot read by itself: the driver has then read or
/// written it when the call returns (CUDA Driver API, "API synchronization behavior").
fn is_staged(address: u64, size: usize, device: Option<Device>) -> bool {
    let unknown =
        |address| pointer_info(address).is_ok_and(|info| info.kind == MemoryKind::Unknown);
    let by_itself = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS;
    device.is_some_and(|device| device.attribute(by_itself).is_ok_and(|able| able == 0))
        && unknown(address)
        && unknown(address.wrapping_add(size as u64).wrapping_sub(1))
}

/// What a copy needs until it is done.
#[expect(dead_code, reason = "it is kept, not read")]
enum Hold {
    View(View),
    Object(Py<PyAny>),
}

struct Pending {
    done: Event,
    generation: ForkGeneration,
    hold: Hold,
}

/// Copies that were queued, with what they need.
static PENDING: Mutex<Vec<Pending>> = Mutex::new(Vec::new());
/// How many there are, so that nobody locks for none.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Lets go of what copies needed that are done by now.
///
/// This is called wherever copies are queued or waited for. It is not done by a callback of the stream's: that would want
/// the interpreter from a thread of the driver's, which a program that waits for the driver may hold.
pub fn reap(py: Python<'_>) {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return;
    }
    let lock = || PENDING.lock().unwrap_or_else(PoisonError::into_inner);
    let pending = std::mem::take(&mut *lock());
    // Calls of the driver may wait for other threads. What failed is over, too. A forked child cannot ask; it keeps what its
    // parent's copies needed.
    let (done, waiting) = py.detach(|| {
        // Nobody asked for this: a capture goes on, and what it would refuse to tell is not over.
        let _relaxed = RelaxedCapture::enter();
        let (done, waiting): (Vec<Pending>, Vec<Pending>) = pending
            .into_iter()
            .partition(|copy| copy.generation.is_current() && copy.done.is_done().unwrap_or(true));
        let done: Vec<Hold> = done.into_iter().map(|copy| copy.hold).collect();
        (done, waiting)
    });
    COUNT.fetch_sub(done.len(), Ordering::Relaxed);
    lock().extend(waiting);
    drop(done);
}

/// Queues a copy of as many bytes as both sides have.
///
/// # Errors
///
/// `ValueError` if they do not have the same size, `RuntimeError` for arrays in a stream that is being captured, what the
/// driver says.
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
    reap(py);
    let size = source.size;
    if size == 0 {
        return Ok(());
    }
    let plain = destination.buffer().is_some() && source.buffer().is_some();
    if !plain && is_capturing(stream).or_raise(py)? {
        return Err(PyRuntimeError::new_err(format!(
            "{function}(): the stream is being captured, and a graph that runs later cannot keep an array alive; use a \
             Buffer (Buffer.from_handle() makes one of memory that exists)"
        )));
    }
    let sides = [&destination, &source];
    let device = sides
        .iter()
        .filter_map(|side| side.buffer())
        .find_map(|buffer| buffer.device(py));
    for side in sides {
        if let Some(buffer) = side.buffer() {
            buffer.used_in(py, stream, device);
        }
    }
    let producers: Vec<&Stream> = sides
        .iter()
        .filter_map(|side| match &side.keep {
            Keep::Object(_, producer) => producer.as_ref(),
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
        // SAFETY: both sides are kept: by their pins now, and until the copy is done by `used_by` or by what is held below.
        // That addresses given as numbers are good for their sizes is what those who take them ask of their callers.
        unsafe { copy_async(to, from, size, stream, options) }
    })
    .or_raise(py)?;
    let holds: Vec<Hold> = [destination, source]
        .into_iter()
        .filter_map(|side| side.hold(device))
        .collect();
    if holds.is_empty() {
        return Ok(());
    }
    hold(py, device, stream, holds)
}

/// Keeps objects until the stream has done what it holds now.
///
/// # Errors
///
/// What the driver says; nothing runs any more then.
pub fn keep_until_done(
    py: Python<'_>,
    device: Option<Device>,
    stream: &Stream,
    objects: Vec<Py<PyAny>>,
) -> PyResult<()> {
    reap(py);
    hold(
        py,
        device,
        stream,
        objects.into_iter().map(Hold::Object).collect(),
    )
}

fn hold(py: Python<'_>, device: Option<Device>, stream: &Stream, holds: Vec<Hold>) -> PyResult<()> {
    let count = holds.len();
    let marks = py.detach(|| {
        let _entered = device
            .map(|device| enter_for_default_stream(stream, device))
            .transpose()?;
        let mark = || stream.record_with(&EventOptions::default());
        let marks: cupyrite::Result<Vec<Event>> = (0..count).map(|_| mark()).collect();
        // Without a mark nobody knows when the copy is done, so it is waited for. If that fails nothing runs any more.
        marks.or_else(|_| stream.synchronize().map(|()| Vec::new()))
    });
    let marks = marks.or_raise(py)?;
    if !marks.is_empty() {
        COUNT.fetch_add(marks.len(), Ordering::Relaxed);
        PENDING
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(marks.into_iter().zip(holds).map(|(done, hold)| Pending {
                done,
                generation: ForkGeneration::current(),
                hold,
            }));
    }
    Ok(())
}

/// `CopyOptions` as Python has them.
///
/// # Errors
///
/// `TypeError` for anything else.
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
