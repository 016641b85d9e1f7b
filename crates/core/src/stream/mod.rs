//! Streams: queues of work, ordered within one stream and independent between streams.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::destroyed::OwnedKind;
use cupyrite_sys::driver::{CUcontext, CUresult, CUstream};
use cupyrite_sys::loader;

use crate::after_wait::{self, LastWait, Waited};
use crate::context::device::Device;
use crate::context::{Context, ContextGuard};
use crate::error::{Error, Result, driver};

pub(crate) mod capture;
pub(crate) mod event;
pub(crate) mod lending;
pub(crate) mod usage;

pub use capture::{is_capturing, wait_for_streams};
pub use event::{Event, EventOptions, IpcEventHandle, UniqueEvent};
pub use usage::StreamUsage;

/// `CU_STREAM_LEGACY`.
const LEGACY: usize = 1;
/// `CU_STREAM_PER_THREAD`.
const PER_THREAD: usize = 2;

/// Options for creating a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamOptions {
    /// Whether the stream's work runs without waiting for the legacy default stream (`CU_STREAM_NON_BLOCKING`).
    pub nonblocking: bool,
    /// Lower numbers run first; `None` is the default priority. [`Stream::priority_range`] returns the valid range.
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

/// A stream; cheap to clone.
///
/// The last clone destroys a stream that this crate created; queued work still completes. The default streams and
/// borrowed ones ([`Stream::from_handle`]) are never destroyed.
#[derive(Clone)]
pub struct Stream {
    inner: Arc<Inner>,
}

struct Inner {
    handle: CUstream,
    /// [`OwnedKind::epoch`] when it was created.
    created: u32,
    waited: LastWait,
    origin: StreamOrigin,
}

enum StreamOrigin {
    /// Created by this crate, in this context.
    Owned(Context),
    /// A default stream of the thread's current context.
    Default,
    /// A default stream of a device, whichever context is current.
    DefaultOf(Device),
    /// Borrowed, with its owner.
    Foreign {
        owner: Option<Box<dyn Any + Send + Sync>>,
    },
    /// Another stream during a capture, whose graph retains what is launched in it.
    Recorded {
        stream: Stream,
        recorder: Arc<dyn GraphRecorder>,
    },
}

/// The graph that a stream records.
pub(crate) trait GraphRecorder: Send + Sync {
    /// Whether the capture goes on.
    fn is_recording(&self) -> bool;

    /// Retains a value until the graph and its launches are done.
    fn retain(&self, value: Arc<dyn Any + Send + Sync>) -> Result<()>;

    /// Keeps other threads from the graph and from the end of the capture during `body`.
    fn exclusively(&self, body: &mut dyn FnMut());

    /// Refuses work for a stream whose capture has ended. Called within [`GraphRecorder::exclusively`].
    fn check(&self, stream: &Stream) -> Result<()>;

    /// Whether [`GraphRecorder::note_retained`] was called with this key.
    fn has_retained(&self, key: usize) -> bool;

    /// Notes that a value was retained: `key` is an address that is unique while the value lives.
    fn note_retained(&self, key: usize);
}

/// A stream without clones; dropping it destroys it. See [`Stream::into_unique`].
#[must_use = "dropping it destroys the stream"]
pub struct UniqueStream {
    _inner: Inner,
}

// SAFETY: stream handles may be used from any thread.
unsafe impl Send for Inner {}
// SAFETY: as above; the driver synchronises.
unsafe impl Sync for Inner {}

impl Inner {
    /// Whether the program has destroyed the stream, or reset or destroyed its context.
    #[inline(always)]
    fn is_destroyed(&self, context: &Context) -> bool {
        OwnedKind::Stream.is_destroyed(self.handle, context.handle(), self.created)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let StreamOrigin::Owned(context) = &self.origin {
            if self.is_destroyed(context) {
                return;
            }
            // SAFETY: `Stream::create` made the handle; the program has not destroyed it, and this is its owner's only call.
            context.release(|| unsafe { driver!(owned cuStreamDestroy(self.handle)) });
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.handle().addr() {
            LEGACY => f.write_str("Stream(legacy default)"),
            PER_THREAD => f.write_str("Stream(per-thread default)"),
            handle => write!(f, "Stream({handle:#x})"),
        }
    }
}

impl Stream {
    /// Creates a stream in a context.
    ///
    /// # Errors
    ///
    /// As [`Device::create_stream_with`](crate::Device::create_stream_with).
    pub fn new(context: &Context, options: &StreamOptions) -> Result<Stream> {
        let _entered = context.enter()?;
        Stream::create(context.clone(), options)
    }

