//! Host functions and stream callbacks: program code that a device thread runs in stream order.

use std::ffi::c_void;
use std::sync::OnceLock;

use cupyrite_sys::driver::CUhostFn;

use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::is_executable_address;
use crate::driver::entry::errors::Code;

/// `CUhostFn`
type HostFunction = unsafe extern "C" fn(*mut c_void);
/// `CUstreamCallback`
type StreamCallback = unsafe extern "C" fn(u64, u32, *mut c_void);

static GATE: OnceLock<fn() -> bool> = OnceLock::new();

/// Sets a predicate that is evaluated before each host function or callback. If it returns false, the call is skipped
/// and the stream continues. Language runtimes that shut down before the process use it, because calling into them
/// afterwards crashes. Only the first call has an effect. The driver holds no lock while it evaluates `gate`.
pub(crate) fn set_host_function_gate(gate: fn() -> bool) {
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

/// Validates that a function address lies in executable memory.
pub(super) fn code(address: u64) -> Res<u64> {
    if is_executable_address(address) {
        Ok(address)
    } else {
        Err(Code::INVALID_VALUE)
    }
}

/// A host function and its argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostCall {
    function: u64,
    pub(crate) data: u64,
    /// `CUhostTaskSyncMode`: blocking or spinning, without a difference here.
    pub(crate) mode: u32,
}

impl HostCall {
    /// The function as `CUhostFn`.
    pub(crate) fn function(&self) -> CUhostFn {
        // SAFETY: the address of code, which is not null; whoever calls it vouches for its type.
        unsafe { std::mem::transmute::<u64, CUhostFn>(self.function) }
    }

    /// # Errors
    /// `INVALID_VALUE` if the address is not executable, or for an unknown mode.
    pub(crate) fn prepare(function: u64, data: u64, mode: u32) -> Res<HostCall> {
        if mode > 1 {
            return Err(Code::INVALID_VALUE);
        }
        Ok(HostCall {
            function: code(function)?,
            data,
            mode,
        })
    }

    /// Address of the function.
    pub(crate) fn address(&self) -> u64 {
        self.function
    }

    pub(crate) fn run(&self) {
        // SAFETY: the caller passed the address, which is executable, as a function of this type.
        unsafe { run(self.function, self.data) };
    }
}
