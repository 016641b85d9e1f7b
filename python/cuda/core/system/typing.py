"""Enumerations of `cuda.core.system`.

Members of a ``StrEnum`` equal their strings, and functions accept either.
"""

from enum import StrEnum as _StrEnum

from cuda.bindings._internal._fast_enum import FastEnum as _FastEnum
from cuda.bindings.nvml import FieldId

__all__ = [
    "AddressingMode",
    "AffinityScope",
    "ClockId",
    "ClockType",
    "ClocksEventReasons",
    "CoolerControl",
    "CoolerTarget",
    "DeviceArch",
    "EventType",
    "FanControlPolicy",
    "FieldId",
    "GpuP2PCapsIndex",
    "GpuP2PStatus",
    "GpuTopologyLevel",
    "InforomObject",
    "SystemEventType",
    "TemperatureThresholds",
    "ThermalController",
    "ThermalTarget",
]


class AddressingMode(_StrEnum):
    """How a GPU addresses pageable memory of the host.

    Examples
    --------
    >>> import contextlib
    >>> from cuda.core import system
    >>> from cuda.core.system.typing import AddressingMode
    >>> with contextlib.suppress(system.NotSupportedError):
    ...     by_hardware = system.Device(index=0).addressing_mode == AddressingMode.ATS
    """

    HMM = "hmm"  # Software (heterogeneous memory management of the kernel)
    ATS = "ats"  # Hardware (address translation services)


class AffinityScope(_StrEnum):
    """Part of a machine that an affinity refers to.

    Examples
    --------
    >>> import contextlib
    >>> from cuda.core import system
    >>> from cuda.core.system.typing import AffinityScope
    >>> with contextlib.suppress(system.NotSupportedError):
    ...     cpus = system.Device(index=0).get_cpu_affinity(AffinityScope.SOCKET)
    """

    NODE = "node"  # NUMA node
    SOCKET = "socket"  # CPU socket


class ClockId(_StrEnum):
    """Which value of a clock is queried.

    Examples
    --------
    >>> import contextlib
    >>> from cuda.core import system
    >>> from cuda.core.system.typing import ClockId
    >>> with contextlib.suppress(system.NotSupportedError):
    ...     megahertz = system.Device(index=0).get_clock("sm").get_current_mhz(ClockId.CURRENT)
    """

    CURRENT = "current"  # Current frequency
    CUSTOMER_BOOST_MAX = "customer_boost_max"  # Highest boost frequency that the manufacturer defined


class ClockType(_StrEnum):
    """Clock domains.

    Examples
    --------
    >>> import contextlib
    >>> from cuda.core import system
    >>> from cuda.core.system.typing import ClockType
    >>> with contextlib.suppress(system.NotSupportedError):
    ...     megahertz = {kind: system.Device(index=0).get_clock(kind).get_max_mhz() for kind in ClockType}
    """

    GRAPHICS = "graphics"
    SM = "sm"
    MEMORY = "memory"
    VIDEO = "video"


class ClocksEventReasons(_StrEnum):
    """Reasons why clocks are lower than the maximum.

    Examples
    --------
    >>> import contextlib
    >>> from cuda.core import system
    >>> from cuda.core.system.typing import ClocksEventReasons
    >>> with contextlib.suppress(system.NotSupportedError):
    ...     idle = ClocksEventReasons.GPU_IDLE in system.Device(index=0).current_clock_event_reasons
    """

    NONE = "none"  # Clocks run as high as possible
    GPU_IDLE = "gpu_idle"
    APPLICATIONS_CLOCKS_SETTING = "applications_clocks_setting"
    SW_POWER_CAP = "sw_power_cap"
    HW_SLOWDOWN = "hw_slowdown"
    SYNC_BOOST = "sync_boost"
    SW_THERMAL_SLOWDOWN = "sw_thermal_slowdown"
    HW_THERMAL_SLOWDOWN = "hw_thermal_slowdown"
    HW_POWER_BRAKE_SLOWDOWN = "hw_power_brake_slowdown"
    DISPLAY_CLOCK_SETTING = "display_clock_setting"
    BOARD_LIMIT = "board_limit"
    RELIABILITY = "reliability"


class CoolerControl(_StrEnum):
    """How a cooler is controlled.

    Examples
    --------
    >>> import contextlib
    >>> from cuda.core import system
    >>> from cuda.core.system.typing import CoolerControl
    >>> with contextlib.suppress(system.NotSupportedError):
    ...     variable = system.Device(index=0).cooler.signal_type == CoolerControl.VARIABLE
    """

    TOGGLE = "toggle"  # On or off only
    VARIABLE = "variable"  # At variable speed