    /// Creates a stream in `context`, which is current.
    pub(crate) fn create(context: Context, options: &StreamOptions) -> Result<Stream> {
        const NON_BLOCKING: u32 = 1; // CU_STREAM_NON_BLOCKING
        let flags = if options.nonblocking { NON_BLOCKING } else { 0 };
        let mut handle: CUstream = std::ptr::null_mut();
        match options.priority {
            // SAFETY: `handle` is valid for writes.
            None => unsafe { driver!(cuStreamCreate(&mut handle, flags))? },
            Some(priority) => {
                // The driver would silently clamp it.
                let (least, greatest) = Self::current_priority_range()?;
                if !(greatest..=least).contains(&priority) {
                    return Err(Error::argument(
                        "Stream::new",
                        "priority",
                        format!(
                            "is {priority}; this device has priorities from {greatest} (first) to {least} (last)"
                        ),
                    ));
                }
                // SAFETY: `handle` is valid for writes.
                unsafe { driver!(cuStreamCreateWithPriority(&mut handle, flags, priority))? }
            }
        }
        Ok(Stream::from_inner(handle, StreamOrigin::Owned(context)))
    }

    fn from_inner(handle: CUstream, origin: StreamOrigin) -> Stream {
        Stream {
            inner: Arc::new(Inner {
                handle,
                created: OwnedKind::Stream.epoch(),
                waited: LastWait::none(),
                origin,
            }),
        }
    }

    /// The default stream that synchronises with all blocking streams of its context (`CU_STREAM_LEGACY`), in the
    /// calling thread's current context.
    pub fn legacy_default() -> Stream {
        static STREAM: OnceLock<Stream> = OnceLock::new();
        STREAM
            .get_or_init(|| {
                Stream::from_inner(
                    std::ptr::without_provenance_mut(LEGACY),
                    StreamOrigin::Default,
                )
            })
            .clone()
    }

    /// The calling thread's default stream (`CU_STREAM_PER_THREAD`), in its current context.
    pub fn per_thread_default() -> Stream {
        static STREAM: OnceLock<Stream> = OnceLock::new();
        STREAM
            .get_or_init(|| {
                Stream::from_inner(
                    std::ptr::without_provenance_mut(PER_THREAD),
                    StreamOrigin::Default,
                )
            })
            .clone()
    }

    /// The per-thread default stream if the environment variable `CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM` is an
    /// integer other than 0, else the legacy one. The variable is read once.
    ///
    /// # Errors
    ///
    /// [`Error::Load`](crate::Error::Load) if the variable is set and is not an integer.
    pub fn default_stream() -> Result<Stream> {
        Ok(if loader::requested_per_thread_default_stream()? {
            Stream::per_thread_default()
        } else {
            Stream::legacy_default()
        })
    }

    /// Borrows a stream. Dropping the value does not destroy it.
    ///
    /// 0, `CU_STREAM_LEGACY` and `CU_STREAM_PER_THREAD` are the default streams.
    ///
    /// # Safety
    ///
    /// `handle` is a stream of this process or one of those three, and outlives every use.
    pub unsafe fn from_handle(handle: CUstream) -> Stream {
        Stream::foreign(handle, None)
    }

    /// Borrows a stream and keeps its `owner` until the last clone is dropped.
    ///
    /// # Safety
    ///
    /// `handle` is a stream of this process that lives at least as long as `owner`.
    pub unsafe fn from_handle_with_owner(
        handle: CUstream,
        owner: impl Any + Send + Sync,
    ) -> Stream {
        Stream::foreign(handle, Some(Box::new(owner)))
    }

