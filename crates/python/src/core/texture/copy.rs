//! Copies between arrays and Python's buffers and arrays.

use cupyrite::{OpaqueArray, PitchedMemory, enter_for_default_stream, is_capturing};
use pyo3::exceptions::{PyBufferError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::core::closable::DropDetached;
use crate::core::errors::OrRaise;
use crate::core::memory::buffer::PyBuffer;
use crate::core::memory::copy_operand::is_staged;
use crate::core::memory::keep_alive;
use crate::core::stream;
use crate::core::texture::array::PyOpaqueArray;
use crate::core::view::import;
use crate::core::view::import::Protocol;
use crate::core::view::state;
use crate::core::view::state::PyView;

/// Direction of a copy.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From linear memory.
    ToArray,
    /// To linear memory.
    FromArray,
}

impl Direction {
    fn function(self) -> &'static str {
        match self {
            Direction::ToArray => "OpaqueArray.copy_from",
            Direction::FromArray => "OpaqueArray.copy_to",
        }
    }

    fn parameter(self) -> &'static str {
        match self {
            Direction::ToArray => "src",
            Direction::FromArray => "dst",
        }
    }
}

/// Queues a copy between an array and a buffer or an array of any library.
///
/// # Errors
///
/// `TypeError` for an object without memory, `BufferError` for a read-only destination, `ValueError` for a size or layout
/// that does not fit, `RuntimeError` for closed objects and for arrays in a capturing stream; driver errors.
pub fn copy(
    array: OpaqueArray,
    given: &Bound<'_, PyAny>,
    on: &Bound<'_, PyAny>,
    direction: Direction,
) -> PyResult<()> {
    let py = given.py();
    // Another thread may close the array meanwhile: then this is its last clone.
    let array = DropDetached::new(array);
    let (function, parameter) = (direction.function(), direction.parameter());
    let stream = stream::lend(on, function, "stream", false)?;
    let device = array.context().device();
    keep_alive::drop_completed(py);
    let queue = |memory: PitchedMemory| {
        py.detach(|| {
            let _entered = enter_for_default_stream(&stream, device)?;
            // SAFETY: pinned for the call; afterwards the buffer is freed in stream order, and arrays are kept until the
            // copy is done. The exporters guarantee the memory.
            unsafe {
                match direction {
                    Direction::ToArray => array.copy_from_raw(memory, &stream),
                    Direction::FromArray => array.copy_to_raw(memory, &stream),
                }
            }
        })
        .or_raise(py)
    };
    if let Ok(buffer) = given.cast::<PyBuffer>() {
        let buffer = buffer.get();
        let pinned = buffer.pin(py)?;
        let size = array.options().size_bytes();
        if pinned.size < size {
            return Err(PyValueError::new_err(format!(
                "{function}() argument '{parameter}' has {} bytes, the array {size}",
                pinned.size
            )));
        }
        buffer.note_use_on(py, &stream, Some(device));
        return queue(PitchedMemory::dense(&array, pinned.address, false));
    }
    let view = view_of(given, on, direction)?;
    let view = view.get();
    if direction == Direction::FromArray && view.is_readonly() {
        return Err(PyBufferError::new_err(format!(
            "{function}() argument '{parameter}' is read-only"
        )));
    }
    if view.parts().dtype.has_objects(py)? {
        return Err(PyTypeError::new_err(format!(
            "{function}() argument '{parameter}' contains references to Python objects, which cannot be copied to a device"
        )));
    }
    let on_host = !view.device().kind.is_device_accessible();
    let memory =
        PitchedMemory::strided(&array, view.base(), view.layout(), on_host).map_err(|error| {
            let problem = match error {
                cupyrite::Error::InvalidArgument { problem, .. } => problem,
                other => other.to_string(),
            };
            PyValueError::new_err(format!("{function}() argument '{parameter}' {problem}"))
        })?;
    if is_capturing(&stream).or_raise(py)? {
        return Err(PyRuntimeError::new_err(format!(
            "{function}(): the stream is being captured, and the resulting graph cannot keep an array alive; use a Buffer"
        )));
    }
    if let Some(buffer) = view.buffer(py) {
        buffer.get().note_use_on(py, &stream, Some(device));
    }
    queue(memory)?;
    let (low, high) = view.parts().known_bytes();
    let start = view.base().wrapping_add_signed(low);
    if on_host && is_staged(start, (high - low).unsigned_abs() as usize, Some(device)) {
        return Ok(());
    }
    let held = vec![given.clone().unbind()];
    keep_alive::keep_until_done(py, Some(device), &stream, held)
}

fn view_of<'py>(
    given: &Bound<'py, PyAny>,
    on: &Bound<'py, PyAny>,
    direction: Direction,
) -> PyResult<Bound<'py, PyView>> {
    let py = given.py();
    if let Ok(view) = given.cast::<PyView>() {
        return Ok(view.clone());
    }
    if given.is_instance_of::<PyOpaqueArray>() || Protocol::of(given).is_err() {
        return Err(PyTypeError::new_err(format!(
            "{}() argument '{}' is of type {}; expected a Buffer, or an object with the buffer protocol, DLPack or an array \
             interface",
            direction.function(),
            direction.parameter(),
            given.get_type().name()?
        )));
    }
    let parts = import::from_any(given, Some(on))?;
    Ok(state::make(py, parts)?.cast_into::<PyView>()?)
}
