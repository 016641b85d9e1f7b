//! `GraphMemoryResource` and its attributes.

use std::sync::Arc;

use cupyrite::graph::{GraphMemory, GraphMemoryAttribute, GraphMemoryResource};
use cupyrite::{Device, DeviceBuffer, MemoryResource as _};
use pyo3::exceptions::{PyAttributeError, PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyTuple};

use crate::core::device;
use crate::core::errors::OrRaise;
use crate::core::keyword_only::KeywordOnly;
use crate::core::memory::buffer::PyBuffer;
use crate::core::memory::resource::base::PyMemoryResource;
use crate::core::numbers::{address_argument, as_i64, short_repr, size_argument};
use crate::core::stream;

/// Base of ``GraphMemoryResource``.
#[pyclass(
    frozen,
    subclass,
    extends = PyMemoryResource,
    module = "cuda.core._memory._graph_memory_resource",
    name = "cyGraphMemoryResource"
)]
pub struct PyGraphMemoryResource {
    device: Device,
}

#[pymethods]
impl PyGraphMemoryResource {
    #[new]
    #[pyo3(signature = (device_id))]
    fn new(device_id: &Bound<'_, PyAny>) -> PyResult<PyClassInitializer<PyGraphMemoryResource>> {
        let device = device::accept(device_id, "GraphMemoryResource", "device_id")?;
        Ok(PyClassInitializer::from(PyMemoryResource)
            .add_subclass(PyGraphMemoryResource { device }))
    }

    /// Allocates memory in the graph that a stream records. The graph owns the memory.
    ///
    /// Parameters
    /// ----------
    /// size : int
    ///     Size in bytes.
    /// stream : Stream or GraphBuilder
    ///     The builder, or its stream.
    ///
    /// Returns
    /// -------
    /// Buffer
    ///     Closing it with the builder frees the memory in the graph.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     The stream is not being captured.
    #[pyo3(
        signature = (size, *, stream=KeywordOnly(None)),
        text_signature = "($self, size, *, stream)"
    )]
    fn allocate(
        slf: &Bound<'_, Self>,
        size: &Bound<'_, PyAny>,
        stream: KeywordOnly<'_, '_>,
    ) -> PyResult<Py<PyBuffer>> {
        let stream = stream.get("GraphMemoryResource.allocate", "stream")?;
        let py = slf.py();
        let size = size_argument(size, "allocate")?;
        let stream = stream::lend(stream, "allocate", "stream", false)?;
        let (stream, device) = (&*stream, slf.get().device);
        let memory = py
            .detach(|| {
                if !cupyrite::is_capturing(stream)? {
                    return Ok(None);
                }
                let resource = Arc::new(GraphMemoryResource::new(device));
                DeviceBuffer::from_resource(resource, size, stream).map(Some)
            })
            .or_raise(py)?;
        let Some(memory) = memory else {
            return Err(PyRuntimeError::new_err(
                "GraphMemoryResource.allocate() argument 'stream' is not being captured; allocate between \
                 begin_building() and end_building() of a graph builder",
            ));
        };
        let resource = slf.clone().into_any().unbind();
        PyBuffer::of_graph(py, memory, size, resource)
    }

    /// Frees memory by address. Buffers free their memory themselves.
    ///
    /// Parameters
    /// ----------
    /// ptr : int or cuda.bindings.driver.CUdeviceptr
    ///     Address.
    /// size : int
    ///     Size in bytes.
    /// stream : Stream or GraphBuilder
    ///     Where the memory is freed.
    #[pyo3(
        signature = (ptr, size, *, stream=KeywordOnly(None)),
        text_signature = "($self, ptr, size, *, stream)"
    )]
    fn deallocate(
        &self,
        py: Python<'_>,
        ptr: &Bound<'_, PyAny>,
        size: &Bound<'_, PyAny>,
        stream: KeywordOnly<'_, '_>,
    ) -> PyResult<()> {
        let stream = stream.get("GraphMemoryResource.deallocate", "stream")?;
        let address = address_argument(ptr, "deallocate")?;
        let size = size_argument(size, "deallocate")?;
        let stream = stream::lend(stream, "deallocate", "stream", false)?;
        let (stream, resource) = (&*stream, GraphMemoryResource::new(self.device));
        // SAFETY: the caller guarantees that the memory is no longer used; the driver rejects addresses that it did not
        // allocate.
        py.detach(|| unsafe { resource.deallocate(address, size, stream) })
            .or_raise(py)
    }

    /// Returns reserved memory that no graph uses to the system.
    fn trim(&self, py: Python<'_>) -> PyResult<()> {
        let memory = GraphMemory::of(self.device);
        py.detach(|| memory.trim()).or_raise(py)
    }

    /// Has no effect: the memory belongs to the graphs.
    #[expect(clippy::unused_self, reason = "a method of Python")]
    fn close(&self) {}

    /// Counters of the device's memory for graphs.
    #[getter]
    fn attributes(&self) -> PyGraphMemoryAttributes {
        PyGraphMemoryAttributes {
            memory: GraphMemory::of(self.device),
        }
    }

    /// Device number.
    #[getter]
    fn device_id(&self) -> usize {
        self.device.ordinal()
    }

    /// True: the memory is device-accessible.
    #[getter]
    fn is_device_accessible(&self) -> bool {
        true
    }

    /// False: the memory is not host-accessible.
    #[getter]
    fn is_host_accessible(&self) -> bool {
        false
    }
}

