//! List attributes: a pointer in C, a list in Python.
//!
//! Assignment creates an array ([`Storage`]), which the struct keeps alive. In most classes the count is a separate
//! attribute and assigned separately, as in NVIDIA's package; in a few, assigning the list sets it. Reading returns copies
//! of the elements. A count larger than the array is refused when the struct is passed to CUDA ([`check_counts`]).

use std::ptr::null_mut;

use pyo3::ffi;

use crate::types::class_type;
use crate::types::convert;
use crate::types::convert::Site;
use crate::types::errors::{ExceptionKind, guard_or, raise};
use crate::types::object;
use crate::types::object::Instance;
use crate::types::structs::elements::{element, element_size, list_of, point};
use crate::types::structs::list_storage;
use crate::types::structs::list_storage::Storage;
use crate::types::table;
use crate::types::table::{ClassId, Count, Elem, Field, FieldKind};
use crate::types::{memory, registry};

/// Maximum size in bytes of a foreign array that is read.
const FOREIGN_LIMIT: usize = 64 << 20;

/// Assigns a list. Returns the number of elements, or None with an exception.
///
/// # Safety
/// `obj` is a struct instance with a pointer at `offset`, `value` a live object; the GIL is held.
pub unsafe fn set(
    obj: *mut Instance,
    offset: usize,
    elem: Elem,
    raw: bool,
    value: *mut ffi::PyObject,
    site: &Site,
) -> Option<usize> {
    // SAFETY: as promised by the caller.
    unsafe {
        let storage = array(elem, raw, value, site)?;
        attach(obj, offset, storage)
    }
}

/// Points a struct to an array and takes ownership of the array; null means no elements. Returns the number of elements.
unsafe fn attach(obj: *mut Instance, offset: usize, storage: *mut Storage) -> Option<usize> {
    // SAFETY: callers pass an instance with a pointer at `offset` and a reference to live storage, or null.
    unsafe {
        if storage.is_null() {
            point(obj, offset, 0, null_mut())?;
            return Some(0);
        }
        let count = (*storage).count;
        point(obj, offset, (*storage).base.data as u64, storage.cast())?;
        Some(count)
    }
}

/// A new array with the elements of `value`; null if empty. None with an exception.
unsafe fn array(
    elem: Elem,
    raw: bool,
    value: *mut ffi::PyObject,
    site: &Site,
) -> Option<*mut Storage> {
    let size = element_size(elem);
    // SAFETY: callers pass a live value and hold the GIL; items are borrowed from an owned tuple, and slices stay within
    // the storage.
    unsafe {
        let plain = ffi::PyList_Check(value) != 0 || ffi::PyTuple_Check(value) != 0;
        if !plain && ffi::PyObject_CheckBuffer(value) != 0 {
            if raw {
                let bytes = convert::with_bytes(value, site, <[u8]>::to_vec)?;
                return from_bytes(elem, &bytes);
            }
            // The bytes of a buffer are not handles, even if its elements are integers.
            let handles = matches!(elem, Elem::Handle(_));
            if handles || ffi::PyBytes_Check(value) != 0 || ffi::PyByteArray_Check(value) != 0 {
                site.wrong("a list or tuple", value);
                return None;
            }
        }
        let items = convert::sequence(value, site)?;
        let count = ffi::PyTuple_Size(items) as usize;
        if count == 0 {
            ffi::Py_DECREF(items);
            return Some(null_mut());
        }
        let storage = list_storage::new_storage(count, size, elem);
        if storage.is_null() {
            ffi::Py_DECREF(items);
            return None;
        }
        for i in 0..count {
            let item = ffi::PyTuple_GetItem(items, i as isize);
            let at = std::slice::from_raw_parts_mut((*storage).base.data.add(i * size), size);
            let done = match elem {
                Elem::Struct(id) => copy_in(id, item, at, storage, i * size, site),
                _ => element(elem, item, at, site),
            };
            if done.is_none() {
                ffi::Py_DECREF(items);
                ffi::Py_DECREF(storage.cast());
                return None;
            }
        }
        ffi::Py_DECREF(items);
        Some(storage)
    }
}

