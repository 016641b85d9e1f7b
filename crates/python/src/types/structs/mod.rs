//! Struct and union classes of the modules whose functions return a status (`cuda.bindings.driver.CUDA_MEMCPY3D`): creation of
//! the Python types, construction, `repr`. Attributes are live views of the C struct. Those of the modules whose functions raise
//! export the buffer protocol: [`super::buffer_structs`].

pub mod elements;
pub mod fields;
pub mod list_storage;
pub mod lists;

use std::ffi::c_void;

use pyo3::ffi;

use crate::cpython;
use crate::cpython::errors::{ExceptionKind, guard, raise};
use crate::cpython::{Owned, R, Raised};
use crate::types::class_type::{
    arguments, build, class_of_type, init, method_get_ptr, method_reduce, weak_member,
};
use crate::types::convert;
use crate::types::convert::AttributeSite;
use crate::types::object;
use crate::types::object::{Instance, slot};
use crate::types::registry;
use crate::types::table;
use crate::types::table::{ClassId, Field, FieldKind, NEEDS_POINTER, SET_DSTS_SRCS};

/// Creates the Python type of a struct or union class.
///
/// # Errors
/// Exceptions of CPython.
pub fn make_type(id: ClassId) -> R<Owned> {
    let class = table::class(id).1;
    let size = object::record_size(class.size as usize, class.align as usize);
    let base = class.base.map(registry::type_of).transpose()?;
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
            closure: std::ptr::null_mut(),
        });
        slots.push(slot(ffi::Py_tp_init, init as *mut c_void));
        slots.push(slot(ffi::Py_tp_repr, repr as *mut c_void));
        slots.push(slot(ffi::Py_tp_methods, methods.leak().as_mut_ptr().cast()));
        slots.push(slot(ffi::Py_tp_getset, getset.leak().as_mut_ptr().cast()));
        slots.push(slot(ffi::Py_tp_members, weak_member().cast()));
    }
    let (flags, doc) = (ffi::Py_TPFLAGS_HAVE_GC, describe(id));
    // SAFETY: the slots match the layout of `Instance` followed by its bytes.
    unsafe { build(id, size, flags, slots, &doc, base) }
}

/// Creates the Python type of a class without members.
///
/// # Errors
/// Exceptions of CPython.
pub fn make_marker(id: ClassId) -> R<Owned> {
    let doc = format!(
        "{}()\n--\n\nKept for programs that name it; it has no content.",
        table::class(id).1.name()
    );
    let methods = vec![method_reduce(), ffi::PyMethodDef::zeroed()];
    let slots = vec![slot(ffi::Py_tp_methods, methods.leak().as_mut_ptr().cast())];
    // SAFETY: the slots match a bare object head.
    unsafe { build(id, size_of::<ffi::PyObject>(), 0, slots, &doc, None) }
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
    guard(|| {
        // SAFETY: the interpreter calls this slot with a type that inherits it, a tuple, and a dict or null.
        unsafe {
            let id = class_of_type(ty)?;
            let class = table::class(id).1;
            let [ptr] = arguments(ty, args, kwargs, [c"_ptr"])?;
            let address = match ptr {
                Some(ptr) => {
                    let site = AttributeSite { ty, attr: "_ptr" };
                    convert::pointer_argument(ptr, class.size as usize, &site)?
                }
                None if class.flags & NEEDS_POINTER != 0 => {
                    return Err(raise(
                        ExceptionKind::Type,
                        &format!(
                            "{}() needs _ptr: it is a part of another struct; read it as that struct's attribute",
                            class.name()
                        ),
                    ));
                }
                None => 0,
            };
            let object = object::new_record(ty, id, class.align as usize)?;
            if address != 0 {
                object::look_at(object.obj(), address);
            }
            Ok(object)
        }
    })
}

unsafe extern "C" fn repr(obj: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: the interpreter calls this slot with an instance.
        unsafe {
            let this = obj.cast::<Instance>();
            let mut lines = Vec::new();
            describe_value(this, table::fields(ClassId((*this).id)), 0, &mut lines)?;
            cpython::from_str(&lines.join("\n"))
        }
    })
}

/// Appends one line for each attribute; nested structs are indented below their name.
unsafe fn describe_value(
    obj: *mut Instance,
    list: &'static [Field],
    depth: usize,
    lines: &mut Vec<String>,
) -> R<()> {
    let pad = "    ".repeat(depth);
    for field in list {
        let name = table::text(field.name);
        // SAFETY: callers pass an instance of a class that has the fields.
        unsafe {
            let value = match fields::get(obj, field) {
                Ok(value) => value,
                Err(Raised) => {
                    if ffi::PyErr_ExceptionMatches(ffi::PyExc_ValueError) == 0 {
                        return Err(Raised);
                    }
                    cpython::clear();
                    lines.push(format!("{pad}{name} : <ValueError>"));
                    continue;
                }
            };
            let text = match field.kind {
                FieldKind::View(id) => {
                    lines.push(format!("{pad}{name} :"));
                    describe_value(value.ptr().cast(), table::fields(id), depth + 1, lines)?;
                    continue;
                }
                FieldKind::Address => {
                    let at = cpython::as_u64(value.obj());
                    cpython::clear();
                    format!("{at:#x}")
                }
                FieldKind::HexBytes(_) => {
                    let null = std::ptr::null();
                    let hex = ffi::PyObject_CallMethod(value.ptr(), c"hex".as_ptr(), null);
                    Owned::take(hex)?.obj().utf8()?
                }
                _ => value.obj().display(),
            };
            // The text of a list of structs has several lines.
            let mut rows = text.split('\n');
            lines.push(format!("{pad}{name} : {}", rows.next().unwrap_or("")));
            lines.extend(rows.map(|row| format!("{pad}{row}")));
        }
    }
    Ok(())
}
