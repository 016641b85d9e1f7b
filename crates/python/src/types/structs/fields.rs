//! Getter and setter shared by all attributes of all struct classes.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;

use pyo3::ffi;

use crate::cpython::{Obj, Owned, R};
use crate::types::convert;
use crate::types::convert::Site;
use crate::types::errors::{ExceptionKind, guard_or, raise};
use crate::types::object;
use crate::types::object::Instance;
use crate::types::structs::elements::{element, element_size, list_of, point};
use crate::types::structs::lists;
use crate::types::table;
use crate::types::table::{ClassId, Elem, Field, FieldKind, Prim};
use crate::types::{enums, memory, registry};

/// Getset definition of an attribute; the closure is the field.
pub fn getset(field: &'static Field) -> ffi::PyGetSetDef {
    ffi::PyGetSetDef {
        name: field.name.as_ptr(),
        get: Some(getter),
        set: if field.settable { Some(setter) } else { None },
        doc: std::ptr::null(),
        closure: std::ptr::from_ref(field).cast_mut().cast(),
    }
}

unsafe extern "C" fn getter(obj: *mut ffi::PyObject, closure: *mut c_void) -> *mut ffi::PyObject {
    guard_or(null_mut(), || {
        // SAFETY: the descriptor checked that `obj` is an instance; the closure is the field.
        unsafe { get(obj.cast(), &*closure.cast::<Field>()) }
    })
}

unsafe extern "C" fn setter(
    obj: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
    closure: *mut c_void,
) -> c_int {
    guard_or(-1, || {
        // SAFETY: the descriptor checked that `obj` is an instance; the closure is the field.
        unsafe {
            let field = &*closure.cast::<Field>();
            let site = Site {
                ty: ffi::Py_TYPE(obj),
                attr: table::text(field.name),
            };
            if value.is_null() {
                site.fail(
                    ExceptionKind::Attribute,
                    "a C struct's attribute cannot be deleted",
                );
                return -1;
            }
            match set(obj.cast(), field, value, &site) {
                Some(()) => 0,
                None => -1,
            }
        }
    })
}

/// The value of an attribute: a new reference, or null with an exception.
///
/// # Safety
/// `obj` is an instance of a class that has the field; the GIL is held.
pub unsafe fn get(obj: *mut Instance, field: &'static Field) -> *mut ffi::PyObject {
    let offset = field.offset as usize;
    let mut bytes = [0u8; 8];
    // SAFETY: the caller guarantees an instance with the field; offsets and sizes come from the C layout of the class.
    unsafe {
        match field.kind {
            FieldKind::Int(prim) => {
                if !object::read(obj, offset, &mut bytes[..prim.size()]) {
                    return null_mut();
                }
                convert::to_int(bytes, prim)
            }
            FieldKind::Float(prim) => {
                if !object::read(obj, offset, &mut bytes[..prim.size()]) {
                    return null_mut();
                }
                convert::to_float(bytes, prim)
            }
            FieldKind::Enum(id) => {
                if !object::read(obj, offset, &mut bytes[..4]) {
                    return null_mut();
                }
                enums::read(id, u64::from_le_bytes(bytes) as u32)
            }
            FieldKind::Handle(id) | FieldKind::View(id) => {
                let ty = registry::type_of(id);
                if ty.is_null() {
                    return null_mut();
                }
                object::view(ty, id, obj, (*obj).data.add(offset))
            }
            FieldKind::Bytes(len) | FieldKind::HexBytes(len) => {
                let mut data = vec![0u8; len as usize];
                if !object::read(obj, offset, &mut data) {
                    return null_mut();
                }
                ffi::PyBytes_FromStringAndSize(data.as_ptr().cast(), data.len() as isize)
            }
            FieldKind::Array(elem, len) => {
                let mut data = vec![0u8; element_size(elem) * len as usize];
                if !object::read(obj, offset, &mut data) {
                    return null_mut();
                }
                let list = list_of(elem, &data, len as usize, None);
                if let Elem::Struct(_) = elem
                    && !list.is_null()
                {
                    // The copies keep the targets of their pointer members alive.
                    let size = element_size(elem);
                    for i in 0..len as usize {
                        let item = ffi::PyList_GetItem(list, i as isize);
                        object::keep_same(item.cast(), 0, obj, offset + i * size, size);
                    }
                }
                list
            }
            FieldKind::Chars(len) => {
                let mut data = vec![0u8; len as usize];
                if !object::read(obj, offset, &mut data) {
                    return null_mut();
                }
                let end = data.iter().position(|&b| b == 0).unwrap_or(data.len());
                ffi::PyBytes_FromStringAndSize(data.as_ptr().cast(), end as isize)
            }
            FieldKind::List(..)
            | FieldKind::RawList(..)
            | FieldKind::CountedList(..)
            | FieldKind::PairedList(..) => lists::get(obj, field),
            FieldKind::Pointee(id) => {
                if !object::read(obj, offset, &mut bytes) {
                    return null_mut();
                }
                let ty = registry::type_of(id);
                if ty.is_null() {
                    return null_mut();
                }
                let item = object::new_handle(ty, id, 0);
                let at = u64::from_le_bytes(bytes) as usize;
                if !item.is_null() && memory::readable(at, table::value_type(id).size()) {
                    object::look_at(item, at);
                }
                item
            }
            FieldKind::Address | FieldKind::PlainAddress | FieldKind::KernelParams => {
                if !object::read(obj, offset, &mut bytes) {
                    return null_mut();
                }
                convert::to_int(bytes, Prim::U64)
            }
            FieldKind::CString => {
                if !object::read(obj, offset, &mut bytes) {
                    return null_mut();
                }
                let held = object::held(obj, offset);
                if held.is_null() {
                    convert::to_int(bytes, Prim::U64)
                } else {
                    held
                }
            }
            _ => misplaced(field),
        }
    }
}

