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
use crate::cpython::errors::{ExceptionKind, guard, guard_or, guard_status, raise};
use crate::cpython::{Obj, Owned, R, Raised, short_name, tuple};
use crate::types::object::slot;

/// `__module__` of the enum base, for pickles and `repr`.
const MODULE: &str = "cuda.bindings._internal._fast_enum";

static META: AtomicPtr<ffi::PyObject> = AtomicPtr::new(null_mut());
static BASE: AtomicPtr<ffi::PyObject> = AtomicPtr::new(null_mut());
static SINGLETONS: AtomicPtr<ffi::PyObject> = AtomicPtr::new(null_mut());
static NAME: AtomicPtr<ffi::PyObject> = AtomicPtr::new(null_mut());

/// The object published in `place`, created by `make` on first use.
fn cached(
    place: &'static AtomicPtr<ffi::PyObject>,
    make: impl FnOnce() -> R<Owned>,
) -> R<Obj<'static>> {
    // SAFETY: `place` never releases its reference.
    cpython::once(place, make).map(|known| unsafe { Obj::new(known) })
}

/// An interned attribute name.
fn interned(text: &CStr) -> R<Owned> {
    // SAFETY: a `CStr` is NUL-terminated.
    Owned::take(unsafe { ffi::PyUnicode_InternFromString(text.as_ptr()) })
}

/// Creates an enum: `FastEnumMetaclass(name, (base,), space)`.
///
/// # Errors
/// Exceptions of the metaclass.
pub fn call_meta(name: &str, base: Obj<'_>, space: Owned) -> R<Owned> {
    let args = tuple([cpython::from_str(name)?, tuple([base.owned()])?, space])?;
    // SAFETY: both are live.
    Owned::take(unsafe { ffi::PyObject_Call(metaclass()?.ptr(), args.ptr(), null_mut()) })
}

/// `FastEnumMetaclass`.
///
/// # Errors
/// Exceptions of CPython.
pub fn metaclass() -> R<Obj<'static>> {
    cached(&META, make_metaclass)
}

