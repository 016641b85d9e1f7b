//! Host functions and stream callbacks: program code that a device thread runs in stream order.

use std::ffi::c_void;
use std::sync::OnceLock;

/// `CUhostFn`
type HostFunction = unsafe extern "C" fn(*mut c_void);
/// `CUstreamCallback`
type StreamCallback = unsafe extern "C" fn(u64, u32, *mut c_void);

static GATE: OnceLock<fn() -> bool> = OnceLock::new();

/// Sets a predicate that is evaluated before each host function or callback. If it returns false, the call is skipped
/// and the stream continues. Language runtimes that shut down before the process use it, because calling into them
/// afterwards crashes. Only the first call has an effect. The driver holds no lock while it evaluates `gate`.
pub fn set_host_function_gate(gate: fn() -> bool) {
    let _ = GATE.set(gate);
}

/// Whether program functions may be called.
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
        // SAFETY: guaranteed by the caller.
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
        // SAFETY: guaranteed by the caller.
        unsafe {
            std::mem::transmute::<u64, StreamCallback>(callback)(
                stream,
                status,
                data as *mut c_void,
            );
        }
    }
}