/// Raises for field kinds that the tables only use in `Kind::Pod` classes.
fn misplaced(field: &Field) -> *mut ffi::PyObject {
    let text = format!("{:?} is no kind of a record's attribute", field.kind);
    raise(ExceptionKind::Runtime, &text);
    null_mut()
}

/// Assigns an attribute; None with an exception.
///
/// # Safety
/// `obj` is an instance of a class that has the field, `value` a live object; the GIL is held.
pub unsafe fn set(
    obj: *mut Instance,
    field: &'static Field,
    value: *mut ffi::PyObject,
    site: &Site,
) -> Option<()> {
    let offset = field.offset as usize;
    // SAFETY: the caller guarantees an instance with the field; offsets and sizes come from the C layout of the class.
    unsafe {
        match field.kind {
            FieldKind::Int(prim) => {
                let v = convert::ranged(value, prim, site)?;
                put(obj, offset, &v.to_le_bytes()[..prim.size()])
            }
            FieldKind::Float(prim) => {
                let v = convert::float(value, site)?;
                if prim == Prim::F32 {
                    put(obj, offset, &(v as f32).to_le_bytes())
                } else {
                    put(obj, offset, &v.to_le_bytes())
                }
            }
            FieldKind::Enum(_) => {
                let v = convert::enum_value(value, site)?;
                put(obj, offset, &v.to_le_bytes())
            }
            FieldKind::Handle(id) => {
                let prim = table::value_type(id);
                let v = convert::handle(value, prim, site)?;
                put(obj, offset, &v.to_le_bytes()[..prim.size()])
            }
            FieldKind::View(id) => set_view(obj, offset, id, value, site),
            FieldKind::Bytes(len) | FieldKind::HexBytes(len) => {
                let data = convert::with_bytes(value, site, <[u8]>::to_vec)?;
                if data.len() != len as usize {
                    site.fail(
                        ExceptionKind::Value,
                        &format!("length must be {len}, is {}", data.len()),
                    );
                    return None;
                }
                put(obj, offset, &data)
            }
            FieldKind::Chars(len) => {
                let mut data = convert::with_bytes(value, site, <[u8]>::to_vec)?;
                if data.len() > len as usize {
                    site.fail(
                        ExceptionKind::Value,
                        &format!("at most {len} bytes fit, not {}", data.len()),
                    );
                    return None;
                }
                data.resize(len as usize, 0);
                put(obj, offset, &data)
            }
            FieldKind::Array(elem, len) => set_array(obj, offset, elem, len as usize, value, site),
            FieldKind::List(elem, _) => lists::set(obj, offset, elem, false, value, site).map(drop),
            FieldKind::CountedList(elem, count) => {
                let n = lists::set(obj, offset, elem, false, value, site)? as u64;
                put(
                    obj,
                    count.offset as usize,
                    &n.to_le_bytes()[..count.size as usize],
                )
            }
            FieldKind::RawList(elem, _) => {
                lists::set(obj, offset, elem, true, value, site).map(drop)
            }
            FieldKind::PairedList(..) => {
                site.fail(
                    ExceptionKind::Attribute,
                    "shares its count with another list and cannot be assigned alone; use set_dsts_srcs(dsts, srcs)",
                );
                None
            }
            FieldKind::Pointee(_) => {
                let v = convert::ranged(value, Prim::U64, site)?;
                point(obj, offset, v, null_mut())
            }
            FieldKind::Address | FieldKind::PlainAddress => {
                let (at, held) = convert::address(value, site)?;
                point(obj, offset, at, held)
            }
            FieldKind::KernelParams => {
                let (at, held) = kernel_params(value, site)?;
                point(obj, offset, at, held.into_ptr())
            }
            FieldKind::CString => set_text(obj, offset, value, site),
            _ => {
                misplaced(field);
                None
            }
        }
    }
}

/// Packs the value of the attribute `name` for `cuLaunchKernel`: the address to store, and the object that owns the
/// memory there.
pub type PackKernelParams = fn(value: Obj<'_>, name: &'static str) -> R<(u64, Owned)>;

static PACKER: OnceLock<PackKernelParams> = OnceLock::new();

