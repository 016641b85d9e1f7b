//! Hooks of driver functions, and of the runtime functions that are alike.

use std::collections::HashMap;
use std::sync::Mutex;

use cupyrite_sys::checked::is_executable_address;
use cupyrite_sys::driver::{self, Symbol};
use cupyrite_sys::loader::{self, CudaLibrary};
use pyo3::ffi;

use crate::bindings::call::convert;
use crate::bindings::call::convert::Keep;
use crate::bindings::call::frame::Frame;
use crate::bindings::call::general;
use crate::bindings::call::results::answer;
use crate::bindings::call::words::address;
use crate::bindings::custom::{required, tagged_values};
use crate::bindings::descriptor::{Arguments, Module};
use crate::bindings::descriptor::{Element, Function, Int, MAX_WORDS};
use crate::bindings::errors::{self, ExceptionKind};
use crate::bindings::symbols;
use crate::cpython;
use crate::cpython::{Obj, Owned, R};
use crate::generated::driver_types::class;
use crate::generated::driver_types::enums;
use crate::generated::driver_v2_types::enums as second_enums;
use crate::generated::runtime_types::class as runtime_class;
use crate::generated::runtime_types::enums as runtime_enums;
use crate::generated::runtime_v2_types::enums as second_runtime_enums;
use crate::types;

/// Whether this is `driver.cuCtxCreate`, which also accepts the two arguments of CUDA 12.
#[inline]
pub fn is_ctx_create(f: &Function) -> bool {
    f.module == Module::Driver && f.symbol == Symbol::cuCtxCreate as u16
}

/// How many leading parameters a call of `cuCtxCreate` omits: one with CUDA 12's two arguments.
///
/// # Safety
///
/// `keywords` is null or a tuple; the thread is attached.
pub unsafe fn omitted_parameters(positional: usize, keywords: *mut ffi::PyObject) -> usize {
    let keywords = match keywords.is_null() {
        true => 0,
        // SAFETY: as promised by the caller.
        false => unsafe { ffi::PyTuple_Size(keywords) }
            .max(0)
            .cast_unsigned(),
    };
    usize::from(positional + keywords == 2)
}

/// `cuCtxCreate`. Drivers before CUDA 12.5 lack the form with a parameter block. For a null block the older form is
/// equivalent.
pub fn ctx_create(arguments: Arguments<'_>) -> R<Owned> {
    let f = arguments.f;
    let mut frame = Frame::new();
    frame.convert(arguments)?;
    let mut words = [0u64; MAX_WORDS];
    frame.write_words(arguments, &mut words);
    let status = if frame.vals[0] == 0 && older_driver(f)? {
        let older = Symbol::cuCtxCreate_cuda12 as usize;
        let symbol = symbols::symbol_at(f.library(), older, f.name)?;
        // SAFETY: the symbol is `cuCtxCreate_v2(CUcontext *, unsigned int, CUdevice)`. The descriptor packs the words
        // with these types, and the frame has room for the result.
        let status = unsafe {
            let create = std::mem::transmute::<
                *const std::ffi::c_void,
                unsafe extern "C" fn(u64, u32, i32) -> i32,
            >(symbol);
            #[allow(clippy::cast_possible_truncation)] // the values were checked to fit
            create(words[0], words[2] as u32, words[3] as i32)
        };
        i64::from(status)
    } else {
        general::invoke(f, &words)?
    };
    answer(f, status, |_| frame.result(arguments, 0))
}

/// Whether the driver lacks this function's newest form.
fn older_driver(f: &'static Function) -> R<bool> {
    match symbols::symbol(f) {
        Ok(_) => Ok(false),
        Err(raised) => {
            let missing = driver::TABLE
                .get(f.symbol as usize)
                .is_err_and(|error| error.kind == loader::LoadErrorKind::SymbolNotFound);
            if !missing {
                return Err(raised);
            }
            cpython::clear();
            Ok(true)
        }
    }
}

/// `cuOccupancyMaxPotentialBlockSize[WithFlags]`: the driver calls the function, and crashes if it is none.
pub fn block_size_function(arguments: Arguments<'_>) -> R<Owned> {
    const FUNCTION: usize = 1;
    let mut frame = Frame::new();
    frame.convert(arguments)?;
    let address = frame.vals[FUNCTION];
    if address != 0 && !is_executable_address(address) {
        let site = arguments.site(FUNCTION).prefix();
        let message = not_a_function(&site, address);
        return Err(errors::raise(ExceptionKind::Value, &message));
    }
    general::call(arguments)
}

