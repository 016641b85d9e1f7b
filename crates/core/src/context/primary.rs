//! Primary contexts, and the context in which a device's work runs.

use cupyrite_sys::driver::CUcontext;

use crate::context::current::{ContextGuard, current_handle};
use crate::context::handle::{Context, ContextState, Device};
use crate::error::{Result, driver};
use crate::shared::Shared;

impl Context {
    pub(crate) fn retain_primary(device: Device) -> Result<Context> {
        let mut handle: CUcontext = std::ptr::null_mut();
        // SAFETY: `handle` is valid for writes.
        unsafe { driver!(cuDevicePrimaryCtxRetain(&mut handle, device.handle()))? };
        // Leaked once per device, or once per thread if several race here.
        Ok(Context {
            inner: Shared::leak(ContextState::new(handle, device)),
        })
    }

    /// Whether the context lives until the process exits, as primary contexts do that this crate has retained. The
    /// owner of any other context can destroy it, with everything in it.
    pub(crate) fn is_permanent(&self) -> Result<bool> {
        if matches!(self.inner, Shared::Static(_)) {
            return Ok(true);
        }
        // It may be a primary context that only other libraries have retained. Does not create a primary context just
        // to check.
        let device = self.device();
        let (mut flags, mut active) = (0, 0);
        // SAFETY: both are valid for writes.
        unsafe {
            driver!(cuDevicePrimaryCtxGetState(
                device.handle(),
                &mut flags,
                &mut active
            ))?;
        }
        Ok(active != 0 && device.context()? == self)
    }
}

impl Device {
    /// The primary context. It is retained on first use and kept until the process exits.
    ///
    /// # Errors
    ///
    /// The driver's error, such as `CUDA_ERROR_OUT_OF_MEMORY`. Source: `cuDevicePrimaryCtxRetain`.
    #[inline]
    pub fn context(&self) -> Result<&'static Context> {
        match self.shared.primary.get() {
            Some(context) => Ok(context),
            None => self.retain(),
        }
    }

    /// The primary context, if it was retained.
    pub(crate) fn retained_primary(&self) -> Option<&'static Context> {
        self.shared.primary.get()
    }

    /// The primary context, if it was retained and is current on the calling thread.
    ///
    /// # Errors
    ///
    /// The driver's error.
    #[inline(always)]
    pub(crate) fn current_primary(&self) -> Result<Option<&'static Context>> {
        match self.shared.primary.get() {
            Some(primary) if current_handle()? == primary.handle() => Ok(Some(primary)),
            _ => Ok(None),
        }
    }

    #[cold]
    fn retain(self) -> Result<&'static Context> {
        // No lock is held during the call, which can take long: threads that race here both retain.
        let made = Context::retain_primary(self)?;
        if self.shared.primary.set(made).is_err() {
            // Another thread was first: this thread's reference is released.
            // SAFETY: it balances exactly one retain.
            unsafe { driver!(cuDevicePrimaryCtxRelease(self.handle()))? };
        }
        match self.shared.primary.get() {
            Some(context) => Ok(context),
            None => unreachable!("it was set above, and it is never taken out"),
        }
    }

    /// The context for work of this device on the calling thread: the current one if it belongs to this device, else
    /// the primary one.
    ///
    /// # Errors
    ///
    /// Same as [`Device::context`].
    #[inline]
    pub fn active_context(&self) -> Result<Context> {
        self.active().map(|(context, _)| context)
    }

    /// [`Device::active_context`], and whether it is current.
    #[inline]
    fn active(&self) -> Result<(Context, bool)> {
        // A `Device` exists, so the driver is initialised.
        let handle = current_handle()?;
        if !handle.is_null() {
            if let Some(primary) = self.shared.primary.get()
                && primary.handle() == handle
            {
                return Ok((primary.clone(), true));
            }
            // SAFETY: the driver has just returned it.
            let current = unsafe { Context::from_handle(handle)? };
            if current.device() == *self {
                return Ok((current, true));
            }
        }
        Ok((self.context()?.clone(), false))
    }

    /// Makes [`Device::active_context`] current on the calling thread until the guard is dropped; returns both.
    ///
    /// # Errors
    ///
    /// Same as [`Device::context`].
    #[inline]
    pub fn enter(&self) -> Result<(ContextGuard, Context)> {
        match self.active()? {
            (context, true) => Ok((ContextGuard::already(), context)),
            (context, false) => Ok((context.enter()?, context)),
        }
    }
}
