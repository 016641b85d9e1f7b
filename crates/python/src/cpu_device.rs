//! The CPU device of the Python package: a shared library beside this module, loaded when the CPU device is chosen.
//!
//! The library is also what `libcuda.so.1` in the same folder calls, so a process has one CPU device, whoever loads it.

use std::ffi::{CStr, c_char, c_void};
use std::path::PathBuf;

use cupyrite_sys::loader::cpu_library::Program;
use cupyrite_sys::loader::{
    CpuDeviceSource, CudaLibrary, file_of, library_handle, register_cpu_device,
};

use crate::bindings::symbols;
use crate::cpython;

/// The library, relative to the folder of this module. `distributions/cpu_device.py` puts it there.
const FILE: &str = "lib/cpu/libcupyrite_cpu_device.so";

static PROGRAM: Program = Program {
    interrupt,
    may_call_back: cpython_is_there,
    open_library,
};

/// Tells the loader where the CPU device is. Loads nothing.
pub fn register() {
    register_cpu_device(CpuDeviceSource::Library {
        path: library,
        program: &PROGRAM,
    });
}

fn library() -> Result<PathBuf, String> {
    let this = file_of(register as *const c_void as usize);
    let Some(beside) = this.as_ref().map(|this| this.with_file_name(FILE)) else {
        return Err("the folder of Cupyrite's native module is unknown".to_owned());
    };
    // Installers may make the module a symbolic link.
    let original = this.and_then(|this| this.canonicalize().ok());
    match original.map(|original| original.with_file_name(FILE)) {
        Some(file) if !beside.exists() && file.exists() => Ok(file),
        _ => Ok(beside),
    }
}

extern "C" fn interrupt() -> u32 {
    symbols::interrupt() as u32
}

extern "C" fn cpython_is_there() -> bool {
    cpython::python_is_there()
}

/// Libraries of the toolchain are searched here, where the folders of Python's packages are known.
extern "C" fn open_library(name: *const c_char) -> *mut c_void {
    // SAFETY: the CPU device passes a C string.
    let name = unsafe { CStr::from_ptr(name) };
    let library = name.to_str().ok().and_then(CudaLibrary::from_name);
    match library {
        Some(library @ (CudaLibrary::Nvrtc | CudaLibrary::NvJitLink)) => {
            let handle = library_handle(library).ok().flatten();
            handle.map_or(std::ptr::null_mut(), |handle| handle.0)
        }
        _ => std::ptr::null_mut(),
    }
}
