//! Memory layout of NumPy scalars and simple ctypes types, looked up by type address.
//!
//! The table holds types that live as long as the process. It is filled when the first value of an unknown type is
//! packed, from modules that the program has already imported: without the module there are no such values. This module
//! imports nothing.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};

use cupyrite::ParamKind;
use pyo3::ffi;

use crate::cpython;
use crate::cpython::internals::{PrivateLayout, enabled};
use crate::cpython::pointer_map::PointerMap;
use crate::cpython::{Buffer, Obj, Owned, R};

/// Location and size of a number in its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarBytes {
    /// Directly after the object head; immutable (NumPy).
    Inside(usize),
    /// At the address in the first word after the object head (ctypes).
    Behind(usize),
    /// Not known, or private layouts are turned off: the buffer protocol has the bytes.
    Exported(usize),
}

/// What kind of number a type has, as far as the types of kernel parameters distinguish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum NumberKind {
    /// Complex and half precision numbers.
    Other = 0,
    /// Integers, characters, booleans and addresses.
    Integer = ParamKind::Integer as u8,
    /// Single and double precision numbers.
    Float = ParamKind::Float as u8,
}

impl NumberKind {
    /// Whether a parameter refuses such a number.
    #[inline(always)]
    pub const fn is_refused_by(self, param: ParamKind) -> bool {
        const BOTH: u8 = NumberKind::Integer as u8 | NumberKind::Float as u8;
        self as u8 | param as u8 == BOTH
    }

    /// The kind of a type of NumPy or ctypes by its name.
    fn of_name(name: &CStr) -> NumberKind {
        match name.to_bytes() {
            b"float32" | b"float64" | b"c_float" | b"c_double" => NumberKind::Float,
            b"float16" | b"complex64" | b"complex128" => NumberKind::Other,
            _ => NumberKind::Integer,
        }
    }
}

impl ScalarBytes {
    /// Size in bytes.
    #[inline(always)]
    pub fn size(self) -> usize {
        match self {
            ScalarBytes::Inside(size) | ScalarBytes::Behind(size) | ScalarBytes::Exported(size) => {
                size
            }
        }
    }

    const BEHIND: u16 = 0x100;
    const EXPORTED: u16 = 0x200;
    const PLACES: u16 = 0x300;
    const KIND_SHIFT: u32 = 10;

    fn code(self, kind: NumberKind) -> u16 {
        let place = match self {
            ScalarBytes::Inside(size) => size as u16,
            ScalarBytes::Behind(size) => size as u16 | ScalarBytes::BEHIND,
            ScalarBytes::Exported(size) => size as u16 | ScalarBytes::EXPORTED,
        };
        place | u16::from(kind as u8) << ScalarBytes::KIND_SHIFT
    }

    #[inline(always)]
    fn from_code(code: u16) -> ScalarBytes {
        let size = usize::from(code & 0xFF);
        match code & ScalarBytes::PLACES {
            0 => ScalarBytes::Inside(size),
            ScalarBytes::BEHIND => ScalarBytes::Behind(size),
            _ => ScalarBytes::Exported(size),
        }
    }

    #[inline(always)]
    fn kind_of_code(code: u16) -> NumberKind {
        const INTEGER: u16 = NumberKind::Integer as u16;
        const FLOAT: u16 = NumberKind::Float as u16;
        match code >> ScalarBytes::KIND_SHIFT {
            INTEGER => NumberKind::Integer,
            FLOAT => NumberKind::Float,
            _ => NumberKind::Other,
        }
    }
}

/// Size in bytes of the largest number in the table.
pub const LARGEST: usize = 16;

/// Size of the object head.
pub const HEAD: usize = size_of::<ffi::PyObject>();

/// The known types, fewer than forty.
static TYPES: PointerMap<128> = PointerMap::new();

/// The layout of values of exactly this type, if known.
#[inline(always)]
pub fn exact(ty: *mut ffi::PyTypeObject) -> Option<ScalarBytes> {
    TYPES.get(ty).map(ScalarBytes::from_code)
}

