//! Attributes that are pointers in C: text, numbers, structs. Assigning keeps what is pointed to alive and sets the
//! hidden count; reading what somebody else put there goes through checked copies.

use pyo3::ffi;

use crate::bindings::descriptor::Slice;
use crate::cpython;
use crate::cpython::{Obj, Owned, R, Raised};
use crate::types::convert::Site;
use crate::types::errors::{ExceptionKind, raise};
use crate::types::numpy;
use crate::types::numpy::Item;
use crate::types::object;
use crate::types::pods;
use crate::types::pods::fields::{
    count_in, elements, elements_by, encoded, pointer_bytes, set_count, sources, text,
};
use crate::types::pods::{Pod, peek, poke};
use crate::types::structs::list_storage;
use crate::types::structs::list_storage::Storage;
use crate::types::table;
use crate::types::table::{ARRAY, ClassId, Count, Elem, Field, FieldKind, Prim};
use crate::types::{memory, slices};

/// No array that somebody else put into a struct is read beyond this many bytes.
const FOREIGN_LIMIT: usize = 64 << 20;
/// No text that somebody else put into a struct is read beyond this many bytes.
const TEXT_LIMIT: usize = 1 << 20;

unsafe fn pointer(this: *mut Pod, offset: u32) -> R<usize> {
    let mut bytes = [0; 8];
    // SAFETY: the pointer is a member of the class.
    unsafe { peek(this, (*this).base.data.add(offset as usize), &mut bytes)? };
    Ok(u64::from_le_bytes(bytes) as usize)
}

/// What is held for the pointer at `offset`.
unsafe fn held(this: *mut Pod, offset: u32) -> Option<Owned> {
    // SAFETY: `this` is a live pod.
    Owned::take(unsafe { object::held(this.cast(), offset as usize) }).ok()
}

/// Points at `address` and holds `object` for it.
unsafe fn point(this: *mut Pod, offset: u32, address: usize, object: Option<Owned>) -> R<()> {
    // SAFETY: the pointer is a member of the class.
    unsafe {
        let at = (*this).base.data.add(offset as usize);
        poke(this, at, &(address as u64).to_le_bytes())?;
        let object = object.map_or(std::ptr::null_mut(), Owned::into_ptr);
        object::keep(this.cast(), offset as usize, object);
    }
    Ok(())
}

