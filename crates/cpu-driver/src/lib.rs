//! The CPU device as a shared library, `libcupyrite_cpu_device.so`. A process loads it at most once: the extension
//! module loads it when the CPU device is chosen, and `libcuda.so.1`, `libcudart.so.13`, `libcudart.so.12` and
//! `libnvidia-ml.so.1` in the same folder (`crates/libcuda`, `crates/libcudart`, `crates/libcudart12`, `crates/libnvml`)
//! forward to it.
//!
//! Belongs here: the exported function and the C side of its table. Does not belong here: the device (`cupyrite-cpu`), the
//! runtime (`cupyrite-cudart`), the table's type and its rules (`cupyrite_sys::loader::cpu_library`).
//!
//! `python distributions/cpu_device.py` builds all five and puts them into the package.

use std::ffi::{CStr, OsStr, OsString, c_char, c_int, c_void};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use cupyrite_sys::loader::cpu_library::{BUILD, CpuLibrary, CpuLibraryEntry, Program};
use cupyrite_sys::loader::{CudaLibrary, choose_cpu_device};

// Host functions of a Python program (`ctypes`) run on this library's threads, below its frames. Python may terminate
// such a thread, which must then stop instead of unwinding. Both libraries include the file, because the linker's
// `--wrap` requires it in each.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[path = "../../python/src/cpython/unwinding.rs"]
mod unwinding;

static LIBRARY: CpuLibrary = CpuLibrary {
    build: BUILD.as_ptr(),
    driver,
    nvml,
    runtime,
    runtime_cuda12,
    interpose,
    connect,
    ptxas,
};

/// The table of this library.
#[unsafe(no_mangle)]
pub extern "C" fn cupyrite_cpu_device() -> *const CpuLibrary {
    &raw const LIBRARY
}

/// Programs look it up by this name and type.
const _: CpuLibraryEntry = cupyrite_cpu_device;

/// Runs the body of a function of the table. A panic does not cross the boundary.
fn contained<T>(panicked: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(panicked)
}

extern "C" fn driver(name: *const c_char) -> *const c_void {
    // SAFETY: callers pass C strings.
    let name = unsafe { CStr::from_ptr(name) };
    contained(std::ptr::null(), || (cupyrite_cpu::DEVICE.driver)(name))
}

extern "C" fn nvml(name: *const c_char) -> *const c_void {
    // SAFETY: callers pass C strings.
    let name = unsafe { CStr::from_ptr(name) };
    contained(std::ptr::null(), || (cupyrite_cpu::DEVICE.nvml)(name))
}

extern "C" fn runtime(name: *const c_char) -> *const c_void {
    // SAFETY: callers pass C strings.
    let name = unsafe { CStr::from_ptr(name) };
    contained(std::ptr::null(), || {
        choose_cpu_device(cupyrite_cpu::DEVICE.driver);
        cupyrite_cudart::get_proc(name)
    })
}

extern "C" fn runtime_cuda12(name: *const c_char) -> *const c_void {
    // SAFETY: callers pass C strings.
    let name = unsafe { CStr::from_ptr(name) };
    contained(std::ptr::null(), || {
        choose_cpu_device(cupyrite_cpu::DEVICE.driver);
        cupyrite_cudart::get_proc_cuda12(name)
    })
}

extern "C" fn interpose(
    library: *const c_char,
    name: *const c_char,
    address: *const c_void,
) -> *const c_void {
    // SAFETY: callers pass C strings.
    let (library, name) = unsafe { (CStr::from_ptr(library), CStr::from_ptr(name)) };
    contained(address, || {
        match library.to_str().ok().and_then(CudaLibrary::from_name) {
            Some(library) => (cupyrite_cpu::DEVICE.interpose)(library, name, address),
            None => address,
        }
    })
}

extern "C" fn connect(program: &'static Program) {
    contained((), || cupyrite_cpu::connect(program));
}

extern "C" fn ptxas(count: c_int, arguments: *const *const c_char) -> c_int {
    // As of a program that ends by a signal.
    const PANICKED: c_int = 128 + libc::SIGABRT;
    // SAFETY: callers pass that many C strings.
    let argument = |i: usize| unsafe { CStr::from_ptr(*arguments.add(i)) };
    contained(PANICKED, || {
        let words: Vec<OsString> = (1..usize::try_from(count).unwrap_or(0))
            .map(|i| OsStr::from_bytes(argument(i).to_bytes()).to_owned())
            .collect();
        let outcome = cupyrite_cpu::ptxas::run(&words);
        // That nothing can be printed has no remedy.
        let _ = std::io::stderr().write_all(outcome.stderr.as_bytes());
        let mut stdout = std::io::stdout();
        let printed = stdout.write_all(outcome.stdout.as_bytes());
        let _ = printed.and_then(|()| stdout.flush());
        outcome.status
    })
}
