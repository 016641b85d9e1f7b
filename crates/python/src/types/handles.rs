//! Handle, integer and callback classes: `CUstream`, `CUdeviceptr`, `CUhostFn`.

use std::ffi::{c_int, c_void};

use pyo3::ffi;

use crate::cpython;
use crate::cpython::errors::{guard, guard_or};
use crate::cpython::{Obj, Owned, R, Raised, tuple};
use crate::types::class_type;
use crate::types::convert;
use crate::types::convert::AttributeSite;
use crate::types::object;
use crate::types::object::{Instance, slot};
use crate::types::registry;
use crate::types::table;
use crate::types::table::{CUDA_STREAM, ClassId, EQ_HASH, INDEX, Kind};

/// The class of an instance, and its value as 64 bits.
///
/// # Safety
/// `obj` is an instance of a handle, integer or callback class.
unsafe fn class_and_bits(obj: *mut ffi::PyObject) -> R<(ClassId, u64)> {
    // SAFETY: as promised by the caller.
    unsafe {
        let this = obj.cast::<Instance>();
        let id = ClassId((*this).id);
        Ok((id, convert::handle_bits(this, id)?))
    }
}

/// Creates the Python type of a class.
///
/// # Errors
/// Exceptions of CPython.
pub fn make_type(id: ClassId) -> R<Owned> {
    let class = table::class(id).1;
    if let Some(base) = class.base {
        return derive(id, base);
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
    // SAFETY: every slot function expects the layout of `Instance`, whose size is HANDLE_SIZE.
    unsafe { class_type::build(id, object::HANDLE_SIZE, 0, slots, &describe(id, what), None) }
}

/// Creates the type of a class derived from another library's class with the same C type. It inherits every method.
fn derive(id: ClassId, base: ClassId) -> R<Owned> {
    let base = registry::type_of(base)?;
    // `PyType_FromSpec` does not inherit `tp_dealloc`; it inherits the other slots.
    let dealloc = object::handle_dealloc as *mut c_void;
    let slots = vec![slot(ffi::Py_tp_dealloc, dealloc)];
    let doc = describe(id, "A handle");
    // SAFETY: base and derived class both have the layout of `Instance`.
    unsafe { class_type::build(id, object::HANDLE_SIZE, 0, slots, &doc, Some(base)) }
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
    guard(|| {
        // SAFETY: the interpreter passes a live type, a tuple, and null or a dict.
        let (id, [init, ptr]) = unsafe {
            let names = [c"init_value", c"_ptr"];
            (
                class_type::class_of_type(ty)?,
                class_type::arguments(ty, args, kwargs, names)?,
            )
        };
        let prim = table::value_type(id);
        let site = |attr| AttributeSite { ty, attr };
        let value = match init {
            Some(init) => convert::ranged(init, prim, &site("init_value"))?,
            None => 0,
        };
        let address = match ptr {
            Some(ptr) => convert::pointer_argument(ptr, prim.size(), &site("_ptr"))?,
            None => 0,
        };
        // SAFETY: the type is that of the class or derived from it; no other code has seen the new instance.
        unsafe {
            let handle = object::new_handle(ty, id, value)?;
            if address != 0 {
                object::look_at(handle.obj(), address);
                // Given both a value and an address, an integer or callback class stores the value at the address, as
                // NVIDIA's package does.
                if value != 0 && table::class(id).1.kind != Kind::Pointer {
                    let bytes = &value.to_le_bytes()[..prim.size()];
                    object::write(handle.ptr().cast(), 0, bytes)?;
                }
            }
            Ok(handle)
        }
    })
}

/// The value as an int.
///
/// # Safety
/// `obj` is an instance of a handle, integer or callback class.
unsafe fn number(obj: *mut ffi::PyObject) -> R<Owned> {
    // SAFETY: as promised by the caller.
    let (id, value) = unsafe { class_and_bits(obj)? };
    match table::class(id).1.kind {
        Kind::Integer(p) if p.signed() => cpython::from_i64(value as i64),
        _ => cpython::from_u64(value),
    }
}

unsafe extern "C" fn to_int(obj: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: the interpreter passes an instance of a handle class.
    guard(|| unsafe { number(obj) })
}

unsafe extern "C" fn repr(obj: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: the interpreter passes an instance of a handle class.
        let (id, value) = unsafe { class_and_bits(obj)? };
        // Uses the name of the root class: a `cudaStream_t` prints as `<CUstream 0x5>` too.
        let class = table::class(table::root(id)).1;
        cpython::from_str(&match class.kind {
            Kind::Integer(p) if p.signed() => format!("<{} {}>", class.name(), value as i64),
            Kind::Integer(_) => format!("<{} {value}>", class.name()),
            _ => format!("<{} {value:#x}>", class.name()),
        })
    })
}

unsafe extern "C" fn hash(obj: *mut ffi::PyObject) -> ffi::Py_hash_t {
    guard_or(-1, || {
        // SAFETY: the interpreter passes an instance of a handle class.
        let bits = unsafe { class_and_bits(obj) };
        // Equals `hash(int(obj))`.
        match bits.and_then(|(_, value)| cpython::from_u64(value)) {
            // SAFETY: `number` is a live int.
            Ok(number) => unsafe { ffi::PyObject_Hash(number.ptr()) },
            Err(Raised) => -1,
        }
    })
}

unsafe extern "C" fn compare(
    a: *mut ffi::PyObject,
    b: *mut ffi::PyObject,
    op: c_int,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: the interpreter passes an instance as `a` and a live object as `b`.
        unsafe {
            let mine = ClassId((*a.cast::<Instance>()).id);
            let comparable = (op == ffi::Py_EQ || op == ffi::Py_NE)
                && registry::of(Obj::new(b))
                    .is_some_and(|id| id == mine || table::root(id) == table::root(mine));
            if !comparable {
                return Ok(cpython::not_implemented());
            }
            let same = class_and_bits(a)?.1 == class_and_bits(b)?.1;
            cpython::from_bool(same == (op == ffi::Py_EQ))
        }
    })
}

unsafe extern "C" fn cuda_stream(
    obj: *mut ffi::PyObject,
    _: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter passes an instance.
    guard(|| tuple([cpython::from_i64(0)?, unsafe { number(obj)? }]))
}
