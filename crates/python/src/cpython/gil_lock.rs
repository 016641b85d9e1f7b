//! Mutex for state inside Python objects. With the GIL it is a flag check; without the GIL, an atomic exchange.

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

/// Mutex that only attached threads lock.
///
/// With the GIL, no other thread runs while the holder is attached. If the holder detaches nevertheless (the driver may
/// call Python back), the flag is set and other threads wait. Without the GIL the flag is set by an atomic exchange.
/// Critical sections are a few instructions that neither panic nor call Python.
#[derive(Debug, Default)]
pub struct Held<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: one thread at a time accesses the value, which can be sent between threads.
unsafe impl<T: Send> Sync for Held<T> {}

impl<T> Held<T> {
    /// An unlocked value.
    pub const fn new(value: T) -> Held<T> {
        Held {
            taken: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    #[inline(always)]
    fn take(&self) -> bool {
        #[cfg(Py_GIL_DISABLED)]
        return !self.taken.swap(true, Ordering::Acquire);
        #[cfg(not(Py_GIL_DISABLED))]
        {
            // The GIL makes these two steps atomic: the thread stays attached between them.
            let free = !self.taken.load(Ordering::Relaxed);
            if free {
                self.taken.store(true, Ordering::Relaxed);
            }
            free
        }
    }

    /// Locks the value.
    #[inline(always)]
    pub fn lock<'a>(&'a self, py: Python<'a>) -> Guard<'a, T> {
        if !self.take() {
            self.wait(py);
        }
        Guard {
            held: self,
            attached: PhantomData,
        }
    }

    #[cold]
    fn wait(&self, py: Python<'_>) {
        while !self.take() {
            py.detach(std::thread::yield_now);
        }
    }

    /// Locks the value if it is unlocked.
    #[inline]
    pub fn try_lock<'a>(&'a self, _attached: Python<'a>) -> Option<Guard<'a, T>> {
        self.take().then_some(Guard {
            held: self,
            attached: PhantomData,
        })
    }

    /// The value, without locking; requires `&mut self`.
    #[inline(always)]
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

/// Access to the value of a [`GilLock`]; not `Send`.
#[derive(Debug)]
pub struct Guard<'a, T> {
    held: &'a Held<T>,
    attached: PhantomData<Python<'a>>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: this guard has set the flag, so there is no other reference.
        unsafe { &*self.held.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.held.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.held.taken.store(false, Ordering::Release);
    }
}
