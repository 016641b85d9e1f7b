//! Conversion of Python values to C values. Errors name the class and the attribute.

use pyo3::ffi;

use crate::types::errors::{ExceptionKind, name_of_type, prefix, raise, type_name};
use crate::types::table::{ClassId, Prim};
use crate::types::{memory, object, registry};

/// Destination of a value in error messages: a class, and an attribute or parameter.
#[derive(Clone, Copy)]
pub struct Site {
    /// Type with the attribute.
    pub ty: *mut ffi::PyTypeObject,
    /// Attribute or parameter.
    pub attr: &'static str,
}

impl Site {
    /// `CUlaunchConfig.gridDimX`
    pub fn name(&self) -> String {
        // SAFETY: a site exists only within one call, during which the caller keeps the type alive.
        format!("{}.{}", unsafe { name_of_type(self.ty) }, self.attr)
    }

    /// Raises `TypeError: CUlaunchConfig.gridDimX: <wanted> is required, not str`.
    ///
    /// # Safety
    /// `got` is a live object and the GIL is held.
    #[cold]
    pub unsafe fn wrong(&self, wanted: &str, got: *mut ffi::PyObject) {
        // SAFETY: as promised by the caller.
        let got = unsafe { type_name(got) };
        raise(
            ExceptionKind::Type,
            &format!("{}: {wanted} is required, not {got}", self.name()),
        );
    }

    /// Raises `exc` with a message after the site's name.
    #[cold]
    pub fn fail(&self, exc: ExceptionKind, message: &str) {
        raise(exc, &format!("{}: {message}", self.name()));
    }
}

/// The value of a handle, integer or callback object as 64 bits (signed types sign-extended).
///
/// # Safety
/// `obj` is an instance of class `id`, which is a handle, integer or callback class; the GIL is held.
#[inline]
pub unsafe fn handle_bits(obj: *mut object::Instance, id: ClassId) -> Option<u64> {
    let class = crate::types::table::class(id).1;
    // SAFETY: as promised by the caller; `class.size` is the size of the C type at `data`.
    unsafe {
        let size = class.size as usize;
        if size == 8 && (*obj).state & object::FOREIGN == 0 {
            // Fast path: a 64-bit handle that owns its memory.
            return Some((*obj).data.cast::<u64>().read_unaligned());
        }
        let mut bytes = [0u8; 8];
        if !object::read(obj, 0, &mut bytes[..size.min(8)]) {
            return None;
        }
        let raw = u64::from_le_bytes(bytes);
        Some(match class.kind {
            crate::types::table::Kind::Integer(p) if p.signed() && size == 4 => {
                raw as u32 as i32 as i64 as u64
            }
            _ => raw,
        })
    }
}

/// Converts an int, a Cupyrite handle, a float or any other object with `__int__`; refuses text. None with an exception.
///
/// # Safety
/// `obj` is a live object and the GIL is held.
#[inline]
pub unsafe fn integer(obj: *mut ffi::PyObject, site: &Site) -> Option<i128> {
    // SAFETY: as promised by the caller.
    unsafe {
        if ffi::PyLong_Check(obj) != 0 {
            return long(obj, site);
        }
        integer_slow(obj, site)
    }
}

unsafe fn integer_slow(obj: *mut ffi::PyObject, site: &Site) -> Option<i128> {
    // SAFETY: as promised by the caller of `integer`.
    unsafe {
        if let Some(id) = registry::of(obj) {
            return match crate::types::table::class(id).1.kind {
                crate::types::table::Kind::Record
                | crate::types::table::Kind::Marker
                | crate::types::table::Kind::Pod => {
                    site.wrong("an integer", obj);
                    None
                }
                crate::types::table::Kind::Integer(p) if p.signed() => {
                    handle_bits(obj.cast(), id).map(|v| v as i64 as i128)
                }
                _ => handle_bits(obj.cast(), id).map(i128::from),
            };
        }
        if ffi::PyType_GetSlot(ffi::Py_TYPE(obj), ffi::Py_nb_int).is_null() {
            site.wrong("an integer", obj);
            return None;
        }
        let number = ffi::PyNumber_Long(obj);
        if number.is_null() {
            prefix(&format!("{}: ", site.name()));
            return None;
        }
        let value = long(number, site);
        ffi::Py_DECREF(number);
        value
    }
}

#[inline]
unsafe fn long(obj: *mut ffi::PyObject, site: &Site) -> Option<i128> {
    // SAFETY: the callers pass a live int and hold the GIL.
    unsafe {
        let mut overflow = 0;
        let value = ffi::PyLong_AsLongLongAndOverflow(obj, &mut overflow);
        if overflow == 0 {
            return Some(i128::from(value));
        }
        if overflow > 0 {
            let value = ffi::PyLong_AsUnsignedLongLong(obj);
            if ffi::PyErr_Occurred().is_null() {
                return Some(i128::from(value));
            }
            ffi::PyErr_Clear();
        }
        site.fail(
            ExceptionKind::Overflow,
            "the number does not fit in 64 bits",
        );
        None
    }
}

