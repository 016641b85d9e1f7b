//! Functions that remember what they found: the part of `cuda.pathfinder`'s caches that runs at every call.
//!
//! `functools.cache` would do for one thread. It would let two threads search for the same library at the same
//! time and hand out different objects, it would remember that something was not found, it would keep a result
//! twice if the name is once given by keyword, and importing `functools` costs as much as all of `cuda.pathfinder`
//! may. What is rare is written in Python (`miss` below); a call that finds its name in the dict ends here.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::AtomicPtr;

use pyo3::ffi;
use pyo3::prelude::*;

use crate::cpython::guard;
use crate::cpython::{Obj, Owned, R, Raised};

type VectorCall = unsafe extern "C" fn(
    *mut ffi::PyObject,
    *const *mut ffi::PyObject,
    usize,
    *mut ffi::PyObject,
) -> *mut ffi::PyObject;

/// One such function. C reads the vectorcall pointer, the attributes and the count at the offsets the type declares.
#[repr(C)]
struct Memoized {
    base: ffi::PyObject,
    vectorcall: VectorCall,
    /// What `functools.update_wrapper` would set, and the functions that look after the memory.
    attributes: *mut ffi::PyObject,
    weakrefs: *mut ffi::PyObject,
    /// A dict: what is remembered, by name; by `None` where there is no parameter.
    values: *mut ffi::PyObject,
    /// Called where nothing is remembered, with the arguments as they were given.
    miss: *mut ffi::PyObject,
    /// Calls that were answered from the dict. Threads of an interpreter without a GIL may lose some.
    hits: ffi::Py_ssize_t,
}

/// Adds the function that makes such functions.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(memoize, module)?)
}

/// A function that answers from `values` where the name is in there, and calls `miss` where it is not.
#[pyfunction]
fn memoize(
    py: Python<'_>,
    values: Bound<'_, pyo3::types::PyDict>,
    miss: Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let make = || {
        let ty = memoized_type()?;
        // SAFETY: the type's basic size is that of `Memoized`; the allocation is zeroed and has its head set,
        // and all null means: no attributes, no weak references yet.
        let object = unsafe { Owned::take(ffi::PyType_GenericAlloc(ty, 0)) }?;
        let fields = object.ptr().cast::<Memoized>();
        // SAFETY: as above. The references go to the object, which is itself kept for ever (one reference more), so
        // that the type needs neither a destructor nor a part in garbage collection: there are six of them.
        unsafe {
            (&raw mut (*fields).vectorcall).write(vectorcall);
            (&raw mut (*fields).values).write(values.into_ptr());
            (&raw mut (*fields).miss).write(miss.into_ptr());
            ffi::Py_IncRef(object.ptr());
        }
        Ok(object)
    };
    let made: R<Owned> = make();
    match made {
        // SAFETY: a new reference, handed over.
        Ok(object) => Ok(unsafe { Bound::from_owned_ptr(py, object.into_ptr()) }.unbind()),
        Err(Raised) => Err(PyErr::fetch(py)),
    }
}

/// What is remembered for a name, as a new reference; null (and no exception) if nothing is.
///
/// # Safety
///
/// `function` is an instance of the type, `name` a live object that hashes without running Python code.
#[inline]
unsafe fn recall(function: *mut ffi::PyObject, name: *mut ffi::PyObject) -> *mut ffi::PyObject {
    let this = function.cast::<Memoized>();
    // SAFETY: the dict lives as long as the function. The reference it lends is counted before anything else runs;
    // without a GIL, values that were once found stay alive, because `miss` never replaces one.
    unsafe {
        let found = ffi::PyDict_GetItemWithError((*this).values, name);
        if found.is_null() {
            // Looking a str or None up does not fail.
            ffi::PyErr_Clear();
        } else {
            ffi::Py_IncRef(found);
            (*this).hits += 1;
        }
        found
    }
}

unsafe extern "C" fn vectorcall(
    callable: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargsf: usize,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // The top bit only says that the place before the arguments may be used.
    let nargs = nargsf & (usize::MAX >> 1);
    // SAFETY: the protocol gives an instance and as many arguments as it says, on an attached thread.
    unsafe {
        if kwnames.is_null() && nargs <= 1 {
            let name = if nargs == 1 { *args } else { ffi::Py_None() };
            if nargs == 0 || ffi::PyUnicode_CheckExact(name) != 0 {
                let found = recall(callable, name);
                if !found.is_null() {
                    return found;
                }
            }
        }
        guard(|| {
            let given = Owned::take(ffi::PyTuple_New(nargs.cast_signed()))?;
            for index in 0..nargs {
                let argument = Obj::new(*args.add(index)).owned().into_ptr();
                ffi::PyTuple_SetItem(given.ptr(), index.cast_signed(), argument);
            }
            if kwnames.is_null() {
                return call_miss(callable, given.ptr(), std::ptr::null_mut());
            }
            let named = Owned::take(ffi::PyDict_New())?;
            for index in 0..ffi::PyTuple_Size(kwnames) {
                let value = *args.add(nargs + index.cast_unsigned());
                let key = ffi::PyTuple_GetItem(kwnames, index);
                if ffi::PyDict_SetItem(named.ptr(), key, value) != 0 {
                    return Err(Raised);
                }
            }
            call_miss(callable, given.ptr(), named.ptr())
        })
    }
}

