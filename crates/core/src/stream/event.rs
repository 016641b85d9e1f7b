//! Events: points in a stream that can be waited for and timed.

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::Duration;

use cupyrite_sys::destroyed::OwnedKind;
use cupyrite_sys::driver::{CUevent, CUipcEventHandle, CUresult};

use crate::context::Context;
use crate::error::{Error, Result, driver, report};
use crate::memory::pool::deferred_destroy::{self, Look};
use crate::stream::Stream;

/// How an event is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventOptions {
    /// Whether elapsed times can be taken; events without it are cheaper.
    pub timing: bool,
    /// Whether a waiting thread sleeps instead of spinning.
    pub blocking_sync: bool,
    /// Whether other processes can open the event; such events cannot be timed.
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

/// An event; cheap to clone, the last clone destroys it.
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
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    handle: CUevent,
    /// How it was made, as the driver has it: one word, where the options are three bytes, and events move.
    flags: u32,
    /// [`OwnedKind::epoch`] when it was created.
    created: u32,
    context: Context,
}

impl Inner {
    #[inline]
    const fn options(&self) -> EventOptions {
        EventOptions::from_flags(self.flags)
    }

    /// Makes a call that uses the event; an error in its place if the program has destroyed the event: after a reset,
    /// NVIDIA's driver crashes.
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

/// An event with one owner, who has yet to share it: making and destroying it allocates nothing of this crate's.
///
/// Sharing it ([`UniqueEvent::share`]) makes it the [`Event`] that everything else takes.
#[derive(Debug)]
pub struct UniqueEvent {
    inner: Inner,
}

impl UniqueEvent {
    /// Makes an event in `context`, which is current.
    pub(crate) fn create(context: Context, options: &EventOptions) -> Result<UniqueEvent> {
        UniqueEvent::create_here(context, options)
    }

    /// As [`UniqueEvent::create`], as a part of the function that calls it.
    #[inline(always)]
    pub(crate) fn create_here(context: Context, options: &EventOptions) -> Result<UniqueEvent> {
        if options.ipc && options.timing {
            return Err(timed_and_shared());
        }
        let flags = options.flags();
        let mut handle: CUevent = std::ptr::null_mut();
        // SAFETY: `handle` is a valid place for the result.
        unsafe { driver!(cuEventCreate(&mut handle, flags))? };
        Ok(UniqueEvent {
            inner: Inner {
                handle,
                flags,
                created: OwnedKind::Event.epoch(),
                context,
            },
        })
    }

    /// Destroys the event, as dropping it does, as a part of the function that calls this.
    #[inline(always)]
    pub fn destroy(self) {
        let inner = ManuallyDrop::new(self.inner);
        // SAFETY: taken once, here; what is left is never looked at, and owns nothing.
        let context = unsafe { std::ptr::read(&raw const inner.context) };
        end(inner.handle, inner.created, &context);
    }

    /// The same event for any number of owners.
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

    /// How it was made.
    #[inline]
    pub fn options(&self) -> EventOptions {
        self.inner.options()
    }
}

#[cold]
fn timed_and_shared() -> Error {
    Error::argument(
        "Event::new",
        "options",
        "asks for `ipc` and `timing`; an event that other processes open cannot be timed",
    )
}

// SAFETY: event handles may be used from any thread.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Drop for Inner {
    #[inline]
    fn drop(&mut self) {
        end(self.handle, self.created, &self.context);
    }
}

/// Destroys an event, which is not used again.
#[inline(always)]
fn end(handle: CUevent, created: u32, context: &Context) {
    if !context.is_here() || OwnedKind::Event.is_destroyed(handle, context.handle(), created) {
        return;
    }
    // SAFETY: the handle was made by `UniqueEvent::create` or opened, and is destroyed once, here.
    if let Err(error) = unsafe { driver!(owned cuEventDestroy(handle)) } {
        // SAFETY: as above; called where the driver has refused the call for want of a context.
        let again = || unsafe { driver!(owned cuEventDestroy(handle)) };
        report(context.call_again(error, &again));
    }
}

