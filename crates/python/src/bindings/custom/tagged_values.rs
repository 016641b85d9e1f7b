//! Values whose type another argument selects: attributes, JIT options, exported handles.

use std::ffi::c_char;

use crate::bindings::call::convert;
use crate::bindings::call::convert::Keep;
use crate::bindings::call::words::{address, int_from, low_bytes};
use crate::bindings::descriptor::{Element, Int};
use crate::bindings::errors;
use crate::bindings::errors::{ExceptionKind, Site};
use crate::cpython;
use crate::cpython::{Obj, Owned, R, Raised};
use crate::generated::driver_types::class;
use crate::generated::driver_types::enums;
use crate::generated::driver_v2_types::class as second_class;
use crate::generated::driver_v2_types::enums as second_enums;
use crate::generated::runtime_types::class as runtime_class;
use crate::generated::runtime_types::enums as runtime_enums;
use crate::generated::runtime_v2_types::class as second_runtime_class;
use crate::generated::runtime_v2_types::enums as second_runtime_enums;
use crate::types;
use crate::types::{ClassId, EnumId};

/// The type of an attribute's value.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// A boolean of one byte.
    Bool,
    /// An integer.
    Int(Int),
    /// An address.
    Pointer,
    /// A handle or integer class of 8 bytes.
    Handle(ClassId),
    /// A struct.
    Struct(ClassId),
}

/// The value type of attribute `which` of the enum `selector`; `None` for an unknown attribute.
pub fn value_of(selector: EnumId, which: u64) -> Option<Value> {
    match first_selector(selector) {
        None => known(selector, which),
        // Modules whose functions raise show handles as numbers, and structs as classes of their own.
        Some(first) => Some(match known(first, which)? {
            Value::Handle(_) | Value::Pointer => Value::Int(match first {
                enums::CUpointer_attribute => Int::I64,
                _ => Int::U64,
            }),
            Value::Struct(class::CUDA_POINTER_ATTRIBUTE_P2P_TOKENS) => {
                Value::Struct(second_class::PointerAttributeP2PTokens_v1)
            }
            Value::Struct(class::CUmemFabricHandle) => {
                Value::Struct(second_class::MemFabricHandle_v1)
            }
            Value::Struct(runtime_class::cudaMemFabricHandle_t) => {
                Value::Struct(second_runtime_class::MemFabricHandle)
            }
            Value::Struct(class::CUlogicalEndpointFabricHandle) => {
                Value::Struct(second_class::LogicalEndpointFabricHandle)
            }
            value => value,
        }),
    }
}

/// The enum of the first module over the library, for one of the second module.
fn first_selector(selector: EnumId) -> Option<EnumId> {
    Some(match selector {
        second_enums::PointerAttribute => enums::CUpointer_attribute,
        second_enums::MemPoolAttribute => enums::CUmemPool_attribute,
        second_enums::GraphMemAttribute => enums::CUgraphMem_attribute,
        second_enums::MemAllocationHandleType => enums::CUmemAllocationHandleType,
        second_enums::LogicalEndpointIpcHandleType => enums::CUlogicalEndpointIpcHandleType,
        second_enums::MemRangeHandleType => enums::CUmemRangeHandleType,
        second_runtime_enums::MemPoolAttr => runtime_enums::cudaMemPoolAttr,
        second_runtime_enums::GraphMemAttributeType => runtime_enums::cudaGraphMemAttributeType,
        second_runtime_enums::MemAllocationHandleType => runtime_enums::cudaMemAllocationHandleType,
        _ => return None,
    })
}

