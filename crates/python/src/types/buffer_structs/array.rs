//! Sequence protocol of struct arrays: `len(x)`, `x[i]`, `x[a:b]`, `x["pid"]`, and assignment through them.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use pyo3::ffi;

use crate::cpython::errors::{ExceptionKind, guard, guard_status, raise};
use crate::cpython::{Buffer, Obj, Owned, R, Raised};
use crate::types::buffer_structs::instance;
use crate::types::buffer_structs::instance::{BufferStruct, OwnedStruct};
use crate::types::buffer_structs::{columns, from_memory};
use crate::types::convert::AttributeSite;
use crate::types::numpy;
use crate::types::numpy::Item;
use crate::types::object::slot;
use crate::types::slices::{is_slice, selected};
use crate::types::table;
use crate::types::table::Field;

/// Slots of the sequence protocol.
pub fn slots() -> Vec<ffi::PyType_Slot> {
    vec![
        slot(ffi::Py_sq_length, length as *mut c_void),
        slot(ffi::Py_sq_item, item as *mut c_void),
        slot(ffi::Py_mp_length, length as *mut c_void),
        slot(ffi::Py_mp_subscript, subscript as *mut c_void),
        slot(ffi::Py_mp_ass_subscript, assign as *mut c_void),
    ]
}

/// `_data`: the structs as a record array.
pub fn attribute_data() -> ffi::PyGetSetDef {
    unsafe extern "C" fn get(obj: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
        guard(|| {
            // SAFETY: the descriptor checked that `obj` is an instance.
            unsafe { records(obj.cast()) }
        })
    }
    ffi::PyGetSetDef {
        name: c"_data".as_ptr(),
        get: Some(get),
        set: None,
        doc: c"The structs as a NumPy record array of the same memory.".as_ptr(),
        closure: null_mut(),
    }
}

unsafe fn records(this: *mut BufferStruct) -> R<Owned> {
    // SAFETY: callers pass a live buffer struct and hold the GIL.
    unsafe {
        // Raises if NumPy is missing: there is no substitute for it here.
        numpy::module()?;
        let item = Item::Record((*this).id());
        numpy::of_struct(
            this,
            (*this).base.data,
            item,
            &[((*this).count, (*this).stride)],
        )
    }
}

unsafe extern "C" fn length(obj: *mut ffi::PyObject) -> isize {
    // SAFETY: the interpreter calls this slot with an instance.
    unsafe { (*obj.cast::<BufferStruct>()).count as isize }
}

unsafe fn element(this: *mut BufferStruct, i: isize) -> R<OwnedStruct> {
    // SAFETY: callers pass a live buffer struct; the bounds check keeps the element in its memory.
    unsafe {
        if i < 0 || i as usize >= (*this).count {
            return Err(raise(ExceptionKind::Index, "index is out of bounds"));
        }
        instance::view((*this).id(), this, (*this).at(i as usize), 1)
    }
}

unsafe extern "C" fn item(obj: *mut ffi::PyObject, i: isize) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: the interpreter calls this slot with an instance and has added the length to a negative index.
        unsafe { element(obj.cast(), i) }.map(|(object, _)| object)
    })
}

