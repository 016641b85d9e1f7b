//! What a pool tells of itself, and which devices it lets in.

use std::sync::Arc;

use super::{DEVICE, HOST, HOST_NUMA, MANAGED, MEMBERS, NOWHERE, PINNED, Place, Pool};
use crate::driver::device;
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get, get_array, put};
use crate::driver::entry::errors::Code;
use crate::driver::entry::logs::refuse;
use crate::driver::memory::allocation::space;
use crate::memory::{Access, Kind};

pub(super) fn access_flags(access: Access) -> u32 {
    match access {
        Access::None => 0,
        Access::Read => 1,
        Access::ReadWrite => 3,
    }
}

/// What `CUmemAccess_flags` says.
///
/// # Errors
/// `INVALID_VALUE` for flags there are not.
pub(crate) fn access_of(flags: u32) -> Res<Access> {
    match flags {
        0 => Ok(Access::None),
        1 => Ok(Access::Read),
        3 => Ok(Access::ReadWrite),
        _ => Err(Code::INVALID_VALUE),
    }
}

/// Pools of other processes have no attributes here: so answers NVIDIA's driver, too.
fn made_here(pool: &Pool) -> Res {
    if pool.sharing.is_imported() {
        return refuse(Code::INVALID_VALUE, || {
            "attributes are those of memory pools that this process made".into()
        });
    }
    Ok(())
}

pub(super) fn attribute(pool: &Pool, attribute: u32, out: u64) -> Res {
    made_here(pool)?;
    let state = pool.state.lock();
    let (place, kind) = pool.sort;
    let word = |v: u32| put(out, v);
    let long = |v: u64| put(out, v);
    match attribute {
        1..=3 => word(state.reuse[attribute as usize - 1]),
        4 => long(state.release_threshold),
        5 => long(state.reserved),
        6 => long(state.reserved_high),
        7 => long(state.used),
        8 => long(state.used_high),
        9 => word(if kind == Kind::Managed {
            MANAGED
        } else {
            PINNED
        }),
        // Handle types, location id and type.
        10 => word(pool.sharing.handle_types()),
        11 => word(match place {
            Place::Device(id) | Place::Node(id) => id as u32,
            Place::Host | Place::Anywhere => 0,
        }),
        12 => word(match place {
            Place::Device(_) => DEVICE,
            Place::Host => HOST,
            Place::Node(_) => HOST_NUMA,
            Place::Anywhere => NOWHERE,
        }),
        13 => long(if pool.most == 0 {
            space().capacity()
        } else {
            pool.most
        }),
        // Decompression by hardware.
        14 => word(0),
        15 => Err(Code::NOT_SUPPORTED),
        _ => Err(Code::INVALID_VALUE),
    }
}

pub(super) fn set_attribute(pool: &Pool, attribute: u32, value: u64) -> Res {
    made_here(pool)?;
    match attribute {
        1..=3 => {
            let value = get::<u32>(value)?;
            pool.state.lock().reuse[attribute as usize - 1] = u32::from(value != 0);
        }
        4 => {
            let value = get::<u64>(value)?;
            pool.state.lock().release_threshold = value;
        }
        // The high-water marks can only be reset.
        6 | 8 => {
            if get::<u64>(value)? != 0 {
                return Err(Code::INVALID_VALUE);
            }
            let mut state = pool.state.lock();
            if attribute == 6 {
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
    // CUmemAccessDesc: location {type, id}, flags.
    let mut changes = Vec::new();
    for [location, id, flags] in get_array::<[u32; 3]>(map, count as usize)? {
        if location != DEVICE {
            return Err(Code::INVALID_VALUE);
        }
        let device = device::by_ordinal(id as i32)?.ordinal;
        let access = access_of(flags)?;
        // A device never loses its own memory.
        if pool.sort == (Place::Device(device), Kind::Device) && access != Access::ReadWrite {
            return Err(Code::INVALID_DEVICE);
        }
        changes.push((device, access));
    }
    // The allocations first, then the pool: see `allocate`.
    let members = MEMBERS.lock();
    let mut state = pool.state.lock();
    if pool.sort.1 != Kind::Device {
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
