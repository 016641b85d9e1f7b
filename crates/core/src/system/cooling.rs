//! Temperatures, fans and coolers of a device.

use std::ffi::c_uint;

use cupyrite_sys::nvml::{
    nvmlCoolerInfo_v1_t, nvmlFanSpeedInfo_v1_t, nvmlGpuThermalSettings_t,
    nvmlMarginTemperature_v1_t, nvmlTemperature_v1_t, nvmlTemperatureSensors_t,
};

use super::device::Device;
use super::library::{nvml, version};
use super::types::{
    CoolerControl, CoolerTarget, FanControlPolicy, TemperatureThreshold, ThermalController,
    ThermalTarget,
};
use crate::error::{Error, Result};

/// One thermal sensor; temperatures in degrees Celsius.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThermalSensor {
    /// Its controller; `None` if this crate does not know it.
    pub controller: Option<ThermalController>,
    /// Lowest temperature that it measures by default.
    pub default_min: i32,
    /// Highest temperature that it measures by default.
    pub default_max: i32,
    /// Current temperature.
    pub current: i32,
    /// What it measures; `None` if this crate does not know it.
    pub target: Option<ThermalTarget>,
}

/// How a cooler is controlled and what it cools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cooler {
    /// How it is controlled; `None` if it is not.
    pub control: Option<CoolerControl>,
    /// What it cools.
    pub targets: Vec<CoolerTarget>,
}

/// One fan of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fan {
    device: Device,
    number: u32,
}

impl Device {
    /// Temperature of the GPU in degrees Celsius.
    ///
    /// Source: `nvmlDeviceGetTemperatureV`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn temperature(&self) -> Result<i32> {
        self.query(|handle| {
            let mut info = nvmlTemperature_v1_t {
                version: version::<nvmlTemperature_v1_t>(1),
                sensorType: nvmlTemperatureSensors_t::NVML_TEMPERATURE_GPU,
                temperature: 0,
            };
            nvml!(nvmlDeviceGetTemperatureV(handle, &mut info))?;
            Ok(info.temperature)
        })
    }

    /// Distance to the nearest slowdown threshold in degrees Celsius.
    ///
    /// Source: `nvmlDeviceGetMarginTemperature`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn temperature_margin(&self) -> Result<i32> {
        self.query(|handle| {
            let mut info = nvmlMarginTemperature_v1_t {
                version: version::<nvmlMarginTemperature_v1_t>(1),
                marginTemperature: 0,
            };
            nvml!(nvmlDeviceGetMarginTemperature(handle, &mut info))?;
            Ok(info.marginTemperature)
        })
    }

    /// A threshold in degrees Celsius. For Ada and later GPUs NVIDIA recommends the fields `NVML_FI_DEV_TEMPERATURE_*`
    /// of [`Device::field_values`].
    ///
    /// Source: `nvmlDeviceGetTemperatureThreshold`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn temperature_threshold(&self, threshold: TemperatureThreshold) -> Result<u32> {
        let threshold = threshold.number();
        self.number(|handle, to: &mut c_uint| {
            nvml!(nvmlDeviceGetTemperatureThreshold(handle, threshold, to))
        })
    }

    /// The sensors of a target.
    ///
    /// Source: `nvmlDeviceGetThermalSettings`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn thermal_sensors(&self, target: ThermalTarget) -> Result<Vec<ThermalSensor>> {
        let target = target.number().0.cast_unsigned();
        self.query(|handle| {
            let mut found = nvmlGpuThermalSettings_t::default();
            nvml!(nvmlDeviceGetThermalSettings(handle, target, &mut found))?;
            let sensors = found.sensor.iter().take(found.count as usize);
            let sensors = sensors.map(|sensor| ThermalSensor {
                controller: ThermalController::of(sensor.controller),
                default_min: sensor.defaultMinTemp,
                default_max: sensor.defaultMaxTemp,
                current: sensor.currentTemp,
                target: ThermalTarget::of(sensor.target),
            });
            Ok(sensors.collect())
        })
    }

    /// The cooler of the device.
    ///
    /// Source: `nvmlDeviceGetCoolerInfo`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`] with `NVML_ERROR_NOT_SUPPORTED` for products without fans.
    pub fn cooler(&self) -> Result<Cooler> {
        self.query(|handle| {
            let mut info = nvmlCoolerInfo_v1_t {
                version: version::<nvmlCoolerInfo_v1_t>(1),
                ..Default::default()
            };
            nvml!(nvmlDeviceGetCoolerInfo(handle, &mut info))?;
            Ok(Cooler {
                control: CoolerControl::of(info.signalType),
                targets: CoolerTarget::in_mask(info.target),
            })
        })
    }

    /// Number of fans.
    ///
    /// Source: `nvmlDeviceGetNumFans`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn fan_count(&self) -> Result<u32> {
        self.number(|handle, to: &mut c_uint| nvml!(nvmlDeviceGetNumFans(handle, to)))
    }

    /// A fan, counted from 0.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if the device has no such fan; [`Error::Nvml`].
    pub fn fan(&self, number: u32) -> Result<Fan> {
        let count = self.fan_count()?;
        if number >= count {
            let problem = format!("it is {number}; the device has {count} fans, counted from 0");
            return Err(Error::argument("system::Device::fan", "number", problem));
        }
        Ok(Fan {
            device: self.clone(),
            number,
        })
    }

    /// Lowest and highest speed of the device's fans, in percent.
    ///
    /// Source: `nvmlDeviceGetMinMaxFanSpeed`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn fan_speed_range(&self) -> Result<(u32, u32)> {
        self.number(|handle, to: &mut (c_uint, c_uint)| {
            nvml!(nvmlDeviceGetMinMaxFanSpeed(handle, &mut to.0, &mut to.1))
        })
    }
}

