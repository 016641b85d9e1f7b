//! Where a device is: processors and memory near to it, other devices, NVLink.

use std::ffi::{c_uint, c_ulong};

use cupyrite_sys::nvml::{
    NVML_FI_DEV_NVLINK_LINK_COUNT, nvmlDevice_t, nvmlGpuP2PStatus_t, nvmlGpuTopologyLevel_t,
    nvmlNvlinkVersion_t as Version,
};

use super::device::Device;
use super::fields::FieldNumber;
use super::library::{call, nvml};
use super::types::{AffinityScope, PeerCapability, PeerStatus, TopologyLevel};
use crate::error::{Error, Result};

/// Words of the set of CPUs or NUMA nodes that is queried: 4096 numbers.
const WORDS: usize = 4096 / c_ulong::BITS as usize;

/// The numbers in a set of bits.
fn numbers(set: &[c_ulong]) -> Vec<u32> {
    let bits = c_ulong::BITS;
    let all =
        (0..set.len() as u32 * bits).filter(|n| set[(n / bits) as usize] >> (n % bits) & 1 != 0);
    all.collect()
}

/// The devices that a function of NVML lists; the first call tells how many there are.
fn devices(
    mut read: impl FnMut(&mut c_uint, *mut nvmlDevice_t) -> Result<()>,
) -> Result<Vec<Device>> {
    let mut count = 0;
    read(&mut count, std::ptr::null_mut())?;
    let mut handles: Vec<nvmlDevice_t> = vec![std::ptr::null_mut(); count as usize];
    if count > 0 {
        read(&mut count, handles.as_mut_ptr())?;
        handles.truncate(count as usize);
    }
    handles.into_iter().map(Device::of).collect()
}

/// One NVLink link of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NvLink {
    device: Device,
    link: u32,
}

