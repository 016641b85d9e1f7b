//! Memory use, utilisation and processes of a device.

use cupyrite_engine::memory::AddressSpace;
use cupyrite_sys::nvml::{
    nvmlMemory_st, nvmlMemory_v2_st, nvmlProcessInfo_v1_st, nvmlProcessInfo_v2_st, nvmlReturn_t,
    nvmlUtilization_st,
};

use super::device::by_handle;
use super::{Res, get, nvml_entry_points, put};
use crate::driver;

/// The instance id that means "no instance": the device is not partitioned.
const NO_INSTANCE: u32 = u32::MAX;

/// Writes a list of at most one element: its length to `count`, and the element to `out` if `count` has room for it.
fn put_list<T: Copy>(count: u64, out: u64, element: Option<T>) -> Res {
    if count == 0 {
        return Err(nvmlReturn_t::NVML_ERROR_INVALID_ARGUMENT);
    }
    let room = get(count)?;
    put(count, u32::from(element.is_some()))?;
    match element {
        None => Ok(()),
        Some(_) if room == 0 => Err(nvmlReturn_t::NVML_ERROR_INSUFFICIENT_SIZE),
        Some(element) => put(out, element),
    }
}

/// The compute process of a device: this process once it has a context there. Other processes have devices of their
/// own.
fn compute_process(device: u64) -> Res<Option<(u32, u64)>> {
    let device = by_handle(device)?;
    Ok(driver::memory_in_contexts(device.ordinal).map(|bytes| (std::process::id(), bytes)))
}

fn process_v2((pid, bytes): (u32, u64)) -> nvmlProcessInfo_v2_st {
    nvmlProcessInfo_v2_st {
        pid,
        usedGpuMemory: bytes,
        gpuInstanceId: NO_INSTANCE,
        computeInstanceId: NO_INSTANCE,
    }
}

fn compute_processes(device: u64, count: u64, out: u64) -> Res {
    put_list(count, out, compute_process(device)?.map(process_v2))
}

/// Graphics and MPS do not exist on this device.
fn no_processes(device: u64, count: u64) -> Res {
    by_handle(device)?;
    put_list::<u32>(count, 0, None)
}

nvml_entry_points! {
    fn memory "nvmlDeviceGetMemoryInfo" (device: u64, out: u64) {
        by_handle(device)?;
        let space = AddressSpace::global();
        let (total, free) = (space.capacity(), space.available());
        // Memory that is not free counts as used, as for GPUs; other processes use some of it.
        put(out, nvmlMemory_st { total, free, used: total.saturating_sub(free) })
    }
    fn memory_v2 "nvmlDeviceGetMemoryInfo_v2" (device: u64, out: u64) {
        by_handle(device)?;
        let version = size_of::<nvmlMemory_v2_st>() as u32 | 2 << 24;
        if get(out)? != version {
            return Err(nvmlReturn_t::NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
        }
        let space = AddressSpace::global();
        let (total, free) = (space.capacity(), space.available());
        let used = space.used().min(total.saturating_sub(free));
        put(out, nvmlMemory_v2_st { version, total, reserved: total.saturating_sub(free + used), free, used })
    }
    fn utilization "nvmlDeviceGetUtilizationRates" (device: u64, out: u64) {
        // A running kernel uses memory; the device does not distinguish compute and memory utilisation.
        let busy = driver::busy_percent(by_handle(device)?.ordinal);
        put(out, nvmlUtilization_st { gpu: busy, memory: busy })
    }
    fn compute_processes_v1 "nvmlDeviceGetComputeRunningProcesses" (device: u64, count: u64, out: u64) {
        let process = compute_process(device)?;
        put_list(count, out, process.map(|(pid, bytes)| nvmlProcessInfo_v1_st { pid, usedGpuMemory: bytes }))
    }
    fn compute_processes_v2 "nvmlDeviceGetComputeRunningProcesses_v2" (device: u64, count: u64, out: u64) {
        compute_processes(device, count, out)
    }
    fn compute_processes_v3 "nvmlDeviceGetComputeRunningProcesses_v3" (device: u64, count: u64, out: u64) {
        compute_processes(device, count, out)
    }
    fn graphics_processes_v1 "nvmlDeviceGetGraphicsRunningProcesses" (device: u64, count: u64, _out: u64) {
        no_processes(device, count)
    }
    fn graphics_processes_v2 "nvmlDeviceGetGraphicsRunningProcesses_v2" (device: u64, count: u64, _out: u64) {
        no_processes(device, count)
    }
    fn graphics_processes_v3 "nvmlDeviceGetGraphicsRunningProcesses_v3" (device: u64, count: u64, _out: u64) {
        no_processes(device, count)
    }
    fn mps_processes_v1 "nvmlDeviceGetMPSComputeRunningProcesses" (device: u64, count: u64, _out: u64) {
        no_processes(device, count)
    }
    fn mps_processes_v2 "nvmlDeviceGetMPSComputeRunningProcesses_v2" (device: u64, count: u64, _out: u64) {
        no_processes(device, count)
    }
    fn mps_processes_v3 "nvmlDeviceGetMPSComputeRunningProcesses_v3" (device: u64, count: u64, _out: u64) {
        no_processes(device, count)
    }
}
