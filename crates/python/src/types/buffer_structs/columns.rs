//! Attributes of struct arrays (`ProcessInfo(3).pid`): a plain value for one struct, a NumPy array otherwise.
//!
//! Assignment takes one value for all structs or one for each; numbers do not require NumPy.

use pyo3::ffi;

use crate::cpython;
use crate::cpython::errors::{ExceptionKind, prefix, raise};
use crate::cpython::{Obj, Owned, R, Raised};
use crate::types::buffer_structs::fields;
use crate::types::buffer_structs::instance;
use crate::types::buffer_structs::instance::{BufferStruct, poke};
use crate::types::buffer_structs::values::{bytes_of, count_at, number, pointer_bytes};
use crate::types::convert::AttributeSite;
use crate::types::numpy;
use crate::types::numpy::Item;
use crate::types::table;
use crate::types::table::{ClassId, Count, Field, FieldKind, Prim};

/// The value of an attribute.
///
/// # Errors
/// `ValueError` if foreign memory is no longer accessible; `MemoryError`.
///
/// # Safety
/// `this` is a live buffer struct of a struct-array class that has the field; the GIL is held.
pub unsafe fn get(this: *mut BufferStruct, field: &'static Field) -> R<Owned> {
    // SAFETY: as promised by the caller.
    unsafe {
        match field.kind {
            FieldKind::Int(p)
            | FieldKind::Long(p)
            | FieldKind::Float(p)
            | FieldKind::Hidden(p, 0)
                if (*this).count == 1 =>
            {
                number(this, (*this).base.data.add(field.offset as usize), p)
            }
            FieldKind::Intptr if (*this).count == 1 => number(
                this,
                (*this).base.data.add(field.offset as usize),
                Prim::I64,
            ),
            FieldKind::BufferStruct(id) => structs(this, field, id, 1, None),
            FieldKind::BufferStructs(id, max, count) => structs(this, field, id, max, count),
            _ => column(this, field),
        }
    }
}

/// The attribute as an array over all structs, also for a single one.
///
/// # Errors
/// `ValueError` if foreign memory is no longer accessible; `MemoryError`.
///
/// # Safety
/// As for `get`.
pub unsafe fn column(this: *mut BufferStruct, field: &'static Field) -> R<Owned> {
    // SAFETY: as promised by the caller.
    unsafe {
        let data = (*this).base.data.wrapping_add(field.offset as usize);
        let rows = ((*this).count, (*this).stride);
        let (item, len) = match field.kind {
            FieldKind::Int(p) | FieldKind::Long(p) | FieldKind::Float(p) => (Item::Number(p), 0),
            FieldKind::Hidden(p, n) | FieldKind::Fixed(p, n) => (Item::Number(p), n),
            FieldKind::Str(n) => (Item::Number(Prim::I8), n),
            FieldKind::Records(id, n) => (Item::Record(id), n),
            FieldKind::BufferStruct(id) => (Item::Struct(id), 0),
            FieldKind::BufferStructs(id, n, _) => (Item::Struct(id), n),
            _ => (Item::Number(Prim::I64), 0),
        };
        if len == 0 {
            return numpy::of_struct(this, data, item, &[rows]);
        }
        let size = match item {
            Item::Number(p) => p.size(),
            Item::Struct(id) | Item::Record(id) => table::class(id).1.size as usize,
        };
        numpy::of_struct(this, data, item, &[rows, (len as usize, size as isize)])
    }
}

