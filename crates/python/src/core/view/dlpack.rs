//! Arrays by DLPack: what an exporter says is checked before it is believed, and what it gave is given back to it once.

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

use crate::core::dlpack;
use crate::core::dlpack::exchange::Api;
use crate::core::errors::OrRaise;
use crate::core::memory::buffer::PyBuffer;
use crate::core::numbers;
use crate::core::view::PyView;
use crate::core::view::class;
use crate::core::view::class::Way;
use crate::core::view::cupy;
use crate::core::view::dtype::Dtype;
use crate::core::view::import::{Consumer, Keep, Parts, PinnedBuffer};

/// An export that is ours to delete.
pub struct Managed<T: Deleted>(*mut T);

// SAFETY: DLPack lets any thread call the deleter, and nothing else of an export is used but by the thread that has it.
unsafe impl<T: Deleted> Send for Managed<T> {}
// SAFETY: as above; shared references read nothing.
unsafe impl<T: Deleted> Sync for Managed<T> {}

/// A structure with a deleter.
pub trait Deleted {
    /// Calls it.
    ///
    /// # Safety
    ///
    /// Once, by the one who owns the export.
    unsafe fn delete(this: *mut Self);
}

impl Deleted for ManagedTensor {
    unsafe fn delete(this: *mut Self) {
        // SAFETY: the caller's.
        unsafe {
            if let Some(deleter) = (*this).deleter {
                deleter(this);
            }
        }
    }
}

impl Deleted for ManagedTensorVersioned {
    unsafe fn delete(this: *mut Self) {
        // SAFETY: the caller's. The deleter is where it is in all versions.
        unsafe {
            if let Some(deleter) = (*this).deleter {
                deleter(this);
            }
        }
    }
}

impl<T: Deleted> Managed<T> {
    /// Takes an export over.
    ///
    /// # Safety
    ///
    /// It is a live export that nobody else deletes.
    pub unsafe fn own(managed: *mut T) -> Managed<T> {
        Managed(managed)
    }
}

impl<T: Deleted> Drop for Managed<T> {
    fn drop(&mut self) {
        // Deleters may run Python code, which an exception that is on its way must survive.
        // SAFETY: views end attached; the three references are given back; the export is ours and deleted once.
        unsafe {
            if ffi::PyErr_Occurred().is_null() {
                T::delete(self.0);
                if !ffi::PyErr_Occurred().is_null() {
                    ffi::PyErr_WriteUnraisable(std::ptr::null_mut());
                }
                return;
            }
            let (mut kind, mut value, mut trace) = (
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                std::ptr::null_mut(),
            );
            ffi::PyErr_Fetch(&raw mut kind, &raw mut value, &raw mut trace);
            T::delete(self.0);
            if !ffi::PyErr_Occurred().is_null() {
                ffi::PyErr_WriteUnraisable(std::ptr::null_mut());
            }
            ffi::PyErr_Restore(kind, value, trace);
        }
    }
}

fn device_id(device: DlDevice) -> i32 {
    if device.kind == DeviceType::CPU {
        -1
    } else {
        device.number
    }
}

/// Reads a tensor.
///
/// # Errors
///
/// `BufferError` for one that cannot be right, `ValueError` for extents and strides that cannot be.
///
/// # Safety
///
/// As much of it as it says is there.
unsafe fn read(py: Python<'_>, tensor: &Tensor) -> PyResult<(u64, StridedLayout)> {
    let wrong = |what: String| PyBufferError::new_err(format!("the DLPack tensor {what}"));
    let dims = usize::try_from(tensor.ndim)
        .ok()
        .filter(|&dims| dims <= MAX_DIMS)
        .ok_or_else(|| {
            wrong(format!(
                "has {} dimensions; expected 0 to {MAX_DIMS}",
                tensor.ndim
            ))
        })?;
    let item = tensor.dtype.bytes().ok_or_else(|| {
        PyValueError::new_err(format!(
            "the DLPack tensor has elements of {} x {} bits, which are no whole bytes",
            tensor.dtype.lanes, tensor.dtype.bits
        ))
    })?;
    let usable = |numbers: *mut i64| !numbers.is_null() && numbers.is_aligned();
    if dims != 0 && !usable(tensor.shape) {
        return Err(wrong("has dimensions and no shape".to_owned()));
    }
    if dims != 0 && !tensor.strides.is_null() && !tensor.strides.is_aligned() {
        return Err(wrong("has strides at an odd address".to_owned()));
    }
    let numbers = |from: *mut i64| -> &[i64] {
        if dims == 0 {
            return &[];
        }
        // SAFETY: the exporter says that there are as many numbers; null and odd addresses were excluded.
        unsafe { std::slice::from_raw_parts(from, dims) }
    };
    let strides = (dims != 0 && !tensor.strides.is_null()).then(|| numbers(tensor.strides));
    let layout = StridedLayout::new(numbers(tensor.shape), strides, item).or_raise(py)?;
    let address = (tensor.data.expose_provenance() as u64)
        .checked_add(tensor.byte_offset)
        .ok_or_else(|| {
            wrong(format!(
                "begins {} bytes behind its address",
                tensor.byte_offset
            ))
        })?;
    if address == 0 && layout.volume() != 0 {
        return Err(wrong(format!(
            "has {} elements at address 0",
            layout.volume()
        )));
    }
    Ok((address, layout))
}

