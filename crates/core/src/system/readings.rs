//! Figures of a device that are read at once: memory, utilisation, resources, processes, repairs.

use cupyrite_sys::nvml::{
    nvmlBAR1Memory_st, nvmlDeviceAttributes_st, nvmlGpuDynamicPstatesInfo_st, nvmlMemory_v2_st,
    nvmlProcessInfo_v2_st, nvmlRepairStatus_v1_t, nvmlUtilization_st,
};

use super::device::Device;
use super::library::{list, nvml, version};
use crate::error::Result;

/// Memory of a device in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryInfo {
    /// Physical memory.
    pub total: u64,
    /// Unallocated memory.
    pub free: u64,
    /// Allocated memory.
    pub used: u64,
    /// Memory reserved by driver and firmware.
    pub reserved: u64,
}

/// Memory that is mapped for access over PCIe (BAR1), in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarMemoryInfo {
    /// All of it.
    pub total: u64,
    /// Unallocated memory.
    pub free: u64,
    /// Allocated memory.
    pub used: u64,
}

/// Utilisation during the last sample period in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Utilization {
    /// Time in which a kernel was running.
    pub gpu: u32,
    /// Time in which device memory was read or written.
    pub memory: u32,
}

/// Utilisation of one domain of a device during the last second, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DomainUtilization {
    /// Time in which the domain was busy.
    pub percentage: u32,
    /// Utilisation above which the performance state may rise.
    pub increase_threshold: u32,
    /// Utilisation below which the performance state may fall.
    pub decrease_threshold: u32,
}

/// Resources of a device or a MIG device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceResources {
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Shared copy engines.
    pub shared_copy_engines: u32,
    /// Shared video decoders.
    pub shared_decoders: u32,
    /// Shared video encoders.
    pub shared_encoders: u32,
    /// Shared JPEG engines.
    pub shared_jpeg_engines: u32,
    /// Shared optical flow accelerators.
    pub shared_optical_flow_accelerators: u32,
    /// Slices of the GPU instance.
    pub gpu_instance_slices: u32,
    /// Slices of the compute instance.
    pub compute_instance_slices: u32,
    /// Memory in MiB.
    pub memory_mib: u64,
}

/// A process with a compute context on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessInfo {
    /// Process id.
    pub pid: u32,
    /// Device memory in bytes; `None` if the system does not report it.
    pub used_memory: Option<u64>,
    /// The GPU instance (MIG); `None` if the device is not partitioned.
    pub gpu_instance: Option<u32>,
    /// The compute instance (MIG); `None` if the device is not partitioned.
    pub compute_instance: Option<u32>,
}

/// Pending repairs of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairStatus {
    /// The repair of a memory channel is pending.
    pub channel_repair_pending: bool,
    /// The repair of a texture processing cluster is pending.
    pub tpc_repair_pending: bool,
}

impl Device {
    /// Memory of the device.
    ///
    /// Source: `nvmlDeviceGetMemoryInfo_v2`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`](crate::Error::Nvml).
    pub fn memory_info(&self) -> Result<MemoryInfo> {
        self.query(|handle| {
            let mut info = nvmlMemory_v2_st {
                version: version::<nvmlMemory_v2_st>(2),
                ..Default::default()
            };
            nvml!(nvmlDeviceGetMemoryInfo_v2(handle, &mut info))?;
            Ok(MemoryInfo {
                total: info.total,
                free: info.free,
                used: info.used,
                reserved: info.reserved,
            })
        })
    }

    /// Memory that is mapped for access over PCIe.
    ///
    /// Source: `nvmlDeviceGetBAR1MemoryInfo`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`](crate::Error::Nvml).
    pub fn bar1_memory_info(&self) -> Result<BarMemoryInfo> {
        self.query(|handle| {
            let mut info = nvmlBAR1Memory_st::default();
            nvml!(nvmlDeviceGetBAR1MemoryInfo(handle, &mut info))?;
            Ok(BarMemoryInfo {
                total: info.bar1Total,
                free: info.bar1Free,
                used: info.bar1Used,
            })
        })
    }

