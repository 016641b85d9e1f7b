//! Lazy modules of the bindings: a name's object is created when the name is first looked up.
//!
//! A Python module calls `lazy_module(__name__)` during its import. This adds `__getattr__` (PEP 562) to its dictionary
//! and changes its class. The class lists every name in `dir(module)`. `vars(module)` creates all objects and turns the
//! module into an ordinary one.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::ffi;

use crate::bindings::{exceptions, function};
use crate::cpython;
use crate::cpython::{Owned, Raised, c_string};
use crate::types::errors::{ExceptionKind, guard_or, raise, utf8};
use crate::types::object::slot;
use crate::types::table::{ClassId, EnumId, LIBRARIES, Library};
use crate::types::{enums, numpy, registry};

struct Defs<T>(T);
// SAFETY: the tables are immutable after initialisation.
unsafe impl<T> Sync for Defs<T> {}

static FUNCTIONS: Defs<[ffi::PyMethodDef; 2]> = Defs([
    ffi::PyMethodDef {
        ml_name: c"lazy_module".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunction: lazy_module,
        },
        ml_flags: ffi::METH_O,
        ml_doc: c"lazy_module(name, /)\n--\n\nMakes the module being imported under this name a lazy one.".as_ptr(),
    },
    ffi::PyMethodDef {
        ml_name: c"fast_enum".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunction: fast_enum,
        },
        ml_flags: ffi::METH_NOARGS,
        ml_doc: c"fast_enum()\n--\n\n(FastEnum, FastEnumMetaclass)".as_ptr(),
    },
]);

static GETATTR: Defs<ffi::PyMethodDef> = Defs(ffi::PyMethodDef {
    ml_name: c"__getattr__".as_ptr(),
    ml_meth: ffi::PyMethodDefPointer {
        PyCFunction: module_getattr,
    },
    ml_flags: ffi::METH_O,
    ml_doc: c"__getattr__(name, /)\n--\n\nMakes the object of this name on first use.".as_ptr(),
});

/// Adds the functions above to the native module.
///
/// # Safety
/// `native` is the module; the GIL is held.
pub unsafe fn init(native: *mut ffi::PyObject) -> i32 {
    for def in &FUNCTIONS.0 {
        // SAFETY: as promised by the caller; the definitions are static, and PyModule_AddObjectRef steals no reference.
        unsafe {
            let f =
                ffi::PyCFunction_NewEx(std::ptr::from_ref(def).cast_mut(), null_mut(), null_mut());
            if f.is_null() {
                return -1;
            }
            let rc = ffi::PyModule_AddObjectRef(native, def.ml_name, f);
            ffi::Py_DECREF(f);
            if rc != 0 {
                return rc;
            }
        }
    }
    0
}

unsafe extern "C" fn fast_enum(_: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard_or(null_mut(), || {
        // SAFETY: both classes are immortal; PyTuple_SetItem steals the references created here.
        unsafe {
            let (Some(base), Some(meta)) = (enums::base(), enums::metaclass()) else {
                return null_mut();
            };
            let tuple = ffi::PyTuple_New(2);
            if !tuple.is_null() {
                ffi::Py_INCREF(base);
                ffi::Py_INCREF(meta);
                ffi::PyTuple_SetItem(tuple, 0, base);
                ffi::PyTuple_SetItem(tuple, 1, meta);
            }
            tuple
        }
    })
}

unsafe extern "C" fn lazy_module(
    _: *mut ffi::PyObject,
    name: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard_or(null_mut(), || {
        // SAFETY: the interpreter calls a `METH_O` function with one live argument.
        unsafe {
            match install(name) {
                Some(()) => {
                    ffi::Py_INCREF(ffi::Py_None());
                    ffi::Py_None()
                }
                None => null_mut(),
            }
        }
    })
}

