//! New objects of one class, made without the detour that PyO3 takes: it has `object.__new__` called, with an empty tuple
//! of arguments, by slots that it looks up each time.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use pyo3::PyClass;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;

/// Makes objects of the class of `T`, and of no class derived from it.
///
/// PyO3 makes the first one. Where that one is nothing but its head, the Rust value and zeros, which is what allocating an
/// object leaves behind, the others are allocated and given their value here; where it is not, PyO3 makes them all.
pub struct Fresh<T> {
    /// The class, once the place is known; null before, and where PyO3 makes the objects.
    class: AtomicPtr<ffi::PyTypeObject>,
    /// Bytes from an object to its value; 0 before the first one was looked at.
    place: AtomicUsize,
    made: PhantomData<fn() -> T>,
}

/// Found no place that could be relied on.
const NOWHERE: usize = usize::MAX;
/// The reference count and the class, which every object begins with.
const HEAD: usize = size_of::<ffi::PyObject>();

impl<T: PyClass<Frozen = True> + Send + Sync> Fresh<T>
where
    PyClassInitializer<T>: From<T>,
{
    /// Nothing is known yet.
    pub const fn new() -> Fresh<T> {
        Fresh {
            class: AtomicPtr::new(std::ptr::null_mut()),
            place: AtomicUsize::new(0),
            made: PhantomData,
        }
    }

    /// A new object with the value that `value` gives, which neither panics nor calls Python.
    ///
    /// # Errors
    ///
    /// Memory; the value is dropped then.
    #[inline(always)]
    pub fn make(&self, py: Python<'_>, value: impl FnOnce() -> T) -> PyResult<Py<T>> {
        // One function that makes the value where it stays: objects of some hundred bytes are not copied there.
        let put = |place: *mut T| {
            // SAFETY: given a place for a value below.
            unsafe { place.write(value()) };
        };
        let class = self.class.load(Ordering::Acquire);
        if class.is_null() {
            return self.first(py, put);
        }
        // SAFETY: a class that lives for ever, whose objects are allocated by this function: see `first`.
        let object = unsafe { ffi::PyType_GenericAlloc(class, 0) };
        if object.is_null() {
            return Err(failed(py, put));
        }
        // SAFETY: the object is new and nobody else knows it: the collector does, but nothing that it could begin in
        // happens before the value is there. The place is that of the value in an object of this very class, and what
        // surrounds it is as allocation leaves it, as it is in those that PyO3 makes: see `look`.
        unsafe {
            put(object
                .byte_add(self.place.load(Ordering::Relaxed))
                .cast::<T>());
            Ok(Bound::from_owned_ptr(py, object)
                .cast_into_unchecked::<T>()
                .unbind())
        }
    }

    #[cold]
    #[inline(never)]
    fn first(&self, py: Python<'_>, put: impl FnOnce(*mut T)) -> PyResult<Py<T>> {
        let made = Bound::new(py, value_of(put))?;
        if self.place.load(Ordering::Relaxed) == 0 {
            let place = Self::look(&made).unwrap_or(NOWHERE);
            self.place.store(place, Ordering::Relaxed);
            if place != NOWHERE {
                // The class is kept by the crate for as long as the process lives.
                self.class
                    .store(made.as_any().get_type_ptr(), Ordering::Release);
            }
        }
        Ok(made.unbind())
    }

    /// Where an object that PyO3 has just made has its value, if nothing else is in it.
    fn look(made: &Bound<'_, T>) -> Option<usize> {
        let py = made.py();
        let class = made.as_any().get_type();
        let size: usize = class
            .getattr(intern!(py, "__basicsize__"))
            .ok()?
            .extract()
            .ok()?;
        // SAFETY: asks a live class for a slot, which is a pointer.
        let allocate = unsafe { ffi::PyType_GetSlot(class.as_type_ptr(), ffi::Py_tp_alloc) };
        if !std::ptr::eq(
            allocate,
            ffi::PyType_GenericAlloc as *const std::ffi::c_void,
        ) {
            return None;
        }
        let object = made.as_ptr().cast::<u8>().cast_const();
        let value = std::ptr::from_ref(made.get()).cast::<u8>();
        let place = value.addr().checked_sub(object.addr())?;
        let end = place.checked_add(size_of::<T>())?;
        if place < HEAD || end > size || place % align_of::<T>() != 0 {
            return None;
        }
        let zero = |bytes: std::ops::Range<usize>| {
            // SAFETY: allocation zeroed the whole object, so that its bytes are initialised, and of these none is a part
            // of the value; the object has `size` bytes and more.
            bytes
                .into_iter()
                .all(|byte| unsafe { object.add(byte).read_volatile() == 0 })
        };
        (zero(HEAD..place) && zero(end..size)).then_some(place)
    }
}

/// The value that `put` puts somewhere.
fn value_of<T>(put: impl FnOnce(*mut T)) -> T {
    let mut value = MaybeUninit::uninit();
    put(value.as_mut_ptr());
    // SAFETY: just written: this is what `put` does in `Fresh::make`, where it comes from.
    unsafe { value.assume_init() }
}

/// The error of an allocation that failed.
#[cold]
#[inline(never)]
fn failed<T>(py: Python<'_>, put: impl FnOnce(*mut T)) -> PyErr {
    let error = PyErr::fetch(py);
    drop(value_of(put));
    error
}
