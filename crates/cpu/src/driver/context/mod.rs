//! Contexts: the per-thread context stack, the objects that a context owns, and its destruction.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use cupyrite_sys::driver::CUlimit as Limit;
use parking_lot::Mutex;

use crate::driver::checkpoint::control;
use crate::driver::context::printf::PrintfBuffer;
use crate::driver::context::running::{RunningWork, WorkGuard};
use crate::driver::coredump::{ContextSettings, pipe};
use crate::driver::entry::Res;
use crate::driver::entry::errors::Code;
use crate::driver::entry::handles::{HandleKind, HandleTable, fresh_id, handle_of};
use crate::driver::stream::queue::{self, Op, Work};
use crate::driver::stream::{Stream, StreamKind};

pub(crate) mod activity;
pub(crate) mod entries;
pub(crate) mod faults;
pub(crate) mod green;
mod primary;
pub(crate) mod printf;
mod running;

pub(crate) static CONTEXTS: HandleTable<Context> = HandleTable::new(HandleKind::Context);

/// Number of `CUlimit` values stored.
const LIMITS: usize = Limit::CU_LIMIT_MAX.0 as usize;
/// Index of the stack limit in [`Context::limits`].
const STACK_SIZE: usize = Limit::CU_LIMIT_STACK_SIZE.0 as usize;
/// Index of the heap limit in [`Context::limits`].
const HEAP_SIZE: usize = Limit::CU_LIMIT_MALLOC_HEAP_SIZE.0 as usize;
/// Index of the limit of launches by kernels in [`Context::limits`].
const PENDING_LAUNCHES: usize = Limit::CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT.0 as usize;

/// A context. A device's primary context is one object for the life of the process; it is activated and deactivated.
pub(crate) struct Context {
    pub(crate) id: u64,
    pub(crate) handle: u64,
    pub(crate) device: i32,
    primary: bool,
    active: AtomicBool,
    pub(crate) flags: AtomicU32,
    api_version: u32,
    /// The sticky error that every later call returns, or zero.
    sticky: AtomicU32,
    /// Polled by running kernels.
    pub(crate) cancel: AtomicBool,
    running: RunningWork,
    /// Held while an op is enqueued, so that all streams agree on the order.
    pub(crate) order: Mutex<()>,
    pub(crate) streams: Mutex<Vec<Arc<Stream>>>,
    /// Created on first use. Taken out when the context is destroyed, because the stream owns a reference to the
    /// context.
    legacy: Mutex<Option<Arc<Stream>>>,
    pub(crate) printf: PrintfBuffer,
    limits: [AtomicU64; LIMITS],
    cache_config: AtomicU32,
    shared_config: AtomicU32,
    /// Launches by kernels that have not completed.
    pub(crate) pending_launches: AtomicU64,
    /// What it has set for core dumps.
    pub(crate) coredump: ContextSettings,
    /// `cuCtxCreate` and `cuCtxAttach`, less `cuCtxDetach`.
    attached: AtomicU32,
}

impl Context {
    fn new(device: i32, primary: bool, flags: u32, api_version: u32) -> Arc<Context> {
        if !primary {
            control::listen();
            pipe::listen();
        }
        let id = fresh_id();
        let context = Arc::new(Context {
            id,
            handle: handle_of(HandleKind::Context, id),
            device,
            primary,
            active: AtomicBool::new(true),
            flags: AtomicU32::new(flags),
            api_version,
            sticky: AtomicU32::new(0),
            cancel: AtomicBool::new(false),
            running: RunningWork::default(),
            order: Mutex::new(()),
            streams: Mutex::new(Vec::new()),
            legacy: Mutex::new(None),
            printf: PrintfBuffer::default(),
            limits: std::array::from_fn(|_| AtomicU64::new(0)),
            cache_config: AtomicU32::new(0),
            shared_config: AtomicU32::new(1),
            pending_launches: AtomicU64::new(0),
            coredump: ContextSettings::default(),
            attached: AtomicU32::new(1),
        });
        context.set_default_limits();
        CONTEXTS.insert(id, context.clone());
        context
    }

    /// The primary context of a device, initially inactive.
    pub(crate) fn new_primary(device: i32) -> Arc<Context> {
        let context = Self::new(device, true, 0, API_VERSION);
        context.active.store(false, Ordering::SeqCst);
        context
    }

    fn set_default_limits(&self) {
        let defaults = [1024, 1 << 20, 8 << 20, 2, 2048, 64, 0, 0, 0, 0, 0];
        for (limit, value) in self.limits.iter().zip(defaults) {
            limit.store(value, Ordering::Relaxed);
        }
    }

    /// `CU_LIMIT_STACK_SIZE`: bytes of stack a thread may use beyond what its kernel declares.
    pub(crate) fn stack_limit(&self) -> u32 {
        // `cuCtxSetLimit` accepts up to 512 KiB.
        self.limits[STACK_SIZE].load(Ordering::Relaxed) as u32
    }

    /// Bytes that `malloc` in kernels may allocate.
    pub(crate) fn heap_limit(&self) -> u64 {
        self.limits[HEAP_SIZE].load(Ordering::Relaxed)
    }

