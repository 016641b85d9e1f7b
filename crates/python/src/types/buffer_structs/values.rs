//! Conversion between members of structs and Python values: numbers, text, counts, sequences of numbers and of structs.

use pyo3::ffi;

use crate::cpython::errors::ExceptionKind;
use crate::cpython::{Obj, Owned, R, Raised};
use crate::types::buffer_structs::instance;
use crate::types::buffer_structs::instance::{BufferStruct, peek, poke};
use crate::types::convert;
use crate::types::convert::AttributeSite;
use crate::types::table;
use crate::types::table::{ClassId, Count, Prim};

/// The number at `at`.
///
/// # Errors
/// `ValueError` if foreign memory is no longer accessible.
///
/// # Safety
/// `this` is a live buffer struct and a number of this type lies at `at` in its memory.
pub unsafe fn number(this: *mut BufferStruct, at: *const u8, prim: Prim) -> R<Owned> {
    let mut bytes = [0u8; 8];
    // SAFETY: as promised by the caller.
    unsafe {
        peek(this, at, &mut bytes[..prim.size()])?;
    }
    match prim {
        Prim::F32 | Prim::F64 => convert::to_float(bytes, prim),
        _ => convert::to_int(bytes, prim),
    }
}

/// Converts a Python value to the bytes of a number of this type.
///
/// # Errors
/// `TypeError`, `OverflowError`.
pub fn bytes_of(value: Obj<'_>, prim: Prim, site: &AttributeSite) -> R<[u8; 8]> {
    match prim {
        Prim::F32 => {
            let mut out = [0; 8];
            out[..4].copy_from_slice(&(convert::float(value, site)? as f32).to_le_bytes());
            Ok(out)
        }
        Prim::F64 => convert::float(value, site).map(f64::to_le_bytes),
        _ => convert::ranged(value, prim, site).map(u64::to_le_bytes),
    }
}

/// Converts an address or foreign handle to its bytes: accepts ints and objects with `__index__`, not floats.
///
/// # Errors
/// `TypeError`, `OverflowError`.
pub fn pointer_bytes(value: Obj<'_>, site: &AttributeSite) -> R<[u8; 8]> {
    // SAFETY: an `Obj` is live.
    unsafe {
        if !value.is_int() && (ffi::PyIndex_Check(value.ptr()) == 0 || numpy_array(value)) {
            return Err(site.type_error("an int (an address or handle)", value));
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
/// `this` is a live buffer struct of one struct, and the count is a member of its class.
pub unsafe fn count_in(this: *mut BufferStruct, count: Count) -> R<u64> {
    // SAFETY: as promised by the caller.
    unsafe { count_at(this, (*this).base.data, count) }
}

/// The value of a hidden count of the struct at `start`.
///
/// # Errors
/// `ValueError` if foreign memory is no longer accessible.
///
/// # Safety
/// `this` is a live buffer struct, `start` one of its structs, and the count is a member of its class.
pub unsafe fn count_at(this: *mut BufferStruct, start: *const u8, count: Count) -> R<u64> {
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
/// `this` is a live buffer struct of one struct, and the count is a member of its class.
pub unsafe fn set_count(this: *mut BufferStruct, count: Count, n: usize) -> R<()> {
    // SAFETY: as promised by the caller.
    unsafe {
        let at = (*this).base.data.add(count.offset as usize);
        poke(this, at, &(n as u64).to_le_bytes()[..count.size as usize])
    }
}

/// The value as a buffer struct of class `id`.
///
/// # Errors
/// `TypeError`.
pub fn same_class(value: Obj<'_>, id: ClassId, site: &AttributeSite) -> R<*mut BufferStruct> {
    instance::cast_to(value, id).ok_or_else(|| site.type_error(table::class(id).1.name(), value))
}

/// Encodes a `str` without NULs as UTF-8.
///
/// # Errors
/// `TypeError` for other objects, `ValueError` for text with a NUL, `UnicodeEncodeError`.
pub fn encoded(value: Obj<'_>, site: &AttributeSite) -> R<Vec<u8>> {
    // SAFETY: an `Obj` is live; the bytes live as long as it does.
    unsafe {
        if !value.is_str() {
            return Err(site.type_error("a str", value));
        }
        let mut len = 0;
        let data = ffi::PyUnicode_AsUTF8AndSize(value.ptr(), &raw mut len);
        if data.is_null() {
            return Err(Raised);
        }
        let bytes = std::slice::from_raw_parts(data.cast::<u8>(), len as usize);
        if bytes.contains(&0) {
            return Err(site.fail(
                ExceptionKind::Value,
                "C text ends at a NUL; this str has one inside",
            ));
        }
        Ok(bytes.to_vec())
    }
}

/// Converts a sequence of numbers (list, tuple, bytes, array) to contiguous C elements.
///
/// # Errors
/// `TypeError`, `OverflowError`.
pub fn elements(value: Obj<'_>, prim: Prim, site: &AttributeSite) -> R<Vec<u8>> {
    elements_by(value, prim.size(), site, &|item| bytes_of(item, prim, site))
}

/// Like [`elements`], with a custom conversion to `size` bytes for each item.
///
/// # Errors
/// `TypeError`, and errors of the conversion.
pub fn elements_by(
    value: Obj<'_>,
    size: usize,
    site: &AttributeSite,
    convert_item: &dyn Fn(Obj<'_>) -> R<[u8; 8]>,
) -> R<Vec<u8>> {
    // SAFETY: an `Obj` is live.
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
            return Err(site.type_error("a sequence of integers", value));
        }
    }
    let items = convert::sequence(value, site)?;
    let mut out = Vec::with_capacity(items.len() * size);
    for i in 0..items.len() {
        let item = items.get(i);
        if item.is_str() || item.is_bytes() {
            return Err(site.type_error("a sequence of integers", item));
        }
        out.extend_from_slice(&convert_item(item)?[..size]);
    }
    Ok(out)
}

/// Structs to copy, and the owner of their objects.
pub struct Sources {
    /// Object and address of each struct.
    pub buffer_structs: Vec<(*mut BufferStruct, *const u8)>,
    _held: Owned,
}

/// The structs of an object of class `id`, or of a list or tuple of such objects.
///
/// # Errors
/// `TypeError`.
pub fn sources(value: Obj<'_>, id: ClassId, site: &AttributeSite) -> R<Sources> {
    let mut buffer_structs = Vec::new();
    let mut add = |from: *mut BufferStruct| {
        // SAFETY: callers pass a live buffer struct, which the returned `Sources` owns.
        unsafe {
            buffer_structs.extend((0..(*from).count).map(|i| (from, (*from).at(i).cast_const())))
        };
    };
    // SAFETY: an `Obj` is live; items are borrowed from the tuple that the result owns.
    unsafe {
        if let Some(from) = instance::cast_to(value, id) {
            add(from);
            let held = value.owned();
            return Ok(Sources {
                buffer_structs,
                _held: held,
            });
        }
        if !value.is_list() && !value.is_tuple() {
            return Err(site.type_error(table::class(id).1.name(), value));
        }
        let held = Owned::take(ffi::PySequence_Tuple(value.ptr()))?;
        for i in 0..ffi::PyTuple_Size(held.ptr()) {
            let item = Obj::new(ffi::PyTuple_GetItem(held.ptr(), i));
            match instance::cast_to(item, id) {
                Some(from) => add(from),
                None => {
                    let wanted = format!("{} or a list of them", table::class(id).1.name());
                    return Err(site.type_error(&wanted, item));
                }
            }
        }
        Ok(Sources {
            buffer_structs,
            _held: held,
        })
    }
}
