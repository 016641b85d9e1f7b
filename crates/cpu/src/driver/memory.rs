//! Allocating and freeing, and what can be asked about an address.

use std::sync::Arc;

use super::checked::{non_null, put, put_optional};
use super::context::{self, Context};
use super::errors::Code;
use super::stream::{self, Place};
use super::{Res, device, entries, pool};
use crate::memory::{AddressSpace, Kind, MemoryError, Region};

pub(super) fn space() -> &'static Arc<AddressSpace> {
    AddressSpace::global()
}

impl From<MemoryError> for Code {
    fn from(e: MemoryError) -> Self {
        match e {
            MemoryError::OutOfMemory => Code::OUT_OF_MEMORY,
            MemoryError::Overlap => Code::HOST_MEMORY_ALREADY_REGISTERED,
            MemoryError::InvalidRequest | MemoryError::NotAllocated | MemoryError::NotMapped => {
                Code::INVALID_VALUE
            }
        }
    }
}

/// Allocates for `context` and tells the caller where; undone if the caller cannot be told.
fn allocate(out: u64, size: u64, kind: Kind) -> Res<Region> {
    non_null(out)?;
    let context = context::current()?;
    if size == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let region = space().alloc_owned(size, 512, kind, context.id)?;
    put(out, region.base).inspect_err(|_| {
        let _ = space().free(region.base);
    })?;
    Ok(region)
}

/// Frees after everything queued in the context is done, as `cuMemFree` promises.
fn release(address: u64, accept: impl Fn(&Region) -> bool) -> Res {
    let context = context::current()?;
    if address == 0 {
        return Ok(());
    }
    if !space()
        .find(address)
        .is_some_and(|r| r.base == address && accept(&r))
    {
        return Err(Code::INVALID_VALUE);
    }
    context.synchronize()?;
    let region = space().free_if(address, accept)?;
    pool::leave(&region);
    super::pointer::forget(&region);
    Ok(())
}

/// `cuMemHostAlloc` flags: portable, device-mapped, write-combined.
const HOST_ALLOC_FLAGS: u32 = 0x07;
/// `cuMemHostRegister` flags: portable, device-mapped, I/O memory, read-only.
const HOST_REGISTER_FLAGS: u32 = 0x0F;
const REGISTER_IOMEMORY: u32 = 0x04;
const REGISTER_READ_ONLY: u32 = 0x08;
/// Rows of `cuMemAllocPitch` begin at multiples of this.
const PITCH: u64 = 512;

/// Page-locked host memory, whoever allocated it.
fn is_pinned(region: &Region) -> bool {
    matches!(region.kind, Kind::Host | Kind::Registered)
}

/// Whether `cuStreamAttachMemAsync` may name that range: managed memory, whole if a length is given.
pub(super) fn check_attachable(address: u64, length: u64) -> Res {
    let region = space().find(address).ok_or(Code::INVALID_VALUE)?;
    if region.kind != Kind::Managed || (length != 0 && length != region.size) {
        return Err(Code::INVALID_VALUE);
    }
    Ok(())
}

fn check_managed(address: u64, size: u64) -> Res {
    match space().find_range(address, size) {
        Some(r) if matches!(r.kind, Kind::Managed | Kind::Global) && size > 0 => Ok(()),
        _ => Err(Code::INVALID_VALUE),
    }
}

/// The device a `CUmemLocation` of type device names must exist; hosts are taken as they are.
fn check_location(kind: u32, id: u32) -> Res {
    match kind {
        1 => device::by_ordinal(id as i32).map(|_| ()),
        2..=4 => Ok(()),
        _ => Err(Code::INVALID_VALUE),
    }
}

fn prefetch(address: u64, size: u64, stream: u64, per_thread: bool) -> Res {
    let stream = stream::resolve(stream, per_thread)?;
    check_managed(address, size)?;
    // There is one memory: everything is where it should be.
    stream.mark(&[]);
    Ok(())
}

/// Frees in a stream's order (`cuMemFreeAsync`).
pub(super) fn free_async(address: u64, stream: u64, per_thread: bool) -> Res {
    let stream = stream::resolve(stream, per_thread)?;
    match space().find(address) {
        Some(r) if r.base == address && r.kind == Kind::Device => {}
        _ => return Err(Code::INVALID_VALUE),
    }
    stream.enqueue(&[], Place::HereIfIdle, move |_| {
        pool::leave(&space().free_if(address, |r| r.kind == Kind::Device)?);
        Ok(())
    });
    Ok(())
}

/// Allocates in a stream's order. The memory can be used at once, which is earlier than promised.
pub(super) fn alloc_async(
    out: u64,
    size: u64,
    stream: u64,
    per_thread: bool,
) -> Res<Option<Region>> {
    non_null(out)?;
    let stream = stream::resolve(stream, per_thread)?;
    let context: &Context = &stream.context;
    // CUDA gives a null pointer for no bytes here.
    if size == 0 {
        return put(out, 0u64).map(|()| None);
    }
    let region = space().alloc_owned(size, 512, Kind::Device, context.id)?;
    put(out, region.base).inspect_err(|_| {
        let _ = space().free(region.base);
    })?;
    Ok(Some(region))
}

