//! The CUDA driver API in software: the entry points of `libcuda` with the same names and the same C signatures.
//!
//! Belongs here: what the driver API documents (contexts, streams, events, memory operations, modules, launches) and
//! validation of all arguments. Does not belong here: PTX (the engine) and allocation (`crate::memory`).
//!
//! An entry point is a thin shim made by `entries!`. Pointer and handle arguments arrive as numbers and are checked
//! before use (`entry::caller_memory`, `entry::handles`). A panic never crosses the FFI boundary. On the two ABIs this
//! crate is built for (System V x86-64, AAPCS64), a pointer argument and a 64-bit integer are passed alike.

use std::collections::HashMap;
use std::ffi::{CStr, c_void};
use std::sync::OnceLock;

mod array;
mod context;
mod device;
mod entry;
mod graph;
mod memory;
mod module;
mod stream;

pub(crate) use context::activity::busy_percent;
pub(crate) use context::entries::memory_in_contexts;
pub(crate) use device::{DeviceFacts, facts as device_facts};
use entry::Entry;
pub use entry::errors::Code;
pub(crate) use entry::init::DRIVER_VERSION;
pub use entry::init::describe;
pub use stream::host_call::set_host_function_gate;
pub use stream::queue::set_interrupt_hook;

/// Stands in for every unimplemented entry point. It reads no argument, so one function serves all signatures.
extern "C" fn not_supported() -> u32 {
    entry::guard(
        "an entry point that the CPU device does not implement",
        || Err(Code::NOT_SUPPORTED),
    )
}

fn table() -> &'static HashMap<&'static str, &'static Entry> {
    static TABLE: OnceLock<HashMap<&'static str, &'static Entry>> = OnceLock::new();
    TABLE.get_or_init(|| {
        entry::entry_points()
            .chain(device::entry_points())
            .chain(context::entry_points())
            .chain(memory::entry_points())
            .chain(array::entry_points())
            .chain(stream::entry_points())
            .chain(module::entry_points())
            .chain(graph::entry_points())
            .map(|e| (e.name, e))
            .collect()
    })
}

/// The address of the driver entry point of that exported name (`cuMemAlloc_v2`, `cuMemcpyHtoD_v2_ptds`); null if CUDA
/// has no such entry point. Unimplemented entry points return `CUDA_ERROR_NOT_SUPPORTED`.
pub fn get_proc(name: &CStr) -> *const c_void {
    let Ok(name) = name.to_str() else {
        return std::ptr::null();
    };
    if let Some(entry) = table().get(name) {
        return entry.address;
    }
    if entry::proc_address::is_known(name) {
        return not_supported as extern "C" fn() -> u32 as *const c_void;
    }
    std::ptr::null()
}

/// Names of the implemented entry points, in no particular order.
pub fn implemented() -> impl Iterator<Item = &'static str> {
    table().keys().copied()
}

/// Registers this driver and its NVML with `cupyrite_sys`, which calls them when the CPU device is selected.
pub fn install() {
    cupyrite_sys::loader::register_cpu_driver(get_proc);
    cupyrite_sys::loader::register_cpu_nvml(crate::nvml::get_proc);
    cupyrite_sys::loader::register_interposer(crate::toolchain::interpose);
}

#[cfg(test)]
mod tests;
