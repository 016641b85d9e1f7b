//! Maps between class ids and Python types, in both directions. Types are created on first use and are immortal.

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

/// Slots of the open-addressed map from type to class id, which is at most half full.
const SLOTS: usize = (CLASS_COUNT * 2 + 2).next_power_of_two();
static CLASSES: PointerMap<SLOTS> = PointerMap::new();
static INSERT: Mutex<()> = Mutex::new(());

/// The class whose type is exactly `ty`.
#[inline]
pub fn exact(ty: *mut ffi::PyTypeObject) -> Option<ClassId> {
    CLASSES.get(ty).map(ClassId)
}

/// The class of an object, directly or through a class derived in Python.
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
    // SAFETY: `ty` is live and keeps its bases alive; tp_base is null only for `object`.
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

/// Whether an object's type is exactly that class, not a derived one.
///
/// # Safety
/// `obj` is a live object; the GIL is held.
#[inline(always)]
pub unsafe fn is_exactly(obj: *mut ffi::PyObject, id: ClassId) -> bool {
    // The entry of a type that does not exist yet is null and equals no object's type.
    // SAFETY: as promised by the caller.
    unsafe { ffi::Py_TYPE(obj) == TYPES[id.0 as usize].load(Ordering::Acquire) }
}

/// Whether an object's type is exactly that enum. False if the enum does not exist yet.
///
/// # Safety
/// `obj` is a live object; the GIL is held.
#[inline(always)]
pub unsafe fn is_member(obj: *mut ffi::PyObject, id: EnumId) -> bool {
    let made = ENUMS[id.0 as usize].load(Ordering::Acquire);
    // SAFETY: as promised by the caller; published enums are leaked, so `made` stays valid.
    !made.is_null() && unsafe { (*made).class.cast() == ffi::Py_TYPE(obj) }
}

/// The type of a class (borrowed), created on first use; null with an exception if that fails.
///
/// # Safety
/// The GIL is held.
#[inline(always)]
pub unsafe fn type_of(id: ClassId) -> *mut ffi::PyTypeObject {
    let known = TYPES[id.0 as usize].load(Ordering::Acquire);
    if !known.is_null() {
        return known;
    }
    // SAFETY: the caller holds the GIL.
    unsafe { make(id) }
}

#[cold]
unsafe fn make(id: ClassId) -> *mut ffi::PyTypeObject {
    // SAFETY: the caller holds the GIL.
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
        // SAFETY: another thread published its type first; this one was never published.
        unsafe { ffi::Py_DECREF(ty.cast()) };
        return known;
    }
    CLASSES.insert(ty, id.0);
    TYPES[id.0 as usize].store(ty, Ordering::Release);
    ty
}

/// An enum, created on first use; None with an exception if that fails.
///
/// # Safety
/// The GIL is held.
#[inline]
pub unsafe fn enum_of(id: EnumId) -> Option<&'static enums::Made> {
    let known = ENUMS[id.0 as usize].load(Ordering::Acquire);
    if !known.is_null() {
        // SAFETY: published enums are leaked, so the reference stays valid.
        return Some(unsafe { &*known });
    }
    // SAFETY: the caller holds the GIL.
    let made = Box::into_raw(Box::new(unsafe { enums::make(id)? }));
    match ENUMS[id.0 as usize].compare_exchange(
        std::ptr::null_mut(),
        made,
        Ordering::AcqRel,
        Ordering::Acquire,
    ) {
        // SAFETY: `made` is leaked, so the reference stays valid.
        Ok(_) => Some(unsafe { &*made }),
        // SAFETY: published enums are leaked. The one that lost the race is leaked too: other code may hold its members.
        Err(winner) => Some(unsafe { &*winner }),
    }
}
