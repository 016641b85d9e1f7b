//! Pin counts of closable objects.

use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::prelude::*;

/// A pin count and a closed flag: the last unpin of a closed object releases it.
///
/// Launches pin their buffers, so a pin is a few plain instructions. Callers are attached; with the GIL no other thread
/// counts concurrently. Without the GIL the operations are atomic.
#[derive(Debug)]
pub struct PinCount(AtomicUsize);

/// Set by `close` and `close_if_unpinned`; cleared only by `reopen`.
const CLOSED: usize = 1;
/// Increment per pin.
const PIN: usize = 2;

impl PinCount {
    /// Open, without pins.
    pub const fn new() -> PinCount {
        PinCount(AtomicUsize::new(0))
    }

    /// Updates the count unless `next` returns `None`; returns the previous value.
    #[inline(always)]
    fn update(
        &self,
        _attached: Python<'_>,
        next: impl Fn(usize) -> Option<usize>,
    ) -> Result<usize, usize> {
        #[cfg(Py_GIL_DISABLED)]
        return self
            .0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
        #[cfg(not(Py_GIL_DISABLED))]
        {
            // The GIL makes the load and the store atomic: the thread stays attached between them.
            let before = self.0.load(Ordering::Relaxed);
            match next(before) {
                Some(after) => {
                    self.0.store(after, Ordering::Relaxed);
                    Ok(before)
                }
                None => Err(before),
            }
        }
    }

    /// Whether the object is open.
    #[inline(always)]
    pub fn is_open(&self) -> bool {
        self.0.load(Ordering::Acquire) & CLOSED == 0
    }

    /// Adds a pin; false, without a pin, if closed.
    #[inline(always)]
    #[must_use]
    pub fn try_pin(&self, py: Python<'_>) -> bool {
        self.update(py, |pins| (pins & CLOSED == 0).then(|| pins + PIN))
            .is_ok()
    }

    /// Adds a pin to an object that is already pinned, also if it was closed.
    pub fn pin_again(&self, py: Python<'_>) {
        // Cannot fail.
        let _ = self.update(py, |pins| Some(pins + PIN));
    }

    /// Releases a pin; true for the last pin of a closed object, which the caller must release.
    #[inline(always)]
    #[must_use]
    pub fn unpin(&self, py: Python<'_>) -> bool {
        // An unpin without a pin would be a bug: the count stays unchanged.
        self.update(py, |pins| pins.checked_sub(PIN)) == Ok(PIN | CLOSED)
    }

    /// Closes an open object without pins; otherwise returns false. Undone by [`PinCount::reopen`].
    #[must_use]
    pub fn close_if_unpinned(&self, py: Python<'_>) -> bool {
        self.update(py, |pins| (pins == 0).then_some(CLOSED))
            .is_ok()
    }

    /// Undoes [`PinCount::close_if_unpinned`].
    pub fn reopen(&self, py: Python<'_>) {
        // No pin can have been added meanwhile.
        let _ = self.update(py, |pins| Some(pins & !CLOSED));
    }

    /// Closes the object; true if it was open and has no pins, so that the caller must release it.
    #[must_use]
    pub fn close(&self, py: Python<'_>) -> bool {
        self.update(py, |pins| (pins & CLOSED == 0).then_some(pins | CLOSED)) == Ok(0)
    }
}
