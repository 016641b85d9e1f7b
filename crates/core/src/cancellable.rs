//! Waits that the caller can end before the work is done.
//!
//! The driver's waits return only when the work is done. These query instead: at first without a pause, as the driver's own
//! waits do, then with pauses that grow with the time waited and stay a small fraction of it. When the work is done, the
//! driver's wait follows, which returns at once: only waits flush kernel output and release memory of pools. The work itself
//! is never cancelled.

use std::thread;
use std::time::{Duration, Instant};

use cupyrite_sys::loader::{self, Backend};
use parking_lot::Mutex;

use crate::context::{Context, Device};
use crate::error::{Error, Result, driver};
use crate::stream::{Event, EventOptions, Stream, UniqueEvent};

/// Interval at which the condition is checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// A pause is at most this part of the time waited so far.
const PAUSE_PART: u32 = 512;
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_micros(500);
/// Shorter pauses spin: a thread wakes from a sleep about this much too late.
const SHORTEST_SLEEP: Duration = Duration::from_micros(50);

impl Stream {
    /// Whether a wait for the stream would return at once and have no effect: its work is done, and no kernel was launched and
    /// no memory freed since the last wait for it. Never waits.
    ///
    /// Launches and frees of libraries that call the driver directly are not noticed. What such kernels print appears when the
    /// driver flushes it, within 0.3 s on driver 580.
    ///
    /// # Errors
    ///
    /// The error of the failed work.
    #[inline]
    pub fn is_synchronized(&self) -> Result<bool> {
        Ok(self.last_synchronization().suffices() && self.is_done()?)
    }

    /// Waits for all queued work, unless `cancelled` returns true first. Returns whether the work is done.
    ///
    /// `cancelled` is called about every 50 ms, and not at all if the work is done earlier. The work goes on in any case.
    ///
    /// ```no_run
    /// # fn main() -> cupyrite::Result<()> {
    /// use std::time::{Duration, Instant};
    /// let stream = cupyrite::Device::new(0)?.create_stream()?;
    /// let deadline = Instant::now() + Duration::from_secs(1);
    /// let done = stream.synchronize_unless(&mut || Instant::now() >= deadline)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The error of the failed work.
    pub fn synchronize_unless(&self, cancelled: &mut dyn FnMut() -> bool) -> Result<bool> {
        let is_done = || {
            self.is_done()
                .map_err(|e| renamed(e, "cuStreamSynchronize"))
        };
        if !is_done()? && !wait(&is_done, false, cancelled)? {
            return Ok(false);
        }
        self.synchronize()?;
        Ok(true)
    }
}

impl Event {
    /// As [`Stream::is_synchronized`], for a wait for the event.
    ///
    /// # Errors
    ///
    /// The error of the failed work.
    #[inline]
    pub fn is_synchronized(&self) -> Result<bool> {
        Ok(self.last_synchronization().suffices() && self.is_done()?)
    }

    /// Waits for the work before the event, unless `cancelled` returns true first: see [`Stream::synchronize_unless`].
    /// Returns whether the work is done.
    ///
    /// # Errors
    ///
    /// The error of the failed work.
    pub fn synchronize_unless(&self, cancelled: &mut dyn FnMut() -> bool) -> Result<bool> {
        let is_done = || self.is_done().map_err(|e| renamed(e, "cuEventSynchronize"));
        if !is_done()? && !wait(&is_done, self.options().blocking_sync, cancelled)? {
            return Ok(false);
        }
        self.synchronize()?;
        Ok(true)
    }
}

impl Device {
    /// Waits for all work of [`Device::active_context`], unless `cancelled` returns true first: see
    /// [`Stream::synchronize_unless`]. Returns whether the work is done.
    ///
    /// # Errors
    ///
    /// The error of the failed work.
    pub fn synchronize_unless(&self, cancelled: &mut dyn FnMut() -> bool) -> Result<bool> {
        let (_entered, context) = self.enter()?;
        context.synchronize_unless(cancelled)
    }
}

/// The event of the last [`Context::synchronize_unless`]: creating one costs more than the rest of a wait for no work.
static SPARE: Mutex<Option<Event>> = Mutex::new(None);

impl Context {
    /// Waits for all work of the context, unless `cancelled` returns true first: see [`Stream::synchronize_unless`].
    /// Returns whether the work is done.
    ///
    /// A driver before CUDA 12.5 cannot record the work of a context. There, and while a stream of the context is captured,
    /// this is [`Context::synchronize`].
    ///
    /// # Errors
    ///
    /// The error of the failed work.
    pub fn synchronize_unless(&self, cancelled: &mut dyn FnMut() -> bool) -> Result<bool> {
        self.with_current(|| {
            if let Ok(event) = self.record_all_work() {
                let done = match event.is_done() {
                    Ok(false) => wait(&|| event.is_done(), false, cancelled),
                    // The wait below returns the error of failed work.
                    Ok(true) | Err(_) => Ok(true),
                };
                *SPARE.lock() = Some(event);
                if let Ok(false) = done {
                    return Ok(false);
                }
            }
            self.synchronize()?;
            Ok(true)
        })
    }

    /// An event after all work of the context, which is current.
    fn record_all_work(&self) -> Result<Event> {
        let spare = SPARE
            .lock()
            .take()
            .filter(|event| event.context() == self && event.check_live().is_ok());
        let event = match spare {
            Some(event) => event,
            None => UniqueEvent::create(self.clone(), &EventOptions::default())?.share(),
        };
        // SAFETY: the context and the event are live.
        unsafe { driver!(cuCtxRecordEvent(self.handle(), event.handle()))? };
        Ok(event)
    }
}

/// Waits until `is_done` returns true, or `cancelled` does; returns which. `sleeps`: the thread sleeps from the start.
#[cold]
fn wait(
    is_done: &dyn Fn() -> Result<bool>,
    sleeps: bool,
    cancelled: &mut dyn FnMut() -> bool,
) -> Result<bool> {
    // The CPU device needs the cores for the work.
    let sleeps = sleeps || loader::chosen_backend() == Some(Backend::Cpu);
    let start = Instant::now();
    let mut check = CHECK_INTERVAL;
    loop {
        let waited = start.elapsed();
        if waited >= check {
            if cancelled() {
                return Ok(false);
            }
            check = start.elapsed() + CHECK_INTERVAL;
        }
        let pause = (waited / PAUSE_PART).min(LONGEST_PAUSE);
        if sleeps || pause >= SHORTEST_SLEEP {
            thread::sleep(pause.max(SHORTEST_SLEEP));
        } else {
            let until = waited + pause;
            while start.elapsed() < until {
                std::hint::spin_loop();
            }
        }
        if is_done()? {
            return Ok(true);
        }
    }
}

/// The error of a query, as one of the wait that the query stands for.
#[cold]
fn renamed(error: Error, wait: &'static str) -> Error {
    match error {
        Error::Driver {
            call: "cuStreamQuery" | "cuEventQuery",
            status,
            log,
        } => Error::Driver {
            call: wait,
            status,
            log,
        },
        other => other,
    }
}
