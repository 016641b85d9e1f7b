//! A device: how it is found, and what it is.

use std::ffi::{CString, c_int, c_uint};

use cupyrite_sys::nvml::{
    nvmlBrandType_t, nvmlDevice_t, nvmlDeviceAddressingMode_v1_t, nvmlEnableState_t, nvmlReturn_t,
};

use super::library::{call, nvml, state, text, version};
use super::types::{AddressingMode, Architecture, Brand};
use crate::error::{Error, Result};

/// A device as NVML sees it. [`crate::Device`] is the device for computing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Device {
    uuid: String,
}

/// A text without NUL characters.
fn c_text(text: &str, parameter: &'static str) -> Result<CString> {
    CString::new(text)
        .map_err(|_| Error::argument("system::Device", parameter, "it contains a NUL character"))
}

impl Device {
    /// Number of devices.
    ///
    /// Source: `nvmlDeviceGetCount_v2`.
    ///
    /// # Errors
    ///
    /// As [`driver_version`](super::driver_version).
    pub fn count() -> Result<u32> {
        call(|| {
            let mut count = 0;
            nvml!(nvmlDeviceGetCount_v2(&mut count))?;
            Ok(count)
        })
    }

    /// All devices, by NVML's index.
    ///
    /// # Errors
    ///
    /// As [`driver_version`](super::driver_version).
    pub fn all() -> Result<Vec<Device>> {
        call(|| {
            let mut count = 0;
            nvml!(nvmlDeviceGetCount_v2(&mut count))?;
            (0..count).map(Device::by_index).collect()
        })
    }

    fn by_index(index: u32) -> Result<Device> {
        let mut handle: nvmlDevice_t = std::ptr::null_mut();
        nvml!(nvmlDeviceGetHandleByIndex_v2(index, &mut handle))?;
        Device::of(handle)
    }

    /// The device of a handle that NVML returned.
    pub(super) fn of(handle: nvmlDevice_t) -> Result<Device> {
        let uuid = text(|to, room| nvml!(nvmlDeviceGetUUID(handle, to, room)))?;
        Ok(Device { uuid })
    }

    /// The device of NVML's index, counted from 0. It may differ from CUDA's.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`] with `NVML_ERROR_INVALID_ARGUMENT` if there are not that many devices; as
    /// [`driver_version`](super::driver_version).
    pub fn new(index: u32) -> Result<Device> {
        call(|| Device::by_index(index))
    }

