//! Maps between class ids and Python types, in both directions. Types are created on first use and are immortal.
//!
//! The modules that create types need the types of other classes, so they depend on this module; it calls them through
//! [`Makers`].

use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, OnceLock};

use pyo3::ffi;

use crate::cpython::pointer_map::PointerMap;
use crate::generated::ids::{CLASS_COUNT, ENUM_COUNT};
use crate::types::errors::{ExceptionKind, raise};
use crate::types::table::{ClassId, EnumId};

/// A created enum. Its class and members live as long as the process.
pub struct Made {
    /// The Python class.
    pub class: *mut ffi::PyObject,
    /// Values and members, sorted by value.
    pub members: Vec<(i64, *mut ffi::PyObject)>,
}

impl Made {
    /// The member with this value, borrowed; null if none has it.
    #[inline]
    pub fn member(&self, value: i64) -> *mut ffi::PyObject {
        // Most enums count from 0 or 1 without gaps.
        if let Some((v, m)) = self.members.get(value as usize)
            && *v == value
        {
            return *m;
        }
        match self.members.binary_search_by_key(&value, |m| m.0) {
            Ok(i) => self.members[i].1,
            Err(_) => std::ptr::null_mut(),
        }
    }
}

/// Functions that create types. The GIL is held during their calls.
pub struct Makers {
    /// The Python type of a class: a new reference, or null with an exception.
    pub class: unsafe fn(ClassId) -> *mut ffi::PyTypeObject,
    /// The Python class and members of an enum; `None` with an exception.
    pub enumeration: unsafe fn(EnumId) -> Option<Made>,
}

static MAKERS: OnceLock<Makers> = OnceLock::new();

/// Registers the functions that create types. The first ones win.
pub fn set_makers(makers: Makers) {
    let _ = MAKERS.set(makers);
}

fn makers() -> Option<&'static Makers> {
    let makers = MAKERS.get();
    if makers.is_none() {
        raise(ExceptionKind::System, "the types are not initialised");
    }
    makers
}

static TYPES: [AtomicPtr<ffi::PyTypeObject>; CLASS_COUNT] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; CLASS_COUNT];
static ENUMS: [AtomicPtr<Made>; ENUM_COUNT] =
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
    let Some(makers) = makers() else {
        return std::ptr::null_mut();
    };
    // SAFETY: the caller holds the GIL.
    let ty = unsafe { (makers.class)(id) };
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
pub unsafe fn enum_of(id: EnumId) -> Option<&'static Made> {
    let known = ENUMS[id.0 as usize].load(Ordering::Acquire);
    if !known.is_null() {
        // SAFETY: published enums are leaked, so the reference stays valid.
        return Some(unsafe { &*known });
    }
    // SAFETY: the caller holds the GIL.
    let made = Box::into_raw(Box::new(unsafe { (makers()?.enumeration)(id)? }));
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
