//! Attributes that are pointers in C: text, numbers, structs. Assignment keeps the target alive and sets the hidden count.
//! Foreign targets are read through checked copies.

use cupyrite_sys::checked;
use pyo3::ffi;

use crate::cpython;
use crate::cpython::errors::{ExceptionKind, raise};
use crate::cpython::{Obj, Owned, R, Raised};
use crate::types::buffer_structs::instance;
use crate::types::buffer_structs::instance::{BufferStruct, peek, poke};
use crate::types::buffer_structs::values::{
    count_in, elements, elements_by, encoded, pointer_bytes, set_count, sources, text,
};
use crate::types::convert::AttributeSite;
use crate::types::numpy;
use crate::types::numpy::Item;
use crate::types::object;
use crate::types::slices;
use crate::types::structs::list_storage;
use crate::types::table;
use crate::types::table::{ARRAY, ClassId, Count, Elem, Field, FieldKind, Prim, Slice};

/// Maximum size in bytes of a foreign array that is read.
const FOREIGN_LIMIT: usize = 64 << 20;
/// Maximum size in bytes of foreign text that is read.
const TEXT_LIMIT: usize = 1 << 20;

unsafe fn pointer(this: *mut BufferStruct, offset: u32) -> R<usize> {
    let mut bytes = [0; 8];
    // SAFETY: callers pass a live buffer struct whose class has the pointer at `offset`.
    unsafe { peek(this, (*this).base.data.add(offset as usize), &mut bytes)? };
    Ok(u64::from_le_bytes(bytes) as usize)
}

/// The object kept alive for the pointer at `offset`.
unsafe fn held(this: *mut BufferStruct, offset: u32) -> Option<Owned> {
    // SAFETY: callers pass a live buffer struct.
    unsafe { object::held(this.cast(), offset as usize) }
}

/// Writes a pointer to `address` and keeps `object` alive for it.
unsafe fn point(
    this: *mut BufferStruct,
    offset: u32,
    address: usize,
    object: Option<Owned>,
) -> R<()> {
    // SAFETY: callers pass a live buffer struct whose class has the pointer at `offset`.
    unsafe {
        let at = (*this).base.data.add(offset as usize);
        poke(this, at, &(address as u64).to_le_bytes())?;
        object::keep(this.cast(), offset as usize, object);
    }
    Ok(())
}

/// The value of a pointer attribute.
///
/// # Errors
/// `ValueError` if foreign memory is no longer accessible; `MemoryError`.
///
/// # Safety
/// `this` is a live buffer struct of one struct, of a class that has the field; the GIL is held.
pub unsafe fn get(this: *mut BufferStruct, field: &'static Field) -> R<Owned> {
    // SAFETY: as promised by the caller.
    unsafe {
        let at = pointer(this, field.offset)?;
        let held = held(this, field.offset);
        match field.kind {
            FieldKind::Text => get_text(at, held, field),
            FieldKind::PointerInts(prim, count) => {
                get_numbers(this, at, held, (prim, count), field)
            }
            FieldKind::PointerStructs(id, count) => get_structs(this, at, held, (id, count), field),
            FieldKind::PointerWords(count) => get_words(this, at, held, count, field),
            kind => {
                let text = format!("{kind:?} is no kind of a single struct's attribute");
                Err(raise(ExceptionKind::Runtime, &text))
            }
        }
    }
}

fn unreadable(field: &Field, at: usize, bytes: usize) -> Raised {
    raise(
        ExceptionKind::Value,
        &format!(
            "{}: the {bytes} bytes at {at:#x}, where it points, are not readable memory",
            table::text(field.name)
        ),
    )
}

fn get_text(at: usize, held: Option<Owned>, field: &Field) -> R<Owned> {
    if at == 0 {
        return cpython::from_str("");
    }
    if let Some(held) = held {
        let (data, len) = held.obj().bytes_data();
        if data as usize == at {
            // SAFETY: `held` owns the bytes object.
            return text(unsafe { std::slice::from_raw_parts(data, len) });
        }
    }
    // Reads aligned blocks of 256 bytes: single bytes would be slow, and a larger block might reach an unmapped page.
    let mut found = Vec::new();
    while found.len() < TEXT_LIMIT {
        let next = at + found.len();
        let mut piece = vec![0; 256 - next % 256];
        if checked::read_bytes(next as u64, &mut piece).is_err() {
            return Err(unreadable(field, next, piece.len()));
        }
        let end = piece.iter().position(|b| *b == 0);
        found.extend_from_slice(&piece[..end.unwrap_or(piece.len())]);
        if end.is_some() {
            break;
        }
    }
    text(&found)
}

