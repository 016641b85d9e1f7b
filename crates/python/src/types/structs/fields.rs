//! Getter and setter shared by all attributes of all struct classes.

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

use cupyrite_sys::checked;
use pyo3::ffi;

use crate::cpython;
use crate::cpython::errors::{ExceptionKind, guard, guard_status, raise};
use crate::cpython::{Obj, Owned, R, Raised};
use crate::types::convert;
use crate::types::convert::AttributeSite;
use crate::types::object;
use crate::types::object::Instance;
use crate::types::structs::elements::{element, element_size, list_of, point, same_type};
use crate::types::structs::lists;
use crate::types::table;
use crate::types::table::{ClassId, Elem, Field, FieldKind, Prim};
use crate::types::{enums, registry};

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
    // SAFETY: the descriptor checked that `obj` is an instance; the closure is the field.
    guard(|| unsafe { get(obj.cast(), &*closure.cast::<Field>()) })
}

unsafe extern "C" fn setter(
    obj: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
    closure: *mut c_void,
) -> c_int {
    guard_status(|| {
        // SAFETY: the descriptor checked that `obj` is an instance; the closure is the field; a null value means `del`.
        unsafe {
            let field = &*closure.cast::<Field>();
            let site = AttributeSite {
                ty: ffi::Py_TYPE(obj),
                attr: table::text(field.name),
            };
            if value.is_null() {
                return Err(site.fail(
                    ExceptionKind::Attribute,
                    "a C struct's attribute cannot be deleted",
                ));
            }
            set(obj.cast(), field, Obj::new(value), &site)
        }
    })
}

/// The value of an attribute.
///
/// # Errors
/// `ValueError` if foreign memory cannot be read or holds a value that is no member of an enum; `MemoryError`.
///
/// # Safety
/// `obj` is an instance of a class that has the field; the GIL is held.
pub unsafe fn get(obj: *mut Instance, field: &'static Field) -> R<Owned> {
    let offset = field.offset as usize;
    // SAFETY: the caller guarantees an instance with the field; offsets and sizes come from the C layout of the class.
    let word = |size: usize| unsafe {
        let mut bytes = [0u8; 8];
        object::read(obj, offset, &mut bytes[..size]).map(|()| bytes)
    };
    // SAFETY: the caller guarantees an instance with the field; the size comes from its kind.
    let data = |size: usize| unsafe {
        let mut bytes = vec![0u8; size];
        object::read(obj, offset, &mut bytes).map(|()| bytes)
    };
    // SAFETY: as above; the registry returns the type of a class.
    unsafe {
        match field.kind {
            FieldKind::Int(prim) => convert::to_int(word(prim.size())?, prim),
            FieldKind::Float(prim) => convert::to_float(word(prim.size())?, prim),
            FieldKind::Enum(id) => enums::read(id, u64::from_le_bytes(word(4)?) as u32),
            FieldKind::Handle(id) | FieldKind::View(id) => {
                object::view(registry::type_of(id)?, id, obj, (*obj).data.add(offset))
            }
            FieldKind::Bytes(len) | FieldKind::HexBytes(len) => {
                cpython::from_bytes(&data(len as usize)?)
            }
            FieldKind::Array(elem, len) => {
                let (size, len) = (element_size(elem), len as usize);
                let list = list_of(elem, &data(size * len)?, len, None)?;
                if let Elem::Struct(_) = elem {
                    // The copies keep the targets of their pointer members alive.
                    for i in 0..len {
                        let item = ffi::PyList_GetItem(list.ptr(), i as isize);
                        object::keep_same(item.cast(), 0, obj, offset + i * size, size);
                    }
                }
                Ok(list)
            }
            FieldKind::Chars(len) => {
                let data = data(len as usize)?;
                let end = data.iter().position(|&b| b == 0).unwrap_or(data.len());
                cpython::from_bytes(&data[..end])
            }
            FieldKind::List(..)
            | FieldKind::RawList(..)
            | FieldKind::CountedList(..)
            | FieldKind::PairedList(..) => lists::get(obj, field),
            FieldKind::Pointee(id) => {
                let at = u64::from_le_bytes(word(8)?) as usize;
                let item = object::new_handle(registry::type_of(id)?, id, 0)?;
                if checked::is_readable(at as u64, table::value_type(id).size()) {
                    object::look_at(item.obj(), at);
                }
                Ok(item)
            }
            FieldKind::Address | FieldKind::PlainAddress | FieldKind::KernelParams => {
                convert::to_int(word(8)?, Prim::U64)
            }
            FieldKind::CString => {
                let bytes = word(8)?;
                match object::held(obj, offset) {
                    Some(text) => Ok(text),
                    None => convert::to_int(bytes, Prim::U64),
                }
            }
            _ => Err(misplaced(field)),
        }
    }
}

