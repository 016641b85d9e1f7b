//! Getter and setter shared by all attributes of the struct classes of the raising modules.
//!
//! This module handles single structs. [`crate::types::buffer_structs::columns`] handles struct arrays,
//! [`crate::types::buffer_structs::pointers`] pointers to arrays.

use std::ffi::{c_int, c_void};

use pyo3::ffi;

use crate::cpython;
use crate::cpython::errors::{ExceptionKind, guard, guard_status, raise};
use crate::cpython::{Obj, Owned, R};
use crate::types::buffer_structs::instance;
use crate::types::buffer_structs::instance::{BufferStruct, peek, poke};
use crate::types::buffer_structs::values::{
    bytes_of, count_in, elements, encoded, number, pointer_bytes, same_class, set_count, sources,
    text,
};
use crate::types::buffer_structs::{columns, pointers};
use crate::types::convert;
use crate::types::convert::AttributeSite;
use crate::types::numpy;
use crate::types::numpy::Item;
use crate::types::object;
use crate::types::table;
use crate::types::table::{ARRAY, ClassId, Count, Field, FieldKind, Prim};

/// Getset definition of an attribute; the closure is the field.
pub fn getset(field: &'static Field) -> ffi::PyGetSetDef {
    ffi::PyGetSetDef {
        name: field.name.as_ptr(),
        get: Some(getter),
        set: if field.settable { Some(setter) } else { None },
        doc: std::ptr::null(),
        closure: std::ptr::from_ref(field).cast_mut().cast(),
    }
}

unsafe extern "C" fn getter(obj: *mut ffi::PyObject, closure: *mut c_void) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: the descriptor checked that `obj` is an instance; the closure is the field.
        unsafe { get(obj.cast(), &*closure.cast::<Field>()) }
    })
}

unsafe extern "C" fn setter(
    obj: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
    closure: *mut c_void,
) -> c_int {
    guard_status(|| {
        // SAFETY: the descriptor checked that `obj` is an instance; the closure is the field.
        unsafe {
            let field = &*closure.cast::<Field>();
            let site = AttributeSite {
                ty: ffi::Py_TYPE(obj),
                attr: table::text(field.name),
            };
            if value.is_null() {
                return Err(site.fail(
                    ExceptionKind::Attribute,
                    "a C struct's attribute cannot be deleted",
                ));
            }
            set(obj.cast(), field, Obj::new(value), &site)
        }
    })
}

/// The value of an attribute.
///
/// # Errors
/// `ValueError` if foreign memory is no longer accessible, `UnicodeDecodeError`, `MemoryError`.
///
/// # Safety
/// `this` is a live buffer struct of a class that has the field; the GIL is held.
pub unsafe fn get(this: *mut BufferStruct, field: &'static Field) -> R<Owned> {
    // SAFETY: the caller guarantees a live buffer struct with the field; offsets and sizes come from the C layout of the class.
    unsafe {
        if (*this).array {
            return columns::get(this, field);
        }
        let at = (*this).base.data.add(field.offset as usize);
        match field.kind {
            FieldKind::Int(p) | FieldKind::Long(p) | FieldKind::Float(p) => number(this, at, p),
            FieldKind::Hidden(p, 0) => number(this, at, p),
            FieldKind::Intptr => number(this, at, Prim::I64),
            FieldKind::Str(n) => {
                let mut bytes = vec![0; n as usize];
                peek(this, at, &mut bytes)?;
                text(&bytes)
            }
            FieldKind::Bytes(n) => {
                let mut bytes = vec![0; n as usize];
                peek(this, at, &mut bytes)?;
                cpython::from_bytes(&bytes)
            }
            FieldKind::Fixed(p, n) | FieldKind::Hidden(p, n) => numbers(this, at, p, n as usize),
            FieldKind::Counted(p, max, count) => {
                let n = count_in(this, count)?.min(max.into());
                numbers(this, at, p, n as usize)
            }
            FieldKind::BufferStruct(id) => {
                instance::view(id, this, at, 1).map(|(object, _)| object)
            }
            FieldKind::BufferStructs(id, max, count) => {
                let mut n = max as usize;
                if let Some(count) = count {
                    n = count_in(this, count)?.min(max.into()) as usize;
                }
                // A single-struct class can only show the first element.
                if table::class(id).1.flags & ARRAY == 0 {
                    n = 1;
                }
                instance::view(id, this, at, n).map(|(object, _)| object)
            }
            _ => pointers::get(this, field),
        }
    }
}

unsafe fn numbers(this: *mut BufferStruct, at: *mut u8, prim: Prim, n: usize) -> R<Owned> {
    // SAFETY: callers pass a live buffer struct with `n` numbers at `at`.
    unsafe { numpy::of_struct(this, at, Item::Number(prim), &[(n, prim.size() as isize)]) }
}

