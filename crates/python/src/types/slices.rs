//! Number arrays returned by the functions that raise: `_memoryviewslice`, and `array` for a few functions.
//!
//! Both are one-dimensional and typed, and implement the buffer protocol, so that `memoryview(x)` and `numpy.asarray(x)`
//! view the same memory. Neither requires NumPy.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::ffi;

use crate::cpython;
use crate::cpython::Owned;
use crate::cpython::buffer::takes_strides;
use crate::types::convert;
use crate::types::convert::Site;
use crate::types::errors::{ExceptionKind, guard_or, raise, type_name};
use crate::types::object::slot;
use crate::types::table::{Prim, Slice};

fn prim(format: Slice) -> Prim {
    match format {
        Slice::U32 => Prim::U32,
        Slice::U64 | Slice::Ulong => Prim::U64,
        Slice::Address => Prim::I64,
    }
}

fn letter(format: Slice) -> &'static CStr {
    match format {
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

static BASE: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(null_mut());
static SLICE: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(null_mut());
static ARRAY: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(null_mut());

/// A new `_memoryviewslice` with a copy of `bytes`, which hold whole elements: a new reference, or null with an
/// exception.
pub fn new_slice(format: Slice, bytes: &[u8]) -> *mut ffi::PyObject {
    // SAFETY: callers hold the GIL.
    unsafe {
        let ty = slice_type();
        if ty.is_null() {
            return null_mut();
        }
        make(ty, format, bytes)
    }
}

/// A new `array` with a copy of `bytes`, which hold whole elements: a new reference, or null with an exception.
pub fn new_array(format: Slice, bytes: &[u8]) -> *mut ffi::PyObject {
    // SAFETY: callers hold the GIL.
    unsafe {
        let ty = array_type();
        if ty.is_null() {
            return null_mut();
        }
        make(ty, format, bytes)
    }
}

/// Address and number of the elements of an `array` of 64-bit words. None for other objects.
///
/// # Safety
/// `obj` is a live object.
pub unsafe fn words(obj: *mut ffi::PyObject) -> Option<(*mut u8, usize)> {
    // SAFETY: as promised by the caller; the check leaves only instances of `array`, which are `Numbers`.
    unsafe {
        let ty = ffi::Py_TYPE(obj);
        if !std::ptr::eq(ty, ARRAY.load(Ordering::Acquire)) {
            return None;
        }
        let this = obj.cast::<Numbers>();
        Some(((*this).data, (*this).count as usize))
    }
}

unsafe fn make(ty: *mut ffi::PyTypeObject, format: Slice, bytes: &[u8]) -> *mut ffi::PyObject {
    let size = prim(format).size();
    let mut words = vec![0u64; bytes.len().div_ceil(8).max(1)].into_boxed_slice();
    // SAFETY: the callers pass a type whose instances are `Numbers`; `words` has room for `bytes`, and the object takes
    // ownership of `words`.
    unsafe {
        let obj = ffi::PyType_GenericAlloc(ty, 0).cast::<Numbers>();
        if obj.is_null() {
            return null_mut();
        }
        let data = words.as_mut_ptr().cast::<u8>();
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), data, bytes.len());
        (*obj).own = words.len();
        (*obj).data = Box::into_raw(words).cast();
        (*obj).count = (bytes.len() / size) as isize;
        (*obj).stride = size as isize;
        (*obj).format = format;
        obj.cast()
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

/// Address of element `i`; null with `IndexError` if out of range.
unsafe fn place(this: *mut Numbers, mut i: isize) -> *mut u8 {
    // SAFETY: the callers pass an instance; the bounds check leaves an index of an existing element.
    unsafe {
        if i < 0 {
            i += (*this).count;
        }
        if i < 0 || i >= (*this).count {
            raise(
                ExceptionKind::Index,
                "Out of bounds on buffer access (axis 0)",
            );
            return null_mut();
        }
        (*this).data.offset(i * (*this).stride)
    }
}

unsafe fn value(this: *mut Numbers, at: *const u8) -> *mut ffi::PyObject {
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
    guard_or(null_mut(), || {
        // SAFETY: the interpreter passes an instance.
        unsafe {
            // The interpreter has already added the length to a negative index, so this one is out of range.
            let at = if i < 0 {
                place(obj.cast(), isize::MIN / 2)
            } else {
                place(obj.cast(), i)
            };
            if at.is_null() {
                return null_mut();
            }
            value(obj.cast(), at)
        }
    })
}

/// The elements selected by a slice object: first index, step and number. None with an exception.
///
/// # Safety
/// `key` is a slice; the GIL is held.
pub unsafe fn selected(key: *mut ffi::PyObject, len: isize) -> Option<(isize, isize, isize)> {
    let (mut start, mut stop, mut step) = (0, 0, 0);
    // SAFETY: as promised by the caller.
    unsafe {
        if ffi::PySlice_Unpack(key, &mut start, &mut stop, &mut step) < 0 {
            return None;
        }
        let count = ffi::PySlice_AdjustIndices(len, &mut start, &mut stop, step);
        Some((start, step, count))
    }
}

unsafe extern "C" fn subscript(
    obj: *mut ffi::PyObject,
    key: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard_or(null_mut(), || {
        // SAFETY: the interpreter passes an instance; a part holds a reference to the owner of its memory.
        unsafe {
            let this = obj.cast::<Numbers>();
            if ffi::Py_TYPE(key) == &raw mut ffi::PySlice_Type {
                let Some((start, step, count)) = selected(key, (*this).count) else {
                    return null_mut();
                };
                let ty = slice_type();
                if ty.is_null() {
                    return null_mut();
                }
                let part = ffi::PyType_GenericAlloc(ty, 0).cast::<Numbers>();
                if part.is_null() {
                    return null_mut();
                }
                let root = if (*this).root.is_null() {
                    obj
                } else {
                    (*this).root
                };
                ffi::Py_INCREF(root);
                (*part).root = root;
                (*part).format = (*this).format;
                (*part).count = count;
                (*part).stride = (*this).stride.wrapping_mul(step);
                (*part).data = (*this)
                    .data
                    .wrapping_offset(start.wrapping_mul((*this).stride));
                return part.cast();
            }
            let Some(i) = index_of(obj, key) else {
                return null_mut();
            };
            let at = place(this, i);
            if at.is_null() {
                return null_mut();
            }
            value(this, at)
        }
    })
}

unsafe fn index_of(obj: *mut ffi::PyObject, key: *mut ffi::PyObject) -> Option<isize> {
    // SAFETY: the callers pass live objects and hold the GIL.
    unsafe {
        if ffi::PyIndex_Check(key) == 0 {
            raise(
                ExceptionKind::Type,
                &format!(
                    "{} indices must be integers or slices, not {}",
                    type_name(obj),
                    type_name(key)
                ),
            );
            return None;
        }
        let i = ffi::PyNumber_AsSsize_t(key, ffi::PyExc_IndexError);
        if i == -1 && !ffi::PyErr_Occurred().is_null() {
            return None;
        }
        Some(i)
    }
}

unsafe extern "C" fn assign(
    obj: *mut ffi::PyObject,
    key: *mut ffi::PyObject,
    new: *mut ffi::PyObject,
) -> c_int {
    guard_or(-1, || {
        // SAFETY: the interpreter passes an instance.
        unsafe {
            let this = obj.cast::<Numbers>();
            let site = Site {
                ty: ffi::Py_TYPE(obj),
                attr: "[]",
            };
            if new.is_null() {
                site.fail(ExceptionKind::Type, "elements cannot be deleted");
                return -1;
            }
            let kind = prim((*this).format);
            if ffi::Py_TYPE(key) == &raw mut ffi::PySlice_Type {
                let Some((start, step, count)) = selected(key, (*this).count) else {
                    return -1;
                };
                return match assign_part(this, (start, step, count), new, &site) {
                    Some(()) => 0,
                    None => -1,
                };
            }
            let Some(i) = index_of(obj, key) else {
                return -1;
            };
            let at = place(this, i);
            if at.is_null() {
                return -1;
            }
            // Convert before writing: the conversion may run Python code.
            match convert::ranged(new, kind, &site) {
                Some(v) => {
                    std::ptr::copy_nonoverlapping(v.to_le_bytes().as_ptr(), at, kind.size());
                    0
                }
                None => -1,
            }
        }
    })
}

/// Assigns one number to all selected elements, or a sequence with one number for each.
unsafe fn assign_part(
    this: *mut Numbers,
    (start, step, count): (isize, isize, isize),
    new: *mut ffi::PyObject,
    site: &Site,
) -> Option<()> {
    // SAFETY: `selected` limits the indexes to existing elements; every value is converted before the first is written.
    unsafe {
        let kind = prim((*this).format);
        let mut values = Vec::new();
        if ffi::PySequence_Check(new) != 0 {
            let items = convert::sequence(new, site)?;
            let given = ffi::PyTuple_Size(items);
            let mut fine = given == count;
            if !fine {
                site.fail(
                    ExceptionKind::Value,
                    &format!("{count} values are needed, not {given}"),
                );
            }
            for i in 0..if fine { count } else { 0 } {
                match convert::ranged(ffi::PyTuple_GetItem(items, i), kind, site) {
                    Some(v) => values.push(v),
                    None => {
                        fine = false;
                        break;
                    }
                }
            }
            ffi::Py_DECREF(items);
            if !fine {
                return None;
            }
        } else {
            values = vec![convert::ranged(new, kind, site)?; count as usize];
        }
        for (i, v) in values.iter().enumerate() {
            let at = (*this)
                .data
                .offset((start + i as isize * step) * (*this).stride);
            std::ptr::copy_nonoverlapping(v.to_le_bytes().as_ptr(), at, kind.size());
        }
    }
    Some(())
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
        let size = prim((*this).format).size() as isize;
        let contiguous = (*this).stride == size || (*this).count < 2;
        if !contiguous && !takes_strides(flags) {
            (*buffer).obj = null_mut();
            ffi::PyErr_SetString(
                ffi::PyExc_BufferError,
                c"the elements do not follow each other; ask for strides, or copy() first".as_ptr(),
            );
            return -1;
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
    guard_or(null_mut(), || {
        // SAFETY: the interpreter passes an instance.
        unsafe {
            let this = obj.cast::<Numbers>();
            let shown = (*this).count.min(16);
            let mut parts = Vec::new();
            for i in 0..shown {
                let v = value(this, (*this).data.offset(i * (*this).stride));
                if v.is_null() {
                    return null_mut();
                }
                parts.push(crate::types::errors::to_string(v));
                ffi::Py_DECREF(v);
            }
            if (*this).count > shown {
                parts.push(format!("... {} in all", (*this).count));
            }
            let text = format!("<{} [{}]>", type_name(obj), parts.join(", "));
            ffi::PyUnicode_FromStringAndSize(text.as_ptr().cast(), text.len() as isize)
        }
    })
}

// ---- attributes and methods

unsafe fn one_tuple(n: isize) -> *mut ffi::PyObject {
    // SAFETY: the callers hold the GIL; PyTuple_SetItem steals the reference.
    unsafe {
        let number = ffi::PyLong_FromSsize_t(n);
        let tuple = ffi::PyTuple_New(1);
        if number.is_null() || tuple.is_null() {
            ffi::Py_XDECREF(number);
            ffi::Py_XDECREF(tuple);
            return null_mut();
        }
        ffi::PyTuple_SetItem(tuple, 0, number);
        tuple
    }
}

macro_rules! number {
    ($name:ident, |$this:ident| $value:expr) => {
        unsafe extern "C" fn $name(obj: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
            // SAFETY: the interpreter passes an instance.
            unsafe {
                let $this = obj.cast::<Numbers>();
                $value
            }
        }
    };
}

number!(get_shape, |this| one_tuple((*this).count));
number!(get_strides, |this| one_tuple((*this).stride));
number!(get_suboffsets, |_this| one_tuple(-1));
number!(get_size, |this| ffi::PyLong_FromSsize_t((*this).count));
number!(get_ndim, |_this| ffi::PyLong_FromLong(1));
number!(get_itemsize, |this| ffi::PyLong_FromSize_t(
    prim((*this).format).size()
));
number!(get_nbytes, |this| ffi::PyLong_FromSsize_t(
    (*this).count * prim((*this).format).size() as isize
));

unsafe extern "C" fn get_self(obj: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: the interpreter passes an instance.
    unsafe { ffi::Py_INCREF(obj) };
    obj
}

unsafe extern "C" fn get_base(obj: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: the interpreter passes an instance.
    unsafe {
        let root = (*obj.cast::<Numbers>()).root;
        let base = if root.is_null() { obj } else { root };
        ffi::Py_INCREF(base);
        base
    }
}

/// `array.memview`: a `_memoryviewslice` of the same memory.
unsafe extern "C" fn get_memview(obj: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: the interpreter passes an instance; the slice selects all elements.
    unsafe {
        let all = ffi::PySlice_New(null_mut(), null_mut(), null_mut());
        if all.is_null() {
            return null_mut();
        }
        let part = subscript(obj, all);
        ffi::Py_DECREF(all);
        part
    }
}

unsafe extern "C" fn copy(obj: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard_or(null_mut(), || {
        // SAFETY: the interpreter passes an instance, whose elements 0 to count - 1 exist.
        unsafe {
            let this = obj.cast::<Numbers>();
            let size = prim((*this).format).size();
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
    unsafe {
        let this = obj.cast::<Numbers>();
        let size = prim((*this).format).size() as isize;
        ffi::PyBool_FromLong(((*this).stride == size || (*this).count < 2).into())
    }
}

unsafe extern "C" fn count_of(
    obj: *mut ffi::PyObject,
    what: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter passes an instance, which is a sequence.
    unsafe {
        match ffi::PySequence_Count(obj, what) {
            -1 => null_mut(),
            n => ffi::PyLong_FromSsize_t(n),
        }
    }
}

unsafe extern "C" fn first_of(
    obj: *mut ffi::PyObject,
    what: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter passes an instance, which is a sequence.
    unsafe {
        match ffi::PySequence_Index(obj, what) {
            -1 => null_mut(),
            n => ffi::PyLong_FromSsize_t(n),
        }
    }
}

/// Refuses pickling.
unsafe extern "C" fn reduce(obj: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard_or(null_mut(), || {
        // SAFETY: the interpreter passes an instance.
        let name = unsafe { type_name(obj) };
        raise(
            ExceptionKind::Type,
            &format!("cannot pickle a {name}; use tolist() or copy()"),
        );
        null_mut()
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

fn settle(
    place: &AtomicPtr<ffi::PyTypeObject>,
    ty: *mut ffi::PyTypeObject,
) -> *mut ffi::PyTypeObject {
    Owned::take(ty.cast()).map_or(null_mut(), |made| cpython::publish(place, made))
}

unsafe fn build(name: &'static CStr, doc: &'static CStr, array: bool) -> *mut ffi::PyTypeObject {
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
    // SAFETY: the callers hold the GIL; the spec is complete, and a null slot terminates its slots.
    unsafe { ffi::PyType_FromSpec(&mut spec).cast() }
}

unsafe fn array_type() -> *mut ffi::PyTypeObject {
    let known = ARRAY.load(Ordering::Acquire);
    if !known.is_null() {
        return known;
    }
    // SAFETY: the callers hold the GIL.
    unsafe {
        let ty = build(
            c"cuda.bindings.array",
            c"Numbers with a buffer; memview looks at the same memory.",
            true,
        );
        settle(&ARRAY, ty)
    }
}

unsafe fn slice_type() -> *mut ffi::PyTypeObject {
    let known = SLICE.load(Ordering::Acquire);
    if !known.is_null() {
        return known;
    }
    // SAFETY: the callers hold the GIL; PyTuple_SetItem steals the reference.
    unsafe {
        let mut base = BASE.load(Ordering::Acquire);
        if base.is_null() {
            let doc = c"A sequence of numbers with a buffer.";
            base = settle(&BASE, build(c"cuda.bindings.memoryview", doc, false));
        }
        if base.is_null() {
            return base;
        }
        let mut slots = [
            slot(ffi::Py_tp_dealloc, free as *mut c_void),
            slot(
                ffi::Py_tp_doc,
                c"Numbers, or every n-th of them."
                    .as_ptr()
                    .cast_mut()
                    .cast(),
            ),
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
        let bases = ffi::PyTuple_New(1);
        if bases.is_null() {
            return null_mut();
        }
        ffi::Py_INCREF(base.cast());
        ffi::PyTuple_SetItem(bases, 0, base.cast());
        let ty = ffi::PyType_FromSpecWithBases(&mut spec, bases);
        ffi::Py_DECREF(bases);
        settle(&SLICE, ty.cast())
    }
}
