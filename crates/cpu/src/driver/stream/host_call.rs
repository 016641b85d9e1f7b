//! Host functions: code of the program that runs when its turn in a stream comes, on a thread of the device.

use std::ffi::c_void;
use std::sync::OnceLock;

/// `CUhostFn`
type HostFunction = unsafe extern "C" fn(*mut c_void);
/// `CUstreamCallback`
type StreamCallback = unsafe extern "C" fn(u64, u32, *mut c_void);

static GATE: OnceLock<fn() -> bool> = OnceLock::new();

/// Has `gate` asked before a host function or callback is called; where it answers false, the function is left out and
/// the stream goes on. For language runtimes that end before the process does: whoever calls into one then, crashes.
/// Later calls change nothing. No lock of the driver is held while it is asked.
pub fn set_host_function_gate(gate: fn() -> bool) {
    let _ = GATE.set(gate);
}

/// Whether functions of the program may be called.
pub(crate) fn open() -> bool {
    GATE.get().is_none_or(|gate| gate())
}

/// Calls a host function.
///
/// # Safety
///
/// `function` is the address of a `CUhostFn` that may be called with `data`.
pub(crate) unsafe fn run(function: u64, data: u64) {
    if open() {
        // SAFETY: as promised by the caller.
        unsafe { std::mem::transmute::<u64, HostFunction>(function)(data as *mut c_void) };
    }
}

/// Calls a stream's callback.
///
/// # Safety
///
/// `callback` is the address of a `CUstreamCallback` that may be called with these arguments.
pub(crate) unsafe fn call_back(callback: u64, stream: u64, status: u32, data: u64) {
    if open() {
        // SAFETY: as promised by the caller.
        unsafe {
            std::mem::transmute::<u64, StreamCallback>(callback)(
                stream,
                status,
                data as *mut c_void,
            );
        }
    }
}
