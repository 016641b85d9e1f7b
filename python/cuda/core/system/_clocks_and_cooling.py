"""Clocks, fans, coolers and temperatures of a device."""

from __future__ import annotations

from cuda.bindings import nvml

from ._mapping import Mapping
from ._nvml import call, handle_of
from ._properties import Integers, _Queried, element, field, integer, reading
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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, SupportsIndex, SupportsInt

    from ._nvml import Handle

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


def _pstate(pstate: SupportsIndex) -> int:
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

    def __init__(self, clock_offset: nvml.ClockOffset_v1) -> None:
        self._data = clock_offset

    clock_offset_mhz = field(int, "clock_offset_m_hz", "Current offset in MHz.")
    max_offset_mhz = field(int, "max_clock_offset_m_hz", "Largest offset in MHz.")
    min_offset_mhz = field(int, "min_clock_offset_m_hz", "Smallest offset in MHz.")


class ClockInfo(_Queried):
    """One clock domain of a device.

    Parameters
    ----------
    handle : int
        Handle of the device.
    clock_type : ClockType or str
    """

    __slots__ = ("_type",)

    def __init__(self, handle: SupportsInt, clock_type: ClockType | str) -> None:
        self._type = _CLOCK_TYPES.number(clock_type)
        self._nvml_handle = handle_of(handle)

    def _call(self, name: str, *arguments: object) -> Any:
        return super()._call(name, self._type, *arguments)

    def get_current_mhz(self, clock_id: ClockId | str = ClockId.CURRENT) -> int:
        """Frequency in MHz.

        Parameters
        ----------
        clock_id : ClockId or str
            Which value of the clock.
        """
        return int(self._call("device_get_clock", _CLOCK_IDS.number(clock_id)))

    def get_max_mhz(self) -> int:
        """Highest frequency in MHz."""
        return int(self._call("device_get_max_clock_info"))

    def get_max_customer_boost_mhz(self) -> int:
        """Highest boost frequency that the manufacturer defined, in MHz."""
        return int(self._call("device_get_max_customer_boost_clock"))

    def get_min_max_clock_of_pstate_mhz(self, pstate: int) -> tuple[int, int]:
        """Lowest and highest frequency of a performance state (0 to 15), in MHz."""
        return tuple(self._call("device_get_min_max_clock_of_p_state", _pstate(pstate)))

    def get_offsets(self, pstate: int) -> ClockOffsets:
        """`ClockOffsets` of a performance state (0 to 15)."""
        return ClockOffsets(self._call("device_get_clock_offsets", _pstate(pstate)))


class FanInfo(_Queried):
    """One fan of a device.

    Parameters
    ----------
    handle : int
        Handle of the device.
    fan : int
        Number of the fan, counted from 0.
    """

    __slots__ = ("_fan",)

    def __init__(self, handle: SupportsInt, fan: int) -> None:
        self._nvml_handle, self._fan = handle_of(handle), fan

    def _call(self, name: str, *arguments: object) -> Any:
        return super()._call(name, self._fan, *arguments)

    @property
    def speed(self) -> int:
        """Intended speed in percent of the maximum; setting it switches to manual control and requires root."""
        return int(self._call("device_get_fan_speed_v2"))

    @speed.setter
    def speed(self, percent: int) -> None:
        self._call("device_set_fan_speed_v2", percent)

    speed_rpm = reading(int, "fan_speed_rpm", "Intended speed in rotations per minute.")
    target_speed = reading(int, "target_fan_speed", "Speed that the driver aims at, in percent of the maximum.")

    @property
    def min_max_speed(self) -> tuple[int, int]:
        """Lowest and highest speed of the device's fans, in percent."""
        return tuple(call("device_get_min_max_fan_speed", self._nvml_handle))

    control_policy = reading(
        FanControlPolicy, "fan_control_policy_v2", "What controls the fan: a `FanControlPolicy`.", _FAN_POLICIES.word
    )

    def set_default_speed(self) -> None:
        """Let the device control the fan again. Requires root."""
        self._call("device_set_default_fan_speed_v2")


