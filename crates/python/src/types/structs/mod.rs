//! Struct and union classes: creation of the Python types, construction, `repr`.

pub mod fields;
pub mod list_storage;
pub mod lists;

use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;

use pyo3::ffi;

use crate::types::convert;
use crate::types::convert::Site;
use crate::types::errors::{ExceptionKind, guard_or, name_of_type, raise, to_string, type_name};
use crate::types::handles::c_string;
use crate::types::object;
use crate::types::object::{Instance, slot};
use crate::types::registry;
use crate::types::table;
use crate::types::table::{
    Class, ClassId, Field, FieldKind, Kind, Library, NEEDS_POINTER, SET_DSTS_SRCS,
};

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

/// Creates the Python type of a struct or union class; null with an exception.
///
/// # Safety
/// The GIL is held.
pub unsafe fn make_type(id: ClassId) -> *mut ffi::PyTypeObject {
    let (lib, class) = table::class(id);
    let size = object::record_size(class.size as usize, class.align as usize);
    let base = match class.base {
        None => None,
        Some(base) => {
            // SAFETY: the caller holds the GIL.
            let ty = unsafe { registry::type_of(base) };
            if ty.is_null() {
                return ty;
            }
            Some(ty)
        }
    };
    let mut slots = vec![
        slot(ffi::Py_tp_new, new as *mut c_void),
        slot(ffi::Py_tp_dealloc, object::record_dealloc as *mut c_void),
        slot(ffi::Py_tp_traverse, object::record_traverse as *mut c_void),
        slot(ffi::Py_tp_clear, object::record_clear as *mut c_void),
    ];
    if base.is_none() {
        let mut methods = vec![method_get_ptr(), method_reduce()];
        if class.flags & SET_DSTS_SRCS != 0 {
            methods.push(lists::method_set_dsts_srcs());
        }
        methods.push(ffi::PyMethodDef::zeroed());
        let mut getset: Vec<ffi::PyGetSetDef> = class.fields.iter().map(fields::getset).collect();
        getset.push(ffi::PyGetSetDef {
            name: std::ptr::null(),
            get: None,
            set: None,
            doc: std::ptr::null(),
            closure: null_mut(),
        });
        slots.push(slot(ffi::Py_tp_init, init as *mut c_void));
        slots.push(slot(ffi::Py_tp_repr, repr as *mut c_void));
        slots.push(slot(ffi::Py_tp_methods, methods.leak().as_mut_ptr().cast()));
        slots.push(slot(ffi::Py_tp_getset, getset.leak().as_mut_ptr().cast()));
        slots.push(slot(ffi::Py_tp_members, weak_member().cast()));
    }
    // SAFETY: the slots match the layout of `Instance` followed by its bytes; the caller holds the GIL.
    unsafe {
        build(
            lib,
            class,
            size,
            ffi::Py_TPFLAGS_HAVE_GC,
            slots,
            describe(id),
            base,
        )
    }
}

/// Creates the Python type of a class without members; null with an exception.
///
/// # Safety
/// The GIL is held.
pub unsafe fn make_marker(id: ClassId) -> *mut ffi::PyTypeObject {
    let (lib, class) = table::class(id);
    let doc = format!(
        "{}()\n--\n\nKept for programs that name it; it has no content.",
        class.name()
    );
    let methods = vec![method_reduce(), ffi::PyMethodDef::zeroed()];
    let slots = vec![slot(ffi::Py_tp_methods, methods.leak().as_mut_ptr().cast())];
    // SAFETY: the slots match a bare object head; the caller holds the GIL.
    unsafe {
        build(
            lib,
            class,
            std::mem::size_of::<ffi::PyObject>(),
            0,
            slots,
            doc,
            None,
        )
    }
}

