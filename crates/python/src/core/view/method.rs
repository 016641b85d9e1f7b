//! `StridedMemoryView.from_any_interface` as a `METH_FASTCALL` class method. It is called for every incoming array, and
//! argument parsing took a tenth of the call.

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::core::view::import;
use crate::core::view::state;
use crate::core::view::state::PyView;
use crate::cpython;
use crate::cpython::Owned;
use crate::cpython::guard;

const TEXT: &std::ffi::CStr = c"from_any_interface($cls, obj, stream_ptr=None)
--

Creates a view of an array by the first protocol that it supports: DLPack, ``__cuda_array_interface__``,
``__array_interface__`` or the buffer protocol.

Parameters
----------
obj : object
    The array.
stream_ptr : int
    As in :meth:`from_dlpack`.

Raises
------
BufferError
    The object supports none of them; and as the other methods.";

/// `obj` and `stream_ptr`; null if not given.
type Arguments = [*mut ffi::PyObject; 2];

unsafe extern "C" fn method(
    class: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: the calling convention guarantees the stated number of borrowed references and an attached thread;
        // the method descriptor has checked that `class` is the class or a subclass.
        unsafe {
            let py = Python::assume_attached();
            let class = Borrowed::from_ptr(py, class);
            let created = arguments(py, args, count, keywords).and_then(|[obj, stream]| {
                let obj = Borrowed::from_ptr(py, obj);
                let stream = Bound::from_borrowed_ptr_or_opt(py, stream);
                let stream = stream.filter(|stream| !stream.is_none());
                let parts = import::from_any(&obj, stream.as_ref())?;
                state::make_of(&class.cast_unchecked::<PyType>(), parts)
            });
            match created {
                Ok(view) => Owned::take(view.into_ptr()),
                Err(error) => Err(cpython::set(error)),
            }
        }
    })
}

fn wrong(what: std::fmt::Arguments<'_>) -> PyErr {
    PyTypeError::new_err(format!("StridedMemoryView.from_any_interface() {what}"))
}

/// Binds the arguments, of which the first is required.
///
/// # Safety
///
/// `args` are `count` objects followed by one object for each of `keywords`, which is null or a tuple of names.
#[inline]
unsafe fn arguments(
    py: Python<'_>,
    args: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
) -> PyResult<Arguments> {
    let mut found: Arguments = [std::ptr::null_mut(); 2];
    let places = count.cast_unsigned();
    if places > found.len() {
        return Err(wrong(format_args!(
            "takes from 1 to 2 positional arguments but {places} were given"
        )));
    }
    // SAFETY: guaranteed by the caller.
    unsafe {
        for (place, found) in found.iter_mut().enumerate().take(places) {
            *found = *args.add(place);
        }
        if !keywords.is_null() {
            for place in 0..ffi::PyTuple_Size(keywords) {
                let name = Borrowed::from_ptr(py, ffi::PyTuple_GetItem(keywords, place));
                // Call-site names are interned.
                let which = if name.is(intern!(py, "stream_ptr")) {
                    1
                } else {
                    by_text(&name)?
                };
                if !found[which].is_null() {
                    return Err(wrong(format_args!(
                        "got multiple values for argument '{}'",
                        ["obj", "stream_ptr"][which]
                    )));
                }
                found[which] = *args.offset(count + place);
            }
        }
    }
    if found[0].is_null() {
        return Err(wrong(format_args!(
            "missing 1 required positional argument: 'obj'"
        )));
    }
    Ok(found)
}

/// Parameter with this name.
#[cold]
fn by_text(name: &Bound<'_, PyAny>) -> PyResult<usize> {
    let text = name.str()?;
    match &*text.to_string_lossy() {
        "obj" => Ok(0),
        "stream_ptr" => Ok(1),
        other => Err(wrong(format_args!(
            "got an unexpected keyword argument '{other}'; expected obj or stream_ptr"
        ))),
    }
}

/// Adds the method to its class.
///
/// # Errors
///
/// Python errors.
pub fn add(py: Python<'_>) -> PyResult<()> {
    // The descriptor refers to the definition for the lifetime of the class.
    let definition = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: c"from_any_interface".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunctionFastWithKeywords: method,
        },
        ml_flags: ffi::METH_CLASS | ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: TEXT.as_ptr(),
    }));
    let class: Bound<'_, PyType> = py.get_type::<PyView>();
    // SAFETY: a live class and a static definition.
    let created = unsafe {
        let created = ffi::PyDescr_NewClassMethod(class.as_type_ptr(), definition);
        Bound::from_owned_ptr_or_err(py, created)?
    };
    class.setattr("from_any_interface", created)
}
