//! What was found out of objects that are asked about again and again: classes, types of elements.

use std::cell::UnsafeCell;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::ffi;
use pyo3::prelude::*;

use crate::cpython;

/// Facts of up to `N` objects, the latest ones. The objects are kept, so that no other one gets the address of one of them.
///
/// Who asks is attached. With a GIL that is enough: neither looking nor putting calls anything meanwhile. Without one there is
/// a lock, which would cost more than the look.
pub struct Recent<V, const N: usize> {
    rows: UnsafeCell<Rows<V, N>>,
    lock: Mutex<()>,
}

// SAFETY: used with the GIL held, or else under the lock; the values go from one thread to another.
unsafe impl<V: Send, const N: usize> Sync for Recent<V, N> {}

struct Rows<V, const N: usize> {
    rows: [Option<(Py<PyAny>, V)>; N],
    next: usize,
}

impl<V: Copy, const N: usize> Recent<V, N> {
    /// Nothing is known yet.
    pub const fn new() -> Recent<V, N> {
        Recent {
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

    /// What is known of an object.
    #[inline]
    pub fn get(&self, _py: Python<'_>, of: *mut ffi::PyObject) -> Option<V> {
        let _locked = self.locked();
        // SAFETY: attached or locked, and nobody else is; the reference ends before that does.
        let known = unsafe { &*self.rows.get() };
        for row in &known.rows {
            match row {
                Some((kept, value)) if std::ptr::eq(kept.as_ptr(), of) => return Some(*value),
                Some(_) => {}
                // They are filled from the front.
                None => return None,
            }
        }
        None
    }

    /// Remembers it.
    pub fn put(&self, _py: Python<'_>, of: Py<PyAny>, value: V) {
        let former = {
            let _locked = self.locked();
            // SAFETY: as above; nothing here calls Python.
            let known = unsafe { &mut *self.rows.get() };
            let place = known.next;
            known.next = (place + 1) % N;
            known.rows[place].replace((of, value))
        };
        // When all is done: an object that nobody else has ends here, which may call anything.
        drop(former);
    }
}
