//! NumPy support: views and dtypes of struct objects. NumPy is imported on first use of a NumPy object.
//!
//! An array views the memory of the object it comes from and keeps that object alive through a [`Window`]. Without
//! NumPy, array attributes are `memoryview`s of the same memory, and dtypes (`pci_info_dtype`) raise `ImportError`.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::ffi;

use crate::cpython;
use crate::cpython::buffer::{refuse, takes_strides};
use crate::cpython::errors::guard_or;
use crate::cpython::{Obj, Owned, R, Raised, tuple};
use crate::types::buffer_structs::instance;
use crate::types::buffer_structs::instance::BufferStruct;
use crate::types::object::slot;
use crate::types::table;
use crate::types::table::{CLASS_COUNT, ClassId, FieldKind, Prim};

static MODULE: AtomicPtr<ffi::PyObject> = AtomicPtr::new(null_mut());
static DTYPES: [AtomicPtr<ffi::PyObject>; CLASS_COUNT] =
    [const { AtomicPtr::new(null_mut()) }; CLASS_COUNT];

/// The `numpy` module, imported on first use.
///
/// # Errors
/// Any exception of the import: `ModuleNotFoundError` naming NumPy if it is not installed.
pub fn module() -> R<Obj<'static>> {
    let mut known = MODULE.load(Ordering::Acquire);
    if known.is_null() {
        // SAFETY: callers hold the GIL; the name is NUL-terminated.
        let made = Owned::take(unsafe { ffi::PyImport_ImportModule(c"numpy".as_ptr()) })?;
        known = cpython::publish(&MODULE, made);
    }
    // SAFETY: the static owns a reference that is never released.
    Ok(unsafe { Obj::new(known) })
}

/// The `numpy` module if it is already imported. Otherwise no NumPy array can exist.
pub fn loaded() -> R<Option<Obj<'static>>> {
    let known = MODULE.load(Ordering::Acquire);
    if known.is_null() {
        // SAFETY: callers hold the GIL; `sys.modules` is borrowed and live.
        unsafe {
            let modules = ffi::PyImport_GetModuleDict();
            let found = ffi::PyDict_GetItemString(modules, c"numpy".as_ptr());
            // None in `sys.modules` blocks the import of a module.
            if found.is_null() || found == ffi::Py_None() {
                return Ok(None);
            }
        }
    }
    module().map(Some)
}

/// An attribute of an object.
///
/// # Errors
/// Any exception of the lookup.
pub fn attribute(of: Obj<'_>, name: &CStr) -> R<Owned> {
    // SAFETY: an `Obj` refers to a live object; a `CStr` is NUL-terminated.
    Owned::take(unsafe { ffi::PyObject_GetAttrString(of.ptr(), name.as_ptr()) })
}

/// Calls an object.
///
/// # Errors
/// Any exception of the call.
pub fn call<const N: usize>(what: Obj<'_>, args: [Owned; N]) -> R<Owned> {
    let args = tuple(args)?;
    // SAFETY: `what` and `args` refer to live objects.
    Owned::take(unsafe { ffi::PyObject_CallObject(what.ptr(), args.ptr()) })
}

static NDARRAY: AtomicPtr<ffi::PyObject> = AtomicPtr::new(null_mut());
static RECARRAY: AtomicPtr<ffi::PyObject> = AtomicPtr::new(null_mut());
static DTYPE: AtomicPtr<ffi::PyObject> = AtomicPtr::new(null_mut());
static NUMBERS: [AtomicPtr<ffi::PyObject>; 10] = [const { AtomicPtr::new(null_mut()) }; 10];

/// A NumPy class, looked up once and cached in `place`.
fn kept(place: &'static AtomicPtr<ffi::PyObject>, numpy: Obj<'_>, name: &CStr) -> R<Obj<'static>> {
    let mut known = place.load(Ordering::Acquire);
    if known.is_null() {
        known = cpython::publish(place, attribute(numpy, name)?);
    }
    // SAFETY: the static owns a reference that is never released.
    Ok(unsafe { Obj::new(known) })
}

