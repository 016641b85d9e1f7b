//! Events of devices and of the system.
//!
//! An event set belongs to the initialisation of NVML in which it was created. It is not used in a later one, nor in a
//! forked child.

use std::time::{Duration, Instant};

use cupyrite_sys::nvml::{
    nvmlEventData_st, nvmlEventSet_t, nvmlReturn_t, nvmlSystemEventData_v1_t, nvmlSystemEventSet_t,
    nvmlSystemEventSetCreateRequest_v1_t, nvmlSystemEventSetFreeRequest_v1_t,
    nvmlSystemEventSetWaitRequest_v1_t, nvmlSystemRegisterEventRequest_v1_t,
};

use super::device::Device;
use super::library::{call, initialise, is_current, nvml, version};
use super::types::{EventType, SystemEventType};
use crate::error::{Error, Result};

/// An event of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceEvent {
    /// The device.
    pub device: Device,
    /// What happened; `None` if this crate does not know it.
    pub kind: Option<EventType>,
    /// The Xid of [`EventType::XidCriticalError`]; 0 for other events.
    pub xid: u64,
    /// The GPU instance (MIG) of an Xid; `None` if the device is not partitioned.
    pub gpu_instance: Option<u32>,
    /// The compute instance (MIG) of an Xid; `None` if the device is not partitioned.
    pub compute_instance: Option<u32>,
}

/// An event of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemEvent {
    /// What happened; `None` if this crate does not know it.
    pub kind: Option<SystemEventType>,
    /// PCI position of the device: domain, bus and device in 16, 8 and 8 bits.
    pub gpu_id: u32,
}

impl SystemEvent {
    /// The device.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`] if the driver no longer has it.
    pub fn device(&self) -> Result<Device> {
        let id = self.gpu_id;
        let (domain, bus, device) = (id >> 16, id >> 8 & 0xFF, id & 0xFF);
        Device::from_pci_bus_id(&format!("{domain:08X}:{bus:02X}:{device:02X}.0"))
    }
}

/// Waits in steps, as NVML's timeout has 32 bits of milliseconds. `None` after `timeout`; without one, there is no limit.
fn wait<T>(timeout: Option<Duration>, mut step: impl FnMut(u32) -> Result<T>) -> Result<Option<T>> {
    /// Milliseconds of a step.
    const LONGEST: u128 = 60_000;
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    loop {
        let rest = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        let rest = rest.map_or(LONGEST, |rest| rest.as_micros().div_ceil(1000));
        match step(rest.min(LONGEST) as u32) {
            Err(Error::Nvml {
                status: nvmlReturn_t::NVML_ERROR_TIMEOUT,
                ..
            }) => {
                if deadline.is_some_and(|at| Instant::now() >= at) {
                    return Ok(None);
                }
            }
            other => return other.map(Some),
        }
    }
}

/// A set of NVML and the initialisation that it belongs to.
#[derive(Debug)]
struct Set<T> {
    handle: T,
    initialisation: u64,
}

// SAFETY: handles of sets are opaque; NVML's functions may be called by several threads at once.
unsafe impl<T> Send for Set<T> {}
// SAFETY: NVML's functions may be called by several threads at once, also with the same set.
unsafe impl<T> Sync for Set<T> {}

impl<T: Copy> Set<T> {
    /// The handle, if NVML was not initialised anew since.
    fn get(&self, call: &'static str) -> Result<T> {
        if is_current(self.initialisation) {
            return Ok(self.handle);
        }
        let status = nvmlReturn_t::NVML_ERROR_UNINITIALIZED;
        Err(Error::Nvml { call, status })
    }
}

/// Events of devices that are recorded from now on.
#[derive(Debug)]
pub struct DeviceEvents(Set<nvmlEventSet_t>);

impl Device {
    /// The events that the device can report.
    ///
    /// Source: `nvmlDeviceGetSupportedEventTypes`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn supported_events(&self) -> Result<Vec<EventType>> {
        let mask = self
            .number(|handle, to: &mut u64| nvml!(nvmlDeviceGetSupportedEventTypes(handle, to)))?;
        Ok(EventType::in_mask(mask))
    }

    /// Records events from now on. Linux only.
    ///
    /// # Errors
    ///
    /// As [`DeviceEvents::add`].
    pub fn register_events(&self, events: &[EventType]) -> Result<DeviceEvents> {
        let set = DeviceEvents::new()?;
        set.add(self, events)?;
        Ok(set)
    }
}

impl DeviceEvents {
    /// A set without devices.
    ///
    /// Source: `nvmlEventSetCreate`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`]; [`Error::Load`] if there is no NVML.
    pub fn new() -> Result<DeviceEvents> {
        call(|| {
            let initialisation = initialise()?;
            let mut handle: nvmlEventSet_t = std::ptr::null_mut();
            nvml!(nvmlEventSetCreate(&mut handle))?;
            Ok(DeviceEvents(Set {
                handle,
                initialisation,
            }))
        })
    }

