//! Integers, floating-point numbers, enum values, handles and addresses.

use pyo3::ffi;

use crate::bindings::descriptor::Int;
use crate::bindings::errors;
use crate::bindings::errors::Site;
use crate::cpython::{Obj, Owned, R, Raised};
use crate::types;

/// `obj` as an `int`, by `__int__` or `__index__`. Refuses strings.
pub(super) fn to_int(obj: Obj<'_>, site: Site, wanted: &str) -> R<Owned> {
    let number = if obj.has_slot(ffi::Py_nb_int) {
        // SAFETY: `obj` is live for the call. It has `__int__`, so no text is parsed.
        unsafe { ffi::PyNumber_Long(obj.ptr()) }
    } else if obj.has_slot(ffi::Py_nb_index) {
        // SAFETY: `obj` is live for the call.
        unsafe { ffi::PyNumber_Index(obj.ptr()) }
    } else {
        return Err(errors::wrong_type(site, wanted, obj));
    };
    Owned::take(number)
}

/// An `int` (exact or derived) within `kind`, sign-extended to 64 bits.
#[inline]
pub(super) fn exact(obj: Obj<'_>, kind: Int, site: Site) -> R<u64> {
    let (value, fits) = match kind {
        Int::U64 => (crate::cpython::as_u64(obj), true),
        _ => {
            let v = crate::cpython::as_i64(obj);
            let fits = match kind {
                Int::I8 => i8::try_from(v).is_ok(),
                Int::U8 => u8::try_from(v).is_ok(),
                Int::I16 => i16::try_from(v).is_ok(),
                Int::U16 => u16::try_from(v).is_ok(),
                Int::I32 => i32::try_from(v).is_ok(),
                Int::U32 => u32::try_from(v).is_ok(),
                Int::I64 | Int::U64 => true,
            };
            (v.cast_unsigned(), fits)
        }
    };
    if (value == u64::MAX && crate::cpython::raised()) || !fits {
        crate::cpython::clear();
        return Err(errors::out_of_range(site, kind.c_name(), obj));
    }
    Ok(value)
}

/// An integer of the C type `kind`, sign-extended to 64 bits. Accepts what `int()` accepts except text.
///
/// # Errors
///
/// `TypeError`, `OverflowError`, or what the object's `__int__` raised.
#[inline]
pub fn int(obj: Obj<'_>, kind: Int, site: Site) -> R<u64> {
    if obj.is_exact_int() {
        return exact(obj, kind, site);
    }
    int_slow(obj, kind, site)
}

#[inline(never)]
fn int_slow(obj: Obj<'_>, kind: Int, site: Site) -> R<u64> {
    if obj.is_int() {
        return exact(obj, kind, site);
    }
    let number = to_int(obj, site, "an integer")?;
    exact(number.obj(), kind, site)
}

/// A floating-point number.
///
/// # Errors
///
/// `TypeError`, or what the object's `__float__` raised.
pub fn float(obj: Obj<'_>, site: Site) -> R<f64> {
    if !obj.has_slot(ffi::Py_nb_float) && !obj.has_slot(ffi::Py_nb_index) {
        return Err(errors::wrong_type(site, "a real number", obj));
    }
    // SAFETY: `obj` is live for the call.
    let value = unsafe { ffi::PyFloat_AsDouble(obj.ptr()) };
    if value == -1.0 && crate::cpython::raised() {
        return Err(Raised);
    }
    Ok(value)
}

/// The truth of any object, 0 or 1.
///
/// # Errors
///
/// What the object's `__bool__` raised.
pub fn truth(obj: Obj<'_>) -> R<u64> {
    // SAFETY: `obj` is live for the call.
    match unsafe { ffi::PyObject_IsTrue(obj.ptr()) } {
        -1 => Err(Raised),
        truth => Ok(u64::from(truth != 0)),
    }
}

/// An enum value: a member, or anything that `int()` accepts. 32 bits, signed or unsigned.
///
/// # Errors
///
/// `TypeError`, `OverflowError`, or `ValueError` for text that is not a number.
#[inline]
pub fn enumerator(obj: Obj<'_>, site: Site) -> R<u64> {
    if obj.is_int() {
        let value = crate::cpython::as_i64(obj);
        if (-(1i64 << 31)..1 << 32).contains(&value) && !(value == -1 && crate::cpython::raised()) {
            return Ok(value.cast_unsigned());
        }
        crate::cpython::clear();
        return Err(errors::out_of_range(site, "a C enum", obj));
    }
    if obj.is_none() {
        return Err(errors::not_none(site));
    }
    // Text is parsed because NVIDIA's package applies `int(text)`.
    let number = if obj.is_str() || obj.is_bytes() {
        // SAFETY: `obj` is live for the call.
        Owned::take(unsafe { ffi::PyNumber_Long(obj.ptr()) })?
    } else {
        to_int(obj, site, "an enum member")?
    };
    enumerator(number.obj(), site)
}

/// A handle: an instance of any handle class of this package, an integer, or `None` for 0.
///
/// # Errors
///
/// `TypeError` or `OverflowError`.
#[inline]
pub fn handle(obj: Obj<'_>, kind: Int, site: Site) -> R<u64> {
    if obj.is_exact_int() {
        return exact(obj, kind, site);
    }
    if let Some(value) = types::handle_value(obj) {
        return Ok(value);
    }
    if obj.is_none() {
        return Ok(0);
    }
    handle_slow(obj, kind, site)
}

#[inline(never)]
fn handle_slow(obj: Obj<'_>, kind: Int, site: Site) -> R<u64> {
    if obj.is_int() {
        return exact(obj, kind, site);
    }
    let number = to_int(obj, site, "a handle, an integer or None")?;
    exact(number.obj(), kind, site)
}

/// The address of a handle object's value; `None` for other objects, or if that memory was freed.
pub fn handle_storage(obj: Obj<'_>) -> Option<*mut u8> {
    types::handle_value(obj)?;
    types::handle_address(obj)
}

/// An address or foreign handle (`intptr_t`), sign-extended. Refuses floats: a rounded address is wrong.
///
/// # Errors
///
/// `TypeError`, `OverflowError`, or what the object's `__int__` raised.
#[inline]
pub fn address(obj: Obj<'_>, site: Site) -> R<u64> {
    if obj.is_exact_int() {
        return exact(obj, Int::I64, site);
    }
    address_slow(obj, site)
}

#[inline(never)]
fn address_slow(obj: Obj<'_>, site: Site) -> R<u64> {
    if obj.is_int() {
        return exact(obj, Int::I64, site);
    }
    if let Some(value) = types::handle_value(obj) {
        return Ok(value);
    }
    if obj.has_slot(ffi::Py_nb_float) && !obj.has_slot(ffi::Py_nb_index) {
        return Err(errors::wrong_type(site, "an integer", obj));
    }
    let number = to_int(obj, site, "an integer")?;
    exact(number.obj(), Int::I64, site)
}
