//! Hooks of `cuda.bindings._v2.driver` and its runtime counterpart: results whose number or size the driver tells, and
//! arguments whose number Python does not repeat.

use crate::bindings::call::convert;
use crate::bindings::call::convert::Keep;
use crate::bindings::call::frame::Frame;
use crate::bindings::call::general;
use crate::bindings::call::memory_checks;
use crate::bindings::call::results::answer;
use crate::bindings::call::words::address;
use crate::bindings::custom::required;
use crate::bindings::descriptor::Arguments;
use crate::bindings::descriptor::{Element, Int, MAX_WORDS, Module, Slice};
use crate::bindings::errors::{self, ExceptionKind};
use crate::bindings::raising;
use crate::cpython;
use crate::cpython::{Buffer, Owned, R};
use crate::generated::driver_v2_types::class;
use crate::generated::runtime_v2_types::class as runtime_class;
use crate::types;

/// The bytes of `count` elements of `size` bytes at an address that the driver returned.
fn copied(at: u64, count: u64, size: usize) -> Vec<u8> {
    let count = if at == 0 { 0 } else { address(count) };
    let from = std::ptr::with_exposed_provenance::<u8>(address(at));
    if count == 0 {
        return Vec::new();
    }
    // SAFETY: the driver owns `count` elements there until the next call that changes them.
    unsafe { std::slice::from_raw_parts(from, count * size) }.to_vec()
}

/// A NumPy array of 64-bit numbers, or a sequence with the buffer protocol without NumPy.
fn array(format: Slice, bytes: &[u8]) -> R<Owned> {
    let words = types::new_slice(format, bytes)?;
    types::as_ndarray(words)
}

/// Number of results of the capture state before the lists.
const STATE: usize = 3;

/// `stream_get_capture_info_v2`, `_v3`: status, id, graph, dependencies and, in the third version, their edge data. The driver
/// owns the lists; they are copied at once.
pub fn capture_arrays(arguments: Arguments<'_>) -> R<Owned> {
    let f = arguments.f;
    let stream = convert::address(required(arguments, 0)?, arguments.site(0))?;
    let edges = f.results.len() > STATE + 1;
    // status, id, graph, dependencies, [edges,] count
    let mut out = [0u64; 6];
    let base = out.as_mut_ptr();
    let mut words = [0u64; MAX_WORDS];
    words[0] = stream;
    for (index, word) in words[1..f.words.len()].iter_mut().enumerate() {
        // SAFETY: `out` has six words; the functions have at most six outputs.
        *word = unsafe { base.add(index) }.addr() as u64;
    }
    let status = general::invoke(f, &words)?;
    // SAFETY: `out` is alive, and C wrote through the same pointer.
    let out = unsafe { base.cast::<[u64; 6]>().read() };
    let count = out[f.words.len() - 2];
    let edge_class = edge_data(arguments);
    answer(f, status, |index| match index {
        0 => cpython::from_i64((out[0] & 0xFFFF_FFFF).cast_signed()),
        1 => cpython::from_u64(out[1]),
        2 => cpython::from_i64(out[2].cast_signed()),
        3 => array(Slice::Address, &copied(out[3], count, 8)),
        _ if edges => {
            let size = types::class_size(edge_class);
            let bytes = copied(out[4], count, size);
            types::records(edge_class, bytes)
        }
        _ => Ok(cpython::none()),
    })
}

/// The class of edge data in the function's module.
fn edge_data(arguments: Arguments<'_>) -> types::ClassId {
    match arguments.f.module {
        Module::RuntimeV2 => runtime_class::GraphEdgeData,
        _ => class::GraphEdgeData,
    }
}

