//! How many hold on to something that another thread may close.

use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::prelude::*;

/// A count of holders, and whether the thing was closed: whoever is the last of them after that ends it.
///
/// Launches count their buffers, so this costs a few plain instructions: the thread is attached, which with the GIL means
/// that no other thread counts at the same time. Without the GIL the same steps are atomic ones.
#[derive(Debug)]
pub struct Uses(AtomicUsize);

/// Set once it was closed; undone only by who had it suspended.
const CLOSED: usize = 1;
/// What a holder adds.
const ONE: usize = 2;

impl Uses {
    /// Open, and held by nobody.
    pub const fn new() -> Uses {
        Uses(AtomicUsize::new(0))
    }

    /// One step, unless `next` has none; what was there before.
    #[inline(always)]
    fn step(
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
            // The GIL orders these steps, and is not let go of between the two halves of one.
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

    /// Whether it is open.
    #[inline(always)]
    pub fn is_open(&self) -> bool {
        self.0.load(Ordering::Acquire) & CLOSED == 0
    }

    /// Adds a holder; false, and nothing added, where it was closed.
    #[inline(always)]
    #[must_use]
    pub fn begin(&self, py: Python<'_>) -> bool {
        self.step(py, |uses| (uses & CLOSED == 0).then(|| uses + ONE))
            .is_ok()
    }

    /// Adds a holder to what somebody holds, and so cannot end meanwhile, also where it was closed.
    pub fn share(&self, py: Python<'_>) {
        // It always has a step.
        let _ = self.step(py, |uses| Some(uses + ONE));
    }

    /// Takes one holder away that [`Uses::begin`] added; true for the last one after it was closed, who has to end it.
    #[inline(always)]
    #[must_use]
    pub fn end(&self, py: Python<'_>) -> bool {
        // Who ends without having begun would be a mistake of this crate's: the count stays what it is.
        self.step(py, |uses| uses.checked_sub(ONE)) == Ok(ONE | CLOSED)
    }

    /// Closes it for a while, where nobody holds it and it is open; false where that is not so. Others find it closed until
    /// [`Uses::resume`].
    #[must_use]
    pub fn suspend(&self, py: Python<'_>) -> bool {
        self.step(py, |uses| (uses == 0).then_some(CLOSED)).is_ok()
    }

    /// Undoes [`Uses::suspend`].
    pub fn resume(&self, py: Python<'_>) {
        // Nobody can have begun meanwhile.
        let _ = self.step(py, |uses| Some(uses & !CLOSED));
    }

    /// Closes it, once; true where nobody holds it, so that who closes has to end it.
    #[must_use]
    pub fn close(&self, py: Python<'_>) -> bool {
        self.step(py, |uses| (uses & CLOSED == 0).then_some(uses | CLOSED)) == Ok(0)
    }
}