impl Device {
    /// The devices that are close to a CPU. Linux only.
    ///
    /// Source: `nvmlSystemGetTopologyGpuSet`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn near_cpu(cpu: u32) -> Result<Vec<Device>> {
        call(|| devices(|count, to| nvml!(nvmlSystemGetTopologyGpuSet(cpu, count, to))))
    }

    /// Numbers of the CPUs that are close to the device. Linux only.
    ///
    /// Source: `nvmlDeviceGetCpuAffinityWithinScope`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn cpu_affinity(&self, scope: AffinityScope) -> Result<Vec<u32>> {
        self.query(|handle| {
            let mut set = [0; WORDS];
            nvml!(nvmlDeviceGetCpuAffinityWithinScope(
                handle,
                WORDS as c_uint,
                set.as_mut_ptr(),
                scope.number()
            ))?;
            Ok(numbers(&set))
        })
    }

    /// Numbers of the NUMA nodes that are close to the device. Linux only.
    ///
    /// Source: `nvmlDeviceGetMemoryAffinity`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn memory_affinity(&self, scope: AffinityScope) -> Result<Vec<u32>> {
        self.query(|handle| {
            let mut set = [0; WORDS];
            nvml!(nvmlDeviceGetMemoryAffinity(
                handle,
                WORDS as c_uint,
                set.as_mut_ptr(),
                scope.number()
            ))?;
            Ok(numbers(&set))
        })
    }

    /// Binds the calling thread to the CPUs that are close to the device. Linux only.
    ///
    /// Source: `nvmlDeviceSetCpuAffinity`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn set_cpu_affinity(&self) -> Result<()> {
        self.query(|handle| nvml!(nvmlDeviceSetCpuAffinity(handle)))
    }

    /// Lets the calling thread run on all CPUs. Linux only.
    ///
    /// Source: `nvmlDeviceClearCpuAffinity`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn clear_cpu_affinity(&self) -> Result<()> {
        self.query(|handle| nvml!(nvmlDeviceClearCpuAffinity(handle)))
    }

    /// NUMA node of the device, where GPUs are NUMA nodes.
    ///
    /// Source: `nvmlDeviceGetNumaNodeId`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`] with `NVML_ERROR_NOT_SUPPORTED` elsewhere.
    pub fn numa_node(&self) -> Result<u32> {
        self.number(|handle, to: &mut c_uint| nvml!(nvmlDeviceGetNumaNodeId(handle, to)))
    }

    /// The devices with that common ancestor. Linux only.
    ///
    /// Source: `nvmlDeviceGetTopologyNearestGpus`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn nearest_devices(&self, level: TopologyLevel) -> Result<Vec<Device>> {
        let level = level.number();
        self.query(|handle| {
            devices(|count, to| nvml!(nvmlDeviceGetTopologyNearestGpus(handle, level, count, to)))
        })
    }

    /// The closest common ancestor of two devices; `None` if this crate does not know it. Linux only.
    ///
    /// Source: `nvmlDeviceGetTopologyCommonAncestor`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn common_ancestor(&self, other: &Device) -> Result<Option<TopologyLevel>> {
        self.query(|handle| {
            other.query(|other| {
                let mut level = nvmlGpuTopologyLevel_t::NVML_TOPOLOGY_SYSTEM;
                nvml!(nvmlDeviceGetTopologyCommonAncestor(
                    handle, other, &mut level
                ))?;
                Ok(TopologyLevel::of(level))
            })
        })
    }

    /// Whether this device and another one have a capability, or why they do not; `None` if the driver does not know it.
    ///
    /// Source: `nvmlDeviceGetP2PStatus`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn peer_status(
        &self,
        other: &Device,
        capability: PeerCapability,
    ) -> Result<Option<PeerStatus>> {
        let capability = capability.number();
        self.query(|handle| {
            other.query(|other| {
                let mut status = nvmlGpuP2PStatus_t::NVML_P2P_STATUS_UNKNOWN;
                nvml!(nvmlDeviceGetP2PStatus(
                    handle,
                    other,
                    capability,
                    &mut status
                ))?;
                Ok(PeerStatus::of(status))
            })
        })
    }

    /// Number of NVLink links.
    ///
    /// Source: `nvmlDeviceGetFieldValues`, `NVML_FI_DEV_NVLINK_LINK_COUNT`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`] with `NVML_ERROR_NOT_SUPPORTED` without NVLink.
    pub fn nvlink_count(&self) -> Result<u32> {
        let values = self.field_values(&[(NVML_FI_DEV_NVLINK_LINK_COUNT, 0)])?;
        let count = values
            .first()
            .map_or(Ok(FieldNumber::Unsigned(0)), |v| v.value())?;
        Ok(count.as_f64() as u32)
    }

    /// An NVLink link, counted from 0.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if the device has no such link; as [`Device::nvlink_count`].
    pub fn nvlink(&self, link: u32) -> Result<NvLink> {
        let count = self.nvlink_count()?;
        if link >= count {
            let problem = format!("it is {link}; the device has {count} links, counted from 0");
            return Err(Error::argument("system::Device::nvlink", "link", problem));
        }
        Ok(NvLink {
            device: self.clone(),
            link,
        })
    }
}

impl NvLink {
    /// Whether the link is active.
    ///
    /// Source: `nvmlDeviceGetNvLinkState`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn is_active(&self) -> Result<bool> {
        self.device
            .enabled(|handle, to| nvml!(nvmlDeviceGetNvLinkState(handle, self.link, to)))
    }

    /// NVLink version, (major, minor); `None` if this crate does not know it.
    ///
    /// Source: `nvmlDeviceGetNvLinkVersion`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn version(&self) -> Result<Option<(u32, u32)>> {
        let number = self.device.number(|handle, to: &mut c_uint| {
            nvml!(nvmlDeviceGetNvLinkVersion(handle, self.link, to))
        })?;
        Ok(match Version(number) {
            Version::NVML_NVLINK_VERSION_1_0 => Some((1, 0)),
            Version::NVML_NVLINK_VERSION_2_0 => Some((2, 0)),
            Version::NVML_NVLINK_VERSION_2_2 => Some((2, 2)),
            Version::NVML_NVLINK_VERSION_3_0 => Some((3, 0)),
            Version::NVML_NVLINK_VERSION_3_1 => Some((3, 1)),
            Version::NVML_NVLINK_VERSION_4_0 => Some((4, 0)),
            Version::NVML_NVLINK_VERSION_5_0 => Some((5, 0)),
            Version::NVML_NVLINK_VERSION_6_0 => Some((6, 0)),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_numbers() {
        assert_eq!(numbers(&[]), Vec::<u32>::new());
        assert_eq!(numbers(&[0b1001, 0]), [0, 3]);
        assert_eq!(numbers(&[0, 1 << 2]), [c_ulong::BITS + 2]);
    }
}
