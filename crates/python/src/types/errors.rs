//! Raising Python exceptions from raw functions.

use pyo3::ffi;

pub use crate::cpython::errors::{ExceptionKind, guard, guard_or, guard_status, raise};

/// Prepends `prefix` to the message of the current exception and keeps its type. Changes only `TypeError`, `ValueError`
/// and `OverflowError`.
pub fn prefix(prefix: &str) {
    // SAFETY: callers hold the GIL; the fetched references are restored or released.
    unsafe {
        let (mut ty, mut value, mut trace) = (
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        );
        ffi::PyErr_Fetch(&mut ty, &mut value, &mut trace);
        if ty.is_null() {
            return;
        }
        for exc in [
            ExceptionKind::Overflow,
            ExceptionKind::Type,
            ExceptionKind::Value,
        ] {
            if ty == exc.class() {
                let text = if value.is_null() {
                    String::new()
                } else {
                    to_string(value)
                };
                ffi::PyErr_Clear();
                ffi::Py_XDECREF(ty);
                ffi::Py_XDECREF(value);
                ffi::Py_XDECREF(trace);
                raise(exc, &format!("{prefix}{text}"));
                return;
            }
        }
        ffi::PyErr_Restore(ty, value, trace);
    }
}

/// `str(obj)`, or `<unprintable>` if that fails.
///
/// # Safety
/// `obj` is a live object and the GIL is held.
pub unsafe fn to_string(obj: *mut ffi::PyObject) -> String {
    // SAFETY: as promised by the caller.
    unsafe {
        let s = ffi::PyObject_Str(obj);
        let out = utf8(s);
        ffi::Py_XDECREF(s);
        out.unwrap_or_else(|| {
            ffi::PyErr_Clear();
            String::from("<unprintable>")
        })
    }
}

/// The contents of a `str` object. None if `s` is null, or with an exception if it has no UTF-8 form.
///
/// # Safety
/// `s` is null or a live object and the GIL is held.
pub unsafe fn utf8(s: *mut ffi::PyObject) -> Option<String> {
    if s.is_null() {
        return None;
    }
    // SAFETY: as promised by the caller; the returned pointer is valid while `s` is live.
    unsafe {
        let mut len = 0;
        let p = ffi::PyUnicode_AsUTF8AndSize(s, &mut len);
        if p.is_null() {
            return None;
        }
        let bytes = std::slice::from_raw_parts(p.cast::<u8>(), len as usize);
        Some(String::from_utf8_lossy(bytes).into_owned())
    }
}

/// Name of an object's type.
///
/// # Safety
/// `obj` is a live object and the GIL is held.
pub unsafe fn type_name(obj: *mut ffi::PyObject) -> String {
    // SAFETY: as promised by the caller.
    unsafe { name_of_type(ffi::Py_TYPE(obj)) }
}

/// Name of a type.
///
/// # Safety
/// `ty` is a live type and the GIL is held.
pub unsafe fn name_of_type(ty: *mut ffi::PyTypeObject) -> String {
    // SAFETY: as promised by the caller.
    unsafe {
        let name = ffi::PyType_GetName(ty);
        let out = utf8(name);
        ffi::Py_XDECREF(name);
        out.unwrap_or_else(|| {
            ffi::PyErr_Clear();
            String::from("?")
        })
    }
}