fn known(selector: EnumId, which: u64) -> Option<Value> {
    use Value::{Bool, Handle, Pointer, Struct};
    const I32: Value = Value::Int(Int::I32);
    const U32: Value = Value::Int(Int::U32);
    const U64: Value = Value::Int(Int::U64);
    Some(match selector {
        enums::CUpointer_attribute => match which {
            1 => Handle(class::CUcontext),
            2 | 15 | 16 => U32,
            3 | 11 | 19 => Handle(class::CUdeviceptr),
            4 => Pointer,
            5 => Struct(class::CUDA_POINTER_ATTRIBUTE_P2P_TOKENS),
            6 | 8 | 10 | 13 | 21 => Bool,
            7 | 12 | 14 | 18 | 20 => U64,
            9 | 22 => I32,
            17 => Handle(class::CUmemoryPool),
            _ => return None,
        },
        enums::CUmemPool_attribute | runtime_enums::cudaMemPoolAttr => match which {
            1..=3 | 9 | 11 | 12 | 14 | 15 => I32,
            10 => U32,
            4..=8 | 13 => Handle(class::cuuint64_t),
            _ => return None,
        },
        enums::CUgraphMem_attribute | runtime_enums::cudaGraphMemAttributeType => match which {
            0..=3 => Handle(class::cuuint64_t),
            _ => return None,
        },
        enums::CUmemAllocationHandleType | runtime_enums::cudaMemAllocationHandleType => {
            match which {
                0 | 1 => I32,
                2 | 4 => Pointer,
                8 if selector == enums::CUmemAllocationHandleType => {
                    Struct(class::CUmemFabricHandle)
                }
                8 => Struct(runtime_class::cudaMemFabricHandle_t),
                _ => return None,
            }
        }
        enums::CUlogicalEndpointIpcHandleType => match which {
            0 | 1 => Struct(class::CUlogicalEndpointFabricHandle),
            _ => return None,
        },
        enums::CUmemRangeHandleType => I32,
        _ => return None,
    })
}

/// `TypeError` for an unknown attribute, as in NVIDIA's package.
#[cold]
pub fn unsupported(selector: EnumId, which: u64, site: Site) -> Raised {
    #[allow(clippy::cast_possible_truncation)] // enums are 32 bits
    let which = which as u32 as i32;
    let message = format!(
        "{}: Unsupported attribute: {} {which}",
        site.prefix(),
        types::enum_name(selector)
    );
    errors::raise(ExceptionKind::Type, &message)
}

/// Allocates storage for an attribute that C writes.
///
/// # Errors
///
/// `TypeError` for an unknown attribute, or `MemoryError`.
pub fn attribute_storage(selector: EnumId, which: u64, site: Site, keep: &mut Keep) -> R<u64> {
    let size = match value_of(selector, which) {
        Some(Value::Struct(id)) => types::class_size(id),
        Some(_) => 8,
        None => return Err(unsupported(selector, which, site)),
    };
    // Spare bytes, in case a newer driver writes a larger value.
    Ok(keep.array(size.max(64))?.addr() as u64)
}

/// Converts the attribute that C wrote at `at`.
///
/// # Errors
///
/// `TypeError` for an unknown attribute, or `MemoryError`.
pub fn attribute_out(selector: EnumId, which: u64, at: u64, site: Site) -> R<Owned> {
    let Some(value) = value_of(selector, which) else {
        return Err(unsupported(selector, which, site));
    };
    let from = std::ptr::with_exposed_provenance::<u64>(address(at));
    if let Value::Struct(id) = value {
        return copy_struct(id, from.cast(), types::class_size(id));
    }
    // SAFETY: the caller allocated at least 64 bytes there, as `attribute_storage` does.
    let word = unsafe { from.read_unaligned() };
    match value {
        Value::Bool => cpython::from_bool(word & 0xFF != 0),
        Value::Int(kind) => int_from(word, kind),
        Value::Pointer => cpython::from_u64(word),
        Value::Handle(id) | Value::Struct(id) => types::new_handle(id, word),
    }
}

