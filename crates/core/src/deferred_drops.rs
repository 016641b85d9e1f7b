//! Values whose drop is deferred: until a lock is released, or because their thread must not call CUDA.
//!
//! Threads of the driver release values, and must not call CUDA. A thread that holds the lock of a graph must not run
//! destructors, which may call anything.

use std::any::Any;
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::fork::is_forked_child;

/// Values to drop.
static PENDING: Mutex<Vec<Box<dyn Any + Send>>> = Mutex::new(Vec::new());
/// Length of the list; avoids the lock if it is empty.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Whether a value waits for [`drop_pending`].
#[inline(always)]
pub(crate) fn are_pending() -> bool {
    COUNT.load(Ordering::Acquire) != 0
}

/// Drops a value in the next [`drop_pending`]. Calls nothing, so that any thread may call it under any lock.
///
/// A forked child keeps the value for the rest of its life, as it keeps what its parent had not dropped yet: a thread of the
/// parent may hold the list's lock, and the value may belong to the parent.
pub(crate) fn drop_later(value: Box<dyn Any + Send>) {
    if is_forked_child() {
        std::mem::forget(value);
        return;
    }
    let mut pending = PENDING.lock();
    pending.push(value);
    COUNT.store(pending.len(), Ordering::Release);
}

thread_local! {
    /// The number of [`DropsDeferred`] of the thread.
    static DEFERRED: Cell<usize> = const { Cell::new(0) };
}

/// While it lives, [`drop_pending`] drops nothing on this thread, which holds a lock.
pub(crate) struct DropsDeferred(PhantomData<*const ()>);

impl DropsDeferred {
    pub(crate) fn begin() -> DropsDeferred {
        DEFERRED.set(DEFERRED.get() + 1);
        DropsDeferred(PhantomData)
    }
}

impl Drop for DropsDeferred {
    fn drop(&mut self) {
        DEFERRED.set(DEFERRED.get() - 1);
    }
}

/// Whether this thread holds a lock under which nothing may be dropped.
pub(crate) fn are_drops_deferred() -> bool {
    DEFERRED.get() != 0
}

/// Drops what [`drop_later`] was given. Called without locks, except those with [`DropsDeferred`]: destructors may call
/// anything.
#[inline]
pub(crate) fn drop_pending() {
    if are_pending() && !are_drops_deferred() && !is_forked_child() {
        drop_all();
    }
}

#[cold]
fn drop_all() {
    let pending = {
        let mut pending = PENDING.lock();
        COUNT.store(0, Ordering::Release);
        std::mem::take(&mut *pending)
    };
    drop(pending);
}