    fn foreign(handle: CUstream, owner: Option<Box<dyn Any + Send + Sync>>) -> Stream {
        let origin = match handle.addr() {
            0 | LEGACY | PER_THREAD => StreamOrigin::Default,
            _ => StreamOrigin::Foreign { owner },
        };
        Stream::from_inner(handle, origin)
    }

    /// The driver's handle; valid while a clone of this stream lives.
    #[inline]
    pub fn handle(&self) -> CUstream {
        self.inner.handle
    }

    /// Whether this is a default stream. Default streams have the same handles in every context and belong to the
    /// current one, unless they come from [`Stream::on_device`].
    #[inline]
    pub fn is_default(&self) -> bool {
        matches!(
            self.inner.origin,
            StreamOrigin::Default | StreamOrigin::DefaultOf(_)
        )
    }

    /// Binds a default stream to `device`, whichever context is current. Any other stream belongs to its own context
    /// and is returned unchanged.
    ///
    /// The methods of the result enter a context of the device. Its handle is that of every default stream of its origin.
    #[must_use]
    pub fn on_device(&self, device: Device) -> Stream {
        if self.is_default() {
            Stream::from_inner(self.handle(), StreamOrigin::DefaultOf(device))
        } else {
            self.clone()
        }
    }

    /// The device that a default stream is bound to: see [`Stream::on_device`].
    #[inline]
    pub fn default_device(&self) -> Option<Device> {
        match self.inner.origin {
            StreamOrigin::DefaultOf(device) => Some(device),
            _ => None,
        }
    }

    /// Makes a context of the bound device current, for a default stream that has one.
    fn enter_bound_device(&self) -> Result<Option<ContextGuard>> {
        self.default_device()
            .map(|device| device.enter().map(|(entered, _)| entered))
            .transpose()
    }

    /// Whether this is the per-thread default stream.
    #[inline]
    pub fn is_per_thread(&self) -> bool {
        self.handle().addr() == PER_THREAD
    }

    /// Drops this clone. Returns the stream if this was the last clone of a stream that this crate owns; dropping the
    /// result destroys the stream at a place of the caller's choice.
    ///
    /// Among clones that are dropped concurrently, exactly one is the last.
    #[inline]
    pub fn into_unique(self) -> Option<UniqueStream> {
        if self.is_owned() {
            Arc::into_inner(self.inner).map(|inner| UniqueStream { _inner: inner })
        } else {
            None
        }
    }

    /// This stream during a capture.
    pub(crate) fn recorded_by(&self, recorder: Arc<dyn GraphRecorder>) -> Stream {
        let stream = self.clone();
        Stream::from_inner(self.handle(), StreamOrigin::Recorded { stream, recorder })
    }

    /// Whether the stream belongs to a [`GraphBuilder`](crate::graph::GraphBuilder) that has not ended: what is
    /// launched in it becomes part of a graph.
    #[inline]
    pub fn is_recording(&self) -> bool {
        match &self.inner.origin {
            StreamOrigin::Recorded { recorder, .. } => recorder.is_recording(),
            _ => false,
        }
    }

    /// Whether the stream belonged to a [`GraphBuilder`](crate::graph::GraphBuilder) that has ended. Memory that was
    /// allocated on it belongs to the graph.
    #[inline]
    pub fn has_ended_recording(&self) -> bool {
        match &self.inner.origin {
            StreamOrigin::Recorded { recorder, .. } => !recorder.is_recording(),
            _ => false,
        }
    }

    /// Whether the stream belongs or belonged to a [`GraphBuilder`](crate::graph::GraphBuilder).
    #[inline(always)]
    pub fn is_of_builder(&self) -> bool {
        matches!(self.inner.origin, StreamOrigin::Recorded { .. })
    }

    /// Retains a value until the graph that this stream records, and its launches, are done.
    ///
    /// # Errors
    ///
    /// The driver's error; [`Error::InvalidArgument`] for a stream that records no graph.
    pub fn retain_recorded(&self, value: Arc<dyn Any + Send + Sync>) -> Result<()> {
        let StreamOrigin::Recorded { stream, recorder } = &self.inner.origin else {
            return Err(Error::argument(
                "Stream::retain_recorded",
                "self",
                "does not belong to a graph builder that records",
            ));
        };
        stream.check_live()?;
        recorder.retain(value)
    }

