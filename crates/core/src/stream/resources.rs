//! Resources of a stream's context, and streams of green contexts.

use crate::context::{Context, SmResource, WorkqueueResource};
use crate::error::{Error, Result};
use crate::stream::create::StreamOptions;
use crate::stream::handle::Stream;

impl Context {
    /// Creates a stream of a green context.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if this is no green context, for blocking streams, and for a priority outside of
    /// [`Stream::priority_range`]. Source: `cuGreenCtxStreamCreate`.
    pub fn create_green_stream(&self, options: &StreamOptions) -> Result<Stream> {
        let argument = |name: &'static str, problem: &str| {
            Error::argument("Context::create_green_stream", name, problem)
        };
        if !self.is_green()? {
            return Err(argument("self", "is no green context"));
        }
        if !options.nonblocking {
            return Err(argument(
                "options",
                "`nonblocking` is false; streams of green contexts are non-blocking",
            ));
        }
        Stream::new(self, options)
    }
}

impl Stream {
    /// The multiprocessors of the stream's context.
    ///
    /// # Errors
    ///
    /// As [`Stream::context`] and [`Context::sm_resource`].
    pub fn sm_resource(&self) -> Result<SmResource> {
        self.context()?.sm_resource()
    }

    /// The work queues of the stream's context.
    ///
    /// # Errors
    ///
    /// As [`Stream::context`] and [`Context::workqueue_resource`].
    pub fn workqueue_resource(&self) -> Result<WorkqueueResource> {
        self.context()?.workqueue_resource()
    }
}
