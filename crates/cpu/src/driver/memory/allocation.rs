//! Allocation, deallocation and registration of device and host memory.

use cupyrite_engine::memory::{Reach, Region, RegionKind};
use cupyrite_sys::driver as sys;

use crate::driver::context;
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{non_null, put, put_optional};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::entry::logs::refuse;
use crate::driver::graph;
use crate::driver::memory::host_flags;
use crate::driver::memory::ipc;
use crate::driver::memory::managed;
use crate::driver::memory::pool;
use crate::driver::memory::space::{out_of_memory, space};
use crate::driver::stream::capture_state;

/// Allocates for `context` and writes the address to the caller; frees the memory if that write fails.
fn allocate(out: u64, size: u64, kind: RegionKind) -> Res<Region> {
    non_null(out)?;
    let context = context::current()?;
    capture_state::reject_if_capturing()?;
    if size == 0 {
        return refuse(Code::INVALID_VALUE, || {
            "bytesize=0: must be positive".into()
        });
    }
    let reach = match kind {
        RegionKind::Device => Reach::of(context.device).and_peers(),
        _ => Reach::ALL,
    };
    let region = pool::with_relief(|| space().alloc_owned(size, 512, kind, context.id, reach))
        .map_err(|code| out_of_memory(code, size))?;
    put(out, region.base).inspect_err(|_| {
        let _ = space().free(region.base);
    })?;
    Ok(region)
}

/// Frees after all work queued in the context, as `cuMemFree` promises.
fn release(address: u64, accept: impl Fn(&Region) -> bool) -> Res {
    let context = context::current()?;
    if address == 0 {
        return Ok(());
    }
    capture_state::reject_if_capturing()?;
    let region = space().find(address);
    let region = region.filter(|r| r.base == address && accept(r) && !ipc::is_opened(r));
    if region.is_none() && !graph::memory::covers(address, 1) {
        return Err(Code::INVALID_VALUE);
    }
    context.synchronize()?;
    if let Some(free) = graph::memory::free_later(address) {
        return free?();
    }
    let region = region.ok_or(Code::INVALID_VALUE)?;
    if pool::is_member(&region) {
        pool::return_block(&region, 0)?;
    } else {
        space().free_if(address, |r| r.id == region.id)?;
    }
    host_flags::remove_region(&region);
    ipc::remove_region(&region);
    managed::remove_region(&region);
    Ok(())
}

/// `cuMemHostAlloc` flags: portable, device-mapped, write-combined.
const HOST_ALLOC_FLAGS: u32 = sys::CU_MEMHOSTALLOC_PORTABLE
    | sys::CU_MEMHOSTALLOC_DEVICEMAP
    | sys::CU_MEMHOSTALLOC_WRITECOMBINED;
/// `cuMemHostRegister` flags: portable, device-mapped, I/O memory, read-only.
const HOST_REGISTER_FLAGS: u32 = sys::CU_MEMHOSTREGISTER_PORTABLE
    | sys::CU_MEMHOSTREGISTER_DEVICEMAP
    | REGISTER_IOMEMORY
    | REGISTER_READ_ONLY;
const REGISTER_IOMEMORY: u32 = sys::CU_MEMHOSTREGISTER_IOMEMORY;
const REGISTER_READ_ONLY: u32 = sys::CU_MEMHOSTREGISTER_READ_ONLY;
/// Alignment of the rows of `cuMemAllocPitch`, in bytes.
const PITCH: u64 = 512;

/// Whether the region is page-locked host memory, allocated or registered.
fn is_pinned(region: &Region) -> bool {
    matches!(region.kind, RegionKind::Host | RegionKind::Registered)
}