/// Assigns an attribute.
///
/// # Errors
/// `TypeError` for a wrong kind of value, `ValueError` for a wrong length or a read-only object, `OverflowError`.
///
/// # Safety
/// `this` is a live buffer struct of a class that has the field; the GIL is held.
pub unsafe fn set(
    this: *mut BufferStruct,
    field: &'static Field,
    value: Obj<'_>,
    site: &AttributeSite,
) -> R<()> {
    // SAFETY: the caller guarantees a live buffer struct with the field; offsets and sizes come from the C layout of the class.
    unsafe {
        instance::writable(this)?;
        if (*this).array {
            return columns::set(this, field, value, site);
        }
        let at = (*this).base.data.add(field.offset as usize);
        match field.kind {
            FieldKind::Int(p) | FieldKind::Long(p) | FieldKind::Float(p) => {
                let bytes = bytes_of(value, p, site)?;
                poke(this, at, &bytes[..p.size()])
            }
            FieldKind::Intptr => poke(this, at, &pointer_bytes(value, site)?),
            FieldKind::Str(n) => set_text(this, at, n as usize, value, site),
            FieldKind::Bytes(n) => {
                let given = convert::bytes(value, site)?;
                if given.len() != n as usize {
                    let text = format!(
                        "Expected {n} bytes for field {}, got {}",
                        site.attr,
                        given.len()
                    );
                    return Err(raise(ExceptionKind::Value, &text));
                }
                poke(this, at, &given)
            }
            FieldKind::Fixed(p, n) => {
                let values = elements(value, p, site)?;
                let (n, given) = (n as usize, values.len() / p.size());
                if given != n {
                    let text = format!("Expected length {n} for field {}, got {given}", site.attr);
                    return Err(raise(ExceptionKind::Value, &text));
                }
                poke(this, at, &values)
            }
            FieldKind::Counted(p, max, count) => {
                let values = elements(value, p, site)?;
                let given = values.len() / p.size();
                if given > max as usize {
                    let text = format!(
                        "Too many elements for field {}, max is {max}, got {given}",
                        site.attr
                    );
                    return Err(raise(ExceptionKind::Value, &text));
                }
                poke(this, at, &values)?;
                set_count(this, count, given)
            }
            FieldKind::BufferStruct(id) => set_struct(this, field, id, value, site),
            FieldKind::BufferStructs(id, max, count) => {
                set_structs(this, at, (id, max as usize, count), value, site)
            }
            _ => pointers::set(this, field, value, site),
        }
    }
}

/// Assigns a nested struct.
///
/// # Errors
/// `TypeError` for an object of another class, `ValueError` for several structs.
///
/// # Safety
/// As for `set`, with one struct in `this`.
pub unsafe fn set_struct(
    this: *mut BufferStruct,
    field: &'static Field,
    id: ClassId,
    value: Obj<'_>,
    site: &AttributeSite,
) -> R<()> {
    // SAFETY: as promised by the caller.
    unsafe {
        let at = (*this).base.data.add(field.offset as usize);
        let from = same_class(value, id, site)?;
        if (*from).count != 1 {
            let text = format!(
                "Expected length 1 for field {}, got {}",
                site.attr,
                (*from).count
            );
            return Err(raise(ExceptionKind::Value, &text));
        }
        instance::copy_struct(this, at, from, (*from).base.data)
    }
}

unsafe fn set_text(
    this: *mut BufferStruct,
    at: *mut u8,
    room: usize,
    value: Obj<'_>,
    site: &AttributeSite,
) -> R<()> {
    let bytes = encoded(value, site)?;
    if bytes.len() >= room {
        let text = format!(
            "String too long for field {}, max length is {}",
            site.attr,
            room - 1
        );
        return Err(raise(ExceptionKind::Value, &text));
    }
    let mut padded = bytes;
    padded.resize(room, 0);
    // SAFETY: callers pass a live buffer struct with `room` bytes at `at`.
    unsafe { poke(this, at, &padded) }
}

/// Assigns a nested array of structs, from a struct array or a list of single structs.
unsafe fn set_structs(
    this: *mut BufferStruct,
    at: *mut u8,
    (id, max, count): (ClassId, usize, Option<Count>),
    value: Obj<'_>,
    site: &AttributeSite,
) -> R<()> {
    // SAFETY: callers pass a live buffer struct with an array of `max` structs at `at`; `sources` owns the source buffer_structs.
    unsafe {
        let sources = sources(value, id, site)?;
        let given = sources.buffer_structs.len();
        let array = table::class(id).1.flags & ARRAY != 0;
        let text = match count {
            None if array && given != max => {
                format!("Expected length {max} for field {}, got {given}", site.attr)
            }
            _ if given > max => {
                format!(
                    "Expected length < {max} for field {}, got {given}",
                    site.attr
                )
            }
            _ => String::new(),
        };
        if !text.is_empty() {
            return Err(raise(ExceptionKind::Value, &text));
        }
        let size = table::class(id).1.size as usize;
        for (i, (from, source)) in sources.buffer_structs.iter().enumerate() {
            instance::copy_struct(this, at.add(i * size), *from, *source)?;
        }
        if let Some(count) = count {
            set_count(this, count, given)?;
        }
    }
    Ok(())
}

/// Checks a struct before it is passed to C: foreign memory is readable, and the arrays it points to have at least as many
/// elements as its counts say.
///
/// # Errors
/// `ValueError`.
///
/// # Safety
/// `this` is a live buffer struct.
pub unsafe fn prepare(this: *mut BufferStruct) -> R<()> {
    // SAFETY: as promised by the caller.
    unsafe {
        instance::present(this)?;
        if (*this).array || !object::holds_any(this.cast()) {
            return Ok(());
        }
        for field in table::class((*this).id()).1.fields {
            match field.kind {
                FieldKind::BufferStruct(_) => {
                    let inner = get(this, field)?;
                    prepare(inner.ptr().cast())?;
                }
                _ => pointers::check(this, field)?,
            }
        }
    }
    Ok(())
}
