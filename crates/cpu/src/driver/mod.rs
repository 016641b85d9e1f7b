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
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

mod activity;
mod array;
mod array_limits;
mod attributes;
mod boxes;
mod checked;
mod context;
mod copy;
mod copy_batch;
mod device;
mod errors;
mod event;
mod function;
mod graph;
mod handles;
mod host_call;
mod init;
mod ipc;
mod jit;
mod launch;
mod library;
mod link;
mod logs;
mod managed;
mod memory;
mod memset;
mod module;
mod occupancy;
mod peers;
mod pointer;
mod pool;
mod printf;
mod proc_address;
mod queue;
mod shared_event;
mod stream;
mod stream_memory;
mod texture;
mod virtual_memory;

pub(crate) use activity::busy_percent;
pub(crate) use context::memory_in_contexts;
pub(crate) use device::{DeviceFacts, facts as device_facts};
pub use errors::Code;
pub use host_call::set_host_function_gate;
pub(crate) use init::DRIVER_VERSION;
pub use init::describe;
pub(crate) use queue::lock;
pub use queue::set_interrupt_hook;

/// What the inside of the driver returns.
pub(crate) type Res<T = ()> = Result<T, Code>;

/// One entry point: exported name and address.
pub(crate) struct Entry {
    name: &'static str,
    address: *const c_void,
}

// SAFETY: an entry is a constant name and the address of a function.
unsafe impl Sync for Entry {}

/// Defines entry points and the table `ENTRIES` that lists them.
///
/// `fn name "cuName" (args) { body }`, where the body is a [`Res`]. A second string names the variant whose default
/// stream is the calling thread's own; the body tells them apart by the constant `PER_THREAD`. `bare;` at the start leaves
/// out the check that `cuInit` was called.
macro_rules! entries {
    (bare; $($rest:tt)*) => { $crate::driver::entries!(@with $crate::driver::guard_bare; $($rest)*); };
    (@with $guard:path; $($(#[$doc:meta])* fn $name:ident $c:literal $(| $ptds:literal)?
        ($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {
        $(
            $(#[$doc])*
            #[allow(clippy::too_many_arguments)]
            extern "C" fn $name<const PER_THREAD: bool>($($arg: $ty),*) -> u32 {
                $guard($c, || $body)
            }
        )*
        /// The entry points of this file.
        pub(super) static ENTRIES: &[$crate::driver::Entry] = &[
            $(
                $crate::driver::Entry {
                    name: $c,
                    address: $name::<false> as *const std::ffi::c_void,
                },
                $($crate::driver::Entry {
                    name: $ptds,
                    address: $name::<true> as *const std::ffi::c_void,
                },)?
            )*
        ];
    };
    ($($rest:tt)*) => { $crate::driver::entries!(@with $crate::driver::guard; $($rest)*); };
}
pub(crate) use entries;

/// Runs an entry point's body: forked children and panics are answered here, failures are logged.
fn guard_bare(name: &'static str, body: impl FnOnce() -> Res) -> u32 {
    if init::forked() {
        return Code::NOT_INITIALIZED.0;
    }
    let code = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => {
            logs::succeeded();
            return Code::SUCCESS.0;
        }
        Ok(Err(code)) => code,
        Err(_) => Code::UNKNOWN,
    };
    logs::failed(name, code);
    code.0
}

/// [`guard_bare`] for everything that needs `cuInit` first.
fn guard(name: &'static str, body: impl FnOnce() -> Res) -> u32 {
    if !init::initialised() {
        logs::failed(name, Code::NOT_INITIALIZED);
        return Code::NOT_INITIALIZED.0;
    }
    guard_bare(name, body)
}

/// Answers for every entry point that this device does not have. It looks at no argument, so one serves all signatures.
extern "C" fn not_supported() -> u32 {
    guard("a function that the CPU device does not have", || {
        Err(Code::NOT_SUPPORTED)
    })
}

fn table() -> &'static HashMap<&'static str, &'static Entry> {
    static TABLE: OnceLock<HashMap<&'static str, &'static Entry>> = OnceLock::new();
    TABLE.get_or_init(|| {
        [
            array::ENTRIES,
            boxes::ENTRIES,
            context::ENTRIES,
            copy::ENTRIES,
            copy_batch::ENTRIES,
            device::ENTRIES,
            errors::ENTRIES,
            event::ENTRIES,
            function::ENTRIES,
            init::ENTRIES,
            ipc::ENTRIES,
            launch::ENTRIES,
            library::ENTRIES,
            link::ENTRIES,
            logs::ENTRIES,
            managed::ENTRIES,
            memory::ENTRIES,
            memset::ENTRIES,
            module::ENTRIES,
            occupancy::ENTRIES,
            peers::ENTRIES,
            pointer::ENTRIES,
            pool::ENTRIES,
            proc_address::ENTRIES,
            stream::ENTRIES,
            texture::ENTRIES,
            stream_memory::ENTRIES,
            virtual_memory::ENTRIES,
        ]
        .into_iter()
        .flatten()
        .chain(graph::entries())
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
    if proc_address::is_known(name) {
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