/// The dtype of a number type, cached.
fn number_type(numpy: Obj<'_>, prim: Prim) -> R<Obj<'static>> {
    let place = &NUMBERS[prim as usize];
    let mut known = place.load(Ordering::Acquire);
    if known.is_null() {
        let name = cpython::from_str(type_string(prim))?;
        known = cpython::publish(place, call(kept(&DTYPE, numpy, c"dtype")?, [name])?);
    }
    // SAFETY: the static owns a reference that is never released.
    Ok(unsafe { Obj::new(known) })
}

/// NumPy's type string of a number type: `<u4`.
fn type_string(prim: Prim) -> &'static str {
    match prim {
        Prim::I8 => "|i1",
        Prim::U8 => "|u1",
        Prim::I16 => "<i2",
        Prim::U16 => "<u2",
        Prim::I32 => "<i4",
        Prim::U32 => "<u4",
        Prim::I64 => "<i8",
        Prim::U64 => "<u8",
        Prim::F32 => "<f4",
        Prim::F64 => "<f8",
    }
}

/// The dtype of a class, created once.
///
/// # Errors
/// `ImportError` if NumPy is missing.
pub fn dtype(id: ClassId) -> R<Obj<'static>> {
    let place = &DTYPES[id.0 as usize];
    let mut known = place.load(Ordering::Acquire);
    if known.is_null() {
        known = cpython::publish(place, make_dtype(id)?);
    }
    // SAFETY: the static owns a reference that is never released.
    Ok(unsafe { Obj::new(known) })
}

fn make_dtype(id: ClassId) -> R<Owned> {
    let class = table::class(id).1;
    let fields = || class.fields.iter();
    let names = cpython::list(fields().map(|f| cpython::from_str(table::text(f.name))))?;
    let formats = cpython::list(fields().map(|f| format_of(f.kind)))?;
    let offsets = cpython::list(fields().map(|f| cpython::from_u64(f.offset.into())))?;
    // SAFETY: all references are owned and live; PyDict_SetItemString takes new references.
    unsafe {
        let spec = Owned::take(ffi::PyDict_New())?;
        let size = cpython::from_u64(class.size.into())?;
        for (key, value) in [
            (c"names", names),
            (c"formats", formats),
            (c"offsets", offsets),
            (c"itemsize", size),
        ] {
            if ffi::PyDict_SetItemString(spec.ptr(), key.as_ptr(), value.ptr()) != 0 {
                return Err(Raised);
            }
        }
        call(kept(&DTYPE, module()?, c"dtype")?, [spec])
    }
}

fn format_of(kind: FieldKind) -> R<Owned> {
    let (base, len) = match kind {
        FieldKind::Int(p) | FieldKind::Float(p) => (cpython::from_str(type_string(p))?, 0),
        FieldKind::Long(_) => (cpython::from_str(type_string(Prim::U32))?, 0),
        FieldKind::Hidden(p, n) | FieldKind::Fixed(p, n) | FieldKind::Counted(p, n, _) => {
            (cpython::from_str(type_string(p))?, n)
        }
        FieldKind::Str(n) | FieldKind::Bytes(n) => (cpython::from_str(type_string(Prim::I8))?, n),
        FieldKind::BufferStruct(id) | FieldKind::HiddenStruct(id) => (dtype(id)?.owned(), 0),
        FieldKind::BufferStructs(id, n, _) | FieldKind::Records(id, n) => (dtype(id)?.owned(), n),
        _ => (cpython::from_str(type_string(Prim::I64))?, 0),
    };
    if len == 0 {
        return Ok(base);
    }
    tuple([base, tuple([cpython::from_u64(len.into())?])?])
}

/// The name of a class's dtype, for messages.
pub fn dtype_name(id: ClassId) -> &'static str {
    let lib = table::class(id).0;
    lib.dtypes
        .iter()
        .find(|d| d.1 == id.0)
        .map_or(table::class(id).1.name(), |d| d.0)
}

// ---- views

/// Element type of a view.
#[derive(Clone, Copy)]
pub enum Item {
    /// Numbers.
    Number(Prim),
    /// Structs, as a plain array.
    Struct(ClassId),
    /// Structs, as a record array.
    Record(ClassId),
}

impl Item {
    fn size(self) -> usize {
        match self {
            Item::Number(p) => p.size(),
            Item::Struct(id) | Item::Record(id) => table::class(id).1.size as usize,
        }
    }
}

/// One dimension: the number of elements, and the stride in bytes.
pub type Dim = (usize, isize);

