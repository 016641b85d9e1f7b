//! Arguments that are sizes, addresses and patterns.

use cupyrite::FillPattern;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt};

use crate::core::memory::copy_operand;

/// A value as messages show it. Python refuses to print numbers of thousands of digits, and a `repr` may raise.
#[cold]
pub fn shown(value: &Bound<'_, PyAny>) -> String {
    match value.repr() {
        Ok(text) if text.len().is_ok_and(|len| len <= 80) => text.to_string_lossy().into_owned(),
        _ => "a value that is too long to print".to_owned(),
    }
}

/// What `__index__` says; `None` for what has none, or says by a `TypeError` that it is no integer (as arrays do).
///
/// # Errors
///
/// What else `__index__` raises.
pub fn index<'py>(given: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    if !has_index(given) {
        return Ok(None);
    }
    // SAFETY: a live object; a new reference or null with an exception.
    let made =
        unsafe { Bound::from_owned_ptr_or_err(given.py(), ffi::PyNumber_Index(given.as_ptr())) };
    unless_no_number(given.py(), made)
}

fn unless_no_number<'py>(
    py: Python<'py>,
    made: PyResult<Bound<'py, PyAny>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    match made {
        Err(error) if error.is_instance_of::<PyTypeError>(py) => Ok(None),
        made => made.map(Some),
    }
}

fn has_index(given: &Bound<'_, PyAny>) -> bool {
    // SAFETY: a live object.
    unsafe { ffi::PyIndex_Check(given.as_ptr()) != 0 }
}

/// A number of bytes.
///
/// # Errors
///
/// `TypeError` for what is no integer, `OverflowError` for negative and too large ones.
#[inline(always)]
pub fn size_argument(given: &Bound<'_, PyAny>, function: &str) -> PyResult<usize> {
    bytes_argument(given, function, "size")
}

/// The same, for an argument that may be None, which is wrong too.
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
        None => bytes_otherwise(&py.None().into_bound(py), function, "size"),
    }
}

/// A number of bytes, in an argument of another name.
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
        // SAFETY: a live int; the largest number also stands for an exception, which is looked at below.
        let size = unsafe { ffi::PyLong_AsSize_t(given.as_ptr()) };
        if size != usize::MAX {
            return Ok(size);
        }
    }
    cupyrite::hint::cold_path();
    bytes_otherwise(given, function, parameter)
}

/// The same for what is no plain int, or is wrong.
#[inline(never)]
fn bytes_otherwise(given: &Bound<'_, PyAny>, function: &str, parameter: &str) -> PyResult<usize> {
    // Said below, if it is wrong.
    drop(PyErr::take(given.py()));
    let Some(index) = index(given)? else {
        return Err(PyTypeError::new_err(format!(
            "{function}() argument '{parameter}' is of type {}; expected an int, the number of bytes",
            given.get_type().name()?
        )));
    };
    index.extract::<usize>().map_err(|_| {
        PyOverflowError::new_err(format!(
            "{function}() argument '{parameter}' is {}; expected a number of bytes from 0 to 2**64-1",
            shown(&index)
        ))
    })
}

/// What a number is as a whole one; `None` for what is no number. Texts and bytes, which `int()` reads, are none, nor are
/// floats; nor is what says so by a `TypeError`.
///
/// # Errors
///
/// What else the number raises when it is asked.
pub fn whole_number<'py>(given: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = given.py();
    let is_number = !given.is_instance_of::<PyFloat>()
        && (has_index(given) || given.get_type().hasattr(intern!(py, "__int__"))?);
    if !is_number {
        return Ok(None);
    }
    // SAFETY: a live object; a new reference or null with an exception.
    let made = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyNumber_Long(given.as_ptr())) };
    unless_no_number(py, made)
}

/// An address: a handle object of the bindings, or anything that is a whole number.
///
/// # Errors
///
/// As [`size_argument`].
pub fn address_argument(given: &Bound<'_, PyAny>, function: &str) -> PyResult<u64> {
    if let Some(value) = crate::types::handle_value(given.as_ptr()) {
        return Ok(value);
    }
    let Some(number) = whole_number(given)? else {
        return Err(PyTypeError::new_err(format!(
            "{function}() argument 'ptr' is of type {}; expected an int or a CUdeviceptr",
            given.get_type().name()?
        )));
    };
    number.extract::<u64>().map_err(|_| {
        PyOverflowError::new_err(format!(
            "{function}() argument 'ptr' is {}; expected an address from 0 to 2**64-1",
            shown(&number)
        ))
    })
}

/// What a buffer is filled with.
///
/// # Errors
///
/// `TypeError`, `ValueError` and `OverflowError`, which name what is wrong.
pub fn pattern(value: &Bound<'_, PyAny>) -> PyResult<FillPattern> {
    if value.is_instance_of::<PyInt>() {
        let byte = value.extract::<u8>().map_err(|_| {
            PyOverflowError::new_err(format!(
                "Buffer.fill() argument 'value' is {}; an int is one byte, from 0 to 255, and longer patterns are \
                 given as bytes or as a NumPy scalar",
                shown(value)
            ))
        })?;
        return Ok(FillPattern::U8(byte));
    }
    let Some((len, bytes)) = copy_operand::small_bytes(value)? else {
        return Err(PyTypeError::new_err(format!(
            "Buffer.fill() argument 'value' is of type {}; expected an int from 0 to 255, or an object with the buffer \
             protocol of 1, 2 or 4 bytes",
            value.get_type().name()?
        )));
    };
    bytes
        .get(..len)
        .and_then(FillPattern::from_bytes)
        .ok_or_else(|| {
            PyValueError::new_err(format!(
                "Buffer.fill() argument 'value' has {len} bytes; expected 1, 2 or 4"
            ))
        })
}
