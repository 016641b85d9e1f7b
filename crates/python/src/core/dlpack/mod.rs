//! Export of buffers by DLPack (`dlpack.h`, versions 0 and 1).

pub mod exchange;
pub mod method;

use std::ffi::{CStr, c_void};

use cupyrite::dlpack::{
    DataType, DeviceType, DlDevice, ManagedTensor, ManagedTensorVersioned, READ_ONLY, Tensor,
    VERSION,
};
use cupyrite::{Device, RelaxedCapture, Stream};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyTuple};

use crate::core::errors::OrRaise;
use crate::core::memory::buffer::PyBuffer;
use crate::core::numbers;
use crate::core::view::PyView;
use crate::cpython;
use crate::cpython::Obj;

/// The name of capsules of version 0.
pub const NAME: &CStr = c"dltensor";
/// The name of capsules of version 1.
pub const NAME_VERSIONED: &CStr = c"dltensor_versioned";

/// Whose memory an export is; it stays for as long as the export lives.
enum Owner {
    /// A buffer with a pin.
    Buffer(Py<PyBuffer>),
    /// A view, which keeps what it views.
    View(Py<PyView>),
}

/// One export: the structure that the consumer gets, and what it points to.
struct Export<M> {
    managed: M,
    shape: i64,
    stride: i64,
    owner: Owner,
}

/// A structure of the consumer's kind around a tensor.
trait Kind: Sized {
    const NAME: &'static CStr;
    fn wrap(tensor: Tensor, readonly: bool) -> Self;
    fn tensor(&mut self) -> &mut Tensor;
    fn set_context(&mut self, context: *mut c_void);
    fn context(&self) -> *mut c_void;
}

impl Kind for ManagedTensor {
    const NAME: &'static CStr = NAME;

    fn wrap(tensor: Tensor, _readonly: bool) -> Self {
        ManagedTensor {
            tensor,
            context: std::ptr::null_mut(),
            deleter: Some(delete::<Self>),
        }
    }
    fn tensor(&mut self) -> &mut Tensor {
        &mut self.tensor
    }
    fn set_context(&mut self, context: *mut c_void) {
        self.context = context;
    }
    fn context(&self) -> *mut c_void {
        self.context
    }
}

impl Kind for ManagedTensorVersioned {
    const NAME: &'static CStr = NAME_VERSIONED;

    fn wrap(tensor: Tensor, readonly: bool) -> Self {
        ManagedTensorVersioned {
            version: VERSION,
            context: std::ptr::null_mut(),
            deleter: Some(delete::<Self>),
            flags: if readonly { READ_ONLY } else { 0 },
            tensor,
        }
    }
    fn tensor(&mut self) -> &mut Tensor {
        &mut self.tensor
    }
    fn set_context(&mut self, context: *mut c_void) {
        self.context = context;
    }
    fn context(&self) -> *mut c_void {
        self.context
    }
}

/// The consumer is done with the export.
///
/// # Safety
///
/// As DLPack has it: called once, with the structure that was exported. Any thread may call it.
unsafe extern "C" fn delete<M: Kind>(managed: *mut M) {
    if managed.is_null() {
        return;
    }
    // SAFETY: an export of ours, which the consumer gives back.
    let export = unsafe { Box::from_raw((*managed).context().cast::<Export<M>>()) };
    // At the end of the process there may be no interpreter to be had: then nothing needs to be released any more.
    let mut export = Some(export);
    let _ = Python::try_attach(|py| {
        if let Some(export) = export.take() {
            release(py, *export);
        }
    });
    std::mem::forget(export);
}

/// Lets an export's owner go, at once: PyO3 would put off giving a `Py` back in a destructor, which Python calls without it.
fn release<M>(py: Python<'_>, export: Export<M>) {
    match export.owner {
        Owner::Buffer(buffer) => {
            let buffer = buffer.into_bound(py);
            buffer.get().unpin(py);
        }
        Owner::View(view) => drop(view.into_bound(py)),
    }
}

