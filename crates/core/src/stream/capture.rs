//! Whether streams are captured, and waits that leave captures alone.

use cupyrite_sys::driver::CUstreamCaptureStatus;

use crate::context::capture_mode::RelaxedCapture;
use crate::error::{Result, driver, report};
use crate::stream::Stream;

/// Makes later work of `stream` wait for what the others hold now; the host does not wait. Default streams among them are
/// those of the current context, or of the device that they are of ([`Stream::on_device`]).
///
/// # Errors
///
/// What the driver says.
pub fn wait_for_streams(stream: &Stream, others: &[Stream]) -> Result<()> {
    let mut done = Ok(());
    for other in others {
        if other != stream {
            // One that fails does not keep the others from being waited for.
            done = done.and(wait_unless_capturing(other, stream));
        }
    }
    done
}

/// As [`wait_for_streams`], before memory is freed in the order of `stream`. Where that is captured, or must not be used
/// because a stream is that it waits for, it cannot wait for what is not captured, and to try that spoils the capture: so
/// the host waits.
pub(crate) fn wait_before_free(stream: &Stream, others: &[Stream]) -> Result<()> {
    if matches!(is_capturing(stream), Ok(false)) {
        return wait_for_streams(stream, others);
    }
    let _relaxed = RelaxedCapture::enter();
    others.iter().for_each(synchronize_unless_capturing);
    Ok(())
}

/// Makes `later` wait for what `earlier` holds now.
fn wait_unless_capturing(earlier: &Stream, later: &Stream) -> Result<()> {
    if is_capturing(earlier)? {
        // What was captured runs when its graph is launched, which no wait here can foresee; and a wait for a capture
        // would make the other stream part of it.
        return Ok(());
    }
    later.wait_for_stream(earlier)
}

/// Whether the stream is recording its work into a graph.
///
/// # Errors
///
/// What the driver says. Source: `cuStreamIsCapturing`.
pub fn is_capturing(stream: &Stream) -> Result<bool> {
    let mut status = CUstreamCaptureStatus(0);
    let place = &raw mut status;
    // SAFETY: the handle is live, `place` a valid place for the result.
    stream.call(|| unsafe { driver!(cuStreamIsCapturing(stream.handle(), place)) })?;
    Ok(status != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
}

/// Waits for what a stream holds, before memory that its work uses goes: in a [`RelaxedCapture`], as the memory is freed in.
///
/// A stream that is being captured holds nothing that runs, and waiting for it would end the capture. One that failed runs
/// nothing any more.
pub(crate) fn synchronize_unless_capturing(stream: &Stream) {
    report(is_capturing(stream).and_then(|capturing| {
        if capturing {
            Ok(())
        } else {
            stream.synchronize()
        }
    }));
}