/// The message about a `CUoccupancyB2DSize` that is no function; `site` names the argument.
pub fn not_a_function(site: &str, address: u64) -> String {
    format!(
        "{site} is {address:#x}, which is not the address of a function; pass CUoccupancyB2DSize(address) with that of a C function \
         of the type size_t (*)(int), or CUoccupancyB2DSize(_ptr=...) with the address of a variable that holds it, such as \
         ctypes.addressof(callback), and keep the callback alive"
    )
}

/// Value type of a core-dump setting.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Setting {
    Bool,
    Text,
    Flags,
}

fn setting(arguments: Arguments<'_>, which: u64) -> R<Setting> {
    match which {
        1..=4 => Ok(Setting::Bool),
        5 | 6 => Ok(Setting::Text),
        7 => Ok(Setting::Flags),
        _ => Err(tagged_values::unsupported(
            enums::CUcoredumpSettings,
            which,
            arguments.site(0),
        )),
    }
}

/// Size of the buffer for a file name, in bytes, as the CUDA documentation requires.
const SETTING_ROOM: usize = 1024;

pub fn coredump_get(arguments: Arguments<'_>) -> R<Owned> {
    let f = arguments.f;
    let which = convert::enumerator(required(arguments, 0)?, arguments.site(0))?;
    let kind = setting(arguments, which)?;
    let mut keep = Keep::default();
    let value = keep.array(SETTING_ROOM + 8)?;
    let mut size: usize = match kind {
        Setting::Bool => 1,
        Setting::Text => SETTING_ROOM,
        Setting::Flags => 4,
    };
    let mut words = [0u64; MAX_WORDS];
    words[0] = which;
    words[1] = value.addr() as u64;
    words[2] = (&raw mut size).addr() as u64;
    let status = general::invoke(f, &words)?;
    answer(f, status, |_| {
        // SAFETY: `keep` holds `SETTING_ROOM + 8` zeroed bytes there; C was told of at most `SETTING_ROOM`.
        let bytes = unsafe { std::slice::from_raw_parts(value, SETTING_ROOM) };
        match kind {
            Setting::Bool => cpython::from_bool(bytes[0] != 0),
            Setting::Flags => cpython::from_u64(
                u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]).into(),
            ),
            Setting::Text => {
                let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
                cpython::from_bytes(&bytes[..end])
            }
        }
    })
}

pub fn coredump_set(arguments: Arguments<'_>) -> R<Owned> {
    let f = arguments.f;
    let which = convert::enumerator(required(arguments, 0)?, arguments.site(0))?;
    let (obj, site) = (required(arguments, 1)?, arguments.site(1));
    let mut keep = Keep::default();
    let mut number: u64 = 0;
    let (at, mut size) = match setting(arguments, which)? {
        Setting::Bool => {
            number = convert::truth(obj)?;
            (0, 1)
        }
        Setting::Flags => {
            number = convert::enumerator(obj, site)? & 0xFFFF_FFFF;
            (0, 4)
        }
        Setting::Text => {
            let at = convert::bytes(obj, site, &mut keep)?;
            let len = match keep.buffers.last() {
                Some(view) => view.len(),
                None => obj.bytes_data().1,
            };
            (at, len)
        }
    };
    let mut words = [0u64; MAX_WORDS];
    words[0] = which;
    words[1] = if at == 0 {
        (&raw mut number).addr() as u64
    } else {
        at
    };
    words[2] = (&raw mut size).addr() as u64;
    let status = general::invoke(f, &words)?;
    answer(f, status, |_| Ok(cpython::none()))
}

/// Allocates storage for several attributes. Returns the address of C's array of pointers, and the pointers.
fn storage_for(
    keep: &mut Keep,
    sizes: impl ExactSizeIterator<Item = R<usize>>,
) -> R<(u64, Vec<u64>)> {
    let count = sizes.len();
    let array = keep.array((count * 8).max(8))?.cast::<u64>();
    let mut addresses = Vec::new();
    for (index, size) in sizes.enumerate() {
        let at = keep.array(size?.max(64))?.addr() as u64;
        // SAFETY: the array has `count` words, and `index` is below `count`.
        unsafe { array.add(index).write(at) };
        addresses.push(at);
    }
    Ok((array.addr() as u64, addresses))
}

