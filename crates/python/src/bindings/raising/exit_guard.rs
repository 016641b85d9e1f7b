//! Calls into libraries that do not survive the end of the process: it waits for them.
//!
//! nvJitLink, NVVM and nvFatbin tear their data down when the process exits, while a daemon thread may still be in
//! the middle of a call; the process then dies of a segmentation fault at the very end. Python starts no new calls by
//! that time, so waiting for those under way is enough.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cupyrite_sys::loader::CudaLibrary;
use pyo3::ffi;

use crate::bindings::call::general::invoke_at;
use crate::bindings::descriptor::Function;
use crate::bindings::raising::Returned;
use crate::cpython;

/// Calls under way.
static BUSY: AtomicUsize = AtomicUsize::new(0);
static REGISTERED: AtomicBool = AtomicBool::new(false);

/// How long the end of the process waits. A longer call is left to its fate: nobody wants to wait for ever at the end.
const PATIENCE: Duration = Duration::from_secs(10);

/// Calls a symbol with the words made for `f`.
#[inline]
pub fn invoke(f: &'static Function, symbol: *const c_void, words: *const u64) -> Returned {
    let waits = matches!(
        f.library,
        CudaLibrary::NvJitLink | CudaLibrary::Nvvm | CudaLibrary::NvFatbin
    );
    if f.keep_gil || !waits {
        let value = invoke_at(f, symbol, words);
        return Returned {
            value,
            // Taking the GIL back leaves it as it is.
            errno: errno(),
        };
    }
    if !REGISTERED.swap(true, Ordering::Relaxed) {
        // Where there is no room for another function, nothing waits, which is all that happens then.
        // SAFETY: attached; the function lives for ever.
        unsafe { ffi::Py_AtExit(Some(wait)) };
    }
    BUSY.fetch_add(1, Ordering::SeqCst);
    // SAFETY: the words were made for this function's C signature, the symbol is that function, and everything the
    // words point at is kept by the caller. The thread state is restored before Python is touched. At the end of the
    // process, taking it back hangs for ever: what has to be done is done before.
    unsafe {
        cpython::detached(|| {
            let value = (f.thunk)(symbol, words);
            let errno = errno();
            BUSY.fetch_sub(1, Ordering::SeqCst);
            Returned { value, errno }
        })
    }
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Called when the interpreter is gone and before the libraries are.
extern "C" fn wait() {
    let start = Instant::now();
    while BUSY.load(Ordering::SeqCst) != 0 && start.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(1));
    }
}
