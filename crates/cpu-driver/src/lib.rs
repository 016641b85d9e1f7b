//! The CPU device as a driver library: `libcuda.so.1` and `libnvidia-ml.so.1` for programs that load the driver and NVML
//! themselves. One file serves as both, so that NVML reports the devices that the driver uses.
//!
//! Belongs here: the exported symbols. Does not belong here: their implementation (`cupyrite-cpu`).
//!
//! Build with `cargo build -p cupyrite-cpu-driver --release`, copy `target/release/libcuda.so` to an empty folder as
//! `libcuda.so.1`, link `libnvidia-ml.so.1` to it, and put that folder first in `LD_LIBRARY_PATH`.

use std::ffi::{CStr, c_void};

// Host functions of a Python program (`ctypes`) run on this library's threads, below its frames. Python may terminate
// such a thread, which must then stop instead of unwinding. Both libraries include the file, because the linker's
// `--wrap` requires it in each.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[path = "../../python/src/cpython/unwinding.rs"]
mod unwinding;

include!(concat!(env!("OUT_DIR"), "/entries.rs"));

unsafe extern "C" {
    /// Target of each exported symbol, in the same order as `NAMES`.
    static mut cupyrite_entry_table: [*const c_void; NAMES.len()];
}

fn address(name: &CStr) -> *const c_void {
    match name.to_bytes().starts_with(b"nvml") {
        true => cupyrite_cpu::nvml::get_proc(name),
        false => cupyrite_cpu::driver::get_proc(name),
    }
}

extern "C" fn fill() {
    for (i, name) in NAMES.iter().enumerate() {
        // SAFETY: the table has an entry for each name; the dynamic loader runs this before any entry can be called.
        unsafe { cupyrite_entry_table[i] = address(name) };
    }
}

/// Run by the dynamic loader when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static FILL: extern "C" fn() = fill;
