//! The CPU device's NVML as `libnvidia-ml.so.1`. It reports the devices of the `libcuda.so.1` in the same folder.
//!
//! Belongs here: the exported symbols, each a jump. Does not belong here: the device, which is in the library that this one
//! loads (`crates/cpu-driver`).

use std::ffi::{CStr, c_int, c_void};

#[path = "../../libcuda/src/forward.rs"]
mod forward;

include!(concat!(env!("OUT_DIR"), "/entries.rs"));

unsafe extern "C" {
    /// Target of each exported symbol, in the same order as `NAMES`.
    static mut cupyrite_entry_table: [*const c_void; NAMES.len()];
}

/// `NVML_ERROR_LIBRARY_NOT_FOUND`
extern "C" fn failed() -> c_int {
    12
}

// It never unwinds. The type spares the code that would stop it from doing so.
extern "C-unwind" fn fill() {
    // SAFETY: the table has an entry for each name; the dynamic loader runs this before any entry can be called.
    unsafe {
        let table = (&raw mut cupyrite_entry_table).cast();
        let failed = failed as *const c_void;
        forward::fill(&NAMES, table, forward::ForwardedApi::Nvml, None, |_| failed);
    }
}

/// Run by the dynamic loader when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static FILL: extern "C-unwind" fn() = fill;
