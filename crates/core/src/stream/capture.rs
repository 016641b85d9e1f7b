//! Whether streams are captured, and waits that leave captures alone.

use cupyrite_sys::driver::CUstreamCaptureStatus;

use crate::context::capture_mode::RelaxedCapture;
use crate::error::{Result, driver, report};
use crate::stream::Stream;

/// Makes later work of `stream` wait for the work that the others hold now, without blocking the host. Default streams
/// belong to the current context, or to the device that they are bound to ([`Stream::on_device`]).
///
/// # Errors
///
/// The driver's error.
pub fn wait_for_streams(stream: &Stream, others: &[Stream]) -> Result<()> {
    let mut done = Ok(());
    for other in others {
        if other != stream {
            // A failure does not skip the remaining streams.
            done = done.and(wait_unless_capturing(other, stream));
        }
    }
    done
}

/// [`wait_for_streams`] before memory is freed on `stream`. A stream that is captured, or that cannot be used because
/// another capture forbids it, cannot wait for uncaptured work, and trying it invalidates the capture. The host waits
/// instead.
pub(crate) fn wait_before_free(stream: &Stream, others: &[Stream]) -> Result<()> {
    if matches!(is_capturing(stream), Ok(false)) {
        return wait_for_streams(stream, others);
    }
    let _relaxed = RelaxedCapture::enter();
    others.iter().for_each(synchronize_unless_capturing);
    Ok(())
}

/// Makes `later` wait for the work that `earlier` holds now.
fn wait_unless_capturing(earlier: &Stream, later: &Stream) -> Result<()> {
    if is_capturing(earlier)? {
        // Captured work runs when its graph is launched, which no wait here can cover; and waiting for a captured
        // stream would make `later` part of the capture.
        return Ok(());
    }
    later.wait_for_stream(earlier)
}

/// Whether the stream is being captured.
///
/// # Errors
///
/// The driver's error. Source: `cuStreamIsCapturing`.
pub fn is_capturing(stream: &Stream) -> Result<bool> {
    Ok(capture_status(stream)? != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
}

/// Whether the stream is being captured, and whether the capture is still valid.
pub(crate) fn capture_status(stream: &Stream) -> Result<CUstreamCaptureStatus> {
    let mut status = CUstreamCaptureStatus(0);
    let place = &raw mut status;
    // SAFETY: the handle is live; `place` is valid for writes.
    stream.call(|| unsafe { driver!(cuStreamIsCapturing(stream.handle(), place)) })?;
    Ok(status)
}

/// Waits for a stream before memory that its work uses is freed. Called in relaxed capture mode.
///
/// A captured stream runs nothing, and waiting for it would end the capture. A stream whose work failed runs nothing,
/// either; its error is logged.
pub(crate) fn synchronize_unless_capturing(stream: &Stream) {
    report(is_capturing(stream).and_then(|capturing| {
        if capturing {
            Ok(())
        } else {
            stream.synchronize()
        }
    }));
}