fn make_metaclass() -> R<Owned> {
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
    // SAFETY: the spec describes a subclass of `type` with inherited size and ends with a null slot.
    unsafe {
        let ty = Obj::new((&raw mut ffi::PyType_Type).cast());
        let bases = tuple([ty.owned()])?;
        Owned::take(ffi::PyType_FromSpecWithBases(&raw mut spec, bases.ptr()))
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

/// `FastEnum`.
///
/// # Errors
/// Exceptions of CPython.
pub fn base() -> R<Obj<'static>> {
    cached(&BASE, make_base)
}

fn make_base() -> R<Owned> {
    let space = cpython::dict()?;
    let doc = "Base of the enums: members are ints, iteration gives each value once, calling finds a member by value.";
    for (key, text) in [(c"__module__", MODULE), (c"__doc__", doc)] {
        cpython::set_entry(space.obj(), key, cpython::from_str(text)?.obj())?;
    }
    // SAFETY: the definitions are static; `class` is a live type.
    unsafe {
        let new = (&raw const NEW.0).cast_mut();
        let new = Owned::take(ffi::PyCFunction_NewEx(new, null_mut(), null_mut()))?;
        cpython::set_entry(space.obj(), c"__new__", new.obj())?;
        let int = Obj::new((&raw mut ffi::PyLong_Type).cast());
        let class = call_meta("FastEnum", int, space)?;
        for def in &METHODS.0 {
            let def = std::ptr::from_ref(def).cast_mut();
            let made = Owned::take(ffi::PyDescr_NewMethod(class.ptr().cast(), def))?;
            set_on_type(class.obj(), CStr::from_ptr((*def).ml_name), &made)?;
        }
        for def in &PROPERTIES.0 {
            let def = std::ptr::from_ref(def).cast_mut();
            let made = Owned::take(ffi::PyDescr_NewGetSet(class.ptr().cast(), def))?;
            set_on_type(class.obj(), CStr::from_ptr((*def).name), &made)?;
        }
        Ok(class)
    }
}

fn set_on_type(class: Obj<'_>, name: &CStr, value: &Owned) -> R<()> {
    type_setattr(class, interned(name)?.obj(), value.ptr())
}

/// `type.__setattr__`; a null value deletes.
fn type_setattr(class: Obj<'_>, name: Obj<'_>, value: *mut ffi::PyObject) -> R<()> {
    // SAFETY: `type` fills this slot with a `setattrofunc`; callers pass a live type, a live name, and a live value or
    // null.
    unsafe {
        let slot = ffi::PyType_GetSlot(&raw mut ffi::PyType_Type, ffi::Py_tp_setattro);
        let set: ffi::setattrofunc = std::mem::transmute(slot);
        match set(class.ptr(), name.ptr(), value) {
            0 => Ok(()),
            _ => Err(Raised),
        }
    }
}

// ---- the metaclass

/// The members of an enum class by value.
fn singletons(class: Obj<'_>) -> R<Owned> {
    let key = cached(&SINGLETONS, || interned(c"__singletons__"))?;
    // SAFETY: both are live.
    unsafe {
        let dict = Owned::take(ffi::PyObject_GetAttr(class.ptr(), key.ptr()))?;
        if ffi::PyDict_Check(dict.ptr()) == 0 {
            return Err(raise(ExceptionKind::Type, "__singletons__ must be a dict"));
        }
        Ok(dict)
    }
}

/// An entry of a dict.
fn entry(dict: &Owned, key: Obj<'_>) -> R<Option<Owned>> {
    // SAFETY: callers pass a dict; both are live.
    let found = unsafe { ffi::PyDict_GetItemWithError(dict.ptr(), key.ptr()) };
    if !found.is_null() {
        // SAFETY: the dict owns the entry.
        return Ok(Some(unsafe { Obj::new(found) }.owned()));
    }
    if cpython::raised() {
        return Err(Raised);
    }
    Ok(None)
}

unsafe extern "C" fn meta_init(
    class: *mut ffi::PyObject,
    args: *mut ffi::PyObject,
    _kwargs: *mut ffi::PyObject,
) -> c_int {
    guard_status(|| {
        // SAFETY: the interpreter calls this slot with a new class and the arguments of `type`.
        unsafe {
            if ffi::PyTuple_Size(args) != 3 {
                return Err(raise(
                    ExceptionKind::Type,
                    "FastEnumMetaclass takes a name, bases and a namespace",
                ));
            }
            collect(Obj::new(class), Obj::new(ffi::PyTuple_GetItem(args, 2)))
        }
    })
}

fn collect(class: Obj<'_>, space: Obj<'_>) -> R<()> {
    let members = cpython::dict()?;
    let singles = cpython::dict()?;
    // SAFETY: an `Obj` is live.
    let items = Owned::take(unsafe { ffi::PyMapping_Items(space.ptr()) })?;
    let items = items.obj().snapshot()?;
    for i in 0..items.len() {
        let pair = items.get(i).snapshot()?;
        let (name, value) = (pair.get(0), pair.get(1));
        let text = name.utf8()?;
        if text.starts_with("__") && text.ends_with("__") {
            continue;
        }
        let parts = match value.is_tuple() {
            true => Some(value.snapshot()?),
            false => None,
        };
        let (value, doc) = match parts.as_ref().filter(|p| p.len() > 0 && p.get(0).is_int()) {
            Some(parts) if parts.len() == 2 => (parts.get(0), Some(parts.get(1))),
            Some(_) => {
                let message = format!("{text}: a member is a value or a (value, doc) pair");
                return Err(raise(ExceptionKind::Value, &message));
            }
            None => (value, None),
        };
        if !value.is_int() {
            continue;
        }
        let member = match entry(&singles, value)? {
            Some(known) => known,
            None => {
                let member = new_member(class, value, name, doc)?;
                // SAFETY: all are live.
                unsafe {
                    let key = Owned::take(ffi::PyNumber_Long(value.ptr()))?;
                    if ffi::PyDict_SetItem(singles.ptr(), key.ptr(), member.ptr()) != 0 {
                        return Err(Raised);
                    }
                }
                member
            }
        };
        type_setattr(class, name, member.ptr())?;
        // SAFETY: all are live.
        if unsafe { ffi::PyDict_SetItem(members.ptr(), name.ptr(), member.ptr()) } != 0 {
            return Err(Raised);
        }
    }
    // SAFETY: the dict is live.
    let view = Owned::take(unsafe { ffi::PyDictProxy_New(members.ptr()) })?;
    set_on_type(class, c"__singletons__", &singles)?;
    set_on_type(class, c"__members__", &view)
}

fn new_member(class: Obj<'_>, value: Obj<'_>, name: Obj<'_>, doc: Option<Obj<'_>>) -> R<Owned> {
    let args = tuple([value.owned()])?;
    // SAFETY: `int` fills tp_new with a `newfunc`, and the class derives from `int`; all objects are live.
    unsafe {
        let slot = ffi::PyType_GetSlot(&raw mut ffi::PyLong_Type, ffi::Py_tp_new);
        let new: ffi::newfunc = std::mem::transmute(slot);
        let member = Owned::take(new(class.ptr().cast(), args.ptr(), null_mut()))?;
        for (key, value) in [(c"_name", Some(name)), (c"__doc__", doc)] {
            let Some(value) = value else { continue };
            let key = interned(key)?;
            if ffi::PyObject_GenericSetAttr(member.ptr(), key.ptr(), value.ptr()) != 0 {
                return Err(Raised);
            }
        }
        Ok(member)
    }
}

/// The name of an enum class.
fn name_of(class: Obj<'_>) -> String {
    // SAFETY: callers pass a live type.
    unsafe { short_name(class.ptr().cast()) }
}

fn find(class: Obj<'_>, value: Obj<'_>) -> R<Owned> {
    entry(&singletons(class)?, value)?.ok_or_else(|| {
        let message = format!("{} is not a valid {}", value.display(), name_of(class));
        raise(ExceptionKind::Value, &message)
    })
}

/// The only argument `value`, after `skip` positional arguments.
///
/// # Safety
/// `args` is a tuple with at least `skip` items, `kwargs` null or a dict; they live for `'a`.
unsafe fn the_value<'a>(
    class: Obj<'_>,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
    skip: isize,
) -> R<Obj<'a>> {
    // SAFETY: as promised by the caller.
    unsafe {
        let given = ffi::PyTuple_Size(args) - skip;
        let named = if kwargs.is_null() {
            0
        } else {
            ffi::PyDict_Size(kwargs)
        };
        if given == 1 && named == 0 {
            return Ok(Obj::new(ffi::PyTuple_GetItem(args, skip)));
        }
        if given == 0 && named == 1 {
            let value = ffi::PyDict_GetItemString(kwargs, c"value".as_ptr());
            if !value.is_null() {
                return Ok(Obj::new(value));
            }
        }
    }
    let message = format!("{}() takes exactly one argument, value", name_of(class));
    Err(raise(ExceptionKind::Type, &message))
}

