//! Devices of the process, and their properties.

use std::ffi::{CStr, c_char, c_int};
use std::fmt;
use std::sync::OnceLock;

use cupyrite_sys::driver::{CUdevice, CUdevice_attribute, CUresult, CUuuid};

use crate::context::current::current_handle;
use crate::context::handle::{Context, Device, DeviceState};
use crate::error::{Error, Result, driver};

static TABLE: OnceLock<Vec<DeviceState>> = OnceLock::new();

/// All devices; initialises the driver.
#[inline]
fn table() -> Result<&'static [DeviceState]> {
    match TABLE.get() {
        Some(table) => Ok(table),
        None => initialise(),
    }
}

#[cold]
fn initialise() -> Result<&'static [DeviceState]> {
    let mut count: c_int = 0;
    // SAFETY: `cuInit` takes a plain integer; `count` is valid for writes.
    unsafe {
        driver!(cuInit(0))?;
        crate::fork::mark_driver_used();
        driver!(cuDeviceGetCount(&mut count))?;
    }
    let mut made = Vec::new();
    for ordinal in 0..count {
        let mut handle = CUdevice::default();
        // SAFETY: `handle` is valid for writes.
        unsafe { driver!(cuDeviceGet(&mut handle, ordinal))? };
        made.push(DeviceState {
            handle,
            ordinal: ordinal as usize,
            primary: OnceLock::new(),
        });
    }
    // Threads that race here build equal tables.
    Ok(TABLE.get_or_init(|| made))
}

/// A device's compute capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComputeCapability {
    /// The major number.
    pub major: u32,
    /// The minor number.
    pub minor: u32,
}

impl fmt::Display for ComputeCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl Device {
    /// Opens the device with the given ordinal, counted from 0.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if there are not that many devices; [`Error::Load`] if there is no driver and the
    /// CPU device is not allowed; otherwise the driver's error.
    pub fn new(ordinal: usize) -> Result<Device> {
        let table = table()?;
        match table.get(ordinal) {
            Some(shared) => Ok(Device { shared }),
            None => {
                let problem = format!(
                    "is {ordinal}, but there {}",
                    match table.len() {
                        0 => "is no device".to_owned(),
                        1 => "is one device, number 0".to_owned(),
                        n => format!("are {n} devices, numbers 0 to {}", n - 1),
                    }
                );
                Err(Error::argument("Device::new", "ordinal", problem))
            }
        }
    }

    /// Number of devices.
    ///
    /// # Errors
    ///
    /// [`Error::Load`], or the driver's error: initialisation fails with `CUDA_ERROR_NO_DEVICE` on a machine with a
    /// driver but no GPU.
    pub fn count() -> Result<usize> {
        table().map(<[DeviceState]>::len)
    }

    /// All devices.
    ///
    /// # Errors
    ///
    /// Same as [`Device::count`].
    pub fn all() -> Result<Vec<Device>> {
        Ok(table()?.iter().map(|shared| Device { shared }).collect())
    }

    /// The device of the calling thread's current context; device 0 if the thread has none.
    ///
    /// # Errors
    ///
    /// As [`Device::new`]. Source: `cuCtxGetCurrent`, `cuCtxGetDevice`.
    #[inline]
    pub fn current() -> Result<Device> {
        let table = table()?;
        // `cuCtxGetDevice` fails without a current context, and a failing call waits for the callbacks of the driver's
        // log; `cuCtxGetCurrent` does not. The context is nearly always a primary one, which is known.
        let handle = current_handle()?;
        if handle.is_null() {
            return match table.first() {
                Some(shared) => Ok(Device { shared }),
                None => Device::new(0),
            };
        }
        let primary = |shared: &&DeviceState| {
            shared
                .primary
                .get()
                .is_some_and(|context| context.handle() == handle)
        };
        if let Some(shared) = table.iter().find(primary) {
            return Ok(Device { shared });
        }
        let mut device = CUdevice::default();
        // SAFETY: `device` is valid for writes.
        unsafe { driver!(cuCtxGetDevice(&mut device))? };
        Device::from_handle(device)
    }

