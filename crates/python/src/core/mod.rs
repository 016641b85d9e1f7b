//! The classes of `cuda.core`, thin wrappers of the types of crate [`cupyrite`].
//!
//! Belongs here: conversion of Python arguments, results and errors, and Python protocols (pickling, `repr`, garbage
//! collection). Does not belong here: rules about devices, ownership or compilation. Those are in crate `cupyrite`, so
//! that Rust programs have them too.
//!
//! The module `cupyrite._native.core` defines the classes; the modules of `cuda.core` re-export them under their public
//! names.

pub mod closable;
pub mod context;
pub mod device;
pub mod device_resources;
pub mod dlpack;
pub mod errors;
pub mod event;
pub mod graph;
pub mod graphics;
pub mod keyword_only;
pub mod launch;
pub mod memory;
pub mod module;
pub mod notebook;
pub mod numbers;
pub mod options;
pub mod pin_count;
pub mod recent_cache;
pub mod stream;
pub mod tensor_map;
pub mod texture;
pub mod view;
pub mod wait;

use pyo3::prelude::*;

use crate::core::device::properties;
use crate::core::memory::batch;
use crate::core::memory::buffer;
use crate::core::memory::ipc_handles;
use crate::core::memory::managed;
use crate::core::memory::pinned;
use crate::core::memory::resource;
use crate::core::memory::virtual_memory;
use crate::core::module::kernel;
use crate::core::module::kernel_attributes;
use crate::core::module::linker;
use crate::core::module::object_code;
use crate::core::module::occupancy;
use crate::core::module::program;
use crate::core::view::layout;

/// Adds the submodule `core`.
///
/// # Errors
///
/// Python errors.
pub fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let core = PyModule::new(module.py(), "core")?;
    errors::init(&core)?;
    kernel_attributes::init(&core)?;
    kernel::init(&core)?;
    launch::init(&core)?;
    linker::init(&core)?;
    object_code::init(&core)?;
    occupancy::init(&core)?;
    context::init(&core)?;
    device::methods::init(&core)?;
    device_resources::init(&core)?;
    event::init(&core)?;
    program::init(&core)?;
    properties::init(&core)?;
    stream::init(&core)?;
    resource::init(&core)?;
    buffer::init(&core)?;
    managed::init(&core)?;
    pinned::init(&core)?;
    virtual_memory::init(&core)?;
    batch::init(&core)?;
    layout::init(&core)?;
    view::init(&core)?;
    graphics::init(&core)?;
    texture::init(&core)?;
    graph::init(&core)?;
    tensor_map::init(&core)?;
    dlpack::init(module.py())?;
    ipc_handles::init(&core)?;
    // Makes `from cupyrite._native.core import ...` work: `_native` is not a package.
    let modules = PyModule::import(module.py(), "sys")?.getattr("modules")?;
    modules.set_item("cupyrite._native.core", &core)?;
    module.add("core", core)
}
