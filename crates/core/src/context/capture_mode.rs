//! The capture mode in which objects are released.

use std::marker::PhantomData;

use cupyrite_sys::driver::CUstreamCaptureMode;

use crate::error::{Result, driver, report};

/// Puts the calling thread into relaxed capture mode until it is dropped.
///
/// While a thread captures a stream, the driver refuses calls of that thread that may wait for the device or allocate,
/// and invalidates the capture: freeing memory, stream-ordered or not, and querying a stream among them. A global
/// capture forbids them to every thread. But objects can be dropped anywhere, by Python's garbage collector for
/// example, and no graph depends on that. So this crate releases everything in relaxed mode. What a program requests,
/// such as memory or a wait, runs in the thread's own mode. Destroying events and streams needs no relaxed mode.
///
/// [`DeviceBuffer`](crate::DeviceBuffer) calls [`MemoryResource::deallocate`](crate::MemoryResource::deallocate) in
/// relaxed mode, too.
///
/// A guard belongs to the thread that created it. Guards are dropped in reverse order of creation, as local variables
/// are.
///
/// Source: `cuThreadExchangeStreamCaptureMode`.
#[derive(Debug)]
#[must_use = "the thread's former mode is restored when this is dropped"]
pub struct RelaxedCapture {
    /// The former mode; `None` if the driver failed and nothing was changed.
    before: Option<CUstreamCaptureMode>,
    // Neither `Send` nor `Sync`: the mode is per thread.
    thread: PhantomData<*const ()>,
}

impl RelaxedCapture {
    /// Sets the calling thread's mode to `CU_STREAM_CAPTURE_MODE_RELAXED`. Changes nothing if the driver is missing or
    /// shut down.
    #[inline(always)]
    pub fn enter() -> RelaxedCapture {
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        RelaxedCapture {
            before: exchange(mode).ok(),
            thread: PhantomData,
        }
    }

    /// Drops the guard, always inlined: memory is allocated and freed often.
    #[inline(always)]
    pub(crate) fn leave(self) {
        std::mem::ManuallyDrop::new(self).restore();
    }

    #[inline(always)]
    fn restore(&self) {
        if let Some(mode) = self.before {
            report(exchange(mode).map(drop));
        }
    }
}

impl Drop for RelaxedCapture {
    #[inline]
    fn drop(&mut self) {
        self.restore();
    }
}

/// Runs a destructor in relaxed mode and logs its error.
pub(crate) fn release(body: impl FnOnce() -> Result<()>) {
    let _relaxed = RelaxedCapture::enter();
    report(body());
}

/// Sets the thread's mode and returns the former one.
#[inline(always)]
fn exchange(mut mode: CUstreamCaptureMode) -> Result<CUstreamCaptureMode> {
    // SAFETY: `mode` is valid for reads and writes.
    unsafe { driver!(cuThreadExchangeStreamCaptureMode(&mut mode))? };
    Ok(mode)
}
