//! `__dlpack__` as a `METH_FASTCALL` method. Consumers pass keyword arguments, and comparing four names as text cost as
//! much as the export.

use pyo3::PyClass;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyType};

use crate::core::dlpack::export;
use crate::core::dlpack::export::ExportRequest;
use crate::core::memory::buffer::PyBuffer;
use crate::core::view::state::PyView;
use crate::cpython;
use crate::cpython::Owned;
use crate::cpython::guard;

/// Parameter names, in the order of [`Arguments`].
const NAMES: [&str; 4] = ["stream", "max_version", "dl_device", "copy"];

type Arguments = [*mut ffi::PyObject; 4];

/// The parameter names as interned strings, to which call-site names are identical.
fn names(py: Python<'_>) -> &[Py<PyString>; 4] {
    static KNOWN: PyOnceLock<[Py<PyString>; 4]> = PyOnceLock::new();
    KNOWN.get_or_init(py, || NAMES.map(|name| PyString::intern(py, name).unbind()))
}

/// A class with the method `__dlpack__`.
pub trait Exports: PyClass {
    /// Class name in messages.
    const CLASS: &'static str;
    /// Docstring with the signature.
    const TEXT: &'static std::ffi::CStr;
    /// Exports the capsule.
    ///
    /// # Errors
    ///
    /// As [`export::export`].
    fn export<'py>(
        slf: &Bound<'py, Self>,
        request: &ExportRequest<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>>;
}

impl Exports for PyBuffer {
    const CLASS: &'static str = "Buffer";
    const TEXT: &'static std::ffi::CStr =
        c"__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)
--

Exports the memory by DLPack, as a one-dimensional array of 8-bit integers.

Parameters
----------
stream : int, optional
    The consumer's stream, which waits for the known uses of the memory; -1: no synchronization.
max_version : tuple of int, optional
    Newest version supported by the consumer; from (1, 0) on, the capsule is versioned.
dl_device : tuple of int, optional
    Requested device; must be the device of the memory.
copy : bool, optional
    True is refused: the export shares the memory.

Returns
-------
capsule";

    fn export<'py>(
        slf: &Bound<'py, Self>,
        request: &ExportRequest<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        export::export(slf, request)
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
    The consumer's stream, which waits for the known uses of a Buffer's memory. Other memory is ordered with the stream
    that the view was created for; -1: no synchronization.
max_version : tuple of int, optional
    Newest version supported by the consumer; from (1, 0) on, the capsule is versioned, and carries the read-only flag.
dl_device : tuple of int, optional
    Requested device; must be the device of the memory.
copy : bool, optional
    True is refused: the export shares the memory.

Returns
-------
capsule";

    fn export<'py>(
        slf: &Bound<'py, Self>,
        request: &ExportRequest<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        export::export_view(slf, request)
    }
}

unsafe extern "C" fn method<T: Exports>(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: the calling convention guarantees the stated number of borrowed references and an attached thread;
        // the method descriptor has checked the class of `slf`.
        unsafe {
            let py = Python::assume_attached();
            let given = arguments::<T>(py, args, count, keywords).map_err(cpython::set)?;
            let slf = Borrowed::from_ptr(py, slf);
            let created = call::<T>(&slf.cast_unchecked::<T>(), given).map_err(cpython::set)?;
            Owned::take(created.into_ptr())
        }
    })
}

/// The arguments; null if not given.
///
/// # Safety
///
/// `args` are `count` objects followed by one object for each of `keywords`, which is null or a tuple of names.
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
            "{}.__dlpack__() takes keyword arguments only: {}",
            T::CLASS,
            NAMES.join(", ")
        )));
    }
    if keywords.is_null() {
        return Ok(found);
    }
    let known = names(py);
    // SAFETY: a live tuple, read within bounds; `args` has a value for each name.
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

/// Parameter with this name, for names that are not interned.
#[cold]
fn by_text<T: Exports>(name: &Bound<'_, PyAny>) -> PyResult<usize> {
    let text = name.str()?;
    let text = text.to_string_lossy();
    NAMES
        .iter()
        .position(|known| *known == text)
        .ok_or_else(|| {
            PyTypeError::new_err(format!(
                "{}.__dlpack__() got an unexpected keyword argument '{text}'; expected one of {}",
                T::CLASS,
                NAMES.join(", ")
            ))
        })
}

/// Calls the export with the given arguments.
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
    // SAFETY: live objects held by the method's caller, or null.
    let given = given.map(|object| unsafe {
        Bound::from_borrowed_ptr_or_opt(py, object).filter(|object| !object.is_none())
    });
    let [stream, max_version, dl_device, copy] = &given;
    T::export(
        slf,
        &ExportRequest {
            class: T::CLASS,
            stream: stream.as_ref(),
            max_version: max_version.as_ref(),
            dl_device: dl_device.as_ref(),
            copy: copy.as_ref(),
        },
    )
}

/// Adds the method to the class.
///
/// # Errors
///
/// Python errors.
pub fn add<T: Exports>(py: Python<'_>) -> PyResult<()> {
    names(py);
    // The descriptor refers to the definition for the lifetime of the class.
    let definition = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: c"__dlpack__".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunctionFastWithKeywords: method::<T>,
        },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: T::TEXT.as_ptr(),
    }));
    let class: Bound<'_, PyType> = py.get_type::<T>();
    // SAFETY: a live class and a static definition.
    let created = unsafe {
        let created = ffi::PyDescr_NewMethod(class.as_type_ptr(), definition);
        Bound::from_owned_ptr_or_err(py, created)?
    };
    class.setattr("__dlpack__", created)
}
