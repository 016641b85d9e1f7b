//! Handle, integer and callback classes: `CUstream`, `CUdeviceptr`, `CUhostFn`.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

use pyo3::ffi;

use crate::types::class_type;
use crate::types::convert;
use crate::types::convert::Site;
use crate::types::errors::guard_or;
use crate::types::object;
use crate::types::object::{Instance, slot};
use crate::types::registry;
use crate::types::table;
use crate::types::table::{CUDA_STREAM, ClassId, EQ_HASH, INDEX, Kind};

unsafe fn bits(obj: *mut ffi::PyObject) -> Option<u64> {
    // SAFETY: the callers are slots of handle types, which the interpreter calls with their instances.
    unsafe {
        let this = obj.cast::<Instance>();
        convert::handle_bits(this, ClassId((*this).id))
    }
}

unsafe fn class_of(obj: *mut ffi::PyObject) -> &'static table::Class {
    // SAFETY: the callers are slots of handle types, which the interpreter calls with their instances.
    unsafe { table::class(ClassId((*obj.cast::<Instance>()).id)).1 }
}

/// Creates the Python type of a class.
///
/// # Safety
/// The GIL is held.
pub unsafe fn make_type(id: ClassId) -> *mut ffi::PyTypeObject {
    let (lib, class) = table::class(id);
    if let Some(base) = class.base {
        // SAFETY: the caller holds the GIL.
        return unsafe { derive(id, base) };
    }
    let mut methods = vec![class_type::method_get_ptr(), class_type::method_reduce()];
    if class.flags & CUDA_STREAM != 0 {
        methods.push(ffi::PyMethodDef {
            ml_name: c"__cuda_stream__".as_ptr(),
            ml_meth: ffi::PyMethodDefPointer {
                PyCFunction: cuda_stream,
            },
            ml_flags: ffi::METH_NOARGS,
            ml_doc: c"__cuda_stream__($self, /)\n--\n\nThe CUDA stream protocol: (0, address of the stream)."
                .as_ptr(),
        });
    }
    methods.push(ffi::PyMethodDef::zeroed());
    let mut slots = vec![
        slot(ffi::Py_tp_new, new as *mut c_void),
        slot(ffi::Py_tp_init, class_type::init as *mut c_void),
        slot(ffi::Py_tp_dealloc, object::handle_dealloc as *mut c_void),
        slot(ffi::Py_tp_repr, repr as *mut c_void),
        slot(ffi::Py_nb_int, to_int as *mut c_void),
        slot(ffi::Py_tp_methods, methods.leak().as_mut_ptr().cast()),
        slot(ffi::Py_tp_members, class_type::weak_member().cast()),
    ];
    if class.flags & INDEX != 0 {
        slots.push(slot(ffi::Py_nb_index, to_int as *mut c_void));
    }
    if class.flags & EQ_HASH != 0 {
        slots.push(slot(ffi::Py_tp_richcompare, compare as *mut c_void));
        slots.push(slot(ffi::Py_tp_hash, hash as *mut c_void));
    }
    let what = match class.kind {
        Kind::Callback => "The address of a C function",
        Kind::Pointer => "A handle",
        _ => "A number with a C type of its own",
    };
    let doc = describe(id, what);
    // SAFETY: the caller holds the GIL; every slot function expects the layout of `Instance`.
    unsafe { class_type::build(lib, class, object::HANDLE_SIZE, 0, slots, doc, None) }
}

/// Creates the type of a class derived from another library's class with the same C type. It inherits every method.
unsafe fn derive(id: ClassId, base: ClassId) -> *mut ffi::PyTypeObject {
    let (lib, class) = table::class(id);
    // SAFETY: the caller holds the GIL; base and derived class both have the layout of `Instance`.
    unsafe {
        let base = registry::type_of(base);
        if base.is_null() {
            return base;
        }
        // `PyType_FromSpec` does not inherit `tp_dealloc`; it inherits the other slots.
        let slots = vec![slot(
            ffi::Py_tp_dealloc,
            object::handle_dealloc as *mut c_void,
        )];
        let doc = describe(id, "A handle");
        class_type::build(lib, class, object::HANDLE_SIZE, 0, slots, doc, Some(base))
    }
}

fn describe(id: ClassId, what: &str) -> String {
    let (lib, class) = table::class(id);
    format!(
        "{}(init_value=0, _ptr=0)\n--\n\n{what}: C `{}`, {} bytes.\n\ninit_value: an int or another handle.\n\
         _ptr: address of an existing value to look at instead (0: none).\n\nSee {}",
        class.name(),
        class.c_name,
        class.size,
        lib.url
    )
}

