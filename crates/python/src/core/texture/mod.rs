//! `cuda.core.texture`: arrays, mipmapped arrays, resource descriptors, textures and surfaces.
//!
//! Rules and ownership are in crate `cupyrite`; here are the Python objects, their options, and what keeps Python memory
//! alive.

pub mod array;
pub mod copy;
pub mod object;
pub mod options;
pub mod resource;

use pyo3::prelude::*;

/// Adds the classes.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    core.add_class::<array::PyOpaqueArray>()?;
    core.add_class::<array::PyMipmappedArray>()?;
    core.add_class::<resource::PyResourceDescriptor>()?;
    core.add_class::<object::PyTextureObject>()?;
    core.add_class::<object::PySurfaceObject>()
}
