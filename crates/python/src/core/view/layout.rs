//! `_StridedLayout`: the memory layout of a view's elements.

use cupyrite::{Index, StrideOrder, StridedLayout};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyInt, PySlice, PyString, PyTuple, PyType};

use crate::core::errors::OrRaise;
use crate::core::numbers::short_repr;

/// Shape, strides and element size of an array.
///
/// Element ``(i, j, ...)`` is at ``slice_offset + i * strides[0] + j * strides[1] + ...`` elements from the base
/// address. Methods return new layouts and access no memory; :meth:`StridedMemoryView.view` applies a layout.
///
/// Parameters
/// ----------
/// shape : tuple of int
///     Extents; at most 64.
/// strides : tuple of int or None
///     Strides in elements; may be 0 or negative. None: C order.
/// itemsize : int
///     Element size in bytes.
/// divide_strides : bool, optional
///     Whether the strides are given in bytes.
///
/// Raises
/// ------
/// ValueError
///     Negative extents, a number of strides other than the number of extents, strides that are not multiples of the
///     element size, or elements outside the address space.
#[pyclass(frozen, module = "cuda.core._layout", name = "_StridedLayout")]
pub struct PyLayout {
    layout: StridedLayout,
    shape: PyOnceLock<Py<PyTuple>>,
}

/// Converts a tuple of ints, such as a shape.
///
/// # Errors
///
/// `TypeError` for other types, `OverflowError` for ints beyond 64 bits.
pub fn numbers(given: &Bound<'_, PyAny>, function: &str, parameter: &str) -> PyResult<Vec<i64>> {
    let Ok(tuple) = given.cast::<PyTuple>() else {
        return Err(PyTypeError::new_err(format!(
            "{function}() argument '{parameter}' is of type {}; expected a tuple of ints",
            given.get_type().name()?
        )));
    };
    let mut all = Vec::with_capacity(tuple.len());
    for item in tuple.iter_borrowed() {
        all.push(number(&item, function, parameter)?);
    }
    Ok(all)
}

fn number(item: &Bound<'_, PyAny>, function: &str, parameter: &str) -> PyResult<i64> {
    item.extract::<i64>().map_err(|error| {
        let text = |expected: &str| {
            format!(
                "{function}() argument '{parameter}' contains {}; expected {expected}",
                short_repr(item)
            )
        };
        if error.is_instance_of::<pyo3::exceptions::PyOverflowError>(item.py()) {
            pyo3::exceptions::PyOverflowError::new_err(text("numbers of at most 64 bits"))
        } else {
            PyTypeError::new_err(text("ints"))
        }
    })
}

/// Creates a tuple of ints.
pub fn tuple<'py>(py: Python<'py>, numbers: &[i64]) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, numbers)
}

/// Normalizes an axis of a layout with `dims` dimensions; negative axes count from the end.
fn axis(given: i64, dims: usize, parameter: &str) -> PyResult<usize> {
    let dims_number = dims as i64;
    let from_start = if given < 0 {
        given + dims_number
    } else {
        given
    };
    usize::try_from(from_start)
        .ok()
        .filter(|&axis| axis < dims)
        .ok_or_else(|| {
            PyValueError::new_err(format!(
                "_StridedLayout: argument '{parameter}' is {given}; there are {dims} dimensions"
            ))
        })
}

fn axes(given: &[i64], dims: usize, parameter: &str) -> PyResult<Vec<usize>> {
    given.iter().map(|&a| axis(a, dims, parameter)).collect()
}

/// Converts `'C'`, `'F'` or a permutation; `None` for `'K'`.
fn order(given: &Bound<'_, PyAny>, dims: usize) -> PyResult<Option<StrideOrder>> {
    if let Ok(text) = given.cast::<PyString>() {
        return match text.to_string_lossy().as_ref() {
            "C" => Ok(Some(StrideOrder::C)),
            "F" => Ok(Some(StrideOrder::Fortran)),
            "K" => Ok(None),
            _ => Err(PyValueError::new_err(format!(
                "_StridedLayout: argument 'stride_order' is {}; expected 'C', 'F', 'K' or a permutation of the axes",
                short_repr(given)
            ))),
        };
    }
    let axes = axes(
        &numbers(given, "_StridedLayout", "stride_order")?,
        dims,
        "stride_order",
    )?;
    Ok(Some(StrideOrder::Axes(axes)))
}

