//! `FastEnum`: native enum classes whose members are ints.
//!
//! The metaclass creates a member for each int of the class body, so it accepts Python class statements as well as the
//! generated tables. A repeated value creates an alias of the first member. The class stores its members in `__members__`
//! (by name, with aliases) and `__singletons__` (by value).

use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::ffi;

use crate::cpython;
use crate::types::enums::{Owned, owned, set_text, string};
use crate::types::errors::{
    ExceptionKind, guard_or, name_of_type, raise, to_string, type_name, utf8,
};
use crate::types::object::slot;

/// `__module__` of the enum base, for pickles and `repr`.
const MODULE: &str = "cuda.bindings._internal._fast_enum";

static META: AtomicPtr<ffi::PyObject> = AtomicPtr::new(null_mut());
static BASE: AtomicPtr<ffi::PyObject> = AtomicPtr::new(null_mut());

/// Interned attribute name, cached in `place`; borrowed. Null with an exception.
unsafe fn interned(place: &AtomicPtr<ffi::PyObject>, text: &CStr) -> *mut ffi::PyObject {
    let known = place.load(Ordering::Acquire);
    if !known.is_null() {
        return known;
    }
    // SAFETY: the caller holds the GIL; a `CStr` is NUL-terminated.
    match unsafe { owned(ffi::PyUnicode_InternFromString(text.as_ptr())) } {
        Some(made) => settle(place, made),
        None => null_mut(),
    }
}

static SINGLETONS: AtomicPtr<ffi::PyObject> = AtomicPtr::new(null_mut());
static NAME: AtomicPtr<ffi::PyObject> = AtomicPtr::new(null_mut());

/// Creates an enum: `FastEnumMetaclass(name, (base,), space)`. None with an exception.
///
/// # Safety
/// References are live; the GIL is held.
pub unsafe fn call_meta(name: &str, base: *mut ffi::PyObject, space: &Owned) -> Option<Owned> {
    // SAFETY: the caller guarantees live references and holds the GIL; PyTuple_SetItem takes ownership of each item.
    unsafe {
        let meta = metaclass()?;
        let args = owned(ffi::PyTuple_New(3))?;
        let bases = owned(ffi::PyTuple_New(1))?;
        let name = string(name)?;
        ffi::Py_INCREF(base);
        ffi::PyTuple_SetItem(bases.0, 0, base);
        ffi::Py_INCREF(space.0);
        ffi::PyTuple_SetItem(args.0, 2, space.0);
        ffi::PyTuple_SetItem(args.0, 1, bases.0);
        std::mem::forget(bases);
        ffi::PyTuple_SetItem(args.0, 0, name.0);
        std::mem::forget(name);
        owned(ffi::PyObject_Call(meta, args.0, null_mut()))
    }
}

fn settle(place: &AtomicPtr<ffi::PyObject>, made: Owned) -> *mut ffi::PyObject {
    // Transfers the reference without changing the count.
    cpython::Owned::take(made.into_ptr()).map_or(null_mut(), |made| cpython::publish(place, made))
}