    /// `CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT`: launches by kernels that may be pending at once.
    pub(crate) fn pending_launch_limit(&self) -> u64 {
        self.limits[PENDING_LAUNCHES].load(Ordering::Relaxed)
    }

    /// The value of a `CUlimit`.
    ///
    /// # Errors
    /// `INVALID_VALUE` for an unknown limit, `UNSUPPORTED_LIMIT` for one that the device does not have.
    pub(crate) fn limit(&self, limit: u32) -> Res<u64> {
        let index = entries::known_limit(limit, true)?;
        Ok(self.limits[index].load(Ordering::Relaxed))
    }

    pub(crate) fn is_active(&self) -> bool {
        self.active.load(Ordering::SeqCst)
    }

    /// Returns `CONTEXT_IS_DESTROYED` for an inactive context.
    pub(crate) fn check_active(&self) -> Res {
        if self.is_active() {
            Ok(())
        } else {
            Err(Code::CONTEXT_IS_DESTROYED)
        }
    }

    /// Returns the sticky error, after the running work has ended, or `CONTEXT_IS_DESTROYED` for an inactive context.
    pub(crate) fn check(&self) -> Res {
        self.check_active()?;
        match self.sticky.load(Ordering::SeqCst) {
            0 => Ok(()),
            code => {
                self.running.wait();
                Err(Code(code))
            }
        }
    }

