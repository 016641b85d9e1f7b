//! Methods as plain C functions of Python's, for the calls that programs make in their inner loops: PyO3's reading of
//! arguments compares the names' texts, and costs as much as all else that such a method does.

use std::ffi::CStr;

use pyo3::PyClass;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyType};

use crate::bindings::function::guard_here;
use crate::cpython;
use crate::cpython::{Obj, Owned, known_len, tuple_items};

/// A method with `N` parameters, which may be given by place or by name; their default is None.
pub trait Method<const N: usize> {
    /// Whose it is.
    type Class: PyClass;
    /// Class and method, for messages.
    const FUNCTION: &'static str;
    /// The method's own name.
    const NAME: &'static CStr;
    /// The documentation, signature first.
    const TEXT: &'static CStr;
    /// The parameters' names.
    const NAMES: [&'static str; N];
    /// How many of them have to be given.
    const REQUIRED: usize = 0;

    /// The same as objects: the names in a call are the very ones where its text is part of a program.
    fn known() -> &'static PyOnceLock<[Py<PyString>; N]>;

    /// Does what the method does.
    ///
    /// # Errors
    ///
    /// What the method raises.
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
    guard_here(|| {
        // SAFETY: the protocol gives as many borrowed references as it says, on an attached thread; the descriptor that
        // calls this has checked the class of the first.
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
            let made = M::call(&slf.cast_unchecked::<M::Class>(), given).map_err(cpython::set)?;
            Owned::take(made.into_ptr())
        }
    })
}

/// The arguments where those that are given by name have the very objects of [`Method::known`] as their names; null for those
/// that are not given. `None` where that is not so or anything is wrong.
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
    // SAFETY: as the caller promises; of the tuple only items that it has are read, and there is a value for each name.
    unsafe {
        for (place, found) in given.iter_mut().enumerate() {
            if place < count {
                *found = *args.add(place);
            }
        }
        if !keywords.is_null() {
            let items = tuple_items(Obj::new(keywords))?;
            let known = M::known().get(py)?;
            let more = known_len(Obj::new(keywords));
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

/// The arguments where some are given by name, are too many, or are missing.
///
/// # Safety
///
/// `args` are `count` objects and then one for each of `keywords`, which is null or a tuple of names.
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
    // SAFETY: as the caller promises; of the tuple only places that it has are read, and there is a value for each name.
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
            "{}() misses the required argument '{}'",
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

/// Which parameter a text names that is not the very object.
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

/// Gives a class its method.
///
/// # Errors
///
/// Whatever Python raises.
pub fn add<M: Method<N>, const N: usize>(py: Python<'_>) -> PyResult<()> {
    names::<M, N>(py);
    // The descriptor points to the definition for as long as the class lives.
    let definition = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: M::NAME.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunctionFastWithKeywords: entry::<M, N>,
        },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: M::TEXT.as_ptr(),
    }));
    let class: Bound<'_, PyType> = py.get_type::<M::Class>();
    // SAFETY: a live class; the definition is complete and stays.
    let made = unsafe {
        let made = ffi::PyDescr_NewMethod(class.as_type_ptr(), definition);
        Bound::from_owned_ptr_or_err(py, made)?
    };
    let name = PyString::intern(py, M::NAME.to_str().unwrap_or_default());
    class.setattr(name, made)
}
