//! Devices: attributes, limits, flags, cache and bank configurations, PCI bus ids.

use std::ffi::{CStr, c_char, c_void};

use cupyrite_sys::driver::{
    CUdevice, CUdevice_attribute, CUflushGPUDirectRDMAWritesScope,
    CUflushGPUDirectRDMAWritesTarget, CUfunc_cache, CUgraphMem_attribute, CUlimit, CUsharedconfig,
};
use cupyrite_sys::runtime;

use crate::checked::{get_text, non_null, put, put_bytes};
use crate::context;
use crate::entry::{cu, runtime_entry_points};
use crate::errors::{Error, Res};

/// Implied in every context that the runtime creates.
const MAP_HOST: u32 = runtime::cudaDeviceMapHost;

/// The context flags for device flags. Unnamed bits within the mask are ignored; combined schedule flags are refused.
fn context_flags(flags: u32) -> Res<u32> {
    const SCHEDULE: u32 = runtime::cudaDeviceScheduleMask;
    const KEPT: u32 = SCHEDULE | runtime::cudaDeviceLmemResizeToMax | runtime::cudaDeviceSyncMemops;
    let known_schedule = matches!(
        flags & SCHEDULE,
        runtime::cudaDeviceScheduleAuto
            | runtime::cudaDeviceScheduleSpin
            | runtime::cudaDeviceScheduleYield
            | runtime::cudaDeviceScheduleBlockingSync
    );
    if flags & !runtime::cudaDeviceMask != 0 || !known_schedule {
        return Err(Error::INVALID_VALUE);
    }
    Ok(flags & KEPT)
}

/// A device attribute.
pub(crate) fn attribute(device: CUdevice, which: CUdevice_attribute) -> Res<i32> {
    let mut value = 0;
    cu!(cuDeviceGetAttribute(&mut value, which, device))?;
    Ok(value)
}

/// The driver's limit for a `cudaLimit`.
fn limit(which: u32) -> Res<CUlimit> {
    // The limits have the same values in the driver.
    match runtime::cudaLimit(which as _).name() {
        Some(_) => Ok(CUlimit(which as _)),
        None => Err(Error::UNSUPPORTED_LIMIT),
    }
}

/// Writes the value of a limit.
pub(crate) fn put_limit(out: u64, which: u32) -> Res {
    non_null(out)?;
    context::current()?;
    let mut value = 0usize;
    cu!(cuCtxGetLimit(&mut value, limit(which)?))?;
    put(out, value)
}

/// Sets a limit.
pub(crate) fn set_limit_to(which: u32, value: usize) -> Res {
    context::current()?;
    cu!(cuCtxSetLimit(limit(which)?, value))
}

/// Writes the cache configuration.
pub(crate) fn put_cache_config(out: u64) -> Res {
    non_null(out)?;
    context::current()?;
    let mut config = CUfunc_cache::default();
    cu!(cuCtxGetCacheConfig(&mut config))?;
    put(out, config)
}

/// Sets the cache configuration.
pub(crate) fn set_cache_config_to(config: u32) -> Res {
    context::current()?;
    cu!(cuCtxSetCacheConfig(CUfunc_cache(config as _)))
}