/// `module_enumerate_functions`, `library_enumerate_kernels`: another function returns the number of handles.
pub fn handles_of(arguments: Arguments<'_>) -> R<Owned> {
    let f = arguments.f;
    let owner = convert::address(required(arguments, 0)?, arguments.site(0))?;
    let counting = match f.name {
        "module_enumerate_functions" => "module_get_function_count",
        _ => "library_get_kernel_count",
    };
    let mut count = 0u32;
    let counter = &raw mut count;
    let status = raising::call_named(f.module, counting, &[counter.addr() as u64, owner])?;
    if status != 0 {
        return Err(raising::status_error(f, status));
    }
    // SAFETY: the pointer comes from the initialized local above, which C wrote a number to.
    let count = unsafe { counter.read_volatile() } as usize;
    if count == 0 {
        return types::new_slice(Slice::Address, &[]);
    }
    let mut keep = Keep::default();
    let handles = keep.array(count * 8)?;
    raising::by_words(f, &[handles.addr() as u64, count as u64, owner])?;
    // SAFETY: the array has `count` words.
    let bytes = unsafe { std::slice::from_raw_parts(handles, count * 8) };
    types::new_slice(Slice::Address, bytes)
}

/// `link_complete`. The linker owns the image; it is copied.
pub fn link_bytes(arguments: Arguments<'_>) -> R<Owned> {
    let f = arguments.f;
    let state = convert::address(required(arguments, 0)?, arguments.site(0))?;
    let mut out = [0u64; 2];
    let base = out.as_mut_ptr();
    let mut words = [0u64; MAX_WORDS];
    words[0] = state;
    words[1] = base.addr() as u64;
    // SAFETY: `out` has two words.
    words[2] = unsafe { base.add(1) }.addr() as u64;
    let status = general::invoke(f, &words)?;
    // SAFETY: `out` is alive, and C wrote through the same pointer.
    let [at, size] = unsafe { base.cast::<[u64; 2]>().read() };
    answer(f, status, |_| cpython::from_bytes(&copied(at, size, 1)))
}

/// `device_get_host_atomic_capabilities(operations, dev)`, `device_get_p2p_atomic_capabilities(operations, count, ...)`.
pub fn atomic_capabilities(arguments: Arguments<'_>) -> R<Owned> {
    let f = arguments.f;
    let host = f.params.len() == 2;
    let mut keep = Keep::default();
    let (obj, site) = (required(arguments, 0)?, arguments.site(0));
    let (operations, count) = if host {
        let view = match obj.is_str() {
            true => None,
            false => Buffer::get(obj)?,
        };
        let Some(view) = view else {
            return Err(errors::wrong_type(
                site,
                "a buffer of 32-bit operations",
                obj,
            ));
        };
        let found = (view.address(), (view.len() / 4) as u64);
        keep.buffers.push(view);
        found
    } else {
        let at = convert::address(obj, site)?;
        let count = convert::int(required(arguments, 1)?, Int::U32, arguments.site(1))?;
        if at != 0 {
            memory_checks::check_memory(at, count.saturating_mul(4), site)?;
        }
        (at, count)
    };
    // The driver writes one number for each operation.
    let bytes = usize::try_from(count.saturating_mul(4)).map_err(|_| errors::no_memory())?;
    let room = keep.array(bytes.max(8))?;
    let mut words = [0u64; MAX_WORDS];
    words[..3].copy_from_slice(&[room.addr() as u64, operations, count]);
    let first = if host { 1 } else { 2 };
    for (index, word) in (first..f.params.len()).zip(&mut words[3..]) {
        *word = convert::int(required(arguments, index)?, Int::I32, arguments.site(index))?;
    }
    let status = general::invoke(f, &words)?;
    answer(f, status, |_| {
        // SAFETY: the array has room for `count` numbers, and for two at least.
        let found = unsafe { std::slice::from_raw_parts(room, bytes.max(8)) };
        if host {
            return array(Slice::U32, &found[..bytes]);
        }
        cpython::from_u64(u32::from_le_bytes([found[0], found[1], found[2], found[3]]).into())
    })
}