impl PyLayout {
    /// Creates the Python object of a layout.
    pub fn make(py: Python<'_>, layout: StridedLayout) -> PyResult<Py<PyLayout>> {
        Py::new(py, PyLayout::of(layout))
    }

    fn of(layout: StridedLayout) -> PyLayout {
        PyLayout {
            layout,
            shape: PyOnceLock::new(),
        }
    }

    /// The layout.
    pub fn layout(&self) -> &StridedLayout {
        &self.layout
    }
}

#[pymethods]
impl PyLayout {
    #[new]
    #[pyo3(
        signature = (shape, strides, itemsize, divide_strides=None),
        text_signature = "(shape, strides, itemsize, divide_strides=False)"
    )]
    fn new(
        py: Python<'_>,
        shape: &Bound<'_, PyAny>,
        strides: Option<&Bound<'_, PyAny>>,
        itemsize: &Bound<'_, PyAny>,
        divide_strides: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyLayout> {
        let function = "_StridedLayout";
        let shape = numbers(shape, function, "shape")?;
        let strides = strides
            .map(|strides| numbers(strides, function, "strides"))
            .transpose()?;
        let itemsize = item_size(itemsize, "itemsize")?;
        let in_bytes = divide_strides.map_or(Ok(false), Bound::is_truthy)?;
        let layout = match strides {
            Some(strides) if in_bytes => {
                StridedLayout::with_byte_strides(&shape, &strides, itemsize)
            }
            strides => StridedLayout::new(&shape, strides.as_deref(), itemsize),
        };
        Ok(PyLayout::of(layout.or_raise(py)?))
    }

    /// Creates a dense layout.
    ///
    /// Parameters
    /// ----------
    /// shape : tuple of int
    ///     Extents.
    /// itemsize : int
    ///     Element size in bytes.
    /// stride_order : str or tuple of int, optional
    ///     ``'C'``, ``'F'``, or all axes from the largest stride to the contiguous one.
    #[classmethod]
    #[pyo3(signature = (shape, itemsize, stride_order=None))]
    fn dense(
        cls: &Bound<'_, PyType>,
        shape: &Bound<'_, PyAny>,
        itemsize: &Bound<'_, PyAny>,
        stride_order: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyLayout> {
        let shape = numbers(shape, "_StridedLayout.dense", "shape")?;
        let order = match stride_order {
            Some(given) => order(given, shape.len())?.ok_or_else(|| {
                PyValueError::new_err(
                    "_StridedLayout.dense() argument 'stride_order' is 'K', which requires an existing order; expected 'C', 'F' or a permutation of the axes",
                )
            })?,
            None => StrideOrder::C,
        };
        let layout = StridedLayout::dense(&shape, item_size(itemsize, "itemsize")?, &order);
        Ok(PyLayout::of(layout.or_raise(cls.py())?))
    }

    /// Creates the dense layout of another layout; see :meth:`to_dense`.
    #[classmethod]
    #[pyo3(signature = (other, stride_order=None))]
    fn dense_like(
        _cls: &Bound<'_, PyType>,
        other: &Bound<'_, PyLayout>,
        stride_order: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyLayout>> {
        PyLayout::to_dense(other, stride_order)
    }

    /// Extents.
    #[getter]
    fn shape(&self, py: Python<'_>) -> PyResult<Py<PyTuple>> {
        let created = || tuple(py, self.layout.shape()).map(Bound::unbind);
        Ok(self.shape.get_or_try_init(py, created)?.clone_ref(py))
    }

    /// Strides in elements; None for a layout created without strides.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.layout
            .has_explicit_strides()
            .then(|| tuple(py, self.layout.strides()))
            .transpose()
    }

    /// Strides in bytes; None for a layout created without strides.
    #[getter]
    fn strides_in_bytes<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.layout
            .has_explicit_strides()
            .then(|| tuple(py, &self.layout.strides_in_bytes()))
            .transpose()
    }

    /// Element size in bytes.
    #[getter]
    fn itemsize(&self) -> usize {
        self.layout.item_size()
    }

    /// Number of dimensions.
    #[getter]
    fn ndim(&self) -> usize {
        self.layout.ndim()
    }

    /// Number of elements.
    #[getter]
    fn volume(&self) -> i64 {
        self.layout.volume()
    }

    /// Offset of the element with all indices zero from the base address, in elements.
    #[getter]
    fn slice_offset(&self) -> i64 {
        self.layout.offset()
    }

    /// :attr:`slice_offset` in bytes.
    #[getter]
    fn slice_offset_in_bytes(&self) -> i64 {
        self.layout.offset_in_bytes()
    }

    /// Smallest and largest element offset from the base address; ``(0, -1)`` for an empty layout.
    #[getter]
    fn offset_bounds(&self) -> (i64, i64) {
        self.layout.bounds()
    }

    /// Smallest element offset from the base address.
    #[getter]
    fn min_offset(&self) -> i64 {
        self.layout.bounds().0
    }

    /// Largest element offset from the base address.
    #[getter]
    fn max_offset(&self) -> i64 {
        self.layout.bounds().1
    }

    /// Axes from the largest stride to the smallest.
    #[getter]
    fn stride_order<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.layout.stride_order())
    }

    /// Whether the elements are contiguous in C order.
    #[getter]
    fn is_contiguous_c(&self) -> bool {
        self.layout.is_contiguous_c()
    }

    /// Whether the elements are contiguous in Fortran order.
    #[getter]
    fn is_contiguous_f(&self) -> bool {
        self.layout.is_contiguous_f()
    }

    /// Whether the elements are contiguous in any order of the axes.
    #[getter]
    fn is_contiguous_any(&self) -> bool {
        self.layout.is_contiguous_any()
    }

    /// Whether the elements are contiguous and start at the base address.
    #[getter]
    fn is_dense(&self) -> bool {
        self.layout.is_dense()
    }

    /// Whether no two elements overlap. True is exact; False may be conservative for unusual strides.
    #[getter]
    fn is_unique(&self) -> bool {
        self.layout.is_unique()
    }

    /// Bytes of memory, from the base address, that the layout requires.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     An element lies before the base address.
    fn required_size_in_bytes(&self, py: Python<'_>) -> PyResult<usize> {
        self.layout.required_size().or_raise(py)
    }

    /// Returns the dense layout of the same shape: this layout if it is dense in that order.
    ///
    /// Parameters
    /// ----------
    /// stride_order : str or tuple of int, optional
    ///     ``'K'`` (default) preserves the order of the axes; other values as in :meth:`dense`.
    #[pyo3(signature = (stride_order=None))]
    fn to_dense(
        slf: &Bound<'_, Self>,
        stride_order: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyLayout>> {
        let layout = &slf.get().layout;
        let order = match stride_order {
            Some(given) => order(given, layout.ndim())?,
            None => None,
        };
        if layout.is_dense_in(order.as_ref()) {
            return Ok(slf.clone().unbind());
        }
        let dense = layout.to_dense(order.as_ref()).or_raise(slf.py())?;
        PyLayout::make(slf.py(), dense)
    }

    /// Indexes the leading axes; equivalent to ``layout[1:, ::2]``.
    ///
    /// Parameters
    /// ----------
    /// slices : int, slice, or tuple of them
    ///     Index of each axis; ints remove their axis.
    fn sliced(&self, py: Python<'_>, slices: &Bound<'_, PyAny>) -> PyResult<PyLayout> {
        let given: Vec<Bound<'_, PyAny>> = match slices.cast::<PyTuple>() {
            Ok(all) => all.iter().collect(),
            Err(_) => vec![slices.clone()],
        };
        let mut indices = Vec::with_capacity(given.len());
        for (place, index) in given.iter().enumerate() {
            indices.push(if let Ok(slice) = index.cast::<PySlice>() {
                // Excess indices are rejected by `sliced`.
                let extent = self.layout.shape().get(place).copied().unwrap_or(0);
                let parts = slice.indices(extent as isize)?;
                Index::Range {
                    start: parts.start as i64,
                    len: parts.slicelength as i64,
                    step: parts.step as i64,
                }
            } else if index.is_instance_of::<PyInt>() {
                Index::At(number(index, "_StridedLayout.sliced", "slices")?)
            } else {
                return Err(PyTypeError::new_err(format!(
                    "_StridedLayout.sliced() argument 'slices' contains {}; expected ints and slices",
                    short_repr(index)
                )));
            });
        }
        let layout = self.layout.sliced(&indices).or_raise(py)?;
        Ok(PyLayout::of(layout))
    }

    fn __getitem__(&self, py: Python<'_>, slices: &Bound<'_, PyAny>) -> PyResult<PyLayout> {
        self.sliced(py, slices)
    }

    /// Permutes the axes.
    ///
    /// Parameters
    /// ----------
    /// axis_order : tuple of int
    ///     All axes in the order of the result.
    fn permuted(&self, py: Python<'_>, axis_order: &Bound<'_, PyAny>) -> PyResult<PyLayout> {
        let given = numbers(axis_order, "_StridedLayout.permuted", "axis_order")?;
        let axes = axes(&given, self.layout.ndim(), "axis_order")?;
        Ok(PyLayout::of(self.layout.permuted(&axes).or_raise(py)?))
    }

    /// Returns a layout with another shape for the same elements in the same order.
    ///
    /// Parameters
    /// ----------
    /// shape : tuple of int
    ///     Extents; one may be -1 and is inferred.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     The number of elements differs, or the elements would have to be copied.
    fn reshaped(&self, py: Python<'_>, shape: &Bound<'_, PyAny>) -> PyResult<PyLayout> {
        let shape = numbers(shape, "_StridedLayout.reshaped", "shape")?;
        Ok(PyLayout::of(self.layout.reshaped(&shape).or_raise(py)?))
    }

    /// Merges adjacent axes that can be traversed as one.
    ///
    /// Parameters
    /// ----------
    /// start_axis, end_axis : int, optional
    ///     First and last axis to merge.
    /// mask : int, optional
    ///     Bit ``i`` permits merging axis ``i`` into the preceding axis; overrides the other parameters.
    #[pyo3(
        signature = (start_axis=0, end_axis=-1, mask=None),
        text_signature = "($self, start_axis=0, end_axis=-1, mask=None)"
    )]
    fn flattened(
        &self,
        py: Python<'_>,
        start_axis: i64,
        end_axis: i64,
        mask: Option<u64>,
    ) -> PyResult<PyLayout> {
        let dims = self.layout.ndim();
        let mask = match mask {
            Some(mask) => mask,
            None if dims == 0 => 0,
            None => {
                let (first, last) = (
                    axis(start_axis, dims, "start_axis")?,
                    axis(end_axis, dims, "end_axis")?,
                );
                (first + 1..=last).fold(0, |mask, axis| mask | 1u64 << axis)
            }
        };
        Ok(PyLayout::of(self.layout.flattened(mask).or_raise(py)?))
    }

    /// Axes that :meth:`flattened` can merge into the preceding axis: bit ``i`` for axis ``i``.
    fn flattened_axis_mask(&self) -> u64 {
        self.layout.flattened_axis_mask()
    }

    /// Removes axes of extent 1. An empty layout is reduced to one axis of extent 0.
    fn squeezed(&self, py: Python<'_>) -> PyResult<PyLayout> {
        Ok(PyLayout::of(self.layout.squeezed().or_raise(py)?))
    }

    /// Inserts axes of extent 1.
    ///
    /// Parameters
    /// ----------
    /// axis : int or tuple of int
    ///     Positions in the result.
    fn unsqueezed(&self, py: Python<'_>, axis: &Bound<'_, PyAny>) -> PyResult<PyLayout> {
        let given = if axis.is_instance_of::<PyTuple>() {
            numbers(axis, "_StridedLayout.unsqueezed", "axis")?
        } else {
            vec![number(axis, "_StridedLayout.unsqueezed", "axis")?]
        };
        let axes = axes(&given, self.layout.ndim() + given.len(), "axis")?;
        Ok(PyLayout::of(self.layout.unsqueezed(&axes).or_raise(py)?))
    }

    /// Broadcasts to another shape; repeated axes have stride 0.
    ///
    /// Parameters
    /// ----------
    /// shape : tuple of int
    ///     Extents of the result.
    fn broadcast_to(&self, py: Python<'_>, shape: &Bound<'_, PyAny>) -> PyResult<PyLayout> {
        let shape = numbers(shape, "_StridedLayout.broadcast_to", "shape")?;
        Ok(PyLayout::of(self.layout.broadcast_to(&shape).or_raise(py)?))
    }

    /// Reinterprets the bytes with another element size: splits elements, or combines adjacent ones.
    ///
    /// Parameters
    /// ----------
    /// itemsize : int
    ///     New element size in bytes.
    /// data_ptr : int, optional
    ///     Base address, checked for the alignment of larger elements.
    /// axis : int, optional
    ///     Axis to split or combine along; its elements must be contiguous.
    /// keep_dim : bool, optional
    ///     Whether to keep an axis whose extent becomes 1.
    #[pyo3(
        signature = (itemsize, data_ptr=0, axis=-1, keep_dim=true),
        text_signature = "($self, itemsize, data_ptr=0, axis=-1, keep_dim=True)"
    )]
    fn repacked(
        &self,
        py: Python<'_>,
        itemsize: &Bound<'_, PyAny>,
        data_ptr: u64,
        axis: i64,
        keep_dim: bool,
    ) -> PyResult<PyLayout> {
        let axis = self::axis(axis, self.layout.ndim(), "axis")?;
        let size = item_size(itemsize, "itemsize")?;
        let layout = self.layout.repacked(size, data_ptr, axis, keep_dim);
        Ok(PyLayout::of(layout.or_raise(py)?))
    }

    /// Largest element size accepted by :meth:`repacked`.
    ///
    /// Parameters
    /// ----------
    /// max_itemsize : int, optional
    ///     Upper bound.
    /// data_ptr, axis : int, optional
    ///     As in :meth:`repacked`.
    #[pyo3(
        signature = (max_itemsize=None, data_ptr=0, axis=-1),
        text_signature = "($self, max_itemsize=16, data_ptr=0, axis=-1)"
    )]
    fn max_compatible_itemsize(
        &self,
        py: Python<'_>,
        max_itemsize: Option<&Bound<'_, PyAny>>,
        data_ptr: u64,
        axis: i64,
    ) -> PyResult<usize> {
        let axis = self::axis(axis, self.layout.ndim(), "axis")?;
        let most = match max_itemsize {
            Some(given) => item_size(given, "max_itemsize")?,
            None => 16,
        };
        self.layout
            .max_compatible_item_size(most, data_ptr, axis)
            .or_raise(py)
    }

    fn __eq__(&self, other: &Bound<'_, PyLayout>) -> bool {
        self.layout == other.get().layout
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let l = &self.layout;
        let strides = match self.strides(py)? {
            Some(strides) => strides.repr()?.to_string(),
            None => "None".to_owned(),
        };
        let offset = match l.offset() {
            0 => String::new(),
            offset => format!(", _slice_offset={offset}"),
        };
        Ok(format!(
            "_StridedLayout(shape={}, strides={strides}, itemsize={}{offset})",
            tuple(py, l.shape())?.repr()?,
            l.item_size()
        ))
    }
}

/// Converts an element size of at least 1 byte.
///
/// # Errors
///
/// `TypeError` for other types, `ValueError` for other ints.
pub fn item_size(given: &Bound<'_, PyAny>, parameter: &str) -> PyResult<usize> {
    let size = number(given, "_StridedLayout", parameter)?;
    usize::try_from(size)
        .ok()
        .filter(|&size| size != 0)
        .ok_or_else(|| {
            PyValueError::new_err(format!(
                "_StridedLayout: argument '{parameter}' is {size}; expected at least 1 byte"
            ))
        })
}

/// Adds the class.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    core.add_class::<PyLayout>()
}