unsafe fn install(name: *mut ffi::PyObject) -> Option<()> {
    // SAFETY: the caller passes a live object and holds the GIL; `sys.modules` keeps the borrowed module alive.
    unsafe {
        if ffi::PyUnicode_Check(name) == 0 {
            raise(
                ExceptionKind::Type,
                "lazy_module(): the module's name is required",
            );
            return None;
        }
        let text = utf8(name)?;
        if library(&text).is_none() {
            raise(
                ExceptionKind::Value,
                &format!("lazy_module(): no table for {text}"),
            );
            return None;
        }
        let modules = ffi::PyImport_GetModuleDict();
        let module = ffi::PyDict_GetItemWithError(modules, name);
        if module.is_null() || ffi::PyModule_Check(module) == 0 {
            raise(
                ExceptionKind::Value,
                &format!("lazy_module(): {text} is not being imported"),
            );
            return None;
        }
        let getattr = ffi::PyCFunction_NewEx((&raw const GETATTR.0).cast_mut(), module, name);
        if getattr.is_null() {
            return None;
        }
        let dict = ffi::PyModule_GetDict(module);
        let rc = ffi::PyDict_SetItemString(dict, c"__getattr__".as_ptr(), getattr);
        ffi::Py_DECREF(getattr);
        if rc != 0 {
            return None;
        }
        let class = module_class()?;
        (ffi::PyObject_SetAttrString(module, c"__class__".as_ptr(), class) == 0).then_some(())
    }
}

fn library(name: &str) -> Option<&'static Library> {
    LIBRARIES.iter().find(|l| l.module == name).copied()
}

unsafe fn library_of(module: *mut ffi::PyObject) -> Option<&'static Library> {
    // SAFETY: the callers pass a live module.
    unsafe {
        let name = ffi::PyModule_GetNameObject(module);
        let text = utf8(name);
        ffi::Py_XDECREF(name);
        let found = library(&text?);
        if found.is_none() {
            raise(ExceptionKind::Attribute, "this module has been renamed");
        }
        found
    }
}

static MODULE_CLASS: AtomicPtr<ffi::PyObject> = AtomicPtr::new(null_mut());

static PROPERTIES: Defs<[ffi::PyGetSetDef; 2]> = Defs([
    ffi::PyGetSetDef {
        name: c"__dict__".as_ptr(),
        get: Some(module_dict),
        set: None,
        doc: c"The module's names, all of them.".as_ptr(),
        closure: null_mut(),
    },
    ffi::PyGetSetDef {
        name: std::ptr::null(),
        get: None,
        set: None,
        doc: std::ptr::null(),
        closure: null_mut(),
    },
]);

static METHODS: Defs<[ffi::PyMethodDef; 2]> = Defs([
    ffi::PyMethodDef {
        ml_name: c"__dir__".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunction: module_dir,
        },
        ml_flags: ffi::METH_NOARGS,
        ml_doc: c"__dir__($self, /)\n--\n\nEvery name of the module.".as_ptr(),
    },
    ffi::PyMethodDef::zeroed(),
]);

