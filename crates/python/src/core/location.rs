//! Places for memory, as Python has them: `Device` and `Host`.

use cupyrite::MemoryLocation;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;

use super::device::PyDevice;

/// A `Device`, a `Host` or None; `what` is what the message calls it.
///
/// # Errors
///
/// `TypeError` for anything else.
pub fn accept(
    given: &Bound<'_, PyAny>,
    what: impl FnOnce() -> String,
) -> PyResult<Option<MemoryLocation>> {
    if given.is_none() {
        return Ok(None);
    }
    if let Ok(device) = given.cast::<PyDevice>() {
        let ordinal = device.get().device().ordinal();
        return Ok(Some(MemoryLocation::Device(ordinal)));
    }
    let py = given.py();
    let host = host_class(py)?;
    if !given.is_instance(&host)? {
        return Err(PyTypeError::new_err(format!(
            "{} is of type {}; expected a Device, a Host or None",
            what(),
            given.get_type().name()?
        )));
    }
    if given.getattr(intern!(py, "is_numa_current"))?.is_truthy()? {
        return Ok(Some(MemoryLocation::HostNumaCurrent));
    }
    let node: Option<i32> = given.getattr(intern!(py, "numa_id"))?.extract()?;
    Ok(Some(
        node.map_or(MemoryLocation::Host, MemoryLocation::HostNuma),
    ))
}

/// As [`accept`], where there has to be a place.
///
/// # Errors
///
/// `ValueError` for None, too.
pub fn required(given: &Bound<'_, PyAny>, what: impl Fn() -> String) -> PyResult<MemoryLocation> {
    accept(given, &what)?.ok_or_else(|| {
        PyValueError::new_err(format!("{} is None; expected a Device or a Host", what()))
    })
}

fn host_class(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    PyModule::import(py, intern!(py, "cuda.core._host"))?.getattr(intern!(py, "Host"))
}

/// The object of a place; None for no place.
///
/// # Errors
///
/// Memory.
pub fn object(py: Python<'_>, place: Option<MemoryLocation>) -> PyResult<Bound<'_, PyAny>> {
    match place {
        Some(MemoryLocation::Device(ordinal)) => py.get_type::<PyDevice>().call1((ordinal,)),
        Some(MemoryLocation::Host) => host_class(py)?.call0(),
        Some(MemoryLocation::HostNuma(node)) => host_class(py)?.call1((node,)),
        Some(MemoryLocation::HostNumaCurrent) => {
            host_class(py)?.call_method0(intern!(py, "numa_current"))
        }
        // No other kind of place is told by the driver yet.
        _ => Ok(py.None().into_bound(py)),
    }
}
