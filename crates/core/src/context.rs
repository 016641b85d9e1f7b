//! Contexts, and the rule that every call runs with the right one current.

use std::sync::{Arc, Mutex, OnceLock};

use cupyrite_sys::driver::{CUcontext, CUdevice};

use crate::error::{Result, driver, report};

/// A CUDA context: a device's address space and everything made in it.
///
/// Cheap to clone; the last clone releases it. All of this crate's objects hold the context that they were made in and
/// make it current around each call, so that programs need not care which context a thread has.
#[derive(Clone, Debug)]
pub struct Context {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    handle: CUcontext,
    device: CUdevice,
}

// SAFETY: a context handle may be used from any thread (CUDA C++ Programming Guide, "Context"); it is only ever passed
// to the driver.
unsafe impl Send for Inner {}
// SAFETY: as above; the driver serialises what needs it.
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: `retain` took exactly one reference to this device's primary context.
        report(unsafe { driver!(cuDevicePrimaryCtxRelease(self.device)) });
    }
}

impl Context {
    /// The primary context of a device, shared with the runtime API and with other libraries of the process.
    ///
    /// It is retained once for as long as any object of this crate uses it.
    pub(crate) fn primary(device: CUdevice, ordinal: usize) -> Result<Context> {
        static PRIMARY: OnceLock<Mutex<Vec<std::sync::Weak<Inner>>>> = OnceLock::new();
        let mut table = PRIMARY
            .get_or_init(Mutex::default)
            .lock()
            .unwrap_or_else(|e| e.into_inner());
        if table.len() <= ordinal {
            table.resize(ordinal + 1, std::sync::Weak::new());
        }
        if let Some(inner) = table[ordinal].upgrade() {
            return Ok(Context { inner });
        }
        let mut handle: CUcontext = std::ptr::null_mut();
        // SAFETY: `handle` is a valid place for the result.
        unsafe { driver!(cuDevicePrimaryCtxRetain(&mut handle, device))? };
        let inner = Arc::new(Inner { handle, device });
        table[ordinal] = Arc::downgrade(&inner);
        Ok(Context { inner })
    }

    /// The driver's handle; valid while a clone of this context lives.
    pub fn handle(&self) -> CUcontext {
        self.inner.handle
    }

    /// Runs `body` with this context current on the calling thread, and restores what was current before, also when
    /// `body` panics.
    ///
    /// # Errors
    ///
    /// Those of `body`, or of the driver where the context cannot be made current.
    pub fn with_current<T>(&self, body: impl FnOnce() -> Result<T>) -> Result<T> {
        let mut current: CUcontext = std::ptr::null_mut();
        // SAFETY: `current` is a valid place for the result.
        unsafe { driver!(cuCtxGetCurrent(&mut current))? };
        if current == self.handle() {
            return body();
        }
        // SAFETY: the handle is live, this object holds a reference.
        unsafe { driver!(cuCtxPushCurrent(self.handle()))? };
        let _pop = Pop;
        body()
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

    /// Waits until all work of the context is done.
    ///
    /// # Errors
    ///
    /// What the work raised, an illegal address for one.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: takes no arguments; acts on the current context, which is this one.
        self.with_current(|| unsafe { driver!(cuCtxSynchronize()) })
    }
}

impl PartialEq for Context {
    fn eq(&self, other: &Self) -> bool {
        self.handle() == other.handle()
    }
}
impl Eq for Context {}

struct Pop;
impl Drop for Pop {
    fn drop(&mut self) {
        let mut popped: CUcontext = std::ptr::null_mut();
        // SAFETY: `popped` is a valid place; this undoes the push of `with_current`.
        report(unsafe { driver!(cuCtxPopCurrent(&mut popped)) });
    }
}
