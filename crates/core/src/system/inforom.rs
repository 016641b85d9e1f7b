//! The InfoROM, a memory on the board with its configuration.

use std::ffi::{c_uint, c_ulong, c_ulonglong};
use std::time::Duration;

use super::device::Device;
use super::library::{nvml, text};
use super::types::InforomObject;
use crate::error::Result;

/// The InfoROM of a device. Every method fails with `NVML_ERROR_NOT_SUPPORTED` on a product without one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inforom(Device);

impl Device {
    /// The InfoROM.
    pub fn inforom(&self) -> Inforom {
        Inforom(self.clone())
    }
}

impl Inforom {
    /// Version of an object.
    ///
    /// Source: `nvmlDeviceGetInforomVersion`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`](crate::Error::Nvml).
    pub fn version(&self, object: InforomObject) -> Result<String> {
        let object = object.number();
        self.0.query(|handle| {
            text(|to, room| nvml!(nvmlDeviceGetInforomVersion(handle, object, to, room)))
        })
    }

    /// Version of the whole InfoROM.
    ///
    /// Source: `nvmlDeviceGetInforomImageVersion`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`](crate::Error::Nvml).
    pub fn image_version(&self) -> Result<String> {
        self.0.query(|handle| {
            text(|to, room| nvml!(nvmlDeviceGetInforomImageVersion(handle, to, room)))
        })
    }

    /// Checksum of the configuration.
    ///
    /// Source: `nvmlDeviceGetInforomConfigurationChecksum`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`](crate::Error::Nvml).
    pub fn configuration_checksum(&self) -> Result<u32> {
        self.0.number(|handle, to: &mut c_uint| {
            nvml!(nvmlDeviceGetInforomConfigurationChecksum(handle, to))
        })
    }

    /// Part number of the board.
    ///
    /// Source: `nvmlDeviceGetBoardPartNumber`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`](crate::Error::Nvml).
    pub fn board_part_number(&self) -> Result<String> {
        self.0
            .query(|handle| text(|to, room| nvml!(nvmlDeviceGetBoardPartNumber(handle, to, room))))
    }

    /// Start, in seconds since 1970, and duration of the last flush of the black box object.
    ///
    /// Source: `nvmlDeviceGetLastBBXFlushTime`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`](crate::Error::Nvml).
    pub fn black_box_flush(&self) -> Result<(u64, Duration)> {
        self.0.query(|handle| {
            let (mut start, mut duration): (c_ulonglong, c_ulong) = (0, 0);
            nvml!(nvmlDeviceGetLastBBXFlushTime(
                handle,
                &mut start,
                &mut duration
            ))?;
            #[allow(clippy::useless_conversion)] // `c_ulong` has 32 bits on Windows
            Ok((start, Duration::from_micros(duration.into())))
        })
    }

    /// Verifies the checksums.
    ///
    /// Source: `nvmlDeviceValidateInforom`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`](crate::Error::Nvml) with `NVML_ERROR_CORRUPTED_INFOROM`.
    pub fn validate(&self) -> Result<()> {
        self.0
            .query(|handle| nvml!(nvmlDeviceValidateInforom(handle)))
    }
}
