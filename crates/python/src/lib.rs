//! The extension module behind the Python packages: `cupyrite._native`.
//!
//! Belongs here: `cuda.bindings` ([`bindings`]: Python functions built from descriptors; [`types`]: enums, handles,
//! structs), the classes of `cuda.core` ([`mod@core`]) and their CPython layer ([`cpython`]). Does not belong here:
//! anything that a Rust program could use without Python.
//!
//! The bindings are data: `generated/` holds the descriptors, and hand-written code interprets them.

// Documentation of Python objects is reStructuredText. As Markdown, `>>>` begins a quote.
#![allow(clippy::doc_lazy_continuation)]

// Its macros are used by the modules below.
#[macro_use]
mod docstrings;

mod bindings;
mod core;
mod cpu_device;
mod cpython;
mod doctor;
mod generated;
mod info;
mod memoize;
mod pathfinder;
mod site_packages;
mod types;

use pyo3::prelude::*;

use crate::bindings::kernel_parameters;

/// The module. Sharing is by tables that are written once or locked, so it runs without the GIL too.
#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    cpython::internals::init(module)?;
    cupyrite::destroyed::install();
    cpu_device::register();
    cupyrite_cudart::install();
    types::init(kernel_parameters::attribute::pack);
    bindings::init(module)?;
    info::init(module)?;
    doctor::init(module)?;
    pathfinder::init(module)?;
    memoize::init(module)?;
    core::init(module)?;
    Ok(())
}
