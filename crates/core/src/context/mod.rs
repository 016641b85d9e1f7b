//! Contexts, and the rule that every call runs with the right one current.

use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use cupyrite_sys::driver::{CUcontext, CUdevice, CUresult};

use crate::error::{Error, Result, driver, report};
use crate::fork::ForkGeneration;
use crate::memory::pool::deferred_destroy::{self, Look};

pub(crate) mod capture_mode;
pub(crate) mod device;

pub use capture_mode::RelaxedCapture;
pub use device::{ComputeCapability, Device};

/// A CUDA context: a device's address space and everything made in it.
///
/// Cheap to clone. All of this crate's objects know the context that they were made in and have it current where a
/// call needs that, so that programs need not care which context a thread has.
///
/// A device's primary context is shared with the runtime API and with other libraries. It is retained once, when it is
/// first needed, and kept for as long as the process lives: nothing that any object relies on goes away with the last
/// handle to it. Any other context belongs to whoever made it.
#[derive(Clone, Debug)]
pub struct Context {
    inner: Shared,
}

/// Primary contexts are kept until the process ends, so that their clones are plain copies: every event has one.
#[derive(Clone, Debug)]
enum Shared {
    Kept(&'static Inner),
    Counted(Arc<Inner>),
}

impl Deref for Shared {
    type Target = Inner;

    #[inline]
    fn deref(&self) -> &Inner {
        match self {
            Shared::Kept(inner) => inner,
            Shared::Counted(inner) => inner,
        }
    }
}

#[derive(Debug)]
struct Inner {
    handle: CUcontext,
    device: Device,
    /// The driver, and everything that was made with it, belongs to this process alone.
    generation: ForkGeneration,
}

// SAFETY: a context handle may be used from any thread (CUDA C++ Programming Guide, "Context"); it is only ever passed
// to the driver.
unsafe impl Send for Inner {}
// SAFETY: as above; the driver serialises what needs it.
unsafe impl Sync for Inner {}

impl Inner {
    fn new(handle: CUcontext, device: Device) -> Inner {
        Inner {
            handle,
            device,
            generation: ForkGeneration::current(),
        }
    }
}

impl Context {
    pub(crate) fn retain_primary(device: Device) -> Result<Context> {
        let mut handle: CUcontext = std::ptr::null_mut();
        // SAFETY: `handle` is a valid place for the result.
        unsafe { driver!(cuDevicePrimaryCtxRetain(&mut handle, device.handle()))? };
        // Once a device, or once a thread where several come here at the same time.
        let kept = Box::leak(Box::new(Inner::new(handle, device)));
        Ok(Context {
            inner: Shared::Kept(kept),
        })
    }

    /// The calling thread's current context, if it has one.
    ///
    /// # Errors
    ///
    /// [`Error::Load`], or what the driver's initialisation says. Source: `cuCtxGetCurrent`.
    pub fn current() -> Result<Option<Context>> {
        Device::count()?;
        let handle = current_handle()?;
        if handle.is_null() {
            return Ok(None);
        }
        // SAFETY: the driver has just named it.
        unsafe { Context::from_handle(handle) }.map(Some)
    }

