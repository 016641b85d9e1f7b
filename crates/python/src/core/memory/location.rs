//! Places for memory, as Python has them: `Device` and `Host`.

use cupyrite::sys::driver::CUresult;
use cupyrite::{Device, Error, MemoryLocation};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;

use crate::core::device::PyDevice;

/// A `Device`, a `Host` or None; `what` is what the message calls it.
///
/// # Errors
///
/// `TypeError` for anything else, `OverflowError` for a NUMA node whose number no driver takes.
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
            "{} is Host(numa_id={node}), which is the number of no NUMA node",
            what()
        ))
    })?;
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

/// A refusal of the driver's, with the place that made it where there is none such: the driver speaks of a value or a device
/// only. `what` is what the message calls it.
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

/// What is wrong with a place that this machine does not have.
fn missing(place: MemoryLocation) -> Option<String> {
    match place {
        MemoryLocation::HostNuma(node) => {
            let nodes = std::path::Path::new("/sys/devices/system/node");
            // A system without NUMA tells of none.
            let online = std::fs::read_to_string(nodes.join("online")).ok()?;
            (!nodes.join(format!("node{node}")).exists()).then(|| {
                let online = online.trim();
                format!("the NUMA node {node} of the host; this machine has the nodes {online}")
            })
        }
        MemoryLocation::Device(ordinal) => {
            let count = Device::count().ok()?;
            (ordinal >= count)
                .then(|| format!("the device {ordinal}; there are {count}, counted from 0"))
        }
        _ => None,
    }
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