    /// The device with this handle.
    #[inline]
    pub(crate) fn from_handle(handle: CUdevice) -> Result<Device> {
        let table = table()?;
        // Handles equal ordinals on every known platform; checked, not assumed.
        usize::try_from(handle)
            .ok()
            .and_then(|index| table.get(index))
            .filter(|shared| shared.handle == handle)
            .or_else(|| table.iter().find(|shared| shared.handle == handle))
            .map(|shared| Device { shared })
            .ok_or_else(|| Error::driver("cuCtxGetDevice", CUresult::CUDA_ERROR_INVALID_DEVICE))
    }

    /// The primary contexts that this crate has retained.
    pub(crate) fn retained() -> impl Iterator<Item = &'static Context> {
        TABLE
            .get()
            .into_iter()
            .flatten()
            .filter_map(|shared| shared.primary.get())
    }

    /// Whether kernels of this device can access the memory of another one.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuDeviceCanAccessPeer`.
    pub fn can_access_peer(&self, peer: Device) -> Result<bool> {
        let mut can: c_int = 0;
        // SAFETY: `can` is valid for writes.
        unsafe {
            driver!(cuDeviceCanAccessPeer(
                &mut can,
                self.handle(),
                peer.handle()
            ))?
        };
        Ok(can != 0)
    }

    /// The PCI bus address, `domain:bus:device.function` in hexadecimal.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuDeviceGetPCIBusId`.
    pub fn pci_bus_id(&self) -> Result<String> {
        let mut text = [0 as c_char; 64];
        // SAFETY: the length passed is that of the buffer.
        unsafe {
            driver!(cuDeviceGetPCIBusId(
                text.as_mut_ptr(),
                text.len() as c_int,
                self.handle()
            ))?
        };
        text[text.len() - 1] = 0;
        // SAFETY: terminated just above.
        Ok(unsafe { CStr::from_ptr(text.as_ptr()) }
            .to_string_lossy()
            .into_owned())
    }

    /// The name of the device; that of the CPU device begins with `CPU`.
    ///
    /// # Errors
    ///
    /// The driver's error.
    pub fn name(&self) -> Result<String> {
        let mut name = [0 as c_char; 256];
        // SAFETY: the length passed is that of the buffer.
        unsafe {
            driver!(cuDeviceGetName(
                name.as_mut_ptr(),
                name.len() as c_int,
                self.handle()
            ))?
        };
        name[name.len() - 1] = 0;
        // SAFETY: terminated just above.
        Ok(unsafe { CStr::from_ptr(name.as_ptr()) }
            .to_string_lossy()
            .into_owned())
    }

    /// The device's UUID.
    ///
    /// # Errors
    ///
    /// The driver's error.
    pub fn uuid(&self) -> Result<[u8; 16]> {
        let mut uuid = CUuuid::default();
        // SAFETY: `uuid` is valid for writes.
        unsafe { driver!(cuDeviceGetUuid(&mut uuid, self.handle()))? };
        Ok(uuid.bytes.map(|b| b as u8))
    }

    /// Size of the memory in bytes.
    ///
    /// # Errors
    ///
    /// The driver's error.
    pub fn total_memory(&self) -> Result<usize> {
        let mut bytes = 0usize;
        // SAFETY: `bytes` is valid for writes.
        unsafe { driver!(cuDeviceTotalMem(&mut bytes, self.handle()))? };
        Ok(bytes)
    }

    /// Queries an attribute.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for an attribute that the driver does not know.
    pub fn attribute(&self, attribute: CUdevice_attribute) -> Result<i32> {
        let mut value: c_int = 0;
        // SAFETY: `value` is valid for writes.
        unsafe { driver!(cuDeviceGetAttribute(&mut value, attribute, self.handle()))? };
        Ok(value)
    }

    /// The compute capability, such as 9.0.
    ///
    /// # Errors
    ///
    /// The driver's error.
    pub fn compute_capability(&self) -> Result<ComputeCapability> {
        let major =
            self.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor =
            self.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        Ok(ComputeCapability {
            major: major as u32,
            minor: minor as u32,
        })
    }
}
