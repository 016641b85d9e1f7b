//! Getter and setter shared by all attributes of the struct classes of the raising modules.
//!
//! This module handles single structs. [`crate::types::pods::columns`] handles struct arrays,
//! [`crate::types::pods::pointers`] pointers to arrays.

use std::ffi::{c_int, c_void};

use pyo3::ffi;

use crate::cpython::{Obj, Owned, R, Raised};
use crate::types::convert;
use crate::types::convert::Site;
use crate::types::errors::{ExceptionKind, guard_or, raise};
use crate::types::numpy;
use crate::types::numpy::Item;
use crate::types::object;
use crate::types::pods;
use crate::types::pods::{Pod, answer, done, peek, poke};
use crate::types::pods::{columns, pointers};
use crate::types::structs::fields::{to_float, to_int};
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
    guard_or(std::ptr::null_mut(), || {
        // SAFETY: the descriptor checked that `obj` is an instance; the closure is the field.
        answer(unsafe { get(obj.cast(), &*closure.cast::<Field>()) })
    })
}

unsafe extern "C" fn setter(
    obj: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
    closure: *mut c_void,
) -> c_int {
    guard_or(-1, || {
        // SAFETY: the descriptor checked that `obj` is an instance; the closure is the field.
        unsafe {
            let field = &*closure.cast::<Field>();
            let site = Site {
                ty: ffi::Py_TYPE(obj),
                attr: table::text(field.name),
            };
            if value.is_null() {
                site.fail(
                    ExceptionKind::Attribute,
                    "a C struct's attribute cannot be deleted",
                );
                return -1;
            }
            done(set(obj.cast(), field, Obj::new(value), &site))
        }
    })
}

/// Size in bytes of a member in the struct.
pub fn width(kind: FieldKind) -> usize {
    let class_size = |id: ClassId| table::class(id).1.size as usize;
    match kind {
        FieldKind::Int(p) | FieldKind::Long(p) | FieldKind::Float(p) => p.size(),
        FieldKind::Hidden(p, n) | FieldKind::Fixed(p, n) | FieldKind::Counted(p, n, _) => {
            p.size() * n.max(1) as usize
        }
        FieldKind::Str(n) => n as usize,
        FieldKind::Pod(id) => class_size(id),
        FieldKind::Pods(id, n, _) | FieldKind::Records(id, n) => class_size(id) * n.max(1) as usize,
        _ => 8,
    }
}

/// The number at `at`.
///
/// # Errors
/// `ValueError` if foreign memory is no longer accessible.
///
/// # Safety
/// `this` is a live pod and a number of this type lies at `at` in its memory.
pub unsafe fn number(this: *mut Pod, at: *const u8, prim: Prim) -> R<Owned> {
    let mut bytes = [0u8; 8];
    // SAFETY: as promised by the caller.
    unsafe {
        peek(this, at, &mut bytes[..prim.size()])?;
        Owned::take(match prim {
            Prim::F32 | Prim::F64 => to_float(bytes, prim),
            _ => to_int(bytes, prim),
        })
    }
}

/// Converts a Python value to the bytes of a number of this type.
///
/// # Errors
/// `TypeError`, `OverflowError`.
pub fn bytes_of(value: Obj<'_>, prim: Prim, site: &Site) -> R<[u8; 8]> {
    // SAFETY: an `Obj` is live.
    unsafe {
        match prim {
            Prim::F32 => convert::float(value.ptr(), site).map(|v| {
                let mut out = [0; 8];
                out[..4].copy_from_slice(&(v as f32).to_le_bytes());
                out
            }),
            Prim::F64 => convert::float(value.ptr(), site).map(f64::to_le_bytes),
            _ => convert::ranged(value.ptr(), prim, site).map(u64::to_le_bytes),
        }
    }
    .ok_or(Raised)
}

/// Converts an address or foreign handle to its bytes: accepts ints and objects with `__index__`, not floats.
///
/// # Errors
/// `TypeError`, `OverflowError`.
pub fn pointer_bytes(value: Obj<'_>, site: &Site) -> R<[u8; 8]> {
    // SAFETY: an `Obj` is live.
    unsafe {
        if !value.is_int() && (ffi::PyIndex_Check(value.ptr()) == 0 || numpy_array(value)) {
            site.wrong("an int (an address or handle)", value.ptr());
            return Err(Raised);
        }
    }
    bytes_of(value, Prim::I64, site)
}

