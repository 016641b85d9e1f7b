//! Memory resources of device memory, and allocation from any resource.

pub mod base;
pub mod device;
pub mod pool;
pub mod synchronous;

use std::sync::{Mutex, PoisonError};

pub use base::PyMemoryResource;
use cupyrite::{Device, MemoryPool};
pub use device::PyDeviceMemoryResource;
pub use pool::{PyMemPool, shared_pool_of};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
pub use synchronous::PySynchronousMemoryResource;

use crate::core::errors::OrRaise;
use crate::core::memory::buffer::PyBuffer;
use crate::core::memory::pool_attributes::PyMemPoolAttributes;
use crate::core::stream;
use crate::cpython::method;

/// Allocates memory for `device` from any resource, stream-ordered.
///
/// # Errors
///
/// Errors of the resource; `TypeError` if it does not return a `Buffer`.
pub fn allocate<'py>(
    resource: &Bound<'py, PyAny>,
    size: usize,
    stream: &Bound<'py, PyAny>,
    device: Device,
) -> PyResult<Bound<'py, PyAny>> {
    let py = resource.py();
    if let Ok(ours) = resource.cast_exact::<PyDeviceMemoryResource>() {
        let accepted = stream::accept_for_memory(stream, "allocate", "stream")?;
        let buffer = PyMemPool::allocate_on(ours.as_super(), size, accepted)?;
        return Ok(buffer.into_bound(py).into_any());
    }
    let keywords = PyDict::new(py);
    keywords.set_item(intern!(py, "stream"), stream)?;
    // A default stream belongs to the current context, so this device's context must be current.
    let entered = device.enter().or_raise(py)?;
    let buffer = resource.call_method(intern!(py, "allocate"), (size,), Some(&keywords));
    drop(entered);
    let buffer = buffer?;
    if buffer.cast::<PyBuffer>().is_err() {
        return Err(PyTypeError::new_err(format!(
            "{}.allocate() returned an object of type {}; expected a Buffer",
            resource.get_type().name()?,
            buffer.get_type().name()?
        )));
    }
    Ok(buffer)
}

/// Resources that [`default_for`] returns, by device number.
static PROCESS_DEFAULTS: Mutex<Vec<(usize, Py<PyAny>)>> = Mutex::new(Vec::new());

/// Sets the memory resource of a device for all threads that have not used theirs: `Device` objects, which have the
/// attribute `memory_resource`, belong to a thread.
///
/// # Errors
///
/// `TypeError` if `mr` is not a `MemoryResource`.
#[pyfunction]
fn _set_default_memory_resource(device_id: usize, mr: &Bound<'_, PyAny>) -> PyResult<()> {
    mr.cast::<PyMemoryResource>()?;
    let mut defaults = PROCESS_DEFAULTS
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let previous = defaults
        .iter()
        .position(|(number, _)| *number == device_id)
        .map(|at| defaults.swap_remove(at));
    defaults.push((device_id, mr.clone().unbind()));
    // Dropping a resource runs Python code.
    drop(defaults);
    drop(previous);
    Ok(())
}

/// The default memory resource of a device: that of the process, else a new one.
///
/// # Errors
///
/// Driver errors.
pub fn default_for(py: Python<'_>, device: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let opened = crate::core::device::accept(device, "Device.memory_resource", "device")?;
    let defaults = PROCESS_DEFAULTS
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let set = defaults
        .iter()
        .find(|(number, _)| *number == opened.ordinal());
    if let Some((_, resource)) = set {
        return Ok(resource.clone_ref(py));
    }
    drop(defaults);
    let class = if MemoryPool::supported(&opened).or_raise(py)? {
        py.get_type::<PyDeviceMemoryResource>()
    } else {
        py.get_type::<PySynchronousMemoryResource>()
    };
    class.call1((device,)).map(Bound::unbind)
}

/// Adds the classes.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    core.add_class::<PyMemoryResource>()?;
    core.add_class::<PyMemPool>()?;
    method::add::<pool::Allocate, 2>(core.py())?;
    core.add_class::<PyMemPoolAttributes>()?;
    core.add_class::<PyDeviceMemoryResource>()?;
    core.add_class::<PySynchronousMemoryResource>()?;
    core.add_function(wrap_pyfunction!(_set_default_memory_resource, core)?)?;
    core.add_function(wrap_pyfunction!(pool::mempool_get_access, core)?)?;
    core.add_function(wrap_pyfunction!(pool::_deferred_pool_count, core)?)?;
    core.add_function(wrap_pyfunction!(pool::mempool_set_access, core)?)
}
