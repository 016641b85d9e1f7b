//! Releases the GIL around calls into C, and takes it on threads that do not have it.

use std::ffi::{c_int, c_void};
use std::mem::ManuallyDrop;
use std::sync::OnceLock;

use pyo3::ffi;
use pyo3::prelude::*;

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
/// PyO3 does not notice: [`pyo3::Python::try_attach`] in `f` succeeds without taking the GIL, and the process aborts or
/// corrupts objects. Code that `f` may reach and that needs Python, such as the destructors of what graphs retain, calls
/// [`attached`].
///
/// # Safety
///
/// The thread is attached. `f` neither uses nor drops Python objects, except in [`attached`].
#[inline(always)]
pub unsafe fn detached<T>(f: impl FnOnce() -> T) -> T {
    // SAFETY: the caller guarantees an attached thread.
    let _detached = Detached(unsafe { ffi::PyEval_SaveThread() });
    f()
}

/// Releases what `PyGILState_Ensure` took.
struct Ensured(ffi::PyGILState_STATE);

impl Drop for Ensured {
    fn drop(&mut self) {
        // SAFETY: `attached` took this state on this thread; it is released once.
        unsafe { ffi::PyGILState_Release(self.0) };
    }
}

/// Runs `f` with the GIL, on any thread: attached or not, also within [`detached`]. `None` without an interpreter or while it
/// shuts down; `f` is dropped then.
pub fn attached<T>(f: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    if !python_is_there() {
        return None;
    }
    // SAFETY: the interpreter is initialised. A thread that has the GIL may take it again.
    let _ensured = Ensured(unsafe { ffi::PyGILState_Ensure() });
    Python::try_attach(f)
}

/// A value with Python objects that any thread may drop, attached or not. It is leaked if the interpreter has shut down.
///
/// Driver objects in which Rust keeps Python objects (the owner of a stream, what a graph retains) contain them in this
/// form, because they may be dropped within [`detached`].
pub struct DropAttached<T>(ManuallyDrop<T>);

// SAFETY: the content is read by attached threads only, and dropped by one.
unsafe impl<T> Send for DropAttached<T> {}
// SAFETY: a shared reference gives access to the content on attached threads only, one at a time.
unsafe impl<T> Sync for DropAttached<T> {}

impl<T> DropAttached<T> {
    /// Wraps a value.
    pub fn new(value: T) -> DropAttached<T> {
        DropAttached(ManuallyDrop::new(value))
    }

    /// The value, for an attached thread.
    pub fn get(&self, _attached: Python<'_>) -> &T {
        &self.0
    }
}

impl<T> Drop for DropAttached<T> {
    fn drop(&mut self) {
        let value = &mut self.0;
        // SAFETY: dropped once, here.
        attached(|_| unsafe { ManuallyDrop::drop(value) });
    }
}

/// Whether Python is initialised and not shutting down. The CPU device checks this before it runs a user callback on one of
/// its own threads: most callbacks are `ctypes` functions, whose code is freed with the interpreter.
pub fn python_is_there() -> bool {
    type Finalizing = unsafe extern "C" fn() -> c_int;
    static FINALIZING: OnceLock<Option<Finalizing>> = OnceLock::new();
    let finalizing = FINALIZING.get_or_init(|| {
        // Public since Python 3.13; earlier versions export it under the private name.
        [c"Py_IsFinalizing", c"_Py_IsFinalizing"]
            .iter()
            .find_map(|name| {
                // SAFETY: the name ends with a nul; in every version of CPython the symbol is a function of this type.
                unsafe {
                    let found = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
                    std::mem::transmute::<*mut c_void, Option<Finalizing>>(found)
                }
            })
    });
    // SAFETY: both functions may be called at any time, on any thread, without the GIL.
    unsafe { ffi::Py_IsInitialized() != 0 && finalizing.is_none_or(|finalizing| finalizing() == 0) }
}
