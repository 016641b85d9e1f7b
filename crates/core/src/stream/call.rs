//! Calls of the driver on a stream: in its context, and for streams of graph builders under the graph's lock.

use cupyrite_sys::driver::{CUcontext, CUresult};

use crate::context::{Context, Device};
use crate::error::{Error, Result, driver};
use crate::stream::handle::{GraphRecorder, Stream, StreamOrigin, destroyed};

impl Stream {
    /// The stream's context. For a default stream: the calling thread's current context, or a context of the bound
    /// device.
    ///
    /// # Errors
    ///
    /// The driver's error: `CUDA_ERROR_INVALID_CONTEXT` for a default stream without a current context,
    /// `CUDA_ERROR_INVALID_HANDLE` for a destroyed stream. Source: `cuStreamGetCtx`.
    pub fn context(&self) -> Result<Context> {
        match &self.inner.origin {
            StreamOrigin::Owned(context) => return Ok(context.clone()),
            StreamOrigin::Recorded { stream, .. } => return stream.context(),
            _ => {}
        }
        Device::count()?;
        let _entered = self.enter_bound_device()?;
        let mut handle: CUcontext = std::ptr::null_mut();
        // SAFETY: `handle` is valid for writes; the stream is live.
        unsafe { driver!(cuStreamGetCtx(self.handle(), &mut handle))? };
        // SAFETY: the driver has just returned it; a stream does not outlive its context.
        unsafe { Context::from_handle(handle) }
    }

    /// Makes a call on this stream. The handle implies the context, except for default streams; see [`Context::call`]
    /// for drivers that want a current one nevertheless.
    #[inline]
    pub(crate) fn call<T>(&self, body: impl Fn() -> Result<T>) -> Result<T> {
        match &self.inner.origin {
            StreamOrigin::Owned(context) if !self.inner.is_destroyed(context) => context.call(body),
            StreamOrigin::Owned(_) => Err(destroyed()),
            StreamOrigin::Default | StreamOrigin::Foreign { .. } => body(),
            StreamOrigin::DefaultOf(_) => {
                let _entered = self.enter_bound_device()?;
                body()
            }
            StreamOrigin::Recorded { stream, recorder } => {
                // By reference to a trait object, because the instantiation is recursive.
                let body: &dyn Fn() -> Result<T> = &body;
                call_recorded(stream, &**recorder, body)
            }
        }
    }

    /// [`Stream::call`] for work that a graph builder's stream records: refused once its capture has ended, when the work
    /// would run at once.
    #[inline]
    pub(crate) fn queue<T>(&self, body: impl Fn() -> Result<T>) -> Result<T> {
        match &self.inner.origin {
            StreamOrigin::Recorded { stream, recorder } => {
                let body: &dyn Fn() -> Result<T> = &body;
                queue_recorded(stream, &**recorder, body)
            }
            _ => self.call(body),
        }
    }

    /// [`Stream::queue`] for a single copy, see [`Stream::copy_call`].
    #[inline]
    pub(crate) fn queue_copy(&self, copy: impl Fn() -> Result<()>) -> Result<()> {
        self.queue(|| self.copy_call(&copy))
    }

    /// Makes the driver's call for a copy in this stream. The driver asks whether the device of the current context may access
    /// pool memory and mappings, and not the stream's device (driver 580): in a stream that this crate owns, a refused copy is
    /// made again with the stream's context current.
    #[inline]
    pub(crate) fn copy_call(&self, copy: impl Fn() -> Result<()>) -> Result<()> {
        copy().or_else(|error| self.copy_in_context(error, &copy))
    }

    /// The rest of [`Stream::copy_call`] after the copy has failed once.
    #[cold]
    #[inline(never)]
    fn copy_in_context(&self, error: Error, copy: &dyn Fn() -> Result<()>) -> Result<()> {
        match &self.inner.origin {
            StreamOrigin::Owned(context)
                if error.status() == Some(CUresult::CUDA_ERROR_INVALID_VALUE)
                    && !self.inner.is_destroyed(context) =>
            {
                context.with_current(copy)
            }
            StreamOrigin::Recorded { stream, .. } => stream.copy_in_context(error, copy),
            _ => Err(error),
        }
    }

    /// The rest of [`Stream::call`] after `body` has failed once, for a stream that this crate owns.
    #[cold]
    #[inline(never)]
    pub(crate) fn retry_with_context(
        &self,
        error: Error,
        body: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        match &self.inner.origin {
            StreamOrigin::Owned(context) => context.retry_with_context(error, body),
            StreamOrigin::Recorded { stream, .. } => stream.retry_with_context(error, body),
            _ => Err(error),
        }
    }

    /// Runs `body` with the stream's context current.
    ///
    /// # Errors
    ///
    /// Those of `body` and of [`Stream::context`].
    pub fn with_current<T>(&self, body: impl FnOnce() -> Result<T>) -> Result<T> {
        match &self.inner.origin {
            StreamOrigin::Owned(context) if !self.inner.is_destroyed(context) => {
                context.with_current(body)
            }
            StreamOrigin::Owned(_) => Err(destroyed()),
            StreamOrigin::Default => body(),
            StreamOrigin::DefaultOf(_) => {
                let _entered = self.enter_bound_device()?;
                body()
            }
            StreamOrigin::Foreign { .. } => self.context()?.with_current(body),
            StreamOrigin::Recorded { stream, .. } => stream.with_current(body),
        }
    }
}

/// Makes a call on a graph builder's stream. Only a capture needs the lock; a call after it may wait for work.
#[cold]
fn call_recorded<T>(
    stream: &Stream,
    recorder: &dyn GraphRecorder,
    body: &dyn Fn() -> Result<T>,
) -> Result<T> {
    let mut done = None;
    if recorder.is_recording() {
        recorder.exclusively(&mut || {
            if recorder.is_recording() {
                done = Some(stream.call(body));
            }
        });
    }
    done.unwrap_or_else(|| stream.call(body))
}

/// Records work into a graph.
#[cold]
fn queue_recorded<T>(
    stream: &Stream,
    recorder: &dyn GraphRecorder,
    body: &dyn Fn() -> Result<T>,
) -> Result<T> {
    let mut done = None;
    recorder.exclusively(&mut || {
        done = Some(recorder.check(stream).and_then(|()| stream.call(body)));
    });
    done.unwrap_or_else(|| Err(destroyed()))
}
