//! Events: points in a stream to wait for and to time.

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::Duration;

use crate::destroyed::OwnedKind;
use cupyrite_sys::driver::{CUevent, CUipcEventHandle, CUresult};

use crate::context::{Context, Device};
use crate::error::{Error, Result, driver, report};
use crate::stream::Stream;
use crate::synchronization::{self, LastSynchronization, Synchronized};

/// Options for creating an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventOptions {
    /// Whether the event records its time; events without it are cheaper.
    pub timing: bool,
    /// Whether a waiting thread sleeps instead of spinning.
    pub blocking_sync: bool,
    /// Whether other processes can open the event; such events cannot record times.
    pub ipc: bool,
}

impl EventOptions {
    /// `CU_EVENT_BLOCKING_SYNC`, `CU_EVENT_DISABLE_TIMING` and `CU_EVENT_INTERPROCESS`.
    #[inline]
    const fn flags(&self) -> u32 {
        (self.blocking_sync as u32) | (!self.timing as u32) << 1 | (self.ipc as u32) << 2
    }

    #[inline]
    const fn from_flags(flags: u32) -> EventOptions {
        EventOptions {
            timing: flags & 2 == 0,
            blocking_sync: flags & 1 != 0,
            ipc: flags & 4 != 0,
        }
    }
}

/// An event; cheap to clone. The last clone destroys it.
///
/// ```no_run
/// # fn main() -> cupyrite::Result<()> {
/// # use cupyrite::{Device, EventOptions};
/// let device = Device::new(0)?;
/// let stream = device.create_stream()?;
/// let timed = EventOptions { timing: true, ..EventOptions::default() };
/// let start = stream.record_with(&timed)?;
/// // ... work ...
/// let end = stream.record_with(&timed)?;
/// end.synchronize()?;
/// println!("{:?}", end.elapsed_since(&start)?);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Event {
    inner: Arc<EventState>,
}

#[derive(Debug)]
struct EventState {
    handle: CUevent,
    /// The creation flags: one word, where the options take three bytes, and events are moved often.
    flags: u32,
    /// [`OwnedKind::epoch`] when it was created.
    created: u32,
    /// The [`LastSynchronization`] for it.
    waited: LastSynchronization,
    context: Context,
}

impl EventState {
    #[inline]
    const fn options(&self) -> EventOptions {
        EventOptions::from_flags(self.flags)
    }

    /// Makes a call that uses the event. Fails if the program has destroyed the event: NVIDIA's driver crashes after a
    /// reset of the context.
    #[inline(always)]
    fn call<T>(&self, body: impl Fn() -> Result<T>) -> Result<T> {
        self.check_live()?;
        self.context.call(body)
    }

    #[inline(always)]
    fn check_live(&self) -> Result<()> {
        if OwnedKind::Event.is_destroyed(self.handle, self.context.handle(), self.created) {
            Err(destroyed())
        } else {
            Ok(())
        }
    }
}

/// An event with one owner: creating and destroying it allocates no memory of this crate.
///
/// [`UniqueEvent::share`] converts it to the [`Event`] that all other functions take.
#[derive(Debug)]
pub struct UniqueEvent {
    inner: EventState,
}

impl UniqueEvent {
    /// Creates an event in `context`, which is current.
    pub(crate) fn create(context: Context, options: &EventOptions) -> Result<UniqueEvent> {
        UniqueEvent::create_here(context, options)
    }

    /// [`UniqueEvent::create`], always inlined.
    #[inline(always)]
    pub(crate) fn create_here(context: Context, options: &EventOptions) -> Result<UniqueEvent> {
        if options.ipc && options.timing {
            return Err(timed_ipc_error());
        }
        let flags = options.flags();
        let mut handle: CUevent = std::ptr::null_mut();
        // SAFETY: `handle` is valid for writes.
        unsafe { driver!(cuEventCreate(&mut handle, flags))? };
        Ok(UniqueEvent {
            inner: EventState {
                handle,
                flags,
                created: OwnedKind::Event.epoch(),
                waited: LastSynchronization::none(),
                context,
            },
        })
    }

