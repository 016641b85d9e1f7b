//! What was found out of objects that are asked about again and again: classes, types of elements.

use std::sync::{Mutex, PoisonError};

use pyo3::ffi;
use pyo3::prelude::*;

/// Facts of up to `N` objects, the latest ones. The objects are kept, so that no other one gets the address of one of them.
pub struct Recent<V, const N: usize>(Mutex<Rows<V, N>>);

struct Rows<V, const N: usize> {
    rows: [Option<(Py<PyAny>, V)>; N],
    next: usize,
}

impl<V: Copy, const N: usize> Recent<V, N> {
    /// Nothing is known yet.
    pub const fn new() -> Recent<V, N> {
        Recent(Mutex::new(Rows {
            rows: [const { None }; N],
            next: 0,
        }))
    }

    /// What is known of an object.
    #[inline]
    pub fn get(&self, of: *mut ffi::PyObject) -> Option<V> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .rows
            .iter()
            .flatten()
            .find(|(kept, _)| std::ptr::eq(kept.as_ptr(), of))
            .map(|&(_, value)| value)
    }

    /// Remembers it.
    pub fn put(&self, of: Py<PyAny>, value: V) {
        let former = {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let place = known.next;
            known.next = (place + 1) % N;
            known.rows[place].replace((of, value))
        };
        // Without the lock: an object that nobody else has ends here, which may call anything.
        drop(former);
    }
}
