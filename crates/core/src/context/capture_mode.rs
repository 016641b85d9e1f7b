//! Ends of objects while graphs are captured.

use std::marker::PhantomData;

use cupyrite_sys::driver::CUstreamCaptureMode;

use crate::error::{Result, driver, report};

/// While it lives, the calls of this thread do not count as parts of a capture.
///
/// The driver refuses what may wait for the device or allocate (freeing memory, in the order of a stream or not, asking
/// whether a stream is done) to a thread that captures, and to any while another one captures globally, and spoils their
/// capture. But objects may end anywhere, by Python's collector for one, and nothing of a graph depends on that. So
/// everything that this crate releases it releases in here; what else a program asks for, such as memory or a wait, it does
/// not do in here. Events and streams need none of it.
///
/// A [`MemoryResource`](crate::MemoryResource) is asked to free what a [`DeviceBuffer`](crate::DeviceBuffer) had in here,
/// too.
///
/// It belongs to the thread that made it, and they end in the opposite order of their making, as variables of one scope do.
///
/// Source: `cuThreadExchangeStreamCaptureMode`.
#[derive(Debug)]
#[must_use = "the thread's former mode is restored when this is dropped"]
pub struct RelaxedCapture {
    /// The mode before; `None` where the driver did not tell it, and nothing was changed.
    before: Option<CUstreamCaptureMode>,
    // Neither sent nor shared: the mode is the thread's.
    thread: PhantomData<*const ()>,
}

impl RelaxedCapture {
    /// Sets the calling thread's mode to `CU_STREAM_CAPTURE_MODE_RELAXED`. Where the driver does not do that, because it
    /// has ended or is not there, nothing is changed.
    #[inline(always)]
    pub fn enter() -> RelaxedCapture {
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        RelaxedCapture {
            before: exchange(mode).ok(),
            thread: PhantomData,
        }
    }

    /// As dropping it, without a call of a function for that: for memory, which comes and goes often.
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

/// Releases something from `Drop`: no part of a capture, and an error goes to `log`.
pub(crate) fn release(body: impl FnOnce() -> Result<()>) {
    let _relaxed = RelaxedCapture::enter();
    report(body());
}

/// Sets the thread's mode; gives the one before.
#[inline(always)]
fn exchange(mut mode: CUstreamCaptureMode) -> Result<CUstreamCaptureMode> {
    // SAFETY: a valid place, which is read and written.
    unsafe { driver!(cuThreadExchangeStreamCaptureMode(&mut mode))? };
    Ok(mode)
}
