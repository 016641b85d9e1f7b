//! Conversion of Python values to C values. Errors name the class and the attribute.

use cupyrite_sys::checked;
use pyo3::ffi;

use crate::cpython;
use crate::cpython::errors::{ExceptionKind, prefix, raise};
use crate::cpython::{Items, Obj, Owned, R, Raised, short_name};
use crate::types::table::{ClassId, Kind, Prim};
use crate::types::{object, registry, table};

/// Destination of a value in error messages: a class, and an attribute or parameter.
#[derive(Clone, Copy)]
pub struct AttributeSite {
    /// Type with the attribute.
    pub ty: *mut ffi::PyTypeObject,
    /// Attribute or parameter.
    pub attr: &'static str,
}

impl AttributeSite {
    /// `CUlaunchConfig.gridDimX`
    pub fn name(&self) -> String {
        // SAFETY: a site exists only within one call, during which the caller keeps the type alive.
        format!("{}.{}", unsafe { short_name(self.ty) }, self.attr)
    }

    /// Raises `TypeError: CUlaunchConfig.gridDimX: <wanted> is required, not str`.
    #[cold]
    pub fn type_error(&self, wanted: &str, got: Obj<'_>) -> Raised {
        let got = got.type_short_name();
        raise(
            ExceptionKind::Type,
            &format!("{}: {wanted} is required, not {got}", self.name()),
        )
    }

    /// Raises `exc` with a message after the site's name.
    #[cold]
    pub fn fail(&self, exc: ExceptionKind, message: &str) -> Raised {
        raise(exc, &format!("{}: {message}", self.name()))
    }

    /// Puts the site's name before the message of the current exception.
    #[cold]
    fn named(&self, Raised: Raised) -> Raised {
        prefix(&format!("{}: ", self.name()));
        Raised
    }
}

/// The value of a handle, integer or callback object as 64 bits (signed types sign-extended).
///
/// # Errors
/// `ValueError` if foreign memory cannot be read.
///
/// # Safety
/// `obj` is an instance of class `id`, which is a handle, integer or callback class; the GIL is held.
#[inline]
pub unsafe fn handle_bits(obj: *mut object::Instance, id: ClassId) -> R<u64> {
    let class = table::class(id).1;
    // SAFETY: as promised by the caller; `class.size` is the size of the C type at `data`.
    unsafe {
        let size = class.size as usize;
        if size == 8 && (*obj).state & object::FOREIGN == 0 {
            // Fast path: a 64-bit handle that owns its memory.
            return Ok((*obj).data.cast::<u64>().read_unaligned());
        }
        let mut bytes = [0u8; 8];
        object::read(obj, 0, &mut bytes[..size.min(8)])?;
        let raw = u64::from_le_bytes(bytes);
        Ok(match class.kind {
            Kind::Integer(p) if p.signed() && size == 4 => raw as u32 as i32 as i64 as u64,
            _ => raw,
        })
    }
}

/// Converts an int, a Cupyrite handle, a float or any other object with `__int__`; refuses text.
///
/// # Errors
/// `TypeError`, `OverflowError` for more than 64 bits, exceptions of `__int__`.
#[inline]
pub fn integer(obj: Obj<'_>, site: &AttributeSite) -> R<i128> {
    if obj.is_int() {
        return long(obj, site);
    }
    integer_slow(obj, site)
}

fn integer_slow(obj: Obj<'_>, site: &AttributeSite) -> R<i128> {
    let Some(id) = registry::of(obj) else {
        if !obj.has_slot(ffi::Py_nb_int) {
            return Err(site.type_error("an integer", obj));
        }
        return long(as_int(obj, site)?.obj(), site);
    };
    // SAFETY: the registry found the class of the instance.
    let bits = || unsafe { handle_bits(obj.ptr().cast(), id) };
    match table::class(id).1.kind {
        Kind::Record | Kind::Marker | Kind::BufferStruct => Err(site.type_error("an integer", obj)),
        Kind::Integer(p) if p.signed() => Ok(bits()? as i64 as i128),
        _ => Ok(i128::from(bits()?)),
    }
}

/// `int(obj)`
fn as_int(obj: Obj<'_>, site: &AttributeSite) -> R<Owned> {
    // SAFETY: an `Obj` is live.
    Owned::take(unsafe { ffi::PyNumber_Long(obj.ptr()) }).map_err(|raised| site.named(raised))
}