/// Counters of a device's memory for graphs, in bytes, read from the driver on each access.
#[pyclass(
    frozen,
    module = "cuda.core._memory._graph_memory_resource",
    name = "GraphMemoryResourceAttributes"
)]
pub struct PyGraphMemoryAttributes {
    memory: GraphMemory,
}

impl PyGraphMemoryAttributes {
    fn read(&self, py: Python<'_>, attribute: GraphMemoryAttribute) -> PyResult<u64> {
        let memory = self.memory;
        py.detach(|| memory.attribute(attribute)).or_raise(py)
    }

    fn reset(
        &self,
        name: &str,
        value: &Bound<'_, PyAny>,
        attribute: GraphMemoryAttribute,
    ) -> PyResult<()> {
        let py = value.py();
        let Ok(number) = value.cast::<PyInt>() else {
            return Err(PyTypeError::new_err(format!(
                "GraphMemoryResourceAttributes.{name} is set to an object of type {}; expected 0, which resets it to the \
                 current value",
                value.get_type().name()?
            )));
        };
        if as_i64(number) != Some(0) {
            // An attribute that cannot have this value, as in NVIDIA's cuda.core.
            return Err(PyAttributeError::new_err(format!(
                "GraphMemoryResourceAttributes.{name} can only be set to 0, which resets it to the current value; got {}",
                short_repr(value)
            )));
        }
        let memory = self.memory;
        py.detach(|| memory.reset(attribute)).or_raise(py)
    }
}

#[pymethods]
impl PyGraphMemoryAttributes {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyGraphMemoryAttributes> {
        Err(PyRuntimeError::new_err(
            "GraphMemoryResourceAttributes cannot be instantiated; use GraphMemoryResource.attributes",
        ))
    }

    /// Bytes that are reserved for graphs.
    #[getter]
    fn reserved_mem_current(&self, py: Python<'_>) -> PyResult<u64> {
        self.read(py, GraphMemoryAttribute::ReservedCurrent)
    }

    /// High watermark of reserved bytes; setting it to 0 resets it.
    #[getter]
    fn reserved_mem_high(&self, py: Python<'_>) -> PyResult<u64> {
        self.read(py, GraphMemoryAttribute::ReservedHigh)
    }

    #[setter]
    fn set_reserved_mem_high(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.reset(
            "reserved_mem_high",
            value,
            GraphMemoryAttribute::ReservedHigh,
        )
    }

    /// Bytes that graphs use.
    #[getter]
    fn used_mem_current(&self, py: Python<'_>) -> PyResult<u64> {
        self.read(py, GraphMemoryAttribute::UsedCurrent)
    }

    /// High watermark of used bytes; setting it to 0 resets it.
    #[getter]
    fn used_mem_high(&self, py: Python<'_>) -> PyResult<u64> {
        self.read(py, GraphMemoryAttribute::UsedHigh)
    }

    #[setter]
    fn set_used_mem_high(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.reset("used_mem_high", value, GraphMemoryAttribute::UsedHigh)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!(
            "GraphMemoryResourceAttributes(reserved_mem_current={}, reserved_mem_high={}, used_mem_current={}, \
             used_mem_high={})",
            self.reserved_mem_current(py)?,
            self.reserved_mem_high(py)?,
            self.used_mem_current(py)?,
            self.used_mem_high(py)?,
        ))
    }
}

/// Adds the classes.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    core.add_class::<PyGraphMemoryResource>()?;
    core.add_class::<PyGraphMemoryAttributes>()
}