unsafe fn copy_in(
    id: ClassId,
    item: *mut ffi::PyObject,
    at: &mut [u8],
    storage: *mut Storage,
    offset: usize,
    site: &Site,
) -> Option<()> {
    // SAFETY: the item is checked to have the element's C type; callers pass an `at` of its size inside `storage`.
    unsafe {
        let same = registry::of(item).is_some_and(|v| table::root(v) == table::root(id));
        if !same {
            site.wrong(&format!("a list of {}", table::class(id).1.name()), item);
            return None;
        }
        if !object::read(item.cast(), 0, at) {
            return None;
        }
        object::keep_same(storage.cast(), offset, item.cast(), 0, at.len());
    }
    Some(())
}

/// An array from raw memory; an incomplete last element is padded with zeros. Null if empty, None with an exception.
unsafe fn from_bytes(elem: Elem, bytes: &[u8]) -> Option<*mut Storage> {
    let size = element_size(elem);
    let count = bytes.len().div_ceil(size.max(1));
    if count == 0 {
        return Some(null_mut());
    }
    // SAFETY: the storage is at least as long as the bytes.
    unsafe {
        let storage = list_storage::new_storage(count, size, elem);
        if storage.is_null() {
            return None;
        }
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), (*storage).base.data, bytes.len());
        Some(storage)
    }
}

fn shape(kind: FieldKind) -> Option<(Elem, Count)> {
    match kind {
        FieldKind::List(e, c)
        | FieldKind::RawList(e, c)
        | FieldKind::CountedList(e, c)
        | FieldKind::PairedList(e, c) => Some((e, c)),
        _ => None,
    }
}

/// The pointer at `offset` and the [`Storage`] it points to: a new reference, or null if it points elsewhere. None with
/// an exception.
unsafe fn ours(obj: *mut Instance, offset: usize, elem: Elem) -> Option<(u64, *mut Storage)> {
    let mut pointer = [0u8; 8];
    // SAFETY: callers pass an instance with a pointer at `offset` and hold the GIL.
    unsafe {
        if !object::read(obj, offset, &mut pointer) {
            return None;
        }
        let pointer = u64::from_le_bytes(pointer);
        if pointer == 0 {
            return Some((0, null_mut()));
        }
        let held = object::held(obj, offset);
        if !held.is_null() {
            if list_storage::is_storage(held) {
                let storage = held.cast::<Storage>();
                if (*storage).base.data as u64 == pointer && (*storage).elem == elem {
                    return Some((pointer, storage));
                }
            }
            ffi::Py_DECREF(held);
        }
        Some((pointer, null_mut()))
    }
}

unsafe fn count_of(obj: *mut Instance, count: Count) -> Option<u64> {
    let mut bytes = [0u8; 8];
    if count.size == 0 {
        return Some(1);
    }
    // SAFETY: callers pass an instance whose C type has the count as a member.
    unsafe {
        object::read(
            obj,
            count.offset as usize,
            &mut bytes[..count.size as usize],
        )
        .then(|| u64::from_le_bytes(bytes))
    }
}

/// Reads a list attribute: a new list, or null with an exception.
///
/// # Safety
/// `obj` is an instance of a class that has the field; the GIL is held.
pub unsafe fn get(obj: *mut Instance, field: &'static Field) -> *mut ffi::PyObject {
    let Some((elem, count)) = shape(field.kind) else {
        return null_mut();
    };
    let size = element_size(elem);
    // SAFETY: the caller guarantees an instance with the field; storage has `count` elements, and foreign memory is read
    // through the kernel.
    unsafe {
        let Some((pointer, storage)) = ours(obj, field.offset as usize, elem) else {
            return null_mut();
        };
        if !storage.is_null() {
            let n = (*storage).count;
            let data = std::slice::from_raw_parts((*storage).base.data, n * size);
            let list = list_of(elem, data, n, Some(storage));
            ffi::Py_DECREF(storage.cast());
            return list;
        }
        // A foreign array, for example of a struct filled by CUDA. Views of members are not followed: in a union, the bytes
        // of the pointer may belong to another member.
        if pointer != 0 && (*obj).root.is_null() {
            let Some(n) = count_of(obj, count) else {
                return null_mut();
            };
            let bytes = (n as usize)
                .checked_mul(size)
                .filter(|b| *b <= FOREIGN_LIMIT);
            if let Some(bytes) = bytes {
                let mut data = vec![0u8; bytes];
                if memory::read(pointer as usize, &mut data) {
                    return list_of(elem, &data, n as usize, None);
                }
            }
        }
        ffi::PyList_New(0)
    }
}