#[inline]
fn long(obj: Obj<'_>, site: &AttributeSite) -> R<i128> {
    if let Some(value) = cpython::as_i64_if_fits(obj) {
        return Ok(i128::from(value));
    }
    let value = cpython::as_u64(obj);
    if cpython::raised() {
        cpython::clear();
        return Err(site.fail(
            ExceptionKind::Overflow,
            "the number does not fit in 64 bits",
        ));
    }
    Ok(i128::from(value))
}

/// Converts an integer within the range of `prim` to the low bytes of a u64.
///
/// # Errors
/// `TypeError`, `OverflowError`.
#[inline]
pub fn ranged(obj: Obj<'_>, prim: Prim, site: &AttributeSite) -> R<u64> {
    let value = integer(obj, site)?;
    let (low, high) = prim.range();
    if value < low || value > high {
        return Err(site.fail(
            ExceptionKind::Overflow,
            &format!("{value} is outside {low} to {high} ({})", prim.words()),
        ));
    }
    Ok(value as u64)
}

/// Converts the value of a handle, callback or integer class: as [`ranged`], with None as zero.
///
/// # Errors
/// As [`ranged`].
#[inline]
pub fn handle(obj: Obj<'_>, prim: Prim, site: &AttributeSite) -> R<u64> {
    if obj.is_none() {
        return Ok(0);
    }
    ranged(obj, prim, site)
}

/// Converts a 32-bit enum value, signed or unsigned, from a member, an int or any object that `int()` accepts.
///
/// # Errors
/// `TypeError`, `OverflowError`, exceptions of `int()`.
pub fn enum_value(obj: Obj<'_>, site: &AttributeSite) -> R<u32> {
    let value = if obj.is_int() || registry::of(obj).is_some() {
        integer(obj, site)?
    } else if obj.is_none() {
        return Err(site.type_error("an enum member", obj));
    } else {
        long(as_int(obj, site)?.obj(), site)?
    };
    if value < i128::from(i32::MIN) || value > i128::from(u32::MAX) {
        return Err(site.fail(
            ExceptionKind::Overflow,
            &format!("{value} does not fit in a C enum"),
        ));
    }
    Ok(value as u32)
}

/// Converts a float.
///
/// # Errors
/// `TypeError`, exceptions of `__float__`.
pub fn float(obj: Obj<'_>, site: &AttributeSite) -> R<f64> {
    // SAFETY: an `Obj` is live.
    let value = unsafe { ffi::PyFloat_AsDouble(obj.ptr()) };
    if value == -1.0 && cpython::raised() {
        return Err(site.named(Raised));
    }
    Ok(value)
}

/// Converts an address. Returns it with the object that must stay alive.
///
/// Accepts None, ints, Cupyrite handles (their value), Cupyrite structs (their address), buffers, and other numbers with
/// `__int__`. A buffer stays exported, so that a `bytearray` cannot move its memory.
///
/// # Errors
/// `TypeError`, exceptions of the conversion.
pub fn address(obj: Obj<'_>, site: &AttributeSite) -> R<(u64, Option<Owned>)> {
    const WANTED: &str = "None, an int or an object with the buffer protocol";
    if obj.is_none() {
        return Ok((0, None));
    }
    if obj.is_int() {
        return Ok((plain_address(obj, site)?, None));
    }
    if let Some(id) = registry::of(obj) {
        let this = obj.ptr().cast::<object::Instance>();
        // SAFETY: the registry found the class of the instance.
        return unsafe {
            match table::class(id).1.kind {
                Kind::Marker => Err(site.type_error(WANTED, obj)),
                Kind::Record | Kind::BufferStruct => Ok(((*this).data as u64, Some(obj.owned()))),
                _ => Ok((handle_bits(this, id)?, None)),
            }
        };
    }
    // SAFETY: an `Obj` is live.
    unsafe {
        if ffi::PyIndex_Check(obj.ptr()) != 0 {
            match Owned::take(ffi::PyNumber_Index(obj.ptr())) {
                Ok(number) => return Ok((plain_address(number.obj(), site)?, None)),
                Err(Raised) => cpython::clear(),
            }
        }
        if ffi::PyFloat_Check(obj.ptr()) == 0 && obj.has_buffer() {
            let view = Owned::take(ffi::PyMemoryView_FromObject(obj.ptr()))?;
            let mut buffer = ffi::Py_buffer::new();
            if ffi::PyObject_GetBuffer(view.ptr(), &raw mut buffer, ffi::PyBUF_SIMPLE) != 0 {
                cpython::clear();
                if ffi::PyObject_GetBuffer(view.ptr(), &raw mut buffer, ffi::PyBUF_FULL_RO) != 0 {
                    return Err(site.named(Raised));
                }
            }
            let at = buffer.buf as u64;
            ffi::PyBuffer_Release(&raw mut buffer);
            return Ok((at, Some(view)));
        }
    }
    if obj.has_slot(ffi::Py_nb_int) {
        let number = as_int(obj, site)?;
        return Ok((plain_address(number.obj(), site)?, None));
    }
    Err(site.type_error(WANTED, obj))
}

