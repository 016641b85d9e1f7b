//! Memory of other packages as kernel arguments: the CUDA array interface and DLPack.
//!
//! See <https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html> and
//! <https://dmlc.github.io/dlpack/latest/python_spec.html>.

use std::ffi::{CStr, c_void};

use cupyrite::Stream;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::bindings::errors;
use crate::bindings::errors::Kind;
use crate::core::errors::to_python;
use crate::core::launch::packing::full_name;
use crate::cpython;
use crate::cpython::{Obj, Owned, R, Raised};

/// The address of the first element of an array on the device; `None` for what is no array.
///
/// Where the array says which stream last wrote it, `stream` waits for that one. `keep` gets what must stay until the
/// kernel is queued.
///
/// # Errors
///
/// `TypeError` for an array in other memory, `ValueError` for one that breaks its protocol's rules; what its methods and
/// the driver raise. `name` begins the message.
pub fn address(
    value: Obj<'_>,
    stream: Option<&Stream>,
    name: impl Fn() -> String,
    keep: &mut Vec<Owned>,
) -> R<Option<u64>> {
    // A class has the attributes of its instances, which is not what is meant.
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

/// What an array's protocol requires is not so.
#[cold]
fn broken(value: Obj<'_>, name: &impl Fn() -> String, problem: &str) -> Raised {
    let message = format!("{} has the type {}, {problem}", name(), full_name(value));
    errors::raise(Kind::Value, &message)
}

fn item(dict: &Owned, key: &CStr) -> Option<Obj<'static>> {
    // SAFETY: the object is live, which makes the borrowed item live as long as the dictionary is unchanged; it is
    // looked at before anything else runs. What is no dictionary gives null.
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
        return Err(say("is no dict"));
    }
    if item(interface, c"mask").is_some() {
        return Err(say("has a mask, which a kernel cannot be given"));
    }
    let first = item(interface, c"data")
        .filter(|data| data.is_tuple())
        // SAFETY: a tuple, which holds its items; null (with an exception, cleared below) where it has none.
        .map(|data| unsafe { ffi::PyTuple_GetItem(data.ptr(), 0) })
        .filter(|first| !first.is_null());
    let Some(first) = first else {
        cpython::clear();
        return Err(say("has no 'data' of the form (address, read-only)"));
    };
    // SAFETY: as above.
    let first = unsafe { Obj::new(first) };
    let address = if first.is_none() {
        0
    } else {
        word(first).ok_or_else(|| say("has an address that is no int of 64 bits"))?
    };
    if let Some(given) = item(interface, c"stream") {
        let Some(producer) = word(given) else {
            return Err(say("has a 'stream' that is no handle"));
        };
        if producer == 0 {
            return Err(say(
                "has the stream 0, which is ambiguous: 1 is the legacy default stream, 2 the per-thread one",
            ));
        }
        if let Some(stream) = stream {
            order(producer, stream)?;
        }
    }
    Ok(address)
}

/// An int of 64 bits without sign; `None` (and no exception) for anything else.
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

/// Makes `stream` wait for what is in the stream with the handle `producer`.
fn order(producer: u64, stream: &Stream) -> R<()> {
    if same(producer, stream) {
        return Ok(());
    }
    let handle = std::ptr::with_exposed_provenance_mut::<c_void>(producer as usize);
    // SAFETY: the array's owner promises that this is a stream of the process, alive while the array is.
    let producer = unsafe { Stream::from_handle(handle.cast()) };
    // SAFETY: called with the interpreter's lock: conversions run on attached threads only.
    let py = unsafe { Python::assume_attached() };
    py.detach(|| stream.wait_for_stream(&producer))
        .map_err(|error| cpython::set(to_python(py, &error)))
}

/// Whether a handle is this stream's. The legacy default stream has two.
fn same(producer: u64, stream: &Stream) -> bool {
    let ours = stream.handle().expose_provenance() as u64;
    producer == ours || (producer == 1 && ours == 0)
}

/// DLPack's device types whose memory a kernel can reach (`DLDeviceType`): a GPU's, pinned host memory, managed memory.
const CUDA: i64 = 2;
const CUDA_HOST: i64 = 3;
const CUDA_MANAGED: i64 = 13;

/// `DLTensor`, up to what is needed of it. `DLManagedTensor` begins with it.
#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

fn dlpack(
    value: Obj<'_>,
    device: &Owned,
    stream: Option<&Stream>,
    name: &impl Fn() -> String,
    keep: &mut Vec<Owned>,
) -> R<u64> {
    let found = device.obj().call0()?;
    let pair = found.obj().snapshot()?;
    if pair.len() != 2 || !pair.get(0).is_int() {
        return Err(broken(
            value,
            name,
            "whose __dlpack_device__() gave no pair of ints",
        ));
    }
    // SAFETY: the object is an int; a number out of range gives -1, which is no device type, and an exception.
    let kind = unsafe { ffi::PyLong_AsLongLong(pair.get(0).ptr()) };
    cpython::clear();
    if ![CUDA, CUDA_HOST, CUDA_MANAGED].contains(&kind) {
        let place = match kind {
            1 => "memory of the host".to_owned(),
            _ => format!("memory of DLPack's device type {kind}"),
        };
        let message = format!(
            "{} is of type {}, in {place}, which a kernel cannot reach; copy it to the device first \
             (Buffer.copy_from)",
            name(),
            full_name(value)
        );
        return Err(errors::raise(Kind::Type, &message));
    }
    let Some(method) = value.attribute(c"__dlpack__")? else {
        return Err(broken(value, name, "which has no __dlpack__"));
    };
    let capsule = export(&method, kind, stream)?;
    let tensor: *mut Tensor =
        // SAFETY: a capsule of this name holds a DLManagedTensor, by the protocol; another object gives null.
        unsafe { ffi::PyCapsule_GetPointer(capsule.ptr(), c"dltensor".as_ptr()) }.cast();
    if tensor.is_null() {
        cpython::clear();
        return Err(broken(
            value,
            name,
            "whose __dlpack__() gave no capsule called 'dltensor'",
        ));
    }
    // SAFETY: as above; the capsule keeps the tensor.
    let address = unsafe { ((*tensor).data.addr() as u64).wrapping_add((*tensor).byte_offset) };
    // Not consumed: the capsule gives the tensor back when it goes, which is when the kernel has been queued.
    keep.push(capsule);
    Ok(address)
}

/// Calls `__dlpack__`, with the stream that is going to use the memory: its owner makes that one wait.
fn export(method: &Owned, kind: i64, stream: Option<&Stream>) -> R<Owned> {
    // SAFETY: no preconditions.
    let none = Owned::take(unsafe { ffi::PyTuple_New(0) })?;
    if kind == CUDA_HOST {
        return method.obj().call0();
    }
    let number = match stream {
        None => -1, // The order is the caller's business.
        Some(stream) => match stream.handle().expose_provenance() {
            0 => 1, // The legacy default stream, by the number that DLPack has for it.
            handle => handle.cast_signed() as i64,
        },
    };
    // SAFETY: fresh and live objects; the dictionary takes references of its own.
    unsafe {
        let keywords = Owned::take(ffi::PyDict_New())?;
        let number = cpython::from_i64(number)?;
        if ffi::PyDict_SetItemString(keywords.ptr(), c"stream".as_ptr(), number.ptr()) != 0 {
            return Err(Raised);
        }
        Owned::take(ffi::PyObject_Call(method.ptr(), none.ptr(), keywords.ptr()))
    }
}
