//! Clocks, resources and modes of a device.

use cupyrite_engine::memory::{AddressSpace, checked};
use cupyrite_sys::nvml::{
    nvmlClockId_t, nvmlClockType_t, nvmlComputeMode_t, nvmlDeviceAttributes_st, nvmlEnableState_t,
    nvmlFieldValue_st, nvmlReturn_t,
};

use super::device::by_handle;
use super::{Res, bad, nvml_entry_points, put};
use crate::driver;

const INVALID: nvmlReturn_t = nvmlReturn_t::NVML_ERROR_INVALID_ARGUMENT;
const NOT_SUPPORTED: nvmlReturn_t = nvmlReturn_t::NVML_ERROR_NOT_SUPPORTED;

/// A frequency of the first processor in MHz, as Linux's cpufreq reports it. Virtual machines have none.
fn cpufreq(file: &str) -> Option<u32> {
    let path = format!("/sys/devices/system/cpu/cpu0/cpufreq/{file}");
    let khz: u32 = std::fs::read_to_string(path).ok()?.trim().parse().ok()?;
    Some(khz / 1000)
}

/// The processor's clock stands for those of graphics and multiprocessors.
fn is_processor(kind: u32) -> Res<bool> {
    match nvmlClockType_t(kind) {
        nvmlClockType_t::NVML_CLOCK_GRAPHICS | nvmlClockType_t::NVML_CLOCK_SM => Ok(true),
        nvmlClockType_t::NVML_CLOCK_MEM | nvmlClockType_t::NVML_CLOCK_VIDEO => Ok(false),
        _ => Err(INVALID),
    }
}

fn current_clock(device: u64, kind: u32, out: u64) -> Res {
    by_handle(device)?;
    if !is_processor(kind)? {
        return Err(NOT_SUPPORTED);
    }
    let mhz = cpufreq("scaling_cur_freq").unwrap_or(driver::clock_rate_khz() as u32 / 1000);
    put(out, mhz)
}

fn attributes(device: u64, out: u64) -> Res {
    let device = by_handle(device)?;
    put(
        out,
        nvmlDeviceAttributes_st {
            multiprocessorCount: device.multiprocessors,
            sharedCopyEngineCount: 0,
            sharedDecoderCount: 0,
            sharedEncoderCount: 0,
            sharedJpegCount: 0,
            sharedOfaCount: 0,
            gpuInstanceSliceCount: 0,
            computeInstanceSliceCount: 0,
            memorySizeMB: AddressSpace::global().capacity() >> 20,
        },
    )
}

/// Answers each field with its own status: the device has none of them.
fn field_values(device: u64, count: i32, values: u64) -> Res {
    by_handle(device)?;
    let count = u64::try_from(count).map_err(|_| INVALID)?;
    if values == 0 || count == 0 {
        return Err(INVALID);
    }
    let size = size_of::<nvmlFieldValue_st>() as u64;
    for at in 0..count {
        let address = values.checked_add(at * size).ok_or(INVALID)?;
        // SAFETY: any bytes are valid integers and floats.
        let mut value = unsafe { checked::read::<nvmlFieldValue_st>(address) }.map_err(bad)?;
        value.nvmlReturn = NOT_SUPPORTED;
        put(address, value)?;
    }
    Ok(())
}

fn disabled(device: u64, out: u64) -> Res {
    by_handle(device)?;
    put(out, nvmlEnableState_t::NVML_FEATURE_DISABLED)
}

fn zero(device: u64, out: u64) -> Res {
    by_handle(device)?;
    put(out, 0u32)
}

nvml_entry_points! {
    fn clock "nvmlDeviceGetClock" (device: u64, kind: u32, id: u32, out: u64) {
        match nvmlClockId_t(id) {
            nvmlClockId_t::NVML_CLOCK_ID_CURRENT => current_clock(device, kind, out),
            _ => {
                by_handle(device)?;
                Err(if id < nvmlClockId_t::NVML_CLOCK_ID_COUNT.0 { NOT_SUPPORTED } else { INVALID })
            }
        }
    }
    fn clock_info "nvmlDeviceGetClockInfo" (device: u64, kind: u32, out: u64) { current_clock(device, kind, out) }
    fn max_clock "nvmlDeviceGetMaxClockInfo" (device: u64, kind: u32, out: u64) {
        by_handle(device)?;
        match is_processor(kind)? {
            true => put(out, cpufreq("cpuinfo_max_freq").ok_or(NOT_SUPPORTED)?),
            false => Err(NOT_SUPPORTED),
        }
    }
    fn attributes_v1 "nvmlDeviceGetAttributes" (device: u64, out: u64) { attributes(device, out) }
    fn attributes_v2 "nvmlDeviceGetAttributes_v2" (device: u64, out: u64) { attributes(device, out) }
    fn values_of_fields "nvmlDeviceGetFieldValues" (device: u64, count: i32, values: u64) {
        field_values(device, count, values)
    }
    fn compute_mode "nvmlDeviceGetComputeMode" (device: u64, out: u64) {
        by_handle(device)?;
        put(out, nvmlComputeMode_t::NVML_COMPUTEMODE_DEFAULT)
    }
    fn display_mode "nvmlDeviceGetDisplayMode" (device: u64, out: u64) { disabled(device, out) }
    fn display_active "nvmlDeviceGetDisplayActive" (device: u64, out: u64) { disabled(device, out) }
    // The device is not on a baseboard.
    fn module_id "nvmlDeviceGetModuleId" (device: u64, out: u64) { zero(device, out) }
    fn is_mig_device "nvmlDeviceIsMigDeviceHandle" (device: u64, out: u64) { zero(device, out) }
    fn max_mig_devices "nvmlDeviceGetMaxMigDeviceCount" (device: u64, out: u64) { zero(device, out) }
}
