//! `from_data`, `from_buffer`, `from_ptr`: objects that view external memory.

use std::ffi::CStr;

use cupyrite_sys::checked;
use pyo3::ffi;

use crate::cpython::errors::{ExceptionKind, guard, raise};
use crate::cpython::{Obj, Owned, R, Raised, short_name};
use crate::types::buffer_structs::instance;
use crate::types::class_type;
use crate::types::convert;
use crate::types::convert::AttributeSite;
use crate::types::numpy;
use crate::types::numpy::attribute;
use crate::types::object;
use crate::types::table;
use crate::types::table::{ARRAY, ClassId, Prim};

type Method = unsafe extern "C" fn(
    *mut ffi::PyObject,
    *mut ffi::PyObject,
    *mut ffi::PyObject,
) -> *mut ffi::PyObject;

/// The methods of a class.
pub fn methods(array: bool) -> Vec<ffi::PyMethodDef> {
    let method = |name: &'static CStr, function: Method, doc: &'static CStr| ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunctionWithKeywords: function,
        },
        ml_flags: ffi::METH_CLASS | ffi::METH_VARARGS | ffi::METH_KEYWORDS,
        ml_doc: doc.as_ptr(),
    };
    vec![
        method(
            c"from_data",
            from_data,
            c"from_data($type, /, data)\n--\n\nAn object that looks at the memory of a NumPy array of this class's dtype, and keeps it alive.",
        ),
        method(
            c"from_buffer",
            from_buffer,
            c"from_buffer($type, /, buffer)\n--\n\nAn object that looks at the memory of a bytes-like object, and keeps it alive.\n\nIts length must be that of the struct (or of whole structs); a read-only buffer makes a read-only object.",
        ),
        if array {
            method(
                c"from_ptr",
                from_ptr,
                c"from_ptr($type, /, ptr, size=1, readonly=False, owner=None)\n--\n\nAn object that looks at `size` structs at address `ptr`, and keeps `owner` alive.",
            )
        } else {
            method(
                c"from_ptr",
                from_ptr,
                c"from_ptr($type, /, ptr, readonly=False, owner=None)\n--\n\nA copy of the struct at address `ptr`; with an `owner`, an object that looks at it and keeps `owner` alive.",
            )
        },
    ]
}

/// Arguments of a class method: the class on which it was called, the required first argument, and all arguments.
type Given<'a, const N: usize> = (ClassId, Obj<'a>, [Option<Obj<'a>>; N]);

unsafe fn given<'a, const N: usize>(
    ty: *mut ffi::PyObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
    method: &str,
    names: [&CStr; N],
) -> R<Given<'a, N>> {
    // SAFETY: the interpreter passes the type whose class method this is or a subtype, a tuple, and a dict or null.
    unsafe {
        let id = class_type::class_of_type(ty.cast())?;
        let what = format!("{}.{method}", short_name(ty.cast()));
        let values = class_type::arguments_of(&what, args, kwargs, names)?;
        match values[0] {
            Some(first) => Ok((id, first, values)),
            None => {
                let name = names[0].to_string_lossy();
                let text = format!("{what}() needs the argument '{name}'");
                Err(raise(ExceptionKind::Type, &text))
            }
        }
    }
}

fn is_array(id: ClassId) -> bool {
    table::class(id).1.flags & ARRAY != 0
}

fn value_error(text: &str) -> Raised {
    raise(ExceptionKind::Value, text)
}

// ---- from_data

unsafe extern "C" fn from_data(
    ty: *mut ffi::PyObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: the interpreter passes a struct class, a tuple, and a dict or null.
        unsafe {
            given(ty, args, kwargs, "from_data", [c"data"])
                .and_then(|(id, data, _)| at_array(id, data))
        }
    })
}

