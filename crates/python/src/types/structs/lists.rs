//! List attributes: a pointer in C, a list in Python.
//!
//! Assignment creates an array ([`Storage`]), which the struct keeps alive. In most classes the count is a separate
//! attribute and assigned separately, as in NVIDIA's package; in a few, assigning the list sets it. Reading returns copies
//! of the elements. A count larger than the array is refused when the struct is passed to CUDA ([`check_counts`]).

use cupyrite_sys::checked;
use pyo3::ffi;

use crate::cpython;
use crate::cpython::errors::{ExceptionKind, guard, raise};
use crate::cpython::{Obj, Owned, R};
use crate::types::class_type;
use crate::types::convert;
use crate::types::convert::AttributeSite;
use crate::types::object;
use crate::types::object::Instance;
use crate::types::registry;
use crate::types::structs::elements::{element, element_size, list_of, point, same_type};
use crate::types::structs::list_storage;
use crate::types::structs::list_storage::Storage;
use crate::types::table;
use crate::types::table::{ClassId, Count, Elem, Field, FieldKind};

/// The longest list of null handles: a count in a union may belong to another member.
const UNWRITTEN_LIMIT: usize = 1 << 16;
/// Maximum size in bytes of a foreign array that is read.
const FOREIGN_LIMIT: usize = 64 << 20;

/// Array storage and its object.
type NewStorage = (Owned, *mut Storage);

/// Assigns a list. Returns the number of elements.
///
/// # Errors
/// `TypeError`, `OverflowError`; `ValueError` if foreign memory cannot be written.
///
/// # Safety
/// `obj` is a struct instance with a pointer at `offset`; the GIL is held.
pub unsafe fn set(
    obj: *mut Instance,
    offset: usize,
    elem: Elem,
    raw: bool,
    value: Obj<'_>,
    site: &AttributeSite,
) -> R<usize> {
    // SAFETY: as promised by the caller.
    unsafe { attach(obj, offset, array(elem, raw, value, site)?) }
}

/// Points a struct to an array; `None` means no elements. Returns the number of elements.
unsafe fn attach(obj: *mut Instance, offset: usize, array: Option<NewStorage>) -> R<usize> {
    // SAFETY: callers pass an instance with a pointer at `offset`; the object keeps the storage alive.
    unsafe {
        let Some((object, storage)) = array else {
            point(obj, offset, 0, None)?;
            return Ok(0);
        };
        let (count, data) = ((*storage).count, (*storage).base.data);
        point(obj, offset, data as u64, Some(object))?;
        Ok(count)
    }
}

/// A new array with the elements of `value`; `None` if empty.
fn array(elem: Elem, raw: bool, value: Obj<'_>, site: &AttributeSite) -> R<Option<NewStorage>> {
    let size = element_size(elem);
    if !value.is_list() && !value.is_tuple() && value.has_buffer() {
        if raw {
            return from_bytes(elem, &convert::bytes(value, site)?);
        }
        // The bytes of a buffer are not handles, even if its elements are integers.
        let handles = matches!(elem, Elem::Handle(_));
        if handles || value.is_bytes() || value.is_bytearray() {
            return Err(site.type_error("a list or tuple", value));
        }
    }
    let items = convert::sequence(value, site)?;
    let count = items.len();
    if count == 0 {
        return Ok(None);
    }
    let (object, storage) = list_storage::new_storage(count, size, elem)?;
    for i in 0..count {
        // SAFETY: element `i` lies within the new storage.
        let at =
            unsafe { std::slice::from_raw_parts_mut((*storage).base.data.add(i * size), size) };
        match elem {
            // SAFETY: `at` is element `i` of the new storage, which `storage` keeps alive.
            Elem::Struct(id) => unsafe { copy_in(id, items.get(i), at, storage, i * size, site)? },
            _ => element(elem, items.get(i), at, site)?,
        }
    }
    Ok(Some((object, storage)))
}

unsafe fn copy_in(
    id: ClassId,
    item: Obj<'_>,
    at: &mut [u8],
    storage: *mut Storage,
    offset: usize,
    site: &AttributeSite,
) -> R<()> {
    let Some(from) = same_type(item, id) else {
        return Err(site.type_error(&format!("a list of {}", table::class(id).1.name()), item));
    };
    // SAFETY: `from` has the element's C type; callers pass an `at` of its size inside `storage`.
    unsafe {
        object::read(from, 0, at)?;
        object::keep_same(storage.cast(), offset, from, 0, at.len());
    }
    Ok(())
}

