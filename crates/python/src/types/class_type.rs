//! Parts common to the Python types of all classes: building a type from its slots, methods of every class, and the
//! arguments of constructors.

use std::ffi::{CStr, c_int};
use std::ptr::null_mut;

use pyo3::ffi;

use crate::cpython::c_string;
use crate::types::errors::{ExceptionKind, guard_or, name_of_type, raise, to_string, type_name};
use crate::types::object;
use crate::types::object::{Instance, slot};
use crate::types::registry;
use crate::types::table::{Class, ClassId, Library};

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
    // SAFETY: the descriptor checked that `obj` is an instance.
    unsafe { ffi::PyLong_FromUnsignedLongLong((*obj.cast::<Instance>()).data as u64) }
}

unsafe extern "C" fn reduce(obj: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard_or(null_mut(), || {
        // SAFETY: the interpreter passes a live object.
        let name = unsafe { type_name(obj) };
        raise(
            ExceptionKind::Type,
            &format!("cannot pickle or copy a {name}: it holds addresses of this process"),
        );
        null_mut()
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

/// Creates a type from its slots; null with an exception.
///
/// # Safety
/// The slots match `basicsize`; the GIL is held.
pub unsafe fn build(
    lib: &Library,
    class: &Class,
    basicsize: usize,
    flags: std::ffi::c_ulong,
    mut slots: Vec<ffi::PyType_Slot>,
    doc: String,
    base: Option<*mut ffi::PyTypeObject>,
) -> *mut ffi::PyTypeObject {
    // CPython before 3.12 keeps a pointer to the name; it copies the docstring.
    let name = c_string(&format!("{}.{}", lib.module, class.name())).into_raw();
    let doc = c_string(&doc);
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
            None => ffi::PyType_FromSpec(&mut spec).cast(),
            Some(base) => {
                let bases = ffi::PyTuple_New(1);
                if bases.is_null() {
                    return null_mut();
                }
                ffi::Py_INCREF(base.cast());
                ffi::PyTuple_SetItem(bases, 0, base.cast());
                let ty = ffi::PyType_FromSpecWithBases(&mut spec, bases);
                ffi::Py_DECREF(bases);
                ty.cast()
            }
        }
    }
}

/// The class of a type or of its nearest base type with one; None with a `TypeError`.
///
/// # Safety
/// `ty` is a live type derived from one of ours; the GIL is held.
pub unsafe fn class_of_type(ty: *mut ffi::PyTypeObject) -> Option<ClassId> {
    let mut at = ty;
    // SAFETY: the caller guarantees a live type, whose bases are live too.
    unsafe {
        while !at.is_null() {
            if let Some(id) = registry::exact(at) {
                return Some(id);
            }
            at = ffi::PyType_GetSlot(at, ffi::Py_tp_base).cast();
        }
        raise(
            ExceptionKind::Type,
            &format!("{} is not one of the CUDA classes", name_of_type(ty)),
        );
    }
    None
}

/// Up to N constructor arguments, borrowed; null for missing ones. None with a `TypeError`.
///
/// # Safety
/// `args` is a tuple, `kwargs` null or a dict; the GIL is held.
pub unsafe fn arguments<const N: usize>(
    ty: *mut ffi::PyTypeObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
    names: [&CStr; N],
) -> Option<[*mut ffi::PyObject; N]> {
    // SAFETY: as promised by the caller.
    unsafe {
        if kwargs.is_null() && ffi::PyTuple_Size(args) == 0 {
            return Some([null_mut(); N]);
        }
        arguments_of(&name_of_type(ty), args, kwargs, names)
    }
}

/// Up to N arguments of `what()`, borrowed; null for missing ones. None with a `TypeError`.
///
/// # Safety
/// `args` is a tuple, `kwargs` null or a dict; the GIL is held.
pub unsafe fn arguments_of<const N: usize>(
    what: &str,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
    names: [&CStr; N],
) -> Option<[*mut ffi::PyObject; N]> {
    let mut out = [null_mut(); N];
    // SAFETY: as promised by the caller.
    unsafe {
        let given = ffi::PyTuple_Size(args);
        if given as usize > N {
            raise(
                ExceptionKind::Type,
                &format!(
                    "{what}() takes at most {N} argument{} ({given} given)",
                    if N == 1 { "" } else { "s" }
                ),
            );
            return None;
        }
        for (i, value) in out.iter_mut().enumerate().take(given as usize) {
            *value = ffi::PyTuple_GetItem(args, i as isize);
        }
        if kwargs.is_null() {
            return Some(out);
        }
        let (mut pos, mut key, mut value) = (0, null_mut(), null_mut());
        while ffi::PyDict_Next(kwargs, &mut pos, &mut key, &mut value) != 0 {
            let found = names
                .iter()
                .position(|n| ffi::PyUnicode_CompareWithASCIIString(key, n.as_ptr()) == 0);
            match found {
                Some(i) if out[i].is_null() => out[i] = value,
                Some(i) => {
                    raise(
                        ExceptionKind::Type,
                        &format!(
                            "{}() got multiple values for argument '{}'",
                            what,
                            names[i].to_string_lossy()
                        ),
                    );
                    return None;
                }
                None => {
                    raise(
                        ExceptionKind::Type,
                        &format!(
                            "{}() got an unexpected keyword argument '{}'",
                            what,
                            to_string(key)
                        ),
                    );
                    return None;
                }
            }
        }
    }
    Some(out)
}
