//! Events: markers in streams, with the time at which the stream passed them.

use std::sync::Arc;

use cupyrite_sys::driver as sys;
use parking_lot::Mutex;

use crate::driver::context::{self, Context};
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{non_null, put};
use crate::driver::entry::entries;
use crate::driver::entry::errors::Code;
use crate::driver::entry::handles::{HandleKind, Table, fresh_id};
use crate::driver::entry::logs::refuse;
use crate::driver::graph;
use crate::driver::memory::ipc_message;
use crate::driver::stream::Stream;
use crate::driver::stream::queue::{self, Op};
use crate::driver::stream::resolve;
use crate::driver::stream::shared_event::SharedEvent;

static EVENTS: Table<Event> = Table::new(HandleKind::Event);

/// Flag of `cuEventRecordWithFlags` and `cuStreamWaitEvent`. In a capture it creates a node that records or waits when
/// the graph runs; without it, the call only adds dependencies.
const EXTERNAL: u32 = sys::CUevent_record_flags::CU_EVENT_RECORD_EXTERNAL.0;

const DISABLE_TIMING: u32 = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING.0;
const INTERPROCESS: u32 = sys::CUevent_flags::CU_EVENT_INTERPROCESS.0;
const ALL_FLAGS: u32 = 7;

/// An event.
pub(crate) struct Event {
    pub(crate) context: Arc<Context>,
    flags: u32,
    recorded: Mutex<Recorded>,
    /// The state shared with other processes, for interprocess events.
    shared: Option<Arc<SharedEvent>>,
}

/// The latest record of an event.
#[derive(Clone, Default)]
enum Recorded {
    #[default]
    Never,
    /// The recorded op. A waiter waits for this op even if the event is recorded again in the meantime.
    Op(Arc<Op>),
    /// The op of an event that other processes may have recorded since, and the number of the record.
    Numbered(Arc<Op>, u64),
    /// A position in a capture.
    Captured(graph::capture::Moment),
}

impl Event {
    /// The op of the latest record, if it was outside a capture. A record of another process yields a new op that
    /// completes with that record.
    pub(crate) fn latest(&self) -> Option<Arc<Op>> {
        let recorded = self.recorded.lock().clone();
        match (recorded, &self.shared) {
            (Recorded::Op(op), _) => Some(op),
            (Recorded::Captured(_), _) | (Recorded::Never, None) => None,
            (recorded, Some(shared)) => {
                let number = shared.latest();
                match recorded {
                    Recorded::Numbered(op, mine) if mine == number => Some(op),
                    _ if shared.is_done(number) => None,
                    _ => Some(shared.op(number, &self.context)),
                }
            }
            (Recorded::Numbered(op, _), None) => Some(op),
        }
    }

    /// Whether all work before the latest record is done.
    fn is_done(&self) -> bool {
        if let Some(shared) = &self.shared {
            let number = shared.latest();
            if !matches!(&*self.recorded.lock(), Recorded::Numbered(_, mine) if *mine == number) {
                return shared.is_done(number);
            }
        }
        self.latest().is_none_or(|op| op.is_done())
    }

    /// Records the event at `op`, as a graph node does.
    pub(crate) fn set(&self, op: Arc<Op>) {
        let recorded = match &self.shared {
            Some(shared) => Recorded::Numbered(op.clone(), shared.record(&op)),
            None => Recorded::Op(op),
        };
        *self.recorded.lock() = recorded;
    }

    /// The position in a capture that the latest record marked.
    fn moment(&self) -> Option<graph::capture::Moment> {
        match &*self.recorded.lock() {
            Recorded::Captured(moment) => Some(moment.clone()),
            _ => None,
        }
    }

    /// Refuses queries of an event that was last recorded in a capture; with `invalidate_capture` this invalidates the capture.
    fn refuse_captured(&self, invalidate_capture: bool) -> Res {
        match self.moment() {
            Some(moment) => Err(graph::capture::asked(&moment, invalidate_capture)),
            None => Ok(()),
        }
    }
}

/// The event of a handle, in a context without a sticky error.
pub(crate) fn find(handle: u64) -> Res<Arc<Event>> {
    let event = EVENTS.get(handle)?;
    event.context.check()?;
    Ok(event)
}

/// Validates an event handle and its context.
pub(crate) fn check(event: u64) -> Res {
    find(event).map(|_| ())
}

fn record(event: u64, stream: u64, per_thread: bool, flags: u32) -> Res {
    let found = find(event)?;
    let stream = resolve::resolve_for_capture(stream, per_thread)?;
    if flags & EXTERNAL != 0 && graph::capture::is_capturing(&stream)? {
        let node = graph::EventNode {
            handle: event,
            event: found,
        };
        return graph::capture::record(&stream, graph::Payload::EventRecord(node));
    }
    record_in(event, &stream)
}

/// Records the event after all work enqueued in the stream.
pub(crate) fn record_in(event: u64, stream: &Arc<Stream>) -> Res {
    let event = find(event)?;
    if event.context.id != stream.context.id {
        return Err(Code::INVALID_HANDLE);
    }
    match graph::capture::moment(stream)? {
        Some(moment) => *event.recorded.lock() = Recorded::Captured(moment),
        None => event.set(stream.mark(&[])),
    }
    Ok(())
}

/// `cuCtxRecordEvent`: records after all work enqueued in the context's streams.
pub(crate) fn record_context(context: &Arc<Context>, event: u64) -> Res {
    let event = find(event)?;
    if event.context.id != context.id {
        return Err(Code::INVALID_HANDLE);
    }
    let op = Op::new(None);
    {
        let _order = context.order.lock();
        for s in context.streams.lock().iter() {
            if let Some(before) = s.tail() {
                op.after(&before);
            }
        }
    }
    op.clone().release();
    event.set(op);
    Ok(())
}

/// `cuCtxWaitEvent`: all work enqueued later in the context's streams waits.
pub(crate) fn make_context_wait(context: &Arc<Context>, event: u64) -> Res {
    let event = find(event)?;
    event.refuse_captured(true)?;
    if let Some(op) = event.latest() {
        for s in context.streams.lock().clone() {
            s.mark(std::slice::from_ref(&op));
        }
    }
    Ok(())
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
        return graph::capture::wait(stream, moment);
    }
    if graph::capture::is_capturing(stream)? {
        if flags & EXTERNAL == 0 && matches!(recorded, Recorded::Never) && found.shared.is_none() {
            return Ok(());
        }
        if flags & EXTERNAL == 0 {
            return Err(graph::capture::isolation(stream));
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

/// Invalidates the event handles of a destroyed context.
pub(crate) fn forget_context(context: u64) {
    EVENTS.remove_where(|e| e.context.id == context);
}

/// Creates an event and writes its handle to the caller.
fn install(out: u64, context: Arc<Context>, flags: u32, shared: Option<Arc<SharedEvent>>) -> Res {
    let event = Event {
        context,
        flags,
        recorded: Mutex::default(),
        shared,
    };
    let handle = EVENTS.insert(fresh_id(), Arc::new(event));
    put(out, handle).inspect_err(|_| {
        let _ = EVENTS.remove(handle);
    })
}

/// A `CUipcEventHandle`, passed by value.
#[derive(Clone, Copy)]
#[repr(C)]
struct IpcHandle([u8; 64]);

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

entries! {
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
        graph::capture::reject_if_capturing()?;
        if event.is_done() { Ok(()) } else { Err(Code::NOT_READY) }
    }
    fn event_synchronize "cuEventSynchronize" (event: u64) {
        let event = find(event)?;
        event.refuse_captured(true)?;
        graph::capture::reject_if_capturing()?;
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