/// A checked copy of the bytes of a foreign array.
unsafe fn foreign(at: usize, n: u64, size: usize, field: &Field) -> R<Vec<u8>> {
    let bytes = (n as usize)
        .checked_mul(size)
        .filter(|b| *b <= FOREIGN_LIMIT)
        .unwrap_or(usize::MAX);
    if bytes != usize::MAX {
        let mut data = vec![0; bytes];
        if checked::read_bytes(at as u64, &mut data).is_ok() {
            return Ok(data);
        }
    }
    Err(unreadable(field, at, bytes))
}

unsafe fn get_numbers(
    this: *mut BufferStruct,
    at: usize,
    held: Option<Owned>,
    (prim, count): (Prim, Count),
    field: &Field,
) -> R<Owned> {
    // SAFETY: the caller passes a live buffer struct with the field; a `Storage` has `count` elements.
    unsafe {
        let n = count_in(this, count)?;
        if at == 0 || n == 0 {
            return empty();
        }
        let stride = prim.size() as isize;
        let mine = held.and_then(|h| Some((list_storage::cast(h.obj())?, h)));
        if let Some((storage, mine)) = mine
            && (*storage).base.data as usize == at
        {
            let n = (n as usize).min((*storage).count);
            return numpy::view(
                mine.obj(),
                (*storage).base.data,
                Item::Number(prim),
                &[(n, stride)],
                (*this).readonly,
            );
        }
        let data = foreign(at, n, prim.size(), field)?;
        let (copy, at) = new_storage(&data, prim)?;
        numpy::view(
            copy.obj(),
            at as *mut u8,
            Item::Number(prim),
            &[(n as usize, stride)],
            false,
        )
    }
}

fn empty() -> R<Owned> {
    // SAFETY: callers hold the GIL.
    Owned::take(unsafe { ffi::PyList_New(0) })
}

/// New storage with a copy of `data`, and its address.
fn new_storage(data: &[u8], prim: Prim) -> R<(Owned, usize)> {
    let n = data.len() / prim.size();
    let (object, storage) = list_storage::new_storage(n, prim.size(), Elem::Int(prim))?;
    // SAFETY: the storage is as long as the data.
    unsafe {
        let at = (*storage).base.data;
        std::ptr::copy_nonoverlapping(data.as_ptr(), at, data.len());
        Ok((object, at as usize))
    }
}

unsafe fn get_structs(
    this: *mut BufferStruct,
    at: usize,
    held: Option<Owned>,
    (id, count): (ClassId, Count),
    field: &Field,
) -> R<Owned> {
    // SAFETY: the caller passes a live buffer struct with the field; views stay within the memory of their buffer structs.
    unsafe {
        let n = count_in(this, count)?;
        if at == 0 || n == 0 {
            return empty();
        }
        let mine = held.and_then(|h| {
            let instance = instance::cast_to(h.obj(), id)?;
            ((*instance).base.data as usize == at && (*instance).contiguous())
                .then_some((h, instance))
        });
        let (n, source, _held) = match mine {
            Some((held, instance)) => ((n as usize).min((*instance).count), instance, held),
            None => {
                let size = table::class(id).1.size as usize;
                let fits = (n as usize)
                    .checked_mul(size)
                    .filter(|b| *b <= FOREIGN_LIMIT && checked::is_readable(at as u64, *b));
                if fits.is_none() {
                    return Err(unreadable(field, at, (n as usize).saturating_mul(size)));
                }
                // Foreign structs, for example written by the library: every access is checked.
                let (object, instance) = instance::bare(id, n as usize)?;
                (*instance).base.data = at as *mut u8;
                (*instance).base.state = object::FOREIGN;
                (*instance).keeper = Obj::new(this.cast()).owned().into_ptr();
                (n as usize, instance, object)
            }
        };
        if table::class(id).1.flags & ARRAY != 0 {
            return instance::view(id, source, (*source).base.data, n).map(|(object, _)| object);
        }
        // Single-struct class: a list of views.
        cpython::list(
            (0..n)
                .map(|i| instance::view(id, source, (*source).at(i), 1).map(|(object, _)| object)),
        )
    }
}

