//! `TensorMapDescriptor`: a tensor for bulk copies between global and shared memory.
//!
//! The options are converted in Python (`cuda.core._tensor_map`); the native class takes numbers in the order of a view's
//! axes, which the driver has reversed.

use cupyrite::dlpack::DataType;
use cupyrite::sys::driver::{
    CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapIm2ColWideMode, CUtensorMapInterleave,
    CUtensorMapL2promotion, CUtensorMapSwizzle,
};
use cupyrite::sys::tensor_map::{Violation, half_bytes};
use cupyrite::{Device, Stream, TensorMap, TensorMapDescription, TensorMapMode};
use pyo3::exceptions::{PyBufferError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyTuple, PyType};
use pyo3::{PyTraverseError, PyVisit};

use crate::core::device;
use crate::core::device::PyDevice;
use crate::core::errors::{OrRaise, message};
use crate::core::numbers::as_i64;
use crate::core::view::import;
use crate::core::view::state;
use crate::core::view::state::PyView;
use crate::cpython::gil_lock::GilLock;

/// A tensor in global memory, for bulk copies of its boxes from and to shared memory (compute capability 9.0).
///
/// Tensor maps come from :meth:`StridedMemoryView.as_tensor_map`. Pass the object to a kernel parameter of type
/// ``const __grid_constant__ CUtensorMap``. A tensor map keeps the view alive.
///
/// See `Tensor map management
/// <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TENSOR__MEMORY.html>`_.
#[doc = example!("cuda.core.TensorMapDescriptor")]
#[pyclass(
    frozen,
    weakref,
    module = "cuda.core._tensor_map",
    name = "TensorMapDescriptor"
)]
pub struct PyTensorMap {
    state: GilLock<MapState>,
    device: Device,
}

struct MapState {
    map: TensorMap,
    view: Py<PyView>,
}

/// Numbers of all modes, as given.
struct Given<'a> {
    data_type: u32,
    element_strides: Option<Vec<u32>>,
    interleave: u32,
    swizzle: u32,
    l2_promotion: u32,
    oob_fill: u32,
    function: &'a str,
}

fn reversed<T: Copy>(numbers: &[T]) -> Vec<T> {
    numbers.iter().rev().copied().collect()
}

/// The message of a violated rule, with the names and the order of Python.
fn refused(violation: &Violation, rank: usize, function: &str) -> PyErr {
    let (name, last) = match violation.parameter {
        "tensorDataType" => ("data_type", 0),
        "tensorRank" => ("the number of dimensions", 0),
        "globalAddress" => ("the address", 0),
        "globalDim" => ("shape", rank - 1),
        // The driver has no stride for the contiguous dimension.
        "globalStrides" => ("strides", rank.saturating_sub(2)),
        "boxDim" => ("box_dim", rank - 1),
        "elementStrides" => ("element_strides", rank - 1),
        "pixelBoxLowerCorner" => ("pixel_box_lower_corner", rank.saturating_sub(3)),
        "pixelBoxUpperCorner" => ("pixel_box_upper_corner", rank.saturating_sub(3)),
        "pixelBoxLowerCornerWidth" => ("pixel_box_lower_corner_width", 0),
        "pixelBoxUpperCornerWidth" => ("pixel_box_upper_corner_width", 0),
        "channelsPerPixel" => ("channels_per_pixel", 0),
        "pixelsPerColumn" => ("pixels_per_column", 0),
        "oobFill" => ("oob_fill", 0),
        "l2Promotion" => ("l2_promotion", 0),
        other => (other, 0),
    };
    let index = match violation.index {
        Some(index) => format!("[{}]", last - index.min(last)),
        None => String::new(),
    };
    PyValueError::new_err(format!("{function}(): {name}{index} {}", violation.problem))
}

