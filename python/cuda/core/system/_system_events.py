"""Events of the system: devices that are bound to the driver, or unbound from it."""

from __future__ import annotations

from ._device_events import EventSet, wait
from ._mapping import Mapping
from ._nvml import call
from ._properties import field
from .typing import SystemEventType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import SupportsIndex

    from cuda.bindings import nvml

    from ._device import Device

__all__ = ["register_events"]

_TYPES = Mapping(
    SystemEventType, "events", "SystemEventType", {"BIND": "GPU_DRIVER_BIND", "UNBIND": "GPU_DRIVER_UNBIND"}
)


def _pci_bus_id(gpu_id: int) -> str:
    """NVML's text for a device number: domain, bus and device in 16, 8 and 8 bits."""
    return f"{gpu_id >> 16:08X}:{gpu_id >> 8 & 0xFF:02X}:{gpu_id & 0xFF:02X}.0"


class SystemEvent:
    """One event of the system.

    Parameters
    ----------
    event_data : cuda.bindings.nvml.SystemEventData_v1
        An array of one element.
    """

    __slots__ = ("_data",)

    def __init__(self, event_data: nvml.SystemEventData_v1) -> None:
        self._data = event_data

    event_type = field(
        SystemEventType, "event_type", "The `SystemEventType`; None if the driver reports another one.", _TYPES.word
    )
    gpu_id = field(int, "gpu_id", "PCI position of the device: domain, bus and device in 16, 8 and 8 bits.")

    @property
    def device(self) -> Device:
        """The device.

        Raises
        ------
        NvmlError
            If the driver no longer has the device.
        """
        from ._device import Device

        return Device(pci_bus_id=_pci_bus_id(self.gpu_id))


class SystemEvents:
    """Events of the system: a sequence.

    Parameters
    ----------
    event_data : cuda.bindings.nvml.SystemEventData_v1
        An array.
    """

    __slots__ = ("_data",)

    def __init__(self, event_data: nvml.SystemEventData_v1) -> None:
        self._data = event_data

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, idx: SupportsIndex) -> SystemEvent:
        from operator import index

        return SystemEvent(self._data[index(idx)])


class RegisteredSystemEvents:
    """Events of the system that are recorded from now on.

    Parameters
    ----------
    events : SystemEventType, str, or list of them
    """

    __slots__ = ("_set",)

    def __init__(self, events: SystemEventType | str | list[SystemEventType | str]) -> None:
        mask = _TYPES.mask(events, "events")
        self._set = EventSet("system_event_set_create", "system_event_set_free")
        call("system_register_events", mask, self._set.value)

    def wait(self, timeout_ms: int = 0, buffer_size: int = 1) -> SystemEvents:
        """Wait for events.

        Parameters
        ----------
        timeout_ms : int
            Timeout in milliseconds; 0 waits without a limit.
        buffer_size : int
            Largest number of events that are returned, at least 1.

        Returns
        -------
        SystemEvents

        Raises
        ------
        TimeoutError
            NVML's (`cuda.core.system.TimeoutError`): no event occurred in time.
        """
        from operator import index

        size = index(buffer_size)
        if not 1 <= size <= 1 << 20:
            raise ValueError(f"buffer_size is {buffer_size}; expected 1 to {1 << 20}")
        return SystemEvents(wait("system_event_set_wait", self._set, timeout_ms, size))


def register_events(events: SystemEventType | str | list[SystemEventType | str]) -> RegisteredSystemEvents:
    """Record events of the system from now on. Linux only.

    Parameters
    ----------
    events : SystemEventType, str, or list of them

    Returns
    -------
    RegisteredSystemEvents

    Examples
    --------
    >>> import contextlib
    >>> from cuda.core import system
    >>> with contextlib.suppress(system.NvmlError):
    ...     events = system.register_events(["bind", "unbind"])
    ...     found = [(event.event_type, event.gpu_id) for event in events.wait(timeout_ms=10)]
    """
    return RegisteredSystemEvents(events)