/// Converts an integer within the range of `prim` to the low bytes of a u64.
///
/// # Safety
/// `obj` is a live object and the GIL is held.
#[inline]
pub unsafe fn ranged(obj: *mut ffi::PyObject, prim: Prim, site: &Site) -> Option<u64> {
    // SAFETY: as promised by the caller.
    let value = unsafe { integer(obj, site)? };
    let (low, high) = prim.range();
    if value < low || value > high {
        site.fail(
            ExceptionKind::Overflow,
            &format!("{value} is outside {low} to {high} ({})", prim.words()),
        );
        return None;
    }
    Some(value as u64)
}

/// Converts the value of a handle, callback or integer class: as [`ranged`], with None as zero.
///
/// # Safety
/// `obj` is a live object and the GIL is held.
#[inline]
pub unsafe fn handle(obj: *mut ffi::PyObject, prim: Prim, site: &Site) -> Option<u64> {
    // SAFETY: as promised by the caller.
    unsafe {
        if obj == ffi::Py_None() {
            return Some(0);
        }
        ranged(obj, prim, site)
    }
}

/// Converts a 32-bit enum value, signed or unsigned, from a member, an int or any object that `int()` accepts.
///
/// # Safety
/// `obj` is a live object and the GIL is held.
pub unsafe fn enum_value(obj: *mut ffi::PyObject, site: &Site) -> Option<u32> {
    // SAFETY: as promised by the caller.
    unsafe {
        let value = if ffi::PyLong_Check(obj) != 0 || registry::of(obj).is_some() {
            integer(obj, site)?
        } else if obj == ffi::Py_None() {
            site.wrong("an enum member", obj);
            return None;
        } else {
            let number = ffi::PyNumber_Long(obj);
            if number.is_null() {
                prefix(&format!("{}: ", site.name()));
                return None;
            }
            let value = long(number, site);
            ffi::Py_DECREF(number);
            value?
        };
        if value < i128::from(i32::MIN) || value > i128::from(u32::MAX) {
            site.fail(
                ExceptionKind::Overflow,
                &format!("{value} does not fit in a C enum"),
            );
            return None;
        }
        Some(value as u32)
    }
}

/// Converts a float.
///
/// # Safety
/// `obj` is a live object and the GIL is held.
pub unsafe fn float(obj: *mut ffi::PyObject, site: &Site) -> Option<f64> {
    // SAFETY: as promised by the caller.
    unsafe {
        let value = ffi::PyFloat_AsDouble(obj);
        if value == -1.0 && !ffi::PyErr_Occurred().is_null() {
            prefix(&format!("{}: ", site.name()));
            return None;
        }
        Some(value)
    }
}

/// Converts an address. Returns it with the object that must stay alive (a new reference, or null).
///
/// Accepts None, ints, Cupyrite handles (their value), Cupyrite structs (their address), buffers, and other numbers with
/// `__int__`. A buffer stays exported, so that a `bytearray` cannot move its memory.
///
/// # Safety
/// `obj` is a live object and the GIL is held.
pub unsafe fn address(obj: *mut ffi::PyObject, site: &Site) -> Option<(u64, *mut ffi::PyObject)> {
    const WANTED: &str = "None, an int or an object with the buffer protocol";
    let nothing = std::ptr::null_mut();
    // SAFETY: as promised by the caller.
    unsafe {
        if obj == ffi::Py_None() {
            return Some((0, nothing));
        }
        if ffi::PyLong_Check(obj) != 0 {
            return plain_address(obj, site).map(|a| (a, nothing));
        }
        if let Some(id) = registry::of(obj) {
            return match crate::types::table::class(id).1.kind {
                crate::types::table::Kind::Marker => {
                    site.wrong(WANTED, obj);
                    None
                }
                crate::types::table::Kind::Record | crate::types::table::Kind::Pod => {
                    ffi::Py_INCREF(obj);
                    Some(((*obj.cast::<object::Instance>()).data as u64, obj))
                }
                _ => handle_bits(obj.cast(), id).map(|a| (a, nothing)),
            };
        }
        if ffi::PyIndex_Check(obj) != 0 {
            let number = ffi::PyNumber_Index(obj);
            if !number.is_null() {
                let value = plain_address(number, site);
                ffi::Py_DECREF(number);
                return value.map(|a| (a, nothing));
            }
            ffi::PyErr_Clear();
        }
        if ffi::PyFloat_Check(obj) == 0 && ffi::PyObject_CheckBuffer(obj) != 0 {
            let view = ffi::PyMemoryView_FromObject(obj);
            if view.is_null() {
                return None;
            }
            let mut buffer = std::mem::zeroed::<ffi::Py_buffer>();
            if ffi::PyObject_GetBuffer(view, &mut buffer, ffi::PyBUF_SIMPLE) != 0 {
                ffi::PyErr_Clear();
                if ffi::PyObject_GetBuffer(view, &mut buffer, ffi::PyBUF_FULL_RO) != 0 {
                    ffi::Py_DECREF(view);
                    prefix(&format!("{}: ", site.name()));
                    return None;
                }
            }
            let at = buffer.buf as u64;
            ffi::PyBuffer_Release(&mut buffer);
            return Some((at, view));
        }
        if !ffi::PyType_GetSlot(ffi::Py_TYPE(obj), ffi::Py_nb_int).is_null() {
            let number = ffi::PyNumber_Long(obj);
            if !number.is_null() {
                let value = plain_address(number, site);
                ffi::Py_DECREF(number);
                return value.map(|a| (a, nothing));
            }
            prefix(&format!("{}: ", site.name()));
            return None;
        }
        site.wrong(WANTED, obj);
        None
    }
}

