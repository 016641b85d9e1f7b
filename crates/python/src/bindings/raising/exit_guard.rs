//! Delays process exit until calls into NVRTC, nvJitLink, NVVM and nvFatbin return.
//!
//! These libraries destroy their global data at exit. A daemon thread that is still inside one of them then crashes the
//! process with a segmentation fault. Python starts no new calls by that time, so waiting for the calls in progress
//! is enough.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cupyrite_sys::loader::CudaLibrary;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::bindings::call::general::invoke_at;
use crate::bindings::call::results::Returned;
use crate::bindings::descriptor::Function;
use crate::cpython;

/// Number of calls in progress.
static BUSY: AtomicUsize = AtomicUsize::new(0);
static REGISTERED: AtomicBool = AtomicBool::new(false);

/// Longest delay of process exit. Exit does not wait for a call that takes longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whether calls into this library delay process exit.
#[inline(always)]
pub fn covers(library: CudaLibrary) -> bool {
    matches!(
        library,
        CudaLibrary::Nvrtc | CudaLibrary::NvJitLink | CudaLibrary::Nvvm | CudaLibrary::NvFatbin
    )
}

/// Calls a symbol with the words packed for `f`.
#[inline]
pub fn invoke(f: &'static Function, symbol: *const c_void, words: *const u64) -> Returned {
    if f.keep_gil || !covers(f.library()) {
        let value = invoke_at(f, symbol, words);
        return Returned {
            value,
            // Taking the GIL back preserves `errno`.
            errno: errno(),
        };
    }
    register();
    BUSY.fetch_add(1, Ordering::SeqCst);
    // SAFETY: the caller packed the words for this function's C signature, passes that function as the symbol, and keeps
    // everything the words point at alive. The closure touches no Python. At process exit, taking the GIL back
    // blocks forever, so `BUSY` is decremented before.
    unsafe {
        cpython::detached(|| {
            let value = (f.thunk)(symbol, words);
            let errno = errno();
            BUSY.fetch_sub(1, Ordering::SeqCst);
            Returned { value, errno }
        })
    }
}

/// Makes process exit wait for the calls in progress. The thread is attached.
fn register() {
    if !REGISTERED.load(Ordering::Relaxed) && !REGISTERED.swap(true, Ordering::Relaxed) {
        // If the table of exit functions is full, exit does not wait.
        // SAFETY: this thread is attached; `wait` is a static function.
        unsafe { ffi::Py_AtExit(Some(wait)) };
    }
}

/// Calls into compilers and linkers by crate `cupyrite`: process exit waits while it lives. Dropped before the thread takes
/// the GIL back, which blocks forever at process exit.
pub struct Inside(());

impl Inside {
    /// Begins such calls. The thread is attached.
    pub fn begin(_attached: Python<'_>) -> Inside {
        register();
        BUSY.fetch_add(1, Ordering::SeqCst);
        Inside(())
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        BUSY.fetch_sub(1, Ordering::SeqCst);
    }
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Runs after the interpreter is finalized and before the libraries' exit handlers.
extern "C" fn wait() {
    let start = Instant::now();
    while BUSY.load(Ordering::SeqCst) != 0 && start.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(1));
    }
}
