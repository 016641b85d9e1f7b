//! Parts common to the Python types of all classes: building a type from its slots, methods of every class, and the
//! arguments of constructors.

use std::ffi::{CStr, c_int};
use std::ptr::null_mut;

use pyo3::ffi;

use crate::cpython;
use crate::cpython::errors::{ExceptionKind, guard, raise};
use crate::cpython::{Obj, Owned, R, c_string, short_name, tuple};
use crate::types::object;
use crate::types::object::{Instance, slot};
use crate::types::registry;
use crate::types::table;
use crate::types::table::ClassId;

struct Shared<T>(T);
// SAFETY: CPython and this module only read the tables inside.
unsafe impl<T> Sync for Shared<T> {}

static WEAK: Shared<[ffi::PyMemberDef; 2]> = Shared([
    ffi::PyMemberDef {
        name: c"__weaklistoffset__".as_ptr(),
        type_code: ffi::Py_T_PYSSIZET,
        offset: object::WEAK_OFFSET as isize,
        flags: ffi::Py_READONLY,
        doc: std::ptr::null(),
    },
    ffi::PyMemberDef {
        name: std::ptr::null(),
        type_code: 0,
        offset: 0,
        flags: 0,
        doc: std::ptr::null(),
    },
]);

/// Member definition of `__weaklistoffset__`.
pub fn weak_member() -> *mut ffi::PyMemberDef {
    WEAK.0.as_ptr().cast_mut()
}

/// `getPtr`
pub fn method_get_ptr() -> ffi::PyMethodDef {
    ffi::PyMethodDef {
        ml_name: c"getPtr".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunction: get_ptr,
        },
        ml_flags: ffi::METH_NOARGS,
        ml_doc:
            c"getPtr($self, /)\n--\n\nAddress of the C value; it stays the same while the object lives."
                .as_ptr(),
    }
}

/// `__reduce__`, which raises: addresses are meaningless in another process.
pub fn method_reduce() -> ffi::PyMethodDef {
    ffi::PyMethodDef {
        ml_name: c"__reduce__".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunction: reduce,
        },
        ml_flags: ffi::METH_NOARGS,
        ml_doc: c"__reduce__($self, /)\n--\n\nRaises TypeError: handles and structs cannot be pickled or copied."
            .as_ptr(),
    }
}

unsafe extern "C" fn get_ptr(obj: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: the descriptor checked that `obj` is an instance.
        cpython::from_u64(unsafe { (*obj.cast::<Instance>()).data } as u64)
    })
}

unsafe extern "C" fn reduce(obj: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: the interpreter passes a live object.
        let name = unsafe { Obj::new(obj) }.type_short_name();
        Err(raise(
            ExceptionKind::Type,
            &format!("cannot pickle or copy a {name}: it holds addresses of this process"),
        ))
    })
}

/// `__init__` that ignores its arguments, which `__new__` has processed.
///
/// # Safety
/// Called by the interpreter.
pub unsafe extern "C" fn init(
    _: *mut ffi::PyObject,
    _: *mut ffi::PyObject,
    _: *mut ffi::PyObject,
) -> c_int {
    0
}

