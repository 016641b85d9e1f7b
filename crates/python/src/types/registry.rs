//! Which Python type stands for which class, both ways. Types are made on first use and live for ever.

use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::ffi;

use crate::cpython::pointer_map::PointerMap;
use crate::generated::ids::{CLASS_COUNT, ENUM_COUNT};
use crate::types::table;
use crate::types::table::{ClassId, EnumId, Kind};
use crate::types::{enums, handles, pods, structs};

static TYPES: [AtomicPtr<ffi::PyTypeObject>; CLASS_COUNT] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; CLASS_COUNT];
static ENUMS: [AtomicPtr<enums::Made>; ENUM_COUNT] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; ENUM_COUNT];

/// Open-addressed map from type to class id, at most half full.
const SLOTS: usize = (CLASS_COUNT * 2 + 2).next_power_of_two();
static CLASSES: PointerMap<SLOTS> = PointerMap::new();
static INSERT: Mutex<()> = Mutex::new(());

/// The class whose type is exactly `ty`.
#[inline]
pub fn exact(ty: *mut ffi::PyTypeObject) -> Option<ClassId> {
    CLASSES.get(ty).map(ClassId)
}

/// The class an object is an instance of, itself or through a class derived in Python.
///
/// # Safety
/// `obj` is a live object; the GIL is held.
#[inline]
pub unsafe fn of(obj: *mut ffi::PyObject) -> Option<ClassId> {
    // SAFETY: as promised by the caller.
    let mut ty = unsafe { ffi::Py_TYPE(obj) };
    if let Some(id) = exact(ty) {
        return Some(id);
    }
    // SAFETY: `ty` and its bases are live types; tp_base is null only for `object`.
    unsafe {
        if ffi::PyType_GetFlags(ty) & ffi::Py_TPFLAGS_HEAPTYPE == 0 {
            return None;
        }
        loop {
            ty = ffi::PyType_GetSlot(ty, ffi::Py_tp_base).cast();
            if ty.is_null() {
                return None;
            }
            if let Some(id) = exact(ty) {
                return Some(id);
            }
            if ffi::PyType_GetFlags(ty) & ffi::Py_TPFLAGS_HEAPTYPE == 0 {
                return None;
            }
        }
    }
}

/// Whether an object is of exactly that class, without a class derived in between.
///
/// # Safety
/// `obj` is a live object; the GIL is held.
#[inline(always)]
pub unsafe fn is_exactly(obj: *mut ffi::PyObject, id: ClassId) -> bool {
    // A type that was not made yet is null, which no object's type is.
    // SAFETY: as promised by the caller.
    unsafe { ffi::Py_TYPE(obj) == TYPES[id.0 as usize].load(Ordering::Acquire) }
}

/// Whether an object's class is exactly that enum; false where the enum was not made yet.
///
/// # Safety
/// `obj` is a live object; the GIL is held.
#[inline(always)]
pub unsafe fn is_member(obj: *mut ffi::PyObject, id: EnumId) -> bool {
    let made = ENUMS[id.0 as usize].load(Ordering::Acquire);
    // SAFETY: made enums are leaked.
    !made.is_null() && unsafe { (*made).class.cast() == ffi::Py_TYPE(obj) }
}

/// The type of a class (borrowed), made on first use; null with an exception if that fails.
///
/// # Safety
/// The GIL is held.
#[inline(always)]
pub unsafe fn type_of(id: ClassId) -> *mut ffi::PyTypeObject {
    let known = TYPES[id.0 as usize].load(Ordering::Acquire);
    if !known.is_null() {
        return known;
    }
    // SAFETY: the GIL is held.
    unsafe { make(id) }
}

#[cold]
unsafe fn make(id: ClassId) -> *mut ffi::PyTypeObject {
    // SAFETY: the GIL is held.
    let ty = unsafe {
        match table::class(id).1.kind {
            Kind::Record => structs::make_type(id),
            Kind::Marker => structs::make_marker(id),
            Kind::Pod => pods::make_type(id),
            _ => handles::make_type(id),
        }
    };
    if ty.is_null() {
        return ty;
    }
    let lock = INSERT.lock().unwrap_or_else(|e| e.into_inner());
    let known = TYPES[id.0 as usize].load(Ordering::Acquire);
    if !known.is_null() {
        drop(lock);
        // SAFETY: another thread was faster; nobody has seen this one.
        unsafe { ffi::Py_DECREF(ty.cast()) };
        return known;
    }
    CLASSES.insert(ty, id.0);
    TYPES[id.0 as usize].store(ty, Ordering::Release);
    ty
}

/// The made enum, on first use; None with an exception if that fails.
///
/// # Safety
/// The GIL is held.
#[inline]
pub unsafe fn enum_of(id: EnumId) -> Option<&'static enums::Made> {
    let known = ENUMS[id.0 as usize].load(Ordering::Acquire);
    if !known.is_null() {
        // SAFETY: made enums are leaked.
        return Some(unsafe { &*known });
    }
    // SAFETY: the GIL is held.
    let made = Box::into_raw(Box::new(unsafe { enums::make(id)? }));
    match ENUMS[id.0 as usize].compare_exchange(
        std::ptr::null_mut(),
        made,
        Ordering::AcqRel,
        Ordering::Acquire,
    ) {
        // SAFETY: made enums are leaked.
        Ok(_) => Some(unsafe { &*made }),
        // SAFETY: likewise. The one that lost the race is leaked too: it may have been seen through its members.
        Err(winner) => Some(unsafe { &*winner }),
    }
}
