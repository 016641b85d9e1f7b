"""Devices as NVML sees them."""

import os
from contextlib import suppress

from cuda.bindings import nvml

from . import _field_values
from ._clocks_and_cooling import (
    ClockInfo,
    ClockOffsets,
    CoolerInfo,
    FanInfo,
    Temperature,
    ThermalSensor,
    ThermalSettings,
)
from ._device_events import EVENT_TYPES, DeviceEvents, EventData
from ._device_parts import InforomInfo, MigInfo, NvlinkInfo, checked
from ._field_values import FieldValue, FieldValues
from ._mapping import Mapping, bits
from ._nvml import Handle, call
from ._readings import (
    BAR1MemoryInfo,
    DeviceAttributes,
    GpuDynamicPstatesInfo,
    GpuDynamicPstatesUtilization,
    MemoryInfo,
    PciInfo,
    ProcessInfo,
    RepairStatus,
    Utilization,
)
from .typing import (
    AddressingMode,
    AffinityScope,
    ClocksEventReasons,
    DeviceArch,
    FieldId,
    GpuP2PCapsIndex,
    GpuP2PStatus,
    GpuTopologyLevel,
)

__all__ = ["Device", "NvlinkInfo", "get_p2p_status", "get_topology_common_ancestor"]

_AFFINITY_SCOPES = Mapping(AffinityScope, "scope", "AffinityScope")
_LEVELS = Mapping(GpuTopologyLevel, "level", "GpuTopologyLevel")
_CAPABILITIES = Mapping(GpuP2PCapsIndex, "index", "GpuP2PCapsIndex")
_STATUSES = Mapping(GpuP2PStatus, "status", "GpuP2PStatus")
_ADDRESSING_MODES = Mapping(AddressingMode, "mode", "DeviceAddressingModeType")
_BY_HARDWARE = ("HW_SLOWDOWN", "HW_THERMAL_SLOWDOWN", "HW_POWER_BRAKE_SLOWDOWN")
_REASONS = Mapping(
    ClocksEventReasons,
    "reason",
    "ClocksEventReasons",
    {w: f"{'THROTTLE' if w in _BY_HARDWARE else 'EVENT'}_REASON_{w}" for w in ClocksEventReasons.__members__},
)

_BRANDS = {
    "UNKNOWN": "Unknown",
    "QUADRO": "Quadro",
    "TESLA": "Tesla",
    "NVS": "NVS",
    "GRID": "GRID",
    "GEFORCE": "GeForce",
    "TITAN": "Titan",
    "NVIDIA_VAPPS": "NVIDIA vApps",
    "NVIDIA_VPC": "NVIDIA VPC",
    "NVIDIA_VCS": "NVIDIA VCS",
    "NVIDIA_VWS": "NVIDIA VWS",
    "NVIDIA_CLOUD_GAMING": "NVIDIA vGaming",
    "QUADRO_RTX": "Quadro RTX",
    "NVIDIA_RTX": "NVIDIA RTX",
    "NVIDIA": "NVIDIA",
    "GEFORCE_RTX": "GeForce RTX",
    "TITAN_RTX": "Titan RTX",
    "NVIDIA_DLA": "NVIDIA DLA",
    "NVIDIA_VGAMEDEV": "NVIDIA vGameDev",
    "NVIDIA_NPU": "NVIDIA NPU",
}


def _text(value, name):
    """A name of a device, which may be bytes."""
    if isinstance(value, bytes):
        value = value.decode("ascii", "replace")
    if not isinstance(value, str):
        raise TypeError(f"{name} is of type {type(value).__name__}; expected str or bytes")
    return value


def _find_uuid(uuid):
    """The handle of a device by its UUID, with or without the prefix ``GPU-`` or ``MIG-``."""
    if not uuid.upper().startswith(("GPU-", "MIG-")):
        for prefix in ("GPU-", "MIG-"):
            with suppress(nvml.NotFoundError, nvml.InvalidArgumentError):
                return Handle("device_get_handle_by_uuid", prefix + uuid)
    return Handle("device_get_handle_by_uuid", uuid)


