//! Struct classes of the modules whose functions raise (`cuda.bindings.nvml.PciInfo`): the Python type. Their objects export the
//! buffer protocol, are read as NumPy arrays, and some hold any number of structs; layout and memory are in [`instance`].

pub mod array;
pub mod buffer;
pub mod columns;
pub mod fields;
pub mod from_memory;
pub mod instance;
pub mod pointers;
pub mod repr;
pub mod values;

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use pyo3::ffi;

use crate::cpython;
use crate::cpython::errors::{ExceptionKind, guard, raise};
use crate::cpython::{Obj, Owned, R, Raised, short_name, tuple};
use crate::types::buffer_structs::instance::{
    BufferStruct, count_of, dealloc_struct, traverse_struct,
};
use crate::types::class_type;
use crate::types::object;
use crate::types::object::{Instance, slot};
use crate::types::registry;
use crate::types::table;
use crate::types::table::{ARRAY, ClassId, Field, FieldKind};

/// Creates the Python type of a class.
///
/// # Errors
/// Exceptions of CPython.
pub fn make_type(id: ClassId) -> R<Owned> {
    let class = table::class(id).1;
    let array = class.flags & ARRAY != 0;
    let mut methods = from_memory::methods(array);
    methods.push(structs_method_reduce(array));
    if array {
        methods.push(method_setstate());
    }
    methods.push(ffi::PyMethodDef::zeroed());
    let mut getset = vec![attribute_ptr()];
    if array {
        getset.push(array::attribute_data());
    }
    getset.extend(
        class
            .fields
            .iter()
            .filter(|f| !matches!(f.kind, FieldKind::Hidden(..) | FieldKind::HiddenStruct(_)))
            .map(fields::getset),
    );
    getset.push(ffi::PyGetSetDef {
        name: std::ptr::null(),
        get: None,
        set: None,
        doc: std::ptr::null(),
        closure: null_mut(),
    });
    let mut slots = vec![
        slot(ffi::Py_tp_new, new as *mut c_void),
        slot(ffi::Py_tp_init, class_type::init as *mut c_void),
        slot(ffi::Py_tp_dealloc, dealloc_struct as *mut c_void),
        slot(ffi::Py_tp_traverse, traverse_struct as *mut c_void),
        slot(ffi::Py_tp_clear, object::record_clear as *mut c_void),
        slot(ffi::Py_tp_repr, repr::repr as *mut c_void),
        slot(ffi::Py_tp_richcompare, compare as *mut c_void),
        slot(ffi::Py_nb_int, to_int as *mut c_void),
        slot(ffi::Py_bf_getbuffer, buffer::get as *mut c_void),
        slot(ffi::Py_bf_releasebuffer, buffer::release as *mut c_void),
        slot(ffi::Py_tp_methods, methods.leak().as_mut_ptr().cast()),
        slot(ffi::Py_tp_getset, getset.leak().as_mut_ptr().cast()),
    ];
    slots.extend(if array {
        array::slots()
    } else {
        vec![slot(
            ffi::Py_mp_ass_subscript,
            array::assign_single as *mut c_void,
        )]
    });
    let (flags, doc) = (ffi::Py_TPFLAGS_HAVE_GC, describe(id));
    // SAFETY: the slots match the layout of `BufferStruct`.
    unsafe { class_type::build(id, size_of::<BufferStruct>(), flags, slots, &doc, None) }
}

fn describe(id: ClassId) -> String {
    let (lib, class) = table::class(id);
    let (signature, what) = if class.flags & ARRAY != 0 {
        (
            "size=1",
            "`size` of them, zeroed; attributes are plain values for one and NumPy arrays for any other number.",
        )
    } else {
        ("", "Made with zeroed bytes.")
    };
    let mut doc = format!(
        "{}({signature})\n--\n\nC `{}`, {} bytes. {what}\n",
        class.name(),
        class.c_name,
        class.size
    );
    let displayed: Vec<&Field> = class
        .fields
        .iter()
        .filter(|f| !matches!(f.kind, FieldKind::Hidden(..) | FieldKind::HiddenStruct(_)))
        .collect();
    if !displayed.is_empty() {
        doc.push_str("\nAttributes\n----------\n");
        for f in displayed {
            doc.push_str(&format!("{} : {}\n", table::text(f.name), f.doc));
        }
    }
    doc.push_str(&format!("\nSee {}", lib.url));
    doc
}

fn attribute_ptr() -> ffi::PyGetSetDef {
    unsafe extern "C" fn get(obj: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
        // SAFETY: the interpreter passes an instance.
        unsafe { to_int(obj) }
    }
    ffi::PyGetSetDef {
        name: c"ptr".as_ptr(),
        get: Some(get),
        set: None,
        doc: c"Address of the (first) struct; it stays the same while the object lives.".as_ptr(),
        closure: null_mut(),
    }
}

unsafe extern "C" fn to_int(obj: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: the interpreter passes an instance.
    guard(|| cpython::from_u64(unsafe { (*obj.cast::<Instance>()).data } as u64))
}

unsafe extern "C" fn new(
    ty: *mut ffi::PyTypeObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: the interpreter calls this slot with a type that inherits it, a tuple, and a dict or null.
        unsafe {
            let id = class_type::class_of_type(ty)?;
            let count = match size_argument(ty, id, args, kwargs) {
                Ok(count) => count,
                // A Python subclass may take its own arguments.
                Err(Raised)
                    if registry::exact(ty).is_none()
                        && ffi::PyErr_ExceptionMatches(ffi::PyExc_TypeError) != 0 =>
                {
                    cpython::clear();
                    1
                }
                Err(Raised) => return Err(Raised),
            };
            instance::zeroed(ty, id, count).map(|(object, _)| object)
        }
    })
}

