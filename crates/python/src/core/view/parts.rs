//! Views of buffers, and views derived from views.

use cupyrite::StridedLayout;
use cupyrite::dlpack::DeviceType;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::core::dlpack::buffer::device_of;
use crate::core::errors::OrRaise;
use crate::core::memory::buffer::PyBuffer;
use crate::core::view::dtype;
use crate::core::view::dtype::Dtype;

use crate::core::view::layout::{PyLayout, item_size, numbers};
use crate::core::view::state::{MemoryOwner, PinnedBuffer, PyView, ViewState, byte_span};

/// Element description given to `StridedMemoryView.from_buffer`.
pub struct Elements<'a, 'py> {
    /// Extents.
    pub shape: &'a Bound<'py, PyAny>,
    /// Strides in elements.
    pub strides: Option<&'a Bound<'py, PyAny>>,
    /// Element size in bytes.
    pub itemsize: Option<&'a Bound<'py, PyAny>>,
    /// Argument of `numpy.dtype()`.
    pub dtype: Option<&'a Bound<'py, PyAny>>,
}

/// Views a buffer's memory; see `StridedMemoryView.from_buffer`.
///
/// # Errors
///
/// `TypeError` and `ValueError` for invalid arguments, `RuntimeError` for a closed buffer.
pub fn of_buffer(
    buffer: &Bound<'_, PyAny>,
    elements: &Elements<'_, '_>,
    readonly: bool,
) -> PyResult<ViewState> {
    let py = buffer.py();
    let function = "StridedMemoryView.from_buffer";
    let Ok(buffer) = buffer.cast::<PyBuffer>() else {
        return Err(PyTypeError::new_err(format!(
            "{function}() argument 'buffer' is of type {}; expected a Buffer",
            buffer.get_type().name()?
        )));
    };
    let shape = numbers(elements.shape, function, "shape")?;
    let strides = elements
        .strides
        .map(|strides| numbers(strides, function, "strides"))
        .transpose()?;
    let dtype = elements
        .dtype
        .map(|given| dtype::accept(given, function))
        .transpose()?;
    let of_dtype = dtype.as_ref().map(dtype::item_size).transpose()?;
    let given = elements
        .itemsize
        .map(|given| item_size(given, "itemsize"))
        .transpose()?;
    let item = match (given, of_dtype) {
        (Some(given), Some(of_dtype)) if given != of_dtype => {
            return Err(PyValueError::new_err(format!(
                "{function}() argument 'itemsize' is {given}, but 'dtype' has {of_dtype} bytes"
            )));
        }
        (Some(size), _) | (None, Some(size)) => size,
        (None, None) => {
            return Err(PyValueError::new_err(format!(
                "{function}() requires 'dtype' or 'itemsize'"
            )));
        }
    };
    let layout = StridedLayout::new(&shape, strides.as_deref(), item).or_raise(py)?;
    let pinned = buffer.get().pin(py)?;
    let (base, size) = (pinned.address, pinned.size);
    fits(
        function,
        &layout,
        (0, i64::try_from(size).unwrap_or(i64::MAX)),
    )?;
    let device = device_of(buffer.get(), py)?;
    // Host memory resources have no device, and some raise.
    let device_id = match device.kind {
        DeviceType::CUDA => device.number,
        DeviceType::CPU => -1,
        _ => buffer
            .get()
            .device_number(py)
            .ok()
            .and_then(|number| i32::try_from(number).ok())
            .unwrap_or(-1),
    };
    // The view releases the pin.
    std::mem::forget(pinned);
    Ok(ViewState {
        base,
        layout,
        dtype: dtype.map_or(Dtype::Unknown, |dtype| Dtype::Numpy(dtype.unbind())),
        device,
        device_id,
        readonly,
        known_bytes: Some((0, i64::try_from(size).unwrap_or(i64::MAX))),
        exporting: Some(buffer.clone().into_any().unbind()),
        owner: MemoryOwner::Buffer(PinnedBuffer(buffer.clone().unbind())),
    })
}

/// State of a view with another layout or type; see `StridedMemoryView.view`.
///
/// # Errors
///
/// `TypeError` and `ValueError` for invalid arguments.
pub fn changed(
    view: &Bound<'_, PyView>,
    layout: Option<&Bound<'_, PyAny>>,
    dtype: Option<&Bound<'_, PyAny>>,
) -> PyResult<ViewState> {
    let (py, parts) = (view.py(), view.get().parts());
    let layout = match layout {
        Some(given) => match given.cast::<PyLayout>() {
            Ok(layout) => layout.get().layout().clone(),
            Err(_) => {
                return Err(PyTypeError::new_err(format!(
                    "StridedMemoryView.view() argument 'layout' is of type {}; expected a _StridedLayout, such as the \
                         attribute _layout of a view or the result of its methods",
                    given.get_type().name()?
                )));
            }
        },
        None => parts.layout.clone(),
    };
    let (dtype, size) = match dtype {
        Some(given) => {
            if parts.dtype.has_objects(py)? {
                return Err(PyTypeError::new_err(
                    "StridedMemoryView.view(): the elements are references to Python objects, which cannot be reinterpreted",
                ));
            }
            let dtype = dtype::accept(given, "StridedMemoryView.view")?;
            let size = dtype::item_size(&dtype)?;
            (Dtype::Numpy(dtype.unbind()), Some(size))
        }
        None if parts.dtype.is_unknown() => (Dtype::Unknown, None),
        None => (parts.dtype.clone_ref(py), Some(parts.layout.item_size())),
    };
    if let Some(size) = size
        && size != layout.item_size()
    {
        return Err(PyValueError::new_err(format!(
            "StridedMemoryView.view(): 'dtype' has {size} bytes, but the layout has elements of {} bytes; pass a 'layout' \
                 with this element size (see _StridedLayout.repacked())",
            layout.item_size()
        )));
    }
    fits("StridedMemoryView.view", &layout, parts.known_bytes())?;
    Ok(ViewState {
        base: parts.base,
        layout,
        dtype,
        device: parts.device,
        device_id: parts.device_id,
        readonly: parts.readonly,
        known_bytes: Some(parts.known_bytes()),
        exporting: parts.exporting.as_ref().map(|obj| obj.clone_ref(py)),
        owner: MemoryOwner::RootView(PyView::root(view)),
    })
}

/// Checks that a layout stays within the known memory.
fn fits(function: &str, layout: &StridedLayout, known_bytes: (i64, i64)) -> PyResult<()> {
    if layout.volume() == 0 {
        return Ok(());
    }
    let (low, high) = byte_span(layout);
    if low >= known_bytes.0 && high <= known_bytes.1 {
        return Ok(());
    }
    Err(PyValueError::new_err(format!(
        "{function}(): the layout spans bytes {low} to {high}, beyond the memory's bytes {} to {}",
        known_bytes.0, known_bytes.1
    )))
}
