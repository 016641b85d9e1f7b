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
pub struct GilLock<T> {
    locked: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the lock gives one thread at a time access to the value, and `T` is `Send`.
unsafe impl<T: Send> Sync for GilLock<T> {}

impl<T> GilLock<T> {
    /// An unlocked value.
    pub const fn new(value: T) -> GilLock<T> {
        GilLock {
            locked: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    #[inline(always)]
    fn try_acquire(&self) -> bool {
        #[cfg(Py_GIL_DISABLED)]
        return !self.locked.swap(true, Ordering::Acquire);
        #[cfg(not(Py_GIL_DISABLED))]
        {
            // The GIL makes these two steps atomic: the thread stays attached between them.
            let free = !self.locked.load(Ordering::Relaxed);
            if free {
                self.locked.store(true, Ordering::Relaxed);
            }
            free
        }
    }

    /// Locks the value.
    #[inline(always)]
    pub fn lock<'a>(&'a self, py: Python<'a>) -> GilLockGuard<'a, T> {
        if !self.try_acquire() {
            self.wait(py);
        }
        GilLockGuard {
            lock: self,
            attached: PhantomData,
        }
    }

    #[cold]
    fn wait(&self, py: Python<'_>) {
        while !self.try_acquire() {
            py.detach(std::thread::yield_now);
        }
    }

    /// Locks the value if it is unlocked.
    #[inline]
    pub fn try_lock<'a>(&'a self, _attached: Python<'a>) -> Option<GilLockGuard<'a, T>> {
        self.try_acquire().then_some(GilLockGuard {
            lock: self,
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
pub struct GilLockGuard<'a, T> {
    lock: &'a GilLock<T>,
    attached: PhantomData<Python<'a>>,
}

impl<T> Deref for GilLockGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: this guard has set the flag, so no other reference exists.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for GilLockGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; the guard is borrowed mutably.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for GilLockGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.lock.locked.store(false, Ordering::Release);
    }
}