/// The destructor of capsules that nobody consumed; a consumer renames them.
unsafe extern "C" fn forget_capsule<M: Kind>(capsule: *mut ffi::PyObject) {
    // SAFETY: Python passes the capsule; a pointer is there under this name as long as nobody took it.
    unsafe {
        // Nobody renamed it if the name is the very text; what was renamed back has another one.
        if !std::ptr::eq(ffi::PyCapsule_GetName(capsule), M::NAME.as_ptr())
            && ffi::PyCapsule_IsValid(capsule, M::NAME.as_ptr()) == 0
        {
            return;
        }
        let managed = ffi::PyCapsule_GetPointer(capsule, M::NAME.as_ptr()).cast::<M>();
        if managed.is_null() {
            return;
        }
        // Capsules with this destructor hold exports of ours, and end attached.
        let export = Box::from_raw((*managed).context().cast::<Export<M>>());
        release(Python::assume_attached(), *export);
    }
}

/// Where a buffer's memory is, as DLPack numbers devices.
///
/// # Errors
///
/// `RuntimeError` where it was closed, `BufferError` where neither host nor device can use it.
pub fn device(buffer: &PyBuffer, py: Python<'_>) -> PyResult<DlDevice> {
    buffer.dl_device(|| find_device(buffer, py))
}

fn find_device(buffer: &PyBuffer, py: Python<'_>) -> PyResult<DlDevice> {
    let (on_device, on_host, managed) = buffer.accessible(py)?;
    let (kind, number) = match (on_device, on_host) {
        (true, false) => {
            let number = buffer.device_number(py)?;
            (DeviceType::CUDA, i32::try_from(number).unwrap_or(0))
        }
        (true, true) if managed => (DeviceType::CUDA_MANAGED, 0),
        (true, true) => (DeviceType::CUDA_HOST, 0),
        (false, true) => (DeviceType::CPU, 0),
        (false, false) => {
            return Err(PyBufferError::new_err(
                "neither the host nor a device can use the memory of this buffer: its memory resource says so",
            ));
        }
    };
    Ok(DlDevice { kind, number })
}

/// An int of 64 bits; `None` for larger ones. `extract` would fetch the exception that -1 may stand for.
#[inline]
pub fn number_of(number: &Bound<'_, PyInt>) -> Option<i64> {
    // SAFETY: a live object, which the caller holds.
    cpython::as_i64_if_fits(unsafe { Obj::new(number.as_ptr()) })
}

/// The numbers of a tuple of two.
#[inline]
pub fn two(pair: &Bound<'_, PyTuple>) -> Option<(i64, i64)> {
    // SAFETY: a live tuple, of which only places that it has are read, and those of ints.
    unsafe {
        if ffi::PyTuple_Size(pair.as_ptr()) != 2 {
            return None;
        }
        let number = |place| {
            let item = ffi::PyTuple_GetItem(pair.as_ptr(), place);
            if ffi::PyLong_Check(item) == 0 {
                return None;
            }
            cpython::as_i64_if_fits(Obj::new(item))
        };
        Some((number(0)?, number(1)?))
    }
}

/// What a consumer asked `__dlpack__` for.
pub struct Request<'a, 'py> {
    /// `Buffer` or `StridedMemoryView`.
    pub class: &'static str,
    /// The arguments of `__dlpack__`.
    pub stream: Option<&'a Bound<'py, PyAny>>,
    /// See there.
    pub max_version: Option<&'a Bound<'py, PyAny>>,
    /// See there.
    pub dl_device: Option<&'a Bound<'py, PyAny>>,
    /// See there.
    pub copy: Option<&'a Bound<'py, PyAny>>,
}

