//! Operands of a copy: buffers, host arrays and device arrays of other libraries.

use cupyrite::sys::driver::CUdevice_attribute;
use cupyrite::{
    CopyOptions, Device, FillPattern, MemoryKind, SourceAccessOrder, Stream, copy_async,
    enter_for_default_stream, is_capturing, pointer_info,
};
use pyo3::exceptions::{PyBufferError, PyOverflowError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyTuple};

use crate::core::errors::OrRaise;
use crate::core::graph::arguments::retain_buffers;
use crate::core::memory::buffer::PyBuffer;
use crate::core::memory::keep_alive::{BufferView, KeepAlive, drop_completed, register_pending};
use crate::core::memory::location;
use crate::core::numbers::short_repr;
use crate::core::view::dlpack::from_dlpack;
use crate::core::view::dtype::Typestr;
use crate::core::view::state::{Consumer, PyView};
use crate::core::wait;

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
        std::ptr::copy_nonoverlapping(view.pointer().cast::<u8>(), bytes.as_mut_ptr(), first);
    }
    Ok(Some((len, bytes)))
}

/// Converts a fill pattern.
///
/// # Errors
///
/// `TypeError`, `ValueError` and `OverflowError`.
pub fn fill_pattern(value: &Bound<'_, PyAny>) -> PyResult<FillPattern> {
    if value.is_instance_of::<PyInt>() {
        let byte = value.extract::<u8>().map_err(|_| {
            PyOverflowError::new_err(format!(
                "Buffer.fill() argument 'value' is {}; an int is one byte, from 0 to 255; pass a longer pattern as bytes \
                 or as a NumPy scalar",
                short_repr(value)
            ))
        })?;
        return Ok(FillPattern::U8(byte));
    }
    let Some((len, bytes)) = small_bytes(value)? else {
        return Err(PyTypeError::new_err(format!(
            "Buffer.fill() argument 'value' is of type {}; expected an int from 0 to 255, or an object with the buffer \
             protocol of 1, 2 or 4 bytes",
            value.get_type().name()?
        )));
    };
    bytes
        .get(..len)
        .and_then(FillPattern::from_bytes)
        .ok_or_else(|| {
            PyValueError::new_err(format!(
                "Buffer.fill() argument 'value' has {len} bytes; expected 1, 2 or 4"
            ))
        })
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

    /// Converts a buffer, or a C-contiguous object with the buffer protocol, an array interface or DLPack, which must be
    /// writable for a destination. `stream` is where the copy is queued.
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
        stream: &Stream,
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
        if given.hasattr(intern!(py, "__dlpack__"))? {
            return Self::of_dlpack(given, &what, writable, stream);
        }
        Err(PyTypeError::new_err(format!(
            "{} is of type {}; expected a Buffer, or an object with the buffer protocol, __cuda_array_interface__, \
             __array_interface__ or __dlpack__",
            what(),
            given.get_type().name()?
        )))
    }

    /// The export is kept until the copy is done.
    fn of_dlpack(
        given: &Bound<'py, PyAny>,
        what: &dyn Fn() -> String,
        writable: bool,
        stream: &Stream,
    ) -> PyResult<Operand<'py>> {
        let consumer = Consumer::Stream(stream.handle().addr());
        let view = Bound::new(given.py(), PyView::of(from_dlpack(given, consumer)?))?;
        let state = view.get();
        if writable && state.is_readonly() {
            return Err(read_only(what));
        }
        let layout = state.layout();
        let size = layout.volume() as usize * layout.item_size() as usize;
        if size != 0 && !layout.is_contiguous_c() {
            return Err(not_contiguous(what));
        }
        Ok(Operand {
            address: state.base(),
            size,
            owner: OperandOwner::Object(view.into_any(), None),
        })
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
        if !view.is_contiguous() && view.len() != 0 {
            return Err(not_contiguous(what));
        }
        if writable && view.readonly() {
            return Err(read_only(what));
        }
        // Some exporters track writers.
        let view = if writable {
            BufferView::take(given, ffi::PyBUF_STRIDES | ffi::PyBUF_WRITABLE).map_err(|error| {
                let invalid = read_only(what);
                invalid.set_cause(py, Some(error));
                invalid
            })?
        } else {
            view
        };
        Ok(Operand {
            address: view.address() as u64,
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
        let invalid = |key: &str, cause: Option<PyErr>| {
            let error =
                PyTypeError::new_err(format!("{}['{key}'] is missing or malformed", what()));
            error.set_cause(py, cause);
            error
        };
        let typestr: String = match get("typestr")? {
            Some(text) => text.extract().map_err(|e| invalid("typestr", Some(e)))?,
            None => return Err(invalid("typestr", None)),
        };
        let parsed = Typestr::parse(&typestr).ok_or_else(|| invalid("typestr", None))?;
        if parsed.kind == b'O' {
            return Err(PyTypeError::new_err(format!(
                "{} contains references to Python objects, which cannot be copied to a device",
                what()
            )));
        }
        let item = parsed.size;
        let shape: Vec<usize> = match get("shape")? {
            Some(shape) => shape.extract().map_err(|e| invalid("shape", Some(e)))?,
            None => return Err(invalid("shape", None)),
        };
        let size = shape
            .iter()
            .try_fold(item, |size, &n| size.checked_mul(n))
            .ok_or_else(|| invalid("shape", None))?;
        if let Some(strides) = get("strides")? {
            let strides: Vec<isize> = strides.extract().map_err(|e| invalid("strides", Some(e)))?;
            if strides.len() != shape.len() {
                return Err(invalid("strides", None));
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
            None => return Err(invalid("data", None)),
        };
        let (address, readonly) = match data.cast::<PyTuple>() {
            Ok(data) => data
                .extract::<(u64, bool)>()
                .map_err(|e| invalid("data", Some(e)))?,
            Err(_) if !on_device && has_buffer(&data) => {
                return Self::of_view(&data, what, writable).and_then(|mut operand| {
                    let offset = match get("offset")? {
                        Some(offset) => offset.extract().map_err(|e| invalid("offset", Some(e)))?,
                        None => 0usize,
                    };
                    if operand
                        .size
                        .checked_sub(offset)
                        .is_none_or(|left| left < size)
                    {
                        return Err(invalid("data", None));
                    }
                    operand.address += offset as u64;
                    operand.size = size;
                    Ok(operand)
                });
            }
            Err(_) => return Err(invalid("data", None)),
        };
        if writable && readonly {
            return Err(read_only(what));
        }
        let stream = match get("stream")? {
            Some(stream) if on_device => {
                let handle: usize = stream.extract().map_err(|e| invalid("stream", Some(e)))?;
                if handle == 0 {
                    // Reserved: ambiguous between the two default streams.
                    return Err(invalid("stream", None));
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

    /// The buffer's object, if the operand is a buffer.
    pub fn buffer_object(&self) -> Option<&Bound<'py, PyBuffer>> {
        match &self.owner {
            OperandOwner::Buffer(buffer) => Some(&buffer.0),
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
pub fn is_staged(address: u64, size: usize, device: Option<Device>) -> bool {
    let unknown =
        |address| pointer_info(address).is_ok_and(|info| info.kind == MemoryKind::Unknown);
    let by_itself = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS;
    device.is_some_and(|device| device.attribute(by_itself).is_ok_and(|able| able == 0))
        && unknown(address)
        && unknown(address.wrapping_add(size as u64).wrapping_sub(1))
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
    if stream.is_of_builder() {
        let buffers = sides.iter().filter_map(|side| side.buffer_object());
        retain_buffers(stream, &buffers.collect::<Vec<_>>())?;
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
    let to_host = !plain && destination.buffer().is_none();
    let done = py
        .detach(|| {
            let _entered = device
                .map(|device| enter_for_default_stream(stream, device))
                .transpose()?;
            for producer in producers {
                stream.wait_for_stream(producer)?;
            }
            if to_host && !wait::before_blocking_copy(stream, || is_staged(to, size, device))? {
                return Ok(false);
            }
            // SAFETY: both operands are pinned for the call, and kept until the copy completes by `note_use` or the objects
            // held below. Whoever passed an address guarantees its size.
            unsafe { copy_async(to, from, size, stream, options)? };
            Ok(true)
        })
        .or_raise(py)?;
    wait::completed(py, done)?;
    let kept: Vec<KeepAlive> = [destination, source]
        .into_iter()
        .filter_map(|side| side.into_keep_alive(device))
        .collect();
    if kept.is_empty() {
        return Ok(());
    }
    register_pending(py, device, stream, kept)
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
