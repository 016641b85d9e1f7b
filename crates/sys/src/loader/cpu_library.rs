//! The C interface between a program and the CPU device in a shared library.
//!
//! Both sides are Rust, but each has its own copy of the standard library and of this crate: a different allocator, other
//! statics, another panic runtime. So only C functions, C strings and addresses cross, and neither side frees what the other
//! allocated. Both sides must come from the same build: the first member of [`CpuLibrary`] says which, and a program checks
//! it before it reads anything else ([`BUILD`]).

use std::ffi::{CStr, c_char, c_int, c_void};

use cupyrite_pathfinder::loader::LibraryHandle;

use super::CudaLibrary;

/// The function that a shared library with the CPU device exports, of type [`CpuLibraryEntry`]. `libcuda.so.1` and
/// `libnvidia-ml.so.1` of the CPU device export it too, which distinguishes them from NVIDIA's. So do its `libcudart.so.13` and `libcudart.so.12`.
pub const CPU_LIBRARY_ENTRY: &CStr = c"cupyrite_cpu_device";

/// The type of [`CPU_LIBRARY_ENTRY`]. The result lives as long as the process, or is null if the library lacks the device.
pub type CpuLibraryEntry = extern "C" fn() -> *const CpuLibrary;

/// The functions of the library.
#[derive(Debug)]
#[repr(C)]
pub struct CpuLibrary {
    /// [`BUILD`] of the library. It is the first member in every build.
    pub build: *const c_char,
    /// The address of a driver entry point by its exported name; null if there is none.
    pub driver: extern "C" fn(*const c_char) -> *const c_void,
    /// The address of an entry point of NVML by its exported name; null if there is none.
    pub nvml: extern "C" fn(*const c_char) -> *const c_void,
    /// Returns the address of a runtime function by its exported name, or null. The function calls the driver of this library.
    pub runtime: extern "C" fn(*const c_char) -> *const c_void,
    /// As `runtime`, for the functions of CUDA 12.
    pub runtime_cuda12: extern "C" fn(*const c_char) -> *const c_void,
    /// Replaces a function of the toolchain: its library ([`CudaLibrary::name`]), its exported name, its address. Returns
    /// the address to call instead.
    pub interpose: extern "C" fn(*const c_char, *const c_char, *const c_void) -> *const c_void,
    /// Connects a program. The first one stays connected.
    pub connect: extern "C" fn(&'static Program),
    /// Runs the device's `ptxas` with a number of arguments, of which the first is the program's name. Returns the exit
    /// status.
    pub ptxas: extern "C" fn(c_int, *const *const c_char) -> c_int,
}

// SAFETY: function addresses and a constant string.
unsafe impl Sync for CpuLibrary {}
// SAFETY: the fields are function addresses and a constant string, which belong to no thread.
unsafe impl Send for CpuLibrary {}

/// The functions that the program provides to the library.
#[derive(Debug)]
#[repr(C)]
pub struct Program {
    /// Whether a wait continues: an [`Interrupt`] as a number. Called about every 50 ms, without any lock held.
    pub interrupt: extern "C" fn() -> u32,
    /// Whether host functions and callbacks may still be called. Called before each of them, without any lock held.
    pub may_call_back: extern "C" fn() -> bool,
    /// The handle of a toolchain library ([`CudaLibrary::name`]) that the program has found; null if it found none.
    pub open_library: extern "C" fn(*const c_char) -> *mut c_void,
}

/// Whether a wait on the CPU device continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Interrupt {
    /// The wait continues.
    Continue = 0,
    /// The wait returns `CUDA_ERROR_LAUNCH_TIMEOUT`; the work goes on.
    EndWait = 1,
    /// As `EndWait`; in addition the context's running kernels are cancelled, and the context fails with that error.
    CancelWork = 2,
}

impl Interrupt {
    /// The value of a number from [`Program::interrupt`].
    pub fn from_number(number: u32) -> Interrupt {
        match number {
            1 => Interrupt::EndWait,
            2 => Interrupt::CancelWork,
            _ => Interrupt::Continue,
        }
    }
}

const VERSION: &[u8] = env!("CARGO_PKG_VERSION").as_bytes();

/// FNV-1a of this file, in hexadecimal digits. A change of the interface without a new version also changes the build.
const INTERFACE: [u8; 16] = {
    let text = include_bytes!("cpu_library.rs");
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut i = 0;
    while i < text.len() {
        hash = (hash ^ text[i] as u64).wrapping_mul(0x100_0000_01b3);
        i += 1;
    }
    let mut digits = [0; 16];
    i = 0;
    while i < 16 {
        digits[i] = b"0123456789abcdef"[(hash >> (60 - 4 * i)) as usize & 15];
        i += 1;
    }
    digits
};

