//! The entry points of memory pools and of stream-ordered allocation.

use std::sync::Arc;

use cupyrite_engine::memory::{Access, Region, RegionKind};
use cupyrite_sys::driver::{self as sys, CUmemLocation, CUmemPoolProps};

use super::attributes::{access_flags, attribute, set_access, set_attribute};
use super::{
    DEVICE, HOST, MEMBERS, POOLS, Pool, PoolLocation, allocate, choose, chosen, current_of,
    device_kind, find, install, is_member, location_id, pool_kind, pool_kind_at, return_block,
};
use crate::driver::context::Context;
use crate::driver::device;
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get, non_null, put};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::entry::logs::refuse;
use crate::driver::graph;
use crate::driver::memory::host_flags;
use crate::driver::memory::ipc::{self, Sharing};
use crate::driver::memory::space::space;
use crate::driver::stream::{OpPlacement, Stream, capture_state, resolve};

/// Frees in stream order.
///
/// # Errors
/// `INVALID_VALUE` if `address` is not the start of an allocation; `STREAM_CAPTURE_UNSUPPORTED` if the stream is not
/// capturing while another capture prohibits the call.
fn free_async(address: u64, stream: &Arc<Stream>) -> Res {
    if capture_state::is_capturing(stream)? {
        // Memory allocated by a graph is freed by a graph node.
        let node = graph::memory::Free::read(address)?;
        return graph::capture::record(stream, graph::Payload::MemFree(node));
    }
    capture_state::reject_if_capturing()?;
    if let Some(free) = graph::memory::free_later(address) {
        let free = free?;
        stream.enqueue(&[], OpPlacement::CallerIfIdle, move |_| {
            free().map_err(|_| Code::ILLEGAL_ADDRESS)
        });
        return Ok(());
    }
    let region = freeable(address)?;
    if let Some(member) = MEMBERS.lock().get_or_insert_default().get_mut(&region.id) {
        // Freed twice before the stream reached the first free.
        if std::mem::replace(&mut member.doomed, true) {
            return Err(Code::INVALID_VALUE);
        }
    }
    stream.enqueue(&[], OpPlacement::CallerIfIdle, free_work(region, stream.id));
    Ok(())
}

/// The allocation at `address`, if `cuMemFreeAsync` accepts it.
///
/// # Errors
/// `INVALID_VALUE` if it does not, `NOT_SUPPORTED` for managed memory that is not from a pool.
fn freeable(address: u64) -> Res<Region> {
    let region = space()
        .find(address)
        .filter(|r| r.base == address)
        .ok_or(Code::INVALID_VALUE)?;
    match region.kind {
        // Memory opened by a handle must be closed, not freed.
        RegionKind::Device if ipc::is_opened(&region) => Err(Code::INVALID_VALUE),
        RegionKind::Device => Ok(region),
        _ if is_member(&region) => Ok(region),
        RegionKind::Managed => Err(Code::NOT_SUPPORTED),
        _ => Err(Code::INVALID_VALUE),
    }
}

/// The work of `cuMemFreeAsync` when the stream reaches it.
fn free_work(region: Region, stream: u64) -> impl FnOnce(&Arc<Context>) -> Res + Send + 'static {
    move |_| {
        if is_member(&region) {
            return return_block(&region, stream);
        }
        let removed = space().free_if(region.base, |r| r.id == region.id)?;
        host_flags::remove_region(&removed);
        ipc::remove_region(&removed);
        Ok(())
    }
}

/// Allocates in stream order and writes the address to the caller; a size of zero yields a null pointer, as in CUDA.
fn alloc_async(out: u64, size: u64, pool: &Arc<Pool>, stream: &Arc<Stream>) -> Res {
    if pool.sharing.is_imported() {
        return refuse(Code::INVALID_VALUE, || {
            "cannot allocate from an imported memory pool; import its allocations instead".into()
        });
    }
    if size == 0 {
        return put(out, 0u64);
    }
    if capture_state::is_capturing(stream)? {
        let (PoolLocation::Device(ordinal), RegionKind::Device) = pool.kind else {
            return Err(Code::NOT_SUPPORTED);
        };
        let request = graph::memory::AllocationRequest::captured(size, ordinal, stream.context.id)?;
        return put(out, graph::capture::record_allocation(stream, request)?);
    }
    capture_state::reject_if_capturing()?;
    let region = allocate(pool, size, stream)?;
    put(out, region.base).inspect_err(|_| {
        let _ = return_block(&region, stream.id);
    })
}

