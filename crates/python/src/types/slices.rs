//! Number arrays returned by the functions that raise: `_memoryviewslice`, and `array` for a few functions.
//!
//! Both are one-dimensional and typed, and implement the buffer protocol, so that `memoryview(x)` and `numpy.asarray(x)`
//! view the same memory. Neither requires NumPy.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::ffi;

use crate::cpython;
use crate::cpython::buffer::{refuse, takes_strides};
use crate::cpython::errors::{ExceptionKind, guard, guard_status, raise};
use crate::cpython::{Obj, Owned, R, Raised, tuple};
use crate::types::convert;
use crate::types::convert::AttributeSite;
use crate::types::object::slot;
use crate::types::table::{Prim, Slice};

fn prim(format: Slice) -> Prim {
    match format {
        Slice::I32 => Prim::I32,
        Slice::U32 => Prim::U32,
        Slice::U64 | Slice::Ulong => Prim::U64,
        Slice::Address => Prim::I64,
    }
}

fn letter(format: Slice) -> &'static CStr {
    match format {
        Slice::I32 => c"i",
        Slice::U32 => c"I",
        Slice::U64 => c"Q",
        Slice::Ulong => c"L",
        Slice::Address => c"q",
    }
}

/// An array, or a strided part of one.
#[repr(C)]
struct Numbers {
    head: ffi::PyObject,
    /// First element.
    data: *mut u8,
    /// Number of elements. Signed, because `Py_buffer::shape` points to it.
    count: isize,
    /// Stride in bytes.
    stride: isize,
    /// The object whose memory this one views; null if it owns its memory.
    root: *mut ffi::PyObject,
    /// Number of 64-bit words allocated; 0 for a view.
    own: usize,
    format: Slice,
}

impl Numbers {
    /// Whether the elements follow each other.
    fn contiguous(&self) -> bool {
        self.stride == self.format.size() as isize || self.count < 2
    }
}

static BASE: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(null_mut());
static SLICE: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(null_mut());
static ARRAY: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(null_mut());

/// A new `_memoryviewslice` with a copy of `bytes`, which hold whole elements.
///
/// # Errors
/// `MemoryError`.
pub fn new_slice(format: Slice, bytes: &[u8]) -> R<Owned> {
    // SAFETY: instances of the type are `Numbers`.
    unsafe { make(slice_type()?, format, bytes) }
}

/// A new `array` with a copy of `bytes`, which hold whole elements.
///
/// # Errors
/// `MemoryError`.
pub fn new_array(format: Slice, bytes: &[u8]) -> R<Owned> {
    // SAFETY: instances of the type are `Numbers`.
    unsafe { make(array_type()?, format, bytes) }
}

/// Address and number of the elements of an `array` of 64-bit words. None for other objects.
pub fn words(obj: Obj<'_>) -> Option<(*mut u8, usize)> {
    if obj.ty() != ARRAY.load(Ordering::Acquire) {
        return None;
    }
    let this = obj.ptr().cast::<Numbers>();
    // SAFETY: the check leaves only instances of `array`, which are `Numbers`.
    unsafe { Some(((*this).data, (*this).count as usize)) }
}

/// A new object of the type `ty`.
///
/// # Safety
/// Instances of the type are `Numbers`.
unsafe fn make(ty: *mut ffi::PyTypeObject, format: Slice, bytes: &[u8]) -> R<Owned> {
    let size = format.size();
    let mut words = vec![0u64; bytes.len().div_ceil(8).max(1)].into_boxed_slice();
    // SAFETY: as promised by the caller; `words` has room for `bytes`, and the object takes ownership of `words`.
    unsafe {
        let object = Owned::take(ffi::PyType_GenericAlloc(ty, 0))?;
        let this = object.ptr().cast::<Numbers>();
        let data = words.as_mut_ptr().cast::<u8>();
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), data, bytes.len());
        (*this).own = words.len();
        (*this).data = Box::into_raw(words).cast();
        (*this).count = (bytes.len() / size) as isize;
        (*this).stride = size as isize;
        (*this).format = format;
        Ok(object)
    }
}