const BUILD_BYTES: [u8; VERSION.len() + 18] = {
    let mut bytes = [0; VERSION.len() + 18];
    let mut i = 0;
    while i < VERSION.len() {
        bytes[i] = VERSION[i];
        i += 1;
    }
    bytes[i] = b'-';
    let mut j = 0;
    while j < 16 {
        bytes[i + 1 + j] = INTERFACE[j];
        j += 1;
    }
    bytes
};

/// The build that program and library must share: the version, and a hash of the interface.
pub const BUILD: &CStr = match CStr::from_bytes_with_nul(&BUILD_BYTES) {
    Ok(build) => build,
    Err(_) => panic!("the version contains a NUL"),
};

/// Why a table that [`CPU_LIBRARY_ENTRY`] returned cannot be used, or the table.
///
/// # Errors
///
/// A sentence without its full stop that completes "libcuda.so.1 (PATH) ...".
///
/// # Safety
///
/// `table` comes from a function that a library exports as [`CPU_LIBRARY_ENTRY`].
pub unsafe fn checked(table: *const CpuLibrary) -> Result<&'static CpuLibrary, String> {
    if table.is_null() {
        return Err("cannot load the CPU device that it belongs to".to_owned());
    }
    // SAFETY: guaranteed by the caller; the first member is a C string in every build.
    let build = unsafe { CStr::from_ptr(*table.cast::<*const c_char>()) };
    if build != BUILD {
        return Err(format!(
            "belongs to another build of Cupyrite: it has {}, expected {}",
            build.to_string_lossy(),
            BUILD.to_string_lossy()
        ));
    }
    // SAFETY: of the same build, so the table has this type; it lives as long as the process.
    Ok(unsafe { &*table })
}

static PROGRAM: std::sync::OnceLock<&'static Program> = std::sync::OnceLock::new();

/// In the shared library: stores the program. The symbol tables of this crate use its toolchain libraries from now on.
pub fn set_program(program: &'static Program) {
    let _ = PROGRAM.set(program);
}

/// In the shared library: the program that is connected.
pub fn program() -> Option<&'static Program> {
    PROGRAM.get().copied()
}

/// In the shared library: the program's handle of a library of the toolchain.
pub(super) fn handle_of_program(library: CudaLibrary) -> Option<LibraryHandle> {
    let program = program()?;
    let name = std::ffi::CString::new(library.name()).ok()?;
    let handle = (program.open_library)(name.as_ptr());
    (!handle.is_null()).then_some(LibraryHandle(handle))
}

#[cfg(test)]
mod tests {
    use super::*;

    extern "C" fn none(_: *const c_char) -> *const c_void {
        std::ptr::null()
    }
    extern "C" fn same(_: *const c_char, _: *const c_char, a: *const c_void) -> *const c_void {
        a
    }
    extern "C" fn ignore(_: &'static Program) {}
    extern "C" fn succeed(_: c_int, _: *const *const c_char) -> c_int {
        0
    }

    fn library(build: &'static CStr) -> CpuLibrary {
        CpuLibrary {
            build: build.as_ptr(),
            driver: none,
            nvml: none,
            runtime: none,
            runtime_cuda12: none,
            interpose: same,
            connect: ignore,
            ptxas: succeed,
        }
    }

    #[test]
    fn builds_must_match() {
        let text = BUILD.to_str().unwrap();
        let (version, hash) = text.rsplit_once('-').unwrap();
        assert_eq!((version, hash.len()), (env!("CARGO_PKG_VERSION"), 16));
        // SAFETY: tables of this module.
        unsafe {
            assert!(checked(&raw const *Box::leak(Box::new(library(BUILD)))).is_ok());
            let other = checked(&raw const *Box::leak(Box::new(library(c"0.0.9-1"))));
            let message = other.unwrap_err();
            assert!(
                message.contains("0.0.9-1") && message.contains(text),
                "{message}"
            );
            assert!(checked(std::ptr::null()).is_err());
        }
    }

    #[test]
    fn interrupts_are_numbers() {
        for way in [
            Interrupt::Continue,
            Interrupt::EndWait,
            Interrupt::CancelWork,
        ] {
            assert_eq!(Interrupt::from_number(way as u32), way);
        }
        assert_eq!(Interrupt::from_number(77), Interrupt::Continue);
    }
}
