//! Pointer attributes: `cuPointerGetAttribute` and related functions.

use cupyrite_engine::memory::{Access, Region, RegionKind};
use cupyrite_sys::driver::{self as sys, CUpointer_attribute as Attribute};

use crate::driver::context::{self, Context};
use crate::driver::device::peers;
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get, get_array, non_null, put};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::entry::handles::{HandleKind, handle_of};
use crate::driver::memory::decompress;
use crate::driver::memory::ipc;
use crate::driver::memory::pool;
use crate::driver::memory::space::space;
use crate::driver::memory::virtual_memory;

const MEMORYTYPE_HOST: u32 = sys::CUmemorytype::CU_MEMORYTYPE_HOST.0;
const MEMORYTYPE_DEVICE: u32 = sys::CUmemorytype::CU_MEMORYTYPE_DEVICE.0;

/// An attribute value of four or eight bytes, or a pair.
enum Value {
    Word(u32),
    Long(u64),
    Pair([u64; 2]),
}

impl Value {
    fn put(&self, out: u64) -> Res {
        match self {
            Value::Word(v) => put(out, *v),
            Value::Long(v) => put(out, *v),
            Value::Pair(v) => put(out, *v),
        }
    }
}

/// The region that contains an address. Includes virtual memory that no device may access.
fn region_of(address: u64) -> Option<Region> {
    space()
        .find(address)
        .or_else(|| virtual_memory::region_at(address))
}

/// The device that owns a region, by its physical memory, its pool or its context.
pub(crate) fn device_of(region: &Region) -> i32 {
    virtual_memory::device_of(region)
        .or_else(|| pool::device_of(region))
        .or_else(|| ipc::device_of(region))
        .or_else(|| context::device_of_owner(region.owner))
        .unwrap_or(0)
}

/// The context's access to a region, as `CU_POINTER_ATTRIBUTE_ACCESS_FLAGS`.
fn access_flags(context: &Context, region: &Region) -> u32 {
    match peers::viewer(context).access(region) {
        Access::None => 0,
        Access::Read => 1,
        Access::ReadWrite if region.read_only && region.kind == RegionKind::Registered => 1,
        Access::ReadWrite => 3,
    }
}

/// The value of a `CUpointer_attribute` of `address`.
fn query(
    context: &Context,
    attribute: Attribute,
    address: u64,
    region: Option<&Region>,
) -> Res<Value> {
    use Value::{Long, Word};
    // A reservation can be queried whether or not anything is mapped.
    if matches!(
        attribute,
        Attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR
            | Attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE
    ) && region.is_none_or(|r| r.kind == RegionKind::Virtual)
        && let Some((base, size)) = space().reservation_of(address)
    {
        return Ok(Long(
            if attribute == Attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR {
                base
            } else {
                size
            },
        ));
    }
    let Some(region) = region else {
        return match attribute {
            Attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED | Attribute::CU_POINTER_ATTRIBUTE_MAPPED => {
                Ok(Word(0))
            }
            _ => Err(Code::INVALID_VALUE),
        };
    };
    let host = matches!(region.kind, RegionKind::Host | RegionKind::Registered)
        || virtual_memory::is_host(region);
    Ok(match attribute {
        Attribute::CU_POINTER_ATTRIBUTE_CONTEXT => Long(if region.owner == 0 {
            0
        } else {
            handle_of(HandleKind::Context, region.owner)
        }),
        Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE => Word(if host {
            MEMORYTYPE_HOST
        } else {
            MEMORYTYPE_DEVICE
        }),
        Attribute::CU_POINTER_ATTRIBUTE_DEVICE_POINTER => Long(address),
        // Device memory is not accessible to the host, as on a GPU.
        Attribute::CU_POINTER_ATTRIBUTE_HOST_POINTER
            if host || region.kind == RegionKind::Managed =>
        {
            Long(address)
        }
        Attribute::CU_POINTER_ATTRIBUTE_HOST_POINTER => return Err(Code::INVALID_VALUE),
        Attribute::CU_POINTER_ATTRIBUTE_P2P_TOKENS => return Err(Code::NOT_SUPPORTED),
        Attribute::CU_POINTER_ATTRIBUTE_SYNC_MEMOPS => Word(0),
        Attribute::CU_POINTER_ATTRIBUTE_BUFFER_ID
        | Attribute::CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID => Long(region.id),
        Attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED => {
            Word(u32::from(region.kind == RegionKind::Managed))
        }
        Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL => Word(device_of(region) as u32),
        Attribute::CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE => {
            Word(ipc::has_handle(region).into())
        }
        Attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR
        | Attribute::CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR => Long(region.base),
        Attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE
        | Attribute::CU_POINTER_ATTRIBUTE_MAPPING_SIZE => Long(region.size),
        Attribute::CU_POINTER_ATTRIBUTE_MAPPED => Word(1),
        Attribute::CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES => {
            Long(virtual_memory::handle_types(region) | pool::handle_types(region))
        }
        Attribute::CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE => Word(0),
        Attribute::CU_POINTER_ATTRIBUTE_ACCESS_FLAGS => Word(access_flags(context, region)),
        Attribute::CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE => Long(pool::pool_of(region)),
        Attribute::CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE => {
            Word(decompress::is_capable(region).into())
        }
        Attribute::CU_POINTER_ATTRIBUTE_LOCALITY_DOMAIN_ORDINAL => Word(u32::MAX),
        _ => return Err(Code::INVALID_VALUE),
    })
}

