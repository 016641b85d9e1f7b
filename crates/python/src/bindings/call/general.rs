//! General route: one entry point for every function, driven by its descriptor.
//!
//! A call has five steps: bind positional and keyword arguments to parameters; convert them (lists last, when the counts
//! are known); allocate storage for the results; call the symbol without the GIL; convert the results to objects.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;

use cupyrite_sys::loader::CudaLibrary;
use pyo3::ffi;

use crate::bindings::call::convert;
use crate::bindings::call::convert::Keep;
use crate::bindings::custom::tagged_values;
use crate::bindings::descriptor::{
    Conv, Function, Int, Len, MAX_PARAMS, MAX_RESULTS, MAX_WORDS, Out, PLAIN_RESULTS, Word,
};
use crate::bindings::errors;
use crate::bindings::errors::{ExceptionKind, Site};
use crate::bindings::kernel_parameters::Packer;
use crate::bindings::{custom, symbols};
use crate::cpython;
use crate::cpython::{Obj, Owned, R, Raised};
use crate::types;

/// The arguments of a call, one for each parameter.
#[derive(Clone, Copy)]
pub struct Arguments<'a> {
    /// The function.
    pub f: &'static Function,
    args: *const *mut ffi::PyObject,
    life: std::marker::PhantomData<&'a ffi::PyObject>,
}

impl<'a> Arguments<'a> {
    /// The argument for parameter `index`; `None` if it was not passed.
    #[inline(always)]
    pub fn get(self, index: usize) -> Option<Obj<'a>> {
        debug_assert!(index < self.f.params.len());
        // SAFETY: `vectorcall` provides one pointer for each parameter, null or to a live object.
        unsafe {
            let ptr = *self.args.add(index);
            (!ptr.is_null()).then(|| Obj::new(ptr))
        }
    }

    /// The site of parameter `index`, for messages.
    #[inline(always)]
    pub fn site(self, index: usize) -> Site {
        Site {
            func: self.f.name,
            param: self.f.params[index].name,
        }
    }
}

/// The data of a call. Must not move after [`Frame::convert`]: C receives addresses into it.
pub struct Frame {
    /// The converted arguments, one word each.
    pub vals: [u64; MAX_PARAMS + 2],
    /// Storage of the results: values, or addresses of larger results.
    pub outs: [u64; MAX_RESULTS + 4],
    /// Results that are created as objects (structs, `bytes`), with their index.
    pub objects: Vec<(usize, Owned)>,
    /// Results of in-out arguments that were `None`, as bits.
    absent: u16,
    /// Kept alive until the end of the call.
    pub keep: Keep,
    packer: Packer,
}

impl Frame {
    /// An empty frame.
    #[inline(always)]
    pub fn new() -> Frame {
        Frame {
            vals: [0; MAX_PARAMS + 2],
            outs: [0; MAX_RESULTS + 4],
            objects: Vec::new(),
            absent: 0,
            keep: Keep::new(),
            packer: Packer::new(),
        }
    }

    /// Converts all arguments.
    ///
    /// # Errors
    ///
    /// The exception for the first argument that does not convert.
    #[inline]
    pub fn convert(&mut self, arguments: Arguments<'_>) -> R<()> {
        let mut later = 0u32;
        for (index, param) in arguments.f.params.iter().enumerate() {
            let Some(obj) = arguments.get(index) else {
                self.vals[index] = param.default.unwrap_or(0).cast_unsigned();
                continue;
            };
            let site = arguments.site(index);
            self.vals[index] = match param.conv {
                Conv::Int(kind) => convert::int(obj, kind, site)?,
                Conv::Handle(id, kind) => handle(obj, id, kind, site)?,
                Conv::HandlePtr(_, kind) => convert::handle(obj, kind, site)?,
                Conv::Enum(_) => convert::enumerator(obj, site)?,
                Conv::Struct(id) => convert::structure(obj, id, true, site)?,
                Conv::StructValue(id) => convert::structure(obj, id, false, site)?,
                Conv::KernelParams => self.packer.pack(obj, site, &mut self.keep)?,
                Conv::Bytes => convert::bytes(obj, site, &mut self.keep)?,
                Conv::IntOrNone(_) if obj.is_none() => 0,
                Conv::IntOrNone(kind) => convert::int(obj, kind, site)?,
                #[allow(clippy::cast_possible_truncation)] // a C float is what the parameter is
                Conv::F32 => u64::from((convert::float(obj, site)? as f32).to_bits()),
                Conv::F64 => convert::float(obj, site)?.to_bits(),
                Conv::VoidPtr(None) => convert::void_ptr(obj, site, &mut self.keep)?.0,
                Conv::VoidPtrPtr => void_ptr_ptr(obj, site)?,
                Conv::Address | Conv::LiveHandle(_) | Conv::DestroyedHandle(_) => {
                    convert::address(obj, site)?
                }
                Conv::Bool => convert::truth(obj)?,
                Conv::Str => convert::utf8(obj, site)?,
                Conv::VoidPtr(Some(_))
                | Conv::Rows(..)
                | Conv::StrList(_)
                | Conv::Buffer(_)
                | Conv::BufferOut(_)
                | Conv::Pod(..)
                | Conv::List(..)
                | Conv::BytesOut(_)
                | Conv::HandleArray(..)
                | Conv::StructArray(..)
                | Conv::Attribute(..)
                | Conv::Options(..) => {
                    later |= 1 << index;
                    0
                }
            };
        }
        while later != 0 {
            let index = later.trailing_zeros() as usize;
            later &= later - 1;
            self.convert_late(arguments, index)?;
        }
        Ok(())
    }

