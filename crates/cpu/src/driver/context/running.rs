//! Work of a context that its device runs at the moment: kernels, copies, fills and other operations on memory.
//!
//! A sticky error means that the context cannot be used again, so the program may free its memory when a call returns the
//! error. No call returns it before the running work has finished; queued work is skipped. Host functions are program code
//! and do not count.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Condvar, Mutex};

/// Counts the running work of a context.
#[derive(Default)]
pub(super) struct RunningWork {
    count: AtomicUsize,
    lock: Mutex<()>,
    finished: Condvar,
}

thread_local! {
    /// Number of pieces of work that this thread runs, one inside the other.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// One piece of running work.
pub(crate) struct WorkGuard<'a>(&'a RunningWork);

impl RunningWork {
    /// Begins a piece of work. The caller checks afterwards whether the context has failed: either it sees the failure,
    /// or [`RunningWork::wait`] sees the work.
    pub(super) fn begin(&self) -> WorkGuard<'_> {
        self.count.fetch_add(1, Ordering::SeqCst);
        DEPTH.set(DEPTH.get() + 1);
        WorkGuard(self)
    }

    /// Whether work runs.
    pub(super) fn is_busy(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }

    /// Waits until no work runs. Returns at once within a piece of work.
    pub(super) fn wait(&self) {
        if DEPTH.get() > 0 {
            return;
        }
        let mut lock = self.lock.lock();
        while self.count.load(Ordering::SeqCst) > 0 {
            self.finished.wait(&mut lock);
        }
    }
}

impl Drop for WorkGuard<'_> {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
        if self.0.count.fetch_sub(1, Ordering::SeqCst) == 1 {
            let _lock = self.0.lock.lock();
            self.0.finished.notify_all();
        }
    }
}
