//! `ResourceDescriptor`: what a texture or surface refers to.

use cupyrite::{ArrayFormat, TextureResource};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyType;
use pyo3::{PyTraverseError, PyVisit};

use crate::core::errors::OrRaise;
use crate::core::memory::buffer::PyBuffer;
use crate::core::texture::array::{PyMipmappedArray, PyOpaqueArray};
use crate::core::texture::options;
use crate::core::view::state::PinnedBuffer;

/// The memory behind a :class:`TextureObject` or :class:`SurfaceObject`, created by one of the class methods.
///
/// - :meth:`from_opaque_array`: an array, for textures and surfaces.
/// - :meth:`from_mipmapped_array`: all levels of a mipmapped array, for textures.
/// - :meth:`from_linear`: a buffer, read by index without filtering.
/// - :meth:`from_pitch2d`: rows of a buffer as a picture.
#[doc = example!("cuda.core.texture.ResourceDescriptor")]
#[pyclass(
    frozen,
    weakref,
    module = "cuda.core.texture._texture",
    name = "ResourceDescriptor"
)]
pub struct PyResourceDescriptor {
    source: Source,
}

enum Source {
    Array(Py<PyOpaqueArray>),
    Mipmapped(Py<PyMipmappedArray>),
    Linear {
        buffer: Py<PyBuffer>,
        format: ArrayFormat,
        channels: u32,
        size: usize,
    },
    Pitch2D {
        buffer: Py<PyBuffer>,
        format: ArrayFormat,
        channels: u32,
        width: usize,
        height: usize,
        pitch: usize,
    },
}

/// What a texture needs: the resource, and the pin of its buffer.
pub struct BoundResource {
    /// The resource of crate `cupyrite`.
    pub resource: TextureResource,
    /// Keeps the memory of a buffer valid.
    pub pin: Option<PinnedBuffer>,
}

fn wrong_type(name: &str, expected: &str, given: &Bound<'_, PyAny>) -> PyResult<PyErr> {
    Ok(PyTypeError::new_err(format!(
        "{name} is of type {}; expected {expected}",
        given.get_type().name()?
    )))
}