/// `FastEnumMetaclass`, borrowed; None with an exception.
///
/// # Safety
/// The GIL is held.
pub unsafe fn metaclass() -> Option<*mut ffi::PyObject> {
    let known = META.load(Ordering::Acquire);
    if !known.is_null() {
        return Some(known);
    }
    let mut slots = [
        slot(ffi::Py_tp_init, meta_init as *mut c_void),
        slot(ffi::Py_tp_call, meta_call as *mut c_void),
        slot(ffi::Py_tp_repr, meta_repr as *mut c_void),
        slot(ffi::Py_tp_iter, meta_iter as *mut c_void),
        slot(ffi::Py_mp_length, meta_len as *mut c_void),
        slot(ffi::Py_sq_contains, meta_contains as *mut c_void),
        slot(ffi::Py_tp_setattro, meta_setattro as *mut c_void),
        slot(
            ffi::Py_tp_doc,
            c"Makes the ints in a class body members of the enum."
                .as_ptr()
                .cast_mut()
                .cast(),
        ),
        slot(0, null_mut()),
    ];
    let mut spec = ffi::PyType_Spec {
        name: c"cuda.bindings._internal._fast_enum.FastEnumMetaclass".as_ptr(),
        basicsize: 0,
        itemsize: 0,
        flags: (ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_BASETYPE) as u32,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the spec describes a subclass of `type` with inherited size and ends with a null slot; the caller holds the
    // GIL.
    unsafe {
        let bases = owned(ffi::PyTuple_New(1))?;
        let ty = (&raw mut ffi::PyType_Type).cast::<ffi::PyObject>();
        ffi::Py_INCREF(ty);
        ffi::PyTuple_SetItem(bases.0, 0, ty);
        let made = owned(ffi::PyType_FromSpecWithBases(&mut spec, bases.0))?;
        Some(settle(&META, made))
    }
}

struct Defs<T>(T);
// SAFETY: CPython and this module only read the tables inside.
unsafe impl<T> Sync for Defs<T> {}

static NEW: Defs<ffi::PyMethodDef> = Defs(ffi::PyMethodDef {
    ml_name: c"__new__".as_ptr(),
    ml_meth: ffi::PyMethodDefPointer {
        PyCFunctionWithKeywords: enum_new,
    },
    ml_flags: ffi::METH_VARARGS | ffi::METH_KEYWORDS,
    ml_doc: c"__new__(cls, value)\n--\n\nThe member of cls with this value.".as_ptr(),
});

static METHODS: Defs<[ffi::PyMethodDef; 4]> = Defs([
    ffi::PyMethodDef {
        ml_name: c"__repr__".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunction: enum_repr,
        },
        ml_flags: ffi::METH_NOARGS,
        ml_doc: c"__repr__($self, /)\n--\n\n<CUresult.CUDA_SUCCESS: 0>".as_ptr(),
    },
    ffi::PyMethodDef {
        ml_name: c"__reduce__".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunction: enum_reduce,
        },
        ml_flags: ffi::METH_NOARGS,
        ml_doc: c"__reduce__($self, /)\n--\n\nPickles by value: the member itself comes back.".as_ptr(),
    },
    ffi::PyMethodDef {
        ml_name: c"__setattr__".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunction: enum_setattr,
        },
        ml_flags: ffi::METH_VARARGS,
        ml_doc: c"__setattr__($self, name, value, /)\n--\n\nRaises AttributeError: members are constants."
            .as_ptr(),
    },
    ffi::PyMethodDef {
        ml_name: c"__delattr__".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunction: enum_setattr,
        },
        ml_flags: ffi::METH_VARARGS,
        ml_doc: c"__delattr__($self, name, /)\n--\n\nRaises AttributeError: members are constants."
            .as_ptr(),
    },
]);

static PROPERTIES: Defs<[ffi::PyGetSetDef; 2]> = Defs([
    ffi::PyGetSetDef {
        name: c"name".as_ptr(),
        get: Some(enum_name),
        set: None,
        doc: c"Name of the member.".as_ptr(),
        closure: null_mut(),
    },
    ffi::PyGetSetDef {
        name: c"value".as_ptr(),
        get: Some(enum_value),
        set: None,
        doc: c"Value of the member, a plain int.".as_ptr(),
        closure: null_mut(),
    },
]);

/// `FastEnum`, borrowed; None with an exception.
///
/// # Safety
/// The GIL is held.
pub unsafe fn base() -> Option<*mut ffi::PyObject> {
    let known = BASE.load(Ordering::Acquire);
    if !known.is_null() {
        return Some(known);
    }
    // SAFETY: the caller holds the GIL; guards own the references, and the definitions are static.
    unsafe {
        let space = owned(ffi::PyDict_New())?;
        set_text(&space, c"__module__", MODULE)?;
        set_text(
            &space,
            c"__doc__",
            "Base of the enums: members are ints, iteration gives each value once, calling finds a member by value.",
        )?;
        let new = owned(ffi::PyCFunction_NewEx(
            (&raw const NEW.0).cast_mut(),
            null_mut(),
            null_mut(),
        ))?;
        if ffi::PyDict_SetItemString(space.0, c"__new__".as_ptr(), new.0) != 0 {
            return None;
        }
        let int = (&raw mut ffi::PyLong_Type).cast::<ffi::PyObject>();
        let class = call_meta("FastEnum", int, &space)?;
        for def in &METHODS.0 {
            let made = owned(ffi::PyDescr_NewMethod(
                class.0.cast(),
                std::ptr::from_ref(def).cast_mut(),
            ))?;
            set_on_type(class.0, def.ml_name, made.0)?;
        }
        for def in &PROPERTIES.0 {
            let made = owned(ffi::PyDescr_NewGetSet(
                class.0.cast(),
                std::ptr::from_ref(def).cast_mut(),
            ))?;
            set_on_type(class.0, def.name, made.0)?;
        }
        Some(settle(&BASE, class))
    }
}

