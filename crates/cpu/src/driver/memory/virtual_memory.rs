//! Virtual memory management: address reservations, physical memory, mappings, access rights, and export to other
//! processes (CUDA driver API, "Virtual Memory Management").

use std::collections::HashMap;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::sync::{Arc, Weak};

use cupyrite_sys::driver as sys;
use parking_lot::Mutex;

use crate::driver::device;
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get, get_array, non_null, put};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::entry::handles::{HandleKind, fresh_id, handle_of};
use crate::driver::memory::pool;
use crate::driver::memory::pool::access_of;
use crate::driver::memory::space::space;
use crate::memory::{Access, MemoryError, Physical, Region, RegionKind};

/// Granularity of sizes, offsets and addresses in bytes, as on GPUs.
const GRANULARITY: u64 = 2 << 20;
/// `CU_MEM_ALLOCATION_TYPE_PINNED`.
const PINNED: u32 = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED.0;
const MANAGED: u32 = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_MANAGED.0;
/// `CU_MEM_LOCATION_TYPE_*`.
const DEVICE: u32 = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE.0;
const HOST: u32 = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST.0;
const HOST_NUMA: u32 = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA.0;
const LAST_HOST: u32 = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT.0;
/// Stands in for the device ordinal in the tag of host memory.
const OF_THE_HOST: &str = "host";
/// `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR`.
const DESCRIPTOR: u32 = sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR.0;

/// `CUmemAllocationProp` as 32-bit words: allocation type, handle types, location {type, id}, a Windows pointer (two
/// words), then compression (8 bits), RDMA (8 bits) and usage (16 bits), and a reserved word.
type Properties = [u32; 8];

/// Physical memory created by `cuMemCreate` or imported.
struct Allocation {
    /// Dropped with its last handle and mapping.
    memory: Weak<Physical>,
    properties: Properties,
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

fn register(physical: Arc<Physical>, properties: Properties) -> u64 {
    let tag = physical.tag();
    let allocation = Allocation {
        memory: Arc::downgrade(&physical),
        properties,
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

fn properties_at(address: u64) -> Option<Properties> {
    let tag = space().mapping_at(address)?.physical.tag();
    let mut guard = ALLOCATIONS.lock();
    Some(guard.get_or_insert_default().get(&tag)?.properties)
}

/// The device of a mapping's memory; `None` for host memory and for regions that are not mappings.
pub(crate) fn device_of(region: &Region) -> Option<i32> {
    (region.kind == RegionKind::Virtual)
        .then(|| properties_at(region.base))?
        .filter(|p| p[2] == DEVICE)
        .map(|p| p[3] as i32)
}

/// Whether the region is a mapping of host memory.
pub(crate) fn is_host(region: &Region) -> bool {
    region.kind == RegionKind::Virtual && properties_at(region.base).is_some_and(|p| p[2] != DEVICE)
}

/// The handle types as which a mapping's memory can be exported; zero for regions that are not mappings.
pub(crate) fn handle_types(region: &Region) -> u64 {
    if region.kind != RegionKind::Virtual {
        return 0;
    }
    properties_at(region.base).map_or(0, |p| p[1].into())
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

/// Validates properties; returns the device ordinal or [`OF_THE_HOST`].
fn check(p: &Properties) -> Res<String> {
    const TILE_POOL: u32 = 1;
    match p[0] {
        PINNED => {}
        MANAGED => return Err(Code::NOT_SUPPORTED),
        _ => return Err(Code::INVALID_VALUE),
    }
    if p[1] & !DESCRIPTOR != 0 || p[6] >> 16 & TILE_POOL != 0 {
        return Err(Code::NOT_SUPPORTED);
    }
    match p[2] {
        DEVICE => device::by_ordinal(p[3] as i32).map(|d| d.ordinal.to_string()),
        HOST_NUMA => pool::node(p[3], Code::INVALID_VALUE).map(|_| OF_THE_HOST.to_owned()),
        // All NUMA nodes share one memory.
        HOST | LAST_HOST => Ok(OF_THE_HOST.to_owned()),
        _ => Err(Code::INVALID_VALUE),
    }
}

fn code(e: MemoryError) -> Code {
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
    // CUmemAccessDesc: location {type, id}, flags.
    for [location, id, flags] in get_array::<[u32; 3]>(descriptions, count as usize)? {
        let access = access_of(flags)?;
        match location {
            DEVICE => changes.push((device::by_ordinal(id as i32)?.ordinal, access)),
            // The host always has access to host memory and to no other.
            HOST..=LAST_HOST if properties_at(address).is_some_and(|p| p[2] != DEVICE) => {}
            HOST..=LAST_HOST => return Err(Code::NOT_SUPPORTED),
            _ => return Err(Code::INVALID_VALUE),
        }
    }
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
        check(&get(properties)?)?;
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
        let properties: Properties = get(properties)?;
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
        release(handle)
    }
    fn mem_retain "cuMemRetainAllocationHandle" (out: u64, address: u64) {
        non_null(out)?;
        let memory = space().mapping_at(address).ok_or(Code::INVALID_VALUE)?.physical;
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
        let properties = with_allocation(handle, |a| Ok(a.properties))?;
        put(out, properties)
    }
    fn mem_map "cuMemMap" (address: u64, size: u64, offset: u64, handle: u64, flags: u64) {
        whole(&[address, size, offset])?;
        if flags != 0 || size == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let memory = with_allocation(handle, |a| a.memory.upgrade().ok_or(Code::INVALID_VALUE))?;
        space().map(address, size, &memory, offset).map_err(code)
    }
    fn mem_unmap "cuMemUnmap" (address: u64, size: u64) {
        space().unmap(address, size).map_err(code)
    }
    fn mem_set_access "cuMemSetAccess" (address: u64, size: u64, descriptions: u64, count: u64) {
        set_access(address, size, descriptions, count)
    }
    fn mem_get_access "cuMemGetAccess" (out: u64, location: u64, address: u64) {
        non_null(out)?;
        let [kind, id] = get::<[u32; 2]>(location)?;
        let mapping = space().mapping_at(address).ok_or(Code::INVALID_VALUE)?;
        let access = match kind {
            DEVICE => mapping.reach.access(device::by_ordinal(id as i32)?.ordinal),
            HOST..=LAST_HOST => match properties_at(address) {
                Some(p) if p[2] != DEVICE => Access::ReadWrite,
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
        let memory = with_allocation(handle, |a| {
            // Only as the handle type that it was created for.
            if kind != DESCRIPTOR || a.properties[1] & kind == 0 {
                return Err(Code::INVALID_VALUE);
            }
            a.memory.upgrade().ok_or(Code::INVALID_VALUE)
        })?;
        let descriptor = memory.export().map_err(code)?;
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
        let (memory, label) = space().import_physical(descriptor, fresh_id()).map_err(code)?;
        let (kind, id) = if label == OF_THE_HOST {
            (HOST, 0)
        } else {
            let ordinal: i32 = label.parse().map_err(|_| Code::INVALID_VALUE)?;
            // The exporting process may have more devices than this one.
            let device = device::by_ordinal(ordinal).map_err(|_| Code::INVALID_VALUE)?;
            (DEVICE, device.ordinal as u32)
        };
        let handle = register(memory, [PINNED, DESCRIPTOR, kind, id, 0, 0, 0, 0]);
        put(out, handle).inspect_err(|_| { let _ = release(handle); })
    }
}