/// Raises for field kinds that the tables only use in `Kind::BufferStruct` classes.
fn misplaced(field: &Field) -> Raised {
    let text = format!("{:?} is no kind of a record's attribute", field.kind);
    raise(ExceptionKind::Runtime, &text)
}

/// Assigns an attribute.
///
/// # Errors
/// `TypeError`, `OverflowError`; `ValueError` for a wrong length or foreign memory that cannot be written;
/// `AttributeError` for one of a pair of lists.
///
/// # Safety
/// `obj` is an instance of a class that has the field; the GIL is held.
pub unsafe fn set(
    obj: *mut Instance,
    field: &'static Field,
    value: Obj<'_>,
    site: &AttributeSite,
) -> R<()> {
    let offset = field.offset as usize;
    // SAFETY: the caller guarantees an instance with the field; offsets and sizes come from the C layout of the class.
    let put = |bytes: &[u8]| unsafe { object::write(obj, offset, bytes) };
    // SAFETY: the caller guarantees an instance with the field and holds the GIL.
    unsafe {
        match field.kind {
            FieldKind::Int(prim) => {
                put(&convert::ranged(value, prim, site)?.to_le_bytes()[..prim.size()])
            }
            FieldKind::Float(Prim::F32) => {
                put(&(convert::float(value, site)? as f32).to_le_bytes())
            }
            FieldKind::Float(_) => put(&convert::float(value, site)?.to_le_bytes()),
            FieldKind::Enum(_) => put(&convert::enum_value(value, site)?.to_le_bytes()),
            FieldKind::Handle(id) => {
                let prim = table::value_type(id);
                put(&convert::handle(value, prim, site)?.to_le_bytes()[..prim.size()])
            }
            FieldKind::View(id) => set_view(obj, offset, id, value, site),
            FieldKind::Bytes(len) | FieldKind::HexBytes(len) => {
                let data = convert::bytes(value, site)?;
                if data.len() != len as usize {
                    let message = format!("length must be {len}, is {}", data.len());
                    return Err(site.fail(ExceptionKind::Value, &message));
                }
                put(&data)
            }
            FieldKind::Chars(len) => {
                let mut data = convert::bytes(value, site)?;
                if data.len() > len as usize {
                    let message = format!("at most {len} bytes fit, not {}", data.len());
                    return Err(site.fail(ExceptionKind::Value, &message));
                }
                data.resize(len as usize, 0);
                put(&data)
            }
            FieldKind::Array(elem, len) => set_array(obj, offset, elem, len as usize, value, site),
            FieldKind::List(elem, _) => lists::set(obj, offset, elem, false, value, site).map(drop),
            FieldKind::CountedList(elem, count) => {
                let n = lists::set(obj, offset, elem, false, value, site)? as u64;
                let bytes = &n.to_le_bytes()[..count.size as usize];
                object::write(obj, count.offset as usize, bytes)
            }
            FieldKind::RawList(elem, _) => {
                lists::set(obj, offset, elem, true, value, site).map(drop)
            }
            FieldKind::PairedList(..) => Err(site.fail(
                ExceptionKind::Attribute,
                "shares its count with another list and cannot be assigned alone; use set_dsts_srcs(dsts, srcs)",
            )),
            FieldKind::Pointee(_) => {
                point(obj, offset, convert::ranged(value, Prim::U64, site)?, None)
            }
            FieldKind::Address | FieldKind::PlainAddress => {
                let (at, held) = convert::address(value, site)?;
                point(obj, offset, at, held)
            }
            FieldKind::KernelParams => {
                let (at, held) = kernel_params(value, site)?;
                point(obj, offset, at, Some(held))
            }
            FieldKind::CString => set_text(obj, offset, value, site),
            _ => Err(misplaced(field)),
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

fn kernel_params(value: Obj<'_>, site: &AttributeSite) -> R<(u64, Owned)> {
    // SAFETY: an `Obj` is live.
    if unsafe { ffi::PyFloat_Check(value.ptr()) } != 0 {
        return Err(site.type_error("an address, a buffer or (values, types)", value));
    }
    match PACKER.get() {
        Some(pack) => pack(value, site.attr),
        None => Err(raise(
            ExceptionKind::System,
            "no packer of kernel parameters",
        )),
    }
}

unsafe fn set_view(
    obj: *mut Instance,
    offset: usize,
    id: ClassId,
    value: Obj<'_>,
    site: &AttributeSite,
) -> R<()> {
    let Some(from) = same_type(value, id) else {
        return Err(site.type_error(table::class(id).1.name(), value));
    };
    let mut data = vec![0u8; table::class(id).1.size as usize];
    // SAFETY: callers pass an instance with a member of class `id` at `offset`; `from` has the same C type.
    unsafe {
        object::read(from, 0, &mut data)?;
        object::write(obj, offset, &data)?;
        object::keep_same(obj, offset, from, 0, data.len());
    }
    Ok(())
}

unsafe fn set_text(
    obj: *mut Instance,
    offset: usize,
    value: Obj<'_>,
    site: &AttributeSite,
) -> R<()> {
    // SAFETY: callers pass an instance with a pointer at `offset`; the memory of `bytes` does not move and ends with a NUL.
    unsafe {
        if value.is_none() {
            return point(obj, offset, 0, None);
        }
        if !value.is_bytes() {
            return Err(site.type_error("bytes or None", value));
        }
        let at = value.bytes_data().0 as u64;
        point(obj, offset, at, Some(value.owned()))
    }
}

unsafe fn set_array(
    obj: *mut Instance,
    offset: usize,
    elem: Elem,
    len: usize,
    value: Obj<'_>,
    site: &AttributeSite,
) -> R<()> {
    let size = element_size(elem);
    let mut data = vec![0u8; size * len];
    let mut held = Vec::new();
    let items = convert::sequence(value, site)?;
    if items.len() != len {
        let message = format!("{len} values are needed, not {}", items.len());
        return Err(site.fail(ExceptionKind::Index, &message));
    }
    for (i, at) in data.chunks_exact_mut(size).enumerate() {
        let item = items.get(i);
        match elem {
            Elem::Address => {
                let (address, target) = convert::address(item, site)?;
                held.push(target);
                at.copy_from_slice(&address.to_le_bytes());
            }
            Elem::Struct(id) => match same_type(item, id) {
                // SAFETY: an instance of the same C type has the element's size.
                Some(from) => unsafe { object::read(from, 0, at)? },
                None => return Err(site.type_error(table::class(id).1.name(), item)),
            },
            _ => element(elem, item, at, site)?,
        }
    }
    // SAFETY: callers pass an instance with an array of `len` elements at `offset`; all items were checked above.
    unsafe {
        object::write(obj, offset, &data)?;
        if let Elem::Struct(_) = elem {
            for i in 0..len {
                let item = items.get(i).ptr().cast::<Instance>();
                object::keep_same(obj, offset + i * size, item, 0, size);
            }
        }
        for (i, target) in held.into_iter().enumerate() {
            object::keep(obj, offset + 8 * i, target);
        }
    }
    Ok(())
}
