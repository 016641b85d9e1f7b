//! Embeds PTX in NVRTC's cubins.

use std::ffi::c_char;

use cupyrite_engine::Unit;
use cupyrite_sys::nvrtc::{self, nvrtcProgram, nvrtcResult};

use super::wrappers;
use crate::code;

const SUCCESS: nvrtcResult = nvrtcResult::NVRTC_SUCCESS;

/// The PTX of a compiled program.
///
/// # Safety
/// The program is live.
unsafe fn ptx(program: nvrtcProgram) -> Option<String> {
    let mut size = 0usize;
    // SAFETY: the program is live (guaranteed by the caller), and the buffers have the size that NVRTC requires.
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

/// The program's cubin with embedded PTX; `None` if there is no cubin or nothing to add.
///
/// # Safety
/// The program is live.
unsafe fn cubin_with_ptx(program: nvrtcProgram) -> Option<Vec<u8>> {
    let mut size = 0usize;
    // SAFETY: the program is live (guaranteed by the caller), and the buffers have the size that NVRTC requires.
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
    code::attach(&cubin, &[Unit::new("", text)])
}

wrappers! { nvrtc, nvrtcResult, NVRTC_ERROR_INTERNAL_ERROR;
    fn nvrtcGetCUBINSize(program: nvrtcProgram, size: *mut usize) {
        // SAFETY: guaranteed by the caller; null programs and buffers are not accessed.
        unsafe {
            if !size.is_null() && !program.is_null() && let Some(cubin) = cubin_with_ptx(program) {
                size.write(cubin.len());
                return SUCCESS;
            }
            real::nvrtcGetCUBINSize(program, size)
        }
    }
    fn nvrtcGetCUBIN(program: nvrtcProgram, out: *mut c_char) {
        // SAFETY: the caller guarantees that the buffer has the size that `nvrtcGetCUBINSize` returned; null programs
        // and buffers are not accessed.
        unsafe {
            if !out.is_null() && !program.is_null() && let Some(cubin) = cubin_with_ptx(program) {
                std::ptr::copy_nonoverlapping(cubin.as_ptr().cast(), out, cubin.len());
                return SUCCESS;
            }
            real::nvrtcGetCUBIN(program, out)
        }
    }
}
