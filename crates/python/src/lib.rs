//! The extension module behind the Python packages: `cupyrite._native`.
//!
//! Belongs here: the engine that turns descriptors into Python functions ([`desc`], [`call`] and what they use), and
//! the classes of the bindings ([`types`]). Does not belong here: anything a Rust program could use without Python.
//!
//! The bindings are data: `generated/` holds tables, the engine reads them.

mod args;
mod call;
mod core;
mod desc;
mod doctor;
mod errors;
mod function;
mod generated;
mod helpers;
mod info;
mod launch;
mod pathfinder;
mod py;
mod quick;
mod raising;
mod remembering;
mod roots;
mod runtime;
mod special;
mod special_cudla;
mod special_cufile;
mod special_nvml;
mod special_runtime;
mod types;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod unwinding;

use pyo3::prelude::*;

/// The module. Sharing is by tables that are written once or locked, so it runs without the GIL too.
#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    cupyrite_cpu::install();
    cupyrite_cudart::install();
    cupyrite_cpu::set_interrupt_hook(runtime::interrupt_requested);
    cupyrite_cpu::set_host_function_gate(runtime::python_is_there);
    types::init(module)?;
    info::init(module)?;
    doctor::init(module)?;
    pathfinder::init(module)?;
    remembering::init(module)?;
    core::init(module)?;
    Ok(())
}
