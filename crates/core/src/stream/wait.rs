//! Waits for the work of a stream: by the host, by events, and by other streams.

use cupyrite_sys::driver::CUresult;

use crate::error::{Error, Result, driver};
use crate::stream::event::{Event, EventOptions};
use crate::stream::handle::Stream;
use crate::synchronization::{self, LastSynchronization, Synchronized};

impl Stream {
    /// Waits for all queued work.
    ///
    /// # Errors
    ///
    /// The error of the failed work.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the handle is live.
        let wait = || unsafe { driver!(cuStreamSynchronize(self.handle())) };
        self.inner.waited.note(|| self.call(wait))?;
        synchronization::run(Synchronized::StreamOrEvent);
        Ok(())
    }

    /// The last wait for the stream.
    pub(crate) fn last_synchronization(&self) -> &LastSynchronization {
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