unsafe fn set_on_type(
    class: *mut ffi::PyObject,
    name: *const std::ffi::c_char,
    value: *mut ffi::PyObject,
) -> Option<()> {
    // SAFETY: callers pass live references and a static, NUL-terminated name, and hold the GIL.
    unsafe {
        let key = owned(ffi::PyUnicode_InternFromString(name))?;
        type_setattr(class, key.0, value)
    }
}

/// `type.__setattr__`
unsafe fn type_setattr(
    class: *mut ffi::PyObject,
    name: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
) -> Option<()> {
    // SAFETY: `type` fills this slot with a `setattrofunc`; callers pass live references and hold the GIL.
    unsafe {
        let slot = ffi::PyType_GetSlot(&raw mut ffi::PyType_Type, ffi::Py_tp_setattro);
        let set: ffi::setattrofunc = std::mem::transmute(slot);
        (set(class, name, value) == 0).then_some(())
    }
}

// ---- the metaclass

unsafe fn singletons(class: *mut ffi::PyObject) -> Option<Owned> {
    // SAFETY: callers pass a live class and hold the GIL.
    unsafe {
        let key = interned(&SINGLETONS, c"__singletons__");
        if key.is_null() {
            return None;
        }
        let dict = owned(ffi::PyObject_GetAttr(class, key))?;
        if ffi::PyDict_Check(dict.0) == 0 {
            raise(ExceptionKind::Type, "__singletons__ must be a dict");
            return None;
        }
        Some(dict)
    }
}

unsafe extern "C" fn meta_init(
    class: *mut ffi::PyObject,
    args: *mut ffi::PyObject,
    _kwargs: *mut ffi::PyObject,
) -> c_int {
    guard_or(-1, || {
        // SAFETY: the interpreter calls this slot with a new class and the arguments of `type`.
        unsafe {
            if ffi::PyTuple_Size(args) != 3 {
                raise(
                    ExceptionKind::Type,
                    "FastEnumMetaclass takes a name, bases and a namespace",
                );
                return -1;
            }
            match collect(class, ffi::PyTuple_GetItem(args, 2)) {
                Some(()) => 0,
                None => -1,
            }
        }
    })
}

unsafe fn collect(class: *mut ffi::PyObject, space: *mut ffi::PyObject) -> Option<()> {
    // SAFETY: callers pass live objects and hold the GIL; the items are borrowed from the list while it lives.
    unsafe {
        let members = owned(ffi::PyDict_New())?;
        let singles = owned(ffi::PyDict_New())?;
        let items = owned(ffi::PyMapping_Items(space))?;
        for i in 0..ffi::PyList_Size(items.0) {
            let pair = ffi::PyList_GetItem(items.0, i);
            let name = ffi::PyTuple_GetItem(pair, 0);
            let mut value = ffi::PyTuple_GetItem(pair, 1);
            let text = utf8(name)?;
            if text.starts_with("__") && text.ends_with("__") {
                continue;
            }
            let mut doc = null_mut();
            if ffi::PyTuple_Check(value) != 0
                && ffi::PyTuple_Size(value) > 0
                && ffi::PyLong_Check(ffi::PyTuple_GetItem(value, 0)) != 0
            {
                if ffi::PyTuple_Size(value) != 2 {
                    raise(
                        ExceptionKind::Value,
                        &format!("{text}: a member is a value or a (value, doc) pair"),
                    );
                    return None;
                }
                doc = ffi::PyTuple_GetItem(value, 1);
                value = ffi::PyTuple_GetItem(value, 0);
            }
            if ffi::PyLong_Check(value) == 0 {
                continue;
            }
            let known = ffi::PyDict_GetItemWithError(singles.0, value);
            let member = if !known.is_null() {
                ffi::Py_INCREF(known);
                Owned(known)
            } else if !ffi::PyErr_Occurred().is_null() {
                return None;
            } else {
                let fresh = new_member(class, value, name, doc)?;
                let key = owned(ffi::PyNumber_Long(value))?;
                if ffi::PyDict_SetItem(singles.0, key.0, fresh.0) != 0 {
                    return None;
                }
                fresh
            };
            type_setattr(class, name, member.0)?;
            if ffi::PyDict_SetItem(members.0, name, member.0) != 0 {
                return None;
            }
        }
        let view = owned(ffi::PyDictProxy_New(members.0))?;
        set_on_type(class, c"__singletons__".as_ptr(), singles.0)?;
        set_on_type(class, c"__members__".as_ptr(), view.0)
    }
}

