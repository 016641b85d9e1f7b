//! Contexts, and the current context of each call.

use std::marker::PhantomData;
use std::sync::Arc;

use cupyrite_sys::driver::{CUcontext, CUdevice, CUresult};

use crate::after_wait::{self, Waited};
use crate::error::{Error, Result, driver, report};
use crate::fork::ForkGeneration;
use crate::shared::Shared;

pub(crate) mod capture_mode;
pub(crate) mod device;
pub(crate) mod resources;

pub use capture_mode::RelaxedCapture;
pub use device::{ComputeCapability, Device};
pub use resources::{
    DeviceResource, SmGroup, SmResource, SmSplit, WorkqueueResource, WorkqueueScope,
};

/// A CUDA context: a device's address space and everything created in it.
///
/// Cheap to clone. Every object of this crate knows its context and makes it current for calls that need it, so
/// programs need not manage the current context.
///
/// The runtime API and other libraries share a device's primary context. This crate retains it once, on first use, and
/// keeps it until the process exits, so that no object outlives it. A green context
/// ([`Device::create_green_context`]) lives as long as its clones. Any other context belongs to its creator.
#[derive(Clone, Debug)]
pub struct Context {
    inner: Shared<Inner>,
}

#[derive(Debug)]
struct Inner {
    handle: CUcontext,
    device: Device,
    /// Handles of the driver belong to one process.
    generation: ForkGeneration,
    /// The green context that this is, if this crate has created it.
    green: Option<resources::Green>,
}

// SAFETY: context handles may be used from any thread (CUDA C++ Programming Guide, "Context"); this crate only passes
// them to the driver.
unsafe impl Send for Inner {}
// SAFETY: as above; the driver synchronises.
unsafe impl Sync for Inner {}

impl Inner {
    fn new(handle: CUcontext, device: Device) -> Inner {
        Inner {
            handle,
            device,
            generation: ForkGeneration::current(),
            green: None,
        }
    }
}

impl Context {
    pub(crate) fn retain_primary(device: Device) -> Result<Context> {
        let mut handle: CUcontext = std::ptr::null_mut();
        // SAFETY: `handle` is valid for writes.
        unsafe { driver!(cuDevicePrimaryCtxRetain(&mut handle, device.handle()))? };
        // Leaked once per device, or once per thread if several race here.
        Ok(Context {
            inner: Shared::leak(Inner::new(handle, device)),
        })
    }

