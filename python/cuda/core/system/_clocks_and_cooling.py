"""Clocks, fans, coolers and temperatures of a device."""

from cuda.bindings import nvml

from ._mapping import Mapping
from ._nvml import call, handle_of
from ._readings import element
from .typing import (
    ClockId,
    ClockType,
    CoolerControl,
    CoolerTarget,
    FanControlPolicy,
    TemperatureThresholds,
    ThermalController,
    ThermalTarget,
)

__all__ = [
    "ClockInfo",
    "ClockOffsets",
    "CoolerInfo",
    "FanInfo",
    "Temperature",
    "ThermalSensor",
    "ThermalSettings",
]

_CLOCK_TYPES = Mapping(ClockType, "clock_type", "ClockType", {"MEMORY": "MEM"})
_CLOCK_IDS = Mapping(ClockId, "clock_id", "ClockId")
_COOLER_CONTROLS = Mapping(CoolerControl, "signal type", "CoolerControl")
_COOLER_TARGETS = Mapping(CoolerTarget, "target", "CoolerTarget")
_FAN_POLICIES = Mapping(
    FanControlPolicy, "policy", "FanControlPolicy", {"TEMPERATURE_CONTROLLED": "TEMPERATURE_CONTINUOUS_SW"}
)
_THRESHOLDS = Mapping(TemperatureThresholds, "threshold_type", "TemperatureThresholds")
_CONTROLLERS = Mapping(ThermalController, "controller", "ThermalController")
_THERMAL_TARGETS = Mapping(ThermalTarget, "sensor_index", "ThermalTarget")


def _pstate(pstate):
    """Check the number of a performance state."""
    from operator import index

    number = index(pstate)
    if not 0 <= number <= 15:
        raise ValueError(f"pstate is {pstate}; expected 0 (fastest) to 15 (slowest)")
    return number


class ClockOffsets:
    """Offsets of a clock, in MHz.

    Parameters
    ----------
    clock_offset : cuda.bindings.nvml.ClockOffset_v1
    """

    __slots__ = ("_data",)

    def __init__(self, clock_offset):
        self._data = clock_offset

    @property
    def clock_offset_mhz(self):
        """Current offset in MHz."""
        return int(self._data.clock_offset_m_hz)

    @property
    def max_offset_mhz(self):
        """Largest offset in MHz."""
        return int(self._data.max_clock_offset_m_hz)

    @property
    def min_offset_mhz(self):
        """Smallest offset in MHz."""
        return int(self._data.min_clock_offset_m_hz)


class ClockInfo:
    """One clock domain of a device.

    Parameters
    ----------
    handle : int
        Handle of the device.
    clock_type : ClockType or str
    """

    __slots__ = ("_handle", "_type")

    def __init__(self, handle, clock_type):
        self._type = _CLOCK_TYPES.number(clock_type)
        self._handle = handle_of(handle)

    def get_current_mhz(self, clock_id=ClockId.CURRENT):
        """Frequency in MHz.

        Parameters
        ----------
        clock_id : ClockId or str
            Which value of the clock.
        """
        return call("device_get_clock", self._handle, self._type, _CLOCK_IDS.number(clock_id))

    def get_max_mhz(self):
        """Highest frequency in MHz."""
        return call("device_get_max_clock_info", self._handle, self._type)

    def get_max_customer_boost_mhz(self):
        """Highest boost frequency that the manufacturer defined, in MHz."""
        return call("device_get_max_customer_boost_clock", self._handle, self._type)

    def get_min_max_clock_of_pstate_mhz(self, pstate):
        """Lowest and highest frequency of a performance state (0 to 15), in MHz."""
        number = _pstate(pstate)
        return tuple(call("device_get_min_max_clock_of_p_state", self._handle, self._type, number))

    def get_offsets(self, pstate):
        """`ClockOffsets` of a performance state (0 to 15)."""
        return ClockOffsets(call("device_get_clock_offsets", self._handle, self._type, _pstate(pstate)))


class FanInfo:
    """One fan of a device.

    Parameters
    ----------
    handle : int
        Handle of the device.
    fan : int
        Number of the fan, counted from 0.
    """

    __slots__ = ("_fan", "_handle")

    def __init__(self, handle, fan):
        self._handle, self._fan = handle_of(handle), fan

    @property
    def speed(self):
        """Intended speed in percent of the maximum; setting it switches to manual control and requires root."""
        return call("device_get_fan_speed_v2", self._handle, self._fan)

    @speed.setter
    def speed(self, percent):
        call("device_set_fan_speed_v2", self._handle, self._fan, percent)

    @property
    def speed_rpm(self):
        """Intended speed in rotations per minute."""
        return int(call("device_get_fan_speed_rpm", self._handle, self._fan))

    @property
    def target_speed(self):
        """Speed that the driver aims at, in percent of the maximum."""
        return call("device_get_target_fan_speed", self._handle, self._fan)

    @property
    def min_max_speed(self):
        """Lowest and highest speed of the device's fans, in percent."""
        return tuple(call("device_get_min_max_fan_speed", self._handle))

    @property
    def control_policy(self):
        """What controls the fan: a `FanControlPolicy`."""
        return _FAN_POLICIES.word(call("device_get_fan_control_policy_v2", self._handle, self._fan))

    def set_default_speed(self):
        """Let the device control the fan again. Requires root."""
        call("device_set_default_fan_speed_v2", self._handle, self._fan)


