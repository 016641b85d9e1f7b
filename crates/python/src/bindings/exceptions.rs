//! Exceptions of the modules whose functions raise: classes created from the tables on first use, and status messages.
//!
//! Like NVIDIA's, the classes take a status: `nvvmError(3)` has `args == ("ERROR_IR_VERSION_MISMATCH (3)",)` and
//! `status == 3`. Cupyrite adds `log`, the text that the library wrote about the failure.

use std::ffi::{CStr, CString, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::ffi;

use crate::bindings::custom::cufile;
use crate::bindings::descriptor::Function;
use crate::bindings::errors;
use crate::bindings::errors::ExceptionKind;
use crate::bindings::last_error;
use crate::bindings::raising;
use crate::bindings::raising::explanation;
use crate::cpython;
use crate::cpython::{Obj, Owned, R, Raised};
use crate::types::table;
use crate::types::table::{EnumId, ErrorText, Errors, MODULES, Module, ModuleTypes};

type Classes = Box<[AtomicPtr<ffi::PyObject>]>;

static CLASSES: [OnceLock<Classes>; Module::COUNT] = [const { OnceLock::new() }; Module::COUNT];

/// The type table of a module.
fn types_of(module: Module) -> Option<&'static ModuleTypes> {
    MODULES.iter().copied().find(|types| types.module == module)
}

fn classes(lib: &ModuleTypes, errors: &Errors) -> &'static Classes {
    CLASSES[lib.module as usize].get_or_init(|| {
        errors
            .exceptions
            .iter()
            .map(|_| AtomicPtr::new(std::ptr::null_mut()))
            .collect()
    })
}

/// The exception class with this index in the library's table, created and cached on first use.
///
/// # Errors
///
/// `MemoryError`.
pub fn class(lib: &'static ModuleTypes, index: u16) -> R<Owned> {
    let Some(errors) = lib.errors else {
        let message = "a library without exceptions";
        return Err(errors::raise(ExceptionKind::System, message));
    };
    // SAFETY: the cache never releases its reference.
    made(lib, errors, index).map(|class| unsafe { Obj::new(class) }.owned())
}

fn made(lib: &'static ModuleTypes, errors: &'static Errors, index: u16) -> R<*mut ffi::PyObject> {
    cpython::once(&classes(lib, errors)[index as usize], || {
        make(lib, errors, index)
    })
}

fn make(lib: &'static ModuleTypes, errors: &'static Errors, index: u16) -> R<Owned> {
    let exception = &errors.exceptions[index as usize];
    let cufile = errors.text == ErrorText::CuFile;
    let name = format!("{}.{}", lib.module.name(), exception.name);
    let (params, of) = if cufile {
        (
            "status, cu_err=None",
            "a status of the library, and the driver's if it has one",
        )
    } else {
        ("status", "a status of the library")
    };
    let doc = format!(
        "{}({params})\n--\n\nAn error of {}: {of}.\n\nThe attribute `status` keeps it{}.",
        exception.name,
        lib.module.name(),
        if cufile {
            ", `cuda_error` the driver's"
        } else {
            ""
        }
    );
    // Some interpreter versions keep pointers into the name, so it is leaked.
    let name = Box::leak(CString::new(name).unwrap_or_default().into_boxed_c_str());
    let doc = CString::new(doc).unwrap_or_default();
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
        slot(ffi::Py_tp_init, init as *mut c_void),
        slot(ffi::Py_tp_doc, doc.as_ptr().cast_mut().cast()),
        slot(ffi::Py_tp_methods, methods.as_mut_ptr().cast()),
        slot(0, std::ptr::null_mut()),
    ];
    let mut spec = ffi::PyType_Spec {
        name: name.as_ptr(),
        // Inherited.
        basicsize: 0,
        itemsize: 0,
        flags: u32::try_from(ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_BASETYPE).unwrap_or(0),
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the cache keeps the base class alive. The spec and its tables are well-formed; the parts that the type
    // refers to are leaked.
    unsafe {
        let base = match exception.base {
            Some(base) => made(lib, errors, base)?,
            None => ffi::PyExc_Exception,
        };
        let bases = Owned::take(ffi::PyTuple_Pack(1, base))?;
        let made = Owned::take(ffi::PyType_FromSpecWithBases(&raw mut spec, bases.ptr()))?;
        if exception.base.is_none() {
            // A class attribute, so that every exception has `log`.
            set(made.obj(), c"log", &cpython::from_str("")?)?;
            if errors.text == ErrorText::Explained {
                set(made.obj(), c"name", &cpython::from_str("")?)?;
                set(made.obj(), c"function", &cpython::from_str("")?)?;
            }
        }
        Ok(made)
    }
}

