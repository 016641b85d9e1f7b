//! PCI attributes of a device, and its PCIe link.

use std::ffi::c_uint;

use cupyrite_sys::nvml::{nvmlPciInfoExt_v1_t, nvmlPcieUtilCounter_t};

use super::device::Device;
use super::library::{nvml, text_in, version};
use crate::error::Result;

/// PCI attributes of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PciInfo {
    /// Position: `domain:bus:device.function`.
    pub bus_id: String,
    /// Domain, 0 to 0xFFFFFFFF.
    pub domain: u32,
    /// Bus, 0 to 255.
    pub bus: u32,
    /// Number of the device on the bus, 0 to 31.
    pub device: u32,
    /// 16-bit vendor id.
    pub vendor_id: u16,
    /// 16-bit device id.
    pub device_id: u16,
    /// Subsystem device id.
    pub subsystem_id: u32,
    /// 8-bit base class code.
    pub base_class: u32,
    /// 8-bit sub-class code.
    pub sub_class: u32,
}

/// Generation and width of a PCIe link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PcieLink {
    /// PCIe generation.
    pub generation: u32,
    /// Number of lanes.
    pub width: u32,
}

impl Device {
    /// PCI attributes.
    ///
    /// Source: `nvmlDeviceGetPciInfoExt`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`](crate::Error::Nvml) with `NVML_ERROR_NOT_SUPPORTED` for devices that are not on a PCI bus, for example
    /// MIG devices.
    pub fn pci_info(&self) -> Result<PciInfo> {
        self.query(|handle| {
            let mut info = nvmlPciInfoExt_v1_t {
                version: version::<nvmlPciInfoExt_v1_t>(1),
                ..Default::default()
            };
            nvml!(nvmlDeviceGetPciInfoExt(handle, &mut info))?;
            let [a, b, c, d] = info.pciDeviceId.to_le_bytes();
            Ok(PciInfo {
                bus_id: text_in(&info.busId),
                domain: info.domain,
                bus: info.bus,
                device: info.device,
                vendor_id: u16::from_le_bytes([a, b]),
                device_id: u16::from_le_bytes([c, d]),
                subsystem_id: info.pciSubSystemId,
                base_class: info.baseClass,
                sub_class: info.subClass,
            })
        })
    }

    /// The PCIe link as it is now.
    ///
    /// Source: `nvmlDeviceGetCurrPcieLinkGeneration`, `nvmlDeviceGetCurrPcieLinkWidth`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`](crate::Error::Nvml).
    pub fn pcie_link(&self) -> Result<PcieLink> {
        self.query(|handle| {
            let (mut generation, mut width) = (0, 0);
            nvml!(nvmlDeviceGetCurrPcieLinkGeneration(handle, &mut generation))?;
            nvml!(nvmlDeviceGetCurrPcieLinkWidth(handle, &mut width))?;
            Ok(PcieLink { generation, width })
        })
    }

    /// The highest generation and width of the PCIe link of device and system.
    ///
    /// Source: `nvmlDeviceGetMaxPcieLinkGeneration`, `nvmlDeviceGetMaxPcieLinkWidth`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`](crate::Error::Nvml).
    pub fn max_pcie_link(&self) -> Result<PcieLink> {
        self.query(|handle| {
            let (mut generation, mut width) = (0, 0);
            nvml!(nvmlDeviceGetMaxPcieLinkGeneration(handle, &mut generation))?;
            nvml!(nvmlDeviceGetMaxPcieLinkWidth(handle, &mut width))?;
            Ok(PcieLink { generation, width })
        })
    }

    /// The highest PCIe generation of the device in any system.
    ///
    /// Source: `nvmlDeviceGetGpuMaxPcieLinkGeneration`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`](crate::Error::Nvml).
    pub fn max_pcie_generation(&self) -> Result<u32> {
        self.number(|handle, to: &mut c_uint| {
            nvml!(nvmlDeviceGetGpuMaxPcieLinkGeneration(handle, to))
        })
    }

    /// Number of PCIe replays.
    ///
    /// Source: `nvmlDeviceGetPcieReplayCounter`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`](crate::Error::Nvml).
    pub fn pcie_replay_counter(&self) -> Result<u32> {
        self.number(|handle, to: &mut c_uint| nvml!(nvmlDeviceGetPcieReplayCounter(handle, to)))
    }

    fn pcie_throughput(&self, counter: nvmlPcieUtilCounter_t) -> Result<u32> {
        self.number(|handle, to: &mut c_uint| {
            nvml!(nvmlDeviceGetPcieThroughput(handle, counter, to))
        })
    }

    /// Data sent over PCIe during the last 20 ms, in KB/s.
    ///
    /// Source: `nvmlDeviceGetPcieThroughput`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`](crate::Error::Nvml).
    pub fn pcie_sent(&self) -> Result<u32> {
        self.pcie_throughput(nvmlPcieUtilCounter_t::NVML_PCIE_UTIL_TX_BYTES)
    }

    /// Data received over PCIe during the last 20 ms, in KB/s.
    ///
    /// Source: `nvmlDeviceGetPcieThroughput`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`](crate::Error::Nvml).
    pub fn pcie_received(&self) -> Result<u32> {
        self.pcie_throughput(nvmlPcieUtilCounter_t::NVML_PCIE_UTIL_RX_BYTES)
    }
}
