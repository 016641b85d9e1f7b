//! Calls after which a wait of the driver has an effect although the work is done.
//!
//! A query that succeeds stands for a wait, with two exceptions, measured with driver 580: only waits (and a thread of the
//! driver, within 0.3 s) flush what kernels print, and only waits release freed memory of pools. [`note`] counts the calls
//! that make such a wait necessary: launches and frees.

use std::sync::atomic::{AtomicU32, Ordering};

static NOTED: AtomicU32 = AtomicU32::new(0);

/// Counts a call. Concurrent calls may count as one, which changes the number as well. A call that is counted before it is
/// made may be missed by a wait that another thread makes meanwhile: its effect is then that of the next wait.
#[inline(always)]
pub fn note() {
    NOTED.store(noted().wrapping_add(1), Ordering::Relaxed);
}

/// A number that changes with each noted call. A wait for work that is done has no effect if the number is the same as
/// before the last wait.
#[inline(always)]
pub fn noted() -> u32 {
    NOTED.load(Ordering::Relaxed)
}
