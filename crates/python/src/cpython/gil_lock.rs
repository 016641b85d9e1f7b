//! A lock for what Python objects hold, which costs two plain instructions where the GIL is the lock.

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

/// A value that attached threads read and change, one at a time.
///
/// Whoever takes it is attached, so that with the GIL no other thread runs meanwhile; that one who has it lets go of the
/// GIL nevertheless (the driver may call Python back) is told by a flag, and the others wait. Without the GIL the flag is
/// taken by an atomic exchange. It is held for a few instructions that neither panic nor call Python.
#[derive(Debug, Default)]
pub struct Held<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: one thread at a time has the value, which may be sent from one to the next.
unsafe impl<T: Send> Sync for Held<T> {}

impl<T> Held<T> {
    /// A value that nobody has.
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
            // The GIL orders these two steps, and is not let go of between them.
            let free = !self.taken.load(Ordering::Relaxed);
            if free {
                self.taken.store(true, Ordering::Relaxed);
            }
            free
        }
    }

    /// The value, once nobody else has it.
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

    /// The value, unless somebody has it now.
    #[inline]
    pub fn try_lock<'a>(&'a self, _attached: Python<'a>) -> Option<Guard<'a, T>> {
        self.take().then_some(Guard {
            held: self,
            attached: PhantomData,
        })
    }

    /// The value of who is alone with it.
    #[inline(always)]
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

/// The value of a [`Held`], for as long as this lives; it stays on its thread.
#[derive(Debug)]
pub struct Guard<'a, T> {
    held: &'a Held<T>,
    attached: PhantomData<Python<'a>>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the flag is this guard's, so that nobody else refers to the value.
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