unsafe fn size_argument(
    ty: *mut ffi::PyTypeObject,
    id: ClassId,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> R<usize> {
    // SAFETY: the caller passes the interpreter's arguments: `args` is a tuple, `kwargs` null or a dict.
    unsafe {
        if table::class(id).1.flags & ARRAY == 0 {
            return class_type::arguments::<0>(ty, args, kwargs, []).map(|_| 1);
        }
        let [size] = class_type::arguments(ty, args, kwargs, [c"size"])?;
        match size {
            Some(size) => count_of(size, &|| format!("{}(): size", short_name(ty))),
            None => Ok(1),
        }
    }
}

// ---- comparing and copying

unsafe extern "C" fn compare(
    a: *mut ffi::PyObject,
    b: *mut ffi::PyObject,
    op: c_int,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: the interpreter calls this slot with an instance as the first operand.
        unsafe {
            if op != ffi::Py_EQ && op != ffi::Py_NE {
                return Ok(cpython::not_implemented());
            }
            let this = a.cast::<BufferStruct>();
            let same = match instance::cast_to(Obj::new(b), (*this).id()) {
                Some(other) => equal(this, other)?,
                None => false,
            };
            cpython::from_bool(same == (op == ffi::Py_EQ))
        }
    })
}

/// Whether both have the same number of structs with equal members. Struct-array classes ignore padding bytes.
unsafe fn equal(a: *mut BufferStruct, b: *mut BufferStruct) -> R<bool> {
    // SAFETY: the caller passes live buffer structs of the same class.
    unsafe {
        if (*a).count != (*b).count {
            return Ok(false);
        }
        let size = (*a).size();
        if !(*a).foreign() && !(*b).foreign() && (*a).contiguous() && (*b).contiguous() {
            let len = size * (*a).count;
            let x = std::slice::from_raw_parts((*a).base.data, len);
            if x == std::slice::from_raw_parts((*b).base.data, len) {
                return Ok(true);
            }
        }
        let (mut x, mut y) = (vec![0; size], vec![0; size]);
        let fields = table::class((*a).id()).1.fields;
        for i in 0..(*a).count {
            instance::peek(a, (*a).at(i), &mut x)?;
            instance::peek(b, (*b).at(i), &mut y)?;
            if x == y {
                continue;
            }
            let differs = |f: &Field| {
                let at = f.offset as usize;
                let end = (at + table::width(f.kind)).min(size);
                x[at..end] != y[at..end]
            };
            if !(*a).array || fields.iter().any(differs) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn structs_method_reduce(array: bool) -> ffi::PyMethodDef {
    if !array {
        return class_type::method_reduce();
    }
    ffi::PyMethodDef {
        ml_name: c"__reduce__".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunction: reduce,
        },
        ml_flags: ffi::METH_NOARGS,
        ml_doc: c"__reduce__($self, /)\n--\n\nPickles and copies the structs' bytes.".as_ptr(),
    }
}

unsafe extern "C" fn reduce(obj: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: the interpreter passes an instance.
        unsafe { reduced(obj.cast()) }
    })
}

unsafe fn reduced(this: *mut BufferStruct) -> R<Owned> {
    // SAFETY: the caller passes a live buffer struct.
    unsafe {
        let size = (*this).size();
        let mut bytes = vec![0; size * (*this).count];
        for i in 0..(*this).count {
            instance::peek(this, (*this).at(i), &mut bytes[i * size..(i + 1) * size])?;
        }
        let ty = Obj::new(ffi::Py_TYPE(this.cast()).cast()).owned();
        let count = cpython::from_u64((*this).count as u64)?;
        tuple([ty, tuple([count])?, cpython::from_bytes(&bytes)?])
    }
}

fn method_setstate() -> ffi::PyMethodDef {
    ffi::PyMethodDef {
        ml_name: c"__setstate__".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunction: set_state,
        },
        ml_flags: ffi::METH_O,
        ml_doc: c"__setstate__($self, state, /)\n--\n\nTakes the structs' bytes back.".as_ptr(),
    }
}

unsafe extern "C" fn set_state(
    obj: *mut ffi::PyObject,
    state: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: the descriptor checked that `obj` is an instance; METH_O passes one argument.
        unsafe { put_state(obj.cast(), state) }
    })
}

unsafe fn put_state(this: *mut BufferStruct, state: *mut ffi::PyObject) -> R<Owned> {
    // SAFETY: the caller passes a live buffer struct and a live state; the bytes live as long as `state`.
    unsafe {
        let (at, len) = Obj::new(state).bytes_data();
        let size = (*this).size();
        if at.is_null() || len != size * (*this).count {
            let name = Obj::new(this.cast()).type_short_name();
            let text = format!(
                "{name}.__setstate__(): {} bytes are required: this pickle was made for another layout",
                size * (*this).count
            );
            return Err(raise(ExceptionKind::Value, &text));
        }
        for i in 0..(*this).count {
            let bytes = std::slice::from_raw_parts(at.add(i * size), size);
            instance::poke(this, (*this).at(i), bytes)?;
        }
    }
    Ok(cpython::none())
}