/// As [`exact`], with the kind of the numbers.
#[inline(always)]
pub fn exact_number(ty: *mut ffi::PyTypeObject) -> Option<(ScalarBytes, NumberKind)> {
    let code = TYPES.get(ty)?;
    Some((
        ScalarBytes::from_code(code),
        ScalarBytes::kind_of_code(code),
    ))
}

/// Address of the bytes of a ctypes number whose type is in the table; `None` for other objects.
#[inline(always)]
pub fn address(value: Obj<'_>) -> Option<*mut u8> {
    if !matches!(exact(value.ty()), Some(ScalarBytes::Behind(_))) {
        return None;
    }
    // SAFETY: an instance of the type confirmed that the address of the bytes follows the head.
    Some(unsafe { value.ptr().byte_add(HEAD).cast::<*mut u8>().read() })
}

/// The layout of values of this type or a base type; fills the table first if possible.
///
/// # Errors
///
/// Errors of the module lookups.
pub fn find(value: Obj<'_>) -> R<Option<(ScalarBytes, NumberKind)>> {
    learn()?;
    let mut ty = value.ty();
    while !ty.is_null() {
        if let Some(found) = exact_number(ty) {
            return Ok(Some(found));
        }
        // SAFETY: the type of a live object and its bases are live; the slot is null only for `object`.
        ty = unsafe { ffi::PyType_GetSlot(ty, ffi::Py_tp_base) }.cast();
    }
    Ok(None)
}

/// Fills the table with the types of the modules that the program has imported.
///
/// # Errors
///
/// Errors of the module lookups.
pub fn learn() -> R<()> {
    learn_numpy()?;
    learn_ctypes()
}

/// Adds a type to the table.
fn insert(class: Owned, bytes: ScalarBytes, kind: NumberKind) {
    if TYPES.insert(class.ptr().cast(), bytes.code(kind)) {
        // The table owns the type, so that its address is not reused.
        let _ = class.into_ptr();
    }
}

/// A module, if the program has imported it.
///
/// # Errors
///
/// `MemoryError`.
pub fn imported(name: &CStr) -> R<Option<Owned>> {
    // SAFETY: borrowed references; the result is owned at once.
    unsafe {
        let found = ffi::PyDict_GetItemString(ffi::PyImport_GetModuleDict(), name.as_ptr());
        // None marks a module that must not be imported.
        if found.is_null() || found == ffi::Py_None() {
            return Ok(None);
        }
        Ok(Some(Obj::new(found).owned()))
    }
}

/// `class()`, which is zero; `None` if it raises.
fn zero(class: &Owned) -> Option<Owned> {
    let made = class.obj().call0();
    if made.is_err() {
        cpython::clear();
    }
    made.ok()
}

fn learn_numpy() -> R<()> {
    static KNOWN: AtomicBool = AtomicBool::new(false);
    const NAMES: [&CStr; 17] = [
        c"bool_",
        c"int8",
        c"int16",
        c"int32",
        c"int64",
        c"uint8",
        c"uint16",
        c"uint32",
        c"uint64",
        c"longlong",
        c"ulonglong",
        c"float16",
        c"float32",
        c"float64",
        c"complex64",
        c"complex128",
        c"intp",
    ];
    if KNOWN.load(Ordering::Relaxed) {
        return Ok(());
    }
    let Some(numpy) = imported(c"numpy")? else {
        return Ok(());
    };
    for name in NAMES {
        // Incomplete while NumPy is being imported.
        let Some(class) = numpy.obj().attribute(name)? else {
            return Ok(());
        };
        if let Some(bytes) = found_in(&class, inside) {
            insert(class, bytes, NumberKind::of_name(name));
        }
    }
    KNOWN.store(true, Ordering::Relaxed);
    Ok(())
}

/// Where the bytes of a type's numbers are: in the place that an instance confirms, else in its buffer. `None` for types
/// without buffers.
fn found_in(
    class: &Owned,
    place: fn(&Owned, &Owned, &Buffer) -> Option<ScalarBytes>,
) -> Option<ScalarBytes> {
    let value = zero(class)?;
    let view = Buffer::get(value.obj()).unwrap_or_else(|_| {
        cpython::clear();
        None
    })?;
    let size = view.len();
    if size == 0 || size > LARGEST {
        return None;
    }
    if enabled(PrivateLayout::Scalars)
        && let Some(found) = place(class, &value, &view)
    {
        return Some(found);
    }
    Some(ScalarBytes::Exported(size))
}

