//! Python types of the bindings: enums, handle classes and struct classes.
//!
//! This module implements Python *types* and their instances, driven by the tables in `generated/*_types.rs`. Calling
//! functions and converting their arguments belongs in `bindings`, which depends on this module; nothing here depends on
//! `bindings`. The Python types refer to each other in circles (a struct's attribute is a handle, which is created on
//! demand), so [`registry`] creates them through functions that [`init`] registers.
//!
//! The functions below are the interface to the call engine. Callers hold the GIL and pass live objects; a caller that
//! gets a pointer from C establishes this itself. On failure the functions set a Python exception. They do not panic.

pub mod class_type;
pub mod convert;
pub mod enums;
pub mod errors;
pub mod handles;
pub mod memory;
pub mod numpy;
pub mod object;
pub mod pods;
pub mod registry;
pub mod slices;
pub mod structs;
pub mod table;

use pyo3::ffi;

pub use crate::types::memory::{read, readable};
use crate::types::object::Instance;
use crate::types::pods::fields;
use crate::types::pods::pod;
use crate::types::pods::pointers;
use crate::types::registry::Makers;
#[allow(unused_imports)] // used by `crate::bindings`
pub use crate::types::slices::{new_array, new_slice};
use crate::types::structs::fields::PackKernelParams;
use crate::types::structs::lists;
use crate::types::table::Kind;
pub use crate::types::table::{ClassId, EnumId};

/// Registers the functions that modules of lower layers call in higher ones. `pack_kernel_params` packs the values of
/// `kernelParams` attributes.
pub fn init(pack_kernel_params: PackKernelParams) {
    registry::set_makers(Makers {
        class: make_class,
        enumeration: enums::make,
    });
    structs::fields::set_packer(pack_kernel_params);
}

/// Creates the Python type of a class; null with an exception.
unsafe fn make_class(id: ClassId) -> *mut ffi::PyTypeObject {
    // SAFETY: the registry calls this with the GIL held.
    unsafe {
        match table::class(id).1.kind {
            Kind::Record => structs::make_type(id),
            Kind::Marker => structs::make_marker(id),
            Kind::Pod => pods::make_type(id),
            _ => handles::make_type(id),
        }
    }
}

/// The value of a handle, integer or callback object, as 64 bits; signed types are sign-extended. None without an
/// exception for any other object.
#[inline]
pub fn handle_value(obj: *mut ffi::PyObject) -> Option<u64> {
    // SAFETY: the caller passes a live object with the GIL held.
    unsafe {
        let id = registry::of(obj)?;
        if matches!(
            table::class(id).1.kind,
            Kind::Record | Kind::Marker | Kind::Pod
        ) {
            return None;
        }
        let value = convert::handle_bits(obj.cast::<Instance>(), id);
        if value.is_none() {
            // Foreign memory that is no longer readable.
            ffi::PyErr_Clear();
        }
        value
    }
}

/// Fast path for the common handle: the value of an object that is exactly of class `id`, owns its memory, and has a
/// 64-bit C type. None for all other objects; [`handle_value`] is the general route.
#[inline(always)]
pub fn own_handle(obj: *mut ffi::PyObject, id: ClassId) -> Option<u64> {
    // SAFETY: the caller passes a live object and holds the GIL; instances of this type have 8 value bytes.
    unsafe {
        let this = obj.cast::<Instance>();
        (registry::is_exactly(obj, id) && (*this).state & object::FOREIGN == 0)
            .then(|| (*this).data.cast::<u64>().read_unaligned())
    }
}

/// The size in bytes of a handle, integer or callback object's C type; 0 for any other object.
pub fn handle_size(obj: *mut ffi::PyObject) -> usize {
    // SAFETY: the caller passes a live object with the GIL held.
    match unsafe { registry::of(obj) } {
        Some(id) if !table::is_record(id) => class_size(id),
        _ => 0,
    }
}

/// As [`own_handle`], for a class whose C type has 32 bits.
#[inline(always)]
pub fn own_handle32(obj: *mut ffi::PyObject, id: ClassId) -> Option<i32> {
    // SAFETY: the caller passes a live object and holds the GIL; instances of this type have 4 value bytes.
    unsafe {
        let this = obj.cast::<Instance>();
        (registry::is_exactly(obj, id) && (*this).state & object::FOREIGN == 0)
            .then(|| (*this).data.cast::<i32>().read_unaligned())
    }
}

/// Whether an object is a member of exactly this enum. False if the enum type does not exist yet.
#[inline(always)]
pub fn is_member(obj: *mut ffi::PyObject, id: EnumId) -> bool {
    // SAFETY: the caller passes a live object with the GIL held.
    unsafe { registry::is_member(obj, id) }
}