class CoolerTarget(_StrEnum):
    """What a cooler cools.

    Examples
    --------
    >>> import contextlib
    >>> from cuda.core import system
    >>> from cuda.core.system.typing import CoolerTarget
    >>> with contextlib.suppress(system.NotSupportedError):
    ...     cools_memory = CoolerTarget.MEMORY in system.Device(index=0).cooler.target
    """

    NONE = "none"
    GPU = "gpu"
    MEMORY = "memory"
    POWER_SUPPLY = "power_supply"


class DeviceArch(_FastEnum):
    """Architectures of GPUs; the numbers are NVML's.

    Examples
    --------
    >>> from cuda.core import system
    >>> from cuda.core.system.typing import DeviceArch
    >>> system.Device(index=0).arch >= DeviceArch.MAXWELL
    True
    """

    KEPLER = 2
    MAXWELL = 3
    PASCAL = 4
    VOLTA = 5
    TURING = 6
    AMPERE = 7
    ADA = 8
    HOPPER = 9
    BLACKWELL = 10
    UNKNOWN = 0xFFFFFFFF


class EventType(_StrEnum):
    """Events of a device.

    Examples
    --------
    >>> import contextlib
    >>> from cuda.core import system
    >>> from cuda.core.system.typing import EventType
    >>> with contextlib.suppress(system.NotSupportedError):
    ...     events = system.Device(index=0).register_events([EventType.XID_CRITICAL_ERROR, EventType.CLOCK])
    """

    NONE = "none"
    SINGLE_BIT_ECC_ERROR = "single_bit_ecc_error"
    DOUBLE_BIT_ECC_ERROR = "double_bit_ecc_error"
    PSTATE = "pstate"
    XID_CRITICAL_ERROR = "xid_critical_error"
    CLOCK = "clock"
    POWER_SOURCE_CHANGE = "power_source_change"
    MIG_CONFIG_CHANGE = "mig_config_change"
    SINGLE_BIT_ECC_ERROR_STORM = "single_bit_ecc_error_storm"
    DRAM_RETIREMENT_EVENT = "dram_retirement_event"
    DRAM_RETIREMENT_FAILURE = "dram_retirement_failure"
    NON_FATAL_POISON_ERROR = "non_fatal_poison_error"
    FATAL_POISON_ERROR = "fatal_poison_error"
    GPU_UNAVAILABLE_ERROR = "gpu_unavailable_error"
    GPU_RECOVERY_ACTION = "gpu_recovery_action"


class FanControlPolicy(_StrEnum):
    """What controls a fan's speed.

    Examples
    --------
    >>> import contextlib
    >>> from cuda.core import system
    >>> from cuda.core.system.typing import FanControlPolicy
    >>> device = system.Device(index=0)
    >>> with contextlib.suppress(system.NotSupportedError):
    ...     if device.num_fans > 0:
    ...         manual = device.get_fan(0).control_policy == FanControlPolicy.MANUAL
    """

    TEMPERATURE_CONTROLLED = "temperature_controlled"
    MANUAL = "manual"


class GpuP2PCapsIndex(_StrEnum):
    """Capabilities between two devices.

    Examples
    --------
    >>> from cuda.core import system
    >>> from cuda.core.system.typing import GpuP2PCapsIndex
    >>> devices = list(system.Device.get_all_devices())
    >>> if len(devices) > 1:
    ...     status = system.get_p2p_status(*devices[:2], GpuP2PCapsIndex.NVLINK)
    """

    READ = "read"
    WRITE = "write"
    NVLINK = "nvlink"
    ATOMICS = "atomics"
    PCI = "pci"
    PROP = "prop"
    UNKNOWN = "unknown"


class GpuP2PStatus(_StrEnum):
    """Whether two devices have a capability, or why they do not.

    Examples
    --------
    >>> from cuda.core import system
    >>> from cuda.core.system.typing import GpuP2PStatus
    >>> devices = list(system.Device.get_all_devices())
    >>> if len(devices) > 1:
    ...     possible = system.get_p2p_status(*devices[:2], "read") == GpuP2PStatus.OK
    """

    OK = "ok"
    CHIPSET_NOT_SUPPORTED = "chipset not supported"
    GPU_NOT_SUPPORTED = "GPU not supported"
    IOH_TOPOLOGY_NOT_SUPPORTED = "IOH topology not supported"
    DISABLED_BY_REGKEY = "disabled by regkey"
    NOT_SUPPORTED = "not supported"
    UNKNOWN = "unknown"


