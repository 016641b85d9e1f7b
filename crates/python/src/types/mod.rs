//! Python types of the bindings: enums, handle classes and struct classes.
//!
//! This module implements Python *types* and their instances, driven by the tables in `generated/*_types.rs`. Calling
//! functions and converting their arguments belongs in `bindings`, which depends on this module; nothing here depends on
//! `bindings`. The Python types refer to each other in circles (a struct's attribute is a handle, which is created on
//! demand), so [`registry`] creates them through functions that [`init`] registers.
//!
//! The functions below are the interface to the call engine. They do not panic.

pub mod buffer_structs;
pub mod class_type;
pub mod convert;
pub mod declare;
pub mod enums;
pub mod handles;
pub mod module;
pub mod numpy;
pub mod object;
pub mod registry;
pub mod slices;
pub mod structs;
pub mod table;

use cupyrite_sys::checked;
use pyo3::ffi;

use crate::cpython;
use crate::cpython::errors::{ExceptionKind, raise};
use crate::cpython::{Obj, Owned, R, Raised};
use crate::types::buffer_structs::fields;
use crate::types::buffer_structs::instance;
use crate::types::buffer_structs::pointers;
pub use crate::types::module::Module;
use crate::types::object::Instance;
use crate::types::registry::Makers;
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

/// Creates the Python type of a class.
fn make_class(id: ClassId) -> R<Owned> {
    match table::class(id).1.kind {
        Kind::Record => structs::make_type(id),
        Kind::Marker => structs::make_marker(id),
        Kind::BufferStruct => buffer_structs::make_type(id),
        _ => handles::make_type(id),
    }
}

/// The value of a handle, integer or callback object, as 64 bits; signed types are sign-extended. None without an
/// exception for any other object, or if the handle's foreign memory is no longer readable.
#[inline]
pub fn handle_value(obj: Obj<'_>) -> Option<u64> {
    let id = registry::of(obj)?;
    if !is_handle(id) {
        return None;
    }
    // SAFETY: the registry found an instance of a handle class.
    let value = unsafe { convert::handle_bits(obj.ptr().cast::<Instance>(), id) };
    if value.is_err() {
        // Foreign memory that is no longer readable.
        cpython::clear();
    }
    value.ok()
}

/// Whether a class is a handle, integer or callback class.
fn is_handle(id: ClassId) -> bool {
    !matches!(
        table::class(id).1.kind,
        Kind::Record | Kind::Marker | Kind::BufferStruct
    )
}

/// Fast path for the common handle: the value of an object that is exactly of class `id`, owns its memory, and has a
/// 64-bit C type. None for all other objects; [`handle_value`] is the general route.
#[inline(always)]
pub fn own_handle(obj: Obj<'_>, id: ClassId) -> Option<u64> {
    // SAFETY: instances of this type own 8 value bytes.
    unsafe { own_bytes(obj, id).map(|at| at.cast::<u64>().read_unaligned()) }
}

/// As [`own_handle`], for a class whose C type has 32 bits.
#[inline(always)]
pub fn own_handle32(obj: Obj<'_>, id: ClassId) -> Option<i32> {
    // SAFETY: instances of this type own 4 value bytes.
    unsafe { own_bytes(obj, id).map(|at| at.cast::<i32>().read_unaligned()) }
}

/// The value bytes of an object that is exactly of class `id`, if they are not foreign.
#[inline(always)]
fn own_bytes(obj: Obj<'_>, id: ClassId) -> Option<*mut u8> {
    let this = obj.ptr().cast::<Instance>();
    // SAFETY: the type check comes first: an object of the class is an `Instance`.
    unsafe {
        (registry::is_exactly(obj, id) && (*this).state & object::FOREIGN == 0)
            .then(|| (*this).data)
    }
}

/// Whether a class is one of the modules whose functions raise.
pub fn is_buffer_struct(id: ClassId) -> bool {
    table::class(id).1.kind == Kind::BufferStruct
}

/// A NumPy array over a sequence with the buffer protocol; the sequence itself without NumPy.
///
/// # Errors
///
/// What NumPy raised.
pub fn as_ndarray(words: Owned) -> R<Owned> {
    let Some(numpy) = numpy_module()? else {
        return Ok(words);
    };
    numpy::call(numpy::attribute(numpy, c"asarray")?.obj(), [words])
}

