//! The driver of this process.

use cupyrite_sys as sys;

use crate::error::Result;
use crate::preparation;

/// The driver of this process: NVIDIA's, or the CPU device.
///
/// Selects the driver if it is not selected yet.
///
/// # Errors
///
/// [`Error::Load`](crate::Error::Load) if `CUPYRITE_DEVICE` has an unknown value, or asks for a GPU where no driver library is found.
pub fn backend() -> Result<sys::loader::Backend> {
    preparation::prepare_loader();
    Ok(sys::loader::driver_backend()?)
}