/// The address of a handle, integer or callback object's value, as returned by `getPtr()`. None for any other object.
#[inline]
pub fn handle_address(obj: *mut ffi::PyObject) -> Option<*mut u8> {
    // SAFETY: the caller passes a live object with the GIL held.
    unsafe {
        let id = registry::of(obj)?;
        if matches!(
            table::class(id).1.kind,
            Kind::Record | Kind::Marker | Kind::Pod
        ) {
            return None;
        }
        Some((*obj.cast::<Instance>()).data)
    }
}

/// A new object of a handle, integer or callback class: a new reference, or null with an exception.
#[inline]
pub fn new_handle(id: ClassId, value: u64) -> *mut ffi::PyObject {
    // SAFETY: the caller holds the GIL; `registry::type_of` returns the type of class `id`.
    unsafe {
        let ty = registry::type_of(id);
        if ty.is_null() {
            return std::ptr::null_mut();
        }
        object::new_handle(ty, id, value)
    }
}

/// As [`new_handle`], for a class known to be a handle or integer class. Allocates from the free list.
#[inline]
pub fn new_own_handle(id: ClassId, value: u64) -> *mut ffi::PyObject {
    // SAFETY: the caller holds the GIL; `registry::type_of` returns the type of class `id`.
    unsafe {
        let ty = registry::type_of(id);
        if ty.is_null() {
            return std::ptr::null_mut();
        }
        object::new_own_handle(ty, id, value)
    }
}

/// Stores a new value in a handle made by [`new_own_handle`], so that the object can be reused. Returns false and
/// changes nothing if the handle has more than one reference or any weak reference.
///
/// # Safety
///
/// `obj` is live, and its type is exactly its class.
#[inline(always)]
pub unsafe fn renew_own_handle(obj: *mut ffi::PyObject, value: u64) -> bool {
    // SAFETY: as promised by the caller; the caller holds the GIL.
    unsafe { object::renew_own_handle(obj, value) }
}

/// Pointer to the C value of an object whose class has the same C type as `id` (the class, its bases and their derived
/// classes). None without an exception for any other object.
#[inline]
pub fn struct_ptr(obj: *mut ffi::PyObject, id: ClassId) -> Option<*mut u8> {
    // SAFETY: the caller passes a live object with the GIL held.
    unsafe {
        let have = registry::of(obj)?;
        if have != id && table::root(have) != table::root(id) {
            return None;
        }
        table::is_record(have).then(|| (*obj.cast::<Instance>()).data)
    }
}

/// Pointer to the C value of an instance of any struct class. None without an exception for any other object.
pub fn any_struct_ptr(obj: *mut ffi::PyObject) -> Option<*mut u8> {
    // SAFETY: the caller passes a live object with the GIL held.
    unsafe {
        let id = registry::of(obj)?;
        table::is_record(id).then(|| (*obj.cast::<Instance>()).data)
    }
}

/// The C size of an instance of any struct class; 0 for any other object.
pub fn any_struct_size(obj: *mut ffi::PyObject) -> usize {
    // SAFETY: the caller passes a live object with the GIL held.
    match unsafe { registry::of(obj) } {
        Some(id) if table::is_record(id) => class_size(id),
        _ => 0,
    }
}

/// A new struct object that owns zeroed bytes, and their address; None with an exception.
pub fn new_struct(id: ClassId) -> Option<(*mut ffi::PyObject, *mut u8)> {
    // SAFETY: the caller holds the GIL; `registry::type_of` returns the type of class `id`.
    unsafe {
        let ty = registry::type_of(id);
        if ty.is_null() {
            return None;
        }
        let obj = object::new_record(ty, id, table::class(id).1.align as usize);
        if obj.is_null() {
            return None;
        }
        Some((obj, (*obj.cast::<Instance>()).data))
    }
}

/// A new object of a `Kind::Pod` class that owns `count` zeroed structs (1 for a class without `ARRAY`), and their
/// address; None with an exception.
#[allow(dead_code)] // used by `crate::bindings::raising`
pub fn new_pod(id: ClassId, count: usize) -> Option<(*mut ffi::PyObject, *mut u8)> {
    // SAFETY: the caller holds the GIL.
    unsafe {
        let obj = pod::fresh(id, count).ok()?;
        Some((obj.cast(), (*obj).base.data))
    }
}

/// Address of the structs of a `Kind::Pod` object of exactly class `id`, or of any class. None without an exception for
/// other objects. Foreign memory may no longer be mapped: see [`prepare_struct`].
#[inline]
#[allow(dead_code)] // used by `crate::bindings::raising`
pub fn pod_ptr(obj: *mut ffi::PyObject, id: Option<ClassId>) -> Option<*mut u8> {
    // SAFETY: the caller passes a live object with the GIL held.
    unsafe {
        let have = registry::of(obj)?;
        if id.is_some_and(|id| id != have) || table::class(have).1.kind != Kind::Pod {
            return None;
        }
        Some((*obj.cast::<Instance>()).data)
    }
}

