//! Allocation of device memory (linear, pitched, three-dimensional), page-locked and registered host memory, and
//! managed memory.

use std::ffi::c_void;

use cupyrite_sys::driver::CUdeviceptr;
use cupyrite_sys::runtime::{self, cudaExtent, cudaPitchedPtr};

use crate::checked::{non_null, put, put_optional};
use crate::context;
use crate::entry::{cu, runtime_entry_points};
use crate::errors::{Error, Res};

/// Element size for `cudaMallocPitch`, in bytes: that of the largest coalesced access.
const LARGEST_ELEMENT: u32 = 16;

/// Allocates `height` rows of `width` bytes; returns address and pitch, or a null pointer if the size is zero.
fn pitched(width: usize, height: usize) -> Res<(CUdeviceptr, usize)> {
    let (mut address, mut pitch) = (0, 0);
    if width == 0 || height == 0 {
        return Ok((0, 0));
    }
    cu!(cuMemAllocPitch(
        &mut address,
        &mut pitch,
        width,
        height,
        LARGEST_ELEMENT
    ))?;
    Ok((address, pitch))
}

fn free(address: CUdeviceptr) {
    if address != 0 {
        let _ = cu!(cuMemFree(address));
    }
}

/// Allocation flags; the first two apply to registration, too.
const PORTABLE: u32 = runtime::cudaHostAllocPortable;
const MAPPED: u32 = runtime::cudaHostAllocMapped;
const WRITE_COMBINED: u32 = runtime::cudaHostAllocWriteCombined;

fn host_alloc(out: u64, size: usize, flags: u32) -> Res {
    non_null(out)?;
    if flags & !(PORTABLE | MAPPED | WRITE_COMBINED) != 0 {
        return Err(Error::INVALID_VALUE);
    }
    context::current()?;
    // With unified addressing all host memory is mapped, and portable unless it is write-combined.
    let flags = match flags & WRITE_COMBINED {
        0 => PORTABLE | MAPPED,
        _ => WRITE_COMBINED | MAPPED,
    };
    let mut address: *mut c_void = std::ptr::null_mut();
    if size > 0 {
        cu!(cuMemHostAlloc(&mut address, size, flags))?;
    }
    put(out, address as u64).inspect_err(|_| {
        let _ = cu!(cuMemFreeHost(address));
    })
}

runtime_entry_points! {
    fn malloc "cudaMalloc" (out: u64, size: usize) {
        non_null(out)?;
        context::current()?;
        let mut address: CUdeviceptr = 0;
        // A size of zero yields the null pointer, which can be freed.
        if size > 0 {
            cu!(cuMemAlloc(&mut address, size))?;
        }
        put(out, address).inspect_err(|_| free(address))
    }
    fn free_device "cudaFree" (address: u64) {
        context::current()?;
        // The driver is called even for the null pointer, to report a sticky error.
        cu!(cuMemFree(address))
    }
    fn malloc_pitch "cudaMallocPitch" (out: u64, pitch_out: u64, width: usize, height: usize) {
        non_null(out)?;
        non_null(pitch_out)?;
        context::current()?;
        let (address, pitch) = pitched(width, height)?;
        put(out, address)
            .and_then(|()| put(pitch_out, pitch))
            .inspect_err(|_| free(address))
    }
    fn malloc_3d "cudaMalloc3D" (out: u64, extent: cudaExtent) {
        non_null(out)?;
        context::current()?;
        let rows = extent.height.checked_mul(extent.depth).ok_or(Error::MEMORY_ALLOCATION)?;
        let (address, pitch) = pitched(extent.width, rows)?;
        let made = cudaPitchedPtr {
            ptr: address as *mut c_void,
            pitch,
            xsize: extent.width,
            ysize: extent.height,
        };
        put(out, made).inspect_err(|_| free(address))
    }
    fn malloc_host "cudaMallocHost" (out: u64, size: usize) {
        host_alloc(out, size, 0)
    }
    fn host_alloc_flags "cudaHostAlloc" (out: u64, size: usize, flags: u32) {
        host_alloc(out, size, flags)
    }
    fn free_host "cudaFreeHost" (address: u64) {
        context::current()?;
        if address == 0 {
            return Ok(());
        }
        cu!(cuMemFreeHost(address as *mut c_void))
    }
    fn host_register "cudaHostRegister" (address: u64, size: usize, flags: u32) {
        context::current()?;
        cu!(cuMemHostRegister(address as *mut c_void, size, flags | MAPPED))
    }
    fn host_unregister "cudaHostUnregister" (address: u64) {
        context::current()?;
        cu!(cuMemHostUnregister(address as *mut c_void))
    }
    fn host_get_device_pointer "cudaHostGetDevicePointer" (out: u64, host: u64, flags: u32) {
        non_null(out)?;
        context::current()?;
        let mut address: CUdeviceptr = 0;
        cu!(cuMemHostGetDevicePointer(&mut address, host as *mut c_void, flags))?;
        put(out, address)
    }
    fn host_get_flags "cudaHostGetFlags" (out: u64, host: u64) {
        non_null(out)?;
        context::current()?;
        let mut flags = 0;
        cu!(cuMemHostGetFlags(&mut flags, host as *mut c_void))?;
        // The access mode of registered memory is not reported.
        put(out, flags & (PORTABLE | MAPPED | WRITE_COMBINED))
    }
    fn malloc_managed "cudaMallocManaged" (out: u64, size: usize, flags: u32) {
        non_null(out)?;
        context::current()?;
        if !matches!(flags, runtime::cudaMemAttachGlobal | runtime::cudaMemAttachHost) {
            return Err(Error::INVALID_VALUE);
        }
        let mut address: CUdeviceptr = 0;
        if size > 0 {
            cu!(cuMemAllocManaged(&mut address, size, flags))?;
        }
        put(out, address).inspect_err(|_| free(address))
    }
    fn mem_get_info "cudaMemGetInfo" (free: u64, total: u64) {
        context::current()?;
        let (mut left, mut all) = (0usize, 0usize);
        cu!(cuMemGetInfo(&mut left, &mut all))?;
        put_optional(free, left)?;
        put_optional(total, all)
    }
}