/// A nested array of structs: one object for a single struct, otherwise a tuple of objects.
///
/// The count member of each struct gives the number of elements, limited to the capacity of the array.
unsafe fn structs(
    this: *mut BufferStruct,
    field: &Field,
    id: ClassId,
    max: u32,
    count: Option<Count>,
) -> R<Owned> {
    let one = |i: usize| {
        // SAFETY: callers pass a live buffer struct; the structs and their counts lie in its memory.
        unsafe {
            let start = (*this).at(i);
            let n = match count {
                Some(count) => count_at(this, start, count)?.min(max.into()),
                None => max.into(),
            };
            let at = start.wrapping_add(field.offset as usize);
            instance::view(id, this, at, n as usize).map(|(object, _)| object)
        }
    };
    // SAFETY: callers pass a live buffer struct and hold the GIL; PyList_AsTuple returns a new reference.
    unsafe {
        if (*this).count == 1 {
            return one(0);
        }
        let list = cpython::list((0..(*this).count).map(one))?;
        Owned::take(ffi::PyList_AsTuple(list.ptr()))
    }
}

/// Assigns an attribute.
///
/// # Errors
/// `TypeError` for a wrong kind of value, `ValueError` for a wrong number of values, `OverflowError`.
///
/// # Safety
/// As for `get`, and `this` is writable.
pub unsafe fn set(
    this: *mut BufferStruct,
    field: &'static Field,
    value: Obj<'_>,
    site: &AttributeSite,
) -> R<()> {
    // SAFETY: as promised by the caller.
    unsafe {
        match field.kind {
            FieldKind::Int(p) | FieldKind::Long(p) | FieldKind::Float(p) => {
                spread(this, field.offset, p.size(), value, site, &|v| {
                    bytes_of(v, p, site)
                })
            }
            FieldKind::Intptr => spread(this, field.offset, 8, value, site, &|v| {
                pointer_bytes(v, site)
            }),
            FieldKind::Fixed(p, n) => set_rows(this, field.offset, p, n as usize, value, site),
            FieldKind::BufferStruct(_) if (*this).count != 1 => {
                let text = format!(
                    "Assign to the field of one element, as in array[i].{} = value",
                    site.attr
                );
                Err(raise(ExceptionKind::Value, &text))
            }
            FieldKind::BufferStruct(id) => fields::set_struct(this, field, id, value, site),
            FieldKind::Records(id, n) => set_records(this, field, id, n as usize, value, site),
            kind => {
                let text = format!("{kind:?} cannot be assigned in a class for any number");
                Err(raise(ExceptionKind::Runtime, &text))
            }
        }
    }
}

/// The items of a sequence; `None` for a single value.
///
/// # Errors
/// `TypeError` for `str`, `bytes` and `None`; exceptions of the sequence.
pub fn items(value: Obj<'_>, site: &AttributeSite) -> R<Option<cpython::Items>> {
    if value.is_str() || value.is_bytes() || value.is_none() {
        return Err(site.type_error("an integer or a sequence of integers", value));
    }
    // SAFETY: an `Obj` is live.
    unsafe {
        if value.is_int() || ffi::PySequence_Check(value.ptr()) == 0 {
            return Ok(None);
        }
        // A 0-d array passes PySequence_Check but is a number.
        if ffi::PySequence_Size(value.ptr()) < 0 {
            if ffi::PyErr_ExceptionMatches(ffi::PyExc_TypeError) == 0 {
                return Err(Raised);
            }
            ffi::PyErr_Clear();
            return Ok(None);
        }
    }
    value.snapshot().map(Some)
}