unsafe extern "C" fn free(obj: *mut ffi::PyObject) {
    // SAFETY: the interpreter passes an instance without references; `make` allocated its words as a boxed slice of
    // this length.
    unsafe {
        let this = obj.cast::<Numbers>();
        if (*this).own != 0 {
            let words = std::ptr::slice_from_raw_parts_mut((*this).data.cast::<u64>(), (*this).own);
            drop(Box::from_raw(words));
        }
        ffi::Py_XDECREF((*this).root);
        let ty = ffi::Py_TYPE(obj);
        ffi::PyObject_Free(obj.cast());
        ffi::Py_DECREF(ty.cast());
    }
}

/// Address of element `i`.
///
/// # Errors
/// `IndexError`.
unsafe fn place(this: *mut Numbers, i: isize) -> R<*mut u8> {
    // SAFETY: the callers pass an instance; the bounds check leaves an index of an existing element.
    unsafe {
        if i < 0 || i >= (*this).count {
            return Err(raise(
                ExceptionKind::Index,
                "Out of bounds on buffer access (axis 0)",
            ));
        }
        Ok((*this).data.offset(i * (*this).stride))
    }
}

unsafe fn value(this: *mut Numbers, at: *const u8) -> R<Owned> {
    let mut bytes = [0u8; 8];
    // SAFETY: the callers pass the address of an element of `this`.
    unsafe {
        let kind = prim((*this).format);
        std::ptr::copy_nonoverlapping(at, bytes.as_mut_ptr(), kind.size());
        convert::to_int(bytes, kind)
    }
}

unsafe extern "C" fn length(obj: *mut ffi::PyObject) -> isize {
    // SAFETY: the interpreter passes an instance.
    unsafe { (*obj.cast::<Numbers>()).count }
}

unsafe extern "C" fn item(obj: *mut ffi::PyObject, i: isize) -> *mut ffi::PyObject {
    guard(|| {
        // The interpreter has already added the length to a negative index, so one that is still negative is out of range.
        // SAFETY: the interpreter passes an instance.
        unsafe { value(obj.cast(), place(obj.cast(), i)?) }
    })
}

/// The elements selected by a slice object: first index, step and number.
///
/// # Errors
/// `TypeError` and exceptions of `__index__` for parts that are no integers.
pub fn selected(key: Obj<'_>, len: isize) -> R<(isize, isize, isize)> {
    let (mut start, mut stop, mut step) = (0, 0, 0);
    // SAFETY: an `Obj` is live; callers pass a slice.
    unsafe {
        if ffi::PySlice_Unpack(key.ptr(), &raw mut start, &raw mut stop, &raw mut step) < 0 {
            return Err(Raised);
        }
        let count = ffi::PySlice_AdjustIndices(len, &raw mut start, &raw mut stop, step);
        Ok((start, step, count))
    }
}

/// Whether a key is a slice object.
pub fn is_slice(key: Obj<'_>) -> bool {
    std::ptr::eq(key.ty(), &raw mut ffi::PySlice_Type)
}

unsafe extern "C" fn subscript(
    obj: *mut ffi::PyObject,
    key: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: the interpreter passes an instance and a live key.
        unsafe {
            let (this, key) = (obj.cast::<Numbers>(), Obj::new(key));
            if is_slice(key) {
                return part(this, selected(key, (*this).count)?);
            }
            value(this, element(this, key)?)
        }
    })
}

/// A view of selected elements.
unsafe fn part(this: *mut Numbers, (start, step, count): (isize, isize, isize)) -> R<Owned> {
    // SAFETY: the callers pass an instance and a selection of its elements; a part holds a reference to the owner of its
    // memory.
    unsafe {
        let object = Owned::take(ffi::PyType_GenericAlloc(slice_type()?, 0))?;
        let part = object.ptr().cast::<Numbers>();
        (*part).root = root(this).owned().into_ptr();
        (*part).format = (*this).format;
        (*part).count = count;
        (*part).stride = (*this).stride.wrapping_mul(step);
        let offset = start.wrapping_mul((*this).stride);
        (*part).data = (*this).data.wrapping_offset(offset);
        Ok(object)
    }
}

