//! `OpaqueArray` and `MipmappedArray`.

use cupyrite::{ArrayOptions, Device, MipmappedArray, OpaqueArray};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::core::closable::{Closable, drop_detached};
use crate::core::device;
use crate::core::device::PyDevice;
use crate::core::errors::OrRaise;
use crate::core::keyword_only::KeywordOnly;
use crate::core::numbers::short_repr;
use crate::core::texture::copy;
use crate::core::texture::options;

/// Memory in a layout of the driver's choice, for textures and surfaces.
///
/// Arrays come from :meth:`Device.create_opaque_array` and :meth:`MipmappedArray.get_level`. They have no address: data
/// is copied with :meth:`copy_from` and :meth:`copy_to`. The array is destroyed when it is closed or garbage-collected
/// and no texture or surface uses it. A ``with`` statement closes it.
///
/// See `cuArray3DCreate
/// <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__MEM.html>`_.
#[doc = example!("cuda.core.texture.OpaqueArray")]
#[pyclass(
    frozen,
    weakref,
    module = "cuda.core.texture._array",
    name = "OpaqueArray"
)]
pub struct PyOpaqueArray {
    cell: Closable<OpaqueArray>,
    options: ArrayOptions,
    device: Device,
}

impl PyOpaqueArray {
    /// The Python object of an array.
    pub fn new_value(array: OpaqueArray) -> PyOpaqueArray {
        PyOpaqueArray {
            options: array.options().clone(),
            device: array.context().device(),
            cell: Closable::new(array),
        }
    }

    /// The array.
    ///
    /// # Errors
    ///
    /// `RuntimeError` for a closed array.
    pub fn get(&self, py: Python<'_>) -> PyResult<OpaqueArray> {
        self.cell.get(py, "OpaqueArray")
    }

    /// Closes the array.
    pub fn close_now(&self, py: Python<'_>) {
        if let Some(array) = self.cell.close(py) {
            drop_detached(array);
        }
    }
}

impl Drop for PyOpaqueArray {
    fn drop(&mut self) {
        if let Some(array) = self.cell.take() {
            drop_detached(array);
        }
    }
}

fn displayed(py: Python<'_>, options: &ArrayOptions) -> PyResult<String> {
    let shape = PyTuple::new(py, &options.shape)?.repr()?;
    Ok(format!(
        "shape={shape}, format={}, num_channels={}",
        options.format.name().to_uppercase(),
        options.num_channels
    ))
}

/// Creates an array for `Device.create_opaque_array`.
///
/// # Errors
///
/// Those of the options; driver errors.
pub fn create(device: Device, given: &Bound<'_, PyAny>) -> PyResult<PyOpaqueArray> {
    let py = given.py();
    let options = options::array(given)?;
    let array = py
        .detach(|| OpaqueArray::new(device, &options))
        .or_raise(py)?;
    Ok(PyOpaqueArray {
        options,
        device,
        cell: Closable::new(array),
    })
}