/// The value of a pointer attribute.
///
/// # Errors
/// Foreign memory that is gone; memory.
///
/// # Safety
/// `this` is a live pod of one struct, of a class that has the field; the GIL is held.
pub unsafe fn get(this: *mut Pod, field: &'static Field) -> R<Owned> {
    // SAFETY: as promised by the caller.
    unsafe {
        let at = pointer(this, field.offset)?;
        let held = held(this, field.offset);
        match field.kind {
            FieldKind::Text => get_text(at, held, field),
            FieldKind::PointerInts(prim, count) => {
                get_numbers(this, at, held, (prim, count), field)
            }
            FieldKind::PointerPods(id, count) => get_structs(this, at, held, (id, count), field),
            FieldKind::PointerWords(count) => get_words(this, at, held, count, field),
            kind => {
                let text = format!("{kind:?} is no kind of a single struct's attribute");
                raise(ExceptionKind::Runtime, &text);
                Err(Raised)
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
    );
    Raised
}

fn get_text(at: usize, held: Option<Owned>, field: &Field) -> R<Owned> {
    if at == 0 {
        return cpython::from_str("");
    }
    if let Some(held) = held {
        let (data, len) = held.obj().bytes_data();
        if data as usize == at {
            // SAFETY: the bytes object is held.
            return text(unsafe { std::slice::from_raw_parts(data, len) });
        }
    }
    // Byte after byte up to the NUL would be slow, and a page further on may not be there.
    let mut found = Vec::new();
    while found.len() < TEXT_LIMIT {
        let next = at + found.len();
        let mut piece = vec![0; 256 - next % 256];
        if !memory::read(next, &mut piece) {
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

/// The bytes of an array that somebody else put into the struct.
unsafe fn foreign(at: usize, n: u64, size: usize, field: &Field) -> R<Vec<u8>> {
    let bytes = (n as usize)
        .checked_mul(size)
        .filter(|b| *b <= FOREIGN_LIMIT)
        .unwrap_or(usize::MAX);
    if bytes != usize::MAX {
        let mut data = vec![0; bytes];
        if memory::read(at, &mut data) {
            return Ok(data);
        }
    }
    Err(unreadable(field, at, bytes))
}

unsafe fn get_numbers(
    this: *mut Pod,
    at: usize,
    held: Option<Owned>,
    (prim, count): (Prim, Count),
    field: &Field,
) -> R<Owned> {
    // SAFETY: storage of ours has the elements it says.
    unsafe {
        let n = count_in(this, count)?;
        if at == 0 || n == 0 {
            return empty();
        }
        let stride = prim.size() as isize;
        let mine = held.filter(|h| list_storage::is_storage(h.ptr()));
        if let Some(mine) = mine {
            let storage = mine.ptr().cast::<Storage>();
            if (*storage).base.data as usize == at {
                let n = (n as usize).min((*storage).count);
                let data = (*storage).base.data;
                return numpy::view(
                    mine.obj(),
                    data,
                    Item::Number(prim),
                    &[(n, stride)],
                    (*this).readonly,
                );
            }
        }
        let data = foreign(at, n, prim.size(), field)?;
        let copy = new_storage(&data, prim)?;
        let at = (*copy.ptr().cast::<Storage>()).base.data;
        numpy::view(
            copy.obj(),
            at,
            Item::Number(prim),
            &[(n as usize, stride)],
            false,
        )
    }
}

fn empty() -> R<Owned> {
    // SAFETY: the GIL is held.
    Owned::take(unsafe { ffi::PyList_New(0) })
}

unsafe fn new_storage(data: &[u8], prim: Prim) -> R<Owned> {
    // SAFETY: the storage is as long as the data.
    unsafe {
        let n = data.len() / prim.size();
        let storage = list_storage::new_storage(n, prim.size(), Elem::Int(prim));
        let owned = Owned::take(storage.cast())?;
        std::ptr::copy_nonoverlapping(data.as_ptr(), (*storage).base.data, data.len());
        Ok(owned)
    }
}

unsafe fn get_structs(
    this: *mut Pod,
    at: usize,
    held: Option<Owned>,
    (id, count): (ClassId, Count),
    field: &Field,
) -> R<Owned> {
    // SAFETY: views stay within the pods they look at.
    unsafe {
        let n = count_in(this, count)?;
        if at == 0 || n == 0 {
            return empty();
        }
        let mine = held.and_then(|h| {
            let pod = pods::cast_to(h.ptr(), id)?;
            ((*pod).base.data as usize == at && (*pod).contiguous()).then_some((h, pod))
        });
        let (n, source, _held) = match mine {
            Some((held, pod)) => ((n as usize).min((*pod).count), pod, held),
            None => {
                let size = table::class(id).1.size as usize;
                let fits = (n as usize)
                    .checked_mul(size)
                    .filter(|b| *b <= FOREIGN_LIMIT && memory::readable(at, *b));
                if fits.is_none() {
                    return Err(unreadable(field, at, (n as usize).saturating_mul(size)));
                }
                // Somebody else's structs (the library filled this one): looked at through checked accesses.
                let pod = pods::bare(pods::type_of(id)?, id, n as usize)?;
                (*pod).base.data = at as *mut u8;
                (*pod).base.state = object::FOREIGN;
                (*pod).keeper = Obj::new(this.cast()).owned().into_ptr();
                (n as usize, pod, Owned::take(pod.cast())?)
            }
        };
        if table::class(id).1.flags & ARRAY != 0 {
            return Owned::take(pods::view(id, source, (*source).base.data, n)?.cast());
        }
        // A class for one struct: a list of views.
        cpython::list(
            (0..n).map(|i| Owned::take(pods::view(id, source, (*source).at(i), 1)?.cast())),
        )
    }
}

unsafe fn get_words(
    this: *mut Pod,
    at: usize,
    held: Option<Owned>,
    count: Count,
    field: &Field,
) -> R<Owned> {
    // SAFETY: as promised by the caller.
    unsafe {
        let n = count_in(this, count)?;
        if at == 0 || n == 0 {
            return Owned::take(slices::new_slice(Slice::Address, &[]));
        }
        if let Some(held) = held
            && slices::words(held.ptr())
                .is_some_and(|(data, len)| data as usize == at && len as u64 == n)
        {
            return Ok(held);
        }
        let data = foreign(at, n, 8, field)?;
        Owned::take(slices::new_array(Slice::Address, &data))
    }
}

/// Assigns a pointer attribute.
///
/// # Errors
/// `TypeError`, `ValueError`, `OverflowError`.
///
/// # Safety
/// `this` is a live pod of one struct, of a class that has the field; the GIL is held.
pub unsafe fn set(this: *mut Pod, field: &'static Field, value: Obj<'_>, site: &Site) -> R<()> {
    // SAFETY: as promised by the caller; what is pointed to is held.
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
                    let storage = new_storage(&data, prim)?;
                    let at = (*storage.ptr().cast::<Storage>()).base.data as usize;
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
                    let words = Owned::take(slices::new_array(Slice::Address, &data))?;
                    let at = slices::words(words.ptr()).map_or(0, |w| w.0 as usize);
                    point(this, field.offset, at, Some(words))?;
                }
                set_count(this, count, n)
            }
            FieldKind::PointerPods(id, count) => {
                let kept = structs_to_keep(value, id, site)?;
                let pod = kept.ptr().cast::<Pod>();
                let n = (*pod).count;
                if n == 0 {
                    point(this, field.offset, 0, None)?;
                } else {
                    point(this, field.offset, (*pod).base.data as usize, Some(kept))?;
                }
                set_count(this, count, n)
            }
            kind => {
                let text = format!("{kind:?} is no kind of a single struct's attribute");
                raise(ExceptionKind::Runtime, &text);
                Err(Raised)
            }
        }
    }
}

/// The object itself where its structs follow each other (so that the attribute stays live), else a copy.
unsafe fn structs_to_keep(value: Obj<'_>, id: ClassId, site: &Site) -> R<Owned> {
    // SAFETY: the sources are live while they are copied.
    unsafe {
        if let Some(pod) = pods::cast_to(value.ptr(), id)
            && (*pod).contiguous()
        {
            return Ok(value.owned());
        }
        let sources = sources(value, id, site)?;
        let copy = pods::fresh(id, sources.pods.len())?;
        let owned = Owned::take(copy.cast())?;
        for (i, (from, at)) in sources.pods.iter().enumerate() {
            pods::copy_struct(copy, (*copy).at(i), *from, *at)?;
        }
        Ok(owned)
    }
}

/// How many elements an array of ours has, if it is what lies at `at`.
unsafe fn elements_at(held: &Owned, at: usize) -> R<Option<usize>> {
    // SAFETY: the object is live; its type says what it is.
    unsafe {
        let (data, len) = if list_storage::is_storage(held.ptr()) {
            let storage = held.ptr().cast::<Storage>();
            ((*storage).base.data as usize, (*storage).count)
        } else if let Some((data, len)) = slices::words(held.ptr()) {
            (data as usize, len)
        } else if let Some(pod) = pods::cast(held.ptr()) {
            pods::present(pod)?;
            ((*pod).base.data as usize, (*pod).count)
        } else {
            return Ok(None);
        };
        Ok((data == at).then_some(len))
    }
}

/// Before a struct goes to C: an array of ours is at least as long as the count says.
///
/// # Errors
/// `ValueError`.
///
/// # Safety
/// `this` is a live pod of one struct, of a class that has the field; the GIL is held.
pub unsafe fn check(this: *mut Pod, field: &'static Field) -> R<()> {
    // SAFETY: as promised by the caller.
    unsafe {
        let (FieldKind::PointerInts(_, count)
        | FieldKind::PointerWords(count)
        | FieldKind::PointerPods(_, count)) = field.kind
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
            raise(ExceptionKind::Value, &text);
            return Err(Raised);
        }
    }
    Ok(())
}

