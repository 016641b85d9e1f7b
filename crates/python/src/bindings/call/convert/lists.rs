//! Sequences as C arrays.

use pyo3::ffi;

use super::keep::Keep;
use super::memory::void_ptr;
use super::numbers::{address, enumerator, float, handle, int};
use super::text::{bytes, no_nul, utf8};
use crate::bindings::call::memory_checks;
use crate::bindings::descriptor::{Element, Int};
use crate::bindings::errors;
use crate::bindings::errors::{ExceptionKind, Site};
use crate::cpython;
use crate::cpython::{Obj, R, Raised};
use crate::types;

/// `const char **`: a sequence of `str` or `bytes` with at least `count` items, or the address of such an array.
///
/// # Errors
///
/// `TypeError`, `ValueError` for a nul inside or fewer strings than `count`, `UnicodeEncodeError`.
pub fn text_list(obj: Obj<'_>, count: Option<u64>, site: Site, keep: &mut Keep) -> R<u64> {
    let wanted = "a list or tuple of str or bytes, or the address of an array of strings";
    if obj.is_int() {
        let at = address(obj, site)?;
        memory_checks::check_texts(at, count.unwrap_or(0), site)?;
        return Ok(at);
    }
    // SAFETY: `obj` is live for the call.
    let sequence =
        obj.is_list() || obj.is_tuple() || unsafe { ffi::PySequence_Check(obj.ptr()) } != 0;
    // A string is a sequence of characters, but never meant as one here.
    if !sequence || obj.is_str() || obj.is_bytes() || obj.is_bytearray() {
        return Err(errors::wrong_type(site, wanted, obj));
    }
    let items = obj.snapshot()?;
    if let Some(count) = count
        && count > items.len() as u64
    {
        let message = format!(
            "{} has {} strings, but {count} were announced",
            site.prefix(),
            items.len()
        );
        return Err(errors::raise(ExceptionKind::Value, &message));
    }
    let array = keep.array(items.len() * 8)?.cast::<u64>();
    for index in 0..items.len() {
        let item = items.get(index);
        let text = if item.is_bytes() {
            let (data, len) = item.bytes_data();
            // SAFETY: the `bytes` object is live and has `len` bytes.
            no_nul(unsafe { std::slice::from_raw_parts(data, len) }, site)?;
            data.addr() as u64
        } else if item.is_str() {
            utf8(item, site)?
        } else {
            let message = format!(
                "{} must be {wanted}; item {index} is {}",
                site.prefix(),
                item.type_name()
            );
            return Err(errors::raise(ExceptionKind::Type, &message));
        };
        // SAFETY: the array has a word for each of `items`.
        unsafe { array.add(index).write(text) };
    }
    keep.objects.push(items.into_owned());
    Ok(array.addr() as u64)
}

/// Handles or addresses as a C array: `None` for null, the address of an array, or a sequence with at least `count` items.
///
/// # Errors
///
/// `TypeError`, `OverflowError`, or the sequence is shorter than `count`.
pub fn addresses(obj: Obj<'_>, count: Option<u64>, site: Site, keep: &mut Keep) -> R<u64> {
    if obj.is_int() {
        let at = address(obj, site)?;
        let bytes = count.unwrap_or(1).saturating_mul(8);
        memory_checks::check_memory(at, bytes, site)?;
        return Ok(at);
    }
    if obj.is_bytes() || obj.is_bytearray() {
        let wanted = "a sequence of handles, the address of an array or None";
        return Err(errors::wrong_type(site, wanted, obj));
    }
    list(obj, Element::Address, count, false, site, keep)
}

/// The items of a sequence argument, or `None` for the object `None`.
///
/// # Errors
///
/// `TypeError`, or iterating raised.
pub fn items(obj: Obj<'_>, site: Site) -> R<Option<crate::cpython::Items>> {
    if obj.is_none() {
        return Ok(None);
    }
    // SAFETY: `obj` is live for the call.
    let sequence =
        obj.is_tuple() || obj.is_list() || unsafe { ffi::PySequence_Check(obj.ptr()) } != 0;
    if !sequence || obj.is_str() {
        return Err(errors::wrong_type(site, "a list or tuple", obj));
    }
    obj.snapshot().map(Some)
}

