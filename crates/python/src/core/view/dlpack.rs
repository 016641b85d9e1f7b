//! DLPack import: exports are validated, and deleted exactly once.

use cupyrite::dlpack::{
    DataType, DeviceType, DlDevice, ManagedTensor, ManagedTensorVersioned, READ_ONLY, Tensor,
    VERSION,
};
use cupyrite::{MAX_DIMS, StridedLayout};
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};

use crate::core::dlpack::buffer;
use crate::core::dlpack::exchange::Api;
use crate::core::dlpack::managed::{Deleted, Managed};
use crate::core::errors::OrRaise;
use crate::core::memory::buffer::PyBuffer;
use crate::core::numbers;
use crate::core::numbers::int_pair;
use crate::core::view::class;
use crate::core::view::class::ImportMethod;
use crate::core::view::cupy;
use crate::core::view::dtype::Dtype;
use crate::core::view::state::{Consumer, MemoryOwner, PinnedBuffer, PyView, ViewState};

fn device_id(device: DlDevice) -> i32 {
    if device.kind == DeviceType::CPU {
        -1
    } else {
        device.number
    }
}

/// Reads and validates a tensor.
///
/// # Errors
///
/// `BufferError` for an invalid tensor, `ValueError` for invalid extents or strides.
///
/// # Safety
///
/// Shape and strides have the stated number of elements.
unsafe fn read(py: Python<'_>, tensor: &Tensor) -> PyResult<(u64, StridedLayout)> {
    let invalid = |what: String| PyBufferError::new_err(format!("the DLPack tensor {what}"));
    let dims = usize::try_from(tensor.ndim)
        .ok()
        .filter(|&dims| dims <= MAX_DIMS)
        .ok_or_else(|| {
            invalid(format!(
                "has {} dimensions; expected 0 to {MAX_DIMS}",
                tensor.ndim
            ))
        })?;
    let item = tensor.dtype.bytes().ok_or_else(|| {
        PyValueError::new_err(format!(
            "the DLPack tensor has elements of {} x {} bits; expected whole bytes",
            tensor.dtype.lanes, tensor.dtype.bits
        ))
    })?;
    let usable = |numbers: *mut i64| !numbers.is_null() && numbers.is_aligned();
    if dims != 0 && !usable(tensor.shape) {
        return Err(invalid("has dimensions but no shape".to_owned()));
    }
    if dims != 0 && !tensor.strides.is_null() && !tensor.strides.is_aligned() {
        return Err(invalid("has misaligned strides".to_owned()));
    }
    let numbers = |from: *mut i64| -> &[i64] {
        if dims == 0 {
            return &[];
        }
        // SAFETY: the exporter guarantees this many numbers; null and misaligned addresses were rejected.
        unsafe { std::slice::from_raw_parts(from, dims) }
    };
    let strides = (dims != 0 && !tensor.strides.is_null()).then(|| numbers(tensor.strides));
    let layout = StridedLayout::new(numbers(tensor.shape), strides, item).or_raise(py)?;
    let address = (tensor.data.expose_provenance() as u64)
        .checked_add(tensor.byte_offset)
        .filter(|address| i64::try_from(*address).is_ok())
        .ok_or_else(|| {
            invalid(format!(
                "has byte_offset {}, which overflows its address",
                tensor.byte_offset
            ))
        })?;
    if address == 0 && layout.volume() != 0 {
        return Err(invalid(format!(
            "has {} elements at address 0",
            layout.volume()
        )));
    }
    Ok((address, layout))
}

/// State of a view of an export.
fn parts(
    obj: &Bound<'_, PyAny>,
    (base, layout): (u64, StridedLayout),
    tensor: (DataType, DlDevice),
    readonly: bool,
    owner: MemoryOwner,
) -> ViewState {
    ViewState {
        base,
        known_bytes: None,
        layout,
        dtype: Dtype::DlPack(tensor.0),
        device: tensor.1,
        device_id: device_id(tensor.1),
        readonly,
        exporting: Some(obj.clone().unbind()),
        owner,
    }
}

fn supported(kind: DeviceType) -> bool {
    kind.is_device_accessible() || kind.is_host_accessible()
}

fn not_supported(kind: DeviceType) -> PyErr {
    PyBufferError::new_err(format!(
        "the memory has DLPack device type {}; expected 1 (host), 2 (CUDA), 3 (page-locked host) or 13 (CUDA managed)",
        kind.0
    ))
}

