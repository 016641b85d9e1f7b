//! Streams: ordering, default streams, callbacks, attributes.

use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cupyrite_sys::driver as sys;
use parking_lot::{Condvar, Mutex};

use self::queue::{Op, Work};
use crate::driver::context::{self, Context};
use crate::driver::entry::caller_memory::{
    get, is_executable_address, non_null, put, put_optional,
};
use crate::driver::entry::entries;
use crate::driver::entry::errors::Code;
use crate::driver::entry::handles::{HandleKind, Table, fresh_id};
use crate::driver::entry::{Entry, Res};
use crate::driver::graph;
use crate::driver::memory::managed;
use crate::driver::memory::pool;

pub(crate) mod event;
pub(crate) mod host_call;
pub(crate) mod queue;
pub(crate) mod shared_event;
pub(crate) mod stream_memory;

/// The entry points of this folder.
pub(crate) fn entry_points() -> impl Iterator<Item = &'static Entry> {
    [ENTRIES, event::ENTRIES, stream_memory::ENTRIES]
        .into_iter()
        .flatten()
}

pub(crate) static STREAMS: Table<Stream> = Table::new(HandleKind::Stream);

/// Priorities range from 0 to -5; lower is more urgent. They are stored without effect.
pub(crate) const LEAST_PRIORITY: i32 = 0;
pub(crate) const GREATEST_PRIORITY: i32 = -5;

/// `CU_STREAM_LEGACY`.
const LEGACY_HANDLE: u64 = 1;
/// `CU_STREAM_PER_THREAD`.
const PER_THREAD_HANDLE: u64 = 2;
/// `CU_STREAM_NON_BLOCKING`.
const NON_BLOCKING: u32 = sys::CUstream_flags::CU_STREAM_NON_BLOCKING.0;

/// A stream's relation to the legacy default stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamKind {
    /// The legacy default stream, which synchronises with all blocking streams.
    Legacy,
    /// A per-thread default stream; blocking.
    PerThread,
    Blocking,
    NonBlocking,
}

/// A stream.
pub(crate) struct Stream {
    pub(crate) id: u64,
    pub(crate) context: Arc<Context>,
    sort: StreamKind,
    priority: i32,
    /// The last enqueued op, unless it is known to be done.
    tail: Mutex<Option<Arc<Op>>>,
    /// Enqueued ops that are not done.
    pending: Arc<Backlog>,
    /// Set when the stream, or the thread of a per-thread stream, is destroyed. The stream is dropped when its work is
    /// done.
    abandoned: AtomicBool,
    attributes: Mutex<HashMap<u32, [u8; 64]>>,
}

/// Counts a stream's unfinished ops. Callers that enqueue faster than the stream executes block.
#[derive(Default)]
struct Backlog {
    count: Mutex<usize>,
    shrunk: Condvar,
}

const MOST_PENDING: usize = 4096;

impl Backlog {
    fn add(&self, ops: usize) {
        *self.count.lock() += ops;
    }
    fn remove(&self, ops: usize) {
        let mut count = self.count.lock();
        let before = *count;
        *count -= ops;
        if before > MOST_PENDING / 2 && *count <= MOST_PENDING / 2 {
            self.shrunk.notify_all();
        }
    }
    /// Blocks while too many ops are pending. Gives up after five seconds, so that it cannot deadlock with a callback
    /// that waits for the caller.
    fn wait_for_room(&self) {
        let mut count = self.count.lock();
        for _ in 0..100 {
            if *count < MOST_PENDING {
                return;
            }
            self.shrunk.wait_for(&mut count, Duration::from_millis(50));
        }
    }
}

/// The thread that may run an op.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpPlacement {
    /// A worker thread.
    Worker,
    /// The calling thread if no earlier work is pending in the stream, otherwise a worker.
    CallerIfIdle,
}

impl Stream {
    fn new(context: &Arc<Context>, sort: StreamKind, priority: i32) -> Arc<Stream> {
        let id = fresh_id();
        let stream = Arc::new(Stream {
            id,
            context: context.clone(),
            sort,
            priority,
            tail: Mutex::new(None),
            pending: Arc::default(),
            abandoned: AtomicBool::new(false),
            attributes: Mutex::default(),
        });
        context.forget_finished_streams();
        context.streams.lock().push(stream.clone());
        stream
    }

