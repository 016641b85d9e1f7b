//! Delays process exit until calls into NVRTC, nvJitLink, NVVM and nvFatbin return.
//!
//! These libraries destroy their global data at exit. A daemon thread that is still inside one of them then crashes the
//! process with a segmentation fault. Python starts no new calls by that time, so waiting for the calls in progress
//! is enough. A forked child does not have the threads of its parent, so it waits for its own calls only.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cupyrite::ForkGeneration;
use cupyrite_sys::loader::CudaLibrary;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::bindings::call::general::invoke_at;
use crate::bindings::call::results::Returned;
use crate::bindings::descriptor::Function;
use crate::cpython;

/// Number of calls in progress, in the lower half; in the upper half the [`ForkGeneration`] of the process that counted
/// them.
static BUSY: AtomicU64 = AtomicU64::new(0);
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
    let call = CallInProgress::begin();
    // SAFETY: the caller packed the words for this function's C signature, passes that function as the symbol, and keeps
    // everything the words point at alive. The closure touches no Python. At process exit, taking the GIL back
    // blocks forever, so the call ends before.
    unsafe {
        cpython::detached(|| {
            let value = (f.thunk)(symbol, words);
            let errno = errno();
            drop(call);
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
pub struct Inside {
    _call: CallInProgress,
}

impl Inside {
    /// Begins such calls. The thread is attached.
    pub fn begin(_attached: Python<'_>) -> Inside {
        register();
        Inside {
            _call: CallInProgress::begin(),
        }
    }
}

/// A call that [`BUSY`] counts.
struct CallInProgress(u32);

impl CallInProgress {
    fn begin() -> CallInProgress {
        let process = ForkGeneration::current().number();
        // Calls that another process counted are in progress there only.
        update(|generation, calls| match generation == process {
            true => (process, calls + 1),
            false => (process, 1),
        });
        CallInProgress(process)
    }
}

impl Drop for CallInProgress {
    fn drop(&mut self) {
        // A callback of the compiler may have forked: the call then ends in both processes.
        update(|generation, calls| match generation == self.0 {
            true => (generation, calls - 1),
            false => (generation, calls),
        });
    }
}

fn halves(busy: u64) -> (u32, u32) {
    ((busy >> 32) as u32, busy as u32)
}

fn update(change: impl Fn(u32, u32) -> (u32, u32)) {
    let _ = BUSY.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |busy| {
        let (generation, calls) = halves(busy);
        let (generation, calls) = change(generation, calls);
        Some(u64::from(generation) << 32 | u64::from(calls))
    });
}

/// Whether calls of this process are in progress.
fn is_busy() -> bool {
    let (generation, calls) = halves(BUSY.load(Ordering::SeqCst));
    calls != 0 && generation == ForkGeneration::current().number()
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Runs after the interpreter is finalized and before the libraries' exit handlers.
extern "C" fn wait() {
    let start = Instant::now();
    while is_busy() && start.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(1));
    }
}