/// The parts of a view of an export.
fn parts(
    obj: &Bound<'_, PyAny>,
    (base, layout): (u64, StridedLayout),
    tensor: (DataType, DlDevice),
    readonly: bool,
    keep: Keep,
) -> Parts {
    Parts {
        base,
        room: None,
        layout,
        dtype: Dtype::DlPack(tensor.0),
        device: tensor.1,
        device_id: device_id(tensor.1),
        readonly,
        exporting: Some(obj.clone().unbind()),
        keep,
    }
}

fn supported(kind: DeviceType) -> bool {
    kind.is_device_accessible() || kind.is_host_accessible()
}

fn not_supported(kind: DeviceType) -> PyErr {
    PyBufferError::new_err(format!(
        "the memory is on a device of DLPack's type {}; expected 1 (host), 2 (CUDA), 3 (page-locked host) or 13 (CUDA managed)",
        kind.0
    ))
}

/// Views an export of version 1, which is deleted where it cannot be viewed.
///
/// # Errors
///
/// As [`from_dlpack`].
pub fn of_versioned(
    obj: &Bound<'_, PyAny>,
    managed: Managed<ManagedTensorVersioned>,
    says: Option<DlDevice>,
) -> PyResult<Parts> {
    // SAFETY: a live export; before the version is known only that is read.
    let version = unsafe { (*managed.0).version };
    if version.major != VERSION.major {
        return Err(PyBufferError::new_err(format!(
            "the array was exported as DLPack {}.{}; this package reads version {}",
            version.major, version.minor, VERSION.major
        )));
    }
    // SAFETY: as above, and of the version that we know.
    let (flags, tensor) = unsafe { ((*managed.0).flags, &(*managed.0).tensor) };
    let device = agreed(says, tensor.device)?;
    // SAFETY: an exporter's word.
    let where_ = unsafe { read(obj.py(), tensor)? };
    let dtype = tensor.dtype;
    let readonly = flags & READ_ONLY != 0;
    Ok(parts(
        obj,
        where_,
        (dtype, device),
        readonly,
        Keep::Versioned(managed),
    ))
}

fn of_unversioned(
    obj: &Bound<'_, PyAny>,
    managed: Managed<ManagedTensor>,
    says: Option<DlDevice>,
) -> PyResult<Parts> {
    // SAFETY: a live export.
    let tensor = unsafe { &(*managed.0).tensor };
    let device = agreed(says, tensor.device)?;
    // SAFETY: an exporter's word.
    let where_ = unsafe { read(obj.py(), tensor)? };
    let dtype = tensor.dtype;
    Ok(parts(
        obj,
        where_,
        (dtype, device),
        false,
        Keep::Tensor(managed),
    ))
}

