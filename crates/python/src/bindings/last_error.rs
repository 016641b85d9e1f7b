//! Each thread's last error of the runtime API, kept apart from that of other libraries.
//!
//! NVIDIA's package contains a runtime of its own. This one calls the `libcudart` that other libraries of the process call,
//! too, and which has one last error per thread. PyTorch reads it after each kernel launch: without this module, an error
//! that the caller of `cuda.bindings` has handled would fail PyTorch's next operation.
//!
//! A failed call's error is therefore moved out of the runtime ([`claim`]), and `cudaGetLastError` and `cudaPeekAtLastError`
//! return what was moved ([`replacement`]). Errors of other libraries stay where they are.

use std::cell::Cell;
use std::ffi::c_void;

use cupyrite_sys::loader::CudaLibrary;
use cupyrite_sys::runtime;
use cupyrite_sys::runtime::{Symbol, cudaError_t};

use crate::bindings::descriptor::Function;

const SUCCESS: cudaError_t = cudaError_t::cudaSuccess;

thread_local! {
    static LAST: Cell<cudaError_t> = const { Cell::new(SUCCESS) };
}

/// Moves the error of a failed call out of the runtime. Does nothing for functions of other libraries. Called on the thread
/// of the call, with its status.
#[cold]
pub fn claim(f: &Function, status: i64) {
    // The runtime does not record this status, so its last error is another library's.
    let not_ready = status == i64::from(cudaError_t::cudaErrorNotReady.0);
    if f.library() != CudaLibrary::Runtime || not_ready || replacement(f).is_some() {
        return;
    }
    // SAFETY: the function has no parameters.
    if let Ok(error) = unsafe { runtime::cudaGetLastError() }
        && error != SUCCESS
    {
        LAST.set(error);
    }
}

/// The function to call instead of `cudaGetLastError` and `cudaPeekAtLastError`; `None` for all others.
#[inline]
pub fn replacement(f: &Function) -> Option<*const c_void> {
    if f.library() != CudaLibrary::Runtime {
        return None;
    }
    match f.symbol {
        symbol if symbol == Symbol::cudaGetLastError as u16 => Some(get as *const c_void),
        symbol if symbol == Symbol::cudaPeekAtLastError as u16 => Some(peek as *const c_void),
        _ => None,
    }
}

extern "C" fn get() -> cudaError_t {
    let error = peek();
    LAST.set(SUCCESS);
    error
}

extern "C" fn peek() -> cudaError_t {
    match LAST.get() {
        SUCCESS => unusable(),
        error => error,
    }
}

/// The error that every call of the runtime returns, for example without a driver; else success.
fn unusable() -> cudaError_t {
    let mut device = 0;
    // SAFETY: the first function has no parameters; the second stores one integer.
    let (last, current) = unsafe {
        match runtime::cudaPeekAtLastError() {
            Ok(SUCCESS) | Err(_) => return SUCCESS,
            Ok(last) => (last, runtime::cudaGetDevice(&raw mut device)),
        }
    };
    match current {
        Ok(current) if current == last => current,
        _ => SUCCESS,
    }
}