unsafe fn new_member(
    class: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
    name: *mut ffi::PyObject,
    doc: *mut ffi::PyObject,
) -> Option<Owned> {
    // SAFETY: `int` fills tp_new with a `newfunc`, and the class derives from `int`; callers hold the GIL.
    unsafe {
        let args = owned(ffi::PyTuple_New(1))?;
        ffi::Py_INCREF(value);
        ffi::PyTuple_SetItem(args.0, 0, value);
        let slot = ffi::PyType_GetSlot(&raw mut ffi::PyLong_Type, ffi::Py_tp_new);
        let new: ffi::newfunc = std::mem::transmute(slot);
        let member = owned(new(class.cast(), args.0, null_mut()))?;
        let key = owned(ffi::PyUnicode_InternFromString(c"_name".as_ptr()))?;
        if ffi::PyObject_GenericSetAttr(member.0, key.0, name) != 0 {
            return None;
        }
        if !doc.is_null() {
            let key = owned(ffi::PyUnicode_InternFromString(c"__doc__".as_ptr()))?;
            if ffi::PyObject_GenericSetAttr(member.0, key.0, doc) != 0 {
                return None;
            }
        }
        Some(member)
    }
}

unsafe fn find(class: *mut ffi::PyObject, value: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: callers pass live references and hold the GIL.
    unsafe {
        let Some(dict) = singletons(class) else {
            return null_mut();
        };
        let member = ffi::PyDict_GetItemWithError(dict.0, value);
        if !member.is_null() {
            ffi::Py_INCREF(member);
            return member;
        }
        if ffi::PyErr_Occurred().is_null() {
            raise(
                ExceptionKind::Value,
                &format!(
                    "{} is not a valid {}",
                    to_string(value),
                    name_of_type(class.cast())
                ),
            );
        }
        null_mut()
    }
}

/// The only argument `value`, after `skip` positional arguments; borrowed. Null with a `TypeError`.
unsafe fn the_value(
    class: *mut ffi::PyObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
    skip: isize,
) -> *mut ffi::PyObject {
    // SAFETY: callers pass the interpreter's arguments: `args` is a tuple, `kwargs` null or a dict.
    unsafe {
        let given = ffi::PyTuple_Size(args) - skip;
        let named = if kwargs.is_null() {
            0
        } else {
            ffi::PyDict_Size(kwargs)
        };
        if given == 1 && named == 0 {
            return ffi::PyTuple_GetItem(args, skip);
        }
        if given == 0 && named == 1 {
            let value = ffi::PyDict_GetItemString(kwargs, c"value".as_ptr());
            if !value.is_null() {
                return value;
            }
        }
        raise(
            ExceptionKind::Type,
            &format!(
                "{}() takes exactly one argument, value",
                name_of_type(class.cast())
            ),
        );
        null_mut()
    }
}

unsafe extern "C" fn meta_call(
    class: *mut ffi::PyObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard_or(null_mut(), || {
        // SAFETY: the interpreter calls this slot with an enum class.
        unsafe {
            let value = the_value(class, args, kwargs, 0);
            if value.is_null() {
                return value;
            }
            find(class, value)
        }
    })
}

unsafe extern "C" fn meta_repr(class: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard_or(null_mut(), || {
        // SAFETY: the interpreter calls this slot with an enum class.
        unsafe {
            let text = format!("<enum '{}'>", name_of_type(class.cast()));
            ffi::PyUnicode_FromStringAndSize(text.as_ptr().cast(), text.len() as isize)
        }
    })
}

unsafe extern "C" fn meta_iter(class: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: the interpreter calls this slot with an enum class.
    unsafe {
        let Some(dict) = singletons(class) else {
            return null_mut();
        };
        match owned(ffi::PyDict_Values(dict.0)) {
            Some(values) => ffi::PyObject_GetIter(values.0),
            None => null_mut(),
        }
    }
}

unsafe extern "C" fn meta_len(class: *mut ffi::PyObject) -> isize {
    // SAFETY: the interpreter calls this slot with an enum class.
    unsafe {
        match singletons(class) {
            Some(dict) => ffi::PyDict_Size(dict.0),
            None => -1,
        }
    }
}

unsafe extern "C" fn meta_contains(class: *mut ffi::PyObject, item: *mut ffi::PyObject) -> c_int {
    // SAFETY: the interpreter calls this slot with an enum class.
    unsafe {
        match singletons(class) {
            Some(dict) => ffi::PyDict_Contains(dict.0, item),
            None => -1,
        }
    }
}

