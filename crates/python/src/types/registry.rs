//! Maps between class ids and Python types, in both directions. Types are created on first use and are immortal.
//!
//! The modules that create types need the types of other classes, so they depend on this module; it calls them through
//! [`Makers`].

use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, OnceLock};

use pyo3::ffi;

use crate::cpython::errors::{ExceptionKind, raise};
use crate::cpython::pointer_map::PointerMap;
use crate::cpython::{Obj, Owned, R};
use crate::types::table::{CLASS_COUNT, ClassId, ENUM_COUNT, EnumId};

/// A created enum. Its class and members live as long as the process.
pub struct EnumClass {
    /// The Python class.
    pub class: Obj<'static>,
    /// Values and members, sorted by value.
    pub members: Vec<(i64, Obj<'static>)>,
}

impl EnumClass {
    /// The member with this value.
    #[inline]
    pub fn member(&self, value: i64) -> Option<Obj<'static>> {
        // Most enums count from 0 or 1 without gaps.
        if let Some((v, m)) = self.members.get(value as usize)
            && *v == value
        {
            return Some(*m);
        }
        match self.members.binary_search_by_key(&value, |m| m.0) {
            Ok(i) => Some(self.members[i].1),
            Err(_) => None,
        }
    }
}

/// Functions that create types.
pub struct Makers {
    /// Creates the Python type of a class.
    pub class: fn(ClassId) -> R<Owned>,
    /// Creates the Python class and members of an enum.
    pub enumeration: fn(EnumId) -> R<EnumClass>,
}

static MAKERS: OnceLock<Makers> = OnceLock::new();

/// Registers the functions that create types. The first ones win.
pub fn set_makers(makers: Makers) {
    let _ = MAKERS.set(makers);
}

fn makers() -> R<&'static Makers> {
    MAKERS
        .get()
        .ok_or_else(|| raise(ExceptionKind::System, "the types are not initialised"))
}

static TYPES: [AtomicPtr<ffi::PyTypeObject>; CLASS_COUNT] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; CLASS_COUNT];
static ENUMS: [AtomicPtr<EnumClass>; ENUM_COUNT] =
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
#[inline]
pub fn of(obj: Obj<'_>) -> Option<ClassId> {
    exact(obj.ty()).or_else(|| of_base(obj.ty()))
}

/// The class of the nearest base that has one.
fn of_base(mut ty: *mut ffi::PyTypeObject) -> Option<ClassId> {
    // SAFETY: callers pass the type of a live object, which keeps its bases alive; tp_base is null only for `object`.
    unsafe {
        while ffi::PyType_GetFlags(ty) & ffi::Py_TPFLAGS_HEAPTYPE != 0 {
            ty = ffi::PyType_GetSlot(ty, ffi::Py_tp_base).cast();
            if ty.is_null() {
                return None;
            }
            if let Some(id) = exact(ty) {
                return Some(id);
            }
        }
    }
    None
}

/// Whether an object's type is exactly that class, not a derived one.
#[inline(always)]
pub fn is_exactly(obj: Obj<'_>, id: ClassId) -> bool {
    // The entry of a type that does not exist yet is null and equals no object's type.
    obj.ty() == TYPES[id.0 as usize].load(Ordering::Acquire)
}

/// Whether an object's type is exactly that enum. False if the enum does not exist yet.
#[inline(always)]
pub fn is_member(obj: Obj<'_>, id: EnumId) -> bool {
    let made = ENUMS[id.0 as usize].load(Ordering::Acquire);
    // SAFETY: published enums are leaked, so `made` stays valid.
    !made.is_null() && unsafe { (*made).class.ptr().cast() == obj.ty() }
}

/// The type of a class (borrowed), created on first use.
///
/// # Errors
///
/// The type could not be created.
#[inline(always)]
pub fn type_of(id: ClassId) -> R<*mut ffi::PyTypeObject> {
    let known = TYPES[id.0 as usize].load(Ordering::Acquire);
    if !known.is_null() {
        return Ok(known);
    }
    make(id)
}

#[cold]
fn make(id: ClassId) -> R<*mut ffi::PyTypeObject> {
    let made = (makers()?.class)(id)?;
    let lock = INSERT.lock().unwrap_or_else(|e| e.into_inner());
    let known = TYPES[id.0 as usize].load(Ordering::Acquire);
    if !known.is_null() {
        // Another thread published its type first. This one is dropped after the lock is released.
        drop(lock);
        return Ok(known);
    }
    let ty = made.into_ptr().cast();
    CLASSES.insert(ty, id.0);
    TYPES[id.0 as usize].store(ty, Ordering::Release);
    Ok(ty)
}

/// An enum, created on first use.
///
/// # Errors
///
/// The enum could not be created.
#[inline]
pub fn enum_of(id: EnumId) -> R<&'static EnumClass> {
    let known = ENUMS[id.0 as usize].load(Ordering::Acquire);
    if !known.is_null() {
        // SAFETY: published enums are leaked, so the reference stays valid.
        return Ok(unsafe { &*known });
    }
    make_enum(id)
}

#[cold]
fn make_enum(id: EnumId) -> R<&'static EnumClass> {
    let made = Box::into_raw(Box::new((makers()?.enumeration)(id)?));
    match ENUMS[id.0 as usize].compare_exchange(
        std::ptr::null_mut(),
        made,
        Ordering::AcqRel,
        Ordering::Acquire,
    ) {
        // SAFETY: `made` is leaked, so the reference stays valid.
        Ok(_) => Ok(unsafe { &*made }),
        // SAFETY: published enums are leaked. The one that lost the race is leaked too: other code may hold its members.
        Err(winner) => Ok(unsafe { &*winner }),
    }
}
