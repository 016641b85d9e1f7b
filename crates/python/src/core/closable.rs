//! Where a shell keeps its object until it is closed, and how it is let go.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;

use cupyrite::{Event, MemoryPool, Stream, UniqueEvent, UniquePool, UniqueStream};
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::cpython::gil_lock::Held;

/// An object that can be closed while other threads use it: each of them works on a clone of its own, and the last
/// clone releases what is behind it.
#[derive(Debug)]
pub struct Slot<T>(Held<Option<T>>);

impl<T> Slot<T> {
    /// A slot with this object.
    #[inline]
    pub fn new(value: T) -> Slot<T> {
        Slot(Held::new(Some(value)))
    }

    /// Takes the object out: whoever asks from now on is told that it was closed. None where it was closed before.
    #[inline]
    pub fn close(&self, py: Python<'_>) -> Option<T> {
        self.0.lock(py).take()
    }

    /// As [`Slot::close`], for the destructor of what the slot is part of.
    #[inline]
    pub fn end(&mut self) -> Option<T> {
        self.0.get_mut().take()
    }

    /// Whether it was closed, for who is alone with it.
    #[inline(always)]
    pub fn is_over(&mut self) -> bool {
        self.0.get_mut().is_none()
    }

    /// Whether it was closed.
    pub fn is_closed(&self, py: Python<'_>) -> bool {
        self.0.lock(py).is_none()
    }

    /// A value computed from the object while it is there; None where it was closed. `read` is short and calls nobody.
    #[inline(always)]
    pub fn read<R>(&self, py: Python<'_>, read: impl FnOnce(&T) -> R) -> Option<R> {
        self.0.lock(py).as_ref().map(read)
    }

    /// As [`Slot::read`], for what may change the object.
    #[inline(always)]
    pub fn change<R>(&self, py: Python<'_>, change: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.0.lock(py).as_mut().map(change)
    }
}

impl<T> Slot<T> {
    /// As [`Slot::read`], for the collector, which must not wait: None also where the slot is in use.
    pub fn peek<R>(&self, read: impl FnOnce(&T) -> R) -> Option<R> {
        // SAFETY: the collector runs on an attached thread.
        let py = unsafe { Python::assume_attached() };
        self.0.try_lock(py)?.as_ref().map(read)
    }
}

/// A thread without the GIL, also when what runs meanwhile panics.
///
/// It costs less than [`Python::detach`], which also sees to Python objects that are dropped meanwhile: here nothing of
/// Python's may be touched at all, not even dropped.
pub struct Detached {
    state: *mut ffi::PyThreadState,
}

impl Detached {
    /// Lets go of the GIL until this is dropped.
    ///
    /// # Safety
    ///
    /// Nothing of Python's is touched meanwhile.
    #[inline(always)]
    pub unsafe fn new(_attached: Python<'_>) -> Detached {
        // SAFETY: the thread is attached.
        let state = unsafe { ffi::PyEval_SaveThread() };
        Detached { state }
    }
}

impl Drop for Detached {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the state that was saved on this thread.
        unsafe { ffi::PyEval_RestoreThread(self.state) };
    }
}

/// Drops something of the driver's from the destructor of a Python object, without the GIL.
///
/// Destroying waits while another thread is inside a call that holds the driver's lock (`cuMemFree` waits for the device,
/// a launch for room in its queue), and that call may wait for a host function that needs the GIL.
///
/// `value` holds no Python objects.
#[inline]
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

/// What has clones, of which the last one destroys something of the driver's.
pub trait Cloned {
    /// What that destroys; it holds nothing of Python's.
    type Last;

    /// Lets go of a clone; what is left to destroy where it was the last one.
    fn into_unique(self) -> Option<Self::Last>;
}

impl Cloned for Stream {
    type Last = UniqueStream;

    #[inline(always)]
    fn into_unique(self) -> Option<UniqueStream> {
        Stream::into_unique(self)
    }
}

impl Cloned for Event {
    type Last = UniqueEvent;

    #[inline(always)]
    fn into_unique(self) -> Option<UniqueEvent> {
        Event::into_unique(self)
    }
}

impl Cloned for MemoryPool {
    type Last = UniquePool;

    fn into_unique(self) -> Option<UniquePool> {
        MemoryPool::into_unique(self)
    }
}

/// A clone for the time of a call. Where the object was closed meanwhile, and the clone is the last one, what is behind it
/// ends as by [`drop_detached`].
///
/// It stays on its thread, which is attached when it ends.
#[derive(Debug)]
pub struct Lent<'py, T: Cloned> {
    clone: ManuallyDrop<T>,
    attached: PhantomData<Python<'py>>,
}

// SAFETY: all that others get is a reference to the clone.
unsafe impl<T: Cloned + Sync> Sync for Lent<'_, T> {}

impl<'py, T: Cloned> Lent<'py, T> {
    /// Such a clone.
    #[inline(always)]
    pub fn new(_attached: Python<'py>, clone: T) -> Lent<'py, T> {
        Lent {
            clone: ManuallyDrop::new(clone),
            attached: PhantomData,
        }
    }
}

impl<T: Cloned> Deref for Lent<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.clone
    }
}

impl<T: Cloned> Drop for Lent<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: taken once, here; nothing looks at it afterwards.
        if let Some(last) = unsafe { ManuallyDrop::take(&mut self.clone) }.into_unique() {
            // Another thread has closed what it is of meanwhile.
            cupyrite::hint::cold_path();
            drop_detached(last);
        }
    }
}

impl<T: Clone> Slot<T> {
    /// A clone of the object.
    ///
    /// # Errors
    ///
    /// `RuntimeError` that says that the `what` was closed.
    #[inline]
    pub fn get(&self, py: Python<'_>, what: &str) -> PyResult<T> {
        match &*self.0.lock(py) {
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
