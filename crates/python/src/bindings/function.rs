//! The Python function objects. Each refers to a descriptor.
//!
//! They are instances of one small type that implements the vectorcall protocol, not `builtin_function_or_method`: a
//! built-in whose `self` is a descriptor would have the wrong `__qualname__`, `repr` and pickle, and needs one more
//! indirection.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::AtomicPtr;

use pyo3::ffi;

use crate::bindings::call::fast::FastRoute;
use crate::bindings::call::general;
use crate::bindings::descriptor::Function;
use crate::bindings::docstring;
use crate::cpython;
use crate::cpython::guard;
use crate::cpython::{Obj, Owned, R, Raised};
use crate::generated::{
    cudla_functions, cufile_functions, driver_functions, driver_v2_functions, nvfatbin_functions,
    nvjitlink_functions, nvml_functions, nvrtc_functions, nvrtc_v2_functions, nvvm_functions,
    runtime_functions, runtime_v2_functions,
};
use crate::types::table::Module;

/// A vectorcall function: callable, arguments, their number and flag, keyword names.
type VectorCall = unsafe extern "C" fn(
    *mut ffi::PyObject,
    *const *mut ffi::PyObject,
    usize,
    *mut ffi::PyObject,
) -> *mut ffi::PyObject;

/// A function object. The interpreter reads the vectorcall pointer at the offset that the type declares.
#[repr(C)]
struct FunctionObject {
    base: ffi::PyObject,
    vectorcall: VectorCall,
    weakrefs: *mut ffi::PyObject,
    function: &'static Function,
    fast: FastRoute,
}

/// All functions of a module, sorted by name.
pub fn all(module: Module) -> &'static [Function] {
    match module {
        Module::Driver => driver_functions::FUNCTIONS,
        Module::Runtime => runtime_functions::FUNCTIONS,
        Module::Nvrtc => nvrtc_functions::FUNCTIONS,
        Module::NvJitLink => nvjitlink_functions::FUNCTIONS,
        Module::Nvvm => nvvm_functions::FUNCTIONS,
        Module::NvFatbin => nvfatbin_functions::FUNCTIONS,
        Module::Nvml => nvml_functions::FUNCTIONS,
        Module::CuFile => cufile_functions::FUNCTIONS,
        Module::Cudla => cudla_functions::FUNCTIONS,
        Module::DriverV2 => driver_v2_functions::FUNCTIONS,
        Module::RuntimeV2 => runtime_v2_functions::FUNCTIONS,
        Module::NvrtcV2 => nvrtc_v2_functions::FUNCTIONS,
    }
}

fn index_of(module: Module, name: &str) -> Option<usize> {
    all(module).binary_search_by(|f| f.name.cmp(name)).ok()
}

/// The descriptor of the function called `name`.
pub fn descriptor(module: Module, name: &str) -> Option<&'static Function> {
    index_of(module, name).map(|index| &all(module)[index])
}

/// The function object called `name`, the same one in every call; `None` if the module has no such function.
///
/// # Errors
///
/// `MemoryError`.
pub fn get(module: Module, name: &str) -> Option<R<Owned>> {
    static OBJECTS: [OnceLock<Box<[AtomicPtr<ffi::PyObject>]>>; Module::COUNT] =
        [const { OnceLock::new() }; Module::COUNT];
    let index = index_of(module, name)?;
    let places = OBJECTS[module as usize].get_or_init(|| {
        all(module)
            .iter()
            .map(|_| AtomicPtr::new(std::ptr::null_mut()))
            .collect()
    });
    // SAFETY: `OBJECTS` never releases its references.
    Some(
        cpython::once(&places[index], || make(&all(module)[index]))
            .map(|known| unsafe { Obj::new(known) }.owned()),
    )
}

fn make(function: &'static Function) -> R<Owned> {
    let ty = function_type()?;
    // SAFETY: the type's basic size is that of `FunctionObject`; `PyType_GenericAlloc` zeroes it and sets `base`.
    unsafe {
        let object = Owned::take(ffi::PyType_GenericAlloc(ty, 0))?;
        let fields = object.ptr().cast::<FunctionObject>();
        (&raw mut (*fields).vectorcall).write(vectorcall);
        (&raw mut (*fields).weakrefs).write(std::ptr::null_mut());
        (&raw mut (*fields).function).write(function);
        (&raw mut (*fields).fast).write(FastRoute::new(function));
        Ok(object)
    }
}

