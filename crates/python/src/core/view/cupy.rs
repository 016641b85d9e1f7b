//! Import of CuPy arrays through their C fields ([`cupy_array`]).
//!
//! CuPy does not implement the DLPack C exchange API (see `exchange`). Its `__dlpack__` and `__cuda_array_interface__`
//! take microseconds; the attributes `shape` and `strides`, which create a tuple each, cost more than a whole view
//! should. Arrays of a CuPy with unexpected fields are viewed by DLPack.

use cupyrite::StridedLayout;
use cupyrite::dlpack::{DataType, DeviceType, DlDevice};
use pyo3::intern;
use pyo3::prelude::*;

use crate::core::recent_cache::RecentCache;
use crate::core::view::dtype;
use crate::core::view::dtype::Dtype;
use crate::core::view::state::{Consumer, MemoryOwner, ViewState};
use crate::cpython::internals::cupy_array;
use crate::cpython::internals::cupy_array::FieldOffsets;

/// Element size and type of a `numpy.dtype`.
#[derive(Clone, Copy)]
struct Element {
    size: usize,
    /// `None` if DLPack has no such type.
    data_type: Option<DataType>,
}

static ELEMENTS: RecentCache<Element, 16> = RecentCache::new();

fn element(dtype: &Bound<'_, PyAny>) -> PyResult<Element> {
    if let Some(known) = ELEMENTS.get(dtype.py(), dtype.as_ptr()) {
        return Ok(known);
    }
    let size = dtype::item_size(dtype)?;
    let data_type = Dtype::Numpy(dtype.clone().unbind())
        .data_type(dtype.py())
        .ok();
    let element = Element { size, data_type };
    ELEMENTS.insert(dtype.py(), dtype.clone().unbind(), element);
    Ok(element)
}

/// Views a CuPy array; `None` if it must be viewed in another way.
///
/// # Errors
///
/// Errors of CuPy's current-stream query, and of the driver.
///
/// # Safety
///
/// The object has the class for which the offsets were determined.
pub unsafe fn view(
    obj: &Bound<'_, PyAny>,
    fields: &FieldOffsets,
    consumer: Consumer,
) -> PyResult<Option<ViewState>> {
    let py = obj.py();
    // SAFETY: guaranteed by the caller; the field is an object or null.
    let dtype =
        unsafe { Bound::from_borrowed_ptr_or_opt(py, cupy_array::dtype(obj.as_ptr(), fields)) };
    let Some(dtype) = dtype else {
        return Ok(None);
    };
    // May run Python code, and thus other threads that modify the array.
    let Element { size, data_type } = element(&dtype)?;
    // SAFETY: as above. Until the values are copied, this thread stays attached and runs no Python code.
    let array_fields = unsafe { cupy_array::read(obj.as_ptr(), fields) };
    let Some(array_fields) =
        array_fields.filter(|array_fields| std::ptr::eq(array_fields.dtype, dtype.as_ptr()))
    else {
        return Ok(None);
    };
    let Ok(layout) =
        StridedLayout::with_byte_strides(array_fields.shape, array_fields.strides, size)
    else {
        return Ok(None);
    };
    let (base, number) = (array_fields.address, array_fields.device);
    if base == 0 && layout.volume() != 0 {
        return Ok(None);
    }
    if consumer != Consumer::Ignore {
        let producer = current_stream(py, number)?;
        consumer.wait_for(py, producer, number)?;
    }
    Ok(Some(ViewState {
        base,
        known_bytes: None,
        layout,
        dtype: match data_type {
            Some(known) => Dtype::DlPack(known),
            None => Dtype::Numpy(dtype.unbind()),
        },
        device: DlDevice {
            kind: DeviceType::CUDA,
            number,
        },
        device_id: number,
        readonly: false,
        exporting: Some(obj.clone().unbind()),
        owner: MemoryOwner::Cupy,
    }))
}

/// Handle of CuPy's current stream on this device.
fn current_stream(py: Python<'_>, device: i32) -> PyResult<usize> {
    let stream = py
        .import(intern!(py, "cupy.cuda"))?
        .call_method1(intern!(py, "get_current_stream"), (device,))?;
    stream.getattr(intern!(py, "ptr"))?.extract()
}