/// The value that `cuPointerGetAttributes` reports for an unknown address.
fn unknown(attribute: u32) -> Res<Value> {
    Ok(match Attribute(attribute) {
        Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE
        | Attribute::CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
        | Attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED
        | Attribute::CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE
        | Attribute::CU_POINTER_ATTRIBUTE_MAPPED
        | Attribute::CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE
        | Attribute::CU_POINTER_ATTRIBUTE_ACCESS_FLAGS
        | Attribute::CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE => Value::Word(0),
        Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL => Value::Word(-2i32 as u32),
        Attribute::CU_POINTER_ATTRIBUTE_LOCALITY_DOMAIN_ORDINAL => Value::Word(u32::MAX),
        Attribute::CU_POINTER_ATTRIBUTE_P2P_TOKENS => Value::Pair([0; 2]),
        Attribute::CU_POINTER_ATTRIBUTE_CONTEXT
        | Attribute::CU_POINTER_ATTRIBUTE_DEVICE_POINTER
        | Attribute::CU_POINTER_ATTRIBUTE_HOST_POINTER
        | Attribute::CU_POINTER_ATTRIBUTE_BUFFER_ID
        | Attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR
        | Attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE
        | Attribute::CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES
        | Attribute::CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE
        | Attribute::CU_POINTER_ATTRIBUTE_MAPPING_SIZE
        | Attribute::CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR
        | Attribute::CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID => Value::Long(0),
        _ => return Err(Code::INVALID_VALUE),
    })
}

driver_entry_points! {
    fn pointer_get_attribute "cuPointerGetAttribute" (out: u64, attribute: u32, address: u64) {
        non_null(out)?;
        let context = context::current()?;
        query(&context, Attribute(attribute), address, region_of(address).as_ref())?.put(out)
    }
    fn pointer_get_attributes "cuPointerGetAttributes" (count: u32, attributes: u64, outs: u64, address: u64) {
        non_null(attributes)?;
        non_null(outs)?;
        let context = context::current()?;
        if count == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let attributes = get_array::<u32>(attributes, count as usize)?;
        let outs = get_array::<u64>(outs, count as usize)?;
        let region = region_of(address);
        for (attribute, out) in attributes.into_iter().zip(outs) {
            query(&context, Attribute(attribute), address, region.as_ref()).or_else(|_| unknown(attribute))?.put(out)?;
        }
        Ok(())
    }
    fn pointer_set_attribute "cuPointerSetAttribute" (value: u64, attribute: u32, address: u64) {
        non_null(value)?;
        context::current()?;
        // The only attribute that can be set, and only for device memory. It has no effect: copies always synchronise
        // with the regions they access.
        let region = space().find(address).ok_or(Code::INVALID_VALUE)?;
        if attribute != sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_SYNC_MEMOPS.0
            || !matches!(region.kind, RegionKind::Device | RegionKind::External) {
            return Err(Code::INVALID_VALUE);
        }
        get::<u32>(value).map(|_| ())
    }
}
