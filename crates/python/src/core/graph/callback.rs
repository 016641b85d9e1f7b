//! Host functions of graphs: Python callables and `ctypes` function pointers.

use std::ffi::c_void;
use std::sync::Arc;

use cupyrite::graph::{HostCallback, Retained};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::core::graph::arguments::retained;
use crate::core::memory::keep_alive::BufferView;
use crate::core::numbers::{index, short_repr};
use crate::cpython;
use crate::cpython::DropAttached;

/// A Python callable that a graph calls.
pub struct PyCallback(pub Py<PyAny>);

/// Calls a [`PyCallback`] on a thread of the driver.
unsafe extern "C" fn call(data: *mut c_void) {
    // SAFETY: `accept` made the pointer, and the graph retains the callback.
    let callback = unsafe { &*data.cast_const().cast::<DropAttached<PyCallback>>() };
    // Without an interpreter, during shutdown, the call is skipped. Not `Python::try_attach`: the CPU device may call on a
    // thread that is within `cpython::detached`.
    cpython::attached(|py| {
        let callable = &callback.get(py).0;
        if let Err(error) = callable.call0(py) {
            error.write_unraisable(py, Some(callable.bind(py)));
        }
    });
}

/// Converts the arguments `fn` and `user_data`.
///
/// # Errors
///
/// `TypeError` for an object that cannot be called or a `ctypes` function with another prototype; `ValueError` for
/// `user_data` with a Python callable.
pub fn accept(
    function: &str,
    given: &Bound<'_, PyAny>,
    user_data: Option<&Bound<'_, PyAny>>,
) -> PyResult<HostCallback> {
    let user_data = user_data.filter(|data| !data.is_none());
    if is_c_function(given)? {
        return c_function(function, given, user_data);
    }
    if !given.is_callable() {
        return Err(PyTypeError::new_err(format!(
            "{function}() argument 'fn' is of type {}; expected a callable or a ctypes function pointer",
            given.get_type().name()?
        )));
    }
    if user_data.is_some() {
        return Err(PyValueError::new_err(format!(
            "{function}() argument 'user_data' is only for ctypes function pointers; bind the data to the callable, for \
             example with functools.partial"
        )));
    }
    let value = Arc::new(DropAttached::new(PyCallback(given.clone().unbind())));
    let data = Arc::as_ptr(&value).cast_mut().cast::<c_void>();
    // SAFETY: `call` accepts this pointer on any thread while the callback lives, and does not unwind.
    Ok(unsafe { HostCallback::from_raw(call, data, Some(value)) })
}

/// Whether the object is a `ctypes` function pointer.
fn is_c_function(given: &Bound<'_, PyAny>) -> PyResult<bool> {
    let modules = given.py().import("sys")?.getattr("modules")?;
    match modules.get_item("_ctypes") {
        Ok(ctypes) => given.is_instance(&ctypes.getattr("CFuncPtr")?),
        // Nothing has imported ctypes.
        Err(_) => Ok(false),
    }
}

fn c_function(
    function: &str,
    given: &Bound<'_, PyAny>,
    user_data: Option<&Bound<'_, PyAny>>,
) -> PyResult<HostCallback> {
    let py = given.py();
    let ctypes = py.import("ctypes")?;
    let pointer = ctypes.getattr("c_void_p")?;
    let takes_pointer = match given.getattr("argtypes")?.cast::<PyTuple>() {
        Ok(types) => types.len() == 1 && types.get_item(0)?.is(&pointer),
        Err(_) => false,
    };
    if !given.getattr("restype")?.is_none() || !takes_pointer {
        return Err(PyTypeError::new_err(format!(
            "{function}() argument 'fn' is a ctypes function with another prototype; expected \
             ctypes.CFUNCTYPE(None, ctypes.c_void_p)"
        )));
    }
    let address = ctypes
        .call_method1("cast", (given, &pointer))?
        .getattr("value")?
        .extract::<Option<usize>>()?
        .unwrap_or(0);
    if address == 0 {
        return Err(PyValueError::new_err(format!(
            "{function}() argument 'fn' is a null function pointer"
        )));
    }
    // SAFETY: the caller guarantees that the address is that of a function with this prototype.
    let target = unsafe {
        std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void)>(
            std::ptr::with_exposed_provenance_mut(address),
        )
    };
    let mut data: *mut c_void = std::ptr::null_mut();
    // The function object lives as long as the graph, which is more than is promised.
    let mut owner: Retained = retained(given.clone().unbind());
    if let Some(user_data) = user_data {
        if let Some(number) = index(user_data)? {
            let number = number.extract::<usize>().map_err(|_| {
                PyOverflowError::new_err(format!(
                    "{function}() argument 'user_data' is {}; expected an address from 0 to 2**64-1",
                    short_repr(&number)
                ))
            })?;
            data = std::ptr::with_exposed_provenance_mut(number);
        } else {
            let copy = bytes_of(function, user_data)?;
            let copy: Arc<Vec<u8>> = Arc::new(copy);
            data = copy.as_ptr().cast_mut().cast();
            owner = Arc::new((owner, copy));
        }
    }
    // SAFETY: the caller guarantees that the function may be called on any thread.
    Ok(unsafe { HostCallback::from_raw(target, data, Some(owner)) })
}

/// A copy of the bytes of an object.
fn bytes_of(function: &str, given: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let invalid = |_| {
        let class = given.get_type().name().map(|name| name.to_string());
        PyTypeError::new_err(format!(
            "{function}() argument 'user_data' is of type {}; expected an int or a bytes-like object",
            class.unwrap_or_default()
        ))
    };
    let view = BufferView::take(given, pyo3::ffi::PyBUF_SIMPLE).map_err(invalid)?;
    if view.len() == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: a contiguous view of this many bytes.
    Ok(unsafe { std::slice::from_raw_parts(view.pointer().cast::<u8>(), view.len()) }.to_vec())
}
