//! Attributes and access rights of memory pools.

use std::sync::Arc;

use cupyrite_engine::memory::{Access, RegionKind};
use cupyrite_sys::driver::{CUmemAccess_flags, CUmemAccessDesc, CUmemPool_attribute as Attribute};

use super::{
    DEVICE, HOST, HOST_NUMA, MANAGED, MEMBERS, NO_LOCATION, PINNED, Pool, PoolLocation, location_id,
};
use crate::driver::device;
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get, get_array, put};
use crate::driver::entry::errors::Code;
use crate::driver::entry::logs::refuse;
use crate::driver::memory::space::space;

pub(super) fn access_flags(access: Access) -> u32 {
    match access {
        Access::None => CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_NONE.0,
        Access::Read => CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READ.0,
        Access::ReadWrite => CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE.0,
    }
}

/// Converts `CUmemAccess_flags`.
///
/// # Errors
/// `INVALID_VALUE` for unknown flags.
pub(crate) fn access_of(flags: CUmemAccess_flags) -> Res<Access> {
    match flags {
        CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_NONE => Ok(Access::None),
        CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READ => Ok(Access::Read),
        CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE => Ok(Access::ReadWrite),
        _ => Err(Code::INVALID_VALUE),
    }
}

/// Refuses the attributes of imported pools, as NVIDIA's driver does.
fn reject_imported(pool: &Pool) -> Res {
    if pool.sharing.is_imported() {
        return refuse(Code::INVALID_VALUE, || {
            "an imported memory pool has no attributes".into()
        });
    }
    Ok(())
}

/// Index in [`PoolState::reuse`](super::PoolState) of one of the three `CU_MEMPOOL_ATTR_REUSE_*` attributes.
fn reuse_index(attribute: Attribute) -> usize {
    (attribute.0 - Attribute::CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES.0) as usize
}

pub(super) fn attribute(pool: &Pool, attribute: Attribute, out: u64) -> Res {
    reject_imported(pool)?;
    let state = pool.state.lock();
    let (place, kind) = pool.kind;
    let word = |v: u32| put(out, v);
    let long = |v: u64| put(out, v);
    match attribute {
        Attribute::CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES
        | Attribute::CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC
        | Attribute::CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES => {
            word(state.reuse[reuse_index(attribute)])
        }
        Attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD => long(state.release_threshold),
        Attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT => long(state.reserved),
        Attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH => long(state.reserved_high),
        Attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT => long(state.used),
        Attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH => long(state.used_high),
        Attribute::CU_MEMPOOL_ATTR_ALLOCATION_TYPE => word(if kind == RegionKind::Managed {
            MANAGED.0
        } else {
            PINNED.0
        }),
        // Handle types, location id and location type.
        Attribute::CU_MEMPOOL_ATTR_EXPORT_HANDLE_TYPES => word(pool.sharing.handle_types()),
        Attribute::CU_MEMPOOL_ATTR_LOCATION_ID => word(match place {
            PoolLocation::Device(id) | PoolLocation::Node(id) => id as u32,
            PoolLocation::Host | PoolLocation::Anywhere => 0,
        }),
        Attribute::CU_MEMPOOL_ATTR_LOCATION_TYPE => word(match place {
            PoolLocation::Device(_) => DEVICE.0,
            PoolLocation::Host => HOST.0,
            PoolLocation::Node(_) => HOST_NUMA.0,
            PoolLocation::Anywhere => NO_LOCATION.0,
        }),
        Attribute::CU_MEMPOOL_ATTR_MAX_POOL_SIZE => long(if pool.most == 0 {
            space().capacity()
        } else {
            pool.most
        }),
        Attribute::CU_MEMPOOL_ATTR_HW_DECOMPRESS_ENABLED => word(pool.decompress.into()),
        Attribute::CU_MEMPOOL_ATTR_LOCALITY_DOMAIN_ID => Err(Code::NOT_SUPPORTED),
        _ => Err(Code::INVALID_VALUE),
    }
}

pub(super) fn set_attribute(pool: &Pool, attribute: Attribute, value: u64) -> Res {
    reject_imported(pool)?;
    match attribute {
        Attribute::CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES
        | Attribute::CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC
        | Attribute::CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES => {
            let value = get::<u32>(value)?;
            pool.state.lock().reuse[reuse_index(attribute)] = u32::from(value != 0);
        }
        Attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD => {
            let value = get::<u64>(value)?;
            pool.state.lock().release_threshold = value;
        }
        // The high-water marks can only be reset to the current value.
        Attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH | Attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH => {
            if get::<u64>(value)? != 0 {
                return Err(Code::INVALID_VALUE);
            }
            let mut state = pool.state.lock();
            if attribute == Attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH {
                state.reserved_high = state.reserved;
            } else {
                state.used_high = state.used;
            }
        }
        _ => return Err(Code::INVALID_VALUE),
    }
    Ok(())
}

pub(super) fn set_access(pool: &Arc<Pool>, map: u64, count: u64) -> Res {
    if count == 0 {
        return Ok(());
    }
    if map == 0 || count > 64 {
        return Err(Code::INVALID_VALUE);
    }
    let mut changes = Vec::new();
    for CUmemAccessDesc { location, flags } in get_array(map, count as usize)? {
        if location.r#type != DEVICE {
            return Err(Code::INVALID_VALUE);
        }
        let device = device::by_ordinal(location_id(&location))?.ordinal;
        let access = access_of(flags)?;
        // A device always keeps access to its own memory.
        if pool.kind == (PoolLocation::Device(device), RegionKind::Device)
            && access != Access::ReadWrite
        {
            return Err(Code::INVALID_DEVICE);
        }
        changes.push((device, access));
    }
    // Lock order: the allocations, then the pool, as in `allocate`.
    let members = MEMBERS.lock();
    let mut state = pool.state.lock();
    if pool.kind.1 != RegionKind::Device {
        return Ok(());
    }
    for (device, access) in changes {
        state.reach = state.reach.with(device, access);
    }
    for member in members.iter().flat_map(|m| m.values()) {
        if Arc::ptr_eq(&member.pool, pool) {
            space().set_reach(member.base, state.reach);
        }
    }
    Ok(())
}
