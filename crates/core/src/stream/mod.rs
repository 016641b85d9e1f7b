//! Streams: queues of work, in order within one, independent between two.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use cupyrite_sys::destroyed::OwnedKind;
use cupyrite_sys::driver::{CUcontext, CUresult, CUstream};
use cupyrite_sys::loader;

use crate::context::device::Device;
use crate::context::{Context, ContextGuard};
use crate::error::{Error, Result, driver};
use crate::memory::pool::deferred_destroy::{self, Look};

pub(crate) mod event;
pub(crate) mod usage;

pub use event::{Event, EventOptions, IpcEventHandle, UniqueEvent};
pub use usage::StreamUsage;

/// `CU_STREAM_LEGACY`.
const LEGACY: usize = 1;
/// `CU_STREAM_PER_THREAD`.
const PER_THREAD: usize = 2;

/// How a stream is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamOptions {
    /// Whether the stream's work runs without waiting for the legacy default stream (`CU_STREAM_NON_BLOCKING`).
    pub nonblocking: bool,
    /// Lower numbers run first; `None` is the default priority. [`Stream::priority_range`] says which there are.
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
/// A stream that this crate made is destroyed with its last clone; work already queued still completes. The default
/// streams and those that came from elsewhere ([`Stream::from_handle`]) are never destroyed.
#[derive(Clone)]
pub struct Stream {
    inner: Arc<Inner>,
}

struct Inner {
    handle: CUstream,
    /// [`OwnedKind::epoch`] when it was created.
    created: u32,
    kind: Kind,
}

enum Kind {
    /// Made here, in this context.
    Owned(Context),
    /// One of the default streams: what it means depends on the thread's current context.
    Default,
    /// That of a device, whatever is current.
    DefaultOf(Device),
    /// Somebody else's, with what keeps it alive.
    Foreign {
        owner: Option<Box<dyn Any + Send + Sync>>,
    },
}

/// A stream that has no clone any more; dropping it destroys it. See [`Stream::into_unique`].
#[must_use = "dropping it destroys the stream"]
pub struct UniqueStream {
    _inner: Inner,
}