unsafe extern "C" fn meta_call(
    class: *mut ffi::PyObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: the interpreter calls this slot with an enum class, a tuple, and null or a dict.
        unsafe {
            let class = Obj::new(class);
            find(class, the_value(class, args, kwargs, 0)?)
        }
    })
}

unsafe extern "C" fn meta_repr(class: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: the interpreter calls this slot with an enum class.
        let name = name_of(unsafe { Obj::new(class) });
        cpython::from_str(&format!("<enum '{name}'>"))
    })
}

unsafe extern "C" fn meta_iter(class: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: the interpreter calls this slot with an enum class.
        unsafe {
            let dict = singletons(Obj::new(class))?;
            let values = Owned::take(ffi::PyDict_Values(dict.ptr()))?;
            Owned::take(ffi::PyObject_GetIter(values.ptr()))
        }
    })
}

unsafe extern "C" fn meta_len(class: *mut ffi::PyObject) -> isize {
    guard_or(-1, || {
        // SAFETY: the interpreter calls this slot with an enum class.
        unsafe { singletons(Obj::new(class)).map_or(-1, |dict| ffi::PyDict_Size(dict.ptr())) }
    })
}

unsafe extern "C" fn meta_contains(class: *mut ffi::PyObject, item: *mut ffi::PyObject) -> c_int {
    guard_or(-1, || {
        // SAFETY: the interpreter calls this slot with an enum class and a live object.
        unsafe {
            singletons(Obj::new(class)).map_or(-1, |dict| ffi::PyDict_Contains(dict.ptr(), item))
        }
    })
}

