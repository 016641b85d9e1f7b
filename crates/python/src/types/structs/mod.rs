//! Struct and union classes: creation of the Python types, construction, `repr`.

pub mod elements;
pub mod fields;
pub mod list_storage;
pub mod lists;

use std::ffi::c_void;
use std::ptr::null_mut;

use pyo3::ffi;

use crate::types::class_type::{
    arguments, build, class_of_type, init, method_get_ptr, method_reduce, weak_member,
};
use crate::types::convert;
use crate::types::convert::Site;
use crate::types::errors::{ExceptionKind, guard_or, raise, to_string, utf8};
use crate::types::object;
use crate::types::object::{Instance, slot};
use crate::types::registry;
use crate::types::table;
use crate::types::table::{ClassId, Field, FieldKind, NEEDS_POINTER, SET_DSTS_SRCS};

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
                    let text = utf8(hex);
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