/// Refuses a sequence shorter than the count passed with it.
///
/// # Errors
///
/// `ListTooSmallError`.
pub fn check_count(have: usize, count: Option<u64>, site: Site) -> R<()> {
    match count {
        Some(want) if want > have as u64 => Err(errors::too_few(site, have, want)),
        _ => Ok(()),
    }
}

/// A sequence as a C array: its address, null if it is empty or `None`.
///
/// # Errors
///
/// `TypeError` for the sequence or an element, `OverflowError` for an element, or the sequence is shorter than
/// `count`, unless it is empty and `optional`.
pub fn list(
    obj: Obj<'_>,
    of: Element,
    count: Option<u64>,
    optional: bool,
    site: Site,
    keep: &mut Keep,
) -> R<u64> {
    if let Some(array) = own_handles(obj, of, count, keep)? {
        return Ok(array);
    }
    let items = match items(obj, site)? {
        Some(items) if items.len() > 0 => items,
        _ => {
            if !optional {
                check_count(0, count, site)?;
            }
            return Ok(0);
        }
    };
    check_count(items.len(), count, site)?;
    if let (Element::Struct(id, _), 1) = (of, items.len()) {
        // A single struct is passed in place, as C may write into it.
        let address = element_struct(items.get(0), id, site)?;
        keep.objects.push(items.into_owned());
        return Ok(address.addr() as u64);
    }
    let size = of.size();
    let Some(bytes) = items.len().checked_mul(size) else {
        return Err(errors::no_memory());
    };
    let array = keep.array(bytes)?;
    for index in 0..items.len() {
        let item = items.get(index);
        // SAFETY: the array has room for `items.len()` elements of `size` bytes.
        let to = unsafe { array.add(index * size) };
        if let Element::Struct(id, size) = of {
            let from = element_struct(item, id, site)?;
            // SAFETY: the struct has `size` bytes, as the element.
            unsafe { std::ptr::copy_nonoverlapping(from, to, size as usize) };
            continue;
        }
        let value = match own_element(item, of) {
            Some(value) => value,
            None => element(item, of, site, keep)?,
        };
        // SAFETY: the element has `size` bytes, at most 8; the array is aligned to 8.
        unsafe { write_element(to, value, size) };
    }
    if !is_value(of) {
        keep.objects.push(items.into_owned());
    }
    Ok(array.addr() as u64)
}

/// The array for a list or tuple of handles that are exactly of the class; `None` for other sequences, which [`list`]
/// converts or refuses. Needs no copy of the sequence: reading such handles runs no user code.
fn own_handles(obj: Obj<'_>, of: Element, count: Option<u64>, keep: &mut Keep) -> R<Option<u64>> {
    let Element::Handle(..) = of else {
        return Ok(None);
    };
    let is_list = obj.is_exact_list();
    if !cpython::GIL || !(is_list || obj.is_exact_tuple()) {
        return Ok(None);
    }
    let size = of.size();
    // SAFETY: `obj` is of the type that each function requires. Nothing changes a list while this thread has the GIL and
    // runs no user code, so all indices below are within it.
    let (len, item): (_, unsafe extern "C" fn(_, _) -> _) = unsafe {
        match is_list {
            true => (ffi::PyList_Size(obj.ptr()), ffi::PyList_GetItem),
            false => (ffi::PyTuple_Size(obj.ptr()), ffi::PyTuple_GetItem),
        }
    };
    let len = len.max(0).cast_unsigned();
    if len == 0 || count.is_some_and(|count| count > len as u64) || !matches!(size, 4 | 8) {
        return Ok(None);
    }
    let array = keep.array(len * size)?;
    for index in 0..len {
        // SAFETY: as above; the list keeps the item alive.
        let element = unsafe { Obj::new(item(obj.ptr(), index.cast_signed())) };
        let Some(value) = own_element(element, of) else {
            return Ok(None);
        };
        // SAFETY: the array has `len` elements of `size` bytes.
        unsafe { write_element(array.add(index * size), value, size) };
    }
    Ok(Some(array.addr() as u64))
}