/// Views a versioned export, which is deleted on failure.
///
/// # Errors
///
/// As [`from_dlpack`].
pub fn of_versioned(
    obj: &Bound<'_, PyAny>,
    managed: Managed<ManagedTensorVersioned>,
    reported: Option<DlDevice>,
) -> PyResult<ViewState> {
    // SAFETY: a live export; only the version is read before it is checked.
    let version = unsafe { (*managed.pointer()).version };
    if version.major != VERSION.major {
        return Err(PyBufferError::new_err(format!(
            "the array was exported as DLPack {}.{}; this package reads version {}",
            version.major, version.minor, VERSION.major
        )));
    }
    // SAFETY: as above, with a known version.
    let (flags, tensor) = unsafe { ((*managed.pointer()).flags, &(*managed.pointer()).tensor) };
    let device = consistent_device(reported, tensor.device)?;
    // SAFETY: guaranteed by the exporter.
    let location = unsafe { read(obj.py(), tensor)? };
    let dtype = tensor.dtype;
    let readonly = flags & READ_ONLY != 0;
    Ok(parts(
        obj,
        location,
        (dtype, device),
        readonly,
        MemoryOwner::DlPackVersioned(managed),
    ))
}

fn of_unversioned(
    obj: &Bound<'_, PyAny>,
    managed: Managed<ManagedTensor>,
    reported: Option<DlDevice>,
) -> PyResult<ViewState> {
    // SAFETY: a live export.
    let tensor = unsafe { &(*managed.pointer()).tensor };
    let device = consistent_device(reported, tensor.device)?;
    // SAFETY: guaranteed by the exporter.
    let location = unsafe { read(obj.py(), tensor)? };
    let dtype = tensor.dtype;
    Ok(parts(
        obj,
        location,
        (dtype, device),
        false,
        MemoryOwner::DlPack(managed),
    ))
}

/// Device of an export: the result of `__dlpack_device__`, if any, checked against the tensor. PyTorch reports
/// page-locked memory by `__dlpack_device__` and host memory in the tensor.
fn consistent_device(reported: Option<DlDevice>, has: DlDevice) -> PyResult<DlDevice> {
    if !supported(has.kind) {
        return Err(not_supported(has.kind));
    }
    if has.number < 0 && has.kind == DeviceType::CUDA {
        return Err(PyBufferError::new_err(format!(
            "the DLPack tensor has device number {}",
            has.number
        )));
    }
    let Some(reported) = reported else {
        return Ok(has);
    };
    let both_host = reported.kind.is_host_accessible() && has.kind.is_host_accessible();
    let both_device = reported.kind.is_device_accessible() && has.kind.is_device_accessible();
    if !both_host && !both_device
        || reported.kind == DeviceType::CUDA
            && has.kind == reported.kind
            && reported.number != has.number
    {
        return Err(PyBufferError::new_err(format!(
            "__dlpack_device__() returned ({}, {}), but the tensor has ({}, {})",
            reported.kind.0, reported.number, has.kind.0, has.number
        )));
    }
    Ok(reported)
}

/// Calls `__dlpack_device__`.
fn reported(obj: &Bound<'_, PyAny>) -> PyResult<DlDevice> {
    let py = obj.py();
    let answer = obj.call_method0(intern!(py, "__dlpack_device__"))?;
    let invalid = || -> PyResult<PyErr> {
        Ok(PyTypeError::new_err(format!(
            "{}.__dlpack_device__() returned {}; expected a tuple of two ints",
            obj.get_type().name()?,
            numbers::short_repr(&answer)
        )))
    };
    // The device type may be an enumeration member.
    let pair = answer.cast::<PyTuple>().ok().and_then(int_pair);
    let numbers = pair
        .and_then(|(kind, number)| Some((i32::try_from(kind).ok()?, i32::try_from(number).ok()?)));
    let Some((kind, number)) = numbers else {
        return Err(invalid()?);
    };
    let kind = DeviceType(kind);
    if !supported(kind) {
        return Err(not_supported(kind));
    }
    if number < 0 && kind == DeviceType::CUDA {
        return Err(PyBufferError::new_err(format!(
            "__dlpack_device__() returned device number {number}"
        )));
    }
    Ok(DlDevice { kind, number })
}