#[pymethods]
impl PyOpaqueArray {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Err(PyRuntimeError::new_err(
            "OpaqueArray cannot be instantiated; use Device.create_opaque_array()",
        ))
    }

    /// Extents in elements.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.options.shape)
    }

    /// Format of a channel.
    #[getter]
    fn format(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        options::format_member(py, self.options.format)
    }

    /// Channels of an element: 1, 2 or 4.
    #[getter]
    fn num_channels(&self) -> u32 {
        self.options.num_channels
    }

    /// Bytes of an element.
    #[getter]
    fn element_bytes(&self) -> usize {
        self.options.element_bytes()
    }

    /// Bytes of all elements.
    #[getter]
    fn size_bytes(&self) -> usize {
        self.options.size_bytes()
    }

    /// Whether surfaces can write the array.
    #[getter]
    fn is_surface_load_store(&self) -> bool {
        self.options.surface_load_store
    }

    /// Driver handle (``CUarray``) as int; 0 if the array was closed.
    #[getter]
    fn handle(&self, py: Python<'_>) -> usize {
        self.cell
            .read(py, |array| array.handle().addr())
            .unwrap_or(0)
    }

    /// The device of the array.
    #[getter]
    fn device(&self, py: Python<'_>) -> PyResult<Py<PyDevice>> {
        device::object(py, self.device)
    }

    /// Whether :meth:`close` was called.
    #[getter]
    fn is_closed(&self, py: Python<'_>) -> bool {
        self.cell.is_closed(py)
    }

    /// Copies all elements from `src`, stream-ordered.
    ///
    /// Parameters
    /// ----------
    /// src : Buffer or array
    ///     A buffer, or an object with the buffer protocol, DLPack or an array interface. Its elements in C order are
    ///     those of the array: channels, then width, height and depth. Contiguous memory may be larger than the array;
    ///     other memory has contiguous rows at one pitch.
    /// stream : Stream
    ///     The stream.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     `src` is too small, or has no such layout.
    #[doc = example!("cuda.core.texture.OpaqueArray.copy_from")]
    #[pyo3(
        signature = (src, *, stream=KeywordOnly(None)),
        text_signature = "($self, src, *, stream)"
    )]
    fn copy_from(&self, src: &Bound<'_, PyAny>, stream: KeywordOnly<'_, '_>) -> PyResult<()> {
        let stream = stream.get("OpaqueArray.copy_from", "stream")?;
        let array = self.get(src.py())?;
        copy::copy(array, src, stream, copy::Direction::ToArray)
    }

    /// Copies all elements to `dst`, stream-ordered; see :meth:`copy_from`.
    ///
    /// Parameters
    /// ----------
    /// dst : Buffer or array
    ///     Writable memory.
    /// stream : Stream
    ///     The stream.
    ///
    /// Returns
    /// -------
    /// object
    ///     `dst`.
    #[doc = example!("cuda.core.texture.OpaqueArray.copy_to")]
    #[pyo3(
        signature = (dst, *, stream=KeywordOnly(None)),
        text_signature = "($self, dst, *, stream)"
    )]
    fn copy_to<'py>(
        &self,
        dst: &Bound<'py, PyAny>,
        stream: KeywordOnly<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let stream = stream.get("OpaqueArray.copy_to", "stream")?;
        let array = self.get(dst.py())?;
        copy::copy(array, dst, stream, copy::Direction::FromArray)?;
        Ok(dst.clone())
    }

    /// Releases the array. It is destroyed when no texture, surface or copy uses it.
    fn close(&self, py: Python<'_>) {
        self.close_now(py);
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&self, py: Python<'_>, _args: &Bound<'_, PyTuple>) {
        self.close_now(py);
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("OpaqueArray({})", displayed(py, &self.options)?))
    }
}

/// An array with levels of detail, each half as large as the one before.
///
/// Mipmapped arrays come from :meth:`Device.create_mipmapped_array`. The memory is released when the array and its levels
/// are closed or garbage-collected. A ``with`` statement closes it.
///
/// See `cuMipmappedArrayCreate
/// <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__MEM.html>`_.
#[doc = example!("cuda.core.texture.MipmappedArray")]
#[pyclass(
    frozen,
    weakref,
    module = "cuda.core.texture._mipmapped_array",
    name = "MipmappedArray"
)]
pub struct PyMipmappedArray {
    cell: Closable<MipmappedArray>,
    options: ArrayOptions,
    levels: u32,
    device: Device,
}

impl PyMipmappedArray {
    /// The array.
    ///
    /// # Errors
    ///
    /// `RuntimeError` for a closed array.
    pub fn get(&self, py: Python<'_>) -> PyResult<MipmappedArray> {
        self.cell.get(py, "MipmappedArray")
    }

