//! `_SynchronousMemoryResource`.

use cupyrite::Device;
use pyo3::prelude::*;

use crate::core::device;
use crate::core::errors::OrRaise;
use crate::core::memory::buffer::{Backing, PyBuffer};
use crate::core::memory::resource::base::PyMemoryResource;
use crate::core::numbers::{address_argument, size_argument};
use crate::core::stream;

/// Device memory by synchronous allocation (``cuMemAlloc``), for devices without memory pools.
///
/// Deallocation synchronizes with the device.
#[pyclass(
    frozen,
    subclass,
    extends = PyMemoryResource,
    module = "cuda.core._memory._legacy",
    name = "_SynchronousMemoryResource"
)]
pub struct PySynchronousMemoryResource {
    device: Device,
}

#[pymethods]
impl PySynchronousMemoryResource {
    #[new]
    #[pyo3(signature = (device_id))]
    fn new(
        device_id: &Bound<'_, PyAny>,
    ) -> PyResult<PyClassInitializer<PySynchronousMemoryResource>> {
        let device = device::accept(device_id, "_SynchronousMemoryResource", "device_id")?;
        Ok(PyClassInitializer::from(PyMemoryResource)
            .add_subclass(PySynchronousMemoryResource { device }))
    }

    /// Allocates memory.
    ///
    /// Parameters
    /// ----------
    /// size : int
    ///     Size in bytes.
    /// stream : Stream, optional
    ///     Validated, but not used: the allocation is synchronous.
    ///
    /// Returns
    /// -------
    /// Buffer
    #[pyo3(signature = (size, *, stream=None))]
    fn allocate(
        slf: &Bound<'_, Self>,
        size: &Bound<'_, PyAny>,
        stream: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyBuffer>> {
        let py = slf.py();
        let size = size_argument(size, "allocate")?;
        if let Some(stream) = stream {
            stream::accept(stream, "allocate", "stream", false)?;
        }
        let device = slf.get().device;
        let memory = py.detach(|| device.buffer::<u8>(size)).or_raise(py)?;
        let address = memory.address();
        let resource = slf.clone().into_any().unbind();
        PyBuffer::create(
            py,
            Backing::Synchronous(memory),
            address,
            size,
            Some(resource),
            None,
        )
    }

    /// Frees memory by address after the stream's work has completed. Buffers free their memory themselves.
    ///
    /// Parameters
    /// ----------
    /// ptr : int or cuda.bindings.driver.CUdeviceptr
    ///     Address.
    /// size : int
    ///     Size in bytes.
    /// stream : Stream, optional
    ///     Stream to wait for.
    #[pyo3(signature = (ptr, size, *, stream=None))]
    fn deallocate(
        &self,
        py: Python<'_>,
        ptr: &Bound<'_, PyAny>,
        size: &Bound<'_, PyAny>,
        stream: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let address = address_argument(ptr, "deallocate")?;
        size_argument(size, "deallocate")?;
        let stream = stream
            .map(|stream| stream::accept(stream, "deallocate", "stream", false))
            .transpose()?;
        let device = self.device;
        // SAFETY: the caller guarantees that the memory is no longer used; the driver rejects addresses that it did not
        // allocate.
        py.detach(move || unsafe { device.free(address, stream.as_ref()) })
            .or_raise(py)
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