fn set(obj: Obj<'_>, name: &CStr, value: &Owned) -> R<()> {
    // SAFETY: `obj` and `value` are references to live objects; a `CStr` is NUL-terminated.
    match unsafe { ffi::PyObject_SetAttrString(obj.ptr(), name.as_ptr(), value.ptr()) } {
        0 => Ok(()),
        _ => Err(Raised),
    }
}

/// The library an exception belongs to.
fn library_of(exception: Obj<'_>) -> R<(&'static ModuleTypes, &'static Errors)> {
    for lib in MODULES.iter().copied() {
        let Some(errors) = lib.errors else { continue };
        for place in classes(lib, errors) {
            let class = place.load(Ordering::Acquire);
            if !class.is_null() && exception.instance_of_type(class.cast()) {
                return Ok((lib, errors));
            }
        }
    }
    Err(errors::raise(
        ExceptionKind::System,
        "an exception of no library",
    ))
}

// ---------------------------------------------------------------------------------------------------------
// Construction

unsafe extern "C" fn init(
    exception: *mut ffi::PyObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> c_int {
    let done = cpython::guard(|| {
        // SAFETY: the interpreter calls `tp_init` with an instance, a tuple, and null or a dict.
        let exception = unsafe { Obj::new(exception) };
        let (lib, errors) = library_of(exception)?;
        // SAFETY: `args` is a tuple and `kwargs` null or a dict, as the interpreter passes them.
        let (status, cu_err) = unsafe { arguments(exception, args, kwargs, errors)? };
        let text = text(lib, errors, status, cu_err)?;
        let text = cpython::from_str(&text)?;
        // SAFETY: `tp_init` of `Exception` has type `initproc`; it takes an instance, a tuple, and null for no keywords.
        unsafe {
            let init = ffi::PyType_GetSlot(ffi::PyExc_Exception.cast(), ffi::Py_tp_init);
            let init = std::mem::transmute::<*mut c_void, ffi::initproc>(init);
            let args = Owned::take(ffi::PyTuple_Pack(1, text.ptr()))?;
            if init(exception.ptr(), args.ptr(), std::ptr::null_mut()) != 0 {
                return Err(Raised);
            }
        }
        set(exception, c"status", &status.owned())?;
        if errors.text == ErrorText::CuFile {
            let cu_err = cu_err.map_or_else(cpython::none, Obj::owned);
            set(exception, c"cuda_error", &cu_err)?;
        }
        if errors.text == ErrorText::Explained
            && let Some(name) = number(status).and_then(|value| member(errors.status, value))
        {
            set(exception, c"name", &cpython::from_str(name)?)?;
        }
        Ok(cpython::none())
    });
    match Owned::take(done) {
        Ok(_) => 0,
        Err(Raised) => -1,
    }
}

/// The arguments `status` and, for cuFile, `cu_err`. A `cu_err` of `None` counts as omitted.
unsafe fn arguments<'a>(
    exception: Obj<'_>,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
    errors: &Errors,
) -> R<(Obj<'a>, Option<Obj<'a>>)> {
    let names: &[&CStr] = if errors.text == ErrorText::CuFile {
        &[c"status", c"cu_err"]
    } else {
        &[c"status"]
    };
    let class = exception.type_name();
    let invalid = |what: String| errors::raise(ExceptionKind::Type, &format!("{class}() {what}"));
    let mut found = [None; 2];
    // SAFETY: the caller passes a tuple, and null or a dict, which keep the borrowed items alive during the call.
    unsafe {
        let given = ffi::PyTuple_Size(args).max(0).cast_unsigned();
        if given > names.len() {
            return Err(invalid(format!(
                "takes at most {} positional argument{} ({given} given)",
                names.len(),
                if names.len() == 1 { "" } else { "s" }
            )));
        }
        for (index, place) in found.iter_mut().enumerate().take(given) {
            *place = Some(Obj::new(ffi::PyTuple_GetItem(args, index.cast_signed())));
        }
        if !kwargs.is_null() {
            let (mut position, mut key, mut value) =
                (0, std::ptr::null_mut(), std::ptr::null_mut());
            while ffi::PyDict_Next(kwargs, &raw mut position, &raw mut key, &raw mut value) != 0 {
                let name = Obj::new(key).text().unwrap_or_default();
                match names.iter().position(|known| table::text(known) == name) {
                    Some(at) if found[at].is_none() => found[at] = Some(Obj::new(value)),
                    Some(_) => {
                        return Err(invalid(format!(
                            "got multiple values for argument '{name}'"
                        )));
                    }
                    None => {
                        let message = format!("got an unexpected keyword argument '{name}'");
                        return Err(invalid(message));
                    }
                }
            }
        }
    }
    match found[0] {
        Some(status) => Ok((status, found[1].filter(|cu_err| !cu_err.is_none()))),
        None => Err(invalid("missing required argument: 'status'".to_owned())),
    }
}

