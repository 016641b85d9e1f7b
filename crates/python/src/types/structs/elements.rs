//! Elements of arrays and lists: conversion of single values, and pointers to their memory.

use std::ptr::null_mut;

use pyo3::ffi;

use crate::types::convert;
use crate::types::convert::Site;
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

/// A list of `len` values read from `data`, or null with an exception. Copies of structs also keep alive what `source`
/// keeps alive for them.
///
/// # Safety
/// `data` has `len` elements; `source` is live storage of the same elements; the GIL is held.
pub unsafe fn list_of(
    elem: Elem,
    data: &[u8],
    len: usize,
    source: Option<*mut Storage>,
) -> *mut ffi::PyObject {
    let size = element_size(elem);
    // SAFETY: the caller guarantees `len` elements and holds the GIL; PyList_SetItem takes ownership of each item.
    unsafe {
        let list = ffi::PyList_New(len as isize);
        if list.is_null() {
            return list;
        }
        for i in 0..len {
            let at = &data[i * size..(i + 1) * size];
            let mut bytes = [0u8; 8];
            bytes[..size.min(8)].copy_from_slice(&at[..size.min(8)]);
            let item = match elem {
                Elem::Int(prim) => convert::to_int(bytes, prim),
                Elem::Float(prim) => convert::to_float(bytes, prim),
                Elem::Enum(id) => enums::read(id, u64::from_le_bytes(bytes) as u32),
                Elem::Address => convert::to_int(bytes, Prim::U64),
                Elem::Handle(id) => {
                    let ty = registry::type_of(id);
                    if ty.is_null() {
                        null_mut()
                    } else {
                        object::new_handle(ty, id, u64::from_le_bytes(bytes))
                    }
                }
                Elem::Struct(id) => copy_of(id, at, source.map(|s| (s, i * size))),
            };
            if item.is_null() {
                ffi::Py_DECREF(list);
                return null_mut();
            }
            ffi::PyList_SetItem(list, i as isize, item);
        }
        list
    }
}

unsafe fn copy_of(
    id: ClassId,
    bytes: &[u8],
    source: Option<(*mut Storage, usize)>,
) -> *mut ffi::PyObject {
    // SAFETY: the new object has the size of the C type, which is the length of `bytes`; callers hold the GIL.
    unsafe {
        let ty = registry::type_of(id);
        if ty.is_null() {
            return null_mut();
        }
        let obj = object::new_record(ty, id, table::class(id).1.align as usize);
        if obj.is_null() {
            return obj;
        }
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), (*obj.cast::<Instance>()).data, bytes.len());
        if let Some((storage, at)) = source {
            object::keep_same(obj.cast(), 0, storage.cast(), at, bytes.len());
        }
        obj
    }
}

/// Writes a pointer and keeps its target alive; takes ownership of `held`. None with an exception.
///
/// # Safety
/// `obj` is a struct instance with a pointer at `offset`; the GIL is held.
pub unsafe fn point(
    obj: *mut Instance,
    offset: usize,
    address: u64,
    held: *mut ffi::PyObject,
) -> Option<()> {
    // SAFETY: as promised by the caller.
    unsafe {
        if !object::write(obj, offset, &address.to_le_bytes()) {
            ffi::Py_XDECREF(held);
            return None;
        }
        object::keep(obj, offset, held);
    }
    Some(())
}

/// Converts one element to its C bytes. Raises for structs, which the caller copies. None with an exception.
///
/// # Safety
/// `item` is a live object and `at` has the element's size; the GIL is held.
pub unsafe fn element(
    elem: Elem,
    item: *mut ffi::PyObject,
    at: &mut [u8],
    site: &Site,
) -> Option<()> {
    // SAFETY: the caller guarantees a live object and holds the GIL.
    let value = unsafe {
        match elem {
            Elem::Int(prim) => convert::ranged(item, prim, site)?,
            Elem::Float(Prim::F32) => u64::from((convert::float(item, site)? as f32).to_bits()),
            Elem::Float(_) => convert::float(item, site)?.to_bits(),
            Elem::Enum(_) => u64::from(convert::enum_value(item, site)?),
            Elem::Handle(id) => convert::ranged(item, table::value_type(id), site)?,
            Elem::Address => convert::ranged(item, Prim::U64, site)?,
            Elem::Struct(id) => {
                site.wrong(table::class(id).1.name(), item);
                return None;
            }
        }
    };
    let n = at.len();
    at.copy_from_slice(&value.to_le_bytes()[..n]);
    Some(())
}