    /// Utilisation during the last sample period.
    ///
    /// Source: `nvmlDeviceGetUtilizationRates`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`](crate::Error::Nvml).
    pub fn utilization(&self) -> Result<Utilization> {
        self.query(|handle| {
            let mut rates = nvmlUtilization_st::default();
            nvml!(nvmlDeviceGetUtilizationRates(handle, &mut rates))?;
            Ok(Utilization {
                gpu: rates.gpu,
                memory: rates.memory,
            })
        })
    }

    /// Utilisation by domain (graphics, frame buffer, video, bus); `None` for a domain that the device lacks.
    ///
    /// Source: `nvmlDeviceGetDynamicPstatesInfo`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`](crate::Error::Nvml).
    pub fn domain_utilization(&self) -> Result<Vec<Option<DomainUtilization>>> {
        self.query(|handle| {
            let mut info = nvmlGpuDynamicPstatesInfo_st::default();
            nvml!(nvmlDeviceGetDynamicPstatesInfo(handle, &mut info))?;
            let domains = info.utilization.iter().map(|domain| {
                (domain.bIsPresent != 0).then_some(DomainUtilization {
                    percentage: domain.percentage,
                    increase_threshold: domain.incThreshold,
                    decrease_threshold: domain.decThreshold,
                })
            });
            Ok(domains.collect())
        })
    }

    /// Multiprocessors, engines and slices.
    ///
    /// Source: `nvmlDeviceGetAttributes_v2`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`](crate::Error::Nvml) with `NVML_ERROR_NOT_SUPPORTED` without MIG.
    pub fn resources(&self) -> Result<DeviceResources> {
        self.query(|handle| {
            let mut found = nvmlDeviceAttributes_st::default();
            nvml!(nvmlDeviceGetAttributes_v2(handle, &mut found))?;
            Ok(DeviceResources {
                multiprocessors: found.multiprocessorCount,
                shared_copy_engines: found.sharedCopyEngineCount,
                shared_decoders: found.sharedDecoderCount,
                shared_encoders: found.sharedEncoderCount,
                shared_jpeg_engines: found.sharedJpegCount,
                shared_optical_flow_accelerators: found.sharedOfaCount,
                gpu_instance_slices: found.gpuInstanceSliceCount,
                compute_instance_slices: found.computeInstanceSliceCount,
                memory_mib: found.memorySizeMB,
            })
        })
    }

    /// Processes with a compute context on the device.
    ///
    /// Source: `nvmlDeviceGetComputeRunningProcesses_v3`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`](crate::Error::Nvml).
    pub fn compute_processes(&self) -> Result<Vec<ProcessInfo>> {
        const NOT_AVAILABLE: u64 = u64::MAX;
        const NO_INSTANCE: u32 = u32::MAX;
        let infos = self.query(|handle| {
            list(|count, to: *mut nvmlProcessInfo_v2_st| {
                nvml!(nvmlDeviceGetComputeRunningProcesses_v3(handle, count, to))
            })
        })?;
        let instance = |number: u32| Some(number).filter(|&number| number != NO_INSTANCE);
        let info = |info: &nvmlProcessInfo_v2_st| ProcessInfo {
            pid: info.pid,
            used_memory: Some(info.usedGpuMemory).filter(|&bytes| bytes != NOT_AVAILABLE),
            gpu_instance: instance(info.gpuInstanceId),
            compute_instance: instance(info.computeInstanceId),
        };
        Ok(infos.iter().map(info).collect())
    }

    /// Pending repairs.
    ///
    /// Source: `nvmlDeviceGetRepairStatus`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`](crate::Error::Nvml) with `NVML_ERROR_NOT_SUPPORTED` before Ampere.
    pub fn repair_status(&self) -> Result<RepairStatus> {
        self.query(|handle| {
            let mut status = nvmlRepairStatus_v1_t {
                version: version::<nvmlRepairStatus_v1_t>(1),
                ..Default::default()
            };
            nvml!(nvmlDeviceGetRepairStatus(handle, &mut status))?;
            Ok(RepairStatus {
                channel_repair_pending: status.bChannelRepairPending != 0,
                tpc_repair_pending: status.bTpcRepairPending != 0,
            })
        })
    }
}