/// Checks a struct before it is passed to CUDA: every [`Storage`] has at least as many elements as its count says. False
/// with an exception, `ValueError` for a count that is too large.
///
/// # Safety
/// `obj` is a struct instance; the GIL is held.
pub unsafe fn check_counts(obj: *mut Instance) -> bool {
    // SAFETY: as promised by the caller; views of members are created and released here.
    unsafe {
        if !object::holds_any(obj) {
            return true;
        }
        for field in table::fields(ClassId((*obj).id)) {
            if let FieldKind::View(id) = field.kind {
                let ty = registry::type_of(id);
                if ty.is_null() {
                    return false;
                }
                let view = object::view(ty, id, obj, (*obj).data.add(field.offset as usize));
                if view.is_null() {
                    return false;
                }
                let fine = check_counts(view.cast());
                ffi::Py_DECREF(view);
                if !fine {
                    return false;
                }
                continue;
            }
            let Some((elem, count)) = shape(field.kind) else {
                continue;
            };
            let Some((_, storage)) = ours(obj, field.offset as usize, elem) else {
                return false;
            };
            if storage.is_null() {
                continue;
            }
            let len = (*storage).count as u64;
            ffi::Py_DECREF(storage.cast());
            let Some(n) = count_of(obj, count) else {
                return false;
            };
            if n > len {
                let class = table::class(ClassId((*obj).id)).1.name();
                raise(
                    ExceptionKind::Value,
                    &format!(
                        "{class}: the count says {n} elements, but {} has {len}",
                        table::text(field.name)
                    ),
                );
                return false;
            }
        }
    }
    true
}

/// `set_dsts_srcs`
pub fn method_set_dsts_srcs() -> ffi::PyMethodDef {
    ffi::PyMethodDef {
        ml_name: c"set_dsts_srcs".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunctionWithKeywords: set_dsts_srcs,
        },
        ml_flags: ffi::METH_VARARGS | ffi::METH_KEYWORDS,
        ml_doc: c"set_dsts_srcs($self, /, dsts, srcs)\n--\n\nAssigns dsts and srcs, lists of equal length, and their count."
            .as_ptr(),
    }
}

unsafe extern "C" fn set_dsts_srcs(
    obj: *mut ffi::PyObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard_or(null_mut(), || {
        // SAFETY: the interpreter passes an instance, a tuple, and a dict or null.
        unsafe {
            match assign_pair(obj, args, kwargs) {
                Some(()) => {
                    ffi::Py_INCREF(ffi::Py_None());
                    ffi::Py_None()
                }
                None => null_mut(),
            }
        }
    })
}

unsafe fn assign_pair(
    obj: *mut ffi::PyObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> Option<()> {
    // SAFETY: the caller passes an instance, a tuple, and a dict or null.
    unsafe {
        let this = obj.cast::<Instance>();
        let ty = ffi::Py_TYPE(obj);
        let given = class_type::arguments(ty, args, kwargs, [c"dsts", c"srcs"])?;
        let names = ["dsts", "srcs"];
        let mut made = [null_mut::<Storage>(); 2];
        let mut targets = [(0usize, Count { offset: 0, size: 0 }); 2];
        for i in 0..2 {
            let site = Site {
                ty,
                attr: "set_dsts_srcs",
            };
            let field = table::fields(ClassId((*this).id))
                .iter()
                .find(|f| table::text(f.name) == names[i])?;
            let (elem, count) = shape(field.kind)?;
            targets[i] = (field.offset as usize, count);
            if given[i].is_null() || given[i] == ffi::Py_None() {
                site.fail(
                    ExceptionKind::Type,
                    &format!("{} must be a list or tuple", names[i]),
                );
            } else if let Some(storage) = array(elem, false, given[i], &site) {
                made[i] = storage;
                continue;
            }
            ffi::Py_XDECREF(made[0].cast());
            return None;
        }
        let count = |s: *mut Storage| if s.is_null() { 0 } else { (*s).count };
        let (a, b) = (count(made[0]), count(made[1]));
        if a != b {
            ffi::Py_XDECREF(made[0].cast());
            ffi::Py_XDECREF(made[1].cast());
            raise(
                ExceptionKind::Value,
                &format!("dsts and srcs must have the same length, not {a} and {b}"),
            );
            return None;
        }
        let size = targets[0].1.size as usize;
        let bytes = (a as u64).to_le_bytes();
        let first = attach(this, targets[0].0, made[0]);
        let second = attach(this, targets[1].0, made[1]);
        first?;
        second?;
        object::write(this, targets[0].1.offset as usize, &bytes[..size]).then_some(())
    }
}