/// Where an export is: what `__dlpack_device__` said, if anything, unless the tensor contradicts it. PyTorch says
/// "page-locked" there and "host" here.
fn agreed(says: Option<DlDevice>, has: DlDevice) -> PyResult<DlDevice> {
    if !supported(has.kind) {
        return Err(not_supported(has.kind));
    }
    if has.number < 0 && has.kind == DeviceType::CUDA {
        return Err(PyBufferError::new_err(format!(
            "the DLPack tensor is on device {}",
            has.number
        )));
    }
    let Some(says) = says else {
        return Ok(has);
    };
    let both_host = says.kind.is_host_accessible() && has.kind.is_host_accessible();
    let both_device = says.kind.is_device_accessible() && has.kind.is_device_accessible();
    if !both_host && !both_device
        || says.kind == DeviceType::CUDA && has.kind == says.kind && says.number != has.number
    {
        return Err(PyBufferError::new_err(format!(
            "__dlpack_device__() says ({}, {}) and the tensor ({}, {})",
            says.kind.0, says.number, has.kind.0, has.number
        )));
    }
    Ok(says)
}

/// What `__dlpack_device__` says.
fn says(obj: &Bound<'_, PyAny>) -> PyResult<DlDevice> {
    let py = obj.py();
    let answer = obj.call_method0(intern!(py, "__dlpack_device__"))?;
    let wrong = || -> PyResult<PyErr> {
        Ok(PyTypeError::new_err(format!(
            "{}.__dlpack_device__() returned {}; expected a tuple of two ints",
            obj.get_type().name()?,
            numbers::shown(&answer)
        )))
    };
    // The kind may be an enumeration.
    let pair = answer.cast::<PyTuple>().ok().and_then(dlpack::two);
    let numbers = pair
        .and_then(|(kind, number)| Some((i32::try_from(kind).ok()?, i32::try_from(number).ok()?)));
    let Some((kind, number)) = numbers else {
        return Err(wrong()?);
    };
    let kind = DeviceType(kind);
    if !supported(kind) {
        return Err(not_supported(kind));
    }
    if number < 0 && kind == DeviceType::CUDA {
        return Err(PyBufferError::new_err(format!(
            "__dlpack_device__() says that the memory is on device {number}"
        )));
    }
    Ok(DlDevice { kind, number })
}

/// Views an object of a class that is known: our own, those with functions for C, CuPy's. `None` for all others, which have
/// to be asked.
///
/// # Errors
///
/// As [`from_dlpack`].
pub fn by_class(obj: &Bound<'_, PyAny>, consumer: Consumer) -> PyResult<Option<Parts>> {
    // Of our own objects all is known that their methods would say; classes derived from them have a say of their own.
    if let Ok(buffer) = obj.cast_exact::<PyBuffer>() {
        return of_buffer(buffer, consumer).map(Some);
    }
    if let Ok(view) = obj.cast_exact::<PyView>() {
        return of_view(view, consumer).map(Some);
    }
    match class::of(obj)? {
        Way::Exchange(api) => by_functions(obj, api, consumer).map(Some),
        // SAFETY: found for the object's class just now.
        Way::Cupy(fields) => unsafe { cupy::view(obj, &fields, consumer) },
        Way::Numpy => by_methods(obj, None).map(Some),
        Way::Methods => Ok(None),
    }
}

