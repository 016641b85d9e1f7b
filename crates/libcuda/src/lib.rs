//! The CPU device's driver as `libcuda.so.1`, for programs that load the driver by its name.
//!
//! Belongs here: the exported symbols, each a jump. Does not belong here: the device, which is in the library that this one
//! loads (`crates/cpu-driver`).

use std::ffi::{CStr, c_int, c_void};

mod forward;

include!(concat!(env!("OUT_DIR"), "/entries.rs"));

unsafe extern "C" {
    /// Target of each exported symbol, in the same order as `NAMES`.
    static mut cupyrite_entry_table: [*const c_void; NAMES.len()];
}

/// `CUDA_ERROR_SHARED_OBJECT_INIT_FAILED`
extern "C" fn failed() -> c_int {
    303
}

// It never unwinds. The type spares the code that would stop it from doing so.
extern "C-unwind" fn fill() {
    // SAFETY: the table has an entry for each name; the dynamic loader runs this before any entry can be called.
    unsafe {
        let table = (&raw mut cupyrite_entry_table).cast();
        let failed = failed as *const c_void;
        forward::fill(&NAMES, table, forward::ForwardedApi::Driver, None, |_| {
            failed
        });
    }
}

/// Run by the dynamic loader when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static FILL: extern "C-unwind" fn() = fill;