/// A NumPy array of structs of class `id` with these bytes; an object of the class without NumPy.
///
/// # Errors
///
/// `MemoryError`, or what NumPy raised.
pub fn records(id: ClassId, bytes: Vec<u8>) -> R<Owned> {
    let Some(numpy) = numpy_module()? else {
        let (object, to) = new_buffer_struct(id, bytes.len() / class_size(id))?;
        // SAFETY: the object has room for that many structs.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        return Ok(object);
    };
    let dtype = numpy::dtype(id)?.owned();
    if bytes.is_empty() {
        let none = cpython::from_u64(0)?;
        return numpy::call(numpy::attribute(numpy, c"empty")?.obj(), [none, dtype]);
    }
    let copy = cpython::from_bytes(&bytes)?;
    let array = numpy::call(numpy::attribute(numpy, c"frombuffer")?.obj(), [copy, dtype])?;
    numpy::attribute(array.obj(), c"copy")?.obj().call0()
}

/// NumPy, unless it is missing.
fn numpy_module() -> R<Option<Obj<'static>>> {
    match numpy::module() {
        Ok(numpy) => Ok(Some(numpy)),
        Err(Raised) => {
            // SAFETY: an exception is set; the class is immortal.
            if unsafe { ffi::PyErr_ExceptionMatches(ffi::PyExc_ImportError) } == 0 {
                return Err(Raised);
            }
            cpython::clear();
            Ok(None)
        }
    }
}

/// The size in bytes of a handle, integer or callback object's C type; 0 for any other object.
pub fn handle_size(obj: Obj<'_>) -> usize {
    match registry::of(obj) {
        Some(id) if !table::is_record(id) => class_size(id),
        _ => 0,
    }
}

/// Whether an object is a member of exactly this enum. False if the enum type does not exist yet.
#[inline(always)]
pub fn is_member(obj: Obj<'_>, id: EnumId) -> bool {
    registry::is_member(obj, id)
}

/// The address of a handle, integer or callback object's value, as returned by `getPtr()`. None for any other object.
#[inline]
pub fn handle_address(obj: Obj<'_>) -> Option<*mut u8> {
    registry::of(obj)
        .filter(|id| is_handle(*id))
        .map(|_| data_of(obj))
}

/// A new object of a handle, integer or callback class.
///
/// # Errors
///
/// `MemoryError`.
#[inline]
pub fn new_handle(id: ClassId, value: u64) -> R<Owned> {
    // SAFETY: the registry returns the type of the class.
    unsafe { object::new_handle(registry::type_of(id)?, id, value) }
}

/// As [`new_handle`], for a class known to be a handle or integer class. Allocates from the free list.
///
/// # Errors
///
/// `MemoryError`.
#[inline]
pub fn new_own_handle(id: ClassId, value: u64) -> R<Owned> {
    // SAFETY: the registry returns the type of the class.
    unsafe { object::new_own_handle(registry::type_of(id)?, id, value) }
}

/// Stores a new value in a handle made by [`new_own_handle`], so that the object can be reused. Returns false and
/// changes nothing if the handle has more than one reference or any weak reference.
///
/// # Safety
///
/// The type of `obj` is exactly its class.
#[inline(always)]
pub unsafe fn renew_own_handle(obj: Obj<'_>, value: u64) -> bool {
    // SAFETY: as promised by the caller.
    unsafe { object::renew_own_handle(obj.ptr(), value) }
}

/// The C value of an instance.
///
/// Private: callers have found the object's class in the registry.
#[inline(always)]
fn data_of(obj: Obj<'_>) -> *mut u8 {
    // SAFETY: an object whose class is in the registry is an `Instance`, except markers, which no caller passes.
    unsafe { (*obj.ptr().cast::<Instance>()).data }
}

/// Pointer to the C value of an object whose class has the same C type as `id` (the class, its bases and their derived
/// classes). None without an exception for any other object.
#[inline]
pub fn struct_ptr(obj: Obj<'_>, id: ClassId) -> Option<*mut u8> {
    let have = registry::of(obj)?;
    if have != id && table::root(have) != table::root(id) {
        return None;
    }
    table::is_record(have).then(|| data_of(obj))
}

/// Pointer to the C value of an instance of any struct class. None without an exception for any other object.
pub fn any_struct_ptr(obj: Obj<'_>) -> Option<*mut u8> {
    registry::of(obj)
        .filter(|id| table::is_record(*id))
        .map(|_| data_of(obj))
}

/// The C size of an instance of any struct class; 0 for any other object.
pub fn any_struct_size(obj: Obj<'_>) -> usize {
    match registry::of(obj) {
        Some(id) if table::is_record(id) => class_size(id),
        _ => 0,
    }
}

/// A new struct object that owns zeroed bytes, and their address.
///
/// # Errors
///
/// `MemoryError`.
pub fn new_struct(id: ClassId) -> R<(Owned, *mut u8)> {
    let align = table::class(id).1.align as usize;
    // SAFETY: the registry returns the type of the class.
    let object = unsafe { object::new_record(registry::type_of(id)?, id, align)? };
    let data = data_of(object.obj());
    Ok((object, data))
}

