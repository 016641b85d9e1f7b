//! Where a shell keeps its object until it is closed, and how it is let go.

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::{Mutex, MutexGuard};

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;

/// An object that can be closed while other threads use it: each of them works on a clone of its own, and the last
/// clone releases what is behind it.
#[derive(Debug)]
pub struct Slot<T>(Mutex<Option<T>>);

impl<T> Slot<T> {
    /// A slot with this object.
    pub fn new(value: T) -> Slot<T> {
        Slot(Mutex::new(Some(value)))
    }

    fn lock(&self) -> MutexGuard<'_, Option<T>> {
        // Held for a few instructions, and nothing that happens meanwhile can panic.
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Takes the object out: whoever asks from now on is told that it was closed. None where it was closed before.
    pub fn close(&self) -> Option<T> {
        self.lock().take()
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.lock().is_none()
    }

    /// A value computed from the object while it is there; None where it was closed. `read` is short and calls nobody.
    pub fn read<R>(&self, read: impl FnOnce(&T) -> R) -> Option<R> {
        self.lock().as_ref().map(read)
    }
}

impl<T> Slot<T> {
    /// As [`Slot::read`], for the collector, which must not wait: None also where the slot is in use.
    pub fn peek<R>(&self, read: impl FnOnce(&T) -> R) -> Option<R> {
        self.0.try_lock().ok()?.as_ref().map(read)
    }
}

/// Drops something of the driver's from the destructor of a Python object, without the GIL.
///
/// Destroying waits while another thread is inside a call that holds the driver's lock (`cuMemFree` waits for the device,
/// a launch for room in its queue), and that call may wait for a host function that needs the GIL.
///
/// `value` holds no Python objects.
pub fn drop_detached<T>(value: T) {
    // SAFETY: destructors of Python objects run attached, and nothing of Python's is touched until the thread is again.
    // Dropping what the driver made does not panic: its errors go to `log`.
    unsafe {
        let state = ffi::PyEval_SaveThread();
        drop(value);
        ffi::PyEval_RestoreThread(state);
    }
}

/// A value that ends as by [`drop_detached`], as unloading code should. It is part of a Python object, and holds none.
#[derive(Debug)]
pub struct Unlocked<T: Send>(ManuallyDrop<T>);

impl<T: Send> Unlocked<T> {
    /// Such a value.
    pub fn new(value: T) -> Unlocked<T> {
        Unlocked(ManuallyDrop::new(value))
    }
}

impl<T: Send> Deref for Unlocked<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Send> Drop for Unlocked<T> {
    fn drop(&mut self) {
        // SAFETY: taken once, here; nothing looks at it afterwards.
        drop_detached(unsafe { ManuallyDrop::take(&mut self.0) });
    }
}

impl<T: Clone> Slot<T> {
    /// A clone of the object.
    ///
    /// # Errors
    ///
    /// `RuntimeError` that says that the `what` was closed.
    #[inline]
    pub fn get(&self, what: &str) -> PyResult<T> {
        match &*self.lock() {
            Some(value) => Ok(value.clone()),
            None => Err(closed(what)),
        }
    }
}

/// What is raised for objects that were closed.
#[cold]
pub fn closed(what: &str) -> PyErr {
    PyRuntimeError::new_err(format!("this {what} was closed"))
}