/// A NumPy array that views the memory at `data` and keeps `holder` alive; a `memoryview` without NumPy. `dims` has one
/// or two dimensions.
///
/// # Errors
/// `MemoryError`, or any exception of NumPy.
///
/// # Safety
/// `holder` owns the memory and keeps it valid for its lifetime.
pub unsafe fn view(
    holder: Obj<'_>,
    data: *mut u8,
    item: Item,
    dims: &[Dim],
    readonly: bool,
) -> R<Owned> {
    // SAFETY: as promised by the caller.
    let (window, offset) = unsafe { window(holder, data, item, dims, readonly)? };
    let numpy = match module() {
        Ok(numpy) => numpy,
        Err(Raised) => {
            // SAFETY: `module` has set an exception; `window` is a live object.
            unsafe {
                if ffi::PyErr_ExceptionMatches(ffi::PyExc_ImportError) == 0 {
                    return Err(Raised);
                }
                cpython::clear();
                return Owned::take(ffi::PyMemoryView_FromObject(window.ptr()));
            }
        }
    };
    let (class, dtype) = match item {
        Item::Number(p) => (kept(&NDARRAY, numpy, c"ndarray")?, number_type(numpy, p)?),
        Item::Struct(id) => (kept(&NDARRAY, numpy, c"ndarray")?, dtype(id)?),
        Item::Record(id) => (kept(&RECARRAY, numpy, c"recarray")?, dtype(id)?),
    };
    let (shape, strides) = match dims {
        [(n, s)] => (
            tuple([cpython::from_u64(*n as u64)?])?,
            tuple([cpython::from_i64(*s as i64)?])?,
        ),
        _ => {
            let ((n, s), (m, t)) = (dims[0], dims[1]);
            (
                tuple([cpython::from_u64(n as u64)?, cpython::from_u64(m as u64)?])?,
                tuple([cpython::from_i64(s as i64)?, cpython::from_i64(t as i64)?])?,
            )
        }
    };
    let offset = cpython::from_u64(offset as u64)?;
    call(class, [shape, dtype.owned(), window, offset, strides])
}

/// Exports the memory that an array views through the buffer protocol. NumPy gets plain bytes and applies shape and
/// strides itself. A `memoryview` gets shape and strides from here.
#[repr(C)]
struct Window {
    head: ffi::PyObject,
    holder: *mut ffi::PyObject,
    /// Lowest address; `len` is the number of bytes from there.
    start: *mut u8,
    len: isize,
    /// Always 1: the stride of the plain bytes, which `Py_buffer` needs a pointer to.
    one: isize,
    readonly: bool,
    /// For a `memoryview`: the first element; then its size and format, the shape and the strides.
    first: *mut u8,
    item: usize,
    format: [c_char; 2],
    ndim: c_int,
    shape: [isize; 3],
    strides: [isize; 3],
}

static WINDOW: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(null_mut());

unsafe fn window(
    holder: Obj<'_>,
    data: *mut u8,
    item: Item,
    dims: &[Dim],
    readonly: bool,
) -> R<(Owned, usize)> {
    let size = item.size();
    let (mut low, mut high) = (0isize, size as isize);
    for (n, stride) in dims {
        match (*n as isize - 1) * stride {
            far if far < 0 => low += far,
            far => high += far,
        }
    }
    if dims.iter().any(|d| d.0 == 0) {
        (low, high) = (0, 0);
    }
    // SAFETY: the type's basicsize is the size of `Window`; the window owns a reference to the holder.
    unsafe {
        let window = Owned::take(ffi::PyType_GenericAlloc(window_type()?, 0))?;
        let this = window.ptr().cast::<Window>();
        (*this).holder = holder.owned().into_ptr();
        (*this).start = data.wrapping_offset(low);
        (*this).len = high - low;
        (*this).one = 1;
        (*this).readonly = readonly;
        (*this).first = data;
        (*this).ndim = dims.len() as c_int;
        for (i, (n, stride)) in dims.iter().enumerate() {
            (*this).shape[i] = *n as isize;
            (*this).strides[i] = *stride;
        }
        if let Item::Number(p) = item {
            (*this).item = size;
            (*this).format[0] = p.letter() as c_char;
        } else {
            // A struct is exported as bytes, in one additional dimension.
            (*this).item = 1;
            (*this).format[0] = b'B' as c_char;
            (*this).shape[dims.len()] = size as isize;
            (*this).strides[dims.len()] = 1;
            (*this).ndim += 1;
        }
        Ok((window, (-low) as usize))
    }
}