class Device:
    """A device as NVML sees it: its identity, state and topology. `cuda.core.Device` is the device for computing.

    Parameters
    ----------
    index : int, optional
        NVML's number of the device, counted from 0. It may differ from CUDA's, which ``CUDA_VISIBLE_DEVICES`` changes.
    uuid : str or bytes, optional
        UUID, with or without the prefix ``GPU-`` or ``MIG-``.
    pci_bus_id : str or bytes, optional
        PCI bus ID, ``domain:bus:device.function``.

    Raises
    ------
    ValueError
        Unless exactly one of the parameters is given.
    NvmlError
        If there is no such device, or NVML cannot be initialised.

    Examples
    --------
    >>> from cuda.core import system
    >>> device = system.Device(index=0)
    >>> print(f"device {device.index}: {device.name}, {device.uuid}, PCI {device.pci_bus_id}")
    device 0: ..., GPU-..., PCI ...
    >>> device.index < system.Device.get_device_count()
    True
    >>> memory = device.memory_info
    >>> memory.used + memory.free <= memory.total
    True
    >>> 0 <= device.utilization.gpu <= 100
    True
    >>> device.cuda_compute_capability >= (5, 0)
    True

    Readings that a device does not have raise ``NotSupportedError``:

    >>> def read(name):
    ...     try:
    ...         return getattr(device, name)
    ...     except system.NotSupportedError:
    ...         return None
    >>> names = (
    ...     "arch", "brand", "serial", "minor_number", "module_id", "numa_node_id", "addressing_mode", "num_fans",
    ...     "cooler", "inforom", "bar1_memory_info", "attributes", "repair_status", "performance_state",
    ...     "supported_pstates", "is_auto_boosted_clocks_enabled", "current_clock_event_reasons",
    ...     "supported_clock_event_reasons", "is_c2c_enabled", "is_persistence_mode_enabled", "is_display_active",
    ...     "is_display_connected",
    ... )
    >>> state = {name: read(name) for name in names}
    """

    __slots__ = ("__weakref__", "_nvml_handle")

    def __init__(self, *, index=None, uuid=None, pci_bus_id=None):
        given = [
            name for name, value in (("index", index), ("uuid", uuid), ("pci_bus_id", pci_bus_id)) if value is not None
        ]
        if len(given) != 1:
            raise ValueError(
                f"Device() takes exactly one of index, uuid and pci_bus_id; got {' and '.join(given) or 'none'}"
            )
        if index is not None:
            if not isinstance(index, int) and not hasattr(index, "__index__"):
                raise TypeError(f"index is of type {type(index).__name__}; expected int")
            self._nvml_handle = Handle("device_get_handle_by_index_v2", int(index))
        elif uuid is not None:
            self._nvml_handle = _find_uuid(_text(uuid, "uuid"))
        else:
            self._nvml_handle = Handle("device_get_handle_by_pci_bus_id_v2", _text(pci_bus_id, "pci_bus_id"))

    @classmethod
    def _of(cls, value):
        """The device of a handle that NVML returned."""
        self = cls.__new__(cls)
        self._nvml_handle = Handle.of(value)
        return self

    @property
    def _handle(self):
        return int(self._nvml_handle)

    def __reduce__(self):
        return _by_uuid, (type(self), self.uuid)

    def __repr__(self):
        try:
            return f"<system.Device {self.uuid} ({self.name})>"
        except nvml.NvmlError:
            return "<system.Device (NVML does not answer)>"

    # Enumeration

    @classmethod
    def get_device_count(cls):
        """Number of devices."""
        return call("device_get_count_v2")

    @classmethod
    def get_all_devices(cls):
        """Iterator over all devices, by index.

        Examples
        --------
        >>> from cuda.core import system
        >>> [device.index for device in system.Device.get_all_devices()] == list(range(system.get_num_devices()))
        True
        """
        for index in range(cls.get_device_count()):
            yield cls(index=index)

    @classmethod
    def get_all_devices_with_cpu_affinity(cls, cpu_index):
        """Iterator over the devices that are close to a CPU. Linux only.

        Parameters
        ----------
        cpu_index : int
            Number of the CPU.

        Examples
        --------
        >>> import contextlib
        >>> from cuda.core import system
        >>> with contextlib.suppress(system.NotSupportedError):
        ...     near = list(system.Device.get_all_devices_with_cpu_affinity(0))
        """
        for handle in call("system_get_topology_gpu_set", cpu_index):
            yield cls._of(int(handle))

    def to_cuda_device(self):
        """The `cuda.core.Device` with the same UUID.

        Raises
        ------
        RuntimeError
            If CUDA does not see the device: ``CUDA_VISIBLE_DEVICES`` hides it, or it is partitioned (MIG) and only its
            partitions can be used.

        Examples
        --------
        >>> from cuda.core import Device
        >>> found = Device(0).to_system_device()
        >>> found.to_cuda_device() == Device(0), found.uuid_without_prefix == Device(0).uuid
        (True, True)
        """
        from cuda.core import Device as CudaDevice

        # CUDA's UUIDs have no prefix; that of a MIG device is the part of its name behind "MIG-".
        wanted = self.uuid_without_prefix.lower()
        for device in CudaDevice.get_all_devices():
            if device.uuid.lower() == wanted:
                return device
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        reason = "" if visible is None else f"; CUDA_VISIBLE_DEVICES={visible!r}"
        raise RuntimeError(f"CUDA has no device with the UUID {self.uuid}{reason}")

    # Identity

    @property
    def index(self):
        """NVML's number of the device."""
        return call("device_get_index", self._nvml_handle)

    @property
    def name(self):
        """Name of the product."""
        return call("device_get_name", self._nvml_handle)

    @property
    def uuid(self):
        """UUID with its prefix: ``GPU-`` or ``MIG-`` and five groups of hexadecimal digits."""
        return call("device_get_uuid", self._nvml_handle)

    @property
    def uuid_without_prefix(self):
        """UUID as in `cuda.core.Device.uuid`."""
        uuid = self.uuid
        return uuid[4:] if uuid[:4].upper() in ("GPU-", "MIG-") else uuid

    @property
    def brand(self):
        """Brand; ``"Unknown"`` if the driver reports none, or one that this package does not know."""
        number = call("device_get_brand", self._nvml_handle)
        return next((text for name, text in _BRANDS.items() if getattr(nvml.BrandType, name) == number), "Unknown")

    @property
    def serial(self):
        """Serial number of the board."""
        return call("device_get_serial", self._nvml_handle)

    @property
    def arch(self):
        """Architecture: a `DeviceArch`."""
        number = call("device_get_architecture", self._nvml_handle)
        try:
            return DeviceArch(number)
        except ValueError:
            return DeviceArch.UNKNOWN

    @property
    def cuda_compute_capability(self):
        """Compute capability, ``(major, minor)``."""
        return tuple(call("device_get_cuda_compute_capability", self._nvml_handle))

    @property
    def minor_number(self):
        """Number of the device node ``/dev/nvidiaX``. Linux only."""
        return call("device_get_minor_number", self._nvml_handle)

    @property
    def module_id(self):
        """Number of the module on its baseboard; 0 without a baseboard."""
        return call("device_get_module_id", self._nvml_handle)

    @property
    def pci_info(self):
        """PCI attributes: `PciInfo`.

        Raises
        ------
        NotSupportedError
            For devices that are not on a PCI bus, for example MIG devices.

        Examples
        --------
        >>> from cuda.core import system
        >>> info = system.Device(index=0).pci_info
        >>> info.bus_id == system.Device(index=0).pci_bus_id
        True
        """
        return PciInfo(call("device_get_pci_info_ext", self._nvml_handle), self._nvml_handle)

    @property
    def pci_bus_id(self):
        """PCI bus ID: ``domain:bus:device.function``."""
        return self.pci_info.bus_id

    @property
    def inforom(self):
        """The InfoROM: `InforomInfo`."""
        return InforomInfo(self)

    # State

    @property
    def memory_info(self):
        """`MemoryInfo` of the device memory."""
        return MemoryInfo(call("device_get_memory_info_v2", self._nvml_handle))

    @property
    def bar1_memory_info(self):
        """`BAR1MemoryInfo` of the memory that is mapped over PCIe."""
        return BAR1MemoryInfo(call("device_get_bar1_memory_info", self._nvml_handle))

    @property
    def utilization(self):
        """`Utilization` during the last sample period."""
        return Utilization(call("device_get_utilization_rates", self._nvml_handle))

    @property
    def attributes(self):
        """`DeviceAttributes`: multiprocessors, engines and slices."""
        return DeviceAttributes(call("device_get_attributes_v2", self._nvml_handle))

    @property
    def compute_running_processes(self):
        """`ProcessInfo` of each process with a compute context on the device.

        Examples
        --------
        >>> from cuda.core import system
        >>> for process in system.Device(index=0).compute_running_processes:
        ...     used = process.pid, process.used_gpu_memory
        """
        return [ProcessInfo(self, info) for info in call("device_get_compute_running_processes_v3", self._nvml_handle)]

    @property
    def repair_status(self):
        """Pending repairs: `RepairStatus`."""
        return RepairStatus(self._nvml_handle)

    @property
    def temperature(self):
        """`Temperature` of the device.

        Examples
        --------
        >>> import contextlib
        >>> from cuda.core import system
        >>> with contextlib.suppress(system.NotSupportedError):
        ...     celsius = system.Device(index=0).temperature.get_sensor()
        """
        return Temperature(self._nvml_handle)

    @property
    def cooler(self):
        """`CoolerInfo` of the device."""
        return CoolerInfo(call("device_get_cooler_info", self._nvml_handle))

    @property
    def num_fans(self):
        """Number of fans."""
        return call("device_get_num_fans", self._nvml_handle)

    def get_fan(self, fan=0):
        """`FanInfo` of a fan.

        Parameters
        ----------
        fan : int
            Number of the fan, counted from 0.

        Raises
        ------
        ValueError
            If the device has no such fan.

        Examples
        --------
        >>> import contextlib
        >>> from cuda.core import system
        >>> device = system.Device(index=0)
        >>> with contextlib.suppress(system.NotSupportedError):
        ...     speeds = [device.get_fan(number).speed for number in range(device.num_fans)]
        """
        count = self.num_fans
        if not 0 <= fan < count:
            raise ValueError(f"fan is {fan}; the device has {count} fans, counted from 0")
        return FanInfo(self._nvml_handle, fan)

    def get_clock(self, clock_type):
        """`ClockInfo` of a clock domain.

        Parameters
        ----------
        clock_type : ClockType or str

        Examples
        --------
        >>> import contextlib
        >>> from cuda.core import system
        >>> with contextlib.suppress(system.NotSupportedError):
        ...     megahertz = system.Device(index=0).get_clock("sm").get_current_mhz()
        """
        return ClockInfo(self._nvml_handle, clock_type)

    @property
    def is_auto_boosted_clocks_enabled(self):
        """Whether clocks are boosted automatically, now and by default."""
        now, by_default = call("device_get_auto_boosted_clocks_enabled", self._nvml_handle)
        return bool(now), bool(by_default)

    @property
    def current_clock_event_reasons(self):
        """Why clocks are lower than the maximum: a list of `ClocksEventReasons`."""
        return _REASONS.words(call("device_get_current_clocks_event_reasons", self._nvml_handle))

    @property
    def supported_clock_event_reasons(self):
        """The `ClocksEventReasons` that the device can report."""
        return _REASONS.words(call("device_get_supported_clocks_event_reasons", self._nvml_handle))

    @property
    def performance_state(self):
        """Performance state, 0 (fastest) to 15 (slowest); None if unknown."""
        state = call("device_get_performance_state", self._nvml_handle)
        return None if state == nvml.Pstates.PSTATE_UNKNOWN else int(state)

    @property
    def supported_pstates(self):
        """Performance states of the device, 0 (fastest) to 15 (slowest)."""
        states = call("device_get_supported_performance_states", self._nvml_handle)
        return [int(state) for state in states if state != nvml.Pstates.PSTATE_UNKNOWN]

    @property
    def dynamic_pstates_info(self):
        """Utilisation by domain: `GpuDynamicPstatesInfo`.

        Examples
        --------
        >>> import contextlib
        >>> from cuda.core import system
        >>> with contextlib.suppress(system.NotSupportedError):
        ...     busy = [domain.percentage for domain in system.Device(index=0).dynamic_pstates_info if domain.is_present]
        """
        return GpuDynamicPstatesInfo(call("device_get_dynamic_pstates_info", self._nvml_handle))

    @property
    def is_persistence_mode_enabled(self):
        """Whether the driver stays loaded without clients. Linux only; setting it requires root."""
        return call("device_get_persistence_mode", self._nvml_handle) == nvml.EnableState.ENABLED

    @is_persistence_mode_enabled.setter
    def is_persistence_mode_enabled(self, enabled):
        state = nvml.EnableState.ENABLED if enabled else nvml.EnableState.DISABLED
        call("device_set_persistence_mode", self._nvml_handle, state)

    @property
    def is_display_connected(self):
        """Whether a display is connected."""
        return call("device_get_display_mode", self._nvml_handle) == nvml.EnableState.ENABLED

    @property
    def is_display_active(self):
        """Whether a display is initialised on the device, connected or not."""
        return call("device_get_display_active", self._nvml_handle) == nvml.EnableState.ENABLED

    @property
    def is_c2c_enabled(self):
        """Whether the chip-to-chip interconnect is enabled."""
        return bool(call("device_get_c2c_mode_info_v", self._nvml_handle).is_c2c_enabled)

    @property
    def addressing_mode(self):
        """How the device addresses pageable memory of the host: an `AddressingMode`, or None."""
        return _ADDRESSING_MODES.word(call("device_get_addressing_mode", self._nvml_handle).value)

    @property
    def mig(self):
        """Partitions of the GPU: `MigInfo`.

        Examples
        --------
        >>> import contextlib
        >>> from cuda.core import system
        >>> with contextlib.suppress(system.NotSupportedError):
        ...     is_partition, is_partitioned = system.Device(index=0).mig.is_mig_device, system.Device(index=0).mig.mode
        """
        return MigInfo(self)

    def get_field_values(self, field_ids):
        """Many figures in one call.

        Parameters
        ----------
        field_ids : list
            `FieldId` members, or pairs of a `FieldId` and a scope ID.

        Returns
        -------
        FieldValues
            The error of a field is raised when its value is read.

        Examples
        --------
        >>> import contextlib
        >>> from cuda.core import system
        >>> from cuda.core.system.typing import FieldId
        >>> device = system.Device(index=0)
        >>> values = device.get_field_values([FieldId.DEV_POWER_INSTANT, FieldId.DEV_MEMORY_TEMP])
        >>> with contextlib.suppress(system.NotSupportedError):
        ...     milliwatts, celsius = values.get_all_values()
        """
        return _field_values.read(self._nvml_handle, field_ids)

    def clear_field_values(self, field_ids):
        """Reset counters.

        Parameters
        ----------
        field_ids : list
            As for `get_field_values`.

        Examples
        --------
        >>> import contextlib
        >>> from cuda.core import system
        >>> from cuda.core.system.typing import FieldId
        >>> with contextlib.suppress(system.NvmlError):
        ...     system.Device(index=0).clear_field_values([FieldId.DEV_PCIE_COUNT_RX_BYTES])
        """
        requests = _field_values.checked_ids(field_ids)
        if requests:
            call("device_clear_field_values", self._nvml_handle, requests)

    # Events

    def get_supported_event_types(self):
        """The `EventType` members that the device can report."""
        return EVENT_TYPES.words(call("device_get_supported_event_types", self._nvml_handle))

    def register_events(self, events):
        """Record events from now on. Linux only.

        Parameters
        ----------
        events : EventType, str, or list of them

        Returns
        -------
        DeviceEvents

        Examples
        --------
        >>> import contextlib
        >>> from cuda.core import system
        >>> device = system.Device(index=0)
        >>> with contextlib.suppress(system.NotSupportedError, system.TimeoutError):
        ...     events = device.register_events(device.get_supported_event_types())
        ...     event = events.wait(timeout_ms=10)
        """
        return DeviceEvents(self._nvml_handle, events)

    # Topology

    def get_cpu_affinity(self, scope=AffinityScope.NODE):
        """Numbers of the CPUs that are close to the device. Linux only.

        Parameters
        ----------
        scope : AffinityScope or str

        Examples
        --------
        >>> import contextlib
        >>> from cuda.core import system
        >>> with contextlib.suppress(system.NotSupportedError):
        ...     cpus = system.Device(index=0).get_cpu_affinity("socket")
        ...     nodes = system.Device(index=0).get_memory_affinity()
        """
        number = _AFFINITY_SCOPES.number(scope)
        words = ((os.cpu_count() or 1) + 63) // 64
        return bits(call("device_get_cpu_affinity_within_scope", self._nvml_handle, words, number))

    def get_memory_affinity(self, scope=AffinityScope.NODE):
        """Numbers of the NUMA nodes that are close to the device. Linux only.

        Parameters
        ----------
        scope : AffinityScope or str
        """
        number = _AFFINITY_SCOPES.number(scope)
        # No machine has more NUMA nodes than CPUs.
        words = ((os.cpu_count() or 1) + 63) // 64
        return bits(call("device_get_memory_affinity", self._nvml_handle, words, number))

    def set_cpu_affinity(self):
        """Bind the calling thread to the CPUs that are close to the device. Linux only.

        Examples
        --------
        >>> import contextlib
        >>> from cuda.core import system
        >>> device = system.Device(index=0)
        >>> with contextlib.suppress(system.NotSupportedError):
        ...     device.set_cpu_affinity()
        ...     device.clear_cpu_affinity()
        """
        call("device_set_cpu_affinity", self._nvml_handle)

    def clear_cpu_affinity(self):
        """Let the calling thread run on all CPUs. Linux only."""
        call("device_clear_cpu_affinity", self._nvml_handle)

    @property
    def numa_node_id(self):
        """NUMA node of the device, where GPUs are NUMA nodes."""
        return call("device_get_numa_node_id", self._nvml_handle)

    def get_topology_nearest_gpus(self, level):
        """Iterator over the devices with that common ancestor. Linux only.

        Parameters
        ----------
        level : GpuTopologyLevel or str

        Examples
        --------
        >>> import contextlib
        >>> from cuda.core import system
        >>> with contextlib.suppress(system.NotSupportedError):
        ...     near = list(system.Device(index=0).get_topology_nearest_gpus("node"))
        """
        number = _LEVELS.number(level)
        return (type(self)._of(int(h)) for h in call("device_get_topology_nearest_gpus", self._nvml_handle, number))

    def get_nvlink_count(self):
        """Number of NVLink links."""
        values = self.get_field_values([FieldId.DEV_NVLINK_LINK_COUNT])
        return values[0].value

    def get_nvlink(self, link):
        """`NvlinkInfo` of a link.

        Parameters
        ----------
        link : int
            Number of the link, counted from 0.

        Raises
        ------
        ValueError
            If the device has no such link.

        Examples
        --------
        >>> import contextlib
        >>> from cuda.core import system
        >>> device = system.Device(index=0)
        >>> with contextlib.suppress(system.NotSupportedError):
        ...     links = [device.get_nvlink(number) for number in range(device.get_nvlink_count())]
        ...     same = list(device.get_nvlinks())
        """
        count = self.get_nvlink_count()
        if not 0 <= link < count:
            raise ValueError(f"link is {link}; the device has {count} NVLink links, counted from 0")
        return NvlinkInfo(self, link)

    def get_nvlinks(self):
        """Iterator over the `NvlinkInfo` of all links."""
        for link in range(self.get_nvlink_count()):
            yield NvlinkInfo(self, link)


