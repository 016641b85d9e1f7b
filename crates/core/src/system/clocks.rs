//! Clocks and performance states of a device.

use std::ffi::c_uint;

use cupyrite_sys::nvml::{nvmlClockOffset_v1_t, nvmlPstates_t};

use super::device::Device;
use super::library::{nvml, state, version};
use super::types::{ClockEventReason, ClockId, ClockType};
use crate::error::{Error, Result};

/// One clock domain of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clock {
    device: Device,
    domain: ClockType,
}

/// Offsets of a clock in MHz.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOffsets {
    /// Current offset.
    pub current: i32,
    /// Smallest offset.
    pub min: i32,
    /// Largest offset.
    pub max: i32,
}

/// The number of a performance state.
fn checked(performance_state: u32, function: &'static str) -> Result<nvmlPstates_t> {
    if performance_state > 15 {
        let problem = format!("it is {performance_state}; expected 0 (fastest) to 15 (slowest)");
        return Err(Error::argument(function, "performance_state", problem));
    }
    Ok(nvmlPstates_t(performance_state))
}

/// A performance state, 0 to 15; `None` if it is unknown.
fn known(state: nvmlPstates_t) -> Option<u32> {
    (state.0 <= 15).then_some(state.0)
}

impl Device {
    /// A clock domain.
    pub fn clock(&self, domain: ClockType) -> Clock {
        Clock {
            device: self.clone(),
            domain,
        }
    }

    /// Whether clocks are boosted automatically, now and by default.
    ///
    /// Source: `nvmlDeviceGetAutoBoostedClocksEnabled`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`] with `NVML_ERROR_NOT_SUPPORTED` without auto-boosted clocks.
    pub fn is_auto_boost_enabled(&self) -> Result<(bool, bool)> {
        self.query(|handle| {
            let (mut now, mut by_default) = (state(false), state(false));
            nvml!(nvmlDeviceGetAutoBoostedClocksEnabled(
                handle,
                &mut now,
                &mut by_default
            ))?;
            Ok((now == state(true), by_default == state(true)))
        })
    }

    /// Why clocks are lower than the maximum; empty if they are not.
    ///
    /// Source: `nvmlDeviceGetCurrentClocksEventReasons`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn clock_event_reasons(&self) -> Result<Vec<ClockEventReason>> {
        let mask = self.number(|handle, to: &mut u64| {
            nvml!(nvmlDeviceGetCurrentClocksEventReasons(handle, to))
        })?;
        Ok(ClockEventReason::in_mask(mask))
    }

    /// The reasons that the device can report.
    ///
    /// Source: `nvmlDeviceGetSupportedClocksEventReasons`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn supported_clock_event_reasons(&self) -> Result<Vec<ClockEventReason>> {
        let mask = self.number(|handle, to: &mut u64| {
            nvml!(nvmlDeviceGetSupportedClocksEventReasons(handle, to))
        })?;
        Ok(ClockEventReason::in_mask(mask))
    }

    /// Performance state, 0 (fastest) to 15 (slowest); `None` if it is unknown.
    ///
    /// Source: `nvmlDeviceGetPerformanceState`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn performance_state(&self) -> Result<Option<u32>> {
        self.query(|handle| {
            let mut found = nvmlPstates_t::NVML_PSTATE_UNKNOWN;
            nvml!(nvmlDeviceGetPerformanceState(handle, &mut found))?;
            Ok(known(found))
        })
    }

    /// Performance states of the device, 0 (fastest) to 15 (slowest).
    ///
    /// Source: `nvmlDeviceGetSupportedPerformanceStates`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn supported_performance_states(&self) -> Result<Vec<u32>> {
        self.query(|handle| {
            let mut found = [nvmlPstates_t::NVML_PSTATE_UNKNOWN; 16];
            let bytes = size_of_val(&found) as c_uint;
            nvml!(nvmlDeviceGetSupportedPerformanceStates(
                handle,
                found.as_mut_ptr(),
                bytes
            ))?;
            Ok(found.into_iter().filter_map(known).collect())
        })
    }
}

impl Clock {
    /// Frequency in MHz.
    ///
    /// Source: `nvmlDeviceGetClock`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn mhz(&self, id: ClockId) -> Result<u32> {
        let (domain, id) = (self.domain.number(), id.number());
        self.device
            .number(|handle, to: &mut c_uint| nvml!(nvmlDeviceGetClock(handle, domain, id, to)))
    }

    /// Highest frequency in MHz.
    ///
    /// Source: `nvmlDeviceGetMaxClockInfo`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn max_mhz(&self) -> Result<u32> {
        let domain = self.domain.number();
        self.device
            .number(|handle, to: &mut c_uint| nvml!(nvmlDeviceGetMaxClockInfo(handle, domain, to)))
    }

    /// Highest boost frequency that the manufacturer defined, in MHz.
    ///
    /// Source: `nvmlDeviceGetMaxCustomerBoostClock`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn max_customer_boost_mhz(&self) -> Result<u32> {
        let domain = self.domain.number();
        self.device.number(|handle, to: &mut c_uint| {
            nvml!(nvmlDeviceGetMaxCustomerBoostClock(handle, domain, to))
        })
    }

    /// Lowest and highest frequency of a performance state (0 to 15), in MHz.
    ///
    /// Source: `nvmlDeviceGetMinMaxClockOfPState`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for another state; [`Error::Nvml`].
    pub fn range_mhz(&self, performance_state: u32) -> Result<(u32, u32)> {
        let number = checked(performance_state, "system::Clock::range_mhz")?;
        let domain = self.domain.number();
        self.device.number(|handle, to: &mut (c_uint, c_uint)| {
            nvml!(nvmlDeviceGetMinMaxClockOfPState(
                handle, domain, number, &mut to.0, &mut to.1
            ))
        })
    }

    /// Offsets of a performance state (0 to 15).
    ///
    /// Source: `nvmlDeviceGetClockOffsets`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for another state; [`Error::Nvml`].
    pub fn offsets(&self, performance_state: u32) -> Result<ClockOffsets> {
        let number = checked(performance_state, "system::Clock::offsets")?;
        let domain = self.domain.number();
        self.device.query(|handle| {
            let mut info = nvmlClockOffset_v1_t {
                version: version::<nvmlClockOffset_v1_t>(1),
                r#type: domain,
                pstate: number,
                ..Default::default()
            };
            nvml!(nvmlDeviceGetClockOffsets(handle, &mut info))?;
            Ok(ClockOffsets {
                current: info.clockOffsetMHz,
                min: info.minClockOffsetMHz,
                max: info.maxClockOffsetMHz,
            })
        })
    }
}
