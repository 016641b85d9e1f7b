//! Small caches of facts about Python objects, such as classes and dtypes.

use std::cell::UnsafeCell;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::ffi;
use pyo3::prelude::*;

use crate::cpython;

/// Facts about the `N` most recently inserted objects. Holds references, so that an address identifies an object.
///
/// Callers are attached. With a GIL that suffices, since lookup and insertion call no Python code; without a GIL a lock
/// is used, which costs more than the lookup.
pub struct RecentCache<V, const N: usize> {
    rows: UnsafeCell<Rows<V, N>>,
    lock: Mutex<()>,
}

// SAFETY: accessed with the GIL held, or else under the lock; values may be sent between threads.
unsafe impl<V: Send, const N: usize> Sync for RecentCache<V, N> {}

struct Rows<V, const N: usize> {
    rows: [Option<(Py<PyAny>, V)>; N],
    next: usize,
}

impl<V: Copy, const N: usize> RecentCache<V, N> {
    /// An empty cache.
    pub const fn new() -> RecentCache<V, N> {
        RecentCache {
            rows: UnsafeCell::new(Rows {
                rows: [const { None }; N],
                next: 0,
            }),
            lock: Mutex::new(()),
        }
    }

    #[inline(always)]
    fn locked(&self) -> Option<MutexGuard<'_, ()>> {
        (!cpython::GIL).then(|| self.lock.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The fact about an object, if cached.
    #[inline]
    pub fn get(&self, _py: Python<'_>, of: *mut ffi::PyObject) -> Option<V> {
        let _locked = self.locked();
        // SAFETY: exclusive by the GIL or the lock; the reference ends before it is released.
        let known = unsafe { &*self.rows.get() };
        for row in &known.rows {
            match row {
                Some((kept, value)) if std::ptr::eq(kept.as_ptr(), of) => return Some(*value),
                Some(_) => {}
                // Filled from the front.
                None => return None,
            }
        }
        None
    }

    /// Inserts a fact; evicts the oldest one.
    pub fn insert(&self, _py: Python<'_>, of: Py<PyAny>, value: V) {
        let previous = {
            let _locked = self.locked();
            // SAFETY: as above; calls no Python code.
            let known = unsafe { &mut *self.rows.get() };
            let place = known.next;
            known.next = (place + 1) % N;
            known.rows[place].replace((of, value))
        };
        // Dropped last: this may deallocate the object, which may call Python.
        drop(previous);
    }
}