/// The device of a view's memory.
fn device_of(view: &PyView, what: &str) -> PyResult<Device> {
    let place = view.device();
    if !place.kind.is_device_accessible() {
        return Err(PyValueError::new_err(format!(
            "{what} is host memory; a tensor map needs memory that the device can access"
        )));
    }
    Device::new(usize::try_from(place.number).unwrap_or(0))
        .map_err(|error| PyValueError::new_err(message(&error)))
}

impl PyTensorMap {
    fn encode(
        view: &Bound<'_, PyView>,
        given: Given<'_>,
        mode: TensorMapMode,
    ) -> PyResult<PyTensorMap> {
        let py = view.py();
        let function = given.function;
        let state = view.get();
        let device = device_of(state, "the view")?;
        let layout = state.layout();
        let rank = layout.ndim();
        let invalid = |text: String| PyValueError::new_err(format!("{function}(): {text}"));
        if rank == 0 || rank > cupyrite::sys::tensor_map::MAX_RANK {
            return Err(invalid(format!(
                "the view has {rank} dimensions; expected 1 to {}",
                cupyrite::sys::tensor_map::MAX_RANK
            )));
        }
        let data_type = CUtensorMapDataType(given.data_type);
        let item = layout.item_size() as u64;
        let element = half_bytes(data_type).map_or(0, |halves| u64::from(halves / 2));
        if element != 0 && element != item {
            return Err(invalid(format!(
                "data_type has elements of {element} bytes, the view of {item}"
            )));
        }
        let dims: Vec<u64> = layout.shape().iter().rev().map(|&n| n as u64).collect();
        let mut bytes: Vec<i64> = reversed(&layout.strides_in_bytes());
        if dims[0] > 1 && bytes[0] != item as i64 && !dims.contains(&0) {
            return Err(invalid(format!(
                "strides[-1] is {} bytes; the elements of the last dimension must be contiguous",
                bytes[0]
            )));
        }
        bytes[0] = item as i64;
        // The stride of a dimension of one element is free: any that the driver takes.
        for index in 1..rank {
            if dims[index] == 1 && (bytes[index] <= 0 || bytes[index] % 32 != 0) {
                let before = bytes[index - 1].unsigned_abs();
                let span = before.saturating_mul(dims[index - 1]).max(1);
                bytes[index] = span.checked_next_multiple_of(32).unwrap_or(32) as i64;
            }
        }
        let description = TensorMapDescription {
            data_type,
            address: state.address(),
            strides: bytes[1..].iter().map(|&n| n as u64).collect(),
            element_strides: match given.element_strides {
                Some(steps) => reversed(&steps),
                None => vec![1; rank],
            },
            dims,
            mode,
            interleave: CUtensorMapInterleave(given.interleave),
            swizzle: CUtensorMapSwizzle(given.swizzle),
            l2_promotion: CUtensorMapL2promotion(given.l2_promotion),
            fill: CUtensorMapFloatOOBfill(given.oob_fill),
        };
        description
            .check()
            .map_err(|violation| refused(&violation, rank, function))?;
        let map = py.detach(|| TensorMap::new(&description)).or_raise(py)?;
        Ok(PyTensorMap {
            state: GilLock::new(MapState {
                map,
                view: view.clone().unbind(),
            }),
            device,
        })
    }

