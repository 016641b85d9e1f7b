//! Device memory of other libraries as kernel arguments: CUDA array interface and DLPack.
//!
//! See <https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html> and
//! <https://dmlc.github.io/dlpack/latest/python_spec.html>.

use std::ffi::{CStr, c_void};

use cupyrite::Stream;
use cupyrite::dlpack::{DeviceType, ManagedTensor};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::bindings::call::convert::Objects;
use crate::bindings::errors;
use crate::bindings::errors::ExceptionKind;
use crate::core::errors::to_python;
use crate::core::launch::parameter::full_name;
use crate::cpython;
use crate::cpython::{Obj, Owned, R, Raised};

/// Address of the first element of a device array; `None` for other objects.
///
/// If the array names the stream that last wrote it, `stream` waits for that stream. Objects that must outlive the
/// launch are added to `keep`.
///
/// # Errors
///
/// `TypeError` for an array in memory that kernels cannot access, `ValueError` for a protocol violation; errors of the
/// array's methods and of the driver. `name` begins the message.
pub fn address(
    value: Obj<'_>,
    stream: Option<&Stream>,
    name: impl Fn() -> String,
    keep: &mut Objects,
) -> R<Option<u64>> {
    // A class has its instances' attributes, but is not an array.
    // SAFETY: the object is live.
    if unsafe { ffi::PyType_Check(value.ptr()) } != 0 {
        return Ok(None);
    }
    if let Some(interface) = value.attribute(c"__cuda_array_interface__")? {
        return cuda_array(value, &interface, stream, &name).map(Some);
    }
    let Some(device) = value.attribute(c"__dlpack_device__")? else {
        return Ok(None);
    };
    dlpack(value, &device, stream, &name, keep).map(Some)
}

/// Error for a violation of an array protocol.
#[cold]
fn broken(value: Obj<'_>, name: &impl Fn() -> String, problem: &str) -> Raised {
    let message = format!("{} has the type {}, {problem}", name(), full_name(value));
    errors::raise(ExceptionKind::Value, &message)
}

fn item(dict: &Owned, key: &CStr) -> Option<Obj<'static>> {
    // SAFETY: the object is live. The borrowed item lives as long as the dictionary is unchanged; callers use it before
    // running other code. Objects other than dictionaries yield null.
    unsafe {
        let found = ffi::PyDict_GetItemString(dict.ptr(), key.as_ptr());
        (!found.is_null() && found != ffi::Py_None()).then(|| Obj::new(found))
    }
}

fn cuda_array(
    value: Obj<'_>,
    interface: &Owned,
    stream: Option<&Stream>,
    name: &impl Fn() -> String,
) -> R<u64> {
    const WHAT: &str = "whose __cuda_array_interface__";
    let say = |problem: &str| broken(value, name, &format!("{WHAT} {problem}"));
    // SAFETY: the object is live.
    if unsafe { ffi::PyDict_Check(interface.ptr()) } == 0 {
        return Err(say("is not a dict"));
    }
    if item(interface, c"mask").is_some() {
        return Err(say("has a mask, which kernels do not support"));
    }
    let first = item(interface, c"data")
        .filter(|data| data.is_tuple())
        // SAFETY: a tuple, which owns its items; null with an exception (cleared below) if it is empty.
        .map(|data| unsafe { ffi::PyTuple_GetItem(data.ptr(), 0) })
        .filter(|first| !first.is_null());
    let Some(first) = first else {
        cpython::clear();
        return Err(say("has no 'data' of the form (address, readonly)"));
    };
    // SAFETY: an item of a live tuple, which the dictionary owns.
    let first = unsafe { Obj::new(first) };
    let address = if first.is_none() {
        0
    } else {
        word(first).ok_or_else(|| say("has an address that is not a 64-bit int"))?
    };
    if let Some(given) = item(interface, c"stream") {
        let Some(producer) = word(given) else {
            return Err(say("has a 'stream' that is not a stream handle"));
        };
        if producer == 0 {
            return Err(say(
                "has stream 0, which is ambiguous: 1 is the legacy default stream, 2 the per-thread default stream",
            ));
        }
        if let Some(stream) = stream {
            order(producer, stream)?;
        }
    }
    Ok(address)
}

/// Value of an unsigned 64-bit int; `None`, without an exception, for other objects.
fn word(value: Obj<'_>) -> Option<u64> {
    if !value.is_int() {
        return None;
    }
    // SAFETY: the object is an int.
    let word = unsafe { ffi::PyLong_AsUnsignedLongLong(value.ptr()) };
    if word == u64::MAX && cpython::raised() {
        cpython::clear();
        return None;
    }
    Some(word)
}