/// `(numAttributes, attributes, ptr)` for C's `(unsigned, CUpointer_attribute *, void **data, CUdeviceptr)`.
pub fn pointer_get_attributes(arguments: Arguments<'_>) -> R<Owned> {
    let f = arguments.f;
    let mut keep = Keep::default();
    // The function that raises takes no number.
    let numbered = f.raising.is_none();
    let at = usize::from(numbered);
    let selector = match numbered {
        true => enums::CUpointer_attribute,
        false => second_enums::PointerAttribute,
    };
    let (obj, site) = (required(arguments, at + 1)?, arguments.site(at + 1));
    let pointer = match numbered {
        true => convert::handle(obj, Int::U64, site)?,
        false => convert::int(obj, Int::U64, site)?,
    };
    let (obj, site) = (required(arguments, at)?, arguments.site(at));
    let count = match numbered {
        true => convert::int(required(arguments, 0)?, Int::U32, arguments.site(0))?,
        false => match convert::items(obj, site)? {
            None => return Err(errors::wrong_type(site, "a list or tuple", obj)),
            // The driver refuses a query of nothing.
            Some(items) if items.len() == 0 => return cpython::list(std::iter::empty()),
            Some(items) => items.len() as u64,
        },
    };
    let (list, which) = selectors(obj, selector, count, site, &mut keep)?;
    let count = count.min(which.len() as u64);
    let (array, at) = storage_for(
        &mut keep,
        which
            .iter()
            .map(|&which| match tagged_values::value_of(selector, which) {
                Some(tagged_values::Value::Struct(id)) => Ok(types::class_size(id)),
                Some(_) => Ok(8),
                None => Err(tagged_values::unsupported(selector, which, site)),
            }),
    )?;
    let mut words = [0u64; MAX_WORDS];
    words[..4].copy_from_slice(&[count, list, array, pointer]);
    let status = general::invoke(f, &words)?;
    answer(f, status, |_| {
        cpython::list(
            which
                .iter()
                .zip(&at)
                .map(|(&which, &at)| tagged_values::attribute_out(selector, which, at, site)),
        )
    })
}

/// Converts a list of attributes to a C array. Returns its address and the attribute numbers.
fn selectors(
    obj: Obj<'_>,
    selector: types::EnumId,
    count: u64,
    site: errors::Site,
    keep: &mut Keep,
) -> R<(u64, Vec<u64>)> {
    let Some(items) = convert::items(obj, site)? else {
        convert::check_count(0, Some(count), site)?;
        return Ok((0, Vec::new()));
    };
    let n = items.len();
    // Both results come from one copy, so that they agree even if the caller's list changes meanwhile.
    let items = items.into_owned();
    // The modules whose functions raise show enums as numbers.
    let of = match types::table::enumeration(selector).0.errors {
        None => Element::Enum(selector),
        Some(_) => Element::Int(Int::I32),
    };
    let list = convert::list(items.obj(), of, Some(count), false, site, keep)?;
    let from = std::ptr::with_exposed_provenance::<i32>(address(list));
    let which = (0..n)
        // SAFETY: `convert::list` stored one value for each of the `n` items, and `keep` keeps the array alive.
        .map(|index| i64::from(unsafe { from.add(index).read_unaligned() }).cast_unsigned())
        .collect();
    Ok((list, which))
}

/// `CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY`, `cudaMemRangeAttributeAccessedBy`: a list of device numbers. All other range
/// attributes are an `int`.
const ACCESSED_BY: u64 = 3;

fn range_value(which: u64, size: usize, at: u64) -> R<Owned> {
    let from = std::ptr::with_exposed_provenance::<u8>(address(at));
    if which == ACCESSED_BY {
        return tagged_values::list_from(from, size / 4, Element::Int(Int::I32));
    }
    // SAFETY: the caller allocated at least 8 zeroed bytes there.
    cpython::from_i64(unsafe { from.cast::<i32>().read_unaligned() }.into())
}