/// The object that owns the memory.
unsafe fn root<'a>(this: *mut Numbers) -> Obj<'a> {
    // SAFETY: the callers pass a live instance, which holds a reference to its root.
    unsafe {
        Obj::new(if (*this).root.is_null() {
            this.cast()
        } else {
            (*this).root
        })
    }
}

/// Address of the element with this index, from the end if it is negative.
unsafe fn element(this: *mut Numbers, key: Obj<'_>) -> R<*mut u8> {
    // SAFETY: the callers pass a live instance.
    unsafe {
        if ffi::PyIndex_Check(key.ptr()) == 0 {
            let class = Obj::new(this.cast()).type_short_name();
            let given = key.type_short_name();
            return Err(raise(
                ExceptionKind::Type,
                &format!("{class} indices must be integers or slices, not {given}"),
            ));
        }
        let i = ffi::PyNumber_AsSsize_t(key.ptr(), ffi::PyExc_IndexError);
        if i == -1 && cpython::raised() {
            return Err(Raised);
        }
        place(this, if i < 0 { i + (*this).count } else { i })
    }
}

unsafe extern "C" fn assign(
    obj: *mut ffi::PyObject,
    key: *mut ffi::PyObject,
    new: *mut ffi::PyObject,
) -> c_int {
    guard_status(|| {
        // SAFETY: the interpreter passes an instance and a live key; a null value means `del`.
        unsafe {
            let (this, key) = (obj.cast::<Numbers>(), Obj::new(key));
            let site = AttributeSite {
                ty: ffi::Py_TYPE(obj),
                attr: "[]",
            };
            if new.is_null() {
                return Err(site.fail(ExceptionKind::Type, "elements cannot be deleted"));
            }
            let new = Obj::new(new);
            if is_slice(key) {
                return assign_part(this, selected(key, (*this).count)?, new, &site);
            }
            let kind = prim((*this).format);
            let at = element(this, key)?;
            // Convert before writing: the conversion may run Python code.
            let v = convert::ranged(new, kind, &site)?;
            std::ptr::copy_nonoverlapping(v.to_le_bytes().as_ptr(), at, kind.size());
            Ok(())
        }
    })
}

/// Assigns one number to all selected elements, or a sequence with one number for each.
unsafe fn assign_part(
    this: *mut Numbers,
    (start, step, count): (isize, isize, isize),
    new: Obj<'_>,
    site: &AttributeSite,
) -> R<()> {
    // SAFETY: `selected` limits the indexes to existing elements; every value is converted before the first is written.
    unsafe {
        let kind = prim((*this).format);
        let values = if ffi::PySequence_Check(new.ptr()) != 0 {
            let items = convert::sequence(new, site)?;
            if items.len() != count as usize {
                let message = format!("{count} values are needed, not {}", items.len());
                return Err(site.fail(ExceptionKind::Value, &message));
            }
            (0..items.len())
                .map(|i| convert::ranged(items.get(i), kind, site))
                .collect::<R<Vec<_>>>()?
        } else {
            vec![convert::ranged(new, kind, site)?; count as usize]
        };
        for (i, v) in values.iter().enumerate() {
            let index = start + i as isize * step;
            let at = (*this).data.offset(index * (*this).stride);
            std::ptr::copy_nonoverlapping(v.to_le_bytes().as_ptr(), at, kind.size());
        }
    }
    Ok(())
}

