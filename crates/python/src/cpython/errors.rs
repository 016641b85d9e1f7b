//! Raises exceptions and catches panics before they reach C.

use std::ffi::{CString, c_int};
use std::panic::AssertUnwindSafe;

use pyo3::ffi;

use crate::cpython::{Obj, Owned, R, Raised};

/// A built-in exception class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ExceptionKind {
    Type,
    Value,
    Overflow,
    Attribute,
    Index,
    Runtime,
    Memory,
    System,
}

impl ExceptionKind {
    /// The class, borrowed and immortal.
    pub fn class(self) -> *mut ffi::PyObject {
        // SAFETY: the interpreter sets these pointers at initialisation and does not change them.
        unsafe {
            match self {
                ExceptionKind::Type => ffi::PyExc_TypeError,
                ExceptionKind::Value => ffi::PyExc_ValueError,
                ExceptionKind::Overflow => ffi::PyExc_OverflowError,
                ExceptionKind::Attribute => ffi::PyExc_AttributeError,
                ExceptionKind::Index => ffi::PyExc_IndexError,
                ExceptionKind::Runtime => ffi::PyExc_RuntimeError,
                ExceptionKind::Memory => ffi::PyExc_MemoryError,
                ExceptionKind::System => ffi::PyExc_SystemError,
            }
        }
    }
}

/// Sets an exception. NUL characters in the message are escaped.
pub fn raise(kind: ExceptionKind, message: &str) -> Raised {
    // SAFETY: built-in exception classes are immortal; callers run on an attached thread.
    unsafe { raise_class(kind.class(), message) }
}

/// Sets an exception of any class. NUL characters in the message are escaped.
///
/// # Safety
///
/// `class` is a live exception class; the thread is attached.
pub unsafe fn raise_class(class: *mut ffi::PyObject, message: &str) -> Raised {
    let message = CString::new(message.replace('\0', "\\0")).unwrap_or_default();
    // SAFETY: the caller guarantees a live exception class and an attached thread; `CString` is NUL-terminated.
    unsafe { ffi::PyErr_SetString(class, message.as_ptr()) };
    Raised
}

/// Runs `f` and returns its result to C: null for an exception. A panic raises `SystemError`.
pub fn guard(f: impl FnOnce() -> R<Owned>) -> *mut ffi::PyObject {
    guard_inline(f)
}

/// [`guard`], inlined into its caller.
#[inline(always)]
pub fn guard_inline(f: impl FnOnce() -> R<Owned>) -> *mut ffi::PyObject {
    guard_or(std::ptr::null_mut(), || match f() {
        Ok(value) => value.into_ptr(),
        Err(Raised) => std::ptr::null_mut(),
    })
}

/// Runs `f` and returns its result to C: 0, or -1 for an exception. A panic raises `SystemError`.
#[inline(always)]
pub fn guard_status(f: impl FnOnce() -> R<()>) -> c_int {
    guard_or(-1, || match f() {
        Ok(()) => 0,
        Err(Raised) => -1,
    })
}

/// Runs `f`. A panic raises `SystemError` and returns `failed`.
#[inline(always)]
pub fn guard_or<T>(failed: T, f: impl FnOnce() -> T) -> T {
    match std::panic::catch_unwind(AssertUnwindSafe(f)) {
        Ok(value) => value,
        Err(payload) => {
            raise_panic(payload);
            failed
        }
    }
}

#[cold]
#[inline(never)]
fn raise_panic(payload: Box<dyn std::any::Any + Send>) {
    let what = payload
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    raise(
        ExceptionKind::System,
        &format!("internal error of Cupyrite, please report it: {what}"),
    );
}

/// Prepends `prefix` to the message of the current exception and keeps its type. Changes only `TypeError`, `ValueError`
/// and `OverflowError`.
pub fn prefix(prefix: &str) {
    // SAFETY: callers run on an attached thread; the fetched references are restored or released.
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
                    Obj::new(value).display()
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