/// Views an object of a known class: buffers, views, classes with the C exchange API, CuPy and NumPy arrays. `None` for
/// other classes, which are viewed by their protocols.
///
/// # Errors
///
/// As [`from_dlpack`].
pub fn by_class(obj: &Bound<'_, PyAny>, consumer: Consumer) -> PyResult<Option<ViewState>> {
    // The state of exact buffers and views is read directly; subclasses may override the methods.
    if let Ok(buffer) = obj.cast_exact::<PyBuffer>() {
        return of_buffer(buffer, consumer).map(Some);
    }
    if let Ok(view) = obj.cast_exact::<PyView>() {
        return of_view(view, consumer).map(Some);
    }
    match class::of(obj)? {
        ImportMethod::Exchange(api) => by_exchange_api(obj, api, consumer).map(Some),
        // SAFETY: determined for the object's class.
        ImportMethod::Cupy(fields) => unsafe { cupy::view(obj, &fields, consumer) },
        ImportMethod::Numpy => by_methods(obj, None).map(Some),
        ImportMethod::Protocols => Ok(None),
    }
}

fn by_exchange_api(obj: &Bound<'_, PyAny>, api: Api, consumer: Consumer) -> PyResult<ViewState> {
    let parts = of_versioned(obj, api.export(obj)?, None)?;
    if matches!(parts.dtype, Dtype::DlPack(dtype) if dtype.code == DataType::COMPLEX) {
        reject_lazy_conjugate(obj)?;
    }
    if parts.device.kind.is_device_accessible()
        && parts.device.kind != DeviceType::CUDA_HOST
        && consumer != Consumer::Ignore
    {
        let py = obj.py();
        let producer = api.current_stream(py, parts.device)?;
        consumer.wait_for(py, producer, parts.device.number)?;
    }
    Ok(parts)
}

/// Rejects lazily conjugated PyTorch tensors, whose memory holds the unconjugated elements. PyTorch's `__dlpack__`
/// rejects them, its C exchange API does not.
fn reject_lazy_conjugate(obj: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = obj.py();
    if let Some(method) = obj.getattr_opt(intern!(py, "is_conj"))?
        && method.call0()?.is_truthy()?
    {
        return Err(PyBufferError::new_err(
            "the tensor's conjugate bit is set, so its memory holds the conjugates of its elements; view \
             tensor.resolve_conj()",
        ));
    }
    Ok(())
}

/// Views an array by DLPack: by its class if known, else by its methods.
///
/// # Errors
///
/// `AttributeError` without the methods, `TypeError` for results of the wrong type, `BufferError` for unsupported or
/// invalid exports, errors of the methods.
pub fn from_dlpack(obj: &Bound<'_, PyAny>, consumer: Consumer) -> PyResult<ViewState> {
    match by_class(obj, consumer)? {
        Some(parts) => Ok(parts),
        None => by_methods(obj, Some(consumer)),
    }
}

/// Views an array by `__dlpack_device__` and `__dlpack__`; without a consumer, no stream is passed.
///
/// # Errors
///
/// As [`from_dlpack`].
fn by_methods(obj: &Bound<'_, PyAny>, consumer: Option<Consumer>) -> PyResult<ViewState> {
    let py = obj.py();
    let reported = reported(obj)?;
    let keywords = PyDict::new(py);
    let stream = intern!(py, "stream");
    // Host memory, page-locked or not, needs no stream.
    let knows_streams = !matches!(reported.kind, DeviceType::CPU | DeviceType::CUDA_HOST);
    match consumer.filter(|_| knows_streams) {
        Some(Consumer::Ignore) => keywords.set_item(stream, -1)?,
        Some(Consumer::Stream(address)) if address != 0 => keywords.set_item(stream, address)?,
        _ => keywords.set_item(stream, py.None())?,
    }
    let method = obj.getattr(intern!(py, "__dlpack__"))?;
    let newest = intern!(py, "max_version");
    static NEWEST: PyOnceLock<Py<PyTuple>> = PyOnceLock::new();
    let version = || PyTuple::new(py, [VERSION.major, VERSION.minor]).map(Bound::unbind);
    keywords.set_item(newest, NEWEST.get_or_try_init(py, version)?)?;
    let capsule = match method.call((), Some(&keywords)) {
        Err(error) if error.is_instance_of::<PyTypeError>(py) => {
            // Exporters before DLPack 1 do not accept this argument.
            keywords.del_item(newest)?;
            method.call((), Some(&keywords))?
        }
        answer => answer?,
    };
    // SAFETY: a live object and NUL-terminated names.
    let named = |name: &std::ffi::CStr| unsafe {
        ffi::PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) != 0
    };
    if named(buffer::NAME_VERSIONED) {
        let managed = consume(&capsule, buffer::NAME_VERSIONED, c"used_dltensor_versioned")?;
        of_versioned(obj, managed, Some(reported))
    } else if named(buffer::NAME) {
        let managed = consume(&capsule, buffer::NAME, c"used_dltensor")?;
        of_unversioned(obj, managed, Some(reported))
    } else {
        Err(not_a_tensor(obj, &capsule)?)
    }
}

