//! Events: markers in streams, with the time at which they were passed.

use std::sync::{Arc, Mutex};

use super::checked::{non_null, put};
use super::context::{self, Context};
use super::errors::Code;
use super::handles::{HandleKind, Table, fresh_id};
use super::queue::{self, Op, lock};
use super::stream::{self, Stream};
use super::{Res, entries, pool};

static EVENTS: Table<Event> = Table::new(HandleKind::Event);

const DISABLE_TIMING: u32 = 2;
const INTERPROCESS: u32 = 4;
const ALL_FLAGS: u32 = 7;

struct Event {
    context: Arc<Context>,
    flags: u32,
    /// The op that the latest record entered; an event waits for that one even if it is recorded again meanwhile.
    recorded: Mutex<Option<Arc<Op>>>,
}

impl Event {
    fn latest(&self) -> Option<Arc<Op>> {
        lock(&self.recorded).clone()
    }
}

fn find(handle: u64) -> Res<Arc<Event>> {
    let event = EVENTS.get(handle)?;
    event.context.check()?;
    Ok(event)
}

/// Whether the handle names an event of a sound context.
pub(super) fn check(event: u64) -> Res {
    find(event).map(|_| ())
}

fn record(event: u64, stream: u64, per_thread: bool) -> Res {
    check(event)?;
    record_in(event, &stream::resolve(stream, per_thread)?)
}

/// Records the event after everything that was entered into the stream.
pub(super) fn record_in(event: u64, stream: &Arc<Stream>) -> Res {
    let event = find(event)?;
    if event.context.id != stream.context.id {
        return Err(Code::INVALID_HANDLE);
    }
    *lock(&event.recorded) = Some(stream.mark(&[]));
    Ok(())
}

/// `cuCtxRecordEvent`: everything entered into the context's streams so far.
pub(super) fn record_context(context: &Arc<Context>, event: u64) -> Res {
    let event = find(event)?;
    if event.context.id != context.id {
        return Err(Code::INVALID_HANDLE);
    }
    let op = Op::new(None);
    {
        let _order = lock(&context.order);
        for s in lock(&context.streams).iter() {
            if let Some(before) = s.tail() {
                op.after(&before);
            }
        }
    }
    op.clone().release();
    *lock(&event.recorded) = Some(op);
    Ok(())
}

/// `cuCtxWaitEvent`: everything entered into the context's streams from now on.
pub(super) fn make_context_wait(context: &Arc<Context>, event: u64) -> Res {
    if let Some(op) = find(event)?.latest() {
        for s in lock(&context.streams).clone() {
            s.mark(std::slice::from_ref(&op));
        }
    }
    Ok(())
}

/// `cuStreamWaitEvent`: an event that was never recorded holds nothing back.
pub(super) fn make_stream_wait(stream: &Arc<Stream>, event: u64) -> Res {
    if let Some(op) = find(event)?.latest() {
        stream.mark(&[op]);
    }
    Ok(())
}

/// Invalidates the event handles of a context that ends.
pub(super) fn forget_context(context: u64) {
    EVENTS.remove_where(|e| e.context.id == context);
}

fn elapsed(out: u64, start: u64, end: u64) -> Res {
    non_null(out)?;
    let (start, end) = (find(start)?, find(end)?);
    if (start.flags | end.flags) & DISABLE_TIMING != 0 || start.context.id != end.context.id {
        return Err(Code::INVALID_HANDLE);
    }
    let (Some(from), Some(to)) = (start.latest(), end.latest()) else {
        return Err(Code::INVALID_HANDLE);
    };
    if !from.is_done() || !to.is_done() {
        return Err(Code::NOT_READY);
    }
    let nanoseconds = to.finished_at() as f64 - from.finished_at() as f64;
    put(out, (nanoseconds / 1e6) as f32)
}

entries! {
    fn event_create "cuEventCreate" (out: u64, flags: u32) {
        non_null(out)?;
        if flags & !ALL_FLAGS != 0 || (flags & INTERPROCESS != 0 && flags & DISABLE_TIMING == 0) {
            return Err(Code::INVALID_VALUE);
        }
        let event = Event { context: context::current()?, flags, recorded: Mutex::new(None) };
        let handle = EVENTS.insert(fresh_id(), Arc::new(event));
        put(out, handle).inspect_err(|_| { let _ = EVENTS.remove(handle); })
    }
    fn event_destroy "cuEventDestroy_v2" (handle: u64) {
        EVENTS.remove(handle)?.context.check()
    }
    fn event_record "cuEventRecord" | "cuEventRecord_ptsz" (event: u64, stream: u64) {
        record(event, stream, PER_THREAD)
    }
    fn event_record_with_flags "cuEventRecordWithFlags" | "cuEventRecordWithFlags_ptsz"
        (event: u64, stream: u64, flags: u32) {
        if flags > 1 {
            return Err(Code::INVALID_VALUE);
        }
        record(event, stream, PER_THREAD)
    }
    fn event_query "cuEventQuery" (event: u64) {
        match find(event)?.latest() {
            Some(op) if !op.is_done() => Err(Code::NOT_READY),
            _ => Ok(()),
        }
    }
    fn event_synchronize "cuEventSynchronize" (event: u64) {
        let event = find(event)?;
        if let Some(op) = event.latest() {
            queue::wait(&op, &event.context)?;
        }
        event.context.printf.flush();
        pool::settle();
        event.context.check()
    }
    fn event_elapsed "cuEventElapsedTime" (out: u64, start: u64, end: u64) {
        elapsed(out, start, end)
    }
    fn event_elapsed_v2 "cuEventElapsedTime_v2" (out: u64, start: u64, end: u64) {
        elapsed(out, start, end)
    }
}