/// Converts an attribute that C reads, and returns its address.
///
/// # Errors
///
/// `TypeError` for an unknown attribute or a wrong value, `OverflowError`, or `MemoryError`.
pub fn attribute_in(
    selector: EnumId,
    which: u64,
    obj: Obj<'_>,
    site: Site,
    keep: &mut Keep,
) -> R<u64> {
    let Some(value) = value_of(selector, which) else {
        return Err(unsupported(selector, which, site));
    };
    let word = match value {
        Value::Bool => convert::truth(obj)?,
        Value::Int(kind) => convert::int(obj, kind, site)?,
        Value::Pointer => convert::void_ptr(obj, site, keep)?.0,
        Value::Handle(_) => convert::handle(obj, Int::U64, site)?,
        Value::Struct(id) => return convert::structure(obj, id, false, site),
    };
    let storage = keep.array(64)?;
    // SAFETY: `keep.array` just allocated 64 aligned bytes.
    unsafe { storage.cast::<u64>().write(word) };
    Ok(storage.addr() as u64)
}

/// Makes a struct object with a copy of the struct at `from`.
///
/// # Errors
///
/// `MemoryError`.
pub fn copy_struct(id: ClassId, from: *const u8, size: usize) -> R<Owned> {
    let (object, to) = match types::is_buffer_struct(id) {
        true => types::new_buffer_struct(id, 1)?,
        false => types::new_struct(id)?,
    };
    // SAFETY: the object has the class's size, and the caller guarantees `size` bytes at `from`; the smaller is copied.
    unsafe { std::ptr::copy_nonoverlapping(from, to, size.min(types::class_size(id))) };
    Ok(object)
}

/// Converts `len` elements at `from` to a list.
///
/// # Errors
///
/// `MemoryError`.
pub fn list_from(from: *const u8, len: usize, of: Element) -> R<Owned> {
    let size = of.size();
    cpython::list((0..len).map(|index| {
        // SAFETY: the caller guarantees `len` elements of `size` bytes, and `index` is below `len`.
        let at = unsafe { from.add(index * size) };
        if let Element::Struct(id, size) = of {
            return copy_struct(id, at, size as usize);
        }
        let mut word = 0u64;
        // SAFETY: as above. Elements other than structs have at most 8 bytes, the size of `word`.
        unsafe { std::ptr::copy_nonoverlapping(at, (&raw mut word).cast(), size.min(8)) };
        #[allow(clippy::cast_possible_truncation)] // the low bytes are what C stored
        match of {
            Element::Int(kind) => int_from(word, kind),
            Element::F32 => cpython::from_f64(f32::from_bits(word as u32).into()),
            Element::F64 => cpython::from_f64(f64::from_bits(word)),
            Element::Enum(id) => types::enum_member(id, i64::from(word as u32 as i32)),
            Element::Handle(id, kind) => types::new_handle(id, low_bytes(word, kind)),
            Element::Struct(id, size) => copy_struct(id, at, size as usize),
            Element::VoidPtr => cpython::from_u64(word),
            Element::Address => cpython::from_i64(word.cast_signed()),
            // SAFETY: by the function's contract, C stored null or the address of a string.
            Element::Bytes => unsafe {
                convert::c_string(std::ptr::with_exposed_provenance::<c_char>(address(word)))
            },
        }
    }))
}

/// How the value of a JIT or library option is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opt {
    /// The word is the number.
    Int,
    /// The word is the number of an enum member.
    Enum,
    /// The low half of the word is a float.
    Float,
    /// The word is the address of a buffer that the driver writes.
    Buffer,
    /// The word is the address of an array of strings.
    Names,
    /// The word is the address of an array of addresses.
    Addresses,
    /// The word is the address of a struct.
    Struct,
}

fn option_kind(selector: EnumId, which: u64) -> Option<Opt> {
    Some(match selector {
        enums::CUjit_option => match which {
            0 | 1 | 4 | 6..=8 | 11..=13 | 19..=24 | 26 | 28..=35 => Opt::Int,
            9 | 10 | 14 => Opt::Enum,
            2 => Opt::Float,
            3 | 5 => Opt::Buffer,
            17 | 25 | 27 => Opt::Names,
            18 => Opt::Addresses,
            _ => return None,
        },
        runtime_enums::cudaJitOption => match which {
            0 | 1 | 4 | 6 | 7 | 11..=13 | 30..=33 => Opt::Int,
            10 | 14 => Opt::Enum,
            2 => Opt::Float,
            3 | 5 => Opt::Buffer,
            _ => return None,
        },
        enums::CUlibraryOption | runtime_enums::cudaLibraryOption => match which {
            0 => Opt::Struct,
            1 => Opt::Int,
            _ => return None,
        },
        _ => return None,
    })
}