/// What another process needs to open an event. Plain bytes: send them however the processes talk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpcEventHandle {
    /// The driver's 64 bytes.
    pub bytes: [u8; 64],
}

impl Event {
    /// Makes an event.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] where both `timing` and `ipc` are asked for; otherwise what the driver says.
    /// Source: `cuEventCreate`.
    pub fn new(context: &Context, options: &EventOptions) -> Result<Event> {
        let _entered = context.enter()?;
        UniqueEvent::create(context.clone(), options).map(UniqueEvent::share)
    }

    /// Opens an event that another process made with [`EventOptions::ipc`].
    ///
    /// `blocking_sync` says what its maker chose; the handle does not tell.
    ///
    /// # Errors
    ///
    /// What the driver says, `CUDA_ERROR_INVALID_CONTEXT` in the process that made the event.
    /// Source: `cuIpcOpenEventHandle`.
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
        // SAFETY: `handle` is a valid place for the result; the driver checks the bytes.
        unsafe { driver!(cuIpcOpenEventHandle(&mut handle, raw))? };
        Ok(Event {
            inner: Arc::new(Inner {
                handle,
                flags: options.flags(),
                created: OwnedKind::Event.epoch(),
                context: context.clone(),
            }),
        })
    }

    /// What another process opens this event with.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for an event made without [`EventOptions::ipc`]; otherwise what the driver says.
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
            // SAFETY: `place` is a valid place for the result, the event is live.
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

    /// Lets go of this clone. Where it was the last one the result is the event itself, which is destroyed when that is
    /// dropped: the caller chooses where.
    ///
    /// Of several clones that are let go of at the same time exactly one is the last.
    #[inline]
    pub fn into_unique(self) -> Option<UniqueEvent> {
        Arc::into_inner(self.inner).map(|inner| UniqueEvent { inner })
    }

    /// The context it was made in.
    #[inline]
    pub fn context(&self) -> &Context {
        &self.inner.context
    }

    /// How it was made.
    #[inline]
    pub fn options(&self) -> EventOptions {
        self.inner.options()
    }

    /// Marks the stream's current end; a later `record` moves the event.
    ///
    /// # Errors
    ///
    /// What the driver says, `CUDA_ERROR_INVALID_HANDLE` for a stream of another context.
    #[inline]
    pub fn record(&self, stream: &Stream) -> Result<()> {
        stream.check_live()?;
        // SAFETY: both handles are live.
        self.inner
            .call(|| unsafe { driver!(cuEventRecord(self.handle(), stream.handle())) })
    }

    /// Waits until the work before the event is done. An event that was never recorded is done.
    ///
    /// # Errors
    ///
    /// What the work raised.
    pub fn synchronize(&self) -> Result<()> {
        self.wait()?;
        deferred_destroy::look(Look::Rested);
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
        self.inner.call(wait)
    }

    /// As [`Event::is_done`]; the host has waited for it then, which takes no time any more. A wait has the driver do what a
    /// question does not: see `pool_end`, which is not told of this one.
    pub(crate) fn is_waited_for(&self) -> Result<bool> {
        let done = self.is_done()?;
        if done {
            self.wait()?;
        }
        Ok(done)
    }

    /// Whether the work before the event is done, without waiting. An event that was never recorded is done.
    ///
    /// # Errors
    ///
    /// What the work raised.
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

    /// Milliseconds of the device's clock between two recorded events; negative where `earlier` is the later one.
    ///
    /// The resolution is about half a microsecond (CUDA driver API, `cuEventElapsedTime`).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`], which says what is wrong: an event made without [`EventOptions::timing`], one that
    /// was never recorded, one whose work is not done, or events of two contexts. Otherwise what the work raised.
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
            // SAFETY: both handles are live, `place` is a valid place for the result.
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

    /// Device time between two recorded events.
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

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.handle() == other.handle()
    }
}
impl Eq for Event {}
