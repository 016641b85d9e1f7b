//! Waits of streams for external semaphores.
//!
//! A wait occupies no worker thread: one thread watches all semaphores that streams wait for. It also ends the waits of
//! contexts that have failed or are being destroyed; the work behind such a wait is skipped.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::semaphore::{Operations, Semaphore};
use crate::driver::context::Context;
use crate::driver::stream::Stream;
use crate::driver::stream::queue::Op;

/// An op that is released when the wait is over, also if the code that should end the wait panics.
struct Gate {
    op: Arc<Op>,
    /// Kept until then.
    _keep: Arc<dyn Any + Send + Sync>,
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.op.clone().release();
    }
}

struct Wait {
    /// Semaphores that have not been signaled.
    open: Vec<(Arc<Semaphore>, u64)>,
    context: Arc<Context>,
    since: Instant,
    /// Since when the context is being destroyed and has no running work.
    idle_since: Option<Instant>,
    _gate: Gate,
}

/// How long no work of a context runs before its destruction ends its waits. Work in progress may signal.
const DESTRUCTION_GRACE: Duration = Duration::from_millis(50);
/// Bounds of the time between two looks at semaphores that other processes signal.
const SHORTEST: Duration = Duration::from_micros(50);
const LONGEST: Duration = Duration::from_millis(2);
/// How long the thread waits for another wait before it exits.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

impl Wait {
    fn is_over(&mut self) -> bool {
        if self.context.has_failed() {
            return true;
        }
        self.open
            .retain(|(semaphore, value)| !semaphore.acquire(*value));
        if self.open.is_empty() {
            return true;
        }
        if self.context.is_active() || self.context.runs_work() {
            self.idle_since = None;
            return false;
        }
        let since = *self.idle_since.get_or_insert_with(Instant::now);
        if since.elapsed() < DESTRUCTION_GRACE {
            return false;
        }
        self.context.skip_work();
        true
    }

    /// Time until the next look: a twentieth of the time that it has lasted.
    fn pause(&self) -> Duration {
        (self.since.elapsed() / 20).clamp(SHORTEST, LONGEST)
    }
}

struct Watch {
    waits: Vec<Wait>,
    /// Whether the thread runs.
    runs: bool,
}

static WATCH: Mutex<Watch> = Mutex::new(Watch {
    waits: Vec::new(),
    runs: false,
});
static CHANGED: Condvar = Condvar::new();

/// Makes the thread look at the semaphores at once, after one was signaled.
pub(super) fn notify() {
    CHANGED.notify_all();
}

fn watch() {
    let mut watch = WATCH.lock();
    loop {
        let mut finished = Vec::new();
        // In their order: of two waits for a binary semaphore, the first one ends first.
        for mut wait in std::mem::take(&mut watch.waits) {
            if wait.is_over() {
                finished.push(wait);
            } else {
                watch.waits.push(wait);
            }
        }
        if !finished.is_empty() {
            // Releases the gates, whose ops may start work.
            drop(watch);
            drop(finished);
            watch = WATCH.lock();
            continue;
        }
        match watch.waits.iter().map(Wait::pause).min() {
            Some(pause) => {
                CHANGED.wait_for(&mut watch, pause);
            }
            None => {
                let timeout = CHANGED.wait_for(&mut watch, IDLE_TIMEOUT);
                if timeout.timed_out() && watch.waits.is_empty() {
                    watch.runs = false;
                    return;
                }
            }
        }
    }
}

/// Adds a wait, unless it is over already. Its gate is released without the lock.
fn add(mut wait: Wait) {
    let mut watch = WATCH.lock();
    // Behind other waits: one of them may be for the same semaphore.
    if watch.waits.is_empty() && wait.is_over() {
        drop(watch);
        return;
    }
    if !watch.runs {
        let spawned = std::thread::Builder::new()
            .name("cupyrite-semaphores".into())
            .spawn(self::watch);
        if spawned.is_err() {
            drop(watch);
            // Occupies the worker.
            while !wait.is_over() {
                std::thread::sleep(wait.pause());
            }
            return;
        }
        watch.runs = true;
    }
    watch.waits.push(wait);
    drop(watch);
    notify();
}

/// Creates an op that begins a wait, in an unreleased state. `end`, which must not have been released either, follows the
/// wait. `keep` is kept until then.
pub(in crate::driver) fn begin(
    operations: &Operations,
    context: &Arc<Context>,
    keep: Arc<dyn Any + Send + Sync>,
    end: &Arc<Op>,
) -> Arc<Op> {
    let op = Op::new(None);
    end.after(&op);
    let gate = Gate { op, _keep: keep };
    let (open, context) = (operations.pairs(), context.clone());
    Op::new(Some(Box::new(move || {
        add(Wait {
            open,
            context,
            since: Instant::now(),
            idle_since: None,
            _gate: gate,
        });
    })))
}

/// Enqueues a wait.
pub(super) fn enqueue(stream: &Arc<Stream>, operations: &Operations) {
    stream.enter_many(1, &[], |first, last, leave| {
        let start = begin(operations, &stream.context, leave, last);
        start.after(first);
        start.release();
    });
}
