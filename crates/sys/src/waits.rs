//! Counts the calls after which a wait has an effect even if the work is done.
//!
//! A successful query replaces a wait, with two exceptions, measured with driver 580: only waits (and a thread of the
//! driver, within 0.3 s) flush the output of `printf` in kernels, and only waits release freed memory of pools.
//! [`note`] counts the calls that make such a wait necessary: launches and frees.

use std::sync::atomic::{AtomicU32, Ordering};

static NOTED: AtomicU32 = AtomicU32::new(0);

/// Counts a call. Concurrent calls may count as one, which changes the number as well. A concurrent wait of another
/// thread may miss a call that is counted before it is made; the next wait then has its effect.
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
