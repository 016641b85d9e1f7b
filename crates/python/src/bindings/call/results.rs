//! The results of a call on the general route: their storage, and the objects that the call returns.

use std::ffi::{CStr, c_char};

use pyo3::ffi;

use crate::bindings::call::convert;
use crate::bindings::call::frame::Frame;
use crate::bindings::call::words::{address, int_from, low_bytes};
use crate::bindings::custom::tagged_values;
use crate::bindings::descriptor::Arguments;
use crate::bindings::descriptor::{Function, Len, Out, Ret};
use crate::bindings::errors;
use crate::bindings::errors::{ExceptionKind, Site};
use crate::bindings::last_error;
use crate::bindings::raising;
use crate::bindings::raising::requests;
use crate::bindings::symbols;
use crate::cpython;
use crate::cpython::{Owned, R};
use crate::types;

/// Return value of a C call.
#[derive(Clone, Copy)]
pub struct Returned {
    /// The value.
    pub value: i64,
    /// `errno` right after the call, used by functions that raise.
    pub errno: i32,
}

impl Frame {
    /// Allocates storage for the results.
    ///
    /// # Errors
    ///
    /// `MemoryError`.
    #[inline]
    pub fn provide(&mut self, arguments: Arguments<'_>) -> R<()> {
        for (index, result) in arguments.f.results.iter().enumerate() {
            if result.kind.is_by_address() {
                self.outs[index] = self.storage(arguments, index)?;
            }
        }
        Ok(())
    }

    /// Allocates the storage of a result that is not a word of the frame; 0 if its size is not known yet.
    #[inline(never)]
    fn storage(&mut self, arguments: Arguments<'_>, index: usize) -> R<u64> {
        let kind = arguments.f.results[index].kind;
        Ok(match kind {
            Out::Struct(id) => {
                let (object, address) = types::new_struct(id)?;
                self.objects.push((index, object));
                address.addr() as u64
            }
            Out::Bytes(len, _) => {
                let given = len;
                let len =
                    usize::try_from(self.len(arguments, len)).map_err(|_| errors::no_memory())?;
                let Ok(len) = ffi::Py_ssize_t::try_from(len) else {
                    return Err(errors::no_memory());
                };
                if len == 0 {
                    // NVIDIA's driver treats a length of 0 as unlimited and writes until it crashes. Pass it 8 bytes
                    // and a length of 1; the result is empty.
                    self.objects.push((index, cpython::from_bytes(b"")?));
                    let at = self.keep.array(8)?.addr() as u64;
                    if let Len::Arg(arg) = given {
                        self.vals[arg as usize] = 1;
                    }
                    return Ok(at);
                }
                // The allocator zeroes `bytes(length)`: untouched pages take no memory.
                let number = cpython::from_i64(len as i64)?;
                // SAFETY: the type is immortal and the argument live; the object is new and has `len` bytes.
                unsafe {
                    let class = (&raw mut ffi::PyBytes_Type).cast::<ffi::PyObject>();
                    let null = std::ptr::null_mut::<ffi::PyObject>();
                    let made = ffi::PyObject_CallFunctionObjArgs(class, number.ptr(), null);
                    let object = Owned::take(made)?;
                    let data = ffi::PyBytes_AsString(object.ptr());
                    self.objects.push((index, object));
                    data.addr() as u64
                }
            }
            Out::List(of, len) => {
                let len = self.len(arguments, len);
                let bytes = usize::try_from(len)
                    .ok()
                    .and_then(|len| len.checked_mul(of.size()))
                    .ok_or_else(errors::no_memory)?;
                self.keep.array(bytes)?.addr() as u64
            }
            Out::Attribute(selector, by) => {
                let by = self.vals[by as usize];
                let site = result_site(arguments, index);
                tagged_values::attribute_storage(selector, by, site, &mut self.keep)?
            }
            Out::BufferStruct(id) => {
                let (object, address) = types::new_buffer_struct(id, 1)?;
                self.objects.push((index, object));
                address.addr() as u64
            }
            Out::Str(len) | Out::Slice(_, len) | Out::BufferStructs(_, len)
                if !matches!(len, Len::Counted) && !returns_text(arguments.f) =>
            {
                let len = self.len(arguments, len);
                self.array(index, kind, len)?
            }
            _ => 0,
        })
    }