/// Returns `(class, (status[, cu_err]), attributes)`; unpickling rebuilds the text.
unsafe extern "C" fn reduce(
    exception: *mut ffi::PyObject,
    _: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    cpython::guard(|| {
        // SAFETY: the interpreter passes an instance; the packed objects are live. PyTuple_Pack takes new references.
        unsafe {
            let exception = Obj::new(exception);
            let (_, errors) = library_of(exception)?;
            let attribute = |name: &CStr| {
                Owned::take(ffi::PyObject_GetAttrString(exception.ptr(), name.as_ptr()))
            };
            let status = attribute(c"status")?;
            let args = if errors.text == ErrorText::CuFile {
                let cu_err = attribute(c"cuda_error")?;
                Owned::take(ffi::PyTuple_Pack(2, status.ptr(), cu_err.ptr()))?
            } else {
                Owned::take(ffi::PyTuple_Pack(1, status.ptr()))?
            };
            let dict = attribute(c"__dict__")?;
            Owned::take(ffi::PyTuple_Pack(
                3,
                exception.ty().cast::<ffi::PyObject>(),
                args.ptr(),
                dict.ptr(),
            ))
        }
    })
}

// ---------------------------------------------------------------------------------------------------------
// Text

/// The value of an int. `None` without an exception for other objects and for ints outside 64 bits.
fn number(obj: Obj<'_>) -> Option<i64> {
    if !obj.is_int() {
        return None;
    }
    // SAFETY: the check above found an int.
    let value = unsafe { ffi::PyLong_AsLongLong(obj.ptr()) };
    if value == -1 && cpython::raised() {
        cpython::clear();
        return None;
    }
    Some(value)
}

/// The name of the first member with this value in an enum's table.
fn member(id: EnumId, value: i64) -> Option<&'static str> {
    let members = table::enumeration(id).1.members;
    members
        .iter()
        .find(|(_, known)| *known == value)
        .map(|(name, _)| *name)
}

/// Formats a status as `NAME (number)`. Raises `ValueError` for an unknown status.
fn named(id: EnumId, obj: Obj<'_>) -> R<String> {
    if let Some(value) = number(obj)
        && let Some(name) = member(id, value)
    {
        return Ok(format!("{name} ({value})"));
    }
    // SAFETY: an `Obj` refers to a live object.
    let text = Owned::take(unsafe { ffi::PyObject_Str(obj.ptr()) })?;
    let message = format!(
        "{} is not a valid {}",
        text.obj().text().unwrap_or_default(),
        table::enumeration(id).1.name
    );
    Err(errors::raise(ExceptionKind::Value, &message))
}

fn text(
    lib: &'static ModuleTypes,
    errors: &Errors,
    status: Obj<'_>,
    cu_err: Option<Obj<'_>>,
) -> R<String> {
    match errors.text {
        ErrorText::Name => {
            if !errors.unknown_is_value_error
                && let Some(value) = number(status)
                && member(errors.status, value).is_none()
            {
                return Ok(format!("unknown status ({value})"));
            }
            named(errors.status, status)
        }
        ErrorText::Library => {
            let Some(value) = number(status) else {
                let message = format!("status must be an integer, not {}", status.type_name());
                return Err(errors::raise(ExceptionKind::Type, &message));
            };
            // The library's own text if the library is available. Constructing the exception does not require it.
            match raising::error_string(lib.module, value)? {
                Some(text) => Ok(text),
                None => Ok(match member(errors.status, value) {
                    Some(name) => format!("{name} ({value})"),
                    None => format!("unknown status ({value})"),
                }),
            }
        }
        ErrorText::Explained => {
            let known =
                number(status).and_then(|value| Some((value, member(errors.status, value)?)));
            let Some((value, name)) = known else {
                // SAFETY: an `Obj` refers to a live object.
                let displayed = Owned::take(unsafe { ffi::PyObject_Str(status.ptr()) })?;
                let displayed = displayed.obj().text().unwrap_or_default();
                return Ok(format!("Unknown error ({displayed})"));
            };
            Ok(match explanation::of(lib.module.library(), value) {
                // NVRTC describes a status by its name in C.
                Some(words) if words.ends_with(name) => format!("{words} ({value})"),
                Some(words) => format!("{name} ({value}): {words}"),
                None => format!("{name} ({value})"),
            })
        }
        ErrorText::CuFile => {
            let mut text = named(errors.status, status)?;
            let words = number(status).map_or("", cufile::words);
            if !words.is_empty() {
                text.push_str(": ");
                text.push_str(words);
            }
            if let (Some(cu_err), Some(id)) = (cu_err, driver_status()) {
                text.push_str("; CUDA status: ");
                text.push_str(&named(id, cu_err)?);
            }
            Ok(text)
        }
    }
}