class GpuTopologyLevel(_StrEnum):
    """The closest common ancestor of two devices.

    Examples
    --------
    >>> import contextlib
    >>> from cuda.core import system
    >>> from cuda.core.system.typing import GpuTopologyLevel
    >>> with contextlib.suppress(system.NotSupportedError):
    ...     near = list(system.Device(index=0).get_topology_nearest_gpus(GpuTopologyLevel.NODE))
    """

    INTERNAL = "internal"  # On the same board
    SINGLE = "single"  # Below one PCIe switch
    MULTIPLE = "multiple"  # Below several PCIe switches
    HOSTBRIDGE = "hostbridge"  # Below one host bridge
    NODE = "node"  # On one NUMA node
    SYSTEM = "system"  # Across NUMA nodes


class InforomObject(_StrEnum):
    """Objects of the InfoROM.

    Examples
    --------
    >>> import contextlib
    >>> from cuda.core import system
    >>> from cuda.core.system.typing import InforomObject
    >>> with contextlib.suppress(system.NotSupportedError):
    ...     version = system.Device(index=0).inforom.get_version(InforomObject.ECC)
    """

    OEM = "oem"
    ECC = "ecc"
    POWER = "power"
    DEN = "den"


class SystemEventType(_StrEnum):
    """Events of the system.

    Examples
    --------
    >>> import contextlib
    >>> from cuda.core import system
    >>> from cuda.core.system.typing import SystemEventType
    >>> with contextlib.suppress(system.NvmlError):
    ...     events = system.register_events(SystemEventType.BIND)
    """

    UNBIND = "unbind"  # A device was unbound from the driver
    BIND = "bind"  # A device was bound to the driver


class TemperatureThresholds(_StrEnum):
    """Temperature thresholds."""

    SHUTDOWN = "shutdown"
    SLOWDOWN = "slowdown"
    MEM_MAX = "mem_max"
    GPU_MAX = "gpu_max"
    ACOUSTIC_MIN = "acoustic_min"
    ACOUSTIC_CURR = "acoustic_curr"
    ACOUSTIC_MAX = "acoustic_max"
    GPS_CURR = "gps_curr"


class ThermalController(_StrEnum):
    """Controllers of thermal sensors.

    Examples
    --------
    >>> import contextlib
    >>> from cuda.core import system
    >>> from cuda.core.system.typing import ThermalController
    >>> with contextlib.suppress(system.NotSupportedError):
    ...     sensors = system.Device(index=0).temperature.get_thermal_settings("all")
    ...     internal = [sensor for sensor in sensors if sensor.controller == ThermalController.GPU_INTERNAL]
    """

    GPU_INTERNAL = "gpu_internal"
    ADM1032 = "adm1032"
    ADT7461 = "adt7461"
    MAX6649 = "max6649"
    MAX1617 = "max1617"
    LM99 = "lm99"
    LM89 = "lm89"
    LM64 = "lm64"
    G781 = "g781"
    ADT7473 = "adt7473"
    SBMAX6649 = "sbmax6649"
    VBIOSEVT = "vbiosevt"
    OS = "os"
    NVSYSCON_CANOAS = "nvsyscon_canoas"
    NVSYSCON_E551 = "nvsyscon_e551"
    MAX6649R = "max6649r"
    ADT7473S = "adt7473s"
    UNKNOWN = "unknown"


class ThermalTarget(_StrEnum):
    """What a thermal sensor measures.

    Examples
    --------
    >>> import contextlib
    >>> from cuda.core import system
    >>> from cuda.core.system.typing import ThermalTarget
    >>> with contextlib.suppress(system.NotSupportedError):
    ...     sensors = system.Device(index=0).temperature.get_thermal_settings(ThermalTarget.GPU)
    ...     celsius = [sensor.current_temp for sensor in sensors]
    """

    NONE = "none"
    GPU = "gpu"
    MEMORY = "memory"
    POWER_SUPPLY = "power_supply"
    BOARD = "board"
    VCD_BOARD = "vcd_board"
    VCD_INLET = "vcd_inlet"
    VCD_OUTLET = "vcd_outlet"
    ALL = "all"
