//! What follows when the host has synchronised with work.
//!
//! The driver notices at a wait that memory of a pool is free: deferred destruction of pools continues then, and what
//! launches of graphs used is dropped. Hooks keep contexts, streams and events from depending on pools and graphs.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use cupyrite_sys::waits;
use parking_lot::Mutex;

use crate::deferred_drops;

/// The last wait of the driver for a stream or an event.
#[derive(Debug)]
pub(crate) struct LastSynchronization(AtomicU32);

impl LastSynchronization {
    /// No wait since the last call that [`waits::note`] counts.
    #[inline(always)]
    pub(crate) fn none() -> LastSynchronization {
        LastSynchronization(AtomicU32::new(waits::noted().wrapping_sub(1)))
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
            && !deferred_drops::are_pending()
            && HOOKS.iter().all(|hook| hook.get().is_none())
    }
}

/// What the host has waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Synchronized {
    /// The work of a stream, or the work before an event.
    StreamOrEvent,
    /// All work of a context.
    Context {
        /// Its handle.
        context: usize,
        /// From [`begin_context_wait`], before the wait.
        number: u64,
    },
}

/// What sets a hook.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HookOwner {
    /// Deferred destruction of pools.
    Pools,
    /// Content of graphs that launches used.
    Graphs,
}

/// By [`HookOwner`].
static HOOKS: [OnceLock<fn(Synchronized)>; 2] = [const { OnceLock::new() }; 2];

/// The number of the next wait for a context.
static NEXT: AtomicU64 = AtomicU64::new(1);
/// By context: the highest number of a completed wait.
static COMPLETED: Mutex<Vec<(usize, u64)>> = Mutex::new(Vec::new());

/// Sets a hook. Each owner has one; later calls change nothing.
pub(crate) fn set_hook(owner: HookOwner, hook: fn(Synchronized)) {
    let _ = HOOKS[owner as usize].set(hook);
}

/// A number for a wait that begins now. Numbers of later waits are higher.
pub(crate) fn begin_context_wait() -> u64 {
    NEXT.fetch_add(1, Ordering::SeqCst)
}

/// Runs the hooks that are set, and drops what [`deferred_drops::drop_later`] was given.
#[inline]
pub(crate) fn run(waited: Synchronized) {
    if let Synchronized::Context { context, number } = waited {
        complete(context, number);
    }
    for hook in HOOKS.iter().filter_map(OnceLock::get) {
        hook(waited);
    }
    deferred_drops::drop_pending();
}

fn complete(context: usize, number: u64) {
    let mut completed = COMPLETED.lock();
    match completed.iter_mut().find(|entry| entry.0 == context) {
        Some(entry) => entry.1 = entry.1.max(number),
        None => completed.push((context, number)),
    }
}

/// Whether the host has waited for a context, in a wait that began after `since` of [`begin_context_wait`].
pub(crate) fn has_waited(context: usize, since: u64) -> bool {
    let completed = COMPLETED.lock();
    completed
        .iter()
        .any(|entry| entry.0 == context && entry.1 > since)
}
