"""Events and their options."""

from dataclasses import dataclass
from typing import Any, final

from typing_extensions import disjoint_base

from cuda.bindings.driver import CUevent
from cuda.core._context import Context
from cuda.core._device import Device

__all__ = ["Event", "EventOptions", "IPCEventDescriptor"]

@disjoint_base
class Event:
    """A point in a stream that can be waited for and, with ``timing_enabled``, timed."""

    def __new__(cls, *_args: Any, **_kwargs: Any) -> Event: ...
    @classmethod
    def from_ipc_descriptor(cls, ipc_descriptor: IPCEventDescriptor) -> Event:
        """Opens an event that another process created with ``ipc_enabled``."""
    @property
    def handle(self) -> CUevent:
        """Driver handle, a ``cuda.bindings.driver.CUevent``; 0 if the event was closed."""
    @property
    def is_closed(self) -> bool:
        """Whether :meth:`close` was called."""
    @property
    def is_done(self) -> bool:
        """Whether all work before the event is complete. True for an event that was never recorded."""
    @property
    def is_timing_enabled(self) -> bool:
        """Whether the event records a timestamp."""
    @property
    def is_blocking_sync(self) -> bool:
        """Whether :meth:`sync` blocks the thread instead of spinning."""
    @property
    def is_ipc_enabled(self) -> bool:
        """Whether other processes can open the event."""
    @property
    def is_sync_busy_waited(self) -> bool:
        """Deprecated alias of :attr:`is_blocking_sync`."""
    @property
    def ipc_descriptor(self) -> IPCEventDescriptor:
        """Descriptor with which another process opens the event by :meth:`from_ipc_descriptor`. It can be pickled."""
    def get_ipc_descriptor(self) -> IPCEventDescriptor:
        """Deprecated alias of :attr:`ipc_descriptor`."""
    @property
    def device(self) -> Device:
        """The device of the event."""
    @property
    def context(self) -> Context:
        """The context of the event."""
    def sync(self) -> None:
        """Waits for all work before the event. Returns at once for an event that was never recorded."""
    def close(self) -> None:
        """Releases the event: it is destroyed when no other object uses it."""
    def __sub__(self, other: Event, /) -> float: ...
    def __isub__(self, other: Event, /) -> float: ...
    def __rsub__(self, other: Event, /) -> float: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class IPCEventDescriptor:
    """Descriptor with which another process opens an :class:`Event`. It comes from :attr:`Event.ipc_descriptor` and
    can be pickled."""

    def __new__(cls, *_args: Any, **_kwargs: Any) -> IPCEventDescriptor: ...
    def __reduce__(self) -> tuple[Any, tuple[bytes, bool]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]

@dataclass
class EventOptions:
    """Options of an event."""

    timing_enabled: bool | None = False
    blocking_sync: bool | None = False
    ipc_enabled: bool | None = False
    def __post_init__(self) -> None: ...