/// An array from raw memory; an incomplete last element is padded with zeros. `None` if empty.
fn from_bytes(elem: Elem, bytes: &[u8]) -> R<Option<NewStorage>> {
    let size = element_size(elem);
    let count = bytes.len().div_ceil(size.max(1));
    if count == 0 {
        return Ok(None);
    }
    let (object, storage) = list_storage::new_storage(count, size, elem)?;
    // SAFETY: the storage is at least as long as the bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), (*storage).base.data, bytes.len());
    }
    Ok(Some((object, storage)))
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

/// The pointer at `offset`, and the [`Storage`] that it points to, if the object owns the target.
unsafe fn pointer(obj: *mut Instance, offset: usize, elem: Elem) -> R<(u64, Option<NewStorage>)> {
    let mut pointer = [0u8; 8];
    // SAFETY: callers pass an instance with a pointer at `offset` and hold the GIL.
    unsafe {
        object::read(obj, offset, &mut pointer)?;
        let pointer = u64::from_le_bytes(pointer);
        if pointer == 0 {
            return Ok((0, None));
        }
        let owned = object::held(obj, offset).and_then(|held| {
            let storage = list_storage::cast(held.obj())?;
            ((*storage).base.data as u64 == pointer && (*storage).elem == elem)
                .then_some((held, storage))
        });
        Ok((pointer, owned))
    }
}

unsafe fn count_of(obj: *mut Instance, count: Count) -> R<u64> {
    let mut bytes = [0u8; 8];
    if count.size == 0 {
        return Ok(1);
    }
    let (offset, size) = (count.offset as usize, count.size as usize);
    // SAFETY: callers pass an instance whose C type has the count as a member.
    unsafe { object::read(obj, offset, &mut bytes[..size])? };
    Ok(u64::from_le_bytes(bytes))
}

/// Whether a view of a member belongs to the parameters of a conditional graph node, whose type is their first member.
unsafe fn is_conditional(view: *mut Instance) -> R<bool> {
    const CU_GRAPH_NODE_TYPE_CONDITIONAL: u32 = 13;
    let mut kind = [0u8; 4];
    // SAFETY: callers pass a view of a member; its root is a live instance, which has at least four bytes, because a union
    // member with a pointer lies in it.
    unsafe { object::read((*view).root.cast(), 0, &mut kind)? };
    Ok(u32::from_le_bytes(kind) == CU_GRAPH_NODE_TYPE_CONDITIONAL)
}

/// Reads a list attribute.
///
/// # Errors
/// `ValueError` if foreign memory cannot be read or holds a value that is no member of an enum; `MemoryError`.
///
/// # Safety
/// `obj` is an instance of a class that has the list field; the GIL is held.
pub unsafe fn get(obj: *mut Instance, field: &'static Field) -> R<Owned> {
    let Some((elem, count)) = shape(field.kind) else {
        return Err(raise(ExceptionKind::System, "the attribute is no list"));
    };
    let size = element_size(elem);
    // SAFETY: the caller guarantees an instance with the field; storage has `count` elements, and foreign memory is read
    // through the kernel.
    unsafe {
        let (pointer, owned) = pointer(obj, field.offset as usize, elem)?;
        if let Some((_object, storage)) = owned {
            let n = (*storage).count;
            let data = std::slice::from_raw_parts((*storage).base.data, n * size);
            return list_of(elem, data, n, Some(storage));
        }
        // CUDA has not written the list yet.
        if pointer == 0 && !field.settable && matches!(elem, Elem::Handle(_)) {
            let n = usize::try_from(count_of(obj, count)?).unwrap_or(usize::MAX);
            if n <= UNWRITTEN_LIMIT {
                return list_of(elem, &vec![0u8; n * size], n, None);
            }
        }
        // A foreign array, for example of a struct filled by CUDA. Views of members are not followed: in a union, the bytes
        // of the pointer may belong to another member. Lists that only CUDA writes are an exception if the union's type
        // says that the member is valid.
        if pointer != 0 && ((*obj).root.is_null() || !field.settable && is_conditional(obj)?) {
            let n = count_of(obj, count)? as usize;
            if let Some(bytes) = n.checked_mul(size).filter(|b| *b <= FOREIGN_LIMIT) {
                let mut data = vec![0u8; bytes];
                if checked::read_bytes(pointer, &mut data).is_ok() {
                    return list_of(elem, &data, n, None);
                }
            }
        }
    }
    cpython::list(std::iter::empty())
}