/// Meaning of a key.
enum Key {
    One(isize),
    Part(isize, isize, isize),
    Field(&'static Field),
    /// NumPy interprets the key.
    Other,
}

unsafe fn key(this: *mut BufferStruct, key: Obj<'_>) -> R<Key> {
    // SAFETY: callers pass a live buffer struct and hold the GIL; an `Obj` is live.
    unsafe {
        if is_slice(key) {
            let (start, step, count) = selected(key, (*this).count as isize)?;
            return Ok(Key::Part(start, step, count));
        }
        if let Some(name) = key.text() {
            let class = table::class((*this).id()).1;
            let field = class.fields.iter().find(|f| table::text(f.name) == name);
            return match field {
                Some(field) => Ok(Key::Field(field)),
                None => {
                    let text = format!("{} has no member {name}", class.name());
                    Err(raise(ExceptionKind::Value, &text))
                }
            };
        }
        // Arrays also have `__index__`, but only 0-d arrays are indices; NumPy handles the others. It treats bool as a mask.
        let scalar = ffi::PySequence_Check(key.ptr()) == 0 || ffi::PySequence_Size(key.ptr()) < 0;
        ffi::PyErr_Clear();
        if scalar && ffi::PyIndex_Check(key.ptr()) != 0 && ffi::PyBool_Check(key.ptr()) == 0 {
            let mut i = ffi::PyNumber_AsSsize_t(key.ptr(), ffi::PyExc_IndexError);
            if i == -1 && crate::cpython::raised() {
                return Err(Raised);
            }
            if i < 0 {
                i += (*this).count as isize;
            }
            return Ok(Key::One(i));
        }
        Ok(Key::Other)
    }
}

unsafe extern "C" fn subscript(
    obj: *mut ffi::PyObject,
    at: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: the interpreter calls this slot with an instance and a key.
        unsafe { get(obj.cast(), Obj::new(at)) }
    })
}

unsafe fn get(this: *mut BufferStruct, at: Obj<'_>) -> R<Owned> {
    // SAFETY: callers pass a live buffer struct; the selected structs lie in its memory.
    unsafe {
        match key(this, at)? {
            Key::One(i) => element(this, i).map(|(object, _)| object),
            Key::Part(start, step, count) => {
                part(this, start, step, count).map(|(object, _)| object)
            }
            Key::Field(field) => columns::column(this, field),
            Key::Other => {
                let records = records(this)?;
                let found = Owned::take(ffi::PyObject_GetItem(records.ptr(), at.ptr()))?;
                from_memory::wrapped((*this).id(), found)
            }
        }
    }
}

unsafe fn part(this: *mut BufferStruct, start: isize, step: isize, count: isize) -> R<OwnedStruct> {
    // SAFETY: callers pass a live buffer struct and a selection within its memory; an empty part accesses no memory.
    unsafe {
        let data = (*this)
            .base
            .data
            .wrapping_offset(start.wrapping_mul((*this).stride));
        let data = if count == 0 { (*this).base.data } else { data };
        let (object, view) = instance::view((*this).id(), this, data, count as usize)?;
        (*view).stride = (*this).stride.wrapping_mul(step);
        Ok((object, view))
    }
}

unsafe extern "C" fn assign(
    obj: *mut ffi::PyObject,
    at: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
) -> c_int {
    guard_status(|| {
        // SAFETY: the interpreter calls this slot with an instance and a key; a null value means `del`.
        unsafe {
            if value.is_null() {
                let text = format!(
                    "elements of a {} cannot be deleted",
                    Obj::new(obj).type_short_name()
                );
                return Err(raise(ExceptionKind::Type, &text));
            }
            set(obj.cast(), Obj::new(at), Obj::new(value))
        }
    })
}

unsafe fn set(this: *mut BufferStruct, at: Obj<'_>, value: Obj<'_>) -> R<()> {
    // SAFETY: callers pass a live buffer struct; the selected structs lie in its memory.
    unsafe {
        instance::writable(this)?;
        let site = AttributeSite {
            ty: ffi::Py_TYPE(this.cast()),
            attr: "[]",
        };
        let target = match key(this, at)? {
            Key::One(i) => Some(element(this, i)?),
            Key::Part(start, step, count) => Some(part(this, start, step, count)?),
            Key::Field(field) if field.settable => {
                return columns::set(this, field, value, &site);
            }
            _ => None,
        };
        if let Some(other) = instance::cast(value) {
            let class = table::class((*this).id()).1.name();
            if (*other).id() != (*this).id() {
                return Err(site.type_error(class, value));
            }
            if let Some(target) = &target {
                return copy_all(target.1, other, &site);
            }
        }
        if value.is_none() || value.is_str() {
            return Err(site.type_error(table::class((*this).id()).1.name(), value));
        }
        // Tuples, numbers, arrays: NumPy converts them to structs.
        let (records, at) = match &target {
            Some(target) => {
                let all = ffi::PySlice_New(null_mut(), null_mut(), null_mut());
                (records(target.1)?, Owned::take(all)?)
            }
            None => (records(this)?, at.owned()),
        };
        match ffi::PyObject_SetItem(records.ptr(), at.ptr(), value.ptr()) {
            0 => Ok(()),
            _ => Err(Raised),
        }
    }
}

