//! Contexts by handle: primary ones, green ones of this crate, and those of other owners.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use cupyrite_sys::driver::{CUcontext, CUdevice};

use crate::context::current::{Pop, current_handle};
use crate::context::handle::{Context, ContextState, Device};
use crate::error::{Result, driver};
use crate::shared::Shared;

impl Context {
    /// The calling thread's current context, if it has one.
    ///
    /// # Errors
    ///
    /// [`Error::Load`](crate::Error::Load), or the error of the driver's initialisation. Source: `cuCtxGetCurrent`.
    pub fn current() -> Result<Option<Context>> {
        Device::count()?;
        let handle = current_handle()?;
        if handle.is_null() {
            return Ok(None);
        }
        // SAFETY: the driver has just named it.
        unsafe { Context::from_handle(handle) }.map(Some)
    }

    /// Borrows a context. Dropping the value does not destroy it.
    ///
    /// # Errors
    ///
    /// The driver's error, such as `CUDA_ERROR_INVALID_CONTEXT`.
    ///
    /// # Safety
    ///
    /// `handle` is a context of this process, and outlives every use of anything created in it.
    pub unsafe fn from_handle(handle: CUcontext) -> Result<Context> {
        if let Some(primary) = Device::retained().find(|context| context.handle() == handle) {
            return Ok(primary.clone());
        }
        if let Some(green) = find_green(handle) {
            return Ok(green);
        }
        let mut ordinal = CUdevice::default();
        if handle == current_handle()? {
            // SAFETY: `ordinal` is valid for writes.
            unsafe { driver!(cuCtxGetDevice(&mut ordinal))? };
        } else {
            // SAFETY: the caller guarantees a live handle.
            unsafe { driver!(cuCtxPushCurrent(handle))? };
            let _pop = Pop::after_push();
            // SAFETY: `ordinal` is valid for writes.
            unsafe { driver!(cuCtxGetDevice(&mut ordinal))? };
        }
        let inner = ContextState::new(handle, Device::from_handle(ordinal)?);
        Ok(Context {
            inner: Shared::Counted(Arc::new(inner)),
        })
    }
}

static GREEN: Mutex<Vec<Weak<ContextState>>> = Mutex::new(Vec::new());

/// The green contexts that this crate has created.
pub(super) fn green_contexts() -> MutexGuard<'static, Vec<Weak<ContextState>>> {
    // A panic cannot leave the list half-changed.
    GREEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The green context of that handle, if this crate has created it.
fn find_green(handle: CUcontext) -> Option<Context> {
    let inner = green_contexts()
        .iter()
        .filter_map(Weak::upgrade)
        .find(|inner| inner.handle == handle)?;
    Some(Context {
        inner: Shared::Counted(inner),
    })
}
