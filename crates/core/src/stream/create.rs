//! Creation of streams, and the options that they were created with.

use cupyrite_sys::driver::CUstream;

use crate::context::{Context, Device};
use crate::error::{Error, Result, driver};
use crate::stream::handle::{Stream, StreamOrigin};

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
