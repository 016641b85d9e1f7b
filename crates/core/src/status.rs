//! Explanations of the driver's statuses.

use std::cell::Cell;
use std::ffi::c_char;

use cupyrite_sys::driver::{CUlogIterator, CUresult};

/// The error of a kernel, after which every call in the context fails. On an H100, cuDevicePrimaryCtxReset succeeds then, and
/// cuDevicePrimaryCtxRetain fails.
macro_rules! unusable {
    ($what:literal) => {
        concat!(
            $what,
            "; the context is unusable: start a new process (the CPU device: call cuDevicePrimaryCtxReset)"
        )
    };
}

/// Explains a status of the driver, with the remedy if there is an obvious one; `None` for an unknown status. The
/// runtime API's statuses of the same numbers mean the same.
///
/// Source: `CUresult` of the CUDA driver API.
pub fn explain_status(status: i32) -> Option<&'static str> {
    Some(match status {
        0 => "success",
        1 => "an argument has an invalid value",
        2 => "out of memory, or of another resource",
        3 => "the driver is not initialised",
        4 => "the driver is shutting down",
        5 => "no profiler is running",
        34 => "this is the stub library of the toolkit, not a driver; install NVIDIA's driver",
        36 => "a call of the runtime needs another driver version",
        46 => "the device is in use, or not available to this process",
        100 => "there is no CUDA device",
        101 => "the device number, or the requested device property, is invalid",
        102 => "the device has no licence for this",
        200 => "the image is not device code that the device can load",
        201 => "no context is current on this thread, or the context was destroyed",
        202 => "the context is current already",
        205 => "the resource could not be mapped",
        206 => "the resource could not be unmapped",
        207 => "the array is mapped",
        208 => "the resource is mapped already",
        209 => "the code contains nothing for this device's architecture",
        210 => "the resource was acquired already",
        211 => "the resource is not mapped",
        212 => "the resource is not mapped as an array",
        213 => "the resource is not mapped as a pointer",
        214 => "an uncorrectable memory error was found",
        215 => "this device does not support that limit",
        216 => "the context is in use by another thread",
        217 => "peer access between these devices is not supported",
        218 => "the PTX does not compile; the log gives the position of the error",
        219 => "the graphics context is not valid",
        220 => "an uncorrectable error of NVLink was found",
        221 => "the compiler for PTX is missing",
        222 => "the PTX is of a newer version than this driver compiles",
        223 => "the compiler for PTX is disabled",
        224 => "the device does not support this kind of kernel execution",
        225 => "a call that waits is not allowed here",
        300 => "the source is invalid",
        301 => "the file does not exist",
        302 => "a shared object's symbol was not found",
        303 => "a shared object could not be initialised",
        304 => "an operating system call failed",
        400 => "a handle is invalid: it was destroyed, or belongs to another type or context",
        401 => "the object is in a state that does not allow this",
        402 => "introspecting an object lost its semantics",
        500 => "there is nothing with that name",
        600 => "not done yet",
        700 => unusable!("a kernel accessed an invalid address"),
        701 => "the launch needs more registers or other resources than a block can have",
        702 => unusable!("a kernel ran too long"),
        703 => "the launch's textures are incompatible",
        704 => "peer access is enabled already",
        705 => "peer access is not enabled",
        708 => "the primary context exists already",
        709 => "the context was destroyed, or is being initialised",
        710 => unusable!("a kernel's assertion failed"),
        711 => "there are too many peers",
        712 => "the memory is registered already",
        713 => "the memory is not registered",
        714 => unusable!("a kernel's stack is corrupted"),
        715 => unusable!("a kernel executed an illegal instruction"),
        716 => {
            unusable!("a kernel accessed an address that is not a multiple of the access's size")
        }
        717 => unusable!("a kernel accessed an address of another memory space"),
        718 => unusable!("a kernel jumped to an invalid address"),
        719 => unusable!("a kernel failed"),
        720 => "a cooperative launch is larger than what fits on the device at once",
        800 => "this is not permitted",
        801 => "this is not supported here",
        802 => "the system is not ready; its fabric manager may not be running",
        803 => "the versions of the driver's components do not match",
        804 => "this GPU does not support the compatibility driver",
        805 => "the MPS server cannot be reached",
        806 => "MPS failed",
        807 => "the MPS server is not ready",
        808 => "the MPS server has too many clients",
        809 => "the MPS server has too many connections",
        810 => "an MPS client was stopped",
        900 => "the stream is capturing, which does not allow this",
        901 => "an earlier error has invalidated the capture",
        902 => "this would merge two captures",
        903 => "the capture did not begin in this stream",
        904 => "the capture has unjoined work in another stream",
        905 => "this would create a dependency across the boundary of the capture",
        906 => "this would make the legacy stream depend on a capture",
        907 => "an event was last recorded in a capture",
        908 => "the capture belongs to another thread",
        909 => "the wait timed out",
        910 => "the executable graph cannot be updated in this way",
        911 => "an external device failed",
        912 => "the launch's clusters do not fit",
        913 => "the function is not loaded",
        914 => "the resource has an invalid type",
        915 => "the configuration of a resource is insufficient",
        916 => "a key is being rotated",
        999 => "an unknown error",
        _ => return None,
    })
}

