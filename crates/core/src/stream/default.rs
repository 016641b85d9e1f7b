//! Default streams.

use std::sync::OnceLock;

use cupyrite_sys::loader;

use crate::context::{ContextGuard, Device};
use crate::error::Result;
use crate::stream::handle::{LEGACY, PER_THREAD, Stream, StreamOrigin};

impl Stream {
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
    pub(super) fn enter_bound_device(&self) -> Result<Option<ContextGuard>> {
        self.default_device()
            .map(|device| device.enter().map(|(entered, _)| entered))
            .transpose()
    }

    /// Whether this is the per-thread default stream.
    #[inline]
    pub fn is_per_thread(&self) -> bool {
        self.handle().addr() == PER_THREAD
    }
}
