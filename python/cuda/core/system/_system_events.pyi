"""Events of the system: devices that are bound to the driver, or unbound from it."""

from typing import SupportsIndex

from cuda.bindings import nvml
from cuda.core.system._device import Device
from cuda.core.system.typing import SystemEventType

__all__ = ["register_events"]

class SystemEvent:
    """One event of the system.

    Parameters
    ----------
    event_data : cuda.bindings.nvml.SystemEventData_v1
        An array of one element.
    """

    def __init__(self, event_data: nvml.SystemEventData_v1) -> None: ...
    @property
    def event_type(self) -> SystemEventType:
        """The `SystemEventType`; None if the driver reports another one."""
    @property
    def gpu_id(self) -> int:
        """PCI position of the device: domain, bus and device in 16, 8 and 8 bits."""
    @property
    def device(self) -> Device:
        """The device.

        Raises
        ------
        NvmlError
            If the driver no longer has the device.
        """

class SystemEvents:
    """Events of the system: a sequence.

    Parameters
    ----------
    event_data : cuda.bindings.nvml.SystemEventData_v1
        An array.
    """

    def __init__(self, event_data: nvml.SystemEventData_v1) -> None: ...
    def __len__(self) -> int: ...
    def __getitem__(self, idx: SupportsIndex) -> SystemEvent: ...

class RegisteredSystemEvents:
    """Events of the system that are recorded from now on.

    Parameters
    ----------
    events : SystemEventType, str, or list of them
    """

    def __init__(self, events: SystemEventType | str | list[SystemEventType | str]) -> None: ...
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

def register_events(events: SystemEventType | str | list[SystemEventType | str]) -> RegisteredSystemEvents:
    """Record events of the system from now on. Linux only.

    Parameters
    ----------
    events : SystemEventType, str, or list of them

    Returns
    -------
    RegisteredSystemEvents
    """