/// Whether no context is current on this thread.
pub(crate) fn lacks_context() -> bool {
    let mut context = std::ptr::null_mut();
    // SAFETY: the result is valid for writes.
    let asked = unsafe { cupyrite_sys::driver::cuCtxGetCurrent(&mut context) };
    matches!(asked, Ok(CUresult::CUDA_SUCCESS)) && context.is_null()
}

/// The size of a driver's whole log (CUDA driver API, `cuLogsDumpToMemory`).
const LOG_BYTES: usize = 25_600;

/// The driver's log entries about a call of this thread that has just failed; empty if there are none, or the driver
/// has no log (`cuLogs*`, since CUDA 12.9).
pub(crate) fn driver_log(call: &str, status: CUresult) -> String {
    if matches!(status, CUresult::CUDA_ERROR_NOT_READY) {
        return String::new();
    }
    thread_local! {
        /// The position after the last read of this thread: entries before it belong to earlier failures.
        static READ: Cell<Option<CUlogIterator>> = const { Cell::new(None) };
    }
    let mut from = READ.get();
    let start = from
        .as_mut()
        .map_or(std::ptr::null_mut(), std::ptr::from_mut);
    let mut bytes = vec![0u8; LOG_BYTES];
    let mut size = bytes.len();
    // SAFETY: the iterator is null or valid; `size` is the length of the buffer.
    let dumped = unsafe {
        cupyrite_sys::driver::cuLogsDumpToMemory(
            start,
            bytes.as_mut_ptr().cast::<c_char>(),
            &mut size,
            0,
        )
    };
    if !matches!(dumped, Ok(CUresult::CUDA_SUCCESS)) {
        return String::new();
    }
    let mut now = CUlogIterator::default();
    // SAFETY: `now` is valid for writes.
    let asked = unsafe { cupyrite_sys::driver::cuLogsCurrent(&mut now, 0) };
    if matches!(asked, Ok(CUresult::CUDA_SUCCESS)) {
        READ.set(Some(now));
    }
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    // SAFETY: neither has arguments or can fail.
    let (number, address) = unsafe { (libc::gettid(), libc::pthread_self()) };
    let threads = [number.to_string(), address.to_string()];
    about(
        &String::from_utf8_lossy(&bytes[..end]),
        call,
        status,
        &threads,
    )
}

