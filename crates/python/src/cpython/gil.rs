//! Releasing the GIL.

use pyo3::ffi;

/// Attaches the thread again, also when what ran meanwhile panics.
struct Detached(*mut ffi::PyThreadState);

impl Drop for Detached {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the state that was saved on this thread.
        unsafe { ffi::PyEval_RestoreThread(self.0) };
    }
}

/// Runs `f` without the GIL: the one place of this crate that releases it for calls into C.
///
/// It costs less than [`pyo3::Python::detach`], which also defers the reference counts of Python objects that are dropped
/// meanwhile.
///
/// # Safety
///
/// The thread is attached, and `f` touches nothing of Python, not even to drop it.
#[inline(always)]
pub unsafe fn detached<T>(f: impl FnOnce() -> T) -> T {
    // SAFETY: the thread is attached.
    let _detached = Detached(unsafe { ffi::PyEval_SaveThread() });
    f()
}
