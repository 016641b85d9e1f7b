//! Functions of `cyruntime` that no library exports.

use std::ffi::{c_int, c_void};

use cupyrite_sys::runtime::{cudaError_t, cudaExtent, cudaPitchedPtr, cudaPos};

use crate::bindings::custom::runtime;
use crate::cpython::attached;
use crate::cpython::errors::guard_or;

/// The functions.
#[derive(Clone, Copy)]
#[repr(u16)]
#[allow(non_camel_case_types, reason = "the names of the functions")]
pub enum Builtin {
    /// `cudaError_t getLocalRuntimeVersion(int *)`: the version of the installed libcudart.
    getLocalRuntimeVersion,
    /// `cudaExtent make_cudaExtent(size_t w, size_t h, size_t d)`
    make_cudaExtent,
    /// `cudaPitchedPtr make_cudaPitchedPtr(void *d, size_t p, size_t xsz, size_t ysz)`
    make_cudaPitchedPtr,
    /// `cudaPos make_cudaPos(size_t x, size_t y, size_t z)`
    make_cudaPos,
}

/// The address of a function, by the number of its [`Builtin`].
pub fn address(builtin: u16) -> *const c_void {
    const FUNCTIONS: [*const c_void; 4] = [
        local_runtime_version as *const c_void,
        make_extent as *const c_void,
        make_pitched_ptr as *const c_void,
        make_pos as *const c_void,
    ];
    FUNCTIONS[builtin as usize]
}

/// # Safety
///
/// `version` is null or points to an integer.
unsafe extern "C" fn local_runtime_version(version: *mut c_int) -> cudaError_t {
    if version.is_null() {
        return cudaError_t::cudaErrorInvalidValue;
    }
    let queried = attached(|py| guard_or(None, || runtime::query_local_version(py).ok()));
    match queried.flatten() {
        Some((status, number)) => {
            // SAFETY: the caller passes a pointer to an integer.
            unsafe { version.write(number) };
            cudaError_t(status.cast_unsigned())
        }
        None => cudaError_t::cudaErrorCallRequiresNewerDriver,
    }
}

extern "C" fn make_extent(width: usize, height: usize, depth: usize) -> cudaExtent {
    cudaExtent {
        width,
        height,
        depth,
    }
}

extern "C" fn make_pitched_ptr(
    ptr: *mut c_void,
    pitch: usize,
    xsize: usize,
    ysize: usize,
) -> cudaPitchedPtr {
    cudaPitchedPtr {
        ptr,
        pitch,
        xsize,
        ysize,
    }
}

extern "C" fn make_pos(x: usize, y: usize, z: usize) -> cudaPos {
    cudaPos { x, y, z }
}
