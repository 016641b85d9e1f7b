//! The current context of a thread, and calls that need one.

use std::marker::PhantomData;

use cupyrite_sys::driver::{CUcontext, CUresult};

use crate::context::handle::Context;
use crate::error::{Error, Result, driver, report};

impl Context {
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
            pop: Some(Pop::after_push()),
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
}

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
pub(super) struct Pop(PhantomData<*const ()>);

impl Pop {
    /// For a push that the caller has just made.
    pub(super) const fn after_push() -> Pop {
        Pop(PhantomData)
    }
}

impl Drop for Pop {
    fn drop(&mut self) {
        let mut popped: CUcontext = std::ptr::null_mut();
        // SAFETY: `popped` is valid for writes; this balances the push of the guard.
        report(unsafe { driver!(cuCtxPopCurrent(&mut popped)) });
    }
}