unsafe extern "C" fn window_buffer(
    obj: *mut ffi::PyObject,
    buffer: *mut ffi::Py_buffer,
    flags: c_int,
) -> c_int {
    guard_or(-1, || {
        // SAFETY: the interpreter passes an instance and a buffer to fill. The buffer holds a reference to the object,
        // which owns everything that the buffer points to.
        unsafe {
            let this = obj.cast::<Window>();
            if (*this).readonly && flags & ffi::PyBUF_WRITABLE != 0 {
                return refuse(buffer, "the object behind this array is read-only");
            }
            (*buffer).readonly = (*this).readonly.into();
            (*buffer).suboffsets = null_mut();
            (*buffer).internal = null_mut();
            if takes_strides(flags) {
                let shape = (*this).shape;
                let n: isize = shape.iter().take((*this).ndim as usize).product();
                (*buffer).buf = (*this).first.cast();
                (*buffer).len = n * (*this).item as isize;
                (*buffer).itemsize = (*this).item as isize;
                (*buffer).ndim = (*this).ndim;
                (*buffer).shape = (&raw mut (*this).shape).cast();
                (*buffer).strides = (&raw mut (*this).strides).cast();
                (*buffer).format = if flags & ffi::PyBUF_FORMAT != 0 {
                    (&raw mut (*this).format).cast()
                } else {
                    null_mut()
                };
            } else {
                (*buffer).buf = (*this).start.cast();
                (*buffer).len = (*this).len;
                (*buffer).itemsize = 1;
                (*buffer).ndim = 1;
                let (nd, strided) = (ffi::PyBUF_ND, ffi::PyBUF_STRIDES);
                (*buffer).shape = null_mut();
                (*buffer).strides = null_mut();
                (*buffer).format = null_mut();
                if flags & nd != 0 {
                    (*buffer).shape = &raw mut (*this).len;
                }
                if flags & strided == strided {
                    (*buffer).strides = &raw mut (*this).one;
                }
                if flags & ffi::PyBUF_FORMAT != 0 {
                    (*buffer).format = c"B".as_ptr().cast_mut();
                }
            }
            ffi::Py_INCREF(obj);
            (*buffer).obj = obj;
            0
        }
    })
}

unsafe extern "C" fn window_dealloc(obj: *mut ffi::PyObject) {
    // SAFETY: the interpreter passes an instance without references, allocated by PyType_GenericAlloc.
    unsafe {
        ffi::PyObject_GC_UnTrack(obj.cast());
        ffi::Py_XDECREF((*obj.cast::<Window>()).holder);
        crate::types::object::free(obj);
    }
}

unsafe extern "C" fn window_traverse(
    obj: *mut ffi::PyObject,
    visit: ffi::visitproc,
    arg: *mut c_void,
) -> c_int {
    // SAFETY: no other thread changes objects while the collector runs.
    unsafe {
        let rc = visit(ffi::Py_TYPE(obj).cast(), arg);
        let holder = (*obj.cast::<Window>()).holder;
        if rc == 0 && !holder.is_null() {
            return visit(holder, arg);
        }
        rc
    }
}

fn window_type() -> R<*mut ffi::PyTypeObject> {
    cpython::once(&WINDOW, make_window_type)
}

fn make_window_type() -> R<Owned> {
    let doc = c"The memory of a struct object, as NumPy arrays look at it.";
    let mut slots = [
        slot(ffi::Py_tp_dealloc, window_dealloc as *mut c_void),
        slot(ffi::Py_tp_traverse, window_traverse as *mut c_void),
        slot(ffi::Py_bf_getbuffer, window_buffer as *mut c_void),
        slot(ffi::Py_tp_doc, doc.as_ptr().cast_mut().cast()),
        slot(0, null_mut()),
    ];
    let mut spec = ffi::PyType_Spec {
        name: c"cupyrite._native.Window".as_ptr(),
        basicsize: size_of::<Window>() as c_int,
        itemsize: 0,
        flags: (ffi::Py_TPFLAGS_DEFAULT
            | ffi::Py_TPFLAGS_HAVE_GC
            | ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION
            | ffi::Py_TPFLAGS_IMMUTABLETYPE) as u32,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the spec is complete; a null slot terminates its slots.
    Owned::take(unsafe { ffi::PyType_FromSpec(&mut spec) })
}

/// A NumPy array of a buffer struct's structs, or of one member of each struct.
///
/// # Errors
/// `ValueError` if foreign memory is no longer readable; the errors of [`view`].
///
/// # Safety
/// `this` is a live buffer struct, and `dims` stay within its memory.
pub unsafe fn of_struct(
    this: *mut BufferStruct,
    data: *mut u8,
    item: Item,
    dims: &[Dim],
) -> R<Owned> {
    // SAFETY: as promised by the caller.
    unsafe {
        instance::present(this)?;
        view(Obj::new(this.cast()), data, item, dims, (*this).readonly)
    }
}
