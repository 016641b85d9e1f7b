"""Devices as NVML sees them."""

from __future__ import annotations

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
from ._properties import _Queried, enabled, reading
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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Self

    from cuda.core._device import Device as CudaDevice

    from .typing import ClockType, EventType

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


def _brand(number: int) -> str:
    return next((text for name, text in _BRANDS.items() if getattr(nvml.BrandType, name) == number), "Unknown")


def _architecture(number: int) -> DeviceArch:
    try:
        return DeviceArch(number)
    except ValueError:
        return DeviceArch(DeviceArch.UNKNOWN)


def _known_states(states: Any) -> list[int]:
    return [int(state) for state in states if state != nvml.Pstates.PSTATE_UNKNOWN]


def _text(value: object, name: str) -> str:
    """A name of a device, which may be bytes."""
    if isinstance(value, bytes):
        value = value.decode("ascii", "replace")
    if not isinstance(value, str):
        raise TypeError(f"{name} is of type {type(value).__name__}; expected str or bytes")
    return value


def _find_uuid(uuid: str) -> Handle:
    """The handle of a device by its UUID, with or without the prefix ``GPU-`` or ``MIG-``."""
    if not uuid.upper().startswith(("GPU-", "MIG-")):
        for prefix in ("GPU-", "MIG-"):
            with suppress(nvml.NotFoundError, nvml.InvalidArgumentError):
                return Handle("device_get_handle_by_uuid", prefix + uuid)
    return Handle("device_get_handle_by_uuid", uuid)


