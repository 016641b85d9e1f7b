//! Raising Python exceptions from raw functions.

use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::ffi;

/// Which exception.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Exc {
    Type,
    Value,
    Overflow,
    Attribute,
    Index,
    Runtime,
}

impl Exc {
    fn object(self) -> *mut ffi::PyObject {
        // SAFETY: these are constant pointers once the interpreter runs.
        unsafe {
            match self {
                Exc::Type => ffi::PyExc_TypeError,
                Exc::Value => ffi::PyExc_ValueError,
                Exc::Overflow => ffi::PyExc_OverflowError,
                Exc::Attribute => ffi::PyExc_AttributeError,
                Exc::Index => ffi::PyExc_IndexError,
                Exc::Runtime => ffi::PyExc_RuntimeError,
            }
        }
    }
}

/// Sets an exception.
pub fn raise(exc: Exc, message: &str) {
    let text = CString::new(message.replace('\0', "\\0")).unwrap_or_default();
    // SAFETY: called with the GIL held; both pointers are valid.
    unsafe { ffi::PyErr_SetString(exc.object(), text.as_ptr()) };
}

/// Puts `prefix` before the message of the current exception, keeping its type (Type-, Value- and OverflowError only;
/// others pass unchanged).
pub fn prefix(prefix: &str) {
    // SAFETY: GIL held; the fetched references are given back or released.
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
        for exc in [Exc::Overflow, Exc::Type, Exc::Value] {
            if ty == exc.object() {
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

/// `str(obj)`, or a placeholder if that fails.
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

/// The contents of a `str` object; None (with an exception) where it has none.
///
/// # Safety
/// `s` is null or a live object and the GIL is held.
pub unsafe fn utf8(s: *mut ffi::PyObject) -> Option<String> {
    if s.is_null() {
        return None;
    }
    // SAFETY: `s` is live; the pointer returned is valid while it is.
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

/// Runs `f`; a panic becomes a `RuntimeError` and `failed`.
pub fn guard<T>(failed: T, f: impl FnOnce() -> T) -> T {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(value) => value,
        Err(panic) => {
            let text = panic
                .downcast_ref::<&str>()
                .map(|s| s.to_string())
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_default();
            raise(Exc::Runtime, &format!("internal error in cupyrite: {text}"));
            failed
        }
    }
}
