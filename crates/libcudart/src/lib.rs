//! The CPU device's runtime as `libcudart.so.13`, for programs that `nvcc -cudart shared` compiled. `crates/libcudart12` builds
//! this file as `libcudart.so.12`; the two differ in their exported names and in the functions behind them.
//!
//! Belongs here: the exported symbols, each a jump, with the symbol version of NVIDIA's library. Does not belong here: the
//! runtime (`crates/runtime`), which is in the library that this one loads (`crates/cpu-driver`).
//!
//! It serves the CPU device only. Where NVIDIA's driver is in use, every call fails and a message names the remedy.

use std::ffi::{CStr, c_char, c_int, c_void};

use cupyrite_sys::loader::cpu_library::CPU_LIBRARY_ENTRY;
use cupyrite_sys::runtime::cudaChannelFormatDesc;

#[path = "../../libcuda/src/forward.rs"]
mod forward;

include!(concat!(env!("OUT_DIR"), "/entries.rs"));

/// The functions behind the exported names. The build script sets the variable.
const API: forward::ForwardedApi = match env!("CUPYRITE_CUDART_MAJOR").as_bytes() {
    b"12" => forward::ForwardedApi::RuntimeCuda12,
    _ => forward::ForwardedApi::Runtime,
};

unsafe extern "C" {
    /// Target of each exported symbol, in the same order as `NAMES`.
    static mut cupyrite_entry_table: [*const c_void; NAMES.len()];
}

/// `cudaErrorInsufficientDriver`
extern "C" fn failed() -> c_int {
    35
}

/// `__cudaRegisterFatBinary`
extern "C" fn no_handle() -> *const c_void {
    std::ptr::null()
}

/// `__cudaInitModule`: not done.
extern "C" fn not_done() -> c_char {
    0
}

/// `cudaGetErrorName` and `cudaGetErrorString`
extern "C" fn no_text() -> *const c_char {
    c"Cupyrite's libcudart cannot be used; standard error has the reason".as_ptr()
}

/// `cudaCreateChannelDesc`
extern "C" fn no_channels() -> cudaChannelFormatDesc {
    cudaChannelFormatDesc::default()
}

/// The function that stands for the one of this name if the runtime cannot be used.
fn failure(name: &CStr) -> *const c_void {
    let is = |other: &CStr| name == other;
    if is(c"cudaGetErrorName") || is(c"cudaGetErrorString") {
        no_text as *const c_void
    } else if is(c"cudaCreateChannelDesc") {
        no_channels as *const c_void
    } else if is(c"__cudaRegisterFatBinary") {
        no_handle as *const c_void
    } else if is(c"__cudaInitModule") {
        not_done as *const c_void
    } else {
        failed as *const c_void
    }
}

/// Why NVIDIA's runtime must be used instead; `None` if this one serves the process.
fn refusal() -> Option<&'static CStr> {
    // SAFETY: both are C strings; the dynamic loader runs this before other threads can change the environment, or in a
    // call of `dlopen`, during which the program must not change it.
    let selects_gpu = unsafe {
        let value = libc::getenv(c"CUPYRITE_DEVICE".as_ptr());
        !value.is_null() && libc::strcasecmp(value, c"gpu".as_ptr()) == 0
    };
    if selects_gpu {
        return Some(
            c"this libcudart serves the CPU device only, and CUPYRITE_DEVICE=gpu selects NVIDIA's driver; use NVIDIA's libcudart: \
              remove this folder from LD_LIBRARY_PATH",
        );
    }
    // SAFETY: the name is a C string; nothing is loaded.
    let driver = unsafe {
        libc::dlopen(
            c"libcuda.so.1".as_ptr(),
            libc::RTLD_LAZY | libc::RTLD_NOLOAD,
        )
    };
    if driver.is_null() {
        return None;
    }
    // SAFETY: the handle is live, the name is a C string.
    let is_cpu_device = !unsafe { libc::dlsym(driver, CPU_LIBRARY_ENTRY.as_ptr()) }.is_null();
    // SAFETY: closes the reference of `dlopen`; the library stays loaded by its first one.
    unsafe { libc::dlclose(driver) };
    (!is_cpu_device).then_some(
        c"this libcudart serves the CPU device only, and the process has loaded NVIDIA's driver; use NVIDIA's libcudart: remove \
          this folder from LD_LIBRARY_PATH",
    )
}

// It never unwinds. The type spares the code that would stop it from doing so.
extern "C-unwind" fn fill() {
    // SAFETY: the table has an entry for each name; the dynamic loader runs this before any entry can be called.
    unsafe {
        let table = (&raw mut cupyrite_entry_table).cast();
        forward::fill(&NAMES, table, API, refusal(), failure);
    }
}

/// Run by the dynamic loader when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static FILL: extern "C-unwind" fn() = fill;
