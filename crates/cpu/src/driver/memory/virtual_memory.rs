//! Virtual memory management: address reservations, physical memory, mappings, access rights, and export to other
//! processes (CUDA driver API, "Virtual Memory Management").

use std::collections::HashMap;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::sync::{Arc, Weak};

use cupyrite_engine::memory::{Access, Mappable, MemoryError, Physical, Region, RegionKind};
use cupyrite_sys::driver::{
    self as sys, CUmemAccessDesc, CUmemAllocationHandleType, CUmemAllocationProp,
    CUmemAllocationType, CUmemLocation, CUmemLocationType,
};
use parking_lot::Mutex;

use crate::driver::device;
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{Kept, get, get_array, non_null, put};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::entry::handles::{HandleKind, fresh_id, handle_of};
use crate::driver::entry::logs::refuse;
use crate::driver::memory::multicast;
use crate::driver::memory::pool;
use crate::driver::memory::pool::access_of;
use crate::driver::memory::space::space;

/// Granularity of sizes, offsets and addresses in bytes, as on GPUs.
pub(crate) const GRANULARITY: u64 = 2 << 20;
const PINNED: CUmemAllocationType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
const MANAGED: CUmemAllocationType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_MANAGED;
const DEVICE: CUmemLocationType = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
const HOST: CUmemLocationType = CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST;
const HOST_NUMA: CUmemLocationType = CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA;
const HOST_NUMA_CURRENT: CUmemLocationType =
    CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
/// Stands in for the device ordinal in the tag of host memory.
const OF_THE_HOST: &str = "host";
/// `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR`.
const DESCRIPTOR: u32 = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR.0;

/// Physical memory created by `cuMemCreate` or imported.
struct Allocation {
    /// Dropped with its last handle and mapping.
    memory: Weak<Physical>,
    properties: Kept<CUmemAllocationProp>,
    /// Keeps the memory alive while handles exist, and the number of handles.
    held: Option<(Arc<Physical>, u64)>,
}

/// By the id in the handle and in the memory's tag.
static ALLOCATIONS: Mutex<Option<HashMap<u64, Allocation>>> = Mutex::new(None);

fn with_allocation<T>(handle: u64, f: impl FnOnce(&mut Allocation) -> Res<T>) -> Res<T> {
    let mut guard = ALLOCATIONS.lock();
    guard
        .get_or_insert_default()
        .values_mut()
        .find(|a| {
            a.held
                .as_ref()
                .is_some_and(|h| handle_of(HandleKind::Memory, h.0.tag()) == handle)
        })
        .ok_or(Code::INVALID_VALUE)
        .and_then(f)
}

fn register(physical: Arc<Physical>, properties: CUmemAllocationProp) -> u64 {
    let tag = physical.tag();
    let allocation = Allocation {
        memory: Arc::downgrade(&physical),
        properties: Kept(properties),
        held: Some((physical, 1)),
    };
    let mut guard = ALLOCATIONS.lock();
    let all = guard.get_or_insert_default();
    all.retain(|_, a| a.memory.strong_count() > 0);
    all.insert(tag, allocation);
    handle_of(HandleKind::Memory, tag)
}

/// Releases one handle.
fn release(handle: u64) -> Res {
    let removed = with_allocation(handle, |a| {
        if let Some((_, count)) = &mut a.held {
            *count -= 1;
            if *count > 0 {
                return Ok(None);
            }
        }
        Ok(a.held.take())
    })?;
    // Dropped outside the lock.
    drop(removed);
    Ok(())
}

fn properties_at(address: u64) -> Option<CUmemAllocationProp> {
    let Mappable::Physical(memory) = space().mapping_at(address)?.memory else {
        return None;
    };
    let tag = memory.tag();
    let mut guard = ALLOCATIONS.lock();
    Some(guard.get_or_insert_default().get(&tag)?.properties.0)
}

