//! New objects of one class, made without the detour that PyO3 takes: it has `object.__new__` called, with an empty tuple
//! of arguments, by slots that it looks up each time.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use pyo3::PyClass;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;

use crate::cpython;

/// A class whose objects [`Fresh`] makes.
///
/// # Safety
///
/// [`Recycled::is_spent`] is right: the value of a spent object is written over, and never dropped. Objects that are not
/// [tracked](Recycled::is_tracked) refer to no object that could refer to them.
pub unsafe trait Recycled:
    PyClass<Frozen = True> + Send + Sync + Into<PyClassInitializer<Self>>
{
    /// Where they come from.
    fn fresh() -> &'static Fresh<Self>;

    /// Whether the collector has to know the object, which is so or not for as long as it lives: it refers to others, from
    /// which there may be a way back.
    fn is_tracked(&self) -> bool;

    /// Whether the value of an object that nobody refers to any more owns nothing: dropping it would do nothing.
    fn is_spent(&mut self) -> bool;
}

/// What the value of a new object is made of, in its place: large values are not moved there.
///
/// # Safety
///
/// [`Parts::value`] neither panics nor calls Python. The collector knows the object already, and would look at a value that is
/// not there yet.
pub unsafe trait Parts<T> {
    /// The value.
    fn value(self) -> T;
}

/// Makes objects of the class of `T`, and of no class derived from it.
///
/// PyO3 makes the first one. Where that one is nothing but its head, the Rust value and zeros, which is what allocating an
/// object leaves behind, the others are allocated and given their value here; where it is not, PyO3 makes them all.
///
/// Objects that end with nothing in them, as those do that were closed, are kept, as Python keeps some of its numbers and
/// tuples: the next ones take their places.
pub struct Fresh<T> {
    /// The class, once the place is known; null before, and where PyO3 makes the objects.
    class: AtomicPtr<ffi::PyTypeObject>,
    /// Bytes from an object to its value; 0 before the first one was looked at.
    place: AtomicUsize,
    /// Bytes from an object to its list of weak references.
    references: AtomicUsize,
    /// PyO3's function that ends objects, where [`end`] has taken its place.
    ending: AtomicPtr<c_void>,
    /// Objects that are kept, the first `kept` of them.
    spare: [AtomicPtr<ffi::PyObject>; MOST],
    kept: AtomicUsize,
    made: PhantomData<fn() -> T>,
}

/// As many objects of a class are kept.
const MOST: usize = 16;
/// Found no place that could be relied on.
const NOWHERE: usize = usize::MAX;
/// The reference count and the class, which every object begins with.
const HEAD: usize = size_of::<ffi::PyObject>();
/// Where a class has its function that ends objects, `tp_dealloc`: behind its head, `ob_size`, `tp_name`, `tp_basicsize` and
/// `tp_itemsize`.
const ENDING: usize = HEAD + 4 * size_of::<usize>();

impl<T: Recycled> Fresh<T> {
    /// Nothing is known yet.
    pub const fn new() -> Fresh<T> {
        Fresh {
            class: AtomicPtr::new(std::ptr::null_mut()),
            place: AtomicUsize::new(0),
            references: AtomicUsize::new(0),
            ending: AtomicPtr::new(std::ptr::null_mut()),
            spare: [const { AtomicPtr::new(std::ptr::null_mut()) }; MOST],
            kept: AtomicUsize::new(0),
            made: PhantomData,
        }
    }

    /// A new object with the value of these parts.
    ///
    /// # Errors
    ///
    /// Memory; the value is dropped then.
    #[inline(always)]
    pub fn make(&self, py: Python<'_>, parts: impl Parts<T>) -> PyResult<Py<T>> {
        let class = self.class.load(Ordering::Acquire);
        if class.is_null() {
            return self.first(py, parts);
        }
        let kept = self.kept.load(Ordering::Relaxed);
        let object = if kept == 0 {
            // SAFETY: a class that lives for ever, whose objects are allocated by this function: see `look`.
            unsafe { ffi::PyType_GenericAlloc(class, 0) }
        } else {
            self.again(class, kept - 1)
        };
        if object.is_null() {
            return Err(failed(py, parts));
        }
        // SAFETY: the object is new and nobody else knows it: the collector may, but it begins in Python's calls alone, and
        // none is made before the value is there (see `Parts`). The place is that of the value in an object of this very class, and what
        // surrounds it is as allocation leaves it, as it is in those that PyO3 makes: see `look` and `end`.
        unsafe {
            let value = object
                .byte_add(self.place.load(Ordering::Relaxed))
                .cast::<T>();
            value.write(parts.value());
            // Allocation has the collector know the object.
            match ((*value).is_tracked(), kept) {
                (true, 0) | (false, 1..) => {}
                (true, _) => ffi::PyObject_GC_Track(object.cast()),
                (false, 0) => ffi::PyObject_GC_UnTrack(object.cast()),
            }
            Ok(Bound::from_owned_ptr(py, object)
                .cast_into_unchecked::<T>()
                .unbind())
        }
    }