    /// As [`Stream::retain_recorded`], once for all calls with the same `key`: an address that is unique while the value
    /// lives. The capture may have ended, which [`Stream::queue`] refuses.
    ///
    /// # Errors
    ///
    /// As [`Stream::retain_recorded`].
    pub(crate) fn retain_recorded_once(
        &self,
        key: usize,
        value: impl FnOnce() -> Arc<dyn Any + Send + Sync>,
    ) -> Result<()> {
        match &self.inner.origin {
            StreamOrigin::Recorded { recorder, .. } if recorder.has_retained(key) => Ok(()),
            StreamOrigin::Recorded { recorder, .. } => {
                self.retain_recorded(value())?;
                recorder.note_retained(key);
                Ok(())
            }
            _ => self.retain_recorded(value()),
        }
    }

    /// Whether both are clones of the same stream, and not merely of the same handle.
    #[inline]
    pub fn is_clone_of(&self, other: &Stream) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// A number that all clones of this stream share, and no other stream while one of them lives. Not 0.
    #[inline(always)]
    pub(crate) fn identity(&self) -> usize {
        Arc::as_ptr(&self.inner).addr()
    }

    /// Whether the program has destroyed a stream that this crate owns, by its handle or with its context (by a reset,
    /// for example). Methods that use the stream return `CUDA_ERROR_INVALID_HANDLE` then.
    #[inline]
    pub fn is_destroyed(&self) -> bool {
        match &self.inner.origin {
            StreamOrigin::Owned(context) => self.inner.is_destroyed(context),
            StreamOrigin::Recorded { stream, .. } => stream.is_destroyed(),
            _ => false,
        }
    }

    /// An error if the program has destroyed the stream.
    #[inline(always)]
    pub(crate) fn check_live(&self) -> Result<()> {
        if self.is_destroyed() {
            Err(destroyed())
        } else {
            Ok(())
        }
    }

    /// The context in which memory of this stream is freed after the program has destroyed the stream.
    pub(crate) fn context_if_destroyed(&self) -> Option<&Context> {
        match &self.inner.origin {
            StreamOrigin::Owned(context) if self.inner.is_destroyed(context) => Some(context),
            StreamOrigin::Recorded { stream, .. } => stream.context_if_destroyed(),
            _ => None,
        }
    }

    /// The number of clones, this one included.
    pub(crate) fn clone_count(&self) -> usize {
        Arc::strong_count(&self.inner)
    }

    /// Whether the stream is borrowed, or belongs to a graph builder: dropping it may drop objects of other owners.
    #[inline]
    pub fn is_foreign(&self) -> bool {
        matches!(
            self.inner.origin,
            StreamOrigin::Foreign { .. } | StreamOrigin::Recorded { .. }
        )
    }

    /// Whether this crate created the stream and destroys it.
    #[inline]
    pub fn is_owned(&self) -> bool {
        matches!(self.inner.origin, StreamOrigin::Owned(_))
    }

    /// The owner given to [`Stream::from_handle_with_owner`], if this is the only clone.
    pub fn unique_owner(&self) -> Option<&(dyn Any + Send + Sync)> {
        match &self.inner.origin {
            StreamOrigin::Foreign { owner: Some(owner) } if Arc::strong_count(&self.inner) == 1 => {
                Some(&**owner)
            }
            _ => None,
        }
    }

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

    /// Waits for all queued work.
    ///
    /// # Errors
    ///
    /// The error of the failed work.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the handle is live.
        let wait = || unsafe { driver!(cuStreamSynchronize(self.handle())) };
        self.inner.waited.note(|| self.call(wait))?;
        after_wait::run(Waited::ForStreamOrEvent);
        Ok(())
    }

    /// The last wait for the stream.
    pub(crate) fn last_wait(&self) -> &LastWait {
        &self.inner.waited
    }

