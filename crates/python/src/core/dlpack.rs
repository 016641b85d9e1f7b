//! Export of buffers by DLPack (`dlpack.h`, versions 0 and 1).

use std::ffi::{CStr, c_void};

use cupyrite::{Device, Stream};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyTuple};

use super::buffer::PyBuffer;
use super::errors::OrRaise;

/// `DLDeviceType`: memory of the host.
const CPU: i32 = 1;
/// `DLDeviceType`: memory of a device.
const CUDA: i32 = 2;
/// `DLDeviceType`: page-locked memory of the host.
const CUDA_HOST: i32 = 3;
/// `DLDeviceType`: managed memory.
const CUDA_MANAGED: i32 = 13;

#[repr(C)]
struct DlDevice {
    kind: i32,
    number: i32,
}

#[repr(C)]
struct DlDataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device: DlDevice,
    ndim: i32,
    dtype: DlDataType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// `DLManagedTensor`.
#[repr(C)]
struct Managed {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
struct ManagedVersioned {
    version: [u32; 2],
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedVersioned)>,
    flags: u64,
    tensor: DlTensor,
}

/// The version of `dlpack.h` that the structures above are of; they are the same in all of version 1.
const VERSION: [u32; 2] = [1, 3];

const NAME: &CStr = c"dltensor";
const NAME_VERSIONED: &CStr = c"dltensor_versioned";

/// One export: the structure that the consumer gets, and what it points to.
struct Export<M> {
    managed: M,
    shape: i64,
    stride: i64,
    /// Pinned for as long as the export lives.
    buffer: Option<Py<PyBuffer>>,
}

/// A structure of the consumer's kind around a tensor.
trait Kind: Sized {
    const NAME: &'static CStr;
    fn wrap(tensor: DlTensor) -> Self;
    fn tensor(&mut self) -> &mut DlTensor;
    fn set_context(&mut self, context: *mut c_void);
    fn context(&self) -> *mut c_void;
    fn deleter(&self) -> Option<unsafe extern "C" fn(*mut Self)>;
}

impl Kind for Managed {
    const NAME: &'static CStr = NAME;

    fn wrap(tensor: DlTensor) -> Self {
        Managed {
            tensor,
            context: std::ptr::null_mut(),
            deleter: Some(delete::<Self>),
        }
    }
    fn tensor(&mut self) -> &mut DlTensor {
        &mut self.tensor
    }
    fn set_context(&mut self, context: *mut c_void) {
        self.context = context;
    }
    fn context(&self) -> *mut c_void {
        self.context
    }
    fn deleter(&self) -> Option<unsafe extern "C" fn(*mut Self)> {
        self.deleter
    }
}

impl Kind for ManagedVersioned {
    const NAME: &'static CStr = NAME_VERSIONED;

    fn wrap(tensor: DlTensor) -> Self {
        ManagedVersioned {
            version: VERSION,
            context: std::ptr::null_mut(),
            deleter: Some(delete::<Self>),
            flags: 0,
            tensor,
        }
    }
    fn tensor(&mut self) -> &mut DlTensor {
        &mut self.tensor
    }
    fn set_context(&mut self, context: *mut c_void) {
        self.context = context;
    }
    fn context(&self) -> *mut c_void {
        self.context
    }
    fn deleter(&self) -> Option<unsafe extern "C" fn(*mut Self)> {
        self.deleter
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
        if let Some(mut export) = export.take()
            && let Some(buffer) = export.buffer.take()
        {
            buffer.get().unpin(py);
            buffer.drop_ref(py);
        }
    });
    std::mem::forget(export);
}

/// The destructor of capsules that nobody consumed; a consumer renames them.
unsafe extern "C" fn forget_capsule<M: Kind>(capsule: *mut ffi::PyObject) {
    // SAFETY: Python passes the capsule; a pointer is there under this name as long as nobody took it.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, M::NAME.as_ptr()) == 0 {
            return;
        }
        let managed = ffi::PyCapsule_GetPointer(capsule, M::NAME.as_ptr()).cast::<M>();
        if !managed.is_null()
            && let Some(deleter) = (*managed).deleter()
        {
            deleter(managed);
        }
    }
}

/// Where a buffer's memory is, as DLPack numbers devices.
///
/// # Errors
///
/// `RuntimeError` where it was closed, `BufferError` where neither host nor device can use it.
pub fn device(buffer: &PyBuffer, py: Python<'_>) -> PyResult<(i32, i32)> {
    let (on_device, on_host, managed) = buffer.accessible(py)?;
    match (on_device, on_host) {
        (true, false) => {
            let number = buffer.device_number(py)?;
            Ok((CUDA, i32::try_from(number).unwrap_or(0)))
        }
        (true, true) if managed => Ok((CUDA_MANAGED, 0)),
        (true, true) => Ok((CUDA_HOST, 0)),
        (false, true) => Ok((CPU, 0)),
        (false, false) => Err(PyBufferError::new_err(
            "neither the host nor a device can use the memory of this buffer: its memory resource says so",
        )),
    }
}