/// Number of structs in a `Kind::Pod` object; 0 for other objects.
#[allow(dead_code)] // used by `crate::bindings::raising`
pub fn pod_count(obj: *mut ffi::PyObject) -> usize {
    match pod_ptr(obj, None) {
        // SAFETY: `pod_ptr` found that the object is a `Pod`.
        Some(_) => unsafe { (*obj.cast::<pod::Pod>()).count },
        None => 0,
    }
}

/// Grows every array that a `Kind::Pod` object points to, to the counts that a library has written. Returns whether any
/// array grew, in which case the call should be repeated; None with an exception.
#[allow(dead_code)] // for functions whose struct points at an array
pub fn provide_arrays(obj: *mut ffi::PyObject) -> Option<bool> {
    // SAFETY: the caller passes a live object with the GIL held.
    unsafe {
        match pod::cast(obj) {
            Some(this) if !(*this).array => pointers::provide(this).ok(),
            _ => Some(false),
        }
    }
}

/// The size of a class's C type in bytes.
#[inline]
pub fn class_size(id: ClassId) -> usize {
    table::class(id).1.size as usize
}

/// A class's name.
pub fn class_name(id: ClassId) -> &'static str {
    table::class(id).1.name()
}

/// An enum's name.
pub fn enum_name(id: EnumId) -> &'static str {
    table::enumeration(id).1.name
}

/// The enum member with this value, or a plain int if there is none: a new reference, or null with an exception.
#[inline]
pub fn enum_member(id: EnumId, value: i64) -> *mut ffi::PyObject {
    // SAFETY: the caller holds the GIL; enum members are immortal, since `registry` leaks every enum.
    unsafe {
        let Some(made) = registry::enum_of(id) else {
            return std::ptr::null_mut();
        };
        let mut member = made.member(value);
        if member.is_null() {
            member = made.member(i64::from(value as u32));
        }
        if member.is_null() {
            return ffi::PyLong_FromLongLong(value);
        }
        ffi::Py_INCREF(member);
        member
    }
}

/// Whether an object is a member of a Cupyrite enum or of any class derived from `FastEnum`.
pub fn is_enum_member(obj: *mut ffi::PyObject) -> bool {
    // SAFETY: the caller passes a live object with the GIL held.
    unsafe {
        match enums::base() {
            Some(base) => ffi::PyType_IsSubtype(ffi::Py_TYPE(obj), base.cast()) != 0,
            None => {
                ffi::PyErr_Clear();
                false
            }
        }
    }
}

/// The Python type of a class (borrowed), or null with an exception.
pub fn class_type(id: ClassId) -> *mut ffi::PyTypeObject {
    // SAFETY: the caller holds the GIL.
    unsafe { registry::type_of(id) }
}

/// Called after C wrote into a struct made by [`new_struct`]. A no-op: the object's attributes read the bytes directly.
pub fn sync_out(_obj: *mut ffi::PyObject) {}

/// Validates a struct before it is passed to C: the arrays it points to match its counts, and foreign memory is still
/// readable. Returns false with `ValueError` otherwise.
pub fn prepare_struct(obj: *mut ffi::PyObject) -> bool {
    // SAFETY: the caller passes a live object with the GIL held.
    unsafe {
        let Some(id) = registry::of(obj) else {
            return true;
        };
        if table::class(id).1.kind == Kind::Pod {
            return fields::prepare(obj.cast()).is_ok();
        }
        if !table::is_record(id) {
            return true;
        }
        let this = obj.cast::<Instance>();
        if (*this).state & object::FOREIGN != 0
            && !memory::readable((*this).data as usize, class_size(id))
        {
            errors::raise(
                errors::ExceptionKind::Value,
                &format!(
                    "{}: the memory at {:#x} given as _ptr is gone",
                    class_name(id),
                    (*this).data as usize
                ),
            );
            return false;
        }
        lists::check_counts(this)
    }
}

/// `sizeof(cls)`; None with `TypeError` if `obj` is not a class with a known C size.
pub fn sizeof(obj: *mut ffi::PyObject) -> Option<u64> {
    // SAFETY: the caller passes a live object with the GIL held.
    unsafe {
        if ffi::PyType_Check(obj) != 0
            && let Some(id) = registry::exact(obj.cast())
        {
            let class = table::class(id).1;
            if class.flags & table::SIZEOF != 0 {
                return Some(class.size.into());
            }
        }
        errors::raise(
            errors::ExceptionKind::Type,
            &format!("sizeof(): unknown type: {}", errors::to_string(obj)),
        );
        None
    }
}