    /// Creates a default stream of `context`.
    pub(crate) fn default_of(context: &Arc<Context>, sort: StreamKind) -> Arc<Stream> {
        Self::new(context, sort, 0)
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Acquire)
    }

    /// The last op, if it is not done.
    pub(crate) fn tail(&self) -> Option<Arc<Op>> {
        let mut tail = self.tail.lock();
        if tail.as_ref().is_some_and(|op| op.is_done()) {
            *tail = None;
        }
        tail.clone()
    }

    /// Enqueues an op that runs after all ops it must follow in stream order, and after `also`. Work that fails makes
    /// the context fail; work of a failed context is skipped.
    pub(crate) fn enqueue(
        self: &Arc<Self>,
        also: &[Arc<Op>],
        place: OpPlacement,
        work: impl FnOnce(&Arc<Context>) -> Res + Send + 'static,
    ) -> Arc<Op> {
        let context = self.context.clone();
        self.enter(
            also,
            place,
            Some(Box::new(move || {
                if context.has_failed() {
                    return;
                }
                // A panic is a bug in this crate; the context fails, so that the program learns that the work was not
                // done.
                let outcome = catch_unwind(AssertUnwindSafe(|| work(&context)));
                if let Err(code) = outcome.unwrap_or(Err(Code::UNKNOWN)) {
                    context.fail(code);
                }
            })),
        )
    }

    /// Enqueues an op without work; it completes when all ops before it are done.
    pub(crate) fn mark(self: &Arc<Self>, also: &[Arc<Op>]) -> Arc<Op> {
        self.enter(also, OpPlacement::CallerIfIdle, None)
    }

    /// Enqueues an op that runs whether or not the context has failed.
    fn enter(
        self: &Arc<Self>,
        also: &[Arc<Op>],
        place: OpPlacement,
        work: Option<Work>,
    ) -> Arc<Op> {
        let counted = work.is_some();
        let work: Option<Work> = work.map(|work| -> Work {
            self.pending.wait_for_room();
            self.pending.add(1);
            let guard = BacklogGuard(self.pending.clone(), 1);
            Box::new(move || {
                work();
                drop(guard);
            })
        });
        let op = Op::new(work);
        self.line_up(&op, &op, also);
        if counted
            && place == OpPlacement::CallerIfIdle
            && op.is_unblocked()
            && let Some(work) = op.take_work()
        {
            let _ = catch_unwind(AssertUnwindSafe(work));
        }
        op.clone().release();
        op
    }

    /// Inserts ops into the stream order: `first` follows all ops it must follow and `also`; ops enqueued later follow
    /// `last`.
    fn line_up(self: &Arc<Self>, first: &Arc<Op>, last: &Arc<Op>, also: &[Arc<Op>]) {
        let _order = self.context.order.lock();
        if let Some(before) = self.tail() {
            first.after(&before);
        }
        match self.sort {
            StreamKind::Legacy => {
                for other in self.context.streams.lock().iter() {
                    if matches!(other.sort, StreamKind::Blocking | StreamKind::PerThread)
                        && let Some(before) = other.tail()
                    {
                        first.after(&before);
                    }
                }
            }
            StreamKind::Blocking | StreamKind::PerThread => {
                if let Some(before) = self.context.legacy_stream().tail() {
                    first.after(&before);
                }
            }
            StreamKind::NonBlocking => {}
        }
        for before in also {
            first.after(before);
        }
        *self.tail.lock() = Some(last.clone());
    }

    /// Enqueues `count` ops as one unit. `build` receives two unreleased ops, which start and end the unit, inserts its
    /// own ops between them, and lets each of them keep the third argument until it is done. Returns the last op.
    pub(crate) fn enter_many(
        self: &Arc<Self>,
        count: usize,
        also: &[Arc<Op>],
        build: impl FnOnce(&Arc<Op>, &Arc<Op>, Arc<BacklogGuard>),
    ) -> Arc<Op> {
        self.pending.wait_for_room();
        self.pending.add(count);
        let leave = Arc::new(BacklogGuard(self.pending.clone(), count));
        let first = Op::new(None);
        let last = Op::new(None);
        self.line_up(&first, &last, also);
        build(&first, &last, leave);
        first.release();
        last.clone().release();
        last
    }

    /// Whether this is the legacy default stream.
    pub(crate) fn is_legacy(&self) -> bool {
        self.sort == StreamKind::Legacy
    }

    /// Whether the stream synchronises with the legacy default stream.
    pub(crate) fn is_blocking(&self) -> bool {
        matches!(self.sort, StreamKind::Blocking | StreamKind::PerThread)
    }

    /// Waits for all ops enqueued so far.
    pub(crate) fn synchronize(self: &Arc<Self>) -> Res {
        let last = if self.sort == StreamKind::Legacy {
            Some(self.mark(&[]))
        } else {
            self.tail()
        };
        if let Some(op) = last {
            queue::wait(&op, &self.context)?;
        }
        self.context.printf.flush();
        pool::settle();
        self.context.check()
    }

    fn is_idle(&self) -> bool {
        if self.tail().is_some() {
            return false;
        }
        self.sort != StreamKind::Legacy
            || !self.context.streams.lock().iter().any(|s| {
                matches!(s.sort, StreamKind::Blocking | StreamKind::PerThread) && s.tail().is_some()
            })
    }

    /// Marks the stream for removal once its work is done.
    pub(crate) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Release);
    }
}