/// An object of the class that views the memory of a NumPy array.
unsafe fn at_array(id: ClassId, data: Obj<'_>) -> R<Owned> {
    // SAFETY: an `Obj` is live; the new object owns a reference to the array.
    unsafe {
        let is_array_object = match numpy::loaded()? {
            None => false,
            Some(module) => {
                let class = attribute(module, c"ndarray")?;
                ffi::PyObject_IsInstance(data.ptr(), class.ptr()) == 1
            }
        };
        if !is_array_object {
            ffi::PyErr_Clear();
            return Err(raise(
                ExceptionKind::Type,
                &format!(
                    "data argument must be a NumPy ndarray, not {}",
                    data.type_name()
                ),
            ));
        }
        let same = ffi::PyObject_RichCompareBool(
            attribute(data, c"dtype")?.ptr(),
            numpy::dtype(id)?.ptr(),
            ffi::Py_EQ,
        );
        match same {
            1 => {}
            0 => {
                let text = format!("data array must be of dtype {}", numpy::dtype_name(id));
                return Err(value_error(&text));
            }
            _ => return Err(Raised),
        }
        let shape = dims(&attribute(data, c"shape")?)?;
        let strides = dims(&attribute(data, c"strides")?)?;
        let count: isize = shape.iter().product();
        if !is_array(id) && count != 1 {
            return Err(value_error("data array must have a size of 1"));
        }
        if is_array(id) && shape.len() != 1 {
            return Err(value_error("data array must be 1D"));
        }
        let (address, readonly) = interface(data)?;
        let (made, instance) = instance::bare(id, count as usize)?;
        (*instance).base.data = address as *mut u8;
        (*instance).readonly = readonly;
        (*instance).keeper = data.owned().into_ptr();
        if is_array(id) && count > 1 {
            (*instance).stride = strides[0];
        }
        Ok(made)
    }
}

/// Converts a tuple of ints.
unsafe fn dims(tuple: &Owned) -> R<Vec<isize>> {
    let items = tuple.obj().snapshot()?;
    let mut out = Vec::with_capacity(items.len());
    for i in 0..items.len() {
        // SAFETY: the snapshot owns the item.
        let n = unsafe { ffi::PyLong_AsSsize_t(items.get(i).ptr()) };
        if n == -1 && crate::cpython::raised() {
            return Err(Raised);
        }
        out.push(n);
    }
    Ok(out)
}

/// Address and read-only flag of an array, from `__array_interface__`: NumPy exports no buffer for dtypes with overlapping
/// members.
unsafe fn interface(data: Obj<'_>) -> R<(usize, bool)> {
    // SAFETY: an `Obj` is live; items are borrowed from the dictionary and the tuple, which `interface` keeps alive.
    unsafe {
        let interface = attribute(data, c"__array_interface__")?;
        let pair = ffi::PyDict_GetItemString(interface.ptr(), c"data".as_ptr());
        if pair.is_null() || ffi::PyTuple_Check(pair) == 0 || ffi::PyTuple_Size(pair) != 2 {
            return Err(value_error("the array does not tell where its data is"));
        }
        let address = ffi::PyLong_AsUnsignedLongLong(ffi::PyTuple_GetItem(pair, 0));
        let readonly = ffi::PyObject_IsTrue(ffi::PyTuple_GetItem(pair, 1));
        if crate::cpython::raised() {
            return Err(Raised);
        }
        Ok((address as usize, readonly != 0))
    }
}

/// Wraps a result of indexing `_data`: an array of the class's dtype becomes an object of the class, other objects are
/// returned unchanged.
///
/// # Errors
/// `ValueError` for structs in more than one dimension.
///
/// # Safety
/// The GIL is held.
pub unsafe fn wrapped(id: ClassId, found: Owned) -> R<Owned> {
    // SAFETY: `found` owns a live object; the caller holds the GIL.
    unsafe {
        let class = attribute(numpy::module()?, c"ndarray")?;
        if ffi::PyObject_IsInstance(found.ptr(), class.ptr()) != 1 {
            return Ok(found);
        }
        let same = ffi::PyObject_RichCompareBool(
            attribute(found.obj(), c"dtype")?.ptr(),
            numpy::dtype(id)?.ptr(),
            ffi::Py_EQ,
        );
        match same {
            1 => at_array(id, found.obj()),
            0 => Ok(found),
            _ => Err(Raised),
        }
    }
}

// ---- from_buffer

unsafe extern "C" fn from_buffer(
    ty: *mut ffi::PyObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: the interpreter passes a struct class, a tuple, and a dict or null.
        unsafe {
            given(ty, args, kwargs, "from_buffer", [c"buffer"])
                .and_then(|(id, buffer, _)| at_buffer(id, buffer))
        }
    })
}