    /// The calling thread's current context, if it has one.
    ///
    /// # Errors
    ///
    /// [`Error::Load`], or the error of the driver's initialisation. Source: `cuCtxGetCurrent`.
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
        if let Some(green) = resources::find(handle) {
            return Ok(green);
        }
        let mut ordinal = CUdevice::default();
        if handle == current_handle()? {
            // SAFETY: `ordinal` is valid for writes.
            unsafe { driver!(cuCtxGetDevice(&mut ordinal))? };
        } else {
            // SAFETY: the caller guarantees a live handle.
            unsafe { driver!(cuCtxPushCurrent(handle))? };
            let _pop = Pop(PhantomData);
            // SAFETY: `ordinal` is valid for writes.
            unsafe { driver!(cuCtxGetDevice(&mut ordinal))? };
        }
        let inner = Inner::new(handle, Device::from_handle(ordinal)?);
        Ok(Context {
            inner: Shared::Counted(Arc::new(inner)),
        })
    }

    /// The driver's handle.
    #[inline]
    pub fn handle(&self) -> CUcontext {
        self.inner.handle
    }

    /// The device of the context.
    #[inline]
    pub fn device(&self) -> Device {
        self.inner.device
    }

    /// Makes this context current on the calling thread until the guard is dropped.
    ///
    /// # Errors
    ///
    /// The driver's error if the context cannot be made current.
    #[inline]
    pub fn enter(&self) -> Result<ContextGuard> {
        if current_handle()? == self.handle() {
            return Ok(ContextGuard::already());
        }
        // SAFETY: the handle is live.
        unsafe { driver!(cuCtxPushCurrent(self.handle()))? };
        Ok(ContextGuard {
            pop: Some(Pop(PhantomData)),
        })
    }

    /// Runs `body` with this context current on the calling thread, and restores the former one, also if `body`
    /// panics.
    ///
    /// # Errors
    ///
    /// Those of `body`, or of the driver if the context cannot be made current.
    pub fn with_current<T>(&self, body: impl FnOnce() -> Result<T>) -> Result<T> {
        let _entered = self.enter()?;
        body()
    }

    /// Makes a call whose handle implies the context. If the driver wants a current context nevertheless, makes the
    /// call again with this one current.
    #[inline]
    pub(crate) fn call<T>(&self, body: impl Fn() -> Result<T>) -> Result<T> {
        match body() {
            Ok(done) => Ok(done),
            Err(error) => self.retry_with_context(error, &body),
        }
    }

    /// The rest of [`Context::call`], after `body` has failed once.
    #[cold]
    #[inline(never)]
    pub(crate) fn retry_with_context<T>(
        &self,
        error: Error,
        body: &dyn Fn() -> Result<T>,
    ) -> Result<T> {
        match error {
            Error::Driver {
                status: CUresult::CUDA_ERROR_INVALID_CONTEXT,
                ..
            } => {
                let _entered = self.enter()?;
                body()
            }
            error => Err(error),
        }
    }

    /// Whether the context belongs to this process, and not to its parent before a fork.
    #[inline]
    pub(crate) fn is_current_process(&self) -> bool {
        self.inner.generation.is_current()
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

    /// Runs a destructor of an object of this context and logs its error. Does nothing in a forked child, where the
    /// object belongs to the parent.
    #[inline]
    pub(crate) fn release(&self, body: impl Fn() -> Result<()>) {
        if self.is_current_process()
            && let Err(error) = self.call(body)
        {
            report(Err(error));
        }
    }

    /// Makes this context current on the calling thread until it is replaced.
    ///
    /// Needed only for other libraries; this crate's objects do not depend on it.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuCtxSetCurrent`.
    pub fn set_current(&self) -> Result<()> {
        // SAFETY: the handle is live.
        unsafe { driver!(cuCtxSetCurrent(self.handle())) }
    }

    /// Pushes this context onto the calling thread's stack until [`Context::pop`], for pairs of calls that no scope
    /// encloses. Prefer [`Context::enter`], which cannot be left unbalanced.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuCtxPushCurrent`.
    pub fn push(&self) -> Result<()> {
        // SAFETY: the handle is live.
        unsafe { driver!(cuCtxPushCurrent(self.handle())) }
    }

    /// Pops what one [`Context::push`] of the calling thread pushed.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_CONTEXT` if the stack is empty. Source: `cuCtxPopCurrent`.
    pub fn pop() -> Result<()> {
        let mut popped: CUcontext = std::ptr::null_mut();
        // SAFETY: `popped` is valid for writes.
        unsafe { driver!(cuCtxPopCurrent(&mut popped)) }
    }

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

impl PartialEq for Context {
    fn eq(&self, other: &Self) -> bool {
        self.handle() == other.handle()
    }
}
impl Eq for Context {}

/// The handle of the current context; null if the thread has none.
#[inline]
pub(crate) fn current_handle() -> Result<CUcontext> {
    let mut current: CUcontext = std::ptr::null_mut();
    // SAFETY: `current` is valid for writes.
    unsafe { driver!(cuCtxGetCurrent(&mut current))? };
    Ok(current)
}

/// Keeps a context current on this thread; restores the former one when dropped.
///
/// A guard belongs to the thread that created it. Guards are dropped in reverse order of creation, as local variables
/// are.
#[derive(Debug)]
#[must_use = "the former context is restored when this is dropped"]
pub struct ContextGuard {
    pop: Option<Pop>,
}

impl ContextGuard {
    /// A guard that restores nothing: the context was current already.
    pub(crate) const fn already() -> ContextGuard {
        ContextGuard { pop: None }
    }

    /// Leaves the context current: the guard restores nothing.
    pub fn keep_current(mut self) {
        if let Some(pop) = self.pop.take() {
            std::mem::forget(pop);
        }
    }
}

/// Undoes one push. Neither `Send` nor `Sync`: the context stack is per thread.
#[derive(Debug)]
struct Pop(PhantomData<*const ()>);

impl Drop for Pop {
    fn drop(&mut self) {
        let mut popped: CUcontext = std::ptr::null_mut();
        // SAFETY: `popped` is valid for writes; this balances the push of the guard.
        report(unsafe { driver!(cuCtxPopCurrent(&mut popped)) });
    }
}