    /// An object that was kept, as allocation leaves one, but for a value that owns nothing, and unknown to the collector.
    #[inline(always)]
    fn again(&self, class: *mut ffi::PyTypeObject, last: usize) -> *mut ffi::PyObject {
        // The thread is attached, and where objects are kept there is a GIL: nobody else counts meanwhile.
        self.kept.store(last, Ordering::Relaxed);
        let Some(spare) = self.spare.get(last) else {
            return std::ptr::null_mut();
        };
        // SAFETY: an object of the class, which `end` has put there and nobody else has; it gets a count of one, and a
        // reference to its class.
        unsafe { ffi::PyObject_Init(spare.load(Ordering::Relaxed), class) }
    }

    #[cold]
    #[inline(never)]
    fn first(&self, py: Python<'_>, parts: impl Parts<T>) -> PyResult<Py<T>> {
        let made = Bound::new(py, parts.value())?;
        if !made.get().is_tracked() {
            // SAFETY: a live object whose class has to do with the collector, as all of PyO3's have.
            unsafe { ffi::PyObject_GC_UnTrack(made.as_ptr().cast()) };
        }
        if self.place.load(Ordering::Relaxed) == 0 {
            let place = Self::look(&made).unwrap_or(NOWHERE);
            self.place.store(place, Ordering::Relaxed);
            if place != NOWHERE {
                let class = made.as_any().get_type_ptr();
                self.keep_ended(&made);
                // The class is kept by the crate for as long as the process lives.
                self.class.store(class, Ordering::Release);
            }
        }
        Ok(made.unbind())
    }

    /// Has [`end`] called for the objects of the class, where it is known how.
    fn keep_ended(&self, made: &Bound<'_, T>) {
        let class = made.as_any().get_type();
        let offset = |name| class.getattr(name).ok()?.extract::<usize>().ok();
        let py = made.py();
        // Known versions, with a GIL.
        if !cpython::tuples_known_before(0x030F_0000)
            || offset(intern!(py, "__dictoffset__")) != Some(0)
        {
            return;
        }
        // Negative where the list is before the object.
        let Some(references) = offset(intern!(py, "__weakrefoffset__")) else {
            return;
        };
        if references < HEAD || references % align_of::<usize>() != 0 {
            return;
        }
        let class = class.as_type_ptr();
        // SAFETY: asks a live class for a slot, which is a pointer.
        let ending = unsafe { ffi::PyType_GetSlot(class, ffi::Py_tp_dealloc) };
        // SAFETY: classes are larger by far, and made of words here. The known versions have the function there, and it is
        // looked at whether they do.
        let (field, known) = unsafe {
            let field = class.byte_add(ENDING).cast::<*mut c_void>();
            (field, field.read())
        };
        let ours = end::<T> as *mut c_void;
        if ending.is_null() || ending == ours || known != ending {
            return;
        }
        self.references.store(references, Ordering::Relaxed);
        self.ending.store(ending, Ordering::Relaxed);
        // SAFETY: as above; a function of the same kind, which ends objects as the other one does. The thread is attached,
        // and Python reads the field each time.
        unsafe { field.write(ours) };
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

/// Ends an object of the class of `T`, or of one derived from it: in place of PyO3's function, which it calls for all but
/// objects with nothing in them.
unsafe extern "C" fn end<T: Recycled>(object: *mut ffi::PyObject) {
    let fresh = T::fresh();
    let class = fresh.class.load(Ordering::Relaxed);
    let kept = fresh.kept.load(Ordering::Relaxed);
    // SAFETY: Python ends an object to which nobody refers, on an attached thread. One of this very class, with nothing added
    // (derived classes have their own), has its value and its list of weak references where they were found to be.
    unsafe {
        let place = object.byte_add(fresh.place.load(Ordering::Relaxed));
        let references = object.byte_add(fresh.references.load(Ordering::Relaxed));
        if std::ptr::eq(ffi::Py_TYPE(object), class)
            && references.cast::<*mut ffi::PyObject>().read().is_null()
            && (*place.cast::<T>()).is_spent()
            && let Some(spare) = fresh.spare.get(kept)
        {
            // As allocation leaves it, but for the value, which need not be dropped: the collector forgets it (all but
            // whether it was finalised, which is for classes with `__del__`, and these have none), the reference to its
            // class goes, and its count is set when it is used again.
            if (*place.cast::<T>()).is_tracked() {
                ffi::PyObject_GC_UnTrack(object.cast());
            }
            spare.store(object, Ordering::Relaxed);
            fresh.kept.store(kept + 1, Ordering::Relaxed);
            ffi::Py_DECREF(class.cast());
            return;
        }
        let ending = fresh.ending.load(Ordering::Relaxed);
        // What was found in the class's slot for such functions.
        std::mem::transmute::<*mut c_void, ffi::destructor>(ending)(object);
    }
}

/// The error of an allocation that failed.
#[cold]
#[inline(never)]
fn failed<T>(py: Python<'_>, parts: impl Parts<T>) -> PyErr {
    let error = PyErr::fetch(py);
    drop(parts.value());
    error
}