unsafe extern "C" fn new(
    ty: *mut ffi::PyTypeObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard_or(null_mut(), || {
        // SAFETY: the interpreter passes a live type, a tuple, and null or a dict.
        unsafe {
            let Some(id) = class_type::class_of_type(ty) else {
                return null_mut();
            };
            let Some([init, ptr]) =
                class_type::arguments(ty, args, kwargs, [c"init_value", c"_ptr"])
            else {
                return null_mut();
            };
            let prim = table::value_type(id);
            let mut value = 0;
            let mut site = Site {
                ty,
                attr: "init_value",
            };
            if !init.is_null() {
                match convert::ranged(init, prim, &site) {
                    Some(v) => value = v,
                    None => return null_mut(),
                }
            }
            let mut address = 0;
            if !ptr.is_null() {
                site.attr = "_ptr";
                match convert::pointer_argument(ptr, prim.size(), &site) {
                    Some(a) => address = a,
                    None => return null_mut(),
                }
            }
            let obj = object::new_handle(ty, id, value);
            if !obj.is_null() && address != 0 {
                object::look_at(obj, address);
                // Given both a value and an address, an integer or callback class stores the value at the address, as
                // NVIDIA's package does.
                let write = value != 0 && table::class(id).1.kind != Kind::Pointer;
                if write && !object::write(obj.cast(), 0, &value.to_le_bytes()[..prim.size()]) {
                    ffi::Py_DECREF(obj);
                    return null_mut();
                }
            }
            obj
        }
    })
}

unsafe extern "C" fn to_int(obj: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: the interpreter passes an instance of a handle class.
    unsafe {
        let Some(value) = bits(obj) else {
            return null_mut();
        };
        match class_of(obj).kind {
            Kind::Integer(p) if p.signed() => ffi::PyLong_FromLongLong(value as i64),
            _ => ffi::PyLong_FromUnsignedLongLong(value),
        }
    }
}

unsafe extern "C" fn repr(obj: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard_or(null_mut(), || {
        // SAFETY: the interpreter passes an instance of a handle class.
        unsafe {
            let Some(value) = bits(obj) else {
                return null_mut();
            };
            // Uses the name of the root class: a `cudaStream_t` prints as `<CUstream 0x5>` too.
            let id = ClassId((*obj.cast::<Instance>()).id);
            let class = table::class(table::root(id)).1;
            let text = match class.kind {
                Kind::Integer(p) if p.signed() => format!("<{} {}>", class.name(), value as i64),
                Kind::Integer(_) => format!("<{} {value}>", class.name()),
                _ => format!("<{} {value:#x}>", class.name()),
            };
            ffi::PyUnicode_FromStringAndSize(text.as_ptr().cast::<c_char>(), text.len() as isize)
        }
    })
}

unsafe extern "C" fn hash(obj: *mut ffi::PyObject) -> ffi::Py_hash_t {
    // SAFETY: the interpreter passes an instance of a handle class.
    unsafe {
        let Some(value) = bits(obj) else {
            return -1;
        };
        // Equals `hash(int(obj))`.
        let number = ffi::PyLong_FromUnsignedLongLong(value);
        if number.is_null() {
            return -1;
        }
        let hash = ffi::PyObject_Hash(number);
        ffi::Py_DECREF(number);
        hash
    }
}

unsafe extern "C" fn compare(
    a: *mut ffi::PyObject,
    b: *mut ffi::PyObject,
    op: c_int,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter passes an instance as `a` and a live object as `b`.
    unsafe {
        if op != ffi::Py_EQ && op != ffi::Py_NE {
            ffi::Py_INCREF(ffi::Py_NotImplemented());
            return ffi::Py_NotImplemented();
        }
        let mine = ClassId((*a.cast::<Instance>()).id);
        let same = match registry::of(b) {
            Some(id) if id == mine || table::root(id) == table::root(mine) => {
                match (bits(a), bits(b)) {
                    (Some(x), Some(y)) => x == y,
                    _ => return null_mut(),
                }
            }
            _ => {
                ffi::Py_INCREF(ffi::Py_NotImplemented());
                return ffi::Py_NotImplemented();
            }
        };
        ffi::PyBool_FromLong((same == (op == ffi::Py_EQ)).into())
    }
}

unsafe extern "C" fn cuda_stream(
    obj: *mut ffi::PyObject,
    _: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter passes an instance; PyTuple_SetItem steals the references.
    unsafe {
        let value = to_int(obj);
        let zero = ffi::PyLong_FromLong(0);
        let tuple = ffi::PyTuple_New(2);
        if value.is_null() || zero.is_null() || tuple.is_null() {
            ffi::Py_XDECREF(value);
            ffi::Py_XDECREF(zero);
            ffi::Py_XDECREF(tuple);
            return null_mut();
        }
        ffi::PyTuple_SetItem(tuple, 0, zero);
        ffi::PyTuple_SetItem(tuple, 1, value);
        tuple
    }
}
