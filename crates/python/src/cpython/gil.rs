//! Releases the GIL around calls into C.

use pyo3::ffi;

/// Reattaches the thread on drop, also after a panic.
struct Detached(*mut ffi::PyThreadState);

impl Drop for Detached {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: `detached` saved this state on this thread; it is restored once.
        unsafe { ffi::PyEval_RestoreThread(self.0) };
    }
}

/// Runs `f` without the GIL. All calls into C that release the GIL go through this function.
///
/// Cheaper than [`pyo3::Python::detach`], which also defers the decrements of Python references dropped in `f`.
///
/// # Safety
///
/// The thread is attached. `f` neither uses nor drops Python objects.
#[inline(always)]
pub unsafe fn detached<T>(f: impl FnOnce() -> T) -> T {
    // SAFETY: the caller guarantees an attached thread.
    let _detached = Detached(unsafe { ffi::PyEval_SaveThread() });
    f()
}
