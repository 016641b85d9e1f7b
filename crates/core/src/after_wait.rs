//! A hook that runs after the host has waited for work.
//!
//! The driver notices at a wait that memory of a pool is free: deferred destruction of pools continues then. The hook keeps
//! contexts, streams and events from depending on pools.

use std::sync::OnceLock;

/// What the host has waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    /// The work of a stream, or the work before an event.
    ForStreamOrEvent,
    /// All work of a context.
    ForContext,
}

static HOOK: OnceLock<fn(Waited)> = OnceLock::new();

/// Sets the hook. There is one; later calls change nothing.
pub(crate) fn set_hook(hook: fn(Waited)) {
    let _ = HOOK.set(hook);
}

/// Runs the hook, if it is set.
#[inline]
pub(crate) fn run(waited: Waited) {
    if let Some(hook) = HOOK.get() {
        hook(waited);
    }
}
