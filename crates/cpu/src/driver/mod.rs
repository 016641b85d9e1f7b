//! The CUDA driver API in software: the entry points of `libcuda` with the same names and the same C signatures.
//!
//! Belongs here: what the driver API documents: contexts, streams, events, memory operations, modules, launches, and
//! the validation of everything a caller may pass. Does not belong here: PTX (the engine), allocation (memory).
//!
//! How it is laid out: an entry point is a thin shim made by `entries!`; arguments that are pointers or handles arrive
//! as numbers and are proved before use (`checked`, `handles`); a panic never crosses the border. On the two ABIs
//! this crate is built for (System V x86-64, AAPCS64) a pointer argument and a 64-bit integer travel alike.

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
pub(crate) use context::memory_in_contexts;
pub(crate) use device::{DeviceFacts, facts as device_facts};
use entry::Entry;
pub use entry::errors::Code;
pub(crate) use entry::init::DRIVER_VERSION;
pub use entry::init::describe;
pub use stream::host_call::set_host_function_gate;
pub use stream::queue::set_interrupt_hook;

/// Answers for every entry point that this device does not have. It looks at no argument, so one serves all signatures.
extern "C" fn not_supported() -> u32 {
    entry::guard("a function that the CPU device does not have", || {
        Err(Code::NOT_SUPPORTED)
    })
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

/// The address of the driver entry point with that exported name (`cuMemAlloc_v2`, `cuMemcpyHtoD_v2_ptds`), null if
/// CUDA has none of that name. Entry points that this device does not implement answer `CUDA_ERROR_NOT_SUPPORTED`.
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

/// Names of the entry points that do something of their own, in no particular order.
pub fn implemented() -> impl Iterator<Item = &'static str> {
    table().keys().copied()
}

/// Makes this the driver that `cupyrite_sys` calls when the CPU device is selected, and its NVML the one that goes with it.
pub fn install() {
    cupyrite_sys::loader::register_cpu_driver(get_proc);
    cupyrite_sys::loader::register_cpu_nvml(crate::nvml::get_proc);
    cupyrite_sys::loader::register_interposer(crate::toolchain::interpose);
}

#[cfg(test)]
mod tests;