unsafe fn module_class() -> Option<*mut ffi::PyObject> {
    let known = MODULE_CLASS.load(Ordering::Acquire);
    if !known.is_null() {
        return Some(known);
    }
    let mut slots = [
        slot(
            ffi::Py_tp_getset,
            PROPERTIES.0.as_ptr().cast_mut().cast::<c_void>(),
        ),
        slot(
            ffi::Py_tp_methods,
            METHODS.0.as_ptr().cast_mut().cast::<c_void>(),
        ),
        slot(
            ffi::Py_tp_doc,
            c"A module whose objects are made when they are first looked up."
                .as_ptr()
                .cast_mut()
                .cast(),
        ),
        slot(0, null_mut()),
    ];
    let mut spec = ffi::PyType_Spec {
        name: c"cupyrite._native.lazy_module_type".as_ptr(),
        basicsize: 0,
        itemsize: 0,
        flags: ffi::Py_TPFLAGS_DEFAULT as u32,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the spec inherits the size of the module type, its only base; PyTuple_SetItem steals the reference.
    unsafe {
        let bases = ffi::PyTuple_New(1);
        if bases.is_null() {
            return None;
        }
        let base = (&raw mut ffi::PyModule_Type).cast::<ffi::PyObject>();
        ffi::Py_INCREF(base);
        ffi::PyTuple_SetItem(bases, 0, base);
        let class = ffi::PyType_FromSpecWithBases(&mut spec, bases);
        ffi::Py_DECREF(bases);
        let made = Owned::take(class).ok()?;
        Some(cpython::publish(&MODULE_CLASS, made))
    }
}

/// Every public name of a library's module.
fn names(lib: &'static Library) -> impl Iterator<Item = &'static str> {
    // Names with an underscore are classes of unnamed members and their dtypes.
    all_names(lib).filter(|name| !name.starts_with('_'))
}

/// Every name of a library's module, except `__all__` and `_FastEnum`.
fn all_names(lib: &'static Library) -> impl Iterator<Item = &'static str> {
    let functions = function::all(lib.loader).iter().map(|f| f.name);
    let exceptions = lib.errors.map_or(&[] as &[_], |e| e.index);
    lib.class_index
        .iter()
        .map(|c| c.0)
        .chain(lib.enums.iter().map(|e| e.name))
        .chain(lib.constants.iter().map(|c| c.0))
        .chain(exceptions.iter().map(|e| e.0))
        .chain(lib.aliases.iter().map(|a| a.0))
        .chain(lib.dtypes.iter().map(|d| d.0))
        .chain(functions)
}

/// Creates the object called `name`: a new reference. Null without an exception for an unknown name, null with an
/// exception on failure.
unsafe fn make(lib: &'static Library, name: &str) -> *mut ffi::PyObject {
    // SAFETY: the callers hold the GIL.
    unsafe {
        if let Ok(i) = lib.class_index.binary_search_by_key(&name, |c| c.0) {
            let ty = registry::type_of(ClassId(lib.class_index[i].1)).cast::<ffi::PyObject>();
            ffi::Py_XINCREF(ty);
            return ty;
        }
        if let Ok(i) = lib.enums.binary_search_by_key(&name, |e| e.name) {
            let Some(made) = registry::enum_of(EnumId(lib.first_enum + i as u16)) else {
                return null_mut();
            };
            ffi::Py_INCREF(made.class);
            return made.class;
        }
        if let Ok(i) = lib.constants.binary_search_by_key(&name, |c| c.0) {
            return ffi::PyLong_FromLongLong(lib.constants[i].1);
        }
        if let Some(errors) = lib.errors
            && let Ok(i) = errors.index.binary_search_by_key(&name, |e| e.0)
        {
            let class = exceptions::class(lib, errors.index[i].1);
            ffi::Py_XINCREF(class);
            return class;
        }
        if let Ok(i) = lib.aliases.binary_search_by_key(&name, |a| a.0) {
            return alias(lib, lib.aliases[i].1);
        }
        if let Ok(i) = lib.dtypes.binary_search_by_key(&name, |d| d.0) {
            return match numpy::dtype(ClassId(lib.dtypes[i].1)) {
                Ok(dtype) => dtype.owned().into_ptr(),
                Err(Raised) => null_mut(),
            };
        }
        if name == "__all__" {
            return all(lib);
        }
        if name == "_FastEnum" {
            let Some(base) = enums::base() else {
                return null_mut();
            };
            ffi::Py_INCREF(base);
            return base;
        }
        match function::get(lib.loader, name) {
            Some(Ok(function)) => function.into_ptr(),
            _ => null_mut(),
        }
    }
}

/// The target of an alias: a name of this module, or `package.module.name` in another.
unsafe fn alias(lib: &'static Library, target: &str) -> *mut ffi::PyObject {
    let Some((module, name)) = target.rsplit_once('.') else {
        // SAFETY: the caller holds the GIL.
        return unsafe { make(lib, target) };
    };
    // SAFETY: the caller holds the GIL; the names are NUL-terminated, and `module` is an owned reference.
    unsafe {
        let module = ffi::PyImport_ImportModule(c_string(module).as_ptr());
        if module.is_null() {
            return module;
        }
        let found = ffi::PyObject_GetAttrString(module, c_string(name).as_ptr());
        ffi::Py_DECREF(module);
        found
    }
}

unsafe fn all(lib: &'static Library) -> *mut ffi::PyObject {
    let mut list: Vec<&str> = names(lib).collect();
    // `from module import *` creates every object in `__all__`, and must succeed without NumPy.
    if !lib.dtypes.is_empty() && numpy::module().is_err() {
        // SAFETY: the caller holds the GIL.
        unsafe { ffi::PyErr_Clear() };
        list.retain(|name| !is_dtype(lib, name));
    }
    list.sort_unstable();
    // SAFETY: the caller holds the GIL.
    unsafe { list_of(&list) }
}

fn is_dtype(lib: &Library, name: &str) -> bool {
    lib.dtypes.binary_search_by_key(&name, |d| d.0).is_ok()
}

unsafe fn list_of(names: &[&str]) -> *mut ffi::PyObject {
    // SAFETY: the caller holds the GIL; PyList_SetItem steals each reference.
    unsafe {
        let list = ffi::PyList_New(names.len() as isize);
        if list.is_null() {
            return list;
        }
        for (i, name) in names.iter().enumerate() {
            let item = ffi::PyUnicode_FromStringAndSize(name.as_ptr().cast(), name.len() as isize);
            if item.is_null() {
                ffi::Py_DECREF(list);
                return item;
            }
            ffi::PyList_SetItem(list, i as isize, item);
        }
        list
    }
}

unsafe extern "C" fn module_getattr(
    module: *mut ffi::PyObject,
    name: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard_or(null_mut(), || {
        // SAFETY: `install` bound this function to its module, so the interpreter passes that module and one argument.
        unsafe {
            if ffi::PyUnicode_Check(name) == 0 {
                raise(ExceptionKind::Type, "__getattr__(): a name is required");
                return null_mut();
            }
            let Some(lib) = library_of(module) else {
                return null_mut();
            };
            let Some(text) = utf8(name) else {
                return null_mut();
            };
            let object = make(lib, &text);
            if object.is_null() {
                if ffi::PyErr_Occurred().is_null() {
                    raise(
                        ExceptionKind::Attribute,
                        &format!("module '{}' has no attribute '{text}'", lib.module),
                    );
                }
                return null_mut();
            }
            let dict = ffi::PyModule_GetDict(module);
            if ffi::PyDict_SetItem(dict, name, object) != 0 {
                ffi::Py_DECREF(object);
                return null_mut();
            }
            object
        }
    })
}

unsafe extern "C" fn module_dict(module: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
    guard_or(null_mut(), || {
        // SAFETY: the interpreter passes a module of this class.
        unsafe {
            let dict = ffi::PyModule_GetDict(module);
            let Some(lib) = library_of(module) else {
                return null_mut();
            };
            let mut complete = true;
            for name in all_names(lib).chain(["__all__", "_FastEnum"]) {
                let key =
                    ffi::PyUnicode_FromStringAndSize(name.as_ptr().cast(), name.len() as isize);
                if key.is_null() {
                    return null_mut();
                }
                let known = ffi::PyDict_Contains(dict, key);
                let mut failed = known < 0;
                if known == 0 {
                    let object = make(lib, name);
                    failed = object.is_null() || ffi::PyDict_SetItem(dict, key, object) != 0;
                    ffi::Py_XDECREF(object);
                }
                ffi::Py_DECREF(key);
                if failed
                    && is_dtype(lib, name)
                    && ffi::PyErr_ExceptionMatches(ffi::PyExc_ImportError) != 0
                {
                    // NumPy is missing: skip the dtype. Looking it up by name raises `ImportError`.
                    ffi::PyErr_Clear();
                    complete = false;
                    continue;
                }
                if failed {
                    if ffi::PyErr_Occurred().is_null() {
                        raise(
                            ExceptionKind::Runtime,
                            &format!("{}.{name} cannot be made", lib.module),
                        );
                    }
                    return null_mut();
                }
            }
            ffi::Py_INCREF(dict);
            if !complete {
                return dict;
            }
            // Restore the ordinary module class, whose attribute lookup is faster.
            let plain = (&raw mut ffi::PyModule_Type).cast::<ffi::PyObject>();
            if ffi::PyObject_SetAttrString(module, c"__class__".as_ptr(), plain) != 0
                || ffi::PyDict_DelItemString(dict, c"__getattr__".as_ptr()) != 0
            {
                // Other code has changed the module. It still works as a lazy module.
                ffi::PyErr_Clear();
            }
            dict
        }
    })
}

unsafe extern "C" fn module_dir(
    module: *mut ffi::PyObject,
    _: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard_or(null_mut(), || {
        // SAFETY: the interpreter passes a module of this class.
        unsafe {
            let Some(lib) = library_of(module) else {
                return null_mut();
            };
            let set = ffi::PySet_New(ffi::PyModule_GetDict(module));
            if set.is_null() {
                return set;
            }
            for name in names(lib) {
                let key =
                    ffi::PyUnicode_FromStringAndSize(name.as_ptr().cast(), name.len() as isize);
                let rc = if key.is_null() {
                    -1
                } else {
                    ffi::PySet_Add(set, key)
                };
                ffi::Py_XDECREF(key);
                if rc != 0 {
                    ffi::Py_DECREF(set);
                    return null_mut();
                }
            }
            let list = ffi::PySequence_List(set);
            ffi::Py_DECREF(set);
            if !list.is_null() && ffi::PyList_Sort(list) != 0 {
                ffi::Py_DECREF(list);
                return null_mut();
            }
            list
        }
    })
}