type Convert<'a> = &'a dyn Fn(Obj<'_>) -> R<[u8; 8]>;

/// Assigns one number to all structs, or one to each.
unsafe fn spread(
    this: *mut BufferStruct,
    offset: u32,
    size: usize,
    value: Obj<'_>,
    site: &AttributeSite,
    convert: Convert<'_>,
) -> R<()> {
    // SAFETY: callers pass a live buffer struct with the member at `offset`. All values are converted before the first write.
    unsafe {
        let count = (*this).count;
        let values = match items(value, site)? {
            None => vec![convert(value)?; count],
            Some(list) if list.len() == 1 => vec![convert(list.get(0))?; count],
            Some(list) => {
                fits(list.len(), count, site)?;
                (0..count)
                    .map(|i| convert(list.get(i)))
                    .collect::<R<Vec<_>>>()?
            }
        };
        for (i, bytes) in values.iter().enumerate() {
            poke(this, (*this).at(i).add(offset as usize), &bytes[..size])?;
        }
    }
    Ok(())
}

fn fits(given: usize, wanted: usize, site: &AttributeSite) -> R<()> {
    if given == wanted {
        return Ok(());
    }
    Err(site.fail(
        ExceptionKind::Value,
        &format!("could not broadcast {given} values to {wanted}"),
    ))
}

/// Assigns nested arrays of numbers: one number, one row for all structs, or one row for each.
unsafe fn set_rows(
    this: *mut BufferStruct,
    offset: u32,
    prim: Prim,
    len: usize,
    value: Obj<'_>,
    site: &AttributeSite,
) -> R<()> {
    let row = |list: &cpython::Items| -> R<Vec<u8>> {
        let one = list.len() == 1;
        if !one {
            fits(list.len(), len, site)?;
        }
        let mut out = Vec::with_capacity(len * prim.size());
        for i in 0..len {
            let bytes = bytes_of(list.get(if one { 0 } else { i }), prim, site)?;
            out.extend_from_slice(&bytes[..prim.size()]);
        }
        Ok(out)
    };
    // SAFETY: callers pass a live buffer struct with the member at `offset`. All values are converted before the first write.
    unsafe {
        let count = (*this).count;
        let mut rows = Vec::new();
        match items(value, site)? {
            None => rows.push(bytes_of(value, prim, site)?[..prim.size()].repeat(len)),
            Some(list) => {
                let mut nested = Vec::new();
                for i in 0..list.len() {
                    match items(list.get(i), site)? {
                        Some(inner) => nested.push(inner),
                        None => break,
                    }
                }
                if nested.is_empty() {
                    rows.push(row(&list)?);
                } else {
                    fits(nested.len(), list.len(), site)?;
                    if nested.len() != 1 {
                        fits(nested.len(), count, site)?;
                    }
                    for inner in &nested {
                        rows.push(row(inner)?);
                    }
                }
            }
        }
        for i in 0..count {
            let bytes = &rows[if rows.len() == 1 { 0 } else { i }];
            poke(this, (*this).at(i).add(offset as usize), bytes)?;
        }
    }
    Ok(())
}

/// Assigns nested structs: objects of their class, or values that NumPy can assign to a record array.
unsafe fn set_records(
    this: *mut BufferStruct,
    field: &'static Field,
    id: ClassId,
    len: usize,
    value: Obj<'_>,
    site: &AttributeSite,
) -> R<()> {
    // SAFETY: callers pass a live buffer struct that has the field; the sources are owned while they are copied.
    unsafe {
        if let Some(from) = instance::cast_to(value, id) {
            let (rows, n) = ((*this).count, len.max(1));
            let given = (*from).count;
            if given != 1 && given != rows * n && given != n {
                fits(given, rows * n, site)?;
            }
            let (_object, copy) = instance::copy_of(from)?;
            let size = (*copy).size();
            for i in 0..rows * n {
                let at = (*this)
                    .at(i / n)
                    .add(field.offset as usize + size * (i % n));
                instance::copy_struct(this, at, copy, (*copy).at(i % given.max(1)))?;
            }
            return Ok(());
        }
        let invalid = value.is_none()
            || value.is_str()
            || value.is_bytes()
            || instance::cast(value).is_some()
            || ffi::PyDict_Check(value.ptr()) != 0;
        if invalid {
            let wanted = format!(
                "{}, a number or what NumPy can assign to {}",
                table::class(id).1.name(),
                numpy::dtype_name(id)
            );
            return Err(site.type_error(&wanted, value));
        }
        // NumPy converts the values; if it is missing, the error names it.
        numpy::module()?;
        let target = column(this, field)?;
        let all = Owned::take(ffi::PySlice_New(
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        ))?;
        match ffi::PyObject_SetItem(target.ptr(), all.ptr(), value.ptr()) {
            0 => Ok(()),
            _ => {
                prefix(&format!("{}: ", site.name()));
                Err(Raised)
            }
        }
    }
}
