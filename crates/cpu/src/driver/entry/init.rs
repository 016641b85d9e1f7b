//! Initialisation: `cuInit`, the driver version, fork detection.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::driver::device;
use crate::driver::entry::caller_memory::put;
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::entry::logs::because;

/// The CUDA version this driver reports: that of the newest toolkit whose API it implements.
pub(crate) const DRIVER_VERSION: i32 = 13050;

static INITIALISED: AtomicBool = AtomicBool::new(false);
static FORKED: AtomicBool = AtomicBool::new(false);

pub(crate) fn initialised() -> bool {
    INITIALISED.load(Ordering::Acquire)
}

/// Whether this process was forked after the driver was initialised. As with a GPU, CUDA cannot be used in such a
/// child: the threads that run the streams exist only in the parent.
pub(crate) fn forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

extern "C" fn in_child() {
    FORKED.store(true, Ordering::Relaxed);
}

fn watch_forks() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        // SAFETY: the handler only stores to an atomic.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

driver_entry_points! { bare;
    fn init "cuInit" (flags: u32) {
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        if device::all()?.is_empty() {
            return Err(because(Code::NO_DEVICE, || {
                "CUDA_VISIBLE_DEVICES hides all devices".to_owned()
            }));
        }
        watch_forks();
        crate::driver::entry::clock::now();
        INITIALISED.store(true, Ordering::Release);
        Ok(())
    }
    fn driver_get_version "cuDriverGetVersion" (out: u64) {
        put(out, DRIVER_VERSION)
    }
}