/// Writes the low bytes of a value, which are the element (little-endian).
///
/// # Safety
///
/// `to` has `size` bytes, at most 8, and is aligned to them.
#[inline(always)]
unsafe fn write_element(to: *mut u8, value: u64, size: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match size {
            8 => to.cast::<u64>().write(value),
            4 => to.cast::<u32>().write(value as u32),
            size => std::ptr::copy_nonoverlapping((&raw const value).cast::<u8>(), to, size),
        }
    }
}

/// Whether C receives copies of the elements, and no address of their memory.
fn is_value(of: Element) -> bool {
    match of {
        Element::Int(_) | Element::F32 | Element::F64 | Element::Enum(_) | Element::Handle(..) => {
            true
        }
        Element::Bytes | Element::VoidPtr | Element::Address | Element::Struct(..) => false,
    }
}

/// The usual element of its kind, which needs no conversion: a handle of exactly the class, or `bytes`.
#[inline(always)]
fn own_element(item: Obj<'_>, of: Element) -> Option<u64> {
    match of {
        Element::Handle(id, Int::U64) => types::own_handle(item, id),
        Element::Handle(id, Int::I32 | Int::U32) => {
            types::own_handle32(item, id).map(|value| i64::from(value).cast_unsigned())
        }
        Element::Bytes => item.exact_bytes().map(|data| data.addr() as u64),
        _ => None,
    }
}

/// An element of one word.
fn element(item: Obj<'_>, of: Element, site: Site, keep: &mut Keep) -> R<u64> {
    match of {
        Element::Int(kind) => int(item, kind, site),
        #[allow(clippy::cast_possible_truncation)] // a C float is what the parameter is
        Element::F32 => Ok(u64::from((float(item, site)? as f32).to_bits())),
        Element::F64 => Ok(float(item, site)?.to_bits()),
        Element::Enum(_) => {
            if !types::is_enum_member(item) {
                return Err(element_type(of, item, site));
            }
            enumerator(item, site)
        }
        Element::Handle(id, kind) => {
            if !is_handle_element(item, types::class_type(id)?) {
                return Err(element_type(of, item, site));
            }
            handle(item, kind, site)
        }
        Element::Bytes => bytes_element(item, site, keep),
        Element::VoidPtr => Ok(void_ptr(item, site, keep)?.0),
        Element::Address => address(item, site),
        Element::Struct(id, _) => {
            element_struct(item, id, site).map(|address| address.addr() as u64)
        }
    }
}

/// Whether an item of a list of handles is a handle of the class or of its base class. The bases of the runtime's classes
/// are the driver's.
fn is_handle_element(item: Obj<'_>, class: *mut ffi::PyTypeObject) -> bool {
    if item.instance_of_type(class) {
        return true;
    }
    // SAFETY: the class and the item's type are live.
    let is_base = || unsafe { ffi::PyType_IsSubtype(class, ffi::Py_TYPE(item.ptr())) } != 0;
    types::handle_value(item).is_some() && is_base()
}

fn element_struct(item: Obj<'_>, id: types::ClassId, site: Site) -> R<*mut u8> {
    match types::struct_ptr(item, id) {
        Some(address) => types::prepare_struct(item).map(|()| address),
        None => Err(element_type(Element::Struct(id, 0), item, site)),
    }
}

fn bytes_element(item: Obj<'_>, site: Site, keep: &mut Keep) -> R<u64> {
    if !item.is_bytes() && !item.is_bytearray() {
        return Err(element_type(Element::Bytes, item, site));
    }
    bytes(item, site, keep)
}

#[cold]
fn element_type(of: Element, item: Obj<'_>, site: Site) -> Raised {
    let wanted = match of {
        Element::Struct(id, _) | Element::Handle(id, _) => types::class_name(id),
        Element::Enum(id) => types::enum_name(id),
        Element::Bytes => "bytes",
        _ => "int",
    };
    let message = format!(
        "{} must be a list or tuple of {wanted}; one item is {}",
        site.prefix(),
        item.type_name()
    );
    errors::raise(ExceptionKind::Type, &message)
}