unsafe extern "C" fn meta_setattro(
    class: *mut ffi::PyObject,
    name: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
) -> c_int {
    guard_or(-1, || {
        // SAFETY: the interpreter calls this slot with an enum class.
        unsafe {
            let members = ffi::PyObject_GetAttrString(class, c"__members__".as_ptr());
            if members.is_null() {
                ffi::PyErr_Clear();
            } else {
                let members = Owned(members);
                let is_member = ffi::PySequence_Contains(members.0, name);
                if is_member < 0 {
                    return -1;
                }
                if is_member > 0 {
                    raise(
                        ExceptionKind::Attribute,
                        &format!(
                            "{}.{} is a member of the enum and cannot be changed",
                            name_of_type(class.cast()),
                            to_string(name)
                        ),
                    );
                    return -1;
                }
            }
            match type_setattr(class, name, value) {
                Some(()) => 0,
                None => -1,
            }
        }
    })
}

// ---- members

unsafe extern "C" fn enum_new(
    _: *mut ffi::PyObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard_or(null_mut(), || {
        // SAFETY: the interpreter passes a tuple, and a dict or null.
        unsafe {
            let base = BASE.load(Ordering::Acquire);
            let class = if ffi::PyTuple_Size(args) > 0 {
                ffi::PyTuple_GetItem(args, 0)
            } else {
                null_mut()
            };
            if class.is_null()
                || base.is_null()
                || ffi::PyType_Check(class) == 0
                || ffi::PyType_IsSubtype(class.cast(), base.cast()) == 0
            {
                raise(
                    ExceptionKind::Type,
                    "FastEnum.__new__(cls, value): cls must be an enum",
                );
                return null_mut();
            }
            let value = the_value(class, args, kwargs, 1);
            if value.is_null() {
                return value;
            }
            find(class, value)
        }
    })
}

/// The member's name; null with `AttributeError` for instances created with `int.__new__`.
unsafe extern "C" fn enum_name(obj: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: the descriptor checked that `obj` is an instance.
    unsafe {
        let key = interned(&NAME, c"_name");
        if key.is_null() {
            return key;
        }
        ffi::PyObject_GenericGetAttr(obj, key)
    }
}

unsafe extern "C" fn enum_value(obj: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: callers pass an instance of an `int` subclass. The slot of `int` returns a plain `int` regardless of
    // overrides.
    unsafe {
        let slot = ffi::PyType_GetSlot(&raw mut ffi::PyLong_Type, ffi::Py_nb_int);
        let convert: ffi::unaryfunc = std::mem::transmute(slot);
        convert(obj)
    }
}

unsafe extern "C" fn enum_repr(
    obj: *mut ffi::PyObject,
    _: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard_or(null_mut(), || {
        // SAFETY: the descriptor checked that `obj` is an instance.
        unsafe {
            let Some(value) = owned(enum_value(obj, null_mut())) else {
                return null_mut();
            };
            let number = to_string(value.0);
            let class = type_name(obj);
            let name = enum_name(obj, null_mut());
            let text = if name.is_null() {
                ffi::PyErr_Clear();
                format!("<{class}: {number}>")
            } else {
                let name = Owned(name);
                format!("<{class}.{}: {number}>", to_string(name.0))
            };
            ffi::PyUnicode_FromStringAndSize(text.as_ptr().cast(), text.len() as isize)
        }
    })
}

unsafe extern "C" fn enum_reduce(
    obj: *mut ffi::PyObject,
    _: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the descriptor checked that `obj` is an instance; PyTuple_SetItem takes ownership of each item.
    unsafe {
        let (Some(args), Some(out), Some(value)) = (
            owned(ffi::PyTuple_New(1)),
            owned(ffi::PyTuple_New(2)),
            owned(enum_value(obj, null_mut())),
        ) else {
            return null_mut();
        };
        ffi::PyTuple_SetItem(args.0, 0, value.0);
        std::mem::forget(value);
        let class = ffi::Py_TYPE(obj).cast::<ffi::PyObject>();
        ffi::Py_INCREF(class);
        ffi::PyTuple_SetItem(out.0, 0, class);
        ffi::PyTuple_SetItem(out.0, 1, args.0);
        std::mem::forget(args);
        let result = out.0;
        std::mem::forget(out);
        result
    }
}

unsafe extern "C" fn enum_setattr(
    obj: *mut ffi::PyObject,
    args: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard_or(null_mut(), || {
        // SAFETY: the descriptor checked that `obj` is an instance; the interpreter passes a tuple.
        unsafe {
            let name = if ffi::PyTuple_Size(args) > 0 {
                to_string(ffi::PyTuple_GetItem(args, 0))
            } else {
                String::new()
            };
            raise(
                ExceptionKind::Attribute,
                &format!(
                    "members of {} are constants: cannot change {name}",
                    type_name(obj)
                ),
            );
            null_mut()
        }
    })
}
