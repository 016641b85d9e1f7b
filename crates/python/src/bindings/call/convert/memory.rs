//! Memory that C reads or writes: pointers, buffers, objects with `getPtr()`.

use pyo3::ffi;

use super::keep::Keep;
use super::numbers::{address, exact, int, to_int};
use crate::bindings::call::memory_checks;
use crate::bindings::descriptor::Int;
use crate::bindings::errors;
use crate::bindings::errors::{ExceptionKind, Site};
use crate::cpython::{Buffer, Obj, R, Raised};
use crate::types;

/// Memory that C writes into: its address and size in bytes. `bytes` objects are written in place, as programs written
/// for NVIDIA's package expect.
///
/// # Errors
///
/// `TypeError`, or the exception with which the object refused to export its buffer.
pub fn bytes_out(obj: Obj<'_>, site: Site, keep: &mut Keep) -> R<(u64, usize)> {
    if obj.is_bytes() {
        let (data, len) = obj.bytes_data();
        if len <= 1 {
            // The interpreter shares these objects: a write would change every use of them. C gets scratch memory.
            return Ok((keep.array(8)?.addr() as u64, len));
        }
        return Ok((data.addr() as u64, len));
    }
    // Read-only buffers are refused: NumPy's True is one object for the whole process, and the pages of a mapped file may
    // not be writable.
    if !obj.is_str()
        && let Some(view) = Buffer::get(obj)?
        && !view.is_readonly()
    {
        let found = (view.address(), view.len());
        keep.buffers.push(view);
        return Ok(found);
    }
    let wanted = "bytes, a bytearray or another writable buffer";
    Err(errors::wrong_type(site, wanted, obj))
}

/// A `void *`: `None`, an integer, a handle (its value), a struct (its address), a buffer (its address), or an object
/// with `getPtr()`. Structs and buffers also return their size in bytes.
///
/// # Errors
///
/// `TypeError`, `OverflowError`, or the buffer is not contiguous.
pub fn void_ptr(obj: Obj<'_>, site: Site, keep: &mut Keep) -> R<(u64, Option<usize>)> {
    void_ptr_or(obj, site, keep, no_pointer)
}

