//! The classes of `cuda.core`: shells around the types of the crate [`cupyrite`].
//!
//! Belongs here: turning Python's arguments into that crate's, its results and errors into Python's, and what only
//! Python has (protocols, pickling, `repr`). Does not belong here: any rule about devices, ownership or compilation;
//! those are the crate's, so that Rust programs have them too.
//!
//! The module `cupyrite._native.core` holds the classes; the modules of `cuda.core` give them their public names.

pub mod attributes;
pub mod batch;
pub mod buffer;
pub mod buffer_shown;
pub mod context;
pub mod device;
pub mod dlpack;
pub mod dlpack_exchange;
pub mod dlpack_method;
pub mod dtype;
pub mod errors;
pub mod event;
pub mod flags;
pub mod fresh;
pub mod held;
pub mod ipc;
pub mod kernel;
pub mod launch;
pub mod layout;
pub mod linker;
pub mod location;
pub mod managed;
pub mod memory_resource;
pub mod method;
pub mod numbers;
pub mod object_code;
pub mod occupancy;
pub mod operand;
pub mod options;
pub mod pinned;
pub mod pool_attributes;
pub mod program;
pub mod properties;
pub mod recent;
pub mod slot;
pub mod stream;
pub mod uses;
pub mod view;
pub mod view_argument;
pub mod view_class;
pub mod view_copy;
pub mod view_cupy;
pub mod view_dlpack;
pub mod view_end;
pub mod view_import;
pub mod view_method;
mod view_parts;
pub mod view_shown;
pub mod virtual_memory;

use pyo3::prelude::*;

/// Adds the submodule `core`.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let core = PyModule::new(module.py(), "core")?;
    errors::init(&core)?;
    attributes::init(&core)?;
    kernel::init(&core)?;
    launch::init(&core)?;
    linker::init(&core)?;
    object_code::init(&core)?;
    occupancy::init(&core)?;
    context::init(&core)?;
    device::init(&core)?;
    event::init(&core)?;
    program::init(&core)?;
    properties::init(&core)?;
    stream::init(&core)?;
    memory_resource::init(&core)?;
    buffer::init(&core)?;
    managed::init(&core)?;
    pinned::init(&core)?;
    virtual_memory::init(&core)?;
    batch::init(&core)?;
    layout::init(&core)?;
    view::init(&core)?;
    ipc::init(&core)?;
    // So that `from cupyrite._native.core import ...` finds it: `_native` is a file, not a package with a path.
    let modules = PyModule::import(module.py(), "sys")?.getattr("modules")?;
    modules.set_item("cupyrite._native.core", &core)?;
    module.add("core", core)
}
