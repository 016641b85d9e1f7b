//! Lazy modules of the bindings: a name's object is created when the name is first looked up.
//!
//! A Python module calls `lazy_module(__name__)` during its import. This adds `__getattr__` (PEP 562) to its dictionary
//! and changes its class. The class lists every name in `dir(module)`. `vars(module)` creates all objects and turns the
//! module into an ordinary one.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;

use pyo3::ffi;

use crate::bindings::{exceptions, function};
use crate::cpython;
use crate::cpython::errors::{ExceptionKind, guard, raise};
use crate::cpython::{Obj, Owned, R, Raised, c_string, tuple};
use crate::types::object::slot;
use crate::types::table::{ClassId, EnumId, MODULES, ModuleTypes};
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
/// # Errors
///
/// `MemoryError`.
pub fn init(native: Obj<'_>) -> R<()> {
    for def in &FUNCTIONS.0 {
        let name = def.ml_name;
        // SAFETY: the module is live and the definitions are static; PyModule_AddObjectRef takes its own reference.
        unsafe {
            let def = std::ptr::from_ref(def).cast_mut();
            let function = Owned::take(ffi::PyCFunction_NewEx(def, null_mut(), null_mut()))?;
            if ffi::PyModule_AddObjectRef(native.ptr(), name, function.ptr()) != 0 {
                return Err(Raised);
            }
        }
    }
    Ok(())
}

unsafe extern "C" fn fast_enum(_: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(|| tuple([enums::base()?.owned(), enums::metaclass()?.owned()]))
}

unsafe extern "C" fn lazy_module(
    _: *mut ffi::PyObject,
    name: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: the interpreter calls a `METH_O` function with one live argument.
        install(unsafe { Obj::new(name) })?;
        Ok(cpython::none())
    })
}

fn install(name: Obj<'_>) -> R<()> {
    if !name.is_str() {
        return Err(raise(
            ExceptionKind::Type,
            "lazy_module(): the module's name is required",
        ));
    }
    let text = name.utf8()?;
    if library(&text).is_none() {
        let message = format!("lazy_module(): no table for {text}");
        return Err(raise(ExceptionKind::Value, &message));
    }
    // SAFETY: `sys.modules` keeps the borrowed module alive; all other objects are live.
    unsafe {
        let modules = ffi::PyImport_GetModuleDict();
        let module = ffi::PyDict_GetItemWithError(modules, name.ptr());
        if module.is_null() || ffi::PyModule_Check(module) == 0 {
            let message = format!("lazy_module(): {text} is not being imported");
            return Err(raise(ExceptionKind::Value, &message));
        }
        let def = (&raw const GETATTR.0).cast_mut();
        let getattr = Owned::take(ffi::PyCFunction_NewEx(def, module, name.ptr()))?;
        let module = Obj::new(module);
        cpython::set_entry(dict_of(module), c"__getattr__", getattr.obj())?;
        set_class(module, Obj::new(module_class()?))
    }
}

/// The dictionary of a module.
fn dict_of(module: Obj<'_>) -> Obj<'_> {
    // SAFETY: callers pass a live module, which owns its dictionary.
    unsafe { Obj::new(ffi::PyModule_GetDict(module.ptr())) }
}

/// Assigns `__class__`.
fn set_class(module: Obj<'_>, class: Obj<'_>) -> R<()> {
    let name = c"__class__".as_ptr();
    // SAFETY: both are live.
    match unsafe { ffi::PyObject_SetAttrString(module.ptr(), name, class.ptr()) } {
        0 => Ok(()),
        _ => Err(Raised),
    }
}

fn library(name: &str) -> Option<&'static ModuleTypes> {
    MODULES.iter().find(|l| l.module.name() == name).copied()
}

fn library_of(module: Obj<'_>) -> R<&'static ModuleTypes> {
    // SAFETY: an `Obj` is live.
    let name = Owned::take(unsafe { ffi::PyModule_GetNameObject(module.ptr()) })?;
    library(&name.obj().utf8()?)
        .ok_or_else(|| raise(ExceptionKind::Attribute, "this module has been renamed"))
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

static METHODS: Defs<[ffi::PyMethodDef; 3]> = Defs([
    ffi::PyMethodDef {
        ml_name: c"__dir__".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunction: module_dir,
        },
        ml_flags: ffi::METH_NOARGS,
        ml_doc: c"__dir__($self, /)\n--\n\nEvery name of the module.".as_ptr(),
    },
    ffi::PyMethodDef {
        ml_name: c"__reduce__".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunction: module_reduce,
        },
        ml_flags: ffi::METH_NOARGS,
        ml_doc: c"__reduce__($self, /)\n--\n\nPickles the name: unpickling imports the module."
            .as_ptr(),
    },
    ffi::PyMethodDef::zeroed(),
]);