fn describe(id: ClassId) -> String {
    let (lib, class) = table::class(id);
    let signature = if class.flags & NEEDS_POINTER != 0 {
        "_ptr"
    } else {
        "_ptr=0"
    };
    let mut doc = format!(
        "{}({signature})\n--\n\nC `{}`, {} bytes. Made with zeroed bytes of its own, or looking at those at address _ptr.\n",
        class.name(),
        class.c_name,
        class.size
    );
    let list = table::fields(id);
    if !list.is_empty() {
        doc.push_str("\nAttributes\n----------\n");
        for f in list {
            doc.push_str(&format!("{} : {}\n", table::text(f.name), f.doc));
        }
    }
    doc.push_str(&format!("\nSee {}", lib.url));
    doc
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

unsafe extern "C" fn new(
    ty: *mut ffi::PyTypeObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard_or(null_mut(), || {
        // SAFETY: the interpreter calls this slot with a type that inherits it.
        unsafe {
            let Some(id) = class_of_type(ty) else {
                return null_mut();
            };
            let class = table::class(id).1;
            let Some([ptr]) = arguments(ty, args, kwargs, [c"_ptr"]) else {
                return null_mut();
            };
            let mut address = 0;
            if !ptr.is_null() {
                let site = Site { ty, attr: "_ptr" };
                match convert::pointer_argument(ptr, class.size as usize, &site) {
                    Some(a) => address = a,
                    None => return null_mut(),
                }
            } else if class.flags & NEEDS_POINTER != 0 {
                raise(
                    ExceptionKind::Type,
                    &format!(
                        "{}() needs _ptr: it is a part of another struct; read it as that struct's attribute",
                        class.name()
                    ),
                );
                return null_mut();
            }
            let obj = object::new_record(ty, id, class.align as usize);
            if !obj.is_null() && address != 0 {
                object::look_at(obj, address);
            }
            obj
        }
    })
}

unsafe extern "C" fn repr(obj: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard_or(null_mut(), || {
        // SAFETY: the interpreter calls this slot with an instance.
        unsafe {
            let this = obj.cast::<Instance>();
            let mut lines = Vec::new();
            if !describe_value(this, table::fields(ClassId((*this).id)), 0, &mut lines) {
                return null_mut();
            }
            let text = lines.join("\n");
            ffi::PyUnicode_FromStringAndSize(text.as_ptr().cast(), text.len() as isize)
        }
    })
}

/// Appends one line for each attribute; nested structs are indented below their name. False with an exception.
unsafe fn describe_value(
    obj: *mut Instance,
    list: &'static [Field],
    depth: usize,
    lines: &mut Vec<String>,
) -> bool {
    let pad = "    ".repeat(depth);
    for field in list {
        let name = table::text(field.name);
        // SAFETY: callers pass an instance of a class that has the fields.
        unsafe {
            let value = fields::get(obj, field);
            if value.is_null() {
                if ffi::PyErr_ExceptionMatches(ffi::PyExc_ValueError) == 0 {
                    return false;
                }
                ffi::PyErr_Clear();
                lines.push(format!("{pad}{name} : <ValueError>"));
                continue;
            }
            if let FieldKind::View(id) = field.kind {
                lines.push(format!("{pad}{name} :"));
                let fine = describe_value(value.cast(), table::fields(id), depth + 1, lines);
                ffi::Py_DECREF(value);
                if !fine {
                    return false;
                }
                continue;
            }
            let text = match field.kind {
                FieldKind::Address => {
                    let at = ffi::PyLong_AsUnsignedLongLong(value);
                    ffi::PyErr_Clear();
                    format!("{at:#x}")
                }
                FieldKind::HexBytes(_) => {
                    let hex = ffi::PyObject_CallMethod(value, c"hex".as_ptr(), std::ptr::null());
                    let text = crate::types::errors::utf8(hex);
                    ffi::Py_XDECREF(hex);
                    match text {
                        Some(text) => text,
                        None => {
                            ffi::Py_DECREF(value);
                            return false;
                        }
                    }
                }
                _ => to_string(value),
            };
            ffi::Py_DECREF(value);
            // The text of a list of structs has several lines.
            let mut rows = text.split('\n');
            lines.push(format!("{pad}{name} : {}", rows.next().unwrap_or("")));
            lines.extend(rows.map(|row| format!("{pad}{row}")));
        }
    }
    true
}

/// Whether class `id` is a struct or union.
pub fn is_record(id: ClassId) -> bool {
    table::class(id).1.kind == Kind::Record
}