    /// Converts an argument whose conversion depends on other arguments.
    fn convert_late(&mut self, arguments: Arguments<'_>, index: usize) -> R<()> {
        let Some(obj) = arguments.get(index) else {
            return Ok(());
        };
        let site = arguments.site(index);
        let param = &arguments.f.params[index];
        self.vals[index] = match param.conv {
            Conv::VoidPtr(Some(size)) => {
                let (address, len) = convert::void_ptr(obj, site, &mut self.keep)?;
                let name = arguments.f.params[size as usize].name;
                check_room(len, self.vals[size as usize], site, name)?;
                if param.name == "dstHost" && obj.is_bytes() {
                    convert::bytes_out(obj, site, &mut self.keep)?.0
                } else {
                    address
                }
            }
            Conv::Rows(pitch, width, rows) => {
                let (address, len) = convert::void_ptr(obj, site, &mut self.keep)?;
                let [pitch, width, rows] = [pitch, width, rows].map(|i| self.vals[i as usize]);
                check_rows(len, pitch, width, rows, site)?;
                address
            }
            Conv::BytesOut(size) => {
                let (address, len) = convert::bytes_out(obj, site, &mut self.keep)?;
                if let Some(size) = size {
                    let name = arguments.f.params[size as usize].name;
                    check_room(Some(len), self.vals[size as usize], site, name)?;
                }
                address
            }
            // C takes an array where Python can pass only one element: C would read past it with a larger count.
            Conv::HandleArray(_, kind, count) => {
                let value = convert::handle(obj, kind, site)?;
                self.check_single(arguments, obj, count, site)?;
                value
            }
            Conv::StructArray(id, count) => {
                let value = convert::structure(obj, id, true, site)?;
                self.check_single(arguments, obj, count, site)?;
                value
            }
            Conv::List(of, count) => {
                let least = count.map(|c| {
                    self.count(arguments, c.param)
                        .saturating_sub(u64::from(c.less))
                });
                let optional = count.is_some_and(|c| c.optional);
                convert::list(obj, of, least, optional, site, &mut self.keep)?
            }
            Conv::Attribute(selector, by) => {
                let by = self.vals[by as usize];
                tagged_values::attribute_in(selector, by, obj, site, &mut self.keep)?
            }
            Conv::Options(selector, by, count) => {
                let options = arguments.get(by as usize);
                let count = self.count(arguments, count);
                tagged_values::options(selector, options, count, obj, site, &mut self.keep)?
            }
            Conv::StrList(count) => {
                let count = count.map(|count| self.count(arguments, count));
                convert::text_list(obj, count, site, &mut self.keep)?
            }
            Conv::Buffer(size) => {
                let size = size.map(|size| {
                    let name = arguments.f.params[size as usize].name;
                    (self.count(arguments, size), name)
                });
                convert::buffer_in(obj, size, site, &mut self.keep)?
            }
            _ => 0,
        };
        Ok(())
    }

    fn check_single(&self, arguments: Arguments<'_>, obj: Obj<'_>, count: u8, site: Site) -> R<()> {
        match self.count(arguments, count) {
            want if want > 1 && !obj.is_none() => Err(errors::too_few(site, 1, want)),
            _ => Ok(()),
        }
    }

