//! Partitions of a GPU (MIG).

use std::ffi::c_uint;

use cupyrite_sys::nvml::{NVML_DEVICE_MIG_ENABLE, nvmlDevice_t, nvmlReturn_t};

use super::device::Device;
use super::library::nvml;
use crate::error::{Error, Result};

/// The partitions of a GPU, or the place of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mig(Device);

impl Device {
    /// Partitions of the GPU, or the place of this partition.
    pub fn mig(&self) -> Mig {
        Mig(self.clone())
    }
}

impl Mig {
    /// Whether the device is a partition.
    ///
    /// Source: `nvmlDeviceIsMigDeviceHandle`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn is_mig_device(&self) -> Result<bool> {
        let found = self
            .0
            .number(|handle, to: &mut c_uint| nvml!(nvmlDeviceIsMigDeviceHandle(handle, to)))?;
        Ok(found != 0)
    }

    /// Whether the GPU is partitioned, now and after the next reset.
    ///
    /// Source: `nvmlDeviceGetMigMode`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`] with `NVML_ERROR_NOT_SUPPORTED` without MIG.
    pub fn mode(&self) -> Result<(bool, bool)> {
        let (now, pending) = self.0.number(|handle, to: &mut (c_uint, c_uint)| {
            nvml!(nvmlDeviceGetMigMode(handle, &mut to.0, &mut to.1))
        })?;
        Ok((
            now == NVML_DEVICE_MIG_ENABLE,
            pending == NVML_DEVICE_MIG_ENABLE,
        ))
    }

    /// Lets the GPU be partitioned, or not. Requires root; where it takes effect only after a reset, [`Mig::mode`] tells so.
    ///
    /// Source: `nvmlDeviceSetMigMode`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`], also with the status of the activation.
    pub fn set_mode(&self, enabled: bool) -> Result<()> {
        self.0.query(|handle| {
            let mut activation = nvmlReturn_t::NVML_SUCCESS;
            nvml!(nvmlDeviceSetMigMode(
                handle,
                enabled.into(),
                &mut activation
            ))?;
            match activation {
                // The driver accepted the mode; it is pending until the GPU is reset.
                nvmlReturn_t::NVML_SUCCESS | nvmlReturn_t::NVML_ERROR_RESET_REQUIRED => Ok(()),
                status => Err(Error::Nvml {
                    call: "nvmlDeviceSetMigMode",
                    status,
                }),
            }
        })
    }

    /// Largest number of partitions.
    ///
    /// Source: `nvmlDeviceGetMaxMigDeviceCount`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn max_device_count(&self) -> Result<u32> {
        self.0
            .number(|handle, to: &mut c_uint| nvml!(nvmlDeviceGetMaxMigDeviceCount(handle, to)))
    }

    /// The GPU of a partition.
    ///
    /// Source: `nvmlDeviceGetDeviceHandleFromMigDeviceHandle`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`] if the device is no partition.
    pub fn parent(&self) -> Result<Device> {
        self.0.query(|handle| {
            let mut parent: nvmlDevice_t = std::ptr::null_mut();
            nvml!(nvmlDeviceGetDeviceHandleFromMigDeviceHandle(
                handle,
                &mut parent
            ))?;
            Device::of(parent)
        })
    }

    /// The partition of that number, counted from 0.
    ///
    /// Source: `nvmlDeviceGetMigDeviceHandleByIndex`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`] with `NVML_ERROR_NOT_FOUND` if there is no such partition.
    pub fn device(&self, index: u32) -> Result<Device> {
        self.0.query(|handle| {
            let mut found: nvmlDevice_t = std::ptr::null_mut();
            nvml!(nvmlDeviceGetMigDeviceHandleByIndex(
                handle, index, &mut found
            ))?;
            Device::of(found)
        })
    }

    /// The partitions that exist.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn devices(&self) -> Result<Vec<Device>> {
        let mut devices = Vec::new();
        for index in 0..self.max_device_count()? {
            match self.device(index) {
                Err(Error::Nvml {
                    status: nvmlReturn_t::NVML_ERROR_NOT_FOUND,
                    ..
                }) => {}
                found => devices.push(found?),
            }
        }
        Ok(devices)
    }
}