/// Checks a struct before it is passed to CUDA: every [`Storage`] has at least as many elements as its count says.
///
/// # Errors
/// `ValueError` for a count that is too large.
///
/// # Safety
/// `obj` is a struct instance; the GIL is held.
pub unsafe fn check_counts(obj: *mut Instance) -> R<()> {
    // SAFETY: as promised by the caller; views of members are created and released here.
    unsafe {
        if !object::holds_any(obj) {
            return Ok(());
        }
        let id = ClassId((*obj).id);
        for field in table::fields(id) {
            let offset = field.offset as usize;
            if let FieldKind::View(inner) = field.kind {
                let data = (*obj).data.add(offset);
                let view = object::view(registry::type_of(inner)?, inner, obj, data)?;
                check_counts(view.ptr().cast())?;
                continue;
            }
            let Some((elem, count)) = shape(field.kind) else {
                continue;
            };
            let (_, Some((_object, storage))) = pointer(obj, offset, elem)? else {
                continue;
            };
            let len = (*storage).count as u64;
            let n = count_of(obj, count)?;
            if n > len {
                let (class, name) = (table::class(id).1.name(), table::text(field.name));
                return Err(raise(
                    ExceptionKind::Value,
                    &format!("{class}: the count says {n} elements, but {name} has {len}"),
                ));
            }
        }
    }
    Ok(())
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
    guard(|| {
        // SAFETY: the interpreter passes an instance, a tuple, and a dict or null.
        unsafe {
            let ty = ffi::Py_TYPE(obj);
            let [dsts, srcs] = class_type::arguments(ty, args, kwargs, [c"dsts", c"srcs"])?;
            assign_pair(obj.cast(), ty, dsts, srcs)?;
        }
        Ok(cpython::none())
    })
}

unsafe fn assign_pair(
    obj: *mut Instance,
    ty: *mut ffi::PyTypeObject,
    dsts: Option<Obj<'_>>,
    srcs: Option<Obj<'_>>,
) -> R<()> {
    let site = AttributeSite {
        ty,
        attr: "set_dsts_srcs",
    };
    // SAFETY: the caller passes an instance.
    let id = unsafe { ClassId((*obj).id) };
    let list = |name: &str, given: Option<Obj<'_>>| {
        let field = table::fields(id)
            .iter()
            .find(|f| table::text(f.name) == name);
        let Some((field, (elem, count))) = field.and_then(|f| Some((f, shape(f.kind)?))) else {
            return Err(raise(ExceptionKind::System, "the class has no such lists"));
        };
        match given.filter(|given| !given.is_none()) {
            Some(given) => Ok((
                field.offset as usize,
                count,
                array(elem, false, given, &site)?,
            )),
            None => {
                let message = format!("{name} must be a list or tuple");
                Err(site.fail(ExceptionKind::Type, &message))
            }
        }
    };
    let (first_at, count, first) = list("dsts", dsts)?;
    let (second_at, _, second) = list("srcs", srcs)?;
    // SAFETY: the storage is live.
    let len = |array: &Option<NewStorage>| array.as_ref().map_or(0, |a| unsafe { (*a.1).count });
    let (a, b) = (len(&first), len(&second));
    if a != b {
        let message = format!("dsts and srcs must have the same length, not {a} and {b}");
        return Err(raise(ExceptionKind::Value, &message));
    }
    let bytes = (a as u64).to_le_bytes();
    // SAFETY: the offsets are those of the class's members.
    unsafe {
        let first = attach(obj, first_at, first);
        let second = attach(obj, second_at, second);
        first.and(second)?;
        object::write(obj, count.offset as usize, &bytes[..count.size as usize])
    }
}