class CoolerInfo:
    """How a cooler is controlled and what it cools.

    Parameters
    ----------
    cooler_info : cuda.bindings.nvml.CoolerInfo_v1
    """

    __slots__ = ("_data",)

    def __init__(self, cooler_info: nvml.CoolerInfo_v1) -> None:
        self._data = cooler_info

    @property
    def signal_type(self) -> CoolerControl | None:
        """A `CoolerControl`; None if the driver reports another one."""
        control: CoolerControl | None = _COOLER_CONTROLS.word(self._data.signal_type)
        return control

    target = field(list[CoolerTarget], "target", "List of `CoolerTarget`.", _COOLER_TARGETS.words)


class Temperature(_Queried):
    """Temperatures of a device, in degrees Celsius.

    Parameters
    ----------
    handle : int
        Handle of the device.
    """

    __slots__ = ()

    def __init__(self, handle: SupportsInt) -> None:
        self._nvml_handle = handle_of(handle)

    def get_sensor(self) -> int:
        """Temperature of the GPU in degrees Celsius."""
        return int(self._call("device_get_temperature_v", nvml.TemperatureSensors.GPU))

    margin = reading(int, "margin_temperature", "Distance to the nearest slowdown threshold in degrees Celsius.")

    def get_threshold(self, threshold_type: TemperatureThresholds | str) -> int:
        """A threshold in degrees Celsius.

        Parameters
        ----------
        threshold_type : TemperatureThresholds or str
            On Ada and later GPUs, SHUTDOWN, SLOWDOWN, MEM_MAX and GPU_MAX are deprecated: use the fields
            ``DEV_TEMPERATURE_*`` of `Device.get_field_values`.
        """
        number = _THRESHOLDS.number(threshold_type)
        if threshold_type in ("shutdown", "slowdown", "mem_max", "gpu_max"):
            arch = self._call("device_get_architecture")
            if nvml.DeviceArch.ADA <= arch != nvml.DeviceArch.UNKNOWN:
                import warnings

                warnings.warn(
                    f"get_threshold({str(threshold_type)!r}) is deprecated for Ada and later GPUs; "
                    "use get_field_values with FieldId.DEV_TEMPERATURE_*",
                    DeprecationWarning,
                    stacklevel=2,
                )
        return int(self._call("device_get_temperature_threshold", number))

    def get_thermal_settings(self, sensor_index: ThermalTarget | str) -> ThermalSettings:
        """`ThermalSettings` of the sensors of a target.

        Parameters
        ----------
        sensor_index : ThermalTarget or str
        """
        return ThermalSettings(self._call("device_get_thermal_settings", _THERMAL_TARGETS.number(sensor_index)))


class ThermalSensor(Integers):
    """One thermal sensor; temperatures in degrees Celsius.

    Parameters
    ----------
    ptr : int
        Address of NVML's structure of five integers.
    owner : object
        The object whose memory it is.
    """

    __slots__ = ()
    _TYPE, _COUNT = "c_int", 5

    controller = integer(
        ThermalController, 0, "A `ThermalController`.", lambda n: _CONTROLLERS.word(n, ThermalController.UNKNOWN)
    )
    default_min_temp = integer(int, 1, "Lowest temperature that the sensor measures by default.")
    default_max_temp = integer(int, 2, "Highest temperature that the sensor measures by default.")
    current_temp = integer(int, 3, "Current temperature.")
    target = integer(
        ThermalTarget,
        4,
        "What the sensor measures: a `ThermalTarget`; None if the driver reports another one.",
        _THERMAL_TARGETS.word,
    )


class ThermalSettings:
    """Thermal sensors: a sequence.

    Parameters
    ----------
    thermal_settings : cuda.bindings.nvml.GpuThermalSettings
    """

    __slots__ = ("_count", "_data", "_sensors")

    def __init__(self, thermal_settings: nvml.GpuThermalSettings) -> None:
        self._data = thermal_settings
        self._sensors = thermal_settings.sensor
        self._count = min(int(thermal_settings.count), len(self._sensors))

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: SupportsIndex) -> ThermalSensor:
        return element(self._sensors, self._count, index, ThermalSensor)