driver_entry_points! {
    fn mem_get_info "cuMemGetInfo_v2" (free: u64, total: u64) {
        context::current()?;
        put_optional(free, space().available())?;
        put_optional(total, space().capacity())
    }
    fn mem_alloc "cuMemAlloc_v2" (out: u64, size: u64) {
        allocate(out, size, RegionKind::Device).map(|_| ())
    }
    fn mem_alloc_pitch "cuMemAllocPitch_v2" (out: u64, pitch: u64, width: u64, height: u64, element: u32) {
        non_null(pitch)?;
        if !matches!(element, 4 | 8 | 16) || width == 0 || height == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let row = width.checked_next_multiple_of(PITCH).ok_or(Code::INVALID_VALUE)?;
        let size = row.checked_mul(height).ok_or(Code::OUT_OF_MEMORY)?;
        let region = allocate(out, size, RegionKind::Device)?;
        put(pitch, row).inspect_err(|_| { let _ = space().free(region.base); })
    }
    fn mem_alloc_managed "cuMemAllocManaged" (out: u64, size: u64, flags: u32) {
        use sys::CUmemAttach_flags as Attach;
        if !matches!(Attach(flags), Attach::CU_MEM_ATTACH_GLOBAL | Attach::CU_MEM_ATTACH_HOST) {
            return Err(Code::INVALID_VALUE);
        }
        allocate(out, size, RegionKind::Managed).map(|_| ())
    }
    fn mem_alloc_host "cuMemAllocHost_v2" (out: u64, size: u64) {
        allocate(out, size, RegionKind::Host).map(|_| ())
    }
    fn mem_host_alloc "cuMemHostAlloc" (out: u64, size: u64, flags: u32) {
        if flags & !HOST_ALLOC_FLAGS != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let region = allocate(out, size, RegionKind::Host)?;
        host_flags::set_host_flags(region.id, flags);
        Ok(())
    }
    fn mem_free "cuMemFree_v2" (address: u64) {
        release(address, |r| matches!(r.kind, RegionKind::Device | RegionKind::Managed | RegionKind::External) || pool::is_member(r))
    }
    fn mem_free_host "cuMemFreeHost" (address: u64) {
        if address == 0 {
            return Err(Code::INVALID_VALUE);
        }
        release(address, |r| r.kind == RegionKind::Host)
    }
    fn mem_host_register "cuMemHostRegister_v2" (address: u64, size: u64, flags: u32) {
        if flags & !HOST_REGISTER_FLAGS != 0 || address == 0 || size == 0 {
            return Err(Code::INVALID_VALUE);
        }
        if flags & REGISTER_IOMEMORY != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        let context = context::current()?;
        capture_state::reject_if_capturing()?;
        let last = address.checked_add(size - 1).ok_or(Code::INVALID_VALUE)?;
        let allocated = |at| space().find(at).is_some_and(|r| r.kind != RegionKind::Registered);
        if allocated(address) || allocated(last) {
            return Err(Code::INVALID_VALUE);
        }
        let region = space().register(address, size, RegionKind::Registered, flags & REGISTER_READ_ONLY != 0, context.id)?;
        host_flags::set_host_flags(region.id, flags);
        Ok(())
    }
    fn mem_host_unregister "cuMemHostUnregister" (address: u64) {
        if address == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let context = context::current()?;
        capture_state::reject_if_capturing()?;
        let ours = |r: &Region| r.kind == RegionKind::Registered;
        match space().find(address) {
            Some(r) if r.base == address && ours(&r) => (),
            // A known region, but not the start of a registration.
            Some(_) => return Err(Code::INVALID_VALUE),
            None => return Err(Code::HOST_MEMORY_NOT_REGISTERED),
        }
        context.synchronize()?;
        let region = space().free_if(address, ours).map_err(|_| Code::HOST_MEMORY_NOT_REGISTERED)?;
        host_flags::remove_region(&region);
        ipc::remove_region(&region);
        Ok(())
    }
    fn mem_host_get_device_pointer "cuMemHostGetDevicePointer_v2" (out: u64, address: u64, flags: u32) {
        non_null(out)?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        context::current()?;
        if !space().find(address).is_some_and(|r| is_pinned(&r)) {
            return Err(Code::INVALID_VALUE);
        }
        put(out, address)
    }
    fn mem_host_get_flags "cuMemHostGetFlags" (out: u64, address: u64) {
        non_null(out)?;
        context::current()?;
        let shared = |r: &Region| is_pinned(r) || r.kind == RegionKind::Managed;
        let region = space().find(address).filter(shared).ok_or(Code::INVALID_VALUE)?;
        put(out, host_flags::host_flags(&region))
    }
    fn mem_get_address_range "cuMemGetAddressRange_v2" (base: u64, size: u64, address: u64) {
        context::current()?;
        let (start, bytes) = match (space().find(address), space().reservation_of(address)) {
            (Some(region), _) if region.kind != RegionKind::Virtual => (region.base, region.size),
            (_, Some(reserved)) => reserved,
            _ => return Err(Code::NOT_FOUND),
        };
        put_optional(base, start)?;
        put_optional(size, bytes)
    }
}