/// Whether the value is an array (a buffer with `__len__`). Arrays define `__index__` regardless of their shape.
fn numpy_array(value: Obj<'_>) -> bool {
    value.has_buffer()
        && value
            .attribute(c"__len__")
            .is_ok_and(|found| found.is_some())
}

/// The value of an attribute.
///
/// # Errors
/// `ValueError` if foreign memory is no longer accessible, `UnicodeDecodeError`, `MemoryError`.
///
/// # Safety
/// `this` is a live pod of a class that has the field; the GIL is held.
pub unsafe fn get(this: *mut Pod, field: &'static Field) -> R<Owned> {
    // SAFETY: the caller guarantees a live pod with the field; offsets and sizes come from the C layout of the class.
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
            FieldKind::Fixed(p, n) | FieldKind::Hidden(p, n) => numbers(this, at, p, n as usize),
            FieldKind::Counted(p, max, count) => {
                let n = count_in(this, count)?.min(max.into());
                numbers(this, at, p, n as usize)
            }
            FieldKind::Pod(id) => Owned::take(pods::view(id, this, at, 1)?.cast()),
            FieldKind::Pods(id, max, count) => {
                let mut n = max as usize;
                if let Some(count) = count {
                    n = count_in(this, count)?.min(max.into()) as usize;
                }
                // A single-struct class can only show the first element.
                if table::class(id).1.flags & ARRAY == 0 {
                    n = 1;
                }
                Owned::take(pods::view(id, this, at, n)?.cast())
            }
            _ => pointers::get(this, field),
        }
    }
}

unsafe fn numbers(this: *mut Pod, at: *mut u8, prim: Prim, n: usize) -> R<Owned> {
    // SAFETY: callers pass a live pod with `n` numbers at `at`.
    unsafe { numpy::of_pod(this, at, Item::Number(prim), &[(n, prim.size() as isize)]) }
}

/// Decodes UTF-8 up to the first NUL.
///
/// # Errors
/// `UnicodeDecodeError`.
pub fn text(bytes: &[u8]) -> R<Owned> {
    let len = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    // SAFETY: `len` is at most the length of `bytes`.
    Owned::take(unsafe {
        ffi::PyUnicode_DecodeUTF8(bytes.as_ptr().cast(), len as isize, std::ptr::null())
    })
}

/// The value of a hidden count.
///
/// # Errors
/// `ValueError` if foreign memory is no longer accessible.
///
/// # Safety
/// `this` is a live pod of one struct, and the count is a member of its class.
pub unsafe fn count_in(this: *mut Pod, count: Count) -> R<u64> {
    // SAFETY: as promised by the caller.
    unsafe { count_at(this, (*this).base.data, count) }
}

/// The value of a hidden count of the struct at `start`.
///
/// # Errors
/// `ValueError` if foreign memory is no longer accessible.
///
/// # Safety
/// `this` is a live pod, `start` one of its structs, and the count is a member of its class.
pub unsafe fn count_at(this: *mut Pod, start: *const u8, count: Count) -> R<u64> {
    let mut bytes = [0; 8];
    // SAFETY: as promised by the caller.
    unsafe {
        let at = start.wrapping_add(count.offset as usize);
        peek(this, at, &mut bytes[..count.size as usize])?;
    }
    Ok(u64::from_le_bytes(bytes))
}

/// Writes a hidden count.
///
/// # Errors
/// `ValueError` for a read-only object, or if foreign memory is no longer accessible.
///
/// # Safety
/// `this` is a live pod of one struct, and the count is a member of its class.
pub unsafe fn set_count(this: *mut Pod, count: Count, n: usize) -> R<()> {
    // SAFETY: as promised by the caller.
    unsafe {
        let at = (*this).base.data.add(count.offset as usize);
        poke(this, at, &(n as u64).to_le_bytes()[..count.size as usize])
    }
}

