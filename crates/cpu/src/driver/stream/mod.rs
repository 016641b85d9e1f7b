//! Streams: ordering, default streams, callbacks, attributes.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use self::queue::{Op, Work};
use crate::driver::context::green::{self, Green};
use crate::driver::context::{self, Context};
use crate::driver::entry::Res;
use crate::driver::entry::errors::Code;
use crate::driver::entry::handles::{HandleKind, HandleTable, fresh_id};

pub(crate) mod capture_state;
pub(crate) mod entries;
pub(crate) mod event;
pub(crate) mod event_entries;
pub(crate) mod host_call;
pub(crate) mod memory_operations;
pub(crate) mod queue;
pub(crate) mod resolve;
pub(crate) mod shared_event;
pub(crate) mod stream_memory;

pub(crate) static STREAMS: HandleTable<Stream> = HandleTable::new(HandleKind::Stream);

/// Priorities range from 0 to -5; lower is more urgent. They are stored without effect.
pub(crate) const LEAST_PRIORITY: i32 = 0;
pub(crate) const GREATEST_PRIORITY: i32 = -5;

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
    /// The green context that the stream belongs to.
    green: Option<Arc<Green>>,
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

const MAX_PENDING: usize = 4096;

impl Backlog {
    fn add(&self, ops: usize) {
        *self.count.lock() += ops;
    }
    fn remove(&self, ops: usize) {
        let mut count = self.count.lock();
        let before = *count;
        *count -= ops;
        if before > MAX_PENDING / 2 && *count <= MAX_PENDING / 2 {
            self.shrunk.notify_all();
        }
    }
    /// Blocks while too many ops are pending. Gives up after five seconds, so that it cannot deadlock with a callback
    /// that waits for the caller.
    fn wait_for_room(&self) {
        let mut count = self.count.lock();
        for _ in 0..100 {
            if *count < MAX_PENDING {
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
    fn new(
        context: &Arc<Context>,
        green: Option<&Arc<Green>>,
        sort: StreamKind,
        priority: i32,
    ) -> Arc<Stream> {
        let id = fresh_id();
        let stream = Arc::new(Stream {
            id,
            context: context.clone(),
            green: green.cloned(),
            sort,
            priority,
            tail: Mutex::new(None),
            pending: Arc::default(),
            abandoned: AtomicBool::new(false),
            attributes: Mutex::default(),
        });
        context.prune_finished_streams();
        context.streams.lock().push(stream.clone());
        stream
    }

    /// Creates a default stream of `context`.
    pub(crate) fn default_of(context: &Arc<Context>, sort: StreamKind) -> Arc<Stream> {
        Self::new(context, None, sort, 0)
    }

    /// Creates a stream of a green context.
    pub(crate) fn of_green(green: &Arc<Green>, sort: StreamKind, priority: i32) -> Arc<Stream> {
        Self::new(&green.primary, Some(green), sort, priority)
    }

    /// The green context that the stream belongs to.
    pub(crate) fn green(&self) -> Option<&Arc<Green>> {
        self.green.as_ref()
    }

    /// Whether both belong to the same green context, or to none.
    fn shares_green(&self, other: &Stream) -> bool {
        self.green.as_ref().map(|g| g.id) == other.green.as_ref().map(|g| g.id)
    }

    /// The default stream that a blocking stream synchronises with.
    fn default_stream(&self) -> Arc<Stream> {
        match &self.green {
            Some(green) => green.default_stream(),
            None => self.context.legacy_stream(),
        }
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
        self.enqueue_steps(also, place, move |context| {
            let Some(_work) = context.begin_work() else {
                return Ok(());
            };
            let outcome = work(context);
            // Before the work ends, so that the error is visible to those who wait for it.
            outcome.inspect_err(|&code| context.fail(code))
        })
    }

    /// [`Stream::enqueue`] for work that consists of steps, each of which calls [`Context::begin_work`] if it is work of
    /// the device. Host functions are not.
    pub(crate) fn enqueue_steps(
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
            let green = self.green.clone();
            Box::new(move || {
                let _share = green::enter_share(green.as_ref());
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
        // Before the locks: it may have to be created.
        let default = self.is_blocking().then(|| self.default_stream());
        let _order = self.context.order.lock();
        if let Some(before) = self.tail() {
            first.after(&before);
        }
        match self.sort {
            StreamKind::Legacy => {
                for other in self.context.streams.lock().iter() {
                    if matches!(other.sort, StreamKind::Blocking | StreamKind::PerThread)
                        && self.shares_green(other)
                        && let Some(before) = other.tail()
                    {
                        first.after(&before);
                    }
                }
            }
            StreamKind::Blocking | StreamKind::PerThread => {
                if let Some(before) = default.and_then(|s| s.tail()) {
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
        context::notify_synchronized();
        self.context.check()
    }

    /// Whether all work enqueued so far is done.
    pub(crate) fn is_idle(&self) -> bool {
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