// SAFETY: stream handles may be used from any thread.
unsafe impl Send for Inner {}
// SAFETY: as above; the driver locks the queue.
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
        if let Kind::Owned(context) = &self.kind {
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
    /// Makes a stream in a context.
    ///
    /// # Errors
    ///
    /// As [`Device::create_stream_with`](crate::Device::create_stream_with).
    pub fn new(context: &Context, options: &StreamOptions) -> Result<Stream> {
        let _entered = context.enter()?;
        Stream::create(context.clone(), options)
    }

    /// Makes a stream in `context`, which is current.
    pub(crate) fn create(context: Context, options: &StreamOptions) -> Result<Stream> {
        const NON_BLOCKING: u32 = 1; // CU_STREAM_NON_BLOCKING
        let flags = if options.nonblocking { NON_BLOCKING } else { 0 };
        let mut handle: CUstream = std::ptr::null_mut();
        match options.priority {
            // SAFETY: `handle` is a valid place for the result.
            None => unsafe { driver!(cuStreamCreate(&mut handle, flags))? },
            Some(priority) => {
                // The driver would take the nearest one without a word.
                let (least, greatest) = Self::range_of_current()?;
                if !(greatest..=least).contains(&priority) {
                    return Err(Error::argument(
                        "Stream::new",
                        "priority",
                        format!(
                            "is {priority}; this device has priorities from {greatest} (first) to {least} (last)"
                        ),
                    ));
                }
                // SAFETY: `handle` is a valid place for the result.
                unsafe { driver!(cuStreamCreateWithPriority(&mut handle, flags, priority))? }
            }
        }
        Ok(Stream::from_inner(handle, Kind::Owned(context)))
    }

    fn from_inner(handle: CUstream, kind: Kind) -> Stream {
        Stream {
            inner: Arc::new(Inner {
                handle,
                created: OwnedKind::Stream.epoch(),
                kind,
            }),
        }
    }

    /// The default stream that waits for, and is waited for by, all blocking streams of its context
    /// (`CU_STREAM_LEGACY`). It is that of the calling thread's current context.
    pub fn legacy_default() -> Stream {
        static STREAM: OnceLock<Stream> = OnceLock::new();
        STREAM
            .get_or_init(|| {
                Stream::from_inner(std::ptr::without_provenance_mut(LEGACY), Kind::Default)
            })
            .clone()
    }

    /// The calling thread's own default stream (`CU_STREAM_PER_THREAD`), in its current context.
    pub fn per_thread_default() -> Stream {
        static STREAM: OnceLock<Stream> = OnceLock::new();
        STREAM
            .get_or_init(|| {
                Stream::from_inner(std::ptr::without_provenance_mut(PER_THREAD), Kind::Default)
            })
            .clone()
    }

    /// The per-thread default stream if the environment variable `CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM` is an
    /// integer other than 0, else the legacy default stream. The variable is read once.
    ///
    /// # Errors
    ///
    /// [`Error::Load`] if the value is not an integer.
    pub fn default_stream() -> Result<Stream> {
        static PER_THREAD: OnceLock<bool> = OnceLock::new();
        let per_thread = match PER_THREAD.get() {
            Some(per_thread) => *per_thread,
            None => {
                let setting = loader::per_thread_default_stream_setting()?;
                *PER_THREAD.get_or_init(|| setting)
            }
        };
        Ok(if per_thread {
            Stream::per_thread_default()
        } else {
            Stream::legacy_default()
        })
    }

    /// A stream that somebody else made. It is not destroyed with the value.
    ///
    /// 0, `CU_STREAM_LEGACY` and `CU_STREAM_PER_THREAD` are the default streams.
    ///
    /// # Safety
    ///
    /// `handle` is a stream of this process, or one of those three, and it lives until nothing uses it any more.
    pub unsafe fn from_handle(handle: CUstream) -> Stream {
        Stream::foreign(handle, None)
    }

    /// As [`Stream::from_handle`], and keeps `owner`, which owns the stream, until the last clone is gone.
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
        let kind = match handle.addr() {
            0 | LEGACY | PER_THREAD => Kind::Default,
            _ => Kind::Foreign { owner },
        };
        Stream::from_inner(handle, kind)
    }

    /// The driver's handle; valid while a clone of this stream lives.
    #[inline]
    pub fn handle(&self) -> CUstream {
        self.inner.handle
    }

    /// Whether this is one of the default streams. They have the same handles in every context, and belong to whichever is
    /// current, unless they come from [`Stream::on_device`].
    #[inline]
    pub fn is_default(&self) -> bool {
        matches!(self.inner.kind, Kind::Default | Kind::DefaultOf(_))
    }

    /// For a default stream, that of `device`, whichever context is current; any other stream is one of its own context.
    ///
    /// The methods of the result enter a context of the device. Its handle is that of every default stream of its kind.
    #[must_use]
    pub fn on_device(&self, device: Device) -> Stream {
        if self.is_default() {
            Stream::from_inner(self.handle(), Kind::DefaultOf(device))
        } else {
            self.clone()
        }
    }

    /// The device whose default stream it is, whichever context is current: see [`Stream::on_device`].
    #[inline]
    pub fn default_device(&self) -> Option<Device> {
        match self.inner.kind {
            Kind::DefaultOf(device) => Some(device),
            _ => None,
        }
    }

    /// Makes a context current in which the handle is this stream, where the handle alone does not say it.
    fn enter_own(&self) -> Result<Option<ContextGuard>> {
        self.default_device()
            .map(|device| device.enter().map(|(entered, _)| entered))
            .transpose()
    }

    /// Whether it is the calling thread's own default stream.
    #[inline]
    pub fn is_per_thread(&self) -> bool {
        self.handle().addr() == PER_THREAD
    }

    /// Lets go of this clone. Where it was the last one of a stream of this crate's, the result is the stream itself, which
    /// is destroyed when that is dropped: the caller chooses where.
    ///
    /// Of several clones that are let go of at the same time exactly one is the last.
    #[inline]
    pub fn into_unique(self) -> Option<UniqueStream> {
        if self.is_owned() {
            Arc::into_inner(self.inner).map(|inner| UniqueStream { _inner: inner })
        } else {
            None
        }
    }

    /// Whether both are clones of the same stream, and not merely of the same handle.
    #[inline]
    pub fn is_clone_of(&self, other: &Stream) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Whether the program has destroyed a stream of this crate's: its handle, or its context (by a reset, for example).
    /// Methods that use the stream return `CUDA_ERROR_INVALID_HANDLE` then.
    #[inline]
    pub fn is_destroyed(&self) -> bool {
        match &self.inner.kind {
            Kind::Owned(context) => self.inner.is_destroyed(context),
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
        match &self.inner.kind {
            Kind::Owned(context) if self.inner.is_destroyed(context) => Some(context),
            _ => None,
        }
    }

    /// How many clones there are, this one included.
    pub(crate) fn clones(&self) -> usize {
        Arc::strong_count(&self.inner)
    }

    /// Whether somebody else made it, so that only the driver knows its context.
    #[inline]
    pub fn is_foreign(&self) -> bool {
        matches!(self.inner.kind, Kind::Foreign { .. })
    }

    /// Whether this crate made it and will destroy it.
    #[inline]
    pub fn is_owned(&self) -> bool {
        matches!(self.inner.kind, Kind::Owned(_))
    }

    /// What [`Stream::from_handle_with_owner`] was given, where nobody else has a clone of this stream.
    pub fn unique_owner(&self) -> Option<&(dyn Any + Send + Sync)> {
        match &self.inner.kind {
            Kind::Foreign { owner: Some(owner) } if Arc::strong_count(&self.inner) == 1 => {
                Some(&**owner)
            }
            _ => None,
        }
    }

    /// The context it belongs to; for a default stream the calling thread's current one, or the device's that it is of.
    ///
    /// # Errors
    ///
    /// What the driver says: `CUDA_ERROR_INVALID_CONTEXT` for a default stream where no context is current,
    /// `CUDA_ERROR_INVALID_HANDLE` for a stream that is no more. Source: `cuStreamGetCtx`.
    pub fn context(&self) -> Result<Context> {
        if let Kind::Owned(context) = &self.inner.kind {
            return Ok(context.clone());
        }
        Device::count()?;
        let _entered = self.enter_own()?;
        let mut handle: CUcontext = std::ptr::null_mut();
        // SAFETY: `handle` is a valid place for the result; the stream is live.
        unsafe { driver!(cuStreamGetCtx(self.handle(), &mut handle))? };
        // SAFETY: the driver has just named it; streams live in their contexts.
        unsafe { Context::from_handle(handle) }
    }

    /// Makes a call on this stream. A stream says which context it is of, so that the current one does not matter; for
    /// drivers that want one nevertheless, see [`Context::call`]. Default streams are of the current context.
    #[inline]
    pub(crate) fn call<T>(&self, body: impl Fn() -> Result<T>) -> Result<T> {
        match &self.inner.kind {
            Kind::Owned(context) if !self.inner.is_destroyed(context) => context.call(body),
            Kind::Owned(_) => Err(destroyed()),
            Kind::Default | Kind::Foreign { .. } => body(),
            Kind::DefaultOf(_) => {
                let _entered = self.enter_own()?;
                body()
            }
        }
    }

    /// What [`Stream::call`] does after `body` has failed once, for a stream that this crate made.
    #[cold]
    #[inline(never)]
    pub(crate) fn call_again(&self, error: Error, body: &dyn Fn() -> Result<()>) -> Result<()> {
        match &self.inner.kind {
            Kind::Owned(context) => context.call_again(error, body),
            _ => Err(error),
        }
    }

    /// Runs `body` with the stream's context current.
    ///
    /// # Errors
    ///
    /// Those of `body` and of [`Stream::context`].
    pub fn with_current<T>(&self, body: impl FnOnce() -> Result<T>) -> Result<T> {
        match &self.inner.kind {
            Kind::Owned(context) if !self.inner.is_destroyed(context) => context.with_current(body),
            Kind::Owned(_) => Err(destroyed()),
            Kind::Default => body(),
            Kind::DefaultOf(_) => {
                let _entered = self.enter_own()?;
                body()
            }
            Kind::Foreign { .. } => self.context()?.with_current(body),
        }
    }

    /// Waits until everything queued so far is done.
    ///
    /// # Errors
    ///
    /// What the work raised.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the handle is live.
        self.call(|| unsafe { driver!(cuStreamSynchronize(self.handle())) })?;
        deferred_destroy::look(Look::Rested);
        Ok(())
    }

    /// Whether everything queued so far is done, without waiting.
    ///
    /// # Errors
    ///
    /// What the work raised.
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
    /// What the driver says. Source: `cuStreamGetFlags`.
    pub fn is_nonblocking(&self) -> Result<bool> {
        let mut flags = 0u32;
        let place = &raw mut flags;
        // SAFETY: `place` is a valid place for the result, the handle is live.
        self.call(|| unsafe { driver!(cuStreamGetFlags(self.handle(), place)) })?;
        Ok(flags & 1 != 0)
    }

    /// Its priority; lower numbers run first.
    ///
    /// # Errors
    ///
    /// What the driver says. Source: `cuStreamGetPriority`.
    pub fn priority(&self) -> Result<i32> {
        let mut priority = 0i32;
        let place = &raw mut priority;
        // SAFETY: `place` is a valid place for the result, the handle is live.
        self.call(|| unsafe { driver!(cuStreamGetPriority(self.handle(), place)) })?;
        Ok(priority)
    }

    /// The priorities that streams of a context can have: the least (a number like 0) and the greatest (like -5).
    ///
    /// # Errors
    ///
    /// What the driver says. Source: `cuCtxGetStreamPriorityRange`.
    pub fn priority_range(context: &Context) -> Result<(i32, i32)> {
        context.with_current(Self::range_of_current)
    }

    fn range_of_current() -> Result<(i32, i32)> {
        let (mut least, mut greatest) = (0, 0);
        // SAFETY: both are valid places for the results.
        unsafe { driver!(cuCtxGetStreamPriorityRange(&mut least, &mut greatest))? };
        Ok((least, greatest))
    }

    /// Marks this point of the stream with a new event that can be timed.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn record(&self) -> Result<Event> {
        self.record_with(&EventOptions {
            timing: true,
            ..EventOptions::default()
        })
    }

    /// Marks this point of the stream with a new event.
    ///
    /// # Errors
    ///
    /// As [`Event::new`] and [`Stream::context`].
    pub fn record_with(&self, options: &EventOptions) -> Result<Event> {
        let _entered = self.enter_own()?;
        let event = Event::new(&self.context()?, options)?;
        event.record(self)?;
        Ok(event)
    }

    /// Makes later work of this stream wait for an event.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn wait(&self, event: &Event) -> Result<()> {
        event.check_live()?;
        // SAFETY: both handles are live; the driver keeps what it needs of the event until the wait is over.
        self.call(|| unsafe { driver!(cuStreamWaitEvent(self.handle(), event.handle(), 0)) })
    }

    /// Makes later work of this stream wait for everything that another one has queued so far.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn wait_for_stream(&self, other: &Stream) -> Result<()> {
        self.wait(&other.record_with(&EventOptions::default())?)
    }
}

/// The error in place of a driver call that would use a destroyed stream, which crashes NVIDIA's driver.
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

impl PartialEq for Stream {
    fn eq(&self, other: &Self) -> bool {
        self.handle() == other.handle() && self.default_device() == other.default_device()
    }
}
impl Eq for Stream {}
