//! Where a shell keeps its object until it is closed.

use std::sync::{Mutex, MutexGuard};

use pyo3::exceptions::PyRuntimeError;
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