impl Fan {
    /// Intended speed in percent of the maximum.
    ///
    /// Source: `nvmlDeviceGetFanSpeed_v2`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn speed(&self) -> Result<u32> {
        self.device.number(|handle, to: &mut c_uint| {
            nvml!(nvmlDeviceGetFanSpeed_v2(handle, self.number, to))
        })
    }

    /// Sets the speed in percent, and switches to manual control. Requires root.
    ///
    /// Source: `nvmlDeviceSetFanSpeed_v2`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`] with `NVML_ERROR_NO_PERMISSION`, or `NVML_ERROR_INVALID_ARGUMENT` outside of
    /// [`Device::fan_speed_range`].
    pub fn set_speed(&self, percent: u32) -> Result<()> {
        self.device
            .query(|handle| nvml!(nvmlDeviceSetFanSpeed_v2(handle, self.number, percent)))
    }

    /// Lets the device control the fan again. Requires root.
    ///
    /// Source: `nvmlDeviceSetDefaultFanSpeed_v2`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`] with `NVML_ERROR_NO_PERMISSION`.
    pub fn set_default_speed(&self) -> Result<()> {
        self.device
            .query(|handle| nvml!(nvmlDeviceSetDefaultFanSpeed_v2(handle, self.number)))
    }

    /// Intended speed in rotations per minute.
    ///
    /// Source: `nvmlDeviceGetFanSpeedRPM`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn speed_rpm(&self) -> Result<u32> {
        self.device.query(|handle| {
            let mut info = nvmlFanSpeedInfo_v1_t {
                version: version::<nvmlFanSpeedInfo_v1_t>(1),
                fan: self.number,
                speed: 0,
            };
            nvml!(nvmlDeviceGetFanSpeedRPM(handle, &mut info))?;
            Ok(info.speed)
        })
    }

    /// Speed that the driver aims at, in percent of the maximum.
    ///
    /// Source: `nvmlDeviceGetTargetFanSpeed`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn target_speed(&self) -> Result<u32> {
        self.device.number(|handle, to: &mut c_uint| {
            nvml!(nvmlDeviceGetTargetFanSpeed(handle, self.number, to))
        })
    }

    /// What controls the fan; `None` if this crate does not know it.
    ///
    /// Source: `nvmlDeviceGetFanControlPolicy_v2`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn control_policy(&self) -> Result<Option<FanControlPolicy>> {
        let number = self.device.number(|handle, to: &mut c_uint| {
            nvml!(nvmlDeviceGetFanControlPolicy_v2(handle, self.number, to))
        })?;
        Ok(FanControlPolicy::of(number))
    }
}
