//! `StridedMemoryView.from_any_interface`: a [`Method`], as it is called for every incoming array.

use std::ffi::CStr;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyType};

use crate::core::view::import;
use crate::core::view::state;
use crate::core::view::state::PyView;
use crate::cpython::method;
use crate::cpython::method::Method;

/// `StridedMemoryView.from_any_interface(obj, stream_ptr=None)`.
struct FromAnyInterface;

impl Method<2> for FromAnyInterface {
    type Class = PyView;
    type Receiver = PyType;
    const CLASS_METHOD: bool = true;
    const FUNCTION: &'static str = "StridedMemoryView.from_any_interface";
    const NAME: &'static CStr = c"from_any_interface";
    const TEXT: &'static CStr = with_example!(
        "from_any_interface($cls, obj, stream_ptr=None)
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
    The object supports none of them; and as the other methods.",
        "cuda.core.utils.StridedMemoryView.from_any_interface"
    );
    const NAMES: [&'static str; 2] = ["obj", "stream_ptr"];
    const REQUIRED: usize = 1;

    fn known() -> &'static PyOnceLock<[Py<PyString>; 2]> {
        static KNOWN: PyOnceLock<[Py<PyString>; 2]> = PyOnceLock::new();
        &KNOWN
    }

    #[inline]
    fn call<'py>(
        class: &Bound<'py, PyType>,
        [obj, stream]: [Option<&Bound<'py, PyAny>>; 2],
    ) -> PyResult<Py<PyAny>> {
        let none;
        let obj = match obj {
            Some(obj) => obj,
            None => {
                none = class.py().None().into_bound(class.py());
                &none
            }
        };
        let parts = import::from_any(obj, stream)?;
        state::make_of(class, parts).map(|view| view.into_any().unbind())
    }
}

/// Adds the method to its class.
///
/// # Errors
///
/// Python errors.
pub fn add(py: Python<'_>) -> PyResult<()> {
    method::add::<FromAnyInterface, 2>(py)
}