    /// Begins work that touches memory; `None` if the context has failed and the work must be skipped.
    pub(crate) fn begin_work(&self) -> Option<WorkGuard<'_>> {
        let work = self.running.begin();
        (!self.has_failed()).then_some(work)
    }

    /// Makes every later call return `code` and cancels the running kernels. The first failure wins.
    pub(crate) fn fail(&self, code: Code) {
        let first = self
            .sticky
            .compare_exchange(0, code.0, Ordering::SeqCst, Ordering::SeqCst);
        if first.is_ok() {
            faults::record(self.device, code);
        }
        self.cancel.store(true, Ordering::SeqCst);
    }

    /// Whether work of the device runs at the moment.
    pub(crate) fn runs_work(&self) -> bool {
        self.running.is_busy()
    }

    /// Skips the queued work of a context that is being destroyed.
    pub(crate) fn skip_work(&self) {
        let destroyed = Code::CONTEXT_IS_DESTROYED.0;
        let _ = (self.sticky).compare_exchange(0, destroyed, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Whether queued work must be skipped.
    pub(crate) fn has_failed(&self) -> bool {
        self.sticky.load(Ordering::SeqCst) != 0
    }

    /// Cancels the running kernels and fails the context, after Ctrl-C.
    pub(crate) fn interrupt(&self) {
        self.fail(Code::LAUNCH_TIMEOUT);
    }

    /// The legacy default stream, which synchronises with the blocking streams.
    pub(crate) fn legacy_stream(self: &Arc<Self>) -> Arc<Stream> {
        self.legacy
            .lock()
            .get_or_insert_with(|| Stream::default_of(self, StreamKind::Legacy))
            .clone()
    }

    /// Refuses to wait for the context's work on a thread that runs host functions, see [`queue::check_may_wait`]. A
    /// context without work needs no wait.
    pub(crate) fn check_may_wait(&self) -> Res {
        if self.streams.lock().iter().any(|s| s.tail().is_some()) {
            queue::check_may_wait()?;
        }
        Ok(())
    }

    /// Waits for all queued work, then flushes kernel `printf` output.
    pub(crate) fn synchronize(&self) -> Res {
        let streams = self.streams.lock().clone();
        for s in &streams {
            if let Some(op) = s.tail() {
                queue::wait(&op, self)?;
            }
        }
        self.prune_finished_streams();
        self.printf.flush();
        notify_synchronized();
        self.check()
    }

    /// An op that follows all work enqueued in some streams. The caller releases it.
    pub(crate) fn op_after(&self, streams: &[Arc<Stream>], work: Option<Work>) -> Arc<Op> {
        let op = Op::new(work);
        let _order = self.order.lock();
        for s in streams {
            if let Some(before) = s.tail() {
                op.after(&before);
            }
        }
        op
    }

    /// Runs `work` after all work enqueued so far, or at once if all of it is done.
    pub(crate) fn after_launched_work(&self, work: Work) {
        let streams = self.streams.lock().clone();
        let op = self.op_after(&streams, Some(work));
        if op.is_unblocked()
            && let Some(work) = op.take_work()
        {
            work();
        }
        op.release();
    }

    /// Drops destroyed streams that have completed their work.
    pub(crate) fn prune_finished_streams(&self) {
        self.streams
            .lock()
            .retain(|s| !s.is_abandoned() || s.tail().is_some());
    }

    /// Activates a primary context in its initial state.
    fn revive(&self) {
        if !self.is_active() {
            self.cancel.store(false, Ordering::SeqCst);
            self.sticky.store(0, Ordering::SeqCst);
            self.set_default_limits();
            self.coredump.reset();
            self.active.store(true, Ordering::SeqCst);
            control::listen();
            pipe::listen();
        }
    }
}

/// The value of `cuCtxGetApiVersion` for contexts created by the current entry points.
const API_VERSION: u32 = 3020;

/// A context as it is current in a thread: a context, or a green context of it.
#[derive(Clone)]
pub(crate) struct StackEntry {
    pub(crate) context: Arc<Context>,
    pub(crate) green: Option<Arc<green::Green>>,
}

impl StackEntry {
    /// The `CUcontext`.
    fn handle(&self) -> u64 {
        match &self.green {
            Some(green) => green.context_handle,
            None => self.context.handle,
        }
    }

    /// As [`Context::check_active`], also for the green context.
    fn check_active(&self) -> Res {
        if self.green.as_ref().is_some_and(|g| !g.is_active()) {
            return Err(Code::CONTEXT_IS_DESTROYED);
        }
        self.context.check_active()
    }

    /// As [`Context::check`], also for the green context.
    fn check(&self) -> Res {
        self.check_active()?;
        self.context.check()
    }
}

thread_local! {
    static CURRENT: RefCell<Vec<StackEntry>> = const { RefCell::new(Vec::new()) };
}

fn with_stack<R>(f: impl FnOnce(&mut Vec<StackEntry>) -> R) -> Res<R> {
    CURRENT
        .try_with(|stack| stack.try_borrow_mut().map(|mut s| f(&mut s)))
        .map_err(|_| Code::DEINITIALIZED)?
        .map_err(|_| Code::UNKNOWN)
}

/// The current context in any state.
pub(crate) fn current_any() -> Res<Option<Arc<Context>>> {
    Ok(current_entry()?.map(|e| e.context))
}

fn current_entry() -> Res<Option<StackEntry>> {
    with_stack(|s| s.last().cloned())
}

/// The current green context, if one is current.
pub(crate) fn current_green() -> Res<Option<Arc<green::Green>>> {
    match current_entry()? {
        Some(entry) => entry.check().map(|()| entry.green),
        None => Ok(None),
    }
}

/// The current context for a wait for its work: it is active, but may have a sticky error.
pub(crate) fn current_to_wait() -> Res<StackEntry> {
    let entry = current_entry()?.ok_or(Code::INVALID_CONTEXT)?;
    entry.check_active()?;
    Ok(entry)
}

/// The current context; it is active and has no sticky error.
pub(crate) fn current() -> Res<Arc<Context>> {
    let entry = current_entry()?.ok_or(Code::INVALID_CONTEXT)?;
    entry.check()?;
    Ok(entry.context)
}

/// The active context of that handle. The handle of a green context stands for its primary context.
fn by_handle(handle: u64) -> Res<Arc<Context>> {
    entry_by_handle(handle).map(|entry| entry.context)
}

fn entry_by_handle(handle: u64) -> Res<StackEntry> {
    let entry = match CONTEXTS.find(handle) {
        Some(context) => StackEntry {
            context,
            green: None,
        },
        None => {
            let green = green::by_context_handle(handle).ok_or(Code::INVALID_CONTEXT)?;
            StackEntry {
                context: green.primary.clone(),
                green: Some(green),
            }
        }
    };
    if entry.context.is_active() {
        Ok(entry)
    } else {
        Err(Code::CONTEXT_IS_DESTROYED)
    }
}

/// The context of that handle with its green context, or the current one for a null handle.
fn entry_by_handle_or_current(handle: u64) -> Res<StackEntry> {
    let entry = match handle {
        0 => current_entry()?.ok_or(Code::INVALID_CONTEXT)?,
        _ => entry_by_handle(handle)?,
    };
    entry.check()?;
    Ok(entry)
}

/// The context with that id.
pub(crate) fn by_id(id: u64) -> Option<Arc<Context>> {
    CONTEXTS.find(handle_of(HandleKind::Context, id))
}

/// The device of the context with that id, the owner of a region.
pub(crate) fn device_of_owner(id: u64) -> Option<i32> {
    by_id(id).map(|context| context.device)
}

/// The context of that handle, or the current one for a null handle, for a wait for its work: it may have a sticky error.
fn by_handle_or_current_to_wait(handle: u64) -> Res<Arc<Context>> {
    if handle == 0 {
        return Ok(current_to_wait()?.context);
    }
    by_handle(handle)
}

/// The context of that handle, or the current one for a null handle.
pub(crate) fn by_handle_or_current(handle: u64) -> Res<Arc<Context>> {
    if handle == 0 {
        return current();
    }
    let context = by_handle(handle)?;
    context.check()?;
    Ok(context)
}

static AFTER_SYNCHRONIZE: OnceLock<fn()> = OnceLock::new();

/// Registers a function that runs after each synchronisation of a context, a stream or an event. Memory pools release
/// their cached blocks there. Only the first registration has an effect.
pub(crate) fn on_synchronize(hook: fn()) {
    let _ = AFTER_SYNCHRONIZE.set(hook);
}

/// Runs the registered function, see [`on_synchronize`].
pub(crate) fn notify_synchronized() {
    if let Some(hook) = AFTER_SYNCHRONIZE.get() {
        hook();
    }
}
