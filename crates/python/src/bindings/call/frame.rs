//! The data of a call on the general route: converted arguments, storage of the results, and owners of memory that C uses.

use smallvec::SmallVec;

use crate::bindings::call::convert;
use crate::bindings::call::convert::Keep;
use crate::bindings::call::memory_checks::{check_memory, check_room, check_rows, check_struct};
use crate::bindings::custom::tagged_values;
use crate::bindings::descriptor::{
    Arguments, Conv, HandleKind, Int, Len, MAX_PARAMS, MAX_REQUESTS, MAX_RESULTS, MAX_WORDS,
    OutSize, Word,
};
use crate::bindings::errors;
use crate::bindings::errors::Site;
use crate::bindings::kernel_parameters::Packer;
use crate::bindings::raising::{entry_points, requests};
use crate::cpython::{Obj, Owned, R};
use crate::types;

/// The handle argument of a call, which must be live ([`Conv::LiveHandle`], [`Conv::DestroyedHandle`]).
#[derive(Clone, Copy)]
pub struct HandleArgument {
    /// Its kind.
    pub kind: HandleKind,
    /// The converted argument.
    pub value: u64,
    /// Whether the call destroys it.
    pub destroys: bool,
}

/// An output buffer whose required size another function returns ([`OutSize::Call`]).
#[derive(Clone, Copy)]
pub struct UncheckedBuffer {
    /// Index of the argument.
    pub index: u8,
    /// Size of the buffer in bytes, if known.
    pub len: Option<usize>,
}

/// The data of a call. Must not move after [`Frame::prepare`]: C receives addresses into it.
pub struct Frame {
    /// The converted arguments, one word each.
    pub vals: [u64; MAX_PARAMS],
    /// Storage of the results: values, or addresses of larger results.
    pub outs: [u64; MAX_RESULTS + 4],
    /// Results that are created as objects (structs, `bytes`), with their index.
    pub objects: SmallVec<[(usize, Owned); 2]>,
    /// Results of in-out arguments that were `None`, as bits.
    pub absent: u16,
    /// Kept alive until the end of the call.
    pub keep: Keep,
    packer: Packer,
    /// The element count that C reads and writes ([`Word::Count`]).
    pub count: u64,
    /// Addresses of the request structs.
    pub requests: [u64; MAX_REQUESTS],
    /// The handle that must be live.
    pub handle: Option<HandleArgument>,
    /// The buffer whose size is checked once the handle is locked.
    pub unchecked: Option<UncheckedBuffer>,
}

impl Frame {
    /// An empty frame. Allocates nothing.
    #[inline(always)]
    pub fn new() -> Frame {
        Frame {
            vals: [0; MAX_PARAMS],
            outs: [0; MAX_RESULTS + 4],
            objects: SmallVec::new(),
            absent: 0,
            keep: Keep::new(),
            packer: Packer::new(),
            count: 0,
            requests: [0; MAX_REQUESTS],
            handle: None,
            unchecked: None,
        }
    }

