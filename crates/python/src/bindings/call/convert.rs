//! Conversion of Python values to C values.
//!
//! Accepts what NVIDIA's package accepts (observed), and in addition objects that have only `__index__`, `None` for null
//! pointers, and objects with `getPtr()` for `void *`. Other values raise before the C call; the message names function
//! and parameter.

use std::ffi::c_char;

use pyo3::ffi;

use crate::bindings::call::memory_checks;
use crate::bindings::descriptor::{Element, Int, Module, PodRule};
use crate::bindings::errors;
use crate::bindings::errors::{ExceptionKind, Site};
use crate::cpython::{Buffer, Obj, Owned, R, Raised};
use crate::types;

/// Owners of the memory that must outlive the C call.
#[derive(Default)]
pub struct Keep {
    /// Views of Python memory.
    pub buffers: Vec<Buffer>,
    /// Objects whose memory C reads.
    pub objects: Vec<Owned>,
    /// Arrays allocated for C.
    pub arrays: Vec<Vec<u64>>,
}

impl Keep {
    /// An empty value.
    #[inline(always)]
    pub const fn new() -> Keep {
        Keep {
            buffers: Vec::new(),
            objects: Vec::new(),
            arrays: Vec::new(),
        }
    }

    /// A zeroed array of `bytes` bytes, 8-byte aligned, that lives as long as `self`; null if `bytes` is 0.
    ///
    /// # Errors
    ///
    /// `MemoryError`.
    pub fn array(&mut self, bytes: usize) -> R<*mut u8> {
        if bytes == 0 {
            return Ok(std::ptr::null_mut());
        }
        let words = bytes.div_ceil(8);
        let Ok(layout) = std::alloc::Layout::array::<u64>(words) else {
            return Err(errors::no_memory());
        };
        // The allocator zeroes: untouched pages take no memory, however large the count.
        // SAFETY: the layout has at least one word, as `bytes` is not 0.
        let memory = unsafe { std::alloc::alloc_zeroed(layout) };
        if memory.is_null() {
            return Err(errors::no_memory());
        }
        // SAFETY: the memory comes from the global allocator with this layout and is zeroed.
        let mut array = unsafe { Vec::from_raw_parts(memory.cast::<u64>(), words, words) };
        let address = array.as_mut_ptr().cast();
        self.arrays.push(array);
        Ok(address)
    }
}

/// `obj` as an `int`, by `__int__` or `__index__`. Refuses strings.
fn to_int(obj: Obj<'_>, site: Site, wanted: &str) -> R<Owned> {
    let number = if obj.has_slot(ffi::Py_nb_int) {
        // SAFETY: `obj` is live for the call. It has `__int__`, so no text is parsed.
        unsafe { ffi::PyNumber_Long(obj.ptr()) }
    } else if obj.has_slot(ffi::Py_nb_index) {
        // SAFETY: `obj` is live for the call.
        unsafe { ffi::PyNumber_Index(obj.ptr()) }
    } else {
        return Err(errors::wrong_type(site, wanted, obj));
    };
    Owned::take(number)
}

/// An `int` (exact or derived) within `kind`, sign-extended to 64 bits.
#[inline]
fn exact(obj: Obj<'_>, kind: Int, site: Site) -> R<u64> {
    let (value, fits) = match kind {
        Int::U64 => (crate::cpython::as_u64(obj), true),
        _ => {
            let v = crate::cpython::as_i64(obj);
            let fits = match kind {
                Int::I8 => i8::try_from(v).is_ok(),
                Int::U8 => u8::try_from(v).is_ok(),
                Int::I16 => i16::try_from(v).is_ok(),
                Int::U16 => u16::try_from(v).is_ok(),
                Int::I32 => i32::try_from(v).is_ok(),
                Int::U32 => u32::try_from(v).is_ok(),
                Int::I64 | Int::U64 => true,
            };
            (v.cast_unsigned(), fits)
        }
    };
    if (value == u64::MAX && crate::cpython::raised()) || !fits {
        crate::cpython::clear();
        return Err(errors::out_of_range(site, kind.c_name(), obj));
    }
    Ok(value)
}