/// Creates a type from its slots.
///
/// # Errors
/// Exceptions of `PyType_FromSpec`.
///
/// # Safety
/// The slots match `basicsize` and have no terminator; `base` is a live type with the same layout.
pub unsafe fn build(
    id: ClassId,
    basicsize: usize,
    flags: std::ffi::c_ulong,
    mut slots: Vec<ffi::PyType_Slot>,
    doc: &str,
    base: Option<*mut ffi::PyTypeObject>,
) -> R<Owned> {
    let (lib, class) = table::class(id);
    // CPython before 3.12 keeps a pointer to the name; it copies the docstring.
    let name = c_string(&format!("{}.{}", lib.module.name(), class.name())).into_raw();
    let doc = c_string(doc);
    slots.push(slot(ffi::Py_tp_doc, doc.as_ptr().cast_mut().cast()));
    slots.push(slot(0, null_mut()));
    let mut spec = ffi::PyType_Spec {
        name,
        basicsize: basicsize as c_int,
        itemsize: 0,
        flags: (ffi::Py_TPFLAGS_DEFAULT
            | ffi::Py_TPFLAGS_BASETYPE
            | ffi::Py_TPFLAGS_IMMUTABLETYPE
            | flags) as u32,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the spec is complete and ends with a null slot; the caller guarantees matching slots and a live base type.
    unsafe {
        match base {
            None => Owned::take(ffi::PyType_FromSpec(&raw mut spec)),
            Some(base) => {
                let bases = tuple([Obj::new(base.cast()).owned()])?;
                Owned::take(ffi::PyType_FromSpecWithBases(&raw mut spec, bases.ptr()))
            }
        }
    }
}

/// The class of a type or of its nearest base type with one.
///
/// # Errors
/// `TypeError`.
///
/// # Safety
/// `ty` is a live type.
pub unsafe fn class_of_type(ty: *mut ffi::PyTypeObject) -> R<ClassId> {
    let mut at = ty;
    // SAFETY: the caller guarantees a live type, whose bases are live too.
    unsafe {
        while !at.is_null() {
            if let Some(id) = registry::exact(at) {
                return Ok(id);
            }
            at = ffi::PyType_GetSlot(at, ffi::Py_tp_base).cast();
        }
        let message = format!("{} is not one of the CUDA classes", short_name(ty));
        Err(raise(ExceptionKind::Type, &message))
    }
}

/// Up to N constructor arguments.
///
/// # Errors
/// `TypeError`.
///
/// # Safety
/// `ty` is a live type, `args` a tuple, `kwargs` null or a dict; they live for `'a`.
pub unsafe fn arguments<'a, const N: usize>(
    ty: *mut ffi::PyTypeObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
    names: [&CStr; N],
) -> R<[Option<Obj<'a>>; N]> {
    // SAFETY: as promised by the caller.
    unsafe {
        if kwargs.is_null() && ffi::PyTuple_Size(args) == 0 {
            return Ok([None; N]);
        }
        arguments_of(&short_name(ty), args, kwargs, names)
    }
}

/// Up to N arguments of `what()`.
///
/// # Errors
/// `TypeError`.
///
/// # Safety
/// `args` is a tuple, `kwargs` null or a dict; they live for `'a`.
pub unsafe fn arguments_of<'a, const N: usize>(
    what: &str,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
    names: [&CStr; N],
) -> R<[Option<Obj<'a>>; N]> {
    let mut out = [None; N];
    let invalid = |text: String| raise(ExceptionKind::Type, &format!("{what}() {text}"));
    // SAFETY: as promised by the caller; the items are borrowed from the tuple and the dict.
    unsafe {
        let given = ffi::PyTuple_Size(args);
        if given as usize > N {
            let s = if N == 1 { "" } else { "s" };
            return Err(invalid(format!(
                "takes at most {N} argument{s} ({given} given)"
            )));
        }
        for (i, value) in out.iter_mut().enumerate().take(given as usize) {
            *value = Some(Obj::new(ffi::PyTuple_GetItem(args, i as isize)));
        }
        if kwargs.is_null() {
            return Ok(out);
        }
        let (mut pos, mut key, mut value) = (0, null_mut(), null_mut());
        while ffi::PyDict_Next(kwargs, &raw mut pos, &raw mut key, &raw mut value) != 0 {
            let found = names
                .iter()
                .position(|n| ffi::PyUnicode_CompareWithASCIIString(key, n.as_ptr()) == 0);
            match found {
                Some(i) if out[i].is_none() => out[i] = Some(Obj::new(value)),
                Some(i) => {
                    let name = names[i].to_string_lossy();
                    return Err(invalid(format!(
                        "got multiple values for argument '{name}'"
                    )));
                }
                None => {
                    let name = Obj::new(key).display();
                    return Err(invalid(format!(
                        "got an unexpected keyword argument '{name}'"
                    )));
                }
            }
        }
    }
    Ok(out)
}