/// `__reduce__`: cloudpickle pickles modules to which functions refer, but only those of exactly the module type.
unsafe extern "C" fn module_reduce(
    module: *mut ffi::PyObject,
    _: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: the interpreter calls a method with a live instance; the results are new references.
        let (importlib, name) = unsafe {
            (
                Owned::take(ffi::PyImport_ImportModule(c"importlib".as_ptr()))?,
                Owned::take(ffi::PyModule_GetNameObject(module))?,
            )
        };
        let import_module = importlib.obj().attribute(c"import_module")?;
        let Some(import_module) = import_module else {
            return Err(raise(ExceptionKind::Attribute, "importlib.import_module"));
        };
        tuple([import_module, tuple([name])?])
    })
}

fn module_class() -> R<*mut ffi::PyObject> {
    cpython::once(&MODULE_CLASS, make_module_class)
}

fn make_module_class() -> R<Owned> {
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
    // SAFETY: the spec inherits the size of the module type, its only base.
    unsafe {
        let base = Obj::new((&raw mut ffi::PyModule_Type).cast());
        let bases = tuple([base.owned()])?;
        Owned::take(ffi::PyType_FromSpecWithBases(&raw mut spec, bases.ptr()))
    }
}

/// Every public name of a library's module.
fn names(lib: &'static ModuleTypes) -> impl Iterator<Item = &'static str> {
    // Names with an underscore are classes of unnamed members and their dtypes.
    all_names(lib).filter(|name| !name.starts_with('_'))
}

/// Every name of a library's module, except `__all__` and `_FastEnum`.
fn all_names(lib: &'static ModuleTypes) -> impl Iterator<Item = &'static str> {
    let functions = function::all(lib.module).iter().map(|f| f.name);
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

/// Creates the object called `name`; `None` for an unknown name.
///
/// # Errors
///
/// Exceptions of the creation: `ImportError` for a dtype without NumPy.
fn make(lib: &'static ModuleTypes, name: &str) -> R<Option<Owned>> {
    if let Ok(i) = lib.class_index.binary_search_by_key(&name, |c| c.0) {
        let ty = registry::type_of(ClassId(lib.class_index[i].1))?;
        // SAFETY: types are immortal.
        return Ok(Some(unsafe { Obj::new(ty.cast()) }.owned()));
    }
    if let Ok(i) = lib.enums.binary_search_by_key(&name, |e| e.name) {
        let made = registry::enum_of(EnumId(lib.first_enum + i as u16))?;
        return Ok(Some(made.class.owned()));
    }
    if let Ok(i) = lib.constants.binary_search_by_key(&name, |c| c.0) {
        return cpython::from_i64(lib.constants[i].1).map(Some);
    }
    if let Some(errors) = lib.errors
        && let Ok(i) = errors.index.binary_search_by_key(&name, |e| e.0)
    {
        return exceptions::class(lib, errors.index[i].1).map(Some);
    }
    if let Ok(i) = lib.aliases.binary_search_by_key(&name, |a| a.0) {
        return alias(lib, lib.aliases[i].1);
    }
    if let Ok(i) = lib.dtypes.binary_search_by_key(&name, |d| d.0) {
        return numpy::dtype(ClassId(lib.dtypes[i].1)).map(|dtype| Some(dtype.owned()));
    }
    match name {
        "__all__" => all(lib).map(Some),
        "_FastEnum" => enums::base().map(|base| Some(base.owned())),
        _ => function::get(lib.module, name).transpose(),
    }
}

/// The target of an alias: a name of this module, or `package.module.name` in another.
fn alias(lib: &'static ModuleTypes, target: &str) -> R<Option<Owned>> {
    let Some((module, name)) = target.rsplit_once('.') else {
        return make(lib, target);
    };
    let (module, name) = (c_string(module), c_string(name));
    // SAFETY: the names are NUL-terminated, and `module` is live.
    unsafe {
        let module = Owned::take(ffi::PyImport_ImportModule(module.as_ptr()))?;
        Owned::take(ffi::PyObject_GetAttrString(module.ptr(), name.as_ptr())).map(Some)
    }
}

fn all(lib: &'static ModuleTypes) -> R<Owned> {
    let mut list: Vec<&str> = names(lib).collect();
    // `from module import *` creates every object in `__all__`, and must succeed without NumPy.
    if !lib.dtypes.is_empty() && numpy::module().is_err() {
        cpython::clear();
        list.retain(|name| !is_dtype(lib, name));
    }
    list.sort_unstable();
    cpython::list(list.into_iter().map(cpython::from_str))
}

fn is_dtype(lib: &ModuleTypes, name: &str) -> bool {
    lib.dtypes.binary_search_by_key(&name, |d| d.0).is_ok()
}

/// Stores a created object under its name.
fn store(dict: Obj<'_>, name: Obj<'_>, object: &Owned) -> R<()> {
    // SAFETY: all are live.
    match unsafe { ffi::PyDict_SetItem(dict.ptr(), name.ptr(), object.ptr()) } {
        0 => Ok(()),
        _ => Err(Raised),
    }
}

unsafe extern "C" fn module_getattr(
    module: *mut ffi::PyObject,
    name: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: `install` bound this function to its module, so the interpreter passes that module and one argument.
        let (module, name) = unsafe { (Obj::new(module), Obj::new(name)) };
        if !name.is_str() {
            return Err(raise(
                ExceptionKind::Type,
                "__getattr__(): a name is required",
            ));
        }
        let lib = library_of(module)?;
        let text = name.utf8()?;
        let Some(object) = make(lib, &text)? else {
            let message = format!("module '{}' has no attribute '{text}'", lib.module.name());
            return Err(raise(ExceptionKind::Attribute, &message));
        };
        store(dict_of(module), name, &object)?;
        Ok(object)
    })
}

unsafe extern "C" fn module_dict(module: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: the interpreter passes a module of this class.
        let module = unsafe { Obj::new(module) };
        let dict = dict_of(module);
        if create_all(library_of(module)?, dict)? {
            restore_class(module, dict);
        }
        Ok(dict.owned())
    })
}