/// `tp_call`, for callers that have a tuple and a dict. `miss` looks into the memory again.
unsafe extern "C" fn tp_call(
    callable: *mut ffi::PyObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the protocol gives an instance, a tuple, and null or a dict.
    guard(|| unsafe { call_miss(callable, args, kwargs) })
}

unsafe fn call_miss(
    function: *mut ffi::PyObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> R<Owned> {
    // SAFETY: called with an instance, a tuple, and null or a dict.
    unsafe {
        let miss = (*function.cast::<Memoized>()).miss;
        Owned::take(ffi::PyObject_Call(miss, args, kwargs))
    }
}

/// A global name: pickle and copy give back the same object.
unsafe extern "C" fn reduce(
    object: *mut ffi::PyObject,
    _: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: a live object.
    unsafe { ffi::PyObject_GetAttrString(object, c"__qualname__".as_ptr()) }
}

unsafe extern "C" fn repr(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: called with an instance.
    let this = unsafe { Obj::new(object) };
    guard(|| {
        let name = this.attribute(c"__qualname__")?;
        let name = name.and_then(|name| name.obj().text()).unwrap_or_default();
        crate::cpython::from_str(&format!("<function {name} that remembers>"))
    })
}

/// Functions are found on classes as they are: they do not bind. Having this makes `inspect` and `pydoc` take them
/// for what they are, routines.
unsafe extern "C" fn descr_get(
    object: *mut ffi::PyObject,
    _: *mut ffi::PyObject,
    _: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: called with an instance.
    unsafe { Obj::new(object) }.owned().into_ptr()
}

fn member(name: &'static CStr, offset: usize, flags: c_int) -> ffi::PyMemberDef {
    ffi::PyMemberDef {
        name: name.as_ptr(),
        type_code: ffi::Py_T_PYSSIZET,
        offset: offset.cast_signed(),
        flags,
        doc: std::ptr::null::<c_char>(),
    }
}

/// The type of these functions, made on first use.
fn memoized_type() -> R<*mut ffi::PyTypeObject> {
    static TYPE: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(std::ptr::null_mut());
    crate::cpython::once(&TYPE, make_type)
}

fn make_type() -> R<Owned> {
    let at = |name, offset| member(name, offset, ffi::Py_READONLY);
    // Tables that the type points at for as long as it lives.
    let members = Box::leak(Box::new([
        at(
            c"__vectorcalloffset__",
            std::mem::offset_of!(Memoized, vectorcall),
        ),
        at(
            c"__dictoffset__",
            std::mem::offset_of!(Memoized, attributes),
        ),
        at(
            c"__weaklistoffset__",
            std::mem::offset_of!(Memoized, weakrefs),
        ),
        member(c"hits", std::mem::offset_of!(Memoized, hits), 0),
        // SAFETY: all null ends the table.
        unsafe { std::mem::zeroed() },
    ]));
    let methods = Box::leak(Box::new([
        ffi::PyMethodDef {
            ml_name: c"__reduce__".as_ptr(),
            ml_meth: ffi::PyMethodDefPointer {
                PyCFunction: reduce,
            },
            ml_flags: ffi::METH_NOARGS,
            ml_doc: std::ptr::null(),
        },
        ffi::PyMethodDef::zeroed(),
    ]));
    let slot = |slot: c_int, pfunc: *mut c_void| ffi::PyType_Slot { slot, pfunc };
    let mut slots = [
        slot(ffi::Py_tp_call, tp_call as *mut c_void),
        slot(ffi::Py_tp_repr, repr as *mut c_void),
        slot(ffi::Py_tp_descr_get, descr_get as *mut c_void),
        slot(ffi::Py_tp_members, members.as_mut_ptr().cast()),
        slot(ffi::Py_tp_methods, methods.as_mut_ptr().cast()),
        slot(0, std::ptr::null_mut()),
    ];
    let mut spec = ffi::PyType_Spec {
        name: c"cupyrite._native.memoized_function".as_ptr(),
        basicsize: c_int::try_from(size_of::<Memoized>()).unwrap_or(0),
        itemsize: 0,
        // The flags are bits 7 (no instances from Python), 8 (immutable), 11 (vectorcall; not in the limited API's
        // headers before 3.12, but the same in every version).
        flags: u32::try_from(ffi::Py_TPFLAGS_DEFAULT).unwrap_or(0) | 1 << 7 | 1 << 8 | 1 << 11,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the spec and its tables are well-formed; the spec itself is only read during the call.
    Owned::take(unsafe { ffi::PyType_FromSpec(&raw mut spec) })
}