impl Request<'_, '_> {
    /// Whether a versioned capsule is wanted, and on which stream the consumer is; -1 for one that waits for nothing.
    ///
    /// # Errors
    ///
    /// `BufferError` for what cannot be exported as asked, `TypeError` for arguments of the wrong type.
    fn check(&self, here: DlDevice) -> PyResult<(bool, i64)> {
        let class = self.class;
        if let Some(wanted) = self.dl_device {
            let Ok(pair) = wanted.cast::<PyTuple>() else {
                return Err(PyTypeError::new_err(format!(
                    "{class}.__dlpack__() argument 'dl_device' is of type {}; expected a tuple of two ints or None",
                    wanted.get_type().name()?
                )));
            };
            if two(pair) != Some((here.kind.0.into(), here.number.into())) {
                return Err(PyBufferError::new_err(format!(
                    "{class}.__dlpack__() argument 'dl_device' is {}; the memory is on ({}, {}) and is not moved",
                    numbers::shown(wanted),
                    here.kind.0,
                    here.number
                )));
            }
        }
        if let Some(copy) = self.copy
            && copy.cast::<PyBool>().is_err()
        {
            return Err(PyTypeError::new_err(format!(
                "{class}.__dlpack__() argument 'copy' is of type {}; expected a bool or None",
                copy.get_type().name()?
            )));
        }
        if self.copy.map_or(Ok(false), Bound::is_truthy)? {
            return Err(PyBufferError::new_err(format!(
                "{class}.__dlpack__() argument 'copy' is true; a {class} exports its memory and makes no copies"
            )));
        }
        let versioned = match self.max_version {
            None => false,
            Some(given) => {
                let Ok(pair) = given.cast::<PyTuple>() else {
                    return Err(PyTypeError::new_err(format!(
                        "{class}.__dlpack__() argument 'max_version' is of type {}; expected a tuple of two ints or None",
                        given.get_type().name()?
                    )));
                };
                let Some((major, _)) = two(pair) else {
                    return Err(PyBufferError::new_err(format!(
                        "{class}.__dlpack__() argument 'max_version' is {}; expected (major, minor)",
                        numbers::shown(given)
                    )));
                };
                major >= 1
            }
        };
        let stream = match self.stream {
            // Without a stream a consumer is on the legacy default stream (Python array API, `__dlpack__`).
            None => 1,
            Some(given) => {
                let number = given.cast::<PyInt>().ok().and_then(number_of);
                let Some(number) = number.filter(|&n| n >= -1) else {
                    return Err(PyTypeError::new_err(format!(
                        "{class}.__dlpack__() argument 'stream' is {}; expected the address of a stream, 1 or 2 for the \
                         default streams, -1 for no waiting, or None",
                        numbers::shown(given)
                    )));
                };
                number
            }
        };
        Ok((versioned, stream))
    }
}

/// A capsule of the whole buffer; see `Buffer.__dlpack__`.
///
/// # Errors
///
/// `BufferError` for what cannot be exported as asked, `TypeError` for arguments of the wrong type.
pub fn export<'py>(
    buffer: &Bound<'py, PyBuffer>,
    request: &Request<'_, 'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = buffer.py();
    let here = device(buffer.get(), py)?;
    let (versioned, stream) = request.check(here)?;
    order(buffer.get(), py, stream, here.kind)?;
    if versioned {
        capsule(py, of_buffer::<ManagedTensorVersioned>(buffer, here)?)
    } else {
        capsule(py, of_buffer::<ManagedTensor>(buffer, here)?)
    }
}

/// A capsule of a view; see `StridedMemoryView.__dlpack__`.
///
/// # Errors
///
/// As [`export`]; `BufferError` for elements that DLPack has no type for.
pub fn export_view<'py>(
    view: &Bound<'py, PyView>,
    request: &Request<'_, 'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = view.py();
    let here = view.get().device();
    let (versioned, stream) = request.check(here)?;
    if let Some(buffer) = view.get().buffer(py) {
        order(buffer.get(), py, stream, here.kind)?;
    }
    let tensor = describe(view)?;
    if versioned {
        capsule(py, of_view::<ManagedTensorVersioned>(view, tensor))
    } else {
        capsule(py, of_view::<ManagedTensor>(view, tensor))
    }
}

/// An export of a view for C, with nothing waited for.
///
/// # Errors
///
/// `BufferError` for elements that DLPack has no type for.
pub fn managed(view: &Bound<'_, PyView>) -> PyResult<*mut ManagedTensorVersioned> {
    Ok(of_view(view, describe(view)?))
}

/// The view as a tensor, whose numbers live as long as the view.
///
/// # Errors
///
/// As [`managed`].
pub fn describe(view: &Bound<'_, PyView>) -> PyResult<Tensor> {
    let py = view.py();
    let view = view.get();
    let layout = view.layout();
    Ok(Tensor {
        data: std::ptr::with_exposed_provenance_mut(view.address() as usize),
        device: view.device(),
        // At most 64.
        ndim: layout.ndim() as i32,
        dtype: view.data_type(py)?,
        // Consumers only read them.
        shape: layout.shape().as_ptr().cast_mut(),
        strides: layout.strides().as_ptr().cast_mut(),
        byte_offset: 0,
    })
}