/// Registers the packer of kernel arguments, which belongs to a higher layer. The first one wins.
pub fn set_packer(pack: PackKernelParams) {
    let _ = PACKER.set(pack);
}

unsafe fn kernel_params(value: *mut ffi::PyObject, site: &Site) -> Option<(u64, Owned)> {
    // SAFETY: callers pass a live object and hold the GIL.
    unsafe {
        if ffi::PyFloat_Check(value) != 0 {
            site.wrong("an address, a buffer or (values, types)", value);
            return None;
        }
        let Some(pack) = PACKER.get() else {
            raise(ExceptionKind::System, "no packer of kernel parameters");
            return None;
        };
        pack(Obj::new(value), site.attr).ok()
    }
}

unsafe fn put(obj: *mut Instance, offset: usize, bytes: &[u8]) -> Option<()> {
    // SAFETY: callers pass an instance that has `bytes.len()` bytes at `offset`.
    unsafe { object::write(obj, offset, bytes) }.then_some(())
}

unsafe fn set_view(
    obj: *mut Instance,
    offset: usize,
    id: ClassId,
    value: *mut ffi::PyObject,
    site: &Site,
) -> Option<()> {
    // SAFETY: callers pass an instance with a member of class `id` at `offset`; `value` is checked to have the same C type.
    unsafe {
        let same = registry::of(value).is_some_and(|v| table::root(v) == table::root(id));
        if !same {
            site.wrong(table::class(id).1.name(), value);
            return None;
        }
        let size = table::class(id).1.size as usize;
        let mut data = vec![0u8; size];
        let from = value.cast::<Instance>();
        if !object::read(from, 0, &mut data) || !object::write(obj, offset, &data) {
            return None;
        }
        object::keep_same(obj, offset, from, 0, size);
    }
    Some(())
}

unsafe fn set_text(
    obj: *mut Instance,
    offset: usize,
    value: *mut ffi::PyObject,
    site: &Site,
) -> Option<()> {
    // SAFETY: callers pass an instance with a pointer at `offset`; the memory of `bytes` does not move and ends with a NUL.
    unsafe {
        if value == ffi::Py_None() {
            return point(obj, offset, 0, null_mut());
        }
        if ffi::PyBytes_Check(value) == 0 {
            site.wrong("bytes or None", value);
            return None;
        }
        ffi::Py_INCREF(value);
        point(obj, offset, ffi::PyBytes_AsString(value) as u64, value)
    }
}

unsafe fn set_array(
    obj: *mut Instance,
    offset: usize,
    elem: Elem,
    len: usize,
    value: *mut ffi::PyObject,
    site: &Site,
) -> Option<()> {
    let size = element_size(elem);
    let mut data = vec![0u8; size * len];
    let mut held = vec![null_mut(); if elem == Elem::Address { len } else { 0 }];
    // SAFETY: callers pass an instance with an array of `len` elements at `offset`; items are borrowed from an owned tuple.
    unsafe {
        let items = convert::sequence(value, site)?;
        let given = ffi::PyTuple_Size(items) as usize;
        if given != len {
            ffi::Py_DECREF(items);
            site.fail(
                ExceptionKind::Index,
                &format!("{len} values are needed, not {given}"),
            );
            return None;
        }
        let mut fine = true;
        for i in 0..len {
            let item = ffi::PyTuple_GetItem(items, i as isize);
            let at = &mut data[i * size..(i + 1) * size];
            let done = if elem == Elem::Address {
                convert::address(item, site).map(|(a, h)| {
                    held[i] = h;
                    at.copy_from_slice(&a.to_le_bytes());
                })
            } else if let Elem::Struct(id) = elem {
                struct_bytes(id, item, at, site)
            } else {
                element(elem, item, at, site)
            };
            if done.is_none() {
                fine = false;
                break;
            }
        }
        if !fine || !object::write(obj, offset, &data) {
            ffi::Py_DECREF(items);
            for h in held {
                ffi::Py_XDECREF(h);
            }
            return None;
        }
        if let Elem::Struct(_) = elem {
            for i in 0..len {
                let item = ffi::PyTuple_GetItem(items, i as isize).cast::<Instance>();
                object::keep_same(obj, offset + i * size, item, 0, size);
            }
        }
        ffi::Py_DECREF(items);
        for (i, h) in held.into_iter().enumerate() {
            object::keep(obj, offset + 8 * i, h);
        }
    }
    Some(())
}

/// Copies the bytes of a struct of class `id` or of another class with the same C type. None with an exception.
unsafe fn struct_bytes(
    id: ClassId,
    item: *mut ffi::PyObject,
    at: &mut [u8],
    site: &Site,
) -> Option<()> {
    // SAFETY: the item is checked to have the same C type; callers pass an `at` of its size.
    unsafe {
        if !registry::of(item).is_some_and(|i| table::root(i) == table::root(id)) {
            site.wrong(table::class(id).1.name(), item);
            return None;
        }
        object::read(item.cast(), 0, at).then_some(())
    }
}
