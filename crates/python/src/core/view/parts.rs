//! Views of parts of memory that is known: of a buffer, and of what another view has.

use cupyrite::StridedLayout;
use cupyrite::dlpack::DeviceType;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::core::dlpack;
use crate::core::errors::OrRaise;
use crate::core::memory::buffer::PyBuffer;
use crate::core::view::PyView;
use crate::core::view::dtype;
use crate::core::view::dtype::Dtype;
use crate::core::view::import::{Keep, Parts, PinnedBuffer, room_of};
use crate::core::view::layout::{PyLayout, item_size, numbers};

/// What a buffer's memory is to be seen as: arguments of `StridedMemoryView.from_buffer`.
pub struct Elements<'a, 'py> {
    /// The extents.
    pub shape: &'a Bound<'py, PyAny>,
    /// In elements.
    pub strides: Option<&'a Bound<'py, PyAny>>,
    /// Bytes of an element.
    pub itemsize: Option<&'a Bound<'py, PyAny>>,
    /// What `numpy.dtype()` takes.
    pub dtype: Option<&'a Bound<'py, PyAny>>,
}

/// A view of a buffer's memory; see `StridedMemoryView.from_buffer`.
///
/// # Errors
///
/// `TypeError` and `ValueError` for arguments, `RuntimeError` for a closed buffer.
pub fn of_buffer(
    buffer: &Bound<'_, PyAny>,
    elements: &Elements<'_, '_>,
    readonly: bool,
) -> PyResult<Parts> {
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
                "{function}() argument 'itemsize' is {given}, and 'dtype' has {of_dtype} bytes"
            )));
        }
        (Some(size), _) | (None, Some(size)) => size,
        (None, None) => {
            return Err(PyValueError::new_err(format!(
                "{function}() needs 'dtype' or 'itemsize': the size of an element"
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
    let device = dlpack::device(buffer.get(), py)?;
    // Memory resources of the host have no device, and some raise when asked for it.
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
    // The view undoes the pin.
    std::mem::forget(pinned);
    Ok(Parts {
        base,
        layout,
        dtype: dtype.map_or(Dtype::Unknown, |dtype| Dtype::Numpy(dtype.unbind())),
        device,
        device_id,
        readonly,
        room: Some((0, i64::try_from(size).unwrap_or(i64::MAX))),
        exporting: Some(buffer.clone().into_any().unbind()),
        keep: Keep::Buffer(PinnedBuffer(buffer.clone().unbind())),
    })
}

/// The memory of a view with another layout or type; see `StridedMemoryView.view`.
///
/// # Errors
///
/// `TypeError` and `ValueError` for arguments.
pub fn changed(
    view: &Bound<'_, PyView>,
    layout: Option<&Bound<'_, PyAny>>,
    dtype: Option<&Bound<'_, PyAny>>,
) -> PyResult<Parts> {
    let (py, parts) = (view.py(), view.get().parts());
    let layout = match layout {
        Some(given) => match given.cast::<PyLayout>() {
            Ok(layout) => layout.get().layout().clone(),
            Err(_) => {
                return Err(PyTypeError::new_err(format!(
                    "StridedMemoryView.view() argument 'layout' is of type {}; expected a _StridedLayout, such as the \
                         attribute _layout of a view and what its methods return",
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
                    "StridedMemoryView.view(): the memory holds references to Python objects, which stay what they are",
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
            "StridedMemoryView.view(): elements of the type have {size} bytes, those of the layout {}; give a 'layout' \
                 that has both (see _StridedLayout.repacked()) and a 'dtype' that does",
            layout.item_size()
        )));
    }
    fits("StridedMemoryView.view", &layout, parts.room())?;
    Ok(Parts {
        base: parts.base,
        layout,
        dtype,
        device: parts.device,
        device_id: parts.device_id,
        readonly: parts.readonly,
        room: Some(parts.room()),
        exporting: parts.exporting.as_ref().map(|obj| obj.clone_ref(py)),
        keep: Keep::Parent(PyView::root(view)),
    })
}

/// Whether a layout stays inside of the memory that is known to be there.
fn fits(function: &str, layout: &StridedLayout, room: (i64, i64)) -> PyResult<()> {
    if layout.volume() == 0 {
        return Ok(());
    }
    let (low, high) = room_of(layout);
    if low >= room.0 && high <= room.1 {
        return Ok(());
    }
    Err(PyValueError::new_err(format!(
        "{function}(): the layout takes the bytes {low} to {high} of the memory, which has {} to {}",
        room.0, room.1
    )))
}
