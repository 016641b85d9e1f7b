//! The machine and its devices as NVML, the management library, sees them.
//!
//! Belongs here: the queries that programs make most. All functions of NVML are in `cupyrite::sys::nvml`.
//!
//! NVML is initialised by the first call of each process. If another library shut it down more often than it had
//! initialised it, the call is repeated after a new initialisation; so devices are looked up again with each call, by
//! their UUID.
//!
//! ```no_run
//! use cupyrite::system;
//!
//! # fn main() -> cupyrite::Result<()> {
//! for device in system::Device::all()? {
//!     let memory = device.memory_info()?;
//!     println!("{} {}: {} of {} bytes free", device.uuid(), device.name()?, memory.free, memory.total);
//! }
//! # Ok(()) }
//! ```

use std::ffi::{CStr, CString, c_char, c_uint};

use cupyrite_sys::nvml::{
    self, nvmlDevice_t, nvmlMemory_v2_st, nvmlProcessInfo_v2_st, nvmlReturn_t, nvmlUtilization_st,
};
use parking_lot::Mutex;

use crate::error::{Error, Result};

/// The process in which NVML was initialised, and the number of initialisations.
static INITIALISED: Mutex<(u32, u64)> = Mutex::new((0, 0));

/// Calls a function of NVML.
macro_rules! nvml {
    ($name:ident($($arg:expr),* $(,)?)) => {
        // SAFETY: the caller of the macro passes what the function's documentation asks for.
        match unsafe { nvml::$name($($arg),*) } {
            Ok(nvmlReturn_t::NVML_SUCCESS) => Ok(()),
            Ok(status) => Err(Error::Nvml { call: stringify!($name), status }),
            Err(error) => Err(Error::from(error.clone())),
        }
    };
}

/// Initialises NVML once per process; returns the number of the initialisation.
fn initialise() -> Result<u64> {
    crate::backend::init_software_driver();
    let mut state = INITIALISED.lock();
    if state.0 != std::process::id() {
        nvml!(nvmlInit_v2())?;
        *state = (std::process::id(), state.1 + 1);
    }
    Ok(state.1)
}

/// Makes a call; once more if NVML was shut down meanwhile.
fn call<T>(mut query: impl FnMut() -> Result<T>) -> Result<T> {
    let seen = initialise()?;
    match query() {
        Err(Error::Nvml {
            status: nvmlReturn_t::NVML_ERROR_UNINITIALIZED,
            ..
        }) => {
            let mut state = INITIALISED.lock();
            if state.1 == seen {
                state.0 = 0;
            }
            drop(state);
            initialise()?;
            query()
        }
        other => other,
    }
}

/// A text that NVML writes to a buffer.
fn text(write: impl FnOnce(*mut c_char, c_uint) -> Result<()>) -> Result<String> {
    let mut buffer = [0 as c_char; 256];
    write(buffer.as_mut_ptr(), 255)?;
    // SAFETY: the last byte is zero, whatever was written before it.
    let text = unsafe { CStr::from_ptr(buffer.as_ptr()) };
    Ok(text.to_string_lossy().into_owned())
}

/// Version of the driver, for example `580.65.06`.
///
/// Source: `nvmlSystemGetDriverVersion`.
///
/// # Errors
///
/// [`Error::Load`] if there is no NVML; [`Error::Nvml`].
pub fn driver_version() -> Result<String> {
    call(|| text(|to, room| nvml!(nvmlSystemGetDriverVersion(to, room))))
}

/// Version of NVML.
///
/// Source: `nvmlSystemGetNVMLVersion`.
///
/// # Errors
///
/// As [`driver_version`].
pub fn nvml_version() -> Result<String> {
    call(|| text(|to, room| nvml!(nvmlSystemGetNVMLVersion(to, room))))
}

/// Name of a process.
///
/// Source: `nvmlSystemGetProcessName`.
///
/// # Errors
///
/// [`Error::Nvml`] with `NVML_ERROR_NOT_FOUND` if there is no such process; as [`driver_version`].
pub fn process_name(pid: u32) -> Result<String> {
    call(|| text(|to, room| nvml!(nvmlSystemGetProcessName(pid, to, room))))
}

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

/// Utilisation during the last sample period in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Utilization {
    /// Time in which a kernel was running.
    pub gpu: u32,
    /// Time in which device memory was read or written.
    pub memory: u32,
}

/// A process with a compute context on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessInfo {
    /// Process id.
    pub pid: u32,
    /// Device memory in bytes; `None` if the system does not report it.
    pub used_memory: Option<u64>,
}