unsafe extern "C" fn meta_setattro(
    class: *mut ffi::PyObject,
    name: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
) -> c_int {
    guard_status(|| {
        // SAFETY: the interpreter calls this slot with an enum class, a live name, and a live value or null.
        unsafe {
            let (class, name) = (Obj::new(class), Obj::new(name));
            let members = ffi::PyObject_GetAttrString(class.ptr(), c"__members__".as_ptr());
            match Owned::take(members) {
                Err(Raised) => cpython::clear(),
                Ok(members) => match ffi::PySequence_Contains(members.ptr(), name.ptr()) {
                    0 => {}
                    1 => {
                        let (class, name) = (name_of(class), name.display());
                        return Err(raise(
                            ExceptionKind::Attribute,
                            &format!(
                                "{class}.{name} is a member of the enum and cannot be changed"
                            ),
                        ));
                    }
                    _ => return Err(Raised),
                },
            }
            type_setattr(class, name, value)
        }
    })
}

// ---- members

unsafe extern "C" fn enum_new(
    _: *mut ffi::PyObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: the interpreter passes a tuple, and a dict or null.
        unsafe {
            let base = BASE.load(Ordering::Acquire);
            if ffi::PyTuple_Size(args) > 0 && !base.is_null() {
                let class = Obj::new(ffi::PyTuple_GetItem(args, 0));
                if ffi::PyType_Check(class.ptr()) != 0
                    && ffi::PyType_IsSubtype(class.ptr().cast(), base.cast()) != 0
                {
                    return find(class, the_value(class, args, kwargs, 1)?);
                }
            }
        }
        Err(raise(
            ExceptionKind::Type,
            "FastEnum.__new__(cls, value): cls must be an enum",
        ))
    })
}

/// The member's name.
///
/// # Errors
/// `AttributeError` for instances created with `int.__new__`.
fn name(member: Obj<'_>) -> R<Owned> {
    let key = cached(&NAME, || interned(c"_name"))?;
    // SAFETY: both are live.
    Owned::take(unsafe { ffi::PyObject_GenericGetAttr(member.ptr(), key.ptr()) })
}

/// The member's value, a plain `int` regardless of overrides.
///
/// # Safety
/// `member` is an instance of a subclass of `int`.
unsafe fn value(member: Obj<'_>) -> R<Owned> {
    // SAFETY: `int` fills this slot with a `unaryfunc`, which takes an instance.
    unsafe {
        let slot = ffi::PyType_GetSlot(&raw mut ffi::PyLong_Type, ffi::Py_nb_int);
        let convert: ffi::unaryfunc = std::mem::transmute(slot);
        Owned::take(convert(member.ptr()))
    }
}

unsafe extern "C" fn enum_name(obj: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: the descriptor checked that `obj` is an instance.
    guard(|| name(unsafe { Obj::new(obj) }))
}

unsafe extern "C" fn enum_value(obj: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: the descriptor checked that `obj` is an instance.
    guard(|| unsafe { value(Obj::new(obj)) })
}

unsafe extern "C" fn enum_repr(
    obj: *mut ffi::PyObject,
    _: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: the descriptor checked that `obj` is an instance.
        let (obj, number) = unsafe {
            let obj = Obj::new(obj);
            (obj, value(obj)?.obj().display())
        };
        let class = obj.type_short_name();
        cpython::from_str(&match name(obj) {
            Ok(name) => format!("<{class}.{}: {number}>", name.obj().display()),
            Err(Raised) => {
                cpython::clear();
                format!("<{class}: {number}>")
            }
        })
    })
}

unsafe extern "C" fn enum_reduce(
    obj: *mut ffi::PyObject,
    _: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: the descriptor checked that `obj` is an instance.
        unsafe {
            let obj = Obj::new(obj);
            let class = Obj::new(obj.ty().cast()).owned();
            tuple([class, tuple([value(obj)?])?])
        }
    })
}

unsafe extern "C" fn enum_setattr(
    obj: *mut ffi::PyObject,
    args: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: the descriptor checked that `obj` is an instance; the interpreter passes a tuple.
        let (class, name) = unsafe {
            let name = if ffi::PyTuple_Size(args) > 0 {
                Obj::new(ffi::PyTuple_GetItem(args, 0)).display()
            } else {
                String::new()
            };
            (Obj::new(obj).type_short_name(), name)
        };
        Err(raise(
            ExceptionKind::Attribute,
            &format!("members of {class} are constants: cannot change {name}"),
        ))
    })
}
