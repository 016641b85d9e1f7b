"""Events of a device."""

from __future__ import annotations

from contextlib import suppress

from cuda.bindings import nvml

from . import _nvml
from ._mapping import Mapping
from ._nvml import call, handle_of
from .typing import EventType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, SupportsInt

    from ._device import Device

__all__ = ["EVENT_TYPES", "DeviceEvents", "EventData", "EventSet", "wait"]

EVENT_TYPES = Mapping(EventType, "events", "EventType")

_LONGEST = 0xFFFFFFFF  # NVML's longest timeout in milliseconds, about 50 days.
_SLICE = 100  # Longest wait within NVML in milliseconds; Python's signal handlers run after it.


def wait(name: str, event_set: EventSet, timeout_ms: int, *more: object) -> Any:
    """Call a function of NVML that waits for events, until there is one or the timeout is over.

    Parameters
    ----------
    name : str
        Function of the bindings.
    event_set : EventSet
    timeout_ms : int
        Timeout in milliseconds; 0 waits without a limit.
    more : object
        Further arguments of the function.

    Raises
    ------
    TypeError, ValueError
        If `timeout_ms` is no whole number of milliseconds.
    TimeoutError
        NVML's.
    """
    from operator import index
    from time import monotonic

    number = index(timeout_ms)
    if not 0 <= number <= _LONGEST:
        raise ValueError(f"timeout_ms is {timeout_ms}; expected 0 (no limit) to {_LONGEST}")
    deadline = monotonic() + number / 1000 if number else None
    remaining = number or _SLICE
    while True:
        try:
            # Events that occur between two calls are queued by NVML.
            return call(name, event_set.value, min(remaining, _SLICE), *more)
        except nvml.NvmlTimeoutError:
            if deadline is not None:
                remaining = round((deadline - monotonic()) * 1000)
                if remaining <= 0:
                    raise


class EventSet:
    """An event set of NVML, freed with the object.

    Parameters
    ----------
    create, free : str
        Functions of the bindings.
    """

    __slots__ = ("_free", "_generation", "value")

    def __init__(self, create: str, free: str) -> None:
        self._free = None
        self.value = call(create)
        self._free, self._generation = free, _nvml.generation()

    def __del__(self) -> None:
        # A set of an earlier initialisation was freed with it; one of the parent process is not ours.
        if self._free is None or not _nvml.is_initialized() or self._generation != _nvml._generation:
            return
        # Fails if NVML was shut down by another library, which freed the set.
        with suppress(nvml.NvmlError):
            getattr(nvml, self._free)(self.value)


class EventData:
    """One event of a device.

    Parameters
    ----------
    event_data : cuda.bindings.nvml.EventData
    """

    __slots__ = ("_data",)

    def __init__(self, event_data: nvml.EventData) -> None:
        self._data = event_data

    @property
    def device(self) -> Device:
        """The device on which the event occurred."""
        from ._device import Device

        return Device._of(int(self._data.device_))

    @property
    def event_type(self) -> EventType:
        """The `EventType`; `EventType.NONE` if the driver reports another one."""
        kind: EventType = EVENT_TYPES.word(self._data.event_type, EventType.NONE)
        return kind

    def _of_xid(self, name: str) -> int:
        if self.event_type != EventType.XID_CRITICAL_ERROR:
            raise ValueError(
                f"{name} is only known for {EventType.XID_CRITICAL_ERROR!r}; this event is {self.event_type!r}"
            )
        return int(getattr(self._data, name))

    @property
    def event_data(self) -> int:
        """The Xid error.

        Raises
        ------
        ValueError
            If the event is not `EventType.XID_CRITICAL_ERROR`.
        """
        return self._of_xid("event_data")

    @property
    def gpu_instance_id(self) -> int:
        """The GPU instance (MIG) of an Xid error.

        Raises
        ------
        ValueError
            If the event is not `EventType.XID_CRITICAL_ERROR`.
        """
        return self._of_xid("gpu_instance_id")

    @property
    def compute_instance_id(self) -> int:
        """The compute instance (MIG) of an Xid error.

        Raises
        ------
        ValueError
            If the event is not `EventType.XID_CRITICAL_ERROR`.
        """
        return self._of_xid("compute_instance_id")


class DeviceEvents:
    """Events of a device that are recorded from now on.

    Parameters
    ----------
    device_handle : int
        Handle of the device.
    events : EventType, str, or list of them
    """

    __slots__ = ("_set",)

    def __init__(self, device_handle: SupportsInt, events: EventType | str | list[EventType | str]) -> None:
        mask = EVENT_TYPES.mask(events, "events")
        handle = handle_of(device_handle)
        self._set = EventSet("event_set_create", "event_set_free")
        call("device_register_events", handle, mask, self._set.value)

    def wait(self, timeout_ms: int = 0) -> EventData:
        """Wait for the next event.

        Parameters
        ----------
        timeout_ms : int
            Timeout in milliseconds; 0 waits without a limit. Python's signal handlers run during the wait.

        Returns
        -------
        EventData

        Raises
        ------
        TimeoutError
            NVML's (`cuda.core.system.TimeoutError`): no event occurred in time.
        """
        return EventData(wait("event_set_wait_v2", self._set, timeout_ms))
