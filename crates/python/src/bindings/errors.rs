//! Exceptions. Every message about an argument names the function and the parameter.

use std::ffi::CStr;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::ffi;

use crate::cpython;
use crate::cpython::errors::raise_class;
pub use crate::cpython::errors::{ExceptionKind, raise};
use crate::cpython::{Obj, Owned, R, Raised};

/// The function and parameter that a value was passed to.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// Function (or class) name.
    pub func: &'static str,
    /// Parameter (or attribute) name.
    pub param: &'static str,
}

impl Site {
    /// The prefix of every message.
    pub fn prefix(self) -> String {
        format!("{}() argument '{}'", self.func, self.param)
    }
}

static LIST_TOO_SMALL: AtomicPtr<ffi::PyObject> = AtomicPtr::new(std::ptr::null_mut());

/// The exception class for a sequence shorter than its count (borrowed). Created on first use, never freed.
pub fn list_too_small() -> R<*mut ffi::PyObject> {
    let known = LIST_TOO_SMALL.load(Ordering::Acquire);
    if !known.is_null() {
        return Ok(known);
    }
    // SAFETY: the base classes are immortal; the tuple takes its own references; the texts end with a nul.
    let made = unsafe {
        let bases = Owned::take(ffi::PyTuple_Pack(
            2,
            ffi::PyExc_ValueError,
            ffi::PyExc_RuntimeError,
        ))?;
        Owned::take(ffi::PyErr_NewExceptionWithDoc(
            c"cupyrite._native.ListTooSmallError".as_ptr(),
            c"A sequence has fewer items than the count passed with it.".as_ptr(),
            bases.ptr(),
            std::ptr::null_mut(),
        ))?
    };
    Ok(cpython::publish(&LIST_TOO_SMALL, made))
}

/// Calls `exception.add_note(text)` (Python 3.11 and later). Does nothing if there is no such method.
///
/// # Errors
///
/// `MemoryError`.
pub fn add_note(exception: Obj<'_>, text: &Owned) -> R<()> {
    let Some(method) = exception.attribute(c"add_note")? else {
        return Ok(());
    };
    let null = std::ptr::null_mut::<ffi::PyObject>();
    // SAFETY: `method` and `text` are owned references held here; null terminates the arguments.
    unsafe {
        Owned::take(ffi::PyObject_CallFunctionObjArgs(
            method.ptr(),
            text.ptr(),
            null,
        ))?;
    }
    Ok(())
}

/// Adds a note to the current exception.
pub fn note(text: &str) {
    let mut class = std::ptr::null_mut();
    let mut value = std::ptr::null_mut();
    let mut trace = std::ptr::null_mut();
    // SAFETY: `PyErr_Restore` takes back the references that `PyErr_Fetch` returned; the value is live in between.
    unsafe {
        ffi::PyErr_Fetch(&raw mut class, &raw mut value, &raw mut trace);
        ffi::PyErr_NormalizeException(&raw mut class, &raw mut value, &raw mut trace);
        if !value.is_null()
            && crate::cpython::from_str(text)
                .and_then(|text| add_note(Obj::new(value), &text))
                .is_err()
        {
            // The original exception takes precedence over a failure to add the note.
            crate::cpython::clear();
        }
        ffi::PyErr_Restore(class, value, trace);
    }
}

static FUNCTION_NOT_FOUND: AtomicPtr<ffi::PyObject> = AtomicPtr::new(std::ptr::null_mut());
static NOT_SUPPORTED: AtomicPtr<ffi::PyObject> = AtomicPtr::new(std::ptr::null_mut());

/// Raises [`function_not_found`].
#[cold]
pub fn raise_function_not_found(message: &str) -> Raised {
    match function_not_found() {
        // SAFETY: `runtime_error` never frees the class.
        Ok(class) => unsafe { raise_class(class, message) },
        Err(Raised) => Raised,
    }
}

/// `cuda.bindings._internal.utils.FunctionNotFoundError`: a library lacks a function (borrowed).
///
/// # Errors
///
/// `MemoryError`.
pub fn function_not_found() -> R<*mut ffi::PyObject> {
    runtime_error(
        &FUNCTION_NOT_FOUND,
        c"cuda.bindings._internal.utils.FunctionNotFoundError",
        c"A library lacks a function: it is older than the function.",
    )
}

/// `cuda.bindings._internal.utils.NotSupportedError` (borrowed).
///
/// # Errors
///
/// `MemoryError`.
pub fn not_supported() -> R<*mut ffi::PyObject> {
    runtime_error(
        &NOT_SUPPORTED,
        c"cuda.bindings._internal.utils.NotSupportedError",
        c"Something that this platform has not.",
    )
}

/// A class derived from `RuntimeError` (borrowed). Created on first use, never freed.
fn runtime_error(
    place: &AtomicPtr<ffi::PyObject>,
    name: &CStr,
    doc: &CStr,
) -> R<*mut ffi::PyObject> {
    let known = place.load(Ordering::Acquire);
    if !known.is_null() {
        return Ok(known);
    }
    // SAFETY: the base class is immortal; the texts end with a nul.
    let made = Owned::take(unsafe {
        ffi::PyErr_NewExceptionWithDoc(
            name.as_ptr(),
            doc.as_ptr(),
            ffi::PyExc_RuntimeError,
            std::ptr::null_mut(),
        )
    })?;
    Ok(cpython::publish(place, made))
}

/// `TypeError`: the argument has the wrong type.
#[cold]
pub fn wrong_type(site: Site, wanted: &str, got: Obj<'_>) -> Raised {
    let message = format!(
        "{} must be {wanted}, not {}",
        site.prefix(),
        got.type_name()
    );
    raise(ExceptionKind::Type, &message)
}

/// `TypeError`: the argument must not be `None`.
#[cold]
pub fn not_none(site: Site) -> Raised {
    raise(
        ExceptionKind::Type,
        &format!("{} must not be None", site.prefix()),
    )
}

/// `OverflowError`: the integer does not fit the C type.
#[cold]
pub fn out_of_range(site: Site, c_type: &str, got: Obj<'_>) -> Raised {
    // SAFETY: `got` is live for the call; an exception raised by `str()` is cleared below.
    let text = match Owned::take(unsafe { ffi::PyObject_Str(got.ptr()) }) {
        Ok(text) => text.obj().text().unwrap_or_default(),
        Err(Raised) => {
            crate::cpython::clear();
            String::new()
        }
    };
    let text = if text.len() > 40 { "value" } else { &text };
    let message = format!("{}: {text} does not fit in {c_type}", site.prefix());
    raise(ExceptionKind::Overflow, &message)
}

/// [`list_too_small`], a `ValueError` and `RuntimeError`: the sequence has fewer items than the count.
#[cold]
pub fn too_few(site: Site, have: usize, want: u64) -> Raised {
    let message = format!("{}: List is too small: {have} < {want}", site.prefix());
    match list_too_small() {
        // SAFETY: `list_too_small` never frees the class.
        Ok(class) => unsafe { raise_class(class, &message) },
        Err(Raised) => Raised,
    }
}

/// `MemoryError`.
#[cold]
pub fn no_memory() -> Raised {
    raise(
        ExceptionKind::Memory,
        "not enough memory for the arguments of the call",
    )
}
