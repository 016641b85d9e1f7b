//! Waits for the work of contexts and devices.

use crate::context::handle::{Context, Device};
use crate::error::{Result, driver};
use crate::synchronization::{self, Synchronized};

impl Context {
    /// Waits for all work of the context.
    ///
    /// # Errors
    ///
    /// The error of the failed work, such as an illegal address.
    pub fn synchronize(&self) -> Result<()> {
        let number = synchronization::begin_context_wait();
        // SAFETY: no arguments; acts on the current context, which is this one.
        self.with_current(|| unsafe { driver!(cuCtxSynchronize()) })?;
        let context = self.handle().addr();
        synchronization::run(Synchronized::Context { context, number });
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