/// The lines of a log about the last failure of `call` with `status`.
///
/// A line is `[time][thread][source][severity] text`. The last line of a failure names call and status (`Returning 1
/// (CUDA_ERROR_INVALID_VALUE) from cuCall` in NVIDIA's driver, `cuCall answers CUDA_ERROR_INVALID_VALUE (1)` in the
/// CPU device); the lines of the same thread before it give the reason. `threads` are the names that the log may have
/// for the calling thread.
fn about(log: &str, call: &str, status: CUresult, threads: &[String]) -> String {
    /// Whether a text is the last message about a failure.
    fn ends(text: &str) -> bool {
        text.starts_with("Returning ") || text.contains(" returned CUDA_")
    }
    /// Whether a word is the function's name, with or without a version suffix.
    fn names(word: &str, call: &str) -> bool {
        word.strip_prefix(call)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with("_v"))
    }
    fn split(line: &str) -> (&str, &str) {
        let mut rest = line.trim_end();
        let mut thread = "";
        let mut index = 0;
        while let Some(inner) = rest.strip_prefix('[') {
            let Some((field, after)) = inner.split_once(']') else {
                break;
            };
            if index == 1 {
                thread = field;
            }
            index += 1;
            rest = after;
        }
        (thread, rest.trim_start())
    }
    let lines: Vec<(&str, &str)> = log.lines().map(split).collect();
    let code = format!("({})", status.0);
    let returned = format!("Returning {} ", status.0);
    let Some(last) = lines.iter().rposition(|(thread, text)| {
        ends(text)
            && threads.iter().any(|own| own == thread)
            && (text.starts_with(&returned) || text.ends_with(&code))
            && text.split(' ').any(|word| names(word, call))
    }) else {
        return String::new();
    };
    let thread = lines[last].0;
    let mut reasons: Vec<&str> = lines[..last]
        .iter()
        .rev()
        .filter(|(of, _)| *of == thread)
        .map_while(|(_, text)| (!ends(text)).then_some(*text))
        .collect();
    reasons.reverse();
    reasons.join("\n")
}

#[cfg(test)]
mod tests {
    use super::CUresult;

    fn about(log: &str, call: &str, status: CUresult) -> String {
        super::about(log, call, status, &["7".to_owned(), "139".to_owned()])
    }

    #[test]
    fn log_lines_of_a_failure_are_found() {
        let log = "[12:46:23.801][7][CUDA][E] an older reason\n\
                   [12:46:23.801][7][CUDA][E] Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuLaunchKernel\n\
                   [12:46:23.854][7][CUDA][E] block dimensions of (4096,1,1) exceed (1024,1024,64)\n\
                   [12:46:23.854][8][CUDA][E] another thread's\n\
                   [12:46:23.854][7][CUDA][E] Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuLaunchKernel\n";
        let invalid = CUresult::CUDA_ERROR_INVALID_VALUE;
        assert_eq!(
            about(log, "cuLaunchKernel", invalid),
            "block dimensions of (4096,1,1) exceed (1024,1024,64)"
        );
        assert_eq!(about(log, "cuMemAlloc", invalid), "");
        assert_eq!(
            about(log, "cuLaunchKernel", CUresult::CUDA_ERROR_OUT_OF_MEMORY),
            ""
        );
        let versioned = "[1][7][CUDA][E] why\n[1][7][CUDA][E] Returning 2 (X) from cuMemAlloc_v2\n";
        assert_eq!(
            about(versioned, "cuMemAlloc", CUresult::CUDA_ERROR_OUT_OF_MEMORY),
            "why"
        );
        assert_eq!(about("no brackets", "cuMemAlloc", invalid), "");
        assert_eq!(
            about(&log.replace("[7]", "[9]"), "cuLaunchKernel", invalid),
            ""
        );
        assert_ne!(
            about(&log.replace("[7]", "[139]"), "cuLaunchKernel", invalid),
            ""
        );
        let ours = "[1][7][CUDA][E] why not\n[1][7][CUDA][E] cuMemAlloc_v2 returned CUDA_ERROR_OUT_OF_MEMORY (2)\n";
        assert_eq!(
            about(ours, "cuMemAlloc", CUresult::CUDA_ERROR_OUT_OF_MEMORY),
            "why not"
        );
        assert_eq!(about(ours, "cuMemAlloc", invalid), "");
        assert_eq!(about(ours, "cuMem", CUresult::CUDA_ERROR_OUT_OF_MEMORY), "");
    }
}
