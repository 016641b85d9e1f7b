//! Green contexts: contexts that own parts of a device.

use std::sync::Arc;

use cupyrite_sys::driver::{CUdevResourceDesc, CUgreenCtx, CUgreenCtxCreate_flags, CUstream};

use crate::context::handle::{Context, ContextState, Device, GreenContext};
use crate::context::lookup::green_contexts;
use crate::context::resources::DeviceResource;
use crate::error::{Error, Result, driver};
use crate::shared::Shared;

impl Device {
    /// Creates a green context, which owns parts of the device. The context is destroyed with the last clone of it, of a
    /// stream or of another object in it. It does not become current.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if there are no resources or one is an estimate;
    /// `CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION` for resources that cannot be combined. Source:
    /// `cuDevResourceGenerateDesc`, `cuGreenCtxCreate`.
    pub fn create_green_context(self, resources: &[DeviceResource<'_>]) -> Result<Context> {
        let invalid = |problem: &str| {
            Err(Error::argument(
                "Device::create_green_context",
                "resources",
                problem,
            ))
        };
        if resources.is_empty() {
            return invalid("is empty");
        }
        let mut raw = Vec::with_capacity(resources.len());
        for resource in resources {
            match resource {
                DeviceResource::Sm(sm) if sm.is_estimate => {
                    return invalid("contains the result of an estimate, which reserves nothing");
                }
                DeviceResource::Sm(sm) => raw.push(*sm.raw),
                DeviceResource::Workqueue(queues) => raw.push(*queues.raw),
            }
        }
        // The green context retains the primary context, which is expensive to create for each.
        let _primary = self.context()?;
        let mut descriptor: CUdevResourceDesc = std::ptr::null_mut();
        let mut green: CUgreenCtx = std::ptr::null_mut();
        let flags = CUgreenCtxCreate_flags::CU_GREEN_CTX_DEFAULT_STREAM.0;
        // SAFETY: the array has `raw.len()` elements, and both outputs are valid for writes.
        unsafe {
            driver!(cuDevResourceGenerateDesc(
                &mut descriptor,
                raw.as_mut_ptr(),
                raw.len() as u32
            ))?;
            driver!(cuGreenCtxCreate(
                &mut green,
                descriptor,
                self.handle(),
                flags
            ))?;
        }
        let mut green = GreenContext {
            handle: green,
            context: std::ptr::null_mut(),
        };
        // SAFETY: the output is valid for writes, and the handle is live. `green` destroys it if the call fails.
        unsafe { driver!(cuCtxFromGreenCtx(&mut green.context, green.handle))? };
        let mut inner = ContextState::new(green.context, self);
        inner.green = Some(green);
        let inner = Arc::new(inner);
        let mut known = green_contexts();
        known.retain(|context| context.strong_count() > 0);
        known.push(Arc::downgrade(&inner));
        Ok(Context {
            inner: Shared::Counted(inner),
        })
    }
}

impl Context {
    /// Whether this is a green context.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuStreamGetGreenCtx`, for contexts that this crate has not created.
    pub fn is_green(&self) -> Result<bool> {
        if self.inner.green.is_some() {
            return Ok(true);
        }
        if self.is_permanent()? {
            return Ok(false);
        }
        let mut green: CUgreenCtx = std::ptr::null_mut();
        let _entered = self.enter()?;
        // SAFETY: the default stream is that of the current context, and `green` is valid for writes.
        match unsafe { driver!(cuStreamGetGreenCtx(CUstream::default(), &mut green)) } {
            Ok(()) => Ok(!green.is_null()),
            // A driver before CUDA 12.4 has no green contexts.
            Err(Error::Load(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