fn buffer<'a, 'py>(given: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, PyBuffer>> {
    match given.cast::<PyBuffer>() {
        Ok(buffer) => Ok(buffer),
        Err(_) => Err(wrong_type("buffer", "a Buffer", given)?),
    }
}

/// Pins a buffer for a texture.
fn pin(py: Python<'_>, buffer: &Py<PyBuffer>) -> PyResult<(u64, usize, PinnedBuffer)> {
    let pinned = buffer.get().pin(py)?;
    let (address, size) = (pinned.address, pinned.size);
    // The pin moves to the result, which releases it.
    std::mem::forget(pinned);
    Ok((address, size, PinnedBuffer(buffer.clone_ref(py))))
}

impl PyResourceDescriptor {
    /// The resource, checked again: arrays and buffers may have been closed meanwhile.
    ///
    /// # Errors
    ///
    /// `RuntimeError` for a closed array or buffer.
    pub fn bind(&self, py: Python<'_>) -> PyResult<BoundResource> {
        let array = |resource| BoundResource {
            resource,
            pin: None,
        };
        match &self.source {
            Source::Array(of) => Ok(array(TextureResource::array(&of.get().get(py)?))),
            Source::Mipmapped(of) => Ok(array(TextureResource::mipmapped(&of.get().get(py)?))),
            Source::Linear {
                buffer,
                format,
                channels,
                size,
            } => {
                let (address, _, pin) = pin(py, buffer)?;
                // SAFETY: the pin keeps the memory, which never shrinks; the texture's object releases it last.
                let resource = unsafe {
                    TextureResource::linear_raw(address, *size, *format, *channels, None)
                };
                Ok(BoundResource {
                    resource: resource.or_raise(py)?,
                    pin: Some(pin),
                })
            }
            Source::Pitch2D {
                buffer,
                format,
                channels,
                width,
                height,
                pitch,
            } => {
                let (address, _, pin) = pin(py, buffer)?;
                // SAFETY: the pin keeps the memory, which never shrinks; the texture's object releases it last.
                let resource = unsafe {
                    TextureResource::pitch2d_raw(
                        address,
                        (*width, *height, *pitch),
                        *format,
                        *channels,
                        None,
                    )
                };
                Ok(BoundResource {
                    resource: resource.or_raise(py)?,
                    pin: Some(pin),
                })
            }
        }
    }

    /// The array, for a surface.
    ///
    /// # Errors
    ///
    /// `ValueError` for other resources.
    pub fn check_surface(&self) -> PyResult<()> {
        if matches!(self.source, Source::Array(_)) {
            return Ok(());
        }
        Err(PyValueError::new_err(format!(
            "Device.create_surface_object() argument 'resource' is of kind '{}'; expected an array \
             (ResourceDescriptor.from_opaque_array)",
            self.kind()
        )))
    }

    fn element(&self) -> Option<(ArrayFormat, u32)> {
        match &self.source {
            Source::Linear {
                format, channels, ..
            }
            | Source::Pitch2D {
                format, channels, ..
            } => Some((*format, *channels)),
            _ => None,
        }
    }

    fn picture(&self) -> Option<[usize; 3]> {
        match &self.source {
            Source::Pitch2D {
                width,
                height,
                pitch,
                ..
            } => Some([*width, *height, *pitch]),
            _ => None,
        }
    }
}

/// Converts the argument 'resource'.
///
/// # Errors
///
/// `TypeError` for other types.
pub fn accept<'a, 'py>(
    given: &'a Bound<'py, PyAny>,
    function: &str,
) -> PyResult<&'a Bound<'py, PyResourceDescriptor>> {
    match given.cast::<PyResourceDescriptor>() {
        Ok(resource) => Ok(resource),
        Err(_) => Err(wrong_type(
            &format!("{function}() argument 'resource'"),
            "a ResourceDescriptor",
            given,
        )?),
    }
}

#[pymethods]
impl PyResourceDescriptor {
    #[new]
    fn new() -> PyResult<Self> {
        Err(PyRuntimeError::new_err(
            "ResourceDescriptor cannot be instantiated; use ResourceDescriptor.from_opaque_array() or another class method",
        ))
    }

    /// Describes an array, or a level of a mipmapped one.
    ///
    /// Parameters
    /// ----------
    /// array : OpaqueArray
    ///     The array.
    #[doc = example!("cuda.core.texture.ResourceDescriptor.from_opaque_array")]
    #[classmethod]
    fn from_opaque_array(_class: &Bound<'_, PyType>, array: &Bound<'_, PyAny>) -> PyResult<Self> {
        let Ok(given) = array.cast::<PyOpaqueArray>() else {
            return Err(wrong_type("array", "an OpaqueArray", array)?);
        };
        given.get().get(array.py())?;
        Ok(PyResourceDescriptor {
            source: Source::Array(given.clone().unbind()),
        })
    }

    /// Describes all levels of a mipmapped array. For textures only.
    ///
    /// Parameters
    /// ----------
    /// mipmapped_array : MipmappedArray
    ///     The array.
    #[doc = example!("cuda.core.texture.ResourceDescriptor.from_mipmapped_array")]
    #[classmethod]
    fn from_mipmapped_array(
        _class: &Bound<'_, PyType>,
        mipmapped_array: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let Ok(given) = mipmapped_array.cast::<PyMipmappedArray>() else {
            return Err(wrong_type(
                "mipmapped_array",
                "a MipmappedArray",
                mipmapped_array,
            )?);
        };
        given.get().get(mipmapped_array.py())?;
        Ok(PyResourceDescriptor {
            source: Source::Mipmapped(given.clone().unbind()),
        })
    }

    /// Describes a buffer that is read by index. For textures only; filters and address modes have no effect.
    ///
    /// Parameters
    /// ----------
    /// buffer : Buffer
    ///     Device memory. The textures created from the descriptor keep it alive.
    /// format : ArrayFormatType, str, or numpy.dtype
    ///     Format of a channel.
    /// num_channels : int
    ///     Channels of an element: 1, 2 or 4.
    /// size_bytes : int, optional
    ///     Bytes of the buffer, whole elements. Default: all.
    #[doc = example!("cuda.core.texture.ResourceDescriptor.from_linear")]
    #[classmethod]
    #[pyo3(signature = (buffer, *, format, num_channels, size_bytes=None))]
    fn from_linear(
        _class: &Bound<'_, PyType>,
        buffer: &Bound<'_, PyAny>,
        format: &Bound<'_, PyAny>,
        num_channels: &Bound<'_, PyAny>,
        size_bytes: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = buffer.py();
        let buffer = self::buffer(buffer)?;
        let format = options::format(format)?;
        let channels = options::channels(num_channels)?;
        let whole = buffer.get().pin(py)?.size;
        let element = format.bytes() * channels as usize;
        let size = match size_bytes {
            Some(given) => options::count(given, "size_bytes", element)?,
            None => whole,
        };
        if size > whole {
            return Err(PyValueError::new_err(format!(
                "size_bytes is {size}, the buffer has {whole} bytes"
            )));
        }
        if size < element || !size.is_multiple_of(element) {
            return Err(PyValueError::new_err(format!(
                "size_bytes is {size}; expected whole elements of {element} bytes, at least one"
            )));
        }
        Ok(PyResourceDescriptor {
            source: Source::Linear {
                buffer: buffer.clone().unbind(),
                format,
                channels,
                size,
            },
        })
    }

    /// Describes rows of a buffer as a picture. For textures only.
    ///
    /// Parameters
    /// ----------
    /// buffer : Buffer
    ///     Device memory. The textures created from the descriptor keep it alive.
    /// format : ArrayFormatType, str, or numpy.dtype
    ///     Format of a channel.
    /// num_channels : int
    ///     Channels of an element: 1, 2 or 4.
    /// width : int
    ///     Elements of a row.
    /// height : int
    ///     Rows.
    /// pitch_bytes : int
    ///     Bytes between the starts of rows, a multiple of the device's texture pitch alignment.
    #[doc = example!("cuda.core.texture.ResourceDescriptor.from_pitch2d")]
    #[classmethod]
    #[pyo3(signature = (buffer, *, format, num_channels, width, height, pitch_bytes))]
    fn from_pitch2d(
        _class: &Bound<'_, PyType>,
        buffer: &Bound<'_, PyAny>,
        format: &Bound<'_, PyAny>,
        num_channels: &Bound<'_, PyAny>,
        width: &Bound<'_, PyAny>,
        height: &Bound<'_, PyAny>,
        pitch_bytes: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let py = buffer.py();
        let buffer = self::buffer(buffer)?;
        let format = options::format(format)?;
        let channels = options::channels(num_channels)?;
        let whole = buffer.get().pin(py)?.size;
        let width = options::count(width, "width", 1)?;
        let height = options::count(height, "height", 1)?;
        let pitch = options::count(pitch_bytes, "pitch_bytes", 1)?;
        let row = width.saturating_mul(format.bytes() * channels as usize);
        if pitch < row {
            return Err(PyValueError::new_err(format!(
                "pitch_bytes is {pitch}; expected at least the {row} bytes of a row"
            )));
        }
        let needed = pitch.saturating_mul(height);
        if needed > whole {
            return Err(PyValueError::new_err(format!(
                "pitch_bytes * height is {needed}, the buffer has {whole} bytes"
            )));
        }
        Ok(PyResourceDescriptor {
            source: Source::Pitch2D {
                buffer: buffer.clone().unbind(),
                format,
                channels,
                width,
                height,
                pitch,
            },
        })
    }

    /// ``'array'``, ``'mipmapped_array'``, ``'linear'`` or ``'pitch2d'``.
    #[getter]
    fn kind(&self) -> &'static str {
        match &self.source {
            Source::Array(_) => "array",
            Source::Mipmapped(_) => "mipmapped_array",
            Source::Linear { .. } => "linear",
            Source::Pitch2D { .. } => "pitch2d",
        }
    }

    /// The array or buffer.
    #[getter]
    fn source(&self, py: Python<'_>) -> Py<PyAny> {
        match &self.source {
            Source::Array(of) => of.clone_ref(py).into_any(),
            Source::Mipmapped(of) => of.clone_ref(py).into_any(),
            Source::Linear { buffer, .. } | Source::Pitch2D { buffer, .. } => {
                buffer.clone_ref(py).into_any()
            }
        }
    }

    /// Format of a channel; None for arrays, which have their own.
    #[getter]
    fn format(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.element()
            .map(|(format, _)| options::format_member(py, format))
            .transpose()
    }

    /// Channels of an element; None for arrays.
    #[getter]
    fn num_channels(&self) -> Option<u32> {
        self.element().map(|(_, channels)| channels)
    }

    /// Bytes of a linear resource; None for others.
    #[getter]
    fn size_bytes(&self) -> Option<usize> {
        match &self.source {
            Source::Linear { size, .. } => Some(*size),
            _ => None,
        }
    }

    /// Elements of a row of a picture; None for other resources.
    #[getter]
    fn width(&self) -> Option<usize> {
        self.picture().map(|[width, ..]| width)
    }

    /// Rows of a picture; None for other resources.
    #[getter]
    fn height(&self) -> Option<usize> {
        self.picture().map(|[_, height, _]| height)
    }

    /// Bytes between the rows of a picture; None for other resources.
    #[getter]
    fn pitch_bytes(&self) -> Option<usize> {
        self.picture().map(|[.., pitch]| pitch)
    }

    fn __repr__(&self) -> String {
        let mut text = format!("ResourceDescriptor(kind='{}'", self.kind());
        if let Some((format, channels)) = self.element() {
            let format = format.name().to_uppercase();
            text += &format!(", format={format}, num_channels={channels}");
        }
        if let Some(size) = self.size_bytes() {
            text += &format!(", size_bytes={size}");
        }
        if let Some([width, height, pitch]) = self.picture() {
            text += &format!(", width={width}, height={height}, pitch_bytes={pitch}");
        }
        text + ")"
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match &self.source {
            Source::Array(of) => visit.call(of),
            Source::Mipmapped(of) => visit.call(of),
            Source::Linear { buffer, .. } | Source::Pitch2D { buffer, .. } => visit.call(buffer),
        }
    }
}