    /// Allocates storage for `len` elements of a result.
    ///
    /// # Errors
    ///
    /// `MemoryError`.
    pub fn array(&mut self, index: usize, kind: Out, len: u64) -> R<u64> {
        let len = usize::try_from(len).map_err(|_| errors::no_memory())?;
        Ok(match kind {
            Out::Str(_) => {
                // One byte more than C gets: the text stays NUL-terminated whatever C writes.
                let bytes = len.checked_add(1).ok_or_else(errors::no_memory)?;
                let at = self.keep.array(bytes)?;
                if len == 0 { 0 } else { at.addr() as u64 }
            }
            Out::Slice(of, _) => {
                let bytes = len.checked_mul(of.size()).ok_or_else(errors::no_memory)?;
                self.keep.array(bytes)?.addr() as u64
            }
            Out::BufferStructs(id, _) => {
                let (object, address) = types::new_buffer_struct(id, len)?;
                self.objects.retain(|(at, _)| *at != index);
                self.objects.push((index, object));
                if len == 0 { 0 } else { address.addr() as u64 }
            }
            _ => 0,
        })
    }

    /// What a call returns after C has succeeded or, where functions do not raise, failed.
    ///
    /// # Errors
    ///
    /// `MemoryError`, or text that is not UTF-8.
    #[inline]
    pub fn answer(&mut self, arguments: Arguments<'_>, returned: Returned) -> R<Owned> {
        let f = arguments.f;
        let mut ret = Ret::Status;
        if let Some(raising) = f.raising {
            ret = raising.ret;
            requests::read(self, arguments, raising);
        }
        answer(f, returned.value, |index| {
            if index == 0 && matches!(ret, Ret::Size | Ret::Value(_) | Ret::Text) {
                return returned_value(ret, returned.value);
            }
            if self.absent & 1 << index != 0 {
                return Ok(cpython::none());
            }
            self.result(arguments, index)
        })
    }

    /// Result `index` as an object.
    ///
    /// # Errors
    ///
    /// `MemoryError`.
    #[inline]
    pub fn result(&mut self, arguments: Arguments<'_>, index: usize) -> R<Owned> {
        match arguments.f.results[index].kind {
            kind if kind.is_by_address() => self.large_result(arguments, index),
            kind => word_result(kind, self.outs[index]),
        }
    }

    /// A result whose storage is not a word of the frame.
    #[inline(never)]
    fn large_result(&mut self, arguments: Arguments<'_>, index: usize) -> R<Owned> {
        let word = self.outs[index];
        match arguments.f.results[index].kind {
            Out::Struct(_) => self.object(index),
            Out::Bytes(_, until_nul) => {
                let object = self.object(index)?;
                if until_nul {
                    let (data, len) = object.obj().bytes_data();
                    // SAFETY: the `bytes` object is live and has `len` bytes.
                    let bytes = unsafe { std::slice::from_raw_parts(data, len) };
                    if let Some(end) = bytes.iter().position(|&b| b == 0) {
                        return cpython::from_bytes(&bytes[..end]);
                    }
                }
                Ok(object)
            }
            Out::List(of, len) => {
                let len =
                    usize::try_from(self.len(arguments, len)).map_err(|_| errors::no_memory())?;
                tagged_values::list_from(std::ptr::with_exposed_provenance(address(word)), len, of)
            }
            Out::Attribute(selector, by) => {
                let by = self.vals[by as usize];
                tagged_values::attribute_out(selector, by, word, result_site(arguments, index))
            }
            Out::Str(len) => utf8(word, address(self.len(arguments, len))),
            Out::Slice(of, len) => {
                let bytes = address(self.len(arguments, len)) * of.size();
                let bytes: &[u8] = if bytes == 0 {
                    &[]
                } else {
                    let from = std::ptr::with_exposed_provenance(address(word));
                    // SAFETY: `array` allocated this many elements there, and the frame keeps them alive.
                    unsafe { std::slice::from_raw_parts(from, bytes) }
                };
                types::new_slice(of, bytes)
            }
            Out::BufferStruct(_) | Out::BufferStructs(..) => self.object(index),
            kind => word_result(kind, word),
        }
    }

    /// The object that [`Frame::provide`] created for result `index`.
    ///
    /// # Errors
    ///
    /// `SystemError` if the result has no storage.
    pub fn object(&mut self, index: usize) -> R<Owned> {
        match self.objects.iter().position(|(at, _)| *at == index) {
            Some(at) => Ok(self.objects.swap_remove(at).1),
            None => Err(errors::raise(
                ExceptionKind::System,
                "a result has no storage",
            )),
        }
    }
}