/// Makes the consumer's stream wait for the work that is known to use the memory; -1 is none.
///
/// # Errors
///
/// What the driver says.
pub fn order(buffer: &PyBuffer, py: Python<'_>, handle: i64, kind: DeviceType) -> PyResult<()> {
    if handle == -1 || kind != DeviceType::CUDA {
        return Ok(());
    }
    let Some((device, streams)) = buffer.streams(py) else {
        return Ok(());
    };
    let handle = usize::try_from(handle.max(1)).unwrap_or(1);
    // SAFETY: the consumer says that it is a stream of its own.
    let consumer = unsafe { Stream::from_handle(std::ptr::with_exposed_provenance_mut(handle)) };
    // The last reference to one of them may go here, which destroys it: detached, too.
    let waited = py.detach(move || wait_for_all(device, &consumer, streams));
    waited.or_raise(py)
}

fn wait_for_all(
    device: Device,
    consumer: &Stream,
    mut streams: Vec<Stream>,
) -> cupyrite::Result<()> {
    streams.retain(|stream| stream != consumer);
    if streams.is_empty() {
        return Ok(());
    }
    let relaxed = RelaxedCapture::enter();
    // Asking costs less than an event. A stream that is being captured must not be asked, nor a default one while any is.
    let is_idle = |stream: &Stream| {
        !stream.is_default()
            && matches!(cupyrite::is_capturing(stream), Ok(false))
            && matches!(stream.is_done(), Ok(true))
    };
    streams.retain(|stream| !is_idle(stream));
    drop(relaxed);
    if streams.is_empty() {
        return Ok(());
    }
    let _entered = device.enter()?;
    cupyrite::wait_for_streams(consumer, &streams)
}

/// Puts an export on the heap, where it lives until its deleter is called.
fn publish<M: Kind>(export: Export<M>) -> *mut M {
    let export = Box::into_raw(Box::new(export));
    // SAFETY: fresh and nobody else's yet.
    unsafe {
        (*export).managed.set_context(export.cast());
        &raw mut (*export).managed
    }
}

fn of_view<M: Kind>(view: &Bound<'_, PyView>, tensor: Tensor) -> *mut M {
    publish(Export {
        managed: M::wrap(tensor, view.get().is_readonly()),
        shape: 0,
        stride: 0,
        owner: Owner::View(view.clone().unbind()),
    })
}

/// The bytes of a buffer as DLPack counts them.
///
/// # Errors
///
/// `BufferError` for more than it can count.
pub fn extent(bytes: usize) -> PyResult<i64> {
    i64::try_from(bytes).map_err(|_| {
        PyBufferError::new_err(format!(
            "this Buffer has {bytes} bytes; DLPack counts to 2**63 - 1"
        ))
    })
}

fn of_buffer<M: Kind>(buffer: &Bound<'_, PyBuffer>, here: DlDevice) -> PyResult<*mut M> {
    let pinned = buffer.get().pin(buffer.py())?;
    let tensor = Tensor {
        data: std::ptr::with_exposed_provenance_mut(pinned.address as usize),
        device: here,
        ndim: 1,
        dtype: DataType::new(DataType::INT, 8),
        shape: std::ptr::null_mut(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    };
    let shape = extent(pinned.size)?;
    // The export undoes the pin.
    std::mem::forget(pinned);
    let managed = publish(Export {
        managed: M::wrap(tensor, false),
        shape,
        stride: 1,
        owner: Owner::Buffer(buffer.clone().unbind()),
    });
    // SAFETY: made just now, and it stays where it is.
    unsafe {
        let export = (*managed).context().cast::<Export<M>>();
        let (shape, stride) = (&raw mut (*export).shape, &raw mut (*export).stride);
        let tensor = (*managed).tensor();
        tensor.shape = shape;
        tensor.strides = stride;
    }
    Ok(managed)
}

fn capsule<M: Kind>(py: Python<'_>, managed: *mut M) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: the export lives until its deleter is called, by the consumer or by the capsule's destructor.
    unsafe {
        let capsule =
            ffi::PyCapsule_New(managed.cast(), M::NAME.as_ptr(), Some(forget_capsule::<M>));
        if capsule.is_null() {
            let error = PyErr::fetch(py);
            delete::<M>(managed);
            return Err(error);
        }
        Ok(Bound::from_owned_ptr(py, capsule))
    }
}