    /// A context that somebody else made. It is not destroyed with the value.
    ///
    /// # Errors
    ///
    /// What the driver says, `CUDA_ERROR_INVALID_CONTEXT` for one.
    ///
    /// # Safety
    ///
    /// `handle` is a context of this process, and it lives for as long as anything made in it is used.
    pub unsafe fn from_handle(handle: CUcontext) -> Result<Context> {
        if let Some(primary) = Device::retained().find(|context| context.handle() == handle) {
            return Ok(primary.clone());
        }
        let mut ordinal = CUdevice::default();
        if handle == current_handle()? {
            // SAFETY: `ordinal` is a valid place for the result.
            unsafe { driver!(cuCtxGetDevice(&mut ordinal))? };
        } else {
            // SAFETY: the handle is live, as the caller promises.
            unsafe { driver!(cuCtxPushCurrent(handle))? };
            let _pop = Pop(PhantomData);
            // SAFETY: `ordinal` is a valid place for the result.
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

    /// The device it is of.
    #[inline]
    pub fn device(&self) -> Device {
        self.inner.device
    }

    /// Makes this context current on the calling thread for as long as the guard lives.
    ///
    /// # Errors
    ///
    /// What the driver says where the context cannot be made current.
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

    /// Runs `body` with this context current on the calling thread, and restores what was current before, also when
    /// `body` panics.
    ///
    /// # Errors
    ///
    /// Those of `body`, or of the driver where the context cannot be made current.
    pub fn with_current<T>(&self, body: impl FnOnce() -> Result<T>) -> Result<T> {
        let _entered = self.enter()?;
        body()
    }

    /// Makes a call that takes a handle and so needs no current context; where the driver wants one nevertheless, the
    /// call is made again with this one current.
    #[inline]
    pub(crate) fn call<T>(&self, body: impl Fn() -> Result<T>) -> Result<T> {
        match body() {
            Ok(done) => Ok(done),
            Err(error) => self.call_again(error, &body),
        }
    }

    /// What [`Context::call`] does after `body` has failed once.
    #[cold]
    #[inline(never)]
    pub(crate) fn call_again<T>(&self, error: Error, body: &dyn Fn() -> Result<T>) -> Result<T> {
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

    /// Whether it is of this process, and not of the one that this one was is_forked_child from.
    #[inline]
    pub(crate) fn is_here(&self) -> bool {
        self.inner.generation.is_current()
    }

    /// Whether it is there until the process ends, as primary contexts that this crate has retained are: any other one is
    /// destroyed when its maker likes, and what was made in it is not to be used then.
    pub(crate) fn lasts(&self) -> Result<bool> {
        if matches!(self.inner, Shared::Kept(_)) {
            return Ok(true);
        }
        // Perhaps a primary one that only others have retained so far. Where there is none, none is made to find that out.
        let device = self.device();
        let (mut flags, mut active) = (0, 0);
        // SAFETY: both are valid places for the results.
        unsafe {
            driver!(cuDevicePrimaryCtxGetState(
                device.handle(),
                &mut flags,
                &mut active
            ))?;
        }
        Ok(active != 0 && device.context()? == self)
    }

    /// Releases something that was made in this context, from `Drop`: an error goes to `log`. In a is_forked_child child
    /// everything is still the parent's, and nothing is done.
    #[inline]
    pub(crate) fn release(&self, body: impl Fn() -> Result<()>) {
        if self.is_here()
            && let Err(error) = self.call(body)
        {
            report(Err(error));
        }
    }

    /// Makes this context current on the calling thread until another one is.
    ///
    /// Only needed before calling other libraries; this crate's objects do not depend on it.
    ///
    /// # Errors
    ///
    /// Those of `cuCtxSetCurrent`.
    pub fn set_current(&self) -> Result<()> {
        // SAFETY: the handle is live.
        unsafe { driver!(cuCtxSetCurrent(self.handle())) }
    }

    /// Makes this context current on the calling thread until [`Context::pop`], for pairs of calls that no scope
    /// encloses; [`Context::enter`] is the one that cannot be forgotten.
    ///
    /// # Errors
    ///
    /// Those of `cuCtxPushCurrent`.
    pub fn push(&self) -> Result<()> {
        // SAFETY: the handle is live.
        unsafe { driver!(cuCtxPushCurrent(self.handle())) }
    }

    /// Undoes one [`Context::push`] of the calling thread.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_CONTEXT` where nothing was pushed. Source: `cuCtxPopCurrent`.
    pub fn pop() -> Result<()> {
        let mut popped: CUcontext = std::ptr::null_mut();
        // SAFETY: `popped` is a valid place for the result.
        unsafe { driver!(cuCtxPopCurrent(&mut popped)) }
    }

    /// Waits until all work of the context is done.
    ///
    /// # Errors
    ///
    /// What the work raised, an illegal address for one.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: takes no arguments; acts on the current context, which is this one.
        self.with_current(|| unsafe { driver!(cuCtxSynchronize()) })?;
        deferred_destroy::look(Look::All);
        Ok(())
    }
}

impl PartialEq for Context {
    fn eq(&self, other: &Self) -> bool {
        self.handle() == other.handle()
    }
}
impl Eq for Context {}

/// The current context's handle; null where the thread has none.
#[inline]
pub(crate) fn current_handle() -> Result<CUcontext> {
    let mut current: CUcontext = std::ptr::null_mut();
    // SAFETY: `current` is a valid place for the result.
    unsafe { driver!(cuCtxGetCurrent(&mut current))? };
    Ok(current)
}

/// While it lives, a context is current on this thread; what was current before is restored afterwards.
///
/// It belongs to the thread that made it. Guards end in the opposite order of their making, as variables of one scope do.
#[derive(Debug)]
#[must_use = "the former context is restored when this is dropped"]
pub struct ContextGuard {
    pop: Option<Pop>,
}

impl ContextGuard {
    /// Nothing to restore: the context was current before.
    pub(crate) const fn already() -> ContextGuard {
        ContextGuard { pop: None }
    }

    /// Leaves the context current: nothing is restored when the guard goes.
    pub fn keep_current(mut self) {
        if let Some(pop) = self.pop.take() {
            std::mem::forget(pop);
        }
    }
}

/// Undoes one push. Neither sent nor shared: the stack of contexts is the thread's.
#[derive(Debug)]
struct Pop(PhantomData<*const ()>);

impl Drop for Pop {
    fn drop(&mut self) {
        let mut popped: CUcontext = std::ptr::null_mut();
        // SAFETY: `popped` is a valid place; this undoes the push that the guard stands for.
        report(unsafe { driver!(cuCtxPopCurrent(&mut popped)) });
    }
}
