//! Each thread's last error of the runtime API, kept apart from that of other libraries.
//!
//! NVIDIA's package contains a runtime of its own. This package calls the `libcudart` that other libraries of the process
//! call, too, and which has one last error per thread. PyTorch reads it after each kernel launch: without this module, an error
//! that the caller of `cuda.bindings` has handled would fail PyTorch's next operation.
//!
//! A failed call's error is therefore taken out of the runtime ([`take`]), and `cudaGetLastError` and `cudaPeekAtLastError`
//! return it ([`replacement`]). They neither return nor clear errors of other libraries. A failed call still replaces a
//! pending one, as the runtime has one place for both.

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

/// Takes the error of a failed call out of the runtime. Does nothing for functions of other libraries, and for a status that
/// the runtime does not record. Called on the thread of the call, with its status, which is not 0.
#[cold]
pub fn take(f: &Function, status: i64) {
    if f.library() != CudaLibrary::Runtime || replacement(f).is_some() {
        return;
    }
    // SAFETY: the functions have no parameters.
    unsafe {
        if let Ok(error) = runtime::cudaPeekAtLastError()
            && i64::from(error.0) == status
        {
            let _ = runtime::cudaGetLastError();
            LAST.set(error);
        }
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
        SUCCESS => error_of_every_call(),
        error => error,
    }
}

/// The error that every call of the runtime returns, as without a driver; else success.
fn error_of_every_call() -> cudaError_t {
    let mut device = 0;
    // SAFETY: the first function has no parameters; the second stores one integer.
    let status = unsafe {
        match runtime::cudaPeekAtLastError() {
            Ok(SUCCESS) => return SUCCESS,
            Ok(_) => runtime::cudaGetDevice(&raw mut device),
            Err(error) => Err(error),
        }
    };
    status.unwrap_or(SUCCESS)
}
