//! Text and images.

use std::ffi::c_char;

use pyo3::ffi;

use super::keep::Keep;
use super::memory::{contiguous, not_a_buffer};
use super::numbers::address;
use crate::bindings::call::memory_checks;
use crate::bindings::errors;
use crate::bindings::errors::{ExceptionKind, Site};
use crate::cpython::{Buffer, Obj, Owned, R, Raised};

/// The address of the text in a `bytes` or `bytearray`.
///
/// # Errors
///
/// `TypeError` for anything else.
pub fn bytes(obj: Obj<'_>, site: Site, keep: &mut Keep) -> R<u64> {
    if obj.is_bytes() {
        return Ok(obj.bytes_data().0.addr() as u64);
    }
    if obj.is_bytearray()
        && let Some(view) = Buffer::get(obj)?
    {
        // A bytearray's memory also ends with a nul; the view prevents resizing during the call.
        let address = view.address();
        keep.buffers.push(view);
        return Ok(address);
    }
    Err(errors::wrong_type(site, "bytes", obj))
}

/// The address of the UTF-8 text of a `str`, valid as long as the object lives.
///
/// # Errors
///
/// `TypeError` for anything else, `UnicodeEncodeError` for lone surrogates, `ValueError` for a nul inside.
pub fn utf8(obj: Obj<'_>, site: Site) -> R<u64> {
    if !obj.is_str() {
        return Err(errors::wrong_type(site, "a str", obj));
    }
    let mut len: ffi::Py_ssize_t = 0;
    // SAFETY: `is_str` was checked above.
    let text = unsafe { ffi::PyUnicode_AsUTF8AndSize(obj.ptr(), &raw mut len) };
    if text.is_null() {
        return Err(Raised);
    }
    // SAFETY: `PyUnicode_AsUTF8AndSize` returned a pointer to `len` bytes.
    let bytes =
        unsafe { std::slice::from_raw_parts(text.cast::<u8>(), len.max(0).cast_unsigned()) };
    no_nul(bytes, site)?;
    Ok(text.addr() as u64)
}

/// Refuses text with a nul, which C would truncate.
pub(super) fn no_nul(bytes: &[u8], site: Site) -> R<()> {
    match bytes.iter().position(|&b| b == 0) {
        None => Ok(()),
        Some(at) => {
            let message = format!(
                "{} has a nul character at position {at}, where C would end it",
                site.prefix()
            );
            Err(errors::raise(ExceptionKind::Value, &message))
        }
    }
}

/// Text or an image that C reads up to a nul: `None` for null, an address, or a buffer. `bytes` end with a nul; C gets a
/// copy of other buffers with a nul at the end.
///
/// # Errors
///
/// `ValueError` (also for wrong types, as in NVIDIA's package, and for an address without readable memory), or
/// `OverflowError` for an address out of range.
pub fn text(obj: Obj<'_>, site: Site, keep: &mut Keep) -> R<u64> {
    const WANTED: &str = "bytes or another contiguous buffer";
    if obj.is_bytes() {
        return Ok(obj.bytes_data().0.addr() as u64);
    }
    if obj.is_none() {
        return Ok(0);
    }
    if obj.is_int() {
        let at = address(obj, site)?;
        memory_checks::check_memory(at, 1, site)?;
        return Ok(at);
    }
    let Some(view) = contiguous(obj, site, WANTED)? else {
        return Err(not_a_buffer(obj, site, WANTED));
    };
    let len = view.len();
    let copy = keep.array(len.checked_add(1).ok_or_else(errors::no_memory)?)?;
    if len > 0 {
        let from = std::ptr::with_exposed_provenance::<u8>(crate::bindings::call::words::address(
            view.address(),
        ));
        // SAFETY: the view has `len` bytes; `copy` has one more, and is zeroed.
        unsafe { std::ptr::copy_nonoverlapping(from, copy, len) };
    }
    Ok(copy.addr() as u64)
}

/// `bytes` from a nul-terminated C string, `None` from null.
///
/// # Safety
///
/// `text` is null or ends with a nul.
///
/// # Errors
///
/// `MemoryError`.
pub unsafe fn c_string(text: *const c_char) -> R<Owned> {
    if text.is_null() {
        return Ok(crate::cpython::none());
    }
    // SAFETY: the caller guarantees that `text` ends with a nul.
    Owned::take(unsafe { ffi::PyBytes_FromString(text) })
}
