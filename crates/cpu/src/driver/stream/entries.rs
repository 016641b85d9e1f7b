//! The entry points of streams.

use std::sync::Arc;

use cupyrite_sys::driver as sys;

use super::capture_state;
use super::host_call::{self, HostCall, code};
use super::resolve::{look_up, resolve, resolve_for_capture, resolve_to_wait};
use super::{
    GREATEST_PRIORITY, LEAST_PRIORITY, OpPlacement, STREAMS, Stream, StreamKind, event_entries,
};
use crate::driver::context::green::Green;
use crate::driver::context::{self, Context};
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get, non_null, put, put_optional};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::graph;
use crate::driver::memory::managed;

/// `CU_STREAM_NON_BLOCKING`.
const NON_BLOCKING: u32 = sys::CUstream_flags::CU_STREAM_NON_BLOCKING.0;

fn create(out: u64, flags: u32, priority: i32) -> Res {
    non_null(out)?;
    if flags & !NON_BLOCKING != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let (context, green) = (context::current()?, context::current_green()?);
    install(out, &context, green.as_ref(), flags, priority)
}

/// Creates a stream of a context, or of a green context of it, and writes its handle to the caller. `flags` is 0 or
/// `CU_STREAM_NON_BLOCKING`.
pub(in crate::driver) fn install(
    out: u64,
    context: &Arc<Context>,
    green: Option<&Arc<Green>>,
    flags: u32,
    priority: i32,
) -> Res {
    let sort = if flags & NON_BLOCKING != 0 {
        StreamKind::NonBlocking
    } else {
        StreamKind::Blocking
    };
    let stream = Stream::new(
        context,
        green,
        sort,
        priority.clamp(GREATEST_PRIORITY, LEAST_PRIORITY),
    );
    let handle = STREAMS.insert(stream.id, stream.clone());
    put(out, handle).inspect_err(|_| {
        let _ = STREAMS.remove(handle);
        stream.abandon();
    })
}

fn host_function(stream: u64, per_thread: bool, function: u64, data: u64, mode: u32) -> Res {
    let call = HostCall::prepare(function, data, mode)?;
    let stream = resolve_for_capture(stream, per_thread)?;
    if capture_state::is_capturing(&stream)? {
        return graph::capture::record(&stream, graph::Payload::Host(call));
    }
    stream.enqueue_steps(&[], OpPlacement::Worker, move |_| {
        call.run();
        Ok(())
    });
    Ok(())
}

/// Validates a `CUstreamAttrID`.
fn attribute_id(id: u32) -> Res<u32> {
    match id {
        sys::CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW
        | sys::CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY
        | sys::CU_STREAM_ATTRIBUTE_PRIORITY
        | sys::CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP
        | sys::CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN => Ok(id),
        _ => Err(Code::INVALID_VALUE),
    }
}