/// The descriptor of a function object.
///
/// # Safety
///
/// `object` is a live function object.
#[inline(always)]
unsafe fn function_of(object: *mut ffi::PyObject) -> &'static Function {
    // SAFETY: the caller passes an instance; Python can neither create instances nor derive from the type.
    unsafe { (*object.cast::<FunctionObject>()).function }
}

/// The vectorcall of all functions: the fast route if it serves the call, else the general route.
///
/// # Safety
///
/// Called according to the vectorcall protocol, with a function object.
unsafe extern "C" fn vectorcall(
    callable: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargsf: usize,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // Clears PY_VECTORCALL_ARGUMENTS_OFFSET.
    let nargs = nargsf & (usize::MAX >> 1);
    if kwnames.is_null() {
        // SAFETY: the vectorcall protocol passes an instance and `nargs` live arguments, on an attached thread; function
        // objects are never freed.
        let answer = unsafe {
            let fast = &raw mut (*callable.cast::<FunctionObject>()).fast;
            FastRoute::call(fast, function_of(callable), args, nargs)
        };
        match answer {
            Some(Ok(value)) => return value.into_ptr(),
            Some(Err(Raised)) => return std::ptr::null_mut(),
            None => {}
        }
    }
    // SAFETY: the vectorcall protocol passes an instance and live arguments, on an attached thread.
    unsafe { general(callable, args, nargs, kwnames) }
}

#[inline(never)]
unsafe fn general(
    callable: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: usize,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: as promised by the caller; function objects are never freed.
    guard(|| unsafe {
        let fast = &raw mut (*callable.cast::<FunctionObject>()).fast;
        general::vectorcall(fast, function_of(callable), args, nargs, kwnames)
    })
}

/// `tp_call`, for callers that pass a tuple and a dict.
unsafe extern "C" fn tp_call(
    callable: *mut ffi::PyObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(|| {
        let mut flat = Vec::new();
        // SAFETY: `tp_call` receives a tuple and null or a dict, both of which outlive the call. `PyDict_Next` visits each
        // pair once, as nothing changes the dict meanwhile.
        unsafe {
            let nargs = ffi::PyTuple_Size(args).max(0);
            for index in 0..nargs {
                flat.push(ffi::PyTuple_GetItem(args, index));
            }
            let mut names = None;
            if !kwargs.is_null() && ffi::PyDict_Size(kwargs) > 0 {
                let tuple = Owned::take(ffi::PyTuple_New(ffi::PyDict_Size(kwargs)))?;
                let (mut position, mut index) = (0, 0);
                let (mut key, mut value) = (std::ptr::null_mut(), std::ptr::null_mut());
                while ffi::PyDict_Next(kwargs, &raw mut position, &raw mut key, &raw mut value) != 0
                {
                    ffi::PyTuple_SetItem(tuple.ptr(), index, Obj::new(key).owned().into_ptr());
                    flat.push(value);
                    index += 1;
                }
                names = Some(tuple);
            }
            let names = names.as_ref().map_or(std::ptr::null_mut(), Owned::ptr);
            let fast = &raw mut (*callable.cast::<FunctionObject>()).fast;
            general::vectorcall(
                fast,
                function_of(callable),
                flat.as_ptr(),
                nargs.cast_unsigned(),
                names,
            )
        }
    })
}

// ---------------------------------------------------------------------------------------------------------
// Attributes

/// The signature in the form that `inspect.signature` parses, e.g. `(bytesize)`.
pub fn text_signature(f: &Function) -> String {
    let params: Vec<String> = f
        .params
        .iter()
        .map(|p| match p.default_text() {
            Some(default) => format!("{}={default}", p.name),
            None => p.name.to_owned(),
        })
        .collect();
    format!("({})", params.join(", "))
}

unsafe extern "C" fn get_name(object: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: called with an instance.
    guard(|| cpython::from_str(unsafe { function_of(object) }.name))
}

/// The attribute `_symbol`: the name of the C function with the suffix of its ABI version, or None for a function without a C
/// function. Errors of `cuda.core` name it.
unsafe extern "C" fn get_symbol(object: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: called with an instance.
    guard(|| match unsafe { function_of(object) }.export() {
        Some(symbol) => cpython::from_str(symbol),
        None => Ok(cpython::none()),
    })
}

unsafe extern "C" fn get_doc(object: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: called with an instance.
    guard(|| cpython::from_str(&docstring::of(unsafe { function_of(object) })))
}

