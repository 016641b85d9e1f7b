//! Streams of graph builders: what is queued in them becomes part of a graph, which retains what it uses.

use std::any::Any;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::stream::handle::{Stream, StreamOrigin};

impl Stream {
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
}