/// An integer of the C type `kind`, sign-extended to 64 bits. Accepts what `int()` accepts except text.
///
/// # Errors
///
/// `TypeError`, `OverflowError`, or what the object's `__int__` raised.
#[inline]
pub fn int(obj: Obj<'_>, kind: Int, site: Site) -> R<u64> {
    if obj.is_exact_int() {
        return exact(obj, kind, site);
    }
    int_slow(obj, kind, site)
}

#[inline(never)]
fn int_slow(obj: Obj<'_>, kind: Int, site: Site) -> R<u64> {
    if obj.is_int() {
        return exact(obj, kind, site);
    }
    let number = to_int(obj, site, "an integer")?;
    exact(number.obj(), kind, site)
}

/// A floating-point number.
///
/// # Errors
///
/// `TypeError`, or what the object's `__float__` raised.
pub fn float(obj: Obj<'_>, site: Site) -> R<f64> {
    if !obj.has_slot(ffi::Py_nb_float) && !obj.has_slot(ffi::Py_nb_index) {
        return Err(errors::wrong_type(site, "a real number", obj));
    }
    // SAFETY: `obj` is live for the call.
    let value = unsafe { ffi::PyFloat_AsDouble(obj.ptr()) };
    if value == -1.0 && crate::cpython::raised() {
        return Err(Raised);
    }
    Ok(value)
}

/// The truth of any object, 0 or 1.
///
/// # Errors
///
/// What the object's `__bool__` raised.
pub fn truth(obj: Obj<'_>) -> R<u64> {
    // SAFETY: `obj` is live for the call.
    match unsafe { ffi::PyObject_IsTrue(obj.ptr()) } {
        -1 => Err(Raised),
        truth => Ok(u64::from(truth != 0)),
    }
}

/// An enum value: a member, or anything that `int()` accepts. 32 bits, signed or unsigned.
///
/// # Errors
///
/// `TypeError`, `OverflowError`, or `ValueError` for text that is not a number.
#[inline]
pub fn enumerator(obj: Obj<'_>, site: Site) -> R<u64> {
    if obj.is_int() {
        let value = crate::cpython::as_i64(obj);
        if (-(1i64 << 31)..1 << 32).contains(&value) && !(value == -1 && crate::cpython::raised()) {
            return Ok(value.cast_unsigned());
        }
        crate::cpython::clear();
        return Err(errors::out_of_range(site, "a C enum", obj));
    }
    if obj.is_none() {
        return Err(errors::not_none(site));
    }
    // Text is parsed because NVIDIA's package applies `int(text)`.
    let number = if obj.is_str() || obj.is_bytes() {
        // SAFETY: `obj` is live for the call.
        Owned::take(unsafe { ffi::PyNumber_Long(obj.ptr()) })?
    } else {
        to_int(obj, site, "an enum member")?
    };
    enumerator(number.obj(), site)
}

/// A handle: an instance of any handle class of this package, an integer, or `None` for 0.
///
/// # Errors
///
/// `TypeError` or `OverflowError`.
#[inline]
pub fn handle(obj: Obj<'_>, kind: Int, site: Site) -> R<u64> {
    if obj.is_exact_int() {
        return exact(obj, kind, site);
    }
    if let Some(value) = types::handle_value(obj) {
        return Ok(value);
    }
    if obj.is_none() {
        return Ok(0);
    }
    handle_slow(obj, kind, site)
}

#[inline(never)]
fn handle_slow(obj: Obj<'_>, kind: Int, site: Site) -> R<u64> {
    if obj.is_int() {
        return exact(obj, kind, site);
    }
    let number = to_int(obj, site, "a handle, an integer or None")?;
    exact(number.obj(), kind, site)
}

/// The address of a handle object's value; `None` for other objects, or if that memory was freed.
pub fn handle_storage(obj: Obj<'_>) -> Option<*mut u8> {
    types::handle_value(obj)?;
    types::handle_address(obj)
}

/// The address of a struct of class `id`; null for `None` if `nullable`.
///
/// # Errors
///
/// `TypeError`.
#[inline]
pub fn structure(obj: Obj<'_>, id: types::ClassId, nullable: bool, site: Site) -> R<u64> {
    if let Some(address) = types::struct_ptr(obj, id) {
        types::prepare_struct(obj)?;
        return Ok(address.addr() as u64);
    }
    if obj.is_none() && nullable {
        return Ok(0);
    }
    let or_none = if nullable { " or None" } else { "" };
    let wanted = format!("{}{or_none}", types::class_name(id));
    Err(errors::wrong_type(site, &wanted, obj))
}

