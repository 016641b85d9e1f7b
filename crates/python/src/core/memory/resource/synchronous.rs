//! `_SynchronousMemoryResource`.

use cupyrite::Device;
use pyo3::prelude::*;

use crate::core::errors::OrRaise;
use crate::core::memory::buffer::{Backing, PyBuffer};
use crate::core::memory::resource::PyMemoryResource;
use crate::core::numbers::{address_argument, size_argument};
use crate::core::{device, stream};

/// Memory of a device, allocated at once (``cuMemAlloc``): for devices without memory pools.
///
/// Freeing waits for the device.
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
    ///     Bytes.
    /// stream : Stream, optional
    ///     Checked, and not needed: the memory is there at once.
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
        PyBuffer::make(
            py,
            Backing::Plain(memory),
            address,
            size,
            Some(resource),
            None,
        )
    }

    /// Frees memory by its address, once the stream has done its work. A buffer frees its memory itself.
    ///
    /// Parameters
    /// ----------
    /// ptr : int or cuda.bindings.driver.CUdeviceptr
    ///     The address.
    /// size : int
    ///     Bytes.
    /// stream : Stream, optional
    ///     What to wait for.
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
        // SAFETY: that nothing uses the memory any more is what this method asks of its caller; the driver refuses addresses
        // that it did not give out.
        py.detach(move || unsafe { device.free(address, stream.as_ref()) })
            .or_raise(py)
    }

    /// The number of the device.
    #[getter]
    fn device_id(&self) -> usize {
        self.device.ordinal()
    }

    /// True: kernels can use the memory.
    #[getter]
    fn is_device_accessible(&self) -> bool {
        true
    }

    /// False: the host cannot use the memory.
    #[getter]
    fn is_host_accessible(&self) -> bool {
        false
    }
}
