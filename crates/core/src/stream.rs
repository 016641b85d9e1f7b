//! Streams: queues of work, in order within one, independent between two.

use std::sync::Arc;

use cupyrite_sys::driver::{CUresult, CUstream};

use crate::context::Context;
use crate::error::{Error, Result, driver, report};
use crate::event::{Event, EventOptions};

/// How a stream is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamOptions {
    /// Whether the stream's work runs without waiting for the legacy default stream (`CU_STREAM_NON_BLOCKING`).
    pub nonblocking: bool,
    /// Lower numbers run first; `None` is the default priority.
    pub priority: Option<i32>,
}

impl Default for StreamOptions {
    fn default() -> Self {
        StreamOptions {
            nonblocking: true,
            priority: None,
        }
    }
}

/// A stream; cheap to clone, the last clone destroys it. Work already queued still completes.
#[derive(Clone, Debug)]
pub struct Stream {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    handle: CUstream,
    context: Context,
}

// SAFETY: stream handles may be used from any thread.
unsafe impl Send for Inner {}
// SAFETY: as above; the driver locks the queue.
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: the handle was made by `Stream::new` and is destroyed once, here.
        report(
            self.context
                .with_current(|| unsafe { driver!(cuStreamDestroy(self.handle)) }),
        );
    }
}

impl Stream {
    pub(crate) fn new(context: &Context, options: &StreamOptions) -> Result<Stream> {
        const NON_BLOCKING: u32 = 1; // CU_STREAM_NON_BLOCKING
        let flags = if options.nonblocking { NON_BLOCKING } else { 0 };
        let mut handle: CUstream = std::ptr::null_mut();
        context.with_current(|| {
            // SAFETY: `handle` is a valid place for the result.
            unsafe {
                match options.priority {
                    None => driver!(cuStreamCreate(&mut handle, flags)),
                    Some(priority) => {
                        driver!(cuStreamCreateWithPriority(&mut handle, flags, priority))
                    }
                }
            }
        })?;
        Ok(Stream {
            inner: Arc::new(Inner {
                handle,
                context: context.clone(),
            }),
        })
    }

    /// The driver's handle; valid while a clone of this stream lives.
    pub fn handle(&self) -> CUstream {
        self.inner.handle
    }

    /// The context it was made in.
    pub fn context(&self) -> &Context {
        &self.inner.context
    }

    /// Waits until everything queued so far is done.
    ///
    /// # Errors
    ///
    /// What the work raised.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the handle is live.
        self.context()
            .with_current(|| unsafe { driver!(cuStreamSynchronize(self.handle())) })
    }

    /// Whether everything queued so far is done, without waiting.
    ///
    /// # Errors
    ///
    /// What the work raised.
    pub fn is_done(&self) -> Result<bool> {
        // SAFETY: the handle is live.
        let query = || unsafe { driver!(cuStreamQuery(self.handle())) };
        match self.context().with_current(query) {
            Ok(()) => Ok(true),
            Err(Error::Driver {
                status: CUresult::CUDA_ERROR_NOT_READY,
                ..
            }) => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Marks this point of the stream with a new event that can be timed.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn record(&self) -> Result<Event> {
        let event = Event::new(
            self.context(),
            &EventOptions {
                timing: true,
                ..EventOptions::default()
            },
        )?;
        event.record(self)?;
        Ok(event)
    }

    /// Makes later work of this stream wait for an event.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn wait(&self, event: &Event) -> Result<()> {
        // SAFETY: both handles are live; the driver keeps what it needs of the event until the wait is over.
        self.context().with_current(|| unsafe {
            driver!(cuStreamWaitEvent(self.handle(), event.handle(), 0))
        })
    }
}