def _by_uuid(kind, uuid):
    return kind(uuid=uuid)


def get_topology_common_ancestor(device1, device2):
    """The closest common ancestor of two devices. Linux only.

    Parameters
    ----------
    device1, device2 : Device

    Returns
    -------
    GpuTopologyLevel

    Examples
    --------
    >>> from cuda.core import system
    >>> devices = list(system.Device.get_all_devices())
    >>> if len(devices) > 1:
    ...     level = system.get_topology_common_ancestor(*devices[:2])
    """
    handles = checked(device1, "device1")._nvml_handle, checked(device2, "device2")._nvml_handle
    return _LEVELS.word(call("device_get_topology_common_ancestor", *handles))


def get_p2p_status(device1, device2, index):
    """Whether two devices have a capability, or why they do not.

    Parameters
    ----------
    device1, device2 : Device
    index : GpuP2PCapsIndex or str
        The capability.

    Returns
    -------
    GpuP2PStatus

    Examples
    --------
    >>> from cuda.core import system
    >>> devices = list(system.Device.get_all_devices())
    >>> if len(devices) > 1:
    ...     status = system.get_p2p_status(*devices[:2], "read")
    """
    handles = checked(device1, "device1")._nvml_handle, checked(device2, "device2")._nvml_handle
    status = call("device_get_p2p_status", *handles, _CAPABILITIES.number(index))
    return _STATUSES.word(status, GpuP2PStatus.UNKNOWN)


# The classes are defined in several files and belong to this module for users.
for _class in (
    BAR1MemoryInfo,
    ClockInfo,
    ClockOffsets,
    CoolerInfo,
    DeviceAttributes,
    DeviceEvents,
    EventData,
    FanInfo,
    FieldValue,
    FieldValues,
    GpuDynamicPstatesInfo,
    GpuDynamicPstatesUtilization,
    InforomInfo,
    MemoryInfo,
    MigInfo,
    NvlinkInfo,
    PciInfo,
    ProcessInfo,
    RepairStatus,
    Temperature,
    ThermalSensor,
    ThermalSettings,
    Utilization,
):
    _class.__module__ = __name__
del _class