/// Creates all objects that `dict` lacks. Returns false if NumPy is missing, so that there are no dtypes.
fn create_all(lib: &'static ModuleTypes, dict: Obj<'_>) -> R<bool> {
    let mut complete = true;
    for name in all_names(lib).chain(["__all__", "_FastEnum"]) {
        let key = cpython::from_str(name)?;
        // SAFETY: both are live.
        match unsafe { ffi::PyDict_Contains(dict.ptr(), key.ptr()) } {
            0 => {}
            1 => continue,
            _ => return Err(Raised),
        }
        match make(lib, name) {
            Ok(Some(object)) => store(dict, key.obj(), &object)?,
            Ok(None) => {
                let message = format!("{}.{name} cannot be made", lib.module.name());
                return Err(raise(ExceptionKind::Runtime, &message));
            }
            Err(Raised) => {
                // SAFETY: an exception is set; the exception class is immortal.
                let import = unsafe { ffi::PyErr_ExceptionMatches(ffi::PyExc_ImportError) } != 0;
                if !import || !is_dtype(lib, name) {
                    return Err(Raised);
                }
                // NumPy is missing: skip the dtype. Looking it up by name raises `ImportError`.
                cpython::clear();
                complete = false;
            }
        }
    }
    Ok(complete)
}

/// Restores the ordinary module class, whose attribute lookup is faster.
fn restore_class(module: Obj<'_>, dict: Obj<'_>) {
    // SAFETY: the module type is immortal; the dictionary is live.
    let restored = unsafe {
        let plain = Obj::new((&raw mut ffi::PyModule_Type).cast());
        set_class(module, plain).is_ok()
            && ffi::PyDict_DelItemString(dict.ptr(), c"__getattr__".as_ptr()) == 0
    };
    if !restored {
        // Other code has changed the module. It still works as a lazy module.
        cpython::clear();
    }
}

unsafe extern "C" fn module_dir(
    module: *mut ffi::PyObject,
    _: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: the interpreter passes a module of this class; all objects are live.
        unsafe {
            let module = Obj::new(module);
            let lib = library_of(module)?;
            let set = Owned::take(ffi::PySet_New(dict_of(module).ptr()))?;
            for name in names(lib) {
                if ffi::PySet_Add(set.ptr(), cpython::from_str(name)?.ptr()) != 0 {
                    return Err(Raised);
                }
            }
            let list = Owned::take(ffi::PySequence_List(set.ptr()))?;
            match ffi::PyList_Sort(list.ptr()) {
                0 => Ok(list),
                _ => Err(Raised),
            }
        }
    })
}