/// The id of `CUresult`.
fn driver_status() -> Option<EnumId> {
    let driver = types_of(Module::Driver)?;
    let at = driver
        .enums
        .binary_search_by(|e| e.name.cmp("CUresult"))
        .ok()?;
    u16::try_from(at)
        .ok()
        .map(|at| EnumId(driver.first_enum + at))
}

// ---------------------------------------------------------------------------------------------------------
// Raising

/// Raises the exception for an error status. `cu_err` is the driver status that cuFile may return, `log` the library's
/// log text, and `note` further information from the call engine.
#[cold]
pub fn raise_status(
    module: Module,
    status: i64,
    cu_err: Option<i64>,
    log: Option<&[u8]>,
    note: Option<&str>,
) -> Raised {
    throw(noted(module, status, cu_err, log, note))
}

/// The exception for an error status, with its log and note.
fn noted(
    module: Module,
    status: i64,
    cu_err: Option<i64>,
    log: Option<&[u8]>,
    note: Option<&str>,
) -> R<Owned> {
    let exception = exception_of(module, status, cu_err)?;
    if let Some(log) = log {
        let log = String::from_utf8_lossy(log);
        let log = cpython::from_str(log.trim_end_matches('\0').trim_end())?;
        set(exception.obj(), c"log", &log)?;
        errors::add_note(exception.obj(), &log)?;
    }
    if let Some(note) = note {
        errors::add_note(exception.obj(), &cpython::from_str(note)?)?;
    }
    Ok(exception)
}

/// Raises an exception, or what prevented its creation.
fn throw(exception: R<Owned>) -> Raised {
    match exception {
        // SAFETY: `exception` owns a reference to the exception, which keeps its class alive.
        Ok(exception) => unsafe {
            let class = exception.obj().ty().cast::<ffi::PyObject>();
            ffi::PyErr_SetObject(class, exception.ptr());
            Raised
        },
        Err(Raised) => Raised,
    }
}

/// The note that names the functions of a failed call. NVIDIA's texts do not name them, and programs compare the texts.
pub fn call_note(f: &Function) -> String {
    match f.export().filter(|_| f.raising.is_some()) {
        None => format!("in {}()", f.name),
        Some(symbol) => format!("in {}(), which calls {symbol}", f.name),
    }
}

/// Raises the exception for an error status of a call of `f`. `log` is the library's log text of the call, if it has one.
#[cold]
pub fn raise_call(f: &Function, status: i64, log: Option<&[u8]>) -> Raised {
    last_error::take(f, status);
    let explained = types_of(f.module)
        .and_then(|types| types.errors)
        .is_some_and(|errors| errors.text == ErrorText::Explained);
    let note = call_note(f);
    if !explained {
        return raise_status(f.module, status, None, log, Some(&note));
    }
    let driver_log = match log {
        Some(_) => None,
        None => explanation::driver_log(f.library(), status),
    };
    let log = log.or(driver_log.as_deref());
    let exception = noted(f.module, status, None, log, Some(&note)).and_then(|exception| {
        set(exception.obj(), c"function", &cpython::from_str(f.name)?)?;
        Ok(exception)
    });
    throw(exception)
}

/// The exception object for a status.
fn exception_of(module: Module, status: i64, cu_err: Option<i64>) -> R<Owned> {
    let (lib, errors) = match types_of(module) {
        Some(
            lib @ ModuleTypes {
                errors: Some(errors),
                ..
            },
        ) => (lib, *errors),
        _ => {
            let message = format!("{} has no exceptions", module.name());
            return Err(errors::raise(ExceptionKind::System, &message));
        }
    };
    let index = match errors.by_status.binary_search_by_key(&status, |row| row.0) {
        Ok(at) => errors.by_status[at].1,
        Err(_) => 0,
    };
    let class = made(lib, errors, index)?;
    let status = cpython::from_i64(status)?;
    let null = std::ptr::null_mut::<ffi::PyObject>();
    // SAFETY: the cached class is immortal, the arguments are live, and null terminates them.
    unsafe {
        Owned::take(match cu_err {
            None => ffi::PyObject_CallFunctionObjArgs(class, status.ptr(), null),
            Some(cu_err) => {
                let cu_err = cpython::from_i64(cu_err)?;
                ffi::PyObject_CallFunctionObjArgs(class, status.ptr(), cu_err.ptr(), null)
            }
        })
    }
}
