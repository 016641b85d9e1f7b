//! Free list of Python objects of one class. Allocates faster than PyO3, which calls `object.__new__` with an empty
//! argument tuple through slots that it looks up for each object.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use pyo3::PyClass;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;

use crate::cpython::internals::{Trick, enabled};

/// A class whose objects come from a [`FreeList`].
///
/// # Safety
///
/// [`FreeListed::owns_nothing`] is correct: the value of such an object is overwritten without being dropped. Objects
/// that are not [tracked](FreeListed::is_tracked) refer to no object that could refer to them.
pub unsafe trait FreeListed:
    PyClass<Frozen = True> + Send + Sync + Into<PyClassInitializer<Self>>
{
    /// The free list of the class.
    fn free_list() -> &'static FreeList<Self>;

    /// Whether the garbage collector must track the object, because it refers to objects that may refer back. Constant
    /// for an object.
    fn is_tracked(&self) -> bool;

    /// Whether the value of an unreferenced object owns nothing, so that dropping it would have no effect.
    fn owns_nothing(&mut self) -> bool;
}

/// Constructs a value in place, so that large values are not moved.
///
/// # Safety
///
/// [`Construct::construct`] neither panics nor calls Python: the collector already tracks the object, and would
/// traverse an uninitialized value.
pub unsafe trait Construct<T> {
    /// The value.
    fn construct(self) -> T;
}

/// Allocates objects of the class of `T`, not of its subclasses.
///
/// PyO3 creates the first object. If it consists of the object head, the Rust value and zero bytes only, which is the
/// state after allocation, further objects are allocated and initialized here; otherwise PyO3 creates all of them.
///
/// Deallocated objects that own nothing, such as closed ones, are kept for reuse, as CPython keeps ints and tuples.
pub struct FreeList<T> {
    /// The class, once its layout is known; null before, and if PyO3 creates the objects.
    class: AtomicPtr<ffi::PyTypeObject>,
    /// Offset of the value in an object; 0 before the first object was examined.
    offset: AtomicUsize,
    /// Offset of the weak reference list in an object.
    weakrefs: AtomicUsize,
    /// PyO3's deallocator, if [`dealloc`] has replaced it.
    base_dealloc: AtomicPtr<c_void>,
    /// Free objects; the first `kept` entries are valid.
    free: [AtomicPtr<ffi::PyObject>; CAPACITY],
    kept: AtomicUsize,
    created: PhantomData<fn() -> T>,
}

/// Capacity of a free list.
const CAPACITY: usize = 16;
/// The value's offset could not be determined.
const UNKNOWN: usize = usize::MAX;
/// Size of the object head: reference count and class.
const HEAD: usize = size_of::<ffi::PyObject>();
/// Offset of `tp_dealloc` in a class: after its head, `ob_size`, `tp_name`, `tp_basicsize` and `tp_itemsize`.
const TP_DEALLOC: usize = HEAD + 4 * size_of::<usize>();

impl<T: FreeListed> FreeList<T> {
    /// An empty list with unknown layout.
    pub const fn new() -> FreeList<T> {
        FreeList {
            class: AtomicPtr::new(std::ptr::null_mut()),
            offset: AtomicUsize::new(0),
            weakrefs: AtomicUsize::new(0),
            base_dealloc: AtomicPtr::new(std::ptr::null_mut()),
            free: [const { AtomicPtr::new(std::ptr::null_mut()) }; CAPACITY],
            kept: AtomicUsize::new(0),
            created: PhantomData,
        }
    }

