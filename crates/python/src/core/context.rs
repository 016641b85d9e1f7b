//! `Context`.

use cupyrite::Context;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::core::closable::{Closable, drop_detached};
use crate::core::device_resources::PyDeviceResources;
use crate::core::errors::OrRaise;
use crate::core::stream;
use crate::core::stream::PyStream;
use crate::cpython::Raised;
use crate::generated::driver_types::class;
use crate::types;

/// A CUDA context: the address space of a device and the objects in it.
///
/// Contexts come from :attr:`Device.context`, :attr:`Stream.context`, :attr:`Event.context` and
/// :meth:`Device.set_current`. A device's primary context is shared with the CUDA runtime and the other libraries of
/// the process, and retained until the process exits.
///
/// See `Context management <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__CTX.html>`_.
#[doc = example!("cuda.core.Context")]
#[pyclass(
    frozen,
    weakref,
    subclass,
    module = "cuda.core._context",
    name = "Context"
)]
pub struct PyContext {
    cell: Closable<Context>,
}

impl PyContext {
    /// Creates the Python object of a context.
    ///
    /// # Errors
    ///
    /// `MemoryError`.
    pub fn wrap(py: Python<'_>, context: Context) -> PyResult<Py<PyContext>> {
        Py::new(
            py,
            PyContext {
                cell: Closable::new(context),
            },
        )
    }

    /// The context.
    ///
    /// # Errors
    ///
    /// `RuntimeError` if it was closed.
    pub fn get(&self, py: Python<'_>) -> PyResult<Context> {
        self.cell.get(py, "Context")
    }

    fn address(&self, py: Python<'_>) -> usize {
        self.cell
            .read(py, |context| context.handle().addr())
            .unwrap_or(0)
    }
}

impl Drop for PyContext {
    fn drop(&mut self) {
        // The last clone of a green context destroys it.
        if let Some(context) = self.cell.take() {
            drop_detached(context);
        }
    }
}

#[pymethods]
impl PyContext {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(
        _args: &Bound<'_, pyo3::types::PyTuple>,
        _kwargs: Option<&Bound<'_, pyo3::types::PyDict>>,
    ) -> PyResult<PyContext> {
        Err(PyRuntimeError::new_err(
            "Context cannot be instantiated; use Device.context, Stream.context or Event.context",
        ))
    }

    /// Driver handle, a ``cuda.bindings.driver.CUcontext``; 0 if the object was closed.
    #[doc = example!("cuda.core.Context.handle")]
    #[getter]
    fn handle(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        handle_object(py, class::CUcontext, self.address(py))
    }

    /// Whether :meth:`close` was called.
    #[getter]
    fn is_closed(&self, py: Python<'_>) -> bool {
        self.cell.is_closed(py)
    }

    /// Whether this is a green context, which owns a part of its device: see :meth:`Device.create_context`. False if the
    /// object was closed.
    #[getter]
    fn is_green(&self, py: Python<'_>) -> PyResult<bool> {
        match self.cell.read(py, Context::clone) {
            Some(context) => context.is_green().or_raise(py),
            None => Ok(false),
        }
    }

    /// The resources of the context, a :class:`DeviceResources`: those of the green context, or all of the device.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     The context was closed.
    #[doc = example!("cuda.core.Context.resources")]
    #[getter]
    fn resources(&self, py: Python<'_>) -> PyResult<Py<PyDeviceResources>> {
        PyDeviceResources::of_context(py, self.get(py)?)
    }

    /// Creates a stream of a green context. Use :meth:`Device.create_stream` for the primary context.
    ///
    /// Parameters
    /// ----------
    /// options : StreamOptions, optional
    ///     Options of the stream, which must be non-blocking.
    ///
    /// Returns
    /// -------
    /// Stream
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     The context is not a green context, or was closed.
    /// ValueError
    ///     `options` asks for a blocking stream or for a priority that the device does not have.
    #[doc = example!("cuda.core.Context.create_stream")]
    #[pyo3(signature = (options=None))]
    fn create_stream(
        &self,
        py: Python<'_>,
        options: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyStream>> {
        let context = self.get(py)?;
        if !context.is_green().or_raise(py)? {
            return Err(PyRuntimeError::new_err(
                "Context.create_stream() requires a green context; use Device.create_stream()",
            ));
        }
        PyStream::wrap(py, stream::create_in_green(&context, options, py)?)
    }

    /// Releases the context. The object cannot be used afterwards. The driver context exists while other objects use
    /// it; a primary context exists until the process exits.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     The context is current on this thread.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let address = self.address(py);
        if address == 0 {
            return Ok(());
        }
        let current = Context::current().or_raise(py)?;
        if current.is_some_and(|current| current.handle().addr() == address) {
            return Err(PyRuntimeError::new_err(
                "this Context is current on the calling thread; make another one current before closing it",
            ));
        }
        drop_detached(self.cell.close(py));
        Ok(())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        let py = other.py();
        other
            .cast::<PyContext>()
            .is_ok_and(|other| self.address(py) == other.get().address(py))
    }

    fn __hash__(&self, py: Python<'_>) -> u64 {
        self.address(py) as u64
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        match self.cell.read(py, Context::clone) {
            Some(context) => format!(
                "<Context handle={:#x} device={}>",
                context.handle().addr(),
                context.device().ordinal()
            ),
            None => "<Context handle=0x0>".to_owned(),
        }
    }
}

/// Creates a handle object of the bindings.
///
/// # Errors
///
/// `MemoryError`.
pub fn handle_object(py: Python<'_>, id: types::ClassId, address: usize) -> PyResult<Py<PyAny>> {
    types::new_handle(id, address as u64)
        .map(|handle| handle.into_bound(py).unbind())
        .map_err(|Raised| PyErr::fetch(py))
}

/// Adds the class.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    core.add_class::<PyContext>()
}
