//! The driver of this process, and what happens before its first call.

use cupyrite_sys as sys;

use crate::error::Result;
use crate::fork;

/// The driver of this process: NVIDIA's, or the CPU device.
///
/// Selects the driver if it is not selected yet.
///
/// # Errors
///
/// [`Error::Load`](crate::Error::Load) if `CUPYRITE_DEVICE` has an unknown value, or asks for a GPU where no driver library is found.
pub fn backend() -> Result<sys::loader::Backend> {
    prepare_loader();
    Ok(sys::loader::driver_backend()?)
}

/// Prepares the first driver call. Returns false in a fork of a process that used the driver: no call may be made
/// there.
#[cold]
#[inline(never)]
pub(crate) fn prepare_driver() -> bool {
    if fork::is_forked_child() {
        return false;
    }
    prepare_loader();
    true
}

/// Prepares the loader: observes the calls that destroy handles, and registers the CPU device if it is linked and no other one is
/// registered. Cheap after the first call.
#[inline]
pub(crate) fn prepare_loader() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        crate::destroyed::install();
        #[cfg(feature = "cpu-device")]
        cupyrite_cpu::install();
    });
}
