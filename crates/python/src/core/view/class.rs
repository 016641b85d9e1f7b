//! By what way objects of a class are viewed.

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};

use crate::core::dlpack::exchange;
use crate::core::dlpack::exchange::Api;
use crate::core::recent_cache::Recent;
use crate::core::view::cupy;

/// What is known of a class.
#[derive(Clone, Copy)]
pub enum Way {
    /// It has DLPack's functions for C.
    Exchange(Api),
    /// It is CuPy's class of arrays.
    Cupy(cupy::Fields),
    /// It is NumPy's class of arrays: they have DLPack's methods, which know no streams, wherever the memory is.
    Numpy,
    /// Its objects have to be asked.
    Methods,
}

static CLASSES: Recent<Way, 16> = Recent::new();

/// The way of an object's class. What a class says when it is first asked counts.
///
/// # Errors
///
/// What looking for attributes of the class raises, but for `AttributeError`.
#[inline]
pub fn of(obj: &Bound<'_, PyAny>) -> PyResult<Way> {
    // SAFETY: a live object.
    let class = unsafe { ffi::Py_TYPE(obj.as_ptr()) };
    match CLASSES.get(obj.py(), class.cast()) {
        Some(known) => Ok(known),
        None => find(obj),
    }
}

#[cold]
fn find(obj: &Bound<'_, PyAny>) -> PyResult<Way> {
    let class = obj.get_type();
    let name = intern!(obj.py(), "__dlpack_c_exchange_api__");
    let capsule = class.getattr_opt(name)?;
    let way = if let Some(api) = capsule.and_then(|capsule| exchange::usable(&capsule)) {
        Way::Exchange(api)
    } else if let Some(fields) = cupy::find(&class) {
        Way::Cupy(fields)
    } else if is_of(&class, "numpy", "ndarray").is_some() {
        Way::Numpy
    } else {
        Way::Methods
    };
    CLASSES.put(obj.py(), class.into_any().unbind(), way);
    Ok(way)
}

/// The module, if the class is the one that a module of this name, which was imported, has under this name.
pub fn is_of<'py>(
    class: &Bound<'py, PyType>,
    module: &str,
    name: &str,
) -> Option<Bound<'py, PyAny>> {
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