/// The place of a NumPy scalar's bytes, if an instance confirms it.
fn inside(class: &Owned, _: &Owned, view: &Buffer) -> Option<ScalarBytes> {
    let size = view.len();
    // An instance with value 1 shows where its bytes are; its buffer is a copy or the bytes themselves.
    let one = one_of(class)?;
    let bytes = Buffer::get(one.obj()).ok().flatten()?;
    if bytes.len() != size {
        return None;
    }
    let basic = class
        .obj()
        .attribute(c"__basicsize__")
        .ok()
        .flatten()
        // SAFETY: the object is live; another type yields -1, which fails the comparison.
        .map(|n| unsafe { ffi::PyLong_AsSsize_t(n.ptr()) });
    if basic.is_none_or(|basic| basic < (HEAD + size).cast_signed()) {
        cpython::clear();
        return None;
    }
    // SAFETY: the object has at least HEAD + size bytes; the view has `size` bytes.
    let same = unsafe {
        let inside = std::slice::from_raw_parts(one.ptr().cast::<u8>().add(HEAD), size);
        let seen = std::slice::from_raw_parts(bytes.address() as *const u8, size);
        inside == seen
    };
    same.then_some(ScalarBytes::Inside(size))
}

/// `class(1)`.
fn one_of(class: &Owned) -> Option<Owned> {
    let one = cpython::from_i64(1).ok()?;
    let null = std::ptr::null_mut::<ffi::PyObject>();
    // SAFETY: both objects are live; null terminates the arguments.
    let made =
        Owned::take(unsafe { ffi::PyObject_CallFunctionObjArgs(class.ptr(), one.ptr(), null) });
    if made.is_err() {
        cpython::clear();
    }
    made.ok()
}

fn learn_ctypes() -> R<()> {
    static KNOWN: AtomicBool = AtomicBool::new(false);
    const NAMES: [&CStr; 17] = [
        c"c_bool",
        c"c_char",
        c"c_wchar",
        c"c_byte",
        c"c_ubyte",
        c"c_short",
        c"c_ushort",
        c"c_int",
        c"c_uint",
        c"c_long",
        c"c_ulong",
        c"c_longlong",
        c"c_ulonglong",
        c"c_float",
        c"c_double",
        c"c_void_p",
        c"c_size_t",
    ];
    if KNOWN.load(Ordering::Relaxed) {
        return Ok(());
    }
    let Some(ctypes) = imported(c"ctypes")? else {
        return Ok(());
    };
    for name in NAMES {
        let Some(class) = ctypes.obj().attribute(name)? else {
            return Ok(());
        };
        if let Some(bytes) = found_in(&class, behind) {
            insert(class, bytes, NumberKind::of_name(name));
        }
    }
    KNOWN.store(true, Ordering::Relaxed);
    Ok(())
}

/// The place of a simple ctypes value's bytes, if an instance confirms it.
fn behind(_: &Owned, value: &Owned, view: &Buffer) -> Option<ScalarBytes> {
    // SAFETY: every ctypes object is larger than its head and a pointer.
    let pointer = unsafe { value.ptr().cast::<u8>().add(HEAD).cast::<u64>().read() };
    (pointer == view.address()).then_some(ScalarBytes::Behind(view.len()))
}

#[cfg(test)]
mod tests {
    use super::{NumberKind, ScalarBytes};

    #[test]
    fn codes_come_back() {
        for kind in [
            ScalarBytes::Inside(16),
            ScalarBytes::Behind(1),
            ScalarBytes::Behind(8),
            ScalarBytes::Exported(4),
        ] {
            for number in [NumberKind::Other, NumberKind::Integer, NumberKind::Float] {
                let code = kind.code(number);
                assert_eq!(ScalarBytes::from_code(code), kind);
                assert_eq!(ScalarBytes::kind_of_code(code), number);
            }
        }
    }
}