/// The device of a mapping's memory; `None` for host memory and for regions that are not mappings.
pub(crate) fn device_of(region: &Region) -> Option<i32> {
    (region.kind == RegionKind::Virtual)
        .then(|| properties_at(region.base))?
        .filter(|p| p.location.r#type == DEVICE)
        .map(|p| pool::location_id(&p.location))
}

/// Whether the region is a mapping of host memory.
pub(crate) fn is_host(region: &Region) -> bool {
    region.kind == RegionKind::Virtual && properties_at(region.base).is_some_and(|p| is_of_host(&p))
}

/// The handle types as which a mapping's memory can be exported; zero for regions that are not mappings.
pub(crate) fn handle_types(region: &Region) -> u64 {
    if region.kind != RegionKind::Virtual {
        return 0;
    }
    properties_at(region.base).map_or(0, |p| p.requestedHandleTypes.0.into())
}

/// `CUmemAllocationProp.allocFlags.usage` of a mapping's memory; zero for regions that are not mappings.
pub(crate) fn usage(region: &Region) -> u16 {
    if region.kind != RegionKind::Virtual {
        return 0;
    }
    properties_at(region.base).map_or(0, |p| p.allocFlags.usage)
}

/// The mapping that contains `address`, including one that no device may access.
pub(crate) fn region_at(address: u64) -> Option<Region> {
    let m = space().mapping_at(address)?;
    Some(Region {
        base: m.base,
        size: m.size,
        kind: RegionKind::Virtual,
        id: m.id,
        read_only: false,
        owner: 0,
        reach: m.reach,
    })
}

/// The memory of a handle, the device that it belongs to (`None` for the host's), and the handle types as which it can be
/// exported.
pub(crate) fn of_handle(handle: u64) -> Option<(Arc<Physical>, Option<i32>, u32)> {
    let memory = with_allocation(handle, |a| a.memory.upgrade().ok_or(Code::INVALID_VALUE)).ok()?;
    let (device, handle_types) = kind_of(memory.tag())?;
    Some((memory, device, handle_types))
}

/// The device of memory with this tag (`None` for the host's), and its handle types.
pub(crate) fn kind_of(tag: u64) -> Option<(Option<i32>, u32)> {
    let mut guard = ALLOCATIONS.lock();
    let properties = guard.get_or_insert_default().get(&tag)?.properties.0;
    let device = (!is_of_host(&properties)).then(|| pool::location_id(&properties.location));
    Some((device, properties.requestedHandleTypes.0))
}

/// Whether the memory is the host's.
fn is_of_host(properties: &CUmemAllocationProp) -> bool {
    properties.location.r#type != DEVICE
}

/// Whether the memory is for sparse arrays.
fn is_tile_pool(p: &CUmemAllocationProp) -> bool {
    const TILE_POOL: u16 = sys::CU_MEM_CREATE_USAGE_TILE_POOL as u16;
    p.allocFlags.usage & TILE_POOL != 0
}

/// The memory of a handle that can be mapped into arrays of a device.
///
/// # Errors
/// `INVALID_VALUE` for an invalid handle, and for memory of another kind or device.
pub(crate) fn tile_pool(handle: u64, device: i32) -> Res<Arc<Physical>> {
    with_allocation(handle, |a| {
        let p = &a.properties.0;
        if !is_tile_pool(p) || pool::location_id(&p.location) != device {
            return Err(Code::INVALID_VALUE);
        }
        a.memory.upgrade().ok_or(Code::INVALID_VALUE)
    })
}

/// Validates properties; returns the device ordinal or [`OF_THE_HOST`].
fn check(p: &CUmemAllocationProp) -> Res<String> {
    match p.r#type {
        PINNED => {}
        MANAGED => return Err(Code::NOT_SUPPORTED),
        _ => return Err(Code::INVALID_VALUE),
    }
    if p.requestedHandleTypes.0 & !DESCRIPTOR != 0 {
        return Err(Code::NOT_SUPPORTED);
    }
    if is_tile_pool(p) && p.location.r#type != DEVICE {
        return refuse(Code::INVALID_VALUE, || {
            "memory with CU_MEM_CREATE_USAGE_TILE_POOL must be a device's".to_owned()
        });
    }
    let id = pool::location_id(&p.location);
    match p.location.r#type {
        DEVICE => device::by_ordinal(id).map(|d| d.ordinal.to_string()),
        HOST_NUMA => pool::node(id as u32, Code::INVALID_VALUE).map(|_| OF_THE_HOST.to_owned()),
        // All NUMA nodes share one memory.
        HOST | HOST_NUMA_CURRENT => Ok(OF_THE_HOST.to_owned()),
        _ => Err(Code::INVALID_VALUE),
    }
}

