//! Blocks threads that the interpreter terminates during finalization, instead of unwinding Rust frames.
//!
//! CPython before 3.14 terminates a thread that requests the GIL during finalization by calling `pthread_exit`, which
//! starts a forced unwind of the thread's stack. This can happen in any call that may run Python code, so below nearly
//! every function of this extension: an import of NumPy for an array, a destructor, a `ctypes` callback on a driver
//! thread. A forced unwind must not pass through Rust frames: the process aborts, and destructors would drop references
//! without the GIL. CPython 3.14 blocks such a thread until the process exits. This module does the same for all
//! versions, in the personality function that all Rust frames share.
//!
//! The unwinder calls the personality function of each frame before it unwinds that frame. `build.rs` passes `--wrap` to
//! the linker, so that the wrapper below runs first: it blocks the thread at the first Rust frame of a forced unwind and
//! forwards everything else, panics in particular, to Rust's personality function. PyO3 blocks calls that only reacquire
//! the GIL in the same way.

use std::ffi::{c_int, c_void};

/// `_UA_FORCE_UNWIND`: the exception must not be caught (Itanium C++ ABI, exception handling, 1.4).
const FORCED: c_int = 8;

unsafe extern "C" {
    /// Rust's personality function.
    fn __real_rust_eh_personality(
        version: c_int,
        actions: c_int,
        class: u64,
        exception: *mut c_void,
        context: *mut c_void,
    ) -> c_int;
}

/// Personality function of every Rust frame in this library.
///
/// # Safety
///
/// Only the unwinder may call it.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_rust_eh_personality(
    version: c_int,
    actions: c_int,
    class: u64,
    exception: *mut c_void,
    context: *mut c_void,
) -> c_int {
    if actions & FORCED != 0 {
        loop {
            // SAFETY: `pause` has no preconditions; it waits for a signal.
            unsafe { libc::pause() };
        }
    }
    // SAFETY: forwards the unwinder's arguments unchanged.
    unsafe { __real_rust_eh_personality(version, actions, class, exception, context) }
}