    /// `view.as_tensor_map(box_dim)` for the usual case, a tuple of ints and a view of a common type; `None` if
    /// `cuda.core._tensor_map` has to convert the arguments or to explain what is wrong with them.
    ///
    /// # Errors
    ///
    /// `ValueError` for a violated rule; driver errors.
    pub fn plain<'py>(
        view: &Bound<'py, PyView>,
        box_dim: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = view.py();
        // A subclass may have attributes of its own.
        if !view.is_exact_instance_of::<PyView>() {
            return Ok(None);
        }
        let rank = view.get().layout().ndim();
        let Some(box_dims) = plain_box(box_dim, rank) else {
            return Ok(None);
        };
        let Some(data_type) = view.get().data_type(py).ok().and_then(type_of) else {
            return Ok(None);
        };
        let given = Given {
            data_type: data_type.0,
            element_strides: None,
            interleave: 0,
            swizzle: 0,
            l2_promotion: 0,
            oob_fill: 0,
            function: "StridedMemoryView.as_tensor_map",
        };
        let map = PyTensorMap::encode(view, given, TensorMapMode::Tiled { box_dims })?;
        Ok(Some(Bound::new(py, map)?.into_any()))
    }

    /// The 128 bytes, for a launch on `stream`: the view's buffer is then freed after that launch.
    pub fn use_on(&self, py: Python<'_>, stream: Option<&Stream>) -> [u8; 128] {
        let (bytes, view) = {
            let state = self.state.lock(py);
            (state.map.bytes(), state.view.clone_ref(py))
        };
        if let (Some(buffer), Some(stream)) = (view.get().buffer(py), stream) {
            buffer.get().note_use_on(py, stream, Some(self.device));
        }
        bytes
    }
}

/// The extents of a box of `rank` dimensions in the driver's order, if they are a tuple of ints in range.
fn plain_box(box_dim: &Bound<'_, PyAny>, rank: usize) -> Option<Vec<u32>> {
    let numbers = box_dim.cast_exact::<PyTuple>().ok()?;
    if numbers.len() != rank {
        return None;
    }
    let number = |number: Borrowed<'_, '_, PyAny>| {
        let number = number.cast_exact::<PyInt>().ok()?;
        u32::try_from(as_i64(&number)?).ok()
    };
    numbers.iter_borrowed().rev().map(number).collect()
}

/// The type of a map for elements of this type; `None` if the type has another name, or has none.
fn type_of(elements: DataType) -> Option<CUtensorMapDataType> {
    Some(match (elements.code, elements.bits, elements.lanes) {
        (DataType::UINT, 8, 1) => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_UINT8,
        (DataType::UINT, 16, 1) => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_UINT16,
        (DataType::UINT, 32, 1) => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_UINT32,
        (DataType::UINT, 64, 1) => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_UINT64,
        (DataType::INT, 32, 1) => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_INT32,
        (DataType::INT, 64, 1) => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_INT64,
        (DataType::FLOAT, 16, 1) => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
        (DataType::FLOAT, 32, 1) => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
        (DataType::FLOAT, 64, 1) => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
        _ => return None,
    })
}