unsafe fn at_buffer(id: ClassId, buffer: Obj<'_>) -> R<Owned> {
    // SAFETY: an `Obj` is live; the new object releases the buffer on deallocation, also on error.
    unsafe {
        if !buffer.has_buffer() {
            let text = format!(
                "a bytes-like object is required, not '{}'",
                buffer.type_name()
            );
            return Err(raise(ExceptionKind::Type, &text));
        }
        let (made, instance) = instance::bare(id, 1)?;
        // Boxed because exporters may keep pointers into the view.
        let mut view = Box::new(ffi::Py_buffer::new());
        if ffi::PyObject_GetBuffer(buffer.ptr(), &raw mut *view, ffi::PyBUF_WRITABLE) != 0 {
            if ffi::PyErr_ExceptionMatches(ffi::PyExc_BufferError) == 0
                && ffi::PyErr_ExceptionMatches(ffi::PyExc_ValueError) == 0
            {
                return Err(Raised);
            }
            ffi::PyErr_Clear();
            *view = ffi::Py_buffer::new();
            if ffi::PyObject_GetBuffer(buffer.ptr(), &raw mut *view, ffi::PyBUF_SIMPLE) != 0 {
                return Err(Raised);
            }
        }
        let (data, len, readonly) = (view.buf, view.len as usize, view.readonly != 0);
        (*instance).buffer = Box::into_raw(view);
        (*instance).base.data = data.cast();
        (*instance).readonly = readonly;
        let size = (*instance).size();
        if !is_array(id) && len != size {
            let text = format!("buffer length must be {size} bytes, is {len}");
            return Err(value_error(&text));
        }
        if !len.is_multiple_of(size) {
            let text =
                format!("buffer size must be a multiple of element size: {len} bytes, {size} each");
            return Err(value_error(&text));
        }
        (*instance).count = len / size;
        Ok(made)
    }
}

// ---- from_ptr

unsafe extern "C" fn from_ptr(
    ty: *mut ffi::PyObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: the interpreter passes a struct class, a tuple, and a dict or null.
        unsafe { at_address(ty, args, kwargs) }
    })
}

unsafe fn at_address(
    ty: *mut ffi::PyObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> R<Owned> {
    // SAFETY: the interpreter passes a struct class, a tuple, and a dict or null; foreign memory is only accessed through
    // checked copies.
    unsafe {
        let id = class_type::class_of_type(ty.cast())?;
        let (ptr, size, readonly, owner) = if is_array(id) {
            let names = [c"ptr", c"size", c"readonly", c"owner"];
            let (_, ptr, [_, size, readonly, owner]) = given(ty, args, kwargs, "from_ptr", names)?;
            (ptr, size, readonly, owner)
        } else {
            let names = [c"ptr", c"readonly", c"owner"];
            let (_, ptr, [_, readonly, owner]) = given(ty, args, kwargs, "from_ptr", names)?;
            (ptr, None, readonly, owner)
        };
        let site = AttributeSite {
            ty: ty.cast(),
            attr: "from_ptr(): ptr",
        };
        if ffi::PyIndex_Check(ptr.ptr()) == 0 {
            return Err(site.type_error("an int", ptr));
        }
        let address = convert::ranged(ptr, Prim::U64, &site)? as usize;
        if address == 0 {
            return Err(value_error("ptr must not be null (0)"));
        }
        let what = || format!("{}.from_ptr(): size", short_name(ty.cast()));
        let count = match size {
            Some(size) => instance::count_of(size, &what)?,
            None => 1,
        };
        let readonly = match readonly.map(|truth| ffi::PyObject_IsTrue(truth.ptr())) {
            Some(-1) => return Err(Raised),
            truth => truth == Some(1),
        };
        let bytes = (table::class(id).1.size as usize).saturating_mul(count);
        if !checked::is_readable(address as u64, bytes) {
            let text = format!("ptr: the {bytes} bytes at {address:#x} are not readable memory");
            return Err(value_error(&text));
        }
        let owner = owner.filter(|owner| !owner.is_none());
        let copy = owner.is_none() && !is_array(id);
        let (object, instance) = if copy {
            instance::fresh(id, 1)?
        } else {
            instance::bare(id, count)?
        };
        if copy {
            let target = std::slice::from_raw_parts_mut((*instance).base.data, bytes);
            if checked::read_bytes(address as u64, target).is_err() {
                return Err(value_error("ptr: the memory is not mapped any more"));
            }
        } else {
            (*instance).base.data = address as *mut u8;
            (*instance).base.state = object::FOREIGN;
            if let Some(owner) = owner {
                (*instance).keeper = owner.owned().into_ptr();
            }
        }
        (*instance).readonly = readonly;
        Ok(object)
    }
}
