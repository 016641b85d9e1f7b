//! Selection of the import method for a class of arrays.

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};

use crate::core::dlpack::exchange;
use crate::core::dlpack::exchange::Api;
use crate::core::recent_cache::RecentCache;
use crate::cpython::internals::cupy_array;
use crate::cpython::internals::cupy_array::FieldOffsets;

/// Import method of a class.
#[derive(Clone, Copy)]
pub enum ImportMethod {
    /// The DLPack C exchange API.
    Exchange(Api),
    /// CuPy's array class, read through its C fields.
    Cupy(FieldOffsets),
    /// A NumPy array class: its DLPack methods take no stream, wherever the memory is.
    Numpy,
    /// The Python protocols of the object.
    Protocols,
}

static CLASSES: RecentCache<ImportMethod, 16> = RecentCache::new();

/// The import method of an object's class, determined on first use and cached.
///
/// # Errors
///
/// Errors of attribute lookups on the class, except `AttributeError`.
#[inline]
pub fn of(obj: &Bound<'_, PyAny>) -> PyResult<ImportMethod> {
    // SAFETY: a live object.
    let class = unsafe { ffi::Py_TYPE(obj.as_ptr()) };
    match CLASSES.get(obj.py(), class.cast()) {
        Some(known) => Ok(known),
        None => find(obj),
    }
}

#[cold]
fn find(obj: &Bound<'_, PyAny>) -> PyResult<ImportMethod> {
    let class = obj.get_type();
    let name = intern!(obj.py(), "__dlpack_c_exchange_api__");
    let capsule = class.getattr_opt(name)?;
    let way = if let Some(api) = capsule.and_then(|capsule| exchange::find_supported(&capsule)) {
        ImportMethod::Exchange(api)
    } else if let Some(fields) =
        is_of(&class, "cupy", "ndarray").and_then(|cupy| cupy_array::find(&cupy, &class))
    {
        ImportMethod::Cupy(fields)
    } else if is_of(&class, "numpy", "ndarray").is_some() {
        ImportMethod::Numpy
    } else {
        ImportMethod::Protocols
    };
    CLASSES.insert(obj.py(), class.into_any().unbind(), way);
    Ok(way)
}

/// The imported module `module`, if `class` is its attribute `name`.
fn is_of<'py>(class: &Bound<'py, PyType>, module: &str, name: &str) -> Option<Bound<'py, PyAny>> {
    let py = class.py();
    let is_text = |value: PyResult<Bound<'_, PyString>>, text: &str| value.is_ok_and(|v| v == text);
    if !is_text(class.module(), module) || !is_text(class.name(), name) {
        return None;
    }
    let modules = py.import("sys").and_then(|sys| sys.getattr("modules"));
    let modules = modules.ok()?.cast_into::<PyDict>().ok()?;
    let module = modules.get_item(module).ok()??;
    module
        .getattr(name)
        .is_ok_and(|found| found.is(class))
        .then_some(module)
}