    /// The device of a UUID, with or without its prefix (`GPU-` or `MIG-`).
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`] with `NVML_ERROR_NOT_FOUND` if there is no such device; as
    /// [`driver_version`](super::driver_version).
    pub fn from_uuid(uuid: &str) -> Result<Device> {
        let find = |uuid: String| {
            let device = Device { uuid };
            device.query(|_| Ok(()))?;
            Ok(device)
        };
        let prefix = uuid.get(..4).unwrap_or_default().to_ascii_uppercase();
        if !matches!(prefix.as_str(), "GPU-" | "MIG-") {
            for prefix in ["GPU-", "MIG-"] {
                match find(format!("{prefix}{uuid}")) {
                    Err(Error::Nvml {
                        status:
                            nvmlReturn_t::NVML_ERROR_NOT_FOUND
                            | nvmlReturn_t::NVML_ERROR_INVALID_ARGUMENT,
                        ..
                    }) => {}
                    other => return other,
                }
            }
        }
        find(uuid.to_owned())
    }

    /// The device at a PCI position: `domain:bus:device.function`; domain and function may be left out.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`] with `NVML_ERROR_NOT_FOUND` if there is no such device, and `NVML_ERROR_INVALID_ARGUMENT` for another
    /// text; as [`driver_version`](super::driver_version).
    pub fn from_pci_bus_id(bus_id: &str) -> Result<Device> {
        let bus_id = c_text(bus_id, "bus_id")?;
        call(|| {
            let mut handle: nvmlDevice_t = std::ptr::null_mut();
            nvml!(nvmlDeviceGetHandleByPciBusId_v2(
                bus_id.as_ptr(),
                &mut handle
            ))?;
            Device::of(handle)
        })
    }

    /// Makes a call with the device's handle.
    pub(super) fn query<T>(&self, mut query: impl FnMut(nvmlDevice_t) -> Result<T>) -> Result<T> {
        let uuid = c_text(&self.uuid, "uuid")?;
        call(|| {
            let mut handle: nvmlDevice_t = std::ptr::null_mut();
            nvml!(nvmlDeviceGetHandleByUUID(uuid.as_ptr(), &mut handle))?;
            query(handle)
        })
    }

    /// A number that a function of NVML writes.
    pub(super) fn number<T: Default>(
        &self,
        mut read: impl FnMut(nvmlDevice_t, &mut T) -> Result<()>,
    ) -> Result<T> {
        self.query(|handle| {
            let mut number = T::default();
            read(handle, &mut number)?;
            Ok(number)
        })
    }

    /// Whether a feature is enabled, by a function of NVML.
    pub(super) fn enabled(
        &self,
        mut read: impl FnMut(nvmlDevice_t, &mut nvmlEnableState_t) -> Result<()>,
    ) -> Result<bool> {
        self.query(|handle| {
            let mut found = state(false);
            read(handle, &mut found)?;
            Ok(found == state(true))
        })
    }

    /// UUID with its prefix: `GPU-` or `MIG-`, and five groups of hexadecimal digits.
    pub fn uuid(&self) -> &str {
        &self.uuid
    }

    /// NVML's index.
    ///
    /// Source: `nvmlDeviceGetIndex`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn index(&self) -> Result<u32> {
        self.number(|handle, to: &mut c_uint| nvml!(nvmlDeviceGetIndex(handle, to)))
    }

    /// Name of the product.
    ///
    /// Source: `nvmlDeviceGetName`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn name(&self) -> Result<String> {
        self.query(|handle| text(|to, room| nvml!(nvmlDeviceGetName(handle, to, room))))
    }

    /// Brand; `None` if the driver reports none, or one that this crate does not know.
    ///
    /// Source: `nvmlDeviceGetBrand`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn brand(&self) -> Result<Option<Brand>> {
        self.query(|handle| {
            let mut brand = nvmlBrandType_t::NVML_BRAND_UNKNOWN;
            nvml!(nvmlDeviceGetBrand(handle, &mut brand))?;
            Ok(Brand::of(brand))
        })
    }

    /// Serial number of the board.
    ///
    /// Source: `nvmlDeviceGetSerial`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`] with `NVML_ERROR_NOT_SUPPORTED` without an InfoROM.
    pub fn serial(&self) -> Result<String> {
        self.query(|handle| text(|to, room| nvml!(nvmlDeviceGetSerial(handle, to, room))))
    }

    /// Architecture; `None` if this crate does not know it.
    ///
    /// Source: `nvmlDeviceGetArchitecture`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn architecture(&self) -> Result<Option<Architecture>> {
        let number =
            self.number(|handle, to: &mut c_uint| nvml!(nvmlDeviceGetArchitecture(handle, to)))?;
        Ok(Architecture::of(number))
    }

    /// Compute capability, (major, minor).
    ///
    /// Source: `nvmlDeviceGetCudaComputeCapability`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn compute_capability(&self) -> Result<(i32, i32)> {
        self.number(|handle, to: &mut (c_int, c_int)| {
            nvml!(nvmlDeviceGetCudaComputeCapability(
                handle, &mut to.0, &mut to.1
            ))
        })
    }

    /// Number of the device node `/dev/nvidiaX`. Linux only.
    ///
    /// Source: `nvmlDeviceGetMinorNumber`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn minor_number(&self) -> Result<u32> {
        self.number(|handle, to: &mut c_uint| nvml!(nvmlDeviceGetMinorNumber(handle, to)))
    }

    /// Number of the module on its baseboard; 0 without a baseboard.
    ///
    /// Source: `nvmlDeviceGetModuleId`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn module_id(&self) -> Result<u32> {
        self.number(|handle, to: &mut c_uint| nvml!(nvmlDeviceGetModuleId(handle, to)))
    }

    /// Whether the driver stays loaded without clients. Linux only.
    ///
    /// Source: `nvmlDeviceGetPersistenceMode`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn is_persistence_mode_enabled(&self) -> Result<bool> {
        self.enabled(|handle, to| nvml!(nvmlDeviceGetPersistenceMode(handle, to)))
    }

    /// Lets the driver stay loaded without clients, or not. Linux only; requires root.
    ///
    /// Source: `nvmlDeviceSetPersistenceMode`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`] with `NVML_ERROR_NO_PERMISSION`.
    pub fn set_persistence_mode(&self, enabled: bool) -> Result<()> {
        self.query(|handle| nvml!(nvmlDeviceSetPersistenceMode(handle, state(enabled))))
    }

    /// Whether a display is connected.
    ///
    /// Source: `nvmlDeviceGetDisplayMode`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn is_display_connected(&self) -> Result<bool> {
        self.enabled(|handle, to| nvml!(nvmlDeviceGetDisplayMode(handle, to)))
    }

    /// Whether a display is initialised on the device, connected or not.
    ///
    /// Source: `nvmlDeviceGetDisplayActive`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn is_display_active(&self) -> Result<bool> {
        self.enabled(|handle, to| nvml!(nvmlDeviceGetDisplayActive(handle, to)))
    }

    /// Whether the chip-to-chip interconnect is enabled.
    ///
    /// Source: `nvmlDeviceGetC2cModeInfoV`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn is_c2c_enabled(&self) -> Result<bool> {
        self.query(|handle| {
            let mut info = cupyrite_sys::nvml::nvmlC2cModeInfo_v1_t::default();
            nvml!(nvmlDeviceGetC2cModeInfoV(handle, &mut info))?;
            Ok(info.isC2cEnabled != 0)
        })
    }

    /// How the device addresses pageable memory of the host; `None` if it cannot.
    ///
    /// Source: `nvmlDeviceGetAddressingMode`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn addressing_mode(&self) -> Result<Option<AddressingMode>> {
        self.query(|handle| {
            let mut mode = nvmlDeviceAddressingMode_v1_t {
                version: version::<nvmlDeviceAddressingMode_v1_t>(1),
                ..Default::default()
            };
            nvml!(nvmlDeviceGetAddressingMode(handle, &mut mode))?;
            Ok(AddressingMode::of(mode.value))
        })
    }

    /// The device for computing with the same UUID; `None` if CUDA does not see it, because `CUDA_VISIBLE_DEVICES` hides
    /// it or it is partitioned (MIG).
    ///
    /// # Errors
    ///
    /// The driver's.
    pub fn to_cuda_device(&self) -> Result<Option<crate::Device>> {
        let digits = |text: &str| text.replace('-', "").to_ascii_lowercase();
        let wanted = digits(self.uuid.get(4..).unwrap_or_default());
        for device in crate::Device::all()? {
            let uuid: String = device.uuid()?.iter().map(|b| format!("{b:02x}")).collect();
            if uuid == wanted {
                return Ok(Some(device));
            }
        }
        Ok(None)
    }
}

impl crate::Device {
    /// The same device as NVML sees it.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`] if NVML does not have the device; [`Error::Load`] if there is no NVML.
    pub fn to_system_device(&self) -> Result<Device> {
        let mut groups = String::new();
        for (at, byte) in self.uuid()?.iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                groups.push('-');
            }
            groups.push_str(&format!("{byte:02x}"));
        }
        match Device::from_uuid(&format!("GPU-{groups}")) {
            Err(Error::Nvml {
                status: nvmlReturn_t::NVML_ERROR_NOT_FOUND,
                ..
            }) => Device::from_uuid(&format!("MIG-{groups}")),
            found => found,
        }
    }
}