unsafe fn get_words(
    this: *mut BufferStruct,
    at: usize,
    held: Option<Owned>,
    count: Count,
    field: &Field,
) -> R<Owned> {
    // SAFETY: as promised by the caller.
    unsafe {
        let n = count_in(this, count)?;
        if at == 0 || n == 0 {
            return slices::new_slice(Slice::Address, &[]);
        }
        if let Some(held) = held
            && slices::words(held.obj())
                .is_some_and(|(data, len)| data as usize == at && len as u64 == n)
        {
            return Ok(held);
        }
        let data = foreign(at, n, 8, field)?;
        slices::new_array(Slice::Address, &data)
    }
}

/// Assigns a pointer attribute.
///
/// # Errors
/// `TypeError`, `ValueError`, `OverflowError`.
///
/// # Safety
/// `this` is a live buffer struct of one struct, of a class that has the field; the GIL is held.
pub unsafe fn set(
    this: *mut BufferStruct,
    field: &'static Field,
    value: Obj<'_>,
    site: &AttributeSite,
) -> R<()> {
    // SAFETY: as promised by the caller; the struct keeps the pointer targets alive.
    unsafe {
        match field.kind {
            FieldKind::Text => {
                let bytes = cpython::from_bytes(&encoded(value, site)?)?;
                let at = bytes.obj().bytes_data().0 as usize;
                point(this, field.offset, at, Some(bytes))
            }
            FieldKind::PointerInts(prim, count) => {
                let data = elements(value, prim, site)?;
                let n = data.len() / prim.size();
                if n == 0 {
                    point(this, field.offset, 0, None)?;
                } else {
                    let (storage, at) = new_storage(&data, prim)?;
                    point(this, field.offset, at, Some(storage))?;
                }
                set_count(this, count, n)
            }
            FieldKind::PointerWords(count) => {
                let data = elements_by(value, 8, site, &|item| pointer_bytes(item, site))?;
                let n = data.len() / 8;
                if n == 0 {
                    point(this, field.offset, 0, None)?;
                } else {
                    let words = slices::new_array(Slice::Address, &data)?;
                    let at = slices::words(words.obj()).map_or(0, |w| w.0 as usize);
                    point(this, field.offset, at, Some(words))?;
                }
                set_count(this, count, n)
            }
            FieldKind::PointerStructs(id, count) => {
                let kept = structs_to_keep(value, id, site)?;
                let instance = kept.ptr().cast::<BufferStruct>();
                let n = (*instance).count;
                if n == 0 {
                    point(this, field.offset, 0, None)?;
                } else {
                    point(
                        this,
                        field.offset,
                        (*instance).base.data as usize,
                        Some(kept),
                    )?;
                }
                set_count(this, count, n)
            }
            kind => {
                let text = format!("{kind:?} is no kind of a single struct's attribute");
                Err(raise(ExceptionKind::Runtime, &text))
            }
        }
    }
}

/// The object itself if its structs are contiguous, so that the attribute stays live; otherwise a copy.
unsafe fn structs_to_keep(value: Obj<'_>, id: ClassId, site: &AttributeSite) -> R<Owned> {
    // SAFETY: an `Obj` is live; `sources` owns the buffer_structs while they are copied.
    unsafe {
        if let Some(instance) = instance::cast_to(value, id)
            && (*instance).contiguous()
        {
            return Ok(value.owned());
        }
        let sources = sources(value, id, site)?;
        let (owned, copy) = instance::fresh(id, sources.buffer_structs.len())?;
        for (i, (from, at)) in sources.buffer_structs.iter().enumerate() {
            instance::copy_struct(copy, (*copy).at(i), *from, *at)?;
        }
        Ok(owned)
    }
}

