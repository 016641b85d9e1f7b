//! Asynchronous work: ops with dependencies, the worker threads that run them, and waiting.
//!
//! An [`Op`] runs when every op it depends on is done. A stream makes each of its ops depend on the previous one;
//! events and the default stream's rules add dependencies. Worker threads start on demand and are never joined: a
//! process may exit while kernels run.

use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cupyrite_sys::loader::cpu_library::Interrupt;
use parking_lot::{Condvar, Mutex};

use crate::driver::context::Context;
use crate::driver::entry::Res;
use crate::driver::entry::clock::now;
use crate::driver::entry::errors::Code;
use crate::driver::entry::logs::refuse;

/// The work of an op.
pub(crate) type Work = Box<dyn FnOnce() + Send>;

/// A unit of work in a stream.
pub(crate) struct Op {
    /// Number of unfinished dependencies, plus one until the op is released.
    waiting: AtomicUsize,
    done: AtomicBool,
    /// Completion time, in nanoseconds since the origin of [`now`].
    finished: AtomicU64,
    state: Mutex<OpState>,
    changed: Condvar,
}

#[derive(Default)]
struct OpState {
    work: Option<Work>,
    dependents: Vec<Arc<Op>>,
    waiters: usize,
}

impl Op {
    /// Creates an op; it does not run before [`Op::release`].
    pub(crate) fn new(work: Option<Work>) -> Arc<Op> {
        Arc::new(Op {
            waiting: AtomicUsize::new(1),
            done: AtomicBool::new(false),
            finished: AtomicU64::new(0),
            state: Mutex::new(OpState {
                work,
                ..OpState::default()
            }),
            changed: Condvar::new(),
        })
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    /// The completion time; valid once the op is done.
    pub(crate) fn finished_at(&self) -> u64 {
        self.finished.load(Ordering::Acquire)
    }

    /// Adds a dependency on `other`.
    pub(crate) fn after(self: &Arc<Self>, other: &Arc<Op>) {
        let mut state = other.state.lock();
        if !other.is_done() {
            self.waiting.fetch_add(1, Ordering::AcqRel);
            state.dependents.push(self.clone());
        }
    }

    /// Whether the op has no unfinished dependencies, apart from its release.
    pub(crate) fn is_unblocked(&self) -> bool {
        self.waiting.load(Ordering::Acquire) == 1
    }

    /// Takes the work of an unreleased op, to be run by the caller.
    pub(crate) fn take_work(&self) -> Option<Work> {
        self.state.lock().work.take()
    }

    /// Releases the op: it runs as soon as its dependencies are done.
    pub(crate) fn release(self: Arc<Self>) {
        if self.waiting.fetch_sub(1, Ordering::AcqRel) == 1 {
            Self::start(self);
        }
    }

    /// Runs an op without unfinished dependencies; ops without work complete immediately and start their dependents.
    fn start(op: Arc<Op>) {
        let mut ready = vec![op];
        while let Some(op) = ready.pop() {
            if op.state.lock().work.is_some() {
                hand_over(op);
            } else {
                ready.append(&mut op.finish());
            }
        }
    }

    /// Marks the op done; returns the dependents that are ready to run.
    fn finish(&self) -> Vec<Arc<Op>> {
        self.finished.store(now(), Ordering::Release);
        let mut state = self.state.lock();
        self.done.store(true, Ordering::Release);
        let dependents = std::mem::take(&mut state.dependents);
        if state.waiters > 0 {
            self.changed.notify_all();
        }
        drop(state);
        dependents
            .into_iter()
            .filter(|d| d.waiting.fetch_sub(1, Ordering::AcqRel) == 1)
            .collect()
    }

    /// Runs the work on this thread, marks the op done, and continues with one ready dependent; the others go to other
    /// workers.
    fn run(self: Arc<Self>) {
        let mut current = Some(self);
        while let Some(op) = current.take() {
            if let Some(work) = op.take_work() {
                // The work reports failures to its context. A panic is a bug and must not terminate the thread.
                let _ = catch_unwind(AssertUnwindSafe(work));
            }
            let mut ready = op.finish();
            while let Some(op) = ready.pop() {
                if op.state.lock().work.is_none() {
                    ready.append(&mut op.finish());
                } else if let Some(other) = current.replace(op) {
                    hand_over(other);
                }
            }
        }
    }
}

struct Workers {
    queue: VecDeque<Arc<Op>>,
    idle: usize,
    total: usize,
}

static WORKERS: Mutex<Workers> = Mutex::new(Workers {
    queue: VecDeque::new(),
    idle: 0,
    total: 0,
});
static ARRIVED: Condvar = Condvar::new();
/// Maximum number of workers; further busy streams take turns.
const MAX_WORKERS: usize = 256;
/// How long an idle worker waits for work before it exits.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

fn hand_over(op: Arc<Op>) {
    let mut workers = WORKERS.lock();
    workers.queue.push_back(op);
    if workers.queue.len() <= workers.idle {
        ARRIVED.notify_one();
        return;
    }
    if workers.total >= MAX_WORKERS {
        return;
    }
    workers.total += 1;
    drop(workers);
    let spawned = std::thread::Builder::new()
        .name("cupyrite-stream".into())
        .stack_size(4 << 20)
        .spawn(worker);
    if spawned.is_err() {
        let mut workers = WORKERS.lock();
        workers.total -= 1;
        // If no thread can be created, the work runs here.
        if workers.total == 0
            && let Some(op) = workers.queue.pop_front()
        {
            drop(workers);
            op.run();
        }
    }
}

thread_local! {
    /// Whether the current thread is a worker.
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
}

fn worker() {
    IS_WORKER.set(true);
    let mut workers = WORKERS.lock();
    loop {
        if let Some(op) = workers.queue.pop_front() {
            drop(workers);
            op.run();
            workers = WORKERS.lock();
            continue;
        }
        workers.idle += 1;
        let timeout = ARRIVED.wait_for(&mut workers, IDLE_TIMEOUT);
        workers.idle -= 1;
        if timeout.timed_out() && workers.queue.is_empty() {
            workers.total -= 1;
            return;
        }
    }
}

type Hook = fn() -> Interrupt;
static HOOK: Mutex<Option<Hook>> = Mutex::new(None);

/// Sets a hook that a waiting thread calls about every 50 ms. The driver holds no lock during the call.
pub(crate) fn set_interrupt_hook(hook: fn() -> Interrupt) {
    *HOOK.lock() = Some(hook);
}

const HOOK_PERIOD: Duration = Duration::from_millis(50);
/// How long a wait spins before it sleeps.
const SPIN: Duration = Duration::from_micros(15);

/// Refuses a wait on a worker thread: a host function or callback that waits for a stream would deadlock. Calls that
/// change something before they wait check this first.
///
/// # Errors
/// `NOT_PERMITTED` on a worker thread.
pub(crate) fn check_may_wait() -> Res {
    if IS_WORKER.get() {
        return refuse(Code::NOT_PERMITTED, || {
            "a host function or callback cannot wait for work of the device".into()
        });
    }
    Ok(())
}

/// Takes back an op whose wait failed. Work that has not begun never runs; work in progress is waited for, because it
/// may use the caller's memory. Returns whether the work was taken back.
pub(crate) fn withdraw(op: &Op) -> bool {
    if op.take_work().is_some() {
        return true;
    }
    let mut state = op.state.lock();
    while !op.is_done() {
        state.waiters += 1;
        op.changed.wait(&mut state);
        state.waiters -= 1;
    }
    false
}

/// Waits until `op` is done.
///
/// # Errors
/// `LAUNCH_TIMEOUT` if the interrupt hook ended the wait (`op` may still be running), `NOT_PERMITTED` on a worker
/// thread.
pub(crate) fn wait(op: &Op, context: &Context) -> Res {
    if op.is_done() {
        return Ok(());
    }
    check_may_wait()?;
    let start = Instant::now();
    while start.elapsed() < SPIN {
        if op.is_done() {
            return Ok(());
        }
        std::hint::spin_loop();
    }
    loop {
        let deadline = Instant::now() + HOOK_PERIOD;
        let mut state = op.state.lock();
        while !op.is_done() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state.waiters += 1;
            op.changed.wait_for(&mut state, left);
            state.waiters -= 1;
        }
        drop(state);
        if op.is_done() {
            return Ok(());
        }
        let hook = *HOOK.lock();
        match hook.map_or(Interrupt::Continue, |interrupt| interrupt()) {
            Interrupt::Continue => {}
            Interrupt::EndWait => return Err(Code::LAUNCH_TIMEOUT),
            Interrupt::CancelWork => {
                context.interrupt();
                return Err(Code::LAUNCH_TIMEOUT);
            }
        }
    }
}