/// `(dataSize, attribute, devPtr, count)` for C's `(void *data, size_t, CUmem_range_attribute, CUdeviceptr, size_t)`.
pub fn range_get_attribute(arguments: Arguments<'_>) -> R<Owned> {
    let f = arguments.f;
    let size = convert::int(required(arguments, 0)?, Int::U64, arguments.site(0))?;
    let which = convert::enumerator(required(arguments, 1)?, arguments.site(1))?;
    let mut keep = Keep::default();
    let pointer = range_start(arguments, 2, &mut keep)?;
    let count = convert::int(required(arguments, 3)?, Int::U64, arguments.site(3))?;
    let room = room_for(size)?;
    let at = keep.array(room)?.addr() as u64;
    let mut words = [0u64; MAX_WORDS];
    words[..5].copy_from_slice(&[at, size, which, pointer, count]);
    let status = general::invoke(f, &words)?;
    answer(f, status, |_| range_value(which, address(size), at))
}

/// The start of a range: a `CUdeviceptr` for the driver, any pointer for the runtime.
fn range_start(arguments: Arguments<'_>, index: usize, keep: &mut Keep) -> R<u64> {
    let (obj, site) = (required(arguments, index)?, arguments.site(index));
    match arguments.f.library() {
        CudaLibrary::Runtime => convert::void_ptr(obj, site, keep).map(|(address, _)| address),
        // The functions that raise take no None for a number.
        _ if arguments.f.raising.is_some() => convert::int(obj, Int::U64, site),
        _ => convert::handle(obj, Int::U64, site),
    }
}

/// Bytes to allocate for an attribute whose size is passed to C as `size`.
fn room_for(size: u64) -> R<usize> {
    usize::try_from(size)
        .ok()
        .and_then(|size| size.checked_add(8))
        .filter(|&size| size < usize::MAX / 4)
        .ok_or_else(errors::no_memory)
}

/// `(dataSizes, attributes, numAttributes, devPtr, count)` for C's
/// `(void **data, size_t *dataSizes, CUmem_range_attribute *, size_t, CUdeviceptr, size_t)`.
pub fn range_get_attributes(arguments: Arguments<'_>) -> R<Owned> {
    let f = arguments.f;
    let mut keep = Keep::default();
    let (obj, site) = (required(arguments, 1)?, arguments.site(1));
    // The function that raises takes no number.
    let numbered = f.raising.is_none();
    let at = if numbered { 3 } else { 2 };
    let number = match numbered {
        true => convert::int(required(arguments, 2)?, Int::U64, arguments.site(2))?,
        false => match convert::items(obj, site)? {
            None => return Err(errors::wrong_type(site, "a list or tuple", obj)),
            Some(items) => items.len() as u64,
        },
    };
    let pointer = range_start(arguments, at, &mut keep)?;
    let count = convert::int(
        required(arguments, at + 1)?,
        Int::U64,
        arguments.site(at + 1),
    )?;
    let selector = match f.library() {
        CudaLibrary::Runtime if f.raising.is_some() => second_runtime_enums::MemRangeAttribute,
        CudaLibrary::Runtime => runtime_enums::cudaMemRangeAttribute,
        _ if f.raising.is_some() => second_enums::MemRangeAttribute,
        _ => enums::CUmem_range_attribute,
    };
    let (list, which) = selectors(obj, selector, number, site, &mut keep)?;
    let mut sizes = Vec::new();
    if let Some(items) = convert::items(required(arguments, 0)?, arguments.site(0))? {
        for index in 0..items.len() {
            sizes.push(convert::int(items.get(index), Int::U64, arguments.site(0))?);
        }
    }
    if !numbered && sizes.len() as u64 != number {
        let message = format!(
            "{} has {} items, but there are {number} attributes",
            arguments.site(0).prefix(),
            sizes.len()
        );
        return Err(errors::raise(ExceptionKind::Value, &message));
    }
    convert::check_count(sizes.len(), Some(number), arguments.site(0))?;
    convert::check_count(sizes.len(), Some(which.len() as u64), arguments.site(0))?;
    sizes.truncate(which.len());
    let (array, at) = storage_for(&mut keep, sizes.iter().map(|&size| room_for(size)))?;
    let mut words = [0u64; MAX_WORDS];
    let sizes_at = sizes.as_mut_ptr().addr() as u64;
    words[..6].copy_from_slice(&[array, sizes_at, list, number, pointer, count]);
    let status = general::invoke(f, &words)?;
    answer(f, status, |_| {
        cpython::list(
            which
                .iter()
                .zip(sizes.iter().zip(&at))
                .map(|(&which, (&size, &at))| range_value(which, address(size), at)),
        )
    })
}