    /// The value of a count parameter. Negative counts, which C refuses, count as 0.
    fn count(&self, arguments: Arguments<'_>, index: u8) -> u64 {
        let value = self.vals[index as usize];
        match arguments.f.params[index as usize].conv {
            Conv::Int(Int::I32 | Int::I64) => value.cast_signed().max(0).cast_unsigned(),
            _ => value,
        }
    }

    /// Allocates storage for the results.
    ///
    /// # Errors
    ///
    /// `MemoryError`.
    #[inline]
    pub fn provide(&mut self, arguments: Arguments<'_>) -> R<()> {
        for (index, result) in arguments.f.results.iter().enumerate() {
            self.outs[index] = match result.kind {
                Out::Struct(id) => {
                    let (object, address) = types::new_struct(id)?;
                    self.objects.push((index, object));
                    address.addr() as u64
                }
                Out::Bytes(len, _) => {
                    let given = len;
                    let len = usize::try_from(self.len(arguments, len))
                        .map_err(|_| errors::no_memory())?;
                    let Ok(len) = ffi::Py_ssize_t::try_from(len) else {
                        return Err(errors::no_memory());
                    };
                    if len == 0 {
                        // NVIDIA's driver treats a length of 0 as unlimited and writes until it crashes. Pass it 8 bytes
                        // and a length of 1; the result is empty.
                        self.objects.push((index, cpython::from_bytes(b"")?));
                        self.outs[index] = self.keep.array(8)?.addr() as u64;
                        if let Len::Arg(arg) = given {
                            self.vals[arg as usize] = 1;
                        }
                        continue;
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
                _ => continue,
            };
        }
        Ok(())
    }

    /// A number of elements known before the call.
    pub fn len(&self, arguments: Arguments<'_>, len: Len) -> u64 {
        match len {
            Len::Arg(index) => self.count(arguments, index),
            Len::Const(n) => u64::from(n),
            // Known only after the first of two calls (`raising`).
            Len::Counted => 0,
        }
    }

    /// The C arguments.
    #[inline]
    pub fn words(&mut self, arguments: Arguments<'_>) -> [u64; MAX_WORDS] {
        let mut words = [0u64; MAX_WORDS];
        let vals = self.vals.as_mut_ptr();
        let outs = self.outs.as_mut_ptr();
        for (word, from) in words.iter_mut().zip(arguments.f.words) {
            // SAFETY: `descriptor::verify` checks all indices at compile time.
            *word = unsafe {
                match *from {
                    Word::Arg(arg) => *vals.add(arg as usize),
                    Word::ArgAddress(arg) => self.address_of(arguments, arg),
                    Word::Result(result) => match arguments.f.results[result as usize].kind {
                        Out::Struct(_) | Out::Bytes(..) | Out::List(..) | Out::Attribute(..) => {
                            *outs.add(result as usize)
                        }
                        _ => outs.add(result as usize).addr() as u64,
                    },
                    Word::InOut(arg, result) => {
                        if arguments.get(arg as usize).is_some_and(Obj::is_none) {
                            self.absent |= 1 << result;
                            0
                        } else {
                            outs.add(result as usize).write(*vals.add(arg as usize));
                            outs.add(result as usize).addr() as u64
                        }
                    }
                    Word::Const(value) => value,
                    // Only `raising` uses the last three.
                    Word::Null | Word::Count | Word::Request(_) | Word::Elements(_) => 0,
                }
            };
        }
        words
    }

    /// The address passed to C for an argument that it takes by pointer.
    unsafe fn address_of(&mut self, arguments: Arguments<'_>, arg: u8) -> u64 {
        let param = &arguments.f.params[arg as usize];
        let obj = arguments.get(arg as usize);
        if obj.is_some_and(Obj::is_none) {
            return 0;
        }
        if let (Conv::HandlePtr(..) | Conv::HandleArray(..), Some(obj)) = (param.conv, obj)
            && let Some(address) = convert::handle_storage(obj)
        {
            return address.addr() as u64;
        }
        if matches!(param.conv, Conv::HandlePtr(..) | Conv::HandleArray(..))
            && self.vals[arg as usize] == 0
        {
            return 0;
        }
        // SAFETY: `descriptor::verify` checks that `arg` is a parameter; `vals` has room for all.
        unsafe { self.vals.as_mut_ptr().add(arg as usize).addr() as u64 }
    }

    /// Result `index` as an object.
    ///
    /// # Errors
    ///
    /// `MemoryError`.
    #[inline]
    pub fn result(&mut self, arguments: Arguments<'_>, index: usize) -> R<Owned> {
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
            kind => word_result(kind, word),
        }
    }

    /// The object that [`Frame::provide`] created for result `index`.
    ///
    /// # Errors
    ///
    /// `SystemError` if there is none.
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

/// An address as `usize`.
#[allow(clippy::cast_possible_truncation)] // 64-bit machines only
#[inline(always)]
pub fn address(word: u64) -> usize {
    word as usize
}

fn result_site(arguments: Arguments<'_>, index: usize) -> Site {
    Site {
        func: arguments.f.name,
        param: arguments.f.results[index].name,
    }
}

/// The value of type `kind` in the low bytes of a word, sign-extended.
#[allow(clippy::cast_possible_truncation)] // the low bytes are what C stored
pub fn low_bytes(word: u64, kind: Int) -> u64 {
    match kind {
        Int::I8 => i64::from(word as i8).cast_unsigned(),
        Int::U8 => u64::from(word as u8),
        Int::I16 => i64::from(word as i16).cast_unsigned(),
        Int::U16 => u64::from(word as u16),
        Int::I32 => i64::from(word as i32).cast_unsigned(),
        Int::U32 => u64::from(word as u32),
        Int::I64 | Int::U64 => word,
    }
}

/// An `int` from the low bytes of a word.
///
/// # Errors
///
/// `MemoryError`.
#[inline]
pub fn int_from(word: u64, kind: Int) -> R<Owned> {
    match kind {
        Int::U64 => cpython::from_u64(word),
        _ => cpython::from_i64(low_bytes(word, kind).cast_signed()),
    }
}

/// `extra` of a launch: an address. `None` is 0; NVIDIA's package takes integers only.
fn void_ptr_ptr(obj: Obj<'_>, site: Site) -> R<u64> {
    if obj.is_none() {
        return Ok(0);
    }
    convert::int(obj, Int::U64, site)
}

/// Refuses a buffer smaller than the number of bytes that C accesses.
///
/// # Errors
///
/// `ValueError`.
pub fn check_room(len: Option<usize>, needed: u64, site: Site, size: &str) -> R<()> {
    match len {
        Some(len) if needed > len as u64 => {
            let message = format!(
                "{}: the buffer has {len} bytes, but {size} is {needed}",
                site.prefix()
            );
            Err(errors::raise(ExceptionKind::Value, &message))
        }
        _ => Ok(()),
    }
}

/// As [`check_room`], for rows that are `pitch` bytes apart.
///
/// # Errors
///
/// `ValueError`.
fn check_rows(len: Option<usize>, pitch: u64, width: u64, rows: u64, site: Site) -> R<()> {
    let Some(len) = len else {
        return Ok(());
    };
    let needed = match rows {
        0 => Some(0),
        rows => (rows - 1)
            .checked_mul(pitch)
            .and_then(|before| before.checked_add(width)),
    };
    if needed.is_none_or(|needed| needed > len as u64) {
        let message = format!(
            "{}: the buffer has {len} bytes, but {rows} rows of {width} bytes, {pitch} apart, are more",
            site.prefix()
        );
        return Err(errors::raise(ExceptionKind::Value, &message));
    }
    Ok(())
}

/// Calls the symbol of `f`, without the GIL unless the descriptor keeps it.
///
/// # Errors
///
/// The library or symbol is missing, or a signal handler raised meanwhile.
#[inline]
pub fn invoke(f: &'static Function, words: &[u64; MAX_WORDS]) -> R<i64> {
    let symbol = symbols::symbol(f)?;
    let status = invoke_at(f, symbol, words.as_ptr());
    symbols::check_interrupt()?;
    Ok(status)
}

/// Calls a symbol with the words for `f`, without the GIL unless the descriptor keeps it.
#[inline(always)]
pub fn invoke_at(f: &'static Function, symbol: *const c_void, words: *const u64) -> i64 {
    // SAFETY: the caller passes words that match this function's C signature, the symbol of that function, and keeps alive
    // the memory that the words point to. The thread is attached again before Python is used.
    unsafe {
        if f.keep_gil && symbols::keeps_gil() {
            (f.thunk)(symbol, words)
        } else {
            cpython::detached(|| (f.thunk)(symbol, words))
        }
    }
}

/// The tuple that a call returns: the status and the results of `value`, or `None`s after an error.
///
/// # Errors
///
/// The exception that `value` raised, or `MemoryError`.
#[inline]
pub fn answer(
    library: CudaLibrary,
    status: i64,
    count: usize,
    mut value: impl FnMut(usize) -> R<Owned>,
) -> R<Owned> {
    if count == 0 {
        return symbols::status_tuple(library, status);
    }
    let first = symbols::status(library, status)?;
    // SAFETY: a new tuple, filled before it is published; `PyTuple_SetItem` steals the references.
    unsafe {
        let tuple = Owned::take(ffi::PyTuple_New((count + 1).cast_signed()))?;
        ffi::PyTuple_SetItem(tuple.ptr(), 0, first.into_ptr());
        for index in 0..count {
            let item = if status == 0 {
                value(index)?
            } else {
                cpython::none()
            };
            ffi::PyTuple_SetItem(tuple.ptr(), (index + 1).cast_signed(), item.into_ptr());
        }
        Ok(tuple)
    }
}

/// A complete call of a function whose arguments and results are one word each. It needs no frame, as nothing has to be
/// kept alive for C.
///
/// # Errors
///
/// Any exception that a step raises.
#[inline]
pub fn plain(arguments: Arguments<'_>) -> R<Owned> {
    let f = arguments.f;
    let mut outs = [0u64; PLAIN_RESULTS];
    let out = outs.as_mut_ptr();
    let mut words = [const { MaybeUninit::<u64>::uninit() }; MAX_WORDS];
    for (word, from) in words.iter_mut().zip(f.words) {
        word.write(match *from {
            Word::Arg(arg) => match plain_word(arguments, arg as usize)? {
                Some(word) => word,
                None => return general(arguments),
            },
            // SAFETY: a plain function has at most `PLAIN_RESULTS` results.
            Word::Result(result) => unsafe { out.add(result as usize).addr() as u64 },
            _ => 0,
        });
    }
    let symbol = symbols::symbol(f)?;
    let status = invoke_at(f, symbol, words.as_ptr().cast());
    symbols::check_interrupt()?;
    answer(f.library, status, f.results.len(), |index| {
        // SAFETY: a plain function has at most `PLAIN_RESULTS` results; C wrote through the same pointer.
        word_result(f.results[index].kind, unsafe { out.add(index).read() })
    })
}

/// The value of a handle; a fast path for 64-bit handle objects that are exactly of class `id`.
#[inline(always)]
fn handle(obj: Obj<'_>, id: types::ClassId, kind: Int, site: Site) -> R<u64> {
    if kind == Int::U64
        && let Some(value) = types::own_handle(obj, id)
    {
        return Ok(value);
    }
    convert::handle(obj, kind, site)
}

/// The word for an argument of a plain function; `None` for memory that must be kept alive during the C call, which
/// [`general`] does.
#[inline]
fn plain_word(arguments: Arguments<'_>, index: usize) -> R<Option<u64>> {
    let param = &arguments.f.params[index];
    let Some(obj) = arguments.get(index) else {
        return Ok(Some(param.default.unwrap_or(0).cast_unsigned()));
    };
    let site = arguments.site(index);
    match param.conv {
        Conv::Handle(id, kind) => handle(obj, id, kind, site),
        Conv::Enum(_) => convert::enumerator(obj, site),
        Conv::Int(kind) => convert::int(obj, kind, site),
        Conv::IntOrNone(kind) if !obj.is_none() => convert::int(obj, kind, site),
        Conv::VoidPtr(_) | Conv::Rows(..) if obj.is_exact_int() => {
            convert::int(obj, Int::U64, site)
        }
        Conv::VoidPtr(_) | Conv::Rows(..) if !obj.is_none() => return Ok(None),
        _ => Ok(0),
    }
    .map(Some)
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
        // SAFETY: C stored null or the address of a nul-terminated string.
        Out::CString => unsafe {
            convert::c_string(std::ptr::with_exposed_provenance::<c_char>(address(word)))
        },
        _ => cpython::from_u64(word),
    }
}

/// A complete call with a frame.
///
/// # Errors
///
/// Any exception that a step raises.
#[inline]
pub fn general(arguments: Arguments<'_>) -> R<Owned> {
    let f = arguments.f;
    let mut frame = Frame::new();
    frame.convert(arguments)?;
    frame.provide(arguments)?;
    let words = frame.words(arguments);
    let status = invoke(f, &words)?;
    answer(f.library, status, f.results.len(), |index| {
        if frame.absent & 1 << index != 0 {
            return Ok(cpython::none());
        }
        frame.result(arguments, index)
    })
}

/// Calls `f` with arguments as the vectorcall protocol passes them.
///
/// # Safety
///
/// `args` holds `nargs` positional arguments followed by one for each name in `kwnames` (null or a tuple of str).
/// The thread is attached.
///
/// # Errors
///
/// Any exception that the call raises.
#[inline]
pub unsafe fn vectorcall(
    f: &'static Function,
    args: *const *mut ffi::PyObject,
    nargs: usize,
    kwnames: *mut ffi::PyObject,
) -> R<Owned> {
    if kwnames.is_null() && nargs == f.params.len() {
        let arguments = Arguments {
            f,
            args,
            life: std::marker::PhantomData,
        };
        return custom::dispatch(arguments);
    }
    let mut room = [std::ptr::null_mut(); MAX_PARAMS];
    // SAFETY: as promised by the caller.
    unsafe { bind(f, args, nargs, kwnames, &mut room)? };
    custom::dispatch(Arguments {
        f,
        args: room.as_ptr(),
        life: std::marker::PhantomData,
    })
}

/// Binds positional and keyword arguments to parameters, one element of `room` each.
#[inline(never)]
unsafe fn bind(
    f: &'static Function,
    args: *const *mut ffi::PyObject,
    nargs: usize,
    kwnames: *mut ffi::PyObject,
    room: &mut [*mut ffi::PyObject; MAX_PARAMS],
) -> R<()> {
    let params = f.params;
    let keywords = if kwnames.is_null() {
        0
    } else {
        // SAFETY: the caller passes null or a tuple.
        unsafe { ffi::PyTuple_Size(kwnames) }.max(0).cast_unsigned()
    };
    if nargs > params.len() {
        return Err(wrong_count(f, nargs));
    }
    // Nonzero for the two-argument form of `cuCtxCreate` of CUDA 12, which has no leading parameter block.
    let first = custom::skipped_parameters(f, nargs, keywords);
    for index in 0..nargs {
        // SAFETY: the caller passes `nargs` positional arguments.
        room[first + index] = unsafe { *args.add(index) };
    }
    for index in 0..keywords {
        // SAFETY: the tuple has `keywords` names; the caller passes as many values after the positional arguments.
        let (name, value) = unsafe {
            (
                Obj::new(ffi::PyTuple_GetItem(kwnames, index.cast_signed())),
                *args.add(nargs + index),
            )
        };
        let name = name.text().unwrap_or_default();
        match params.iter().position(|param| param.name == name) {
            Some(at) if room[at].is_null() => room[at] = value,
            Some(_) => {
                let message = format!("{}() got multiple values for argument '{name}'", f.name);
                return Err(errors::raise(ExceptionKind::Type, &message));
            }
            None => {
                let message = format!("{}() got an unexpected keyword argument '{name}'", f.name);
                return Err(errors::raise(ExceptionKind::Type, &message));
            }
        }
    }
    for (index, param) in params.iter().enumerate() {
        if room[index].is_null() && param.default.is_none() && index >= first {
            if keywords == 0 {
                return Err(wrong_count(f, nargs));
            }
            let message = format!("{}() missing required argument: '{}'", f.name, param.name);
            return Err(errors::raise(ExceptionKind::Type, &message));
        }
    }
    Ok(())
}

#[cold]
fn wrong_count(f: &'static Function, given: usize) -> Raised {
    let most = f.params.len();
    let least = f.params.iter().filter(|p| p.default.is_none()).count();
    let s = if most == 1 { "" } else { "s" };
    let missing = f
        .params
        .iter()
        .skip(given)
        .filter(|p| p.default.is_none())
        .map(|p| format!("'{}'", p.name))
        .collect::<Vec<_>>()
        .join(", ");
    let message = if most == 0 {
        format!("{}() takes no arguments ({given} given)", f.name)
    } else if given < least {
        format!(
            "{}() takes {} {} positional argument{s} ({given} given); missing: {missing}",
            f.name,
            if least == most { "exactly" } else { "at least" },
            least
        )
    } else {
        format!(
            "{}() takes {} {most} positional argument{s} ({given} given)",
            f.name,
            if least == most { "exactly" } else { "at most" },
        )
    };
    errors::raise(ExceptionKind::Type, &message)
}
