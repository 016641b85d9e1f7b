//! Asynchronous work: operations with dependencies, the threads that run them, and waiting for them.
//!
//! An [`Op`] runs when every op it depends on is done. A stream is nothing but the habit of making each op depend on the
//! one before it; events and the default stream's rules are further dependencies. Threads are started as needed and
//! never joined: a process may exit while kernels run.

use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::driver::context::Context;
use crate::driver::entry::Res;
use crate::driver::entry::errors::Code;

/// What an op does when its turn comes.
pub(crate) type Work = Box<dyn FnOnce() + Send>;

/// A piece of work in a stream.
pub(crate) struct Op {
    /// Ops still to be waited for, plus one while it is being set up.
    waiting: AtomicUsize,
    done: AtomicBool,
    /// When it was finished, in nanoseconds since [`now`]'s origin.
    finished: AtomicU64,
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Default)]
struct Inner {
    work: Option<Work>,
    dependents: Vec<Arc<Op>>,
    waiters: usize,
}

/// Nanoseconds since the first call.
pub(crate) fn now() -> u64 {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    ORIGIN.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

impl Op {
    /// An op that waits for `dependencies`; nothing happens until [`Op::release`].
    pub(crate) fn new(work: Option<Work>) -> Arc<Op> {
        Arc::new(Op {
            waiting: AtomicUsize::new(1),
            done: AtomicBool::new(false),
            finished: AtomicU64::new(0),
            inner: Mutex::new(Inner {
                work,
                ..Inner::default()
            }),
            changed: Condvar::new(),
        })
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    /// When it was finished; meaningful once it is.
    pub(crate) fn finished_at(&self) -> u64 {
        self.finished.load(Ordering::Acquire)
    }

    /// Makes `self` wait for `other`.
    pub(crate) fn after(self: &Arc<Self>, other: &Arc<Op>) {
        let mut inner = other.inner.lock();
        if !other.is_done() {
            self.waiting.fetch_add(1, Ordering::AcqRel);
            inner.dependents.push(self.clone());
        }
    }

    /// Whether nothing but its own set-up holds it back.
    pub(crate) fn is_unblocked(&self) -> bool {
        self.waiting.load(Ordering::Acquire) == 1
    }

    /// Takes the work out of an op that is not yet released, to be done by the caller.
    pub(crate) fn take_work(&self) -> Option<Work> {
        self.inner.lock().work.take()
    }

    /// Ends the set-up: the op runs as soon as its dependencies are done.
    pub(crate) fn release(self: Arc<Self>) {
        if self.waiting.fetch_sub(1, Ordering::AcqRel) == 1 {
            Self::start(self);
        }
    }

    /// Starts an op that waits for nothing any more, and everything that becomes free by ops without work.
    fn start(op: Arc<Op>) {
        let mut ready = vec![op];
        while let Some(op) = ready.pop() {
            if op.inner.lock().work.is_some() {
                hand_over(op);
            } else {
                ready.append(&mut op.finish());
            }
        }
    }

    /// Marks the op done; returns the ops that this set free.
    fn finish(&self) -> Vec<Arc<Op>> {
        self.finished.store(now(), Ordering::Release);
        let mut inner = self.inner.lock();
        self.done.store(true, Ordering::Release);
        let dependents = std::mem::take(&mut inner.dependents);
        if inner.waiters > 0 {
            self.changed.notify_all();
        }
        drop(inner);
        dependents
            .into_iter()
            .filter(|d| d.waiting.fetch_sub(1, Ordering::AcqRel) == 1)
            .collect()
    }

    /// Does the work on this thread and marks the op done, then goes on with one that this set free; others go to other
    /// threads.
    fn run(self: Arc<Self>) {
        let mut current = Some(self);
        while let Some(op) = current.take() {
            if let Some(work) = op.take_work() {
                // The work reports its own failures to its context; a panic is a bug that must not take the thread along.
                let _ = catch_unwind(AssertUnwindSafe(work));
            }
            let mut ready = op.finish();
            while let Some(op) = ready.pop() {
                if op.inner.lock().work.is_none() {
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
/// Streams beyond this many busy ones take turns.
const MOST_WORKERS: usize = 256;
/// How long a worker without work stays.
const PATIENCE: Duration = Duration::from_secs(10);

fn hand_over(op: Arc<Op>) {
    let mut workers = WORKERS.lock();
    workers.queue.push_back(op);
    if workers.queue.len() <= workers.idle {
        ARRIVED.notify_one();
        return;
    }
    if workers.total >= MOST_WORKERS {
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
        // No thread to be had at all: do the work here, as slow as it may be.
        if workers.total == 0
            && let Some(op) = workers.queue.pop_front()
        {
            drop(workers);
            op.run();
        }
    }
}

thread_local! {
    /// Whether this is one of the threads that run streams.
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
        let timeout = ARRIVED.wait_for(&mut workers, PATIENCE);
        workers.idle -= 1;
        if timeout.timed_out() && workers.queue.is_empty() {
            workers.total -= 1;
            return;
        }
    }
}

type Hook = fn() -> bool;
static HOOK: Mutex<Option<Hook>> = Mutex::new(None);

/// Has `hook` called about every 50 ms by a thread that waits for the device. When it answers true, the running kernels of
/// the context are cancelled, the context fails with `CUDA_ERROR_LAUNCH_TIMEOUT` and the wait ends. No lock of the driver
/// is held during the call.
pub fn set_interrupt_hook(hook: fn() -> bool) {
    *HOOK.lock() = Some(hook);
}

const HOOK_PERIOD: Duration = Duration::from_millis(50);
/// How long a wait spins before it sleeps.
const SPIN: Duration = Duration::from_micros(15);

/// Waits until `op` is done.
///
/// # Errors
/// `LAUNCH_TIMEOUT` if the interrupt hook asked for it; `op` may then still be running. `NOT_PERMITTED` to a callback.
pub(crate) fn wait(op: &Op, context: &Context) -> Res {
    if op.is_done() {
        return Ok(());
    }
    // A stream's callback that waits for a stream would wait for itself.
    if IS_WORKER.get() {
        return Err(Code::NOT_PERMITTED);
    }
    let start = Instant::now();
    while start.elapsed() < SPIN {
        if op.is_done() {
            return Ok(());
        }
        std::hint::spin_loop();
    }
    loop {
        let deadline = Instant::now() + HOOK_PERIOD;
        let mut inner = op.inner.lock();
        while !op.is_done() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            inner.waiters += 1;
            op.changed.wait_for(&mut inner, left);
            inner.waiters -= 1;
        }
        drop(inner);
        if op.is_done() {
            return Ok(());
        }
        let hook = *HOOK.lock();
        if hook.is_some_and(|interrupted| interrupted()) {
            context.interrupt();
            return Err(Code::LAUNCH_TIMEOUT);
        }
    }
}
