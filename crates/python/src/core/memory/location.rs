//! Conversion of memory locations: `Device` and `Host`.

use cupyrite::sys::driver::CUresult;
use cupyrite::{Device, Error, MemoryLocation};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;

use crate::core::device::PyDevice;

/// Converts a `Device`, a `Host` or None; `what` names the value in messages.
///
/// # Errors
///
/// `TypeError` for other types, `OverflowError` for a NUMA node beyond 32 bits.
pub fn accept(
    given: &Bound<'_, PyAny>,
    what: impl Fn() -> String,
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
    let node = given.getattr(intern!(py, "numa_id"))?;
    let node: Option<i32> = node.extract().map_err(|_| {
        PyOverflowError::new_err(format!(
            "{} is Host(numa_id={node}), which is not a NUMA node number",
            what()
        ))
    })?;
    Ok(Some(
        node.map_or(MemoryLocation::Host, MemoryLocation::HostNuma),
    ))
}

/// As [`accept`], without None.
///
/// # Errors
///
/// `ValueError` for None.
pub fn required(given: &Bound<'_, PyAny>, what: impl Fn() -> String) -> PyResult<MemoryLocation> {
    accept(given, &what)?.ok_or_else(|| {
        PyValueError::new_err(format!("{} is None; expected a Device or a Host", what()))
    })
}

/// Adds to a driver error which location does not exist: the driver only reports an invalid value or device. `what`
/// names the value in messages.
pub fn explain(mut error: Error, places: &[MemoryLocation], what: &str) -> Error {
    let Error::Driver {
        status: CUresult::CUDA_ERROR_INVALID_VALUE | CUresult::CUDA_ERROR_INVALID_DEVICE,
        log,
        ..
    } = &mut error
    else {
        return error;
    };
    if let Some(problem) = places.iter().find_map(|&place| missing(place)) {
        if !log.is_empty() && !log.ends_with('\n') {
            log.push('\n');
        }
        log.push_str(&format!("{what} is {problem}"));
    }
    error
}

/// Describes a location that this machine does not have.
fn missing(place: MemoryLocation) -> Option<String> {
    match place {
        MemoryLocation::HostNuma(node) => {
            let nodes = std::path::Path::new("/sys/devices/system/node");
            // A system without NUMA reports no nodes.
            let online = std::fs::read_to_string(nodes.join("online")).ok()?;
            (!nodes.join(format!("node{node}")).exists()).then(|| {
                let online = online.trim();
                format!("NUMA node {node} of the host; this machine has nodes {online}")
            })
        }
        MemoryLocation::Device(ordinal) => {
            let count = Device::count().ok()?;
            (ordinal >= count)
                .then(|| format!("device {ordinal}; there are {count} devices, counted from 0"))
        }
        _ => None,
    }
}

fn host_class(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    PyModule::import(py, intern!(py, "cuda.core._host"))?.getattr(intern!(py, "Host"))
}

/// The Python object of a location; None for no location.
///
/// # Errors
///
/// `MemoryError`.
pub fn object(py: Python<'_>, place: Option<MemoryLocation>) -> PyResult<Bound<'_, PyAny>> {
    match place {
        Some(MemoryLocation::Device(ordinal)) => py.get_type::<PyDevice>().call1((ordinal,)),
        Some(MemoryLocation::Host) => host_class(py)?.call0(),
        Some(MemoryLocation::HostNuma(node)) => host_class(py)?.call1((node,)),
        Some(MemoryLocation::HostNumaCurrent) => {
            host_class(py)?.call_method0(intern!(py, "numa_current"))
        }
        // The driver reports no other location types.
        _ => Ok(py.None().into_bound(py)),
    }
}