    /// Creates an object.
    ///
    /// # Errors
    ///
    /// `MemoryError`; the value is then dropped.
    #[inline(always)]
    pub fn create(&self, py: Python<'_>, value: impl Construct<T>) -> PyResult<Py<T>> {
        let class = self.class.load(Ordering::Acquire);
        if class.is_null() {
            return self.create_first(py, value);
        }
        let kept = self.kept.load(Ordering::Relaxed);
        let object = if kept == 0 {
            // SAFETY: a static class whose objects are allocated by this function; see `value_offset`.
            unsafe { ffi::PyType_GenericAlloc(class, 0) }
        } else {
            self.reuse(class, kept - 1)
        };
        if object.is_null() {
            return Err(allocation_failed(py, value));
        }
        // SAFETY: the object is new and unshared. The collector may track it, but runs only inside Python calls, of
        // which there is none before the value is written (see `Construct`). The offset is that of the value in an
        // object of exactly this class, and the rest of the object is in its initial state, as in objects created by
        // PyO3; see `value_offset` and `dealloc`.
        unsafe {
            let slot = object
                .byte_add(self.offset.load(Ordering::Relaxed))
                .cast::<T>();
            slot.write(value.construct());
            // Allocation tracks the object.
            match ((*slot).is_tracked(), kept) {
                (true, 0) | (false, 1..) => {}
                (true, _) => ffi::PyObject_GC_Track(object.cast()),
                (false, 0) => ffi::PyObject_GC_UnTrack(object.cast()),
            }
            Ok(Bound::from_owned_ptr(py, object)
                .cast_into_unchecked::<T>()
                .unbind())
        }
    }

    /// Takes an object from the list: in its initial state except for a value that owns nothing, and untracked.
    #[inline(always)]
    fn reuse(&self, class: *mut ffi::PyTypeObject, last: usize) -> *mut ffi::PyObject {
        // Attached, and the list is only filled with a GIL: no concurrent access.
        self.kept.store(last, Ordering::Relaxed);
        let Some(free) = self.free.get(last) else {
            return std::ptr::null_mut();
        };
        // SAFETY: an unshared object of the class, stored by `dealloc`; initialization sets its reference count to one
        // and references the class.
        unsafe { ffi::PyObject_Init(free.load(Ordering::Relaxed), class) }
    }

    #[cold]
    #[inline(never)]
    fn create_first(&self, py: Python<'_>, value: impl Construct<T>) -> PyResult<Py<T>> {
        let created = Bound::new(py, value.construct())?;
        if !created.get().is_tracked() {
            // SAFETY: a live object of a garbage-collected class, as all PyO3 classes are here.
            unsafe { ffi::PyObject_GC_UnTrack(created.as_ptr().cast()) };
        }
        if self.offset.load(Ordering::Relaxed) == 0 {
            let offset = Self::value_offset(&created)
                .filter(|_| enabled(Trick::Freelist))
                .unwrap_or(UNKNOWN);
            self.offset.store(offset, Ordering::Relaxed);
            if offset != UNKNOWN {
                let class = created.as_any().get_type_ptr();
                self.install_dealloc(&created);
                // The crate keeps the class for the lifetime of the process.
                self.class.store(class, Ordering::Release);
            }
        }
        Ok(created.unbind())
    }

    /// Installs [`dealloc`] as the class's deallocator, if its slot can be verified.
    fn install_dealloc(&self, created: &Bound<'_, T>) {
        let class = created.as_any().get_type();
        let offset = |name| class.getattr(name).ok()?.extract::<usize>().ok();
        let py = created.py();
        // The trick is enabled only for checked Python versions with a GIL.
        if !enabled(Trick::Freelist) || offset(intern!(py, "__dictoffset__")) != Some(0) {
            return;
        }
        // Negative if the list precedes the object.
        let Some(references) = offset(intern!(py, "__weakrefoffset__")) else {
            return;
        };
        if references < HEAD || references % align_of::<usize>() != 0 {
            return;
        }
        let class = class.as_type_ptr();
        // SAFETY: queries a pointer slot of a live class.
        let base_dealloc = unsafe { ffi::PyType_GetSlot(class, ffi::Py_tp_dealloc) };
        // SAFETY: a class is larger and word-aligned. In the checked versions the deallocator is at this offset, which
        // the comparison below verifies.
        let (field, known) = unsafe {
            let field = class.byte_add(TP_DEALLOC).cast::<*mut c_void>();
            (field, field.read())
        };
        let ours = dealloc::<T> as *mut c_void;
        if base_dealloc.is_null() || base_dealloc == ours || known != base_dealloc {
            return;
        }
        self.weakrefs.store(references, Ordering::Relaxed);
        self.base_dealloc.store(base_dealloc, Ordering::Relaxed);
        // SAFETY: as above; a compatible deallocator. The thread is attached, and Python reads the slot on each
        // deallocation.
        unsafe { field.write(ours) };
    }