    /// Drops the event, always inlined.
    #[inline(always)]
    pub fn destroy(self) {
        let inner = ManuallyDrop::new(self.inner);
        // SAFETY: read once; `inner` is not used or dropped again, and its other fields own nothing.
        let context = unsafe { std::ptr::read(&raw const inner.context) };
        destroy_event(inner.handle, inner.created, &context);
    }

    /// Converts to an event that can be cloned.
    pub fn share(self) -> Event {
        Event {
            inner: Arc::new(self.inner),
        }
    }

    /// The driver's handle; valid while the event lives.
    #[inline]
    pub fn handle(&self) -> CUevent {
        self.inner.handle
    }

    /// The options that it was created with.
    #[inline]
    pub fn options(&self) -> EventOptions {
        self.inner.options()
    }
}

#[cold]
fn timed_ipc_error() -> Error {
    Error::argument(
        "Event::new",
        "options",
        "asks for `ipc` and `timing`; an event that other processes open cannot be timed",
    )
}

// SAFETY: event handles may be used from any thread.
unsafe impl Send for EventState {}
// SAFETY: event handles may be used from several threads at once: the driver synchronises.
unsafe impl Sync for EventState {}

impl Drop for EventState {
    #[inline]
    fn drop(&mut self) {
        destroy_event(self.handle, self.created, &self.context);
    }
}

/// Destroys an event.
#[inline(always)]
fn destroy_event(handle: CUevent, created: u32, context: &Context) {
    if !context.is_current_process()
        || OwnedKind::Event.is_destroyed(handle, context.handle(), created)
    {
        return;
    }
    // SAFETY: `UniqueEvent::create` or `Event::open` created the handle; it is destroyed once, here.
    if let Err(error) = unsafe { driver!(owned cuEventDestroy(handle)) } {
        // SAFETY: runs only if the driver refused the call for lack of a context, so that the event still exists.
        let again = || unsafe { driver!(owned cuEventDestroy(handle)) };
        report(context.retry_with_context(error, &again));
    }
}

/// What another process needs to open an event: plain bytes, to be sent by any means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpcEventHandle {
    /// The driver's 64 bytes.
    pub bytes: [u8; 64],
}

impl Event {
    /// Creates an event.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for both `timing` and `ipc`; otherwise the driver's error. Source: `cuEventCreate`.
    pub fn new(context: &Context, options: &EventOptions) -> Result<Event> {
        let _entered = context.enter()?;
        UniqueEvent::create(context.clone(), options).map(UniqueEvent::share)
    }

    /// Opens an event that another process created with [`EventOptions::ipc`].
    ///
    /// `blocking_sync` is the creator's option; the handle does not contain it.
    ///
    /// # Errors
    ///
    /// The driver's error, `CUDA_ERROR_INVALID_CONTEXT` in the process that made the event. Source:
    /// `cuIpcOpenEventHandle`.
    pub fn open(context: &Context, ipc: &IpcEventHandle, blocking_sync: bool) -> Result<Event> {
        let _entered = context.enter()?;
        let raw = CUipcEventHandle {
            reserved: ipc.bytes.map(|byte| byte as _),
        };
        let options = EventOptions {
            timing: false,
            blocking_sync,
            ipc: true,
        };
        let mut handle: CUevent = std::ptr::null_mut();
        // SAFETY: `handle` is valid for writes; the driver validates the bytes.
        unsafe { driver!(cuIpcOpenEventHandle(&mut handle, raw))? };
        Ok(Event {
            inner: Arc::new(EventState {
                handle,
                flags: options.flags(),
                created: OwnedKind::Event.epoch(),
                waited: LastSynchronization::none(),
                context: context.clone(),
            }),
        })
    }

