//! Array arguments of functions decorated with `args_viewable_as_strided_memory`.

use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};

use crate::core::view::import::Protocol;
use crate::core::view::state;
use crate::core::view::state::Consumer;

/// An argument of a function decorated with :func:`args_viewable_as_strided_memory`: the array and its view protocol.
#[pyclass(
    frozen,
    module = "cuda.core._memoryview",
    name = "_StridedMemoryViewProxy"
)]
pub struct Proxy {
    object: Py<PyAny>,
    protocol: Protocol,
}

#[pymethods]
impl Proxy {
    #[new]
    fn new(obj: &Bound<'_, PyAny>) -> PyResult<Proxy> {
        Ok(Proxy {
            object: obj.clone().unbind(),
            protocol: Protocol::of(obj)?,
        })
    }

    /// The array.
    #[getter]
    fn obj(&self, py: Python<'_>) -> Py<PyAny> {
        self.object.clone_ref(py)
    }

    /// Whether the array is viewed by DLPack.
    #[getter]
    fn has_dlpack(&self) -> bool {
        self.protocol == Protocol::DlPack
    }

    /// Creates a view of the array.
    ///
    /// Parameters
    /// ----------
    /// stream_ptr : int
    ///     As in :meth:`StridedMemoryView.from_any_interface`.
    ///
    /// Returns
    /// -------
    /// StridedMemoryView
    #[pyo3(signature = (stream_ptr=None))]
    fn view<'py>(
        &self,
        py: Python<'py>,
        stream_ptr: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let consumer = Consumer::accept(stream_ptr)?;
        state::make(py, self.protocol.view(self.object.bind(py), consumer)?)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.object)
    }
}
