//! Copies between views.

use cupyrite::{Device, StridedMemory, copy_strided, enter_for_default_stream, is_capturing};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBool;

use crate::core::errors::OrRaise;
use crate::core::memory::keep_alive;
use crate::core::memory::resource::PyMemoryResource;
use crate::core::stream;
use crate::core::view::state::PyView;
use crate::core::wait;

/// Converts a view argument.
///
/// # Errors
///
/// `TypeError` for other types.
pub fn accept<'py>(function: &str, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyView>> {
    match other.cast::<PyView>() {
        Ok(view) => Ok(view.clone()),
        Err(_) => Err(PyTypeError::new_err(format!(
            "{function}() argument 'other' is of type {}; expected a StridedMemoryView, such as \
             StridedMemoryView.from_any_interface() returns",
            other.get_type().name()?
        ))),
    }
}

/// Whether the element types are equal, as far as known.
fn same_type(py: Python<'_>, a: &PyView, b: &PyView) -> PyResult<bool> {
    if a.has_unknown_type() || b.has_unknown_type() {
        return Ok(true);
    }
    if let (Ok(a), Ok(b)) = (a.data_type(py), b.data_type(py)) {
        return Ok(a == b);
    }
    match (a.numpy(py)?, b.numpy(py)?) {
        (Some(a), Some(b)) => a.eq(b),
        _ => Ok(true),
    }
}

/// Copies elements, stream-ordered; `None` selects the default stream.
///
/// # Errors
///
/// `TypeError` and `ValueError` for invalid arguments, `RuntimeError` for a capturing stream, driver errors.
pub fn copy<'py>(
    function: &str,
    destination: &Bound<'py, PyView>,
    source: &Bound<'py, PyView>,
    stream: Option<&Bound<'py, PyAny>>,
    allocator: Option<&Bound<'py, PyAny>>,
    blocking: Option<&Bound<'py, PyAny>>,
) -> PyResult<()> {
    let py = destination.py();
    let (to, from) = (destination.get(), source.get());
    let stream = match stream {
        Some(given) => stream::accept(given, function, "stream", false)?,
        None => stream::default_object(py)?.get().get(py)?,
    };
    if let Some(given) = allocator
        && given.cast::<PyMemoryResource>().is_err()
    {
        return Err(PyTypeError::new_err(format!(
            "{function}() argument 'allocator' is of type {}; expected a MemoryResource or None",
            given.get_type().name()?
        )));
    }
    let on_host = |view: &PyView| !view.device().kind.is_device_accessible();
    let blocking = match blocking {
        Some(given) => given
            .cast::<PyBool>()
            .map(|truth| truth.is_true())
            .map_err(|_| {
                PyTypeError::new_err(format!(
                    "{function}() argument 'blocking' must be a bool or None"
                ))
            })?,
        None => on_host(to) != on_host(from),
    };
    let (shape, other) = (to.layout().shape(), from.layout().shape());
    if shape != other {
        return Err(PyValueError::new_err(format!(
            "{function}(): the source has shape {other:?}, the destination {shape:?}; expected equal shapes"
        )));
    }
    if to.layout().item_size() != from.layout().item_size() || !same_type(py, to, from)? {
        return Err(PyValueError::new_err(format!(
            "{function}(): source and destination have different element types; use view() to reinterpret one of them"
        )));
    }
    for view in [from, to] {
        if view.parts().dtype.has_objects(py)? {
            return Err(PyTypeError::new_err(format!(
                "{function}(): the elements are references to Python objects, which only Python can copy"
            )));
        }
    }
    if to.is_readonly() {
        return Err(PyValueError::new_err(format!(
            "{function}(): the destination is read-only"
        )));
    }
    if to.layout().volume() == 0 {
        return Ok(());
    }
    if is_capturing(&stream).or_raise(py)? {
        return Err(PyRuntimeError::new_err(format!(
            "{function}(): the stream is being captured, and the resulting graph cannot keep an array alive; copy between \
             Buffers"
        )));
    }
    let device = match [to, from].into_iter().find(|view| !on_host(view)) {
        Some(view) => {
            let number = view.device().number;
            Device::new(usize::try_from(number).unwrap_or(0)).or_raise(py)?
        }
        None => crate::core::device::current(py)?,
    };
    for view in [destination, source] {
        if let Some(buffer) = view.get().buffer(py) {
            buffer.get().note_use_on(py, &stream, Some(device));
        }
    }
    let sides = [to, from].map(|view| StridedMemory {
        base: view.base(),
        layout: view.layout(),
        on_host: on_host(view),
    });
    let done = py
        .detach(|| {
            let _entered = enter_for_default_stream(&stream, device)?;
            // Before the copy is queued: it is not interrupted then, and nothing has to keep the memory alive.
            if blocking && !wait::before_blocking_copy(&stream, || true)? {
                return Ok(false);
            }
            // SAFETY: the views keep the memory alive during this call, and the objects held below until the copy
            // completes. The exporters guarantee its validity, the caller that the views do not overlap.
            let queued = unsafe { copy_strided(sides[0], sides[1], &stream) };
            if blocking || queued.is_err() {
                // A failed copy may be partially queued: wait for it, since nothing keeps the memory alive.
                let waited = stream.synchronize();
                queued.and(waited)?;
            }
            Ok(true)
        })
        .or_raise(py)?;
    wait::completed(py, done)?;
    if blocking {
        return Ok(());
    }
    let held = vec![
        destination.clone().into_any().unbind(),
        source.clone().into_any().unbind(),
    ];
    keep_alive::keep_until_done(py, Some(device), &stream, held)
}