/// Converts an int to an address. Raises `TypeError` outside 0 to 2^64-1, as in NVIDIA's package.
fn plain_address(obj: Obj<'_>, site: &AttributeSite) -> R<u64> {
    let value = cpython::as_u64(obj);
    if value == u64::MAX && cpython::raised() {
        cpython::clear();
        return Err(site.fail(
            ExceptionKind::Type,
            "an address is required: an int from 0 to 2**64-1",
        ));
    }
    Ok(value)
}

/// A copy of the bytes of a buffer object.
///
/// # Errors
/// `TypeError` for other objects, exceptions of the exporter.
pub fn bytes(obj: Obj<'_>, site: &AttributeSite) -> R<Vec<u8>> {
    if !obj.has_buffer() {
        return Err(site.type_error("a bytes-like object", obj));
    }
    // SAFETY: an `Obj` is live; the buffer stays exported until its bytes are copied.
    unsafe {
        let mut buffer = ffi::Py_buffer::new();
        if ffi::PyObject_GetBuffer(obj.ptr(), &raw mut buffer, ffi::PyBUF_SIMPLE) != 0 {
            return Err(site.named(Raised));
        }
        let bytes = if buffer.len > 0 {
            std::slice::from_raw_parts(buffer.buf.cast::<u8>(), buffer.len as usize).to_vec()
        } else {
            Vec::new()
        };
        ffi::PyBuffer_Release(&raw mut buffer);
        Ok(bytes)
    }
}

/// Converts the `_ptr` argument of a constructor: zero, or the address of `len` readable bytes.
///
/// # Errors
/// `TypeError`, `OverflowError`, `ValueError` for memory that is not readable.
pub fn pointer_argument(obj: Obj<'_>, len: usize, site: &AttributeSite) -> R<usize> {
    let address = ranged(obj, Prim::U64, site)? as usize;
    if address != 0 && !checked::is_readable(address as u64, len) {
        return Err(site.fail(
            ExceptionKind::Value,
            &format!("the {len} bytes at {address:#x} are not readable memory"),
        ));
    }
    Ok(address)
}

/// The items of a sequence.
///
/// # Errors
/// `TypeError` for other objects, `str` and `dict`; exceptions of the sequence.
pub fn sequence(value: Obj<'_>, site: &AttributeSite) -> R<Items> {
    // SAFETY: an `Obj` is live.
    let refused =
        unsafe { ffi::PySequence_Check(value.ptr()) == 0 || ffi::PyDict_Check(value.ptr()) != 0 };
    if refused || value.is_str() {
        return Err(site.type_error("a list or tuple", value));
    }
    value.snapshot().map_err(|raised| site.named(raised))
}

/// Converts the bytes of a C integer of type `prim` to a Python int.
///
/// # Errors
/// `MemoryError`.
pub fn to_int(bytes: [u8; 8], prim: Prim) -> R<Owned> {
    let raw = u64::from_le_bytes(bytes);
    match prim {
        Prim::I8 => cpython::from_i64((raw as i8).into()),
        Prim::I16 => cpython::from_i64((raw as i16).into()),
        Prim::I32 => cpython::from_i64((raw as i32).into()),
        Prim::I64 => cpython::from_i64(raw as i64),
        _ => cpython::from_u64(raw),
    }
}

/// Converts the bytes of a C float of type `prim` to a Python float.
///
/// # Errors
/// `MemoryError`.
pub fn to_float(bytes: [u8; 8], prim: Prim) -> R<Owned> {
    cpython::from_f64(if prim == Prim::F32 {
        f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]).into()
    } else {
        f64::from_le_bytes(bytes)
    })
}