/// Removes ops from their stream's backlog when dropped, even if the work panicked.
pub(crate) struct BacklogGuard(Arc<Backlog>, usize);
impl Drop for BacklogGuard {
    fn drop(&mut self) {
        self.0.remove(self.1);
    }
}

/// A thread's default streams, one per context.
struct ThreadStreams(Vec<Arc<Stream>>);
impl Drop for ThreadStreams {
    fn drop(&mut self) {
        for stream in &self.0 {
            graph::capture::stream_ends(stream);
            stream.abandon();
        }
    }
}

thread_local! {
    static PER_THREAD: RefCell<ThreadStreams> = const { RefCell::new(ThreadStreams(Vec::new())) };
}

fn per_thread_stream(context: &Arc<Context>) -> Res<Arc<Stream>> {
    PER_THREAD
        .try_with(|streams| {
            let mut streams = streams.borrow_mut();
            streams
                .0
                .retain(|s| s.context.is_active() && !s.is_abandoned());
            if let Some(s) = streams.0.iter().find(|s| s.context.id == context.id) {
                return s.clone();
            }
            let made = Stream::default_of(context, StreamKind::PerThread);
            streams.0.push(made.clone());
            made
        })
        .map_err(|_| Code::DEINITIALIZED)
}

/// Resolves a stream handle for work that cannot be captured, and for waits. `per_thread` selects the default stream of
/// a null handle.
///
/// # Errors
/// Those of [`look_up`]; `STREAM_CAPTURE_UNSUPPORTED` for a capturing stream, `STREAM_CAPTURE_IMPLICIT` for the legacy
/// stream while a stream that it synchronises with is capturing. Both invalidate the capture.
pub(crate) fn resolve(handle: u64, per_thread: bool) -> Res<Arc<Stream>> {
    let stream = look_up(handle, per_thread)?;
    graph::capture::refuse(&stream)?;
    Ok(stream)
}

/// Resolves a stream handle for work that can be captured; the caller checks [`graph::capture::is_capturing`].
///
/// # Errors
/// Those of [`look_up`]; `STREAM_CAPTURE_IMPLICIT` for the legacy stream while a stream that it synchronises with is
/// capturing.
pub(crate) fn resolve_for_capture(handle: u64, per_thread: bool) -> Res<Arc<Stream>> {
    let stream = look_up(handle, per_thread)?;
    graph::capture::refuse_implicit(&stream)?;
    Ok(stream)
}

/// Resolves a stream handle for queries of the stream itself. `per_thread` selects the default stream of a null handle.
///
/// # Errors
/// `INVALID_HANDLE` for an invalid handle, `INVALID_CONTEXT` for a default stream without a current context, the sticky
/// error of a failed context.
pub(crate) fn look_up(handle: u64, per_thread: bool) -> Res<Arc<Stream>> {
    match handle {
        0 if per_thread => per_thread_stream(&context::current()?),
        0 | LEGACY_HANDLE => Ok(context::current()?.legacy_stream()),
        PER_THREAD_HANDLE => per_thread_stream(&context::current()?),
        _ => {
            let stream = STREAMS.get(handle)?;
            stream.context.check()?;
            Ok(stream)
        }
    }
}

/// Invalidates the stream handles of a destroyed context.
pub(crate) fn forget_context(context: u64) {
    STREAMS.remove_where(|s| {
        let gone = s.context.id == context;
        if gone {
            graph::capture::stream_ends(s);
            s.abandon();
        }
        gone
    });
}

fn create(out: u64, flags: u32, priority: i32) -> Res {
    non_null(out)?;
    if flags & !NON_BLOCKING != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let context = context::current()?;
    let sort = if flags & NON_BLOCKING != 0 {
        StreamKind::NonBlocking
    } else {
        StreamKind::Blocking
    };
    let stream = Stream::new(
        &context,
        sort,
        priority.clamp(GREATEST_PRIORITY, LEAST_PRIORITY),
    );
    let handle = STREAMS.insert(stream.id, stream.clone());
    put(out, handle).inspect_err(|_| {
        let _ = STREAMS.remove(handle);
        stream.abandon();
    })
}

