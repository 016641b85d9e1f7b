//! Buffer protocol of struct objects: `memoryview(x)`, `bytes(x)`, `numpy.asarray(x)`.
//!
//! A single-struct class exports its bytes. A struct-array class exports structs with a format string that NumPy
//! understands, or rows of bytes for unions, whose overlapping members such a string cannot describe.

use std::ffi::{CString, c_char, c_int};
use std::fmt::Write;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::ffi;

use crate::cpython::buffer::{refuse, takes_strides};
use crate::cpython::errors::guard_or;
use crate::cpython::{Obj, Raised, c_string};
use crate::types::buffer_structs::instance;
use crate::types::buffer_structs::instance::BufferStruct;
use crate::types::table;
use crate::types::table::{CLASS_COUNT, ClassId, FieldKind, Prim};

/// `bf_getbuffer`
///
/// # Safety
/// Called by the interpreter.
pub unsafe extern "C" fn get(
    obj: *mut ffi::PyObject,
    buffer: *mut ffi::Py_buffer,
    flags: c_int,
) -> c_int {
    guard_or(-1, || {
        // SAFETY: the interpreter calls this slot with an instance and a buffer to fill.
        unsafe { fill(obj.cast(), buffer, flags) }
    })
}

unsafe fn fill(this: *mut BufferStruct, buffer: *mut ffi::Py_buffer, flags: c_int) -> c_int {
    // SAFETY: the caller passes a live buffer struct and a writable buffer; `release` frees shape and strides.
    unsafe {
        let obj = this.cast::<ffi::PyObject>();
        (*buffer).obj = null_mut();
        let name = || Obj::new(obj).type_short_name();
        if (*this).readonly && flags & ffi::PyBUF_WRITABLE != 0 {
            return refuse(buffer, &format!("this {} is read-only", name()));
        }
        if !(*this).contiguous() && !takes_strides(flags) {
            let text = format!("the structs of this {} do not follow each other", name());
            return refuse(buffer, &text);
        }
        if let Err(Raised) = instance::present(this) {
            return -1;
        }
        let (size, count) = ((*this).size() as isize, (*this).count as isize);
        let structured = if (*this).array {
            format_of((*this).id())
        } else {
            null_mut()
        };
        // Structs; rows of bytes if members overlap; the bytes of a single struct.
        let (format, ndim, item, dims) = if !structured.is_null() {
            let dims = [[count, 0], [(*this).stride, 0]];
            (structured, 1, size, dims)
        } else if (*this).array {
            let dims = [[count, size], [(*this).stride, 1]];
            (c"B".as_ptr().cast_mut(), 2, 1, dims)
        } else {
            (c"b".as_ptr().cast_mut(), 1, 1, [[size, 0], [1, 0]])
        };
        // Shape and strides must live as long as the buffer.
        let dims = Box::into_raw(Box::new(dims)).cast::<[isize; 2]>();
        (*buffer).buf = (*this).base.data.cast();
        (*buffer).len = size * count;
        (*buffer).itemsize = item;
        (*buffer).readonly = (*this).readonly.into();
        (*buffer).ndim = ndim;
        (*buffer).format = null_mut();
        (*buffer).shape = null_mut();
        (*buffer).strides = null_mut();
        if flags & ffi::PyBUF_FORMAT != 0 {
            (*buffer).format = format;
        }
        if flags & ffi::PyBUF_ND != 0 {
            (*buffer).shape = dims.cast();
        } else {
            (*buffer).ndim = 1;
        }
        if flags & ffi::PyBUF_STRIDES == ffi::PyBUF_STRIDES {
            (*buffer).strides = dims.add(1).cast();
        }
        (*buffer).suboffsets = null_mut();
        (*buffer).internal = dims.cast();
        ffi::Py_INCREF(obj);
        (*buffer).obj = obj;
        0
    }
}

/// `bf_releasebuffer`
///
/// # Safety
/// Called by the interpreter.
pub unsafe extern "C" fn release(_: *mut ffi::PyObject, buffer: *mut ffi::Py_buffer) {
    // SAFETY: the interpreter passes a buffer that `fill` filled; `internal` is null or from `Box::into_raw`.
    unsafe {
        let dims = std::mem::replace(&mut (*buffer).internal, null_mut());
        if !dims.is_null() {
            drop(Box::from_raw(dims.cast::<[[isize; 2]; 2]>()));
        }
    }
}

static FORMATS: [AtomicPtr<c_char>; CLASS_COUNT] =
    [const { AtomicPtr::new(null_mut()) }; CLASS_COUNT];

/// Cached format string of a class; null if members overlap.
fn format_of(id: ClassId) -> *mut c_char {
    let place = &FORMATS[id.0 as usize];
    let known = place.load(Ordering::Acquire);
    if !known.is_null() {
        return known;
    }
    let mut text = String::new();
    if !write_format(id, &mut text) {
        return null_mut();
    }
    let made = c_string(&text).into_raw();
    match place.compare_exchange(null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => made,
        Err(winner) => {
            // SAFETY: another thread published its string first; this one is from `into_raw` and unshared.
            drop(unsafe { CString::from_raw(made) });
            winner
        }
    }
}

fn write_format(id: ClassId, out: &mut String) -> bool {
    let class = table::class(id).1;
    let mut pos = 0;
    out.push_str("T{");
    for field in class.fields {
        let at = field.offset as usize;
        if at < pos {
            return false;
        }
        out.extend(std::iter::repeat_n('x', at - pos));
        pos = at + table::width(field.kind);
        let mut numbers = |prim: Prim, len: u32| {
            if len != 0 {
                let _ = write!(out, "({len})");
            }
            out.push(prim.letter());
            true
        };
        let fine = match field.kind {
            FieldKind::Int(p) | FieldKind::Long(p) | FieldKind::Float(p) => numbers(p, 0),
            FieldKind::Hidden(p, n) | FieldKind::Fixed(p, n) | FieldKind::Counted(p, n, _) => {
                numbers(p, n)
            }
            FieldKind::Str(n) | FieldKind::Bytes(n) => numbers(Prim::I8, n),
            FieldKind::BufferStruct(inner) | FieldKind::HiddenStruct(inner) => {
                write_format(inner, out)
            }
            FieldKind::BufferStructs(inner, n, _) | FieldKind::Records(inner, n) => {
                if n != 0 {
                    let _ = write!(out, "({n})");
                }
                write_format(inner, out)
            }
            _ => numbers(Prim::I64, 0),
        };
        if !fine {
            return false;
        }
        let _ = write!(out, ":{}:", table::text(field.name));
    }
    let end = class.size as usize;
    out.extend(std::iter::repeat_n('x', end.saturating_sub(pos)));
    out.push('}');
    true
}
