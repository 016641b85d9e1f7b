//! What a library and the driver's log say about a status. Used only on the failure path.

use std::ffi::{CStr, c_char};
use std::sync::Mutex;

use cupyrite_sys::loader::{self, CudaLibrary};
use cupyrite_sys::{driver, nvrtc, runtime};

use crate::bindings::symbols;
use crate::cpython;

/// `CUDA_ERROR_NOT_READY`, `cudaErrorNotReady`: the answer of a query rather than a failure, which no log explains.
const NOT_READY: i64 = 600;

/// Size of the buffer for the driver's log in bytes, as its documentation recommends.
const LOG_ROOM: usize = 25_600;

/// Number of lines of the log that an exception keeps.
const LOG_LINES: usize = 16;

/// The library's description of a status; `None` if it has none or was not called yet.
pub fn of(library: CudaLibrary, status: i64) -> Option<String> {
    let status = i32::try_from(status).ok()?;
    let text: *const c_char = match library {
        CudaLibrary::Driver => {
            loader::chosen_backend()?;
            let mut text = std::ptr::null();
            // SAFETY: the driver stores the address of a constant string at the pointer to the local.
            let found = unsafe {
                driver::cuGetErrorString(driver::CUresult(status.cast_unsigned()), &raw mut text)
            };
            found.ok()?;
            text
        }
        CudaLibrary::Nvrtc if symbols::is_loaded(library) => {
            // SAFETY: the function takes any number and returns null or a constant string.
            unsafe { nvrtc::nvrtcGetErrorString(nvrtc::nvrtcResult(status.cast_unsigned())) }
                .ok()?
        }
        CudaLibrary::Runtime if symbols::is_loaded(library) => {
            // SAFETY: the function takes any number and returns null or a constant string.
            unsafe { runtime::cudaGetErrorString(runtime::cudaError_t(status.cast_unsigned())) }
                .ok()?
        }
        _ => return None,
    };
    if text.is_null() {
        return None;
    }
    // SAFETY: a non-null result is a constant string.
    let words = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    (!words.is_empty()).then(|| words.into_owned())
}

/// The place in the driver's log up to which it was read.
static READ: Mutex<Option<driver::CUlogIterator>> = Mutex::new(None);

/// What the driver has written to its log since the last failure, the newest lines. `None` for drivers without a log (before
/// 12.9), other libraries, and statuses that are no failure. Another thread's lines may be among them.
pub fn driver_log(library: CudaLibrary, status: i64) -> Option<Vec<u8>> {
    if !matches!(library, CudaLibrary::Driver | CudaLibrary::Runtime) || status == NOT_READY {
        return None;
    }
    loader::chosen_backend()?;
    // SAFETY: the thread is attached. Without the GIL, because a callback of the log may need it.
    let text = unsafe { cpython::detached(read_log) }?;
    let lines: Vec<&[u8]> = text
        .split(|&b| b == b'\n')
        .filter(|l| !l.is_empty())
        .collect();
    let newest = &lines[lines.len().saturating_sub(LOG_LINES)..];
    (!newest.is_empty()).then(|| newest.join(&b'\n'))
}

fn read_log() -> Option<Vec<u8>> {
    let mut read = READ
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut buffer = vec![0u8; LOG_ROOM];
    let mut size = buffer.len();
    let first = read.is_none();
    let mut place = read.unwrap_or_default();
    let at = if first {
        std::ptr::null_mut()
    } else {
        &raw mut place
    };
    // SAFETY: the driver writes at most `size` bytes to the buffer, the number of them to `size`, and moves the iterator.
    let status =
        unsafe { driver::cuLogsDumpToMemory(at, buffer.as_mut_ptr().cast(), &raw mut size, 0) };
    if status.ok()? != driver::CUresult::CUDA_SUCCESS {
        *read = None;
        return None;
    }
    if first {
        // The log is older than this program's first failure: only its last line belongs to that.
        // SAFETY: the driver stores the current place at the pointer to the local.
        let status = unsafe { driver::cuLogsCurrent(&raw mut place, 0) };
        if status.ok()? != driver::CUresult::CUDA_SUCCESS {
            return None;
        }
    }
    *read = Some(place);
    drop(read);
    buffer.truncate(size.min(LOG_ROOM));
    let end = buffer.iter().position(|&b| b == 0).unwrap_or(buffer.len());
    buffer.truncate(end);
    if first {
        let last = buffer.split(|&b| b == b'\n').rfind(|line| !line.is_empty());
        return last.map(<[u8]>::to_vec);
    }
    Some(buffer)
}