/// Number of elements of the array that `held` owns, if it lies at `at`.
unsafe fn elements_at(held: &Owned, at: usize) -> R<Option<usize>> {
    // SAFETY: `held` owns a live object, which is cast only after its type is checked.
    unsafe {
        let (data, len) = if let Some(storage) = list_storage::cast(held.obj()) {
            ((*storage).base.data as usize, (*storage).count)
        } else if let Some((data, len)) = slices::words(held.obj()) {
            (data as usize, len)
        } else if let Some(instance) = instance::cast(held.obj()) {
            instance::present(instance)?;
            ((*instance).base.data as usize, (*instance).count)
        } else {
            return Ok(None);
        };
        Ok((data == at).then_some(len))
    }
}

/// Checks a pointer before its struct is passed to C: an array kept by the struct has at least as many elements as the count
/// says.
///
/// # Errors
/// `ValueError`.
///
/// # Safety
/// `this` is a live buffer struct of one struct, of a class that has the field; the GIL is held.
pub unsafe fn check(this: *mut BufferStruct, field: &'static Field) -> R<()> {
    // SAFETY: as promised by the caller.
    unsafe {
        let (FieldKind::PointerInts(_, count)
        | FieldKind::PointerWords(count)
        | FieldKind::PointerStructs(_, count)) = field.kind
        else {
            return Ok(());
        };
        let (at, Some(held)) = (pointer(this, field.offset)?, held(this, field.offset)) else {
            return Ok(());
        };
        let Some(len) = elements_at(&held, at)? else {
            return Ok(());
        };
        let n = count_in(this, count)?;
        if n > len as u64 {
            let name = table::class((*this).id()).1.name();
            let text = format!(
                "{name}: the count says {n} elements, but {} has {len}",
                table::text(field.name)
            );
            return Err(raise(ExceptionKind::Value, &text));
        }
    }
    Ok(())
}

/// Replaces each array whose count exceeds its capacity by a zeroed array of that length: a library that reports
/// insufficient capacity has written the count that it needs. Returns whether any array was replaced.
///
/// # Errors
/// `ValueError` for an array larger than 64 MiB (`FOREIGN_LIMIT`); `MemoryError`.
///
/// # Safety
/// `this` is a live buffer struct of one struct; the GIL is held.
pub unsafe fn provide(this: *mut BufferStruct) -> R<bool> {
    let mut grew = false;
    // SAFETY: as promised by the caller; the struct keeps the pointer targets alive.
    unsafe {
        for field in table::class((*this).id()).1.fields {
            let (size, count) = match field.kind {
                FieldKind::PointerInts(prim, count) => (prim.size(), count),
                FieldKind::PointerStructs(id, count) => (table::class(id).1.size as usize, count),
                FieldKind::PointerWords(count) => (8, count),
                _ => continue,
            };
            let n = count_in(this, count)?;
            let at = pointer(this, field.offset)?;
            let room = match held(this, field.offset) {
                Some(held) => elements_at(&held, at)?.unwrap_or(0),
                None => 0,
            };
            if n as usize <= room {
                continue;
            }
            let Some(bytes) = (n as usize)
                .checked_mul(size)
                .filter(|b| *b <= FOREIGN_LIMIT)
            else {
                let name = table::text(field.name);
                return Err(raise(
                    ExceptionKind::Value,
                    &format!("{name}: the library asks for {n} elements"),
                ));
            };
            let (address, object) = match field.kind {
                FieldKind::PointerStructs(id, _) => {
                    let (object, instance) = instance::fresh(id, n as usize)?;
                    ((*instance).base.data as usize, object)
                }
                FieldKind::PointerInts(prim, _) => {
                    let (storage, at) = new_storage(&vec![0; bytes], prim)?;
                    (at, storage)
                }
                _ => {
                    let words = slices::new_array(Slice::Address, &vec![0; bytes])?;
                    let at = slices::words(words.obj()).map_or(0, |w| w.0 as usize);
                    (at, words)
                }
            };
            point(this, field.offset, address, Some(object))?;
            grew = true;
        }
    }
    Ok(grew)
}