pub(crate) fn code(e: MemoryError) -> Code {
    match e {
        MemoryError::OutOfMemory => Code::OUT_OF_MEMORY,
        MemoryError::System => Code::OPERATING_SYSTEM,
        _ => Code::INVALID_VALUE,
    }
}

fn whole(numbers: &[u64]) -> Res {
    if numbers.iter().all(|n| n.is_multiple_of(GRANULARITY)) {
        Ok(())
    } else {
        Err(Code::INVALID_VALUE)
    }
}

fn set_access(address: u64, size: u64, descriptions: u64, count: u64) -> Res {
    non_null(descriptions)?;
    whole(&[address, size])?;
    if size == 0 || count == 0 || count > 64 {
        return Err(Code::INVALID_VALUE);
    }
    let mut changes = Vec::new();
    for CUmemAccessDesc { location, flags } in get_array(descriptions, count as usize)? {
        let access = access_of(flags)?;
        match location.r#type {
            DEVICE => {
                let device = device::by_ordinal(pool::location_id(&location))?;
                changes.push((device.ordinal, access));
            }
            // The host always has access to host memory and to no other.
            HOST | HOST_NUMA | HOST_NUMA_CURRENT
                if properties_at(address).is_some_and(|p| is_of_host(&p)) => {}
            HOST | HOST_NUMA | HOST_NUMA_CURRENT => return Err(Code::NOT_SUPPORTED),
            _ => return Err(Code::INVALID_VALUE),
        }
    }
    let devices: Vec<i32> = changes.iter().map(|c| c.0).collect();
    multicast::check_access(address, size, &devices)?;
    space()
        .set_mapping_reach(address, size, |reach| {
            changes.iter().fold(reach, |r, &(d, a)| r.with(d, a))
        })
        .map_err(code)
}

