//! `MemoryResource`, the base class of memory resources, and the conversion of their arguments.

use cupyrite::Stream;
use pyo3::exceptions::{PyDeprecationWarning, PyOverflowError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::core::keyword_only::KeywordOnly;
use crate::core::numbers::short_repr;
use crate::core::options::Options;
use crate::core::stream;

/// Base class of all memory resources.
///
/// Derive from it to implement a resource: ``allocate`` returns ``Buffer.from_handle(ptr, size, mr=self)``,
/// ``deallocate`` receives the address once, when that buffer is closed or garbage-collected, and the properties
/// describe the memory. ``Device.memory_resource`` accepts such a resource.
#[doc = example!("cuda.core.MemoryResource")]
#[pyclass(
    frozen,
    weakref,
    subclass,
    module = "cuda.core._memory._buffer",
    name = "MemoryResource"
)]
pub struct PyMemoryResource;

fn not_implemented(what: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "MemoryResource.{what} must be implemented by a subclass"
    ))
}

#[pymethods]
impl PyMemoryResource {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> PyMemoryResource {
        PyMemoryResource
    }

    /// Allocates memory; implemented by subclasses.
    ///
    /// Parameters
    /// ----------
    /// size : int
    ///     Size in bytes.
    /// stream : Stream
    ///     Stream of the stream-ordered allocation.
    ///
    /// Returns
    /// -------
    /// Buffer
    #[doc = example!("cuda.core.MemoryResource.allocate")]
    #[pyo3(
        signature = (size, *, stream=KeywordOnly(None)),
        text_signature = "($self, size, *, stream)"
    )]
    fn allocate(
        &self,
        size: &Bound<'_, PyAny>,
        stream: KeywordOnly<'_, '_>,
    ) -> PyResult<Py<PyAny>> {
        let stream = stream.get("MemoryResource.allocate", "stream")?;
        let (_, _) = (size, stream);
        Err(not_implemented("allocate()"))
    }

    /// Frees memory that this resource allocated; implemented by subclasses.
    ///
    /// Parameters
    /// ----------
    /// ptr : int
    ///     Address.
    /// size : int
    ///     Size in bytes.
    /// stream : Stream
    ///     Stream of the stream-ordered deallocation.
    #[doc = example!("cuda.core.MemoryResource.deallocate")]
    #[pyo3(
        signature = (ptr, size, *, stream=KeywordOnly(None)),
        text_signature = "($self, ptr, size, *, stream)"
    )]
    fn deallocate(
        &self,
        ptr: &Bound<'_, PyAny>,
        size: &Bound<'_, PyAny>,
        stream: KeywordOnly<'_, '_>,
    ) -> PyResult<()> {
        let stream = stream.get("MemoryResource.deallocate", "stream")?;
        let (_, _, _) = (ptr, size, stream);
        Err(not_implemented("deallocate()"))
    }

    /// Whether kernels can access the memory; implemented by subclasses.
    #[getter]
    fn is_device_accessible(&self) -> PyResult<bool> {
        Err(not_implemented("is_device_accessible"))
    }

    /// Whether the host can access the memory; implemented by subclasses.
    #[getter]
    fn is_host_accessible(&self) -> PyResult<bool> {
        Err(not_implemented("is_host_accessible"))
    }

    /// Whether the memory is managed. Default: False.
    #[getter]
    fn is_managed(&self) -> bool {
        false
    }

    /// Device number of the memory; implemented by subclasses.
    #[getter]
    fn device_id(&self) -> PyResult<i64> {
        Err(not_implemented("device_id"))
    }
}

/// Converts a stream argument whose omission is deprecated.
///
/// # Errors
///
/// As [`stream::accept`]; the deprecation warning, if it is an error.
#[inline(always)]
pub fn stream_or_default<'py>(
    py: Python<'py>,
    given: Option<&Bound<'py, PyAny>>,
    function: &str,
) -> PyResult<Stream> {
    if let Some(given) = given {
        return stream::accept_for_memory(given, function, "stream");
    }
    warn_of_default(py)?;
    stream::selected_default(py)
}

#[cold]
#[inline(never)]
fn warn_of_default(py: Python<'_>) -> PyResult<()> {
    let category = py.get_type::<PyDeprecationWarning>();
    PyErr::warn(
        py,
        &category,
        c"allocate() without a stream is deprecated; pass stream=device.default_stream",
        1,
    )
}

/// Reads `max_size` of the options of a pool; 0 if None. `class` is the option class in messages.
///
/// # Errors
///
/// `OverflowError` for other values than a number of bytes.
pub fn max_size(py: Python<'_>, options: &Options<'_>, class: &str) -> PyResult<usize> {
    let Some(size) = options.value(intern!(py, "max_size"))? else {
        return Ok(0);
    };
    size.extract().map_err(|_| {
        PyOverflowError::new_err(format!(
            "{class}.max_size is {}; expected a number of bytes from 0 to 2**64-1",
            short_repr(&size)
        ))
    })
}