class CoolerInfo:
    """How a cooler is controlled and what it cools.

    Parameters
    ----------
    cooler_info : cuda.bindings.nvml.CoolerInfo_v1
    """

    __slots__ = ("_data",)

    def __init__(self, cooler_info):
        self._data = cooler_info

    @property
    def signal_type(self):
        """A `CoolerControl`; None if the driver reports another one."""
        return _COOLER_CONTROLS.word(self._data.signal_type)

    @property
    def target(self):
        """List of `CoolerTarget`."""
        return _COOLER_TARGETS.words(int(self._data.target))


class Temperature:
    """Temperatures of a device, in degrees Celsius.

    Parameters
    ----------
    handle : int
        Handle of the device.
    """

    __slots__ = ("_handle",)

    def __init__(self, handle):
        self._handle = handle_of(handle)

    def get_sensor(self):
        """Temperature of the GPU in degrees Celsius."""
        return call("device_get_temperature_v", self._handle, nvml.TemperatureSensors.GPU)

    @property
    def margin(self):
        """Distance to the nearest slowdown threshold in degrees Celsius."""
        return call("device_get_margin_temperature", self._handle)

    def get_threshold(self, threshold_type):
        """A threshold in degrees Celsius.

        Parameters
        ----------
        threshold_type : TemperatureThresholds or str
            On Ada and later GPUs, SHUTDOWN, SLOWDOWN, MEM_MAX and GPU_MAX are deprecated: use the fields
            ``DEV_TEMPERATURE_*`` of `Device.get_field_values`.
        """
        number = _THRESHOLDS.number(threshold_type)
        if threshold_type in ("shutdown", "slowdown", "mem_max", "gpu_max"):
            arch = call("device_get_architecture", self._handle)
            if nvml.DeviceArch.ADA <= arch != nvml.DeviceArch.UNKNOWN:
                import warnings

                warnings.warn(
                    f"get_threshold({str(threshold_type)!r}) is deprecated for Ada and later GPUs; "
                    "use get_field_values with FieldId.DEV_TEMPERATURE_*",
                    DeprecationWarning,
                    stacklevel=2,
                )
        return call("device_get_temperature_threshold", self._handle, number)

    def get_thermal_settings(self, sensor_index):
        """`ThermalSettings` of the sensors of a target.

        Parameters
        ----------
        sensor_index : ThermalTarget or str
        """
        number = _THERMAL_TARGETS.number(sensor_index)
        return ThermalSettings(call("device_get_thermal_settings", self._handle, number))


class ThermalSensor:
    """One thermal sensor; temperatures in degrees Celsius.

    Parameters
    ----------
    ptr : int
        Address of NVML's structure of five integers.
    owner : object
        The object whose memory it is.
    """

    __slots__ = ("_owner", "_values")

    def __init__(self, ptr, owner):
        import ctypes

        self._owner = owner
        self._values = (ctypes.c_int * 5).from_address(ptr)

    @property
    def controller(self):
        """A `ThermalController`."""
        return _CONTROLLERS.word(self._values[0], ThermalController.UNKNOWN)

    @property
    def default_min_temp(self):
        """Lowest temperature that the sensor measures by default."""
        return self._values[1]

    @property
    def default_max_temp(self):
        """Highest temperature that the sensor measures by default."""
        return self._values[2]

    @property
    def current_temp(self):
        """Current temperature."""
        return self._values[3]

    @property
    def target(self):
        """What the sensor measures: a `ThermalTarget`; None if the driver reports another one."""
        return _THERMAL_TARGETS.word(self._values[4])


class ThermalSettings:
    """Thermal sensors: a sequence.

    Parameters
    ----------
    thermal_settings : cuda.bindings.nvml.GpuThermalSettings
    """

    __slots__ = ("_count", "_data", "_sensors")

    def __init__(self, thermal_settings):
        self._data = thermal_settings
        self._sensors = thermal_settings.sensor
        self._count = min(int(thermal_settings.count), len(self._sensors))

    def __len__(self):
        return self._count

    def __getitem__(self, index):
        from operator import index as number

        at = number(index)
        if not -self._count <= at < self._count:
            raise IndexError(f"sensor {at} is out of range: there are {self._count} sensors")
        return element(self._sensors, at % self._count, ThermalSensor, 20)