/// Gives every array that a struct points to room for as many elements as its count says (a library that found too
/// little room has just written the count). Whether any of them grew.
///
/// # Errors
/// `ValueError` for a count that cannot be meant; memory.
///
/// # Safety
/// `this` is a live pod of one struct; the GIL is held.
pub unsafe fn provide(this: *mut Pod) -> R<bool> {
    let mut grew = false;
    // SAFETY: as promised by the caller; what is pointed to is held.
    unsafe {
        for field in table::class((*this).id()).1.fields {
            let (size, count) = match field.kind {
                FieldKind::PointerInts(prim, count) => (prim.size(), count),
                FieldKind::PointerPods(id, count) => (table::class(id).1.size as usize, count),
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
                raise(
                    ExceptionKind::Value,
                    &format!("{name}: the library asks for {n} elements"),
                );
                return Err(Raised);
            };
            let (address, object) = match field.kind {
                FieldKind::PointerPods(id, _) => {
                    let pod = pods::fresh(id, n as usize)?;
                    ((*pod).base.data as usize, Owned::take(pod.cast())?)
                }
                FieldKind::PointerInts(prim, _) => {
                    let storage = new_storage(&vec![0; bytes], prim)?;
                    let at = (*storage.ptr().cast::<Storage>()).base.data as usize;
                    (at, storage)
                }
                _ => {
                    let words = Owned::take(slices::new_array(Slice::Address, &vec![0; bytes]))?;
                    let at = slices::words(words.ptr()).map_or(0, |w| w.0 as usize);
                    (at, words)
                }
            };
            point(this, field.offset, address, Some(object))?;
            grew = true;
        }
    }
    Ok(grew)
}