driver_entry_points! {
    fn device_default_pool "cuDeviceGetDefaultMemPool" (out: u64, device: i32) {
        non_null(out)?;
        put(out, chosen(device_kind(device)?).0)
    }
    fn device_pool "cuDeviceGetMemPool" (out: u64, device: i32) {
        non_null(out)?;
        put(out, chosen(device_kind(device)?).1)
    }
    fn device_set_pool "cuDeviceSetMemPool" (device: i32, pool: u64) {
        choose(device_kind(device)?, pool)
    }
    fn mem_default_pool "cuMemGetDefaultMemPool" (out: u64, location: u64, kind: u32) {
        non_null(out)?;
        put(out, chosen(pool_kind_at(location, kind)?).0)
    }
    fn mem_pool "cuMemGetMemPool" (out: u64, location: u64, kind: u32) {
        non_null(out)?;
        put(out, chosen(pool_kind_at(location, kind)?).1)
    }
    fn mem_set_pool "cuMemSetMemPool" (location: u64, kind: u32, pool: u64) {
        choose(pool_kind_at(location, kind)?, pool)
    }
    fn pool_create "cuMemPoolCreate" (out: u64, props: u64) {
        non_null(out)?;
        let props = get::<CUmemPoolProps>(props)?;
        let kind = pool_kind(props.allocType, &props.location)?;
        capture_state::reject_if_capturing()?;
        let decompress = u32::from(props.usage) & sys::CU_MEM_POOL_CREATE_USAGE_HW_DECOMPRESS != 0;
        install(out, kind, (props.maxSize as u64, decompress), Sharing::of(props.handleTypes.0, kind)?)
    }
    fn pool_destroy "cuMemPoolDestroy" (pool: u64) {
        if find(pool)?.is_default {
            return Err(Code::INVALID_VALUE);
        }
        capture_state::reject_if_capturing()?;
        // Its allocations stay valid until they are freed.
        let pool = POOLS.remove(pool).map_err(|_| Code::INVALID_VALUE)?;
        let mut state = pool.state.lock();
        state.destroyed = true;
        state.trim(0);
        Ok(())
    }
    fn pool_trim "cuMemPoolTrimTo" (pool: u64, keep: u64) {
        capture_state::reject_if_capturing()?;
        find(pool)?.state.lock().trim(keep);
        Ok(())
    }
    fn pool_get_attribute "cuMemPoolGetAttribute" (pool: u64, id: u32, out: u64) {
        non_null(out)?;
        capture_state::reject_if_capturing()?;
        attribute(&*find(pool)?, sys::CUmemPool_attribute(id), out)
    }
    fn pool_set_attribute "cuMemPoolSetAttribute" (pool: u64, id: u32, value: u64) {
        non_null(value)?;
        capture_state::reject_if_capturing()?;
        set_attribute(&*find(pool)?, sys::CUmemPool_attribute(id), value)
    }
    fn pool_get_access "cuMemPoolGetAccess" (out: u64, pool: u64, location: u64) {
        non_null(out)?;
        let pool = find(pool)?;
        let location = get::<CUmemLocation>(location)?;
        let access = match location.r#type {
            DEVICE => {
                let device = device::by_ordinal(location_id(&location))?;
                pool.state.lock().reach.access(device.ordinal)
            }
            HOST if pool.kind.1 != RegionKind::Device => Access::ReadWrite,
            HOST => Access::None,
            _ => return Err(Code::INVALID_VALUE),
        };
        put(out, access_flags(access))
    }
    fn pool_set_access "cuMemPoolSetAccess" (pool: u64, map: u64, count: u64) {
        set_access(&find(pool)?, map, count)
    }
    fn alloc_from_pool "cuMemAllocFromPoolAsync" | "cuMemAllocFromPoolAsync_ptsz"
        (out: u64, size: u64, pool: u64, stream: u64) {
        non_null(out)?;
        let pool = find(pool)?;
        alloc_async(out, size, &pool, &resolve::resolve_for_capture(stream, PER_THREAD)?)
    }
    fn alloc_from_current "cuMemAllocAsync" | "cuMemAllocAsync_ptsz" (out: u64, size: u64, stream: u64) {
        non_null(out)?;
        let stream = resolve::resolve_for_capture(stream, PER_THREAD)?;
        alloc_async(out, size, &current_of(stream.context.device)?, &stream)
    }
    fn mem_free_async "cuMemFreeAsync" | "cuMemFreeAsync_ptsz" (address: u64, stream: u64) {
        let stream = resolve::resolve_for_capture(stream, PER_THREAD)?;
        free_async(address, &stream)
    }
}
