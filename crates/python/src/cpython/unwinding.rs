//! Threads that Python ends: they stop, instead of unwinding through this module.
//!
//! CPython before 3.14 ends a thread that wants the GIL while the interpreter is going away by `pthread_exit`, which
//! unwinds the thread's stack by force. That may happen in any call into Python that can run Python code, so below
//! nearly every function of this module: an import of NumPy for an array, a destructor, a callback of `ctypes` on a
//! thread of a driver. Rust's frames must not be unwound like that: the process aborts, and destructors would drop
//! references without the GIL. CPython 3.14 lets such a thread hang for ever, which the end of the process does not
//! mind; here the same is done for all versions, at the one place that all of Rust's frames have in common.
//!
//! The unwinder asks the personality function of each frame before it touches that frame. `build.rs` has the linker
//! put ours (`--wrap`) before Rust's: the first frame of Rust that a forced unwind meets stops the thread, and
//! everything else, panics above all, goes to Rust's own. Calls that only take the GIL back are stopped the same way
//! by PyO3.

use std::ffi::{c_int, c_void};

/// `_UA_FORCE_UNWIND`: nobody may catch this one (Itanium C++ ABI, exception handling, 1.4).
const FORCED: c_int = 8;

unsafe extern "C" {
    /// Rust's own personality function.
    fn __real_rust_eh_personality(
        version: c_int,
        actions: c_int,
        class: u64,
        exception: *mut c_void,
        context: *mut c_void,
    ) -> c_int;
}

/// What the unwinder calls for every frame of Rust in this library.
///
/// # Safety
///
/// Only for the unwinder.
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
            // SAFETY: waits for a signal; without preconditions.
            unsafe { libc::pause() };
        }
    }
    // SAFETY: the unwinder's arguments, as they came.
    unsafe { __real_rust_eh_personality(version, actions, class, exception, context) }
}
