//! Elements of arrays and lists: conversion of single values, and pointers to their memory.

use crate::cpython;
use crate::cpython::{Obj, Owned, R};
use crate::types::convert;
use crate::types::convert::AttributeSite;
use crate::types::object;
use crate::types::object::Instance;
use crate::types::structs::list_storage::Storage;
use crate::types::table;
use crate::types::table::{ClassId, Elem, Prim};
use crate::types::{enums, registry};

/// Size in bytes of an element.
pub fn element_size(elem: Elem) -> usize {
    match elem {
        Elem::Int(p) | Elem::Float(p) => p.size(),
        Elem::Enum(_) => 4,
        Elem::Handle(id) | Elem::Struct(id) => table::class(id).1.size as usize,
        Elem::Address => 8,
    }
}

/// A list of `len` values read from `data`. Copies of structs also keep alive what `source` keeps alive for them.
///
/// # Errors
/// `ValueError` for a value that is no member of an enum, `MemoryError`.
///
/// # Safety
/// `data` has `len` elements; `source` is live storage of the same elements.
pub unsafe fn list_of(
    elem: Elem,
    data: &[u8],
    len: usize,
    source: Option<*mut Storage>,
) -> R<Owned> {
    let size = element_size(elem);
    cpython::list((0..len).map(|i| {
        let at = &data[i * size..(i + 1) * size];
        let mut bytes = [0u8; 8];
        bytes[..size.min(8)].copy_from_slice(&at[..size.min(8)]);
        match elem {
            Elem::Int(prim) => convert::to_int(bytes, prim),
            Elem::Float(prim) => convert::to_float(bytes, prim),
            Elem::Enum(id) => enums::read(id, u64::from_le_bytes(bytes) as u32),
            Elem::Address => convert::to_int(bytes, Prim::U64),
            // SAFETY: the registry returns the type of the class.
            Elem::Handle(id) => unsafe {
                object::new_handle(registry::type_of(id)?, id, u64::from_le_bytes(bytes))
            },
            // SAFETY: `at` has the size of the struct, which lies at this offset of `source`.
            Elem::Struct(id) => unsafe { copy_of(id, at, source.map(|s| (s, i * size))) },
        }
    }))
}

unsafe fn copy_of(id: ClassId, bytes: &[u8], source: Option<(*mut Storage, usize)>) -> R<Owned> {
    let align = table::class(id).1.align as usize;
    // SAFETY: the new object has the size of the C type, which is the length of `bytes`; callers pass live storage.
    unsafe {
        let object = object::new_record(registry::type_of(id)?, id, align)?;
        let this = object.ptr().cast::<Instance>();
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), (*this).data, bytes.len());
        if let Some((storage, at)) = source {
            object::keep_same(this, 0, storage.cast(), at, bytes.len());
        }
        Ok(object)
    }
}

/// Writes a pointer and keeps its target alive.
///
/// # Errors
/// `ValueError` if foreign memory cannot be written.
///
/// # Safety
/// `obj` is a struct instance with a pointer at `offset`; the GIL is held.
pub unsafe fn point(obj: *mut Instance, offset: usize, address: u64, held: Option<Owned>) -> R<()> {
    // SAFETY: as promised by the caller.
    unsafe {
        object::write(obj, offset, &address.to_le_bytes())?;
        object::keep(obj, offset, held);
    }
    Ok(())
}

/// Converts one element to its C bytes. Raises for structs, which the caller copies. `at` has the element's size.
///
/// # Errors
/// `TypeError`, `OverflowError`.
pub fn element(elem: Elem, item: Obj<'_>, at: &mut [u8], site: &AttributeSite) -> R<()> {
    let value = match elem {
        Elem::Int(prim) => convert::ranged(item, prim, site)?,
        Elem::Float(Prim::F32) => u64::from((convert::float(item, site)? as f32).to_bits()),
        Elem::Float(_) => convert::float(item, site)?.to_bits(),
        Elem::Enum(_) => u64::from(convert::enum_value(item, site)?),
        Elem::Handle(id) => convert::ranged(item, table::value_type(id), site)?,
        Elem::Address => convert::ranged(item, Prim::U64, site)?,
        Elem::Struct(id) => return Err(site.type_error(table::class(id).1.name(), item)),
    };
    let n = at.len();
    at.copy_from_slice(&value.to_le_bytes()[..n]);
    Ok(())
}

/// The instance, if its class has the same C type as `id`.
pub fn same_type(item: Obj<'_>, id: ClassId) -> Option<*mut Instance> {
    registry::of(item)
        .filter(|other| table::root(*other) == table::root(id))
        .map(|_| item.ptr().cast())
}
