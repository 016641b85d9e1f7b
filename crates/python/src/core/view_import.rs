//! Everyone else's arrays: what DLPack, the array interfaces and the buffer protocol say of memory, as a view has it.

use cupyrite::dlpack::{
    DataType, DeviceType, DlDevice, ManagedTensor, ManagedTensorVersioned, READ_ONLY, Tensor,
    VERSION,
};
use cupyrite::sys::driver::CUresult;
use cupyrite::{
    Device, Error, MAX_DIMS, MemoryKind, PointerInfo, Stream, StridedLayout, pointer_info,
};
use pyo3::exceptions::{PyAttributeError, PyBufferError, PyKeyError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyInt, PyString, PyTuple};

use super::buffer::PyBuffer;
use super::dtype::{Dtype, Typestr};
use super::errors::OrRaise;
use super::layout::numbers;
use super::operand::View;
use super::stream::PyStream;
use super::view::PyView;
use super::{dlpack, dlpack_exchange};

/// What a view holds.
pub struct Parts {
    /// The address that the layout counts from.
    pub base: u64,
    /// Where the elements are.
    pub layout: StridedLayout,
    /// What they are.
    pub dtype: Dtype,
    /// Whose memory it is.
    pub device: DlDevice,
    /// The same as the property `device_id` has it: -1 for memory of the host.
    pub device_id: i32,
    /// Whether the memory must not be written.
    pub readonly: bool,
    /// The bytes, counted from `base`, that are known to be there.
    pub room: (i64, i64),
    /// The object that was viewed.
    pub exporting: Option<Py<PyAny>>,
    /// What keeps the memory.
    pub keep: Keep,
}

/// What keeps the memory of a view, besides the object that was viewed.
pub enum Keep {
    /// Nothing else.
    Object,
    /// A DLPack export of version 0.
    Tensor(#[expect(dead_code, reason = "it is kept, not read")] Managed<ManagedTensor>),
    /// A DLPack export of version 1.
    Versioned(
        #[expect(dead_code, reason = "it is kept, not read")] Managed<ManagedTensorVersioned>,
    ),
    /// A buffer with a pin.
    Buffer(PinnedBuffer),
    /// Memory that an object shows by the buffer protocol.
    Shown(#[expect(dead_code, reason = "it is kept, not read")] View),
    /// The view that this one was made from.
    Parent(Py<PyView>),
}

/// A pin of a buffer, undone when this is dropped, attached.
pub struct PinnedBuffer(pub Py<PyBuffer>);

impl Drop for PinnedBuffer {
    fn drop(&mut self) {
        self.0.get().unpin();
    }
}

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

/// The stream that the maker of a view works on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Consumer {
    /// Nothing is to be waited for.
    Ignore,
    /// This one; 0 is the legacy default stream.
    Stream(usize),
}

impl Consumer {
    /// Reads `stream_ptr`.
    ///
    /// # Errors
    ///
    /// `BufferError` where it was not given, `TypeError` for what is no stream, `ValueError` for negative numbers but -1.
    pub fn accept(given: Option<&Bound<'_, PyAny>>) -> PyResult<Consumer> {
        let Some(given) = given else {
            return Err(PyBufferError::new_err(
                "argument 'stream_ptr' is needed: the address of the stream that the view will be used on, 0 for the default \
                 stream, or -1 to wait for nothing",
            ));
        };
        let number = if let Ok(number) = given.cast::<PyInt>() {
            number.extract::<i64>().ok()
        } else if let Ok(stream) = given.cast::<PyStream>() {
            return Ok(Consumer::Stream(stream.get().get()?.handle().addr()));
        } else if let Some(handle) = crate::types::handle_value(given.as_ptr()) {
            i64::try_from(handle).ok()
        } else {
            return Err(PyTypeError::new_err(format!(
                "argument 'stream_ptr' is of type {}; expected an int (the address of a stream, 0, or -1) or a Stream",
                given.get_type().name()?
            )));
        };
        match number {
            Some(-1) => Ok(Consumer::Ignore),
            Some(address) if address >= 0 => Ok(Consumer::Stream(address as usize)),
            _ => Err(PyValueError::new_err(format!(
                "argument 'stream_ptr' is {}; expected the address of a stream, 0, or -1",
                given.repr()?
            ))),
        }
    }

    /// As the argument `stream` of `__dlpack__`: the legacy default stream is 1.
    fn as_number(self) -> i64 {
        match self {
            Consumer::Ignore => -1,
            Consumer::Stream(address) => address.max(1) as i64,
        }
    }

