//! Which types of NumPy and of ctypes are numbers, found by their addresses.
//!
//! The types are those that live as long as the process: NumPy's scalars and the simple types of ctypes. The table is
//! filled when the first value of an unknown type comes by and the module that has the types has been imported by then:
//! without it nobody has a value of them. Nothing is ever imported here.

use std::ffi::CStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU16, Ordering};

use pyo3::ffi;

use crate::cpython;
use crate::cpython::{Buffer, Obj, Owned, R};

/// Where a number's bytes lie in its object, and how many they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Right behind the object's head; they never change (NumPy).
    Inside(usize),
    /// Where the first word behind the object's head points (ctypes).
    Behind(usize),
}

impl Kind {
    const BEHIND: u16 = 0x100;

    fn code(self) -> u16 {
        match self {
            Kind::Inside(size) => size as u16,
            Kind::Behind(size) => size as u16 | Kind::BEHIND,
        }
    }

    #[inline(always)]
    fn from_code(code: u16) -> Kind {
        let size = usize::from(code & 0xFF);
        if code & Kind::BEHIND == 0 {
            Kind::Inside(size)
        } else {
            Kind::Behind(size)
        }
    }
}

/// Size of what every object begins with.
pub const HEAD: usize = size_of::<ffi::PyObject>();

/// An open-addressed map from type to kind; never more than a third full, as there are fewer than forty types.
const SLOTS: usize = 128;
static KEYS: [AtomicPtr<ffi::PyTypeObject>; SLOTS] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; SLOTS];
static CODES: [AtomicU16; SLOTS] = [const { AtomicU16::new(0) }; SLOTS];
static INSERT: Mutex<()> = Mutex::new(());

#[inline(always)]
fn place(ty: *mut ffi::PyTypeObject) -> usize {
    (ty.addr() >> 4).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - SLOTS.trailing_zeros())
}

/// What a value of exactly this type is, if the table knows.
#[inline(always)]
pub fn exact(ty: *mut ffi::PyTypeObject) -> Option<Kind> {
    let mut at = place(ty);
    loop {
        let key = KEYS[at].load(Ordering::Acquire);
        if key == ty {
            return Some(Kind::from_code(CODES[at].load(Ordering::Relaxed)));
        }
        if key.is_null() {
            return None;
        }
        at = (at + 1) % SLOTS;
    }
}

/// The same for a value of a type derived from one that the table knows; fills the table first where it can.
///
/// # Errors
///
/// Whatever looking at the modules raises.
pub fn find(value: Obj<'_>) -> R<Option<Kind>> {
    learn_numpy()?;
    learn_ctypes()?;
    let mut ty = value.ty();
    while !ty.is_null() {
        if let Some(kind) = exact(ty) {
            return Ok(Some(kind));
        }
        // SAFETY: the type of a live object and its bases are live; the slot is null only for `object`.
        ty = unsafe { ffi::PyType_GetSlot(ty, ffi::Py_tp_base) }.cast();
    }
    Ok(None)
}

/// Adds a type for ever.
fn insert(class: Owned, kind: Kind) {
    let _lock = INSERT.lock().unwrap_or_else(|e| e.into_inner());
    let ty = class.ptr().cast::<ffi::PyTypeObject>();
    let mut at = place(ty);
    loop {
        let key = KEYS[at].load(Ordering::Relaxed);
        if key == ty {
            return;
        }
        if key.is_null() {
            break;
        }
        at = (at + 1) % SLOTS;
    }
    CODES[at].store(kind.code(), Ordering::Relaxed);
    KEYS[at].store(ty, Ordering::Release);
    // The table keeps the type, so that no other gets its address.
    let _ = class.into_ptr();
}

/// A module, if the program has imported it.
///
/// # Errors
///
/// None but memory.
pub fn imported(name: &CStr) -> R<Option<Owned>> {
    // SAFETY: the dictionary and what it gives are borrowed; a reference is taken at once.
    unsafe {
        let found = ffi::PyDict_GetItemString(ffi::PyImport_GetModuleDict(), name.as_ptr());
        // None stands for a module that must not be imported.
        if found.is_null() || found == ffi::Py_None() {
            return Ok(None);
        }
        Ok(Some(Obj::new(found).owned()))
    }
}

/// An instance of a type that holds zero; `None` where the type says no.
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
        // While NumPy is being imported, some may not be there yet.
        let Some(class) = numpy.obj().attribute(name)? else {
            return Ok(());
        };
        if let Some(kind) = checked_inside(&class) {
            insert(class, kind);
        }
    }
    KNOWN.store(true, Ordering::Relaxed);
    Ok(())
}

/// Whether the bytes of NumPy's scalars of a type lie where the table will say; otherwise they are asked for one by one,
/// which is slower.
fn checked_inside(class: &Owned) -> Option<Kind> {
    let value = zero(class)?;
    let view = Buffer::get(value.obj()).unwrap_or_else(|_| {
        cpython::clear();
        None
    })?;
    let size = view.len();
    // An instance made of the number 1 shows the bytes at their place; its buffer is a copy or the place itself.
    let one = one_of(class)?;
    let bytes = Buffer::get(one.obj()).ok().flatten()?;
    if bytes.len() != size || size == 0 || size > 16 {
        return None;
    }
    let basic = class
        .obj()
        .attribute(c"__basicsize__")
        .ok()
        .flatten()
        // SAFETY: the object is live; a wrong kind gives -1, which fails the comparison.
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
    same.then_some(Kind::Inside(size))
}

/// `class(1)`.
fn one_of(class: &Owned) -> Option<Owned> {
    let one = cpython::from_i64(1).ok()?;
    let null = std::ptr::null_mut::<ffi::PyObject>();
    // SAFETY: both objects are live; null ends the arguments.
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
        if let Some(kind) = checked_behind(&class) {
            insert(class, kind);
        }
    }
    KNOWN.store(true, Ordering::Relaxed);
    Ok(())
}

/// The same for a simple type of ctypes.
fn checked_behind(class: &Owned) -> Option<Kind> {
    let value = zero(class)?;
    let view = Buffer::get(value.obj()).unwrap_or_else(|_| {
        cpython::clear();
        None
    })?;
    let size = view.len();
    if size == 0 || size > 16 {
        return None;
    }
    // SAFETY: every object of ctypes is longer than its head and a pointer.
    let pointer = unsafe { value.ptr().cast::<u8>().add(HEAD).cast::<u64>().read() };
    (pointer == view.address()).then_some(Kind::Behind(size))
}

#[cfg(test)]
mod tests {
    use crate::core::launch::scalar_types::Kind;

    #[test]
    fn codes_come_back() {
        for kind in [Kind::Inside(16), Kind::Behind(1), Kind::Behind(8)] {
            assert_eq!(Kind::from_code(kind.code()), kind);
        }
    }
}