    /// Whether all queued work is done, without waiting.
    ///
    /// # Errors
    ///
    /// The error of the failed work.
    pub fn is_done(&self) -> Result<bool> {
        // SAFETY: the handle is live.
        let query = || unsafe { driver!(cuStreamQuery(self.handle())) };
        match self.call(query) {
            Ok(()) => Ok(true),
            Err(Error::Driver {
                status: CUresult::CUDA_ERROR_NOT_READY,
                ..
            }) => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Whether it runs without waiting for the legacy default stream.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuStreamGetFlags`.
    pub fn is_nonblocking(&self) -> Result<bool> {
        let mut flags = 0u32;
        let place = &raw mut flags;
        // SAFETY: `place` is valid for writes, the handle is live.
        self.call(|| unsafe { driver!(cuStreamGetFlags(self.handle(), place)) })?;
        Ok(flags & 1 != 0)
    }

    /// Its priority; lower numbers run first.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuStreamGetPriority`.
    pub fn priority(&self) -> Result<i32> {
        let mut priority = 0i32;
        let place = &raw mut priority;
        // SAFETY: `place` is valid for writes, the handle is live.
        self.call(|| unsafe { driver!(cuStreamGetPriority(self.handle(), place)) })?;
        Ok(priority)
    }

    /// The valid priorities of a context's streams: the least (a number like 0) and the greatest (like -5).
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuCtxGetStreamPriorityRange`.
    pub fn priority_range(context: &Context) -> Result<(i32, i32)> {
        context.with_current(Self::current_priority_range)
    }

    fn current_priority_range() -> Result<(i32, i32)> {
        let (mut least, mut greatest) = (0, 0);
        // SAFETY: both are valid for writes.
        unsafe { driver!(cuCtxGetStreamPriorityRange(&mut least, &mut greatest))? };
        Ok((least, greatest))
    }

    /// Records a new event with timing.
    ///
    /// # Errors
    ///
    /// The driver's error.
    pub fn record(&self) -> Result<Event> {
        self.record_with(&EventOptions {
            timing: true,
            ..EventOptions::default()
        })
    }

    /// Records a new event.
    ///
    /// # Errors
    ///
    /// As [`Event::new`] and [`Stream::context`].
    pub fn record_with(&self, options: &EventOptions) -> Result<Event> {
        let _entered = self.enter_bound_device()?;
        let event = Event::new(&self.context()?, options)?;
        event.record(self)?;
        Ok(event)
    }

    /// Makes later work of this stream wait for an event.
    ///
    /// # Errors
    ///
    /// The driver's error.
    pub fn wait(&self, event: &Event) -> Result<()> {
        event.check_live()?;
        // SAFETY: both handles are live; the driver keeps the recorded point until the wait is done.
        self.call(|| unsafe { driver!(cuStreamWaitEvent(self.handle(), event.handle(), 0)) })
    }

    /// Makes later work of this stream wait for all work that another stream has queued.
    ///
    /// # Errors
    ///
    /// The driver's error.
    pub fn wait_for_stream(&self, other: &Stream) -> Result<()> {
        self.wait(&other.record_with(&EventOptions::default())?)
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

/// The error returned instead of a driver call on a destroyed stream, which crashes NVIDIA's driver.
#[cold]
#[inline(never)]
fn destroyed() -> Error {
    Error::Driver {
        call: "Stream",
        status: CUresult::CUDA_ERROR_INVALID_HANDLE,
        log: "the stream was destroyed by the program: with cuStreamDestroy or cudaStreamDestroy, or with its context"
            .to_owned(),
    }
}

impl Device {
    /// Creates a stream that does not wait for the legacy default stream.
    ///
    /// # Errors
    ///
    /// The driver's error.
    pub fn create_stream(&self) -> Result<Stream> {
        self.create_stream_with(&StreamOptions::default())
    }

    /// Creates a stream with options.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a priority out of the device's range; otherwise the driver's error.
    pub fn create_stream_with(&self, options: &StreamOptions) -> Result<Stream> {
        let (_entered, context) = self.enter()?;
        Stream::create(context, options)
    }
}

impl PartialEq for Stream {
    fn eq(&self, other: &Self) -> bool {
        self.handle() == other.handle() && self.default_device() == other.default_device()
    }
}
impl Eq for Stream {}