unsafe extern "C" fn getbuffer(
    obj: *mut ffi::PyObject,
    buffer: *mut ffi::Py_buffer,
    flags: c_int,
) -> c_int {
    // SAFETY: the interpreter passes an instance and a buffer to fill. The buffer holds a reference to the object, which
    // owns everything that the buffer points to.
    unsafe {
        let this = obj.cast::<Numbers>();
        let size = (*this).format.size() as isize;
        if !(*this).contiguous() && !takes_strides(flags) {
            return refuse(
                buffer,
                "the elements do not follow each other; ask for strides, or copy() first",
            );
        }
        (*buffer).buf = (*this).data.cast();
        (*buffer).len = (*this).count * size;
        (*buffer).itemsize = size;
        (*buffer).readonly = 0;
        (*buffer).ndim = 1;
        (*buffer).format = if flags & ffi::PyBUF_FORMAT != 0 {
            letter((*this).format).as_ptr().cast_mut()
        } else {
            null_mut()
        };
        (*buffer).shape = if flags & ffi::PyBUF_ND != 0 {
            &raw mut (*this).count
        } else {
            null_mut()
        };
        (*buffer).strides = if flags & ffi::PyBUF_STRIDES == ffi::PyBUF_STRIDES {
            &raw mut (*this).stride
        } else {
            null_mut()
        };
        (*buffer).suboffsets = null_mut();
        (*buffer).internal = null_mut();
        ffi::Py_INCREF(obj);
        (*buffer).obj = obj;
        0
    }
}

unsafe extern "C" fn repr(obj: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: the interpreter passes an instance.
        unsafe {
            let this = obj.cast::<Numbers>();
            let displayed = (*this).count.min(16);
            let mut parts = (0..displayed)
                .map(|i| Ok(value(this, place(this, i)?)?.obj().display()))
                .collect::<R<Vec<_>>>()?;
            if (*this).count > displayed {
                parts.push(format!("... {} in all", (*this).count));
            }
            let name = Obj::new(obj).type_short_name();
            cpython::from_str(&format!("<{name} [{}]>", parts.join(", ")))
        }
    })
}

// ---- attributes and methods

fn int(n: isize) -> R<Owned> {
    cpython::from_i64(n as i64)
}

macro_rules! number {
    ($name:ident, |$this:ident| $value:expr) => {
        unsafe extern "C" fn $name(obj: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
            guard(|| {
                // SAFETY: the interpreter passes an instance.
                let $this = unsafe { &*obj.cast::<Numbers>() };
                $value
            })
        }
    };
}

number!(get_shape, |this| tuple([int(this.count)?]));
number!(get_strides, |this| tuple([int(this.stride)?]));
number!(get_suboffsets, |_this| tuple([int(-1)?]));
number!(get_size, |this| int(this.count));
number!(get_ndim, |_this| int(1));
number!(get_itemsize, |this| int(this.format.size() as isize));
number!(get_nbytes, |this| int(
    this.count * this.format.size() as isize
));

unsafe extern "C" fn get_self(obj: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: the interpreter passes an instance.
    unsafe { Obj::new(obj) }.owned().into_ptr()
}

unsafe extern "C" fn get_base(obj: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: the interpreter passes an instance.
    unsafe { root(obj.cast()) }.owned().into_ptr()
}

/// `array.memview`: a `_memoryviewslice` of the same memory.
unsafe extern "C" fn get_memview(obj: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: the interpreter passes an instance; all of its elements are selected.
        unsafe {
            let this = obj.cast::<Numbers>();
            part(this, (0, 1, (*this).count))
        }
    })
}

unsafe extern "C" fn copy(obj: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: the interpreter passes an instance, whose elements 0 to count - 1 exist.
        unsafe {
            let this = obj.cast::<Numbers>();
            let size = (*this).format.size();
            let mut bytes = Vec::with_capacity((*this).count as usize * size);
            for i in 0..(*this).count {
                let at = (*this).data.offset(i * (*this).stride);
                bytes.extend_from_slice(std::slice::from_raw_parts(at, size));
            }
            new_slice((*this).format, &bytes)
        }
    })
}