entries! {
    fn mem_get_info "cuMemGetInfo_v2" (free: u64, total: u64) {
        context::current()?;
        put_optional(free, space().available())?;
        put_optional(total, space().capacity())
    }
    fn mem_alloc "cuMemAlloc_v2" (out: u64, size: u64) {
        allocate(out, size, Kind::Device).map(|_| ())
    }
    fn mem_alloc_pitch "cuMemAllocPitch_v2" (out: u64, pitch: u64, width: u64, height: u64, element: u32) {
        non_null(pitch)?;
        if !matches!(element, 4 | 8 | 16) || width == 0 || height == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let row = width.checked_next_multiple_of(PITCH).ok_or(Code::INVALID_VALUE)?;
        let size = row.checked_mul(height).ok_or(Code::OUT_OF_MEMORY)?;
        let region = allocate(out, size, Kind::Device)?;
        put(pitch, row).inspect_err(|_| { let _ = space().free(region.base); })
    }
    fn mem_alloc_managed "cuMemAllocManaged" (out: u64, size: u64, flags: u32) {
        if !matches!(flags, 1 | 2) {
            return Err(Code::INVALID_VALUE);
        }
        allocate(out, size, Kind::Managed).map(|_| ())
    }
    fn mem_alloc_host "cuMemAllocHost_v2" (out: u64, size: u64) {
        allocate(out, size, Kind::Host).map(|_| ())
    }
    fn mem_host_alloc "cuMemHostAlloc" (out: u64, size: u64, flags: u32) {
        if flags & !HOST_ALLOC_FLAGS != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let region = allocate(out, size, Kind::Host)?;
        super::pointer::remember_host_flags(region.id, flags);
        Ok(())
    }
    fn mem_free "cuMemFree_v2" (address: u64) {
        release(address, |r| matches!(r.kind, Kind::Device | Kind::Managed))
    }
    fn mem_free_host "cuMemFreeHost" (address: u64) {
        if address == 0 {
            return Err(Code::INVALID_VALUE);
        }
        release(address, |r| r.kind == Kind::Host)
    }
    fn mem_host_register "cuMemHostRegister_v2" (address: u64, size: u64, flags: u32) {
        if flags & !HOST_REGISTER_FLAGS != 0 || address == 0 || size == 0 {
            return Err(Code::INVALID_VALUE);
        }
        if flags & REGISTER_IOMEMORY != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        let context = context::current()?;
        let region = space().register(address, size, flags & REGISTER_READ_ONLY != 0, context.id)?;
        super::pointer::remember_host_flags(region.id, flags);
        Ok(())
    }
    fn mem_host_unregister "cuMemHostUnregister" (address: u64) {
        if address == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let context = context::current()?;
        let ours = |r: &Region| r.kind == Kind::Registered;
        if !space().find(address).is_some_and(|r| r.base == address && ours(&r)) {
            return Err(Code::HOST_MEMORY_NOT_REGISTERED);
        }
        context.synchronize()?;
        let region = space().free_if(address, ours).map_err(|_| Code::HOST_MEMORY_NOT_REGISTERED)?;
        super::pointer::forget(&region);
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
        let region = space().find(address).filter(is_pinned).ok_or(Code::INVALID_VALUE)?;
        put(out, super::pointer::host_flags(&region))
    }
    fn mem_get_address_range "cuMemGetAddressRange_v2" (base: u64, size: u64, address: u64) {
        context::current()?;
        let region = space().find(address).ok_or(Code::NOT_FOUND)?;
        put_optional(base, region.base)?;
        put_optional(size, region.size)
    }
    fn mem_prefetch "cuMemPrefetchAsync" | "cuMemPrefetchAsync_ptsz"
        (address: u64, size: u64, device: i32, stream: u64) {
        if device != -1 {
            device::by_ordinal(device)?;
        }
        prefetch(address, size, stream, PER_THREAD)
    }
    fn mem_prefetch_v2 "cuMemPrefetchAsync_v2" | "cuMemPrefetchAsync_v2_ptsz"
        (address: u64, size: u64, location: u64, flags: u32, stream: u64) {
        // CUmemLocation is eight bytes, {type, id}, and travels in one register.
        check_location(location as u32, (location >> 32) as u32)?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        prefetch(address, size, stream, PER_THREAD)
    }
    fn mem_advise "cuMemAdvise" (address: u64, size: u64, advice: u32, device: i32) {
        if !(1..=6).contains(&advice) {
            return Err(Code::INVALID_VALUE);
        }
        if device != -1 && advice > 2 {
            device::by_ordinal(device)?;
        }
        context::current()?;
        check_managed(address, size)
    }
    fn mem_advise_v2 "cuMemAdvise_v2" (address: u64, size: u64, advice: u32, location: u64) {
        if !(1..=6).contains(&advice) {
            return Err(Code::INVALID_VALUE);
        }
        if advice > 2 && advice != 4 {
            check_location(location as u32, (location >> 32) as u32)?;
        }
        context::current()?;
        check_managed(address, size)
    }
    fn mem_free_async "cuMemFreeAsync" | "cuMemFreeAsync_ptsz" (address: u64, stream: u64) {
        free_async(address, stream, PER_THREAD)
    }
}