driver_entry_points! {
    fn stream_create "cuStreamCreate" (out: u64, flags: u32) {
        create(out, flags, LEAST_PRIORITY)
    }
    fn stream_create_with_priority "cuStreamCreateWithPriority" (out: u64, flags: u32, priority: i32) {
        create(out, flags, priority)
    }
    fn stream_destroy "cuStreamDestroy_v2" (handle: u64) {
        // Default streams cannot be destroyed: their handles are not in the table.
        let stream = STREAMS.remove(handle)?;
        capture_state::stream_ends(&stream);
        stream.abandon();
        stream.context.prune_finished_streams();
        stream.context.check()
    }
    fn stream_query "cuStreamQuery" | "cuStreamQuery_ptsz" (handle: u64) {
        let stream = resolve(handle, PER_THREAD)?;
        capture_state::reject_if_capturing()?;
        if stream.is_idle() { Ok(()) } else { Err(Code::NOT_READY) }
    }
    fn stream_synchronize "cuStreamSynchronize" | "cuStreamSynchronize_ptsz" (handle: u64) {
        let stream = resolve_to_wait(handle, PER_THREAD)?;
        capture_state::reject_if_capturing()?;
        stream.synchronize()
    }
    fn stream_wait_event "cuStreamWaitEvent" | "cuStreamWaitEvent_ptsz" (handle: u64, event: u64, flags: u32) {
        if flags > 1 {
            return Err(Code::INVALID_VALUE);
        }
        event_entries::make_stream_wait(&resolve_for_capture(handle, PER_THREAD)?, event, flags)
    }
    fn stream_add_callback "cuStreamAddCallback" | "cuStreamAddCallback_ptsz"
        (handle: u64, callback: u64, data: u64, flags: u32) {
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let callback = code(callback)?;
        let stream = resolve(handle, PER_THREAD)?;
        let context = stream.context.clone();
        // Unlike a host function, a callback receives the status and runs even after a failure.
        stream.enter(&[], OpPlacement::Worker, Some(Box::new(move || {
            let status = context.check().err().map_or(0, |c| c.0);
            // SAFETY: the caller passed the address, which is executable, as a function of this type.
            unsafe { host_call::call_back(callback, handle, status, data) };
        })));
        Ok(())
    }
    fn launch_host_func "cuLaunchHostFunc" | "cuLaunchHostFunc_ptsz" (handle: u64, function: u64, data: u64) {
        host_function(handle, PER_THREAD, function, data, 0)
    }
    fn launch_host_func_v2 "cuLaunchHostFunc_v2" | "cuLaunchHostFunc_v2_ptsz"
        (handle: u64, function: u64, data: u64, mode: u32) {
        host_function(handle, PER_THREAD, function, data, mode)
    }
    fn stream_get_flags "cuStreamGetFlags" | "cuStreamGetFlags_ptsz" (handle: u64, out: u64) {
        non_null(out)?;
        let stream = resolve(handle, PER_THREAD)?;
        put(out, u32::from(stream.sort == StreamKind::NonBlocking))
    }
    fn stream_get_priority "cuStreamGetPriority" | "cuStreamGetPriority_ptsz" (handle: u64, out: u64) {
        non_null(out)?;
        put(out, look_up(handle, PER_THREAD)?.priority)
    }
    fn stream_get_id "cuStreamGetId" | "cuStreamGetId_ptsz" (handle: u64, out: u64) {
        non_null(out)?;
        put(out, look_up(handle, PER_THREAD)?.id)
    }
    fn stream_get_device "cuStreamGetDevice" | "cuStreamGetDevice_ptsz" (handle: u64, out: u64) {
        non_null(out)?;
        put(out, look_up(handle, PER_THREAD)?.context.device)
    }
    fn stream_get_ctx "cuStreamGetCtx" | "cuStreamGetCtx_ptsz" (handle: u64, out: u64) {
        non_null(out)?;
        let stream = look_up(handle, PER_THREAD)?;
        put(out, stream.green().map_or(stream.context.handle, |g| g.context_handle))
    }
    fn stream_get_ctx_v2 "cuStreamGetCtx_v2" | "cuStreamGetCtx_v2_ptsz" (handle: u64, out: u64, green: u64) {
        non_null(out)?;
        let stream = look_up(handle, PER_THREAD)?;
        put(out, stream.context.handle)?;
        put_optional(green, stream.green().map_or(0, |g| g.handle))
    }
    fn stream_attach_mem "cuStreamAttachMemAsync" | "cuStreamAttachMemAsync_ptsz"
        (handle: u64, address: u64, length: u64, flags: u32) {
        use sys::CUmemAttach_flags as Attach;
        if !matches!(
            Attach(flags),
            Attach::CU_MEM_ATTACH_GLOBAL | Attach::CU_MEM_ATTACH_HOST | Attach::CU_MEM_ATTACH_SINGLE
        ) {
            return Err(Code::INVALID_VALUE);
        }
        let stream = resolve(handle, PER_THREAD)?;
        managed::check_attachable(address, length)?;
        stream.mark(&[]);
        Ok(())
    }
    fn stream_get_attribute "cuStreamGetAttribute" | "cuStreamGetAttribute_ptsz" (handle: u64, id: u32, out: u64) {
        non_null(out)?;
        let stream = look_up(handle, PER_THREAD)?;
        let id = attribute_id(id)?;
        let mut value = stream.attributes.lock().get(&id).copied().unwrap_or([0; 64]);
        if id == sys::CU_STREAM_ATTRIBUTE_PRIORITY {
            value[..4].copy_from_slice(&stream.priority.to_ne_bytes());
        }
        put(out, value)
    }
    fn stream_set_attribute "cuStreamSetAttribute" | "cuStreamSetAttribute_ptsz" (handle: u64, id: u32, value: u64) {
        non_null(value)?;
        let stream = look_up(handle, PER_THREAD)?;
        let id = attribute_id(id)?;
        let value = get::<[u8; 64]>(value)?;
        stream.attributes.lock().insert(id, value);
        Ok(())
    }
    fn stream_copy_attributes "cuStreamCopyAttributes" | "cuStreamCopyAttributes_ptsz" (to: u64, from: u64) {
        let (to, from) = (look_up(to, PER_THREAD)?, look_up(from, PER_THREAD)?);
        let attributes = from.attributes.lock().clone();
        *to.attributes.lock() = attributes;
        Ok(())
    }
}