    /// The handle with which another process opens this event.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for an event created without [`EventOptions::ipc`]; otherwise the driver's error.
    /// Source: `cuIpcGetEventHandle`.
    pub fn ipc_handle(&self) -> Result<IpcEventHandle> {
        if !self.options().ipc {
            return Err(Error::argument(
                "Event::ipc_handle",
                "self",
                "was made without `ipc`",
            ));
        }
        let mut raw = CUipcEventHandle { reserved: [0; 64] };
        let place = &raw mut raw;
        self.inner.call(|| {
            // SAFETY: `place` is valid for writes, the event is live.
            unsafe { driver!(cuIpcGetEventHandle(place, self.handle())) }
        })?;
        Ok(IpcEventHandle {
            bytes: raw.reserved.map(|byte| byte as u8),
        })
    }

    /// The driver's handle; valid while a clone of this event lives.
    #[inline]
    pub fn handle(&self) -> CUevent {
        self.inner.handle
    }

    /// Drops this clone. Returns the event if this was the last clone; dropping the result destroys the event at a
    /// place of the caller's choice.
    ///
    /// Among clones that are dropped concurrently, exactly one is the last.
    #[inline]
    pub fn into_unique(self) -> Option<UniqueEvent> {
        Arc::into_inner(self.inner).map(|inner| UniqueEvent { inner })
    }

    /// The context of the event.
    #[inline]
    pub fn context(&self) -> &Context {
        &self.inner.context
    }

    /// The options that it was created with.
    #[inline]
    pub fn options(&self) -> EventOptions {
        self.inner.options()
    }

    /// Records the stream's current end; recording again moves the event.
    ///
    /// # Errors
    ///
    /// The driver's error, `CUDA_ERROR_INVALID_HANDLE` for a stream of another context.
    #[inline]
    pub fn record(&self, stream: &Stream) -> Result<()> {
        stream.check_live()?;
        // SAFETY: both handles are live.
        let record = || unsafe { driver!(cuEventRecord(self.handle(), stream.handle())) };
        if stream.is_of_builder() {
            return stream.call(|| self.inner.call(record));
        }
        self.inner.call(record)
    }

    /// Waits for the work before the event. An event that was never recorded is done.
    ///
    /// # Errors
    ///
    /// The error of the failed work.
    pub fn synchronize(&self) -> Result<()> {
        self.wait()?;
        synchronization::run(Synchronized::StreamOrEvent);
        Ok(())
    }

    /// An error if the program has destroyed the event.
    #[inline(always)]
    pub(crate) fn check_live(&self) -> Result<()> {
        self.inner.check_live()
    }

    fn wait(&self) -> Result<()> {
        // SAFETY: the handle is live.
        let wait = || unsafe { driver!(cuEventSynchronize(self.handle())) };
        self.inner.waited.note(|| self.inner.call(wait))
    }

    /// The last wait for the event.
    pub(crate) fn last_synchronization(&self) -> &LastSynchronization {
        &self.inner.waited
    }

    /// [`Event::is_done`], followed by a wait if it is, which returns at once: the driver reclaims memory at waits,
    /// not at queries (see `deferred_destroy`). Does not run the hooks of `synchronization`.
    pub(crate) fn synchronize_if_done(&self) -> Result<bool> {
        let done = self.is_done()?;
        if done {
            self.wait()?;
        }
        Ok(done)
    }