    /// Converts the arguments and allocates storage for the results.
    ///
    /// # Errors
    ///
    /// The exception for the first argument that does not convert, or `MemoryError`.
    #[inline]
    pub fn prepare(&mut self, arguments: Arguments<'_>) -> R<()> {
        self.convert(arguments)?;
        self.provide(arguments)?;
        match arguments.f.raising {
            Some(raising) if !raising.requests.is_empty() => requests::fill(self, raising),
            _ => Ok(()),
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
                Conv::HandlePtr(kind) => convert::handle(obj, kind, site)?,
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
                Conv::VoidPtr(Some(_)) | Conv::Rows(..) if obj.is_exact_int() => {
                    convert::int(obj, Int::U64, site)?
                }
                Conv::VoidPtrPtr => void_ptr_ptr(obj, site)?,
                Conv::Address => convert::address(obj, site)?,
                Conv::AddressOf(size) => {
                    let at = convert::address(obj, site)?;
                    check_struct(at, size.into(), site)?;
                    at
                }
                Conv::LiveHandle(kind) | Conv::DestroyedHandle(kind) => {
                    let value = convert::address(obj, site)?;
                    let destroys = matches!(param.conv, Conv::DestroyedHandle(_));
                    self.handle = Some(HandleArgument {
                        kind,
                        value,
                        destroys,
                    });
                    value
                }
                Conv::Bool => convert::truth(obj)?,
                Conv::Str => convert::utf8(obj, site)?,
                Conv::Text => convert::text(obj, site, &mut self.keep)?,
                Conv::VoidPtr(Some(_))
                | Conv::Rows(..)
                | Conv::StrList(_)
                | Conv::Buffer(_)
                | Conv::BufferOut(_)
                | Conv::BufferStruct(..)
                | Conv::BufferStructs(..)
                | Conv::Addresses(_)
                | Conv::Writable(_)
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
                let refuse = match arguments.f.raising {
                    Some(_) => convert::no_buffer,
                    None => convert::no_pointer,
                };
                let (address, len) = convert::void_ptr_or(obj, site, &mut self.keep, refuse)?;
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
            Conv::HandleArray(kind, count) => {
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
                let at = convert::buffer_in(obj, size, site, &mut self.keep)?;
                if at == 0 {
                    entry_points::check_null(arguments.f, param.name)?;
                }
                at
            }
            Conv::Addresses(count) => {
                let count = count.map(|count| self.count(arguments, count));
                convert::addresses(obj, count, site, &mut self.keep)?
            }
            Conv::Writable(size) => {
                let (address, len) = convert::buffer_out(obj, site, &mut self.keep)?;
                if let Some(size) = size {
                    let name = arguments.f.params[size as usize].name;
                    check_room(len, self.vals[size as usize], site, name)?;
                }
                address
            }
            Conv::BufferOut(size) => self.buffer_out(arguments, index, obj, size)?,
            Conv::BufferStructs(id, count) => {
                let count = self.count(arguments, count);
                convert::buffer_structs(obj, id, count, site)?
            }
            Conv::BufferStruct(id, rule) => {
                convert::buffer_struct(obj, id, rule, arguments.f.module, site)?
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

    /// The address of a buffer that C writes. Its size is checked here unless another function returns it.
    fn buffer_out(
        &mut self,
        arguments: Arguments<'_>,
        index: usize,
        obj: Obj<'_>,
        size: OutSize,
    ) -> R<u64> {
        let site = arguments.site(index);
        let (at, len) = convert::buffer_out(obj, site, &mut self.keep)?;
        let needed = match size {
            OutSize::Arg(arg) => Some((
                self.vals[arg as usize],
                arguments.f.params[arg as usize].name,
            )),
            OutSize::Const(size) => Some((u64::from(size), "the size")),
            OutSize::Call(_) => {
                self.unchecked = u8::try_from(index)
                    .ok()
                    .map(|index| UncheckedBuffer { index, len });
                None
            }
            OutSize::Unknown => None,
        };
        match (needed, len) {
            (Some((needed, name)), Some(len)) => check_room(Some(len), needed, site, name)?,
            (Some((needed, _)), None) => check_memory(at, needed, site)?,
            (None, _) => {}
        }
        if at == 0 {
            entry_points::check_null(arguments.f, site.param)?;
        }
        Ok(at)
    }

    /// The number of elements of a list, array or text.
    pub fn len(&self, arguments: Arguments<'_>, len: Len) -> u64 {
        match len {
            Len::Arg(index) => self.count(arguments, index),
            Len::Const(n) => u64::from(n),
            Len::Counted => self.count,
        }
    }

    /// Writes the C arguments to `words`. They are not returned: copying words that were just written one by one costs 17 ns.
    #[inline]
    pub fn write_words(&mut self, arguments: Arguments<'_>, words: &mut [u64; MAX_WORDS]) {
        let vals = self.vals.as_mut_ptr();
        let outs = self.outs.as_mut_ptr();
        for (word, from) in words.iter_mut().zip(arguments.f.words) {
            // SAFETY: `descriptor::verify` checks all indices at compile time.
            *word = unsafe {
                match *from {
                    Word::Arg(arg) => *vals.add(arg as usize),
                    Word::ArgAddress(arg) => self.address_of(arguments, arg),
                    Word::Result(result) => {
                        let out = outs.add(result as usize);
                        match arguments.f.results[result as usize].kind.is_by_address() {
                            true => *out,
                            false => out.addr() as u64,
                        }
                    }
                    Word::InOut(arg, result) => {
                        if arguments.get(arg as usize).is_some_and(Obj::is_none) {
                            match arguments.f.params[arg as usize].conv {
                                // C returns no value, and the result is 0, as in NVIDIA's package.
                                Conv::IntOrNone(_) => outs.add(result as usize).write(0),
                                _ => self.absent |= 1 << result,
                            }
                            0
                        } else {
                            outs.add(result as usize).write(*vals.add(arg as usize));
                            outs.add(result as usize).addr() as u64
                        }
                    }
                    Word::Const(value) => value,
                    Word::Null => 0,
                    Word::Count => (&raw mut self.count).addr() as u64,
                    Word::Request(request) => self.requests[request as usize],
                    Word::Elements(arg) => arguments
                        .get(arg as usize)
                        .map_or(0, |obj| types::struct_count(obj) as u64),
                }
            };
        }
    }

    /// The address passed to C for an argument that it takes by pointer.
    #[inline(never)]
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
}

/// The value of a handle; without a call for 64-bit handle objects that are exactly of class `id`.
#[inline(always)]
fn handle(obj: Obj<'_>, id: types::ClassId, kind: Int, site: Site) -> R<u64> {
    if kind == Int::U64
        && let Some(value) = types::own_handle(obj, id)
    {
        return Ok(value);
    }
    convert::handle(obj, kind, site)
}

/// `extra` of a launch: an address. `None` is 0; NVIDIA's package takes integers only.
fn void_ptr_ptr(obj: Obj<'_>, site: Site) -> R<u64> {
    if obj.is_none() {
        return Ok(0);
    }
    convert::int(obj, Int::U64, site)
}
