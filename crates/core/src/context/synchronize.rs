//! Waits for the work of contexts and devices.

use crate::after_wait::{self, Waited};
use crate::context::handle::{Context, Device};
use crate::error::{Result, driver};

impl Context {
    /// Waits for all work of the context.
    ///
    /// # Errors
    ///
    /// The error of the failed work, such as an illegal address.
    pub fn synchronize(&self) -> Result<()> {
        let number = after_wait::begin();
        // SAFETY: no arguments; acts on the current context, which is this one.
        self.with_current(|| unsafe { driver!(cuCtxSynchronize()) })?;
        let context = self.handle().addr();
        after_wait::run(Waited::ForContext { context, number });
        Ok(())
    }
}

impl Device {
    /// Waits for all work of [`Device::active_context`].
    ///
    /// # Errors
    ///
    /// The error of the failed work.
    pub fn synchronize(&self) -> Result<()> {
        let (_entered, context) = self.enter()?;
        context.synchronize()
    }
}
