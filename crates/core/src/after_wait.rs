//! What happens after the host has waited for work: deferred destruction of pools, and drops that were deferred.
//!
//! The driver notices at a wait that memory of a pool is free: deferred destruction of pools continues then. What launches of
//! graphs used is dropped. Hooks keep contexts, streams and events from depending on pools and graphs. Values that a thread of the driver released are dropped here as
//! well, because such a thread must not call CUDA.

use std::any::Any;
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use cupyrite_sys::waits;
use parking_lot::Mutex;

use crate::fork::is_forked_child;

/// The last wait of the driver for a stream or an event.
#[derive(Debug)]
pub(crate) struct LastWait(AtomicU32);

impl LastWait {
    /// No wait since the last call that [`waits::note`] counts.
    #[inline(always)]
    pub(crate) fn none() -> LastWait {
        LastWait(AtomicU32::new(waits::noted().wrapping_sub(1)))
    }

    /// Makes a wait of the driver.
    #[inline(always)]
    pub(crate) fn note<T, E>(&self, wait: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let noted = waits::noted();
        let waited = wait()?;
        self.0.store(noted, Ordering::Relaxed);
        Ok(waited)
    }

    /// Whether another wait would have no effect if the work is done: nothing was noted since, and nothing is deferred until
    /// a wait.
    #[inline(always)]
    pub(crate) fn suffices(&self) -> bool {
        self.0.load(Ordering::Relaxed) == waits::noted()
            && COUNT.load(Ordering::Acquire) == 0
            && HOOKS.iter().all(|hook| hook.get().is_none())
    }
}

/// What the host has waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    /// The work of a stream, or the work before an event.
    ForStreamOrEvent,
    /// All work of a context.
    ForContext {
        /// Its handle.
        context: usize,
        /// From [`begin`], before the wait.
        number: u64,
    },
}

/// The receiver of a hook.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Listener {
    /// Deferred destruction of pools.
    Pools,
    /// Content of graphs that launches used.
    Graphs,
}

/// By [`Listener`].
static HOOKS: [OnceLock<fn(Waited)>; 2] = [const { OnceLock::new() }; 2];

/// The number of the next wait for a context.
static NEXT: AtomicU64 = AtomicU64::new(1);
/// By context: the highest number of a completed wait.
static COMPLETED: Mutex<Vec<(usize, u64)>> = Mutex::new(Vec::new());

/// Values to drop.
static PENDING: Mutex<Vec<Box<dyn Any + Send>>> = Mutex::new(Vec::new());
/// Length of the list; avoids the lock if it is empty.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Sets a hook. Each listener has one; later calls change nothing.
pub(crate) fn set_hook(listener: Listener, hook: fn(Waited)) {
    let _ = HOOKS[listener as usize].set(hook);
}

/// A number for a wait that begins now. Numbers of later waits are higher.
pub(crate) fn begin() -> u64 {
    NEXT.fetch_add(1, Ordering::SeqCst)
}

/// Runs the hooks that are set, and drops what [`drop_later`] was given.
#[inline]
pub(crate) fn run(waited: Waited) {
    if let Waited::ForContext { context, number } = waited {
        complete(context, number);
    }
    for hook in HOOKS.iter().filter_map(OnceLock::get) {
        hook(waited);
    }
    drop_pending();
}

fn complete(context: usize, number: u64) {
    let mut completed = COMPLETED.lock();
    match completed.iter_mut().find(|entry| entry.0 == context) {
        Some(entry) => entry.1 = entry.1.max(number),
        None => completed.push((context, number)),
    }
}

/// Whether the host has waited for a context, in a wait that began after `since` of [`begin`].
pub(crate) fn has_waited(context: usize, since: u64) -> bool {
    let completed = COMPLETED.lock();
    completed
        .iter()
        .any(|entry| entry.0 == context && entry.1 > since)
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
    if COUNT.load(Ordering::Acquire) != 0 && !are_drops_deferred() && !is_forked_child() {
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
