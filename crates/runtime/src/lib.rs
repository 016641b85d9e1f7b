//! The CUDA runtime API in Rust, on any CUDA driver: the entry points of `libcudart` with the same names and the same C
//! signatures, which call the driver through `cupyrite_sys::driver`.
//!
//! Belongs here: the additions of the runtime to the driver: devices by ordinal, lazily created primary contexts, a
//! thread's last error, copy directions, device properties, and the conversion of parameters and statuses. Does not
//! belong here: the work itself, which a driver performs on a GPU or the CPU device.
//!
//! An entry point is a thin shim made by `runtime_entry_points!`. Pointer arguments arrive as numbers, and memory that
//! this crate accesses itself is checked first (`checked`). A panic never crosses the FFI boundary. Handles are the
//! driver's: a `cudaStream_t` is a `CUstream`, a `cudaKernel_t` is a `CUkernel`, and the driver validates them. On the
//! two ABIs this crate is built for (System V x86-64, AAPCS64), a pointer argument and a 64-bit integer are passed alike.

use std::collections::HashMap;
use std::ffi::{CStr, c_void};
use std::sync::OnceLock;

use cupyrite_sys::runtime;

mod array;
mod capture;
mod channel;
mod checked;
mod context;
mod copy;
mod copy_array;
mod copy_batch;
mod copy_nd;
mod cuda12;
mod device;
mod driver_access;
mod entry;
mod errors;
mod event;
mod execution_context;
mod external;
mod graph;
mod graph_exec;
mod graph_params;
mod graphics;
mod kernel;
mod launch;
mod library;
mod managed;
mod memory;
mod multi_device_launch;
mod peer;
mod pointer;
mod pool;
mod properties;
mod registration;
mod set;
mod stream;
mod surface;
mod symbol;
mod texture;
mod thread;
mod version;

use entry::EntryPoint;
pub use errors::Error;

/// All entry points by exported name.
fn table() -> &'static HashMap<&'static str, &'static EntryPoint> {
    static TABLE: OnceLock<HashMap<&'static str, &'static EntryPoint>> = OnceLock::new();
    TABLE.get_or_init(|| {
        // Each module has a static `ENTRIES`.
        [
            array::ENTRIES,
            capture::ENTRIES,
            channel::ENTRIES,
            context::ENTRIES,
            copy::ENTRIES,
            copy_array::ENTRIES,
            copy_batch::ENTRIES,
            copy_nd::ENTRIES,
            multi_device_launch::ENTRIES,
            device::ENTRIES,
            driver_access::ENTRIES,
            errors::ENTRIES,
            event::ENTRIES,
            execution_context::ENTRIES,
            external::ENTRIES,
            graph::ENTRIES,
            graph_exec::ENTRIES,
            graph_params::ENTRIES,
            graphics::ENTRIES,
            kernel::ENTRIES,
            launch::ENTRIES,
            library::ENTRIES,
            managed::ENTRIES,
            memory::ENTRIES,
            peer::ENTRIES,
            pointer::ENTRIES,
            pool::ENTRIES,
            properties::ENTRIES,
            registration::ENTRIES,
            set::ENTRIES,
            stream::ENTRIES,
            surface::ENTRIES,
            symbol::ENTRIES,
            texture::ENTRIES,
            version::ENTRIES,
        ]
        .into_iter()
        .flatten()
        .map(|e| (e.name, e))
        .collect()
    })
}

/// The address of the runtime function of that exported name (`cudaMalloc`, `cudaMemcpyAsync_ptsz`); null if the
/// runtime has no such function.
pub fn get_proc(name: &CStr) -> *const c_void {
    let Ok(name) = name.to_str() else {
        return std::ptr::null();
    };
    address_of(name)
}

/// [`get_proc`] of a name.
fn address_of(name: &str) -> *const c_void {
    if let Some(entry) = table().get(name) {
        return entry.address;
    }
    if is_known(name) {
        return not_supported as extern "C" fn() -> u32 as *const c_void;
    }
    std::ptr::null()
}

/// [`get_proc`] for programs of CUDA 12: the function of that exported name with the parameters and structures of CUDA 12.
pub fn get_proc_cuda12(name: &CStr) -> *const c_void {
    let address = cuda12::get_proc(name);
    if address.is_null() {
        get_proc(name)
    } else {
        address
    }
}

/// Serves every unimplemented entry point. It reads no argument, so one function serves all signatures.
extern "C" fn not_supported() -> u32 {
    entry::guard(|| Err(Error::NOT_SUPPORTED))
}

/// Whether some release of the runtime exports that name.
fn is_known(name: &str) -> bool {
    runtime::SYMBOLS.iter().any(|row| {
        let export = row.export.to_bytes();
        let rest = name.as_bytes().strip_prefix(export);
        rest.is_some_and(|rest| rest.is_empty() || rest == row.per_thread.suffix().as_bytes())
    })
}

/// Registers this runtime with `cupyrite_sys`, which calls it in place of NVIDIA's.
pub fn install() {
    cupyrite_sys::loader::register_own_runtime(get_proc);
}

/// Names that `libcudart.so.13` of this runtime exports, each of which [`get_proc`] finds: those of CUDA 13, with their
/// variants for the per-thread default stream, and those that only programs compiled by `nvcc` call. In no particular
/// order, some of them repeated.
pub fn exports() -> impl Iterator<Item = String> {
    exports_without(&runtime::ONLY_IN_CUDA12)
}

/// [`exports`] of `libcudart.so.12`: names of CUDA 12, each of which [`get_proc_cuda12`] finds.
pub fn exports_cuda12() -> impl Iterator<Item = String> {
    exports_without(&runtime::ONLY_IN_CUDA13)
}

fn exports_without(excluded: &'static [&'static CStr]) -> impl Iterator<Item = String> {
    let rows = runtime::SYMBOLS.iter();
    let rows = rows.filter(|row| !excluded.contains(&row.export));
    let documented = rows.flat_map(|row| {
        let export = row.export.to_string_lossy();
        let per_thread = format!("{export}{}", row.per_thread.suffix());
        [export.into_owned(), per_thread]
    });
    documented.chain(registration::names().map(str::to_owned))
}

/// Names of the implemented entry points, in no particular order.
pub fn implemented() -> impl Iterator<Item = &'static str> {
    table().keys().copied().chain(cuda12::implemented())
}

#[cfg(test)]
mod tests;