driver_entry_points! {
    fn mem_granularity "cuMemGetAllocationGranularity" (out: u64, properties: u64, option: u32) {
        non_null(out)?;
        if option > 1 {
            return Err(Code::INVALID_VALUE);
        }
        check(&get::<CUmemAllocationProp>(properties)?)?;
        put(out, GRANULARITY)
    }
    fn mem_address_reserve "cuMemAddressReserve" (out: u64, size: u64, alignment: u64, wish: u64, flags: u64) {
        non_null(out)?;
        if flags != 0 || !(alignment == 0 || alignment.is_power_of_two()) {
            return Err(Code::INVALID_VALUE);
        }
        whole(&[size])?;
        let base = space().reserve(size, alignment.max(GRANULARITY), wish).map_err(code)?;
        put(out, base).inspect_err(|_| { let _ = space().unreserve(base, size); })
    }
    fn mem_address_free "cuMemAddressFree" (address: u64, size: u64) {
        space().unreserve(address, size).map_err(code)
    }
    fn mem_create "cuMemCreate" (out: u64, size: u64, properties: u64, flags: u64) {
        non_null(out)?;
        let properties = get::<CUmemAllocationProp>(properties)?;
        if flags != 0 || size == 0 {
            return Err(Code::INVALID_VALUE);
        }
        whole(&[size])?;
        let label = check(&properties)?;
        let memory = pool::with_relief(|| space().create_physical(size, &label, fresh_id()))?;
        let handle = register(memory, properties);
        put(out, handle).inspect_err(|_| { let _ = release(handle); })
    }
    fn mem_release "cuMemRelease" (handle: u64) {
        multicast::release(handle).map_or_else(|| release(handle), Ok)
    }
    fn mem_retain "cuMemRetainAllocationHandle" (out: u64, address: u64) {
        non_null(out)?;
        let memory = match space().mapping_at(address).ok_or(Code::INVALID_VALUE)?.memory {
            Mappable::Physical(memory) => memory,
            Mappable::Multicast(object) => {
                let handle = multicast::retain(object)?;
                return put(out, handle).inspect_err(|_| { let _ = multicast::release(handle); });
            }
        };
        let handle = handle_of(HandleKind::Memory, memory.tag());
        {
            let mut guard = ALLOCATIONS.lock();
            let known = guard.get_or_insert_default().get_mut(&memory.tag()).ok_or(Code::INVALID_VALUE)?;
            known.held.get_or_insert((memory, 0)).1 += 1;
        }
        put(out, handle).inspect_err(|_| { let _ = release(handle); })
    }
    fn mem_properties "cuMemGetAllocationPropertiesFromHandle" (out: u64, handle: u64) {
        non_null(out)?;
        let properties = with_allocation(handle, |a| Ok(a.properties.0))?;
        put(out, properties)
    }
    fn mem_map "cuMemMap" (address: u64, size: u64, offset: u64, handle: u64, flags: u64) {
        whole(&[address, size, offset])?;
        if flags != 0 || size == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let memory = match multicast::mappable(handle) {
            Some(object) => object?,
            None => Mappable::Physical(with_allocation(handle, |a| {
                if is_tile_pool(&a.properties.0) {
                    return refuse(Code::INVALID_VALUE, || {
                        "the memory was created with CU_MEM_CREATE_USAGE_TILE_POOL; use cuMemMapArrayAsync".to_owned()
                    });
                }
                a.memory.upgrade().ok_or(Code::INVALID_VALUE)
            })?),
        };
        space().map(address, size, memory, offset).map_err(code)
    }
    fn mem_unmap "cuMemUnmap" (address: u64, size: u64) {
        space().unmap(address, size).map_err(code)
    }
    fn mem_set_access "cuMemSetAccess" (address: u64, size: u64, descriptions: u64, count: u64) {
        set_access(address, size, descriptions, count)
    }
    fn mem_get_access "cuMemGetAccess" (out: u64, location: u64, address: u64) {
        non_null(out)?;
        let location = get::<CUmemLocation>(location)?;
        let mapping = space().mapping_at(address).ok_or(Code::INVALID_VALUE)?;
        let access = match location.r#type {
            DEVICE => {
                let device = device::by_ordinal(pool::location_id(&location))?;
                mapping.reach.access(device.ordinal)
            }
            HOST | HOST_NUMA | HOST_NUMA_CURRENT => match properties_at(address) {
                Some(p) if is_of_host(&p) => Access::ReadWrite,
                _ => Access::None,
            },
            _ => return Err(Code::INVALID_VALUE),
        };
        put(out, match access {
            Access::None => 0u64,
            Access::Read => 1,
            Access::ReadWrite => 3,
        })
    }
    fn mem_export "cuMemExportToShareableHandle" (out: u64, handle: u64, kind: u32, flags: u64) {
        non_null(out)?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let object = multicast::export(handle, kind).transpose()?;
        let memory = || with_allocation(handle, |a| {
            // Only as the handle type that it was created for.
            if kind != DESCRIPTOR || a.properties.0.requestedHandleTypes.0 & kind == 0 {
                return Err(Code::INVALID_VALUE);
            }
            a.memory.upgrade().ok_or(Code::INVALID_VALUE)
        });
        let descriptor = match object {
            Some(descriptor) => descriptor,
            None => memory()?.export().map_err(code)?,
        };
        put(out, descriptor.as_raw_fd())?;
        // The caller owns the descriptor.
        let _ = descriptor.into_raw_fd();
        Ok(())
    }
    fn mem_import "cuMemImportFromShareableHandle" (out: u64, descriptor: u64, kind: u32) {
        non_null(out)?;
        if kind != DESCRIPTOR {
            return Err(if kind.count_ones() == 1 { Code::NOT_SUPPORTED } else { Code::INVALID_VALUE });
        }
        // The descriptor is passed as a pointer.
        let descriptor = i32::try_from(descriptor).map_err(|_| Code::INVALID_VALUE)?;
        if let Some(object) = multicast::import(descriptor) {
            let handle = object?;
            return put(out, handle).inspect_err(|_| { let _ = multicast::release(handle); });
        }
        let (memory, label) = space().import_physical(descriptor, fresh_id()).map_err(code)?;
        let mut properties = CUmemAllocationProp {
            r#type: PINNED,
            requestedHandleTypes: CUmemAllocationHandleType(DESCRIPTOR),
            ..CUmemAllocationProp::default()
        };
        if label == OF_THE_HOST {
            properties.location.r#type = HOST;
        } else {
            let ordinal: i32 = label.parse().map_err(|_| Code::INVALID_VALUE)?;
            // The exporting process may have more devices than this one.
            let device = device::by_ordinal(ordinal).map_err(|_| Code::INVALID_VALUE)?;
            properties.location.r#type = DEVICE;
            properties.location.anon0.id = device.ordinal;
        }
        let handle = register(memory, properties);
        put(out, handle).inspect_err(|_| { let _ = release(handle); })
    }
}
