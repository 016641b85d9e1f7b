//! Enums of the generated tables, created on first access: native ([`crate::types::enums::fast_enum`]) or
//! `enum.IntEnum` classes.

pub mod fast_enum;

use std::ffi::CStr;
use std::ptr::null_mut;

use pyo3::ffi;

pub use crate::types::enums::fast_enum::{base, metaclass};
use crate::types::errors::{ExceptionKind, raise};
use crate::types::registry;
use crate::types::registry::Made;
use crate::types::table;
use crate::types::table::{Enum, EnumBase, EnumId, Library};

/// The member for a stored value: a new reference, or null with the `ValueError` that calling the enum would raise. Tries
/// the value as signed, then as unsigned.
///
/// # Safety
/// The GIL is held.
pub unsafe fn read(id: EnumId, raw: u32) -> *mut ffi::PyObject {
    // SAFETY: the caller holds the GIL; members live as long as the process.
    unsafe {
        let Some(made) = registry::enum_of(id) else {
            return null_mut();
        };
        for value in [i64::from(raw as i32), i64::from(raw)] {
            let member = made.member(value);
            if !member.is_null() {
                ffi::Py_INCREF(member);
                return member;
            }
        }
        let name = table::enumeration(id).1.name;
        raise(
            ExceptionKind::Value,
            &format!("{raw} is not a valid {name}"),
        );
        null_mut()
    }
}

/// Owned reference, released on drop.
pub struct Owned(pub *mut ffi::PyObject);

impl Owned {
    /// Transfers ownership of the reference to the caller.
    pub fn into_ptr(self) -> *mut ffi::PyObject {
        let object = self.0;
        std::mem::forget(self);
        object
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: null or a reference owned by this; users hold the GIL.
        unsafe { ffi::Py_XDECREF(self.0) };
    }
}

/// Takes ownership of a new reference; None for null.
///
/// # Safety
/// `obj` is null or a new reference; the GIL is held.
pub unsafe fn owned(obj: *mut ffi::PyObject) -> Option<Owned> {
    if obj.is_null() {
        None
    } else {
        Some(Owned(obj))
    }
}

/// A `str`.
///
/// # Safety
/// The GIL is held.
pub unsafe fn string(text: &str) -> Option<Owned> {
    // SAFETY: pointer and length describe UTF-8 text; the caller holds the GIL.
    unsafe {
        owned(ffi::PyUnicode_FromStringAndSize(
            text.as_ptr().cast(),
            text.len() as isize,
        ))
    }
}

/// Creates the Python class of a generated enum. None with an exception.
///
/// # Safety
/// The GIL is held.
pub unsafe fn make(id: EnumId) -> Option<Made> {
    let (lib, spec) = table::enumeration(id);
    // SAFETY: the caller holds the GIL; guards own the references, or the process keeps them.
    unsafe {
        let class = match lib.enum_base {
            EnumBase::Fast => make_fast(lib, spec)?,
            EnumBase::Int => make_standard(lib, spec)?,
        };
        let mut members = Vec::with_capacity(spec.members.len());
        for (name, value) in spec.members {
            let key = string(name)?;
            let member = ffi::PyObject_GetAttr(class.0, key.0);
            if member.is_null() {
                return None;
            }
            members.push((*value, member));
        }
        members.sort_by_key(|m| m.0);
        members.dedup_by_key(|m| m.0);
        let object = class.0;
        std::mem::forget(class);
        Some(Made {
            class: object,
            members,
        })
    }
}

fn describe(lib: &Library, spec: &Enum) -> String {
    format!("C `{}`. See {}", spec.name, lib.url)
}

unsafe fn number(spec: &Enum, value: i64) -> Option<Owned> {
    // SAFETY: callers hold the GIL.
    unsafe {
        owned(if spec.unsigned {
            ffi::PyLong_FromUnsignedLongLong(value as u64)
        } else {
            ffi::PyLong_FromLongLong(value)
        })
    }
}

unsafe fn make_fast(lib: &Library, spec: &Enum) -> Option<Owned> {
    // SAFETY: callers hold the GIL; guards own the references.
    unsafe {
        let base = base()?;
        let space = owned(ffi::PyDict_New())?;
        set_text(&space, c"__module__", lib.module)?;
        set_text(&space, c"__doc__", &describe(lib, spec))?;
        for (name, value) in spec.members {
            let key = string(name)?;
            let number = number(spec, *value)?;
            if ffi::PyDict_SetItem(space.0, key.0, number.0) != 0 {
                return None;
            }
        }
        crate::types::enums::fast_enum::call_meta(spec.name, base, &space)
    }
}

/// Creates an `enum.IntEnum` class; imports `enum`.
unsafe fn make_standard(lib: &Library, spec: &Enum) -> Option<Owned> {
    // SAFETY: callers hold the GIL; guards own the references, and PyTuple_SetItem takes ownership of each item.
    unsafe {
        let module = owned(ffi::PyImport_ImportModule(c"enum".as_ptr()))?;
        let base = owned(ffi::PyObject_GetAttrString(module.0, c"IntEnum".as_ptr()))?;
        let members = owned(ffi::PyList_New(0))?;
        for (name, value) in spec.members {
            let pair = owned(ffi::PyTuple_New(2))?;
            let (key, number) = (string(name)?, number(spec, *value)?);
            ffi::PyTuple_SetItem(pair.0, 0, key.into_ptr());
            ffi::PyTuple_SetItem(pair.0, 1, number.into_ptr());
            if ffi::PyList_Append(members.0, pair.0) != 0 {
                return None;
            }
        }
        let args = owned(ffi::PyTuple_New(2))?;
        ffi::PyTuple_SetItem(args.0, 0, string(spec.name)?.into_ptr());
        ffi::PyTuple_SetItem(args.0, 1, members.into_ptr());
        let named = owned(ffi::PyDict_New())?;
        set_text(&named, c"module", lib.module)?;
        let class = owned(ffi::PyObject_Call(base.0, args.0, named.0))?;
        let doc = string(&describe(lib, spec))?;
        (ffi::PyObject_SetAttrString(class.0, c"__doc__".as_ptr(), doc.0) == 0).then_some(class)
    }
}

/// Sets a `str` in a dictionary. None with an exception.
///
/// # Safety
/// Live references; the GIL is held.
pub unsafe fn set_text(dict: &Owned, key: &CStr, text: &str) -> Option<()> {
    // SAFETY: the caller guarantees live references and holds the GIL.
    unsafe {
        let value = string(text)?;
        (ffi::PyDict_SetItemString(dict.0, key.as_ptr(), value.0) == 0).then_some(())
    }
}