unsafe extern "C" fn to_list(obj: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: the interpreter passes an instance, which is a sequence.
    unsafe { ffi::PySequence_List(obj) }
}

unsafe extern "C" fn contiguous(
    obj: *mut ffi::PyObject,
    _: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter passes an instance.
    guard(|| cpython::from_bool(unsafe { (*obj.cast::<Numbers>()).contiguous() }))
}

/// The result of a function that returns a number, or -1 with an exception.
fn found(n: isize) -> R<Owned> {
    match n {
        -1 => Err(Raised),
        n => int(n),
    }
}

unsafe extern "C" fn count_of(
    obj: *mut ffi::PyObject,
    what: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter passes an instance, which is a sequence.
    guard(|| found(unsafe { ffi::PySequence_Count(obj, what) }))
}

unsafe extern "C" fn first_of(
    obj: *mut ffi::PyObject,
    what: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter passes an instance, which is a sequence.
    guard(|| found(unsafe { ffi::PySequence_Index(obj, what) }))
}

/// Refuses pickling.
unsafe extern "C" fn reduce(obj: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: the interpreter passes an instance.
        let name = unsafe { Obj::new(obj) }.type_short_name();
        let message = format!("cannot pickle a {name}; use tolist() or copy()");
        Err(raise(ExceptionKind::Type, &message))
    })
}

fn method(
    name: &'static CStr,
    function: ffi::PyCFunction,
    takes: c_int,
    doc: &'static CStr,
) -> ffi::PyMethodDef {
    ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunction: function,
        },
        ml_flags: takes,
        ml_doc: doc.as_ptr(),
    }
}

fn attribute(name: &'static CStr, get: ffi::getter, doc: &'static CStr) -> ffi::PyGetSetDef {
    ffi::PyGetSetDef {
        name: name.as_ptr(),
        get: Some(get),
        set: None,
        doc: doc.as_ptr(),
        closure: null_mut(),
    }
}

#[rustfmt::skip]
fn methods() -> Vec<ffi::PyMethodDef> {
    vec![
        method(c"copy", copy, ffi::METH_NOARGS, c"copy($self, /)\n--\n\nThe same numbers in memory of their own."),
        method(c"copy_fortran", copy, ffi::METH_NOARGS, c"copy_fortran($self, /)\n--\n\nAs copy(): there is one dimension."),
        method(c"__copy__", copy, ffi::METH_NOARGS, c"__copy__($self, /)\n--\n\nAs copy()."),
        method(c"__deepcopy__", copy, ffi::METH_O, c"__deepcopy__($self, memo, /)\n--\n\nAs copy()."),
        method(c"tolist", to_list, ffi::METH_NOARGS, c"tolist($self, /)\n--\n\nThe numbers as a list."),
        method(c"is_c_contig", contiguous, ffi::METH_NOARGS, c"is_c_contig($self, /)\n--\n\nWhether the elements follow each other."),
        method(c"is_f_contig", contiguous, ffi::METH_NOARGS, c"is_f_contig($self, /)\n--\n\nWhether the elements follow each other."),
        method(c"count", count_of, ffi::METH_O, c"count($self, value, /)\n--\n\nHow often value occurs."),
        method(c"index", first_of, ffi::METH_O, c"index($self, value, /)\n--\n\nWhere value first occurs."),
        method(c"__reduce__", reduce, ffi::METH_NOARGS, c"__reduce__($self, /)\n--\n\nRaises TypeError."),
        ffi::PyMethodDef::zeroed(),
    ]
}

