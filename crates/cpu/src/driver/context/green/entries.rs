//! The entry points of green contexts.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cupyrite_sys::driver as sys;

use super::{BY_CONTEXT, GREEN_CONTEXTS, Green, resource};
use crate::driver::context;
use crate::driver::context::entries::{release_primary, retain_primary};
use crate::driver::device;
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{non_null, put};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::entry::logs::refuse;
use crate::driver::stream::{self, Stream, capture_state, event, resolve};

/// Flag of `cuGreenCtxCreate`.
const DEFAULT_STREAM: u32 = sys::CUgreenCtxCreate_flags::CU_GREEN_CTX_DEFAULT_STREAM.0;
/// Flag of streams.
const NON_BLOCKING: u32 = sys::CUstream_flags::CU_STREAM_NON_BLOCKING.0;

/// The green context of a handle.
///
/// # Errors
/// `INVALID_CONTEXT` for an invalid handle, `CONTEXT_IS_DESTROYED` after a reset of the primary context.
pub(super) fn find(handle: u64) -> Res<Arc<Green>> {
    let green = GREEN_CONTEXTS.find(handle).ok_or(Code::INVALID_CONTEXT)?;
    if !green.is_active() {
        return Err(Code::CONTEXT_IS_DESTROYED);
    }
    green.primary.check()?;
    Ok(green)
}

fn create(out: u64, descriptor: u64, ordinal: i32, flags: u32) -> Res {
    non_null(out)?;
    let device = device::by_ordinal(ordinal)?;
    if flags != DEFAULT_STREAM {
        return refuse(Code::INVALID_VALUE, || {
            format!("flags is {flags:#x}; CU_GREEN_CTX_DEFAULT_STREAM is required")
        });
    }
    let resources = resource::descriptor(descriptor)?;
    if resources.device != device.ordinal {
        return refuse(Code::INVALID_DEVICE, || {
            format!(
                "the descriptor has resources of device {}, not {ordinal}",
                resources.device
            )
        });
    }
    let primary = retain_primary(ordinal)?;
    let green = Green::create(primary, resources);
    put(out, green.handle).inspect_err(|_| {
        let _ = destroy(green.handle);
    })
}

fn destroy(handle: u64) -> Res {
    let green = GREEN_CONTEXTS
        .remove(handle)
        .map_err(|_| Code::INVALID_CONTEXT)?;
    let _ = BY_CONTEXT.remove(green.context_handle);
    green.active.store(false, Ordering::SeqCst);
    // Streams stay until they are destroyed, and so does their queued work.
    for stream in green.streams() {
        capture_state::stream_ends(&stream);
    }
    if let Some(stream) = green.default_stream.lock().take() {
        stream.abandon();
    }
    release_primary(green.primary.device)
}

/// The streams of a green context, none of which is capturing.
fn idle_captures(green: &Green) -> Res<Vec<Arc<Stream>>> {
    let streams = green.streams();
    streams.iter().try_for_each(|s| capture_state::refuse(s))?;
    Ok(streams)
}

/// Records an event after all work enqueued in the streams of a green context.
pub(in crate::driver::context) fn record(green: &Green, event: u64) -> Res {
    event::record_streams(&green.primary, &idle_captures(green)?, event)
}

/// Makes all work enqueued later in the streams of a green context wait for an event.
pub(in crate::driver::context) fn wait(green: &Green, event: u64) -> Res {
    event::make_streams_wait(&idle_captures(green)?, event)
}

driver_entry_points! {
    fn green_create "cuGreenCtxCreate" (out: u64, descriptor: u64, device: i32, flags: u32) {
        create(out, descriptor, device, flags)
    }
    fn green_destroy "cuGreenCtxDestroy" (handle: u64) {
        destroy(handle)
    }
    fn from_green "cuCtxFromGreenCtx" (out: u64, handle: u64) {
        non_null(out)?;
        put(out, find(handle)?.context_handle)
    }
    fn green_id "cuGreenCtxGetId" (handle: u64, out: u64) {
        non_null(out)?;
        let id = match handle {
            0 => context::current_green()?.ok_or(Code::INVALID_CONTEXT)?.id,
            _ => find(handle)?.id,
        };
        put(out, id)
    }
    fn green_stream "cuGreenCtxStreamCreate" (out: u64, handle: u64, flags: u32, priority: i32) {
        non_null(out)?;
        let green = find(handle)?;
        if flags != NON_BLOCKING {
            return refuse(Code::INVALID_VALUE, || {
                format!("flags is {flags:#x}; streams of green contexts need CU_STREAM_NON_BLOCKING")
            });
        }
        stream::entries::install(out, &green.primary, Some(&green), flags, priority)
    }
    fn green_record "cuGreenCtxRecordEvent" (handle: u64, event: u64) {
        record(&*find(handle)?, event)
    }
    fn green_wait "cuGreenCtxWaitEvent" (handle: u64, event: u64) {
        wait(&*find(handle)?, event)
    }
    fn stream_green "cuStreamGetGreenCtx" (stream: u64, out: u64) {
        non_null(out)?;
        let stream = resolve::look_up(stream, PER_THREAD)?;
        put(out, stream.green().map_or(0, |g| g.handle))
    }
}
