//! The method `__dlpack__` as a plain C function of Python's: consumers name its arguments, and finding four names by
//! comparing texts took as long as the export.

use pyo3::PyClass;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyType};

use crate::bindings::function::guard;
use crate::core::dlpack;
use crate::core::dlpack::Request;
use crate::core::memory::buffer::PyBuffer;
use crate::core::view::PyView;
use crate::cpython;
use crate::cpython::Owned;

/// The names, in the order of [`Arguments`].
const NAMES: [&str; 4] = ["stream", "max_version", "dl_device", "copy"];

type Arguments = [*mut ffi::PyObject; 4];

/// The same as objects: the names in a call are the very ones where its text is part of a program.
fn names(py: Python<'_>) -> &[Py<PyString>; 4] {
    static KNOWN: PyOnceLock<[Py<PyString>; 4]> = PyOnceLock::new();
    KNOWN.get_or_init(py, || NAMES.map(|name| PyString::intern(py, name).unbind()))
}

/// A class with the method.
pub trait Exports: PyClass {
    /// What messages call it.
    const CLASS: &'static str;
    /// The documentation, signature first.
    const TEXT: &'static std::ffi::CStr;
    /// Makes the capsule.
    ///
    /// # Errors
    ///
    /// As [`dlpack::export`].
    fn export<'py>(
        slf: &Bound<'py, Self>,
        request: &Request<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>>;
}

impl Exports for PyBuffer {
    const CLASS: &'static str = "Buffer";
    const TEXT: &'static std::ffi::CStr = c"__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)
--

Exports the memory by DLPack, as one dimension of 8-bit integers.

Parameters
----------
stream : int, optional
    The consumer's stream, which waits for the streams that are known to use the memory; -1 for no waiting.
max_version : tuple of int, optional
    The newest version that the consumer understands; from (1, 0) on it gets a versioned capsule.
dl_device : tuple of int, optional
    The device wanted; only where the memory is.
copy : bool, optional
    True is refused: the memory itself is exported.

Returns
-------
capsule";

    fn export<'py>(
        slf: &Bound<'py, Self>,
        request: &Request<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        dlpack::export(slf, request)
    }
}

impl Exports for PyView {
    const CLASS: &'static str = "StridedMemoryView";
    const TEXT: &'static std::ffi::CStr = c"__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)
--

Exports the memory by DLPack.

Parameters
----------
stream : int, optional
    The consumer's stream. It waits for the streams that are known to use a Buffer's memory; of other arrays the order
    is that of the stream that the view was made for.
max_version : tuple of int, optional
    The newest version that the consumer understands; from (1, 0) on it gets a versioned capsule, which also says
    whether the memory is read-only.
dl_device : tuple of int, optional
    The device wanted; only where the memory is.
copy : bool, optional
    True is refused: the memory itself is exported.

Returns
-------
capsule";

    fn export<'py>(
        slf: &Bound<'py, Self>,
        request: &Request<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        dlpack::export_view(slf, request)
    }
}

unsafe extern "C" fn method<T: Exports>(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: the protocol gives as many borrowed references as it says, on an attached thread; the descriptor that
        // calls this has checked the class of the first.
        unsafe {
            let py = Python::assume_attached();
            let given = arguments::<T>(py, args, count, keywords).map_err(cpython::set)?;
            let slf = Borrowed::from_ptr(py, slf);
            let made = call::<T>(&slf.cast_unchecked::<T>(), given).map_err(cpython::set)?;
            Owned::take(made.into_ptr())
        }
    })
}

/// The arguments; null where one was not given.
///
/// # Safety
///
/// `args` are `count` objects and then one for each of `keywords`, which is null or a tuple of names.
#[inline]
unsafe fn arguments<T: Exports>(
    py: Python<'_>,
    args: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
) -> PyResult<Arguments> {
    let mut found: Arguments = [std::ptr::null_mut(); 4];
    if count != 0 {
        return Err(PyTypeError::new_err(format!(
            "{}.__dlpack__() takes its arguments by name only: {}",
            T::CLASS,
            NAMES.join(", ")
        )));
    }
    if keywords.is_null() {
        return Ok(found);
    }
    let known = names(py);
    // SAFETY: a live tuple, of which only places that it has are read; there is a value for each name.
    unsafe {
        for place in 0..ffi::PyTuple_Size(keywords) {
            let name = ffi::PyTuple_GetItem(keywords, place);
            let which = known
                .iter()
                .position(|known| std::ptr::eq(known.as_ptr(), name));
            let which = match which {
                Some(which) => which,
                None => by_text::<T>(&Borrowed::from_ptr(py, name))?,
            };
            found[which] = *args.offset(place);
        }
    }
    Ok(found)
}

/// Which argument a text names that is not the very object.
#[cold]
fn by_text<T: Exports>(name: &Bound<'_, PyAny>) -> PyResult<usize> {
    let text = name.str()?;
    let text = text.to_string_lossy();
    NAMES
        .iter()
        .position(|known| *known == text)
        .ok_or_else(|| {
            PyTypeError::new_err(format!(
                "{}.__dlpack__() got an unexpected keyword argument '{text}'; it has {}",
                T::CLASS,
                NAMES.join(", ")
            ))
        })
}

/// Calls the export with what was given.
///
/// # Safety
///
/// Live objects or null.
#[inline]
unsafe fn call<'py, T: Exports>(
    slf: &Bound<'py, T>,
    given: Arguments,
) -> PyResult<Bound<'py, PyAny>> {
    let py = slf.py();
    // SAFETY: live objects, which the caller of the method holds; null is none.
    let given = given.map(|object| unsafe {
        Bound::from_borrowed_ptr_or_opt(py, object).filter(|object| !object.is_none())
    });
    let [stream, max_version, dl_device, copy] = &given;
    T::export(
        slf,
        &Request {
            class: T::CLASS,
            stream: stream.as_ref(),
            max_version: max_version.as_ref(),
            dl_device: dl_device.as_ref(),
            copy: copy.as_ref(),
        },
    )
}

/// Gives the class its method.
///
/// # Errors
///
/// Whatever Python raises.
pub fn add<T: Exports>(py: Python<'_>) -> PyResult<()> {
    names(py);
    // The descriptor points to the definition for as long as the class lives.
    let definition = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: c"__dlpack__".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunctionFastWithKeywords: method::<T>,
        },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: T::TEXT.as_ptr(),
    }));
    let class: Bound<'_, PyType> = py.get_type::<T>();
    // SAFETY: a live class; the definition is complete and stays.
    let made = unsafe {
        let made = ffi::PyDescr_NewMethod(class.as_type_ptr(), definition);
        Bound::from_owned_ptr_or_err(py, made)?
    };
    class.setattr("__dlpack__", made)
}
