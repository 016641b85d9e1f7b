//! Closable cells of wrapper objects, and detached destruction of driver objects.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;

use cupyrite::{Event, MemoryPool, Stream, UniqueEvent, UniquePool, UniqueStream};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::cpython;
use crate::cpython::gil_lock::GilLock;

/// A cell that can be closed while other threads use its object: each thread works on a clone, and the last clone
/// releases the driver object.
#[derive(Debug)]
pub struct Closable<T>(GilLock<Option<T>>);

impl<T> Closable<T> {
    /// A cell with this object.
    #[inline]
    pub fn new(value: T) -> Closable<T> {
        Closable(GilLock::new(Some(value)))
    }

    /// Closes the cell and returns its object; `None` if it was already closed. Later accesses fail.
    #[inline]
    pub fn close(&self, py: Python<'_>) -> Option<T> {
        self.0.lock(py).take()
    }

    /// As [`Closable::close`], for the destructor of the enclosing object.
    #[inline]
    pub fn take(&mut self) -> Option<T> {
        self.0.get_mut().take()
    }

    /// Whether the cell was closed.
    pub fn is_closed(&self, py: Python<'_>) -> bool {
        self.0.lock(py).is_none()
    }

    /// Applies a function to the object; `None` if closed. `read` is short and calls no foreign code.
    #[inline(always)]
    pub fn read<R>(&self, py: Python<'_>, read: impl FnOnce(&T) -> R) -> Option<R> {
        self.0.lock(py).as_ref().map(read)
    }

    /// As [`Closable::read`], with mutable access.
    #[inline(always)]
    pub fn read_mut<R>(&self, py: Python<'_>, update: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.0.lock(py).as_mut().map(update)
    }
}

impl<T> Closable<T> {
    /// As [`Closable::read`], for the garbage collector, which must not wait: also `None` if the cell is locked.
    pub fn peek<R>(&self, read: impl FnOnce(&T) -> R) -> Option<R> {
        // SAFETY: the collector runs on an attached thread.
        let py = unsafe { Python::assume_attached() };
        self.0.try_lock(py)?.as_ref().map(read)
    }
}

/// Drops a driver object without the GIL, in the destructor of a Python object.
///
/// Destruction waits while another thread is in a call that holds the driver's lock (`cuMemFree` waits for the device,
/// a launch for room in its queue), and that call may wait for a host function that needs the GIL.
///
/// `value` contains no Python objects.
#[inline]
pub fn drop_detached<T>(value: T) {
    // SAFETY: destructors of Python objects run attached, and no Python object is touched until the thread is attached
    // again. Dropping driver objects does not panic: errors are logged.
    unsafe { cpython::detached(|| drop(value)) };
}

/// A value dropped by [`drop_detached`], such as loaded code. Part of a Python object; contains no Python objects.
#[derive(Debug)]
pub struct DropDetached<T: Send>(ManuallyDrop<T>);

impl<T: Send> DropDetached<T> {
    /// Wraps a value.
    pub fn new(value: T) -> DropDetached<T> {
        DropDetached(ManuallyDrop::new(value))
    }
}

impl<T: Send> Deref for DropDetached<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Send> Drop for DropDetached<T> {
    fn drop(&mut self) {
        // SAFETY: taken once; not accessed afterwards.
        drop_detached(unsafe { ManuallyDrop::take(&mut self.0) });
    }
}

/// Handle whose last clone destroys the driver object.
pub trait SharedHandle {
    /// The driver object to destroy; contains no Python objects.
    type Unique;

    /// Drops a clone; returns the driver object if it was the last clone.
    fn into_unique(self) -> Option<Self::Unique>;
}

impl SharedHandle for Stream {
    type Unique = UniqueStream;

    #[inline(always)]
    fn into_unique(self) -> Option<UniqueStream> {
        Stream::into_unique(self)
    }
}

impl SharedHandle for Event {
    type Unique = UniqueEvent;

    #[inline(always)]
    fn into_unique(self) -> Option<UniqueEvent> {
        Event::into_unique(self)
    }
}

impl SharedHandle for MemoryPool {
    type Unique = UniquePool;

    fn into_unique(self) -> Option<UniquePool> {
        MemoryPool::into_unique(self)
    }
}

/// A clone lent for the duration of a call. If it is the last clone, because the object was closed meanwhile, the
/// driver object is destroyed by [`drop_detached`].
///
/// Stays on its thread, which is attached when it is dropped.
#[derive(Debug)]
pub struct Lent<'py, T: SharedHandle> {
    clone: ManuallyDrop<T>,
    attached: PhantomData<Python<'py>>,
}

// SAFETY: sharing only exposes a reference to the clone.
unsafe impl<T: SharedHandle + Sync> Sync for Lent<'_, T> {}

impl<'py, T: SharedHandle> Lent<'py, T> {
    /// Lends a clone.
    #[inline(always)]
    pub fn new(_attached: Python<'py>, clone: T) -> Lent<'py, T> {
        Lent {
            clone: ManuallyDrop::new(clone),
            attached: PhantomData,
        }
    }
}

impl<T: SharedHandle> Deref for Lent<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.clone
    }
}

impl<T: SharedHandle> Drop for Lent<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: taken once; not accessed afterwards.
        if let Some(unique) = unsafe { ManuallyDrop::take(&mut self.clone) }.into_unique() {
            // Another thread has closed the object meanwhile.
            cupyrite::hint::cold_path();
            drop_detached(unique);
        }
    }
}

impl<T: Clone> Closable<T> {
    /// A clone of the object.
    ///
    /// # Errors
    ///
    /// `RuntimeError` naming `what` if the cell was closed.
    #[inline]
    pub fn get(&self, py: Python<'_>, what: &str) -> PyResult<T> {
        match &*self.0.lock(py) {
            Some(value) => Ok(value.clone()),
            None => Err(closed(what)),
        }
    }
}

/// Error for a closed object.
#[cold]
pub fn closed(what: &str) -> PyErr {
    PyRuntimeError::new_err(format!("this {what} was closed"))
}
