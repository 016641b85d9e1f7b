//! Streams: their handles, owners and identity.
//!
//! Creation belongs to `create`, calls to `call`, waits and events to `wait`.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::destroyed::OwnedKind;
use cupyrite_sys::driver::{CUresult, CUstream};

use crate::context::{Context, Device};
use crate::error::{Error, Result, driver};
use crate::synchronization::LastSynchronization;

/// `CU_STREAM_LEGACY`.
pub(super) const LEGACY: usize = 1;
/// `CU_STREAM_PER_THREAD`.
pub(super) const PER_THREAD: usize = 2;

/// A stream; cheap to clone.
///
/// The last clone destroys a stream that this crate created; queued work still completes. The default streams and
/// borrowed ones ([`Stream::from_handle`]) are never destroyed.
#[derive(Clone)]
pub struct Stream {
    pub(super) inner: Arc<StreamState>,
}

pub(super) struct StreamState {
    handle: CUstream,
    /// [`OwnedKind::epoch`] when it was created.
    created: u32,
    pub(super) waited: LastSynchronization,
    pub(super) origin: StreamOrigin,
}

pub(super) enum StreamOrigin {
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
    _inner: StreamState,
}

// SAFETY: stream handles may be used from any thread.
unsafe impl Send for StreamState {}
// SAFETY: stream handles may be used from several threads at once: the driver synchronises.
unsafe impl Sync for StreamState {}

impl StreamState {
    /// Whether the program has destroyed the stream, or reset or destroyed its context.
    #[inline(always)]
    pub(super) fn is_destroyed(&self, context: &Context) -> bool {
        OwnedKind::Stream.is_destroyed(self.handle, context.handle(), self.created)
    }
}

impl Drop for StreamState {
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
    pub(super) fn from_inner(handle: CUstream, origin: StreamOrigin) -> Stream {
        Stream {
            inner: Arc::new(StreamState {
                handle,
                created: OwnedKind::Stream.epoch(),
                waited: LastSynchronization::none(),
                origin,
            }),
        }
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
}

/// The error returned instead of a driver call on a destroyed stream, which crashes NVIDIA's driver.
#[cold]
#[inline(never)]
pub(super) fn destroyed() -> Error {
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