/// Views a buffer; equivalent to viewing its export.
fn of_buffer(buffer: &Bound<'_, PyBuffer>, consumer: Consumer) -> PyResult<ViewState> {
    let py = buffer.py();
    let device = buffer::device_of(buffer.get(), py)?;
    buffer::synchronize_consumer(buffer.get(), py, consumer.as_number(), device.kind)?;
    let pinned = buffer.get().pin(py)?;
    let size = buffer::dl_extent(pinned.size)?;
    let layout = StridedLayout::new(&[size], Some(&[1]), 1).or_raise(py)?;
    let base = pinned.address;
    // The view releases the pin.
    std::mem::forget(pinned);
    let owner = MemoryOwner::Buffer(PinnedBuffer(buffer.clone().unbind()));
    let bytes = DataType::new(DataType::INT, 8);
    Ok(parts(
        buffer.as_any(),
        (base, layout),
        (bytes, device),
        false,
        owner,
    ))
}

/// Views a view; equivalent to viewing its export.
fn of_view(view: &Bound<'_, PyView>, consumer: Consumer) -> PyResult<ViewState> {
    let (py, this) = (view.py(), view.get());
    let dtype = this.data_type(py)?;
    if let Some(buffer) = this.buffer(py) {
        buffer::synchronize_consumer(buffer.get(), py, consumer.as_number(), this.device().kind)?;
    }
    let old = this.layout();
    // As in `read`: a tensor without dimensions has no strides.
    let strides = (old.ndim() != 0).then(|| old.strides());
    let layout = StridedLayout::new(old.shape(), strides, old.item_size()).or_raise(py)?;
    let owner = MemoryOwner::RootView(PyView::root(view));
    let tensor = (dtype, this.device());
    Ok(parts(
        view.as_any(),
        (this.address(), layout),
        tensor,
        this.is_readonly(),
        owner,
    ))
}

/// Consumes a capsule: takes the export and renames the capsule.
fn consume<T: Deleted>(
    capsule: &Bound<'_, PyAny>,
    name: &std::ffi::CStr,
    used: &'static std::ffi::CStr,
) -> PyResult<Managed<T>> {
    // SAFETY: by DLPack, a capsule of this name holds such an export; the new name is static.
    unsafe {
        let managed = ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr()).cast::<T>();
        if managed.is_null() || ffi::PyCapsule_SetName(capsule.as_ptr(), used.as_ptr()) != 0 {
            return Err(PyErr::fetch(capsule.py()));
        }
        if !managed.is_aligned() {
            return Err(PyBufferError::new_err(
                "the DLPack capsule contains a misaligned address",
            ));
        }
        Ok(Managed::from_raw(managed))
    }
}

fn not_a_tensor(obj: &Bound<'_, PyAny>, answer: &Bound<'_, PyAny>) -> PyResult<PyErr> {
    let class = obj.get_type().name()?;
    // SAFETY: a live object.
    if unsafe { ffi::PyCapsule_CheckExact(answer.as_ptr()) } == 0 {
        return Ok(PyTypeError::new_err(format!(
            "{class}.__dlpack__() returned an object of type {}; expected a capsule",
            answer.get_type().name()?
        )));
    }
    // SAFETY: a capsule; its name is null or NUL-terminated.
    let name = unsafe {
        let name = ffi::PyCapsule_GetName(answer.as_ptr());
        if name.is_null() {
            ffi::PyErr_Clear();
            "no name".to_owned()
        } else {
            format!(
                "the name '{}'",
                std::ffi::CStr::from_ptr(name).to_string_lossy()
            )
        }
    };
    Ok(PyBufferError::new_err(format!(
        "{class}.__dlpack__() returned a capsule with {name}; expected 'dltensor' or 'dltensor_versioned'{}",
        if name.contains("used_") {
            "; the capsule was already consumed"
        } else {
            ""
        }
    )))
}