/// `gl_get_devices_v2(device_list)`: the ordinals of the devices.
pub fn gl_devices(arguments: Arguments<'_>) -> R<Owned> {
    /// More than a computer has.
    const MOST: usize = 64;
    let f = arguments.f;
    let list = convert::int(required(arguments, 0)?, Int::I32, arguments.site(0))?;
    let mut keep = Keep::default();
    let devices = keep.array(MOST * 4)?;
    let mut count = 0u32;
    let counter = &raw mut count;
    let mut words = [0u64; MAX_WORDS];
    words[..4].copy_from_slice(&[
        counter.addr() as u64,
        devices.addr() as u64,
        MOST as u64,
        list,
    ]);
    let status = general::invoke(f, &words)?;
    answer(f, status, |_| {
        // SAFETY: the pointer comes from the initialized local above; the array has `MOST` numbers.
        let found = unsafe {
            let count = (counter.read_volatile() as usize).min(MOST);
            std::slice::from_raw_parts(devices, count * 4)
        };
        array(Slice::I32, found)
    })
}

/// `device_get_nv_sci_sync_attributes`: returns the list that C fills in.
pub fn sci_sync_attributes(arguments: Arguments<'_>) -> R<Owned> {
    let f = arguments.f;
    let mut frame = Frame::new();
    frame.convert(arguments)?;
    let mut words = [0u64; MAX_WORDS];
    frame.write_words(arguments, &mut words);
    let status = general::invoke(f, &words)?;
    answer(f, status, |_| {
        cpython::from_i64(frame.vals[0].cast_signed())
    })
}

/// `memcpy_batch_async(dsts, srcs, sizes, attrs, attrs_idxs, h_stream)`, the first version: sequences of equal length, and
/// attributes with the index of the first copy of each.
pub fn memcpy_batch(arguments: Arguments<'_>) -> R<Owned> {
    let f = arguments.f;
    let mut keep = Keep::default();
    let mut lists = [(0u64, 0usize); 5];
    let mut attributes = (0u64, 0usize);
    for index in [0, 1, 2, 4] {
        let (obj, site) = (required(arguments, index)?, arguments.site(index));
        let len = convert::items(obj, site)?.map_or(0, |items| items.len());
        let of = match index {
            2 | 4 => Element::Int(Int::U64),
            _ => Element::Address,
        };
        lists[index] = (convert::list(obj, of, None, true, site, &mut keep)?, len);
    }
    let (obj, site) = (required(arguments, 3)?, arguments.site(3));
    if let Some(at) = types::buffer_struct_ptr(obj, Some(class::MemCpyAttributes_v1)) {
        attributes = (at.addr() as u64, types::struct_count(obj));
    } else if let Some(items) = convert::items(obj, site)? {
        let size = types::class_size(class::MemCpyAttributes_v1);
        let to = keep.array(items.len() * size)?;
        for index in 0..items.len() {
            let item = items.get(index);
            let Some(from) = types::buffer_struct_ptr(item, Some(class::MemCpyAttributes_v1))
            else {
                let wanted = "a sequence of MemCpyAttributes_v1";
                return Err(errors::wrong_type(site, wanted, item));
            };
            // SAFETY: both have `size` bytes.
            unsafe { std::ptr::copy_nonoverlapping(from, to.add(index * size), size) };
        }
        attributes = (to.addr() as u64, items.len());
    }
    for (index, want) in [(1, lists[0].1), (2, lists[0].1), (4, attributes.1)] {
        if lists[index].1 != want {
            let message = format!(
                "{} has {} items, but {want} are needed",
                arguments.site(index).prefix(),
                lists[index].1
            );
            return Err(errors::raise(ExceptionKind::Value, &message));
        }
    }
    let stream = convert::address(required(arguments, 5)?, arguments.site(5))?;
    let mut failed = usize::MAX;
    let mut words = [0u64; MAX_WORDS];
    words[..9].copy_from_slice(&[
        lists[0].0,
        lists[1].0,
        lists[2].0,
        lists[0].1 as u64,
        attributes.0,
        lists[4].0,
        attributes.1 as u64,
        (&raw mut failed).addr() as u64,
        stream,
    ]);
    let status = general::invoke(f, &words)?;
    answer(f, status, |_| Ok(cpython::none()))
}