    /// Whether the work before the event is done, without waiting. True for an event that was never recorded.
    ///
    /// # Errors
    ///
    /// The error of the failed work.
    pub fn is_done(&self) -> Result<bool> {
        // SAFETY: the handle is live.
        let query = || unsafe { driver!(cuEventQuery(self.handle())) };
        match self.inner.call(query) {
            Ok(()) => Ok(true),
            Err(Error::Driver {
                status: CUresult::CUDA_ERROR_NOT_READY,
                ..
            }) => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Milliseconds between two recorded events, by the device's clock; negative if `earlier` is the later one.
    ///
    /// The resolution is about half a microsecond (CUDA driver API, `cuEventElapsedTime`).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for an event created without [`EventOptions::timing`], never recorded or not done,
    /// and for events of two contexts; otherwise the error of the failed work.
    pub fn milliseconds_since(&self, earlier: &Event) -> Result<f32> {
        let problem = |event: &str, text: &str| {
            Err(Error::argument(
                "Event::milliseconds_since",
                event.to_owned(),
                text.to_owned(),
            ))
        };
        for (event, name) in [(self, "self"), (earlier, "earlier")] {
            if !event.options().timing {
                return problem(
                    name,
                    "was made without timing; both events need `timing` in their options",
                );
            }
        }
        if self.context() != earlier.context() {
            return problem(
                "earlier",
                "belongs to another context; elapsed times are of one context",
            );
        }
        earlier.check_live()?;
        let mut ms = 0f32;
        let place = &raw mut ms;
        let measured = self.inner.call(|| {
            // SAFETY: both handles are live, `place` is valid for writes.
            unsafe { driver!(cuEventElapsedTime(place, earlier.handle(), self.handle())) }
        });
        match measured {
            Ok(()) => Ok(ms),
            Err(Error::Driver {
                status: CUresult::CUDA_ERROR_NOT_READY,
                ..
            }) => {
                let name = if earlier.is_done()? {
                    "self"
                } else {
                    "earlier"
                };
                problem(
                    name,
                    "is not done; wait for it (`synchronize`) before its time is taken",
                )
            }
            Err(Error::Driver {
                status: CUresult::CUDA_ERROR_INVALID_HANDLE,
                ..
            }) => problem(
                "self or earlier",
                "was never recorded; record both events in a stream first",
            ),
            Err(error) => Err(error),
        }
    }

    /// Time between two recorded events, by the device's clock.
    ///
    /// # Errors
    ///
    /// As [`Event::milliseconds_since`], and [`Error::InvalidArgument`] if `earlier` is the later one.
    pub fn elapsed_since(&self, earlier: &Event) -> Result<Duration> {
        let ms = self.milliseconds_since(earlier)?;
        Duration::try_from_secs_f64(f64::from(ms) / 1e3).map_err(|_| {
            Error::argument(
                "Event::elapsed_since",
                "earlier",
                format!("was recorded {} ms after this event", -ms),
            )
        })
    }
}

#[cold]
#[inline(never)]
fn destroyed() -> Error {
    Error::Driver {
        call: "Event",
        status: CUresult::CUDA_ERROR_INVALID_HANDLE,
        log: "the event was destroyed by the program: with cuEventDestroy or cudaEventDestroy, or with its context"
            .to_owned(),
    }
}

impl Device {
    /// Creates an event.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuEventCreate`.
    pub fn create_event(&self, options: &EventOptions) -> Result<Event> {
        self.create_unique_event(options).map(UniqueEvent::share)
    }

    /// [`Device::create_event`], for one owner who may never share it.
    ///
    /// # Errors
    ///
    /// Same as [`Device::create_event`].
    #[inline(always)]
    pub fn create_unique_event(&self, options: &EventOptions) -> Result<UniqueEvent> {
        // The common case; `enter` gives the same result more slowly.
        if let Some(primary) = self.current_primary()? {
            return UniqueEvent::create_here(primary.clone(), options);
        }
        // By value: the options stay in registers.
        self.create_event_elsewhere(*options)
    }

    /// [`Device::create_unique_event`] in the uncommon case: the primary context is not current.
    #[inline(never)]
    fn create_event_elsewhere(self, options: EventOptions) -> Result<UniqueEvent> {
        let (_entered, context) = self.enter()?;
        UniqueEvent::create(context, &options)
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.handle() == other.handle()
    }
}
impl Eq for Event {}