fn view<'a, 'py>(given: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, PyView>> {
    given.cast::<PyView>().map_err(|_| {
        PyTypeError::new_err(format!(
            "the tensor is of type {}; expected a StridedMemoryView",
            given
                .get_type()
                .name()
                .map_or_else(|_| "?".to_owned(), |name| name.to_string())
        ))
    })
}

#[pymethods]
impl PyTensorMap {
    #[new]
    fn new() -> PyResult<Self> {
        Err(PyRuntimeError::new_err(
            "TensorMapDescriptor cannot be instantiated; use StridedMemoryView.as_tensor_map()",
        ))
    }

    /// Encodes a tiled map from converted numbers.
    #[staticmethod]
    fn _encode_tiled(
        view: &Bound<'_, PyAny>,
        box_dim: Vec<u32>,
        element_strides: Option<Vec<u32>>,
        data_type: u32,
        modes: (u32, u32, u32, u32),
    ) -> PyResult<PyTensorMap> {
        let (interleave, swizzle, l2_promotion, oob_fill) = modes;
        let given = Given {
            data_type,
            element_strides,
            interleave,
            swizzle,
            l2_promotion,
            oob_fill,
            function: "StridedMemoryView.as_tensor_map",
        };
        let box_dims = reversed(&box_dim);
        PyTensorMap::encode(self::view(view)?, given, TensorMapMode::Tiled { box_dims })
    }

    /// Encodes an im2col map from converted numbers.
    #[staticmethod]
    fn _encode_im2col(
        view: &Bound<'_, PyAny>,
        corners: (Vec<i32>, Vec<i32>),
        pixels: (u32, u32),
        element_strides: Option<Vec<u32>>,
        data_type: u32,
        modes: (u32, u32, u32, u32),
    ) -> PyResult<PyTensorMap> {
        let (interleave, swizzle, l2_promotion, oob_fill) = modes;
        let given = Given {
            data_type,
            element_strides,
            interleave,
            swizzle,
            l2_promotion,
            oob_fill,
            function: "TensorMapDescriptor._from_im2col",
        };
        let ((lower, upper), (channels, pixels)) = (corners, pixels);
        let mode = TensorMapMode::Im2col {
            lower: reversed(&lower),
            upper: reversed(&upper),
            channels,
            pixels,
        };
        PyTensorMap::encode(self::view(view)?, given, mode)
    }

    /// Encodes an im2col map along the width from converted numbers.
    #[staticmethod]
    fn _encode_im2col_wide(
        view: &Bound<'_, PyAny>,
        corners: (i32, i32),
        pixels: (u32, u32, u32),
        element_strides: Option<Vec<u32>>,
        data_type: u32,
        modes: (u32, u32, u32, u32),
    ) -> PyResult<PyTensorMap> {
        let (interleave, swizzle, l2_promotion, oob_fill) = modes;
        let given = Given {
            data_type,
            element_strides,
            interleave,
            swizzle,
            l2_promotion,
            oob_fill,
            function: "TensorMapDescriptor._from_im2col_wide",
        };
        let ((lower, upper), (channels, pixels, mode)) = (corners, pixels);
        let mode = TensorMapMode::Im2colWide {
            lower,
            upper,
            channels,
            pixels,
            mode: CUtensorMapIm2ColWideMode(mode),
        };
        PyTensorMap::encode(self::view(view)?, given, mode)
    }

    /// Creates a tiled map: ``view.as_tensor_map()``.
    #[classmethod]
    #[pyo3(signature = (*args, **kwargs))]
    fn _from_tiled<'py>(
        cls: &Bound<'py, PyType>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        PyModule::import(cls.py(), intern!(cls.py(), "cuda.core._tensor_map"))?
            .getattr(intern!(cls.py(), "_from_tiled"))?
            .call(args, kwargs)
    }

    /// Creates an im2col map of a view; see ``cuda.core._tensor_map._from_im2col``.
    #[classmethod]
    #[pyo3(signature = (*args, **kwargs))]
    fn _from_im2col<'py>(
        cls: &Bound<'py, PyType>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        PyModule::import(cls.py(), intern!(cls.py(), "cuda.core._tensor_map"))?
            .getattr(intern!(cls.py(), "_from_im2col"))?
            .call(args, kwargs)
    }

    /// Creates an im2col map along the width; see ``cuda.core._tensor_map._from_im2col_wide``.
    #[classmethod]
    #[pyo3(signature = (*args, **kwargs))]
    fn _from_im2col_wide<'py>(
        cls: &Bound<'py, PyType>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        PyModule::import(cls.py(), intern!(cls.py(), "cuda.core._tensor_map"))?
            .getattr(intern!(cls.py(), "_from_im2col_wide"))?
            .call(args, kwargs)
    }

    /// Makes this the map of another tensor with the same shape, strides and type.
    ///
    /// Parameters
    /// ----------
    /// tensor : object
    ///     A StridedMemoryView, or an array with DLPack or an array interface, in memory of the same device.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     Host memory, memory of another device, a misaligned address, or less memory than the tensor has.
    #[doc = example!("cuda.core.TensorMapDescriptor.replace_address")]
    fn replace_address(&self, py: Python<'_>, tensor: &Bound<'_, PyAny>) -> PyResult<()> {
        let view = match tensor.cast::<PyView>() {
            Ok(view) => view.clone(),
            Err(_) => {
                if import::Protocol::of(tensor).is_err() {
                    return Err(PyBufferError::new_err(format!(
                        "TensorMapDescriptor.replace_address() argument 'tensor' is of type {}; expected a \
                         StridedMemoryView, or an array with DLPack or __cuda_array_interface__",
                        tensor.get_type().name()?
                    )));
                }
                let ignore = (-1i32).into_pyobject(py)?.into_any();
                let parts = import::from_any(tensor, Some(&ignore))?;
                state::make(py, parts)?.cast_into::<PyView>()?
            }
        };
        let given = view.get();
        let device = device_of(
            given,
            "TensorMapDescriptor.replace_address() argument 'tensor'",
        )?;
        if device != self.device {
            return Err(PyValueError::new_err(format!(
                "TensorMapDescriptor.replace_address() argument 'tensor' is memory of device {}, the tensor map of device {}",
                device.ordinal(),
                self.device.ordinal()
            )));
        }
        let mut map = self.state.lock(py).map.clone();
        let needed = span(map.description());
        // The view's own extent, not that of the allocation: neighbours belong to other views.
        let end = given.layout().required_size().or_raise(py)? as u64;
        let has = end.saturating_sub(given.layout().offset_in_bytes().max(0).cast_unsigned());
        if needed > has {
            return Err(PyValueError::new_err(format!(
                "TensorMapDescriptor.replace_address() argument 'tensor' has {has} bytes, the tensor spans {needed}"
            )));
        }
        let address = given.address();
        py.detach(|| map.replace_address(address).map(|()| map))
            .map_err(|error| match error {
                cupyrite::Error::InvalidArgument { problem, .. } => PyValueError::new_err(format!(
                    "TensorMapDescriptor.replace_address() argument 'tensor': its address {problem}"
                )),
                other => crate::core::errors::to_python(py, &other),
            })
            .map(|map| {
                let view = view.unbind();
                let before = std::mem::replace(&mut *self.state.lock(py), MapState { map, view });
                drop(before);
            })
    }

    /// The device of the tensor's memory.
    #[getter]
    fn device(&self, py: Python<'_>) -> PyResult<Py<PyDevice>> {
        device::object(py, self.device)
    }

    /// The 128 bytes of the map.
    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.state.lock(py).map.bytes())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let description = self.state.lock(py).map.description().clone();
        let module = PyModule::import(py, intern!(py, "cuda.core._tensor_map"))?;
        let name = |class: &str, number: u32| -> PyResult<String> {
            match module.getattr(class)?.call1((number,)) {
                Ok(member) => member.getattr(intern!(py, "name"))?.extract(),
                // A member that only the bindings have.
                Err(_) => Ok(number.to_string()),
            }
        };
        let mode = match description.mode {
            TensorMapMode::Tiled { .. } => "tiled",
            TensorMapMode::Im2col { .. } => "im2col",
            TensorMapMode::Im2colWide { .. } => "im2col_wide",
        };
        Ok(format!(
            "TensorMapDescriptor({mode}, rank={}, dtype={}, swizzle={})",
            description.dims.len(),
            name("TensorMapDataType", description.data_type.0)?,
            name("TensorMapSwizzle", description.swizzle.0)?
        ))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // SAFETY: the collector runs on an attached thread.
        let py = unsafe { Python::assume_attached() };
        match self.state.try_lock(py) {
            Some(state) => visit.call(&state.view),
            None => Ok(()),
        }
    }
}

/// Bytes from the first element to the end of the last one.
fn span(description: &TensorMapDescription) -> u64 {
    let element =
        half_bytes(description.data_type).map_or(1, |halves| u64::from(halves.div_ceil(2)));
    let strides = std::iter::once(element).chain(description.strides.iter().copied());
    let last: u64 = description
        .dims
        .iter()
        .zip(strides)
        .map(|(extent, stride)| (extent - 1).saturating_mul(stride))
        .fold(0, u64::saturating_add);
    last.saturating_add(element)
}

/// Adds the class.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    core.add_class::<PyTensorMap>()
}
