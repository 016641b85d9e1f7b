//! NVRTC's cubins, with the PTX that NVRTC makes beside them.

use std::ffi::c_char;

use cupyrite_sys::nvrtc::{self, nvrtcProgram, nvrtcResult};

use super::{wanted, wrappers};
use crate::code::{self, Unit};

const SUCCESS: nvrtcResult = nvrtcResult::NVRTC_SUCCESS;

/// The PTX of a compiled program.
///
/// # Safety
/// The program is live.
unsafe fn ptx(program: nvrtcProgram) -> Option<String> {
    let mut size = 0usize;
    // SAFETY: the program is live (the caller's promise), the results have the room that NVRTC asks for.
    unsafe {
        if nvrtc::nvrtcGetPTXSize(program, &raw mut size) != Ok(SUCCESS) || size <= 1 {
            return None;
        }
        let mut text = vec![0u8; size];
        if nvrtc::nvrtcGetPTX(program, text.as_mut_ptr().cast()) != Ok(SUCCESS) {
            return None;
        }
        text.truncate(text.iter().position(|&b| b == 0).unwrap_or(size));
        String::from_utf8(text).ok()
    }
}

/// The program's cubin with its PTX; `None` if there is no cubin, or nothing to add to it.
///
/// # Safety
/// The program is live.
unsafe fn carrying(program: nvrtcProgram) -> Option<Vec<u8>> {
    if !wanted() {
        return None;
    }
    let mut size = 0usize;
    // SAFETY: the program is live (the caller's promise), the results have the room that NVRTC asks for.
    let (cubin, text) = unsafe {
        if real::nvrtcGetCUBINSize(program, &raw mut size) != SUCCESS || size == 0 {
            return None;
        }
        let mut cubin = vec![0u8; size];
        if real::nvrtcGetCUBIN(program, cubin.as_mut_ptr().cast()) != SUCCESS {
            return None;
        }
        (cubin, ptx(program)?)
    };
    let name = String::new();
    code::attach(&cubin, &[Unit { name, text }])
}

wrappers! { nvrtc, nvrtcResult, NVRTC_ERROR_INTERNAL_ERROR;
    fn nvrtcGetCUBINSize(program: nvrtcProgram, size: *mut usize) {
        // SAFETY: the caller's promise; nothing is asked of a program or a place that is null.
        unsafe {
            if !size.is_null() && !program.is_null() && let Some(cubin) = carrying(program) {
                size.write(cubin.len());
                return SUCCESS;
            }
            real::nvrtcGetCUBINSize(program, size)
        }
    }
    fn nvrtcGetCUBIN(program: nvrtcProgram, out: *mut c_char) {
        // SAFETY: as above; the caller has as much room as `nvrtcGetCUBINSize` said.
        unsafe {
            if !out.is_null() && !program.is_null() && let Some(cubin) = carrying(program) {
                std::ptr::copy_nonoverlapping(cubin.as_ptr().cast(), out, cubin.len());
                return SUCCESS;
            }
            real::nvrtcGetCUBIN(program, out)
        }
    }
}
