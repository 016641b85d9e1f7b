//! Enums of the generated tables, created on first access: native ([`crate::types::enums::fast_enum`]) or
//! `enum.IntEnum` classes.

pub mod fast_enum;

use pyo3::ffi;

use crate::cpython;
use crate::cpython::errors::{ExceptionKind, raise};
use crate::cpython::{Obj, Owned, R, Raised, tuple};
pub use crate::types::enums::fast_enum::{base, metaclass};
use crate::types::registry;
use crate::types::registry::EnumClass;
use crate::types::table;
use crate::types::table::{Enum, EnumBase, EnumId, ModuleTypes};

/// The member for a stored value. Tries the value as signed, then as unsigned.
///
/// # Errors
/// The `ValueError` that calling the enum would raise.
pub fn read(id: EnumId, raw: u32) -> R<Owned> {
    let made = registry::enum_of(id)?;
    let signed = made.member(i64::from(raw as i32));
    if let Some(member) = signed.or_else(|| made.member(i64::from(raw))) {
        return Ok(member.owned());
    }
    let name = table::enumeration(id).1.name;
    let message = format!("{raw} is not a valid {name}");
    Err(raise(ExceptionKind::Value, &message))
}

/// Creates the Python class of a generated enum.
///
/// # Errors
/// Exceptions of CPython, and of the import of `enum`.
pub fn make(id: EnumId) -> R<EnumClass> {
    let (lib, spec) = table::enumeration(id);
    let class = match lib.enum_base {
        EnumBase::Fast => make_fast(lib, spec)?,
        EnumBase::Int => make_standard(lib, spec)?,
    };
    let mut members = Vec::with_capacity(spec.members.len());
    for (name, value) in spec.members {
        let key = cpython::from_str(name)?;
        // SAFETY: both are live.
        let member = Owned::take(unsafe { ffi::PyObject_GetAttr(class.ptr(), key.ptr()) })?;
        members.push((*value, immortal(member)));
    }
    members.sort_by_key(|m| m.0);
    members.dedup_by_key(|m| m.0);
    Ok(EnumClass {
        class: immortal(class),
        members,
    })
}

/// Leaks a reference.
fn immortal(object: Owned) -> Obj<'static> {
    // SAFETY: the reference is never released.
    unsafe { Obj::new(object.into_ptr()) }
}

fn describe(lib: &ModuleTypes, spec: &Enum) -> R<Owned> {
    cpython::from_str(&format!("C `{}`. See {}", spec.name, lib.url))
}

fn number(spec: &Enum, value: i64) -> R<Owned> {
    if spec.unsigned {
        cpython::from_u64(value as u64)
    } else {
        cpython::from_i64(value)
    }
}

fn make_fast(lib: &ModuleTypes, spec: &Enum) -> R<Owned> {
    let space = cpython::dict()?;
    cpython::set_entry(
        space.obj(),
        c"__module__",
        cpython::from_str(lib.module.name())?.obj(),
    )?;
    cpython::set_entry(space.obj(), c"__doc__", describe(lib, spec)?.obj())?;
    for (name, value) in spec.members {
        let (key, number) = (cpython::from_str(name)?, number(spec, *value)?);
        // SAFETY: all are live.
        if unsafe { ffi::PyDict_SetItem(space.ptr(), key.ptr(), number.ptr()) } != 0 {
            return Err(Raised);
        }
    }
    fast_enum::call_meta(spec.name, base()?, space)
}

/// Creates an `enum.IntEnum` class; imports `enum`.
fn make_standard(lib: &ModuleTypes, spec: &Enum) -> R<Owned> {
    let pairs = spec
        .members
        .iter()
        .map(|(name, value)| tuple([cpython::from_str(name)?, number(spec, *value)?]));
    let args = tuple([cpython::from_str(spec.name)?, cpython::list(pairs)?])?;
    let named = cpython::dict()?;
    cpython::set_entry(
        named.obj(),
        c"module",
        cpython::from_str(lib.module.name())?.obj(),
    )?;
    let doc = describe(lib, spec)?;
    // SAFETY: all objects are live; the names are NUL-terminated.
    unsafe {
        let module = Owned::take(ffi::PyImport_ImportModule(c"enum".as_ptr()))?;
        let base = Owned::take(ffi::PyObject_GetAttrString(
            module.ptr(),
            c"IntEnum".as_ptr(),
        ))?;
        let class = Owned::take(ffi::PyObject_Call(base.ptr(), args.ptr(), named.ptr()))?;
        match ffi::PyObject_SetAttrString(class.ptr(), c"__doc__".as_ptr(), doc.ptr()) {
            0 => Ok(class),
            _ => Err(Raised),
        }
    }
}