class Device(_Queried):
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

    __slots__ = ("__weakref__",)

    def __init__(
        self, *, index: int | None = None, uuid: bytes | str | None = None, pci_bus_id: bytes | str | None = None
    ) -> None:
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
    def _of(cls, value: int) -> Self:
        """The device of a handle that NVML returned."""
        self = cls.__new__(cls)
        self._nvml_handle = Handle.of(value)
        return self

    @property
    def _handle(self) -> int:
        return int(self._nvml_handle)

    def __reduce__(self) -> tuple[Any, ...]:
        return _by_uuid, (type(self), self.uuid)

    def __repr__(self) -> str:
        try:
            return f"<system.Device {self.uuid} ({self.name})>"
        except nvml.NvmlError:
            return "<system.Device (NVML does not answer)>"

    # Enumeration

    @classmethod
    def get_device_count(cls) -> int:
        """Number of devices."""
        return int(call("device_get_count_v2"))

    @classmethod
    def get_all_devices(cls) -> Iterator[Device]:
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
    def get_all_devices_with_cpu_affinity(cls, cpu_index: int) -> Iterator[Device]:
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

    def to_cuda_device(self) -> CudaDevice:
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

    index = reading(int, "index", "NVML's number of the device.")
    name = reading(str, "name", "Name of the product.")
    uuid = reading(str, "uuid", "UUID with its prefix: ``GPU-`` or ``MIG-`` and five groups of hexadecimal digits.")

    @property
    def uuid_without_prefix(self) -> str:
        """UUID as in `cuda.core.Device.uuid`."""
        uuid = self.uuid
        return uuid[4:] if uuid[:4].upper() in ("GPU-", "MIG-") else uuid

    brand = reading(
        str, "brand", 'Brand; ``"Unknown"`` if the driver reports none, or one that this package does not know.', _brand
    )
    serial = reading(str, "serial", "Serial number of the board.")

    arch = reading(DeviceArch, "architecture", "Architecture: a `DeviceArch`.", _architecture)
    cuda_compute_capability = reading(
        tuple[int, int], "cuda_compute_capability", "Compute capability, ``(major, minor)``."
    )
    minor_number = reading(int, "minor_number", "Number of the device node ``/dev/nvidiaX``. Linux only.")
    module_id = reading(int, "module_id", "Number of the module on its baseboard; 0 without a baseboard.")

    @property
    def pci_info(self) -> PciInfo:
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
        return PciInfo(self._call("device_get_pci_info_ext"), self._nvml_handle)

    pci_bus_id = reading(str, "pci_info_ext", "PCI bus ID: ``domain:bus:device.function``.", lambda info: info.bus_id)

    @property
    def inforom(self) -> InforomInfo:
        """The InfoROM: `InforomInfo`."""
        return InforomInfo(self)

    # State

    memory_info = reading(MemoryInfo, "memory_info_v2", "`MemoryInfo` of the device memory.")
    bar1_memory_info = reading(
        BAR1MemoryInfo, "bar1_memory_info", "`BAR1MemoryInfo` of the memory that is mapped over PCIe."
    )
    utilization = reading(Utilization, "utilization_rates", "`Utilization` during the last sample period.")
    attributes = reading(DeviceAttributes, "attributes_v2", "`DeviceAttributes`: multiprocessors, engines and slices.")

    @property
    def compute_running_processes(self) -> list[ProcessInfo]:
        """`ProcessInfo` of each process with a compute context on the device.

        Examples
        --------
        >>> from cuda.core import system
        >>> for process in system.Device(index=0).compute_running_processes:
        ...     used = process.pid, process.used_gpu_memory
        """
        return [ProcessInfo(self, info) for info in self._call("device_get_compute_running_processes_v3")]

    @property
    def repair_status(self) -> RepairStatus:
        """Pending repairs: `RepairStatus`."""
        return RepairStatus(self._nvml_handle)

    @property
    def temperature(self) -> Temperature:
        """`Temperature` of the device.

        Examples
        --------
        >>> import contextlib
        >>> from cuda.core import system
        >>> with contextlib.suppress(system.NotSupportedError):
        ...     celsius = system.Device(index=0).temperature.get_sensor()
        """
        return Temperature(self._nvml_handle)

    cooler = reading(CoolerInfo, "cooler_info", "`CoolerInfo` of the device.")
    num_fans = reading(int, "num_fans", "Number of fans.")

    def get_fan(self, fan: int = 0) -> FanInfo:
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

    def get_clock(self, clock_type: ClockType | str) -> ClockInfo:
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

    is_auto_boosted_clocks_enabled = reading(
        tuple[bool, bool],
        "auto_boosted_clocks_enabled",
        "Whether clocks are boosted automatically, now and by default.",
        lambda states: (bool(states[0]), bool(states[1])),
    )
    current_clock_event_reasons = reading(
        list[ClocksEventReasons],
        "current_clocks_event_reasons",
        "Why clocks are lower than the maximum: a list of `ClocksEventReasons`.",
        _REASONS.words,
    )
    supported_clock_event_reasons = reading(
        list[ClocksEventReasons],
        "supported_clocks_event_reasons",
        "The `ClocksEventReasons` that the device can report.",
        _REASONS.words,
    )

    @property
    def performance_state(self) -> int | None:
        """Performance state, 0 (fastest) to 15 (slowest); None if unknown."""
        return next(iter(_known_states([self._call("device_get_performance_state")])), None)

    supported_pstates = reading(
        list[int],
        "supported_performance_states",
        "Performance states of the device, 0 (fastest) to 15 (slowest).",
        _known_states,
    )

    @property
    def dynamic_pstates_info(self) -> GpuDynamicPstatesInfo:
        """Utilisation by domain: `GpuDynamicPstatesInfo`.

        Examples
        --------
        >>> import contextlib
        >>> from cuda.core import system
        >>> with contextlib.suppress(system.NotSupportedError):
        ...     busy = [domain.percentage for domain in system.Device(index=0).dynamic_pstates_info if domain.is_present]
        """
        return GpuDynamicPstatesInfo(self._call("device_get_dynamic_pstates_info"))

    @property
    def is_persistence_mode_enabled(self) -> bool:
        """Whether the driver stays loaded without clients. Linux only; setting it requires root."""
        return enabled(self._call("device_get_persistence_mode"))

    @is_persistence_mode_enabled.setter
    def is_persistence_mode_enabled(self, enabled: bool) -> None:
        state = nvml.EnableState.ENABLED if enabled else nvml.EnableState.DISABLED
        self._call("device_set_persistence_mode", state)

    is_display_connected = reading(bool, "display_mode", "Whether a display is connected.", enabled)
    is_display_active = reading(
        bool, "display_active", "Whether a display is initialised on the device, connected or not.", enabled
    )

    is_c2c_enabled = reading(
        bool,
        "c2c_mode_info_v",
        "Whether the chip-to-chip interconnect is enabled.",
        lambda info: bool(info.is_c2c_enabled),
    )

    @property
    def addressing_mode(self) -> AddressingMode | None:
        """How the device addresses pageable memory of the host: an `AddressingMode`, or None."""
        mode: AddressingMode | None = _ADDRESSING_MODES.word(self._call("device_get_addressing_mode").value)
        return mode

    @property
    def mig(self) -> MigInfo:
        """Partitions of the GPU: `MigInfo`.

        Examples
        --------
        >>> import contextlib
        >>> from cuda.core import system
        >>> with contextlib.suppress(system.NotSupportedError):
        ...     is_partition, is_partitioned = system.Device(index=0).mig.is_mig_device, system.Device(index=0).mig.mode
        """
        return MigInfo(self)

    def get_field_values(self, field_ids: list[int | tuple[int, int]]) -> FieldValues:
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

    def clear_field_values(self, field_ids: list[int | tuple[int, int]]) -> None:
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
            self._call("device_clear_field_values", requests)

    # Events

    def get_supported_event_types(self) -> list[EventType]:
        """The `EventType` members that the device can report."""
        return EVENT_TYPES.words(self._call("device_get_supported_event_types"))

    def register_events(self, events: EventType | str | list[EventType | str]) -> DeviceEvents:
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

    def get_cpu_affinity(self, scope: AffinityScope | str = AffinityScope.NODE) -> list[int]:
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
        return bits(self._call("device_get_cpu_affinity_within_scope", words, number))

    def get_memory_affinity(self, scope: AffinityScope | str = AffinityScope.NODE) -> list[int]:
        """Numbers of the NUMA nodes that are close to the device. Linux only.

        Parameters
        ----------
        scope : AffinityScope or str
        """
        number = _AFFINITY_SCOPES.number(scope)
        # No machine has more NUMA nodes than CPUs.
        words = ((os.cpu_count() or 1) + 63) // 64
        return bits(self._call("device_get_memory_affinity", words, number))

    def set_cpu_affinity(self) -> None:
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
        self._call("device_set_cpu_affinity")

    def clear_cpu_affinity(self) -> None:
        """Let the calling thread run on all CPUs. Linux only."""
        self._call("device_clear_cpu_affinity")

    numa_node_id = reading(int, "numa_node_id", "NUMA node of the device, where GPUs are NUMA nodes.")

    def get_topology_nearest_gpus(self, level: GpuTopologyLevel | str) -> Iterator[Device]:
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
        return (type(self)._of(int(h)) for h in self._call("device_get_topology_nearest_gpus", number))

    def get_nvlink_count(self) -> int:
        """Number of NVLink links."""
        values = self.get_field_values([FieldId.DEV_NVLINK_LINK_COUNT])
        return int(values[0].value)

    def get_nvlink(self, link: int) -> NvlinkInfo:
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

    def get_nvlinks(self) -> Iterator[NvlinkInfo]:
        """Iterator over the `NvlinkInfo` of all links."""
        for link in range(self.get_nvlink_count()):
            yield NvlinkInfo(self, link)


def _by_uuid(kind: type[Device], uuid: str) -> Device:
    return kind(uuid=uuid)


def get_topology_common_ancestor(device1: Device, device2: Device) -> GpuTopologyLevel:
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
    level: GpuTopologyLevel = _LEVELS.word(call("device_get_topology_common_ancestor", *handles))
    return level


def get_p2p_status(device1: Device, device2: Device, index: GpuP2PCapsIndex | str) -> GpuP2PStatus:
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
    word: GpuP2PStatus = _STATUSES.word(status, GpuP2PStatus.UNKNOWN)
    return word


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
