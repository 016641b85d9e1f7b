//! The context in which a stream is used for memory of a device.

use crate::context::{Context, ContextGuard, Device};
use crate::error::{Error, Result};
use crate::stream::Stream;

/// Enters the context in which a stream is valid for memory of `device`, and returns it, if the stream alone does not
/// imply it.
///
/// A default stream belongs to the current context, which has to be one of the memory's device. The context of a
/// borrowed stream is queried while its owner certainly keeps it.
#[inline]
pub(crate) fn enter_allocation_context(
    stream: &Stream,
    device: Device,
) -> Result<(Option<Context>, Option<ContextGuard>)> {
    if stream.is_owned() {
        Ok((None, None))
    } else {
        enter_allocation_context_slow(stream, device)
    }
}

#[inline(never)]
fn enter_allocation_context_slow(
    stream: &Stream,
    device: Device,
) -> Result<(Option<Context>, Option<ContextGuard>)> {
    if stream.is_default() {
        let (entered, context) = device.enter()?;
        Ok((Some(context), Some(entered)))
    } else if stream.has_ended_recording() {
        Err(Error::argument(
            "DeviceBuffer",
            "stream",
            "is that of a graph builder that has ended; use the stream that it captured",
        ))
    } else {
        Ok((Some(stream.context()?), None))
    }
}

/// Makes a context of `device` current for a default stream. Other streams need no current context.
///
/// # Errors
///
/// The driver's error.
pub fn enter_for_default_stream(stream: &Stream, device: Device) -> Result<Option<ContextGuard>> {
    if stream.is_default() {
        Ok(Some(device.enter()?.0))
    } else {
        Ok(None)
    }
}
