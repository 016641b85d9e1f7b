//! `__dlpack__`: a [`Method`]. Consumers pass keyword arguments, and comparing four names as text cost as much as the export.

use std::ffi::CStr;
use std::marker::PhantomData;

use pyo3::PyClass;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;

use crate::core::dlpack::export;
use crate::core::dlpack::export::ExportRequest;
use crate::core::memory::buffer::PyBuffer;
use crate::core::view::state::PyView;
use crate::cpython::method;
use crate::cpython::method::Method;

/// A class with the method `__dlpack__`.
pub trait Exports: PyClass {
    /// Class name in messages.
    const CLASS: &'static str;
    /// Qualified name of the method, for messages.
    const FUNCTION: &'static str;
    /// Docstring with the signature.
    const TEXT: &'static CStr;
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
    const FUNCTION: &'static str = "Buffer.__dlpack__";
    const TEXT: &'static CStr =
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
    const FUNCTION: &'static str = "StridedMemoryView.__dlpack__";
    const TEXT: &'static CStr = c"__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)
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

/// `__dlpack__` of a class.
struct Dlpack<T>(PhantomData<T>);

impl<T: Exports> Method<4> for Dlpack<T> {
    type Class = T;
    type Receiver = T;
    const FUNCTION: &'static str = T::FUNCTION;
    const NAME: &'static CStr = c"__dlpack__";
    const TEXT: &'static CStr = T::TEXT;
    const NAMES: [&'static str; 4] = ["stream", "max_version", "dl_device", "copy"];
    const POSITIONAL: usize = 0;

    /// One for all classes: the names are the same.
    fn known() -> &'static PyOnceLock<[Py<PyString>; 4]> {
        static KNOWN: PyOnceLock<[Py<PyString>; 4]> = PyOnceLock::new();
        &KNOWN
    }

    #[inline]
    fn call<'py>(
        slf: &Bound<'py, T>,
        [stream, max_version, dl_device, copy]: [Option<&Bound<'py, PyAny>>; 4],
    ) -> PyResult<Py<PyAny>> {
        let request = ExportRequest {
            class: T::CLASS,
            stream,
            max_version,
            dl_device,
            copy,
        };
        T::export(slf, &request).map(Bound::unbind)
    }
}

/// Adds the method to the class.
///
/// # Errors
///
/// Python errors.
pub fn add<T: Exports>(py: Python<'_>) -> PyResult<()> {
    method::add::<Dlpack<T>, 4>(py)
}