/// Makes `stream` wait for the current work of the stream with handle `producer`.
fn order(producer: u64, stream: &Stream) -> R<()> {
    if same(producer, stream) {
        return Ok(());
    }
    let handle = std::ptr::with_exposed_provenance_mut::<c_void>(producer as usize);
    // SAFETY: the array's owner guarantees a stream that lives as long as the array.
    let producer = unsafe { Stream::from_handle(handle.cast()) };
    // SAFETY: arguments are converted on attached threads only.
    let py = unsafe { Python::assume_attached() };
    py.detach(|| stream.wait_for_stream(&producer))
        .map_err(|error| cpython::set(to_python(py, &error)))
}

/// Whether a handle denotes this stream. The legacy default stream has two handles.
fn same(producer: u64, stream: &Stream) -> bool {
    let ours = stream.handle().expose_provenance() as u64;
    producer == ours || (producer == 1 && ours == 0)
}

fn dlpack(
    value: Obj<'_>,
    device: &Owned,
    stream: Option<&Stream>,
    name: &impl Fn() -> String,
    keep: &mut Objects,
) -> R<u64> {
    let found = device.obj().call0()?;
    let pair = found.obj().snapshot()?;
    if pair.len() != 2 || !pair.get(0).is_int() {
        return Err(broken(
            value,
            name,
            "whose __dlpack_device__() did not return a pair of ints",
        ));
    }
    // SAFETY: the object is an int; out of range yields -1, which is not a device type, and an exception.
    let number = unsafe { ffi::PyLong_AsLongLong(pair.get(0).ptr()) };
    cpython::clear();
    let device_type = DeviceType(i32::try_from(number).unwrap_or(-1));
    if !device_type.is_device_accessible() {
        let location = match device_type {
            DeviceType::CPU => "host memory".to_owned(),
            _ => format!("memory of DLPack device type {number}"),
        };
        let message = format!(
            "{} is of type {} in {location}, which kernels cannot access; copy it to the device first \
             (Buffer.copy_from)",
            name(),
            full_name(value)
        );
        return Err(errors::raise(ExceptionKind::Type, &message));
    }
    let Some(method) = value.attribute(c"__dlpack__")? else {
        return Err(broken(value, name, "which has no __dlpack__"));
    };
    let capsule = export(&method, device_type, stream)?;
    let managed: *mut ManagedTensor =
        // SAFETY: by the protocol, a capsule of this name holds a DLManagedTensor; other objects yield null.
        unsafe { ffi::PyCapsule_GetPointer(capsule.ptr(), c"dltensor".as_ptr()) }.cast();
    if managed.is_null() {
        cpython::clear();
        return Err(broken(
            value,
            name,
            "whose __dlpack__() did not return a capsule named 'dltensor'",
        ));
    }
    // SAFETY: as above; the capsule owns the tensor.
    let tensor = unsafe { &(*managed).tensor };
    let address = (tensor.data.addr() as u64).wrapping_add(tensor.byte_offset);
    // Not consumed: the capsule's destructor deletes the tensor after the kernel was queued.
    keep.push(capsule);
    Ok(address)
}

/// Calls `__dlpack__` with the launch's stream, which then waits for the producer.
fn export(method: &Owned, device_type: DeviceType, stream: Option<&Stream>) -> R<Owned> {
    // SAFETY: no preconditions.
    let none = Owned::take(unsafe { ffi::PyTuple_New(0) })?;
    if device_type == DeviceType::CUDA_HOST {
        return method.obj().call0();
    }
    let number = match stream {
        None => -1, // No synchronization: the caller orders the work.
        Some(stream) => match stream.handle().expose_provenance() {
            0 => 1, // DLPack's number of the legacy default stream.
            handle => handle.cast_signed() as i64,
        },
    };
    // SAFETY: new and live objects; the dictionary takes its own references.
    unsafe {
        let keywords = Owned::take(ffi::PyDict_New())?;
        let number = cpython::from_i64(number)?;
        if ffi::PyDict_SetItemString(keywords.ptr(), c"stream".as_ptr(), number.ptr()) != 0 {
            return Err(Raised);
        }
        Owned::take(ffi::PyObject_Call(method.ptr(), none.ptr(), keywords.ptr()))
    }
}
