//! Events: points in a stream that can be waited for and timed.

use std::sync::Arc;
use std::time::Duration;

use cupyrite_sys::driver::{CUevent, CUresult};

use crate::context::Context;
use crate::error::{Error, Result, driver, report};
use crate::stream::Stream;

/// How an event is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventOptions {
    /// Whether elapsed times can be taken; events without it are cheaper.
    pub timing: bool,
    /// Whether a waiting thread sleeps instead of spinning.
    pub blocking_sync: bool,
}

/// An event; cheap to clone, the last clone destroys it.
#[derive(Clone, Debug)]
pub struct Event {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    handle: CUevent,
    context: Context,
}

// SAFETY: event handles may be used from any thread.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: the handle was made by `Event::new` and is destroyed once, here.
        report(
            self.context
                .with_current(|| unsafe { driver!(cuEventDestroy(self.handle)) }),
        );
    }
}

impl Event {
    /// Makes an event.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn new(context: &Context, options: &EventOptions) -> Result<Event> {
        const BLOCKING_SYNC: u32 = 1; // CU_EVENT_BLOCKING_SYNC
        const DISABLE_TIMING: u32 = 2; // CU_EVENT_DISABLE_TIMING
        let flags = if options.blocking_sync {
            BLOCKING_SYNC
        } else {
            0
        } | if options.timing { 0 } else { DISABLE_TIMING };
        let mut handle: CUevent = std::ptr::null_mut();
        // SAFETY: `handle` is a valid place for the result.
        context.with_current(|| unsafe { driver!(cuEventCreate(&mut handle, flags)) })?;
        Ok(Event {
            inner: Arc::new(Inner {
                handle,
                context: context.clone(),
            }),
        })
    }

    /// The driver's handle; valid while a clone of this event lives.
    pub fn handle(&self) -> CUevent {
        self.inner.handle
    }

    /// Marks the stream's current end; a later `record` moves the event.
    ///
    /// # Errors
    ///
    /// What the driver says, `CUDA_ERROR_INVALID_HANDLE` for a stream of another context.
    pub fn record(&self, stream: &Stream) -> Result<()> {
        // SAFETY: both handles are live.
        self.inner
            .context
            .with_current(|| unsafe { driver!(cuEventRecord(self.handle(), stream.handle())) })
    }

    /// Waits until the work before the event is done.
    ///
    /// # Errors
    ///
    /// What the work raised.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the handle is live.
        self.inner
            .context
            .with_current(|| unsafe { driver!(cuEventSynchronize(self.handle())) })
    }

    /// Whether the work before the event is done, without waiting.
    ///
    /// # Errors
    ///
    /// What the work raised.
    pub fn is_done(&self) -> Result<bool> {
        // SAFETY: the handle is live.
        let query = || unsafe { driver!(cuEventQuery(self.handle())) };
        match self.inner.context.with_current(query) {
            Ok(()) => Ok(true),
            Err(Error::Driver {
                status: CUresult::CUDA_ERROR_NOT_READY,
                ..
            }) => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Device time between two recorded events.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_READY` if one is not done, `CUDA_ERROR_INVALID_HANDLE` if one was not recorded or cannot be
    /// timed, [`Error::InvalidArgument`] if `earlier` is the later one.
    pub fn elapsed_since(&self, earlier: &Event) -> Result<Duration> {
        let mut ms = 0f32;
        self.inner.context.with_current(|| {
            // SAFETY: both handles are live, `ms` is a valid place for the result.
            unsafe { driver!(cuEventElapsedTime(&mut ms, earlier.handle(), self.handle())) }
        })?;
        Duration::try_from_secs_f64(f64::from(ms) / 1e3).map_err(|_| {
            Error::argument(
                "Event::elapsed_since",
                "earlier",
                format!("was recorded {} ms after this event", -ms),
            )
        })
    }
}