/// A new object of a `Kind::BufferStruct` class that owns `count` zeroed structs (1 for a class without `ARRAY`), and their
/// address.
///
/// # Errors
///
/// `MemoryError`.
pub fn new_buffer_struct(id: ClassId, count: usize) -> R<(Owned, *mut u8)> {
    let (object, _) = instance::fresh(id, count)?;
    let data = data_of(object.obj());
    Ok((object, data))
}

/// Address of the structs of a `Kind::BufferStruct` object of exactly class `id`, or of any class. None without an exception for
/// other objects. Foreign memory may no longer be mapped: see [`prepare_struct`].
#[inline]
pub fn buffer_struct_ptr(obj: Obj<'_>, id: Option<ClassId>) -> Option<*mut u8> {
    let have = registry::of(obj)?;
    if id.is_some_and(|id| id != have) || table::class(have).1.kind != Kind::BufferStruct {
        return None;
    }
    Some(data_of(obj))
}

/// Number of structs in a `Kind::BufferStruct` object; 0 for other objects.
pub fn struct_count(obj: Obj<'_>) -> usize {
    match buffer_struct_ptr(obj, None) {
        // SAFETY: `buffer_struct_ptr` found that the object is a `BufferStruct`.
        Some(_) => unsafe { (*obj.ptr().cast::<instance::BufferStruct>()).count },
        None => 0,
    }
}

/// Grows every array that a `Kind::BufferStruct` object points to, to the counts that a library has written. Returns whether any
/// array grew, in which case the call should be repeated.
///
/// # Errors
///
/// As [`pointers::provide`].
pub fn provide_arrays(obj: Obj<'_>) -> R<bool> {
    // SAFETY: an `Obj` is live; the cast checks its type.
    unsafe {
        match instance::cast(obj) {
            Some(this) if !(*this).array => pointers::provide(this),
            _ => Ok(false),
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

/// The enum member with this value, or a plain int for an unknown value.
///
/// # Errors
///
/// The enum could not be created, or `MemoryError`.
#[inline]
pub fn enum_member(id: EnumId, value: i64) -> R<Owned> {
    let made = registry::enum_of(id)?;
    match made
        .member(value)
        .or_else(|| made.member(i64::from(value as u32)))
    {
        Some(member) => Ok(member.owned()),
        None => cpython::from_i64(value),
    }
}

/// Whether an object is a member of a Cupyrite enum or of any class derived from `FastEnum`.
pub fn is_enum_member(obj: Obj<'_>) -> bool {
    match enums::base() {
        Ok(base) => obj.instance_of_type(base.ptr().cast()),
        Err(Raised) => {
            cpython::clear();
            false
        }
    }
}

/// The Python type of a class (borrowed; types are immortal).
///
/// # Errors
///
/// The type could not be created.
pub fn class_type(id: ClassId) -> R<*mut ffi::PyTypeObject> {
    registry::type_of(id)
}

/// Validates a struct before it is passed to C: the arrays it points to match its counts, and foreign memory is still
/// readable.
///
/// # Errors
///
/// `ValueError`.
pub fn prepare_struct(obj: Obj<'_>) -> R<()> {
    let Some(id) = registry::of(obj) else {
        return Ok(());
    };
    let this = obj.ptr().cast::<Instance>();
    // SAFETY: the registry found the object's class; an object of a struct class is a `BufferStruct` or an
    // `Instance`.
    unsafe {
        if table::class(id).1.kind == Kind::BufferStruct {
            return fields::prepare(this.cast());
        }
        if !table::is_record(id) {
            return Ok(());
        }
        if (*this).state & object::FOREIGN != 0
            && !checked::is_readable((*this).data as usize as u64, class_size(id))
        {
            let message = format!(
                "{}: the memory at {:#x} given as _ptr is not mapped",
                class_name(id),
                (*this).data as usize
            );
            return Err(raise(ExceptionKind::Value, &message));
        }
        lists::check_counts(this)
    }
}

/// `sizeof(cls)`.
///
/// # Errors
///
/// `TypeError` if `obj` is not a class with a known C size.
pub fn sizeof(obj: Obj<'_>) -> R<u64> {
    // SAFETY: an `Obj` is live.
    if unsafe { ffi::PyType_Check(obj.ptr()) } != 0
        && let Some(id) = registry::exact(obj.ptr().cast())
    {
        let class = table::class(id).1;
        if class.flags & table::SIZEOF != 0 {
            return Ok(class.size.into());
        }
    }
    let message = format!("sizeof(): unknown type: {}", obj.display());
    Err(raise(ExceptionKind::Type, &message))
}