/// A capsule of the whole buffer; see `Buffer.__dlpack__`.
///
/// # Errors
///
/// `BufferError` for what cannot be exported as asked, `TypeError` for arguments of the wrong type.
pub fn export<'py>(
    buffer: &Bound<'py, PyBuffer>,
    stream: Option<&Bound<'py, PyAny>>,
    max_version: Option<&Bound<'py, PyAny>>,
    wanted: Option<&Bound<'py, PyAny>>,
    copy: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = buffer.py();
    let here = device(buffer.get(), py)?;
    if let Some(wanted) = wanted
        && !wanted
            .extract::<(i32, i32)>()
            .is_ok_and(|wanted| wanted == here)
    {
        return Err(PyBufferError::new_err(format!(
            "Buffer.__dlpack__() argument 'dl_device' is {}; the memory is on {here:?} and is not moved",
            wanted.repr()?
        )));
    }
    if copy.map_or(Ok(false), Bound::is_truthy)? {
        return Err(PyBufferError::new_err(
            "Buffer.__dlpack__() argument 'copy' is true; a buffer exports its memory and makes no copies",
        ));
    }
    let versioned = match max_version {
        None => false,
        Some(given) => {
            let Ok(pair) = given.cast::<PyTuple>() else {
                return Err(PyTypeError::new_err(format!(
                    "Buffer.__dlpack__() argument 'max_version' is of type {}; expected a tuple of two ints or None",
                    given.get_type().name()?
                )));
            };
            let Ok((major, _)) = pair.extract::<(u32, u32)>() else {
                return Err(PyBufferError::new_err(format!(
                    "Buffer.__dlpack__() argument 'max_version' is {}; expected (major, minor)",
                    given.repr()?
                )));
            };
            major >= 1
        }
    };
    order(buffer.get(), py, stream, here.0)?;
    if versioned {
        capsule::<ManagedVersioned>(buffer, here)
    } else {
        capsule::<Managed>(buffer, here)
    }
}

/// Makes the consumer's stream wait for the work that is known to use the memory.
fn order(
    buffer: &PyBuffer,
    py: Python<'_>,
    stream: Option<&Bound<'_, PyAny>>,
    kind: i32,
) -> PyResult<()> {
    let handle = match stream {
        // Without a stream a consumer is on the legacy default stream (Python array API, `__dlpack__`).
        None => 1,
        Some(given) => {
            let number = given
                .cast::<PyInt>()
                .ok()
                .and_then(|n| n.extract::<i64>().ok());
            let Some(number) = number.filter(|&n| n >= -1) else {
                return Err(PyTypeError::new_err(format!(
                    "Buffer.__dlpack__() argument 'stream' is {}; expected the address of a stream, 1 or 2 for the default \
                     streams, -1 for no waiting, or None",
                    given.repr()?
                )));
            };
            number
        }
    };
    if handle == -1 || kind != CUDA {
        return Ok(());
    }
    let Some((device, streams)) = buffer.streams() else {
        return Ok(());
    };
    let handle = usize::try_from(handle.max(1)).unwrap_or(1);
    // SAFETY: the consumer says that it is a stream of its own.
    let consumer = unsafe { Stream::from_handle(std::ptr::with_exposed_provenance_mut(handle)) };
    // The last reference to one of them may go here, which destroys it: detached, too.
    let waited = py.detach(move || wait_for_all(device, &consumer, streams));
    waited.or_raise(py)
}

fn wait_for_all(device: Device, consumer: &Stream, streams: Vec<Stream>) -> cupyrite::Result<()> {
    if streams.iter().all(|s| s.handle() == consumer.handle()) {
        return Ok(());
    }
    let _entered = device.enter()?;
    cupyrite::wait_for_streams(consumer, &streams)
}

fn capsule<'py, M: Kind>(
    buffer: &Bound<'py, PyBuffer>,
    (kind, number): (i32, i32),
) -> PyResult<Bound<'py, PyAny>> {
    let py = buffer.py();
    let pinned = buffer.get().pin(py)?;
    let mut export = Box::new(Export {
        managed: M::wrap(DlTensor {
            data: std::ptr::with_exposed_provenance_mut(pinned.address as usize),
            device: DlDevice { kind, number },
            ndim: 1,
            // 8-bit signed integers.
            dtype: DlDataType {
                code: 0,
                bits: 8,
                lanes: 1,
            },
            shape: std::ptr::null_mut(),
            strides: std::ptr::null_mut(),
            byte_offset: 0,
        }),
        shape: i64::try_from(pinned.size).unwrap_or(i64::MAX),
        stride: 1,
        buffer: None,
    });
    let (shape, stride) = (&raw mut export.shape, &raw mut export.stride);
    let tensor = export.managed.tensor();
    tensor.shape = shape;
    tensor.strides = stride;
    // The export undoes the pin.
    std::mem::forget(pinned);
    export.buffer = Some(buffer.clone().unbind());
    let export = Box::into_raw(export);
    // SAFETY: the export lives until its deleter is called, by the consumer or by the capsule's destructor.
    unsafe {
        (*export).managed.set_context(export.cast());
        let managed = &raw mut (*export).managed;
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