unsafe extern "C" fn get_text_signature(
    object: *mut ffi::PyObject,
    _: *mut c_void,
) -> *mut ffi::PyObject {
    // SAFETY: called with an instance.
    guard(|| cpython::from_str(&text_signature(unsafe { function_of(object) })))
}

unsafe extern "C" fn reduce(
    object: *mut ffi::PyObject,
    _: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // A global name: pickle and copy return the same object.
    // SAFETY: called with an instance.
    guard(|| cpython::from_str(unsafe { function_of(object) }.name))
}

unsafe extern "C" fn repr(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: called with an instance.
        let f = unsafe { function_of(object) };
        cpython::from_str(&format!("<built-in function {}>", f.name))
    })
}

/// Handles `__module__`: the type's own `__module__` would hide a getter.
unsafe extern "C" fn getattro(
    object: *mut ffi::PyObject,
    name: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: `tp_getattro` receives an instance and a str.
    unsafe {
        if Obj::new(name).text().as_deref() == Some("__module__") {
            return guard(|| cpython::from_str(function_of(object).module.name()));
        }
        ffi::PyObject_GenericGetAttr(object, name)
    }
}

/// Returns the function itself: functions do not bind as methods. With this slot, `inspect` recognises them as routines
/// with a text signature.
unsafe extern "C" fn descr_get(
    object: *mut ffi::PyObject,
    _: *mut ffi::PyObject,
    _: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: called with an instance.
    unsafe { Obj::new(object) }.owned().into_ptr()
}

fn getter(
    name: &'static CStr,
    get: unsafe extern "C" fn(*mut ffi::PyObject, *mut c_void) -> *mut ffi::PyObject,
) -> ffi::PyGetSetDef {
    ffi::PyGetSetDef {
        name: name.as_ptr(),
        get: Some(get),
        set: None,
        doc: std::ptr::null(),
        closure: std::ptr::null_mut(),
    }
}

fn offset_member(name: &'static CStr, offset: usize) -> ffi::PyMemberDef {
    ffi::PyMemberDef {
        name: name.as_ptr(),
        type_code: ffi::Py_T_PYSSIZET,
        offset: offset.cast_signed(),
        flags: ffi::Py_READONLY,
        doc: std::ptr::null::<c_char>(),
    }
}

/// The type of all functions. Created on first use.
fn function_type() -> R<*mut ffi::PyTypeObject> {
    static TYPE: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(std::ptr::null_mut());
    cpython::once(&TYPE, make_type)
}

fn make_type() -> R<Owned> {
    // Leaked: the type refers to these tables for its whole life.
    let getset = Box::leak(Box::new([
        getter(c"__name__", get_name),
        getter(c"__qualname__", get_name),
        getter(c"__doc__", get_doc),
        getter(c"_symbol", get_symbol),
        getter(c"__text_signature__", get_text_signature),
        // SAFETY: all fields may be null; a zeroed entry terminates the table.
        unsafe { std::mem::zeroed() },
    ]));
    let members = Box::leak(Box::new([
        offset_member(
            c"__vectorcalloffset__",
            std::mem::offset_of!(FunctionObject, vectorcall),
        ),
        offset_member(
            c"__weaklistoffset__",
            std::mem::offset_of!(FunctionObject, weakrefs),
        ),
        // SAFETY: all fields may be null; a zeroed entry terminates the table.
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
        slot(ffi::Py_tp_getattro, getattro as *mut c_void),
        slot(ffi::Py_tp_descr_get, descr_get as *mut c_void),
        slot(ffi::Py_tp_getset, getset.as_mut_ptr().cast()),
        slot(ffi::Py_tp_members, members.as_mut_ptr().cast()),
        slot(ffi::Py_tp_methods, methods.as_mut_ptr().cast()),
        slot(0, std::ptr::null_mut()),
    ];
    let mut spec = ffi::PyType_Spec {
        name: c"cupyrite._native.function".as_ptr(),
        basicsize: c_int::try_from(size_of::<FunctionObject>()).unwrap_or(0),
        itemsize: 0,
        // Flag bits: 7 (Python cannot create instances), 8 (immutable), 11 (vectorcall; missing from the limited API's
        // headers before 3.12, but the same in every version).
        flags: u32::try_from(ffi::Py_TPFLAGS_DEFAULT).unwrap_or(0) | 1 << 7 | 1 << 8 | 1 << 11,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the spec and its tables are well-formed. The spec is only read during the call; the tables are leaked.
    Owned::take(unsafe { ffi::PyType_FromSpec(&raw mut spec) })
}
