//! Memoizing functions: the hits of `cuda.pathfinder`'s caches.
//!
//! `functools.cache` works for one thread only: two threads could search for the same library at the same time and
//! return different objects. It also caches negative results, caches a result twice if the name is passed once by
//! position and once by keyword, and importing `functools` takes as long as all of `cuda.pathfinder` may take. Cache
//! hits are answered here; misses (`miss` below) are answered in Python.

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

/// A memoizing function. CPython reads the vectorcall pointer, the attributes, the weak references and the hit count at
/// the offsets that the type declares.
#[repr(C)]
struct Memoized {
    base: ffi::PyObject,
    vectorcall: VectorCall,
    /// The instance dict: the attributes that `functools.update_wrapper` sets, and the cache management functions.
    attributes: *mut ffi::PyObject,
    weakrefs: *mut ffi::PyObject,
    /// The cache: a dict by name, or by `None` for a function without a parameter.
    values: *mut ffi::PyObject,
    /// Called for a cache miss, with the original arguments.
    miss: *mut ffi::PyObject,
    /// Number of cache hits. Without the GIL, concurrent calls may lose increments.
    hits: ffi::Py_ssize_t,
}

/// Adds `memoize` to the module.
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
        // SAFETY: `make_type` gave the type the basic size of `Memoized`. The allocation is zeroed except for the object
        // header, and null is valid for `attributes` and `weakrefs`.
        let object = unsafe { Owned::take(ffi::PyType_GenericAlloc(ty, 0)) }?;
        let fields = object.ptr().cast::<Memoized>();
        // SAFETY: as above. The object owns the references. It is never freed (one extra reference), so the type needs
        // neither a destructor nor garbage collection support. There are only six such objects.
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
        // SAFETY: `into_ptr` transfers a new reference.
        Ok(object) => Ok(unsafe { Bound::from_owned_ptr(py, object.into_ptr()) }.unbind()),
        Err(Raised) => Err(PyErr::fetch(py)),
    }
}

/// Looks a name up in the cache. Returns a new reference, or null without an exception for a miss.
///
/// # Safety
///
/// `function` is an instance of the type. `name` is a live object whose hash runs no Python code.
#[inline]
unsafe fn recall(function: *mut ffi::PyObject, name: *mut ffi::PyObject) -> *mut ffi::PyObject {
    let this = function.cast::<Memoized>();
    // SAFETY: the function owns the dict. The borrowed reference becomes an owned one before any other code runs.
    // Without the GIL, cached values stay alive, because `miss` never replaces one.
    unsafe {
        let found = ffi::PyDict_GetItemWithError((*this).values, name);
        if found.is_null() {
            // The lookup of a `str` or `None` does not fail.
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
    // Mask out `PY_VECTORCALL_ARGUMENTS_OFFSET`, the top bit.
    let nargs = nargsf & (usize::MAX >> 1);
    // SAFETY: by the vectorcall protocol, `callable` is an instance, `args` holds the arguments that `nargsf` and
    // `kwnames` count, and this thread is attached.
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

/// `tp_call`, for callers that pass a tuple and a dict. `miss` checks the cache again.
unsafe extern "C" fn tp_call(
    callable: *mut ffi::PyObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: by the protocol of `tp_call`, the arguments are an instance, a tuple, and null or a dict.
    guard(|| unsafe { call_miss(callable, args, kwargs) })
}

unsafe fn call_miss(
    function: *mut ffi::PyObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> R<Owned> {
    // SAFETY: the callers pass an instance, a tuple, and null or a dict. `miss` is never null after `memoize`.
    unsafe {
        let miss = (*function.cast::<Memoized>()).miss;
        Owned::take(ffi::PyObject_Call(miss, args, kwargs))
    }
}

/// `__reduce__`: returns the global name, so that `pickle` and `copy` return the same object.
unsafe extern "C" fn reduce(
    object: *mut ffi::PyObject,
    _: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: CPython passes a live object.
    unsafe { ffi::PyObject_GetAttrString(object, c"__qualname__".as_ptr()) }
}

unsafe extern "C" fn repr(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: CPython passes a live instance to `tp_repr`.
    let this = unsafe { Obj::new(object) };
    guard(|| {
        let name = this.attribute(c"__qualname__")?;
        let name = name.and_then(|name| name.obj().text()).unwrap_or_default();
        crate::cpython::from_str(&format!("<function {name} that remembers>"))
    })
}

/// `__get__`: returns the function itself, which does not bind to instances. With this slot, `inspect` and `pydoc` treat
/// these objects as routines.
unsafe extern "C" fn descr_get(
    object: *mut ffi::PyObject,
    _: *mut ffi::PyObject,
    _: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: CPython passes a live instance to `tp_descr_get`.
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

/// The type of memoizing functions, created on first use.
fn memoized_type() -> R<*mut ffi::PyTypeObject> {
    static TYPE: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(std::ptr::null_mut());
    crate::cpython::once(&TYPE, make_type)
}

fn make_type() -> R<Owned> {
    let at = |name, offset| member(name, offset, ffi::Py_READONLY);
    // The immortal type points at these tables.
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
        // SAFETY: all-zero is a valid `PyMemberDef`; CPython defines it as the end of the table.
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
        // Flags: bit 7 (no instantiation from Python), bit 8 (immutable), bit 11 (vectorcall: missing from the limited
        // API's headers before 3.12, but the same bit in every version).
        flags: u32::try_from(ffi::Py_TPFLAGS_DEFAULT).unwrap_or(0) | 1 << 7 | 1 << 8 | 1 << 11,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the spec and its tables are well-formed. The leaked tables outlive the type; CPython reads the spec only
    // during the call.
    Owned::take(unsafe { ffi::PyType_FromSpec(&raw mut spec) })
}