/// The address of a struct of class `id` that a function of a raising library takes.
///
/// # Errors
///
/// `TypeError`; `ValueError` for an address without readable memory.
pub fn pod(obj: Obj<'_>, id: types::ClassId, rule: PodRule, module: Module, site: Site) -> R<u64> {
    if rule != PodRule::Plain
        && let Some(address) = types::pod_ptr(obj, Some(id))
    {
        types::prepare_struct(obj)?;
        return Ok(address.addr() as u64);
    }
    let class = types::class_name(id);
    match rule {
        PodRule::Exact => Err(errors::wrong_type(site, class, obj)),
        PodRule::Address if obj.is_none() && module != Module::Nvml => Ok(0),
        _ if obj.is_int() => {
            let at = address(obj, site)?;
            if at == 0 && module == Module::Nvml {
                // NVML dereferences the struct before it checks for null.
                let message = format!("{} must be {class}, not a null address", site.prefix());
                return Err(errors::raise(ExceptionKind::Value, &message));
            }
            memory_checks::check_memory(at, types::class_size(id) as u64, site)?;
            Ok(at)
        }
        PodRule::Address => {
            let wanted = match module {
                Module::Nvml => format!("{class} or its address"),
                _ => format!("{class}, its address or None"),
            };
            Err(errors::wrong_type(site, &wanted, obj))
        }
        PodRule::Plain => {
            let wanted = format!("the address of {class}");
            Err(errors::wrong_type(site, &wanted, obj))
        }
    }
}

/// The address of an array of `count` structs of class `id`; null for `None`.
///
/// # Errors
///
/// `TypeError`; fewer structs than `count`; `ValueError` for an address without readable memory.
pub fn pods(obj: Obj<'_>, id: types::ClassId, count: u64, site: Site) -> R<u64> {
    if obj.is_none() {
        return Ok(0);
    }
    if let Some(at) = types::pod_ptr(obj, Some(id)) {
        check_count(types::pod_count(obj), Some(count), site)?;
        types::prepare_struct(obj)?;
        return Ok(at.addr() as u64);
    }
    if obj.is_int() {
        let at = address(obj, site)?;
        let bytes = count.saturating_mul(types::class_size(id) as u64);
        memory_checks::check_memory(at, bytes, site)?;
        return Ok(at);
    }
    let wanted = format!("{}, its address or None", types::class_name(id));
    Err(errors::wrong_type(site, &wanted, obj))
}

/// The address of the text in a `bytes` or `bytearray`.
///
/// # Errors
///
/// `TypeError` for anything else.
pub fn bytes(obj: Obj<'_>, site: Site, keep: &mut Keep) -> R<u64> {
    if obj.is_bytes() {
        return Ok(obj.bytes_data().0.addr() as u64);
    }
    if obj.is_bytearray()
        && let Some(view) = Buffer::get(obj)?
    {
        // A bytearray's memory also ends with a nul; the view prevents resizing during the call.
        let address = view.address();
        keep.buffers.push(view);
        return Ok(address);
    }
    Err(errors::wrong_type(site, "bytes", obj))
}

/// Memory that C writes into: its address and size in bytes. `bytes` objects are written in place, as programs written
/// for NVIDIA's package expect.
///
/// # Errors
///
/// `TypeError`, or the exception with which the object refused to export its buffer.
pub fn bytes_out(obj: Obj<'_>, site: Site, keep: &mut Keep) -> R<(u64, usize)> {
    if obj.is_bytes() {
        let (data, len) = obj.bytes_data();
        if len <= 1 {
            // The interpreter shares these objects: a write would change every use of them. C gets scratch memory.
            return Ok((keep.array(8)?.addr() as u64, len));
        }
        return Ok((data.addr() as u64, len));
    }
    // Read-only buffers are refused: NumPy's True is one object for the whole process, and the pages of a mapped file may
    // not be writable.
    if !obj.is_str()
        && let Some(view) = Buffer::get(obj)?
        && !view.is_readonly()
    {
        let found = (view.address(), view.len());
        keep.buffers.push(view);
        return Ok(found);
    }
    let wanted = "bytes, a bytearray or another writable buffer";
    Err(errors::wrong_type(site, wanted, obj))
}