/// Converts option values to `void **`, each according to its option. Refuses a log buffer that is smaller than the size
/// passed with it.
///
/// # Errors
///
/// `TypeError`, `ValueError` or `OverflowError`; also if a list is shorter than `count`.
pub fn options(
    selector: EnumId,
    options: Option<Obj<'_>>,
    count: u64,
    values: Obj<'_>,
    site: Site,
    keep: &mut Keep,
) -> R<u64> {
    let options = match options {
        Some(options) => convert::items(options, site)?,
        None => None,
    };
    let values = convert::items(values, site)?;
    let (n_options, n_values) = (
        options.as_ref().map_or(0, cpython::Items::len),
        values.as_ref().map_or(0, cpython::Items::len),
    );
    convert::check_count(n_values, Some(count), site)?;
    let (Some(options), Some(values)) = (options, values) else {
        return Ok(0);
    };
    let n = n_options.min(n_values);
    if n == 0 {
        return Ok(0);
    }
    let array = keep.array(n * 8)?.cast::<u64>();
    // For the info log and the error log: the size of the buffer, and the size passed with it.
    let mut rooms: [(Option<usize>, Option<u64>); 2] = [(None, None); 2];
    for index in 0..n {
        let which = convert::enumerator(options.get(index), site)?;
        let Some(kind) = option_kind(selector, which) else {
            return Err(unsupported(selector, which, site));
        };
        let value = values.get(index);
        let word = match kind {
            Opt::Int => convert::int(value, Int::I64, site)?,
            Opt::Enum => convert::enumerator(value, site)? & 0xFFFF_FFFF,
            #[allow(clippy::cast_possible_truncation)] // C's float is what the option is
            Opt::Float => u64::from((convert::float(value, site)? as f32).to_bits()),
            Opt::Buffer => {
                let (at, len) = convert::bytes_out(value, site, keep)?;
                rooms[usize::from(which == 5)].0 = Some(len);
                at
            }
            Opt::Names => convert::list(value, Element::Bytes, None, false, site, keep)?,
            Opt::Addresses if value.is_list() || value.is_tuple() => {
                convert::list(value, Element::VoidPtr, None, false, site, keep)?
            }
            Opt::Addresses => convert::void_ptr(value, site, keep)?.0,
            Opt::Struct => {
                // One C struct under two names.
                let theirs = class::CUlibraryHostUniversalFunctionAndDataTable;
                let ours = runtime_class::cudalibraryHostUniversalFunctionAndDataTable;
                let id = match types::struct_ptr(value, theirs) {
                    None if selector == runtime_enums::cudaLibraryOption => ours,
                    _ => theirs,
                };
                convert::structure(value, id, false, site)?
            }
        };
        let sizes = selector == enums::CUjit_option || selector == runtime_enums::cudaJitOption;
        if sizes && matches!(which, 4 | 6) {
            // The driver reads an unsigned int.
            rooms[usize::from(which == 6)].1 = Some(word & 0xFFFF_FFFF);
        }
        // SAFETY: the array has `n` words, and `index` is below `n`.
        unsafe { array.add(index).write(word) };
    }
    for (have, said) in rooms {
        if let (Some(have), Some(said)) = (have, said)
            && said > have as u64
        {
            let message = format!(
                "{}: a log buffer has {have} bytes, but the size given with it is {said}",
                site.prefix()
            );
            return Err(errors::raise(ExceptionKind::Value, &message));
        }
    }
    keep.objects.push(values.into_owned());
    Ok(array.addr() as u64)
}