    /// Makes it wait for what `producer` holds now; both on that device.
    fn wait_for(self, py: Python<'_>, producer: usize, device: i32) -> PyResult<()> {
        let Consumer::Stream(consumer) = self else {
            return Ok(());
        };
        // 0 and 1 are both the legacy default stream.
        let (consumer, producer) = (consumer.max(1), producer.max(1));
        if consumer == producer {
            return Ok(());
        }
        py.detach(|| {
            let device = Device::new(usize::try_from(device).unwrap_or(0))?;
            let _entered = device.enter()?;
            let stream = |handle| {
                // SAFETY: producer and consumer say that these are streams of theirs, alive during this call.
                unsafe { Stream::from_handle(std::ptr::with_exposed_provenance_mut(handle)) }
            };
            stream(consumer).wait_for_stream(&stream(producer))
        })
        .or_raise(py)
    }
}

fn device_id(device: DlDevice) -> i32 {
    if device.kind == DeviceType::CPU {
        -1
    } else {
        device.number
    }
}

/// The bytes that a layout spans, from its base on.
pub fn room_of(layout: &StridedLayout) -> (i64, i64) {
    let (low, high) = layout.bounds();
    let item = layout.item_size() as i64;
    // What a layout has, in bytes, fits: it was checked.
    (low * item, (high + 1) * item)
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
        room: room_of(&layout),
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
            answer.repr()?
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

/// Views an array by DLPack: by the C functions of its class where it has them, else by its methods.
///
/// # Errors
///
/// `AttributeError` without the methods, `TypeError` for answers of the wrong type, `BufferError` for what cannot be viewed,
/// and what the methods raise.
pub fn from_dlpack(obj: &Bound<'_, PyAny>, consumer: Consumer) -> PyResult<Parts> {
    let py = obj.py();
    // Of our own objects all is known that their methods would say; classes derived from them have a say of their own.
    if let Ok(buffer) = obj.cast_exact::<PyBuffer>() {
        return of_buffer(buffer, consumer);
    }
    if let Ok(view) = obj.cast_exact::<PyView>() {
        return of_view(view, consumer);
    }
    if let Some(api) = dlpack_exchange::of(obj)? {
        let parts = of_versioned(obj, api.export(obj)?, None)?;
        if parts.device.kind.is_device_accessible()
            && parts.device.kind != DeviceType::CUDA_HOST
            && consumer != Consumer::Ignore
        {
            let producer = api.current_stream(py, parts.device)?;
            consumer.wait_for(py, producer, parts.device.number)?;
        }
        return Ok(parts);
    }
    let says = says(obj)?;
    let keywords = PyDict::new(py);
    let stream = intern!(py, "stream");
    match consumer {
        // Work of the host is in order with itself.
        _ if says.kind == DeviceType::CPU => keywords.set_item(stream, py.None())?,
        Consumer::Ignore => keywords.set_item(stream, -1)?,
        Consumer::Stream(0) => keywords.set_item(stream, py.None())?,
        Consumer::Stream(address) => keywords.set_item(stream, address)?,
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
    let pinned = buffer.get().pin()?;
    let size = i64::try_from(pinned.size).unwrap_or(i64::MAX);
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
    let layout =
        StridedLayout::new(old.shape(), Some(old.strides()), old.item_size()).or_raise(py)?;
    let keep = Keep::Parent(view.clone().unbind());
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

/// The dictionary of an array interface.
struct Interface<'py> {
    dict: Bound<'py, PyDict>,
    name: &'static str,
}

impl<'py> Interface<'py> {
    fn of(obj: &Bound<'py, PyAny>, name: &'static str) -> PyResult<Interface<'py>> {
        let py = obj.py();
        let given = obj.getattr(PyString::intern(py, name))?;
        let Ok(dict) = given.cast::<PyDict>() else {
            return Err(PyTypeError::new_err(format!(
                "{name} is of type {}; expected a dict",
                given.get_type().name()?
            )));
        };
        let interface = Interface {
            dict: dict.clone(),
            name,
        };
        let version = match interface.get(intern!(py, "version"))? {
            Some(version) => interface.convert::<i64>(&version, "version", "an int")?,
            None => 0,
        };
        if version < 3 {
            return Err(PyBufferError::new_err(format!(
                "{name} is of version {version}; expected 3 or later"
            )));
        }
        if interface.get(intern!(py, "mask"))?.is_some() {
            return Err(PyBufferError::new_err(format!(
                "{name} has a mask, which a view cannot have"
            )));
        }
        Ok(interface)
    }

    /// An entry; `None` where it is missing or None.
    fn get(&self, key: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.dict.get_item(key)?.filter(|value| !value.is_none()))
    }

    fn required(&self, key: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        self.dict
            .get_item(key)?
            .ok_or_else(|| PyKeyError::new_err(format!("{} has no entry '{key}'", self.name)))
    }

    fn convert<T>(&self, given: &Bound<'py, PyAny>, key: &str, expected: &str) -> PyResult<T>
    where
        T: for<'a> FromPyObject<'a, 'py>,
    {
        given.extract::<T>().map_err(|error| {
            let error: PyErr = error.into();
            let py = given.py();
            let shown = given
                .repr()
                .map_or_else(|_| "?".to_owned(), |text| text.to_string());
            let text = format!("{}['{key}'] is {shown}; expected {expected}", self.name);
            if error.is_instance_of::<pyo3::exceptions::PyOverflowError>(py) {
                pyo3::exceptions::PyOverflowError::new_err(text)
            } else {
                PyTypeError::new_err(text)
            }
        })
    }

    fn layout_and_type(&self, py: Python<'py>) -> PyResult<(StridedLayout, Dtype)> {
        let text = self.required(intern!(py, "typestr"))?;
        let text = text.cast_into::<PyString>().map_err(|error| {
            let given = error.into_inner();
            let class = given
                .get_type()
                .name()
                .map_or_else(|_| "?".to_owned(), |n| n.to_string());
            PyTypeError::new_err(format!(
                "{}['typestr'] is of type {class}; expected a str",
                self.name
            ))
        })?;
        let parsed = Typestr::parse(&text.to_string_lossy()).ok_or_else(|| {
            PyTypeError::new_err(format!(
                "{}['typestr'] is '{text}'; expected byte order, kind and size, such as '<f4'",
                self.name
            ))
        })?;
        let shape = self.required(intern!(py, "shape"))?;
        let shape = numbers(&shape, self.name, "shape")?;
        let layout = match self.get(intern!(py, "strides"))? {
            Some(strides) => {
                let strides = numbers(&strides, self.name, "strides")?;
                StridedLayout::with_byte_strides(&shape, &strides, parsed.size)
            }
            None => StridedLayout::new(&shape, None, parsed.size),
        };
        let descr = if parsed.kind == b'V' {
            self.get(intern!(py, "descr"))?.map(Bound::unbind)
        } else {
            None
        };
        let dtype = Dtype::Interface(parsed, text.unbind(), descr);
        Ok((layout.or_raise(py)?, dtype))
    }

    /// `data` as a pair.
    fn address(&self, data: &Bound<'py, PyAny>) -> PyResult<(u64, bool)> {
        let expected = "a tuple of an address and whether the memory is read-only";
        let Ok(pair) = data.cast::<PyTuple>() else {
            return Err(PyTypeError::new_err(format!(
                "{}['data'] is of type {}; expected {expected}",
                self.name,
                data.get_type().name()?
            )));
        };
        if pair.len() != 2 {
            return Err(PyValueError::new_err(format!(
                "{}['data'] has {} items; expected {expected}",
                self.name,
                pair.len()
            )));
        }
        let address = self.convert::<u64>(&pair.get_item(0)?, "data", expected)?;
        Ok((address, pair.get_item(1)?.is_truthy()?))
    }
}

/// Views memory by `__cuda_array_interface__` (version 3).
///
/// # Errors
///
/// `AttributeError` without the attribute; `BufferError`, `KeyError`, `TypeError` and `ValueError` for interfaces that cannot
/// be right; `CUDAError` for memory that the driver does not know.
pub fn from_cuda_array_interface(obj: &Bound<'_, PyAny>, consumer: Consumer) -> PyResult<Parts> {
    let py = obj.py();
    let interface = Interface::of(obj, "__cuda_array_interface__")?;
    let (layout, dtype) = interface.layout_and_type(py)?;
    let (base, readonly) = interface.address(&interface.required(intern!(py, "data"))?)?;
    let producer = match interface.get(intern!(py, "stream"))? {
        Some(stream) => {
            let handle = interface.convert::<i64>(
                &stream,
                "stream",
                "the address of a stream, 1, 2 or None",
            )?;
            match usize::try_from(handle) {
                Ok(handle) if handle != 0 => Some(handle),
                _ => {
                    return Err(PyValueError::new_err(format!(
                        "{}['stream'] is {handle}; expected the address of a stream, 1 or 2 for the default streams, or None",
                        interface.name
                    )));
                }
            }
        }
        None => None,
    };
    let device = if base == 0 {
        if layout.volume() != 0 {
            return Err(PyBufferError::new_err(format!(
                "{}['data'] is address 0 for {} elements",
                interface.name,
                layout.volume()
            )));
        }
        DlDevice {
            kind: DeviceType::CUDA,
            number: Device::current().map_or(0, |device| device.ordinal() as i32),
        }
    } else {
        let info = pointer_info(base).or_raise(py)?;
        let number = info.device.map_or(0, |number| number as i32);
        let kind = match info.kind {
            MemoryKind::Device => DeviceType::CUDA,
            MemoryKind::Managed => DeviceType::CUDA_MANAGED,
            MemoryKind::Host => DeviceType::CUDA_HOST,
            MemoryKind::Unknown => return Err(unknown_memory(py, base, interface.name)),
        };
        DlDevice { kind, number }
    };
    if let Some(producer) = producer {
        consumer.wait_for(py, producer, device.number)?;
    }
    Ok(Parts {
        base,
        room: room_of(&layout),
        layout,
        dtype,
        device,
        device_id: device.number,
        readonly,
        exporting: Some(obj.clone().unbind()),
        keep: Keep::Object,
    })
}

fn unknown_memory(py: Python<'_>, address: u64, name: &str) -> PyErr {
    super::errors::to_python(
        py,
        &Error::Driver {
            call: "cuPointerGetAttributes",
            status: CUresult::CUDA_ERROR_INVALID_VALUE,
            log: format!(
                "{name} gives address {address:#x}, which is no memory of a device and not page-locked"
            ),
        },
    )
}

/// Where memory of the host is: page-locked memory can be used by a device, too. A driver that was not used knows of none.
fn host_memory(address: u64) -> (DlDevice, i32) {
    let host = (
        DlDevice {
            kind: DeviceType::CPU,
            number: 0,
        },
        -1,
    );
    let kind = |kind| DlDevice { kind, number: 0 };
    // SAFETY of the answer: whether the driver knows it is asked where the driver runs already; it is not started for this.
    if address == 0 || cupyrite::sys::loader::chosen_backend().is_none() {
        return host;
    }
    match pointer_info(address) {
        Ok(PointerInfo {
            kind: MemoryKind::Host,
            device,
        }) => (kind(DeviceType::CUDA_HOST), device.map_or(0, |d| d as i32)),
        Ok(PointerInfo {
            kind: MemoryKind::Managed,
            device,
        }) => (
            kind(DeviceType::CUDA_MANAGED),
            device.map_or(0, |d| d as i32),
        ),
        _ => host,
    }
}

/// Views memory of the host by `__array_interface__` (version 3).
///
/// # Errors
///
/// As [`from_cuda_array_interface`], but for the driver's.
pub fn from_array_interface(obj: &Bound<'_, PyAny>) -> PyResult<Parts> {
    let py = obj.py();
    let interface = Interface::of(obj, "__array_interface__")?;
    let (layout, dtype) = interface.layout_and_type(py)?;
    let data = interface.required(intern!(py, "data"))?;
    let (base, readonly, keep) = if data.is_instance_of::<PyTuple>() {
        let (base, readonly) = interface.address(&data)?;
        (base, readonly, Keep::Object)
    } else if !data.is_none() && has_buffer(&data) {
        // An object with the memory, and perhaps where in it the first element is.
        let view = View::take(&data, ffi::PyBUF_SIMPLE)?;
        let offset = match interface.get(intern!(py, "offset"))? {
            Some(offset) => interface.convert::<u64>(&offset, "offset", "a number of bytes")?,
            None => 0,
        };
        let (low, high) = room_of(&layout);
        let room = i64::try_from(view.len()).unwrap_or(i64::MAX);
        let first = i64::try_from(offset).unwrap_or(i64::MAX);
        if layout.volume() != 0
            && (first.saturating_add(low) < 0 || first.saturating_add(high) > room)
        {
            return Err(PyValueError::new_err(format!(
                "{}['data'] has {room} bytes, not enough for shape, strides and offset",
                interface.name
            )));
        }
        let base = (view.address() as u64).wrapping_add(offset);
        (base, view.readonly(), Keep::Shown(view))
    } else {
        return Err(interface
            .address(&data)
            .err()
            .unwrap_or_else(|| PyTypeError::new_err("__array_interface__['data'] is no memory")));
    };
    if base == 0 && layout.volume() != 0 {
        return Err(PyBufferError::new_err(format!(
            "{}['data'] is address 0 for {} elements",
            interface.name,
            layout.volume()
        )));
    }
    let (device, device_id) = host_memory(base);
    Ok(Parts {
        base,
        room: room_of(&layout),
        layout,
        dtype,
        device,
        device_id,
        readonly,
        exporting: Some(obj.clone().unbind()),
        keep,
    })
}

fn has_buffer(given: &Bound<'_, PyAny>) -> bool {
    // SAFETY: a live object.
    unsafe { ffi::PyObject_CheckBuffer(given.as_ptr()) != 0 }
}

/// Views memory of the host by the buffer protocol.
///
/// # Errors
///
/// The exporter's; `BufferError` for pointers to pointers, `ValueError` for strides that are not whole elements.
fn from_memory(obj: &Bound<'_, PyAny>) -> PyResult<Parts> {
    let py = obj.py();
    let view = View::take(obj, ffi::PyBUF_FULL_RO)?;
    let (shape, strides, item) = view.extents()?;
    let layout = match strides {
        Some(strides) => StridedLayout::with_byte_strides(&shape, &strides, item),
        None => StridedLayout::new(&shape, None, item),
    }
    .or_raise(py)?;
    let base = view.address() as u64;
    let dtype = match plain_format(view.format(), item) {
        Some(text) => match Typestr::parse(&text) {
            Some(parsed) => Dtype::Interface(parsed, PyString::new(py, &text).unbind(), None),
            None => Dtype::Shown(obj.clone().unbind()),
        },
        None => Dtype::Shown(obj.clone().unbind()),
    };
    let (device, device_id) = host_memory(base);
    Ok(Parts {
        base,
        room: room_of(&layout),
        layout,
        dtype,
        device,
        device_id,
        readonly: view.readonly(),
        exporting: Some(obj.clone().unbind()),
        keep: Keep::Shown(view),
    })
}

/// The array interface's name of a format of one native number; `None` for all others.
fn plain_format(format: &[u8], item: usize) -> Option<String> {
    let code = match format {
        [code] | [b'@' | b'=', code] => *code,
        [b'<', code] if cfg!(target_endian = "little") => *code,
        [b'Z', b'f'] | [b'Z', b'd'] => b'Z',
        _ => return None,
    };
    let kind = match code {
        b'b' | b'h' | b'i' | b'l' | b'q' | b'n' => 'i',
        b'B' | b'H' | b'I' | b'L' | b'Q' | b'N' => 'u',
        b'e' | b'f' | b'd' => 'f',
        b'?' => 'b',
        b'Z' => 'c',
        _ => return None,
    };
    let order = match item {
        1 => '|',
        _ if cfg!(target_endian = "little") => '<',
        _ => '>',
    };
    Some(format!("{order}{kind}{item}"))
}

/// By which protocol an object is viewed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// `__dlpack__`.
    DlPack,
    /// `__cuda_array_interface__`.
    CudaArrayInterface,
    /// `__array_interface__`.
    ArrayInterface,
    /// The buffer protocol.
    Memory,
}

impl Protocol {
    /// The first that the object has.
    ///
    /// # Errors
    ///
    /// `BufferError` where it has none, and what its attributes raise other than `AttributeError`.
    pub fn of(obj: &Bound<'_, PyAny>) -> PyResult<Protocol> {
        let py = obj.py();
        let has = |name: &Bound<'_, PyString>| match obj.getattr_opt(name) {
            Ok(found) => Ok(found.is_some_and(|found| !found.is_none())),
            Err(error) if error.is_instance_of::<PyAttributeError>(py) => Ok(false),
            Err(error) => Err(error),
        };
        if dlpack_exchange::of(obj)?.is_some()
            || has(intern!(py, "__dlpack__"))? && has(intern!(py, "__dlpack_device__"))?
        {
            Ok(Protocol::DlPack)
        } else if has(intern!(py, "__cuda_array_interface__"))? {
            Ok(Protocol::CudaArrayInterface)
        } else if has(intern!(py, "__array_interface__"))? {
            Ok(Protocol::ArrayInterface)
        } else if has_buffer(obj) {
            Ok(Protocol::Memory)
        } else {
            Err(PyBufferError::new_err(format!(
                "an object of type {} shows no memory: it has neither __dlpack__ and __dlpack_device__, nor \
                 __cuda_array_interface__, nor __array_interface__, nor the buffer protocol",
                obj.get_type().name()?
            )))
        }
    }

    /// Views an object.
    ///
    /// # Errors
    ///
    /// As the functions of this module.
    pub fn view(self, obj: &Bound<'_, PyAny>, consumer: Consumer) -> PyResult<Parts> {
        match self {
            Protocol::DlPack => from_dlpack(obj, consumer),
            Protocol::CudaArrayInterface => from_cuda_array_interface(obj, consumer),
            Protocol::ArrayInterface => from_array_interface(obj),
            Protocol::Memory => from_memory(obj),
        }
    }
}