    fn close_now(&self, py: Python<'_>) {
        if let Some(array) = self.cell.close(py) {
            drop_detached(array);
        }
    }
}

impl Drop for PyMipmappedArray {
    fn drop(&mut self) {
        if let Some(array) = self.cell.take() {
            drop_detached(array);
        }
    }
}

/// Creates an array for `Device.create_mipmapped_array`.
///
/// # Errors
///
/// Those of the options; driver errors.
pub fn create_mipmapped(device: Device, given: &Bound<'_, PyAny>) -> PyResult<PyMipmappedArray> {
    let py = given.py();
    let (options, levels) = options::mipmapped(given)?;
    let array = py
        .detach(|| MipmappedArray::new(device, &options, levels))
        .or_raise(py)?;
    Ok(PyMipmappedArray {
        cell: Closable::new(array),
        options,
        levels,
        device,
    })
}

#[pymethods]
impl PyMipmappedArray {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Err(PyRuntimeError::new_err(
            "MipmappedArray cannot be instantiated; use Device.create_mipmapped_array()",
        ))
    }

    /// Extents of level 0 in elements.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.options.shape)
    }

    /// Format of a channel.
    #[getter]
    fn format(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        options::format_member(py, self.options.format)
    }

    /// Channels of an element: 1, 2 or 4.
    #[getter]
    fn num_channels(&self) -> u32 {
        self.options.num_channels
    }

    /// Number of levels.
    #[getter]
    fn num_levels(&self) -> u32 {
        self.levels
    }

    /// Whether surfaces can write the levels.
    #[getter]
    fn is_surface_load_store(&self) -> bool {
        self.options.surface_load_store
    }

    /// Driver handle (``CUmipmappedArray``) as int; 0 if the array was closed.
    #[getter]
    fn handle(&self, py: Python<'_>) -> usize {
        self.cell
            .read(py, |array| array.handle().addr())
            .unwrap_or(0)
    }

    /// The device of the array.
    #[getter]
    fn device(&self, py: Python<'_>) -> PyResult<Py<PyDevice>> {
        device::object(py, self.device)
    }

    /// Whether :meth:`close` was called.
    #[getter]
    fn is_closed(&self, py: Python<'_>) -> bool {
        self.cell.is_closed(py)
    }

    /// The array of one level, which keeps this array's memory alive.
    ///
    /// Parameters
    /// ----------
    /// level : int
    ///     From 0, the largest, to ``num_levels - 1``.
    ///
    /// Returns
    /// -------
    /// OpaqueArray
    #[doc = example!("cuda.core.texture.MipmappedArray.get_level")]
    fn get_level(&self, py: Python<'_>, level: &Bound<'_, PyAny>) -> PyResult<PyOpaqueArray> {
        let array = self.get(py)?;
        let number = match level.extract::<i64>() {
            Ok(number) => u32::try_from(number).ok(),
            Err(error) if error.is_instance_of::<PyTypeError>(py) => {
                return Err(PyTypeError::new_err(format!(
                    "MipmappedArray.get_level() argument 'level' is {}; expected an int",
                    short_repr(level)
                )));
            }
            Err(_) => None,
        };
        let Some(number) = number.filter(|&number| number < self.levels) else {
            return Err(PyValueError::new_err(format!(
                "MipmappedArray.get_level() argument 'level' is {}; expected 0 to {}",
                short_repr(level),
                self.levels - 1
            )));
        };
        let level = py.detach(|| array.level(number)).or_raise(py)?;
        Ok(PyOpaqueArray::new_value(level))
    }

    /// Releases the array. It is destroyed when no level, texture or copy uses it.
    fn close(&self, py: Python<'_>) {
        self.close_now(py);
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&self, py: Python<'_>, _args: &Bound<'_, PyTuple>) {
        self.close_now(py);
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!(
            "MipmappedArray({}, num_levels={})",
            displayed(py, &self.options)?,
            self.levels
        ))
    }
}
