//! The entry points of events.

use std::sync::Arc;

use cupyrite_sys::driver as sys;

use super::Stream;
use super::capture_state;
use super::event::{EVENTS, Recorded, find, install, record_in};
use super::queue;
use super::resolve;
use super::shared_event::SharedEvent;
use crate::driver::context;
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{non_null, put};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::entry::logs::refuse;
use crate::driver::graph;
use crate::driver::memory::ipc_message;

/// Flag of `cuEventRecordWithFlags` and `cuStreamWaitEvent`. In a capture it creates a node that records or waits when
/// the graph runs; without it, the call only adds dependencies.
const EXTERNAL: u32 = sys::CUevent_record_flags::CU_EVENT_RECORD_EXTERNAL.0;

const DISABLE_TIMING: u32 = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING.0;
const INTERPROCESS: u32 = sys::CUevent_flags::CU_EVENT_INTERPROCESS.0;
const ALL_FLAGS: u32 = 7;

/// A `CUipcEventHandle`, passed by value.
#[derive(Clone, Copy)]
#[repr(C)]
struct IpcHandle([u8; 64]);

fn record(event: u64, stream: u64, per_thread: bool, flags: u32) -> Res {
    let found = find(event)?;
    let stream = resolve::resolve_for_capture(stream, per_thread)?;
    if flags & EXTERNAL != 0 && capture_state::is_capturing(&stream)? {
        let node = graph::EventNode {
            handle: event,
            event: found,
        };
        return graph::capture::record(&stream, graph::Payload::EventRecord(node));
    }
    record_in(event, &stream)
}

/// `cuStreamWaitEvent`. An event that was never recorded blocks nothing.
pub(crate) fn make_stream_wait(stream: &Arc<Stream>, event: u64, flags: u32) -> Res {
    let found = find(event)?;
    let recorded = found.recorded.lock().clone();
    if let Recorded::Captured(moment) = &recorded {
        if flags & EXTERNAL != 0 {
            return Err(Code::ILLEGAL_STATE);
        }
        // The stream joins the capture, or adds a dependency within it.
        return capture_state::wait(stream, moment);
    }
    if capture_state::is_capturing(stream)? {
        if flags & EXTERNAL == 0 && matches!(recorded, Recorded::Never) && found.shared.is_none() {
            return Ok(());
        }
        if flags & EXTERNAL == 0 {
            return Err(capture_state::isolation(stream));
        }
        let node = graph::EventNode {
            handle: event,
            event: found,
        };
        return graph::capture::record(stream, graph::Payload::EventWait(node));
    }
    if let Some(op) = found.latest() {
        stream.mark(&[op]);
    }
    Ok(())
}

fn elapsed(out: u64, start: u64, end: u64) -> Res {
    non_null(out)?;
    let (start, end) = (find(start)?, find(end)?);
    if (start.flags | end.flags) & DISABLE_TIMING != 0 || start.context.id != end.context.id {
        return Err(Code::INVALID_HANDLE);
    }
    start.refuse_captured(false)?;
    end.refuse_captured(false)?;
    let (Some(from), Some(to)) = (start.latest(), end.latest()) else {
        return Err(Code::INVALID_HANDLE);
    };
    if !from.is_done() || !to.is_done() {
        return Err(Code::NOT_READY);
    }
    let nanoseconds = to.finished_at() as f64 - from.finished_at() as f64;
    put(out, (nanoseconds / 1e6) as f32)
}

driver_entry_points! {
    fn event_create "cuEventCreate" (out: u64, flags: u32) {
        non_null(out)?;
        if flags & !ALL_FLAGS != 0 || (flags & INTERPROCESS != 0 && flags & DISABLE_TIMING == 0) {
            return Err(Code::INVALID_VALUE);
        }
        let context = context::current()?;
        let shared = if flags & INTERPROCESS != 0 { Some(SharedEvent::new()?) } else { None };
        install(out, context, flags, shared)
    }
    fn event_destroy "cuEventDestroy_v2" (handle: u64) {
        EVENTS.remove(handle)?.context.check()
    }
    fn event_record "cuEventRecord" | "cuEventRecord_ptsz" (event: u64, stream: u64) {
        record(event, stream, PER_THREAD, 0)
    }
    fn event_record_with_flags "cuEventRecordWithFlags" | "cuEventRecordWithFlags_ptsz"
        (event: u64, stream: u64, flags: u32) {
        if flags > 1 {
            return Err(Code::INVALID_VALUE);
        }
        record(event, stream, PER_THREAD, flags)
    }
    fn event_query "cuEventQuery" (event: u64) {
        let event = find(event)?;
        event.refuse_captured(true)?;
        capture_state::reject_if_capturing()?;
        if event.is_done() { Ok(()) } else { Err(Code::NOT_READY) }
    }
    fn event_synchronize "cuEventSynchronize" (event: u64) {
        // As in `resolve_to_wait`, the context may have failed.
        let event = EVENTS.get(event)?;
        event.context.check_active()?;
        event.refuse_captured(true)?;
        capture_state::reject_if_capturing()?;
        if let Some(op) = event.latest() {
            queue::wait(&op, &event.context)?;
        }
        event.context.printf.flush();
        context::notify_synchronized();
        event.context.check()
    }
    fn event_elapsed "cuEventElapsedTime" (out: u64, start: u64, end: u64) {
        elapsed(out, start, end)
    }
    fn event_elapsed_v2 "cuEventElapsedTime_v2" (out: u64, start: u64, end: u64) {
        elapsed(out, start, end)
    }
    fn ipc_get_event "cuIpcGetEventHandle" (out: u64, event: u64) {
        non_null(out)?;
        let Some(shared) = &find(event)?.shared else {
            return refuse(Code::INVALID_HANDLE, || {
                "the event was created without CU_EVENT_INTERPROCESS".into()
            });
        };
        put(out, shared.handle())
    }
    fn ipc_open_event "cuIpcOpenEventHandle" (out: u64, handle: IpcHandle) {
        non_null(out)?;
        let context = context::current()?;
        let shared = SharedEvent::open(&ipc_message::words(&handle.0))?;
        install(out, context, INTERPROCESS | DISABLE_TIMING, Some(shared))
    }
}