/// Validates that a function address lies in executable memory.
fn code(address: u64) -> Res<u64> {
    if is_executable_address(address) {
        Ok(address)
    } else {
        Err(Code::INVALID_VALUE)
    }
}

/// A host function and its argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostCall {
    function: u64,
    pub(crate) data: u64,
    /// `CUhostTaskSyncMode`: blocking or spinning, without a difference here.
    pub(crate) mode: u32,
}

impl HostCall {
    /// # Errors
    /// `INVALID_VALUE` if the address is not executable, or for an unknown mode.
    pub(crate) fn prepare(function: u64, data: u64, mode: u32) -> Res<HostCall> {
        if mode > 1 {
            return Err(Code::INVALID_VALUE);
        }
        Ok(HostCall {
            function: code(function)?,
            data,
            mode,
        })
    }

    /// Address of the function.
    pub(crate) fn address(&self) -> u64 {
        self.function
    }

    pub(crate) fn run(&self) {
        // SAFETY: the caller passed the address, which is executable, as a function of this type.
        unsafe { host_call::run(self.function, self.data) };
    }
}

fn host_function(stream: u64, per_thread: bool, function: u64, data: u64, mode: u32) -> Res {
    let call = HostCall::prepare(function, data, mode)?;
    let stream = resolve_for_capture(stream, per_thread)?;
    if graph::capture::is_capturing(&stream)? {
        return graph::capture::record(&stream, graph::Payload::Host(call));
    }
    stream.enqueue(&[], OpPlacement::Worker, move |_| {
        call.run();
        Ok(())
    });
    Ok(())
}

/// Validates a `CUstreamAttrID`: access policy window, synchronisation policy, priority, memory synchronisation
/// domains.
fn attribute_id(id: u32) -> Res<u32> {
    if matches!(id, 1 | 3 | 8 | 9 | 10) {
        Ok(id)
    } else {
        Err(Code::INVALID_VALUE)
    }
}
const PRIORITY_ATTRIBUTE: u32 = sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PRIORITY.0;

entries! {
    fn stream_create "cuStreamCreate" (out: u64, flags: u32) {
        create(out, flags, LEAST_PRIORITY)
    }
    fn stream_create_with_priority "cuStreamCreateWithPriority" (out: u64, flags: u32, priority: i32) {
        create(out, flags, priority)
    }
    fn stream_destroy "cuStreamDestroy_v2" (handle: u64) {
        // Default streams cannot be destroyed: their handles are not in the table.
        let stream = STREAMS.remove(handle)?;
        graph::capture::stream_ends(&stream);
        stream.abandon();
        stream.context.forget_finished_streams();
        stream.context.check()
    }
    fn stream_query "cuStreamQuery" | "cuStreamQuery_ptsz" (handle: u64) {
        let stream = resolve(handle, PER_THREAD)?;
        graph::capture::reject_if_capturing()?;
        if stream.is_idle() { Ok(()) } else { Err(Code::NOT_READY) }
    }
    fn stream_synchronize "cuStreamSynchronize" | "cuStreamSynchronize_ptsz" (handle: u64) {
        let stream = resolve(handle, PER_THREAD)?;
        graph::capture::reject_if_capturing()?;
        stream.synchronize()
    }
    fn stream_wait_event "cuStreamWaitEvent" | "cuStreamWaitEvent_ptsz" (handle: u64, event: u64, flags: u32) {
        if flags > 1 {
            return Err(Code::INVALID_VALUE);
        }
        event::make_stream_wait(&resolve_for_capture(handle, PER_THREAD)?, event, flags)
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
        put(out, look_up(handle, PER_THREAD)?.context.handle)
    }
    fn stream_get_ctx_v2 "cuStreamGetCtx_v2" | "cuStreamGetCtx_v2_ptsz" (handle: u64, out: u64, green: u64) {
        non_null(out)?;
        put(out, look_up(handle, PER_THREAD)?.context.handle)?;
        put_optional(green, 0u64)
    }
    fn stream_attach_mem "cuStreamAttachMemAsync" | "cuStreamAttachMemAsync_ptsz"
        (handle: u64, address: u64, length: u64, flags: u32) {
        if !matches!(flags, 1 | 2 | 4) {
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
        if id == PRIORITY_ATTRIBUTE {
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