    /// Offset of the value in an object just created by PyO3, if the rest of the object is zero.
    fn value_offset(created: &Bound<'_, T>) -> Option<usize> {
        let py = created.py();
        let class = created.as_any().get_type();
        let size: usize = class
            .getattr(intern!(py, "__basicsize__"))
            .ok()?
            .extract()
            .ok()?;
        // SAFETY: queries a pointer slot of a live class.
        let allocate = unsafe { ffi::PyType_GetSlot(class.as_type_ptr(), ffi::Py_tp_alloc) };
        if !std::ptr::eq(
            allocate,
            ffi::PyType_GenericAlloc as *const std::ffi::c_void,
        ) {
            return None;
        }
        let object = created.as_ptr().cast::<u8>().cast_const();
        let value = std::ptr::from_ref(created.get()).cast::<u8>();
        let offset = value.addr().checked_sub(object.addr())?;
        let end = offset.checked_add(size_of::<T>())?;
        if offset < HEAD || end > size || offset % align_of::<T>() != 0 {
            return None;
        }
        let zero = |bytes: std::ops::Range<usize>| {
            // SAFETY: allocation zeroed the whole object, so its bytes are initialized. None of these bytes belongs to
            // the value, and the object has at least `size` bytes.
            bytes
                .into_iter()
                .all(|byte| unsafe { object.add(byte).read_volatile() == 0 })
        };
        (zero(HEAD..offset) && zero(end..size)).then_some(offset)
    }
}

/// Deallocator of the class of `T` and its subclasses. Keeps objects that own nothing and delegates the others to
/// PyO3's deallocator.
unsafe extern "C" fn dealloc<T: FreeListed>(object: *mut ffi::PyObject) {
    let list = T::free_list();
    let class = list.class.load(Ordering::Relaxed);
    let kept = list.kept.load(Ordering::Relaxed);
    // SAFETY: Python deallocates an unreferenced object on an attached thread. An object of exactly this class
    // (subclasses have their own layout) has its value and its weak reference list at the known offsets.
    unsafe {
        let slot = object.byte_add(list.offset.load(Ordering::Relaxed));
        let references = object.byte_add(list.weakrefs.load(Ordering::Relaxed));
        if std::ptr::eq(ffi::Py_TYPE(object), class)
            && references.cast::<*mut ffi::PyObject>().read().is_null()
            && (*slot.cast::<T>()).owns_nothing()
            && let Some(free) = list.free.get(kept)
        {
            // Restores the initial state except for the value, which needs no drop: untracks the object and releases
            // its class. Its finalized flag stays, which only matters for classes with `__del__`. Reuse sets the
            // reference count.
            if (*slot.cast::<T>()).is_tracked() {
                ffi::PyObject_GC_UnTrack(object.cast());
            }
            free.store(object, Ordering::Relaxed);
            list.kept.store(kept + 1, Ordering::Relaxed);
            ffi::Py_DECREF(class.cast());
            return;
        }
        let base_dealloc = list.base_dealloc.load(Ordering::Relaxed);
        // The deallocator found in the class's slot.
        std::mem::transmute::<*mut c_void, ffi::destructor>(base_dealloc)(object);
    }
}

/// Error of a failed allocation.
#[cold]
#[inline(never)]
fn allocation_failed<T>(py: Python<'_>, value: impl Construct<T>) -> PyErr {
    let error = PyErr::fetch(py);
    drop(value.construct());
    error
}
