//! Memory pools and stream-ordered allocation.

use std::ffi::c_void;

use cupyrite_sys::driver::{
    CUdeviceptr, CUmemAllocationHandleType, CUmemAllocationType, CUmemPool_attribute, CUmemoryPool,
};

use crate::checked::{non_null, put};
use crate::context;
use crate::entry::{cu, runtime_entry_points};
use crate::stream::handle;

/// Writes a pool handle to the caller.
fn put_pool(out: u64, pool: CUmemoryPool) -> crate::errors::Res {
    put(out, pool as u64)
}

runtime_entry_points! {
    fn malloc_async "cudaMallocAsync" | "cudaMallocAsync_ptsz" (out: u64, size: usize, stream: u64) {
        non_null(out)?;
        context::current()?;
        let mut address: CUdeviceptr = 0;
        let stream = handle::<PER_THREAD>(stream);
        cu!(cuMemAllocAsync(&mut address, size, stream))?;
        put(out, address).inspect_err(|_| {
            let _ = cu!(cuMemFreeAsync(address, stream));
        })
    }
    fn malloc_from_pool_async "cudaMallocFromPoolAsync" | "cudaMallocFromPoolAsync_ptsz"
        (out: u64, size: usize, pool: u64, stream: u64) {
        non_null(out)?;
        context::current()?;
        let mut address: CUdeviceptr = 0;
        let stream = handle::<PER_THREAD>(stream);
        cu!(cuMemAllocFromPoolAsync(&mut address, size, pool as CUmemoryPool, stream))?;
        put(out, address).inspect_err(|_| {
            let _ = cu!(cuMemFreeAsync(address, stream));
        })
    }
    fn free_async "cudaFreeAsync" | "cudaFreeAsync_ptsz" (address: u64, stream: u64) {
        context::current()?;
        if address == 0 {
            return Ok(());
        }
        cu!(cuMemFreeAsync(address, handle::<PER_THREAD>(stream)))
    }
    fn device_get_default_pool "cudaDeviceGetDefaultMemPool" (out: u64, ordinal: i32) {
        non_null(out)?;
        let device = context::device(ordinal)?;
        let mut pool: CUmemoryPool = std::ptr::null_mut();
        cu!(cuDeviceGetDefaultMemPool(&mut pool, device))?;
        put_pool(out, pool)
    }
    fn device_get_pool "cudaDeviceGetMemPool" (out: u64, ordinal: i32) {
        non_null(out)?;
        let device = context::device(ordinal)?;
        let mut pool: CUmemoryPool = std::ptr::null_mut();
        cu!(cuDeviceGetMemPool(&mut pool, device))?;
        put_pool(out, pool)
    }
    fn device_set_pool "cudaDeviceSetMemPool" (ordinal: i32, pool: u64) {
        let device = context::device(ordinal)?;
        cu!(cuDeviceSetMemPool(device, pool as CUmemoryPool))
    }
    fn mem_get_default_pool "cudaMemGetDefaultMemPool" (out: u64, location: u64, kind: u32) {
        non_null(out)?;
        non_null(location)?;
        context::ready()?;
        let mut pool: CUmemoryPool = std::ptr::null_mut();
        cu!(cuMemGetDefaultMemPool(&mut pool, location as *mut _, CUmemAllocationType(kind as _)))?;
        put_pool(out, pool)
    }
    fn mem_get_pool "cudaMemGetMemPool" (out: u64, location: u64, kind: u32) {
        non_null(out)?;
        non_null(location)?;
        context::ready()?;
        let mut pool: CUmemoryPool = std::ptr::null_mut();
        cu!(cuMemGetMemPool(&mut pool, location as *mut _, CUmemAllocationType(kind as _)))?;
        put_pool(out, pool)
    }
    fn mem_set_pool "cudaMemSetMemPool" (location: u64, kind: u32, pool: u64) {
        non_null(location)?;
        context::ready()?;
        cu!(cuMemSetMemPool(location as *mut _, CUmemAllocationType(kind as _), pool as CUmemoryPool))
    }
    fn pool_create "cudaMemPoolCreate" (out: u64, properties: u64) {
        non_null(out)?;
        non_null(properties)?;
        context::ready()?;
        let mut pool: CUmemoryPool = std::ptr::null_mut();
        cu!(cuMemPoolCreate(&mut pool, properties as *const _))?;
        put_pool(out, pool).inspect_err(|_| {
            let _ = cu!(cuMemPoolDestroy(pool));
        })
    }
    fn pool_destroy "cudaMemPoolDestroy" (pool: u64) {
        context::ready()?;
        cu!(cuMemPoolDestroy(pool as CUmemoryPool))
    }
    fn pool_trim "cudaMemPoolTrimTo" (pool: u64, keep: usize) {
        context::ready()?;
        cu!(cuMemPoolTrimTo(pool as CUmemoryPool, keep))
    }
    fn pool_get_attribute "cudaMemPoolGetAttribute" (pool: u64, attribute: u32, value: u64) {
        non_null(value)?;
        context::ready()?;
        cu!(cuMemPoolGetAttribute(pool as CUmemoryPool, CUmemPool_attribute(attribute as _), value as *mut c_void))
    }
    fn pool_set_attribute "cudaMemPoolSetAttribute" (pool: u64, attribute: u32, value: u64) {
        non_null(value)?;
        context::ready()?;
        cu!(cuMemPoolSetAttribute(pool as CUmemoryPool, CUmemPool_attribute(attribute as _), value as *mut c_void))
    }
    fn pool_get_access "cudaMemPoolGetAccess" (flags: u64, pool: u64, location: u64) {
        non_null(flags)?;
        non_null(location)?;
        context::ready()?;
        cu!(cuMemPoolGetAccess(flags as *mut _, pool as CUmemoryPool, location as *mut _))
    }
    fn pool_set_access "cudaMemPoolSetAccess" (pool: u64, list: u64, count: usize) {
        context::ready()?;
        cu!(cuMemPoolSetAccess(pool as CUmemoryPool, list as *const _, count))
    }
    fn pool_export "cudaMemPoolExportToShareableHandle" (out: u64, pool: u64, kind: u32, flags: u32) {
        non_null(out)?;
        context::ready()?;
        let kind = CUmemAllocationHandleType(kind as _);
        cu!(cuMemPoolExportToShareableHandle(out as *mut c_void, pool as CUmemoryPool, kind, u64::from(flags)))
    }
    fn pool_import "cudaMemPoolImportFromShareableHandle" (out: u64, handle: u64, kind: u32, flags: u32) {
        non_null(out)?;
        context::ready()?;
        let mut pool: CUmemoryPool = std::ptr::null_mut();
        let kind = CUmemAllocationHandleType(kind as _);
        cu!(cuMemPoolImportFromShareableHandle(&mut pool, handle as *mut c_void, kind, u64::from(flags)))?;
        put_pool(out, pool)
    }
    fn pool_export_pointer "cudaMemPoolExportPointer" (out: u64, address: u64) {
        non_null(out)?;
        context::current()?;
        cu!(cuMemPoolExportPointer(out as *mut _, address))
    }
    fn pool_import_pointer "cudaMemPoolImportPointer" (out: u64, pool: u64, data: u64) {
        non_null(out)?;
        non_null(data)?;
        context::current()?;
        let mut address: CUdeviceptr = 0;
        cu!(cuMemPoolImportPointer(&mut address, pool as CUmemoryPool, data as *mut _))?;
        put(out, address)
    }
}
