//! The machine and its devices as NVML, the management library, sees them.
//!
//! Belongs here: everything that `cuda.core.system` offers. All functions of NVML are in `cupyrite::sys::nvml`.
//!
//! NVML is initialised by the first call of each process. If another library shut it down more often than it had
//! initialised it, the call is repeated after a new initialisation; so devices are looked up again with each call, by
//! their UUID.
//!
//! Errors name NVML's function: [`Error::Nvml`](crate::Error::Nvml), with `NVML_ERROR_NOT_SUPPORTED` where the device lacks
//! the feature and `NVML_ERROR_NO_PERMISSION` where the user lacks the rights. [`Error::Load`](crate::Error::Load) if there is
//! no NVML.
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

mod clocks;
mod cooling;
mod device;
mod events;
mod fields;
mod inforom;
mod library;
mod machine;
mod mig;
mod pci;
mod readings;
mod topology;
mod types;

pub use self::clocks::{Clock, ClockOffsets};
pub use self::cooling::{Cooler, Fan, ThermalSensor};
pub use self::device::Device;
pub use self::events::{DeviceEvent, DeviceEvents, SystemEvent, SystemEvents};
pub use self::fields::{FieldNumber, FieldValue};
pub use self::inforom::Inforom;
pub use self::machine::{
    cuda_driver_version, driver_branch, driver_version, nvml_version, process_name,
};
pub use self::mig::Mig;
pub use self::pci::{PciInfo, PcieLink};
pub use self::readings::{
    BarMemoryInfo, DeviceResources, DomainUtilization, MemoryInfo, ProcessInfo, RepairStatus,
    Utilization,
};
pub use self::topology::NvLink;
pub use self::types::{
    AddressingMode, AffinityScope, Architecture, Brand, ClockEventReason, ClockId, ClockType,
    CoolerControl, CoolerTarget, EventType, FanControlPolicy, InforomObject, PeerCapability,
    PeerStatus, SystemEventType, TemperatureThreshold, ThermalController, ThermalTarget,
    TopologyLevel,
};
