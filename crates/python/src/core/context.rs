//! `Context`.

use cupyrite::Context;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::core::closable::Slot;
use crate::core::errors::OrRaise;
use crate::generated::ids::class::driver as class;
use crate::types;

/// A CUDA context: a device's address space and everything that lives in it.
///
/// Contexts come from :attr:`Device.context`, :attr:`Stream.context`, :attr:`Event.context` and what
/// :meth:`Device.set_current` returns. A device's primary context is shared with the CUDA runtime and with every other
/// library of the process, and is kept until the process ends.
///
/// See `Context management <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__CTX.html>`_.
#[pyclass(
    frozen,
    weakref,
    subclass,
    module = "cuda.core._context",
    name = "Context"
)]
pub struct PyContext {
    slot: Slot<Context>,
}

impl PyContext {
    /// The shell of a context.
    ///
    /// # Errors
    ///
    /// Memory.
    pub fn wrap(py: Python<'_>, context: Context) -> PyResult<Py<PyContext>> {
        Py::new(
            py,
            PyContext {
                slot: Slot::new(context),
            },
        )
    }

    /// The context.
    ///
    /// # Errors
    ///
    /// `RuntimeError` where it was closed.
    pub fn get(&self, py: Python<'_>) -> PyResult<Context> {
        self.slot.get(py, "Context")
    }

    fn address(&self, py: Python<'_>) -> usize {
        self.slot
            .read(py, |context| context.handle().addr())
            .unwrap_or(0)
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
            "a Context is not made directly: take Device.context, Stream.context or Event.context",
        ))
    }

    /// The driver's handle, a ``cuda.bindings.driver.CUcontext``; 0 once the object was closed.
    #[getter]
    fn handle(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        handle_object(py, class::CUcontext, self.address(py))
    }

    /// Whether :meth:`close` was called.
    #[getter]
    fn is_closed(&self, py: Python<'_>) -> bool {
        self.slot.is_closed(py)
    }

    /// Whether this is a green context, which owns a part of its device. Contexts of this version are not.
    #[getter]
    fn is_green(&self, py: Python<'_>) -> PyResult<bool> {
        self.get(py).map(|_| false)
    }

    /// Streams of a device's primary context are made by :meth:`Device.create_stream`.
    ///
    /// Parameters
    /// ----------
    /// options : StreamOptions, optional
    ///     How the stream is made.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     The context is not a green one.
    #[pyo3(signature = (options=None))]
    fn create_stream(&self, py: Python<'_>, options: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let _ = options;
        self.get(py)?;
        Err(PyRuntimeError::new_err(
            "streams of a context of their own are for green contexts; this one is not green: use \
             Device.create_stream()",
        ))
    }

    /// Lets go of the context. The object cannot be used afterwards; the context itself stays as long as anybody else
    /// uses it, a primary one until the process ends.
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
        drop(self.slot.close(py));
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
        match self.slot.read(py, Context::clone) {
            Some(context) => format!(
                "<Context handle={:#x} device={}>",
                context.handle().addr(),
                context.device().ordinal()
            ),
            None => "<Context handle=0x0>".to_owned(),
        }
    }
}

/// A handle object of the bindings.
///
/// # Errors
///
/// Memory.
pub fn handle_object(py: Python<'_>, id: types::ClassId, address: usize) -> PyResult<Py<PyAny>> {
    // SAFETY: a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(py, types::new_handle(id, address as u64)) }
        .map(Bound::unbind)
}

/// Adds the class.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    core.add_class::<PyContext>()
}
