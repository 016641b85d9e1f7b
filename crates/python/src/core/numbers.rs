//! Conversion of sizes and addresses.

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyIterator, PyTuple};

use crate::cpython;
use crate::cpython::Obj;

/// Short `repr` of a value for messages. Python refuses to print ints of thousands of digits, and a `repr` may raise.
#[cold]
pub fn short_repr(value: &Bound<'_, PyAny>) -> String {
    match value.repr() {
        Ok(text) if text.len().is_ok_and(|len| len <= 80) => text.to_string_lossy().into_owned(),
        _ => "a value with a long repr".to_owned(),
    }
}

/// The elements of an iterable. `what` names the argument or field, `expected` the elements.
///
/// # Errors
///
/// `TypeError` for an object that is not iterable; errors of its `__iter__`.
pub fn elements_of<'py>(
    given: &Bound<'py, PyAny>,
    what: impl FnOnce() -> String,
    expected: &str,
) -> PyResult<Bound<'py, PyIterator>> {
    let py = given.py();
    match given.try_iter() {
        Err(error) if error.is_instance_of::<PyTypeError>(py) => {
            let class = given.get_type();
            let named = PyTypeError::new_err(format!(
                "{} is of type {}; expected {expected}",
                what(),
                class.name()?
            ));
            named.set_cause(py, Some(error));
            Err(named)
        }
        other => other,
    }
}

/// Converts an object with `__index__` to an int; `None` for other objects and for a `TypeError` (raised by arrays).
///
/// # Errors
///
/// Other errors of `__index__`.
pub fn index<'py>(given: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    if !has_index(given) {
        return Ok(None);
    }
    // SAFETY: a live object; a new reference, or null with an exception.
    let created =
        unsafe { Bound::from_owned_ptr_or_err(given.py(), ffi::PyNumber_Index(given.as_ptr())) };
    none_on_type_error(given.py(), created)
}

fn none_on_type_error<'py>(
    py: Python<'py>,
    created: PyResult<Bound<'py, PyAny>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    match created {
        Err(error) if error.is_instance_of::<PyTypeError>(py) => Ok(None),
        created => created.map(Some),
    }
}

fn has_index(given: &Bound<'_, PyAny>) -> bool {
    // SAFETY: a live object.
    unsafe { ffi::PyIndex_Check(given.as_ptr()) != 0 }
}

/// Converts a size in bytes.
///
/// # Errors
///
/// `TypeError` for other types, `OverflowError` for negative or too large ints.
#[inline(always)]
pub fn size_argument(given: &Bound<'_, PyAny>, function: &str) -> PyResult<usize> {
    bytes_argument(given, function, "size")
}

/// As [`size_argument`], for a missing argument.
///
/// # Errors
///
/// As [`size_argument`].
#[inline(always)]
pub fn size_or_none(
    py: Python<'_>,
    given: Option<&Bound<'_, PyAny>>,
    function: &str,
) -> PyResult<usize> {
    match given {
        Some(given) => size_argument(given, function),
        None => bytes_general(&py.None().into_bound(py), function, "size"),
    }
}

/// As [`size_argument`], for a parameter with another name.
///
/// # Errors
///
/// As [`size_argument`].
#[inline(always)]
pub fn bytes_argument(
    given: &Bound<'_, PyAny>,
    function: &str,
    parameter: &str,
) -> PyResult<usize> {
    if std::ptr::eq(given.get_type_ptr(), &raw mut ffi::PyLong_Type) {
        // SAFETY: a live int; `usize::MAX` may indicate an exception, which is handled below.
        let size = unsafe { ffi::PyLong_AsSize_t(given.as_ptr()) };
        if size != usize::MAX {
            return Ok(size);
        }
    }
    cupyrite::hint::cold_path();
    bytes_general(given, function, parameter)
}

/// Slow path, for other types and invalid values.
#[inline(never)]
fn bytes_general(given: &Bound<'_, PyAny>, function: &str, parameter: &str) -> PyResult<usize> {
    number_argument(given, function, parameter, "a number of bytes")
}

/// Converts a number of something else than bytes; `what` names it in messages.
///
/// # Errors
///
/// As [`size_argument`].
pub fn number_argument(
    given: &Bound<'_, PyAny>,
    function: &str,
    parameter: &str,
    what: &str,
) -> PyResult<usize> {
    // Replaced by the errors below.
    drop(PyErr::take(given.py()));
    let Some(index) = index(given)? else {
        return Err(PyTypeError::new_err(format!(
            "{function}() argument '{parameter}' is of type {}; expected {what} as int",
            given.get_type().name()?
        )));
    };
    index.extract::<usize>().map_err(|_| {
        PyOverflowError::new_err(format!(
            "{function}() argument '{parameter}' is {}; expected {what} from 0 to 2**64-1",
            short_repr(&index)
        ))
    })
}

/// Converts a number to an int; `None` for other objects, for text, bytes and floats, and for a `TypeError`.
///
/// # Errors
///
/// Other errors of the conversion.
pub fn whole_number<'py>(given: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = given.py();
    let is_number = !given.is_instance_of::<PyFloat>()
        && (has_index(given) || given.get_type().hasattr(intern!(py, "__int__"))?);
    if !is_number {
        return Ok(None);
    }
    // SAFETY: a live object; a new reference, or null with an exception.
    let created = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyNumber_Long(given.as_ptr())) };
    none_on_type_error(py, created)
}

/// Converts an address: a handle object of the bindings or an integral number.
///
/// # Errors
///
/// As [`size_argument`].
pub fn address_argument(given: &Bound<'_, PyAny>, function: &str) -> PyResult<u64> {
    address_named(given, function, "ptr")
}

/// As [`address_argument`], for a parameter with another name.
///
/// # Errors
///
/// As [`size_argument`].
pub fn address_named(given: &Bound<'_, PyAny>, function: &str, parameter: &str) -> PyResult<u64> {
    if let Some(value) = crate::types::handle_value(Obj::of(given)) {
        return Ok(value);
    }
    let Some(number) = whole_number(given)? else {
        return Err(PyTypeError::new_err(format!(
            "{function}() argument '{parameter}' is of type {}; expected an int or a CUdeviceptr",
            given.get_type().name()?
        )));
    };
    number.extract::<u64>().map_err(|_| {
        PyOverflowError::new_err(format!(
            "{function}() argument '{parameter}' is {}; expected an address from 0 to 2**64-1",
            short_repr(&number)
        ))
    })
}

/// Value of an int of at most 64 bits, else `None`. `extract` would fetch an exception for -1.
#[inline]
pub fn as_i64(number: &Bound<'_, PyInt>) -> Option<i64> {
    // SAFETY: a live object held by the caller.
    cpython::as_i64_if_fits(unsafe { Obj::new(number.as_ptr()) })
}

/// Both ints of a 2-tuple.
#[inline]
pub fn int_pair(pair: &Bound<'_, PyTuple>) -> Option<(i64, i64)> {
    // SAFETY: a live tuple; only existing items are read, and converted only if they are ints.
    unsafe {
        if ffi::PyTuple_Size(pair.as_ptr()) != 2 {
            return None;
        }
        let number = |place| {
            let item = ffi::PyTuple_GetItem(pair.as_ptr(), place);
            if ffi::PyLong_Check(item) == 0 {
                return None;
            }
            cpython::as_i64_if_fits(Obj::new(item))
        };
        Some((number(0)?, number(1)?))
    }
}