fn by_functions(obj: &Bound<'_, PyAny>, api: Api, consumer: Consumer) -> PyResult<Parts> {
    let parts = of_versioned(obj, api.export(obj)?, None)?;
    if matches!(parts.dtype, Dtype::DlPack(dtype) if dtype.code == DataType::COMPLEX) {
        resolved(obj)?;
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

/// Refuses tensors of PyTorch's that are conjugates in name only: their memory holds the numbers themselves. PyTorch's
/// `__dlpack__` refuses them, its function for C does not.
fn resolved(obj: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = obj.py();
    if let Some(method) = obj.getattr_opt(intern!(py, "is_conj"))?
        && method.call0()?.is_truthy()?
    {
        return Err(PyBufferError::new_err(
            "the memory of this tensor holds the conjugates of its elements (its conjugate bit is set), which a view cannot \
             tell; view tensor.resolve_conj()",
        ));
    }
    Ok(())
}

/// Views an array by DLPack: by what is known of its class, else by its methods.
///
/// # Errors
///
/// `AttributeError` without the methods, `TypeError` for answers of the wrong type, `BufferError` for what cannot be viewed,
/// and what the methods raise.
pub fn from_dlpack(obj: &Bound<'_, PyAny>, consumer: Consumer) -> PyResult<Parts> {
    match by_class(obj, consumer)? {
        Some(parts) => Ok(parts),
        None => by_methods(obj, Some(consumer)),
    }
}

/// Views an array by `__dlpack_device__` and `__dlpack__`; without a consumer it is told of no stream.
///
/// # Errors
///
/// As [`from_dlpack`].
fn by_methods(obj: &Bound<'_, PyAny>, consumer: Option<Consumer>) -> PyResult<Parts> {
    let py = obj.py();
    let says = says(obj)?;
    let keywords = PyDict::new(py);
    let stream = intern!(py, "stream");
    // Work of the host is in order with itself, and page-locked memory is the host's to fill.
    let knows_streams = !matches!(says.kind, DeviceType::CPU | DeviceType::CUDA_HOST);
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
            // Exporters of before version 1 do not know that argument.
            keywords.del_item(newest)?;
            method.call((), Some(&keywords))?
        }
        answer => answer?,
    };
    // SAFETY: a live object; the names end with a nul.
    let named = |name: &std::ffi::CStr| unsafe {
        ffi::PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) != 0
    };
    if named(dlpack::NAME_VERSIONED) {
        let managed = consume(&capsule, dlpack::NAME_VERSIONED, c"used_dltensor_versioned")?;
        of_versioned(obj, managed, Some(says))
    } else if named(dlpack::NAME) {
        let managed = consume(&capsule, dlpack::NAME, c"used_dltensor")?;
        of_unversioned(obj, managed, Some(says))
    } else {
        Err(not_a_tensor(obj, &capsule)?)
    }
}

/// As an export of a buffer would be viewed.
fn of_buffer(buffer: &Bound<'_, PyBuffer>, consumer: Consumer) -> PyResult<Parts> {
    let py = buffer.py();
    let device = dlpack::device(buffer.get(), py)?;
    dlpack::order(buffer.get(), py, consumer.as_number(), device.kind)?;
    let pinned = buffer.get().pin(py)?;
    let size = dlpack::extent(pinned.size)?;
    let layout = StridedLayout::new(&[size], Some(&[1]), 1).or_raise(py)?;
    let base = pinned.address;
    // The view undoes the pin.
    std::mem::forget(pinned);
    let keep = Keep::Buffer(PinnedBuffer(buffer.clone().unbind()));
    let bytes = DataType::new(DataType::INT, 8);
    Ok(parts(
        buffer.as_any(),
        (base, layout),
        (bytes, device),
        false,
        keep,
    ))
}

/// As an export of a view would be viewed.
fn of_view(view: &Bound<'_, PyView>, consumer: Consumer) -> PyResult<Parts> {
    let (py, this) = (view.py(), view.get());
    let dtype = this.data_type(py)?;
    if let Some(buffer) = this.buffer(py) {
        dlpack::order(buffer.get(), py, consumer.as_number(), this.device().kind)?;
    }
    let old = this.layout();
    // As `read` has it: a tensor without dimensions has no strides.
    let strides = (old.ndim() != 0).then(|| old.strides());
    let layout = StridedLayout::new(old.shape(), strides, old.item_size()).or_raise(py)?;
    let keep = Keep::Parent(PyView::root(view));
    let tensor = (dtype, this.device());
    Ok(parts(
        view.as_any(),
        (this.address(), layout),
        tensor,
        this.is_readonly(),
        keep,
    ))
}

/// Takes the export out of a capsule: its new name says that it is taken.
fn consume<T: Deleted>(
    capsule: &Bound<'_, PyAny>,
    name: &std::ffi::CStr,
    used: &'static std::ffi::CStr,
) -> PyResult<Managed<T>> {
    // SAFETY: a capsule of this name, which by DLPack holds such an export; the new name lives for ever.
    unsafe {
        let managed = ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr()).cast::<T>();
        if managed.is_null() || ffi::PyCapsule_SetName(capsule.as_ptr(), used.as_ptr()) != 0 {
            return Err(PyErr::fetch(capsule.py()));
        }
        if !managed.is_aligned() {
            return Err(PyBufferError::new_err(
                "the DLPack capsule holds an odd address",
            ));
        }
        Ok(Managed::own(managed))
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
    // SAFETY: a capsule; its name is null or ends with a nul.
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
            ", which a capsule has until somebody takes what it holds"
        } else {
            ""
        }
    )))
}