/// Assigns an attribute.
///
/// # Errors
/// `TypeError` for a wrong kind of value, `ValueError` for a wrong length or a read-only object, `OverflowError`.
///
/// # Safety
/// `this` is a live pod of a class that has the field; the GIL is held.
pub unsafe fn set(this: *mut Pod, field: &'static Field, value: Obj<'_>, site: &Site) -> R<()> {
    // SAFETY: the caller guarantees a live pod with the field; offsets and sizes come from the C layout of the class.
    unsafe {
        pods::writable(this)?;
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
            FieldKind::Fixed(p, n) => {
                let values = elements(value, p, site)?;
                let (n, given) = (n as usize, values.len() / p.size());
                if given != n {
                    let text = format!("Expected length {n} for field {}, got {given}", site.attr);
                    raise(ExceptionKind::Value, &text);
                    return Err(Raised);
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
                    raise(ExceptionKind::Value, &text);
                    return Err(Raised);
                }
                poke(this, at, &values)?;
                set_count(this, count, given)
            }
            FieldKind::Pod(id) => {
                let from = same_class(value, id, site)?;
                if (*from).count != 1 {
                    let text = format!(
                        "Expected length 1 for field {}, got {}",
                        site.attr,
                        (*from).count
                    );
                    raise(ExceptionKind::Value, &text);
                    return Err(Raised);
                }
                pods::copy_struct(this, at, from, (*from).base.data)
            }
            FieldKind::Pods(id, max, count) => {
                set_structs(this, at, (id, max as usize, count), value, site)
            }
            _ => pointers::set(this, field, value, site),
        }
    }
}

/// The value as a pod of class `id`.
///
/// # Errors
/// `TypeError`.
pub fn same_class(value: Obj<'_>, id: ClassId, site: &Site) -> R<*mut Pod> {
    // SAFETY: an `Obj` is live.
    unsafe {
        match pods::cast_to(value.ptr(), id) {
            Some(from) => Ok(from),
            None => {
                site.wrong(table::class(id).1.name(), value.ptr());
                Err(Raised)
            }
        }
    }
}

unsafe fn set_text(this: *mut Pod, at: *mut u8, room: usize, value: Obj<'_>, site: &Site) -> R<()> {
    let bytes = encoded(value, site)?;
    if bytes.len() >= room {
        let text = format!(
            "String too long for field {}, max length is {}",
            site.attr,
            room - 1
        );
        raise(ExceptionKind::Value, &text);
        return Err(Raised);
    }
    let mut padded = bytes;
    padded.resize(room, 0);
    // SAFETY: callers pass a live pod with `room` bytes at `at`.
    unsafe { poke(this, at, &padded) }
}

/// Encodes a `str` without NULs as UTF-8.
///
/// # Errors
/// `TypeError` for other objects, `ValueError` for text with a NUL, `UnicodeEncodeError`.
pub fn encoded(value: Obj<'_>, site: &Site) -> R<Vec<u8>> {
    // SAFETY: an `Obj` is live; the bytes live as long as it does.
    unsafe {
        if !value.is_str() {
            site.wrong("a str", value.ptr());
            return Err(Raised);
        }
        let mut len = 0;
        let data = ffi::PyUnicode_AsUTF8AndSize(value.ptr(), &raw mut len);
        if data.is_null() {
            return Err(Raised);
        }
        let bytes = std::slice::from_raw_parts(data.cast::<u8>(), len as usize);
        if bytes.contains(&0) {
            site.fail(
                ExceptionKind::Value,
                "C text ends at a NUL; this str has one inside",
            );
            return Err(Raised);
        }
        Ok(bytes.to_vec())
    }
}

/// Converts a sequence of numbers (list, tuple, bytes, array) to contiguous C elements.
///
/// # Errors
/// `TypeError`, `OverflowError`.
pub fn elements(value: Obj<'_>, prim: Prim, site: &Site) -> R<Vec<u8>> {
    elements_by(value, prim.size(), site, &|item| bytes_of(item, prim, site))
}

