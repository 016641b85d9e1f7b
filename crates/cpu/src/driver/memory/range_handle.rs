//! Descriptors of memory ranges, and the order of writes by other devices (CUDA driver API,
//! `cuMemGetHandleForAddressRange`, `cuFlushGPUDirectRDMAWrites`).
//!
//! On a GPU the descriptor is a dma-buf. Here it is the shared memory object that the range begins: `mmap` and
//! `cuImportExternalMemory` accept it, and the system's interface for dma-bufs does not.

use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::sync::atomic::{Ordering, fence};

use cupyrite_engine::memory::{Mappable, MemoryError, Region, RegionKind};
use cupyrite_sys::driver::{
    self as sys, CUflushGPUDirectRDMAWritesScope as Scope,
    CUflushGPUDirectRDMAWritesTarget as Target,
};

use crate::driver::context;
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{non_null, put};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::entry::logs::refuse;
use crate::driver::memory::ipc;
use crate::driver::memory::pool;
use crate::driver::memory::space::space;

const DMA_BUF: u32 = sys::CUmemRangeHandleType::CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD.0;
const PCIE: u64 = sys::CUmemRangeFlags::CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE.0 as u64;
const PAGE: u64 = 4096;
/// Allocations up to this size share a file with others.
const LARGEST_SLOT: u64 = 256 << 10;

/// Refuses a range that is not at the beginning of an object of its own.
fn not_alone<T>(address: u64, reason: &str) -> Res<T> {
    refuse(Code::NOT_SUPPORTED, || {
        format!(
            "dptr={address:#x}: {reason}; the CPU device has descriptors of whole allocations of more than 256 KiB, and of mappings of whole cuMemCreate allocations"
        )
    })
}

/// The object that begins with the range.
fn object_of(address: u64, size: u64) -> Res<OwnedFd> {
    let region = space().find_range(address, size);
    let Some(region) = region else {
        return refuse(Code::INVALID_VALUE, || {
            format!("dptr={address:#x}, size={size}: not a range of device memory")
        });
    };
    match region.kind {
        RegionKind::Virtual => object_of_mapping(address),
        RegionKind::Device if !ipc::is_opened(&region) => object_of_allocation(address, &region),
        _ => refuse(Code::INVALID_VALUE, || {
            format!(
                "dptr={address:#x}: must be memory of cuMemAlloc, of a pool of a device, or a mapping of cuMemMap"
            )
        }),
    }
}

fn object_of_mapping(address: u64) -> Res<OwnedFd> {
    let Some(mapping) = space().mapping_at(address) else {
        return Err(Code::INVALID_VALUE);
    };
    match mapping.memory {
        Mappable::Physical(physical)
            if mapping.base == address && physical.size() == mapping.size =>
        {
            physical.export().map_err(|_| Code::OPERATING_SYSTEM)
        }
        _ => not_alone(
            address,
            "the range does not begin an allocation of cuMemCreate",
        ),
    }
}

fn object_of_allocation(address: u64, region: &Region) -> Res<OwnedFd> {
    if region.base != address {
        return not_alone(address, "the range does not begin an allocation");
    }
    if region.size <= LARGEST_SLOT {
        return not_alone(address, "the allocation shares a memory object with others");
    }
    if pool::handle_types(region) != 0 {
        return not_alone(
            address,
            "the allocation is part of the object of an exported pool",
        );
    }
    let shared = match space().share(address) {
        Err(MemoryError::Busy) => {
            return refuse(Code::MAP_FAILED, || {
                "memory can only be shared while the device is idle; kernels or copies have been running for ten seconds".into()
            });
        }
        other => other?,
    };
    if shared.offset != 0 {
        return not_alone(address, "the range does not begin a memory object");
    }
    shared.file.try_clone().map_err(|_| Code::OPERATING_SYSTEM)
}

driver_entry_points! {
    fn range_handle "cuMemGetHandleForAddressRange" (out: u64, address: u64, size: u64, kind: u32, flags: u64) {
        non_null(out)?;
        context::current()?;
        if kind != DMA_BUF || flags & !PCIE != 0 {
            return refuse(Code::INVALID_VALUE, || {
                format!("handleType={kind}, flags={flags:#x}: expected DMA_BUF_FD and 0")
            });
        }
        if address == 0 || size == 0 || !address.is_multiple_of(PAGE) || !size.is_multiple_of(PAGE) {
            return refuse(Code::INVALID_VALUE, || {
                format!("dptr={address:#x}, size={size}: both must be positive multiples of {PAGE}")
            });
        }
        // As an H100 (driver 580) does, also for a range without a descriptor.
        put(out, -1i32)?;
        if flags & PCIE != 0 {
            return refuse(Code::NOT_SUPPORTED, || "flags: the CPU device has no PCIe mapping".into());
        }
        let object = object_of(address, size)?;
        put(out, object.as_raw_fd())?;
        // The caller owns the descriptor.
        let _ = object.into_raw_fd();
        Ok(())
    }
    fn flush_writes "cuFlushGPUDirectRDMAWrites" (target: u32, scope: u32) {
        context::current()?;
        let known = matches!(
            Scope(scope),
            Scope::CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER | Scope::CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES
        );
        if Target(target) != Target::CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX || !known {
            return refuse(Code::INVALID_VALUE, || format!("target={target}, scope={scope}: expected 0 and 100 or 200"));
        }
        // The processor's caches are coherent with every writer.
        fence(Ordering::SeqCst);
        Ok(())
    }
}