/// A result that is the return value of C.
#[inline(never)]
fn returned_value(ret: Ret, value: i64) -> R<Owned> {
    match ret {
        Ret::Value(kind) => int_from(value.cast_unsigned(), kind),
        Ret::Text => text(value.cast_unsigned()),
        Ret::Status | Ret::CuFile | Ret::Size | Ret::Void => cpython::from_i64(value),
    }
}

/// Whether C returns the text that is the function's result.
fn returns_text(f: &Function) -> bool {
    f.raising.is_some_and(|raising| raising.ret == Ret::Text)
}

fn result_site(arguments: Arguments<'_>, index: usize) -> Site {
    Site {
        func: arguments.f.name,
        param: arguments.f.results[index].name,
    }
}

/// The object for a result that is one word.
#[inline]
pub fn word_result(kind: Out, word: u64) -> R<Owned> {
    match kind {
        Out::Int(kind) => int_from(word, kind),
        Out::Handle(id, kind) => types::new_own_handle(id, low_bytes(word, kind)),
        #[allow(clippy::cast_possible_truncation)] // enums are 32 bits in C
        Out::Enum(id) => types::enum_member(id, i64::from(word as u32 as i32)),
        #[allow(clippy::cast_possible_truncation)] // floats are 32 bits
        Out::F32 => cpython::from_f64(f32::from_bits(word as u32).into()),
        Out::F64 => cpython::from_f64(f64::from_bits(word)),
        Out::CBytes if word == 0 => cpython::from_bytes(b""),
        // SAFETY: C stored null or the address of a nul-terminated string.
        Out::CString | Out::CBytes => unsafe {
            convert::c_string(std::ptr::with_exposed_provenance::<c_char>(address(word)))
        },
        Out::CText => text(word),
        Out::Bool => cpython::from_bool(word & 0xFF != 0),
        Out::Address | Out::NewHandle(_) => cpython::from_i64(word.cast_signed()),
        _ => cpython::from_u64(word),
    }
}

/// What a call of `f` returns. Functions that raise return `None`, one value or a tuple of values, or raise for an error
/// status. The others return a tuple of the status and the values, which are `None` after an error.
///
/// # Errors
///
/// The exception that `value` raised, or `MemoryError`.
#[inline]
pub fn answer(f: &Function, status: i64, mut value: impl FnMut(usize) -> R<Owned>) -> R<Owned> {
    let count = f.results.len();
    let alone = f.raising.is_some();
    if status != 0 {
        match f.raising {
            None => last_error::take(f, status),
            Some(raising) if raising.ret == Ret::Status => {
                return Err(raising::status_error(f, status));
            }
            // The value is not a status.
            Some(_) => {}
        }
    }
    match count {
        0 if alone => return Ok(cpython::none()),
        0 => return symbols::status_tuple(f.library(), status),
        1 if alone => return value(0),
        _ => {}
    }
    let first = if alone {
        None
    } else {
        Some(symbols::status(f.library(), status)?)
    };
    let before = usize::from(first.is_some());
    // SAFETY: a new tuple, filled before it is published; `PyTuple_SetItem` steals the references.
    unsafe {
        let tuple = Owned::take(ffi::PyTuple_New((before + count).cast_signed()))?;
        if let Some(first) = first {
            ffi::PyTuple_SetItem(tuple.ptr(), 0, first.into_ptr());
        }
        for index in 0..count {
            let item = if alone || status == 0 {
                value(index)?
            } else {
                cpython::none()
            };
            ffi::PyTuple_SetItem(tuple.ptr(), (before + index).cast_signed(), item.into_ptr());
        }
        Ok(tuple)
    }
}

/// Makes a `str` from at most `len` bytes of UTF-8, up to the first nul.
fn utf8(at: u64, len: usize) -> R<Owned> {
    if at == 0 || len == 0 {
        return cpython::from_str("");
    }
    let from = std::ptr::with_exposed_provenance::<u8>(address(at));
    // SAFETY: the caller allocated `len` bytes there.
    let bytes = unsafe { std::slice::from_raw_parts(from, len) };
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(len);
    cpython::from_utf8(&bytes[..end])
}

/// Makes a `str` from a constant C string, an empty one from null.
fn text(at: u64) -> R<Owned> {
    if at == 0 {
        return cpython::from_str("");
    }
    let from = std::ptr::with_exposed_provenance::<c_char>(address(at));
    // SAFETY: by the library's contract, a non-null result is a constant string.
    cpython::from_utf8(unsafe { CStr::from_ptr(from) }.to_bytes())
}