/// Like [`elements`], with a custom conversion to `size` bytes for each item.
///
/// # Errors
/// `TypeError`, and errors of the conversion.
pub fn elements_by(
    value: Obj<'_>,
    size: usize,
    site: &Site,
    convert: &dyn Fn(Obj<'_>) -> R<[u8; 8]>,
) -> R<Vec<u8>> {
    // SAFETY: an `Obj` is live; items are borrowed from an owned tuple.
    unsafe {
        // Objects without a length (iterators, numbers, 0-d arrays) are not sequences.
        if ffi::PySequence_Check(value.ptr()) != 0
            && !value.is_str()
            && ffi::PySequence_Size(value.ptr()) < 0
        {
            if ffi::PyErr_ExceptionMatches(ffi::PyExc_TypeError) == 0 {
                return Err(Raised);
            }
            ffi::PyErr_Clear();
            site.wrong("a sequence of integers", value.ptr());
            return Err(Raised);
        }
        let items =
            Owned::take(crate::types::structs::lists::sequence(value.ptr(), site).ok_or(Raised)?)?;
        let n = ffi::PyTuple_Size(items.ptr());
        let mut out = Vec::with_capacity(n as usize * size);
        for i in 0..n {
            let item = Obj::new(ffi::PyTuple_GetItem(items.ptr(), i));
            if item.is_str() || item.is_bytes() {
                site.wrong("a sequence of integers", item.ptr());
                return Err(Raised);
            }
            out.extend_from_slice(&convert(item)?[..size]);
        }
        Ok(out)
    }
}

/// Assigns a nested array of structs, from a struct array or a list of single structs.
unsafe fn set_structs(
    this: *mut Pod,
    at: *mut u8,
    (id, max, count): (ClassId, usize, Option<Count>),
    value: Obj<'_>,
    site: &Site,
) -> R<()> {
    // SAFETY: callers pass a live pod with an array of `max` structs at `at`; `sources` owns the source pods.
    unsafe {
        let sources = sources(value, id, site)?;
        let given = sources.pods.len();
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
            raise(ExceptionKind::Value, &text);
            return Err(Raised);
        }
        let size = table::class(id).1.size as usize;
        for (i, (from, source)) in sources.pods.iter().enumerate() {
            pods::copy_struct(this, at.add(i * size), *from, *source)?;
        }
        if let Some(count) = count {
            set_count(this, count, given)?;
        }
    }
    Ok(())
}

/// Structs to copy, and the owner of their objects.
pub struct Sources {
    /// Object and address of each struct.
    pub pods: Vec<(*mut Pod, *const u8)>,
    _held: Owned,
}

/// The structs of an object of class `id`, or of a list or tuple of such objects.
///
/// # Errors
/// `TypeError`.
pub fn sources(value: Obj<'_>, id: ClassId, site: &Site) -> R<Sources> {
    let mut pods = Vec::new();
    let mut add = |from: *mut Pod| {
        // SAFETY: callers pass a live pod, which the returned `Sources` owns.
        unsafe { pods.extend((0..(*from).count).map(|i| (from, (*from).at(i).cast_const()))) };
    };
    // SAFETY: an `Obj` is live; items are borrowed from the tuple that the result owns.
    unsafe {
        if let Some(from) = pods::cast_to(value.ptr(), id) {
            add(from);
            let held = value.owned();
            return Ok(Sources { pods, _held: held });
        }
        if !value.is_list() && !value.is_tuple() {
            site.wrong(table::class(id).1.name(), value.ptr());
            return Err(Raised);
        }
        let held = Owned::take(ffi::PySequence_Tuple(value.ptr()))?;
        for i in 0..ffi::PyTuple_Size(held.ptr()) {
            let item = Obj::new(ffi::PyTuple_GetItem(held.ptr(), i));
            match pods::cast_to(item.ptr(), id) {
                Some(from) => add(from),
                None => {
                    let wanted = format!("{} or a list of them", table::class(id).1.name());
                    site.wrong(&wanted, item.ptr());
                    return Err(Raised);
                }
            }
        }
        Ok(Sources { pods, _held: held })
    }
}

/// Checks a struct before it is passed to C: foreign memory is readable, and the arrays it points to have at least as many
/// elements as its counts say.
///
/// # Errors
/// `ValueError`.
///
/// # Safety
/// `this` is a live pod.
pub unsafe fn prepare(this: *mut Pod) -> R<()> {
    // SAFETY: as promised by the caller.
    unsafe {
        pods::present(this)?;
        if (*this).array || !object::holds_any(this.cast()) {
            return Ok(());
        }
        for field in table::class((*this).id()).1.fields {
            match field.kind {
                FieldKind::Pod(_) => {
                    let inner = get(this, field)?;
                    prepare(inner.ptr().cast())?;
                }
                _ => pointers::check(this, field)?,
            }
        }
    }
    Ok(())
}
