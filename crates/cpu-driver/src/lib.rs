//! The CPU device as a driver library: `libcuda.so.1` for programs that load the driver themselves.
//!
//! Belongs here: the exported symbols. Does not belong here: anything they do (`cupyrite-cpu`).
//!
//! Build with `cargo build -p cupyrite-cpu-driver --release`, copy `target/release/libcuda.so` to a folder of its own as
//! `libcuda.so.1`, and put that folder first in `LD_LIBRARY_PATH`.

use std::ffi::{CStr, c_void};

// Host functions of a Python program (`ctypes`) run on this library's threads, below its frames: a thread that Python
// ends there must stop, not unwind. One file for both libraries, because the linker's `--wrap` wants it in each.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[path = "../../python/src/cpython/unwinding.rs"]
mod unwinding;

include!(concat!(env!("OUT_DIR"), "/entries.rs"));

unsafe extern "C" {
    /// Where each exported symbol jumps to, in the order of `NAMES`.
    static mut cupyrite_entry_table: [*const c_void; NAMES.len()];
}

extern "C" fn fill() {
    for (i, name) in NAMES.iter().enumerate() {
        // SAFETY: the table has an entry for each name; the loader runs this before anybody can call an entry.
        unsafe { cupyrite_entry_table[i] = cupyrite_cpu::driver::get_proc(name) };
    }
}

/// Run by the loader when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static FILL: extern "C" fn() = fill;