#[rustfmt::skip]
fn attributes(array: bool) -> Vec<ffi::PyGetSetDef> {
    let mut list = vec![
        attribute(c"T", get_self, c"The array itself: there is one dimension."),
        attribute(c"base", get_base, c"The object whose memory this is."),
        attribute(c"shape", get_shape, c"(number of elements,)"),
        attribute(c"strides", get_strides, c"(bytes from one element to the next,)"),
        attribute(c"suboffsets", get_suboffsets, c"(-1,)"),
        attribute(c"size", get_size, c"Number of elements."),
        attribute(c"ndim", get_ndim, c"1"),
        attribute(c"itemsize", get_itemsize, c"Bytes an element."),
        attribute(c"nbytes", get_nbytes, c"Bytes in all."),
    ];
    if array {
        list.push(attribute(c"memview", get_memview, c"The same memory as a _memoryviewslice."));
    }
    list.push(ffi::PyGetSetDef {
        name: std::ptr::null::<c_char>(),
        get: None,
        set: None,
        doc: std::ptr::null(),
        closure: null_mut(),
    });
    list
}

// ---- types

fn build(name: &'static CStr, doc: &'static CStr, array: bool) -> R<Owned> {
    let mut slots = [
        slot(ffi::Py_tp_dealloc, free as *mut c_void),
        slot(ffi::Py_tp_repr, repr as *mut c_void),
        slot(ffi::Py_sq_length, length as *mut c_void),
        slot(ffi::Py_sq_item, item as *mut c_void),
        slot(ffi::Py_mp_length, length as *mut c_void),
        slot(ffi::Py_mp_subscript, subscript as *mut c_void),
        slot(ffi::Py_mp_ass_subscript, assign as *mut c_void),
        slot(ffi::Py_bf_getbuffer, getbuffer as *mut c_void),
        slot(
            ffi::Py_tp_methods,
            methods().leak().as_mut_ptr().cast::<c_void>(),
        ),
        slot(
            ffi::Py_tp_getset,
            attributes(array).leak().as_mut_ptr().cast::<c_void>(),
        ),
        slot(ffi::Py_tp_doc, doc.as_ptr().cast_mut().cast()),
        slot(0, null_mut()),
    ];
    let mut spec = ffi::PyType_Spec {
        name: name.as_ptr(),
        basicsize: size_of::<Numbers>() as c_int,
        itemsize: 0,
        flags: (ffi::Py_TPFLAGS_DEFAULT
            | ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION
            | ffi::Py_TPFLAGS_IMMUTABLETYPE
            | if array { 0 } else { ffi::Py_TPFLAGS_BASETYPE }) as u32,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the spec is complete, and a null slot terminates its slots.
    Owned::take(unsafe { ffi::PyType_FromSpec(&raw mut spec) })
}

fn array_type() -> R<*mut ffi::PyTypeObject> {
    cpython::once(&ARRAY, || {
        build(
            c"cuda.bindings.array",
            c"Numbers with a buffer; memview looks at the same memory.",
            true,
        )
    })
}

fn base_type() -> R<*mut ffi::PyTypeObject> {
    cpython::once(&BASE, || {
        let doc = c"A sequence of numbers with a buffer.";
        build(c"cuda.bindings.memoryview", doc, false)
    })
}

fn slice_type() -> R<*mut ffi::PyTypeObject> {
    cpython::once(&SLICE, make_slice_type)
}

fn make_slice_type() -> R<Owned> {
    let doc = c"Numbers, or every n-th of them.";
    let mut slots = [
        slot(ffi::Py_tp_dealloc, free as *mut c_void),
        slot(ffi::Py_tp_doc, doc.as_ptr().cast_mut().cast()),
        slot(0, null_mut()),
    ];
    let mut spec = ffi::PyType_Spec {
        name: c"cuda.bindings._memoryviewslice".as_ptr(),
        basicsize: size_of::<Numbers>() as c_int,
        itemsize: 0,
        flags: (ffi::Py_TPFLAGS_DEFAULT
            | ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION
            | ffi::Py_TPFLAGS_IMMUTABLETYPE) as u32,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the base type is live and immortal; the spec is complete, and a null slot terminates its slots.
    unsafe {
        let bases = tuple([Obj::new(base_type()?.cast()).owned()])?;
        Owned::take(ffi::PyType_FromSpecWithBases(&raw mut spec, bases.ptr()))
    }
}