/// Copies one struct to all selected ones, or one to each. Both may be parts of the same object.
unsafe fn copy_all(
    target: *mut BufferStruct,
    from: *mut BufferStruct,
    site: &AttributeSite,
) -> R<()> {
    // SAFETY: callers pass live buffer structs of the same class and hold the GIL.
    unsafe {
        let (n, given) = ((*target).count, (*from).count);
        if given != n && given != 1 {
            let text = format!("could not broadcast {given} structs to {n}");
            return Err(site.fail(ExceptionKind::Value, &text));
        }
        let (_object, copy) = instance::copy_of(from)?;
        for i in 0..n {
            let source = (*copy).at(if given == 1 { 0 } else { i });
            instance::copy_struct(target, (*target).at(i), copy, source)?;
        }
    }
    Ok(())
}

// ---- single-struct classes

/// `x[0] = bytes` copies a whole struct, `x["bus"] = 5` sets an attribute.
///
/// # Safety
/// Called by the interpreter.
pub unsafe extern "C" fn assign_single(
    obj: *mut ffi::PyObject,
    at: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
) -> c_int {
    guard_status(|| {
        // SAFETY: the interpreter calls this slot with an instance and a key; a null value means `del`.
        unsafe {
            if value.is_null() {
                let text = format!(
                    "members of a {} cannot be deleted",
                    Obj::new(obj).type_short_name()
                );
                return Err(raise(ExceptionKind::Type, &text));
            }
            set_single(obj.cast(), Obj::new(at), Obj::new(value))
        }
    })
}

unsafe fn set_single(this: *mut BufferStruct, at: Obj<'_>, value: Obj<'_>) -> R<()> {
    // SAFETY: callers pass a live buffer struct and hold the GIL; the buffer view stays open while it is copied.
    unsafe {
        if at.is_str() {
            return match ffi::PyObject_SetAttr(this.cast(), at.ptr(), value.ptr()) {
                0 => Ok(()),
                _ => Err(Raised),
            };
        }
        let name = || Obj::new(this.cast()).type_short_name();
        if ffi::PyIndex_Check(at.ptr()) == 0 {
            let text = format!("{} indices are 0 or names, not {}", name(), at.type_name());
            return Err(raise(ExceptionKind::Type, &text));
        }
        let i = ffi::PyNumber_AsSsize_t(at.ptr(), ffi::PyExc_IndexError);
        if i == -1 && crate::cpython::raised() {
            return Err(Raised);
        }
        if i != 0 {
            return Err(raise(
                ExceptionKind::Index,
                &format!("{} is one struct: its index is 0, not {i}", name()),
            ));
        }
        instance::writable(this)?;
        let id = (*this).id();
        if let Some(from) = instance::cast_to(value, id) {
            return instance::copy_struct(this, (*this).base.data, from, (*from).base.data);
        }
        if !value.has_buffer() {
            let text = format!(
                "a bytes-like object is required, not '{}'",
                value.type_name()
            );
            return Err(raise(ExceptionKind::Type, &text));
        }
        let buffer = Buffer::get(value)?.ok_or(Raised)?;
        let size = (*this).size();
        if buffer.len() != size {
            let text = format!("buffer length must be {size} bytes, is {}", buffer.len());
            return Err(raise(ExceptionKind::Value, &text));
        }
        let bytes = std::slice::from_raw_parts(buffer.address() as *const u8, size).to_vec();
        instance::poke(this, (*this).base.data, &bytes)
    }
}