runtime_entry_points! {
    fn get_attribute "cudaDeviceGetAttribute" (out: u64, which: u32, ordinal: i32) {
        non_null(out)?;
        let device = context::device(ordinal)?;
        put(out, attribute(device, CUdevice_attribute(which as _))?)
    }
    fn get_limit "cudaDeviceGetLimit" (out: u64, which: u32) {
        put_limit(out, which)
    }
    fn set_limit "cudaDeviceSetLimit" (which: u32, value: usize) {
        set_limit_to(which, value)
    }
    fn get_cache_config "cudaDeviceGetCacheConfig" (out: u64) {
        put_cache_config(out)
    }
    fn set_cache_config "cudaDeviceSetCacheConfig" (config: u32) {
        set_cache_config_to(config)
    }
    fn get_shared_config "cudaDeviceGetSharedMemConfig" (out: u64) {
        non_null(out)?;
        context::current()?;
        let mut config = CUsharedconfig::default();
        cu!(cuCtxGetSharedMemConfig(&mut config))?;
        put(out, config)
    }
    fn set_shared_config "cudaDeviceSetSharedMemConfig" (config: u32) {
        context::current()?;
        cu!(cuCtxSetSharedMemConfig(CUsharedconfig(config as _)))
    }
    fn set_flags "cudaSetDeviceFlags" (flags: u32) {
        let flags = context_flags(flags)?;
        if context::is_foreign()? {
            return Err(Error::INCOMPATIBLE_DRIVER_CONTEXT);
        }
        let device = context::device(context::current_device()?)?;
        cu!(cuDevicePrimaryCtxSetFlags(device, flags))?;
        context::current()
    }
    fn get_flags "cudaGetDeviceFlags" (out: u64) {
        non_null(out)?;
        let device = context::device(context::current_device()?)?;
        let mut flags = 0;
        // A context of the driver API keeps its flags; the runtime's own always map host memory.
        if context::is_foreign()? {
            cu!(cuCtxGetFlags(&mut flags))?;
        } else {
            cu!(cuDevicePrimaryCtxGetState(device, &mut flags, &mut 0))?;
            flags |= MAP_HOST;
        }
        put(out, flags)
    }
    fn init_device "cudaInitDevice" (ordinal: i32, device_flags: u32, flags: u32) {
        /// Value of `cudaInitDeviceFlagsAreValid`.
        const FLAGS_ARE_VALID: u32 = 1;
        let device = context::device(ordinal)?;
        if flags & FLAGS_ARE_VALID != 0 {
            cu!(cuDevicePrimaryCtxSetFlags(device, context_flags(device_flags)?))?;
        }
        context::primary(device).map(|_| ())
    }
    fn get_by_pci_bus_id "cudaDeviceGetByPCIBusId" (out: u64, text: u64) {
        non_null(out)?;
        let text = get_text(text)?;
        context::ready()?;
        let mut device = CUdevice::default();
        cu!(cuDeviceGetByPCIBusId(&mut device, text.as_ptr()))?;
        put(out, device)
    }
    fn get_pci_bus_id "cudaDeviceGetPCIBusId" (out: u64, len: i32, ordinal: i32) {
        non_null(out)?;
        let device = context::device(ordinal)?;
        if len <= 0 {
            return Err(Error::INVALID_VALUE);
        }
        // The longest id is `ffff:ff:1f.0`; a shorter buffer receives a truncated one.
        let mut text = [0 as c_char; 32];
        let room = (len as usize).min(text.len()) as i32;
        cu!(cuDeviceGetPCIBusId(text.as_mut_ptr(), room, device))?;
        // SAFETY: only the driver writes the buffer, and it terminates the text within `room`; otherwise the array's
        // last zero does.
        let text = unsafe {
            text[31] = 0;
            CStr::from_ptr(text.as_ptr())
        };
        let mut bytes = text.to_bytes_with_nul().to_vec();
        if bytes.len() > len as usize {
            bytes.truncate(len as usize - 1);
            bytes.push(0);
        }
        put_bytes(out, &bytes)
    }
    fn reset_persisting_l2 "cudaCtxResetPersistingL2Cache" () {
        // Does not create a context.
        context::ready()?;
        cu!(cuCtxResetPersistingL2Cache())
    }
    fn flush_rdma_writes "cudaDeviceFlushGPUDirectRDMAWrites" (target: u32, scope: u32) {
        context::current()?;
        cu!(cuFlushGPUDirectRDMAWrites(
            CUflushGPUDirectRDMAWritesTarget(target as _),
            CUflushGPUDirectRDMAWritesScope(scope as _),
        ))
    }
    fn graph_mem_trim "cudaDeviceGraphMemTrim" (ordinal: i32) {
        let device = context::device(ordinal)?;
        cu!(cuDeviceGraphMemTrim(device))
    }
    fn graph_mem_get "cudaDeviceGetGraphMemAttribute" (ordinal: i32, which: u32, value: u64) {
        non_null(value)?;
        let device = context::device(ordinal)?;
        cu!(cuDeviceGetGraphMemAttribute(device, CUgraphMem_attribute(which as _), value as *mut c_void))
    }
    fn graph_mem_set "cudaDeviceSetGraphMemAttribute" (ordinal: i32, which: u32, value: u64) {
        non_null(value)?;
        let device = context::device(ordinal)?;
        cu!(cuDeviceSetGraphMemAttribute(device, CUgraphMem_attribute(which as _), value as *mut c_void))
    }
    fn nv_sci_sync_attributes "cudaDeviceGetNvSciSyncAttributes" (list: u64, ordinal: i32, flags: i32) {
        let device = context::device(ordinal)?;
        cu!(cuDeviceGetNvSciSyncAttributes(list as *mut c_void, device, flags))
    }
    fn profiler_start "cudaProfilerStart" () {
        context::current()?;
        cu!(cuProfilerStart())
    }
    fn profiler_stop "cudaProfilerStop" () {
        context::current()?;
        cu!(cuProfilerStop())
    }
}