/// A device as NVML sees it. [`crate::Device`] is the device for computing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Device {
    uuid: String,
}

impl Device {
    /// All devices, by NVML's index.
    ///
    /// # Errors
    ///
    /// As [`driver_version`].
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
        let uuid = text(|to, room| nvml!(nvmlDeviceGetUUID(handle, to, room)))?;
        Ok(Device { uuid })
    }

    /// The device of NVML's index, counted from 0. It may differ from CUDA's.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`] with `NVML_ERROR_INVALID_ARGUMENT` if there are not that many devices; as [`driver_version`].
    pub fn new(index: u32) -> Result<Device> {
        call(|| Device::by_index(index))
    }

    /// The device of a UUID, with its prefix (`GPU-` or `MIG-`).
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`] with `NVML_ERROR_NOT_FOUND` if there is no such device; as [`driver_version`].
    pub fn from_uuid(uuid: &str) -> Result<Device> {
        let device = Device {
            uuid: uuid.to_owned(),
        };
        device.query(|_| Ok(()))?;
        Ok(device)
    }

    /// Makes a call with the device's handle.
    fn query<T>(&self, mut query: impl FnMut(nvmlDevice_t) -> Result<T>) -> Result<T> {
        let uuid = CString::new(self.uuid.as_str()).map_err(|_| {
            Error::argument("system::Device", "uuid", "it contains a NUL character")
        })?;
        call(|| {
            let mut handle: nvmlDevice_t = std::ptr::null_mut();
            nvml!(nvmlDeviceGetHandleByUUID(uuid.as_ptr(), &mut handle))?;
            query(handle)
        })
    }

    /// UUID with its prefix: `GPU-` or `MIG-`, and five groups of hexadecimal digits.
    pub fn uuid(&self) -> &str {
        &self.uuid
    }

    /// NVML's index.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn index(&self) -> Result<u32> {
        let mut index = 0;
        self.query(|handle| nvml!(nvmlDeviceGetIndex(handle, &mut index)))?;
        Ok(index)
    }

    /// Name of the product.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn name(&self) -> Result<String> {
        self.query(|handle| text(|to, room| nvml!(nvmlDeviceGetName(handle, to, room))))
    }

    /// Memory of the device.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn memory_info(&self) -> Result<MemoryInfo> {
        self.query(|handle| {
            let mut info = nvmlMemory_v2_st {
                version: size_of::<nvmlMemory_v2_st>() as u32 | 2 << 24,
                total: 0,
                reserved: 0,
                free: 0,
                used: 0,
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

    /// Utilisation during the last sample period.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn utilization(&self) -> Result<Utilization> {
        self.query(|handle| {
            let mut rates = nvmlUtilization_st { gpu: 0, memory: 0 };
            nvml!(nvmlDeviceGetUtilizationRates(handle, &mut rates))?;
            Ok(Utilization {
                gpu: rates.gpu,
                memory: rates.memory,
            })
        })
    }

    /// Processes with a compute context on the device.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn compute_processes(&self) -> Result<Vec<ProcessInfo>> {
        const NOT_AVAILABLE: u64 = u64::MAX;
        const EMPTY: nvmlProcessInfo_v2_st = nvmlProcessInfo_v2_st {
            pid: 0,
            usedGpuMemory: 0,
            gpuInstanceId: 0,
            computeInstanceId: 0,
        };
        self.query(|handle| {
            let mut room = 16;
            loop {
                let mut infos = vec![EMPTY; room];
                let mut count = room as c_uint;
                let listed = nvml!(nvmlDeviceGetComputeRunningProcesses_v3(
                    handle,
                    &mut count,
                    infos.as_mut_ptr()
                ));
                match listed {
                    // Processes may start between two calls.
                    Err(Error::Nvml {
                        status: nvmlReturn_t::NVML_ERROR_INSUFFICIENT_SIZE,
                        ..
                    }) if room < 1 << 20 => room = (count as usize + 16).max(2 * room),
                    Err(error) => return Err(error),
                    Ok(()) => {
                        infos.truncate(count as usize);
                        let info = |info: &nvmlProcessInfo_v2_st| ProcessInfo {
                            pid: info.pid,
                            used_memory: Some(info.usedGpuMemory)
                                .filter(|&bytes| bytes != NOT_AVAILABLE),
                        };
                        return Ok(infos.iter().map(info).collect());
                    }
                }
            }
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