    /// Records events of a device too.
    ///
    /// Source: `nvmlDeviceRegisterEvents`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`] with `NVML_ERROR_NOT_SUPPORTED` if the device does not report one of them.
    pub fn add(&self, device: &Device, events: &[EventType]) -> Result<()> {
        let mask = EventType::mask(events);
        device.query(|handle| {
            let set = self.0.get("nvmlDeviceRegisterEvents")?;
            nvml!(nvmlDeviceRegisterEvents(handle, mask, set))
        })
    }

    /// Waits for the next event, at most `timeout`; `None` after that. Without a timeout there is no limit.
    ///
    /// Source: `nvmlEventSetWait_v2`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`] with `NVML_ERROR_UNINITIALIZED` if NVML was shut down meanwhile, or in a forked child.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<Option<DeviceEvent>> {
        /// The instance of a device that is not partitioned.
        const NO_INSTANCE: u32 = u32::MAX;
        let found = wait(timeout, |milliseconds| {
            let set = self.0.get("nvmlEventSetWait_v2")?;
            let mut data = nvmlEventData_st::default();
            nvml!(nvmlEventSetWait_v2(set, &mut data, milliseconds))?;
            Ok(data)
        })?;
        let Some(data) = found else {
            return Ok(None);
        };
        let kind = EventType::of(data.eventType);
        let is_xid = kind == Some(EventType::XidCriticalError);
        let instance = |number: u32| Some(number).filter(|&n| is_xid && n != NO_INSTANCE);
        Ok(Some(DeviceEvent {
            device: Device::of(data.device)?,
            kind,
            xid: if is_xid { data.eventData } else { 0 },
            gpu_instance: instance(data.gpuInstanceId),
            compute_instance: instance(data.computeInstanceId),
        }))
    }
}

impl Drop for DeviceEvents {
    fn drop(&mut self) {
        if let Ok(set) = self.0.get("nvmlEventSetFree") {
            // Fails if NVML was shut down by another library, which freed the set.
            let _ = nvml!(nvmlEventSetFree(set));
        }
    }
}

/// Events of the system that are recorded from now on.
#[derive(Debug)]
pub struct SystemEvents(Set<nvmlSystemEventSet_t>);

impl SystemEvents {
    /// Records events from now on. Linux only.
    ///
    /// Source: `nvmlSystemEventSetCreate`, `nvmlSystemRegisterEvents`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`] with `NVML_ERROR_NO_PERMISSION` without access to the driver's event files.
    pub fn register(events: &[SystemEventType]) -> Result<SystemEvents> {
        let event_types = SystemEventType::mask(events);
        call(|| {
            let initialisation = initialise()?;
            let mut request = nvmlSystemEventSetCreateRequest_v1_t {
                version: version::<nvmlSystemEventSetCreateRequest_v1_t>(1),
                ..Default::default()
            };
            nvml!(nvmlSystemEventSetCreate(&mut request))?;
            let set = SystemEvents(Set {
                handle: request.set,
                initialisation,
            });
            let mut request = nvmlSystemRegisterEventRequest_v1_t {
                version: version::<nvmlSystemRegisterEventRequest_v1_t>(1),
                eventTypes: event_types,
                set: set.0.handle,
            };
            nvml!(nvmlSystemRegisterEvents(&mut request))?;
            Ok(set)
        })
    }

    /// Waits for events, at most `timeout`, and returns up to `most` of them; none after the timeout. Without a timeout there
    /// is no limit.
    ///
    /// Source: `nvmlSystemEventSetWait`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] unless `most` is 1 to 1048576; as [`DeviceEvents::wait`].
    pub fn wait(&self, timeout: Option<Duration>, most: usize) -> Result<Vec<SystemEvent>> {
        if !(1..=1 << 20).contains(&most) {
            let problem = format!("it is {most}; expected 1 to 1048576");
            return Err(Error::argument(
                "system::SystemEvents::wait",
                "most",
                problem,
            ));
        }
        let mut data = vec![nvmlSystemEventData_v1_t::default(); most];
        let found = wait(timeout, |milliseconds| {
            let mut request = nvmlSystemEventSetWaitRequest_v1_t {
                version: version::<nvmlSystemEventSetWaitRequest_v1_t>(1),
                timeoutms: milliseconds,
                set: self.0.get("nvmlSystemEventSetWait")?,
                data: data.as_mut_ptr(),
                dataSize: most as u32,
                numEvent: 0,
            };
            nvml!(nvmlSystemEventSetWait(&mut request))?;
            Ok(request.numEvent as usize)
        })?;
        let events = data.iter().take(found.unwrap_or(0));
        let events = events.map(|event| SystemEvent {
            kind: SystemEventType::of(event.eventType),
            gpu_id: event.gpuId,
        });
        Ok(events.collect())
    }
}

impl Drop for SystemEvents {
    fn drop(&mut self) {
        if let Ok(set) = self.0.get("nvmlSystemEventSetFree") {
            let mut request = nvmlSystemEventSetFreeRequest_v1_t {
                version: version::<nvmlSystemEventSetFreeRequest_v1_t>(1),
                set,
            };
            // Fails if NVML was shut down by another library, which freed the set.
            let _ = nvml!(nvmlSystemEventSetFree(&mut request));
        }
    }
}