/// As [`void_ptr`]; `refuse` makes the exception for an object of another type.
///
/// # Errors
///
/// As [`void_ptr`], and that of `refuse`.
pub fn void_ptr_or(
    obj: Obj<'_>,
    site: Site,
    keep: &mut Keep,
    refuse: fn(Obj<'_>, Site) -> Raised,
) -> R<(u64, Option<usize>)> {
    if obj.is_none() {
        return Ok((0, None));
    }
    if obj.is_int() {
        return exact(obj, Int::U64, site).map(|v| (v, None));
    }
    if let Some(value) = types::handle_value(obj) {
        return Ok((value, None));
    }
    if let Some(address) = types::any_struct_ptr(obj) {
        return Ok((address.addr() as u64, Some(types::any_struct_size(obj))));
    }
    let number = obj.has_slot(ffi::Py_nb_int);
    // A float is not an address: the driver would crash.
    if obj.has_slot(ffi::Py_nb_float) && !obj.has_slot(ffi::Py_nb_index) {
        return Err(refuse(obj, site));
    }
    if let Some(view) = Buffer::get(obj)? {
        // NumPy scalars are both numbers and buffers; they are converted by value.
        if !(number && view.ndim() == 0) {
            let found = (view.address(), Some(view.len()));
            keep.buffers.push(view);
            return Ok(found);
        }
    }
    if number || obj.has_slot(ffi::Py_nb_index) {
        let value = to_int(obj, site, "an integer")?;
        return exact(value.obj(), Int::U64, site).map(|v| (v, None));
    }
    if let Some(address) = get_ptr(obj, site)? {
        return Ok((address, None));
    }
    Err(refuse(obj, site))
}

/// The `TypeError` for an object that is no pointer.
#[cold]
pub fn no_pointer(obj: Obj<'_>, site: Site) -> Raised {
    let wanted = "None, an integer, an object with the buffer protocol or with getPtr()";
    errors::wrong_type(site, wanted, obj)
}

/// The `ValueError` of the functions that raise for an object that is neither an address nor a buffer.
#[cold]
pub fn no_buffer(obj: Obj<'_>, site: Site) -> Raised {
    not_a_buffer(obj, site, "a contiguous buffer")
}

/// Memory that C reads: `None` for null, an address, or a buffer of exactly `size` bytes.
///
/// # Errors
///
/// `ValueError` (also for wrong types, as in NVIDIA's package), or `OverflowError` for an address out of range.
pub fn buffer_in(obj: Obj<'_>, size: Option<(u64, &str)>, site: Site, keep: &mut Keep) -> R<u64> {
    if obj.is_none() {
        return Ok(0);
    }
    if obj.is_int() {
        let at = address(obj, site)?;
        memory_checks::check_memory(at, size.map_or(1, |(size, _)| size), site)?;
        return Ok(at);
    }
    let Some(view) = contiguous(obj, site, "a contiguous buffer")? else {
        return Err(not_a_buffer(obj, site, "a contiguous buffer"));
    };
    if let Some((size, name)) = size
        && view.len() as u64 != size
    {
        let message = format!(
            "{}: the buffer has {} bytes, but {name} is {size}",
            site.prefix(),
            view.len()
        );
        return Err(errors::raise(ExceptionKind::Value, &message));
    }
    let at = view.address();
    keep.buffers.push(view);
    Ok(at)
}

/// Memory that C writes: `None` for null, an address, or a writable buffer; and its size in bytes, if known.
///
/// # Errors
///
/// As [`buffer_in`].
pub fn buffer_out(obj: Obj<'_>, site: Site, keep: &mut Keep) -> R<(u64, Option<usize>)> {
    const WANTED: &str = "a contiguous writable buffer (a bytearray, a NumPy array, ...)";
    if obj.is_none() {
        return Ok((0, None));
    }
    if obj.is_int() {
        return address(obj, site).map(|at| (at, None));
    }
    match contiguous(obj, site, WANTED)? {
        Some(view) if !view.is_readonly() => {
            let found = (view.address(), Some(view.len()));
            keep.buffers.push(view);
            Ok(found)
        }
        _ => Err(not_a_buffer(obj, site, WANTED)),
    }
}

/// An object's buffer; `None` (and no exception) if it does not support the buffer protocol.
pub(super) fn contiguous(obj: Obj<'_>, site: Site, wanted: &str) -> R<Option<Buffer>> {
    match Buffer::get(obj) {
        Ok(view) => Ok(view),
        Err(Raised) => {
            // SAFETY: `Buffer::get` has set an exception; the class is immortal.
            if unsafe { ffi::PyErr_ExceptionMatches(ffi::PyExc_BufferError) } == 0 {
                return Err(Raised);
            }
            crate::cpython::clear();
            Err(not_a_buffer(obj, site, wanted))
        }
    }
}

#[cold]
pub(super) fn not_a_buffer(obj: Obj<'_>, site: Site, wanted: &str) -> Raised {
    let message = format!(
        "{} must be None, an address or {wanted}, not {}",
        site.prefix(),
        obj.type_name()
    );
    errors::raise(ExceptionKind::Value, &message)
}

/// The result of `obj.getPtr()`, if there is such a method.
///
/// # Errors
///
/// The exception that the call raised, or `TypeError` or `OverflowError` if it did not return an address.
pub fn get_ptr(obj: Obj<'_>, site: Site) -> R<Option<u64>> {
    let Some(method) = obj.attribute(c"getPtr")? else {
        return Ok(None);
    };
    let address = method.obj().call0()?;
    int(address.obj(), Int::U64, site).map(Some)
}