/// `cuStreamGetCaptureInfo`, `cudaStreamGetCaptureInfo`. The driver owns the lists; they are copied at once, before
/// anything can change them.
pub fn capture_info(arguments: Arguments<'_>) -> R<Owned> {
    let f = arguments.f;
    let stream = convert::handle(required(arguments, 0)?, Int::U64, arguments.site(0))?;
    // status, id, graph, dependencies, edges, count
    let mut out = [0u64; 6];
    let base = out.as_mut_ptr();
    let mut words = [0u64; MAX_WORDS];
    words[0] = stream;
    for (index, word) in words[1..7].iter_mut().enumerate() {
        // SAFETY: `out` has six words, and `index` is below 6.
        *word = unsafe { base.add(index) }.addr() as u64;
    }
    let status = general::invoke(f, &words)?;
    // SAFETY: `out` is alive, and C wrote through the same pointer.
    let out = unsafe { base.cast::<[u64; 6]>().read() };
    let list = |at: u64, of| {
        let len = if at == 0 { 0 } else { address(out[5]) };
        tagged_values::list_from(std::ptr::with_exposed_provenance(address(at)), len, of)
    };
    let ours = f.library() == CudaLibrary::Runtime;
    let (state, graph, node, edge) = if ours {
        (
            runtime_enums::cudaStreamCaptureStatus,
            runtime_class::cudaGraph_t,
            runtime_class::cudaGraphNode_t,
            runtime_class::cudaGraphEdgeData,
        )
    } else {
        (
            enums::CUstreamCaptureStatus,
            class::CUgraph,
            class::CUgraphNode,
            class::CUgraphEdgeData,
        )
    };
    #[allow(clippy::cast_possible_truncation)] // sizes of classes are small, enums 32 bits
    answer(f, status, |index| match index {
        0 => {
            let value = i64::from(out[0] as u32 as i32);
            types::enum_member(state, value)
        }
        1 if ours => cpython::from_u64(out[1]),
        1 => types::new_handle(class::cuuint64_t, out[1]),
        2 => types::new_handle(graph, out[2]),
        3 => list(out[3], Element::Handle(node, Int::U64)),
        4 => list(
            out[4],
            Element::Struct(edge, types::class_size(edge) as u32),
        ),
        _ => cpython::from_u64(out[5]),
    })
}

/// The memory that a linker's options point at, by the linker's handle.
static LINKERS: Mutex<Option<HashMap<u64, Linked>>> = Mutex::new(None);

struct Linked(#[allow(dead_code, reason = "held, not read")] Keep);
// SAFETY: values are only moved between threads. `link_create` and `link_destroy` use and drop them on attached threads.
unsafe impl Send for Linked {}

fn linkers<T>(f: impl FnOnce(&mut HashMap<u64, Linked>) -> T) -> T {
    let mut linkers = LINKERS
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    f(linkers.get_or_insert_default())
}

/// `cuLinkCreate`. The driver writes to the log buffers until the linker is destroyed, so they are kept alive until then.
pub fn link_create(arguments: Arguments<'_>) -> R<Owned> {
    let f = arguments.f;
    let mut frame = Frame::new();
    frame.convert(arguments)?;
    let mut words = [0u64; MAX_WORDS];
    frame.write_words(arguments, &mut words);
    let status = general::invoke(f, &words)?;
    if status == 0 {
        let keep = std::mem::take(&mut frame.keep);
        let old = linkers(|linkers| linkers.insert(frame.outs[0], Linked(keep)));
        // Outside the lock: dropping objects can run arbitrary code.
        drop(old);
    }
    answer(f, status, |_| frame.result(arguments, 0))
}

pub fn link_destroy(arguments: Arguments<'_>) -> R<Owned> {
    let f = arguments.f;
    let mut frame = Frame::new();
    frame.convert(arguments)?;
    let state = frame.vals[0];
    // Removed before the call: the driver may reuse the handle as soon as the linker is destroyed.
    let kept = linkers(|linkers| linkers.remove(&state));
    let mut words = [0u64; MAX_WORDS];
    frame.write_words(arguments, &mut words);
    let status = general::invoke(f, &words);
    match (&status, kept) {
        (Ok(0), kept) => drop(kept),
        (_, Some(kept)) => drop(linkers(|linkers| linkers.insert(state, kept))),
        _ => {}
    }
    answer(f, status?, |_| Ok(cpython::none()))
}