/// A `void *`: `None`, an integer, a handle (its value), a struct (its address), a buffer (its address), or an object
/// with `getPtr()`. Structs and buffers also return their size in bytes.
///
/// # Errors
///
/// `TypeError`, `OverflowError`, or the buffer is not contiguous.
pub fn void_ptr(obj: Obj<'_>, site: Site, keep: &mut Keep) -> R<(u64, Option<usize>)> {
    void_ptr_or(obj, site, keep, no_pointer)
}

/// As [`void_ptr`]; `refuse` makes the exception for an object of another type.
///
/// # Errors
///
/// As [`void_ptr`], and that of `refuse`.
pub fn void_ptr_or(
    obj: Obj<'_>,
    site: Site,
    keep: &mut Keep,
    refuse: fn(Obj<'_>, Site) -> Raised,
) -> R<(u64, Option<usize>)> {
    if obj.is_none() {
        return Ok((0, None));
    }
    if obj.is_int() {
        return exact(obj, Int::U64, site).map(|v| (v, None));
    }
    if let Some(value) = types::handle_value(obj) {
        return Ok((value, None));
    }
    if let Some(address) = types::any_struct_ptr(obj) {
        return Ok((address.addr() as u64, Some(types::any_struct_size(obj))));
    }
    let number = obj.has_slot(ffi::Py_nb_int);
    // A float is not an address: the driver would crash.
    if obj.has_slot(ffi::Py_nb_float) && !obj.has_slot(ffi::Py_nb_index) {
        return Err(refuse(obj, site));
    }
    if let Some(view) = Buffer::get(obj)? {
        // NumPy scalars are both numbers and buffers; they are converted by value.
        if !(number && view.ndim() == 0) {
            let found = (view.address(), Some(view.len()));
            keep.buffers.push(view);
            return Ok(found);
        }
    }
    if number || obj.has_slot(ffi::Py_nb_index) {
        let value = to_int(obj, site, "an integer")?;
        return exact(value.obj(), Int::U64, site).map(|v| (v, None));
    }
    if let Some(address) = get_ptr(obj, site)? {
        return Ok((address, None));
    }
    Err(refuse(obj, site))
}

/// The `TypeError` for an object that is no pointer.
#[cold]
pub fn no_pointer(obj: Obj<'_>, site: Site) -> Raised {
    let wanted = "None, an integer, an object with the buffer protocol or with getPtr()";
    errors::wrong_type(site, wanted, obj)
}

/// The `ValueError` of the functions that raise for an object that is neither an address nor a buffer.
#[cold]
pub fn no_buffer(obj: Obj<'_>, site: Site) -> Raised {
    not_a_buffer(obj, site, "a contiguous buffer")
}

/// An address or foreign handle (`intptr_t`), sign-extended. Refuses floats: a rounded address is wrong.
///
/// # Errors
///
/// `TypeError`, `OverflowError`, or what the object's `__int__` raised.
#[inline]
pub fn address(obj: Obj<'_>, site: Site) -> R<u64> {
    if obj.is_exact_int() {
        return exact(obj, Int::I64, site);
    }
    address_slow(obj, site)
}

#[inline(never)]
fn address_slow(obj: Obj<'_>, site: Site) -> R<u64> {
    if obj.is_int() {
        return exact(obj, Int::I64, site);
    }
    if let Some(value) = types::handle_value(obj) {
        return Ok(value);
    }
    if obj.has_slot(ffi::Py_nb_float) && !obj.has_slot(ffi::Py_nb_index) {
        return Err(errors::wrong_type(site, "an integer", obj));
    }
    let number = to_int(obj, site, "an integer")?;
    exact(number.obj(), Int::I64, site)
}

/// The address of the UTF-8 text of a `str`, valid as long as the object lives.
///
/// # Errors
///
/// `TypeError` for anything else, `UnicodeEncodeError` for lone surrogates, `ValueError` for a nul inside.
pub fn utf8(obj: Obj<'_>, site: Site) -> R<u64> {
    if !obj.is_str() {
        return Err(errors::wrong_type(site, "a str", obj));
    }
    let mut len: ffi::Py_ssize_t = 0;
    // SAFETY: `is_str` was checked above.
    let text = unsafe { ffi::PyUnicode_AsUTF8AndSize(obj.ptr(), &raw mut len) };
    if text.is_null() {
        return Err(Raised);
    }
    // SAFETY: `PyUnicode_AsUTF8AndSize` returned a pointer to `len` bytes.
    let bytes =
        unsafe { std::slice::from_raw_parts(text.cast::<u8>(), len.max(0).cast_unsigned()) };
    no_nul(bytes, site)?;
    Ok(text.addr() as u64)
}

/// Refuses text with a nul, which C would truncate.
fn no_nul(bytes: &[u8], site: Site) -> R<()> {
    match bytes.iter().position(|&b| b == 0) {
        None => Ok(()),
        Some(at) => {
            let message = format!(
                "{} has a nul character at position {at}, where C would end it",
                site.prefix()
            );
            Err(errors::raise(ExceptionKind::Value, &message))
        }
    }
}

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

/// Memory that C reads: `None` for null, an address, or a buffer of exactly `size` bytes.
///
/// # Errors
///
/// `ValueError` (also for wrong types, as in NVIDIA's package), or `OverflowError` for an address out of range.
pub fn buffer_in(obj: Obj<'_>, size: Option<(u64, &str)>, site: Site, keep: &mut Keep) -> R<u64> {
    if obj.is_none() {
        return Ok(0);
    }
    if obj.is_int() {
        let at = address(obj, site)?;
        memory_checks::check_memory(at, size.map_or(1, |(size, _)| size), site)?;
        return Ok(at);
    }
    let Some(view) = contiguous(obj, site, "a contiguous buffer")? else {
        return Err(not_a_buffer(obj, site, "a contiguous buffer"));
    };
    if let Some((size, name)) = size
        && view.len() as u64 != size
    {
        let message = format!(
            "{}: the buffer has {} bytes, but {name} is {size}",
            site.prefix(),
            view.len()
        );
        return Err(errors::raise(ExceptionKind::Value, &message));
    }
    let at = view.address();
    keep.buffers.push(view);
    Ok(at)
}

/// Text or an image that C reads up to a nul: `None` for null, an address, or a buffer. `bytes` end with a nul; C gets a
/// copy of other buffers with a nul at the end.
///
/// # Errors
///
/// `ValueError` (also for wrong types, as in NVIDIA's package, and for an address without readable memory), or
/// `OverflowError` for an address out of range.
pub fn text(obj: Obj<'_>, site: Site, keep: &mut Keep) -> R<u64> {
    const WANTED: &str = "bytes or another contiguous buffer";
    if obj.is_bytes() {
        return Ok(obj.bytes_data().0.addr() as u64);
    }
    if obj.is_none() {
        return Ok(0);
    }
    if obj.is_int() {
        let at = address(obj, site)?;
        memory_checks::check_memory(at, 1, site)?;
        return Ok(at);
    }
    let Some(view) = contiguous(obj, site, WANTED)? else {
        return Err(not_a_buffer(obj, site, WANTED));
    };
    let len = view.len();
    let copy = keep.array(len.checked_add(1).ok_or_else(errors::no_memory)?)?;
    if len > 0 {
        let from = std::ptr::with_exposed_provenance::<u8>(crate::bindings::call::words::address(
            view.address(),
        ));
        // SAFETY: the view has `len` bytes; `copy` has one more, and is zeroed.
        unsafe { std::ptr::copy_nonoverlapping(from, copy, len) };
    }
    Ok(copy.addr() as u64)
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

/// Memory that C writes: `None` for null, an address, or a writable buffer; and its size in bytes, if known.
///
/// # Errors
///
/// As [`buffer_in`].
pub fn buffer_out(obj: Obj<'_>, site: Site, keep: &mut Keep) -> R<(u64, Option<usize>)> {
    const WANTED: &str = "a contiguous writable buffer (a bytearray, a NumPy array, ...)";
    if obj.is_none() {
        return Ok((0, None));
    }
    if obj.is_int() {
        return address(obj, site).map(|at| (at, None));
    }
    match contiguous(obj, site, WANTED)? {
        Some(view) if !view.is_readonly() => {
            let found = (view.address(), Some(view.len()));
            keep.buffers.push(view);
            Ok(found)
        }
        _ => Err(not_a_buffer(obj, site, WANTED)),
    }
}

/// An object's buffer; `None` (and no exception) if it does not support the buffer protocol.
fn contiguous(obj: Obj<'_>, site: Site, wanted: &str) -> R<Option<Buffer>> {
    match Buffer::get(obj) {
        Ok(view) => Ok(view),
        Err(Raised) => {
            // SAFETY: `Buffer::get` has set an exception; the class is immortal.
            if unsafe { ffi::PyErr_ExceptionMatches(ffi::PyExc_BufferError) } == 0 {
                return Err(Raised);
            }
            crate::cpython::clear();
            Err(not_a_buffer(obj, site, wanted))
        }
    }
}

#[cold]
fn not_a_buffer(obj: Obj<'_>, site: Site, wanted: &str) -> Raised {
    let message = format!(
        "{} must be None, an address or {wanted}, not {}",
        site.prefix(),
        obj.type_name()
    );
    errors::raise(ExceptionKind::Value, &message)
}

/// The result of `obj.getPtr()`, if there is such a method.
///
/// # Errors
///
/// The exception that the call raised, or `TypeError` or `OverflowError` if it did not return an address.
pub fn get_ptr(obj: Obj<'_>, site: Site) -> R<Option<u64>> {
    let Some(method) = obj.attribute(c"getPtr")? else {
        return Ok(None);
    };
    let address = method.obj().call0()?;
    int(address.obj(), Int::U64, site).map(Some)
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
        let value = match of {
            Element::Int(kind) => int(item, kind, site)?,
            #[allow(clippy::cast_possible_truncation)] // a C float is what the parameter is
            Element::F32 => u64::from((float(item, site)? as f32).to_bits()),
            Element::F64 => float(item, site)?.to_bits(),
            Element::Enum(_) => {
                if !types::is_enum_member(item) {
                    return Err(element_type(of, item, site));
                }
                enumerator(item, site)?
            }
            Element::Handle(id, kind) => {
                if !is_handle_element(item, types::class_type(id)?) {
                    return Err(element_type(of, item, site));
                }
                handle(item, kind, site)?
            }
            Element::Bytes => bytes_element(item, site, keep)?,
            Element::VoidPtr => void_ptr(item, site, keep)?.0,
            Element::Address => address(item, site)?,
            Element::Struct(id, size) => {
                let from = element_struct(item, id, site)?;
                // SAFETY: the struct has `size` bytes; the array has room for all items.
                unsafe {
                    let to = array.add(index * size as usize);
                    std::ptr::copy_nonoverlapping(from, to, size as usize);
                }
                continue;
            }
        };
        // The low bytes are the value (little-endian).
        // SAFETY: the array has room for `items.len()` elements of `size` bytes; `size` is at most 8.
        unsafe {
            let to = array.add(index * size);
            std::ptr::copy_nonoverlapping((&raw const value).cast::<u8>(), to, size);
        }
    }
    keep.objects.push(items.into_owned());
    Ok(array.addr() as u64)
}

/// Whether an item of a list of handles is a handle of the class or of its base class. The bases of the runtime's classes
/// are the driver's.
fn is_handle_element(item: Obj<'_>, class: *mut ffi::PyTypeObject) -> bool {
    item.instance_of_type(class)
        // SAFETY: the class and the item's type are live.
        || types::handle_value(item).is_some()
            && unsafe { ffi::PyType_IsSubtype(class, ffi::Py_TYPE(item.ptr())) } != 0
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

/// `bytes` from a nul-terminated C string, `None` from null.
///
/// # Safety
///
/// `text` is null or ends with a nul.
///
/// # Errors
///
/// `MemoryError`.
pub unsafe fn c_string(text: *const c_char) -> R<Owned> {
    if text.is_null() {
        return Ok(crate::cpython::none());
    }
    // SAFETY: the caller guarantees that `text` ends with a nul.
    Owned::take(unsafe { ffi::PyBytes_FromString(text) })
}
