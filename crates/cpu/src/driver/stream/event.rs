//! Events: markers in streams, with the time at which the stream passed them.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::driver::context::Context;
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::put;
use crate::driver::entry::errors::Code;
use crate::driver::entry::handles::{HandleKind, HandleTable, fresh_id};
use crate::driver::stream::Stream;
use crate::driver::stream::capture_state;
use crate::driver::stream::queue::Op;
use crate::driver::stream::shared_event::SharedEvent;

pub(super) static EVENTS: HandleTable<Event> = HandleTable::new(HandleKind::Event);

/// An event.
pub(crate) struct Event {
    pub(crate) context: Arc<Context>,
    pub(super) flags: u32,
    pub(super) recorded: Mutex<Recorded>,
    /// The state shared with other processes, for interprocess events.
    pub(super) shared: Option<Arc<SharedEvent>>,
}

/// The latest record of an event.
#[derive(Clone, Default)]
pub(super) enum Recorded {
    #[default]
    Never,
    /// The recorded op. A waiter waits for this op even if the event is recorded again in the meantime.
    Op(Arc<Op>),
    /// The op of an event that other processes may have recorded since, and the number of the record.
    Numbered(Arc<Op>, u64),
    /// A position in a capture.
    Captured(capture_state::Moment),
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
    pub(super) fn is_done(&self) -> bool {
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
    fn moment(&self) -> Option<capture_state::Moment> {
        match &*self.recorded.lock() {
            Recorded::Captured(moment) => Some(moment.clone()),
            _ => None,
        }
    }

    /// Refuses queries of an event that was last recorded in a capture; with `invalidate_capture` this invalidates the capture.
    pub(super) fn refuse_captured(&self, invalidate_capture: bool) -> Res {
        match self.moment() {
            Some(moment) => Err(capture_state::asked(&moment, invalidate_capture)),
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

/// Records the event after all work enqueued in the stream.
pub(crate) fn record_in(event: u64, stream: &Arc<Stream>) -> Res {
    let event = find(event)?;
    if event.context.id != stream.context.id {
        return Err(Code::INVALID_HANDLE);
    }
    match capture_state::moment(stream)? {
        Some(moment) => *event.recorded.lock() = Recorded::Captured(moment),
        None => event.set(stream.mark(&[])),
    }
    Ok(())
}

/// `cuCtxRecordEvent`: records after all work enqueued in the context's streams.
pub(crate) fn record_context(context: &Arc<Context>, event: u64) -> Res {
    let streams = context.streams.lock().clone();
    record_streams(context, &streams, event)
}

/// Records after all work enqueued in some streams of a context.
pub(crate) fn record_streams(context: &Arc<Context>, streams: &[Arc<Stream>], event: u64) -> Res {
    let event = find(event)?;
    if event.context.id != context.id {
        return Err(Code::INVALID_HANDLE);
    }
    let op = context.op_after(streams, None);
    op.clone().release();
    event.set(op);
    Ok(())
}

/// `cuCtxWaitEvent`: all work enqueued later in the context's streams waits.
pub(crate) fn make_context_wait(context: &Arc<Context>, event: u64) -> Res {
    let streams = context.streams.lock().clone();
    make_streams_wait(&streams, event)
}

/// All work enqueued later in the streams waits.
pub(crate) fn make_streams_wait(streams: &[Arc<Stream>], event: u64) -> Res {
    let event = find(event)?;
    event.refuse_captured(true)?;
    if let Some(op) = event.latest() {
        for s in streams {
            s.mark(std::slice::from_ref(&op));
        }
    }
    Ok(())
}

/// Invalidates the event handles of a destroyed context.
pub(crate) fn remove_context(context: u64) {
    EVENTS.remove_where(|e| e.context.id == context);
}

/// Creates an event and writes its handle to the caller.
pub(super) fn install(
    out: u64,
    context: Arc<Context>,
    flags: u32,
    shared: Option<Arc<SharedEvent>>,
) -> Res {
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