/// Converts an int to an address. Raises `TypeError` outside 0 to 2^64-1, as in NVIDIA's package.
unsafe fn plain_address(obj: *mut ffi::PyObject, site: &Site) -> Option<u64> {
    // SAFETY: the callers pass a live int and hold the GIL.
    unsafe {
        let value = ffi::PyLong_AsUnsignedLongLong(obj);
        if value == u64::MAX && !ffi::PyErr_Occurred().is_null() {
            ffi::PyErr_Clear();
            site.fail(
                ExceptionKind::Type,
                "an address is required: an int from 0 to 2**64-1",
            );
            return None;
        }
        Some(value)
    }
}

/// Calls `f` with the bytes of a buffer object. Raises `TypeError` for other objects.
///
/// # Safety
/// `obj` is a live object and the GIL is held; `f` does not run Python code.
pub unsafe fn with_bytes<T>(
    obj: *mut ffi::PyObject,
    site: &Site,
    f: impl FnOnce(&[u8]) -> T,
) -> Option<T> {
    // SAFETY: as promised by the caller; the buffer stays exported until `f` returns.
    unsafe {
        if ffi::PyObject_CheckBuffer(obj) == 0 {
            site.wrong("a bytes-like object", obj);
            return None;
        }
        let mut buffer = std::mem::zeroed::<ffi::Py_buffer>();
        if ffi::PyObject_GetBuffer(obj, &mut buffer, ffi::PyBUF_SIMPLE) != 0 {
            prefix(&format!("{}: ", site.name()));
            return None;
        }
        let bytes = if buffer.len > 0 {
            std::slice::from_raw_parts(buffer.buf.cast::<u8>(), buffer.len as usize)
        } else {
            &[]
        };
        let out = f(bytes);
        ffi::PyBuffer_Release(&mut buffer);
        Some(out)
    }
}

/// Converts the `_ptr` argument of a constructor: zero, or the address of `len` readable bytes. None with an exception.
///
/// # Safety
/// `obj` is a live object and the GIL is held.
pub unsafe fn pointer_argument(obj: *mut ffi::PyObject, len: usize, site: &Site) -> Option<usize> {
    // SAFETY: as promised by the caller.
    let address = unsafe { ranged(obj, Prim::U64, site)? } as usize;
    if address != 0 && !memory::readable(address, len) {
        site.fail(
            ExceptionKind::Value,
            &format!("the {len} bytes at {address:#x} are not readable memory"),
        );
        return None;
    }
    Some(address)
}

/// The items of a sequence as a tuple (a new reference); None with a `TypeError` for other objects, `str` and `dict`.
///
/// # Safety
/// `value` is a live object and the GIL is held.
pub unsafe fn sequence(value: *mut ffi::PyObject, site: &Site) -> Option<*mut ffi::PyObject> {
    // SAFETY: as promised by the caller.
    unsafe {
        if ffi::PySequence_Check(value) == 0
            || ffi::PyUnicode_Check(value) != 0
            || ffi::PyDict_Check(value) != 0
        {
            site.wrong("a list or tuple", value);
            return None;
        }
        let items = ffi::PySequence_Tuple(value);
        if items.is_null() {
            prefix(&format!("{}: ", site.name()));
            return None;
        }
        Some(items)
    }
}

/// Converts the bytes of a C integer of type `prim` to a Python int; null with an exception.
///
/// # Safety
/// The GIL is held.
pub unsafe fn to_int(bytes: [u8; 8], prim: Prim) -> *mut ffi::PyObject {
    let raw = u64::from_le_bytes(bytes);
    // SAFETY: the caller holds the GIL.
    unsafe {
        match prim {
            Prim::I8 => ffi::PyLong_FromLong((raw as i8).into()),
            Prim::I16 => ffi::PyLong_FromLong((raw as i16).into()),
            Prim::I32 => ffi::PyLong_FromLong((raw as i32).into()),
            Prim::I64 => ffi::PyLong_FromLongLong(raw as i64),
            _ => ffi::PyLong_FromUnsignedLongLong(raw),
        }
    }
}

/// Converts the bytes of a C float of type `prim` to a Python float; null with an exception.
///
/// # Safety
/// The GIL is held.
pub unsafe fn to_float(bytes: [u8; 8], prim: Prim) -> *mut ffi::PyObject {
    let value = if prim == Prim::F32 {
        f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]).into()
    } else {
        f64::from_le_bytes(bytes)
    };
    // SAFETY: the caller holds the GIL.
    unsafe { ffi::PyFloat_FromDouble(value) }
}
