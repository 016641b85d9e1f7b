//! `cuda.core.graph`: graph builders, definitions, nodes and instantiated graphs.
//!
//! Rules about captures, lifetimes and updates are in [`cupyrite::graph`]; this module converts arguments and provides
//! the Python classes. A node object exists once per node while it is referenced: [`definition::NodeTable`].

pub mod add;
pub mod arguments;
pub mod builder;
pub mod callback;
pub mod condition;
mod conditional_nodes;
pub mod definition;
pub mod executable;
pub mod memory;
mod memory_nodes;
pub mod node;
pub mod options;
pub mod subclasses;

use pyo3::prelude::*;

/// Adds the classes.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    builder::init(core)?;
    condition::init(core)?;
    definition::init(core)?;
    executable::init(core)?;
    memory::init(core)?;
    node::init(core)?;
    subclasses::init(core)
}
