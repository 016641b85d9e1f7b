//! The CUDA runtime API in Rust, on any CUDA driver: the entry points of `libcudart` with the same names and the same C
//! signatures, which call the driver through `cupyrite_sys::driver`.
//!
//! Belongs here: what the runtime adds to the driver: devices by ordinal, the primary context that appears when it is
//! needed, the last error of a thread, kinds of copies, properties, and the translation of parameters and statuses. Does
//! not belong here: anything a driver does (that is a driver's, of a GPU or of the CPU device).
//!
//! How it is laid out: an entry point is a thin shim made by `entries!`; arguments that are pointers arrive as numbers
//! and what we read or write ourselves is proved first (`checked`); a panic never crosses the border. Handles are the
//! driver's own: a `cudaStream_t` is a `CUstream`, a `cudaKernel_t` a `CUkernel`, and the driver proves them. On the two
//! ABIs this crate is built for (System V x86-64, AAPCS64) a pointer argument and a 64-bit integer travel alike.

use std::collections::HashMap;
use std::ffi::{CStr, c_void};
use std::sync::OnceLock;

mod checked;
mod context;
mod entry;
mod errors;
mod thread;
mod version;

use entry::Entry;
pub use errors::Error;

/// What the inside of the runtime returns.
pub(crate) type Res<T = ()> = Result<T, Error>;

/// The entry points of every part, by exported name.
fn table() -> &'static HashMap<&'static str, &'static Entry> {
    static TABLE: OnceLock<HashMap<&'static str, &'static Entry>> = OnceLock::new();
    TABLE.get_or_init(|| {
        // A part is a module with a static `ENTRIES`.
        [context::ENTRIES, errors::ENTRIES, version::ENTRIES]
            .into_iter()
            .flatten()
            .map(|e| (e.name, e))
            .collect()
    })
}

/// The address of the runtime function with that exported name (`cudaMalloc`, `cudaMemcpyAsync_ptsz`), null if the
/// runtime has none of that name.
pub fn get_proc(name: &CStr) -> *const c_void {
    match name.to_str() {
        Ok(name) => table()
            .get(name)
            .map_or(std::ptr::null(), |entry| entry.address),
        Err(_) => std::ptr::null(),
    }
}

/// Names of the entry points that do something of their own, in no particular order.
pub fn implemented() -> impl Iterator<Item = &'static str> {
    table().keys().copied()
}

#[cfg(test)]
mod tests;
