//! What a pointer points to: `cuPointerGetAttribute` and its relatives.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::driver::context::{self, CONTEXTS, Context};
use crate::driver::device::peers;
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get, get_array, non_null, put};
use crate::driver::entry::entries;
use crate::driver::entry::errors::Code;
use crate::driver::entry::handles::{HandleKind, handle_of};
use crate::driver::memory::allocation::space;
use crate::driver::memory::ipc;
use crate::driver::memory::pool;
use crate::driver::memory::virtual_memory;
use crate::memory::{Access, Kind, Region};

/// Flags given to `cuMemHostAlloc`/`cuMemHostRegister`, by region id.
static HOST_FLAGS: Mutex<Option<HashMap<u64, u32>>> = Mutex::new(None);

pub(crate) fn remember_host_flags(id: u64, flags: u32) {
    HOST_FLAGS.lock().get_or_insert_default().insert(id, flags);
}

/// Drops what is remembered of a freed region.
pub(crate) fn forget(region: &Region) {
    HOST_FLAGS.lock().get_or_insert_default().remove(&region.id);
    ipc::forget(region);
}

/// What `cuMemHostGetFlags` says. Under unified addressing host memory is always mapped for the device.
pub(crate) fn host_flags(region: &Region) -> u32 {
    const MAPPED: u32 = 2;
    let given = HOST_FLAGS
        .lock()
        .get_or_insert_default()
        .get(&region.id)
        .copied()
        .unwrap_or(0);
    if matches!(region.kind, Kind::Host | Kind::Managed) {
        given | MAPPED
    } else {
        given
    }
}

const MEMORYTYPE_HOST: u32 = 1;
const MEMORYTYPE_DEVICE: u32 = 2;

/// A value as the caller's type has it: four or eight bytes.
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

/// The region of an address; for virtual memory also if no device may use it.
fn region_of(address: u64) -> Option<Region> {
    space()
        .find(address)
        .or_else(|| virtual_memory::region_at(address))
}

/// The device whose memory a region is: that of its physical memory, its pool or its context.
pub(crate) fn device_of(region: &Region) -> i32 {
    let owner = || CONTEXTS.find(handle_of(HandleKind::Context, region.owner));
    virtual_memory::device_of(region)
        .or_else(|| pool::device_of(region))
        .or_else(|| ipc::device_of(region))
        .or_else(|| owner().map(|c| c.device))
        .unwrap_or(0)
}

/// What kernels of the context may do with a region, as `CU_POINTER_ATTRIBUTE_ACCESS_FLAGS` says it.
fn access_flags(context: &Context, region: &Region) -> u32 {
    match peers::viewer(context).access(region) {
        Access::None => 0,
        Access::Read => 1,
        Access::ReadWrite if region.read_only && region.kind == Kind::Registered => 1,
        Access::ReadWrite => 3,
    }
}

/// The value of a `CUpointer_attribute` of `address`.
fn query(context: &Context, attribute: u32, address: u64, region: Option<&Region>) -> Res<Value> {
    use Value::{Long, Word};
    // What a reservation is can be asked whether or not anything is mapped.
    if matches!(attribute, 11 | 12)
        && region.is_none_or(|r| r.kind == Kind::Virtual)
        && let Some((base, size)) = space().reservation_of(address)
    {
        return Ok(Long(if attribute == 11 { base } else { size }));
    }
    // These two can be asked of any address.
    match (attribute, region) {
        (8, None) => return Ok(Word(0)),
        (13, None) => return Ok(Word(0)),
        (1..=22, None) => return Err(Code::INVALID_VALUE),
        _ => {}
    }
    let region = region.ok_or(Code::INVALID_VALUE)?;
    let host =
        matches!(region.kind, Kind::Host | Kind::Registered) || virtual_memory::is_host(region);
    Ok(match attribute {
        1 => Long(if region.owner == 0 {
            0
        } else {
            handle_of(HandleKind::Context, region.owner)
        }),
        2 => Word(if host {
            MEMORYTYPE_HOST
        } else {
            MEMORYTYPE_DEVICE
        }),
        3 => Long(address),
        // Device memory proper is not the host's to touch, as on a GPU.
        4 if host || region.kind == Kind::Managed => Long(address),
        4 => return Err(Code::INVALID_VALUE),
        5 => return Err(Code::NOT_SUPPORTED),
        6 => Word(0),
        7 | 20 => Long(region.id),
        8 => Word(u32::from(region.kind == Kind::Managed)),
        9 => Word(device_of(region) as u32),
        10 => Word(ipc::has_handle(region).into()),
        11 | 19 => Long(region.base),
        12 | 18 => Long(region.size),
        13 => Word(1),
        14 => Long(virtual_memory::handle_types(region) | pool::handle_types(region)),
        15 => Word(0),
        16 => Word(access_flags(context, region)),
        17 => Long(pool::pool_of(region)),
        21 => Word(0),
        22 => Word(u32::MAX),
        _ => return Err(Code::INVALID_VALUE),
    })
}

/// What `cuPointerGetAttributes` writes for an address of no region.
fn unknown(attribute: u32) -> Res<Value> {
    Ok(match attribute {
        2 | 6 | 8 | 10 | 13 | 15 | 16 | 21 => Value::Word(0),
        9 => Value::Word(-2i32 as u32),
        22 => Value::Word(u32::MAX),
        5 => Value::Pair([0; 2]),
        1 | 3 | 4 | 7 | 11 | 12 | 14 | 17..=20 => Value::Long(0),
        _ => return Err(Code::INVALID_VALUE),
    })
}

entries! {
    fn pointer_get_attribute "cuPointerGetAttribute" (out: u64, attribute: u32, address: u64) {
        non_null(out)?;
        let context = context::current()?;
        query(&context, attribute, address, region_of(address).as_ref())?.put(out)
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
            query(&context, attribute, address, region.as_ref()).or_else(|_| unknown(attribute))?.put(out)?;
        }
        Ok(())
    }
    fn pointer_set_attribute "cuPointerSetAttribute" (value: u64, attribute: u32, address: u64) {
        non_null(value)?;
        context::current()?;
        // Only CU_POINTER_ATTRIBUTE_SYNC_MEMOPS can be set, and only for device memory. Copies here are synchronised
        // with the regions they touch anyway.
        let region = space().find(address).ok_or(Code::INVALID_VALUE)?;
        if attribute != 6 || region.kind != Kind::Device {
            return Err(Code::INVALID_VALUE);
        }
        get::<u32>(value).map(|_| ())
    }
}
