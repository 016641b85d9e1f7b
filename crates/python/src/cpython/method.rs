//! `METH_FASTCALL` methods that bypass PyO3's argument parser, for calls in inner loops. The parser compares parameter
//! names as text, which costs as much as the rest of such a method.

use std::ffi::CStr;

use pyo3::PyClass;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyType};

use crate::cpython;
use crate::cpython::errors::guard_inline;
use crate::cpython::internals::tuple;
use crate::cpython::{Obj, Owned};

/// A method with `N` parameters, accepted by position or keyword; the default is None.
pub trait Method<const N: usize> {
    /// Class of the method.
    type Class: PyClass;
    /// Qualified name, for messages.
    const FUNCTION: &'static str;
    /// Name of the method.
    const NAME: &'static CStr;
    /// Docstring with the signature.
    const TEXT: &'static CStr;
    /// Parameter names.
    const NAMES: [&'static str; N];
    /// Number of required parameters.
    const REQUIRED: usize = 0;

    /// The parameter names as interned strings, to which call-site names are identical.
    fn known() -> &'static PyOnceLock<[Py<PyString>; N]>;

    /// Implements the method.
    ///
    /// # Errors
    ///
    /// Errors of the method.
    fn call<'py>(
        slf: &Bound<'py, Self::Class>,
        given: [Option<&Bound<'py, PyAny>>; N],
    ) -> PyResult<Py<PyAny>>;
}

unsafe extern "C" fn entry<M: Method<N>, const N: usize>(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard_inline(|| {
        // SAFETY: the calling convention guarantees the stated number of borrowed references and an attached thread;
        // the method descriptor has checked the class of `slf`.
        unsafe {
            let py = Python::assume_attached();
            let count = count.cast_unsigned();
            let given = match sort_known::<M, N>(py, args, count, keywords) {
                Some(given) => given,
                None => sort::<M, N>(py, args, count, keywords).map_err(cpython::set)?,
            };
            let slf = Borrowed::from_ptr(py, slf);
            let given =
                given.map(|object| (!object.is_null()).then(|| Borrowed::from_ptr(py, object)));
            let given = given
                .each_ref()
                .map(|object| object.as_deref().filter(|object| !object.is_none()));
            let created =
                M::call(&slf.cast_unchecked::<M::Class>(), given).map_err(cpython::set)?;
            Owned::take(created.into_ptr())
        }
    })
}

/// Binds the arguments if all keywords are the interned strings of [`Method::known`]; null for missing arguments.
/// `None` if a keyword is not interned or the call is invalid.
///
/// # Safety
///
/// As for [`sort`].
#[inline(always)]
unsafe fn sort_known<M: Method<N>, const N: usize>(
    py: Python<'_>,
    args: *const *mut ffi::PyObject,
    count: usize,
    keywords: *mut ffi::PyObject,
) -> Option<[*mut ffi::PyObject; N]> {
    if count > N {
        return None;
    }
    let mut given = [std::ptr::null_mut(); N];
    // SAFETY: guaranteed by the caller; the tuple is read within bounds, and there is a value for each name.
    unsafe {
        for (place, found) in given.iter_mut().enumerate() {
            if place < count {
                *found = *args.add(place);
            }
        }
        if !keywords.is_null() {
            let items = tuple::items(Obj::new(keywords))?;
            let known = M::known().get(py)?;
            let more = tuple::known_len(Obj::new(keywords));
            for place in 0..more {
                let name = *items.add(place);
                let which = known
                    .iter()
                    .position(|known| std::ptr::eq(known.as_ptr(), name));
                match which {
                    Some(which) if given[which].is_null() => {
                        given[which] = *args.add(count + place)
                    }
                    _ => return None,
                }
            }
        }
    }
    given[..M::REQUIRED]
        .iter()
        .all(|one| !one.is_null())
        .then_some(given)
}

/// Binds the arguments in the general case; raises for invalid calls.
///
/// # Safety
///
/// `args` are `count` objects followed by one object for each of `keywords`, which is null or a tuple of names.
#[cold]
#[inline(never)]
unsafe fn sort<M: Method<N>, const N: usize>(
    py: Python<'_>,
    args: *const *mut ffi::PyObject,
    count: usize,
    keywords: *mut ffi::PyObject,
) -> PyResult<[*mut ffi::PyObject; N]> {
    let mut given = [std::ptr::null_mut(); N];
    if count > N {
        return Err(PyTypeError::new_err(format!(
            "{}() takes at most {N} arguments ({}), not {count}",
            M::FUNCTION,
            M::NAMES.join(", ")
        )));
    }
    // SAFETY: guaranteed by the caller; the tuple is read within bounds, and there is a value for each name.
    unsafe {
        for (place, found) in given.iter_mut().enumerate().take(count) {
            *found = *args.add(place);
        }
        if !keywords.is_null() {
            let known = names::<M, N>(py);
            for place in 0..ffi::PyTuple_Size(keywords) {
                let name = ffi::PyTuple_GetItem(keywords, place);
                let which = known
                    .iter()
                    .position(|known| std::ptr::eq(known.as_ptr(), name));
                let which = match which {
                    Some(which) => which,
                    None => by_text::<M, N>(&Borrowed::from_ptr(py, name))?,
                };
                if !given[which].is_null() {
                    return Err(PyTypeError::new_err(format!(
                        "{}() got multiple values for argument '{}'",
                        M::FUNCTION,
                        M::NAMES[which]
                    )));
                }
                given[which] = *args.add(count).offset(place);
            }
        }
    }
    match given[..M::REQUIRED].iter().position(|one| one.is_null()) {
        None => Ok(given),
        Some(missing) => Err(PyTypeError::new_err(format!(
            "{}() missing required argument: '{}'",
            M::FUNCTION,
            M::NAMES[missing]
        ))),
    }
}

fn names<M: Method<N>, const N: usize>(py: Python<'_>) -> &'static [Py<PyString>; N] {
    M::known().get_or_init(py, || {
        M::NAMES.map(|name| PyString::intern(py, name).unbind())
    })
}

/// Parameter with this name, for names that are not interned.
#[cold]
fn by_text<M: Method<N>, const N: usize>(name: &Bound<'_, PyAny>) -> PyResult<usize> {
    let text = name.str()?;
    let text = text.to_string_lossy();
    M::NAMES
        .iter()
        .position(|known| *known == text)
        .ok_or_else(|| {
            PyTypeError::new_err(format!(
                "{}() got an unexpected keyword argument '{text}'; it has {}",
                M::FUNCTION,
                if N == 0 {
                    "none".to_owned()
                } else {
                    M::NAMES.join(", ")
                }
            ))
        })
}

/// Adds the method to its class.
///
/// # Errors
///
/// Python errors.
pub fn add<M: Method<N>, const N: usize>(py: Python<'_>) -> PyResult<()> {
    names::<M, N>(py);
    // The descriptor refers to the definition for the lifetime of the class.
    let definition = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: M::NAME.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunctionFastWithKeywords: entry::<M, N>,
        },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: M::TEXT.as_ptr(),
    }));
    let class: Bound<'_, PyType> = py.get_type::<M::Class>();
    // SAFETY: the class is live, and the definition is leaked and so static.
    let created = unsafe {
        let created = ffi::PyDescr_NewMethod(class.as_type_ptr(), definition);
        Bound::from_owned_ptr_or_err(py, created)?
    };
    let name = PyString::intern(py, M::NAME.to_str().unwrap_or_default());
    class.setattr(name, created)
}
